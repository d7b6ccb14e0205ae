#pragma once

#include <optional>

#include "client/api/object.h"
#include "client/api/rules.h"

namespace sless::api {

struct HttpSpec {
  std::string auth = "none";         ///< none | token
  std::vector<std::string> methods;  ///< upper case; empty: all
  std::string path = "/";            ///< prefix below /fn/{namespace}/{name}; the longest wins

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("auth", self.auth, Doc{"who may call: everybody, or who has a token", "none|token"});
    visit("methods", self.methods,
          Doc{.text = "HTTP methods that are served; empty: all",
              .pattern = "^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$"});
    visit(
        "path", self.path,
        Doc{.text = "prefix below the function's URL, whole segments; the longest of all triggers "
                    "wins",
            .pattern = "^/"});
  }
  bool operator==(const HttpSpec&) const = default;
};

struct CronSpec {
  std::string schedule;          ///< five fields as in POSIX crontab, or @hourly, @daily, …
  std::string timezone = "UTC";  ///< IANA name
  std::string payload;           ///< JSON text given to the handler as its event; "" means {}
  std::string overlap =
      "skip";  ///< skip | queue | allow: what to do while the last run is still running
  std::string misfire =
      "skip";  ///< skip | once | all: what to do with fires missed while slessd was down

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("schedule", self.schedule,
          Doc{.text = "five fields as in POSIX crontab, or @hourly, @daily, @weekly, @monthly, "
                      "@yearly",
              .required = true});
    visit("timezone", self.timezone, Doc{"IANA time zone name"});
    visit("payload", self.payload,
          Doc{.text = "JSON text, the event that the handler gets", .max = kMaxEventBytes});
    visit("overlap", self.overlap, Doc{"while the last run still runs", "skip|queue|allow"});
    visit("misfire", self.misfire,
          Doc{"for fires missed while the server was down", "skip|once|all"});
  }
  bool operator==(const CronSpec&) const = default;
};

struct TriggerSpec {
  std::string function;  ///< name of the function, same namespace
  std::string type;      ///< http | cron
  bool enabled = true;
  std::optional<HttpSpec> http;  ///< set where type is http
  std::optional<CronSpec> cron;  ///< set where type is cron

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("function", self.function,
          Doc{.text = "name of the function in the same namespace",
              .pattern = kDnsLabelPattern,
              .required = true});
    visit("type", self.type,
          Doc{.text = "what starts the function", .values = "http|cron", .required = true});
    visit("enabled", self.enabled, Doc{"false stops this trigger alone"});
    visit("http", self.http, Doc{"settings of an http trigger"});
    visit("cron", self.cron, Doc{"settings of a cron trigger"});
  }
  bool operator==(const TriggerSpec&) const = default;
};

struct TriggerStatus {
  std::string phase = "Pending";  ///< Pending | Ready | Disabled | Failed
  int64_t observed_generation = 0;
  std::optional<Failure> failure;
  std::string url;                     ///< http: absolute; cron: ""
  std::vector<std::string> next_runs;  ///< cron: the next five fires, RFC 3339
  /// cron: RFC 3339 of the last planned time that was looked at, "" if none
  std::string last_fire;
  int64_t skipped = 0;  ///< cron: fires skipped by overlap or misfire

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("phase", self.phase, Doc{"where it stands", "Pending|Ready|Disabled|Failed"});
    visit("observedGeneration", self.observed_generation,
          Doc{"the generation that phase speaks of"});
    visit("failure", self.failure, Doc{"why, where phase is Failed"});
    visit("url", self.url, Doc{"http: where it answers"});
    visit("nextRuns", self.next_runs, Doc{"cron: the next five fires"});
    visit("lastFire", self.last_fire, Doc{"cron: the last planned time that was looked at"});
    visit("skipped", self.skipped, Doc{"cron: fires skipped by overlap or misfire"});
  }
  bool operator==(const TriggerStatus&) const = default;
};

inline constexpr std::string_view kKindTrigger = "Trigger";
using Trigger = Object<TriggerSpec, TriggerStatus>;

}  // namespace sless::api
