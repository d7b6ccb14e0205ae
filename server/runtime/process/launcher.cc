#include "server/runtime/process/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "client/base/fd.h"
#include "server/sandbox/sandbox.h"

namespace sless::runtime {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Fd;

constexpr int kListenFd = 3, kEnvFd = 4, kOomFd = 5, kArgsFd = 6;
// The runner's own memory is not the function's.
constexpr int64_t kRunnerBytes = 32ll * 1024 * 1024;

tl::unexpected<base::Error> Failed(const std::string& what) {
  return base::SystemError("cannot start a replica: " + what, Code::kInternal);
}

// The socket is made here and passed in: nothing of the host is writable in the sandbox, so no code
// can put another socket or a link where the gateway connects.
base::Result<Fd> Listen(const std::string& path) {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return Failed("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return Failed(path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  unlink(path.c_str());
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path.c_str(), 0600) != 0 || listen(fd.get(), 1024) != 0) {
    return Failed(path);
  }
  return fd;
}

// Secrets travel by a nameless file: never in a command line, never on disk.
base::Result<Fd> Memory(const char* name, const std::string& text) {
  Fd fd(memfd_create(name, MFD_CLOEXEC));
  if (!fd || !base::WriteAll(fd.get(), text)) return Failed("memfd");
  lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

std::string JoinNul(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out.append(word).push_back('\0');
  return out;
}

// Processes and threads of one replica.
int64_t Processes(const ReplicaSpec& spec) { return 512 + 2 * spec.concurrency; }

// What is a link leads anywhere on the host, and bubblewrap would go there.
base::Status CheckFolder(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return Failed(path);
  if (S_ISDIR(info.st_mode)) return base::Ok();
  return base::Err(Code::kInternal, fmt::format("cannot start a replica: {} is no folder", path));
}

std::string WorkerFile(const std::string& runtime) {
  return runtime == "nodejs20" ? "worker.mjs" : "worker.py";
}

}  // namespace

Launcher::Launcher(const ProcessOptions& options, Cgroups cgroups, std::string socket_dir,
                   std::string bwrap)
    : options_(options),
      cgroups_(std::move(cgroups)),
      socket_dir_(std::move(socket_dir)),
      bwrap_(std::move(bwrap)) {}

// Without a sandbox the code is reached by a link beside a link to node_modules, where Node looks
// for packages.
base::Result<std::string> Launcher::CodeFolder(const ReplicaSpec& spec, const std::string& id) {
  if (options_.sandbox) return std::string("/var/task");
  if (spec.runtime != "nodejs20" || spec.deps_dir.empty()) return spec.code_dir;
  const fs::path folder = fs::path(options_.state_dir) / "links" / id;
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  if (!error) fs::create_directory_symlink(spec.code_dir, folder / "task", error);
  if (!error)
    fs::create_directory_symlink(fs::path(spec.deps_dir) / "node_modules", folder / "node_modules",
                                 error);
  if (error)
    return base::SystemError("cannot start a replica: " + folder.string(), Code::kInternal,
                             error.value());
  return (folder / "task").string();
}

std::vector<std::string> Launcher::RunnerFlags(const RevisionKey& key, const ReplicaSpec& spec,
                                               const Interpreter& interpreter,
                                               const std::string& code, bool has_oom_file) const {
  const bool sandbox = options_.sandbox;
  const std::string worker =
      options_.runtimes_dir + "/" + spec.runtime + "/" + WorkerFile(spec.runtime);
  std::vector<std::string> flags{
      sandbox ? "/sless/runner" : options_.runner,
      "--listen",
      fmt::format("fd:{}", kListenFd),
      "--env-fd",
      fmt::format("{}", kEnvFd),
      "--drain-on-eof",
      "--runtime",
      spec.runtime,
      "--worker",
      sandbox ? "/sless/" + WorkerFile(spec.runtime) : worker,
      "--interpreter",
      interpreter.path,
      "--code",
      code,
      "--entrypoint",
      spec.entrypoint,
      "--concurrency",
      fmt::format("{}", spec.concurrency),
      "--timeout-sec",
      fmt::format("{}", spec.timeout_sec),
      "--memory-mb",
      fmt::format("{}", spec.memory_mb),
      "--function",
      key.ns + "/" + key.name,
      "--revision",
      fmt::format("{}", key.revision),
      "--grace-sec",
      fmt::format("{:.3f}", static_cast<double>(options_.grace.count()) / 1000)};
  if (!spec.deps_dir.empty())
    flags.insert(flags.end(), {"--deps", sandbox ? "/opt/deps" : spec.deps_dir});
  if (has_oom_file) flags.insert(flags.end(), {"--oom-fd", fmt::format("{}", kOomFd)});
  // The second line of defence: a cgroup counts for root as well, this limit needs none.
  if (sandbox) flags.insert(flags.end(), {"--process-limit", fmt::format("{}", Processes(spec))});
  if (!cgroups_.limits_memory()) {
    // RLIMIT_DATA counts what may be written, used or not: stacks of threads and V8's spare heap
    // need room.
    const int64_t spare = spec.runtime == "nodejs20" ? 256 : 64 + 9 * spec.concurrency;
    flags.insert(flags.end(), {"--data-limit-mb", fmt::format("{}", spec.memory_mb + spare)});
  }
  return flags;
}

base::Result<Launched> Launcher::Launch(const RevisionKey& key, const ReplicaSpec& spec,
                                        const std::string& id, const Interpreter& interpreter) {
  RETURN_IF_ERROR(CheckFolder(spec.code_dir));
  if (!spec.deps_dir.empty()) {
    RETURN_IF_ERROR(CheckFolder(spec.deps_dir));
    if (spec.runtime == "nodejs20") RETURN_IF_ERROR(CheckFolder(spec.deps_dir + "/node_modules"));
  }
  ASSIGN_OR_RETURN(const std::string code, CodeFolder(spec, id));
  ASSIGN_OR_RETURN(const Fd listener, Listen(SocketPath(id)));
  std::vector<std::string> environment;
  for (const auto& [name, value] : spec.environment) environment.push_back(name + "=" + value);
  ASSIGN_OR_RETURN(const Fd env, Memory("environment", JoinNul(environment)));

  Launched launched;
  ASSIGN_OR_RETURN(launched.cgroup,
                   cgroups_.Create(fmt::format("{}-{}", id, ++launches_),
                                   spec.memory_mb * 1024 * 1024 + kRunnerBytes, Processes(spec)));
  // Until the processes are in it, it is ours to remove.
  const auto remove = [](const Cgroup* group) { Cgroups::Remove(*group); };
  std::unique_ptr<Cgroup, std::decay_t<decltype(remove)>> empty(&launched.cgroup, remove);
  const Fd oom(launched.cgroup.events.empty()
                   ? -1
                   : open(launched.cgroup.events.c_str(), O_RDONLY | O_CLOEXEC));
  int control[2], log[2];
  if (pipe2(control, O_CLOEXEC) != 0) return Failed("pipe");
  const Fd control_read(control[0]);
  Fd control_write(control[1]);
  if (pipe2(log, O_CLOEXEC) != 0) return Failed("pipe");
  Fd log_read(log[0]);
  const Fd log_write(log[1]);
  fcntl(log_read.get(), F_SETFL, O_NONBLOCK);

  base::SpawnOptions spawn;
  spawn.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"};
  spawn.fds = {{control_read.get(), 0},
               {log_write.get(), 1},
               {log_write.get(), 2},
               {listener.get(), kListenFd},
               {env.get(), kEnvFd}};
  if (oom) spawn.fds.emplace_back(oom.get(), kOomFd);
  spawn.limits = {{RLIMIT_NOFILE, 4096}, {RLIMIT_CORE, 0}, {RLIMIT_FSIZE, 1024ull * 1024 * 1024}};
  spawn.join = launched.cgroup.Procs();
  const auto flags = RunnerFlags(key, spec, interpreter, code, static_cast<bool>(oom));
  Fd args;
  if (options_.sandbox) {
    sandbox::Sandbox sandbox;
    sandbox.etc_dir = options_.state_dir + "/etc";
    sandbox.read_only = interpreter.prefixes;
    sandbox.binds = {{options_.runner, "/sless/runner"},
                     {options_.runtimes_dir + "/" + spec.runtime + "/" + WorkerFile(spec.runtime),
                      "/sless/" + WorkerFile(spec.runtime)},
                     {spec.code_dir, "/var/task"}};
    if (!spec.deps_dir.empty()) {
      sandbox.binds.emplace_back(spec.deps_dir, "/opt/deps");
      // Node looks for packages in the folders above the code.
      if (spec.runtime == "nodejs20")
        sandbox.binds.emplace_back(spec.deps_dir + "/node_modules", "/var/node_modules");
    }
    ASSIGN_OR_RETURN(args, Memory("arguments", JoinNul(sandbox::Arguments(sandbox))));
    spawn.fds.emplace_back(args.get(), kArgsFd);
    spawn.command = {bwrap_, "--args", fmt::format("{}", kArgsFd), "--"};
    sandbox::KeepToOwnSockets(spawn);
  }
  spawn.command.insert(spawn.command.end(), flags.begin(), flags.end());
  auto child = base::Spawn(spawn);
  if (!child) return tl::unexpected(child.error());
  empty.release();
  launched.child = *child;
  launched.control = control_write.Release();
  launched.log = log_read.Release();
  return launched;
}

void Launcher::Forget(const std::string& id) {
  unlink(SocketPath(id).c_str());
  std::error_code ignored;
  fs::remove_all(fs::path(options_.state_dir) / "links" / id, ignored);
}

}  // namespace sless::runtime
