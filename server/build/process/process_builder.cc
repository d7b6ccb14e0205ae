#include "server/build/process/process_builder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "client/base/digest.h"
#include "client/base/fd.h"
#include "client/base/guarded.h"
#include "client/base/strings.h"
#include "client/source/entrypoint.h"
#include "client/source/source.h"
#include "server/build/process/installer.h"
#include "server/build/process/written_tree.h"
#include "server/sandbox/sandbox.h"

namespace sless::build {
namespace {

namespace fs = std::filesystem;
using base::Code;

constexpr auto kLookForStop = std::chrono::milliseconds(100);
constexpr auto kKeepUnused = std::chrono::hours(1);
constexpr std::string_view kCode = "code", kDeps = "deps", kTemp = "tmp";
constexpr const char* kNext = ".next";  // a sum whose layer has not its name yet
constexpr int kMaxOld = 8;              // folders of one layer that were made anew since the start
constexpr int kRemoveTries = 5;
constexpr auto kRemoveWait = std::chrono::milliseconds(100);

// Collect goes by the time of the last use.
void Touch(const std::string& path) { utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

base::Status MakeFolders(const std::string& dir) {
  for (const char* name : {"", "/code", "/deps", "/sums", "/tmp"}) {
    const std::string folder = dir + name;
    RETURN_IF_ERROR(base::MakeFolders(folder));
    if (chmod(folder.c_str(), 0700) != 0)
      return base::SystemError("cannot use the folder " + folder, Code::kInternal);
  }
  return base::Ok();
}

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
    auto checked = CheckEntrypoint(request, output.code_dir);
    if (!checked && output.code_cached && checked.error().reason == "BuildFailed" &&
        SourceHasEntrypoint(request)) {
      // Not the user's fault, but the disk's: without its sum the layer goes by its content.
      unlink(SumOf(output.code_dir).c_str());
      output.code_cached = false;
      ASSIGN_OR_RETURN(output.code_dir,
                       CodeLayer(request, deadline, stop, output.code_cached, log));
      checked = CheckEntrypoint(request, output.code_dir);
    }
    RETURN_IF_ERROR(checked);
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
    for (const auto kind : {kCode, kDeps, kTemp}) {
      ASSIGN_OR_RETURN(const auto paths, Below(kind));
      for (const auto& path : paths) {
        std::error_code ignored;
        if (kind == kTemp && keep.contains(LayerOfOld(path))) continue;
        if (keep.contains(path) || fs::last_write_time(path, ignored) > oldest) continue;
        if (kind == kTemp) {
          Discard(path);
        } else {
          RETURN_IF_ERROR(RemoveLayer(path));
        }
      }
    }
    return base::Ok();
  }

  /// At the start, when no replica lives: what a killed build left, and layers that are not as they
  /// were made. Of dependencies, which have many files, only whether they are there: before
  /// anything serves is no time to look at each.
  base::Status CleanUp() {
    ASSIGN_OR_RETURN(const auto left, Below(kTemp));
    for (const auto& path : left) Discard(path);
    ASSIGN_OR_RETURN(const auto sums, Below("sums"));
    for (const auto& sum : sums)
      if (sum.ends_with(kNext)) unlink(sum.c_str());
    for (const auto kind : {kCode, kDeps}) {
      ASSIGN_OR_RETURN(const auto layers, Below(kind));
      for (const auto& layer : layers) {
        const auto whole = IsWhole(layer, kind == kCode);
        auto done = whole && !*whole ? TakeAway(layer) : base::Ok();
        if (!whole) done = base::Err(whole.error());
        if (!done) log_.Warn("a layer cannot be looked after", {{"error", done.error().message}});
        if (done && !*whole)
          log_.Warn("a layer is not as it was made; it is removed, and made where it is needed",
                    {{"path", layer}});
      }
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

  /// Makes `layer` by `make(work folder)`, which leaves it in <work>/layer (there already, empty);
  /// whole or not at all. One that is not as it was made stays until then, and its files after
  /// that: replicas have its folder mounted.
  template <class Make>
  base::Status MakeLayer(const std::string& layer, base::Deadline deadline,
                         const std::stop_token& stop, bool& cached, Make&& make) {
    const auto mutex = MutexOf(layer);
    ASSIGN_OR_RETURN(const LayerLock lock, Lock(mutex, deadline, stop));
    ASSIGN_OR_RETURN(const bool whole, IsWhole(layer, true));
    if (whole) {
      Touch(layer);
      cached = true;
      return base::Ok();
    }
    ASSIGN_OR_RETURN(const std::string old, NameForOld(layer));
    const std::string work = options_.dir + "/tmp/" + base::RandomHex(8);
    RETURN_IF_ERROR(MakeFolders(options_.dir));  // somebody may have emptied the cache
    RETURN_IF_ERROR(base::MakeFolders(work + "/layer"));
    const auto made = MakeIn(work, layer, old, make);
    Discard(work);
    return made;
  }

  template <class Make>
  base::Status MakeIn(const std::string& work, const std::string& layer, const std::string& old,
                      Make& make) {
    const std::string folder = work + "/layer";
    ASSIGN_OR_RETURN(const base::Fd opened, OpenFolder(folder));
    RETURN_IF_ERROR(make(work));
    if (!IsSameFolder(opened, folder)) return Replaced();
    ASSIGN_OR_RETURN(const auto extent, Measure(folder));
    if (extent.special) {
      return base::Err(Code::kFailedPrecondition,
                       "the build left a socket, a pipe or a device; want files, folders and links",
                       "", "BuildFailed");
    }
    // What has the name of a layer is taken for whole from then on, so it lies on the disk before,
    // and its name does before a revision refers to it. A sum is never beside a tree that it does
    // not speak of, whenever the server is killed: without one, code goes by its content, and
    // dependencies are installed again.
    const std::string sum = SumOf(layer), next = sum + kNext;
    RETURN_IF_ERROR(WriteSum(next, extent));
    if (unlink(sum.c_str()) != 0 && errno != ENOENT)
      return base::SystemError("cannot remove " + sum, Code::kInternal);
    RETURN_IF_ERROR(options_.sync(folder));
    RETURN_IF_ERROR(Swap(opened, folder, layer, old));
    if (rename(next.c_str(), sum.c_str()) != 0)
      return base::SystemError("cannot make " + sum, Code::kInternal);
    return options_.sync(fs::path(layer).parent_path());
  }

  // Code of users may have run there: a link in place of the folder would show any folder of the
  // host to the function.
  static base::Status Replaced() {
    return base::Err(Code::kFailedPrecondition,
                     "the build put something else in place of the folder that it installs to", "",
                     "BuildFailed");
  }

  // Puts `folder`, which was opened as `opened`, in the place of `layer`, whose name is never
  // missing: replicas may begin meanwhile. What was there becomes `old`, or stays where it was.
  base::Status Swap(const base::Fd& opened, const std::string& folder, const std::string& layer,
                    const std::string& old) {
    struct stat ignored {};
    const bool replaces = lstat(layer.c_str(), &ignored) == 0;
    if (rename(folder.c_str(), old.c_str()) != 0)
      return base::SystemError("cannot make " + old, Code::kInternal);
    const auto move = [&](const std::string& from, const std::string& to) {
      return replaces ? Exchange(old, layer) : rename(from.c_str(), to.c_str()) == 0;
    };
    base::Status done = base::Ok();
    if (!move(old, layer)) {
      done = base::SystemError("cannot make " + layer, Code::kInternal);
    } else if (!IsSameFolder(opened, layer)) {
      done = Replaced();
      if (!move(layer, old)) return base::SystemError("cannot put back " + layer, Code::kInternal);
    }
    if (done && replaces)
      log_.Warn("a layer was not as it was made, and is made again", {{"path", layer}});
    if (!done || !IsFolder(old)) Discard(old);
    return done;
  }

  // Where the folder of `layer` is kept while replicas may have it mounted: until nothing needs
  // that layer any more, or the next start.
  base::Result<std::string> NameForOld(const std::string& layer) const {
    for (int i = 0; i < kMaxOld; ++i) {
      const std::string name = fmt::format("{}/tmp/{}.{}", options_.dir, FlatName(layer), i);
      struct stat ignored {};
      if (lstat(name.c_str(), &ignored) != 0 && errno == ENOENT) return name;
    }
    return base::Err(
        Code::kResourceExhausted,
        fmt::format("the layer {} had to be made again {} times since the server started, and "
                    "replicas may use what it was; look after the disk, then restart the server",
                    FlatName(layer), kMaxOld));
  }

  // The layer that NameForOld named `path` for; no layer's name for other paths.
  std::string LayerOfOld(const std::string& path) const {
    const std::string name = fs::path(path).stem().string();
    const size_t dash = name.find('-');
    if (dash == std::string::npos) return "";
    return fmt::format("{}/{}/{}", options_.dir, name.substr(0, dash), name.substr(dash + 1));
  }

  static std::string FlatName(const std::string& layer) {
    const fs::path path(layer);
    return path.parent_path().filename().string() + "-" + path.filename().string();
  }

  // How many files and bytes a layer had when it was made.
  std::string SumOf(const std::string& layer) const {
    return options_.dir + "/sums/" + FlatName(layer);
  }

  static base::Status WriteSum(const std::string& path, const Extent& extent) {
    std::ofstream sum(path);
    sum << extent.files << ' ' << extent.bytes << '\n';
    sum.close();
    if (!sum) return base::SystemError("cannot write " + path, Code::kInternal);
    return base::Ok();
  }

  // Nothing where it was lost.
  base::Result<std::optional<Extent>> ReadSum(const std::string& layer) const {
    const std::string path = SumOf(layer);
    const base::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file && errno == ENOENT) return std::nullopt;
    char text[64];
    const ssize_t size = file ? read(file.get(), text, sizeof text) : -1;
    if (size < 0) return base::SystemError("cannot read " + path, Code::kUnavailable);
    Extent extent;
    std::istringstream numbers(std::string(text, static_cast<size_t>(size)));
    if (!(numbers >> extent.files >> extent.bytes)) return std::nullopt;
    return extent;
  }

  // A disk may lose what was on it. More than was made is no harm: without a sandbox, Python adds
  // what it compiled.
  // What cannot be looked at now (no descriptor left, a fault of the disk) is not found wanting.
  base::Result<bool> IsWhole(const std::string& layer, bool count) const {
    struct stat there {};
    if (lstat(layer.c_str(), &there) != 0) {
      if (errno == ENOENT) return false;
      return base::SystemError("cannot look at " + layer, Code::kUnavailable);
    }
    if (!S_ISDIR(there.st_mode)) return false;
    if (!count) return true;
    ASSIGN_OR_RETURN(const auto made, ReadSum(layer));
    if (!made && !IsCode(layer)) return false;
    if (!made) {
      ASSIGN_OR_RETURN(const bool own, HasItsContent(layer));
      if (!own) return false;
    }
    ASSIGN_OR_RETURN(const auto found, Measure(layer));
    if (made) return found.files >= made->files && found.bytes >= made->bytes;
    RETURN_IF_ERROR(WriteSum(SumOf(layer), found));
    return true;
  }

  static bool IsCode(const std::string& layer) {
    return fs::path(layer).parent_path().filename() == kCode;
  }

  // Whether what lies in a code layer is what its name stands for, with or without what Python
  // compiled.
  static base::Result<bool> HasItsContent(const std::string& layer) {
    const std::string want =
        std::string(base::kContentHashPrefix) + fs::path(layer).filename().string();
    auto tree = source::ReadUnpacked(layer, LayerLimits());
    if (tree) {
      if (source::TreeHash(*tree) == want) return true;
      std::erase_if(tree->entries, [](const source::Entry& entry) {
        return base::Contains("/" + entry.path, "/__pycache__/");
      });
      return source::TreeHash(*tree) == want;
    }
    const Code code = tree.error().code;
    if (code == Code::kInvalidArgument || code == Code::kTooLarge) return false;
    return base::Err(tree.error());
  }

  // Of a source, with room for what Python compiles and for folders, of which a zip may tell none.
  static source::Limits LayerLimits() {
    source::Limits limits;
    limits.max_archive_entries = 2 * limits.max_files * (limits.max_depth + 1);
    limits.max_files *= 2;
    limits.max_total_bytes *= 2;
    return limits;
  }

  base::Status RemoveLayer(const std::string& path) {
    const auto mutex = MutexOf(path);
    const LayerLock lock(*mutex, std::try_to_lock);
    if (!lock.owns_lock()) return base::Ok();  // being asked for just now
    RETURN_IF_ERROR(TakeAway(path));
    log_.Info("layer removed", {{"path", path}});
    return base::Ok();
  }

  base::Status TakeAway(const std::string& layer) {
    const std::string away = options_.dir + "/tmp/" + base::RandomHex(8);
    if (rename(layer.c_str(), away.c_str()) != 0)  // never half there
      return base::SystemError("cannot remove " + layer, Code::kInternal);
    unlink(SumOf(layer).c_str());
    Discard(away);
    return base::Ok();
  }

  // Processes of a build that was killed may write on for a moment.
  void Discard(const std::string& path) {
    base::Status removed = RemoveTree(path);
    for (int i = 0; !removed && i < kRemoveTries; ++i) {
      std::this_thread::sleep_for(kRemoveWait);
      removed = RemoveTree(path);
    }
    if (!removed)
      log_.Warn("what a build left cannot be removed", {{"error", removed.error().message}});
  }

  base::Result<std::vector<std::string>> Below(std::string_view kind) const {
    std::vector<std::string> paths;
    std::error_code error;
    const std::string folder = fmt::format("{}/{}", options_.dir, kind);
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      paths.push_back(it->path().string());
    if (error)
      return base::Err(Code::kInternal, fmt::format("cannot list {}: {}", folder, error.message()));
    return paths;
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
          ASSIGN_OR_RETURN(const auto tree, ReadSource(request));
          RETURN_IF_ERROR(source::Unpack(tree, work + "/layer"));
          log(fmt::format("code unpacked: {} files", tree.entries.size()));
          return base::Ok();
        }));
    if (cached) log("code is there already");
    return layer;
  }

  // The tree of `source_hash`.
  static base::Result<source::Tree> ReadSource(const BuildRequest& request) {
    const bool stored = !request.archive_path.empty();
    ASSIGN_OR_RETURN(auto tree, stored ? source::ReadZip(request.archive_path)
                                       : source::InlineTree(request.runtime, request.entrypoint,
                                                            request.inline_code));
    const std::string hash = source::TreeHash(tree);
    if (hash == request.source_hash) return tree;
    // Another version may have stored it, with other rules for what counts; then what it left out
    // is not there.
    if (stored) {
      ASSIGN_OR_RETURN(auto whole, source::ReadWholeZip(request.archive_path));
      if (source::TreeHash(whole) == request.source_hash) return whole;
    }
    return base::Err(
        Code::kInternal,
        fmt::format("the stored code has the content {}, want {}", hash, request.source_hash), "",
        "BadArchive");
  }

  static bool SourceHasEntrypoint(const BuildRequest& request) {
    const auto tree = ReadSource(request);
    return tree && source::CheckEntrypoint(*tree, request.runtime, request.entrypoint);
  }

  static base::Status CheckEntrypoint(const BuildRequest& request, const std::string& code_dir) {
    ASSIGN_OR_RETURN(const auto tree, source::ReadUnpacked(code_dir, LayerLimits()));
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

base::Status SyncFileSystem(const std::string& path) {
  const base::Fd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || syncfs(folder.get()) != 0)
    return base::SystemError("cannot sync " + path, Code::kUnavailable);
  return base::Ok();
}

base::Result<std::unique_ptr<Builder>> MakeProcessBuilder(ProcessBuilderOptions options,
                                                          const base::Clock& clock,
                                                          base::Logger& log) {
  options.dir = fs::absolute(options.dir).lexically_normal().string();
  RETURN_IF_ERROR(MakeFolders(options.dir));
  RETURN_IF_ERROR(sandbox::WriteEtc(options.dir + "/etc"));
  auto builder = std::make_unique<ProcessBuilder>(std::move(options), clock, log);
  RETURN_IF_ERROR(builder->CleanUp());
  return builder;
}

}  // namespace sless::build
