#include "server/auth/tokens.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "client/base/digest.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/auth/token_record.h"

namespace sless::auth {
namespace {

using base::Code;
using base::Err;

constexpr std::string_view kPrefix = "sless_";
constexpr size_t kSecretBytes = 32;

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

api::ObjectKey TokenKey(const std::string& name) {
  return {std::string(kKindToken), std::string(kTokenNamespace), name};
}

std::optional<TokenParts> SplitToken(std::string_view text) {
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  const size_t separator = text.find('_');  // no DNS label has one
  if (separator == std::string_view::npos) return std::nullopt;
  const auto name = text.substr(0, separator), secret = text.substr(separator + 1);
  if (secret.size() != 2 * kSecretBytes || !IsHex(secret) || !base::DnsLabelProblem(name).empty())
    return std::nullopt;
  return TokenParts{std::string(name), std::string(secret)};
}

store::StoredObject MakeTokenObject(const std::string& name, std::string_view secret) {
  store::StoredObject object;
  object.key = TokenKey(name);
  // No salt: the secret is 256 random bits, so that no table of hashes helps.
  object.spec_json = base::DumpJson({{"sha256", base::Sha256Hex(secret)}});
  object.status_json = "{}";
  return object;
}

base::Result<TokenRecord> ReadTokenObject(const store::StoredObject& object) {
  const auto spec = base::ParseJson(object.spec_json);
  if (!spec || !spec->is_object() || !spec->contains("sha256") || !(*spec)["sha256"].is_string()) {
    return Err(Code::kInternal, fmt::format("{} in the store is damaged; create the token again",
                                            object.key.ToString()));
  }
  return TokenRecord{object.key.name, (*spec)["sha256"].get<std::string>(),
                     object.metadata.created_at};
}

base::Result<base::Secret> CreateToken(store::ObjectStore& store, const std::string& name) {
  if (const auto problem = base::DnsLabelProblem(name); !problem.empty()) {
    return Err(Code::kInvalidArgument,
               fmt::format("the name of a token is a DNS label: {}", problem));
  }
  const std::string secret = base::RandomHex(kSecretBytes);
  const auto created = store.Create(MakeTokenObject(name, secret));
  if (!created && created.error().code == Code::kAlreadyExists) {
    return Err(
        Code::kAlreadyExists,
        fmt::format("a token \"{}\" exists already and cannot be shown again; choose another name",
                    name));
  }
  if (!created) return Err(created.error());
  return base::Secret(fmt::format("{}{}_{}", kPrefix, name, secret));
}

base::Result<std::vector<TokenInfo>> ListTokens(const store::ObjectStore& store) {
  std::vector<TokenInfo> tokens;
  store::ListQuery query{std::string(kKindToken), std::string(kTokenNamespace), "", 1000, ""};
  do {  // ends: each page starts after the one before
    ASSIGN_OR_RETURN(auto page, store.List(query));
    for (const auto& item : page.items) tokens.push_back({item.key.name, item.metadata.created_at});
    query.continue_after = std::move(page.continue_after);
  } while (!query.continue_after.empty());
  return tokens;
}

base::Status DeleteToken(store::ObjectStore& store, const std::string& name) {
  const auto deleted = store.Delete(TokenKey(name), std::nullopt);
  if (!deleted && deleted.error().code == Code::kNotFound) {
    return Err(Code::kNotFound, fmt::format("there is no token \"{}\"", base::Truncate(name, 63)));
  }
  return deleted;
}

}  // namespace sless::auth
