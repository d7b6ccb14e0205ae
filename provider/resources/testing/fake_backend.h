#pragma once

// A control plane in memory: keeps objects, settles them when somebody waits, and fails on demand.

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "provider/resources/backend.h"

namespace sless::resources {

class FakeBackend;

/// Objects of one kind. Behaves as the server's REST API and rest::SlessClient: create-only with
/// take-over, generations that rise with each change of spec, conflicts on an old resourceVersion.
template <class T>
class FakeObjects final : public Objects<T> {
 public:
  FakeObjects(FakeBackend& backend, std::string kind) : backend_(backend), kind_(std::move(kind)) {}
  base::Result<T> Get(const rest::Name& name, const rest::Call& call) override;
  base::Result<T> Put(const T& object, rest::PutMode mode, const rest::Call& call) override;
  base::Status Delete(const T& seen, const rest::Call& call) override;
  base::Result<T> Create(T object, const rest::Call& call) override;
  base::Result<T> FinishCreate(const rest::Name& name, const rest::Call& call) override;
  base::Result<T> WaitReady(const rest::Name& name, int64_t generation,
                            const rest::Call& call) override;
  base::Status WaitGone(const T& seen, const rest::Call& call) override;

  /// Changes an object behind everybody's back; nothing happens where there is none.
  void Edit(const std::string& id, const std::function<void(T&)>& change);
  /// The object, or a default one where there is none.
  T Look(const std::string& id) const;
  bool Has(const std::string& id) const;
  void Erase(const std::string& id);

 private:
  base::Result<T> PutLocked(const T& object, rest::PutMode mode);

  FakeBackend& backend_;
  const std::string kind_;
  int creates_ = 0;
  std::map<std::string, T> objects_;
};

/// Thread safety: all methods may be called from any thread.
class FakeBackend final : public Backend {
 public:
  FakeBackend() : functions_(*this, "function"), triggers_(*this, "trigger"), jobs_(*this, "job") {}

  FakeObjects<api::Function>& Functions() override { return functions_; }
  FakeObjects<api::Trigger>& Triggers() override { return triggers_; }
  FakeObjects<api::Job>& Jobs() override { return jobs_; }
  base::Status UploadCode(const std::string& ns, const std::string& hash,
                          const transport::OpenBody& zip, const rest::Call& call) override;
  base::Result<api::Function> RetryFunction(const rest::Name& name,
                                            const rest::Call& call) override;
  base::Result<std::vector<std::string>> LastLines(const rest::Name& function, int64_t revision,
                                                   const std::string& since,
                                                   const rest::Call& call) override;
  base::Status RetryRun(const rest::Name& job, int64_t run_id, int64_t attempt,
                        const rest::Call& call) override;
  base::Result<rest::ServerInfo> Info(const rest::Call& call) override;

  /// The next call of that name ("function.put", "upload", "info", …) fails with this error, after
  /// what it does where `after` is set.
  void FailNext(const std::string& call, base::Error error, bool after = false);
  /// Names of all calls since the last TakeCalls.
  std::vector<std::string> TakeCalls();

  // How the world goes. Set them between calls.
  std::optional<api::Failure> build_failure;  ///< new revisions fail with this
  std::optional<api::Failure> trigger_failure;
  std::optional<api::Failure> run_failure;  ///< attempts fail with this
  bool runs_hang = false;  ///< runs stay Running; whoever waits sees its deadline pass
  bool builds_hang = false;
  /// Somebody else: may change anything before a call ("function.wait", …) does its work.
  std::function<void(const std::string& call)> meanwhile;
  std::string external_url = "http://sless.test";
  int runs_started = 0;
  base::Deadline info_deadline;  ///< of the last info

 private:
  template <class T>
  friend class FakeObjects;
  // Records the call; the error that was asked for, if any.
  base::Status Enter(const std::string& call, bool after = false);
  base::Result<bool> Settle(api::Function& function);
  base::Result<bool> Settle(api::Trigger& trigger);
  base::Result<bool> Settle(api::Job& job);
  void StartRun(api::Job& job);

  struct Planned {
    base::Error error;
    bool after = false;
  };
  mutable std::recursive_mutex mutex_;
  std::map<std::string, std::deque<Planned>> planned_;
  std::vector<std::string> calls_;
  std::map<std::string, api::JobStatus> last_runs_;  // of jobs whose run_id is 0
  int64_t clock_ = 0;
  int64_t version_ = 0;
  FakeObjects<api::Function> functions_;
  FakeObjects<api::Trigger> triggers_;
  FakeObjects<api::Job> jobs_;
};

}  // namespace sless::resources
