#pragma once

// What every API object has: key, metadata, and the JSON form
//   {"kind": …, "metadata": {…}, "spec": {…}, "status": {…}}.
// Data, no behaviour. Each field is declared once, in Fields(); JSON, OpenAPI and field docs are
// visitors (fields.h).

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sless::api {

/// What a field means, for OpenAPI and the field docs.
struct Doc {
  std::string_view text;
  std::string_view values = "";  ///< the allowed words, separated by '|'
  int64_t min = INT64_MIN;
  int64_t max = INT64_MAX;  ///< of a number; of a text its bytes, of a map its members
  bool sensitive = false;
  std::string_view pattern = "";  ///< regular expression of a text, or of each text of a list
  bool required = false;          ///< an object cannot be written without it: no default is valid
};

/// As in Doc::pattern: base::DnsLabelProblem and base::IsContentHash.
inline constexpr std::string_view kDnsLabelPattern = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$";
inline constexpr std::string_view kContentHashPattern = "^sha256:[0-9a-f]{64}$";

/// What kind of member a visitor has before it.
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

/// Names one object. `ns` and `name` are DNS labels (RFC 1123, 1 to 63 characters) for the public
/// kinds.
struct ObjectKey {
  std::string kind;  ///< "Function", "Trigger", "Job"; server-only: "Run", "Revision", "Token"
  std::string ns;
  std::string name;
  auto operator<=>(const ObjectKey&) const = default;
  bool operator==(const ObjectKey&) const = default;
  std::string ToString() const { return kind + " " + ns + "/" + name; }
  /// "namespace/name", the id in Terraform.
  std::string Id() const { return ns + "/" + name; }
};

struct Metadata {
  std::string ns;
  std::string name;
  std::string uid;                                 ///< set by the server, never reused
  int64_t generation = 0;                          ///< raised by each change of spec
  std::string resource_version;                    ///< changes with every write; opaque
  std::string created_at;                          ///< RFC 3339
  std::string updated_at;                          ///< RFC 3339, last change of spec
  std::string deletion_requested_at;               ///< RFC 3339; not empty: being deleted
  std::map<std::string, std::string> annotations;  ///< kept as they are, no effect on what runs

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("namespace", self.ns, Doc{"DNS label"});
    visit("name", self.name, Doc{"DNS label"});
    visit("uid", self.uid, Doc{"set by the server, never reused"});
    visit("generation", self.generation, Doc{"raised by each change of spec"});
    visit("resourceVersion", self.resource_version,
          Doc{"changes with every write; send it back to change only what you have read"});
    visit("createdAt", self.created_at, Doc{"RFC 3339"});
    visit("updatedAt", self.updated_at, Doc{"RFC 3339, last change of spec"});
    visit("deletionRequestedAt", self.deletion_requested_at,
          Doc{"RFC 3339; not empty while the object is being deleted"});
    visit("annotations", self.annotations, Doc{"notes of the client; no effect on what runs"});
  }
  bool operator==(const Metadata&) const = default;
};

/// Annotation of an object whose creating client has not yet seen it ready: a repeated create may
/// take it over. The client removes it when its create has ended well, so that an interrupted
/// create never needs hand work.
inline constexpr std::string_view kCreatingAnnotation = "sless.dev/creating";

/// Annotation that names the create which made the object or took it over last. A delete on behalf
/// of an earlier create leaves the object alone (docs/decisions/0016).
inline constexpr std::string_view kOwnerAnnotation = "sless.dev/owner";

/// Why something failed, and where in the user's code.
struct Failure {
  std::string reason;  ///< BuildFailed, StartFailed, SourceMissing, Timeout, …
  std::string message;
  std::string file;                   ///< relative to the function's root
  int64_t line = 0;                   ///< 1-based, 0 if not known
  std::vector<std::string> log_tail;  ///< at most 30 lines, oldest first

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("reason", self.reason, Doc{"stable word for programs"});
    visit("message", self.message, Doc{"what was wanted, what was found, what to do"});
    visit("file", self.file, Doc{"file in the function's source"});
    visit("line", self.line, Doc{"line in that file, from 1; 0 if not known"});
    visit("logTail", self.log_tail, Doc{"last log lines, oldest first, at most 30"});
  }
  bool operator==(const Failure&) const = default;
};

/// A whole object of one kind.
template <class SpecT, class StatusT>
struct Object {
  using Spec = SpecT;
  using Status = StatusT;
  Metadata metadata;
  SpecT spec;
  StatusT status;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("metadata", self.metadata, Doc{"name, version, times"});
    visit("spec", self.spec, Doc{.text = "what is wanted", .required = true});
    visit("status", self.status, Doc{"what is; written by the server only"});
  }
};

}  // namespace sless::api
