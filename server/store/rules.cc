#include "server/store/rules.h"

#include <fmt/format.h>

#include "client/base/strings.h"

namespace sless::store {
namespace {

using base::Code;
using base::Err;

constexpr size_t kMaxKeyPart = 253;
constexpr size_t kMaxPage = 1000;

base::Status CheckPart(std::string_view what, const std::string& part) {
  if (part.empty() || part.size() > kMaxKeyPart) {
    return Err(Code::kInvalidArgument, fmt::format("the {} of an object has 1 to {} bytes, got {}",
                                                   what, kMaxKeyPart, part.size()));
  }
  for (const char c : part) {
    if (c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return Err(Code::kInvalidArgument,
                 fmt::format("the {} of an object has no '/' and no control characters", what));
    }
  }
  return base::Ok();
}

}  // namespace

base::Status CheckKey(const api::ObjectKey& key) {
  RETURN_IF_ERROR(CheckPart("kind", key.kind));
  RETURN_IF_ERROR(CheckPart("namespace", key.ns));
  return CheckPart("name", key.name);
}

StoredObject MakeNew(StoredObject object, int64_t revision, base::TimePoint now) {
  object.metadata.ns = object.key.ns;
  object.metadata.name = object.key.name;
  object.metadata.uid = base::RandomHex(16);
  object.metadata.generation = 1;
  object.metadata.resource_version = std::to_string(revision);
  object.metadata.created_at = base::FormatTime(now);
  object.metadata.updated_at = object.metadata.created_at;
  return object;
}

base::Result<std::optional<StoredObject>> MakeUpdated(const StoredObject& stored, StoredObject next,
                                                      int64_t revision, base::TimePoint now) {
  RETURN_IF_ERROR(CheckVersion(stored, next.metadata.resource_version));
  if (next.metadata.uid != stored.metadata.uid) {
    return Err(Code::kAborted,
               fmt::format("{} was deleted and made again since it was read; read it again",
                           stored.key.ToString()));
  }
  StoredObject result = stored;
  result.metadata.annotations = std::move(next.metadata.annotations);
  result.metadata.deletion_requested_at = std::move(next.metadata.deletion_requested_at);
  result.spec_json = std::move(next.spec_json);
  result.status_json = std::move(next.status_json);
  const bool new_spec = result.spec_json != stored.spec_json;
  if (!new_spec && result.status_json == stored.status_json && result.metadata == stored.metadata) {
    return std::optional<StoredObject>();
  }
  if (new_spec) {
    ++result.metadata.generation;
    result.metadata.updated_at = base::FormatTime(now);
  }
  result.metadata.resource_version = std::to_string(revision);
  return std::optional<StoredObject>(std::move(result));
}

base::Status CheckVersion(const StoredObject& stored, const std::optional<std::string>& wanted) {
  if (!wanted || *wanted == stored.metadata.resource_version) return base::Ok();
  return Err(
      Code::kAborted,
      fmt::format(
          "{} was changed since it was read (resourceVersion is {}, got \"{}\"); read it again",
          stored.key.ToString(), stored.metadata.resource_version, base::Truncate(*wanted, 40)));
}

base::Result<std::pair<std::string, std::string>> PageStart(const ListQuery& query) {
  if (query.limit < 1 || query.limit > kMaxPage) {
    return Err(Code::kInvalidArgument,
               fmt::format("limit is 1 to {}, got {}", kMaxPage, query.limit));
  }
  if (query.kind.empty()) return Err(Code::kInvalidArgument, "a list needs a kind");
  if (query.continue_after.empty()) return std::pair<std::string, std::string>();
  const auto parts = base::Split(query.continue_after, '/');
  if (parts.size() != 2 || !CheckKey({query.kind, parts[0], parts[1]}) ||
      (!query.ns.empty() && parts[0] != query.ns)) {
    return Err(Code::kInvalidArgument,
               "the continue value is not one that this list gave; start again without it");
  }
  return std::pair(parts[0], parts[1]);
}

std::string ContinueAfter(const api::ObjectKey& last) { return last.ns + "/" + last.name; }

size_t SizeOf(const StoredObject& object) {
  size_t size = object.spec_json.size() + object.status_json.size();
  for (const auto& [key, value] : object.metadata.annotations) size += key.size() + value.size();
  return size;
}

tl::unexpected<base::Error> NotFound(const api::ObjectKey& key) {
  return Err(Code::kNotFound, fmt::format("{} does not exist", key.ToString()));
}

tl::unexpected<base::Error> AlreadyExists(const api::ObjectKey& key) {
  return Err(Code::kAlreadyExists, fmt::format("{} exists already", key.ToString()));
}

}  // namespace sless::store
