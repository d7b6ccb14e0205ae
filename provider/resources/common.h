#pragma once

// What the three resources share: name, namespace and id, import, errors, deletion.

#include <string>
#include <string_view>
#include <type_traits>

#include "client/api/job.h"
#include "client/api/object.h"
#include "provider/framework/resource.h"
#include "provider/resources/session.h"

namespace sless::resources {

/// The API's declaration of one spec field, so that bounds, words and defaults are stated once.
template <class Spec>
api::Doc DocOf(std::string_view field) {
  api::Doc found;
  auto find = [&](std::string_view name, const auto&, const api::Doc& doc) {
    if (name == field) found = doc;
  };
  const Spec spec{};
  Spec::Fields(spec, find);
  return found;
}
/// An optional number with the bounds of its API field and a default.
framework::Attribute IntAttribute(std::string name, const api::Doc& doc, int64_t default_value,
                                  std::string description);
/// An optional or (without default) required word out of the API field's list.
framework::Attribute WordAttribute(std::string name, const api::Doc& doc, std::string default_value,
                                   std::string description);

/// Text of at most `max_bytes`, without NUL.
framework::Validator TextUpTo(size_t max_bytes);

/// The attributes id, namespace and name; `kind` as in "function".
std::vector<framework::Attribute> IdentityAttributes(const std::string& kind);
/// The attribute `function` of triggers and jobs.
framework::Attribute FunctionAttribute(std::string description);

/// Puts the provider's namespace where the configuration has none, and the id where both parts are
/// known. A resource that exists stays in the namespace it is in.
void PlanIdentity(const Session& session, const framework::ModifyPlanRequest& request,
                  cty::Value& plan);
/// True if the plan names another object than the prior state: a replacement.
bool IsMoved(const cty::Value& prior, const cty::Value& plan);
/// namespace and name of a value.
rest::Name NameOf(const cty::Value& value);
/// "function default/orders", for messages.
std::string Describe(std::string_view kind, const rest::Name& name);

/// Import by "namespace/name".
void ImportByName(std::string_view kind, const framework::ImportRequest& request,
                  framework::StateResponse& response);

/// Adds the error at the attribute that error.field names, else at `fallback`: every diagnostic has
/// a path.
void AddError(framework::Diagnostics& diagnostics, const base::Error& error,
              std::string_view action, const framework::FieldMap& fields,
              std::string_view fallback = "name");
/// The error that a Failed object stands for: phase, reason, file:line and the last log lines.
/// `what` begins a sentence.
base::Error FailureError(const std::optional<api::Failure>& failure, std::string_view what,
                         std::string field);
/// Waits a moment; false where the call was stopped or its deadline passed meanwhile.
bool Pause(std::chrono::milliseconds time, const rest::Call& call, const base::Clock& clock);

/// What to do about a function that is missing: ends a message.
inline constexpr std::string_view kNameTheFunction =
    "\n\nIf the function is made by this configuration, write function = "
    "sless_function.<label>.name, so that Terraform makes it first";

/// Reads, changes (`edit` is given the object) and replaces an object, again where somebody else
/// wrote in between. Drops the mark of an interrupted create.
template <class T, class Edit>
base::Result<T> Replace(Objects<T>& objects, const rest::Name& name, const Edit& edit,
                        const rest::Call& call) {
  for (int attempt = 1;; ++attempt) {
    auto object = objects.Get(name, call);
    if (!object && object.error().code == base::Code::kNotFound) {
      object.error().message +=
          "\n\nIt was deleted since the plan was made. Plan and apply again to have it made anew.";
    }
    if (!object) return object;
    edit(*object);
    object->metadata.annotations.erase(std::string(api::kCreatingAnnotation));
    auto written = objects.Put(*object, rest::PutMode::kReplace, call);
    if (written || written.error().code != base::Code::kAborted || attempt == 5) return written;
  }
}

/// Key of the private data.
inline constexpr std::string_view kOwnerKey = "owner";

/// Keeps, of an object that a create wrote, who its owner is.
void KeepOwner(framework::PrivateData& data, const api::Metadata& metadata);
/// The same of an object that was read, where no owner is kept: it was imported.
void KeepOwnerIfNone(framework::PrivateData& data, const api::Metadata& metadata);
/// False, with a warning, where another create has taken the object over since: what the state
/// speaks of is not there any more. `owner` is what KeepOwner kept.
bool IsOwned(const std::string& owner, const api::Metadata& metadata, const std::string& what,
             framework::Diagnostics& diagnostics);
/// The warning that an object stays, as another create has taken it over.
void AddNotDeleted(const std::string& what, framework::Diagnostics& diagnostics);
/// False, with an error, where the object that was `written` has got another owner since: two
/// creates that run at once take each other for the rest of an interrupted one, and the first must
/// not end green.
bool IsStillOurs(const std::string& what, const api::Metadata& written, const api::Metadata& now,
                 framework::Diagnostics& diagnostics);

/// True where the object that was `written` bears the mark of another create now. An object whose
/// marks somebody wiped out is not taken over.
bool IsTakenOver(const api::Metadata& written, const api::Metadata& now);
// The errors of Overtaken; a version is what VersionOf says.
base::Error GoneError(const std::string& what);
base::Error TakenOverError(const std::string& what);
base::Error ChangedError(const std::string& what, const std::string& written,
                         const std::string& now);
/// "generation 3", of a job with its run_id.
template <class T>
std::string VersionOf(const T& object) {
  auto text = "generation " + std::to_string(object.metadata.generation);
  if constexpr (std::is_same_v<T, api::Job>)
    text += " with run_id " + std::to_string(object.spec.run_id);
  return text;
}

/// Says why `now` (nothing: it is gone) is not what this apply has `written`; nothing where it is.
/// Drops `now` where it is somebody else's object: deleted and made anew, or taken over by another
/// create.
template <class T>
std::optional<base::Error> Overtaken(std::string_view kind, const T& written,
                                     std::optional<T>& now) {
  const auto what = Describe(kind, {written.metadata.ns, written.metadata.name});
  if (!now || now->metadata.uid != written.metadata.uid) {
    now.reset();
    return GoneError(what);
  }
  if (now->spec == written.spec) return std::nullopt;
  if (IsTakenOver(written.metadata, now->metadata)) {
    now.reset();
    return TakenOverError(what);
  }
  auto error = ChangedError(what, VersionOf(written), VersionOf(*now));
  if constexpr (std::is_same_v<T, api::Job>) {
    if (now->spec.run_id > written.spec.run_id)
      error.message += " Somebody raised run_id: set it above " + std::to_string(now->spec.run_id) +
                       ", or to 0, to go on from here.";
  }
  return error;
}

/// Tells better why a step after the write failed: the object may not be what was `written` any
/// more. `now` becomes the newest that the server tells in a moment, else it stays.
template <class T>
base::Error Explain(base::Error error, Objects<T>& objects, std::string_view kind, const T& written,
                    const framework::Context& context, std::optional<T>& now) {
  const rest::Call brief{context.DeadlineIn(std::chrono::seconds(2)), context.stop};
  auto newest = objects.Get({written.metadata.ns, written.metadata.name}, brief);
  if (newest) {
    now = std::move(*newest);
  } else if (newest.error().code == base::Code::kNotFound) {
    now.reset();
  } else {
    return error;
  }
  return Overtaken(kind, written, now).value_or(std::move(error));
}

/// Waits until the server is done with what was `written` (its own answer to the write). Errors are
/// WaitReady's, and:
///         kNotFound   somebody deleted the object meanwhile;
///         kAborted    somebody changed its spec meanwhile: its end tells nothing of `written`.
/// `now` becomes the newest that the server told, for the state, also beside an error; nothing: no
/// object of this resource is there.
template <class T>
base::Status AwaitWritten(Objects<T>& objects, std::string_view kind, const T& written,
                          const rest::Call& call, const framework::Context& context,
                          std::optional<T>& now) {
  now = written;
  auto seen = objects.WaitReady({written.metadata.ns, written.metadata.name},
                                written.metadata.generation, call);
  if (!seen) return base::Err(Explain(seen.error(), objects, kind, written, context, now));
  now = std::move(*seen);
  if (auto error = Overtaken(kind, written, now)) return base::Err(std::move(*error));
  return base::Ok();
}

/// Takes the mark of an unfinished create away from `written`, which was waited for. Where another
/// create took it over or a delete took it away meanwhile there is an error and no state: nothing
/// of this create is there, so nothing is tainted, and no later apply deletes what is not its own.
/// Any other failure is a warning, as the object is there and well: its next change takes the mark
/// away too.
template <class T>
void EndCreate(Objects<T>& objects, std::string_view kind, const T& written, const rest::Call& call,
               framework::StateResponse& response) {
  const rest::Name name{written.metadata.ns, written.metadata.name};
  const auto what = Describe(kind, name);
  const auto finished = objects.FinishCreate(name, call);
  if (finished) {
    if (!IsStillOurs(what, written.metadata, finished->metadata, response.diagnostics))
      response.state = cty::Value::Null();
  } else if (finished.error().code == base::Code::kNotFound) {
    response.state = cty::Value::Null();
    response.diagnostics.AddError(
        cty::Path("name"), "Deleted while it was created",
        "The " + what + " is gone: somebody deleted it while it was created. Apply again.");
  } else {
    response.diagnostics.AddWarning(
        cty::Path("name"), "Create not marked as finished",
        "The " + what + " is ready, but the server could not be told that its create has ended: " +
            finished.error().message +
            ". Until its next change another configuration could take it over.");
  }
}

/// Deletes the object and waits until it is gone; one that is gone already is success, and so is
/// one that another create has taken over, also in the very moment of the deletion. `known` is the
/// spec that the state tells of. It decides where no owner is kept: the delete of a tainted
/// object that is replaced comes with the private data of the create.
template <class T>
base::Status Remove(Objects<T>& objects, std::string_view kind, const rest::Name& name,
                    const typename T::Spec& known, const rest::Call& call,
                    framework::StateResponse& response) {
  const auto owner = response.private_data.Get(kOwnerKey);
  const auto what = Describe(kind, name);
  for (int attempt = 1;; ++attempt) {
    const auto there = objects.Get(name, call);
    if (!there)
      return there.error().code == base::Code::kNotFound ? base::Ok() : base::Err(there.error());
    if (owner && !IsOwned(*owner, there->metadata, what, response.diagnostics)) return base::Ok();
    const bool unfinished =
        there->metadata.annotations.contains(std::string(api::kCreatingAnnotation));
    if (!owner && !unfinished && !(there->spec == known)) {
      AddNotDeleted(what, response.diagnostics);
      return base::Ok();
    }
    const auto asked = objects.Delete(*there, call);
    if (asked) {
      auto gone = objects.WaitGone(*there, call);
      if (!gone && gone.error().code == base::Code::kDeadlineExceeded)
        gone.error().message += "\n\nThe server goes on with it; the next apply waits for it again";
      return gone;
    }
    if (asked.error().code == base::Code::kNotFound) return base::Ok();
    // Its status may have been written meanwhile, or a create took it over: look again.
    if (asked.error().code != base::Code::kAborted || attempt == 100) return asked;
  }
}

/// Reads an object for a refresh. Null object: it is gone, or going and gone within a minute.
template <class T>
base::Result<std::optional<T>> Fetch(Objects<T>& objects, const rest::Name& name,
                                     const framework::Context& context) {
  const rest::Call call{context.DeadlineIn(std::chrono::seconds(60)), context.stop};
  while (true) {
    auto object = objects.Get(name, call);
    if (!object && object.error().code == base::Code::kNotFound) return std::optional<T>();
    if (!object) return base::Err(object.error());
    if (object->metadata.deletion_requested_at.empty()) return std::optional<T>(std::move(*object));
    RETURN_IF_ERROR(objects.WaitGone(*object, call));  // then there may be a new one of its name
  }
}

}  // namespace sless::resources
