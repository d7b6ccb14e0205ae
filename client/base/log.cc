#include "client/base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "client/base/clock.h"
#include "client/base/fd.h"
#include "client/base/json.h"
#include "client/base/strings.h"

namespace sless::base {
namespace {

constexpr std::array<std::string_view, 5> kNames{"trace", "debug", "info", "warn", "error"};
// Terraform reads lines of at most 64 KiB; a longer one would lose its level.
constexpr size_t kMaxValue = 8192;

}  // namespace

void JsonLogger::Log(Level level, std::string_view message,
                     std::initializer_list<LogField> fields) {
  if (level < least_) return;
  const auto now = std::chrono::system_clock::now();
  std::string time = FormatTime(now);
  nlohmann::ordered_json line;
  const std::string_view name = kNames[static_cast<size_t>(level)];
  if (keys_ == Keys::kHclog) {
    // hclog takes exactly six fraction digits.
    time.insert(time.size() - 1, "000");
    line["@level"] = name;
    line["@message"] = Truncate(message, kMaxValue);
    line["@timestamp"] = time;
    if (!module_.empty()) line["@module"] = module_;
  } else {
    line["time"] = time;
    line["level"] = name;
    line["msg"] = Truncate(message, kMaxValue);
    if (!module_.empty()) line["module"] = module_;
  }
  for (const auto& [key, value] : bound_) line[key] = Truncate(value, kMaxValue);
  for (const auto& field : fields) {
    std::visit(
        [&](const auto& v) {
          if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string>) {
            line[std::string(field.key)] = Truncate(v, kMaxValue);
          } else {
            line[std::string(field.key)] = v;
          }
        },
        field.value);
  }
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  WriteAll(fd_, text);  // where it cannot, there is nowhere left to report to
}

Level ParseLevel(std::string_view name, Level fallback) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == lower) return static_cast<Level>(i);
  }
  return fallback;
}

}  // namespace sless::base
