#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

namespace sless::base {

/// A value that never prints: streams, fmt and JSON show "***". Ask with Reveal().
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  const std::string& Reveal() const { return value_; }
  bool empty() const { return value_.empty(); }
  friend bool operator==(const Secret&, const Secret&) = default;

 private:
  std::string value_;
};

}  // namespace sless::base

template <>
struct fmt::formatter<sless::base::Secret> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const sless::base::Secret&, Context& ctx) const {
    return fmt::formatter<std::string_view>::format("***", ctx);
  }
};
