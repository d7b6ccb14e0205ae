#pragma once

// What pip and npm print, read for the person whose function they were to install.

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "server/build/process/registry_settings.h"

namespace sless::build {

/// Why an installation failed, in the tool's own words.
struct ToolFailure {
  std::string message;  ///< one line; "" where nothing was printed
  int line = 0;         ///< of the manifest, 0: not known
  /// The registry of packages could not be reached, or the settings for it not be read; `message`
  /// says why.
  bool unreachable = false;
};

/// `lines` is all that the tool printed, `manifest` the text of requirements.txt or package.json.
ToolFailure Explain(Tool tool, const std::vector<std::string>& lines, const std::string& manifest);

/// Keeps the last lines that say something about the function: without help texts and what the
/// tools say about themselves.
class Tail {
 public:
  void Add(std::string_view line);
  std::vector<std::string> Lines() const { return {lines_.begin(), lines_.end()}; }

 private:
  std::deque<std::string> lines_;
  bool in_usage_ = false;
};

}  // namespace sless::build
