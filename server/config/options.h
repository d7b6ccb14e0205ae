#pragma once

// Every setting of slessd, declared once: name, text, default, bounds. File, environment, flags,
// checks and docs/configuration.md come from these declarations.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "client/base/address.h"

namespace sless::config {

/// What a setting means.
struct About {
  std::string_view text;
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
  std::string_view values = "";  ///< allowed words, separated by '|'
  /// of a text: what is wrong with it; the message says what was wanted and found
  base::Status (*check)(std::string_view text) = nullptr;
};

/// HOST:PORT or unix:/path; whether the host is one shows when slessd listens.
base::Status CheckListen(std::string_view text);
/// An http or https URL without user information, query and fragment, or "".
base::Status CheckUrl(std::string_view text);

/// Names are "group.name"; in the file a group is a mapping, in the environment SLESS_GROUP_NAME,
/// as a flag --group-name.
struct Options {
  std::string data_dir;
  std::string listen = "127.0.0.1:8470";
  std::string external_url;
  base::AddressSet trusted_proxies;
  std::string log_level = "info";
  int64_t shutdown_grace_sec = 25;

  int64_t http_workers = 32;
  int64_t http_max_connections = 4096;

  int64_t reconcile_workers = 4;
  int64_t jobs_workers = 32;
  int64_t build_workers = 2;

  std::string runtime_python;
  std::string runtime_node;
  bool insecure_no_sandbox = false;

  int64_t gc_interval_sec = 600;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("data_dir", self.data_dir,
          About{"folder of everything that slessd keeps; made with mode 0700 where it is missing"});
    visit("listen", self.listen,
          About{.text = "HOST:PORT to listen on; port 0 takes a free one", .check = CheckListen});
    visit("external_url", self.external_url,
          About{.text = "URL under which clients reach this server, for the URLs that it hands "
                        "out; default: http:// and the address it listens on",
                .check = CheckUrl});
    visit("trusted_proxies", self.trusted_proxies,
          About{"proxies in front of this server, whose X-Forwarded-For, -Proto and -Host count"});
    visit("log_level", self.log_level,
          About{.text = "least level of the server's own log",
                .values = "trace|debug|info|warn|error"});
    visit("shutdown_grace_sec", self.shutdown_grace_sec,
          About{"how long running calls may take to end after SIGTERM, in seconds", 0, 3600});
    visit("http.workers", self.http_workers, About{"threads that serve API requests", 1, 1024});
    visit("http.max_connections", self.http_max_connections,
          About{"open connections; more are answered 503", 16, 1'000'000});
    visit("reconcile.workers", self.reconcile_workers,
          About{"threads that bring objects to what their spec wants", 1, 64});
    visit("jobs.workers", self.jobs_workers,
          About{"runs of jobs and cron triggers at once", 1, 1024});
    visit("build.workers", self.build_workers, About{"builds at once", 1, 64});
    visit("runtime.python", self.runtime_python,
          About{"python3.11 interpreter; default: the first one found on the host"});
    visit("runtime.node", self.runtime_node,
          About{"Node.js 20 binary; default: the first one found on the host"});
    visit("insecure_no_sandbox", self.insecure_no_sandbox,
          About{"run functions without a sandbox: they can read and write all that slessd can; "
                "only for tests and trusted code"});
    visit("gc.interval_sec", self.gc_interval_sec,
          About{"time between two collections of code and layers that nothing needs, in seconds",
                10, 86'400});
  }
};

}  // namespace sless::config
