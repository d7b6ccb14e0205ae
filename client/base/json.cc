#include "client/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace sless::base {
namespace {

using nlohmann::json;

constexpr int kOutOfRange = 406;  // the library's number for a number beyond a double's range

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
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception& e) override {
    position = at;
    out_of_range = e.id == kOutOfRange;
    return false;
  }

  json value;
  bool too_deep = false;
  size_t position = 0;
  bool out_of_range = false;

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

// Reads nothing but the form.
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
    out_of_range = e.id == kOutOfRange;
    return false;
  }

  bool too_deep = false;
  size_t position = 0;
  bool out_of_range = false;

 private:
  bool Open() {
    too_deep = ++depth_ > kMaxJsonDepth;
    return !too_deep;
  }
  bool Close() {
    --depth_;
    return true;
  }
  int depth_ = 0;
};

template <class Sax>
Status Parse(std::string_view text, Sax& sax) {
  if (json::sax_parse(text.begin(), text.end(), &sax)) return Ok();
  if (sax.too_deep) {
    return Err(Code::kInvalidArgument,
               fmt::format("JSON is nested deeper than {} levels", kMaxJsonDepth));
  }
  if (sax.out_of_range) return Err(Code::kInvalidArgument, "JSON has a number out of range");
  const size_t at = sax.position == 0 ? 0 : std::min(sax.position - 1, text.size());
  const std::string_view before = text.substr(0, at);
  const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t newline = before.rfind('\n');
  const size_t column = at - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
  return Err(Code::kInvalidArgument,
             fmt::format("not valid JSON at line {}, column {}{}", line, column,
                         text.empty() ? ": the text is empty" : ""));
}

Result<json> Read(std::string_view text, bool keep_number_text) {
  Reader reader(keep_number_text);
  RETURN_IF_ERROR(Parse(text, reader));
  return std::move(reader.value);
}

}  // namespace

Result<json> ParseJson(std::string_view text) { return Read(text, false); }

Status CheckJson(std::string_view text) {
  Checker checker;
  return Parse(text, checker);
}

std::string DumpJson(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool JsonEqual(std::string_view a, std::string_view b) {
  const auto left = Read(a, true), right = Read(b, true);
  return left && right && *left == *right;
}

}  // namespace sless::base
