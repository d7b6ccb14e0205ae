#pragma once

// IP addresses and sets of them, for rules about who may do what.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/base/result.h"

namespace sless::base {

/// An IPv4 or IPv6 address. An IPv4 address that is written as IPv6 (::ffff:192.0.2.1) is the IPv4
/// address.
class IpAddress {
 public:
  /// "192.0.2.1" or "2001:db8::1": no port, brackets, zone or blank. Error: kInvalidArgument.
  static Result<IpAddress> Parse(std::string_view text);
  /// In the shortest form (RFC 5952).
  std::string ToString() const;
  bool operator==(const IpAddress&) const = default;

 private:
  friend class AddressSet;
  bool v4_ = false;
  std::array<uint8_t, 16> bytes_{};  ///< of an IPv4 address the first four
};

/// Addresses and blocks of addresses (CIDR).
class AddressSet {
 public:
  /// "10.0.0.0/8, 192.168.1.7, fd00::/8"; "" is the empty set. Errors: kInvalidArgument with the
  /// entry that is wrong.
  static Result<AddressSet> Parse(std::string_view text);
  /// As Parse takes it.
  std::string ToString() const;
  bool Contains(const IpAddress& address) const;

 private:
  struct Block {
    IpAddress first;
    int bits = 0;
  };
  static Result<Block> ParseBlock(std::string_view entry);
  std::vector<Block> blocks_;
};

}  // namespace sless::base
