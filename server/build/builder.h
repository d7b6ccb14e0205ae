#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "client/api/function.h"
#include "client/base/clock.h"
#include "client/base/result.h"

namespace sless::build {

struct BuildRequest {
  std::string ns;
  std::string name;
  std::string runtime;
  std::string entrypoint;
  std::string source_hash;   ///< "sha256:…" of the content tree
  std::string archive_path;  ///< zip of the tree; "" for inline code
  std::string inline_code;   ///< text of the one file that the entrypoint names
};

/// Where the layers lie; both are read-only and shared between functions.
struct BuildOutput {
  std::string code_dir;
  std::string deps_dir;      ///< "" where there are no dependencies
  bool code_cached = false;  ///< nothing was unpacked
  bool deps_cached = false;  ///< nothing was installed
};

/// One line of a build log, without its newline. Called from the building thread.
using LogLine = std::function<void(std::string_view line)>;

/// Turns source into a code layer and a dependency layer.
/// Thread safety: Build may run for several requests at once; two builds of one layer share the
/// work.
class Builder {
 public:
  virtual ~Builder() = default;

  /// Idempotent: layers that are there are not made again. Blocks until done, the deadline or a
  /// stop request. Errors: reason "BadArchive": the archive does not unpack to the tree of
  /// `source_hash` (message names the entry); kFailedPrecondition reason "BuildFailed" or
  /// "RegistryUnreachable": dependencies cannot be installed or the entrypoint is not there;
  /// `source` has file, line and the last log lines; kDeadlineExceeded reason "BuildTimeout",
  /// `source` has the last log lines; kUnavailable, kInternal, kResourceExhausted not the user's
  /// fault: try again. Where a layer is found damaged, another takes its place, and what replicas
  /// have mounted keeps its files; it stays where no other can be made.
  virtual base::Result<BuildOutput> Build(const BuildRequest& request, base::Deadline deadline,
                                          std::stop_token stop, const LogLine& log) = 0;

  /// Removes layers that no function of `in_use` (code_dir and deps_dir paths) needs and that are
  /// older than an hour, with what was in their place before.
  virtual base::Status Collect(const std::vector<std::string>& in_use) = 0;
};

}  // namespace sless::build
