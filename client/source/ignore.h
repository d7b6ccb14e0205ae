#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sless::source {

inline constexpr std::string_view kIgnoreFile = ".slessignore";
/// Beside one of these a folder node_modules is not content: the server installs it.
inline constexpr std::string_view kLockFiles[] = {"package-lock.json", "npm-shrinkwrap.json",
                                                  "yarn.lock"};

/// Lines of .slessignore that say something.
inline constexpr size_t kMaxIgnoreRules = 1000;
inline constexpr std::string_view kTooManyRules = "has more than 1000 rules";

/// Which files of a source are not content: the default rules, then the lines of .slessignore in
/// gitignore's syntax. The last rule that matches decides, so a line "!node_modules/" brings back
/// what a default leaves out. Not thread-safe.
class IgnoreRules {
 public:
  /// `max_steps`: characters of rules and paths that are looked at before TooCostly, by default for
  /// a second or so.
  explicit IgnoreRules(std::string_view text, uint64_t max_steps = 200'000'000);
  /// All but the root's .slessignore is content.
  static IgnoreRules None();

  /// Verdict on one path whose parents are not ignored (what lies in an ignored folder is ignored,
  /// whatever the rules say). `lock_beside`: a lock file lies in the same folder.
  bool Ignored(std::string_view path, bool is_directory, bool lock_beside);
  /// The text has more than kMaxIgnoreRules rules. Refuse it: what the rest is to keep out (keys,
  /// data) would be content.
  bool TooMany() const { return too_many_; }
  /// True once the verdicts took so many steps that the rules must be meant to keep a server busy;
  /// give up then.
  bool TooCostly() const { return steps_ > max_steps_; }

 private:
  IgnoreRules() : max_steps_(UINT64_MAX) {}
  struct Rule {
    std::vector<std::string> segments;  // "**" for any number of them
    bool negated = false;
    bool directory_only = false;
    bool any_level = false;  // matched against the last segment alone
    bool needs_lock = false;
  };
  bool Matches(const Rule& rule, const std::vector<std::string_view>& path);
  void AddLine(std::string_view line);

  const uint64_t max_steps_;
  std::vector<Rule> rules_;
  uint64_t steps_ = 0;
  bool too_many_ = false;
};

/// One segment against one pattern: *, ?, [a-z], [!a-z], \x. Adds what it cost to `steps`.
bool GlobMatches(std::string_view pattern, std::string_view text, uint64_t& steps);

}  // namespace sless::source
