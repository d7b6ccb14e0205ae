#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "client/base/json.h"
#include "server/runner/engine_impl.h"

namespace sless::runner {
namespace {

using base::Code;
using nlohmann::json;

// Both files have a line "oom_kill N".
int64_t OomKills(int fd) {
  char text[512];
  const ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
  if (n <= 0) return 0;
  text[n] = 0;
  const char* at = std::strstr(text, "oom_kill ");
  return at == nullptr ? 0 : std::strtoll(at + 9, nullptr, 10);
}

}  // namespace

void Engine::Impl::StartWorker() {
  worker_ready_ = heap_exhausted_ = expected_exit_ = false;
  replace_by_.reset();
  if (was_ready_) restart_until_ = clock_.Steady() + options_.restart_wait;
  oom_before_ = OomKills(options_.oom_fd);
  auto worker = WorkerLink::Start(
      options_.worker, {[this](const Frame& frame) { OnFrame(frame); },
                        [this](std::string_view stream, std::string_view line) {
                          if (line.find("JavaScript heap out of memory") != std::string_view::npos)
                            heap_exhausted_ = true;
                          Line(stream, OnlyCall(), line);
                        }});
  if (!worker) return StartFailed(worker.error());
  worker_ = std::move(*worker);
}

void Engine::Impl::StartFailed(base::Error error) {
  error.reason = out_of_memory_                           ? "OutOfMemory"
                 : error.code == Code::kResourceExhausted ? "NoResources"
                                                          : "StartFailed";
  error.code = Code::kFailedPrecondition;
  error.source.log_tail =
      tail_.ToVector();  // without our own line, which says what the message says
  System("the function cannot be started: " + error.message);
  worker_.reset();
  health_.With([&](Health& h) { h = {Phase::kStartFailed, error}; });
  RefuseWaiting();
  if (was_ready_) End(kExitStartFailed);  // after a replacement nobody asks /healthz any more
}

void Engine::Impl::End(int code) {
  exit_code_ = code;
  SetPhase(Phase::kEnded);
}

void Engine::Impl::ServeWorker() {
  worker_->Write();
  // A function that prints more than the server can take waits in its print, for a while.
  if (!log_.WaitsUntil()) worker_->Read();
  if (!worker_->broken().empty() && !expected_exit_) worker_->Kill();
  if (const auto exit = worker_->Reap()) OnWorkerExit(*exit);
}

void Engine::Impl::SendFrame(const json& head) {
  if (worker_) worker_->Send(base::DumpJson(head), "");
}

Engine::Impl::Call* Engine::Impl::OnlyCall() {
  return options_.concurrency == 1 && calls_.size() == 1 ? calls_.begin()->second.get() : nullptr;
}

void Engine::Impl::Line(std::string_view stream, Call* call, std::string_view line) {
  const std::string cut = base::Truncate(line, kMaxLine);
  if (call != nullptr) call->ring.Add(cut);
  tail_.Add(cut);
  log_.Write(stream, call == nullptr ? "" : call->in.request_id, cut);
}

void Engine::Impl::OnFrame(const Frame& frame) {
  const auto head = base::ParseJson(frame.head);
  if (!head || !head->is_object()) {
    worker_->Break("sent a frame whose head is no JSON object");
    return;
  }
  const std::string type = TextOf(*head, "type");
  const auto it = calls_.find(IntOf(*head, "id"));
  Call* call = it == calls_.end() ? nullptr : it->second.get();
  if (type == "log") {
    Line(TextOf(*head, "stream") == "stderr" ? "stderr" : "stdout", call, TextOf(*head, "line"));
  } else if (type == "result" && call != nullptr) {
    OnResult(*call, frame.payload);
  } else if (type == "error" && call != nullptr) {
    OnError(*call, ReadWorkerError(*head));
  } else if (type == "ready") {
    SendFrame({{"type", "ping"}, {"id", 0}});
  } else if (type == "pong" && !worker_ready_) {
    OnReady();
  } else if (type == "pong" && call != nullptr && call->answered) {
    call->heard = true;
    AdmitWaiting();
  } else if (type == "ping") {
    SendFrame({{"type", "pong"}, {"id", IntOf(*head, "id")}});
  } else if (type == "init_error") {
    OnInitError(ReadWorkerError(*head));
  }
  // An answer of a call that is over, or a word of a newer worker: nothing to do.
}

void Engine::Impl::OnReady() {
  worker_ready_ = was_ready_ = true;
  if (phase() == Phase::kStarting) SetPhase(Phase::kReady);
  AdmitWaiting();
}

void Engine::Impl::OnInitError(const WorkerError& error) {
  for (const auto& line : error.trace) Line("stderr", nullptr, line);
  init_error_ = base::Error{Code::kFailedPrecondition, error.message, "", "", error.source};
  worker_->Kill();  // it ends by itself, but not by our leave; its end brings the failure out
}

std::string Engine::Impl::Cause(const base::ExitStatus& exit) {
  const std::string limit =
      fmt::format("memory_mb is {}; raise it or use less", options_.memory_mb);
  if (OomKills(options_.oom_fd) > oom_before_ && exit.signal == SIGKILL) {
    out_of_memory_ = true;
    return "was killed: out of memory (" + limit + ")";
  }
  if (heap_exhausted_) {
    out_of_memory_ = true;
    return "ended: the JavaScript heap is out of memory (" + limit + ")";
  }
  // Every process closes its channel when it ends; only one that was killed for it did so before.
  const auto& broken = worker_->broken();
  return broken.empty() || exit.signal != SIGKILL ? exit.Text() : broken + " and was killed";
}

void Engine::Impl::OnWorkerExit(const base::ExitStatus& exit) {
  const bool expected = expected_exit_;
  worker_->ReadRest();  // results that it sent before
  const std::string cause = Cause(exit);
  worker_.reset();
  if (drain_until_) {
    FailAll(MakeError(Code::kInternal, "ReplicaDied",
                      fmt::format("the function's process {} in the middle of the call", cause)));
    return End(kExitDrained);
  }
  if (init_error_) return StartFailed(*std::exchange(init_error_, std::nullopt));
  if (expected) {
    DropCalls();
    return StartWorker();
  }
  if (!worker_ready_) {
    const std::string file = options_.entrypoint.substr(0, options_.entrypoint.rfind('.'));
    return StartFailed(base::Error{Code::kFailedPrecondition,
                                   fmt::format("the process {} while it loaded {}", cause, file),
                                   "",
                                   "",
                                   {}});
  }
  const std::string line = fmt::format("the function's process {}", cause);
  System(line);
  const int in_call = calls_.empty() ? 0 : kExitInCall;
  FailAll(MakeError(Code::kInternal, "ReplicaDied", line + " in the middle of the call"));
  RefuseWaiting();
  End((out_of_memory_ ? kExitOutOfMemory : kExitWorkerDied) + in_call);
}

}  // namespace sless::runner
