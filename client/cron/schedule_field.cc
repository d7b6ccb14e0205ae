#include "client/cron/schedule_field.h"

#include <fmt/format.h>

#include <cctype>

#include "client/base/strings.h"

namespace sless::cron {
namespace {

using base::Code;
using base::Err;
using base::Result;

class FieldParser {
 public:
  FieldParser(std::string_view text, const FieldRule& rule) : text_(text), rule_(rule) {}

  Result<uint64_t> Parse() {
    uint64_t bits = 0;
    for (const auto& item : base::Split(text_, ',')) {
      ASSIGN_OR_RETURN(const uint64_t more, Item(item));
      bits |= more;
    }
    if (rule_.sunday_is_seven && (bits >> 7 & 1)) bits = (bits | 1) & 0x7f;
    return bits;
  }

 private:
  tl::unexpected<base::Error> Wrong(std::string_view item, std::string_view what) const {
    return Err(Code::kInvalidArgument, fmt::format("cron field \"{}\": \"{}\" {}", rule_.name,
                                                   base::Truncate(item, 40), what));
  }

  std::string Allowed() const {
    std::string allowed = fmt::format("{} to {}", rule_.min, rule_.max);
    if (!rule_.names.empty())
      allowed += fmt::format(" or {} to {}", rule_.names.front(), rule_.names.back());
    return allowed;
  }

  // "*", "5", "1-5", "*/2", "1-5/2"
  Result<uint64_t> Item(std::string_view item) const {
    if (item.empty())
      return Wrong(text_, "has an empty item; write a value, a range a-b, a step */n, or *");
    const size_t slash = item.find('/');
    const auto range = item.substr(0, slash);
    const size_t dash = range.find('-');
    int first = rule_.min, last = rule_.sunday_is_seven ? 6 : rule_.max;
    if (range != "*") {
      ASSIGN_OR_RETURN(first, Value(item, range.substr(0, dash)));
      last = first;
      if (dash != std::string_view::npos) {
        ASSIGN_OR_RETURN(last, Value(item, range.substr(dash + 1)));
        if (rule_.sunday_is_seven && last == 0 && first > 0) last = 7;  // SAT-SUN
      } else if (slash != std::string_view::npos) {
        return Wrong(item, fmt::format("has a step without a range; write {}-{}{}", range,
                                       rule_.max, item.substr(slash)));
      }
    }
    if (first > last) return Wrong(item, "runs backwards; write two items, like 22-23,0-5");
    int step = 1;
    if (slash != std::string_view::npos) {
      ASSIGN_OR_RETURN(step, Step(item, item.substr(slash + 1)));
    }
    uint64_t bits = 0;
    for (int value = first; value <= last; value += step) bits |= uint64_t{1} << value;
    return bits;
  }

  Result<int> Value(std::string_view item, std::string_view word) const {
    for (size_t i = 0; i < rule_.names.size(); ++i) {
      if (SameName(word, rule_.names[i])) return rule_.min + static_cast<int>(i);
    }
    const int value = Number(word);
    if (value < 0)
      return Wrong(
          item, fmt::format("is not understood; allowed are *, {}, ranges a-b, steps */n and lists",
                            Allowed()));
    if (value < rule_.min || value > rule_.max)
      return Wrong(item, fmt::format("is out of range; allowed are {}", Allowed()));
    return value;
  }

  Result<int> Step(std::string_view item, std::string_view word) const {
    const int step = Number(word);
    if (step < 1 || step > rule_.max)
      return Wrong(item, fmt::format("has a step out of range; allowed are 1 to {}", rule_.max));
    return step;
  }

  // -1 for anything but one to four digits.
  static int Number(std::string_view word) {
    if (word.empty() || word.size() > 4) return -1;
    int value = 0;
    for (const char c : word) {
      if (c < '0' || c > '9') return -1;
      value = value * 10 + (c - '0');
    }
    return value;
  }

  static bool SameName(std::string_view word, std::string_view name) {
    if (word.size() != name.size()) return false;
    for (size_t i = 0; i < word.size(); ++i) {
      if (std::toupper(static_cast<unsigned char>(word[i])) != name[i]) return false;
    }
    return true;
  }

  std::string_view text_;
  const FieldRule& rule_;
};

}  // namespace

Result<uint64_t> ParseField(std::string_view text, const FieldRule& rule) {
  return FieldParser(text, rule).Parse();
}

}  // namespace sless::cron
