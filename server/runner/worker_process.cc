#include "server/runner/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/base/fd.h"

namespace sless::runner {
namespace {

struct Pair {
  base::Fd ours, theirs;
  bool OpenPipe() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    ours = base::Fd(fds[0]), theirs = base::Fd(fds[1]);
    return true;
  }
  bool OpenSocket() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) return false;
    ours = base::Fd(fds[0]), theirs = base::Fd(fds[1]);
    return true;
  }
};

// When the replica's memory is used up, the function shall go and not the runner, which tells why.
// Best effort.
void PreferAsVictim(int pid) {
  const int fd = open(fmt::format("/proc/{}/oom_score_adj", pid).c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t n = write(fd, "900", 3);
  close(fd);
}

}  // namespace

base::Result<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(const WorkerOptions& options) {
  Pair frames, out, err;
  if (!frames.OpenSocket() || !out.OpenPipe() || !err.OpenPipe()) {
    return base::SystemError("cannot open pipes to the worker", base::Code::kInternal);
  }
  base::SpawnOptions spawn;
  spawn.command = options.command;
  spawn.environment = options.environment;
  spawn.directory = options.directory;
  spawn.fds = {{out.theirs.get(), 1}, {err.theirs.get(), 2}, {frames.theirs.get(), 3}};
  spawn.no_new_privileges = true;
  if (options.data_limit_bytes > 0)
    spawn.limits = {{RLIMIT_DATA, static_cast<uint64_t>(options.data_limit_bytes)}};
  if (options.process_limit > 0)
    spawn.limits.emplace_back(RLIMIT_NPROC, static_cast<uint64_t>(options.process_limit));
  auto worker = std::unique_ptr<WorkerProcess>(new WorkerProcess());
  ASSIGN_OR_RETURN(worker->child_, base::Spawn(spawn));
  PreferAsVictim(worker->child_.pid);
  worker->frames_ = frames.ours.Release();
  worker->out_ = out.ours.Release();
  worker->err_ = err.ours.Release();
  for (const int fd : {worker->frames_, worker->out_, worker->err_})
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return worker;
}

WorkerProcess::~WorkerProcess() {
  if (child_.pid > 0) {
    base::KillGroup(child_);
    base::WaitFor(child_);
  }
  for (const int fd : {frames_, out_, err_}) {
    if (fd >= 0) close(fd);
  }
}

}  // namespace sless::runner
