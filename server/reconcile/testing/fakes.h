#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "server/artifact/artifact_store.h"
#include "server/build/builder.h"
#include "server/gateway/serving.h"
#include "server/invocations/log_store.h"

namespace sless::reconcile {

/// Remembers what it was told; readiness of revisions is the test's. Thread-safe.
class FakeServing final : public gateway::Serving {
 public:
  using Answer = std::function<base::Result<gateway::Prepared>(const runtime::RevisionKey&,
                                                               const runtime::ReplicaSpec&)>;
  void Answers(Answer answer) {
    std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  void Loads(gateway::Load load) {
    std::lock_guard lock(mutex_);
    load_ = std::move(load);
  }
  std::optional<gateway::FunctionRoute> Route(const std::string& name) const {
    std::lock_guard lock(mutex_);
    const auto it = routes_.find(name);
    return it == routes_.end() ? std::nullopt : std::optional(it->second);
  }
  std::vector<int64_t> abandoned() const {
    std::lock_guard lock(mutex_);
    return abandoned_;
  }
  int prepares() const {
    std::lock_guard lock(mutex_);
    return prepares_;
  }
  /// Revisions that were published, in order; 0 where a route had none.
  std::vector<int64_t> published() const {
    std::lock_guard lock(mutex_);
    return published_;
  }

  base::Result<gateway::Prepared> Prepare(const runtime::RevisionKey& revision,
                                          const runtime::ReplicaSpec& spec,
                                          const gateway::Scaling&) override {
    std::unique_lock lock(mutex_);
    ++prepares_;
    if (const auto it = failed_.find(revision); it != failed_.end()) return it->second;
    const auto answer = answer_;
    lock.unlock();
    auto prepared =
        answer ? answer(revision, spec)
               : base::Result<gateway::Prepared>(gateway::Prepared{gateway::Readiness::kReady, {}});
    lock.lock();
    if (prepared && prepared->readiness == gateway::Readiness::kFailed)
      failed_.emplace(revision, *prepared);
    return prepared;
  }
  void Abandon(const runtime::RevisionKey& revision) override {
    std::lock_guard lock(mutex_);
    abandoned_.push_back(revision.revision);
    failed_.erase(revision);
  }
  void Publish(gateway::FunctionRoute route) override {
    std::lock_guard lock(mutex_);
    published_.push_back(route.revision ? route.revision->revision : 0);
    routes_[route.name] = std::move(route);
  }
  void Remove(const std::string&, const std::string& name) override {
    std::lock_guard lock(mutex_);
    routes_.erase(name);
  }
  gateway::Load Observe(const std::string&, const std::string&) const override {
    std::lock_guard lock(mutex_);
    return load_;
  }
  void OnChange(std::function<void(const std::string&, const std::string&)>) override {}

 private:
  mutable std::mutex mutex_;
  Answer answer_;
  gateway::Load load_;
  std::map<std::string, gateway::FunctionRoute> routes_;
  std::map<runtime::RevisionKey, gateway::Prepared> failed_;  // until abandoned, as the real one
  std::vector<int64_t> abandoned_, published_;
  int prepares_ = 0;
};

/// Makes a folder per source hash below `dir`; can hold, fail, and honours stop. Thread-safe.
class FakeBuilder final : public build::Builder {
 public:
  explicit FakeBuilder(std::string dir) : dir_(std::move(dir)) {}
  /// Each build, or those of one hash.
  void Fails(std::optional<base::Error> error, std::string hash = "") {
    std::lock_guard lock(mutex_);
    error_ = std::move(error);
    failing_ = std::move(hash);
  }
  void Hold(bool on) {
    std::lock_guard lock(mutex_);
    hold_ = on;
    changed_.notify_all();
  }
  std::vector<std::string> built() const {
    std::lock_guard lock(mutex_);
    return built_;
  }
  int stopped() const {
    std::lock_guard lock(mutex_);
    return stopped_;
  }
  int inside() const {
    std::lock_guard lock(mutex_);
    return inside_;
  }
  std::vector<std::string> in_use() const {
    std::lock_guard lock(mutex_);
    return in_use_;
  }

  base::Result<build::BuildOutput> Build(const build::BuildRequest& request, base::Deadline,
                                         std::stop_token stop, const build::LogLine& log) override {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.wait(lock, stop, [&] { return !hold_; });
    --inside_;
    if (stop.stop_requested()) {
      ++stopped_;
      return base::Err(base::Code::kCancelled, "stopped");
    }
    built_.push_back(request.source_hash);
    if (error_ && (failing_.empty() || failing_ == request.source_hash)) return base::Err(*error_);
    lock.unlock();
    log("building");
    const auto code = dir_ + "/" + request.source_hash.substr(request.source_hash.find(':') + 1);
    std::filesystem::create_directories(code);
    return build::BuildOutput{code, "", false, false};
  }
  base::Status Collect(const std::vector<std::string>& in_use) override {
    std::lock_guard lock(mutex_);
    in_use_ = in_use;
    return base::Ok();
  }

 private:
  const std::string dir_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<base::Error> error_;
  std::string failing_;
  bool hold_ = false;
  std::vector<std::string> built_, in_use_;
  int stopped_ = 0, inside_ = 0;
};

/// Has every digest but those in `missing`. Thread-safe once set up.
class FakeArtifacts final : public artifact::ArtifactStore {
 public:
  std::set<std::string> missing;
  std::vector<artifact::Info> infos;
  std::vector<std::string> removed;

  base::Result<bool> Has(const std::string&, const std::string& digest) const override {
    return !missing.contains(digest);
  }
  base::Result<std::unique_ptr<artifact::Writer>> Create(const std::string&) override {
    return base::Err(base::Code::kUnimplemented, "fake");
  }
  base::Result<std::string> Fetch(const std::string&, const std::string& digest) override {
    if (missing.contains(digest)) return base::Err(base::Code::kNotFound, "no such artifact");
    return "/artifact/" + digest;
  }
  base::Status Remove(const std::string&, const std::string& digest, base::TimePoint) override {
    removed.push_back(digest);
    return base::Ok();
  }
  base::Result<std::vector<artifact::Info>> List(const std::string&) const override {
    return infos;
  }
  base::Result<std::vector<std::string>> Namespaces() const override {
    return std::vector<std::string>{"default"};
  }
};

/// Keeps lines in memory. Thread-safe.
class FakeLogs final : public invocations::LogStore {
 public:
  void Append(const std::string&, const std::string& function,
              invocations::LogRecord record) override {
    std::lock_guard lock(mutex_);
    lines_[function].push_back(std::move(record));
  }
  base::Result<std::vector<invocations::LogRecord>> Read(
      const std::string&, const std::string& function,
      const invocations::LogQuery&) const override {
    std::lock_guard lock(mutex_);
    const auto it = lines_.find(function);
    return it == lines_.end() ? std::vector<invocations::LogRecord>() : it->second;
  }
  /// The last revision that Remove was told of, 0 if it was not called.
  int64_t removed(const std::string& function) const {
    std::lock_guard lock(mutex_);
    const auto it = removed_.find(function);
    return it == removed_.end() ? 0 : it->second;
  }
  void Remove(const std::string&, const std::string& function, int64_t last_revision) override {
    std::lock_guard lock(mutex_);
    removed_[function] = last_revision;
    lines_.erase(function);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<invocations::LogRecord>> lines_;
  std::map<std::string, int64_t> removed_;
};

}  // namespace sless::reconcile
