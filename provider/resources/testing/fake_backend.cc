#include "provider/resources/testing/fake_backend.h"

#include <fmt/format.h>

namespace sless::resources {

using base::Code;
using base::Err;
using Lock = std::lock_guard<std::recursive_mutex>;

namespace {

std::string Id(const rest::Name& name) { return name.ns + "/" + name.name; }

template <class T>
bool IsCreating(const T& object) {
  return object.metadata.annotations.contains(std::string(api::kCreatingAnnotation));
}

bool SameRevision(const api::FunctionSpec& a, const api::FunctionSpec& b) {
  return a.source.hash == b.source.hash && a.code_hash == b.code_hash && a.runtime == b.runtime &&
         a.entrypoint == b.entrypoint && a.environment == b.environment &&
         a.memory_mb == b.memory_mb && a.timeout_sec == b.timeout_sec &&
         a.concurrency == b.concurrency;
}

}  // namespace

base::Status FakeBackend::Enter(const std::string& call, bool after) {
  if (meanwhile && !after) meanwhile(call);
  Lock lock(mutex_);
  if (!after) calls_.push_back(call);
  auto& queue = planned_[call];
  if (queue.empty() || queue.front().after != after) return base::Ok();
  auto error = queue.front().error;
  queue.pop_front();
  return Err(std::move(error));
}

void FakeBackend::FailNext(const std::string& call, base::Error error, bool after) {
  Lock lock(mutex_);
  planned_[call].push_back({std::move(error), after});
}

std::vector<std::string> FakeBackend::TakeCalls() {
  Lock lock(mutex_);
  return std::exchange(calls_, {});
}

base::Status FakeBackend::UploadCode(const std::string&, const std::string&,
                                     const transport::OpenBody& zip, const rest::Call&) {
  RETURN_IF_ERROR(Enter("upload"));
  ASSIGN_OR_RETURN(const auto read, zip());
  char buffer[4096];
  while (true) {
    ASSIGN_OR_RETURN(const size_t count, read(buffer, sizeof buffer));
    if (count == 0) return base::Ok();
  }
}

base::Result<rest::ServerInfo> FakeBackend::Info(const rest::Call& call) {
  info_deadline = call.deadline;
  RETURN_IF_ERROR(Enter("info"));
  return rest::ServerInfo{"0.1.0", external_url, {"python3.11", "nodejs20"}};
}

base::Result<api::Function> FakeBackend::RetryFunction(const rest::Name& name, const rest::Call&) {
  RETURN_IF_ERROR(Enter("function.retry"));
  Lock lock(mutex_);
  if (!functions_.Has(Id(name))) return Err(Code::kNotFound, Id(name) + " does not exist");
  functions_.Edit(Id(name),
                  [](api::Function& function) { function.status.observed_generation = 0; });
  return functions_.Look(Id(name));
}

base::Result<std::vector<std::string>> FakeBackend::LastLines(const rest::Name&, int64_t revision,
                                                              const std::string&,
                                                              const rest::Call&) {
  RETURN_IF_ERROR(Enter("function.logs"));
  return std::vector<std::string>{fmt::format("of revision {}", revision)};
}

base::Status FakeBackend::RetryRun(const rest::Name& name, int64_t run_id, int64_t attempt,
                                   const rest::Call&) {
  RETURN_IF_ERROR(Enter("job.retry"));
  Lock lock(mutex_);
  base::Status status = base::Ok();
  jobs_.Edit(Id(name), [&](api::Job& job) {
    if (job.status.run_id != run_id || attempt > job.status.attempts + 1) {
      status = Err(Code::kFailedPrecondition, "no such attempt");
    } else if (attempt == job.status.attempts + 1) {
      StartRun(job);
    }
  });
  return status;
}

base::Result<bool> FakeBackend::Settle(api::Function& function) {
  auto& status = function.status;
  const auto now = fmt::format("2026-01-01T00:00:{:02}Z", ++clock_ % 60);
  status.invoke_url = fmt::format("{}/v1/namespaces/{}/functions/{}/invoke", external_url,
                                  function.metadata.ns, function.metadata.name);
  const bool same = status.serving && SameRevision(*status.serving, function.spec);
  status.latest_revision = status.revision + (same ? 0 : 1);
  if (builds_hang) {
    status.phase = "Building";
    status.observed_generation = function.metadata.generation;
    return false;
  }
  if (status.observed_generation == function.metadata.generation && status.phase != "Building")
    return true;
  status.observed_generation = function.metadata.generation;
  status.failure = same ? std::nullopt : build_failure;
  status.phase = status.failure ? "Failed" : "Ready";
  if (status.failure) return true;
  if (!same) {
    if (!status.serving || status.serving->source.hash != function.spec.source.hash ||
        status.serving->code_hash != function.spec.code_hash) {
      status.last_built_at = now;
    }
    status.revision = status.latest_revision;
  }
  status.serving = function.spec;
  return true;
}

base::Result<bool> FakeBackend::Settle(api::Trigger& trigger) {
  auto& status = trigger.status;
  status.observed_generation = trigger.metadata.generation;
  status.failure = trigger_failure;
  status.phase = trigger_failure ? "Failed" : trigger.spec.enabled ? "Ready" : "Disabled";
  status.url.clear();
  if (trigger.spec.http) {
    const auto& path = trigger.spec.http->path;
    status.url = fmt::format("{}/fn/{}/{}{}", external_url, trigger.metadata.ns,
                             trigger.spec.function, path == "/" ? "" : path);
  }
  return true;
}

void FakeBackend::StartRun(api::Job& job) {
  ++runs_started;
  auto& status = job.status;
  ++status.attempts;
  status.phase = "Running";
  status.failure.reset();
  status.result_json.clear();
  status.started_at = fmt::format("2026-01-01T01:00:{:02}Z", ++clock_ % 60);
  status.finished_at.clear();
}

base::Result<bool> FakeBackend::Settle(api::Job& job) {
  auto& status = job.status;
  status.observed_generation = job.metadata.generation;
  auto& last_run = last_runs_[job.metadata.ns + "/" + job.metadata.name];
  if (job.spec.run_id == 0) {
    if (status.run_id != 0) last_run = status;
    const auto last = status.last_run_id;
    status = {};
    status.phase = "Skipped";
    status.observed_generation = job.metadata.generation;
    status.last_run_id = last;
    return true;
  }
  if (status.run_id == 0 && last_run.run_id == job.spec.run_id) {
    status = last_run;
  } else if (status.run_id != job.spec.run_id) {
    status.run_id = status.last_run_id = job.spec.run_id;
    status.attempts = 0;
    StartRun(job);
  }
  if (status.phase != "Running") return true;
  if (runs_hang) return false;
  status.failure = run_failure;
  status.phase = run_failure ? "Failed" : "Succeeded";
  status.result_json = run_failure ? "" : job.spec.event_json;
  status.log_tail = "a log line";
  status.finished_at = fmt::format("2026-01-01T02:00:{:02}Z", ++clock_ % 60);
  return true;
}

template <class T>
base::Result<T> FakeObjects<T>::Get(const rest::Name& name, const rest::Call&) {
  RETURN_IF_ERROR(backend_.Enter(kind_ + ".get"));
  Lock lock(backend_.mutex_);
  const auto it = objects_.find(Id(name));
  if (it == objects_.end()) return Err(Code::kNotFound, kind_ + " " + Id(name) + " does not exist");
  return it->second;
}

template <class T>
base::Result<T> FakeObjects<T>::PutLocked(const T& object, rest::PutMode mode) {
  const auto id = object.metadata.ns + "/" + object.metadata.name;
  const bool exists = objects_.contains(id);
  if (mode == rest::PutMode::kReplace && !exists)
    return Err(Code::kNotFound, id + " does not exist");
  auto& stored = objects_[id];
  if (mode == rest::PutMode::kReplace &&
      stored.metadata.resource_version != object.metadata.resource_version) {
    return Err(Code::kAborted, id + " was changed by somebody else");
  }
  const bool same = exists && stored.spec == object.spec;
  stored.spec = object.spec;
  stored.metadata.ns = object.metadata.ns;
  stored.metadata.name = object.metadata.name;
  stored.metadata.annotations = object.metadata.annotations;
  stored.metadata.resource_version = std::to_string(++backend_.version_);
  if (!exists) stored.metadata.uid = "u" + stored.metadata.resource_version;
  if (!same) ++stored.metadata.generation;
  return stored;
}

template <class T>
base::Result<T> FakeObjects<T>::Put(const T& object, rest::PutMode mode, const rest::Call&) {
  RETURN_IF_ERROR(backend_.Enter(kind_ + ".put"));
  Lock lock(backend_.mutex_);
  auto result = PutLocked(object, mode);
  RETURN_IF_ERROR(backend_.Enter(kind_ + ".put", true));
  return result;
}

template <class T>
base::Result<T> FakeObjects<T>::Create(T object, const rest::Call&) {
  RETURN_IF_ERROR(backend_.Enter(kind_ + ".create"));
  Lock lock(backend_.mutex_);
  const auto it = objects_.find(object.metadata.ns + "/" + object.metadata.name);
  if (it != objects_.end() && !IsCreating(it->second) && !(it->second.spec == object.spec)) {
    return Err(Code::kAlreadyExists,
               it->first + " already exists; import it with `terraform import`");
  }
  object.metadata.annotations[std::string(api::kCreatingAnnotation)] = "true";
  object.metadata.annotations[std::string(api::kOwnerAnnotation)] = std::to_string(++creates_);
  auto result = PutLocked(object, rest::PutMode::kAny);
  RETURN_IF_ERROR(backend_.Enter(kind_ + ".create", true));
  return result;
}

template <class T>
base::Result<T> FakeObjects<T>::FinishCreate(const rest::Name& name, const rest::Call&) {
  RETURN_IF_ERROR(backend_.Enter(kind_ + ".finish"));
  Lock lock(backend_.mutex_);
  const auto it = objects_.find(Id(name));
  if (it == objects_.end()) return Err(Code::kNotFound, Id(name) + " does not exist");
  it->second.metadata.annotations.erase(std::string(api::kCreatingAnnotation));
  return it->second;
}

template <class T>
base::Result<T> FakeObjects<T>::WaitReady(const rest::Name& name, int64_t, const rest::Call& call) {
  RETURN_IF_ERROR(backend_.Enter(kind_ + ".wait"));
  Lock lock(backend_.mutex_);
  const auto it = objects_.find(Id(name));
  if (it == objects_.end()) return Err(Code::kNotFound, Id(name) + " was deleted");
  ASSIGN_OR_RETURN(const bool settled, backend_.Settle(it->second));
  if (settled) return it->second;
  if (call.stop.stop_requested()) return Err(Code::kCancelled, "stopped");
  return Err(Code::kDeadlineExceeded, Id(name) + " is still in phase " + it->second.status.phase);
}

template <class T>
base::Status FakeObjects<T>::Delete(const T& seen, const rest::Call&) {
  RETURN_IF_ERROR(backend_.Enter(kind_ + ".delete"));
  Lock lock(backend_.mutex_);
  const auto it = objects_.find(seen.metadata.ns + "/" + seen.metadata.name);
  if (it == objects_.end()) return Err(Code::kNotFound, seen.metadata.name + " does not exist");
  if (it->second.metadata.resource_version != seen.metadata.resource_version)
    return Err(Code::kAborted, it->first + " was changed by somebody else");
  objects_.erase(it);
  return base::Ok();
}

template <class T>
base::Status FakeObjects<T>::WaitGone(const T& seen, const rest::Call&) {
  RETURN_IF_ERROR(backend_.Enter(kind_ + ".gone"));
  Lock lock(backend_.mutex_);
  const auto it = objects_.find(seen.metadata.ns + "/" + seen.metadata.name);
  if (it != objects_.end() && it->second.metadata.uid == seen.metadata.uid)
    return Err(Code::kDeadlineExceeded, it->first + " is still there");
  return base::Ok();
}

template <class T>
void FakeObjects<T>::Edit(const std::string& id, const std::function<void(T&)>& change) {
  Lock lock(backend_.mutex_);
  const auto it = objects_.find(id);
  if (it == objects_.end()) return;
  const auto before = it->second.spec;
  change(it->second);
  if (!(before == it->second.spec)) ++it->second.metadata.generation;
  it->second.metadata.resource_version = std::to_string(++backend_.version_);
}

template <class T>
T FakeObjects<T>::Look(const std::string& id) const {
  Lock lock(backend_.mutex_);
  const auto it = objects_.find(id);
  return it == objects_.end() ? T{} : it->second;
}

template <class T>
bool FakeObjects<T>::Has(const std::string& id) const {
  Lock lock(backend_.mutex_);
  return objects_.contains(id);
}

template <class T>
void FakeObjects<T>::Erase(const std::string& id) {
  Lock lock(backend_.mutex_);
  objects_.erase(id);
}

template class FakeObjects<api::Function>;
template class FakeObjects<api::Trigger>;
template class FakeObjects<api::Job>;

}  // namespace sless::resources
