#pragma once

#include <optional>

#include "client/api/object.h"
#include "client/api/rules.h"

namespace sless::api {

inline constexpr std::string_view kRuntimePython = "python3.11";
inline constexpr std::string_view kRuntimeNode = "nodejs20";

/// Where the code comes from. `hash` names the content tree (client/source); the bytes are uploaded
/// before under that hash, but for "code", whose one file travels here. type and path are the
/// configuration's words, kept so that an import can give them back; they have no effect on what
/// runs.
struct Source {
  std::string type = "dir";  ///< dir | zip | code
  std::string path;          ///< as written in the configuration
  std::string hash;          ///< "sha256:<64 hex>" of the content tree
  std::string code;          ///< type "code": the text of the one file

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("type", self.type, Doc{"where the client took the code from", "dir|zip|code"});
    visit("path", self.path,
          Doc{.text = "path as written in the client's configuration; no effect",
              .max = kMaxSourcePathBytes});
    visit("hash", self.hash,
          Doc{.text = "sha256:<hex> of the content tree; upload the code under this hash first",
              .pattern = kContentHashPattern,
              .required = true});
    visit("code", self.code,
          Doc{.text = "type code: text of the one file that the entrypoint names",
              .max = kMaxInlineCodeBytes});
  }
  bool operator==(const Source&) const = default;
};

struct FunctionSpec {
  std::string runtime;                        ///< python3.11 | nodejs20
  std::string entrypoint = "handler.handle";  ///< file.function
  Source source;
  std::optional<std::string> code_hash;  ///< opaque; any change redeploys, also none → ""
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> labels;
  int64_t memory_mb = 256;
  int64_t timeout_sec = 60;
  int64_t concurrency = 1;          ///< requests at once per replica
  std::optional<int64_t> replicas;  ///< fixed count; 0 switches off
  int64_t min_replicas = 0;         ///< used where replicas is not set
  int64_t max_replicas = 5;
  int64_t idle_timeout_sec = 300;
  int64_t build_timeout_sec = 300;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("runtime", self.runtime,
          Doc{.text = "language and version", .values = "python3.11|nodejs20", .required = true});
    visit("entrypoint", self.entrypoint, Doc{"file.function, the file without its ending"});
    visit("source", self.source, Doc{.text = "the code", .required = true});
    visit("codeHash", self.code_hash,
          Doc{.text = "opaque; any change of it redeploys", .max = kMaxCodeHashBytes});
    visit("environment", self.environment,
          Doc{.text = "environment variables", .max = kMaxVariables, .sensitive = true});
    visit("labels", self.labels,
          Doc{.text = "labels for people and tools; no effect", .max = kMaxLabels});
    visit("memoryMb", self.memory_mb, Doc{"memory of one replica in MiB", "", 32, 32768});
    visit("timeoutSec", self.timeout_sec, Doc{"longest time of one call in seconds", "", 1, 3600});
    visit("concurrency", self.concurrency, Doc{"requests at once per replica", "", 1, 1000});
    visit("replicas", self.replicas,
          Doc{"fixed count of replicas; 0 switches the function off", "", 0, 100});
    visit("minReplicas", self.min_replicas,
          Doc{"least replicas, where replicas is not set", "", 0, 100});
    visit("maxReplicas", self.max_replicas,
          Doc{"most replicas, where replicas is not set", "", 1, 100});
    visit("idleTimeoutSec", self.idle_timeout_sec,
          Doc{"a replica above the least stops after so many idle seconds", "", 1, 86400});
    visit("buildTimeoutSec", self.build_timeout_sec,
          Doc{"longest time of a build in seconds", "", 1, 3600});
  }
  bool operator==(const FunctionSpec&) const = default;
};

/// The functions of the kind Function go Pending → Building → Deploying → Ready, or Failed. A
/// failed update leaves `serving` as it was.
struct FunctionStatus {
  std::string phase = "Pending";    ///< Pending | Building | Deploying | Ready | Failed | Deleting
  int64_t observed_generation = 0;  ///< phase speaks of this generation of spec
  std::string observed_retry;       ///< and of this value of kRetryAnnotation
  std::optional<Failure> failure;   ///< where phase is Failed
  int64_t revision = 0;             ///< number of the serving revision, 0 if none
  int64_t latest_revision = 0;      ///< number of the newest one, serving or not, 0 if none
  std::optional<FunctionSpec> serving;  ///< the whole spec that is serving
  std::string last_built_at;            ///< RFC 3339
  std::string invoke_url;               ///< absolute; needs a token
  int64_t ready_replicas = 0;
  int64_t restarts = 0;  ///< of the serving revision's replicas
  std::string note;      ///< why no replica runs although wanted (crash loop, switched off), "" if
                         ///< nothing to say

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("phase", self.phase,
          Doc{"where it stands", "Pending|Building|Deploying|Ready|Failed|Deleting"});
    visit("observedGeneration", self.observed_generation,
          Doc{"the generation that phase speaks of"});
    visit("observedRetry", self.observed_retry,
          Doc{"the value of the annotation sless.dev/retry that phase speaks of"});
    visit("failure", self.failure, Doc{"why, where phase is Failed"});
    visit("revision", self.revision, Doc{"number of the serving revision; 0 if none serves"});
    visit("latestRevision", self.latest_revision,
          Doc{"number of the newest revision, whether it serves or not; 0 before the first"});
    visit("serving", self.serving,
          Doc{"the spec that is serving; a failed update leaves it as it was"});
    visit("lastBuiltAt", self.last_built_at, Doc{"RFC 3339, end of the last build"});
    visit("invokeUrl", self.invoke_url, Doc{"POST an event here, with a token"});
    visit("readyReplicas", self.ready_replicas, Doc{"replicas that take calls now"});
    visit("restarts", self.restarts, Doc{"restarts of the serving revision's replicas"});
    visit("note", self.note, Doc{"why no replica runs although wanted"});
  }
  bool operator==(const FunctionStatus&) const = default;
};

inline constexpr std::string_view kKindFunction = "Function";
/// Annotation of a function: a changed value asks for one more try of a generation that failed.
inline constexpr std::string_view kRetryAnnotation = "sless.dev/retry";
using Function = Object<FunctionSpec, FunctionStatus>;

}  // namespace sless::api
