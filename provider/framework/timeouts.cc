#include "provider/framework/timeouts.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "client/base/strings.h"
#include "provider/framework/validators.h"

namespace sless::framework {

using base::Code;
using base::Err;
using base::Result;
using std::chrono::nanoseconds;

namespace {

struct Unit {
  std::string_view name;
  int64_t nanos;
};
// Longer names first, so that "ms" is not read as "m".
constexpr std::array kUnits{Unit{"ns", 1},
                            Unit{"us", 1'000},
                            Unit{"µs", 1'000},
                            Unit{"μs", 1'000},
                            Unit{"ms", 1'000'000},
                            Unit{"s", 1'000'000'000},
                            Unit{"m", 60'000'000'000},
                            Unit{"h", 3'600'000'000'000}};

tl::unexpected<base::Error> Bad(std::string_view text) {
  return Err(Code::kInvalidArgument, fmt::format("\"{}\" is not a duration: write a number with a "
                                                 "unit (ns, us, ms, s, m, h), as in \"1h30m\"",
                                                 base::Truncate(text, 60)));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Result<nanoseconds> ParseDuration(std::string_view text) {
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  if (rest == "0") return nanoseconds(0);
  if (rest.empty() || text.size() > 100) return Bad(text);
  long double total = 0;
  while (!rest.empty()) {
    size_t length = 0;
    bool digits = false;
    bool dot = false;
    while (length < rest.size() && (IsDigit(rest[length]) || (rest[length] == '.' && !dot))) {
      digits = digits || IsDigit(rest[length]);
      dot = dot || rest[length] == '.';
      ++length;
    }
    if (!digits) return Bad(text);
    const long double number = std::strtold(std::string(rest.substr(0, length)).c_str(), nullptr);
    rest.remove_prefix(length);
    const Unit* unit = nullptr;
    for (const auto& one : kUnits) {
      if (rest.substr(0, one.name.size()) == one.name) {
        unit = &one;
        break;
      }
    }
    if (unit == nullptr) return Bad(text);
    rest.remove_prefix(unit->name.size());
    total += number * static_cast<long double>(unit->nanos);
  }
  if (total > 9.2e18L)
    return Err(Code::kInvalidArgument, fmt::format("duration \"{}\" is above 292 years", text));
  return nanoseconds(static_cast<int64_t>(std::llroundl(negative ? -total : total)));
}

Validator Duration() {
  return StringRule("value must be a duration above zero, such as \"90s\" or \"1h30m\"",
                    [](const std::string& text) {
                      const auto duration = ParseDuration(text);
                      if (!duration) return duration.error().message;
                      return duration->count() > 0 ? std::string()
                                                   : std::string("must be a duration above zero");
                    });
}

Block TimeoutsBlock(std::vector<Timeout> timeouts) {
  Block block;
  block.name = "timeouts";
  block.nesting = Nesting::kSingle;
  block.description = "How long an operation may take, as a duration such as `90s` or `1h30m`.";
  for (auto& [operation, default_text] : timeouts) {
    AttributeOptions options;
    options.optional = true;
    options.description = fmt::format("How long {} may take.", operation);
    if (!default_text.empty()) options.description += fmt::format(" Default: {}.", default_text);
    options.validators = {Duration()};
    block.attributes.push_back({std::move(operation), String(), std::move(options)});
  }
  return block;
}

nanoseconds TimeoutOf(const cty::Value& value, std::string_view operation, nanoseconds fallback) {
  const cty::Value& text = value.Get("timeouts").Get(operation);
  if (text.kind() != cty::Value::Kind::kString) return fallback;
  const auto duration = ParseDuration(text.AsString());
  return duration && duration->count() > 0 ? *duration : fallback;
}

}  // namespace sless::framework
