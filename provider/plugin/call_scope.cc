#include "provider/plugin/call_scope.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <new>
#include <vector>

#include "client/base/strings.h"

namespace sless::plugin {
namespace {

using framework::Diagnostics;
using framework::Severity;

using Bound = std::vector<std::pair<std::string, std::string>>;

// The form of a UUID, as readers of such logs know it.
std::string RequestId() {
  const std::string hex = base::RandomHex(16);
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

std::unique_ptr<base::Logger> MakeLogger(const LogSink& sink, const char* module,
                                         const Bound& bound) {
  if (!sink.least) return std::make_unique<base::NullLogger>();
  return std::make_unique<base::JsonLogger>(sink.fd, *sink.least, base::JsonLogger::Keys::kHclog,
                                            module, bound);
}

std::string_view TypeKey(std::string_view rpc) {
  if (base::Contains(rpc, "Data")) return "tf_data_source_type";
  if (base::Contains(rpc, "Ephemeral")) return "tf_ephemeral_resource_type";
  return "tf_resource_type";
}

void AddBug(std::string_view rpc, std::string_view what, Diagnostics& diagnostics) {
  diagnostics.AddError(
      "Provider error",
      fmt::format(
          "The provider failed while it answered {}: {}.\n\nThis is a bug in the provider; please "
          "report it to its maintainers with this text.",
          rpc, what));
}

}  // namespace

CallScope::CallScope(const Deps& deps, std::string_view rpc, const std::string& type_name,
                     std::function<bool()> is_cancelled)
    : deps_(deps), rpc_(rpc), running_(deps.calls.Begin(std::move(is_cancelled))) {
  Bound bound{{"tf_rpc", rpc_}, {"tf_req_id", RequestId()}, {"tf_proto_version", "6.11"}};
  if (!type_name.empty()) bound.emplace_back(TypeKey(rpc), type_name);
  protocol_log_ = MakeLogger(deps.log, "sdk.proto", bound);
  provider_log_ = MakeLogger(deps.log, "provider", bound);
}

Diagnostics CallScope::Run(
    const std::function<base::Status(const framework::engine::Call&, Diagnostics&)>& body) {
  const base::SteadyPoint began = deps_.clock.Steady();
  protocol_log_->Trace("received request");
  Diagnostics diagnostics;
  try {
    const base::Status status = body({running_.stop_token(), *provider_log_}, diagnostics);
    if (!status) AddBug(rpc_, status.error().message, diagnostics);
  } catch (const std::bad_alloc&) {
    AddBug(rpc_, "no memory left", diagnostics);
  } catch (const std::exception& e) {
    AddBug(rpc_, e.what(), diagnostics);
  } catch (...) {
    AddBug(rpc_, "an exception without a text", diagnostics);
  }
  LogEnd(diagnostics, began);
  return diagnostics;
}

void CallScope::LogEnd(const Diagnostics& diagnostics, base::SteadyPoint began) {
  int errors = 0;
  for (const auto& diagnostic : diagnostics) {
    const bool is_error = diagnostic.severity == Severity::kError;
    errors += is_error ? 1 : 0;
    protocol_log_->Log(
        is_error ? base::Level::kError : base::Level::kWarn, "answer has a diagnostic",
        {{"diagnostic_severity", is_error ? "ERROR" : "WARNING"},
         {"diagnostic_summary", diagnostic.summary},
         {"diagnostic_detail", diagnostic.detail},
         {"diagnostic_attribute", diagnostic.path ? diagnostic.path->ToString() : std::string()}});
  }
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(deps_.clock.Steady() - began);
  protocol_log_->Trace("served request", {{"tf_req_duration_ms", took.count()},
                                          {"diagnostic_error_count", errors},
                                          {"diagnostic_warning_count",
                                           static_cast<int>(diagnostics.size()) - errors}});
}

}  // namespace sless::plugin
