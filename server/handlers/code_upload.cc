#include <fmt/format.h>

#include "client/api/fields.h"
#include "client/base/digest.h"
#include "client/base/strings.h"
#include "client/source/source.h"
#include "server/handlers/answers.h"
#include "server/handlers/routes.h"

namespace sless::handlers {
namespace {

using http::Response;

base::Result<std::pair<std::string, std::string>> Target(const http::Request& request) {
  auto ns = request.Param("namespace");
  auto hash = request.Param("hash");
  if (const auto problem = base::DnsLabelProblem(ns); !problem.empty()) {
    return base::Err(base::Code::kInvalidArgument, "namespace: " + problem, "/metadata/namespace");
  }
  if (!base::IsContentHash(hash))
    return base::Err(base::Code::kInvalidArgument,
                     "the hash must be sha256: and 64 lower-case hex digits");
  return std::make_pair(std::move(ns), std::move(hash));
}

Response There(int status, const std::string& hash) {
  return Response::Json(status, api::ToJsonText(Code{hash}));
}

http::Reply Head(const Deps& deps, const http::Request& request) {
  ASSIGN_OR_RETURN(const auto target, Target(request));
  ASSIGN_OR_RETURN(const bool there, deps.artifacts.Has(target.first, target.second));
  if (there) return There(200, target.second);
  return base::Err(base::Code::kNotFound, "no code was uploaded under this hash");
}

class CodeUpload final : public http::Upload {
 public:
  CodeUpload(std::unique_ptr<artifact::Writer> writer, std::string hash)
      : writer_(std::move(writer)), hash_(std::move(hash)) {}

  base::Status Write(std::string_view bytes) override { return writer_->Write(bytes); }
  http::Reply Finish() override;

 private:
  const std::unique_ptr<artifact::Writer> writer_;
  const std::string hash_;
};

http::Reply CodeUpload::Finish() {
  ASSIGN_OR_RETURN(const auto path, writer_->Path());
  auto tree = source::ReadZip(path);
  if (!tree) {
    // A limit of the contents is a fault of the archive, not of the size of this request.
    auto error = tree.error();
    if (error.code == base::Code::kTooLarge) error.code = base::Code::kInvalidArgument;
    if (error.reason.empty()) error.reason = "BadArchive";
    return error;
  }
  const auto found = source::TreeHash(*tree);
  if (found != hash_) {
    return base::Err(base::Code::kFailedPrecondition,
                     fmt::format("the uploaded tree has the hash {}, but it was sent under {}; did "
                                 "a file change while it was packed?",
                                 found, hash_),
                     "", "HashMismatch");
  }
  RETURN_IF_ERROR(writer_->Commit(hash_));
  return There(201, hash_);
}

std::variant<http::Reply, std::unique_ptr<http::Upload>> Begin(const Deps& deps,
                                                               const http::Request& request) {
  RETURN_IF_ERROR(request.CheckNotEncoded());
  ASSIGN_OR_RETURN(const auto target, Target(request));
  const auto& [ns, hash] = target;
  ASSIGN_OR_RETURN(const bool there, deps.artifacts.Has(ns, hash));
  if (there) return There(200, hash);
  ASSIGN_OR_RETURN(auto writer, deps.artifacts.Create(ns));
  return std::make_unique<CodeUpload>(std::move(writer), hash);
}

}  // namespace

void AddCodeRoutes(Routes& routes) {
  const auto path = "/v1/namespaces/{namespace}/code/{hash}";
  routes.Add("HEAD", path,
             {.summary = "Is the code of this tree hash there?",
              .does = {Does::kFindByName, Does::kUseFiles}},
             [&deps = routes.deps()](http::Request& request) { return Head(deps, request); });
  routes.AddUpload(
      "PUT", path,
      {.summary = "Upload the tree with this hash; nothing is read where it is there already (200)",
       .statuses = {200, 201},
       .schema = "Code",
       .does = {Does::kCheckBody, Does::kUseFiles},
       .body = BodyDoc{"", {"application/zip"}, fmt::format("a zip of the tree; {}", kAnyType)}},
      64 * 1024 * 1024,
      [&deps = routes.deps()](http::Request& request) { return Begin(deps, request); });
}

}  // namespace sless::handlers
