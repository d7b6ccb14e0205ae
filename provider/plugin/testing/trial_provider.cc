#include "provider/plugin/testing/trial_provider.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace sless::plugin::testing {
namespace {

using cty::Value;
using namespace framework;  // NOLINT

bool WaitFor(const std::stop_token& stop, std::chrono::milliseconds limit) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, limit, [] { return false; });
  return stop.stop_requested();
}

class TrialThing final : public Resource {
 public:
  std::string TypeName() const override { return "trial_thing"; }
  framework::Schema Schema() const override {
    return {.version = 2,
            .description = "A thing.",
            .attributes = {{"id", String(), {.computed = true}},
                           {"name", String(), {.required = true, .description = "Its **name**."}},
                           {"act", String(), {.optional = true}},
                           {"wait_ms", Int64(), {.optional = true}},
                           {"text", String(), {.computed = true, .sensitive = true}}}};
  }

  void Create(const ChangeRequest& request, StateResponse& response) const override {
    const std::string& act = request.plan.Get("act").AsString();
    const std::chrono::milliseconds wait(
        request.plan.Get("wait_ms").AsNumber().AsInt64().value_or(0));
    response.state =
        request.plan.With("id", Value::String("id-1")).With("text", Value::String("done"));
    const std::string& name = request.plan.Get("name").AsString();
    if (name.starts_with('/')) std::ofstream(name, std::ios::app) << '.';
    if (act == "throw") throw std::runtime_error("thrown by the trial resource");
    if (act == "crash") std::abort();
    if (act == "big")
      response.state = response.state.With("text", Value::String(std::string(6 << 20, 'x')));
    if (act == "env") {
      const bool gone = std::getenv("PLUGIN_CLIENT_CERT") == nullptr &&
                        std::getenv("TF_PLUGIN_MAGIC_COOKIE") == nullptr;
      response.state = response.state.With("text", Value::String(gone ? "gone" : "still there"));
    }
    if (act == "sleep") WaitFor(request.context.stop, wait);
    if (act == "hang") std::this_thread::sleep_for(wait);
    if (act == "wait" && WaitFor(request.context.stop, std::chrono::seconds(30))) {
      response.state = response.state.With("text", Value::String("stopped"));
      response.diagnostics.AddError(cty::Path("name"), "Stopped", "The host asked to stop.");
    }
    request.context.log.Info("created", {{"act", act}});
  }
  void Read(const ReadRequest&, StateResponse&) const override {}
  void Update(const ChangeRequest& request, StateResponse& response) const override {
    Create(request, response);
  }
  void Delete(const ChangeRequest&, StateResponse&) const override {}
};

class TrialData final : public DataSource {
 public:
  std::string TypeName() const override { return "trial_data"; }
  framework::Schema Schema() const override {
    return {.attributes = {{"name", String(), {.required = true}},
                           {"value", String(), {.computed = true}}}};
  }
  void Read(const DataRequest& request, DataResponse& response) const override {
    if (request.config.Get("name").AsString() == "throw")
      throw std::runtime_error("thrown by the trial data source");
    response.state = response.state.With("value", Value::String("v"));
  }
};

class Repeat final : public framework::Function {
 public:
  std::string Name() const override { return "repeat"; }
  FunctionDefinition Definition() const override {
    return {.parameters = {{.name = "text", .type = cty::Type::String()},
                           {.name = "count", .type = cty::Type::Number()}},
            .result = cty::Type::String(),
            .summary = "Repeats"};
  }
  void Call(const std::vector<Value>& arguments, FunctionResponse& response) const override {
    const int64_t count = arguments[1].AsNumber().AsInt64().value_or(-1);
    if (count < 0) {
      response.error = FunctionError{"count must not be negative", 1};
      return;
    }
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += arguments[0].AsString();
    response.result = Value::String(text);
  }
};

class Steps final : public Action {
 public:
  std::string TypeName() const override { return "trial_steps"; }
  framework::Schema Schema() const override {
    return {.attributes = {{"count", Int64(), {.required = true}}}};
  }
  void Invoke(const ActionRequest& request, Diagnostics& diagnostics) const override {
    const int64_t count = request.config.Get("count").AsNumber().AsInt64().value_or(0);
    for (int64_t i = 1; i <= count; ++i) request.progress("step " + std::to_string(i));
    if (count == 0) diagnostics.AddError(cty::Path("count"), "Nothing to do", "Count is 0.");
  }
};

template <class Base, class... T>
std::vector<std::unique_ptr<Base>> ListOfNew() {
  std::vector<std::unique_ptr<Base>> list;
  (list.push_back(std::make_unique<T>()), ...);
  return list;
}

class TrialProvider final : public Provider {
 public:
  framework::Schema Schema() const override {
    return {.attributes = {{"endpoint", String(), {.optional = true}}}};
  }
  void Configure(const ConfigureRequest& request, ConfigureResponse& response) const override {
    if (request.config.Get("endpoint").AsString() == "bad") {
      response.diagnostics.AddError(cty::Path("endpoint"), "Bad endpoint", "It is bad.");
    }
  }
  std::vector<std::unique_ptr<Resource>> Resources() const override {
    return ListOfNew<Resource, TrialThing>();
  }
  std::vector<std::unique_ptr<DataSource>> DataSources() const override {
    return ListOfNew<DataSource, TrialData>();
  }
  std::vector<std::unique_ptr<framework::Function>> Functions() const override {
    return ListOfNew<framework::Function, Repeat>();
  }
  std::vector<std::unique_ptr<Action>> Actions() const override {
    return ListOfNew<Action, Steps>();
  }
};

}  // namespace

std::unique_ptr<Provider> MakeTrialProvider() { return std::make_unique<TrialProvider>(); }

cty::Type ThingType() { return ImpliedType(TrialThing().Schema()); }

Value Thing(std::string_view name, std::string_view act, int64_t wait_ms, Value computed) {
  return Value::Object({{"id", computed},
                        {"name", Value::String(name)},
                        {"act", act.empty() ? Value::Null() : Value::String(act)},
                        {"wait_ms", Value::Int(wait_ms)},
                        {"text", computed}});
}

Begun::Begun() {
  static std::atomic<int> number = 0;
  path_ = std::filesystem::temp_directory_path() /
          ("trial-begun-" + std::to_string(::getpid()) + "-" + std::to_string(number++));
}

Begun::~Begun() { std::filesystem::remove(path_); }

bool Begun::Wait(size_t calls) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < end) {
    std::error_code none;
    const auto size = std::filesystem::file_size(path_, none);
    if (!none && size >= calls) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace sless::plugin::testing
