#include "server/config/config.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <sstream>
#include <tuple>

#include "client/base/strings.h"

namespace sless::config {
namespace {

using base::Code;
using base::Err;

std::string Allowed(const About& about, bool number) {
  if (!about.values.empty()) return base::Join(base::Split(about.values, '|'), ", ");
  if (number) return fmt::format("{} to {}", about.min, about.max);
  return "";
}

class Describe {
 public:
  void operator()(std::string_view name, const std::string& value, const About& about) {
    Add(name, value, "text", about, false);
  }
  void operator()(std::string_view name, const int64_t& value, const About& about) {
    Add(name, std::to_string(value), "number", about, true);
  }
  void operator()(std::string_view name, const bool& value, const About& about) {
    Add(name, value ? "true" : "false", "switch", about, false);
  }
  void operator()(std::string_view name, const base::AddressSet& value, const About& about) {
    settings.push_back({std::string(name), std::string(about.text), value.ToString(), "list",
                        "addresses and CIDR blocks, with commas between"});
  }
  std::vector<Setting> settings;

 private:
  void Add(std::string_view name, std::string fallback, std::string type, const About& about,
           bool number) {
    settings.push_back({std::string(name), std::string(about.text), std::move(fallback),
                        std::move(type), Allowed(about, number)});
  }
};

/// Sets the one setting that has this name.
class Assign {
 public:
  Assign(std::string_view name, std::string_view text, const std::string& origin)
      : name_(name), text_(text), origin_(origin) {}

  void operator()(std::string_view name, std::string& value, const About& about) {
    if (!Mine(name)) return;
    // A line end that came along (a file with CRLF, a shell's variable) would become part of a
    // path.
    if (std::any_of(text_.begin(), text_.end(),
                    [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
      return Wrong("want text without line ends and other control characters");
    const auto words = base::Split(about.values, '|');
    if (!about.values.empty() && std::find(words.begin(), words.end(), text_) == words.end()) {
      const auto near = base::Nearest(text_, words);
      return Wrong(fmt::format("want one of {}, got \"{}\"{}", base::Join(words, ", "), text_,
                               near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    }
    if (about.check) {
      if (const auto fine = about.check(text_); !fine) return Wrong(fine.error().message);
    }
    value = std::string(text_);
  }
  void operator()(std::string_view name, int64_t& value, const About& about) {
    if (!Mine(name)) return;
    int64_t number = 0;
    const auto* end = text_.data() + text_.size();
    const auto [stop, error] = std::from_chars(text_.data(), end, number);
    if (error != std::errc() || stop != end || number < about.min || number > about.max) {
      return Wrong(fmt::format("want a whole number from {} to {}, got \"{}\"", about.min,
                               about.max, text_));
    }
    value = number;
  }
  void operator()(std::string_view name, bool& value, const About&) {
    if (!Mine(name)) return;
    if (text_ != "true" && text_ != "false")
      return Wrong(fmt::format("want true or false, got \"{}\"", text_));
    value = text_ == "true";
  }
  void operator()(std::string_view name, base::AddressSet& value, const About&) {
    if (!Mine(name)) return;
    auto set = base::AddressSet::Parse(text_);
    if (!set) {
      return Wrong("want addresses and CIDR blocks, with commas between: " + set.error().message);
    }
    value = std::move(*set);
  }

  bool found = false;
  base::Status status = base::Ok();

 private:
  bool Mine(std::string_view name) {
    found = found || name == name_;
    return name == name_;
  }
  void Wrong(const std::string& what) {
    status = Err(Code::kInvalidArgument, fmt::format("{}: {}: {}", origin_, name_, what));
  }

  std::string_view name_, text_;
  const std::string& origin_;
};

tl::unexpected<base::Error> Unknown(std::string_view name, const std::string& origin) {
  std::vector<std::string> known;
  for (const auto& setting : Settings()) known.push_back(setting.name);
  const auto near = base::Nearest(name, known);
  return Err(Code::kInvalidArgument,
             fmt::format("{}: unknown setting \"{}\"{}", origin, name,
                         near.empty() ? "; known: " + base::Join(known, ", ")
                                      : "; did you mean \"" + near + "\"?"));
}

base::Status Set(Options& options, std::string_view name, std::string_view text,
                 const std::string& origin) {
  Assign assign(name, text, origin);
  Options::Fields(options, assign);
  if (assign.found) return assign.status;
  return Unknown(name, origin);
}

bool IsSetting(std::string_view name) {
  const auto settings = Settings();
  return std::any_of(settings.begin(), settings.end(),
                     [&](const Setting& setting) { return setting.name == name; });
}

bool IsGroup(const std::string& name) {
  const auto settings = Settings();
  return std::any_of(settings.begin(), settings.end(),
                     [&](const Setting& setting) { return setting.name.starts_with(name + "."); });
}

bool IsList(std::string_view name) {
  const auto settings = Settings();
  return std::any_of(settings.begin(), settings.end(), [&](const Setting& setting) {
    return setting.name == name && setting.type == "list";
  });
}

base::Result<std::string> JoinList(const YAML::Node& list, const std::string& where) {
  std::vector<std::string> values;
  for (const auto& item : list) {
    if (!item.IsScalar())
      return Err(Code::kInvalidArgument, where + ": want a list of single values");
    values.push_back(item.Scalar());
  }
  return base::Join(values, ", ");
}

/// `lines`: where each name was found.
base::Status ReadNode(const YAML::Node& node, const std::string& prefix, const std::string& path,
                      std::map<std::string, int>& lines, Options& options) {
  for (const auto& item : node) {
    const int line = item.first.Mark().line + 1;
    const std::string origin = fmt::format("{}:{}", path, line);
    if (!item.first.IsScalar())
      return Err(Code::kInvalidArgument, fmt::format("{}: want the name of a setting", origin));
    const std::string name = prefix + item.first.Scalar();
    const auto& value = item.second;
    const bool group = prefix.empty() && IsGroup(name);
    if (!group && !IsSetting(name)) return Unknown(name, origin);
    if (const auto [at, first] = lines.emplace(name, line); !first) {
      return Err(Code::kInvalidArgument,
                 fmt::format("{}: {} is given twice, first in line {}", origin, name, at->second));
    }
    if (value.IsNull()) continue;
    if (group) {
      if (!value.IsMap()) {
        return Err(Code::kInvalidArgument,
                   fmt::format("{}: {}: want settings below it, got {}", origin, name,
                               value.IsScalar() ? "one value" : "a list"));
      }
      RETURN_IF_ERROR(ReadNode(value, name + ".", path, lines, options));
    } else if (value.IsScalar()) {
      RETURN_IF_ERROR(Set(options, name, value.Scalar(), origin));
    } else if (value.IsSequence() && IsList(name)) {
      ASSIGN_OR_RETURN(const auto text, JoinList(value, origin + ": " + name));
      RETURN_IF_ERROR(Set(options, name, text, origin));
    } else {
      return Err(Code::kInvalidArgument, fmt::format("{}: {}: want one value, got {}", origin, name,
                                                     value.IsMap() ? "a mapping" : "a list"));
    }
  }
  return base::Ok();
}

class DocumentWatcher : public YAML::EventHandler {
 public:
  int line = 0;
  bool empty = true;

  void OnDocumentStart(const YAML::Mark& mark) override {
    line = mark.line + 1;
    empty = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override { empty = false; }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {
    empty = false;
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    empty = false;
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    empty = false;
  }
  void OnMapEnd() override {}
};

/// The line where a document after the first begins that is not empty, 0: there is none. Not by
/// YAML::LoadAll: there are texts of which it takes nothing, again and again.
int SecondDocument(const std::string& text) {
  constexpr int kMost = 100;
  std::istringstream in(text);
  YAML::Parser parser(in);
  DocumentWatcher watcher;
  for (int i = 0; parser.HandleNextDocument(watcher); ++i) {
    if ((i > 0 && !watcher.empty) || i == kMost) return watcher.line;
  }
  return 0;
}

base::Status ReadFile(const Sources& sources, Options& options) {
  const auto& [path, text] = std::tie(sources.file_path, sources.file_text);
  if (!base::IsUtf8(text) || base::Contains(text, '\0'))
    return Err(Code::kInvalidArgument, fmt::format("{}:1: no YAML: it is no UTF-8 text", path));
  try {
    if (const int line = SecondDocument(text)) {
      return Err(Code::kInvalidArgument,
                 fmt::format("{}:{}: want one YAML document, got a second one", path, line));
    }
    const auto root = YAML::Load(text);
    if (root.IsNull()) return base::Ok();
    if (!root.IsMap()) {
      return Err(Code::kInvalidArgument,
                 fmt::format("{}:1: want settings as \"name: value\"", path));
    }
    std::map<std::string, int> lines;
    return ReadNode(root, "", path, lines, options);
  } catch (const YAML::Exception& error) {
    return Err(Code::kInvalidArgument,
               fmt::format("{}:{}: no YAML: {}", path, error.mark.line + 1, error.msg));
  }
}

}  // namespace

base::Status CheckListen(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return Err(Code::kInvalidArgument,
               fmt::format("want HOST:PORT or unix:/path, got \"{}\"{}", text, why));
  };
  if (text.starts_with("unix:"))
    return text == "unix:" ? bad(": it has no path") : base::Status(base::Ok());
  if (text.starts_with("fd:")) return bad(": a descriptor of another process cannot be taken over");
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return bad("");
  const auto port = text.substr(colon + 1);
  int number = -1;
  const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || stop != port.data() + port.size() || number < 0 || number > 65535)
    return bad(": the port must be a number from 0 to 65535");
  return base::Ok();
}

base::Status CheckUrl(std::string_view text) {
  if (text.empty()) return base::Ok();
  constexpr std::string_view kWant = "want an http or https URL such as https://fn.example.com, ";
  const auto bad = [&](std::string_view what) {
    return Err(Code::kInvalidArgument, fmt::format("{}{}", kWant, what));
  };
  // First: such a text is never shown.
  if (base::Contains(text, '@'))
    return bad("got one with user information, which would be handed out with every URL");
  const auto got = [&](std::string_view why) {
    return bad(fmt::format("got \"{}\"{}", text, why));
  };
  const size_t scheme = text.starts_with("http://") ? 7 : text.starts_with("https://") ? 8 : 0;
  if (scheme == 0) return got("");
  if (text.find_first_of("?#") != std::string_view::npos)
    return got(": it must have no query and no fragment");
  const auto plain = [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  if (!std::all_of(text.begin(), text.end(), plain))
    return got(": write what is no plain ASCII character as %XX (in a host name: in Punycode)");
  const auto authority = text.substr(scheme, text.find('/', scheme) - scheme);
  const auto colon = authority.ends_with(']') ? std::string_view::npos : authority.rfind(':');
  if (authority.substr(0, colon).empty()) return got(": it has no host");
  if (colon != std::string_view::npos && !CheckListen(authority))
    return got(": the port must be a number from 0 to 65535");
  return base::Ok();
}

std::vector<Setting> Settings() {
  const Options defaults;
  Describe describe;
  Options::Fields(defaults, describe);
  return std::move(describe.settings);
}

std::string EnvironmentName(std::string_view setting) {
  std::string name = "SLESS_";
  for (const char c : setting)
    name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::string FlagName(std::string_view setting) {
  std::string name = "--";
  for (const char c : setting) name += c == '.' || c == '_' ? '-' : c;
  return name;
}

base::Result<Options> Load(const Sources& sources) {
  Options options;
  if (!sources.file_path.empty()) RETURN_IF_ERROR(ReadFile(sources, options));
  for (const auto& setting : Settings()) {
    const auto variable = EnvironmentName(setting.name);
    const auto it = sources.environment.find(variable);
    if (it != sources.environment.end() && !it->second.empty()) {
      RETURN_IF_ERROR(Set(options, setting.name, it->second, "environment variable " + variable));
    }
  }
  for (const auto& [name, text] : sources.flags)
    RETURN_IF_ERROR(Set(options, name, text, "flag " + FlagName(name)));
  return options;
}

std::string ToYaml(const Options& options) {
  Describe describe;
  Options::Fields(options, describe);
  YAML::Emitter out;
  out << YAML::BeginMap;
  std::string group;
  for (const auto& setting : describe.settings) {
    const auto dot = setting.name.find('.');
    const auto here = dot == std::string::npos ? "" : setting.name.substr(0, dot);
    if (here != group) {
      if (!group.empty()) out << YAML::EndMap;
      if (!here.empty()) out << YAML::Key << here << YAML::Value << YAML::BeginMap;
      group = here;
    }
    out << YAML::Key << (dot == std::string::npos ? setting.name : setting.name.substr(dot + 1))
        << YAML::Value << setting.fallback;
  }
  if (!group.empty()) out << YAML::EndMap;
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace sless::config
