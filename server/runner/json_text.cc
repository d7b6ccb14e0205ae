#include "server/runner/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/base/json.h"

namespace sless::runner {
namespace {

using nlohmann::json;

class Checker : public nlohmann::json_sax<json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(); }
  bool key(string_t&) override { return true; }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception& e) override {
    position = at;
    out_of_range = e.id == 406;
    return false;
  }

  size_t position = 0;
  bool out_of_range = false;
  bool too_deep = false;

 private:
  bool Open() {
    too_deep = ++depth_ > base::kMaxJsonDepth;
    return !too_deep;
  }
  bool Close() {
    --depth_;
    return true;
  }
  int depth_ = 0;
};

}  // namespace

base::Status CheckJson(std::string_view text) {
  Checker checker;
  if (json::sax_parse(text.begin(), text.end(), &checker)) return base::Ok();
  using base::Code;
  if (checker.too_deep) {
    return base::Err(Code::kInvalidArgument,
                     fmt::format("JSON is nested deeper than {} levels", base::kMaxJsonDepth));
  }
  if (checker.out_of_range)
    return base::Err(Code::kInvalidArgument, "JSON has a number out of range");
  if (text.empty()) return base::Err(Code::kInvalidArgument, "want JSON, found an empty text");
  const size_t at = std::min(checker.position == 0 ? 0 : checker.position - 1, text.size());
  const std::string_view before = text.substr(0, at);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t column = at - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
  return base::Err(Code::kInvalidArgument,
                   fmt::format("not valid JSON at line {}, column {}", line, column));
}

}  // namespace sless::runner
