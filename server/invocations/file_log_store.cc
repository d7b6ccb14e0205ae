#include "server/invocations/file_log_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>

#include "client/base/guarded.h"
#include "client/base/strings.h"
#include "server/invocations/function_log.h"
#include "server/invocations/line_queue.h"
#include "server/invocations/log_line.h"

namespace sless::invocations {
namespace {

using base::Code;
using base::Err;

constexpr size_t kMaxOpen = 128;  // functions whose file is kept open
constexpr size_t kMaxLimit = 10'000;
constexpr auto kSettle = std::chrono::seconds(1);
constexpr auto kReportEvery = std::chrono::seconds(10);
constexpr auto kDrained =
    std::chrono::hours(2);  // by then no replica of a removed function is left

// Removing a log must wait for the appends that hold it, so a log in use stays in the table: there
// is never a second one of it.
struct Open {
  std::shared_ptr<FunctionLog> log;
  uint64_t last_use = 0;
};
struct Removed {
  int64_t last_revision = 0;
  base::SteadyPoint at;
};
struct Table {
  std::map<std::pair<std::string, std::string>, Open> logs;
  std::map<std::pair<std::string, std::string>, Removed> removed;
  uint64_t uses = 0;
};

struct Lost {
  int64_t lines = 0;
  base::SteadyPoint last_report = base::SteadyPoint::min();
};

class FileLogStore final : public LogStore {
 public:
  FileLogStore(std::string dir, const base::Clock& clock, base::Logger& log, uint64_t segment_bytes,
               size_t max_waiting_bytes)
      : dir_(std::move(dir)),
        clock_(clock),
        log_(log),
        segment_bytes_(segment_bytes),
        queue_(max_waiting_bytes, [this](auto lines) { Write(std::move(lines)); }) {}

  void Append(const std::string& ns, const std::string& function, LogRecord record) override {
    const int64_t revision = record.revision;
    if (queue_.Push({ns, function, std::move(record)})) return;
    dropped_.With([&](auto& all) {
      auto& dropped = all[{ns, function}];
      ++dropped.lines;
      dropped.revision = std::max(dropped.revision, revision);
    });
    ReportLost(ns, function,
               {Code::kResourceExhausted, "the disk does not take them as fast as they come"});
  }

  bool Behind() const override { return queue_.Behind(); }

  base::Result<std::vector<LogRecord>> Read(const std::string& ns, const std::string& function,
                                            const LogQuery& query) const override {
    if (query.limit < 1 || query.limit > kMaxLimit) {
      return Err(Code::kInvalidArgument,
                 fmt::format("limit is 1 to {}, got {}", kMaxLimit, query.limit));
    }
    queue_.Settle(kSettle);
    ASSIGN_OR_RETURN(const auto log, Find(ns, function));
    return log->Read(query);
  }

  void Remove(const std::string& ns, const std::string& function, int64_t last_revision) override {
    queue_.Settle(kSettle);
    const auto log = Find(ns, function);
    // The log's own number counts for lines that come now, the table's for when the log was put
    // away and is taken out again.
    if (log) NoteRemoved({ns, function}, last_revision);
    const auto status = log ? (*log)->Remove(last_revision) : base::Status(Err(log.error()));
    if (!status)
      log_.Warn("log of a function was not removed",
                {{"namespace", ns}, {"function", function}, {"error", status.error().message}});
    ::rmdir(
        (dir_ + "/" + ns).c_str());  // goes with its last function; fails while there are others
  }

 private:
  struct Dropped {
    int64_t lines = 0;
    int64_t revision = 0;
  };

  // The queue's thread.
  void Write(std::vector<QueuedLine> lines) {
    for (const auto& line : lines) WriteOne(line);
    for (const auto& [key, dropped] :
         dropped_.With([](auto& all) { return std::exchange(all, {}); }))
      WriteOne({key.first,
                key.second,
                {clock_.Now(), dropped.revision, "", "system", "",
                 fmt::format("{} lines were lost: the server's disk did not take them in time",
                             dropped.lines)}});
  }

  void WriteOne(const QueuedLine& line) {
    const auto log = Find(line.ns, line.function);
    const auto status = log ? (*log)->Append(line.record.revision, FormatLine(line.record))
                            : base::Status(Err(log.error()));
    if (!status) ReportLost(line.ns, line.function, status.error());
  }

  base::Result<std::shared_ptr<FunctionLog>> Find(const std::string& ns,
                                                  const std::string& function) const {
    for (const auto& name : {ns, function}) {
      const std::string problem = base::DnsLabelProblem(name);
      if (!problem.empty())
        return Err(Code::kInvalidArgument,
                   fmt::format("a namespace and a function are DNS labels: {}", problem));
    }
    return table_.With([&](Table& table) {
      auto& entry = table.logs[{ns, function}];
      if (!entry.log) {
        const auto removed = table.removed.find({ns, function});
        entry.log = std::make_shared<FunctionLog>(
            fmt::format("{}/{}/{}", dir_, ns, function), segment_bytes_,
            removed == table.removed.end() ? 0 : removed->second.last_revision);
      }
      entry.last_use = ++table.uses;
      auto log = entry.log;
      if (table.logs.size() > kMaxOpen) DropOldest(table);
      return log;
    });
  }

  void NoteRemoved(const std::pair<std::string, std::string>& key, int64_t last_revision) {
    const auto now = clock_.Steady();
    table_.With([&](Table& table) {
      std::erase_if(table.removed,
                    [&](const auto& entry) { return now - entry.second.at > kDrained; });
      auto& removed = table.removed[key];
      removed = {std::max(removed.last_revision, last_revision), now};
    });
  }

  static void DropOldest(Table& table) {
    auto oldest = table.logs.end();
    for (auto it = table.logs.begin(); it != table.logs.end(); ++it) {
      const bool idle = it->second.log.use_count() == 1;
      if (idle && (oldest == table.logs.end() || it->second.last_use < oldest->second.last_use))
        oldest = it;
    }
    if (oldest != table.logs.end()) table.logs.erase(oldest);
  }

  // At most one line in a while, however many are lost.
  void ReportLost(const std::string& ns, const std::string& function, const base::Error& error) {
    const auto now = clock_.Steady();
    const int64_t lines = lost_.With([&](Lost& lost) -> int64_t {
      ++lost.lines;
      if (lost.last_report != base::SteadyPoint::min() && now - lost.last_report < kReportEvery)
        return 0;
      lost.last_report = now;
      return std::exchange(lost.lines, 0);
    });
    if (lines > 0) {
      log_.Warn("log lines of functions were lost", {{"lines", lines},
                                                     {"namespace", base::Truncate(ns, 63)},
                                                     {"function", base::Truncate(function, 63)},
                                                     {"error", error.message}});
    }
  }

  const std::string dir_;
  const base::Clock& clock_;
  base::Logger& log_;
  const uint64_t segment_bytes_;
  mutable base::Guarded<Table> table_;
  base::Guarded<Lost> lost_;
  base::Guarded<std::map<std::pair<std::string, std::string>, Dropped>> dropped_;
  LineQueue queue_;  // last: its thread uses all else
};

}  // namespace

std::unique_ptr<LogStore> MakeFileLogStore(const std::string& dir, const base::Clock& clock,
                                           base::Logger& log, uint64_t segment_bytes,
                                           size_t max_waiting_bytes) {
  return std::make_unique<FileLogStore>(dir, clock, log, segment_bytes, max_waiting_bytes);
}

}  // namespace sless::invocations
