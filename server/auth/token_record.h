#pragma once

// How a token is kept and read; for this room only.

#include <optional>
#include <string>
#include <string_view>

#include "server/auth/tokens.h"

namespace sless::auth {

struct TokenRecord {
  std::string name;
  std::string hash;        ///< SHA-256 of the secret part, hex
  std::string created_at;  ///< RFC 3339
};

struct TokenParts {
  std::string name;
  std::string secret;
};

api::ObjectKey TokenKey(const std::string& name);
/// "sless_<name>_<64 hex>"; nullopt for any other form.
std::optional<TokenParts> SplitToken(std::string_view text);
store::StoredObject MakeTokenObject(const std::string& name, std::string_view secret);
/// Error: kInternal where the stored JSON is not that of a token.
base::Result<TokenRecord> ReadTokenObject(const store::StoredObject& object);

}  // namespace sless::auth
