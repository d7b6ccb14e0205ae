#pragma once

// The definitions behind typed.h. Include in one .cc file per type of your own, it brings
// <nlohmann/json.hpp>:
//   template <> struct sless::store::KindOf<Revision> { static constexpr std::string_view value =
//   "Revision"; };   // in your header SLESS_INSTANTIATE_TYPED(reconcile::Revision); // in your .cc

#include <fmt/format.h>

#include <utility>

#include "client/api/fields.h"
#include "server/store/typed.h"

namespace sless::store {

// The form of these texts (compact, as base::DumpJson writes it) is relied on: the reconciler of
// functions searches specs of triggers without reading them.
template <class T>
StoredObject ToStored(const T& object) {
  return {KeyOf<T>(object.metadata.ns, object.metadata.name), object.metadata,
          api::ToJsonText(object.spec), api::ToJsonText(object.status)};
}

template <class T>
base::Result<T> FromStored(const StoredObject& stored) {
  const auto wrap = [&](base::Error error) {
    return base::Err(base::Code::kInternal,
                     fmt::format("{} in the store does not fit its type: {}", stored.key.ToString(),
                                 base::ToString(error)));
  };
  T object;
  object.metadata = stored.metadata;
  auto spec = api::FromJsonText<typename T::Spec>(stored.spec_json, api::Unknown::kIgnore, "/spec");
  if (!spec) return wrap(spec.error());
  object.spec = std::move(*spec);
  if (!stored.status_json.empty()) {
    auto status =
        api::FromJsonText<typename T::Status>(stored.status_json, api::Unknown::kIgnore, "/status");
    if (!status) return wrap(status.error());
    object.status = std::move(*status);
  }
  return object;
}

template <class T>
base::Result<T> GetTyped(const ObjectStore& store, const std::string& ns, const std::string& name) {
  ASSIGN_OR_RETURN(const auto stored, store.Get(KeyOf<T>(ns, name)));
  return FromStored<T>(stored);
}

template <class T>
base::Result<std::vector<T>> ListTyped(const ObjectStore& store, const std::string& ns,
                                       const std::string& name_prefix) {
  std::vector<T> all;
  ListQuery query{std::string(KindOf<T>::value), ns, name_prefix, 1000, ""};
  do {  // ends: each page starts after the one before
    ASSIGN_OR_RETURN(auto page, store.List(query));
    for (const auto& stored : page.items) {
      ASSIGN_OR_RETURN(auto object, FromStored<T>(stored));
      all.push_back(std::move(object));
    }
    query.continue_after = std::move(page.continue_after);
  } while (!query.continue_after.empty());
  return all;
}

template <class T>
base::Result<T> CreateTyped(ObjectStore& store, const T& object) {
  ASSIGN_OR_RETURN(const auto stored, store.Create(ToStored(object)));
  return FromStored<T>(stored);
}

template <class T>
base::Result<T> UpdateTyped(ObjectStore& store, const T& object) {
  ASSIGN_OR_RETURN(const auto stored, store.Update(ToStored(object)));
  return FromStored<T>(stored);
}

namespace typed_internal {

inline constexpr int kMaxTries = 20;

template <class T>
base::Result<T> ReadChangeWrite(ObjectStore& store, const std::string& ns, const std::string& name,
                                bool status_only, const std::function<base::Status(T&)>& change) {
  for (int i = 1;; ++i) {
    ASSIGN_OR_RETURN(const auto before, store.Get(KeyOf<T>(ns, name)));
    ASSIGN_OR_RETURN(T object, FromStored<T>(before));
    RETURN_IF_ERROR(change(object));
    StoredObject next = ToStored(object);
    next.key = before.key;
    if (status_only) {
      next.metadata = before.metadata;
      next.spec_json = before.spec_json;
    } else {
      next.metadata.uid = before.metadata.uid;
      next.metadata.resource_version = before.metadata.resource_version;
    }
    auto after = store.Update(std::move(next));
    if (after) return FromStored<T>(*after);
    if (after.error().code != base::Code::kAborted || i == kMaxTries)
      return base::Err(std::move(after).error());
  }
}

}  // namespace typed_internal

template <class T>
base::Result<T> MutateStatus(ObjectStore& store, const std::string& ns, const std::string& name,
                             const std::function<base::Status(T&)>& change) {
  return typed_internal::ReadChangeWrite<T>(store, ns, name, true, change);
}

template <class T>
base::Result<T> Mutate(ObjectStore& store, const std::string& ns, const std::string& name,
                       const std::function<base::Status(T&)>& change) {
  return typed_internal::ReadChangeWrite<T>(store, ns, name, false, change);
}

}  // namespace sless::store

/// At global scope.
#define SLESS_INSTANTIATE_TYPED(T)                                                             \
  template ::sless::store::StoredObject sless::store::ToStored<T>(const T&);                   \
  template ::sless::base::Result<T> sless::store::FromStored<T>(                               \
      const ::sless::store::StoredObject&);                                                    \
  template ::sless::base::Result<T> sless::store::GetTyped<T>(                                 \
      const ::sless::store::ObjectStore&, const std::string&, const std::string&);             \
  template ::sless::base::Result<std::vector<T>> sless::store::ListTyped<T>(                   \
      const ::sless::store::ObjectStore&, const std::string&, const std::string&);             \
  template ::sless::base::Result<T> sless::store::CreateTyped<T>(::sless::store::ObjectStore&, \
                                                                 const T&);                    \
  template ::sless::base::Result<T> sless::store::UpdateTyped<T>(::sless::store::ObjectStore&, \
                                                                 const T&);                    \
  template ::sless::base::Result<T> sless::store::MutateStatus<T>(                             \
      ::sless::store::ObjectStore&, const std::string&, const std::string&,                    \
      const std::function<::sless::base::Status(T&)>&);                                        \
  template ::sless::base::Result<T> sless::store::Mutate<T>(                                   \
      ::sless::store::ObjectStore&, const std::string&, const std::string&,                    \
      const std::function<::sless::base::Status(T&)>&)
