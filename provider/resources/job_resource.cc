#include "provider/resources/job_resource.h"

#include <fmt/format.h>

#include "provider/resources/common.h"
#include "provider/resources/job_private.h"
#include "provider/resources/values.h"

namespace sless::resources {

using cty::Path;
using cty::Value;
using std::chrono::seconds;

namespace {

constexpr std::string_view kKind = "job";
constexpr seconds kDeadline{60};
constexpr seconds kDeleteDeadline{20 * 60};  // a run ends first

framework::FieldMap Fields() {
  return {
      {"/metadata/name", Path("name")},          {"/metadata/namespace", Path("namespace")},
      {"/spec/function", Path("function")},      {"/spec/eventJson", Path("event_json")},
      {"/spec/runId", Path("run_id")},           {"/spec/waitTimeoutSec", Path("wait_timeout_sec")},
      {"/spec/maxRetries", Path("max_retries")},
  };
}

void Fail(const base::Error& error, std::string_view verb, const rest::Name& name,
          framework::StateResponse& response) {
  AddError(response.diagnostics, error, fmt::format("{} {}", verb, Describe(kKind, name)),
           Fields());
}

rest::Call Brief(const framework::Context& context) {
  return {context.DeadlineIn(kDeadline), context.stop};
}

std::string ErrorText(const api::Failure& failure) {
  if (failure.file.empty()) return failure.message;
  if (failure.line == 0) return fmt::format("{} ({})", failure.message, failure.file);
  return fmt::format("{} ({}:{})", failure.message, failure.file, failure.line);
}

bool HasFailed(const api::Job& job, int64_t run_id) {
  return job.status.phase == "Failed" && job.status.run_id == run_id;
}

// run_id is the last run's again, after a 0: how that run ended shows only once the server has seen
// the change.
bool ReturnsTo(const api::Job& job, int64_t run_id) {
  return run_id > 0 && job.status.run_id != run_id && job.status.last_run_id == run_id;
}

// Waits until the run has ended; for `now` see AwaitWritten. After a retry the status is that of
// the attempt before for a moment: `attempt` tells them apart.
base::Status AwaitRun(Backend& backend, const api::Job& written, int64_t attempt,
                      const rest::Call& call, const framework::Context& context,
                      std::optional<api::Job>& now) {
  while (true) {
    auto done = AwaitWritten(backend.Jobs(), kKind, written, call, context, now);
    if (!done || now->status.phase != "Failed" || now->status.attempts >= attempt) return done;
    if (!Pause(std::chrono::milliseconds(100), call, context.clock)) {
      const auto code =
          call.stop.stop_requested() ? base::Code::kCancelled : base::Code::kDeadlineExceeded;
      return base::Err(
          code, fmt::format("attempt {} of run {} has not begun", attempt, written.spec.run_id));
    }
  }
}

// Explains why the wait ended early. The run itself is not touched by that.
base::Error WaitError(base::Error error, const api::JobSpec& spec) {
  if (error.code == base::Code::kDeadlineExceeded) {
    error.field = "/spec/waitTimeoutSec";
    error.message += fmt::format(
        "\n\nwait_timeout_sec is {}. It bounds the wait only: run {} goes on at the server, and "
        "the next apply waits for it again",
        spec.wait_timeout_sec, spec.run_id);
  } else if (error.code == base::Code::kCancelled) {
    error.message += fmt::format(
        "\n\nStopped on request. Run {} goes on at the server, and the next apply waits for it",
        spec.run_id);
  }
  return error;
}

// Why a run failed. Of a missing function the attribute tells more than the run does.
base::Error RunError(const std::optional<api::Failure>& failure, std::string_view what) {
  auto error = FailureError(failure, what, "");
  if (error.reason == "FunctionMissing") {
    error.field = "/spec/function";
    error.message += kNameTheFunction;
  }
  return error;
}

Value StateOrNull(const std::optional<api::Job>& job) {
  return job ? JobStateOf(*job) : Value::Null();
}

// Brings a written job to its end: asks for one more attempt where this run had failed before,
// waits, and tells the result. `before` is the job as it was before this apply wrote it: what the
// answer to the write shows may be this apply's own attempt, which has failed already.
void Finish(Backend& backend, const std::optional<api::Job>& before, const api::Job& written,
            std::string_view verb, const framework::ChangeRequest& request,
            framework::StateResponse& response) {
  const rest::Name name{written.metadata.ns, written.metadata.name};
  const auto action = fmt::format("{} {}", verb, Describe(kKind, name));
  const auto& spec = written.spec;
  std::optional<api::Job> now = written;
  SetLastRunId(response.private_data, spec.run_id);

  const rest::Call wait{request.context.DeadlineIn(seconds(spec.wait_timeout_sec)),
                        request.context.stop};
  int64_t attempt = 0;
  if (before && HasFailed(*before, spec.run_id)) {
    attempt = before->status.attempts + 1;
  } else if (before && ReturnsTo(*before, spec.run_id)) {
    // Where this fails, the wait below fails for the same reason and tells it.
    const auto seen = backend.Jobs().WaitReady(name, written.metadata.generation, wait);
    if (seen && HasFailed(*seen, spec.run_id)) attempt = seen->status.attempts + 1;
  }
  if (attempt > 0) {
    const auto asked = backend.RetryRun(name, spec.run_id, attempt, Brief(request.context));
    if (!asked) {
      const auto error =
          Explain(asked.error(), backend.Jobs(), kKind, written, request.context, now);
      AddError(response.diagnostics, error,
               fmt::format("try run {} of {} again", spec.run_id, Describe(kKind, name)), Fields(),
               "run_id");
      response.state = StateOrNull(now);
      return;
    }
  }
  const auto done = AwaitRun(backend, written, attempt, wait, request.context, now);
  response.state = StateOrNull(now);
  if (!done) {
    AddError(response.diagnostics, WaitError(done.error(), spec), action, Fields(), "run_id");
    return;
  }
  if (now->status.phase == "Failed") {
    const auto what = fmt::format("Run {} of {}, attempt {},", spec.run_id, Describe(kKind, name),
                                  now->status.attempts);
    AddError(response.diagnostics, RunError(now->status.failure, what), action, Fields(), "run_id");
    return;
  }
  response.state = FillUnknown(request.plan, response.state);
}

// The job before a write, in `before`; none where there is none. False, with an error: the server
// did not tell.
bool Look(Backend& backend, const rest::Name& name, std::string_view verb,
          const framework::Context& context, framework::StateResponse& response,
          std::optional<api::Job>& before) {
  auto job = backend.Jobs().Get(name, Brief(context));
  if (job) {
    before = std::move(*job);
  } else if (job.error().code != base::Code::kNotFound) {
    Fail(job.error(), verb, name, response);
    return false;
  }
  return true;
}

// The other half of the class comment: the job stays, and the mark lets the coming create take it
// over.
base::Status LeaveForCreate(Backend& backend, const rest::Name& name, const rest::Call& call) {
  for (int attempt = 1;; ++attempt) {
    auto job = backend.Jobs().Get(name, call);
    if (!job)
      return job.error().code == base::Code::kNotFound ? base::Ok() : base::Err(job.error());
    job->metadata.annotations[std::string(api::kCreatingAnnotation)] = "true";
    const auto written = backend.Jobs().Put(*job, rest::PutMode::kReplace, call);
    if (written) return base::Ok();
    if (written.error().code != base::Code::kAborted || attempt == 5)
      return base::Err(written.error());
  }
}

}  // namespace

api::JobSpec JobSpecOf(const Value& plan) {
  api::JobSpec spec;
  spec.function = TextAt(plan, "function");
  spec.event_json = TextAt(plan, "event_json");
  spec.run_id = IntAt(plan, "run_id");
  spec.wait_timeout_sec = IntAt(plan, "wait_timeout_sec");
  spec.max_retries = IntAt(plan, "max_retries");
  return spec;
}

Value JobStateOf(const api::Job& job) {
  const auto& spec = job.spec;
  const auto& status = job.status;
  const auto text = [](const std::string& content) { return TextOrNull(content, Value::Null()); };
  return Value::Object({
      {"id", Value::String(job.metadata.ns + "/" + job.metadata.name)},
      {"namespace", Value::String(job.metadata.ns)},
      {"name", Value::String(job.metadata.name)},
      {"function", Value::String(spec.function)},
      {"event_json", Value::String(spec.event_json)},
      {"run_id", Value::Int(spec.run_id)},
      {"wait_timeout_sec", Value::Int(spec.wait_timeout_sec)},
      {"max_retries", Value::Int(spec.max_retries)},
      {"phase", Value::String(status.phase)},
      {"result_json", text(status.result_json)},
      {"error", status.failure ? text(ErrorText(*status.failure)) : Value::Null()},
      {"log_tail", text(status.log_tail)},
      {"attempts", Value::Int(status.attempts)},
      {"started_at", text(status.started_at)},
      {"finished_at", text(status.finished_at)},
  });
}

void JobResource::Create(const framework::ChangeRequest& request,
                         framework::StateResponse& response) const {
  auto* backend = Session::RemoteOf(request.context, response.diagnostics);
  if (backend == nullptr) return;
  const auto name = NameOf(request.plan);
  api::Job wanted;
  wanted.metadata.ns = name.ns;
  wanted.metadata.name = name.name;
  wanted.spec = JobSpecOf(request.plan);
  std::optional<api::Job> before;
  if (!Look(*backend, name, "create", request.context, response, before)) return;
  const auto written = backend->Jobs().Create(wanted, Brief(request.context));
  if (!written) return Fail(written.error(), "create", name, response);
  KeepOwner(response.private_data, written->metadata);
  Finish(*backend, before, *written, "create", request, response);
  ClearMarks(response.private_data);
  if (!response.diagnostics.HasError())
    EndCreate(backend->Jobs(), kKind, *written, Brief(request.context), response);
}

void JobResource::Read(const framework::ReadRequest& request,
                       framework::StateResponse& response) const {
  auto* backend = Session::ReaderOf(request.context, response.diagnostics);
  if (backend == nullptr) return;  // the state stays as it is
  const auto name = NameOf(request.state);
  const auto found = Fetch(backend->Jobs(), name, request.context);
  if (!found) return Fail(found.error(), "read", name, response);
  response.state = *found ? JobStateOf(**found) : Value::Null();
  if (!*found) return;
  SetLastRunId(response.private_data, (*found)->status.last_run_id);
  KeepOwnerIfNone(response.private_data, (*found)->metadata);
}

void JobResource::Update(const framework::ChangeRequest& request,
                         framework::StateResponse& response) const {
  ClearMarks(response.private_data);
  auto* backend = Session::RemoteOf(request.context, response.diagnostics);
  if (backend == nullptr) return;
  const auto name = NameOf(request.plan);
  std::optional<api::Job> before;
  if (!Look(*backend, name, "update", request.context, response, before)) return;
  const auto written = Replace(
      backend->Jobs(), name, [&](api::Job& job) { job.spec = JobSpecOf(request.plan); },
      Brief(request.context));
  if (!written) return Fail(written.error(), "update", name, response);
  Finish(*backend, before, *written, "update", request, response);
}

void JobResource::Delete(const framework::ChangeRequest& request,
                         framework::StateResponse& response) const {
  auto* backend = Session::RemoteOf(request.context, response.diagnostics);
  if (backend == nullptr) return;
  const auto name = NameOf(request.prior);
  const bool stays =
      !IsWanted(response.private_data) && Makes(response.private_data, name.ns + "/" + name.name);
  const auto done =
      stays ? LeaveForCreate(*backend, name, Brief(request.context))
            : Remove(backend->Jobs(), kKind, name, JobSpecOf(request.prior),
                     {request.context.DeadlineIn(kDeleteDeadline), request.context.stop}, response);
  if (!done) Fail(done.error(), "delete", name, response);
}

void JobResource::ImportState(const framework::ImportRequest& request,
                              framework::StateResponse& response) const {
  ImportByName(kKind, request, response);
}

}  // namespace sless::resources
