#include "provider/plugin/provider_service.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <mutex>
#include <utility>

#include "proto/tfplugin6/tfplugin6.grpc.pb.h"
#include "provider/framework/engine/apply.h"
#include "provider/framework/engine/call.h"
#include "provider/framework/engine/engine.h"
#include "provider/framework/engine/plan.h"
#include "provider/framework/engine/read.h"
#include "provider/framework/engine/state.h"
#include "provider/framework/engine/validate.h"
#include "provider/plugin/call_scope.h"
#include "provider/plugin/convert.h"
#include "provider/plugin/running_calls.h"

namespace sless::plugin {
namespace {

namespace engine = framework::engine;
using base::Ok;
using base::Status;
using engine::Call;
using framework::Diagnostics;
using grpc::ServerContext;

void SetCapabilities(tfplugin6::ServerCapabilities* out) {
  out->set_plan_destroy(true);
  out->set_get_provider_schema_optional(true);
  out->set_move_resource_state(true);
  out->set_generate_resource_config(true);
}

template <class Value>
void SetTime(const std::optional<base::TimePoint>& time, Value* response) {
  if (!time) return;
  const auto since = time->time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  response->mutable_renew_at()->set_seconds(seconds.count());
  response->mutable_renew_at()->set_nanos(static_cast<int32_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since - seconds).count()));
}

// Methods are short: Serve does what is the same for all, the body says what goes where. State
// stores are left to the base class, which answers UNIMPLEMENTED: no such object is in the schema,
// so no host asks.
class ProviderService final : public tfplugin6::Provider::Service {
 public:
  ProviderService(engine::Engine& engine, RunningCalls& calls, LogSink log)
      : engine_(engine), deps_{calls, engine.clock(), log} {}

  // ---- Provider level ----

  grpc::Status GetMetadata(ServerContext* context, const tfplugin6::GetMetadataRpc::Request*,
                           tfplugin6::GetMetadataRpc::Response* response) override {
    return Serve("GetMetadata", context, "", response->mutable_diagnostics(),
                 [&](const Call&, Diagnostics&) -> Status {
                   const engine::Catalog& catalog = engine_.catalog();
                   SetCapabilities(response->mutable_server_capabilities());
                   for (auto& name : catalog.ResourceNames())
                     response->add_resources()->set_type_name(name);
                   for (auto& name : catalog.DataSourceNames())
                     response->add_data_sources()->set_type_name(name);
                   for (auto& name : catalog.FunctionNames())
                     response->add_functions()->set_name(name);
                   for (auto& name : catalog.EphemeralNames())
                     response->add_ephemeral_resources()->set_type_name(name);
                   for (auto& name : catalog.ActionNames())
                     response->add_actions()->set_type_name(name);
                   for (auto& name : catalog.ListNames())
                     response->add_list_resources()->set_type_name(name);
                   return Ok();
                 });
  }

  grpc::Status GetProviderSchema(ServerContext* context,
                                 const tfplugin6::GetProviderSchema::Request*,
                                 tfplugin6::GetProviderSchema::Response* response) override {
    return Serve("GetProviderSchema", context, "", response->mutable_diagnostics(),
                 [&](const Call&, Diagnostics&) -> Status {
                   const engine::Catalog& catalog = engine_.catalog();
                   SetCapabilities(response->mutable_server_capabilities());
                   *response->mutable_provider() = ToProto(catalog.provider_schema());
                   for (auto& name : catalog.ResourceNames()) {
                     (*response->mutable_resource_schemas())[name] =
                         ToProto(catalog.FindResource(name)->schema);
                   }
                   for (auto& name : catalog.DataSourceNames()) {
                     (*response->mutable_data_source_schemas())[name] =
                         ToProto(catalog.FindDataSource(name)->schema);
                   }
                   for (auto& name : catalog.FunctionNames()) {
                     (*response->mutable_functions())[name] =
                         ToProto(catalog.FindFunction(name)->definition);
                   }
                   for (auto& name : catalog.EphemeralNames()) {
                     (*response->mutable_ephemeral_resource_schemas())[name] =
                         ToProto(catalog.FindEphemeral(name)->schema);
                   }
                   for (auto& name : catalog.ActionNames()) {
                     *(*response->mutable_action_schemas())[name].mutable_schema() =
                         ToProto(catalog.FindAction(name)->schema);
                   }
                   for (auto& name : catalog.ListNames()) {
                     (*response->mutable_list_resource_schemas())[name] =
                         ToProto(catalog.FindList(name)->schema);
                   }
                   return Ok();
                 });
  }

  grpc::Status GetResourceIdentitySchemas(
      ServerContext* context, const tfplugin6::GetResourceIdentitySchemas::Request*,
      tfplugin6::GetResourceIdentitySchemas::Response* response) override {
    return Serve("GetResourceIdentitySchemas", context, "", response->mutable_diagnostics(),
                 [&](const Call&, Diagnostics&) -> Status {
                   for (auto& name : engine_.catalog().ResourceNames()) {
                     const auto& identity = engine_.catalog().FindResource(name)->identity;
                     if (identity)
                       (*response->mutable_identity_schemas())[name] = ToProto(*identity);
                   }
                   return Ok();
                 });
  }

  grpc::Status ValidateProviderConfig(
      ServerContext* context, const tfplugin6::ValidateProviderConfig::Request* request,
      tfplugin6::ValidateProviderConfig::Response* response) override {
    return Serve("ValidateProviderConfig", context, "", response->mutable_diagnostics(),
                 [&](const Call&, Diagnostics& diagnostics) -> Status {
                   ASSIGN_OR_RETURN(
                       auto config,
                       FromProto(request->config(), engine_.catalog().provider_type(), "config"));
                   diagnostics.Append(engine::ValidateProvider(engine_, config));
                   return Ok();
                 });
  }

  grpc::Status ConfigureProvider(ServerContext* context,
                                 const tfplugin6::ConfigureProvider::Request* request,
                                 tfplugin6::ConfigureProvider::Response* response) override {
    return Serve("ConfigureProvider", context, "", response->mutable_diagnostics(),
                 [&](const Call& call, Diagnostics& diagnostics) -> Status {
                   ASSIGN_OR_RETURN(
                       auto config,
                       FromProto(request->config(), engine_.catalog().provider_type(), "config"));
                   diagnostics.Append(engine_.Configure(call, request->terraform_version(), config,
                                                        FromProto(request->client_capabilities())));
                   return Ok();
                 });
  }

  // Asks the calls that run now to return soon with what they have; more calls may come.
  grpc::Status StopProvider(ServerContext*, const tfplugin6::StopProvider::Request*,
                            tfplugin6::StopProvider::Response*) override {
    deps_.calls.StopAll();
    return grpc::Status::OK;
  }

  // ---- Managed resources ----

  grpc::Status ValidateResourceConfig(
      ServerContext* context, const tfplugin6::ValidateResourceConfig::Request* request,
      tfplugin6::ValidateResourceConfig::Response* response) override {
    return Serve(
        "ValidateResourceConfig", context, request->type_name(), response->mutable_diagnostics(),
        [&](const Call&, Diagnostics& diagnostics) -> Status {
          const auto* entry = Resource(request->type_name(), diagnostics);
          if (entry == nullptr) return Ok();
          ASSIGN_OR_RETURN(auto config, FromProto(request->config(), entry->type, "config"));
          diagnostics.Append(
              engine::ValidateResource(*entry, config, FromProto(request->client_capabilities())));
          return Ok();
        });
  }

  grpc::Status UpgradeResourceState(ServerContext* context,
                                    const tfplugin6::UpgradeResourceState::Request* request,
                                    tfplugin6::UpgradeResourceState::Response* response) override {
    return Serve("UpgradeResourceState", context, request->type_name(),
                 response->mutable_diagnostics(),
                 [&](const Call& call, Diagnostics& diagnostics) -> Status {
                   const auto* entry = Resource(request->type_name(), diagnostics);
                   if (entry == nullptr) return Ok();
                   auto result = engine::UpgradeState(
                       engine_, call, *entry, {request->version(), request->raw_state().json()});
                   diagnostics.Append(result.diagnostics);
                   return ToProto(result.state, entry->type, "upgraded state",
                                  response->mutable_upgraded_state());
                 });
  }

  grpc::Status UpgradeResourceIdentity(
      ServerContext* context, const tfplugin6::UpgradeResourceIdentity::Request* request,
      tfplugin6::UpgradeResourceIdentity::Response* response) override {
    return Serve(
        "UpgradeResourceIdentity", context, request->type_name(), response->mutable_diagnostics(),
        [&](const Call&, Diagnostics& diagnostics) -> Status {
          const auto* entry = Resource(request->type_name(), diagnostics);
          if (entry == nullptr) return Ok();
          auto result =
              engine::UpgradeIdentity(*entry, {request->version(), request->raw_identity().json()});
          diagnostics.Append(result.diagnostics);
          if (result.state.IsNull()) return Ok();
          return ToProto(result.state, entry->identity_type, "upgraded identity",
                         response->mutable_upgraded_identity()->mutable_identity_data());
        });
  }

  grpc::Status ReadResource(ServerContext* context, const tfplugin6::ReadResource::Request* request,
                            tfplugin6::ReadResource::Response* response) override {
    // What the host has stays where an error leaves nothing better.
    *response->mutable_new_state() = request->current_state();
    response->set_private_(request->private_());
    if (request->has_current_identity())
      *response->mutable_new_identity() = request->current_identity();
    return Serve("ReadResource", context, request->type_name(), response->mutable_diagnostics(),
                 [&](const Call& call, Diagnostics& diagnostics) -> Status {
                   const auto* entry = Resource(request->type_name(), diagnostics);
                   if (entry == nullptr) return Ok();
                   ASSIGN_OR_RETURN(auto state, FromProto(request->current_state(), entry->type,
                                                          "current state"));
                   ASSIGN_OR_RETURN(auto identity,
                                    FromProto(request->current_identity(), entry->identity_type));
                   auto result = engine::ReadResource(engine_, call, *entry,
                                                      {state, request->private_(), identity});
                   diagnostics.Append(result.diagnostics);
                   RETURN_IF_ERROR(ToProto(result.state, entry->type, "new state",
                                           response->mutable_new_state()));
                   response->set_private_(result.private_data);
                   if (result.identity.IsNull()) return Ok();
                   return ToProto(result.identity, entry->identity_type, "new identity",
                                  response->mutable_new_identity()->mutable_identity_data());
                 });
  }

  grpc::Status PlanResourceChange(ServerContext* context,
                                  const tfplugin6::PlanResourceChange::Request* request,
                                  tfplugin6::PlanResourceChange::Response* response) override {
    *response->mutable_planned_state() = request->proposed_new_state();
    return Serve(
        "PlanResourceChange", context, request->type_name(), response->mutable_diagnostics(),
        [&](const Call& call, Diagnostics& diagnostics) -> Status {
          const auto* entry = Resource(request->type_name(), diagnostics);
          if (entry == nullptr) return Ok();
          engine::PlanRequest plan;
          ASSIGN_OR_RETURN(plan.config, FromProto(request->config(), entry->type, "config"));
          ASSIGN_OR_RETURN(plan.prior,
                           FromProto(request->prior_state(), entry->type, "prior state"));
          ASSIGN_OR_RETURN(plan.proposed, FromProto(request->proposed_new_state(), entry->type,
                                                    "proposed new state"));
          ASSIGN_OR_RETURN(plan.prior_identity,
                           FromProto(request->prior_identity(), entry->identity_type));
          plan.prior_private = request->prior_private();
          plan.capabilities = FromProto(request->client_capabilities());
          auto result = engine::PlanResource(engine_, call, *entry, std::move(plan));
          diagnostics.Append(result.diagnostics);
          for (const auto& path : result.requires_replace)
            *response->add_requires_replace() = ToProto(path);
          response->set_planned_private(result.planned_private);
          RETURN_IF_ERROR(ToProto(result.planned, entry->type, "planned state",
                                  response->mutable_planned_state()));
          if (result.planned_identity.IsNull()) return Ok();
          return ToProto(result.planned_identity, entry->identity_type, "planned identity",
                         response->mutable_planned_identity()->mutable_identity_data());
        });
  }

  grpc::Status ApplyResourceChange(ServerContext* context,
                                   const tfplugin6::ApplyResourceChange::Request* request,
                                   tfplugin6::ApplyResourceChange::Response* response) override {
    // If all else fails the prior object is kept, with its private data and identity.
    *response->mutable_new_state() = request->prior_state();
    response->set_private_(request->planned_private());
    if (request->has_planned_identity())
      *response->mutable_new_identity() = request->planned_identity();
    return Serve(
        "ApplyResourceChange", context, request->type_name(), response->mutable_diagnostics(),
        [&](const Call& call, Diagnostics& diagnostics) -> Status {
          const auto* entry = Resource(request->type_name(), diagnostics);
          if (entry == nullptr) return Ok();
          engine::ApplyRequest apply;
          ASSIGN_OR_RETURN(apply.config, FromProto(request->config(), entry->type, "config"));
          ASSIGN_OR_RETURN(apply.prior,
                           FromProto(request->prior_state(), entry->type, "prior state"));
          ASSIGN_OR_RETURN(apply.planned,
                           FromProto(request->planned_state(), entry->type, "planned state"));
          ASSIGN_OR_RETURN(apply.planned_identity,
                           FromProto(request->planned_identity(), entry->identity_type));
          apply.planned_private = request->planned_private();
          auto result = engine::ApplyResource(engine_, call, *entry, std::move(apply));
          diagnostics.Append(result.diagnostics);
          response->set_private_(result.private_data);
          RETURN_IF_ERROR(
              ToProto(result.state, entry->type, "new state", response->mutable_new_state()));
          response->clear_new_identity();
          if (result.identity.IsNull()) return Ok();
          return ToProto(result.identity, entry->identity_type, "new identity",
                         response->mutable_new_identity()->mutable_identity_data());
        });
  }

  grpc::Status ImportResourceState(ServerContext* context,
                                   const tfplugin6::ImportResourceState::Request* request,
                                   tfplugin6::ImportResourceState::Response* response) override {
    return Serve(
        "ImportResourceState", context, request->type_name(), response->mutable_diagnostics(),
        [&](const Call& call, Diagnostics& diagnostics) -> Status {
          const auto* entry = Resource(request->type_name(), diagnostics);
          if (entry == nullptr) return Ok();
          ASSIGN_OR_RETURN(auto identity, FromProto(request->identity(), entry->identity_type));
          auto result = engine::ImportResource(engine_, call, *entry, {request->id(), identity});
          diagnostics.Append(result.diagnostics);
          if (result.state.IsNull()) return Ok();
          auto* imported = response->add_imported_resources();
          imported->set_type_name(request->type_name());
          imported->set_private_(result.private_data);
          RETURN_IF_ERROR(
              ToProto(result.state, entry->type, "imported state", imported->mutable_state()));
          if (result.identity.IsNull()) return Ok();
          return ToProto(result.identity, entry->identity_type, "imported identity",
                         imported->mutable_identity()->mutable_identity_data());
        });
  }

  grpc::Status MoveResourceState(ServerContext* context,
                                 const tfplugin6::MoveResourceState::Request* request,
                                 tfplugin6::MoveResourceState::Response* response) override {
    return Serve(
        "MoveResourceState", context, request->target_type_name(), response->mutable_diagnostics(),
        [&](const Call& call, Diagnostics& diagnostics) -> Status {
          const auto* entry = Resource(request->target_type_name(), diagnostics);
          if (entry == nullptr) return Ok();
          auto result =
              engine::MoveResource(engine_, call, *entry,
                                   {request->source_provider_address(), request->source_type_name(),
                                    request->source_schema_version(),
                                    request->source_state().json(), request->source_private()});
          diagnostics.Append(result.diagnostics);
          response->set_target_private(result.private_data);
          RETURN_IF_ERROR(
              ToProto(result.state, entry->type, "target state", response->mutable_target_state()));
          if (result.identity.IsNull()) return Ok();
          return ToProto(result.identity, entry->identity_type, "target identity",
                         response->mutable_target_identity()->mutable_identity_data());
        });
  }

  grpc::Status GenerateResourceConfig(
      ServerContext* context, const tfplugin6::GenerateResourceConfig::Request* request,
      tfplugin6::GenerateResourceConfig::Response* response) override {
    return Serve("GenerateResourceConfig", context, request->type_name(),
                 response->mutable_diagnostics(),
                 [&](const Call&, Diagnostics& diagnostics) -> Status {
                   const auto* entry = Resource(request->type_name(), diagnostics);
                   if (entry == nullptr) return Ok();
                   ASSIGN_OR_RETURN(auto state, FromProto(request->state(), entry->type, "state"));
                   return ToProto(engine::GenerateConfig(*entry, state), entry->type, "config",
                                  response->mutable_config());
                 });
  }

  // ---- Data sources ----

  grpc::Status ValidateDataResourceConfig(
      ServerContext* context, const tfplugin6::ValidateDataResourceConfig::Request* request,
      tfplugin6::ValidateDataResourceConfig::Response* response) override {
    return Serve(
        "ValidateDataResourceConfig", context, request->type_name(),
        response->mutable_diagnostics(), [&](const Call&, Diagnostics& diagnostics) -> Status {
          const auto* entry = DataSource(request->type_name(), diagnostics);
          if (entry == nullptr) return Ok();
          ASSIGN_OR_RETURN(auto config, FromProto(request->config(), entry->type, "config"));
          diagnostics.Append(engine::ValidateDataSource(*entry, config));
          return Ok();
        });
  }

  grpc::Status ReadDataSource(ServerContext* context,
                              const tfplugin6::ReadDataSource::Request* request,
                              tfplugin6::ReadDataSource::Response* response) override {
    return Serve("ReadDataSource", context, request->type_name(), response->mutable_diagnostics(),
                 [&](const Call& call, Diagnostics& diagnostics) -> Status {
                   const auto* entry = DataSource(request->type_name(), diagnostics);
                   if (entry == nullptr) return Ok();
                   ASSIGN_OR_RETURN(auto config,
                                    FromProto(request->config(), entry->type, "config"));
                   auto result = engine::ReadData(engine_, call, *entry, config);
                   diagnostics.Append(result.diagnostics);
                   return ToProto(result.state, entry->type, "state", response->mutable_state());
                 });
  }

  // ---- Ephemeral resources ----

  grpc::Status ValidateEphemeralResourceConfig(
      ServerContext* context, const tfplugin6::ValidateEphemeralResourceConfig::Request* request,
      tfplugin6::ValidateEphemeralResourceConfig::Response* response) override {
    return Serve(
        "ValidateEphemeralResourceConfig", context, request->type_name(),
        response->mutable_diagnostics(), [&](const Call&, Diagnostics& diagnostics) -> Status {
          const auto* entry = Ephemeral(request->type_name(), diagnostics);
          if (entry == nullptr) return Ok();
          ASSIGN_OR_RETURN(auto config, FromProto(request->config(), entry->type, "config"));
          diagnostics.Append(engine::ValidateEphemeral(*entry, config));
          return Ok();
        });
  }

  grpc::Status OpenEphemeralResource(
      ServerContext* context, const tfplugin6::OpenEphemeralResource::Request* request,
      tfplugin6::OpenEphemeralResource::Response* response) override {
    return Serve(
        "OpenEphemeralResource", context, request->type_name(), response->mutable_diagnostics(),
        [&](const Call& call, Diagnostics& diagnostics) -> Status {
          const auto* entry = Ephemeral(request->type_name(), diagnostics);
          if (entry == nullptr) return Ok();
          ASSIGN_OR_RETURN(auto config, FromProto(request->config(), entry->type, "config"));
          auto result = engine::OpenEphemeral(engine_, call, *entry, config);
          diagnostics.Append(result.diagnostics);
          SetTime(result.renew_at, response);
          response->set_private_(result.private_data);
          return ToProto(result.result, entry->type, "result", response->mutable_result());
        });
  }

  grpc::Status RenewEphemeralResource(
      ServerContext* context, const tfplugin6::RenewEphemeralResource::Request* request,
      tfplugin6::RenewEphemeralResource::Response* response) override {
    return Serve("RenewEphemeralResource", context, request->type_name(),
                 response->mutable_diagnostics(),
                 [&](const Call& call, Diagnostics& diagnostics) -> Status {
                   const auto* entry = Ephemeral(request->type_name(), diagnostics);
                   if (entry == nullptr) return Ok();
                   auto result = engine::RenewEphemeral(engine_, call, *entry, request->private_());
                   diagnostics.Append(result.diagnostics);
                   SetTime(result.renew_at, response);
                   response->set_private_(result.private_data);
                   return Ok();
                 });
  }

  grpc::Status CloseEphemeralResource(
      ServerContext* context, const tfplugin6::CloseEphemeralResource::Request* request,
      tfplugin6::CloseEphemeralResource::Response* response) override {
    return Serve(
        "CloseEphemeralResource", context, request->type_name(), response->mutable_diagnostics(),
        [&](const Call& call, Diagnostics& diagnostics) -> Status {
          const auto* entry = Ephemeral(request->type_name(), diagnostics);
          if (entry == nullptr) return Ok();
          diagnostics.Append(engine::CloseEphemeral(engine_, call, *entry, request->private_()));
          return Ok();
        });
  }

  // ---- Functions ----

  grpc::Status GetFunctions(ServerContext* context, const tfplugin6::GetFunctions::Request*,
                            tfplugin6::GetFunctions::Response* response) override {
    return Serve("GetFunctions", context, "", response->mutable_diagnostics(),
                 [&](const Call&, Diagnostics&) -> Status {
                   for (auto& name : engine_.catalog().FunctionNames()) {
                     (*response->mutable_functions())[name] =
                         ToProto(engine_.catalog().FindFunction(name)->definition);
                   }
                   return Ok();
                 });
  }

  grpc::Status CallFunction(ServerContext* context, const tfplugin6::CallFunction::Request* request,
                            tfplugin6::CallFunction::Response* response) override {
    // A function has no diagnostics: the first error becomes its error text.
    const Diagnostics diagnostics =
        Scope("CallFunction", context, "").Run([&](const Call&, Diagnostics& found) -> Status {
          const auto* entry = engine_.catalog().FindFunction(request->name());
          if (entry == nullptr) {
            found.Add(engine::UnknownType("function", request->name(),
                                          engine_.catalog().FunctionNames()));
            return Ok();
          }
          return CallFound(*entry, *request, *response);
        });
    if (!diagnostics.empty() && !response->has_error()) {
      const auto& first = diagnostics.items().front();
      response->mutable_error()->set_text(
          ToUtf8(fmt::format("{}: {}", first.summary, first.detail)));
    }
    return grpc::Status::OK;
  }

  // ---- Lists ----

  grpc::Status ValidateListResourceConfig(
      ServerContext* context, const tfplugin6::ValidateListResourceConfig::Request* request,
      tfplugin6::ValidateListResourceConfig::Response* response) override {
    return Serve(
        "ValidateListResourceConfig", context, request->type_name(),
        response->mutable_diagnostics(), [&](const Call&, Diagnostics& diagnostics) -> Status {
          const auto* entry = List(request->type_name(), diagnostics);
          if (entry == nullptr) return Ok();
          ASSIGN_OR_RETURN(auto config, FromProto(request->config(), entry->type, "config"));
          diagnostics.Append(engine::ValidateList(*entry, config));
          return Ok();
        });
  }

  grpc::Status ListResource(ServerContext* context, const tfplugin6::ListResource::Request* request,
                            grpc::ServerWriter<tfplugin6::ListResource::Event>* writer) override {
    const Diagnostics diagnostics =
        Scope("ListResource", context, request->type_name())
            .Run([&](const Call& call, Diagnostics& found) -> Status {
              const auto* entry = List(request->type_name(), found);
              const auto* resource =
                  entry == nullptr ? nullptr : Resource(request->type_name(), found);
              if (resource == nullptr) return Ok();
              ASSIGN_OR_RETURN(auto config, FromProto(request->config(), entry->type, "config"));
              Status status = Ok();
              engine::ListObjects(engine_, call, *entry, *resource,
                                  {config, request->include_resource_object(), request->limit()},
                                  [&](framework::ListedObject object) {
                                    tfplugin6::ListResource::Event event;
                                    status = Fill(*resource, object, &event);
                                    return status.has_value() && !context->IsCancelled() &&
                                           writer->Write(event);
                                  });
              return status;
            });
    if (!diagnostics.empty()) {
      tfplugin6::ListResource::Event event;
      Append(diagnostics, *event.mutable_diagnostic());
      writer->Write(event);
    }
    return grpc::Status::OK;
  }

  // ---- Actions ----

  grpc::Status ValidateActionConfig(ServerContext* context,
                                    const tfplugin6::ValidateActionConfig::Request* request,
                                    tfplugin6::ValidateActionConfig::Response* response) override {
    return Serve(
        "ValidateActionConfig", context, request->type_name(), response->mutable_diagnostics(),
        [&](const Call&, Diagnostics& diagnostics) -> Status {
          const auto* entry = Action(request->type_name(), diagnostics);
          if (entry == nullptr) return Ok();
          ASSIGN_OR_RETURN(auto config, FromProto(request->config(), entry->type, "config"));
          diagnostics.Append(engine::ValidateAction(*entry, config));
          return Ok();
        });
  }

  grpc::Status PlanAction(ServerContext* context, const tfplugin6::PlanAction::Request* request,
                          tfplugin6::PlanAction::Response* response) override {
    return Serve("PlanAction", context, request->action_type(), response->mutable_diagnostics(),
                 [&](const Call& call, Diagnostics& diagnostics) -> Status {
                   const auto* entry = Action(request->action_type(), diagnostics);
                   if (entry == nullptr) return Ok();
                   ASSIGN_OR_RETURN(auto config,
                                    FromProto(request->config(), entry->type, "config"));
                   diagnostics.Append(engine::PlanAction(engine_, call, *entry, config));
                   return Ok();
                 });
  }

  grpc::Status InvokeAction(ServerContext* context, const tfplugin6::InvokeAction::Request* request,
                            grpc::ServerWriter<tfplugin6::InvokeAction::Event>* writer) override {
    const Diagnostics diagnostics =
        Scope("InvokeAction", context, request->action_type())
            .Run([&](const Call& call, Diagnostics& found) -> Status {
              const auto* entry = Action(request->action_type(), found);
              if (entry == nullptr) return Ok();
              ASSIGN_OR_RETURN(auto config, FromProto(request->config(), entry->type, "config"));
              found.Append(
                  engine::InvokeAction(engine_, call, *entry, config, [&](std::string_view line) {
                    tfplugin6::InvokeAction::Event event;
                    event.mutable_progress()->set_message(ToUtf8(line));
                    writer->Write(event);
                  }));
              return Ok();
            });
    // The stream must not end without this event.
    tfplugin6::InvokeAction::Event event;
    Append(diagnostics, *event.mutable_completed()->mutable_diagnostics());
    writer->Write(event);
    return grpc::Status::OK;
  }

 private:
  CallScope Scope(std::string_view rpc, ServerContext* context, const std::string& type_name) {
    return CallScope(deps_, rpc, type_name, [context] { return context->IsCancelled(); });
  }

  // Runs the body and puts its diagnostics into the answer. The status is always OK: hosts show
  // nothing of ours otherwise.
  template <class Body>
  grpc::Status Serve(std::string_view rpc, ServerContext* context, const std::string& type_name,
                     ProtoDiagnostics* out, Body body) {
    Append(Scope(rpc, context, type_name).Run(body), *out);
    return grpc::Status::OK;
  }

  const engine::ResourceEntry* Resource(const std::string& name, Diagnostics& diagnostics) const {
    const auto* entry = engine_.catalog().FindResource(name);
    if (entry == nullptr)
      diagnostics.Add(engine::UnknownType("resource", name, engine_.catalog().ResourceNames()));
    return entry;
  }
  const engine::Entry<framework::DataSource>* DataSource(const std::string& name,
                                                         Diagnostics& diagnostics) const {
    const auto* entry = engine_.catalog().FindDataSource(name);
    if (entry == nullptr) {
      diagnostics.Add(
          engine::UnknownType("data source", name, engine_.catalog().DataSourceNames()));
    }
    return entry;
  }
  const engine::Entry<framework::EphemeralResource>* Ephemeral(const std::string& name,
                                                               Diagnostics& diagnostics) const {
    const auto* entry = engine_.catalog().FindEphemeral(name);
    if (entry == nullptr) {
      diagnostics.Add(
          engine::UnknownType("ephemeral resource", name, engine_.catalog().EphemeralNames()));
    }
    return entry;
  }
  const engine::Entry<framework::Action>* Action(const std::string& name,
                                                 Diagnostics& diagnostics) const {
    const auto* entry = engine_.catalog().FindAction(name);
    if (entry == nullptr)
      diagnostics.Add(engine::UnknownType("action", name, engine_.catalog().ActionNames()));
    return entry;
  }
  const engine::Entry<framework::ListResource>* List(const std::string& name,
                                                     Diagnostics& diagnostics) const {
    const auto* entry = engine_.catalog().FindList(name);
    if (entry == nullptr)
      diagnostics.Add(engine::UnknownType("list resource", name, engine_.catalog().ListNames()));
    return entry;
  }

  static Status CallFound(const engine::FunctionEntry& entry,
                          const tfplugin6::CallFunction::Request& request,
                          tfplugin6::CallFunction::Response& response) {
    std::vector<cty::Value> arguments;
    for (const auto& argument : request.arguments()) {
      const size_t index = arguments.size();
      const cty::Type* type = engine::ArgumentType(entry, index);
      if (type == nullptr) {
        response.mutable_error()->set_text(fmt::format(
            "{} takes at most {} arguments, got {}", entry.name, index, request.arguments_size()));
        return Ok();
      }
      ASSIGN_OR_RETURN(auto value, FromProto(argument, *type, fmt::format("argument {}", index)));
      arguments.push_back(std::move(value));
    }
    const framework::FunctionResponse result = engine::CallFunction(entry, arguments);
    if (!result.error)
      return ToProto(result.result, entry.definition.result, "result", response.mutable_result());
    response.mutable_error()->set_text(ToUtf8(result.error->text));
    if (result.error->argument)
      response.mutable_error()->set_function_argument(*result.error->argument);
    return Ok();
  }

  static Status Fill(const engine::ResourceEntry& resource, const framework::ListedObject& object,
                     tfplugin6::ListResource::Event* event) {
    event->set_display_name(ToUtf8(object.display_name));
    Append(object.diagnostics, *event->mutable_diagnostic());
    if (!object.object.IsNull()) {
      RETURN_IF_ERROR(
          ToProto(object.object, resource.type, "object", event->mutable_resource_object()));
    }
    if (object.identity.IsNull()) return Ok();
    return ToProto(object.identity, resource.identity_type, "identity",
                   event->mutable_identity()->mutable_identity_data());
  }

  engine::Engine& engine_;
  const CallScope::Deps deps_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeProviderService(engine::Engine& engine, RunningCalls& calls,
                                                   LogSink log) {
  return std::make_unique<ProviderService>(engine, calls, log);
}

}  // namespace sless::plugin
