#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/api/job.h"
#include "client/api/trigger.h"
#include "client/base/clock.h"
#include "client/base/guarded.h"
#include "client/base/log.h"
#include "client/cron/schedule.h"
#include "server/observe/metrics.h"
#include "server/store/object_store.h"

namespace sless::trigger {

/// Makes a Run object for each fire of the cron triggers it knows.
///
/// The Run's name holds the planned time, so that no fire can happen twice, and it is made before
/// last_fire is written, so that a crash in between loses none. Only times after the last change of
/// the trigger's spec count, and those that were due when it came: they fire with the new spec, or
/// count as skipped where the change switched the trigger off. Switching one on makes up for
/// nothing.
///
/// The wall clock may be set. Where it goes back the trigger goes on from there: a change or a last
/// fire that lies in the future does not hold it up, nor does it lose what is missed since. A time
/// that was settled already does not fire again: that of a run that is still kept, and each one
/// that this process has settled. Where the clock was behind for a while, nothing counts as missed
/// up to the time that it had before, the last change or the last fire. Where it was ahead, what
/// was left out then fires when its time comes.
///
/// A planned time that the scheduler sees more than kLateLimit late was missed (the server was
/// down, the machine slept), and so is each one before the trigger came to know of this process.
/// Missed times of the last kLookBack follow the trigger's `misfire`: "skip" runs none, "once" one
/// for the newest, "all" each of the newest kMaxCatchUp, one after another. Older ones are
/// forgotten.
///
/// Thread safety: all methods may be called from any thread.
class CronScheduler {
 public:
  static constexpr std::chrono::seconds kLateLimit{60};
  static constexpr std::chrono::hours kLookBack{24};
  static constexpr size_t kMaxCatchUp = 100;
  static constexpr size_t kKeepRuns = 20;  ///< ended runs that stay listed, per trigger
  static constexpr size_t kNextRuns = 5;   ///< planned times in the status
  static constexpr size_t kSpans = 32;     ///< stretches of settled times that are remembered
  static constexpr size_t kMarks = 16;     ///< times at which the clock went back, likewise

  struct Deps {
    store::ObjectStore& store;
    const base::Clock& clock;
    base::Logger& log;
    observe::Registry& metrics;
  };
  explicit CronScheduler(Deps deps) : deps_(deps) {}
  ~CronScheduler();

  void Start();
  void Stop();

  /// Takes the trigger up, or its changed spec, and returns its next fires, RFC 3339. Its status
  /// says up to when times have been looked at. Error: kInvalidArgument for a schedule or zone that
  /// cannot be read (checked when it was stored; the machine may have changed); it is not known any
  /// more then.
  base::Result<std::vector<std::string>> Set(const api::Trigger& trigger);
  /// No time from now on fires. What was due counts as skipped.
  void Remove(const api::ObjectKey& key);

  /// Fires what is due and returns the next planned time. What the thread does; for tests with a
  /// clock that stands still.
  std::optional<base::TimePoint> Tick();

 private:
  struct Span {
    base::TimePoint after, to;
  };
  struct Entry {
    std::string uid;
    int64_t generation = 0;
    std::string function;
    api::CronSpec spec;
    cron::Schedule schedule;
    cron::TimeZone zone;
    base::TimePoint looked_at;  // planned times up to here are settled
    // Where looked_at was when the clock went back, last change and last fire as they were read;
    // the newest kMarks. Nothing up to one of them is open once the clock has jumped over it.
    std::vector<base::TimePoint> marks = {};
    bool fresh = true;                    // comes from an earlier process, not looked at yet
    std::optional<base::TimePoint> next;  // first planned time after looked_at; empty: not known
    // planned times that were due when the spec changed, in order
    std::vector<base::TimePoint> owed = {};
    // what was settled by firing, oldest first, for a clock that goes back; the newest kSpans
    std::vector<Span> settled = {};
    std::optional<base::TimePoint> removed = {};  // when; what was due before still counts
  };
  struct Plan {
    std::vector<base::TimePoint> due;       // to run, if overlap allows
    std::vector<base::TimePoint> catch_up;  // missed, to run one after another
    std::vector<base::TimePoint> left_out;  // missed, not to run
    base::TimePoint last;                   // newest planned time looked at
  };

  void Run(std::stop_token stop);
  void Notify();
  void NoticeClock(base::TimePoint now);
  static std::optional<base::TimePoint> NextOf(const Entry& entry, base::TimePoint after);
  static std::vector<std::string> NextRuns(const Entry& entry, base::TimePoint now);
  static void Mark(Entry& entry, base::TimePoint time);
  /// Forgets the marks that the clock has come to as it goes on: their own time is one as any other
  /// (it may have been left out), and all before it that is not settled stays open.
  void DropReached(Entry& entry, base::TimePoint now) const;
  /// After which planned times are open.
  static base::TimePoint OpenAfter(const Entry& entry, base::TimePoint now);
  static std::vector<base::TimePoint> Pending(const Entry& entry, base::TimePoint to);
  static std::optional<Plan> MakePlan(const Entry& entry, base::TimePoint now);
  static void Settle(Entry& entry, const Plan& plan, base::TimePoint now);
  /// False: the trigger was changed or switched off a moment ago, and Set or Remove is about to
  /// tell; nothing was done.
  base::Result<bool> Carry(const api::ObjectKey& key, const Entry& entry, Plan plan);
  base::Status WriteStatus(const api::ObjectKey& key, const Entry& entry,
                           std::optional<base::TimePoint> last, int64_t skipped);
  base::Status Prune(const api::ObjectKey& key, std::vector<api::Run> runs);

  const Deps deps_;
  base::Guarded<std::map<api::ObjectKey, Entry>> entries_;
  std::mutex mutex_;  // for the thread's sleep
  std::condition_variable_any changed_;
  bool dirty_ = false;
  std::mutex tick_;  // one Tick at a time
  // Tick writes these two.
  std::atomic<base::TimePoint> last_tick_ = base::TimePoint::min();  // min(): none yet
  std::atomic<base::TimePoint> left_ = {};  // where the clock was when it last went back
  std::jthread thread_;
};

}  // namespace sless::trigger
