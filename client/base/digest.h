#pragma once

// SHA-256 and comparison in constant time, over OpenSSL.

#include <memory>
#include <string>
#include <string_view>

namespace sless::base {

/// Incremental SHA-256. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void Update(std::string_view bytes);
  /// 64 lower-case hex digits; ends the computation.
  std::string Hex();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string Sha256Hex(std::string_view bytes);
/// "sha256:" and 64 lower-case hex digits: the name of a source's content.
bool IsContentHash(std::string_view text);
inline constexpr std::string_view kContentHashPrefix = "sha256:";
/// True if equal; the time depends on the lengths only.
bool ConstantTimeEqual(std::string_view a, std::string_view b);

}  // namespace sless::base
