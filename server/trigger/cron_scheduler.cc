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

base::Status CronScheduler::Set(const api::Trigger& trigger) {
  const auto key = store::KeyOf<api::Trigger>(trigger.metadata.ns, trigger.metadata.name);
  const auto& meta = trigger.metadata;
  const bool known_here = entries_.With([&](const auto& entries) { return entries.contains(key); });
  const bool same = entries_.With([&](const auto& entries) {
    const auto it = entries.find(key);
    return it != entries.end() && it->second.uid == meta.uid &&
           it->second.generation == meta.generation;
  });
  if (same) return base::Ok();

  const auto spec = trigger.spec.cron.value_or(api::CronSpec{});
  ASSIGN_OR_RETURN(auto parsed, Parse(spec));
  Entry entry{.uid = meta.uid,
              .generation = meta.generation,
              .function = trigger.spec.function,
              .spec = spec,
              .schedule = std::move(parsed.schedule),
              .zone = std::move(parsed.zone)};
  entry.looked_at = deps_.clock.Now();
  if (const auto changed = base::ParseTime(meta.updated_at)) entry.looked_at = *changed;
  if (const auto fired = base::ParseTime(trigger.status.last_fire))
    entry.looked_at = std::max(entry.looked_at, *fired);
  // What this process has watched from the beginning it has not missed.
  entry.fresh = !known_here && trigger.status.observed_generation == meta.generation;
  entries_.With([&](auto& entries) { entries.insert_or_assign(key, std::move(entry)); });
  {
    std::lock_guard lock(mutex_);
    dirty_ = true;
  }
  changed_.notify_all();
  return base::Ok();
}

void CronScheduler::Remove(const api::ObjectKey& key) {
  entries_.With([&](auto& entries) { entries.erase(key); });
}

base::Result<std::vector<std::string>> CronScheduler::NextRuns(const api::CronSpec& spec,
                                                               base::TimePoint now) {
  ASSIGN_OR_RETURN(const auto parsed, Parse(spec));
  std::vector<std::string> times;
  for (auto time = std::optional(now); times.size() < kNextRuns;) {
    time = parsed.schedule.Next(*time, parsed.zone);
    if (!time) break;
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

std::optional<CronScheduler::Plan> CronScheduler::MakePlan(const Entry& entry,
                                                           base::TimePoint now) {
  std::vector<base::TimePoint> missed, due;
  auto from = std::max(entry.looked_at, now - kLookBack);
  // Bounded: a day has at most 1440 planned times (and an hour's repetition).
  for (int i = 0; i < 2000; ++i) {
    const auto time = entry.schedule.Next(from, entry.zone);
    if (!time || *time > now) break;
    (entry.fresh || now - *time > kLateLimit ? missed : due).push_back(*time);
    from = *time;
  }
  if (missed.empty() && due.empty()) return std::nullopt;
  Plan plan;
  plan.last = due.empty() ? missed.back() : due.back();
  const size_t catch_up = entry.spec.misfire == "all"    ? kMaxCatchUp
                          : entry.spec.misfire == "once" ? 1
                                                         : 0;
  const size_t left_out = missed.size() - std::min(missed.size(), catch_up);
  plan.left_out.assign(missed.begin(), missed.begin() + static_cast<std::ptrdiff_t>(left_out));
  plan.catch_up.assign(missed.begin() + static_cast<std::ptrdiff_t>(left_out), missed.end());
  plan.due = std::move(due);
  return plan;
}

std::optional<base::TimePoint> CronScheduler::Tick() {
  std::lock_guard one(tick_);
  const auto now = deps_.clock.Now();
  const auto entries = entries_.With([](const auto& all) { return all; });
  std::optional<base::TimePoint> next;
  const auto sooner = [&](std::optional<base::TimePoint> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  for (const auto& [key, entry] : entries) {
    if (entry.next && *entry.next > now) {
      sooner(entry.next);
      continue;
    }
    const auto plan = MakePlan(entry, now);
    auto looked_at = std::max(entry.looked_at, now - kLookBack);
    if (plan) {
      const auto done = Carry(key, entry, *plan);
      if (!done) {
        deps_.log.Warn("cron fire cannot be recorded, trying again",
                       {{"trigger", key.Id()}, {"error", base::ToString(done.error())}});
        sooner(now + std::chrono::seconds(1));
        continue;
      }
      looked_at = plan->last;
    }
    const auto following = entry.schedule.Next(std::max(looked_at, now), entry.zone);
    entries_.With([&](auto& all) {
      const auto it = all.find(key);
      if (it == all.end() || it->second.uid != entry.uid ||
          it->second.generation != entry.generation)
        return;
      it->second.looked_at = looked_at;
      it->second.fresh = false;
      it->second.next = following;
    });
    sooner(following);
  }
  return next;
}

base::Status CronScheduler::Carry(const api::ObjectKey& key, const Entry& entry, const Plan& plan) {
  const auto trigger = store::GetTyped<api::Trigger>(deps_.store, key.ns, key.name);
  if (!trigger && trigger.error().code == base::Code::kNotFound) return base::Ok();
  if (!trigger) return base::Err(trigger.error());
  // Changed or switched off a moment ago: the reconciler is about to tell.
  if (trigger->metadata.uid != entry.uid || trigger->metadata.generation != entry.generation ||
      !trigger->spec.enabled || !trigger->metadata.deletion_requested_at.empty()) {
    return base::Ok();
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
  auto next_runs = NextRuns(entry.spec, std::max(deps_.clock.Now(), plan.last));
  const auto written =
      store::MutateStatus<api::Trigger>(deps_.store, key.ns, key.name, [&](api::Trigger& now) {
        if (now.metadata.uid != entry.uid) return base::Ok();
        now.status.last_fire = base::FormatTime(plan.last);
        now.status.skipped += skipped;
        if (next_runs) now.status.next_runs = *next_runs;
        return base::Ok();
      });
  if (!written && written.error().code != base::Code::kNotFound) return base::Err(written.error());
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
  return base::Ok();
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
