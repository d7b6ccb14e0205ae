#include "server/build/process/installer.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>

#include "client/base/spawn.h"
#include "client/base/strings.h"
#include "server/build/process/run_logged.h"
#include "server/sandbox/sandbox.h"

namespace sless::build {
namespace {

namespace fs = std::filesystem;
using base::Code;

constexpr size_t kTail = 30;

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return out;
}

// The line that tells a person most, of all that pip and npm print.
std::string Meaning(const std::vector<std::string>& lines) {
  const auto find = [&](std::string_view word) -> std::string {
    for (const auto& line : lines) {
      const size_t at = line.find(word);
      if (at != std::string::npos)
        return std::string(base::Trim(std::string_view(line).substr(at)));
    }
    return "";
  };
  for (const auto* word : {"No matching distribution found for",
                           "Invalid requirement:", "Could not open requirements file",
                           "ResolutionImpossible", "THESE PACKAGES DO NOT MATCH THE HASHES"}) {
    if (auto found = find(word); !found.empty()) return found;
  }
  for (const auto* word : {"is not in this registry", "could not be found"}) {
    for (const auto& line : lines) {
      const size_t quote = line.find('\'');
      if (line.starts_with("npm ") && quote != std::string::npos &&
          line.find(word) != std::string::npos)
        return line.substr(quote);
    }
  }
  for (const auto* word :
       {"npm error 404", "npm error notarget", "npm ERR! 404", "npm error code", "npm error"}) {
    // npm says the code first and the sentence after; the first line that is more than a code is
    // the one.
    for (const auto& line : lines) {
      const std::string_view rest = base::Trim(
          std::string_view(line).substr(std::min(line.size(), std::string_view(word).size())));
      if (line.starts_with(word) && rest.size() > 12)
        return std::string(base::Trim(std::string_view(line).substr(line.find(' ') + 1)));
    }
  }
  if (auto found = find("ERROR:"); !found.empty()) return found;
  return lines.empty() ? "" : lines.back();
}

// Why the registry of packages could not be reached, "" where it could. pip says only in the
// warning of its last try that it gave up, and then that there is no such package.
std::string Unreachable(const std::vector<std::string>& lines) {
  const auto after = [](const std::string& line, std::string_view word) {
    const size_t at = line.find(word);
    return at == std::string::npos ? "" : base::Truncate(line.substr(at + word.size()), 200);
  };
  for (const auto& line : lines) {
    std::string why;
    if (line.starts_with("npm err") || line.starts_with("npm ERR")) {
      why = after(line, "failed, reason: ");
    } else if (line.find("Retry(total=0,") != std::string::npos) {
      why = after(line, ">: ");  // behind the name of an object
      if (why.empty()) why = after(line, "connection broken by ");
    }
    if (!why.empty()) return why;
  }
  return "";
}

// What pip and npm say about themselves, of no use to the function's author.
bool IsNoise(std::string_view line) {
  return line == "npm error 404" || line == "npm error" ||
         line.find("A complete log of this run") != std::string_view::npos ||
         line.starts_with("Looking in links:") || line.starts_with("Looking in indexes:");
}

// The line of the manifest that names the package which the message speaks of.
int LineOf(const std::string& manifest, const std::string& message) {
  const std::string said = Lower(message);
  int number = 0, best = 0;
  size_t longest = 0;
  for (const auto& raw : base::Split(manifest, '\n')) {
    ++number;
    std::string_view line = base::Trim(raw);
    if (line.starts_with('"')) line.remove_prefix(1);
    size_t end = 0;
    while (end < line.size() &&
           (std::isalnum(static_cast<unsigned char>(line[end])) ||
            std::string_view("-_.@/").find(line[end]) != std::string_view::npos))
      ++end;
    const std::string name = Lower(line.substr(0, end));
    if (name.size() > 1 && name.size() > longest && said.find(name) != std::string::npos &&
        name != "dependencies") {
      longest = name.size();
      best = number;
    }
  }
  return best;
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
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

base::Result<Installer::Tool> Installer::FindPip() const {
  std::vector<std::string> tried;
  const std::string question =
      "import sys, pip; print('%d.%d' % sys.version_info[:2], sys.executable, sys.base_prefix, "
      "sep='\\n')";
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
    if (!output || !output->exit.ok() || lines.size() < 3) {
      tried.push_back(program + " (has no pip)");
      continue;
    }
    Tool tool;
    tool.command = {lines[1], "-I", "-m", "pip", "install"};
    // A Python of another version can fetch wheels for 3.11, but build none.
    if (lines[0] != "3.11") {
      tool.command.insert(tool.command.end(), {"--python-version", "3.11", "--implementation", "cp",
                                               "--only-binary", ":all:"});
    }
    tool.path = options_.path;
    AddNeed(lines[1], tool.needs);
    if (!lines[2].starts_with("/usr")) tool.needs.push_back(lines[2] + "/lib");
    return tool;
  }
  return base::Err(Code::kFailedPrecondition,
                   fmt::format("requirements.txt asks for packages, but this server has no pip for "
                               "Python 3.11 (package python3-pip); tried {}",
                               base::Join(tried, ", ")),
                   "", "BuildFailed");
}

base::Result<Installer::Tool> Installer::FindNpm() const {
  const std::string npm = base::FindProgram(options_.npm, options_.path),
                    node = base::FindProgram(options_.node, options_.path);
  if (npm.empty() || node.empty()) {
    return base::Err(Code::kFailedPrecondition,
                     fmt::format("package.json asks for packages, but this server has no {}",
                                 npm.empty() ? options_.npm : options_.node),
                     "", "BuildFailed");
  }
  Tool tool;
  tool.path = fs::path(node).parent_path().string() + ":" + options_.path;
  AddNeed(node, tool.needs);
  // npm is a folder of scripts, and its entry script, which lies in bin/ of it, finds the others
  // from where it lies itself: it is called by that path, for a link to it is a file like any other
  // in the sandbox.
  std::error_code error;
  const fs::path real = fs::canonical(npm, error);
  tool.command = {error ? npm : real.string()};
  if (!error && !real.string().starts_with("/usr/"))
    tool.needs.push_back(real.parent_path().parent_path());
  return tool;
}

base::Result<Installer::Tool> Installer::PipCommand(const std::string& code,
                                                    const std::string& work) const {
  ASSIGN_OR_RETURN(Tool tool, FindPip());
  for (const std::string& word :
       {std::string("--target"), work + "/layer", std::string("-r"), code + "/requirements.txt",
        std::string("--no-input"), std::string("--disable-pip-version-check"),
        std::string("--no-color"), std::string("--progress-bar"), std::string("off"),
        std::string("--no-cache-dir"), std::string("--no-warn-script-location")}) {
    tool.command.push_back(word);
  }
  return tool;
}

base::Result<Installer::Tool> Installer::NpmCommand(const Manifest& manifest) const {
  ASSIGN_OR_RETURN(Tool tool, FindNpm());
  tool.command.emplace_back(manifest.locked ? "ci" : "install");
  // Install scripts of packages are not run: they are the usual way in for hostile ones, and
  // production code seldom needs them.
  for (const char* word : {"--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund",
                           "--no-update-notifier", "--no-progress", "--loglevel=http"}) {
    tool.command.emplace_back(word);
  }
  return tool;
}

base::Status Installer::Install(const Manifest& manifest, const std::string& code_dir,
                                const std::string& work, base::Deadline deadline,
                                std::stop_token stop, const LogLine& log) {
  const bool node = manifest.runtime == "nodejs20";
  std::error_code error;
  fs::create_directories(work + "/layer", error);
  fs::create_directories(work + "/home", error);
  if (node) {
    for (const char* name :
         {"package.json", "package-lock.json", "npm-shrinkwrap.json", ".npmrc"}) {
      if (Exists(code_dir + "/" + name))
        fs::copy_file(code_dir + "/" + name, work + "/layer/" + name, error);
    }
  }
  if (error)
    return base::Err(Code::kInternal, fmt::format("cannot prepare {}: {}", work, error.message()));
  const std::string code = options_.sandbox ? "/var/task" : code_dir,
                    inside = options_.sandbox ? "/build" : work;
  ASSIGN_OR_RETURN(Tool tool, node ? NpmCommand(manifest) : PipCommand(code, inside));

  base::SpawnOptions spawn;
  spawn.environment = {"PATH=" + tool.path, "HOME=" + inside + "/home", "LANG=C.UTF-8",
                       "TMPDIR=" + inside + "/home", "npm_config_cache=" + inside + "/home/npm"};
  for (const auto& [name, value] : options_.environment) {
    spawn.environment.push_back(name + "=" + value);
    if (value.starts_with('/') && Exists(value)) tool.needs.push_back(value);
  }
  // The server's own configuration of registries, where pip and npm look for it.
  std::vector<std::pair<std::string, std::string>> configuration;
  for (const char* name : {".npmrc", ".config/pip/pip.conf", ".pip/pip.conf"}) {
    if (!options_.home.empty() && Exists(options_.home + "/" + name))
      configuration.emplace_back(options_.home + "/" + name, name);
  }
  spawn.limits = {{RLIMIT_CORE, 0},
                  {RLIMIT_NOFILE, 4096},
                  {RLIMIT_FSIZE, 4ull << 30},
                  {RLIMIT_DATA, 4ull << 30}};
  const std::string directory = node ? inside + "/layer" : code;
  if (options_.sandbox) {
    sandbox::Sandbox box;
    box.etc_dir = etc_dir_;
    box.read_only = tool.needs;
    box.read_only.insert(box.read_only.end(), {"/etc/pip.conf", "/etc/npmrc"});
    box.binds = {{code_dir, "/var/task"}};
    box.writable = {{work, "/build"}};
    for (const auto& [from, name] : configuration) {
      fs::create_directories((fs::path(work) / "home" / name).parent_path(), error);
      std::ofstream(work + "/home/" + name);  // the place to mount it on
    }
    box.directory = directory;
    auto args = sandbox::Arguments(box);
    // After /build is there; the order of mounts is that of the options.
    for (const auto& [from, name] : configuration) {
      const std::vector<std::string> mount{"--ro-bind", from, "/build/home/" + name};
      args.insert(std::find(args.begin(), args.end(), "--remount-ro"), mount.begin(), mount.end());
    }
    spawn.command = {base::FindProgram(options_.bwrap, options_.path)};
    spawn.command.insert(spawn.command.end(), args.begin(), args.end());
    spawn.command.emplace_back("--");
  } else {
    spawn.directory = directory;
    for (const auto& [from, name] : configuration) {
      fs::create_directories((fs::path(work) / "home" / name).parent_path(), error);
      fs::create_symlink(from, work + "/home/" + name, error);
    }
  }
  spawn.command.insert(spawn.command.end(), tool.command.begin(), tool.command.end());

  std::vector<std::string> lines;
  std::deque<std::string> tail;
  const auto exit = RunLogged(spawn, deadline, clock_, stop, [&](std::string_view line) {
    if (lines.size() < 5000) lines.emplace_back(line);
    log(line);
    if (IsNoise(base::Trim(line))) return;
    tail.emplace_back(line);
    if (tail.size() > kTail) tail.pop_front();
  });
  base::SourceInfo source{manifest.file, 0, {tail.begin(), tail.end()}};
  if (!exit) {
    base::Error failure = exit.error();
    if (failure.code == Code::kDeadlineExceeded) {
      failure.message = fmt::format(
          "installing {} took longer than build_timeout_sec allows and was stopped; raise it, or "
          "ask for less",
          manifest.file);
      failure.reason = "BuildTimeout";
      failure.source = source;
    }
    return base::Err(failure);
  }
  if (!exit->ok()) {
    if (const auto why = Unreachable(lines); !why.empty()) {
      return base::Err(base::Error{
          Code::kFailedPrecondition,
          fmt::format(
              "installing {} failed: the server cannot reach its package registry: {}; look "
              "at its network and at its settings for {}, then apply again",
              manifest.file, why, node ? "npm" : "pip"),
          "", "RegistryUnreachable", source});
    }
    const std::string meaning = Meaning(lines);
    source.line = LineOf(manifest.text, meaning);
    return base::Err(base::Error{Code::kFailedPrecondition,
                                 fmt::format("installing {} failed: {}", manifest.file,
                                             meaning.empty() ? exit->Text() : meaning),
                                 "", "BuildFailed", source});
  }
  if (node) fs::create_directories(work + "/layer/node_modules", error);
  return base::Ok();
}

}  // namespace sless::build
