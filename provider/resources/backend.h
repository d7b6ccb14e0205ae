#pragma once

// What the resources need of a control plane: client/rest in production, testing/fake_backend in
// tests.

#include <memory>
#include <string>

#include "client/rest/sless_client.h"

namespace sless::resources {

/// The objects of one kind. Each call means the same as rest::SlessClient's of that name, with its
/// errors. Thread safety: all methods may be called at the same time from any thread.
template <class T>
class Objects {
 public:
  virtual ~Objects() = default;
  virtual base::Result<T> Get(const rest::Name& name, const rest::Call& call) = 0;
  virtual base::Result<T> Put(const T& object, rest::PutMode mode, const rest::Call& call) = 0;
  virtual base::Status Delete(const T& seen, const rest::Call& call) = 0;
  virtual base::Result<T> Create(T object, const rest::Call& call) = 0;
  virtual base::Result<T> FinishCreate(const rest::Name& name, const rest::Call& call) = 0;
  virtual base::Result<T> WaitReady(const rest::Name& name, int64_t generation,
                                    const rest::Call& call) = 0;
  virtual base::Status WaitGone(const T& seen, const rest::Call& call) = 0;
};

/// Thread safety: all methods may be called at the same time from any thread.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Objects<api::Function>& Functions() = 0;
  virtual Objects<api::Trigger>& Triggers() = 0;
  virtual Objects<api::Job>& Jobs() = 0;
  /// Uploads the zip of the tree with this hash, unless the server has it.
  virtual base::Status UploadCode(const std::string& ns, const std::string& hash,
                                  const transport::OpenBody& zip, const rest::Call& call) = 0;
  /// Asks the server to try a failed generation again; the answer is the object as it is then.
  virtual base::Result<api::Function> RetryFunction(const rest::Name& name,
                                                    const rest::Call& call) = 0;
  virtual base::Result<std::vector<std::string>> LastLines(const rest::Name& function,
                                                           int64_t revision,
                                                           const std::string& since,
                                                           const rest::Call& call) = 0;
  virtual base::Status RetryRun(const rest::Name& job, int64_t run_id, int64_t attempt,
                                const rest::Call& call) = 0;
  virtual base::Result<rest::ServerInfo> Info(const rest::Call& call) = 0;
};

/// Sends everything through `client`.
std::unique_ptr<Backend> MakeRestBackend(std::unique_ptr<rest::SlessClient> client);

}  // namespace sless::resources
