#include <fmt/format.h>

#include <filesystem>

#include "client/base/spawn.h"
#include "client/base/strings.h"
#include "server/runtime/process/process_runtime.h"

namespace sless::runtime {
namespace {

using base::Code;

struct Question {
  std::vector<std::string> arguments;  // prints version, path of the program, prefix
  std::string version;                 // what the first line must start with
  std::string name;
};

base::Result<Question> QuestionFor(const std::string& runtime) {
  if (runtime == "python3.11") {
    return Question{{"-I", "-S", "-c",
                     "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.executable); "
                     "print(sys.base_prefix)"},
                    "3.11.",
                    "Python 3.11"};
  }
  if (runtime == "nodejs20") {
    return Question{
        {"-e", "console.log(process.version); console.log(process.execPath); console.log('')"},
        "v20.",
        "Node.js 20"};
  }
  return base::Err(Code::kInvalidArgument,
                   fmt::format("runtime \"{}\" is not known; known: python3.11, nodejs20", runtime),
                   "/spec/runtime");
}

bool UnderSystemFolder(const std::string& path) {
  for (const char* folder : {"/usr/", "/bin/", "/lib/", "/lib64/"}) {
    if (path.starts_with(folder)) return true;
  }
  return false;
}

// What the sandbox must show of an interpreter outside of /usr: itself and its library, never a
// whole home folder.
std::vector<std::string> Needs(const std::string& program, const std::string& prefix) {
  std::vector<std::string> needs;
  if (!UnderSystemFolder(program)) needs.push_back(program);
  if (!prefix.empty() && prefix != "/usr" && !UnderSystemFolder(prefix + "/"))
    needs.push_back(prefix + "/lib");
  return needs;
}

}  // namespace

base::Result<Interpreter> FindInterpreter(const ProcessOptions& options,
                                          const std::string& runtime) {
  ASSIGN_OR_RETURN(const Question question, QuestionFor(runtime));
  const base::SystemClock clock;
  std::vector<std::string> tried;
  const auto it = options.interpreters.find(runtime);
  for (const auto& candidate :
       it == options.interpreters.end() ? std::vector<std::string>{} : it->second) {
    const std::string program = base::FindProgram(candidate, options.path);
    if (program.empty()) {
      tried.push_back(candidate + " (not there)");
      continue;
    }
    base::SpawnOptions spawn;
    spawn.command = {program};
    spawn.command.insert(spawn.command.end(), question.arguments.begin(), question.arguments.end());
    spawn.environment = {"PATH=" + options.path, "LANG=C.UTF-8"};
    const auto output =
        base::RunCommand(spawn, base::Deadline::After(clock, std::chrono::seconds(10)), clock);
    if (!output || !output->exit.ok()) {
      tried.push_back(
          fmt::format("{} ({})", program, output ? output->exit.Text() : output.error().message));
      continue;
    }
    const auto lines = base::Split(output->text, '\n');
    if (lines.size() < 3 || !lines[0].starts_with(question.version)) {
      const auto told = base::Truncate(lines[0], 40);
      tried.push_back(fmt::format("{} ({})", program,
                                  told.empty() ? "tells no version" : fmt::format("is {}", told)));
      continue;
    }
    std::error_code error;
    const auto real = std::filesystem::canonical(lines[1], error);
    const std::string path = error ? lines[1] : real.string();
    return Interpreter{path, Needs(path, lines[2])};
  }
  return base::Err(
      Code::kInvalidArgument,
      fmt::format("runtime \"{}\" is not installed on this server: no {} found; tried {}", runtime,
                  question.name, base::Join(tried, ", ")),
      "/spec/runtime");
}

}  // namespace sless::runtime
