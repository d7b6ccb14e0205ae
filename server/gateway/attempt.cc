#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "server/gateway/gateway_impl.h"

namespace sless::gateway {
namespace {

using base::Code;
constexpr int kMaxTries = 8;
// Inner reasons: the handler did not begin, try another slot; CallBody::Read reached its `until`.
constexpr std::string_view kNotBegun = "NotBegun", kNotYet = "NotYet";
// A piece of a body is passed on once it has first_bytes, or so long after the one before. While
// others wait for a place, one that is smaller gives the place back.
constexpr auto kPieceWait = std::chrono::milliseconds(5);
// The runner measures timeout_sec too, and its answer says more than ours.
constexpr auto kRunnerFirst = std::chrono::milliseconds(250);
// What a call that is waited for to its end may need beside its own time and that of another call
// of the process, which may run on before the process is killed: a place, and the waits for calls
// to end by themselves.
constexpr auto kEndFirst = std::chrono::seconds(10);

// A call as stop callbacks see it; they run on other threads, the call is touched on its own only.
struct Live {
  http::UpstreamCall* call;
  bool sent = false;
};

std::function<void()> OnItsThread(boost::asio::any_io_executor executor,
                                  const std::shared_ptr<Live>& live, void (*what)(Live&)) {
  return [executor, weak = std::weak_ptr<Live>(live), what] {
    boost::asio::post(executor, [weak, what] {
      if (const auto held = weak.lock()) what(*held);
    });
  };
}

}  // namespace

base::Error GatewayImpl::Explain(const base::Error& error, const FunctionState& function,
                                 int64_t timeout_sec) {
  if (error.code == Code::kDeadlineExceeded) {
    return {Code::kDeadlineExceeded,
            fmt::format("function {} did not answer within timeout_sec = {}; the call was ended",
                        function.Id(), timeout_sec),
            "",
            "Timeout",
            {}};
  }
  if (error.code == Code::kCancelled) return error;
  return {Code::kInternal,
          fmt::format("the process of function {} ended in the middle of the call", function.Id()),
          "",
          "ReplicaDied",
          {}};
}

// The body to the replica, as it comes. Nothing of the function runs before it is whole there.
http::Task<base::Status> GatewayImpl::Pass(http::UpstreamCall& call, FunctionState& function,
                                           const Outgoing& out,
                                           std::chrono::steady_clock::time_point until) {
  for (size_t passed = 0;;) {
    auto status = co_await call.WriteBody(std::string_view(out.body).substr(passed));
    if (!status) co_return status;
    passed = out.body.size();
    if (out.more == nullptr || out.more->whole()) break;
    const auto soon = std::chrono::steady_clock::now() + kPieceWait;
    status = co_await out.more->Read(passed + options_.first_bytes, std::min(until, soon));
    if (status) continue;
    if (status.error().reason != kNotYet || soon >= until || function.Waited()) co_return status;
  }
  auto status = co_await call.FinishBody();
  co_return status;
}

http::Task<base::Result<GatewayImpl::Attempt>> GatewayImpl::TryOnce(
    boost::asio::any_io_executor executor, std::shared_ptr<FunctionState> function,
    const Outgoing& out, std::stop_token gone) {
  auto slot = co_await activator_.Acquire(executor, function, gone);
  if (!slot) co_return base::Err(slot.error());
  Attempt attempt;
  attempt.revision = slot->revision();
  attempt.timeout_sec = slot->spec().timeout_sec;
  if (gone.stop_requested()) co_return base::Err(Code::kCancelled, "the caller is gone");
  const auto timeout = std::chrono::seconds(slot->spec().timeout_sec);
  const auto now = std::chrono::steady_clock::now();
  const bool more = out.more != nullptr && !out.more->whole();
  const auto whole_by = now + (more ? options_.upload_patience : std::chrono::milliseconds(0));
  const auto deadline = whole_by + (out.give_up ? timeout * 2 + kEndFirst : timeout + kRunnerFirst);
  attempt.call = upstream_.Call(executor, slot->endpoint(), deadline);
  auto* call = attempt.call.get();
  const auto live = std::make_shared<Live>(Live{call});
  const auto cancel = [](Live& l) { l.call->Cancel(); };
  const auto end = [](Live& l) {
    if (l.sent) l.call->FinishSending();
  };
  std::stop_callback on_gone(
      gone, out.give_up ? OnItsThread(executor, live, end) : OnItsThread(executor, live, cancel));
  std::stop_callback on_give_up(out.give_up.value_or(std::stop_token()),
                                OnItsThread(executor, live, cancel));
  std::optional<uint64_t> length = out.body.size();
  if (more) length = out.more->length();
  auto status = co_await call->Open(out.method, out.target, out.headers, length);
  if (!status && status.error().reason == "NotStarted") {
    slot->Suspect();
    co_return base::Err(Code::kUnavailable, status.error().message, "", std::string(kNotBegun));
  }
  if (status) status = co_await Pass(*call, *function, out, whole_by);
  if (!status && (status.error().reason == kNotYet || (more && out.more->failed())))
    co_return base::Err(status.error());
  // A write that fails may still have an answer to read: the runner said no before it read all.
  const bool passed = status.has_value();
  live->sent = true;
  if (out.give_up && gone.stop_requested()) call->FinishSending();
  base::Result<http::UpstreamHead> head = tl::unexpected<base::Error>(base::Error{});
  if (passed || status.error().reason == "ConnectionLost") {
    head = co_await call->ReadHead();
  } else {
    head = base::Err(status.error());
  }
  if (!head) {
    auto explained = Explain(head.error(), *function, slot->spec().timeout_sec);
    if (head.error().reason == "ConnectionLost") {
      slot->Suspect();
      if (!passed)
        explained = {Code::kUnavailable, head.error().message, "", std::string(kNotBegun), {}};
    }
    // The runner ends a call in time and says so; one that says nothing is of no use.
    if (head.error().code == Code::kDeadlineExceeded) slot->Refused();
    co_return base::Err(std::move(explained));
  }
  const auto refused = head->headers.Get("X-Sless-Error");
  if (refused == "Busy" || refused == "Draining") {
    // A busy one has its place free a moment later.
    refused == "Draining" ? slot->Suspect() : slot->Refused();
    co_return base::Err(Code::kUnavailable, "the replica refused the call", "",
                        std::string(kNotBegun));
  }
  refused == "ReplicaDied" ? slot->Suspect() : slot->Served();
  // The handler has ended when the head is here: the slot goes to the next call while a slow client
  // still reads the answer.
  attempt.head = std::move(*head);
  co_return attempt;
}

http::Task<base::Result<GatewayImpl::Attempt>> GatewayImpl::Send(
    boost::asio::any_io_executor executor, std::shared_ptr<FunctionState> function,
    const Outgoing& out, std::stop_token gone) {
  for (int tries = 1;;) {
    auto attempt = co_await TryOnce(executor, function, out, gone);
    if (!attempt && attempt.error().reason == kNotYet) {
      const auto rest = co_await out.more->Read();
      if (!rest) co_return base::Err(rest.error());
      continue;
    }
    if (attempt || attempt.error().reason != kNotBegun) co_return attempt;
    if (tries == kMaxTries) {
      co_return base::Err(
          Code::kUnavailable,
          fmt::format(
              "a call of function {} was sent {} times, and each time it was refused before it "
              "began; try again",
              function->Id(), tries),
          "", "Unavailable");
    }
    boost::asio::steady_timer pause(executor, std::chrono::milliseconds(5 << tries++));
    co_await pause.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
}

}  // namespace sless::gateway
