#include "provider/resources/session.h"

#include <fmt/format.h>

#include "client/base/strings.h"
#include "provider/resources/common.h"

namespace sless::resources {
namespace {

constexpr std::chrono::seconds kInfoDeadline{8};
constexpr std::chrono::seconds kErrorKept{10};

}  // namespace

Session* Session::Of(const framework::Context& context, framework::Diagnostics& diagnostics) {
  auto* session = context.provider_data.Get<Session>();
  if (session == nullptr) {
    diagnostics.AddError(cty::Path("name"), "Provider not configured",
                         "The provider got no configuration before this call. This is a bug of the "
                         "provider or of the host.");
  }
  return session;
}

Backend* Session::Remote(framework::Diagnostics& diagnostics) const {
  if (!backend_) {
    diagnostics.AddError(cty::Path("name"), "Server not known yet",
                         "The provider's endpoint or token is known only after apply, and this "
                         "step needs the server. Set "
                         "endpoint (SLESS_ENDPOINT) and token (SLESS_TOKEN) to values that do not "
                         "depend on other resources, or "
                         "apply those resources first with -target.");
  }
  return backend_.get();
}

Backend* Session::RemoteOf(const framework::Context& context, framework::Diagnostics& diagnostics) {
  const auto* session = Of(context, diagnostics);
  return session == nullptr ? nullptr : session->Remote(diagnostics);
}

Backend* Session::ReaderOf(const framework::Context& context, framework::Diagnostics& diagnostics) {
  auto* session = Of(context, diagnostics);
  const bool reads =
      session != nullptr && session->connected() && session->Check(context.stop, diagnostics);
  return reads ? session->backend_.get() : nullptr;
}

base::Result<rest::ServerInfo> Session::Info(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    const bool fresh = info_ && (info_->has_value() || clock_.Steady() - info_at_ < kErrorKept);
    if (fresh) return *info_;
    if (!asking_) break;
    if (!changed_.wait(lock, stop, [this] { return !asking_; })) {
      return base::Err(base::Code::kCancelled, "stopped while asking the server for its version");
    }
  }
  asking_ = true;
  lock.unlock();
  auto answer = backend_->Info({base::Deadline::After(clock_, kInfoDeadline), stop});
  lock.lock();
  asking_ = false;
  // A stopped caller learned nothing about the server: the next one asks again.
  const bool learned = answer || answer.error().code != base::Code::kCancelled;
  if (learned) {
    info_ = answer;
    info_at_ = clock_.Steady();
  }
  changed_.notify_all();
  return answer;
}

bool Session::Check(std::stop_token stop, framework::Diagnostics& diagnostics) {
  if (!connected()) return true;
  const auto info = Info(stop);
  if (info) return true;
  auto error = info.error();
  const bool token =
      error.code == base::Code::kUnauthenticated || error.code == base::Code::kPermissionDenied;
  // The client names the setting too, but not for each kind of failure.
  const bool hinted = base::Contains(error.message, token ? "SLESS_TOKEN" : "SLESS_ENDPOINT");
  if (!hinted && token) {
    error.message += fmt::format(
        "\n\nThe server at {} does not take the token: check the provider's token (SLESS_TOKEN).",
        settings_.endpoint);
  } else if (!hinted && error.code == base::Code::kDeadlineExceeded) {
    error.message += fmt::format(
        "\n\nThe server at {} did not answer within {} s. Check that the endpoint is the right one "
        "(attribute endpoint or SLESS_ENDPOINT), that slessd runs there and neither stands still "
        "nor is overloaded, and that no firewall or proxy drops the connection.",
        settings_.endpoint, kInfoDeadline.count());
  } else if (!hinted) {
    error.message += fmt::format(
        "\n\nThe endpoint is {}: check that it is the right one (attribute endpoint or "
        "SLESS_ENDPOINT) and that slessd runs there.",
        settings_.endpoint);
  }
  AddError(diagnostics, error, token ? "log in to the sless server" : "reach the sless server", {});
  return false;
}

}  // namespace sless::resources
