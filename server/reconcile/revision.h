#pragma once

// The kind Revision, known to the server only: what one revision of a function is made of, so that
// it can be served again after a restart. Named "<function>.<number>".

#include <optional>
#include <string>

#include "client/api/function.h"
#include "client/api/object.h"
#include "server/runtime/runtime.h"
#include "server/store/typed.h"

namespace sless::reconcile {

struct RevisionSpec {
  int64_t number = 0;
  std::string input;       ///< domain::RevisionInput of `function`
  int64_t generation = 0;  ///< of the function, when this revision was made
  api::FunctionSpec function;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("number", self.number, api::Doc{"number of the revision"});
    visit("input", self.input, api::Doc{"what makes a revision differ from another"});
    visit("generation", self.generation, api::Doc{"generation of the function that asked for it"});
    visit("function", self.function, api::Doc{"the whole spec"});
  }
  bool operator==(const RevisionSpec&) const = default;
};

struct RevisionStatus {
  std::string phase = "Pending";        ///< Pending | Built | Ready | Failed
  std::string code_dir;                 ///< from Built on
  std::string deps_dir;                 ///< "" if there are no dependencies
  std::string built_at;                 ///< RFC 3339
  std::optional<api::Failure> failure;  ///< where Failed
  std::string retry;                    ///< where Failed: the function's api::kRetryAnnotation then

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("phase", self.phase, api::Doc{"where it stands", "Pending|Built|Ready|Failed"});
    visit("codeDir", self.code_dir, api::Doc{"code layer"});
    visit("depsDir", self.deps_dir, api::Doc{"dependency layer"});
    visit("builtAt", self.built_at, api::Doc{"RFC 3339"});
    visit("failure", self.failure, api::Doc{"why, where phase is Failed"});
    visit("retry", self.retry, api::Doc{"retry annotation of the function when it failed"});
  }
  bool operator==(const RevisionStatus&) const = default;
};

inline constexpr std::string_view kKindRevision = "Revision";
using Revision = api::Object<RevisionSpec, RevisionStatus>;

std::string RevisionName(const std::string& function, int64_t number);
runtime::RevisionKey KeyOfRevision(const Revision& revision, const std::string& function);
runtime::ReplicaSpec ReplicaSpecOf(const Revision& revision);
/// True if the layers of a revision that was built still lie there, below `layers_dir`: a data
/// folder that was copied names the layers of the server that it was copied from.
bool LayersPresent(const Revision& revision, const std::string& layers_dir);

}  // namespace sless::reconcile

namespace sless::store {
template <>
struct KindOf<reconcile::Revision> {
  static constexpr std::string_view value = reconcile::kKindRevision;
};
}  // namespace sless::store
