#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace sless::source {

/// What a scan of a file's text found.
struct Names {
  std::vector<std::string> functions;    ///< certainly functions, in the order of the file
  std::vector<std::string> other;        ///< names bound in another way; may be functions
  std::unordered_set<std::string> seen;  ///< the functions again
  bool uncertain = false;                ///< names may exist that a scan cannot see

  void Function(std::string name) {
    if (!name.empty() && seen.insert(name).second)
      functions.push_back(std::move(name));  // { "": … } names nothing
  }
  bool MayHave(std::string_view name) const {
    return uncertain || std::find(functions.begin(), functions.end(), name) != functions.end() ||
           std::find(other.begin(), other.end(), name) != other.end();
  }
};

inline bool IsWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || (c & 0x80);
}
inline bool IsWord(char c) { return IsWordStart(c) || (c >= '0' && c <= '9'); }

}  // namespace sless::source
