#include "server/reconcile/build_runner.h"

#include <fmt/format.h>

#include "client/base/strings.h"

namespace sless::reconcile {
namespace {

constexpr std::string_view kUploadAgain =
    "upload it, then set the annotation sless.dev/retry (terraform apply does both)";

}  // namespace

BuildRunner::BuildRunner(Deps deps, int threads) : deps_(deps), pool_(threads) {}
BuildRunner::~BuildRunner() { Stop(); }

std::optional<BuildRunner::Outcome> BuildRunner::Ensure(const runtime::RevisionKey& revision,
                                                        const api::FunctionSpec& spec) {
  const Key key{revision.ns, revision.name};
  auto fresh = std::make_shared<Build>();
  fresh->revision = revision.revision;
  const auto build = builds_.With([&](auto& builds) {
    auto& slot = builds[key];
    if (slot != nullptr && slot->revision == revision.revision) return slot;
    if (slot != nullptr) slot->stop.request_stop();
    slot = fresh;
    return slot;
  });
  if (build != fresh) return build->outcome.With([](const auto& outcome) { return outcome; });

  pool_.Submit([this, revision, spec, build](std::stop_token pool_stop) {
    std::stop_callback forward(pool_stop, [&] { build->stop.request_stop(); });
    if (build->stop.stop_requested()) return;
    auto outcome = Run(revision, spec, build->stop.get_token());
    build->outcome.With([&](auto& slot) { slot = std::move(outcome); });
    if (!pool_stop.stop_requested()) done_(revision.ns, revision.name);
  });
  return std::nullopt;
}

BuildRunner::Outcome BuildRunner::Run(const runtime::RevisionKey& revision,
                                      const api::FunctionSpec& spec, std::stop_token stop) {
  std::shared_lock layers(layers_);
  build::BuildRequest request{revision.ns,     revision.name,    spec.runtime,
                              spec.entrypoint, spec.source.hash, "",
                              spec.source.code};
  if (spec.source.type != "code") {
    auto path = deps_.artifacts.Fetch(revision.ns, spec.source.hash);
    if (!path && path.error().code == base::Code::kNotFound) {
      return base::Err(
          base::Code::kFailedPrecondition,
          fmt::format("the code {} is not on the server; {}", spec.source.hash, kUploadAgain),
          "/spec/source/hash", "SourceMissing");
    }
    if (!path) return base::Err(path.error());
    request.archive_path = *path;
    request.inline_code.clear();
  }
  const auto begin = deps_.clock.Steady();
  const auto line = [&](std::string_view text) {
    deps_.logs.Append(revision.ns, revision.name,
                      {deps_.clock.Now(), revision.revision, "", "build", "",
                       base::Truncate(text, invocations::kMaxLine - 8)});
  };
  auto outcome = deps_.builder.Build(
      request, base::Deadline::After(deps_.clock, std::chrono::seconds(spec.build_timeout_sec)),
      stop, line);
  const double seconds = std::chrono::duration<double>(deps_.clock.Steady() - begin).count();
  const std::string result = outcome ? "ok" : std::string(base::CodeName(outcome.error().code));
  deps_.metrics.Counters("sless_builds_total", "builds by result", {"result"}).With({result}).Add();
  deps_.metrics.Histograms("sless_build_duration_seconds", "time of one build")
      .With({})
      .Observe(seconds);
  deps_.log.Info("build ended", {{"revision", revision.ToString()},
                                 {"result", result},
                                 {"reason", outcome ? "" : outcome.error().reason},
                                 {"code_cached", outcome && outcome->code_cached},
                                 {"deps_cached", outcome && outcome->deps_cached},
                                 {"took_ms", static_cast<int64_t>(seconds * 1000)}});
  if (!outcome && outcome.error().reason == "BadArchive" && !request.archive_path.empty())
    return DropDamaged(revision, spec.source.hash, outcome.error());
  return outcome;
}

// It was whole when it was uploaded, so it is the disk's fault. As long as it is there, no upload
// of the same is taken.
BuildRunner::Outcome BuildRunner::DropDamaged(const runtime::RevisionKey& revision,
                                              const std::string& hash, const base::Error& error) {
  deps_.log.Warn("stored code is damaged and is removed",
                 {{"revision", revision.ToString()}, {"hash", hash}, {"error", error.message}});
  RETURN_IF_ERROR(deps_.artifacts.Remove(revision.ns, hash));
  return base::Err(
      base::Code::kFailedPrecondition,
      fmt::format("the code {} was damaged on the server and is removed; {}", hash, kUploadAgain),
      "/spec/source/hash", "SourceMissing");
}

void BuildRunner::Forget(const std::string& ns, const std::string& function) {
  builds_.With([&](auto& builds) {
    const auto it = builds.find({ns, function});
    if (it == builds.end()) return;
    it->second->stop.request_stop();
    builds.erase(it);
  });
}

int64_t BuildRunner::Current(const std::string& ns, const std::string& function) const {
  return builds_.With([&](const auto& builds) {
    const auto it = builds.find({ns, function});
    return it == builds.end() ? 0 : it->second->revision;
  });
}

std::vector<std::string> BuildRunner::LayersInUse() const {
  const auto all = builds_.With([](const auto& builds) { return builds; });
  std::vector<std::string> layers;
  for (const auto& [key, build] : all) {
    build->outcome.With([&](const auto& outcome) {
      if (!outcome || !*outcome) return;
      layers.push_back((*outcome)->code_dir);
      if (!(*outcome)->deps_dir.empty()) layers.push_back((*outcome)->deps_dir);
    });
  }
  return layers;
}

bool BuildRunner::WhileIdle(const std::function<void()>& collect) {
  std::unique_lock lock(layers_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  collect();
  return true;
}

}  // namespace sless::reconcile
