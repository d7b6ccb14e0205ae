#include "client/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace sless::base {
namespace {

using nlohmann::json;

// Builds the value, or notes the first problem: nlohmann's own DOM parser has no depth limit and
// throws.
class Reader : public nlohmann::json_sax<json> {
 public:
  explicit Reader(bool keep_number_text) : keep_number_text_(keep_number_text) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool v) override { return Add(v); }
  bool number_integer(number_integer_t v) override { return Add(v); }
  bool number_unsigned(number_unsigned_t v) override { return Add(v); }
  bool number_float(number_float_t v, const string_t& text) override {
    // A number that no 64-bit integer and no double holds exactly is compared by its digits.
    if (keep_number_text_ && text.find_first_of(".eE") == std::string::npos) {
      return Add(json{{"\x01number", text}});
    }
    return Add(v);
  }
  bool string(string_t& v) override { return Add(std::move(v)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(json::object()); }
  bool key(string_t& v) override {
    keys_.back() = std::move(v);
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::detail::exception& e) override {
    position_ = position;
    token_ = token;
    out_of_range_ = e.id == 406;
    return false;
  }

  json value;
  bool too_deep = false;
  size_t position_ = 0;
  std::string token_;
  bool out_of_range_ = false;

 private:
  json* Place(json v) {
    if (stack_.empty()) {
      value = std::move(v);
      return &value;
    }
    json& top = *stack_.back();
    if (top.is_array()) {
      top.push_back(std::move(v));
      return &top.back();
    }
    return &(top[keys_.back()] = std::move(v));
  }
  bool Add(json v) {
    Place(std::move(v));
    return true;
  }
  bool Open(json v) {
    if (stack_.size() >= static_cast<size_t>(kMaxJsonDepth)) {
      too_deep = true;
      return false;
    }
    stack_.push_back(Place(std::move(v)));
    keys_.emplace_back();
    return true;
  }
  bool Close() {
    stack_.pop_back();
    keys_.pop_back();
    return true;
  }

  bool keep_number_text_;
  std::vector<json*> stack_;
  std::vector<std::string> keys_;
};

Result<json> Read(std::string_view text, bool keep_number_text) {
  Reader reader(keep_number_text);
  if (json::sax_parse(text.begin(), text.end(), &reader)) return std::move(reader.value);
  if (reader.too_deep) {
    return Err(Code::kInvalidArgument,
               fmt::format("JSON is nested deeper than {} levels", kMaxJsonDepth));
  }
  if (reader.out_of_range_) return Err(Code::kInvalidArgument, "JSON has a number out of range");
  const size_t at = reader.position_ == 0 ? 0 : std::min(reader.position_ - 1, text.size());
  const std::string_view before = text.substr(0, at);
  const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t newline = before.rfind('\n');
  const size_t column = at - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
  return Err(Code::kInvalidArgument,
             fmt::format("not valid JSON at line {}, column {}{}", line, column,
                         text.empty() ? ": the text is empty" : ""));
}

}  // namespace

Result<json> ParseJson(std::string_view text) { return Read(text, false); }

std::string DumpJson(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool JsonEqual(std::string_view a, std::string_view b) {
  const auto left = Read(a, true), right = Read(b, true);
  return left && right && *left == *right;
}

}  // namespace sless::base
