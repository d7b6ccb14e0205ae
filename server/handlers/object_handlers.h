#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "server/handlers/handlers.h"
#include "server/handlers/kinds.h"
#include "server/handlers/routes.h"

namespace sless::handlers {

inline constexpr QueryDoc kReadWait{"wait", "for what", "ready|gone"};
inline constexpr QueryDoc kDeleteWait{"wait", "for what", "gone"};
inline constexpr QueryDoc kWaitTimeout{"timeout", "seconds", "", 60, 0, 25};
inline constexpr QueryDoc kGeneration{"generation", "default the one of now", "", INT64_MAX};
inline constexpr HeaderDoc kIfMatch{
    "If-Match", "one resourceVersion in double quotes, or * for any; 412 where there is another",
    R"(^(\*|".+")$)"};
inline constexpr HeaderDoc kIfNoneMatch{
    "If-None-Match", "*: only where there is no such object, else 409", R"(^\*$)"};

/// GET (list, one, long poll), PUT, PATCH, DELETE of one kind. Stateless but for the references.
class ObjectHandlers {
 public:
  ObjectHandlers(const Deps& deps, const Kind& kind) : deps_(deps), kind_(kind) {}

  http::Reply List(http::Request& request) const;
  http::Reply Get(http::Request& request) const;
  http::Reply Put(http::Request& request) const;
  http::Reply Patch(http::Request& request) const;
  http::Reply Delete(http::Request& request) const;

 private:
  struct Wanted {
    std::string spec;
    std::string version;  ///< metadata.resourceVersion of the body, "" for none
    std::optional<std::map<std::string, std::string>> annotations;  ///< nullopt: keep
  };
  struct Condition {
    bool create_only = false;
    bool must_exist = false;             ///< If-Match, also "*"
    std::optional<std::string> version;  ///< If-Match, where it names one
  };

  base::Result<api::ObjectKey> Key(const http::Request& request) const;
  base::Result<Wanted> ReadWanted(const nlohmann::json& body, const api::ObjectKey& key) const;
  static base::Result<Condition> ReadCondition(const http::Request& request);
  base::Status CheckCode(const api::ObjectKey& key, const std::string& spec) const;
  base::Result<http::Response> Create(const api::ObjectKey& key, const Wanted& wanted) const;
  base::Result<http::Response> Replace(const store::StoredObject& there, const Wanted& wanted,
                                       const Condition& condition) const;
  static base::Status CheckCondition(const store::StoredObject& there, const Condition& condition);
  base::Result<http::Response> Answer(int status, const store::StoredObject& object) const;
  http::Reply WaitReady(const api::ObjectKey& key, int64_t generation,
                        std::chrono::steady_clock::time_point until) const;
  http::Reply WaitGone(const api::ObjectKey& key, std::chrono::steady_clock::time_point until,
                       bool deleting) const;
  bool IsFinal(const store::StoredObject& object, int64_t generation) const;

  const Deps& deps_;
  const Kind& kind_;
};

}  // namespace sless::handlers
