#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "client/api/routes.h"
#include "client/base/strings.h"
#include "client/rest/caller.h"

namespace sless::rest {

template <class T>
constexpr std::string_view KindOf() {
  if constexpr (std::is_same_v<T, api::Function>) return api::kKindFunction;
  if constexpr (std::is_same_v<T, api::Trigger>) return api::kKindTrigger;
  if constexpr (std::is_same_v<T, api::Job>) return api::kKindJob;
}

template <class T>
std::string PathOf(const Name& name) {
  return api::ObjectPath(
      {std::string(KindOf<T>()), base::PercentEncode(name.ns), base::PercentEncode(name.name)});
}

/// The long polls of SlessClient (wait.cc).
template <class T>
base::Result<T> WaitReady(const Caller& caller, const Name& name, int64_t generation,
                          const Call& call);
template <class T>
base::Status WaitGone(const Caller& caller, const T& seen, const Call& call);

}  // namespace sless::rest
