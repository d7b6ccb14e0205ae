// slessd: reads settings, then serves until a signal, or does one small thing with the data folder.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include "client/base/fd.h"
#include "client/base/strings.h"
#include "server/app/drivers.h"
#include "server/app/lifecycle.h"
#include "server/app/token_command.h"
#include "server/config/config.h"

extern char** environ;

namespace {

using namespace sless;

std::map<std::string, std::string> AllVariables() {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string_view::npos)
      all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

/// What pip and npm may see of our environment: registries, proxies, certificates.
std::map<std::string, std::string> RegistryVariables(
    const std::map<std::string, std::string>& all) {
  constexpr std::array<std::string_view, 3> kPrefixes{"PIP_", "NPM_CONFIG_", "npm_config_"};
  constexpr std::array<std::string_view, 2> kSuffixes{"_PROXY", "_proxy"};
  constexpr std::array<std::string_view, 4> kNames{"SSL_CERT_FILE", "SSL_CERT_DIR",
                                                   "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"};
  std::map<std::string, std::string> some;
  for (const auto& [name, value] : all) {
    bool take = std::find(kNames.begin(), kNames.end(), name) != kNames.end();
    for (const auto prefix : kPrefixes) take = take || name.starts_with(prefix);
    for (const auto suffix : kSuffixes) take = take || name.ends_with(suffix);
    if (take) some.emplace(name, value);
  }
  return some;
}

/// Whoever starts us without one of the three: what is opened next must not become it. Each is
/// opened the wrong way round, so that what goes there fails as it would without.
void HoldStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

base::Result<std::string> ReadConfiguration(const std::string& path) {
  constexpr size_t kMost = 1 << 20;
  const auto bad = [&](const std::string& why) {
    return base::Err(base::Code::kInvalidArgument,
                     fmt::format("cannot read the configuration file {}: {}", path, why));
  };
  const base::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) return bad(base::ErrnoText());
  if (S_ISDIR(info.st_mode)) return bad("it is a folder; name the file in it");
  std::string text;
  char buffer[16384];
  while (true) {
    const ssize_t n = read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return bad(base::ErrnoText());
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kMost) return bad(fmt::format("it has more than {} bytes", kMost));
  }
}

/// --data-dir and the like: every setting is a flag; values go to config, which knows types and
/// bounds.
struct Flags {
  std::map<std::string, std::string> values;
  std::map<std::string, bool> switches;
  std::string config_file;

  void AddTo(CLI::App& command) {
    command
        .add_option("--config", config_file,
                    "YAML file with settings; environment variables and flags win over it")
        ->type_name("FILE");
    for (const auto& setting : config::Settings()) {
      const auto help = fmt::format(
          "{}{}{} [{}]", setting.text, setting.allowed.empty() ? "" : " (" + setting.allowed + ")",
          setting.fallback.empty() || setting.type == "switch" ? ""
                                                               : ", default " + setting.fallback,
          config::EnvironmentName(setting.name));
      const auto flag = config::FlagName(setting.name);
      if (setting.type == "switch") {
        command.add_flag(flag, switches[setting.name], help);
      } else {
        command.add_option(flag, values[setting.name], help)
            ->type_name(setting.type == "number" ? "N" : "TEXT");
      }
    }
  }

  base::Result<config::Options> Load(const CLI::App& command) const {
    config::Sources sources;
    sources.environment = AllVariables();
    sources.file_path = config_file;
    if (!config_file.empty()) {
      ASSIGN_OR_RETURN(sources.file_text, ReadConfiguration(config_file));
    }
    for (const auto& [name, value] : values) {
      if (command.count(config::FlagName(name)) > 0) sources.flags[name] = value;
    }
    for (const auto& [name, on] : switches) {
      if (command.count(config::FlagName(name)) > 0) sources.flags[name] = on ? "true" : "false";
    }
    return config::Load(sources);
  }
};

int Fail(const base::Error& error) {
  // Not fmt's print, which throws where nobody listens.
  std::fputs(fmt::format("slessd: {}\n", error.message).c_str(), stderr);
  return 1;
}

base::Status Print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return base::Ok();
  return base::Err(base::Code::kUnavailable,
                   fmt::format("cannot write to the standard output: {}", std::strerror(errno)));
}

int PrintOrFail(const base::Result<std::string>& text) {
  if (!text) return Fail(text.error());
  const auto printed = Print(*text);
  return printed ? 0 : Fail(printed.error());
}

/// Nobody can read a token again: one that was not printed must not stay.
int CreateToken(const std::string& data_dir, const std::string& name) {
  const auto text = app::CreateToken(data_dir, name);
  if (!text) return Fail(text.error());
  const auto printed = Print(*text);
  if (printed) return 0;
  auto error = printed.error();
  const auto deleted = app::DeleteToken(data_dir, name);
  error.message += deleted ? fmt::format("; the token \"{}\" was deleted again", name)
                           : fmt::format("; delete the token \"{}\", which nobody can read: {}",
                                         name, deleted.error().message);
  return Fail(error);
}

int Serve(const config::Options& options) {
  const auto variables = AllVariables();
  const auto get = [&](const std::string& name) {
    return variables.contains(name) ? variables.at(name) : std::string();
  };
  std::error_code error;
  app::Environment environment;
  environment.exe_dir =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
  environment.path = get("PATH").empty()
                         ? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
                         : get("PATH");
  environment.home = get("HOME");
  environment.registries = RegistryVariables(variables);
  using Keys = base::JsonLogger::Keys;
  base::JsonLogger log(
      STDERR_FILENO, base::ParseLevel(options.log_level, base::Level::kInfo),
      base::IsJournal(STDERR_FILENO, get("JOURNAL_STREAM")) ? Keys::kJournal : Keys::kPlain);
  app::BlockSignals();
  return app::ServeUntilSignal(options, std::move(environment), log);
}

/// The parser only says that a command is required.
base::Status CheckCommand(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return base::Ok();
  std::vector<std::string> known;
  for (const auto* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == argv[1]) return CheckCommand(*command, argc - 1, argv + 1);
    known.push_back(command->get_name());
  }
  if (known.empty()) return base::Ok();
  const auto near = base::Nearest(argv[1], known);
  return base::Err(base::Code::kInvalidArgument,
                   fmt::format("{} has no command \"{}\"; {}", app.get_name(), argv[1],
                               near.empty() ? "there are " + base::Join(known, ", ")
                                            : "did you mean \"" + near + "\"?"));
}

}  // namespace

int main(int argc, char** argv) {
  HoldStandardDescriptors();
  umask(077);
  CLI::App cli{
      "slessd runs functions: it builds them, serves them over HTTP, on a schedule and as jobs.",
      "slessd"};
  cli.set_version_flag("--version", std::string("slessd ") + SLESS_VERSION);
  cli.require_subcommand(1);

  Flags serve_flags, config_flags;
  auto* serve = cli.add_subcommand("serve", "Serve until SIGTERM, SIGINT or SIGHUP");
  serve_flags.AddTo(*serve);
  auto* show = cli.add_subcommand("config", "Print the settings in effect as a configuration file");
  config_flags.AddTo(*show);

  auto* token = cli.add_subcommand(
      "token", "Make, list and delete API tokens; works beside a running server");
  token->require_subcommand(1);
  std::string data_dir, name;
  auto* create =
      token->add_subcommand("create", "Make a token and print it; it cannot be read again later");
  auto* list = token->add_subcommand("list", "Print names and times of the tokens");
  auto* remove = token->add_subcommand(
      "delete", "Delete a token; a running server refuses it within ten seconds");
  for (auto* command : {create, list, remove}) {
    command->add_option("--data-dir", data_dir, "the server's data folder [SLESS_DATA_DIR]")
        ->required()
        ->envname("SLESS_DATA_DIR")
        ->type_name("DIR");
  }
  for (auto* command : {create, remove}) {
    command->add_option("--name", name, "name of the token: letters a-z, digits, '-'")
        ->required()
        ->type_name("NAME");
  }

  if (const auto known = CheckCommand(cli, argc, argv); !known) return Fail(known.error());
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli.exit(error);
  }
  if (*serve || *show) {
    const auto options = *serve ? serve_flags.Load(*serve) : config_flags.Load(*show);
    if (!options) return Fail(options.error());
    if (*serve) return Serve(*options);
    return PrintOrFail(config::ToYaml(*options));
  }
  if (*create) return CreateToken(data_dir, name);
  return PrintOrFail(*list ? app::ListTokens(data_dir) : app::DeleteToken(data_dir, name));
}
