#pragma once

// One configured provider: what Configure made and every resource uses.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "client/base/clock.h"
#include "provider/framework/context.h"
#include "provider/framework/diagnostics.h"
#include "provider/resources/backend.h"

namespace sless::resources {

/// Thread safety: all methods may be called at the same time from any thread.
class Session {
 public:
  struct Settings {
    std::string endpoint;                          ///< for messages
    std::optional<std::string> default_namespace;  ///< nothing: not known before apply
  };
  /// `backend` is null where endpoint or token is not known before apply: then nothing is asked of
  /// any server.
  Session(Settings settings, std::unique_ptr<Backend> backend, const base::Clock& clock)
      : settings_(std::move(settings)), backend_(std::move(backend)), clock_(clock) {}

  /// The session of this call, or nullptr and a diagnostic where the provider is not configured.
  static Session* Of(const framework::Context& context, framework::Diagnostics& diagnostics);

  const std::optional<std::string>& default_namespace() const {
    return settings_.default_namespace;
  }
  /// False: endpoint or token is known only after apply; remote checks are skipped.
  bool connected() const { return backend_ != nullptr; }
  /// The control plane, or nullptr and a diagnostic where it is not known yet.
  Backend* Remote(framework::Diagnostics& diagnostics) const;
  /// Of and Remote: what a change needs.
  static Backend* RemoteOf(const framework::Context& context, framework::Diagnostics& diagnostics);
  /// What a refresh needs: nullptr without a diagnostic where the server is not known yet, with one
  /// where it is not reachable or does not take the token.
  static Backend* ReaderOf(const framework::Context& context, framework::Diagnostics& diagnostics);

  /// Asks the server who it is, which shows that it is there and takes the token. Asked once:
  /// success is kept for good, an error for 10 s, so that a plan of 500 objects waits once.
  /// Concurrent callers share one request. Ends within 8 s.
  base::Result<rest::ServerInfo> Info(std::stop_token stop);
  /// Info() as a diagnostic: false where the server is not reachable or does not take the token.
  /// True where not connected.
  bool Check(std::stop_token stop, framework::Diagnostics& diagnostics);

 private:
  const Settings settings_;
  const std::unique_ptr<Backend> backend_;
  const base::Clock& clock_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool asking_ = false;
  std::optional<base::Result<rest::ServerInfo>> info_;
  base::SteadyPoint info_at_;
};

}  // namespace sless::resources
