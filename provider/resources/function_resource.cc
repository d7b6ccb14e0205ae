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

// One create or update: what is wanted, where it goes, how long it may take.
struct Change {
  const framework::ChangeRequest& request;
  framework::StateResponse& response;
  Backend& backend;
  api::FunctionSpec spec;
  rest::Name name;
  rest::Call call;

  std::string Action(std::string_view verb) const {
    return fmt::format("{} {}", verb, Describe(kKind, name));
  }
  void Fail(const base::Error& error, std::string_view verb) {
    AddError(response.diagnostics, error, Action(verb), FunctionFields(spec.source));
  }
};

seconds DefaultTimeout(const Value& plan) {
  return std::max(seconds(IntAt(plan, "build_timeout_sec") + 60), seconds(120));
}

Change MakeChange(const framework::ChangeRequest& request, framework::StateResponse& response,
                  Backend& backend, std::string_view operation) {
  const auto timeout = framework::TimeoutOf(request.plan, operation, DefaultTimeout(request.plan));
  return {request,
          response,
          backend,
          FunctionSpecOf(request.plan),
          NameOf(request.plan),
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
    change.Fail(error, "upload the code of");
  }
  return sent.has_value();
}

// Keeps what the server has in state, beside the error.
void KeepState(Change& change, const api::Function& function) {
  change.response.state = FunctionStateOf(function, change.request.plan);
}

// The state after an error that left us without an answer: the newest the server tells in a moment,
// else what was seen last.
void KeepNewestState(Change& change, const api::Function& last_seen) {
  const rest::Call brief{change.request.context.DeadlineIn(seconds(2)),
                         change.request.context.stop};
  const auto now = change.backend.Functions().Get(change.name, brief);
  KeepState(change, now ? *now : last_seen);
}

void FailWait(Change& change, const base::Error& error, std::string_view verb,
              const api::Function& last_seen) {
  auto told = error;
  if (error.code == base::Code::kDeadlineExceeded) {
    told.message += fmt::format(
        "\n\nThe server goes on with it; {}. The timeouts block of the resource sets how long to "
        "wait (here {} s at most, by default build_timeout_sec + 60 s and at least 120 s).",
        verb == "create"
            ? "the next apply makes the function anew, or waits for this one where `terraform "
              "untaint` was called before"
            : "the next apply waits for it again",
        std::chrono::duration_cast<seconds>(
            framework::TimeoutOf(change.request.plan, verb == "create" ? "create" : "update",
                                 DefaultTimeout(change.request.plan)))
            .count());
  } else if (error.code == base::Code::kCancelled) {
    told.message +=
        "\n\nStopped on request. The server goes on with it; the next apply finishes what is left "
        "to do";
  }
  change.Fail(told, verb);
  KeepNewestState(change, last_seen);
}

// Waits until the wanted generation serves. False: it does not, and diagnostics and state say so.
bool Await(Change& change, const api::Function& written, std::string_view verb,
           api::Function& ready) {
  auto seen =
      change.backend.Functions().WaitReady(change.name, written.metadata.generation, change.call);
  if (!seen) {
    FailWait(change, seen.error(), verb, written);
    return false;
  }
  ready = std::move(*seen);
  if (ready.status.phase == "Ready") return true;
  auto error =
      FailureError(ready.status.failure,
                   fmt::format("The revision of {}", Describe(kKind, change.name)), "/spec/source");
  if (ready.status.serving) {
    error.message += fmt::format(". Revision {} serves on", ready.status.revision);
  }
  change.Fail(error, verb);
  KeepState(change, ready);
  return false;
}

// A server does not try a failed generation again by itself, and a PUT of the same spec is no
// change.
bool HasFailedAlready(const api::Function& function) {
  return function.status.phase == "Failed" &&
         function.status.observed_generation >= function.metadata.generation;
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
  auto written = backend->Functions().Create(wanted, change.call);
  // Taken over from an interrupted create, which had failed: try again.
  if (written && HasFailedAlready(*written))
    written = backend->RetryFunction(change.name, change.call);
  if (!written) {
    change.Fail(written.error(), "create");
    return;
  }
  KeepOwner(response.private_data, written->metadata);
  KeepState(change, *written);
  api::Function ready;
  if (!Await(change, *written, "create", ready)) return;
  response.state = FillUnknown(request.plan, FunctionStateOf(ready, request.plan));
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
  auto written = Replace(backend->Functions(), change.name, edit, change.call);
  if (written && HasFailedAlready(*written))
    written = backend->RetryFunction(change.name, change.call);
  if (!written) {
    change.Fail(written.error(), "update");
    return;
  }
  api::Function ready;
  if (!Await(change, *written, "update", ready)) return;
  response.state = FillUnknown(request.plan, FunctionStateOf(ready, request.plan));
}

void FunctionResource::Delete(const framework::ChangeRequest& request,
                              framework::StateResponse& response) const {
  auto* backend = Session::RemoteOf(request.context, response.diagnostics);
  if (backend == nullptr) return;
  const auto name = NameOf(request.prior);
  const auto timeout = framework::TimeoutOf(request.prior, "delete", seconds(120));
  const rest::Call call{request.context.DeadlineIn(timeout), request.context.stop};
  const auto gone =
      Remove(backend->Functions(), kKind, name, FunctionSpecOf(request.prior), call, response);
  if (!gone) AddError(response.diagnostics, gone.error(), "delete " + Describe(kKind, name), {});
}

void FunctionResource::ImportState(const framework::ImportRequest& request,
                                   framework::StateResponse& response) const {
  ImportByName(kKind, request, response);
}

}  // namespace sless::resources
