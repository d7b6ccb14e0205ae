#pragma once

// The REST API of slessd as typed requests, with retries. T is api::Function, api::Trigger or
// api::Job.

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "client/api/function.h"
#include "client/api/job.h"
#include "client/api/trigger.h"
#include "client/base/secret.h"
#include "client/transport/transport.h"

namespace sless::rest {

struct ClientOptions {
  /// "https://host:port", "http://…" or "http+unix://…"; a path is put before /v1
  std::string endpoint;
  base::Secret token;
  std::string ca_file;  ///< "": the system's CAs
  std::chrono::milliseconds request_timeout{
      60'000};          ///< one request, without what a long poll waits
  int max_retries = 4;  ///< further attempts of one request
  std::string user_agent = "sless-client";
  /// What a 401 tells the user to look at.
  std::string token_hint = "check the token (token, SLESS_TOKEN); `slessd token create` makes one";
  /// What an endpoint that does not answer tells the user to look at.
  std::string endpoint_hint =
      "is slessd running there? check the endpoint (endpoint, SLESS_ENDPOINT)";
  std::chrono::milliseconds first_backoff{200};  ///< then doubled, at most 5 s
};

/// How long a call may take in all, with its retries.
struct Call {
  base::Deadline deadline = base::Deadline::Never();
  std::stop_token stop;
};

struct Name {
  std::string ns;
  std::string name;
};

enum class PutMode {
  kAny,         ///< create or replace
  kCreateOnly,  ///< If-None-Match: *
  kReplace,     ///< If-Match: metadata.resource_version of the object
};

struct ServerInfo {
  std::string version;
  std::string external_url;
  std::vector<std::string> runtimes;
};

/// Every error names method and URL, keeps field, reason and source of the server's error body, and
/// says what to do where the server is not reachable or does not take the token. Besides the
/// server's codes: those of transport::Transport::Send.
///
/// A request is sent again after kUnavailable, 429, 502, 503 or a lost connection, at most
/// max_retries times and within the deadline. That is safe: every request here means the same when
/// it arrives twice.
///
/// Thread safety: all methods may be called from any thread.
class SlessClient {
 public:
  /// Error: kInvalidArgument for an endpoint that is no URL. Sends nothing.
  static base::Result<std::unique_ptr<SlessClient>> Make(ClientOptions options);
  /// With a transport of the caller, which outlives the client; ca_file is not used.
  static base::Result<std::unique_ptr<SlessClient>> Make(ClientOptions options,
                                                         transport::Transport& transport);
  ~SlessClient();

  /// kNotFound if there is none.
  template <class T>
  base::Result<T> Get(const Name& name, const Call& call = {});
  /// All objects of a namespace, every page.
  template <class T>
  base::Result<std::vector<T>> List(const std::string& ns, const Call& call = {});
  /// Writes metadata (namespace, name, annotations) and spec; returns what the server has now.
  /// kAlreadyExists for kCreateOnly on an object that is there, kAborted for kReplace on one that
  /// somebody else changed. Where an answer was lost and the object now has this spec, that is
  /// success.
  template <class T>
  base::Result<T> Put(const T& object, PutMode mode, const Call& call = {});
  /// JSON merge patch (RFC 7396).
  template <class T>
  base::Result<T> Patch(const Name& name, const std::string& merge_patch, const Call& call = {});
  /// Asks for the deletion of what a Get gave: kAborted where it was changed since, kNotFound if it
  /// is gone (unless an answer to the same call was lost).
  template <class T>
  base::Status Delete(const T& seen, const Call& call = {});

  /// Waits until this object is gone, by its uid: another one of its name may be there then. A
  /// deadline gives kDeadlineExceeded.
  template <class T>
  base::Status WaitGone(const T& seen, const Call& call);
  /// Waits until status.observedGeneration ≥ generation and the phase is final (Function: Ready,
  /// Failed; Trigger: Ready, Disabled, Failed; Job: Succeeded, Failed, Skipped) and returns the
  /// object, Failed too. Errors: kDeadlineExceeded names the phase that it stood in; kNotFound if
  /// it was deleted meanwhile.
  template <class T>
  base::Result<T> WaitReady(const Name& name, int64_t generation, const Call& call);

  /// Create that survives interruption: writes the object with the annotations sless.dev/creating
  /// and sless.dev/owner, a new name of this create. One that is there already is taken over, with
  /// the new owner, if it has the former or the same spec; otherwise kAlreadyExists says how to go
  /// on.
  template <class T>
  base::Result<T> Create(T object, const Call& call = {});
  /// Ends Create: removes the annotation.
  template <class T>
  base::Result<T> FinishCreate(const Name& name, const Call& call = {});

  /// Asks for one more try of a generation that failed; WaitReady then waits for its outcome.
  base::Result<api::Function> RetryFunction(const Name& name, const Call& call = {});
  /// Of the last 30 log lines of a revision and its build those since `since` (RFC 3339, as in
  /// metadata), oldest first.
  base::Result<std::vector<std::string>> LastLines(const Name& function, int64_t revision,
                                                   const std::string& since, const Call& call = {});

  base::Result<bool> HasCode(const std::string& ns, const std::string& hash, const Call& call = {});
  /// Uploads a zip of the tree with this hash, unless the server has it.
  base::Status UploadCode(const std::string& ns, const std::string& hash,
                          const transport::OpenBody& zip, const Call& call = {});

  /// One more attempt of a failed run; `attempt` is the number that it shall have (so a repeated
  /// call starts no second one).
  base::Status RetryRun(const Name& job, int64_t run_id, int64_t attempt, const Call& call = {});
  /// Runs of a job, newest first.
  base::Result<std::vector<api::Run>> Runs(const Name& job, const Call& call = {});
  base::Result<ServerInfo> Info(const Call& call = {});

  const std::string& endpoint() const;

 private:
  struct Impl;
  explicit SlessClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sless::rest
