#include "server/handlers/kinds.h"

#include <fmt/format.h>

#include "client/api/fields.h"
#include "client/api/function.h"
#include "client/api/job.h"
#include "client/api/routes.h"
#include "client/api/trigger.h"
#include "client/source/source.h"
#include "server/domain/validate.h"
#include "server/handlers/schema.h"
#include "server/store/typed.h"

namespace sless::handlers {
namespace {

// Layers are kept and revisions are told apart by the hash alone.
base::Status CheckInlineCode(const api::FunctionSpec& spec) {
  if (spec.source.type != "code") return base::Ok();
  auto tree = source::InlineTree(spec.runtime, spec.entrypoint, spec.source.code);
  if (!tree) {
    auto error = std::move(tree).error();
    error.field = "/spec/source/code";
    return base::Err(std::move(error));
  }
  const auto found = source::TreeHash(*tree);
  if (found == spec.source.hash) return base::Ok();
  return base::Err(base::Code::kFailedPrecondition,
                   fmt::format("the code, as the file {}, has the hash {}, but it was sent with {}",
                               tree->entries.front().path, found, spec.source.hash),
                   "/spec/source/hash", "HashMismatch");
}

template <class T>
nlohmann::json WithKind(nlohmann::json schema) {
  schema["properties"]["kind"] = {
      {"type", "string"}, {"description", "what it is"}, {"enum", {store::KindOf<T>::value}}};
  return schema;
}

template <class T>
Kind Make(base::Status (*validate)(const typename T::Spec&),
          std::vector<std::string_view> final_phases,
          base::Status (*check_update)(const T& before, const typename T::Spec& after)) {
  using Spec = typename T::Spec;
  const auto parse = [](const std::string& text) {
    return api::FromJsonText<Spec>(text, api::Unknown::kIgnore, "/spec");
  };
  Kind kind;
  kind.name = store::KindOf<T>::value;
  kind.plural = api::Plural(kind.name);
  kind.final_phases = std::move(final_phases);
  kind.read_spec = [validate](const nlohmann::json& in) -> base::Result<std::string> {
    ASSIGN_OR_RETURN(const auto spec, api::FromJson<Spec>(in, api::Unknown::kError, "/spec"));
    RETURN_IF_ERROR(validate(spec));
    return api::ToJsonText(spec);
  };
  kind.new_status = [] { return api::ToJsonText(typename T::Status{}); };
  kind.write = [](const store::StoredObject& stored) -> base::Result<nlohmann::json> {
    ASSIGN_OR_RETURN(const auto object, store::FromStored<T>(stored));
    auto json = api::ToJson(object);
    json["kind"] = stored.key.kind;
    return json;
  };
  kind.same_spec = [parse](const std::string& a, const std::string& b) {
    const auto x = parse(a);
    const auto y = parse(b);
    return x && y && *x == *y;
  };
  kind.check_update = [parse, check_update](const store::StoredObject& before,
                                            const std::string& text) -> base::Status {
    if (check_update == nullptr) return base::Ok();
    ASSIGN_OR_RETURN(const auto object, store::FromStored<T>(before));
    ASSIGN_OR_RETURN(const auto spec, parse(text));
    return check_update(object, spec);
  };
  kind.needs_code = [parse](const std::string& text) -> std::string {
    if constexpr (std::is_same_v<T, api::Function>) {
      const auto spec = parse(text);
      if (spec && spec->source.type != "code") return spec->source.hash;
    }
    return "";
  };
  kind.check_inline_code = [parse](const std::string& text) -> base::Status {
    if constexpr (std::is_same_v<T, api::Function>) {
      ASSIGN_OR_RETURN(const auto spec, parse(text));
      return CheckInlineCode(spec);
    }
    return base::Ok();
  };
  kind.schema = [] {
    auto schema = WithKind<T>(SchemaVisitor::Schema<T>(Use::kAnswer));
    schema["required"].push_back("kind");
    return schema;
  };
  kind.input_schema = [] {
    auto schema = WithKind<T>(SchemaVisitor::Schema<T>(Use::kInput));
    schema["properties"]["status"] = {{"description", "ignored"}};
    return schema;
  };
  kind.patch_schema = [] {
    auto schema = SchemaVisitor::Schema<T>(Use::kPatch);
    auto& properties = schema["properties"];
    properties.erase("status");
    auto& metadata = properties["metadata"];
    metadata["type"] = "object";
    metadata["properties"] = {{"annotations", metadata["properties"]["annotations"]}};
    return schema;
  };
  return kind;
}

}  // namespace

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds{
      Make<api::Function>(&domain::ValidateFunction, {"Ready", "Failed"}, nullptr),
      Make<api::Trigger>(&domain::ValidateTrigger, {"Ready", "Disabled", "Failed"},
                         [](const api::Trigger& before, const api::TriggerSpec& after) {
                           return domain::ValidateTriggerUpdate(before.spec, after);
                         }),
      Make<api::Job>(&domain::ValidateJob, {"Succeeded", "Failed", "Skipped"},
                     [](const api::Job& before, const api::JobSpec& after) {
                       return domain::ValidateJobUpdate(before.status, after);
                     }),
  };
  return kinds;
}

}  // namespace sless::handlers
