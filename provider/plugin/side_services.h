#pragma once

// What a plugin host expects beside the provider: controller, stdio, broker and health.

#include <functional>
#include <memory>

namespace grpc {
class ServerBuilder;
}

namespace sless::plugin {

/// The four services. All of them are asynchronous: an open stream holds no thread, however many
/// there are. Thread safety: all methods may be called from any thread.
class SideServices {
 public:
  /// `on_shutdown` is called for the host's Shutdown, in a thread of gRPC: it must only signal.
  explicit SideServices(std::function<void()> on_shutdown);
  ~SideServices();
  SideServices(const SideServices&) = delete;
  SideServices& operator=(const SideServices&) = delete;

  /// To be called before the server is built; the object must outlive the server.
  void Register(grpc::ServerBuilder& builder);
  /// Ends every open stream and each one to come, so that the server can shut down.
  void FinishStreams();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sless::plugin
