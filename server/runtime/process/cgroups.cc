#include "server/runtime/process/cgroups.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "client/base/fd.h"
#include "client/base/strings.h"

namespace sless::runtime {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Cgroup files take one write(2) and answer with its errno; a stream would hide it.
int WriteFile(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
  close(fd);
  return error;
}

struct Mount {
  std::string point, root, type, options;
};

std::vector<Mount> CgroupMounts(const std::string& self) {
  std::vector<Mount> mounts;
  for (const auto& line : base::Split(ReadAll(self + "/mountinfo"), '\n')) {
    const size_t dash = line.find(" - cgroup");
    if (dash == std::string::npos) continue;
    const auto left = base::Split(line.substr(0, dash), ' '),
               right = base::Split(line.substr(dash + 3), ' ');
    if (left.size() >= 5 && right.size() >= 3)
      mounts.push_back({left[4], left[3], right[0], right[2]});
  }
  return mounts;
}

bool HasWord(const std::string& list, std::string_view word, char separator) {
  for (const auto& part : base::Split(base::Trim(list), separator)) {
    if (part == word) return true;
  }
  return false;
}

// This process's own path in the hierarchy with that controller ("" for v2).
std::string OwnPath(const std::string& self, const std::string& controller) {
  for (const auto& line : base::Split(ReadAll(self + "/cgroup"), '\n')) {
    const auto parts = base::Split(line, ':');
    if (parts.size() < 3) continue;
    const bool match = controller.empty() ? parts[0] == "0" && parts[1].empty()
                                          : HasWord(parts[1], controller, ',');
    if (match) return line.substr(parts[0].size() + parts[1].size() + 2);
  }
  return "/";
}

std::string OwnFolder(const Mount& mount, const std::string& self, const std::string& controller) {
  std::string path = OwnPath(self, controller);
  if (mount.root != "/" && path.starts_with(mount.root)) path = path.substr(mount.root.size());
  const std::string folder = path == "/" || path.empty() ? mount.point : mount.point + path;
  std::error_code ignored;
  return fs::is_directory(folder, ignored) ? folder : mount.point;
}

void KillAll(const std::string& folder) {
  std::ifstream procs(folder + "/cgroup.procs");
  for (int pid; procs >> pid;) {
    if (pid > 1 && pid != getpid()) kill(pid, SIGKILL);
  }
}

void RemoveChildren(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (!entry.is_directory(ignored)) continue;
    for (int attempt = 0; attempt < 50; ++attempt) {
      KillAll(entry.path());
      if (rmdir(entry.path().c_str()) == 0 || errno != EBUSY) break;
      usleep(10'000);  // killed processes leave their cgroup a moment later
    }
  }
}

bool MakeFolder(const std::string& folder) {
  std::error_code error;
  fs::create_directory(folder, error);
  if (error || access((folder + "/cgroup.procs").c_str(), W_OK) != 0) return false;
  RemoveChildren(folder);
  return true;
}

// In v2 a cgroup either holds processes or hands controllers to its children: we step aside into a
// leaf first. In the topmost cgroup that a container sees as well, which is no different; that of
// the whole machine would not need it, and does not mind.
std::string PrepareV2(const std::string& own, const std::string& name) {
  if (!HasWord(ReadAll(own + "/cgroup.controllers"), "memory", ' ')) return "";
  const std::string leaf = own + "/" + name + "-server", folder = own + "/" + name;
  std::error_code error;
  fs::create_directory(leaf, error);
  if (error) return "";
  if (WriteFile(leaf + "/cgroup.procs", "0") != 0 ||
      WriteFile(own + "/cgroup.subtree_control", "+memory +pids") != 0) {
    // Not ours alone: a shell beside us in the session, say. No trace of the try remains.
    WriteFile(own + "/cgroup.procs", "0");
    rmdir(leaf.c_str());
    return "";
  }
  if (!MakeFolder(folder) || WriteFile(folder + "/cgroup.subtree_control", "+memory +pids") != 0)
    return "";
  return folder;
}

}  // namespace

std::vector<std::string> Cgroup::Procs() const {
  std::vector<std::string> out;
  for (const auto& folder : folders) out.push_back(folder + "/cgroup.procs");
  return out;
}

Cgroups Cgroups::Detect(const std::string& name, base::Logger& log, const std::string& self) {
  Cgroups found;
  for (const auto& mount : CgroupMounts(self)) {
    if (mount.type == "cgroup2" && !found.memory_) {
      const std::string folder = PrepareV2(OwnFolder(mount, self, ""), name);
      if (folder.empty()) continue;
      found.hierarchies_ = {{"v2", folder}};
      found.memory_ = true;
      break;
    }
    for (const char* controller : {"memory", "pids"}) {
      if (mount.type != "cgroup" || !HasWord(mount.options, controller, ',')) continue;
      const std::string folder = OwnFolder(mount, self, controller) + "/" + name;
      if (!MakeFolder(folder)) continue;
      found.hierarchies_.push_back({controller, folder});
      found.memory_ = found.memory_ || std::string_view(controller) == "memory";
    }
  }
  if (!found.memory_) {
    log.Warn("no cgroup can limit the memory of functions; RLIMIT_DATA of their processes is used",
             {{"hint", "cgroup v2 with delegation (systemd: Delegate=yes)"}});
  }
  return found;
}

base::Result<Cgroup> Cgroups::Create(const std::string& id, int64_t memory_bytes,
                                     int64_t processes) const {
  Cgroup group;
  const auto fail = [&](const std::string& what, int error) {
    Remove(group);
    return base::SystemError("cannot set up the replica's cgroup: " + what, base::Code::kInternal,
                             error);
  };
  for (const auto& [controller, base_folder] : hierarchies_) {
    const std::string folder = base_folder + "/" + id;
    if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return fail(folder, errno);
    group.folders.push_back(folder);
    const std::string bytes = fmt::format("{}", memory_bytes);
    if (controller == "v2") {
      if (const int error = WriteFile(folder + "/memory.max", bytes))
        return fail("memory.max", error);
      WriteFile(folder + "/memory.swap.max", "0");  // absent without swap
      WriteFile(folder + "/pids.max", fmt::format("{}", processes));
      group.events = folder + "/memory.events";
    } else if (controller == "memory") {
      if (const int error = WriteFile(folder + "/memory.limit_in_bytes", bytes))
        return fail("memory.limit_in_bytes", error);
      WriteFile(folder + "/memory.memsw.limit_in_bytes", bytes);  // absent without swap accounting
      group.events = folder + "/memory.oom_control";
    } else {
      if (const int error = WriteFile(folder + "/pids.max", fmt::format("{}", processes)))
        return fail("pids.max", error);
    }
  }
  return group;
}

bool Cgroups::Remove(const Cgroup& cgroup) {
  bool gone = true;
  for (const auto& folder : cgroup.folders) {
    if (rmdir(folder.c_str()) == 0 || errno == ENOENT) continue;
    KillAll(folder);
    gone = (rmdir(folder.c_str()) == 0 || errno == ENOENT) && gone;
  }
  return gone;
}

int64_t OomKills(const std::string& file) {
  if (file.empty()) return 0;
  const std::string text = ReadAll(file);
  const size_t at = text.find("oom_kill ");
  return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + 9);
}

}  // namespace sless::runtime
