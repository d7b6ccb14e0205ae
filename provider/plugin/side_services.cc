#include "provider/plugin/side_services.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <set>
#include <vector>

#include "client/base/guarded.h"
#include "proto/goplugin/broker.grpc.pb.h"
#include "proto/goplugin/controller.grpc.pb.h"
#include "proto/goplugin/health.grpc.pb.h"
#include "proto/goplugin/stdio.grpc.pb.h"

namespace sless::plugin {
namespace {

// A stream that can be ended from outside.
class OpenStream {
 public:
  virtual ~OpenStream() = default;
  // Ends the stream; later calls do nothing. A claimed stream lives until End has called Finish.
  void End(const grpc::Status& status) {
    if (Claim()) FinishNow(status);
  }
  bool Claim() { return !ended_.exchange(true); }
  virtual void FinishNow(const grpc::Status& status) = 0;

 private:
  std::atomic<bool> ended_ = false;
};

class OpenStreams {
 public:
  // False: streams are being ended, so the caller ends this one itself.
  bool Add(OpenStream* stream) {
    return state_.With([&](State& state) {
      if (state.closed) return false;
      state.streams.insert(stream);
      return true;
    });
  }
  void Remove(OpenStream* stream) {
    state_.With([&](State& state) { state.streams.erase(stream); });
  }
  void FinishAll() {
    std::vector<OpenStream*> claimed;
    state_.With([&](State& state) {
      state.closed = true;
      for (OpenStream* stream : state.streams) {
        if (stream->Claim()) claimed.push_back(stream);
      }
    });
    // Not under the lock: a stream may be done, and removed, inside this call.
    for (OpenStream* stream : claimed) stream->FinishNow(grpc::Status::OK);
  }

 private:
  struct State {
    std::set<OpenStream*> streams;
    bool closed = false;
  };
  base::Guarded<State> state_;
};

// Sends nothing (or one first message) and stays open until the client leaves or the server stops.
template <class Message>
class SilentStream final : public grpc::ServerWriteReactor<Message>, public OpenStream {
 public:
  explicit SilentStream(OpenStreams& all) : all_(all) {}
  void Open() {
    if (!all_.Add(this)) End(grpc::Status::OK);
  }
  void Open(const Message& first) {
    first_ = first;
    this->StartWrite(&first_);
    Open();
  }
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override {
    all_.Remove(this);
    delete this;
  }
  void FinishNow(const grpc::Status& status) override { this->Finish(status); }

 private:
  OpenStreams& all_;
  Message first_;
};

class BrokerStream final : public grpc::ServerBidiReactor<::plugin::ConnInfo, ::plugin::ConnInfo>,
                           public OpenStream {
 public:
  explicit BrokerStream(OpenStreams& all) : all_(all) {}
  void Open() {
    StartRead(&message_);
    if (!all_.Add(this)) End(grpc::Status::OK);
  }
  void OnReadDone(bool ok) override {
    if (ok) {
      StartRead(&message_);
    } else {
      End(grpc::Status::OK);
    }
  }
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override {
    all_.Remove(this);
    delete this;
  }
  void FinishNow(const grpc::Status& status) override { Finish(status); }

 private:
  OpenStreams& all_;
  ::plugin::ConnInfo message_;
};

class Controller final : public ::plugin::GRPCController::CallbackService {
 public:
  explicit Controller(std::function<void()> on_shutdown) : on_shutdown_(std::move(on_shutdown)) {}
  grpc::ServerUnaryReactor* Shutdown(grpc::CallbackServerContext* context, const ::plugin::Empty*,
                                     ::plugin::Empty*) override {
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    on_shutdown_();
    return reactor;
  }

 private:
  std::function<void()> on_shutdown_;
};

class Stdio final : public ::plugin::GRPCStdio::CallbackService {
 public:
  explicit Stdio(OpenStreams& streams) : streams_(streams) {}
  grpc::ServerWriteReactor<::plugin::StdioData>* StreamStdio(
      grpc::CallbackServerContext*, const ::plugin::StdioRequest*) override {
    auto* stream = new SilentStream<::plugin::StdioData>(streams_);
    stream->Open();
    return stream;
  }

 private:
  OpenStreams& streams_;
};

class Broker final : public ::plugin::GRPCBroker::CallbackService {
 public:
  explicit Broker(OpenStreams& streams) : streams_(streams) {}
  grpc::ServerBidiReactor<::plugin::ConnInfo, ::plugin::ConnInfo>* StartStream(
      grpc::CallbackServerContext*) override {
    auto* stream = new BrokerStream(streams_);
    stream->Open();
    return stream;
  }

 private:
  OpenStreams& streams_;
};

using HealthAnswer = grpc::health::v1::HealthCheckResponse;

class Health final : public grpc::health::v1::Health::CallbackService {
 public:
  explicit Health(OpenStreams& streams) : streams_(streams) {}
  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  HealthAnswer* answer) override {
    auto* reactor = context->DefaultReactor();
    if (Known(request->service())) {
      answer->set_status(HealthAnswer::SERVING);
      reactor->Finish(grpc::Status::OK);
    } else {
      reactor->Finish(
          grpc::Status(grpc::StatusCode::NOT_FOUND, "only the service \"plugin\" is known"));
    }
    return reactor;
  }
  grpc::ServerWriteReactor<HealthAnswer>* Watch(
      grpc::CallbackServerContext*, const grpc::health::v1::HealthCheckRequest* request) override {
    auto* stream = new SilentStream<HealthAnswer>(streams_);
    HealthAnswer first;
    first.set_status(Known(request->service()) ? HealthAnswer::SERVING
                                               : HealthAnswer::SERVICE_UNKNOWN);
    stream->Open(first);
    return stream;
  }

 private:
  static bool Known(const std::string& service) { return service.empty() || service == "plugin"; }
  OpenStreams& streams_;
};

}  // namespace

struct SideServices::Impl {
  explicit Impl(std::function<void()> on_shutdown) : controller(std::move(on_shutdown)) {}
  OpenStreams streams;
  Controller controller;
  Stdio stdio{streams};
  Broker broker{streams};
  Health health{streams};
};

SideServices::SideServices(std::function<void()> on_shutdown)
    : impl_(std::make_unique<Impl>(std::move(on_shutdown))) {}
SideServices::~SideServices() = default;

void SideServices::Register(grpc::ServerBuilder& builder) {
  builder.RegisterService(&impl_->controller);
  builder.RegisterService(&impl_->stdio);
  builder.RegisterService(&impl_->broker);
  builder.RegisterService(&impl_->health);
}

void SideServices::FinishStreams() { impl_->streams.FinishAll(); }

}  // namespace sless::plugin
