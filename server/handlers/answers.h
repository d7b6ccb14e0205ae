#pragma once

// JSON that only this room writes or reads, but for the objects: each declared once, for the
// handlers and for OpenAPI.

#include <cstdint>
#include <string>
#include <vector>

#include "client/api/object.h"

namespace sless::handlers {

/// Body of POST …/runs.
struct Retry {
  int64_t run_id = 0;
  int64_t attempt = 0;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("runId", self.run_id, api::Doc{.text = "the run", .min = 1, .required = true});
    visit("attempt", self.attempt,
          api::Doc{.text = "the number that the attempt shall have", .min = 1, .required = true});
  }
};

struct Code {
  std::string hash;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("hash", self.hash,
          api::Doc{.text = "hash of the tree that is there", .pattern = api::kContentHashPattern});
  }
};

struct Health {
  std::string status;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("status", self.status, api::Doc{"how the server is", "ok|ready"});
  }
};

struct Info {
  std::string version;
  std::string external_url;
  std::vector<std::string> runtimes;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("version", self.version, api::Doc{"of slessd"});
    visit("externalUrl", self.external_url, api::Doc{"public address, without a final /"});
    visit("runtimes", self.runtimes, api::Doc{"languages and versions that this host runs"});
  }
};

struct Namespace {
  std::string name;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("name", self.name, api::Doc{.text = "DNS label", .pattern = api::kDnsLabelPattern});
  }
};

/// One line of a log.
struct LogLine {
  std::string time;
  int64_t revision = 0;
  std::string replica;
  std::string stream;
  std::string request_id;
  std::string line;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("time", self.time, api::Doc{"RFC 3339"});
    visit("revision", self.revision, api::Doc{.text = "number of the revision", .min = 0});
    visit("replica", self.replica, api::Doc{"which replica; empty for lines of a build"});
    visit("stream", self.stream, api::Doc{"where it was written", kStreams});
    visit("requestId", self.request_id, api::Doc{"of the call; empty where it is of none"});
    visit("line", self.line, api::Doc{"the text"});
  }
  static constexpr std::string_view kStreams = "stdout|stderr|system|build";
};

}  // namespace sless::handlers
