#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "server/gateway/gateway_impl.h"

namespace sless::gateway {
namespace {

using base::Code;
constexpr int kMaxTries = 8;
constexpr std::string_view kNotBegun =
    "NotBegun";  // inner reason: the handler did not begin, try another slot
// The runner measures timeout_sec too, and its answer says more than ours.
constexpr auto kRunnerFirst = std::chrono::milliseconds(250);

base::Error Explain(const base::Error& error, const FunctionState& function,
                    const runtime::ReplicaSpec& spec) {
  if (error.code == Code::kDeadlineExceeded) {
    return {Code::kDeadlineExceeded,
            fmt::format("function {} did not answer within timeout_sec = {}; the call was ended",
                        function.Id(), spec.timeout_sec),
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

}  // namespace

http::Task<base::Result<GatewayImpl::Attempt>> GatewayImpl::TryOnce(
    boost::asio::any_io_executor executor, std::shared_ptr<FunctionState> function,
    const Outgoing& out, std::stop_token gone) {
  auto slot = co_await activator_.Acquire(executor, function, gone);
  if (!slot) co_return base::Err(slot.error());
  Attempt attempt;
  attempt.revision = slot->revision();
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::seconds(slot->spec().timeout_sec) + kRunnerFirst;
  attempt.call = upstream_.Call(executor, slot->endpoint(), deadline);
  // `gone` may be requested on another thread (a job that is cancelled); the call is touched on its
  // own only.
  auto* call = attempt.call.get();
  const auto alive = std::make_shared<http::UpstreamCall*>(call);
  std::stop_callback on_gone(gone, [executor, weak = std::weak_ptr<http::UpstreamCall*>(alive)] {
    boost::asio::post(executor, [weak] {
      if (const auto held = weak.lock()) (*held)->Cancel();
    });
  });
  auto status = co_await call->Open(out.method, out.target, out.headers, out.body.size());
  if (!status && status.error().reason == "NotStarted") {
    slot->Suspect();
    co_return base::Err(Code::kUnavailable, status.error().message, "", std::string(kNotBegun));
  }
  // A write that fails may still have an answer to read: the runner said no before it read all.
  if (status) status = co_await call->WriteBody(out.body);
  auto head = co_await call->ReadHead();
  if (!head) {
    const auto& error = head.error();
    if (error.reason == "ConnectionLost") slot->Suspect();
    co_return base::Err(Explain(error, *function, slot->spec()));
  }
  const auto refused = head->headers.Get("X-Sless-Error");
  if (refused == "Busy" || refused == "Draining") {
    if (refused == "Draining") slot->Suspect();  // a busy one has its place free a moment later
    co_return base::Err(Code::kUnavailable, "the replica refused the call", "",
                        std::string(kNotBegun));
  }
  if (refused == "ReplicaDied") slot->Suspect();
  // The handler has ended when the head is here: the slot goes to the next call while a slow client
  // still reads the answer.
  attempt.head = std::move(*head);
  co_return attempt;
}

http::Task<base::Result<GatewayImpl::Attempt>> GatewayImpl::Send(
    boost::asio::any_io_executor executor, std::shared_ptr<FunctionState> function,
    const Outgoing& out, std::stop_token gone) {
  for (int tries = 1;; ++tries) {
    auto attempt = co_await TryOnce(executor, function, out, gone);
    if (attempt || attempt.error().reason != kNotBegun) co_return attempt;
    if (tries == kMaxTries) {
      co_return base::Err(
          Code::kUnavailable,
          fmt::format(
              "function {}: {} replicas in a row refused the call before it began; try again",
              function->Id(), tries),
          "", "Unavailable");
    }
    boost::asio::steady_timer pause(executor, std::chrono::milliseconds(5 << tries));
    co_await pause.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
}

}  // namespace sless::gateway
