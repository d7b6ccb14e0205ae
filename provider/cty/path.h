#pragma once

// Where a value lies inside another one: `a.b[0]["k"]`.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sless::cty {

/// One step: an attribute (or block) name, a map key, or a list index from 0. Sets have no step: a
/// path ends at the set.
struct Step {
  enum class Kind : uint8_t { kAttribute, kKey, kIndex };
  Kind kind = Kind::kAttribute;
  std::string name;   ///< kAttribute, kKey
  int64_t index = 0;  ///< kIndex
  auto operator<=>(const Step&) const = default;
};

/// A path from the root of a value; empty means the root itself. `Path("http").Attribute("path")`.
class Path {
 public:
  Path() = default;
  /// One attribute of the root.
  explicit Path(std::string_view attribute) {
    Push(Step{Step::Kind::kAttribute, std::string(attribute)});
  }

  Path Attribute(std::string_view name) const {
    return With({Step::Kind::kAttribute, std::string(name)});
  }
  Path Key(std::string_view key) const { return With({Step::Kind::kKey, std::string(key)}); }
  Path Index(int64_t index) const { return With({Step::Kind::kIndex, "", index}); }
  Path With(Step step) const {
    Path copy = *this;
    copy.Push(std::move(step));
    return copy;
  }
  void Push(Step step) { steps_.push_back(std::move(step)); }
  void Pop() { steps_.pop_back(); }

  const std::vector<Step>& steps() const { return steps_; }
  bool empty() const { return steps_.empty(); }
  /// True if `prefix` leads to this path.
  bool StartsWith(const Path& prefix) const;
  /// `a.b[0]["k"]`; "" for the root.
  std::string ToString() const;

  auto operator<=>(const Path&) const = default;

 private:
  std::vector<Step> steps_;
};

}  // namespace sless::cty
