#include "server/app/token_command.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "client/base/clock.h"
#include "server/app/drivers.h"
#include "server/auth/tokens.h"

namespace sless::app {
namespace {

const base::SystemClock kClock;

/// The store of a server that was there before: a mistyped folder is not made.
base::Result<std::unique_ptr<store::ObjectStore>> OpenThere(const std::string& data_dir) {
  const auto path = data_dir + "/" + std::string(kStoreFile);
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return base::Err(
        base::Code::kNotFound,
        fmt::format("{} is no data folder of slessd: there is no {} in it", data_dir, kStoreFile));
  }
  return OpenStore(data_dir, kClock);
}

}  // namespace

base::Result<std::string> CreateToken(const std::string& data_dir, const std::string& name) {
  ASSIGN_OR_RETURN(const auto store, OpenStore(data_dir, kClock));
  ASSIGN_OR_RETURN(const auto token, auth::CreateToken(*store, name));
  return token.Reveal() + "\n";
}

base::Result<std::string> ListTokens(const std::string& data_dir) {
  ASSIGN_OR_RETURN(const auto store, OpenThere(data_dir));
  ASSIGN_OR_RETURN(const auto tokens, auth::ListTokens(*store));
  std::string text;
  for (const auto& token : tokens) text += fmt::format("{}\t{}\n", token.name, token.created_at);
  return text;
}

base::Result<std::string> DeleteToken(const std::string& data_dir, const std::string& name) {
  ASSIGN_OR_RETURN(const auto store, OpenThere(data_dir));
  RETURN_IF_ERROR(auth::DeleteToken(*store, name));
  return std::string();
}

}  // namespace sless::app
