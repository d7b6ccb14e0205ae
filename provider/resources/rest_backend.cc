#include <utility>

#include "provider/resources/backend.h"

namespace sless::resources {
namespace {

template <class T>
class RestObjects final : public Objects<T> {
 public:
  explicit RestObjects(rest::SlessClient& client) : client_(client) {}
  base::Result<T> Get(const rest::Name& name, const rest::Call& call) override {
    return client_.Get<T>(name, call);
  }
  base::Result<T> Put(const T& object, rest::PutMode mode, const rest::Call& call) override {
    return client_.Put<T>(object, mode, call);
  }
  base::Status Delete(const T& seen, const rest::Call& call) override {
    return client_.Delete(seen, call);
  }
  base::Result<T> Create(T object, const rest::Call& call) override {
    return client_.Create<T>(std::move(object), call);
  }
  base::Result<T> FinishCreate(const rest::Name& name, const rest::Call& call) override {
    return client_.FinishCreate<T>(name, call);
  }
  base::Result<T> WaitReady(const rest::Name& name, int64_t generation,
                            const rest::Call& call) override {
    return client_.WaitReady<T>(name, generation, call);
  }
  base::Status WaitGone(const T& seen, const rest::Call& call) override {
    return client_.WaitGone(seen, call);
  }

 private:
  rest::SlessClient& client_;
};

class RestBackend final : public Backend {
 public:
  explicit RestBackend(std::unique_ptr<rest::SlessClient> client)
      : client_(std::move(client)), functions_(*client_), triggers_(*client_), jobs_(*client_) {}
  Objects<api::Function>& Functions() override { return functions_; }
  Objects<api::Trigger>& Triggers() override { return triggers_; }
  Objects<api::Job>& Jobs() override { return jobs_; }
  base::Status UploadCode(const std::string& ns, const std::string& hash,
                          const transport::OpenBody& zip, const rest::Call& call) override {
    return client_->UploadCode(ns, hash, zip, call);
  }
  base::Result<api::Function> RetryFunction(const rest::Name& name,
                                            const rest::Call& call) override {
    return client_->RetryFunction(name, call);
  }
  base::Result<std::vector<std::string>> LastLines(const rest::Name& function, int64_t revision,
                                                   const std::string& since,
                                                   const rest::Call& call) override {
    return client_->LastLines(function, revision, since, call);
  }
  base::Status RetryRun(const rest::Name& job, int64_t run_id, int64_t attempt,
                        const rest::Call& call) override {
    return client_->RetryRun(job, run_id, attempt, call);
  }
  base::Result<rest::ServerInfo> Info(const rest::Call& call) override {
    return client_->Info(call);
  }

 private:
  std::unique_ptr<rest::SlessClient> client_;
  RestObjects<api::Function> functions_;
  RestObjects<api::Trigger> triggers_;
  RestObjects<api::Job> jobs_;
};

}  // namespace

std::unique_ptr<Backend> MakeRestBackend(std::unique_ptr<rest::SlessClient> client) {
  return std::make_unique<RestBackend>(std::move(client));
}

}  // namespace sless::resources
