#include "server/runtime/process/process_runtime.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "client/base/digest.h"
#include "client/base/fd.h"
#include "client/base/guarded.h"
#include "client/base/spawn.h"
#include "client/base/strings.h"
#include "server/runtime/process/launcher.h"
#include "server/runtime/process/replica.h"
#include "server/sandbox/sandbox.h"

namespace sless::runtime {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::SteadyPoint;
using std::chrono::milliseconds;

// What the runner needs beyond the grace of its calls.
constexpr milliseconds kRunnerEnd{2'000};
constexpr milliseconds kLogPause{10};   // until it is asked again whether there is room for lines
constexpr size_t kMaxSocketPath = 100;  // of 108 bytes

class ProcessRuntime final : public Runtime {
 public:
  ProcessRuntime(ProcessOptions options, const base::Clock& clock, base::Logger& log, LogSink sink,
                 Cgroups cgroups, std::string socket_dir, std::string bwrap)
      : options_(std::move(options)),
        clock_(clock),
        log_(log),
        sink_(std::move(sink)),
        socket_dir_(socket_dir),
        launcher_(options_, std::move(cgroups), std::move(socket_dir), std::move(bwrap)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this](std::stop_token stop) { Run(stop); }) {
    interpreters_.With([&](auto& all) { all = options_.found; });
  }

  ~ProcessRuntime() override {
    Shutdown(base::Deadline{clock_.Steady()});
    thread_.request_stop();
    Wake();
    thread_.join();
    close(wake_);
    std::error_code ignored;
    if (socket_dir_ != options_.state_dir + "/sockets") fs::remove_all(socket_dir_, ignored);
  }

  base::Status Ensure(const RevisionKey& revision, const ReplicaSpec& spec, int want) override {
    return Want(revision, spec, want, {});
  }

  base::Status Retire(const RevisionKey& revision, const ReplicaSpec& spec, int want,
                      const std::string& idle_replica) override {
    return Want(revision, spec, want, {{revision, idle_replica}});
  }

  std::vector<Replica> Observe(const RevisionKey& revision) const override {
    return published_.With([&](const Published& all) {
      const auto it = all.replicas.find(revision);
      return it == all.replicas.end() ? std::vector<Replica>{} : it->second;
    });
  }

  std::set<std::string> LayersInUse() const override {
    return published_.With([](const Published& all) { return all.layers; });
  }

  void Kill(const RevisionKey& revision, const std::string& replica_id) override {
    wanted_.With([&](Wanted& w) {
      w.kills.insert({revision, replica_id});
      w.changed = true;
    });
    Wake();
  }

  void OnChange(std::function<void(const RevisionKey&)> callback) override {
    on_change_.With([&](auto& c) { c = std::move(callback); });
  }

  void Shutdown(base::Deadline deadline) override {
    wanted_.With([&](Wanted& w) {
      w.revisions.clear();
      w.kill_at = w.shut_down ? std::min(w.kill_at, deadline.at) : deadline.at;
      w.shut_down = true;
      w.changed = true;
    });
    Wake();
    // All is killed at the deadline. What is left then only the kernel can end, and it does.
    std::unique_lock lock(idle_mutex_);
    idle_changed_.wait(lock, [&] { return idle_; });
  }

 private:
  using Named = std::set<std::pair<RevisionKey, std::string>>;  // replicas by their ids
  struct Desired {
    std::shared_ptr<const ReplicaSpec> spec;
    Interpreter interpreter;
    int want = 0;
  };
  struct Wanted {
    std::map<RevisionKey, Desired> revisions;
    Named kills;
    Named retires;  // the first to go where one must
    bool shut_down = false;
    SteadyPoint kill_at = SteadyPoint::max();
    bool changed = false;  // since the thread looked
  };
  struct Published {
    std::map<RevisionKey, std::vector<Replica>> replicas;
    std::set<std::string> layers;
  };

  void Wake() const { eventfd_write(wake_, 1); }

  // `idle` in the same step: who is to go is asked once, when one must.
  base::Status Want(const RevisionKey& revision, const ReplicaSpec& spec, int want, Named idle) {
    if (want < 0 || want > 1000) {
      return base::Err(Code::kInvalidArgument,
                       fmt::format("want 0 to 1000 replicas, got {}", want));
    }
    Desired desired{std::make_shared<const ReplicaSpec>(spec), {}, want};
    if (want > 0) {
      ASSIGN_OR_RETURN(desired.interpreter, InterpreterOf(spec.runtime));
    }
    const bool down = wanted_.With([&](Wanted& w) {
      if (w.shut_down) return true;
      if (want == 0) {
        w.revisions.erase(revision);
      } else {
        w.revisions[revision] = std::move(desired);
      }
      w.retires.merge(idle);
      w.changed = true;
      return false;
    });
    if (down && want > 0) return base::Err(Code::kUnavailable, "the runtime is shutting down");
    Wake();
    return base::Ok();
  }

  // Known from the start, or looked for once, when the first function of a runtime comes; a missing
  // one is looked for again, it may be installed meanwhile.
  base::Result<Interpreter> InterpreterOf(const std::string& runtime) {
    auto known = interpreters_.With([&](auto& all) -> std::optional<Interpreter> {
      const auto it = all.find(runtime);
      return it == all.end() ? std::nullopt : std::optional(it->second);
    });
    if (known) return *known;
    ASSIGN_OR_RETURN(auto found, FindInterpreter(options_, runtime));
    interpreters_.With([&](auto& all) { all[runtime] = found; });
    log_.Info("runtime found", {{"runtime", runtime}, {"interpreter", found.path}});
    return found;
  }

  // ------------------------------------------------------------------------------------- the one
  // thread: all children are its

  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested() || !replicas_.empty()) {
      TurnEvents events;
      std::set<RevisionKey> changed;
      if (TakeWanted()) Adjust(events, changed);
      for (auto& replica : replicas_) {
        if (now_.kills.contains({replica->key(), replica->view().id})) replica->Kill(events);
        // Asked for each one: what one of them said may have been the last that there was room for.
        replica->Turn(events, !LogsBehind());
        for (const auto& event : std::exchange(events.lines, {})) {
          if (sink_.line) sink_.line(event.key, event.replica, event.line);
        }
        if (std::exchange(events.changed, false)) changed.insert(replica->key());
      }
      RemoveGone(changed);
      std::erase_if(dead_cgroups_, [](const Cgroup& group) { return Cgroups::Remove(group); });
      if (!changed.empty()) Publish();
      if (!changed.empty()) Tell(changed);
      // What was killed in a sandbox ends a moment after bubblewrap did; its cgroup is empty then.
      const bool settled = dead_cgroups_.empty() || clock_.Steady() - kRunnerEnd >= now_.kill_at;
      SetIdle(now_.shut_down && replicas_.empty() && settled);
      Wait();
    }
    // Killed processes leave their cgroups a moment later.
    for (int attempt = 0; attempt < 50 && !dead_cgroups_.empty(); ++attempt) {
      std::erase_if(dead_cgroups_, [](const Cgroup& group) { return Cgroups::Remove(group); });
      if (!dead_cgroups_.empty()) std::this_thread::sleep_for(milliseconds(10));
    }
  }

  // Most turns are for a line of a log: what is wanted is looked at only where it changed. Replicas
  // that run need no look either: one that dies starts itself again, and only what was stopped
  // goes.
  bool TakeWanted() {
    now_.kills.clear();
    now_.retires.clear();
    return wanted_.With([&](Wanted& w) {
      if (!w.changed) return false;
      w.changed = false;
      now_ = w;
      w.kills.clear();
      w.retires.clear();
      return true;
    });
  }

  void Adjust(TurnEvents& events, std::set<RevisionKey>& changed) {
    // Who goes first: one that is said to be idle, then one that does not run, then the newest.
    std::vector<RunningReplica*> order;
    for (auto it = replicas_.rbegin(); it != replicas_.rend(); ++it) order.push_back(it->get());
    const auto rank = [&](const RunningReplica* r) {
      if (now_.retires.contains({r->key(), r->view().id})) return 0;
      return r->view().state == ReplicaState::kReady ? 2 : 1;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
    std::map<RevisionKey, int> counts;
    for (const auto* replica : order) counts[replica->key()] += replica->stopping() ? 0 : 1;
    for (RunningReplica* replica : order) {
      const auto desired = now_.revisions.find(replica->key());
      const int want = desired == now_.revisions.end() ? 0 : desired->second.want;
      int& count = counts[replica->key()];
      if (replica->stopping() ? !now_.shut_down : count <= want) continue;
      if (!replica->stopping()) --count;
      replica->Stop(std::min(clock_.Steady() + options_.grace + kRunnerEnd, now_.kill_at), events);
      if (std::exchange(events.changed, false)) changed.insert(replica->key());
    }
    for (const auto& [key, desired] : now_.revisions) {
      for (int& count = counts[key]; count < desired.want; ++count) {
        replicas_.push_back(std::make_unique<RunningReplica>(
            key, *desired.spec, desired.interpreter,
            RunningReplica::Deps{options_, launcher_, clock_, log_, dead_cgroups_}));
        replicas_.back()->Start(events);
        changed.insert(key);
      }
    }
    events.changed = false;
  }

  void RemoveGone(std::set<RevisionKey>& changed) {
    std::erase_if(replicas_, [&](const auto& replica) {
      if (!replica->gone()) return false;
      changed.insert(replica->key());
      return true;
    });
  }

  void Publish() {
    Published all;
    for (const auto& replica : replicas_) {
      all.replicas[replica->key()].push_back(replica->view());
      for (const auto& layer : {replica->spec().code_dir, replica->spec().deps_dir}) {
        if (!layer.empty()) all.layers.insert(layer);
      }
    }
    published_.With([&](auto& published) { published = std::move(all); });
  }

  void Tell(const std::set<RevisionKey>& changed) {
    const auto callback = on_change_.With([](const auto& c) { return c; });
    if (!callback) return;
    for (const auto& key : changed) callback(key);
  }

  bool LogsBehind() const { return sink_.behind && sink_.behind(); }

  void SetIdle(bool idle) {
    std::lock_guard lock(idle_mutex_);
    idle_ = idle;
    if (idle) idle_changed_.notify_all();
  }

  void Wait() {
    std::vector<int> wanted_fds{wake_};
    SteadyPoint next = clock_.Steady() + std::chrono::seconds(60);
    if (!dead_cgroups_.empty()) next = std::min(next, clock_.Steady() + milliseconds(20));
    const bool behind = LogsBehind();
    if (behind) next = std::min(next, clock_.Steady() + kLogPause);
    for (const auto& replica : replicas_) {
      replica->AddFds(wanted_fds, !behind);
      next = std::min(next, replica->NextTimer());
    }
    std::vector<pollfd> fds;
    fds.reserve(wanted_fds.size());
    for (const int fd : wanted_fds) fds.push_back({fd, POLLIN, 0});
    const auto left =
        std::max(std::chrono::ceil<milliseconds>(next - clock_.Steady()), milliseconds(0));
    poll(fds.data(), fds.size(), static_cast<int>(left.count()));
    eventfd_t ignored;
    eventfd_read(wake_, &ignored);
  }

  const ProcessOptions options_;
  const base::Clock& clock_;
  base::Logger& log_;
  const LogSink sink_;
  base::Guarded<Wanted> wanted_;
  base::Guarded<Published> published_;
  base::Guarded<std::map<std::string, Interpreter>> interpreters_;
  base::Guarded<std::function<void(const RevisionKey&)>> on_change_;
  std::mutex idle_mutex_;
  std::condition_variable idle_changed_;
  bool idle_ = false;

  const std::string socket_dir_;

  // The thread's own.
  Wanted now_;
  Launcher launcher_;
  std::vector<Cgroup> dead_cgroups_;
  std::vector<std::unique_ptr<RunningReplica>> replicas_;
  const int wake_;
  std::jthread thread_;  // last: all else exists before it starts
};

base::Status OwnFolder(const std::string& path) {
  RETURN_IF_ERROR(base::MakeFolders(path));
  if (chmod(path.c_str(), 0700) != 0)
    return base::SystemError("cannot use the folder " + path, Code::kInternal);
  return base::Ok();
}

// Sockets have short paths. Where the state folder lies deep, they get a folder in /tmp, and a link
// to it to find it after a crash.
base::Result<std::string> SocketFolder(const std::string& state_dir) {
  const std::string usual = state_dir + "/sockets";
  std::error_code error;
  if (fs::is_symlink(usual, error)) {
    const std::string old = fs::read_symlink(usual, error).string();
    if (old.starts_with("/tmp/sless-")) fs::remove_all(old, error);
  }
  fs::remove_all(usual, error);
  if (usual.size() + 14 <= kMaxSocketPath) {
    RETURN_IF_ERROR(OwnFolder(usual));
    return usual;
  }
  char folder[] = "/tmp/sless-XXXXXX";
  if (mkdtemp(folder) == nullptr)
    return base::Err(Code::kInternal,
                     fmt::format("cannot make {}: {}", folder, std::strerror(errno)));
  fs::create_directory_symlink(folder, usual, error);
  if (error)
    return base::Err(Code::kInternal, fmt::format("cannot make {}: {}", usual, error.message()));
  return std::string(folder);
}

base::Status CheckFiles(const ProcessOptions& options) {
  std::error_code ignored;
  if (access(options.runner.c_str(), X_OK) != 0) {
    return base::Err(
        Code::kFailedPrecondition,
        fmt::format("sless-runner is not at {}; it is installed beside slessd", options.runner));
  }
  for (const char* worker : {"python3.11/worker.py", "nodejs20/worker.mjs"}) {
    const std::string path = options.runtimes_dir + "/" + worker;
    if (!fs::is_regular_file(path, ignored)) {
      return base::Err(
          Code::kFailedPrecondition,
          fmt::format("a language worker is not at {}; it is installed with slessd", path));
    }
  }
  return base::Ok();
}

}  // namespace

base::Result<std::unique_ptr<Runtime>> MakeProcessRuntime(ProcessOptions options,
                                                          const base::Clock& clock,
                                                          base::Logger& log, LogSink sink) {
  for (std::string* path : {&options.state_dir, &options.runner, &options.runtimes_dir}) {
    *path = fs::absolute(*path).lexically_normal().string();
  }
  RETURN_IF_ERROR(CheckFiles(options));
  RETURN_IF_ERROR(OwnFolder(options.state_dir));
  std::error_code ignored;
  fs::remove_all(options.state_dir + "/links", ignored);
  ASSIGN_OR_RETURN(std::string sockets, SocketFolder(options.state_dir));
  std::string bwrap;
  if (options.sandbox) {
    RETURN_IF_ERROR(sandbox::WriteEtc(options.state_dir + "/etc"));
    bwrap = base::FindProgram(options.bwrap, options.path);
    RETURN_IF_ERROR(sandbox::Probe(bwrap, options.state_dir + "/etc", clock));
  } else {
    log.Warn("functions run without a sandbox: they see and do what this server may",
             {{"flag", "--insecure-no-sandbox"}});
  }
  Cgroups cgroups =
      Cgroups::Detect("sless-" + base::Sha256Hex(options.state_dir).substr(0, 12), log);
  return std::unique_ptr<Runtime>(
      std::make_unique<ProcessRuntime>(std::move(options), clock, log, std::move(sink),
                                       std::move(cgroups), std::move(sockets), std::move(bwrap)));
}

}  // namespace sless::runtime
