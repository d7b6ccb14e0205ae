#include "provider/resources/testing/test_provider.h"

#include "provider/resources/function_resource.h"
#include "provider/resources/job_resource.h"
#include "provider/resources/session.h"
#include "provider/resources/trigger_resource.h"

namespace sless::resources {
namespace {

// A session owns its backend; the test keeps its own.
class Borrowed final : public Backend {
 public:
  explicit Borrowed(Backend& real) : real_(real) {}
  Objects<api::Function>& Functions() override { return real_.Functions(); }
  Objects<api::Trigger>& Triggers() override { return real_.Triggers(); }
  Objects<api::Job>& Jobs() override { return real_.Jobs(); }
  base::Status UploadCode(const std::string& ns, const std::string& hash,
                          const transport::OpenBody& zip, const rest::Call& call) override {
    return real_.UploadCode(ns, hash, zip, call);
  }
  base::Result<api::Function> RetryFunction(const rest::Name& name,
                                            const rest::Call& call) override {
    return real_.RetryFunction(name, call);
  }
  base::Result<std::vector<std::string>> LastLines(const rest::Name& function, int64_t revision,
                                                   const std::string& since,
                                                   const rest::Call& call) override {
    return real_.LastLines(function, revision, since, call);
  }
  base::Status RetryRun(const rest::Name& job, int64_t run_id, int64_t attempt,
                        const rest::Call& call) override {
    return real_.RetryRun(job, run_id, attempt, call);
  }
  base::Result<rest::ServerInfo> Info(const rest::Call& call) override { return real_.Info(call); }

 private:
  Backend& real_;
};

class TestProvider final : public framework::Provider {
 public:
  TestProvider(Backend* backend, std::optional<std::string> ns)
      : backend_(backend), default_namespace_(std::move(ns)) {}
  void Configure(const framework::ConfigureRequest& request,
                 framework::ConfigureResponse& response) const override {
    auto backend = backend_ != nullptr ? std::make_unique<Borrowed>(*backend_) : nullptr;
    response.data = framework::ProviderData::Of(
        std::make_shared<Session>(Session::Settings{"http://sless.test", default_namespace_},
                                  std::move(backend), request.clock));
  }
  std::vector<std::unique_ptr<framework::Resource>> Resources() const override {
    std::vector<std::unique_ptr<framework::Resource>> list;
    list.push_back(std::make_unique<FunctionResource>());
    list.push_back(std::make_unique<TriggerResource>());
    list.push_back(std::make_unique<JobResource>());
    return list;
  }

 private:
  Backend* backend_;
  std::optional<std::string> default_namespace_;
};

}  // namespace

std::unique_ptr<framework::Provider> MakeTestProvider(
    Backend* backend, std::optional<std::string> default_namespace) {
  return std::make_unique<TestProvider>(backend, std::move(default_namespace));
}

}  // namespace sless::resources
