#pragma once

// Include in .cc files only (coroutines).

#include "client/base/guarded.h"
#include "server/gateway/activator.h"
#include "server/gateway/call_body.h"
#include "server/gateway/gateway.h"
#include "server/http/stream.h"
#include "server/http/upstream.h"

namespace sless::gateway {

class GatewayImpl final : public Gateway {
 public:
  GatewayImpl(Deps deps, GatewayOptions options);
  ~GatewayImpl() override;

  void RegisterRoutes(http::Router& router) override;
  void Restored() override { activator_.Restored(); }
  void Stop() override { activator_.Stop(); }

  base::Result<Prepared> Prepare(const runtime::RevisionKey& revision,
                                 const runtime::ReplicaSpec& spec,
                                 const Scaling& scaling) override {
    return activator_.Prepare(revision, spec, scaling);
  }
  void Abandon(const runtime::RevisionKey& revision) override { activator_.Abandon(revision); }
  void Publish(FunctionRoute route) override { activator_.Publish(std::move(route)); }
  void Remove(const std::string& ns, const std::string& name) override {
    activator_.Remove(ns, name);
  }
  Load Observe(const std::string& ns, const std::string& name) const override {
    return activator_.Observe(ns, name);
  }
  void OnChange(std::function<void(const std::string&, const std::string&)> callback) override {
    activator_.OnChange(std::move(callback));
  }

  base::Result<EventResult> Invoke(const EventCall& call, std::stop_token stop) override;

 private:
  /// One try of one call on one replica, up to the head of its answer.
  struct Attempt {
    std::unique_ptr<http::UpstreamCall> call;
    http::UpstreamHead head;
    int64_t revision = 0;
    int64_t timeout_sec = 0;
  };
  struct Outgoing {
    std::string method;
    std::string target;
    http::Headers headers;
    const std::string& body;  ///< as far as it has come
    CallBody* more;           ///< where more of it comes from; null: that is all
    /// Set: `gone` ends the call at its replica, and its answer, which comes once the call has
    /// ended, is waited for until this one is requested.
    std::optional<std::stop_token> give_up;
  };

  // gateway.cc
  http::Task<std::shared_ptr<FunctionState>> FindOrWait(boost::asio::any_io_executor executor,
                                                        std::string ns, std::string name);
  static base::Error NoSuchFunction(std::string_view ns, std::string_view name);
  void Count(FunctionState& function, std::string_view source, std::string_view outcome,
             std::chrono::steady_clock::time_point began);
  // attempt.cc: slot, send, retry where the call did not begin
  http::Task<base::Result<Attempt>> Send(boost::asio::any_io_executor executor,
                                         std::shared_ptr<FunctionState> function,
                                         const Outgoing& out, std::stop_token gone);
  /// Why a call broke off, in the words of invoker.h.
  static base::Error Explain(const base::Error& error, const FunctionState& function,
                             int64_t timeout_sec);
  http::Task<base::Status> Pass(http::UpstreamCall& call, FunctionState& function,
                                const Outgoing& out, std::chrono::steady_clock::time_point until);
  http::Task<base::Result<Attempt>> TryOnce(boost::asio::any_io_executor executor,
                                            std::shared_ptr<FunctionState> function,
                                            const Outgoing& out, std::stop_token gone);
  // proxy.cc: /fn/
  http::Task<void> ServeFunction(http::Exchange& exchange);
  http::Task<base::Status> Admit(http::Exchange& exchange, const FunctionRoute& route,
                                 http::Response& refusal, bool& with_token);
  http::Task<base::Status> CheckToken(http::Exchange& exchange);
  http::Task<void> LeaveOutDetails(http::Exchange& exchange, base::Error& error);
  http::Task<bool> Relay(http::Exchange& exchange, Attempt attempt);
  // event_call.cc: jobs, cron, invoke
  /// What a runner answered. May be large: parsed where a thread may be busy, see ReadEvent.
  struct RawEvent {
    int status = 0;
    std::string reason;
    std::string body;
    int64_t revision = 0;
  };
  static base::Result<EventResult> ReadEvent(const base::Result<RawEvent>& raw);
  http::Task<base::Result<RawEvent>> CallEvent(boost::asio::any_io_executor executor,
                                               EventCall call, std::stop_token gone,
                                               std::optional<std::stop_token> give_up);
  http::Task<void> ServeInvoke(http::Exchange& exchange);

  Deps deps_;
  GatewayOptions options_;
  http::Upstream upstream_;
  Activator activator_;
  std::atomic<size_t> buffered_{0};
  observe::Family<observe::Counter>& calls_;
  observe::Family<observe::Histogram>& durations_;
};

}  // namespace sless::gateway
