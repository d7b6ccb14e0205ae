#include "server/trigger/cron_scheduler.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/api/job.h"
#include "server/domain/job_lifecycle.h"
#include "server/store/typed.h"

namespace sless::trigger {
namespace {

using std::chrono::milliseconds;

struct Parsed {
  cron::Schedule schedule;
  cron::TimeZone zone;
};

base::Result<Parsed> Parse(const api::CronSpec& spec) {
  ASSIGN_OR_RETURN(auto schedule, cron::Schedule::Parse(spec.schedule));
  ASSIGN_OR_RETURN(auto zone, cron::TimeZone::Load(spec.timezone));
  return Parsed{std::move(schedule), std::move(zone)};
}

int64_t Unix(base::TimePoint time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

base::TimePoint ChangedAt(const api::Trigger& trigger, base::TimePoint now) {
  return base::ParseTime(trigger.metadata.updated_at).value_or(now);
}

base::TimePoint FiredAt(const api::Trigger& trigger, base::TimePoint now) {
  return base::ParseTime(trigger.status.last_fire).value_or(ChangedAt(trigger, now));
}

/// From where a trigger is taken up: planned times after that are open.
base::TimePoint TakeUpAfter(const api::Trigger& trigger, base::TimePoint now) {
  const auto settled = std::max(ChangedAt(trigger, now), FiredAt(trigger, now));
  if (settled <= now) return settled;
  // One of the two is of a clock that was ahead, or the clock is behind.
  const auto& status = trigger.status;
  if (status.observed_generation != trigger.metadata.generation)
    return std::min(now, ChangedAt(trigger, now));
  // Written anew when the clock was seen to go back, so it says what nobody has looked at since.
  // Where nobody saw it, it lies in the future.
  const auto next = base::ParseTime(status.next_runs.empty() ? "" : status.next_runs[0]);
  return next ? std::min(now, *next - milliseconds(1)) : now;
}

std::string RunName(const std::string& trigger, base::TimePoint planned) {
  return fmt::format("{}.{}.cron", trigger, Unix(planned));
}

}  // namespace

CronScheduler::~CronScheduler() { Stop(); }

void CronScheduler::Start() {
  thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
}

void CronScheduler::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

base::Result<std::vector<std::string>> CronScheduler::Set(const api::Trigger& trigger) {
  const auto key = store::KeyOf<api::Trigger>(trigger.metadata.ns, trigger.metadata.name);
  const auto& meta = trigger.metadata;
  const auto now = deps_.clock.Now();
  const auto spec = trigger.spec.cron.value_or(api::CronSpec{});
  auto parsed = Parse(spec);
  if (!parsed) {
    Remove(key);
    return base::Err(parsed.error());
  }
  Entry entry{.uid = meta.uid,
              .generation = meta.generation,
              .function = trigger.spec.function,
              .spec = spec,
              .schedule = std::move(parsed->schedule),
              .zone = std::move(parsed->zone)};
  const auto changed = std::min(now, ChangedAt(trigger, now));
  entry.looked_at = TakeUpAfter(trigger, now);
  Mark(entry, ChangedAt(trigger, now));
  Mark(entry, FiredAt(trigger, now));
  // A trigger that is written while the clock is behind missed nothing of what that jumps over.
  if (const base::TimePoint left = left_; left > now) Mark(entry, left);
  // What this process has watched from the beginning it has not missed.
  entry.fresh = trigger.status.observed_generation == meta.generation;
  auto next_runs = entries_.With([&](auto& entries) {
    const auto it = entries.find(key);
    Entry* old = it == entries.end() ? nullptr : &it->second;
    if (old) entry.fresh = false;
    if (old) DropReached(*old, now);
    if (old && !old->removed && old->uid == meta.uid) {
      if (old->generation == meta.generation) return NextRuns(*old, now);
      entry.fresh = old->fresh;
      entry.owed = Pending(*old, changed);
      for (const auto mark : old->marks) Mark(entry, mark);
      Mark(entry, old->looked_at);
      if (old->spec.schedule == spec.schedule && old->spec.timezone == spec.timezone)
        entry.settled = old->settled;
    }
    auto runs = NextRuns(entry, now);
    entries.insert_or_assign(key, std::move(entry));
    return runs;
  });
  Notify();
  return next_runs;
}

void CronScheduler::Remove(const api::ObjectKey& key) {
  const auto now = deps_.clock.Now();
  entries_.With([&](auto& entries) {
    const auto it = entries.find(key);
    if (it == entries.end() || it->second.removed) return;
    DropReached(it->second, now);
    if (Pending(it->second, now).empty()) {
      entries.erase(it);
    } else {
      it->second.removed = now;
      it->second.next.reset();
    }
  });
  Notify();
}

void CronScheduler::Notify() {
  {
    std::lock_guard lock(mutex_);
    dirty_ = true;
  }
  changed_.notify_all();
}

/// The one computation of fires: the status and the thread's sleep come from it too.
std::optional<base::TimePoint> CronScheduler::NextOf(const Entry& entry, base::TimePoint after) {
  for (std::optional time = after;;) {
    time = entry.schedule.Next(*time, entry.zone);
    if (!time) return std::nullopt;
    const auto span =
        std::find_if(entry.settled.begin(), entry.settled.end(),
                     [&](const Span& one) { return one.after < *time && *time <= one.to; });
    if (span == entry.settled.end()) return time;
    time = span->to;  // later each time: the loop ends with the last span
  }
}

std::vector<std::string> CronScheduler::NextRuns(const Entry& entry, base::TimePoint now) {
  std::vector<std::string> times;
  for (auto time = NextOf(entry, now); time && times.size() < kNextRuns;
       time = NextOf(entry, *time)) {
    times.push_back(base::FormatTime(*time));
  }
  return times;
}

void CronScheduler::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const auto next = Tick();
    // Never longer than a second: the wall clock may be set.
    auto wait = milliseconds(1000);
    if (next) {
      const auto left =
          std::chrono::duration_cast<milliseconds>(*next - deps_.clock.Now()) + milliseconds(1);
      wait = std::clamp(left, milliseconds(1), wait);
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, wait, [&] { return dirty_; });
    dirty_ = false;
  }
}

base::TimePoint CronScheduler::OpenAfter(const Entry& entry, base::TimePoint now) {
  auto from = std::max(entry.looked_at, now - kLookBack);
  for (const auto mark : entry.marks) {
    if (mark <= now) from = std::max(from, mark);
  }
  return from;
}

void CronScheduler::Mark(Entry& entry, base::TimePoint time) {
  auto& marks = entry.marks;
  if (std::find(marks.begin(), marks.end(), time) != marks.end()) return;
  marks.push_back(time);
  if (marks.size() > kMarks) marks.erase(marks.begin());
}

void CronScheduler::DropReached(Entry& entry, base::TimePoint now) const {
  const base::TimePoint before = last_tick_;
  if (now > before + kLateLimit) return;  // it jumped
  std::erase_if(entry.marks,
                [&](auto mark) { return before < mark && mark <= now && entry.looked_at < mark; });
}

/// Planned times that are not settled, up to and with `to`.
std::vector<base::TimePoint> CronScheduler::Pending(const Entry& entry, base::TimePoint to) {
  auto times = entry.owed;
  auto from = OpenAfter(entry, to);
  // Bounded: a day has at most 1440 planned times (and an hour's repetition).
  for (int i = 0; i < 2000; ++i) {
    const auto time = NextOf(entry, from);
    if (!time || *time > to) break;
    times.push_back(*time);
    from = *time;
  }
  return times;
}

std::optional<CronScheduler::Plan> CronScheduler::MakePlan(const Entry& entry,
                                                           base::TimePoint now) {
  const auto times = Pending(entry, entry.removed ? std::min(now, *entry.removed) : now);
  if (times.empty()) return std::nullopt;
  std::vector<base::TimePoint> missed, due;
  Plan plan;
  plan.last = times.back();
  if (entry.removed) {
    plan.left_out = times;
    return plan;
  }
  for (const auto time : times)
    (entry.fresh || now - time > kLateLimit ? missed : due).push_back(time);
  const size_t catch_up = entry.spec.misfire == "all"    ? kMaxCatchUp
                          : entry.spec.misfire == "once" ? 1
                                                         : 0;
  const size_t left_out = missed.size() - std::min(missed.size(), catch_up);
  plan.left_out.assign(missed.begin(), missed.begin() + static_cast<std::ptrdiff_t>(left_out));
  plan.catch_up.assign(missed.begin() + static_cast<std::ptrdiff_t>(left_out), missed.end());
  plan.due = std::move(due);
  return plan;
}

/// Remembers what fired. What was left out may fire yet: where a clock was ahead, its time comes.
void CronScheduler::Settle(Entry& entry, const Plan& plan, base::TimePoint now) {
  auto after = OpenAfter(entry, now);
  if (!plan.left_out.empty()) after = std::max(after, plan.left_out.back());
  if (plan.last <= after) return;
  auto& spans = entry.settled;
  if (!spans.empty() && spans.back().to == after) {
    spans.back().to = plan.last;
  } else {
    spans.push_back({after, plan.last});
  }
  if (spans.size() > kSpans) spans.erase(spans.begin());
}

void CronScheduler::NoticeClock(base::TimePoint now) {
  const base::TimePoint before = last_tick_;
  if (now + std::chrono::seconds(1) < before) {
    left_ = before;
    deps_.log.Warn(
        "the wall clock went back; cron triggers go on from there",
        {{"seconds", std::chrono::duration_cast<std::chrono::seconds>(before - now).count()}});
  }
  last_tick_ = now;
}

std::optional<base::TimePoint> CronScheduler::Tick() {
  std::lock_guard one(tick_);
  const auto now = deps_.clock.Now();
  std::optional<base::TimePoint> next;
  const auto sooner = [&](std::optional<base::TimePoint> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  // Copies of those that are due: what follows calls the store, so without the lock.
  std::vector<std::pair<api::ObjectKey, Entry>> due;
  entries_.With([&](auto& all) {
    for (auto& [key, entry] : all) {
      DropReached(entry, now);
      if (entry.looked_at <= now && entry.next && *entry.next > now) {
        sooner(entry.next);
      } else {
        due.emplace_back(key, entry);
      }
    }
  });
  NoticeClock(now);
  for (auto& [key, entry] : due) {
    const bool back = entry.looked_at > now;
    if (back) {
      Mark(entry, entry.looked_at);
      entry.looked_at = now;
    }
    const auto plan = MakePlan(entry, now);
    base::Result<bool> done = true;
    if (plan) {
      done = Carry(key, entry, *plan);
    } else if (back) {
      const auto written = WriteStatus(key, entry, std::nullopt, 0);
      if (!written) done = base::Err(written.error());
    }
    if (!done || !*done) {
      if (!done) {
        deps_.log.Warn("cron fire cannot be recorded, trying again",
                       {{"trigger", key.Id()}, {"error", base::ToString(done.error())}});
      }
      sooner(now + std::chrono::seconds(1));
      continue;
    }
    if (plan && !entry.removed) Settle(entry, *plan, now);
    const auto looked_at = std::max(entry.looked_at, plan ? plan->last : now - kLookBack);
    const auto following = NextOf(entry, std::max(looked_at, now));
    entries_.With([&](auto& all) {
      const auto it = all.find(key);
      if (it == all.end() || it->second.uid != entry.uid) return;
      auto& current = it->second;
      if (current.generation != entry.generation) {
        // Set came in between: what it has found due is settled by now.
        std::erase_if(current.owed, [&](auto time) { return time <= looked_at; });
        return;
      }
      if (entry.removed) {
        if (current.removed) all.erase(it);
        return;
      }
      current.looked_at = looked_at;
      current.marks = std::move(entry.marks);
      current.fresh = false;
      current.owed.clear();
      current.settled = std::move(entry.settled);
      if (!current.removed) current.next = following;
    });
    if (!entry.removed) sooner(following);
  }
  return next;
}

base::Status CronScheduler::WriteStatus(const api::ObjectKey& key, const Entry& entry,
                                        std::optional<base::TimePoint> last, int64_t skipped) {
  const auto next_runs = NextRuns(entry, deps_.clock.Now());
  const auto written =
      store::MutateStatus<api::Trigger>(deps_.store, key.ns, key.name, [&](api::Trigger& now) {
        if (now.metadata.uid != entry.uid) return base::Ok();
        if (last) now.status.last_fire = base::FormatTime(*last);
        now.status.skipped += skipped;
        if (!entry.removed) now.status.next_runs = next_runs;
        return base::Ok();
      });
  if (!written && written.error().code != base::Code::kNotFound) return base::Err(written.error());
  return base::Ok();
}

base::Result<bool> CronScheduler::Carry(const api::ObjectKey& key, const Entry& entry, Plan plan) {
  const auto trigger = store::GetTyped<api::Trigger>(deps_.store, key.ns, key.name);
  if (!trigger && trigger.error().code == base::Code::kNotFound) return true;
  if (!trigger) return base::Err(trigger.error());
  const auto& meta = trigger->metadata;
  if (meta.uid != entry.uid || !meta.deletion_requested_at.empty()) return true;
  if (entry.removed) {
    // Switched off: what came after that is not skipped.
    const auto changed = base::ParseTime(meta.updated_at);
    if (!trigger->spec.enabled && changed)
      std::erase_if(plan.left_out, [&](auto time) { return time > *changed; });
    if (plan.left_out.empty()) return true;
  } else if (meta.generation != entry.generation || !trigger->spec.enabled) {
    return false;
  }
  ASSIGN_OR_RETURN(auto runs, store::ListTyped<api::Run>(deps_.store, key.ns, key.name + "."));
  std::erase_if(runs, [](const api::Run& run) { return run.spec.owner_kind != api::kKindTrigger; });
  const auto exists = [&](base::TimePoint time) {
    return std::any_of(runs.begin(), runs.end(),
                       [&](const auto& run) { return run.spec.run_id == Unix(time); });
  };
  size_t active = static_cast<size_t>(std::count_if(
      runs.begin(), runs.end(), [](const auto& run) { return !domain::HasEnded(run); }));
  int64_t skipped = 0, fired = 0;
  for (const auto time : plan.left_out) skipped += exists(time) ? 0 : 1;

  const auto fire = [&](base::TimePoint time, bool serial) -> base::Status {
    api::Run run;
    run.metadata.ns = key.ns;
    run.metadata.name = RunName(key.name, time);
    run.spec = {.owner_kind = std::string(api::kKindTrigger),
                .owner = key.name,
                .function = entry.function,
                .event_json = entry.spec.payload.empty() ? "{}" : entry.spec.payload,
                .run_id = Unix(time),
                .max_attempts = 1,
                .serial = serial};
    const auto made = store::CreateTyped(deps_.store, run);
    if (!made && made.error().code != base::Code::kAlreadyExists) return base::Err(made.error());
    ++active;
    ++fired;
    return base::Ok();
  };
  for (const auto time : plan.catch_up) {
    if (!exists(time)) RETURN_IF_ERROR(fire(time, true));
  }
  for (const auto time : plan.due) {
    if (exists(time)) continue;
    const auto& overlap = entry.spec.overlap;
    const bool full = overlap == "skip" ? active >= 1 : overlap == "queue" && active >= 2;
    if (full) {
      ++skipped;
    } else {
      RETURN_IF_ERROR(fire(time, overlap == "queue"));
    }
  }
  RETURN_IF_ERROR(WriteStatus(key, entry, plan.last, skipped));
  auto& counts = deps_.metrics.Counters("sless_cron_fires_total",
                                        "planned cron times by what became of them", {"result"});
  counts.With({"fired"}).Add(static_cast<uint64_t>(fired));
  counts.With({"skipped"}).Add(static_cast<uint64_t>(skipped));
  if (skipped > 0) {
    deps_.log.Info("cron fires skipped", {{"trigger", key.Id()},
                                          {"skipped", skipped},
                                          {"overlap", entry.spec.overlap},
                                          {"misfire", entry.spec.misfire}});
  }
  // What is kept too long costs nothing: no reason to fire again.
  if (const auto pruned = Prune(key, std::move(runs)); !pruned) {
    deps_.log.Warn("old cron runs cannot be removed",
                   {{"trigger", key.Id()}, {"error", base::ToString(pruned.error())}});
  }
  return true;
}

base::Status CronScheduler::Prune(const api::ObjectKey& key, std::vector<api::Run> runs) {
  std::erase_if(runs, [](const api::Run& run) { return !domain::HasEnded(run); });
  std::sort(runs.begin(), runs.end(),
            [](const auto& a, const auto& b) { return a.spec.run_id > b.spec.run_id; });
  for (size_t i = kKeepRuns; i < runs.size(); ++i) {
    const auto gone =
        deps_.store.Delete(store::KeyOf<api::Run>(key.ns, runs[i].metadata.name), std::nullopt);
    if (!gone && gone.error().code != base::Code::kNotFound) return gone;
  }
  return base::Ok();
}

}  // namespace sless::trigger
