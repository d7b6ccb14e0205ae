#include "server/sandbox/sandbox.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "client/base/strings.h"

namespace sless::sandbox {
namespace {

namespace fs = std::filesystem;

// What programs need of /etc to resolve names, check certificates and find libraries. Never /etc
// itself: a server that runs as root could be read there.
constexpr const char* kEtc[] = {"resolv.conf",     "hosts",         "nsswitch.conf",
                                "host.conf",       "gai.conf",      "protocols",
                                "services",        "localtime",     "ld.so.cache",
                                "ld.so.conf",      "ld.so.conf.d",  "alternatives",
                                "mime.types",      "ssl/certs",     "ssl/openssl.cnf",
                                "ca-certificates", "pki/tls/certs", "pki/ca-trust/extracted"};

constexpr const char* kSystem[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

void AddSystem(std::vector<std::string>& args) {
  const auto add = [&](std::initializer_list<std::string> words) {
    args.insert(args.end(), words);
  };
  add({"--ro-bind", "/usr", "/usr"});
  for (const char* name : kSystem) {
    std::error_code error;
    if (fs::is_symlink(name, error)) {
      add({"--symlink", fs::read_symlink(name, error).string(), name});
    } else if (fs::is_directory(name, error)) {
      add({"--ro-bind", name, name});
    }
  }
  for (const char* name : kEtc)
    add({"--ro-bind-try", fmt::format("/etc/{}", name), fmt::format("/etc/{}", name)});
}

// Under a server that runs as root, the sandbox's user is root to the files of /proc, whatever
// capabilities it lacks; and bubblewrap leaves the first group writable then (it looks at the
// folders only, which are not).
void AddProcMasks(std::vector<std::string>& args) {
  const auto add = [&](std::initializer_list<std::string> words) {
    args.insert(args.end(), words);
  };
  std::error_code ignored;
  for (const char* name : {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs",
                           "/proc/mtrr", "/proc/pressure"}) {
    if (fs::exists(name, ignored)) add({"--ro-bind", name, name});
  }
  const auto hide = [&](const std::string& name) { add({"--ro-bind", "/dev/null", name}); };
  for (const char* name :
       {"/proc/keys", "/proc/key-users", "/proc/latency_stats", "/proc/sched_debug"}) {
    if (fs::exists(name, ignored)) hide(name);
  }
  // And whatever a kernel has there for its root alone.
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const auto status = entry.symlink_status(ignored);
    if (!fs::is_regular_file(status) || entry.path() == "/proc/sysrq-trigger") continue;
    if ((status.permissions() & fs::perms::others_read) == fs::perms::none) hide(entry.path());
  }
  for (const char* name : {"/proc/acpi", "/proc/asound", "/proc/scsi"}) {
    if (fs::is_directory(name, ignored)) add({"--tmpfs", name, "--remount-ro", name});
  }
}

}  // namespace

std::vector<std::string> Arguments(const Sandbox& sandbox) {
  std::vector<std::string> args;
  const auto add = [&](std::initializer_list<std::string> words) {
    args.insert(args.end(), words);
  };
  add({"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
       "--disable-userns"});
  add({"--die-with-parent", "--new-session", "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000",
       "--hostname", "sless"});
  AddSystem(args);
  for (const char* name : {"passwd", "group"})
    add({"--ro-bind", sandbox.etc_dir + "/" + name, fmt::format("/etc/{}", name)});
  add({"--proc", "/proc", "--dev", "/dev"});
  AddProcMasks(args);
  add({"--perms", "1777", "--size", fmt::format("{}", sandbox.tmp_bytes), "--tmpfs", "/tmp"});
  add({"--perms", "1777", "--size", fmt::format("{}", sandbox.tmp_bytes), "--tmpfs", "/dev/shm"});
  // After /tmp, which would hide an interpreter below it.
  for (const auto& path : sandbox.read_only) add({"--ro-bind-try", path, path});
  for (const auto& [from, to] : sandbox.writable) add({"--bind", from, to});
  for (const auto& [from, to] : sandbox.binds) add({"--ro-bind", from, to});
  add({"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", sandbox.directory});
  return args;
}

bool AlwaysThere(const std::string& path) {
  const std::string normal = fs::path(path).lexically_normal().string();
  const auto below = [&](const std::string& folder) {
    return normal == folder || normal.starts_with(folder + "/");
  };
  if (below("/usr")) return true;
  for (const char* name : kSystem) {
    if (below(name)) return true;
  }
  for (const char* name : kEtc) {
    if (below(fmt::format("/etc/{}", name))) return true;
  }
  return false;
}

void KeepToOwnSockets(base::SpawnOptions& spawn) {
  std::error_code error;
  const auto status = fs::status(spawn.command.at(0), error);
  // What is setuid needs its privileges.
  spawn.own_abstract_sockets =
      !error && (status.permissions() & fs::perms::set_uid) == fs::perms::none;
}

base::Status WriteEtc(const std::string& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  std::ofstream passwd(dir + "/passwd"), group(dir + "/group");
  passwd << "function:x:1000:1000:function:/tmp:/bin/sh\nroot:x:0:0:root:/:/usr/sbin/"
            "nologin\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n";
  group << "function:x:1000:\nroot:x:0:\nnogroup:x:65534:\n";
  passwd.close();
  group.close();
  if (error || !passwd || !group)
    return base::Err(base::Code::kInternal, "cannot write " + dir + "/passwd");
  return base::Ok();
}

base::Status Probe(const std::string& bwrap, const std::string& etc_dir, const base::Clock& clock) {
  const auto fail = [](const std::string& what) {
    return base::Err(base::Code::kFailedPrecondition,
                     "no sandbox can be made for functions: " + what +
                         ". Without one, functions see and do what this server may; to accept "
                         "that, start with --insecure-no-sandbox");
  };
  if (bwrap.empty())
    return fail("bubblewrap (the program bwrap) is not on PATH; install the package bubblewrap");
  Sandbox sandbox;
  sandbox.etc_dir = etc_dir;
  base::SpawnOptions spawn;
  spawn.command = {bwrap};
  const auto args = Arguments(sandbox);
  spawn.command.insert(spawn.command.end(), args.begin(), args.end());
  spawn.command.insert(spawn.command.end(), {"--", "/usr/bin/true"});
  spawn.environment = {"PATH=/usr/bin:/bin"};
  KeepToOwnSockets(spawn);
  const auto output =
      base::RunCommand(spawn, base::Deadline::After(clock, std::chrono::seconds(10)), clock);
  if (!output) return fail(output.error().message);
  if (output->exit.ok()) return base::Ok();
  return fail(
      fmt::format("{} {}: {} (are user namespaces allowed here? sysctl user.max_user_namespaces, "
                  "kernel.unprivileged_userns_clone, "
                  "kernel.apparmor_restrict_unprivileged_userns)",
                  bwrap, output->exit.Text(), base::Truncate(base::Trim(output->text), 300)));
}

}  // namespace sless::sandbox
