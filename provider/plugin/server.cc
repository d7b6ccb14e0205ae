#include "provider/plugin/server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "provider/framework/engine/engine.h"
#include "provider/plugin/running_calls.h"
#include "provider/plugin/side_services.h"

namespace sless::plugin {
namespace {

using base::Code;
using base::Err;

// As large as the servers of other SDKs take: a state with big texts must pass.
constexpr int kMaxMessageBytes = 256 << 20;

std::shared_ptr<grpc::ServerCredentials> Credentials(const Server::Options& options) {
  if (!options.identity) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = options.client_certificate;
  tls.pem_key_cert_pairs.push_back(
      {options.identity->key_pem.Reveal(), options.identity->certificate_pem});
  return grpc::SslServerCredentials(tls);
}

class GrpcServer final : public Server {
 public:
  // Takes the provider, the callback and the listener out of the options.
  explicit GrpcServer(Options& options)
      : engine_(std::move(options.provider), options.clock),
        side_services_(std::move(options.on_shutdown)),
        service_(MakeProviderService(engine_, calls_, options.log)),
        listener_(std::move(options.listener)) {}

  ~GrpcServer() override {
    if (server_ != nullptr) Stop(std::chrono::seconds(1));
    if (stopper_.joinable()) stopper_.join();
  }

  base::Status Serve(const Options& options) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.SetMaxSendMessageSize(kMaxMessageBytes);
    // One queue is enough for one client; threads are added as calls block.
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        Credentials(options));
    builder.RegisterService(service_.get());
    side_services_.Register(builder);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return Err(Code::kInternal, "gRPC does not start the plugin's server");
    listener_->Start([this](int fd) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.fd = fd;
      acceptor_->HandleNewConnection(&connection);
    });
    return base::Ok();
  }

  void StopCalls() override { calls_.StopAll(); }
  void StopCancelledCalls() override { calls_.StopCancelled(); }

  bool Stop(std::chrono::milliseconds grace) override {
    std::unique_lock lock(mutex_);
    if (!stopper_.joinable()) {
      listener_->Stop();
      side_services_.FinishStreams();
      // gRPC ends calls at the deadline, but then waits for their handlers without limit: so not in
      // this thread.
      stopper_ = std::thread([this, grace] {
        server_->Shutdown(std::chrono::system_clock::now() + grace);
        std::lock_guard done(mutex_);
        stopped_ = true;
        changed_.notify_all();
      });
    }
    return changed_.wait_for(lock, grace + std::chrono::milliseconds(200),
                             [this] { return stopped_; });
  }

 private:
  framework::engine::Engine engine_;
  RunningCalls calls_;
  SideServices side_services_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::thread stopper_;
};

}  // namespace

base::Result<std::unique_ptr<Server>> Server::Start(Options options) {
  auto server = std::make_unique<GrpcServer>(options);
  RETURN_IF_ERROR(server->Serve(options));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace sless::plugin
