#include "server/app/token_command.h"

#include <fmt/format.h>

#include "client/base/clock.h"
#include "server/app/drivers.h"
#include "server/auth/tokens.h"

namespace sless::app {
namespace {

const base::SystemClock kClock;

}  // namespace

base::Result<std::string> CreateToken(const std::string& data_dir, const std::string& name) {
  ASSIGN_OR_RETURN(const auto store, OpenStore(data_dir, kClock));
  ASSIGN_OR_RETURN(const auto token, auth::CreateToken(*store, name));
  return token.Reveal() + "\n";
}

base::Result<std::string> ListTokens(const std::string& data_dir) {
  ASSIGN_OR_RETURN(const auto store, OpenStore(data_dir, kClock));
  ASSIGN_OR_RETURN(const auto tokens, auth::ListTokens(*store));
  std::string text;
  for (const auto& token : tokens) text += fmt::format("{}\t{}\n", token.name, token.created_at);
  return text;
}

base::Result<std::string> DeleteToken(const std::string& data_dir, const std::string& name) {
  ASSIGN_OR_RETURN(const auto store, OpenStore(data_dir, kClock));
  RETURN_IF_ERROR(auth::DeleteToken(*store, name));
  return std::string();
}

}  // namespace sless::app
