#include "provider/cty/path.h"

#include <algorithm>

namespace sless::cty {
namespace {

// A key as a quoted literal.
void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += c;
    }
  }
  out += '"';
}

}  // namespace

bool Path::StartsWith(const Path& prefix) const {
  return prefix.steps_.size() <= steps_.size() &&
         std::equal(prefix.steps_.begin(), prefix.steps_.end(), steps_.begin());
}

std::string Path::ToString() const {
  std::string out;
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Step::Kind::kAttribute:
        if (!out.empty()) out += '.';
        out += step.name;
        break;
      case Step::Kind::kKey:
        out += '[';
        AppendQuoted(out, step.name);
        out += ']';
        break;
      case Step::Kind::kIndex:
        out += '[';
        out += std::to_string(step.index);
        out += ']';
        break;
    }
  }
  return out;
}

}  // namespace sless::cty
