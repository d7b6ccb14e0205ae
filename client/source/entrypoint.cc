#include "client/source/entrypoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/base/strings.h"
#include "client/source/node_scan.h"
#include "client/source/paths.h"
#include "client/source/python_scan.h"

namespace sless::source {
namespace {

using base::Code;

constexpr std::string_view kField = "/spec/entrypoint";
constexpr size_t kMaxScanBytes = 1 << 20;

tl::unexpected<base::Error> Bad(std::string message, std::string_view file = "") {
  base::Error error{
      Code::kInvalidArgument, std::move(message), std::string(kField), "HandlerNotFound", {}};
  error.source.file = file;
  return base::Err(std::move(error));
}

bool IsPython(std::string_view runtime) { return runtime == "python3.11"; }

std::vector<std::string> Endings(std::string_view runtime) {
  if (IsPython(runtime)) return {".py"};
  return {".js", ".mjs", ".cjs"};
}

base::Status CheckRuntime(std::string_view runtime) {
  if (IsPython(runtime) || runtime == "nodejs20") return base::Ok();
  return base::Err(Code::kInvalidArgument,
                   fmt::format("want python3.11 or nodejs20, got \"{}\"", runtime),
                   "/spec/runtime");
}

/// "src/handler" of "src/handler.py", "" if the ending is not one of the runtime's.
std::string WithoutEnding(std::string_view path, const std::vector<std::string>& endings) {
  for (const auto& ending : endings) {
    if (path.ends_with(ending)) return std::string(path.substr(0, path.size() - ending.size()));
  }
  return "";
}

/// What may have been meant by a file that is not there.
std::string Hint(const Tree& tree, std::string_view runtime, const Entrypoint& want) {
  const auto endings = Endings(runtime);
  if (!IsPython(runtime)) {
    for (const char* ending : {".ts", ".mts", ".cts", ".tsx"}) {
      if (tree.Find(want.file + ending) != nullptr) {
        return fmt::format(
            "there is {}{}: TypeScript is not run, compile it to JavaScript first and point the "
            "source to the output",
            want.file, ending);
      }
    }
  }
  std::vector<std::string> files;
  for (const auto& entry : tree.entries) {
    auto file = WithoutEnding(entry.path, endings);
    if (!file.empty()) files.push_back(std::move(file));
  }
  auto dotted = want.file;
  std::replace(dotted.begin(), dotted.end(), '.', '/');
  const auto has = [&](std::string_view name) {
    return std::find(files.begin(), files.end(), name) != files.end();
  };
  if (has(dotted))
    return fmt::format("folders are separated by '/': \"{}.{}\"", dotted, want.function);
  const auto stripped = WithoutEnding(want.file, {".py", ".js", ".mjs", ".cjs"});
  if (!stripped.empty() && has(stripped)) {
    return fmt::format("the file is named without its ending: \"{}.{}\"", stripped, want.function);
  }
  for (const auto& file : files) {
    if (!file.ends_with("/" + want.file)) continue;
    const auto folder = file.substr(0, file.find('/'));
    const bool single =
        std::all_of(tree.entries.begin(), tree.entries.end(),
                    [&](const Entry& entry) { return entry.path.starts_with(folder + "/"); });
    return single ? fmt::format(
                        "everything lies below the folder {0}/: zip its contents instead of the "
                        "folder, or write \"{1}.{2}\"",
                        folder, file, want.function)
                  : fmt::format("did you mean \"{}.{}\"?", file, want.function);
  }
  std::vector<std::string> alike;  // near in length, for the comparison takes the product of both
  for (const auto& file : files) {
    const bool near = file.size() <= want.file.size() + 3 && want.file.size() <= file.size() + 3;
    if (near && file.size() < 200 && alike.size() < 1000) alike.push_back(file);
  }
  if (const auto near = base::Nearest(want.file, alike); !near.empty())
    return fmt::format("did you mean \"{}.{}\"?", near, want.function);
  if (files.empty()) return fmt::format("the source has no {} file at all", endings[0]);
  if (files.size() == 1) return fmt::format("did you mean \"{}.{}\"?", files[0], want.function);
  if (files.size() > 5) files.resize(5);
  return fmt::format("the source has {}", base::Join(files, ", "));
}

/// Text of a file of the tree.
base::Result<std::string> Text(const Tree& tree, const Entry& entry) {
  ASSIGN_OR_RETURN(const auto reader, tree.contents->Open(entry));
  std::string text(static_cast<size_t>(entry.size), '\0');
  size_t size = 0;
  while (size < text.size()) {
    ASSIGN_OR_RETURN(const size_t n, reader(text.data() + size, text.size() - size));
    if (n == 0) break;
    size += n;
  }
  text.resize(size);
  return text;
}

}  // namespace

base::Result<Entrypoint> ParseEntrypoint(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return base::Err(Code::kInvalidArgument,
                     fmt::format("want \"file.function\" like \"handler.handle\", got {}: {}",
                                 ShowPath(text), why),
                     std::string(kField));
  };
  const size_t dot = text.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == text.size() || dot == 0)
    return bad("a file and a function with a '.' between them are needed");
  Entrypoint parts{std::string(text.substr(0, dot)), std::string(text.substr(dot + 1))};
  if (const auto problem = PathProblem(parts.file, Limits{}); !problem.empty())
    return bad("of the file, " + problem);
  if (parts.file.ends_with('/')) return bad("the file's name is missing");
  if (!IsWordStart(parts.function[0]) ||
      !std::all_of(parts.function.begin(), parts.function.end(), IsWord)) {
    return bad("the part behind the last '.' is not the name of a function");
  }
  return parts;
}

base::Result<std::string> EntrypointFile(const Tree& tree, std::string_view runtime,
                                         std::string_view entrypoint) {
  RETURN_IF_ERROR(CheckRuntime(runtime));
  ASSIGN_OR_RETURN(const auto want, ParseEntrypoint(entrypoint));
  for (const auto& ending : Endings(runtime)) {
    if (tree.Find(want.file + ending) != nullptr) return want.file + ending;
  }
  return Bad(fmt::format("entrypoint \"{}\" needs the file {}, which is not in the source; {}",
                         entrypoint,
                         base::Join(
                             [&] {
                               auto names = Endings(runtime);
                               for (auto& name : names) name = want.file + name;
                               return names;
                             }(),
                             " or "),
                         Hint(tree, runtime, want)));
}

base::Status CheckEntrypoint(const Tree& tree, std::string_view runtime,
                             std::string_view entrypoint) {
  ASSIGN_OR_RETURN(const auto file, EntrypointFile(tree, runtime, entrypoint));
  ASSIGN_OR_RETURN(const auto want, ParseEntrypoint(entrypoint));
  const auto* const entry = tree.Find(file);
  if (entry->size > kMaxScanBytes) return base::Ok();  // a bundle; the start finds out
  ASSIGN_OR_RETURN(const auto text, Text(tree, *entry));
  const auto names = IsPython(runtime) ? ScanPython(text) : ScanNode(text);
  if (names.MayHave(want.function)) return base::Ok();
  auto message = fmt::format("{} has no {}function \"{}\"", file,
                             IsPython(runtime) ? "" : "exported ", want.function);
  if (names.functions.empty()) {
    message += IsPython(runtime) ? "; it defines no function" : "; it exports nothing";
  } else {
    auto shown = names.functions;
    if (shown.size() > 10) shown.resize(10);
    message += fmt::format("; it has {}", base::Join(shown, ", "));
  }
  auto candidates = names.functions;
  std::erase_if(candidates, [](const std::string& name) { return name.size() > 100; });
  if (candidates.size() > 1000) candidates.resize(1000);
  const auto near = want.function.size() > 100 ? "" : base::Nearest(want.function, candidates);
  if (!near.empty()) message += fmt::format("; did you mean \"{}.{}\"?", want.file, near);
  return Bad(std::move(message), file);
}

}  // namespace sless::source
