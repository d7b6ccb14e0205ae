#include "server/build/process/process_builder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "client/base/digest.h"
#include "client/base/guarded.h"
#include "client/base/strings.h"
#include "client/source/entrypoint.h"
#include "client/source/source.h"
#include "server/build/process/installer.h"
#include "server/sandbox/sandbox.h"

namespace sless::build {
namespace {

namespace fs = std::filesystem;
using base::Code;

constexpr auto kLookForStop = std::chrono::milliseconds(100);
constexpr auto kKeepUnused = std::chrono::hours(1);

bool IsDirectory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// Collect goes by the time of the last use.
void Touch(const std::string& path) { utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

class ProcessBuilder final : public Builder {
 public:
  ProcessBuilder(ProcessBuilderOptions options, const base::Clock& clock, base::Logger& log)
      : options_(std::move(options)),
        clock_(clock),
        log_(log),
        installer_(options_, options_.dir + "/etc", clock) {}

  base::Result<BuildOutput> Build(const BuildRequest& request, base::Deadline deadline,
                                  std::stop_token stop, const LogLine& log) override {
    BuildOutput output;
    ASSIGN_OR_RETURN(output.code_dir, CodeLayer(request, deadline, stop, output.code_cached, log));
    RETURN_IF_ERROR(CheckEntrypoint(request, output.code_dir));
    ASSIGN_OR_RETURN(const auto manifest,
                     ReadManifest(output.code_dir, request.runtime, request.source_hash, log));
    if (!manifest) return output;
    ASSIGN_OR_RETURN(output.deps_dir, DepsLayer(*manifest, output.code_dir, deadline, stop,
                                                output.deps_cached, log));
    return output;
  }

  base::Status Collect(const std::vector<std::string>& in_use) override {
    const std::set<std::string> keep(in_use.begin(), in_use.end());
    const auto oldest = fs::file_time_type::clock::now() - kKeepUnused;
    for (const char* kind : {"code", "deps"}) {
      std::error_code error;
      for (const auto& entry : fs::directory_iterator(options_.dir + "/" + kind, error)) {
        const std::string path = entry.path().string();
        std::error_code ignored;
        if (keep.contains(path) || fs::last_write_time(path, ignored) > oldest) continue;
        RETURN_IF_ERROR(RemoveLayer(path));
      }
      if (error)
        return base::Err(Code::kInternal,
                         fmt::format("cannot list {}/{}: {}", options_.dir, kind, error.message()));
    }
    return base::Ok();
  }

 private:
  // ---------------------------------------------------------------------------------------------------
  // one at a time per layer

  using LayerLock = std::unique_lock<std::timed_mutex>;

  base::Result<LayerLock> Lock(const std::shared_ptr<std::timed_mutex>& mutex,
                               base::Deadline deadline, const std::stop_token& stop) {
    LayerLock lock(*mutex, std::defer_lock);
    while (!lock.try_lock_for(kLookForStop)) {
      if (stop.stop_requested()) return base::Err(Code::kCancelled, "the build was stopped");
      if (deadline.Passed(clock_)) {
        return base::Err(Code::kDeadlineExceeded,
                         "another build of the same layer did not end in time", "", "BuildTimeout");
      }
    }
    return lock;
  }

  std::shared_ptr<std::timed_mutex> MutexOf(const std::string& layer) {
    return mutexes_.With([&](auto& all) {
      std::erase_if(all, [](const auto& item) { return item.second.expired(); });
      auto mutex = all[layer].lock();
      if (!mutex) {
        mutex = std::make_shared<std::timed_mutex>();
        all[layer] = mutex;
      }
      return mutex;
    });
  }

  /// Makes `layer` by `make(work folder)`, which leaves it in <work>/layer; whole or not at all.
  template <class Make>
  base::Status MakeLayer(const std::string& layer, base::Deadline deadline,
                         const std::stop_token& stop, bool& cached, Make&& make) {
    const auto mutex = MutexOf(layer);
    ASSIGN_OR_RETURN(const LayerLock lock, Lock(mutex, deadline, stop));
    if (IsDirectory(layer)) {
      Touch(layer);
      cached = true;
      return base::Ok();
    }
    const std::string work = options_.dir + "/tmp/" + base::RandomHex(8);
    std::error_code error;
    fs::create_directory(work, error);
    if (error)
      return base::Err(Code::kInternal, fmt::format("cannot make {}: {}", work, error.message()));
    base::Status made = make(work);
    if (made) {
      fs::rename(work + "/layer", layer, error);
      if (error)
        made =
            base::Err(Code::kInternal, fmt::format("cannot make {}: {}", layer, error.message()));
    }
    fs::remove_all(work, error);
    return made;
  }

  base::Status RemoveLayer(const std::string& path) {
    const auto mutex = MutexOf(path);
    const LayerLock lock(*mutex, std::try_to_lock);
    if (!lock.owns_lock()) return base::Ok();  // being asked for just now
    const std::string away = options_.dir + "/tmp/" + base::RandomHex(8);
    std::error_code error;
    fs::rename(path, away, error);  // never half there
    if (error)
      return base::Err(Code::kInternal, fmt::format("cannot remove {}: {}", path, error.message()));
    fs::remove_all(away, error);
    log_.Info("layer removed", {{"path", path}});
    return base::Ok();
  }

  // -------------------------------------------------------------------------------------------------------------
  // the layers

  base::Result<std::string> CodeLayer(const BuildRequest& request, base::Deadline deadline,
                                      const std::stop_token& stop, bool& cached,
                                      const LogLine& log) {
    if (!base::IsContentHash(request.source_hash)) {
      return base::Err(Code::kInternal, fmt::format("no content hash: \"{}\"",
                                                    base::Truncate(request.source_hash, 100)));
    }
    const std::string layer =
        options_.dir + "/code/" + request.source_hash.substr(base::kContentHashPrefix.size());
    RETURN_IF_ERROR(
        MakeLayer(layer, deadline, stop, cached, [&](const std::string& work) -> base::Status {
          ASSIGN_OR_RETURN(const auto tree, Unpack(request, work + "/layer"));
          if (const std::string hash = source::TreeHash(tree); hash != request.source_hash) {
            return base::Err(Code::kInternal,
                             fmt::format("the stored code has the content {}, want {}", hash,
                                         request.source_hash));
          }
          log(fmt::format("code unpacked: {} files", tree.entries.size()));
          return base::Ok();
        }));
    if (cached) log("code is there already");
    return layer;
  }

  static base::Result<source::Tree> Unpack(const BuildRequest& request, const std::string& dir) {
    if (!request.archive_path.empty()) return source::Unpack(request.archive_path, dir);
    ASSIGN_OR_RETURN(auto tree,
                     source::InlineTree(request.runtime, request.entrypoint, request.inline_code));
    RETURN_IF_ERROR(source::Unpack(tree, dir));
    return tree;
  }

  static base::Status CheckEntrypoint(const BuildRequest& request, const std::string& code_dir) {
    ASSIGN_OR_RETURN(const auto tree, source::ReadDirectory(code_dir));
    const auto checked = source::CheckEntrypoint(tree, request.runtime, request.entrypoint);
    if (checked || checked.error().code != Code::kInvalidArgument) return checked;
    base::Error error = checked.error();
    error.code = Code::kFailedPrecondition;
    error.reason = "BuildFailed";
    return base::Err(error);
  }

  base::Result<std::string> DepsLayer(const Manifest& manifest, const std::string& code_dir,
                                      base::Deadline deadline, const std::stop_token& stop,
                                      bool& cached, const LogLine& log) {
    const std::string layer = options_.dir + "/deps/" + manifest.key;
    const auto begin = clock_.Steady();
    RETURN_IF_ERROR(MakeLayer(layer, deadline, stop, cached, [&](const std::string& work) {
      log(fmt::format("installing {}", manifest.file));
      return installer_.Install(manifest, code_dir, work, deadline, stop, log);
    }));
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(clock_.Steady() - begin).count();
    log(cached ? "dependencies are there already"
               : fmt::format("dependencies installed in {} ms", took));
    return layer;
  }

  const ProcessBuilderOptions options_;
  const base::Clock& clock_;
  base::Logger& log_;
  Installer installer_;
  base::Guarded<std::map<std::string, std::weak_ptr<std::timed_mutex>>> mutexes_;
};

}  // namespace

base::Result<std::unique_ptr<Builder>> MakeProcessBuilder(ProcessBuilderOptions options,
                                                          const base::Clock& clock,
                                                          base::Logger& log) {
  options.dir = fs::absolute(options.dir).lexically_normal().string();
  std::error_code error;
  fs::remove_all(options.dir + "/tmp", error);  // what a killed build left
  for (const char* name : {"", "/code", "/deps", "/tmp"}) {
    fs::create_directories(options.dir + name, error);
    if (error || chmod((options.dir + name).c_str(), 0700) != 0) {
      return base::Err(Code::kInternal,
                       fmt::format("cannot use the folder {}{}: {}", options.dir, name,
                                   error ? error.message() : std::strerror(errno)));
    }
  }
  RETURN_IF_ERROR(sandbox::WriteEtc(options.dir + "/etc"));
  return std::unique_ptr<Builder>(std::make_unique<ProcessBuilder>(std::move(options), clock, log));
}

}  // namespace sless::build
