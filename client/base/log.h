#pragma once

// Structured log: the message is constant, the facts are fields, one event is one JSON line.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sless::base {

enum class Level { kTrace, kDebug, kInfo, kWarn, kError };

/// One fact of a log event. Never put a secret here.
struct LogField {
  using Value = std::variant<std::string, int64_t, double, bool>;
  LogField(std::string_view k, std::string_view v) : key(k), value(std::string(v)) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(std::string(v)) {}
  LogField(std::string_view k, bool v) : key(k), value(v) {}
  LogField(std::string_view k, double v) : key(k), value(v) {}
  template <class Int>
  requires std::is_integral_v<Int> LogField(std::string_view k, Int v)
      : key(k), value(static_cast<int64_t>(v)) {}

  std::string_view key;
  Value value;
};

/// Thread safety: all methods may be called from any thread; one event is one write(2).
class Logger {
 public:
  virtual ~Logger() = default;
  virtual void Log(Level level, std::string_view message,
                   std::initializer_list<LogField> fields) = 0;

  void Trace(std::string_view m, std::initializer_list<LogField> f = {}) {
    Log(Level::kTrace, m, f);
  }
  void Debug(std::string_view m, std::initializer_list<LogField> f = {}) {
    Log(Level::kDebug, m, f);
  }
  void Info(std::string_view m, std::initializer_list<LogField> f = {}) { Log(Level::kInfo, m, f); }
  void Warn(std::string_view m, std::initializer_list<LogField> f = {}) { Log(Level::kWarn, m, f); }
  void Error(std::string_view m, std::initializer_list<LogField> f = {}) {
    Log(Level::kError, m, f);
  }
};

/// Writes JSON lines to a file descriptor: {"time":…,"level":…,"msg":…,fields}, or with hclog keys
/// ("@timestamp" with six fraction digits, "@level", "@message", "@module") for a provider under
/// Terraform, or as the first behind "<N>", the priority that systemd's journal takes off a line
/// (sd-daemon(3)).
class JsonLogger final : public Logger {
 public:
  enum class Keys { kPlain, kHclog, kJournal };
  /// `bound` fields go into every line.
  JsonLogger(int fd, Level least, Keys keys, std::string module = "",
             std::vector<std::pair<std::string, std::string>> bound = {})
      : fd_(fd), least_(least), keys_(keys), module_(std::move(module)), bound_(std::move(bound)) {}
  void Log(Level level, std::string_view message, std::initializer_list<LogField> fields) override;

 private:
  int fd_;
  Level least_;
  Keys keys_;
  std::string module_;
  std::vector<std::pair<std::string, std::string>> bound_;
};

/// Drops everything; for tests.
class NullLogger final : public Logger {
 public:
  void Log(Level, std::string_view, std::initializer_list<LogField>) override {}
};

/// True where `fd` leads to systemd's journal: `journal_stream` is the environment's
/// JOURNAL_STREAM, "<device>:<inode>" (systemd.exec(5)).
bool IsJournal(int fd, std::string_view journal_stream);

/// "trace", "debug", "info", "warn", "error" in any case; `fallback` for anything else.
Level ParseLevel(std::string_view name, Level fallback);

}  // namespace sless::base
