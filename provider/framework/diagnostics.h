#pragma once

// What the user is told: errors and warnings, each at a path in the configuration.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/base/result.h"
#include "provider/cty/path.h"

namespace sless::framework {

enum class Severity { kError, kWarning };

/// `summary` is one short line without a final full stop, the same for one class of problem.
/// `detail` says in sentences what happened, why, and what to do; it may have several lines. Never
/// a secret, never a sensitive value.
struct Diagnostic {
  Severity severity = Severity::kError;
  std::string summary;
  std::string detail;
  std::optional<cty::Path> path;  ///< from the root of the block; none: the block as a whole
  bool operator==(const Diagnostic&) const = default;
};

/// Maps one JSON pointer of the server's objects to the attribute that it came from.
struct FieldMapping {
  /// "/spec/memoryMb"; the longest mapping that leads to the error's field is taken
  std::string pointer;
  cty::Path path;
  bool is_map = false;  ///< the next segment of the field is a map key: /spec/environment/A →
                        ///< environment["A"]
};
using FieldMap = std::vector<FieldMapping>;

/// A list of diagnostics in order, without equal ones. Not thread-safe.
class Diagnostics {
 public:
  void AddError(std::string summary, std::string detail);
  void AddError(cty::Path path, std::string summary, std::string detail);
  void AddWarning(std::string summary, std::string detail);
  void AddWarning(cty::Path path, std::string summary, std::string detail);
  void Add(Diagnostic diagnostic);
  void Append(const Diagnostics& other);
  /// The one place where an Error becomes a diagnostic: see FromError.
  void Add(const base::Error& error, std::string_view action, const FieldMap& fields = {});

  bool HasError() const;
  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  const std::vector<Diagnostic>& items() const { return items_; }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  /// One line each, for tests and logs: `error: memory_mb: Summary: detail`.
  std::string ToString() const;

 private:
  std::vector<Diagnostic> items_;
};

/// `action` says what was tried, in the form "create function default/orders"; the summary becomes
/// "Cannot <action>". The detail holds the message, what the error's code means for the user,
/// file:line and the last log lines of `error.source`. `error.field` becomes the path through
/// `fields`; a field that no mapping covers is named in the detail.
Diagnostic FromError(const base::Error& error, std::string_view action,
                     const FieldMap& fields = {});

}  // namespace sless::framework
