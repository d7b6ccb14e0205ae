#pragma once

// Objects of the api types in and out of a store. Defined for Function, Trigger, Job and Run; for a
// type of your own include typed_impl.h in one .cc file and instantiate there.

#include <functional>
#include <string>
#include <vector>

#include "client/api/function.h"
#include "client/api/job.h"
#include "client/api/trigger.h"
#include "server/store/object_store.h"

namespace sless::store {

/// The kind of an api type: KindOf<api::Run>::value. Specialize it for a type of your own.
template <class T>
struct KindOf;
template <>
struct KindOf<api::Function> {
  static constexpr std::string_view value = api::kKindFunction;
};
template <>
struct KindOf<api::Trigger> {
  static constexpr std::string_view value = api::kKindTrigger;
};
template <>
struct KindOf<api::Job> {
  static constexpr std::string_view value = api::kKindJob;
};
template <>
struct KindOf<api::Run> {
  static constexpr std::string_view value = api::kKindRun;
};

template <class T>
api::ObjectKey KeyOf(const std::string& ns, const std::string& name) {
  return {std::string(KindOf<T>::value), ns, name};
}

/// The stored form; the key comes from the metadata.
template <class T>
StoredObject ToStored(const T& object);
/// Members that this version does not know are ignored. Error: kInternal where the stored JSON does
/// not fit the type.
template <class T>
base::Result<T> FromStored(const StoredObject& stored);

/// Errors: as ObjectStore::Get and FromStored.
template <class T>
base::Result<T> GetTyped(const ObjectStore& store, const std::string& ns, const std::string& name);
/// All objects, ordered by namespace, then name. `ns` "" means all namespaces, `name_prefix` "" all
/// names.
template <class T>
base::Result<std::vector<T>> ListTyped(const ObjectStore& store, const std::string& ns,
                                       const std::string& name_prefix = "");
/// Errors: as ObjectStore::Create.
template <class T>
base::Result<T> CreateTyped(ObjectStore& store, const T& object);
/// Errors: as ObjectStore::Update.
template <class T>
base::Result<T> UpdateTyped(ObjectStore& store, const T& object);

/// Reads the object, lets `change` edit its status and writes that back; again from the start where
/// somebody else wrote in between, at most 20 times. Spec and metadata that `change` edits are not
/// written. An error of `change` ends it and is returned. Errors: kNotFound, kAborted after 20
/// tries, those of `change`.
template <class T>
base::Result<T> MutateStatus(ObjectStore& store, const std::string& ns, const std::string& name,
                             const std::function<base::Status(T&)>& change);
/// The same, and spec, annotations and deletion_requested_at are written too.
template <class T>
base::Result<T> Mutate(ObjectStore& store, const std::string& ns, const std::string& name,
                       const std::function<base::Status(T&)>& change);

}  // namespace sless::store
