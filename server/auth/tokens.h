#pragma once

// API tokens as objects of the store: kind "Token", one per name. The text of a token is
// "sless_<name>_<64 hex>"; only the SHA-256 of the secret part is kept.

#include <string>
#include <vector>

#include "client/base/clock.h"
#include "client/base/result.h"
#include "client/base/secret.h"
#include "server/store/object_store.h"

namespace sless::auth {

inline constexpr std::string_view kKindToken = "Token";
/// The namespace of tokens; no DNS label, so that no namespace of a user can be meant.
inline constexpr std::string_view kTokenNamespace = "_system";

struct TokenInfo {
  std::string name;
  std::string created_at;  ///< RFC 3339
};

/// Makes a token and returns its text, which nobody can read again later.
/// Errors: kInvalidArgument (name is no DNS label), kAlreadyExists, kUnavailable.
base::Result<base::Secret> CreateToken(store::ObjectStore& store, const std::string& name);
base::Result<std::vector<TokenInfo>> ListTokens(const store::ObjectStore& store);
/// Errors: kNotFound, kUnavailable.
base::Status DeleteToken(store::ObjectStore& store, const std::string& name);

}  // namespace sless::auth
