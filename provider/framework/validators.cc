#include "provider/framework/validators.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>

#include "client/base/json.h"
#include "client/base/strings.h"

namespace sless::framework {
namespace {

using Kind = cty::Value::Kind;

constexpr const char* kInvalidValue = "Invalid Attribute Value";

std::string Name(const ValidateContext& context) { return context.path.ToString(); }

// ", got: VALUE" unless the value is to be hidden or is long.
std::string Got(const ValidateContext& context, const std::string& value) {
  return context.sensitive ? std::string() : fmt::format(", got: {}", base::Truncate(value, 200));
}

std::string Quoted(const std::string& text) { return '"' + text + '"'; }

size_t Characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

void Reject(const ValidateContext& context, Diagnostics& out, std::string_view rule,
            const std::string& got) {
  out.AddError(context.path, kInvalidValue,
               fmt::format("Attribute {} {}{}.", Name(context), rule, Got(context, got)));
}

Validator Measured(std::string rule, Kind kind, std::function<bool(const cty::Value&)> fits,
                   std::function<std::string(const cty::Value&)> show) {
  const std::string description = "value " + rule;
  return {description, [rule = std::move(rule), kind, fits = std::move(fits),
                        show = std::move(show)](const ValidateContext& context, Diagnostics& out) {
            if (context.value.kind() == kind && !fits(context.value))
              Reject(context, out, rule, show(context.value));
          }};
}

std::string LengthText(const cty::Value& value) {
  return std::to_string(Characters(value.AsString()));
}
std::string NumberText(const cty::Value& value) { return value.AsNumber().ToString(); }

// True if the number lies in [least, most]; numbers that are not int64 are compared as doubles,
// which is exact enough since every int64 bound is one that they cannot equal.
bool InRange(const cty::Value& value, int64_t least, int64_t most) {
  const auto number = value.AsNumber();
  if (const auto whole = number.AsInt64()) return *whole >= least && *whole <= most;
  const double real = number.AsDouble();
  return real > static_cast<double>(least) && real < static_cast<double>(most);
}

Validator Sized(std::string rule, size_t least, size_t most) {
  const std::string description = "value " + rule;
  return {description,
          [rule = std::move(rule), least, most](const ValidateContext& context, Diagnostics& out) {
            const size_t size = context.value.size();
            if (size < least || size > most)
              Reject(context, out, rule, fmt::format("{} elements", size));
          }};
}

}  // namespace

Validator LengthBetween(size_t least, size_t most) {
  return Measured(
      fmt::format("must have {} to {} characters", least, most), Kind::kString,
      [=](const cty::Value& v) {
        const size_t length = Characters(v.AsString());
        return length >= least && length <= most;
      },
      LengthText);
}
Validator LengthAtLeast(size_t least) {
  return Measured(
      fmt::format("must have at least {} characters", least), Kind::kString,
      [=](const cty::Value& v) { return Characters(v.AsString()) >= least; }, LengthText);
}
Validator LengthAtMost(size_t most) {
  return Measured(
      fmt::format("must have at most {} characters", most), Kind::kString,
      [=](const cty::Value& v) { return Characters(v.AsString()) <= most; }, LengthText);
}

Validator OneOf(std::vector<std::string> values) {
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "" : ", ") + Quoted(value);
  return {"value must be one of: " + list,
          [values = std::move(values), list](const ValidateContext& context, Diagnostics& out) {
            if (context.value.kind() != Kind::kString) return;
            const std::string& found = context.value.AsString();
            if (std::find(values.begin(), values.end(), found) != values.end()) return;
            std::string detail = fmt::format("Attribute {} must be one of: {}{}.", Name(context),
                                             list, Got(context, Quoted(found)));
            const std::string near = context.sensitive ? "" : base::Nearest(found, values);
            if (!near.empty()) detail += fmt::format(" Did you mean {}?", Quoted(near));
            out.AddError(context.path, kInvalidValue, std::move(detail));
          }};
}

Validator Matches(std::string pattern, std::string rule) {
  // std::regex matches by recursion: long texts are refused before they can exhaust the stack.
  static constexpr size_t kMaxLength = 4096;
  const auto regex =
      std::make_shared<const std::regex>(pattern, std::regex::ECMAScript | std::regex::optimize);
  return StringRule("value must " + rule, [regex, rule = std::move(rule)](const std::string& text) {
    if (text.size() > kMaxLength)
      return fmt::format("must {} and have at most {} bytes", rule, kMaxLength);
    return std::regex_match(text, *regex) ? std::string() : "must " + rule;
  });
}

Validator JsonText() {
  return {"value must be JSON text", [](const ValidateContext& context, Diagnostics& out) {
            if (context.value.kind() != Kind::kString) return;
            const auto parsed = base::ParseJson(context.value.AsString());
            if (parsed) return;
            out.AddError(context.path, kInvalidValue,
                         fmt::format("Attribute {} must be JSON text: {}.", Name(context),
                                     context.sensitive ? "it is not" : parsed.error().message));
          }};
}

Validator StringRule(std::string description,
                     std::function<std::string(const std::string&)> problem) {
  return {std::move(description),
          [problem = std::move(problem)](const ValidateContext& context, Diagnostics& out) {
            if (context.value.kind() != Kind::kString) return;
            const std::string rule = problem(context.value.AsString());
            if (!rule.empty()) Reject(context, out, rule, Quoted(context.value.AsString()));
          }};
}

Validator Between(int64_t least, int64_t most) {
  return Measured(
      fmt::format("must be between {} and {}", least, most), Kind::kNumber,
      [=](const cty::Value& v) { return InRange(v, least, most); }, NumberText);
}
Validator AtLeast(int64_t least) {
  return Measured(
      fmt::format("must be at least {}", least), Kind::kNumber,
      [=](const cty::Value& v) {
        const auto whole = v.AsNumber().AsInt64();
        return whole ? *whole >= least : v.AsNumber().AsDouble() > static_cast<double>(least);
      },
      NumberText);
}
Validator AtMost(int64_t most) {
  return Measured(
      fmt::format("must be at most {}", most), Kind::kNumber,
      [=](const cty::Value& v) {
        const auto whole = v.AsNumber().AsInt64();
        return whole ? *whole <= most : v.AsNumber().AsDouble() < static_cast<double>(most);
      },
      NumberText);
}

Validator SizeBetween(size_t least, size_t most) {
  return Sized(fmt::format("must have {} to {} elements", least, most), least, most);
}
Validator SizeAtLeast(size_t least) {
  return Sized(fmt::format("must have at least {} elements", least), least, SIZE_MAX);
}
Validator SizeAtMost(size_t most) {
  return Sized(fmt::format("must have at most {} elements", most), 0, most);
}

Validator UniqueValues() {
  return {"values must be unique", [](const ValidateContext& context, Diagnostics& out) {
            const auto& items = context.value.AsList();
            // A set of pointers into the list; unknown parts may still become different.
            std::vector<const cty::Value*> known;
            for (const auto& item : items) {
              if (item.IsWhollyKnown()) known.push_back(&item);
            }
            std::sort(known.begin(), known.end(),
                      [](auto* a, auto* b) { return a->Compare(*b) < 0; });
            const auto twice = std::adjacent_find(known.begin(), known.end(),
                                                  [](auto* a, auto* b) { return *a == *b; });
            if (twice != known.end())
              Reject(context, out, "must not have an element twice", (*twice)->ToString());
          }};
}

Validator NoNullElements() {
  return {"elements must not be null", [](const ValidateContext& context, Diagnostics& out) {
            const auto reject = [&](const cty::Path& path) {
              out.AddError(path, kInvalidValue,
                           fmt::format("Attribute {} must not be null.", path.ToString()));
            };
            const bool is_set = context.value.kind() == Kind::kSet;
            for (size_t i = 0; i < context.value.AsList().size(); ++i) {
              if (!context.value.AsList()[i].IsNull()) continue;
              reject(is_set ? context.path : context.path.Index(static_cast<int64_t>(i)));
            }
            for (const auto& [key, item] : context.value.AsMap()) {
              if (item.IsNull()) reject(context.path.Key(key));
            }
          }};
}

Validator EachElement(Validator element) {
  const std::string description = "each element: " + element.description;
  return {description,
          [element = std::move(element)](const ValidateContext& context, Diagnostics& out) {
            const auto check = [&](const cty::Path& path, const cty::Value& item) {
              if (item.IsKnown())
                element.check({path, item, context.config, context.sensitive}, out);
            };
            const bool is_set = context.value.kind() == Kind::kSet;
            for (size_t i = 0; i < context.value.AsList().size(); ++i) {
              check(is_set ? context.path : context.path.Index(static_cast<int64_t>(i)),
                    context.value.AsList()[i]);
            }
            for (const auto& [key, item] : context.value.AsMap())
              check(context.path.Key(key), item);
          }};
}

Validator EachKey(Validator key_rule) {
  const std::string description = "each key: " + key_rule.description;
  return {description,
          [key_rule = std::move(key_rule)](const ValidateContext& context, Diagnostics& out) {
            for (const auto& [key, item] : context.value.AsMap()) {
              // Keys are never hidden.
              key_rule.check(
                  {context.path.Key(key), cty::Value::String(key), context.config, false}, out);
            }
          }};
}

namespace {

enum class Presence { kAbsent, kSet, kUnknown };

Presence PresenceOf(const cty::Value& value) {
  if (value.IsNull()) return Presence::kAbsent;
  return value.IsUnknown() ? Presence::kUnknown : Presence::kSet;
}

// What the configuration has at a path; unknown where a parent is.
Presence PresenceAt(const cty::Value& config, const cty::Path& path) {
  cty::Path at;
  for (const auto& step : path.steps()) {
    at.Push(step);
    const auto part = config.At(at);
    if (!part || part->IsNull()) return Presence::kAbsent;
    if (part->IsUnknown()) return Presence::kUnknown;
  }
  return Presence::kSet;
}

std::string Names(const std::vector<cty::Path>& paths) {
  std::string out;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (i != 0) out += i + 1 == paths.size() ? " and " : ", ";
    out += paths[i].ToString();
  }
  return out;
}

struct Counts {
  size_t set = 0;
  size_t unknown = 0;
};

Counts CountSet(const ValidateContext& context, const std::vector<cty::Path>& others) {
  Counts counts;
  const auto add = [&](Presence presence) {
    counts.set += presence == Presence::kSet ? 1 : 0;
    counts.unknown += presence == Presence::kUnknown ? 1 : 0;
  };
  add(PresenceOf(context.value));
  for (const auto& path : others) add(PresenceAt(context.config, path));
  return counts;
}

std::vector<cty::Path> AllOf(const ValidateContext& context, const std::vector<cty::Path>& others) {
  std::vector<cty::Path> all{context.path};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

constexpr const char* kCombination = "Invalid Attribute Combination";

}  // namespace

Validator ConflictsWith(std::vector<cty::Path> others) {
  const std::string description = "conflicts with " + Names(others);
  return {description,
          [others = std::move(others)](const ValidateContext& context, Diagnostics& out) {
            for (const auto& path : others) {
              if (PresenceAt(context.config, path) != Presence::kSet) continue;
              out.AddError(
                  context.path, kCombination,
                  fmt::format("Attribute {} cannot be set together with {}: remove one of them.",
                              Name(context), path.ToString()));
            }
          }};
}

Validator ExactlyOneOf(std::vector<cty::Path> others) {
  const std::string description = "exactly one of this and " + Names(others) + " must be set";
  return {description,
          [others = std::move(others)](const ValidateContext& context, Diagnostics& out) {
            const auto counts = CountSet(context, others);
            if (counts.set > 1) {
              out.AddError(context.path, kCombination,
                           fmt::format("Exactly one of {} must be set, {} are.",
                                       Names(AllOf(context, others)), counts.set));
            } else if (counts.set == 0 && counts.unknown == 0) {
              out.AddError(context.path, kCombination,
                           fmt::format("Exactly one of {} must be set, none is.",
                                       Names(AllOf(context, others))));
            }
          },
          true};
}

Validator AtLeastOneOf(std::vector<cty::Path> others) {
  const std::string description = "at least one of this and " + Names(others) + " must be set";
  return {description,
          [others = std::move(others)](const ValidateContext& context, Diagnostics& out) {
            const auto counts = CountSet(context, others);
            if (counts.set + counts.unknown > 0) return;
            out.AddError(
                context.path, kCombination,
                fmt::format("At least one of {} must be set.", Names(AllOf(context, others))));
          },
          true};
}

Validator RequiredTogether(std::vector<cty::Path> others) {
  const std::string description = "needs " + Names(others) + " as well";
  return {description,
          [others = std::move(others)](const ValidateContext& context, Diagnostics& out) {
            for (const auto& path : others) {
              if (PresenceAt(context.config, path) != Presence::kAbsent) continue;
              out.AddError(context.path, kCombination,
                           fmt::format("Attribute {} needs {} as well: set both or none.",
                                       Name(context), path.ToString()));
            }
          }};
}

}  // namespace sless::framework
