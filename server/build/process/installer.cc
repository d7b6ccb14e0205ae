#include "server/build/process/installer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>

#include "client/base/fd.h"
#include "client/base/spawn.h"
#include "client/base/strings.h"
#include "server/build/process/registry_settings.h"
#include "server/build/process/run_logged.h"
#include "server/build/process/tool_output.h"
#include "server/build/process/written_tree.h"
#include "server/sandbox/sandbox.h"

namespace sless::build {
namespace {

namespace fs = std::filesystem;
using base::Code;

// The sandbox's first process, with which all others in it end: what runs on behind the tool's back
// changes nothing any more once this has ended. RLIMIT_NPROC has another letter in each shell.
constexpr const char* kFirstProcess =
    "ulimit -u 1024 2>/dev/null || ulimit -p 1024 || exit 1; \"$@\"; exit $?";

// Trouble of the server and not of the function: the build is tried again.
tl::unexpected<base::Error> CannotMake(const fs::path& path, const std::error_code& error) {
  return base::SystemError("cannot make " + path.string(), Code::kInternal, error.value());
}

base::Status MakeFile(const std::string& path) {
  RETURN_IF_ERROR(base::MakeFolders(fs::path(path).parent_path()));
  const base::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return base::SystemError("cannot make " + path, Code::kInternal);
  return base::Ok();
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The sandboxes of functions show it apart from its layer.
base::Status MakeModules(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0 || IsFolder(path)) return base::Ok();
  return base::Err(Code::kFailedPrecondition,
                   "installing package.json failed: npm left a node_modules that is no folder", "",
                   "BuildFailed");
}

// A home for the tool; for npm, which works where its layer grows, also what it reads.
base::Status Prepare(bool node, const std::string& code_dir, const std::string& work) {
  RETURN_IF_ERROR(base::MakeFolders(work + "/home"));
  if (!node) return base::Ok();
  for (const char* name : {"package.json", "package-lock.json", "npm-shrinkwrap.json", ".npmrc"}) {
    if (!Exists(code_dir + "/" + name)) continue;
    std::error_code error;
    const std::string copy = work + "/layer/" + name;
    fs::copy_file(code_dir + "/" + name, copy, error);
    if (error) return CannotMake(copy, error);
  }
  return base::Ok();
}

// A tool outside of /usr is shown with the folder that it is installed in.
void AddNeed(const std::string& path, std::vector<std::string>& needs) {
  std::error_code ignored;
  const fs::path real = fs::canonical(path, ignored);
  for (const fs::path& p : {fs::path(path), real}) {
    if (!p.empty() && !p.string().starts_with("/usr/") && !p.string().starts_with("/bin/"))
      needs.push_back(p);
  }
}

}  // namespace

Installer::Installer(const ProcessBuilderOptions& options, std::string etc_dir,
                     const base::Clock& clock)
    : options_(options), etc_dir_(std::move(etc_dir)), clock_(clock) {}

base::Result<Installer::Command> Installer::FindPip() const {
  std::vector<std::string> tried;
  const std::string question =
      "import sys, pip; print('%d.%d' % sys.version_info[:2], sys.executable, sys.base_prefix, "
      "sys.prefix, sep='\\n')";
  std::vector<std::string> candidates = options_.pythons;
  candidates.emplace_back("python3");
  for (const auto& candidate : candidates) {
    const std::string program = base::FindProgram(candidate, options_.path);
    if (program.empty()) {
      tried.push_back(candidate + " (not there)");
      continue;
    }
    base::SpawnOptions spawn;
    spawn.command = {program, "-I", "-c", question};
    spawn.environment = {"PATH=" + options_.path};
    const auto output =
        base::RunCommand(spawn, base::Deadline::After(clock_, std::chrono::seconds(20)), clock_);
    const auto lines = output ? base::Split(output->text, '\n') : std::vector<std::string>();
    if (!output || !output->exit.ok() || lines.size() < 4) {
      tried.push_back(program + " (has no pip)");
      continue;
    }
    Command tool;
    tool.words = {lines[1], "-I", "-m", "pip", "install"};
    // A Python of another version can fetch wheels for 3.11, but build none.
    if (lines[0] != "3.11") {
      tool.words.insert(tool.words.end(), {"--python-version", "3.11", "--implementation", "cp",
                                           "--only-binary", ":all:"});
    }
    tool.path = options_.path;
    AddNeed(lines[1], tool.needs);
    if (!lines[2].starts_with("/usr")) tool.needs.push_back(lines[2] + "/lib");
    tool.settings.push_back(lines[3] + "/pip.conf");
    return tool;
  }
  return base::Err(Code::kFailedPrecondition,
                   fmt::format("requirements.txt asks for packages, but this server has no pip for "
                               "Python 3.11 (package python3-pip); tried {}",
                               base::Join(tried, ", ")),
                   "", "BuildFailed");
}

base::Result<Installer::Command> Installer::FindNpm() const {
  const std::string npm = base::FindProgram(options_.npm, options_.path),
                    node = base::FindProgram(options_.node, options_.path);
  if (npm.empty() || node.empty()) {
    return base::Err(Code::kFailedPrecondition,
                     fmt::format("package.json asks for packages, but this server has no {}",
                                 npm.empty() ? options_.npm : options_.node),
                     "", "BuildFailed");
  }
  Command tool;
  tool.path = fs::path(node).parent_path().string() + ":" + options_.path;
  AddNeed(node, tool.needs);
  // npm is a folder of scripts, and its entry script, which lies in bin/ of it, finds the others
  // from where it lies itself: it is called by that path, for a link to it is a file like any other
  // in the sandbox.
  std::error_code error;
  const fs::path real = fs::canonical(npm, error);
  tool.words = {error ? npm : real.string()};
  if (!error && !real.string().starts_with("/usr/"))
    tool.needs.push_back(real.parent_path().parent_path());
  // npm looks for settings of the whole system beside the program that runs it.
  const fs::path program = fs::canonical(node, error);
  if (!error) tool.settings.push_back(program.parent_path().parent_path() / "etc/npmrc");
  return tool;
}

base::Result<Installer::Command> Installer::PipCommand(const std::string& code,
                                                       const std::string& work) const {
  ASSIGN_OR_RETURN(Command tool, FindPip());
  for (const std::string& word :
       {std::string("--target"), work + "/layer", std::string("-r"), code + "/requirements.txt",
        std::string("--no-input"), std::string("--disable-pip-version-check"),
        std::string("--no-color"), std::string("--progress-bar"), std::string("off"),
        std::string("--no-cache-dir"), std::string("--no-warn-script-location")}) {
    tool.words.push_back(word);
  }
  return tool;
}

base::Result<Installer::Command> Installer::NpmCommand(const Manifest& manifest) const {
  ASSIGN_OR_RETURN(Command tool, FindNpm());
  tool.words.emplace_back(manifest.locked ? "ci" : "install");
  // Install scripts of packages are not run: they are the usual way in for hostile ones, and
  // production code seldom needs them. Nor is another git that a source's .npmrc names.
  // Its waits before a further try are 10 s and 60 s, and it takes a wrong checksum for a fault of
  // the network: a build's time would be over before it says what is wrong.
  for (const char* word : {"--omit=dev", "--ignore-scripts", "--git=git", "--no-audit", "--no-fund",
                           "--no-update-notifier", "--no-progress", "--loglevel=http",
                           "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"}) {
    tool.words.emplace_back(word);
  }
  return tool;
}

base::Status Installer::Install(const Manifest& manifest, const std::string& code_dir,
                                const std::string& work, base::Deadline deadline,
                                std::stop_token stop, const LogLine& log) {
  const bool node = manifest.runtime == "nodejs20";
  RETURN_IF_ERROR(Prepare(node, code_dir, work));
  const std::string code = options_.sandbox ? "/var/task" : code_dir,
                    inside = options_.sandbox ? "/build" : work;
  ASSIGN_OR_RETURN(Command tool, node ? NpmCommand(manifest) : PipCommand(code, inside));

  const RegistrySettings settings = ReadRegistrySettings(
      node ? Tool::kNpm : Tool::kPip, options_.environment, options_.home, tool.settings);
  base::SpawnOptions spawn;
  spawn.environment = {"PATH=" + tool.path, "HOME=" + inside + "/home", "LANG=C.UTF-8",
                       "TMPDIR=" + inside + "/home"};
  if (node) spawn.environment.push_back("npm_config_cache=" + inside + "/home/npm");
  for (const auto& [name, value] : settings.environment)
    spawn.environment.push_back(name + "=" + value);
  spawn.limits = {{RLIMIT_CORE, 0},
                  {RLIMIT_NOFILE, 4096},
                  {RLIMIT_FSIZE, options_.max_install_bytes},
                  {RLIMIT_DATA, 4ull << 30}};
  for (const auto& [from, name] : settings.home_files) {
    const std::string place = work + "/home/" + name;
    RETURN_IF_ERROR(MakeFile(place));  // what it is mounted on
    if (options_.sandbox) continue;
    std::error_code error;
    fs::remove(place, error);
    fs::create_symlink(from, place, error);
    if (error) return CannotMake(place, error);
  }
  const std::string directory = node ? inside + "/layer" : code;
  if (options_.sandbox) {
    sandbox::Sandbox box;
    box.etc_dir = etc_dir_;
    box.read_only = tool.needs;
    box.read_only.insert(box.read_only.end(), settings.paths.begin(), settings.paths.end());
    // A mount of its own can be neither renamed nor replaced.
    box.writable = {{work, "/build"}, {work + "/layer", "/build/layer"}};
    box.binds = {{code_dir, "/var/task"}};
    for (const auto& [from, name] : settings.home_files)
      box.binds.emplace_back(from, "/build/home/" + name);
    box.directory = directory;
    const auto args = sandbox::Arguments(box);
    spawn.command = {base::FindProgram(options_.bwrap, options_.path)};
    sandbox::KeepToOwnSockets(spawn);
    spawn.command.insert(spawn.command.end(), args.begin(), args.end());
    // The limit is set inside, where the count is that of the sandbox and not of all that the
    // server's user runs.
    spawn.command.insert(spawn.command.end(),
                         {"--as-pid-1", "--", "/bin/sh", "-c", kFirstProcess, "sh"});
  } else {
    spawn.directory = directory;
  }
  spawn.command.insert(spawn.command.end(), tool.words.begin(), tool.words.end());

  const auto within_limit = [&]() -> base::Status {
    ASSIGN_OR_RETURN(const auto extent, Measure(work, options_.max_install_bytes));
    if (extent.disk <= options_.max_install_bytes) return base::Ok();
    return base::Err(
        Code::kFailedPrecondition,
        fmt::format("it wrote more than {} MiB, the most that an installation may take "
                    "of the disk; ask for less",
                    options_.max_install_bytes >> 20),
        "", "BuildFailed");
  };
  std::vector<std::string> lines;
  Tail tail;
  auto exit = RunLogged(
      spawn, deadline, clock_, stop,
      [&](std::string_view raw) {
        const std::string line = Redact(raw, settings.secrets);
        if (lines.size() < 5000) lines.push_back(line);
        log(line);
        tail.Add(line);
      },
      within_limit);
  if (exit) {
    if (auto end = within_limit(); !end) exit = base::Err(end.error());
  }
  base::SourceInfo source{manifest.file, 0, tail.Lines()};
  if (!exit) {
    base::Error failure = exit.error();
    if (failure.code == Code::kDeadlineExceeded) {
      failure.message = fmt::format(
          "installing {} took longer than build_timeout_sec allows and was stopped; raise it, or "
          "ask for less",
          manifest.file);
      failure.reason = "BuildTimeout";
      failure.source = source;
    } else if (failure.reason == "BuildFailed") {
      failure.message = fmt::format("installing {} failed: {}", manifest.file, failure.message);
      failure.source = source;
    }
    return base::Err(failure);
  }
  if (!exit->ok()) {
    auto failure = Explain(node ? Tool::kNpm : Tool::kPip, lines, manifest.text);
    source.line = failure.line;
    // Whoever looks after the server knows the file by its own path.
    for (const auto& [from, name] : settings.home_files)
      ReplaceAll(failure.message, inside + "/home/" + name, from);
    if (failure.unreachable) {
      return base::Err(base::Error{
          Code::kFailedPrecondition,
          fmt::format(
              "installing {} failed: the server cannot reach its package registry: {}; look "
              "at its network and at its settings for {}, then apply again",
              manifest.file, failure.message, node ? "npm" : "pip"),
          "", "RegistryUnreachable", source});
    }
    return base::Err(
        base::Error{Code::kFailedPrecondition,
                    fmt::format("installing {} failed: {}", manifest.file,
                                failure.message.empty() ? exit->Text() : failure.message),
                    "", "BuildFailed", source});
  }
  return node ? MakeModules(work + "/layer/node_modules") : base::Ok();
}

}  // namespace sless::build
