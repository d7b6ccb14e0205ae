#include "client/base/log.h"

#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "client/base/clock.h"
#include "client/base/fd.h"
#include "client/base/json.h"
#include "client/base/strings.h"

namespace sless::base {
namespace {

constexpr std::array<std::string_view, 5> kNames{"trace", "debug", "info", "warn", "error"};
constexpr std::array<int, 5> kPriorities{7, 7, 6, 4, 3};  // of syslog
// Terraform reads lines of at most 64 KiB; a longer one would lose its level.
constexpr size_t kMaxValue = 8192;

// How long those who log wait in sum for a reader that is behind, in each ten times of it.
constexpr std::chrono::milliseconds kPatience{200};

/// What is known of a descriptor whose reader may stop: a pipe, a socket, a terminal. It belongs
/// to the process, not to one of the loggers that share it.
struct Outlet {
  std::string rest;   // of a line that went out in part
  uint64_t lost = 0;  // lines since then
  bool stuck = false;
  std::chrono::nanoseconds patience = kPatience;
  std::chrono::steady_clock::time_point waited = {};

  /// Writes what the descriptor takes without blocking and cuts it off `bytes`. True: all of it, or
  /// there is nobody to write for.
  bool Push(int fd, bool socket, std::string& bytes) {
    size_t done = 0;
    while (done < bytes.size() && Writable(fd)) {
      // A pipe that can be written takes so much.
      const size_t size = std::min<size_t>(bytes.size() - done, PIPE_BUF);
      const ssize_t n = socket ? send(fd, bytes.data() + done, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                               : write(fd, bytes.data() + done, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n < 0) {
        done = bytes.size();
        break;
      }
      done += static_cast<size_t>(n);
    }
    bytes.erase(0, done);
    stuck = !bytes.empty();
    return !stuck;
  }

 private:
  /// Waits for it while there is patience. A reader that stands still is waited for once.
  bool Writable(int fd) {
    const auto now = std::chrono::steady_clock::now();
    patience = std::min<std::chrono::nanoseconds>(kPatience, patience + (now - waited) / 10);
    waited = now;
    const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
    pollfd one{fd, POLLOUT, 0};
    const bool writable = poll(&one, 1, stuck ? 0 : static_cast<int>(wait.count())) > 0;
    const auto after = std::chrono::steady_clock::now();
    patience = std::max(std::chrono::nanoseconds(0), patience - (after - now));
    waited = after;
    return writable;
  }
};

using Bound = std::vector<std::pair<std::string, std::string>>;

std::string Line(JsonLogger::Keys keys, const std::string& module, const Bound& bound, Level level,
                 std::string_view message, std::initializer_list<LogField> fields) {
  std::string time = FormatTime(std::chrono::system_clock::now());
  nlohmann::ordered_json line;
  const std::string_view name = kNames[static_cast<size_t>(level)];
  if (keys == JsonLogger::Keys::kHclog) {
    // hclog takes exactly six fraction digits.
    time.insert(time.size() - 1, "000");
    line["@level"] = name;
    line["@message"] = Truncate(message, kMaxValue);
    line["@timestamp"] = time;
    if (!module.empty()) line["@module"] = module;
  } else {
    line["time"] = time;
    line["level"] = name;
    line["msg"] = Truncate(message, kMaxValue);
    if (!module.empty()) line["module"] = module;
  }
  for (const auto& [key, value] : bound) line[key] = Truncate(value, kMaxValue);
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
  const auto text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (keys != JsonLogger::Keys::kJournal) return text + "\n";
  return fmt::format("<{}>{}\n", kPriorities[static_cast<size_t>(level)], text);
}

}  // namespace

void JsonLogger::Log(Level level, std::string_view message,
                     std::initializer_list<LogField> fields) {
  if (level < least_) return;
  std::string text = Line(keys_, module_, bound_, level, message, fields);
  struct stat about {};
  const bool known = fstat(fd_, &about) == 0;
  if (known && S_ISREG(about.st_mode)) {
    WriteAll(fd_, text);  // where it cannot, there is nowhere left to report to
    return;
  }
  // What a reader does not take in time is dropped, whole lines only, and told when it reads again.
  static std::mutex mutex;
  static std::map<int, Outlet> outlets;
  std::lock_guard lock(mutex);
  auto& outlet = outlets[fd_];
  const bool socket = known && S_ISSOCK(about.st_mode);
  if (!outlet.Push(fd_, socket, outlet.rest)) {
    ++outlet.lost;
    return;
  }
  if (outlet.lost > 0) {
    text.insert(0, Line(keys_, module_, bound_, Level::kWarn,
                        "log lines lost: their reader was behind", {{"lines", outlet.lost}}));
  }
  const auto size = text.size();
  if (!outlet.Push(fd_, socket, text) && text.size() == size) {
    ++outlet.lost;
    return;
  }
  outlet.lost = 0;
  outlet.rest = std::move(text);
}

bool IsJournal(int fd, std::string_view journal_stream) {
  struct stat about {};
  return fstat(fd, &about) == 0 &&
         journal_stream == fmt::format("{}:{}", about.st_dev, about.st_ino);
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
