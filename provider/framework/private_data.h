#pragma once

// The provider's own bytes beside an object in state.

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace sless::framework {

/// Key → text, kept by the host with the object, not shown and not encrypted. On the wire a JSON
/// object of base64 texts. Content that has another form (of an older provider) is kept byte for
/// byte as long as nothing is set.
class PrivateData {
 public:
  PrivateData() = default;
  static PrivateData Decode(std::string_view bytes);
  std::string Encode() const;

  std::optional<std::string> Get(std::string_view key) const;
  /// Keys that begin with '.' are the framework's.
  void Set(std::string key, std::string value);
  void Remove(std::string_view key);
  bool empty() const { return entries_.empty() && foreign_.empty(); }
  bool operator==(const PrivateData&) const = default;

 private:
  std::map<std::string, std::string, std::less<>> entries_;
  std::string foreign_;
};

}  // namespace sless::framework
