#pragma once

#include <string>

#include "client/base/result.h"

namespace sless::app {

/// The token commands: each returns what goes to stdout. They open the store beside a running
/// server; CreateToken makes it before the first one, the others are kNotFound where there is none.
/// Errors: those of the store and of auth/tokens.h.
base::Result<std::string> CreateToken(const std::string& data_dir, const std::string& name);
base::Result<std::string> ListTokens(const std::string& data_dir);
base::Result<std::string> DeleteToken(const std::string& data_dir, const std::string& name);

}  // namespace sless::app
