#include "client/source/ignore.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "client/base/strings.h"

namespace sless::source {
namespace {

/// Is `c` one of the characters that [:name:] stands for? ASCII alone, as the paths are bytes here.
bool InNamed(std::string_view name, unsigned char c) {
  using Test = int (*)(int);
  static constexpr std::array<std::pair<std::string_view, Test>, 12> kNamed{{
      {"alnum", std::isalnum},
      {"alpha", std::isalpha},
      {"blank", std::isblank},
      {"cntrl", std::iscntrl},
      {"digit", std::isdigit},
      {"graph", std::isgraph},
      {"lower", std::islower},
      {"print", std::isprint},
      {"punct", std::ispunct},
      {"space", std::isspace},
      {"upper", std::isupper},
      {"xdigit", std::isxdigit},
  }};
  const auto* const one = std::find_if(kNamed.begin(), kNamed.end(),
                                       [&](const auto& named) { return named.first == name; });
  return one != kNamed.end() && c < 0x80 && one->second(c) != 0;
}

/// Matches `c` against the class that starts after '['. `end` is set behind the ']'; false in
/// `closed` if there is none.
bool ClassMatches(std::string_view pattern, size_t& at, char c, bool& closed) {
  size_t i = at;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  bool found = false;
  bool named = true;  // false: no ":]" is to come, which is looked for once only
  const size_t first = i;
  for (; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    const auto byte = static_cast<unsigned char>(c);
    if (named && pattern[i] == '[' && pattern.substr(i).starts_with("[:")) {
      const size_t end = pattern.find(":]", i + 2);
      named = end != std::string_view::npos;
      if (named) {
        found = found || InNamed(pattern.substr(i + 2, end - i - 2), byte);
        i = end + 1;
        continue;
      }
    }
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    const auto low = static_cast<unsigned char>(pattern[i]);
    auto high = low;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      i += 2;
      if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
      high = static_cast<unsigned char>(pattern[i]);
    }
    found = found || (byte >= low && byte <= high);
  }
  closed = i < pattern.size();
  at = i + 1;
  return found != negated;
}

/// Matches one pattern element at `at` against `c` and moves `at` behind it. Adds what it read of a
/// class to `steps`: that may be the whole pattern.
bool OneMatches(std::string_view pattern, size_t& at, char c, uint64_t& steps) {
  if (pattern[at] == '?') return ++at, true;
  if (pattern[at] == '[') {
    size_t next = at + 1;
    bool closed = false;
    const bool matches = ClassMatches(pattern, next, c, closed);
    steps += next - at;
    at = next;
    return closed && matches;  // one that is not closed matches nothing, as in git
  }
  if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
  return pattern[at++] == c;
}

}  // namespace

bool GlobMatches(std::string_view pattern, std::string_view text, uint64_t& steps) {
  size_t p = 0, t = 0;
  size_t star = std::string_view::npos,
         star_text = 0;  // where to go on when the last '*' has to take one more
  while (t < text.size()) {
    ++steps;
    size_t next = p;
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_text = t;
    } else if (p < pattern.size() && OneMatches(pattern, next, text[t], steps)) {
      p = next;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star;
      t = ++star_text;
    } else {
      return false;
    }
  }
  for (; p < pattern.size() && pattern[p] == '*'; ++p) ++steps;
  return p == pattern.size();
}

IgnoreRules::IgnoreRules(std::string_view text, uint64_t max_steps) : max_steps_(max_steps) {
  // What Terraform keeps beside a configuration changes with every apply, and holds secrets.
  for (const char* line :
       {".git", "__pycache__", "*.pyc", ".DS_Store", ".terraform", ".terraform.lock.hcl",
        "*.tfstate", "*.tfstate.*", "*.tfplan", "*.tfvars", "*.tfvars.json"})
    AddLine(line);
  AddLine("node_modules");
  rules_.back().needs_lock = true;
  const size_t defaults = rules_.size();
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // some editors begin a file with it
  for (const auto& line : base::Split(text, '\n')) {
    AddLine(line);
    too_many_ = rules_.size() > defaults + kMaxIgnoreRules;
    if (too_many_) return;
  }
}

IgnoreRules IgnoreRules::None() { return IgnoreRules(); }

void IgnoreRules::AddLine(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  while (line.ends_with(' ') && !line.ends_with("\\ ")) line.remove_suffix(1);
  if (line.empty() || line.front() == '#') return;
  Rule rule;
  if (line.front() == '!') {
    rule.negated = true;
    line.remove_prefix(1);
  }
  if (line.ends_with('/')) {
    rule.directory_only = true;
    line.remove_suffix(1);
  }
  rule.any_level = !base::Contains(line, '/');
  if (line.starts_with('/')) line.remove_prefix(1);
  if (line.empty()) return;
  rule.segments = base::Split(line, '/');
  for (auto& segment : rule.segments) {  // more than two are two, as in git
    if (segment.size() > 2 && segment.find_first_not_of('*') == std::string::npos) segment = "**";
  }
  rules_.push_back(std::move(rule));
}

bool IgnoreRules::Matches(const Rule& rule, const std::vector<std::string_view>& path) {
  if (rule.any_level) return GlobMatches(rule.segments[0], path.back(), steps_);
  // reach[i]: the segments of the rule so far match the first i of the path.
  std::vector<char> reach(path.size() + 1, 0), next(path.size() + 1);
  reach[0] = 1;
  for (size_t s = 0; s < rule.segments.size(); ++s) {
    steps_ += 1 + path.size();
    const auto first = std::find(reach.begin(), reach.end(), 1);
    if (first == reach.end()) return false;
    std::fill(next.begin(), next.end(), 0);
    if (rule.segments[s] == "**") {  // any number of segments, as the last one at least one
      const bool last = s + 1 == rule.segments.size();
      std::fill(next.begin() + (first - reach.begin()) + (last ? 1 : 0), next.end(), 1);
    } else {
      for (size_t i = 0; i < path.size(); ++i) {
        if (reach[i] != 0 && GlobMatches(rule.segments[s], path[i], steps_)) next[i + 1] = 1;
      }
    }
    reach.swap(next);
  }
  return reach[path.size()] != 0;
}

bool IgnoreRules::Ignored(std::string_view path, bool is_directory, bool lock_beside) {
  if (path == kIgnoreFile) return true;
  if (TooCostly()) return false;
  std::vector<std::string_view> segments;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    segments.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    steps_ += 10;
    if (rule->directory_only && !is_directory) continue;
    if (rule->needs_lock && !lock_beside) continue;
    if (Matches(*rule, segments)) return !rule->negated;
  }
  return false;
}

}  // namespace sless::source
