#include "server/build/process/tool_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>

#include "client/base/strings.h"

namespace sless::build {
namespace {

using Lines = std::vector<std::string>;

constexpr size_t kTail = 30;
constexpr size_t kMaxTailLine = 1000;  // bytes, as in the logs of functions
constexpr size_t kMostDetails = 5;

// The rest of `line` behind `word`, "" where it is not in it.
std::string After(const std::string& line, std::string_view word) {
  const size_t at = line.find(word);
  if (at == std::string::npos) return "";
  return std::string(base::Trim(std::string_view(line).substr(at + word.size())));
}

// A message, and the words of the tool (not of a package's own code) that name the package.
struct Found {
  std::string message, about;
};
using MaybeFound = std::optional<Found>;

Found Plain(const std::string& message) { return {message, message}; }

// ---- pip

// One command that pip ran and that failed, from the title to the end of its output:
//     × Building wheel for x (pyproject.toml) did not run successfully.
//     ╰─> [4 lines of output]
//         …
//         [end of output]
MaybeFound FailedCommand(const Lines& lines) {
  constexpr std::string_view kMark = "× ", kFailed = " did not run successfully";
  const auto title = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return base::Trim(line).starts_with(kMark) && base::Contains(line, kFailed);
  });
  if (title == lines.end()) return std::nullopt;
  Found found;
  found.about = After(*title, kMark);
  found.about.resize(found.about.find(kFailed) + kFailed.size());
  std::string last, compiler;
  bool above = false;
  for (auto line = title + 1; line != lines.end(); ++line) {
    const std::string text(base::Trim(*line));
    if (base::Contains(text, "See above for output")) above = true;
    if (text == "[end of output]" || above) break;
    if (text.empty() || text.starts_with("│") || text.starts_with("╰─>")) continue;
    last = text;
    if (compiler.empty() && base::Contains(text, "error: ") && !text.starts_with("error: command"))
      compiler = text;
  }
  if (above) {  // then the output stands before the title
    for (auto line = title; line != lines.begin() && last.empty();) {
      const std::string text(base::Trim(*--line));
      if (text != "error: subprocess-exited-with-error") last = text;
    }
  }
  // "command gcc failed" is true, but what gcc said is what helps.
  if (last.starts_with("error: command") && !compiler.empty()) last = compiler;
  found.message = last.empty() ? found.about : fmt::format("{}: {}", found.about, last);
  return found;
}

MaybeFound Conflict(const Lines& lines) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!base::Contains(lines[i], "ERROR: Cannot install ")) continue;
    std::string message = After(lines[i], "ERROR: ");
    if (message.ends_with('.')) message.pop_back();
    std::vector<std::string> causes;
    bool listed = false;
    for (size_t j = i + 1; j < lines.size() && causes.size() < kMostDetails; ++j) {
      if (listed && !lines[j].starts_with(' ')) break;
      if (listed) causes.emplace_back(base::Trim(lines[j]));
      listed = listed || base::Contains(lines[j], "The conflict is caused by");
    }
    if (!causes.empty()) message += ": " + base::Join(causes, "; ");
    return Plain(message);
  }
  return std::nullopt;
}

// A line with `word`, and where it ends in a colon or has a hint, the one below it.
MaybeFound WithNext(const Lines& lines, std::string_view word) {
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t at = lines[i].find(word);
    if (at == std::string::npos) continue;
    std::string message(base::Trim(std::string_view(lines[i]).substr(at)));
    const std::string next(i + 1 < lines.size() ? base::Trim(lines[i + 1]) : "");
    if (next.starts_with("Hint: ")) message += ". " + next;
    return Plain(message);
  }
  return std::nullopt;
}

MaybeFound WrongHash(const Lines& lines) {
  constexpr std::string_view kWord = "THESE PACKAGES DO NOT MATCH THE HASHES";
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    if (!base::Contains(lines[i], kWord)) continue;
    std::string package(base::Trim(lines[i + 1]));
    if (package.ends_with(':')) package.pop_back();
    return Plain(fmt::format("{} FROM THE REQUIREMENTS FILE: {}", kWord, package));
  }
  return std::nullopt;
}

// The requirement that has none stands in the next line, with the hash that it would need.
MaybeFound MissingHash(const Lines& lines) {
  constexpr std::string_view kWord = "Hashes are required in --require-hashes mode";
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    if (!base::Contains(lines[i], kWord)) continue;
    return Plain(fmt::format("{}, which one hash turns on for all, but they are missing from: {}",
                             kWord, base::Trim(lines[i + 1])));
  }
  return std::nullopt;
}

// pip's own code, or what it calls, fell over: the exception is the last line.
MaybeFound Crash(const Lines& lines) {
  const bool crashed = std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return base::Trim(line) == "ERROR: Exception:";
  });
  if (!crashed) return std::nullopt;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (!line->empty() && !line->starts_with(' ') && !line->starts_with("WARNING:") &&
        !line->starts_with('['))
      return Found{*line, ""};
  }
  return std::nullopt;
}

Found MeaningOfPip(const Lines& lines) {
  if (auto found = FailedCommand(lines)) return *found;
  if (auto found = WithNext(lines, "No matching distribution found for")) return *found;
  if (auto found = WithNext(lines, "Invalid requirement:")) return *found;
  if (auto found = WithNext(lines, "Could not open requirements file")) return *found;
  if (auto found = Conflict(lines)) return *found;
  if (auto found = WrongHash(lines)) return *found;
  if (auto found = MissingHash(lines)) return *found;
  if (auto found = Crash(lines)) return *found;
  for (const auto& line : lines) {
    if (const auto rest = After(line, "ERROR: "); !rest.empty()) return Plain(rest);
  }
  return Plain(lines.empty() ? "" : lines.back());
}

// ---- npm

// What stands behind "npm error", in lines; newer and older ones.
Lines ErrorsOfNpm(const Lines& lines) {
  Lines out;
  for (const auto& line : lines) {
    for (const std::string_view prefix : {"npm error", "npm ERR!"}) {
      if (line.starts_with(prefix))
        out.emplace_back(base::Trim(std::string_view(line).substr(prefix.size())));
    }
  }
  return out;
}

bool IsForMachines(std::string_view error) {
  for (const std::string_view word : {"code ", "errno ", "syscall ", "path ", "dest ", "command ",
                                      "A complete log of this run"}) {
    if (error.starts_with(word)) return true;
  }
  return error.empty();
}

// npm puts a word before the sentence: "notarget No matching version …".
std::string Sentence(std::string_view error) {
  for (const std::string_view word :
       {"404 ", "notarget ", "ERESOLVE ", "network ", "enoent ", "engine ", "notsup "}) {
    if (error.starts_with(word)) return std::string(base::Trim(error.substr(word.size())));
  }
  return std::string(error);
}

// npm names the hashes in its error, and the package in a warning before it.
MaybeFound WrongIntegrity(const Lines& lines, const Lines& errors) {
  for (const auto& error : errors) {
    const std::string hashes = After(error, "integrity checksum failed when using ");
    if (hashes.empty()) continue;
    std::string package = "a package";
    for (const auto& line : lines) {
      const std::string rest = After(line, "tarball data for ");
      if (base::Contains(rest, "seems to be corrupted")) package = rest.substr(0, rest.find(' '));
    }
    return Found{
        fmt::format("{} is not what package-lock.json names: its checksum of {}", package, hashes),
        package};
  }
  return std::nullopt;
}

Found MeaningOfNpm(const Lines& lines) {
  const Lines errors = ErrorsOfNpm(lines);
  if (auto found = WrongIntegrity(lines, errors)) return *found;
  for (const auto* word : {"is not in this registry", "could not be found"}) {
    for (const auto& error : errors) {
      const size_t quote = error.find('\'');
      if (quote != std::string::npos && base::Contains(error, word))
        return Plain(error.substr(quote));
    }
  }
  const auto first = std::find_if_not(errors.begin(), errors.end(), IsForMachines);
  if (first == errors.end()) return Plain(lines.empty() ? "" : lines.back());
  std::string message = Sentence(*first);
  std::vector<std::string> details;
  for (auto error = first + 1; error != errors.end() && details.size() < kMostDetails; ++error) {
    const auto& last = *(error - 1);
    if (error->starts_with("Missing: ") || error->starts_with("Invalid: ") ||
        error->starts_with("Found: ") || error->starts_with("engine ") ||
        error->starts_with("notsup Required:") || error->starts_with("notsup Actual:") ||
        last == "Could not resolve dependency:" || last.starts_with("command git "))
      details.push_back(Sentence(*error));
  }
  // A sentence may be broken at the width of a terminal.
  for (auto error = first + 1; details.empty() && error != errors.end() && !error->empty() &&
                               !message.ends_with('.') && !first->starts_with("ERESOLVE");
       ++error) {
    if (std::islower(static_cast<unsigned char>((*error)[0])) == 0 || IsForMachines(*error)) break;
    message += " " + *error;
  }
  if (details.empty()) return Plain(message);
  if (message.ends_with('.')) message.pop_back();
  return Plain(fmt::format("{}: {}", message, base::Join(details, "; ")));
}

// ---- both

// The settings are the server's: nothing in the source can mend them.
std::string BrokenSettings(const Lines& lines) {
  constexpr std::string_view kWord = "Configuration file could not be loaded";
  const auto said = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return base::Contains(line, kWord);
  });
  if (said == lines.end()) return "";
  return base::Truncate(base::Join(Lines(said, lines.end()), " "), 500);
}

// pip says only in the warning of its last try that it gave up, and then that there is no such
// package.
std::string Unreachable(const Lines& lines) {
  for (const auto& line : lines) {
    std::string why;
    if (line.starts_with("npm err") || line.starts_with("npm ERR")) {
      why = After(line, "failed, reason: ");
    } else if (base::Contains(line, "Retry(total=0,")) {
      why = After(line, ">: ");  // behind the name of an object
      if (why.empty()) why = After(line, "connection broken by ");
    }
    if (!why.empty()) return base::Truncate(why, 200);
  }
  return "";
}

// The line of the manifest that names the package which the message speaks of.
int LineOf(const std::string& manifest, const std::string& message) {
  const std::string said = base::Lower(message);
  int number = 0, best = 0;
  size_t longest = 0;
  for (const auto& raw : base::Split(manifest, '\n')) {
    ++number;
    std::string_view line = base::Trim(raw);
    if (line.starts_with('"')) line.remove_prefix(1);
    size_t end = 0;
    while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) ||
                                 base::Contains("-_.@/", line.substr(end, 1))))
      ++end;
    const std::string name = base::Lower(line.substr(0, end));
    if (name.size() > 1 && name.size() > longest && base::Contains(said, name) &&
        name != "dependencies") {
      longest = name.size();
      best = number;
    }
  }
  return best;
}

// pip's own count: "(from line 2 of requirements.txt)", "-r requirements.txt (line 2)".
int LineThatPipNames(const std::string& text) {
  for (const std::string_view word : {"requirements.txt (line ", "(from line "}) {
    if (const auto rest = After(text, word); !rest.empty()) return std::atoi(rest.c_str());
  }
  return 0;
}

int Line(const Lines& lines, const std::string& manifest, const Found& found) {
  if (const int line = LineThatPipNames(found.about)) return line;
  if (const int line = LineOf(manifest, found.about)) return line;
  // The package that pip was at. It looks at all of them before it builds the first.
  std::vector<std::string> begun;
  for (const auto& line : lines) {
    if (line.starts_with("Collecting ") || line.starts_with("Processing ")) begun.push_back(line);
    if (base::Contains(line, "error: subprocess-exited-with-error") ||
        base::Contains(line, "ERROR: "))
      break;
  }
  if (begun.empty() || (begun.size() > 1 && found.about.starts_with("Building wheel"))) return 0;
  if (const int line = LineThatPipNames(begun.back())) return line;
  return LineOf(manifest, begun.back());
}

bool IsNoise(std::string_view line) {
  if (line == "npm error 404" || line == "npm error" || line == "npm ERR!") return true;
  for (const std::string_view word : {"Looking in links:", "Looking in indexes:", "[notice]",
                                      "WARNING: Running pip as the 'root' user",
                                      "note: This error originates from a subprocess"}) {
    if (line.starts_with(word)) return true;
  }
  return base::Contains(line, "A complete log of this run");
}

}  // namespace

ToolFailure Explain(Tool tool, const Lines& lines, const std::string& manifest) {
  for (auto& why : {BrokenSettings(lines), Unreachable(lines)}) {
    if (!why.empty()) return {why, 0, true};
  }
  const Found found = tool == Tool::kPip ? MeaningOfPip(lines) : MeaningOfNpm(lines);
  return {base::Truncate(found.message, 1000), Line(lines, manifest, found), false};
}

void Tail::Add(std::string_view line) {
  // npm explains a whole command where one sentence was meant.
  const std::string_view text = base::Trim(line);
  if (text == "npm error Usage:" || text == "npm ERR! Usage:") in_usage_ = true;
  const bool skip = in_usage_ || IsNoise(text);
  if (base::Contains(text, "Run \"npm help")) in_usage_ = false;
  if (skip) return;
  lines_.push_back(base::Truncate(line, kMaxTailLine));
  if (lines_.size() > kTail) lines_.pop_front();
}

}  // namespace sless::build
