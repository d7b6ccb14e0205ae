#pragma once

// A provider function: provider::name::function(…). Pure: equal arguments give equal results.

#include <optional>
#include <string>
#include <vector>

#include "provider/cty/value.h"

namespace sless::framework {

struct Parameter {
  std::string name;
  cty::Type type;
  std::string description;  ///< Markdown
  bool allow_null = false;
  bool allow_unknown = false;
};

struct FunctionDefinition {
  std::vector<Parameter> parameters;
  std::optional<Parameter> variadic;
  cty::Type result;
  std::string summary;
  std::string description;  ///< Markdown
  std::string deprecation;
};

struct FunctionError {
  std::string text;
  std::optional<int64_t> argument;  ///< index into the arguments from 0, variadic ones counted on
};
struct FunctionResponse {
  cty::Value result;
  std::optional<FunctionError> error;
};

/// Thread safety: as Resource. Called without a configured provider.
class Function {
 public:
  virtual ~Function() = default;
  virtual std::string Name() const = 0;
  virtual FunctionDefinition Definition() const = 0;
  virtual void Call(const std::vector<cty::Value>& arguments, FunctionResponse& response) const = 0;
};

}  // namespace sless::framework
