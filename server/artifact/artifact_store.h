#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/base/clock.h"
#include "client/base/result.h"

namespace sless::artifact {

/// An artifact that is being written. Dropped without Commit: nothing is left.
/// Thread safety: one thread at a time.
class Writer {
 public:
  virtual ~Writer() = default;
  /// Appends. Errors: kUnavailable (disk full), kTooLarge above the store's limit per
  /// artifact.
  virtual base::Status Write(std::string_view bytes) = 0;
  /// A local file with what was written so far (flushed), for checks before Commit.
  virtual base::Result<std::string> Path() = 0;
  /// Makes it visible under `digest`, durable before it returns. An artifact that is already there
  /// stays as it is (success).
  virtual base::Status Commit(const std::string& digest) = 0;
};

struct Info {
  std::string digest;
  uint64_t size = 0;          ///< bytes
  base::TimePoint last_used;  ///< when it was stored, or later asked for by Has or Commit
};

/// Content-addressed files: zips of function code under the hash of their content tree, per
/// namespace (so that nobody learns what another namespace has). `digest` is "sha256:<64 hex>";
/// anything else is kInvalidArgument. Thread safety: all methods may be called at the same time
/// from any thread.
class ArtifactStore {
 public:
  virtual ~ArtifactStore() = default;
  /// An artifact that is there counts as used now: whoever was told so has time to refer to it.
  virtual base::Result<bool> Has(const std::string& ns, const std::string& digest) const = 0;
  virtual base::Result<std::unique_ptr<Writer>> Create(const std::string& ns) = 0;
  /// Path of a local, readable file. Error: kNotFound.
  virtual base::Result<std::string> Fetch(const std::string& ns, const std::string& digest) = 0;
  /// Removes it, unless it was used at `unused_since` or later (it stays, and that is success). An
  /// absent artifact is success.
  virtual base::Status Remove(const std::string& ns, const std::string& digest,
                              base::TimePoint unused_since = base::TimePoint::max()) = 0;
  virtual base::Result<std::vector<Info>> List(const std::string& ns) const = 0;
  virtual base::Result<std::vector<std::string>> Namespaces() const = 0;
};

}  // namespace sless::artifact
