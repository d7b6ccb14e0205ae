#include "provider/plugin/serve.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "client/base/clock.h"
#include "client/base/fd.h"
#include "client/base/strings.h"
#include "provider/plugin/auto_mtls.h"
#include "provider/plugin/crash.h"
#include "provider/plugin/handshake.h"
#include "provider/plugin/listener.h"
#include "provider/plugin/process_events.h"
#include "provider/plugin/server.h"
#include "provider/plugin/socket_folder.h"

namespace sless::plugin {
namespace {

using namespace std::chrono_literals;
using base::Code;
using base::Err;

// How long running calls may take to end. The host kills 2 s after its Shutdown; a signal comes
// from a person.
constexpr auto kGraceOfShutdown = 500ms;
constexpr auto kGraceOfSignal = 5s;
// How often calls are looked at that the host may have given up.
constexpr auto kLook = 250ms;

enum class Mode { kServe, kDebug, kDone };

struct Parsed {
  Mode mode = Mode::kServe;
  int exit_code = 0;
};

std::string HelpText(const Program& program) {
  return fmt::format(
      "terraform-provider-{0} {1}: a provider for Terraform and OpenTofu.\n\n"
      "Terraform and OpenTofu start this program by themselves; you need not run it. In a "
      "configuration:\n\n"
      "  terraform {{\n"
      "    required_providers {{\n"
      "      {0} = {{ source = \"{2}\" }}\n"
      "    }}\n"
      "  }}\n\n"
      "Options:\n"
      "  --debug    serve until Ctrl-C and print the variable TF_REATTACH_PROVIDERS, which lets "
      "terraform use this process\n"
      "  --version  print the version\n"
      "  --help     print this text\n",
      program.name, program.version, program.address);
}

Parsed ParseFlags(int argc, char** argv, const Program& program) {
  Parsed parsed;
  for (int i = 1; i < argc; ++i) {
    std::string_view flag = argv[i];
    // Go programs take one dash or two.
    if (flag.starts_with("--")) flag.remove_prefix(1);
    if (flag == "-version") {
      base::WriteAll(STDOUT_FILENO,
                     fmt::format("terraform-provider-{} {}\n", program.name, program.version));
      return {Mode::kDone, 0};
    }
    if (flag == "-help" || flag == "-h") {
      base::WriteAll(STDOUT_FILENO, HelpText(program));
      return {Mode::kDone, 0};
    }
    if (flag != "-debug") {
      base::WriteAll(STDERR_FILENO,
                     fmt::format("terraform-provider-{}: unknown argument {:?}, see --help\n",
                                 program.name, std::string_view(argv[i])));
      return {Mode::kDone, 2};
    }
    parsed.mode = Mode::kDebug;
  }
  return parsed;
}

// A program that we start must not take itself for this plugin.
void ForgetHostVariables(char** environment) {
  std::vector<std::string> names;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.starts_with("PLUGIN_") || name == "TF_PLUGIN_MAGIC_COOKIE") names.emplace_back(name);
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

// Where the host finds this run, and what it has to know.
struct Listening {
  std::unique_ptr<SocketFolder> folder;  // none for TCP
  std::unique_ptr<Listener> listener;
  std::optional<ServerIdentity> identity;  // none for plaintext
};

class Run {
 public:
  Run(const Program& program, const ProviderFactory& factory, Environment environment, bool debug)
      : program_(program), factory_(factory), environment_(std::move(environment)), debug_(debug) {}

  // The host is told before the server is there: setting gRPC up is half of all work of a start,
  // and the host has work of its own to do meanwhile. The socket keeps what it sends.
  base::Result<int> Execute() {
    ASSIGN_OR_RETURN(events_,
                     ProcessEvents::Make({.end_on_interrupt = debug_, .watch_host = !debug_}));
    ASSIGN_OR_RETURN(Listening listening, Listen());
    if (WantsTls()) {
      RETURN_IF_ERROR(CheckCertificate(environment_.client_certificate));
      ASSIGN_OR_RETURN(listening.identity, MakeServerIdentity(clock_.Now()));
    }
    RETURN_IF_ERROR(Announce(listening));
    ASSIGN_OR_RETURN(server_,
                     Server::Start({.provider = factory_(),
                                    .clock = clock_,
                                    .log = {STDERR_FILENO, environment_.log_level},
                                    .listener = std::move(listening.listener),
                                    .identity = std::move(listening.identity),
                                    .client_certificate = environment_.client_certificate,
                                    .on_shutdown = [this] { events_->RequestShutdown(); }}));
    return WaitAndStop(listening.folder.get());
  }

 private:
  base::Result<Listening> Listen() const {
    Listening listening;
    auto folder = SocketFolder::Make(Parents(), "tfp-" + program_.name + "-");
    if (folder) {
      listening.folder = std::move(*folder);
      const std::string& path = listening.folder->socket_path();
      RemoveAtCrash(path);
      ASSIGN_OR_RETURN(listening.listener, Listener::Open({Endpoint::Network::kUnix, path}));
      RETURN_IF_ERROR(listening.folder->SetAccess(environment_.socket_group));
      return listening;
    }
    // A TCP port is open to every user of the machine: only with TLS.
    if (!WantsTls()) return Err(std::move(folder).error());
    ASSIGN_OR_RETURN(listening.listener, ListenTcp());
    return listening;
  }

  std::vector<std::string> Parents() const {
    if (!environment_.socket_folder.empty()) return {environment_.socket_folder};
    return {environment_.temp_folder, "/tmp"};
  }

  base::Result<std::unique_ptr<Listener>> ListenTcp() const {
    for (int port = environment_.min_port; port <= environment_.max_port; ++port) {
      auto listener = Listener::Open({Endpoint::Network::kTcp, fmt::format("127.0.0.1:{}", port)});
      if (listener) return listener;
    }
    return Err(Code::kUnavailable, fmt::format("no free port on 127.0.0.1 between {} and {}",
                                               environment_.min_port, environment_.max_port));
  }

  bool WantsTls() const { return !debug_ && !environment_.client_certificate.empty(); }

  // A host that does not read its line is gone, perhaps before its death could be watched for.
  base::Status Announce(const Listening& listening) const {
    const Endpoint& endpoint = listening.listener->endpoint();
    const std::string line =
        debug_
            ? ReattachText(ReattachJson(program_.address, getpid(), endpoint))
            : HandshakeLine(endpoint, listening.identity ? listening.identity->certificate_der : "",
                            environment_.names_multiplexing);
    if (!base::WriteAll(STDOUT_FILENO, line))
      return Err(Code::kUnavailable, "nobody reads the handshake line from standard output");
    if (debug_) return base::Ok();
    // The host reads what follows only to throw it away, and a long line would block us for ever.
    if (const int null = open("/dev/null", O_WRONLY | O_CLOEXEC); null >= 0) {
      dup2(null, STDOUT_FILENO);
      close(null);
    }
    return base::Ok();
  }

  int WaitAndStop(SocketFolder* folder) {
    EndReason reason = EndReason::kNone;
    while (reason == EndReason::kNone) {
      reason = events_->Wait(kLook);
      server_->StopCancelledCalls();
    }
    server_->StopCalls();
    // First of all: a host kills who takes longer than 2 s, and on a busy machine that is not much.
    // Connections stay.
    if (folder != nullptr) folder->Remove();
    const bool stopped =
        server_->Stop(reason == EndReason::kSignal ? kGraceOfSignal : kGraceOfShutdown);
    // A call that does not end would keep us here for ever: nobody waits for it any more.
    if (!stopped) _exit(0);
    return 0;
  }

  const Program& program_;
  const ProviderFactory& factory_;
  const Environment environment_;
  const bool debug_;
  base::SystemClock clock_;
  std::unique_ptr<ProcessEvents> events_;
  std::unique_ptr<Server> server_;
};

}  // namespace

int Serve(int argc, char** argv, char** environment, const Program& program,
          const ProviderFactory& factory) {
  const Parsed parsed = ParseFlags(argc, argv, program);
  if (parsed.mode == Mode::kDone) return parsed.exit_code;
  const bool debug = parsed.mode == Mode::kDebug;

  Environment read = ReadEnvironment(environment, program.name);
  if (!debug && !read.cookie_matches) {
    base::WriteAll(STDERR_FILENO,
                   fmt::format("terraform-provider-{0} is a plugin: Terraform and "
                               "OpenTofu start it, it does nothing by itself.\n"
                               "Name it in a configuration (source = \"{1}\") and run "
                               "terraform or tofu, or see --help.\n",
                               program.name, program.address));
    return 1;
  }
  InstallCrashText(fmt::format("terraform-provider-{} {}", program.name, program.version));
  ForgetHostVariables(environment);

  const auto result = Run(program, factory, std::move(read), debug).Execute();
  if (result) return *result;
  base::WriteAll(STDERR_FILENO, fmt::format("terraform-provider-{} cannot start: {}\n",
                                            program.name, result.error().message));
  return 1;
}

}  // namespace sless::plugin
