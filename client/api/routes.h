#pragma once

// Path templates of the REST API. {x} is one percent-encoded segment.

#include <string>
#include <string_view>

#include "client/api/object.h"

namespace sless::api {

/// "functions", "triggers", "jobs": the plural of a public kind in a path.
inline std::string_view Plural(std::string_view kind) {
  if (kind == "Function") return "functions";
  if (kind == "Trigger") return "triggers";
  if (kind == "Job") return "jobs";
  return "";
}

inline std::string ObjectPath(const ObjectKey& key) {
  return "/v1/namespaces/" + key.ns + "/" + std::string(Plural(key.kind)) + "/" + key.name;
}
inline std::string ListPath(std::string_view ns, std::string_view kind) {
  return "/v1/namespaces/" + std::string(ns) + "/" + std::string(Plural(kind));
}
/// HEAD: is the code there (200) or not (404); PUT: upload a zip of the tree. `hash` is "sha256:<64
/// hex>".
inline std::string CodePath(std::string_view ns, std::string_view hash) {
  return "/v1/namespaces/" + std::string(ns) + "/code/" + std::string(hash);
}
/// GET: runs of a job, newest first; POST {"runId","attempt"}: one more attempt of a failed run.
/// Idempotent: `attempt` is the number that the attempt shall have.
inline std::string RunsPath(std::string_view ns, std::string_view job) {
  return "/v1/namespaces/" + std::string(ns) + "/jobs/" + std::string(job) + "/runs";
}
/// GET {"version","externalUrl","runtimes":[…]}; needs a token.
inline constexpr std::string_view kInfoPath = "/v1/info";

}  // namespace sless::api
