#include "provider/resources/function_resource.h"

#include <fmt/format.h>

#include "provider/framework/timeouts.h"
#include "provider/resources/common.h"
#include "provider/resources/function_source.h"
#include "provider/resources/function_state.h"
#include "provider/resources/values.h"

namespace sless::resources {

using cty::Value;
using std::chrono::seconds;

namespace {

constexpr std::string_view kKind = "function";

constexpr seconds kDeleteTimeout{120};

// What can be raised where the time ran out.
std::string TimeoutAdvice(std::chrono::nanoseconds timeout, std::string_view default_text) {
  return fmt::format(
      "The timeouts block of the resource sets how long to wait (here {} s at most, by default "
      "{}).",
      std::chrono::duration<double>(timeout).count(), default_text);
}

// One create or update: what is wanted, where it goes, how long it may take.
struct Change {
  const framework::ChangeRequest& request;
  framework::StateResponse& response;
  Backend& backend;
  api::FunctionSpec spec;
  rest::Name name;
  std::chrono::nanoseconds timeout;
  rest::Call call;

  std::string Advice() const {
    return TimeoutAdvice(timeout, "build_timeout_sec + 60 s and at least 120 s");
  }
  void Fail(const base::Error& error, std::string_view verb) {
    AddError(response.diagnostics, error, fmt::format("{} {}", verb, Describe(kKind, name)),
             FunctionFields(spec.source));
  }
  // Of a call that may have taken all the time that there was.
  void FailCall(base::Error error, std::string_view verb) {
    if (error.code == base::Code::kDeadlineExceeded && call.deadline.Passed(request.context.clock))
      error.message += "\n\n" + Advice();
    Fail(error, verb);
  }
};

Change MakeChange(const framework::ChangeRequest& request, framework::StateResponse& response,
                  Backend& backend, std::string_view operation) {
  const auto fallback =
      std::max(seconds(IntAt(request.plan, "build_timeout_sec") + 60), seconds(120));
  const auto timeout = framework::TimeoutOf(request.plan, operation, fallback);
  return {request,
          response,
          backend,
          FunctionSpecOf(request.plan),
          NameOf(request.plan),
          timeout,
          rest::Call{request.context.DeadlineIn(timeout), request.context.stop}};
}

// Reads the source again and sends it up, unless the server has this code. Sets spec.source.hash.
bool SendCode(Change& change) {
  auto& spec = change.spec;
  auto loaded = LoadSource(spec.source, spec.runtime, spec.entrypoint, change.response.diagnostics);
  if (!loaded) return false;
  if (!spec.source.hash.empty() && loaded->hash != spec.source.hash) {
    change.response.diagnostics.AddError(cty::Path(SourceAttribute(spec.source)),
                                         "Source changed after the plan",
                                         fmt::format("The plan is for code with the hash {}, but "
                                                     "the source now has {}. Plan and apply again.",
                                                     spec.source.hash, loaded->hash));
    return false;
  }
  spec.source.hash = loaded->hash;
  if (spec.source.type == "code") return true;  // travels in the spec
  const auto sent = change.backend.UploadCode(
      change.name.ns, loaded->hash, source::ZipStream(std::move(loaded->tree)), change.call);
  if (!sent) {
    auto error = sent.error();
    if (error.field.empty()) error.field = "/spec/source";
    change.FailCall(error, "upload the code of");
  }
  return sent.has_value();
}

// Keeps what the server has in state; nothing: it has nothing of this resource.
void KeepState(Change& change, const std::optional<api::Function>& function) {
  change.response.state =
      function ? FunctionStateOf(*function, change.request.plan) : Value::Null();
}

// Fails a wait for what was `written`. `now`: the function as it is, where that is known.
void FailWait(Change& change, base::Error error, std::string_view verb,
              const api::Function& written, const std::optional<api::Function>& now) {
  if (error.code == base::Code::kDeadlineExceeded) {
    if (now && now->status.latest_revision > now->status.revision) {
      // What the revision that is waited for has said so far; not one of an earlier apply.
      const rest::Call brief{change.request.context.DeadlineIn(seconds(5)),
                             change.request.context.stop};
      auto lines = change.backend.LastLines(change.name, now->status.latest_revision,
                                            written.metadata.updated_at, brief);
      if (lines) error.source.log_tail = std::move(*lines);
    }
    error.message += fmt::format(
        "\n\nThe server goes on with it; {}. {}",
        verb == "create"
            ? "the next apply makes the function anew, or waits for this one where `terraform "
              "untaint` was called before"
            : "the next apply waits for it again",
        change.Advice());
  } else if (error.code == base::Code::kCancelled) {
    error.message +=
        "\n\nStopped on request. The server goes on with it; the next apply finishes what is left "
        "to do";
  }
  change.Fail(error, verb);
}

// Waits until what was written serves, and fills the state. False: it does not, and the diagnostics
// say so.
bool Await(Change& change, const api::Function& written, std::string_view verb) {
  std::optional<api::Function> ready;
  const auto done = AwaitWritten(change.backend.Functions(), kKind, written, change.call,
                                 change.request.context, ready);
  KeepState(change, ready);
  if (!done) {
    FailWait(change, done.error(), verb, written, ready);
    return false;
  }
  if (ready->status.phase == "Ready") {
    change.response.state = FillUnknown(change.request.plan, change.response.state);
    return true;
  }
  auto error =
      FailureError(ready->status.failure,
                   fmt::format("The revision of {}", Describe(kKind, change.name)), "/spec/source");
  if (ready->status.serving) {
    error.message += fmt::format(". Revision {} serves on", ready->status.revision);
  }
  change.Fail(error, verb);
  return false;
}

// A server does not try a failed generation again by itself, and a PUT of the same spec is no
// change.
bool HasFailedAlready(const api::Function& function) {
  return function.status.phase == "Failed" &&
         function.status.observed_generation >= function.metadata.generation;
}

// Has what was written tried again where it had failed before. False, with an error: that could not
// be asked for.
bool RetryIfFailed(Change& change, const api::Function& written, std::string_view verb) {
  if (!HasFailedAlready(written)) return true;
  const auto asked = change.backend.RetryFunction(change.name, change.call);
  if (asked) return true;
  std::optional<api::Function> now = written;
  const auto error = Explain(asked.error(), change.backend.Functions(), kKind, written,
                             change.request.context, now);
  KeepState(change, now);
  change.FailCall(error, verb);
  return false;
}

}  // namespace

void FunctionResource::Create(const framework::ChangeRequest& request,
                              framework::StateResponse& response) const {
  auto* backend = Session::RemoteOf(request.context, response.diagnostics);
  if (backend == nullptr) return;
  auto change = MakeChange(request, response, *backend, "create");
  if (!SendCode(change)) return;

  api::Function wanted;
  wanted.metadata.ns = change.name.ns;
  wanted.metadata.name = change.name.name;
  wanted.spec = change.spec;
  KeepEmpty(request.plan, wanted.metadata);
  const auto written = backend->Functions().Create(wanted, change.call);
  if (!written) {
    change.FailCall(written.error(), "create");
    return;
  }
  KeepOwner(response.private_data, written->metadata);
  // It may have been taken over from an interrupted create, which had failed.
  if (!RetryIfFailed(change, *written, "create") || !Await(change, *written, "create")) return;
  EndCreate(backend->Functions(), kKind, *written, change.call, response);
}

void FunctionResource::Read(const framework::ReadRequest& request,
                            framework::StateResponse& response) const {
  auto* backend = Session::ReaderOf(request.context, response.diagnostics);
  if (backend == nullptr) return;  // the state stays as it is
  const auto name = NameOf(request.state);
  const auto found = Fetch(backend->Functions(), name, request.context);
  if (!found) {
    AddError(response.diagnostics, found.error(), "read " + Describe(kKind, name), {});
  } else {
    response.state = *found ? FunctionStateOf(**found, request.state) : Value::Null();
    if (*found) KeepOwnerIfNone(response.private_data, (*found)->metadata);
  }
}

void FunctionResource::Update(const framework::ChangeRequest& request,
                              framework::StateResponse& response) const {
  auto* backend = Session::RemoteOf(request.context, response.diagnostics);
  if (backend == nullptr) return;
  if (request.plan.With("timeouts", Value::Null()) ==
      request.prior.With("timeouts", Value::Null())) {
    response.state = request.plan;  // timeouts alone: nothing for the server
    return;
  }
  auto change = MakeChange(request, response, *backend, "update");
  // The text of source_code is in no upload, so another kind of source may need one although the
  // hash stays.
  const bool other_kind = SourceOf(request.prior).type != change.spec.source.type;
  if ((other_kind || Differs(request.prior, request.plan, {"source_hash"})) && !SendCode(change))
    return;

  const auto edit = [&](api::Function& function) {
    function.spec = change.spec;
    KeepEmpty(request.plan, function.metadata);
  };
  const auto written = Replace(backend->Functions(), change.name, edit, change.call);
  if (!written) {
    change.FailCall(written.error(), "update");
    return;
  }
  if (RetryIfFailed(change, *written, "update")) Await(change, *written, "update");
}

void FunctionResource::Delete(const framework::ChangeRequest& request,
                              framework::StateResponse& response) const {
  auto* backend = Session::RemoteOf(request.context, response.diagnostics);
  if (backend == nullptr) return;
  const auto name = NameOf(request.prior);
  const auto timeout = framework::TimeoutOf(request.prior, "delete", kDeleteTimeout);
  const rest::Call call{request.context.DeadlineIn(timeout), request.context.stop};
  auto gone =
      Remove(backend->Functions(), kKind, name, FunctionSpecOf(request.prior), call, response);
  if (!gone && gone.error().code == base::Code::kDeadlineExceeded &&
      call.deadline.Passed(request.context.clock)) {
    gone.error().message += "\n\n" + TimeoutAdvice(timeout, "120 s");
  }
  if (!gone) AddError(response.diagnostics, gone.error(), "delete " + Describe(kKind, name), {});
}

void FunctionResource::ImportState(const framework::ImportRequest& request,
                                   framework::StateResponse& response) const {
  ImportByName(kKind, request, response);
}

}  // namespace sless::resources
