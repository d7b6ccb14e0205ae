#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "client/base/digest.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/build/process/installer.h"
#include "server/build/process/local_paths.h"

namespace sless::build {
namespace {

namespace fs = std::filesystem;
using base::Code;

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// A parser says in its message where it stopped.
tl::unexpected<base::Error> Bad(const std::string& file, const std::string& message) {
  constexpr std::string_view kAt = " at line ";
  const size_t at = message.find(kAt);
  const int line = at == std::string::npos ? 0 : std::atoi(&message[at + kAt.size()]);
  return base::Err(base::Error{
      Code::kFailedPrecondition, file + ": " + message, "", "BuildFailed", {file, line, {}}});
}

// Another one makes all layers anew. Those of "1" may hold packages of a registry that the server's
// settings do not name, those of "2" files of another function's source.
constexpr std::string_view kLayers = "4";

// A length before each part: no two lists of parts give one text.
std::string Key(std::initializer_list<std::string_view> parts) {
  base::Sha256 hash;
  for (const auto part : parts) {
    hash.Update(fmt::format("{}:", part.size()));
    hash.Update(part);
  }
  return hash.Hex();
}

base::Result<std::optional<Manifest>> ReadRequirements(const std::string& code_dir,
                                                       const std::string& runtime,
                                                       const std::string& source_hash) {
  const auto text = ReadFile(code_dir + "/requirements.txt");
  if (!text) return std::optional<Manifest>();
  bool any = false;
  for (const auto& raw : base::Split(*text, '\n')) {
    const std::string_view line = base::Trim(raw);
    any = any || (!line.empty() && line[0] != '#');
  }
  if (!any) return std::optional<Manifest>();
  Manifest manifest{runtime, "requirements.txt", *text, false, ""};
  // Where it names files of the source, the layer depends on all of it.
  manifest.key = Key({kLayers, runtime, *text, OnlyRemoteRequirements(*text) ? "" : source_hash});
  return std::optional(std::move(manifest));
}

bool Has(const nlohmann::json& package, const char* field) {
  const auto it = package.find(field);
  return it != package.end() && !it->empty();
}

base::Result<bool> AsksForPackages(const nlohmann::json& package) {
  bool any = Has(package, "workspaces");
  for (const char* field : {"dependencies", "optionalDependencies", "peerDependencies"}) {
    if (!Has(package, field)) continue;
    if (!package[field].is_object())
      return Bad("package.json", fmt::format("{}: want an object of names and versions", field));
    any = true;
  }
  return any;
}

// What npm would install as a link to a folder that no function sees.
base::Status CheckNoLocalSpec(const nlohmann::json& package, const std::string& code_dir) {
  if (Has(package, "workspaces")) {
    return Bad("package.json",
               "workspaces: they are local paths, which cannot be installed apart from the code; "
               "import them by relative paths instead, name what they need in dependencies, and "
               "leave workspaces out");
  }
  for (const char* field :
       {"dependencies", "optionalDependencies", "peerDependencies", "overrides"}) {
    const auto specs = package.value(field, nlohmann::json::object());
    for (const auto& [name, spec] : specs.items()) {
      if (!spec.is_string() || !IsLocalSpec(spec.get_ref<const std::string&>(), code_dir)) continue;
      return Bad("package.json",
                 fmt::format("{}: \"{}\" is a local path, which cannot be installed apart from the "
                             "code; import it by a relative path instead",
                             field, base::Truncate(name, 100)));
    }
  }
  return base::Ok();
}

base::Result<std::optional<Manifest>> ReadPackage(const std::string& code_dir,
                                                  const std::string& runtime,
                                                  const std::string& source_hash,
                                                  const LogLine& log) {
  const auto text = ReadFile(code_dir + "/package.json");
  if (!text) return std::optional<Manifest>();
  const auto package = base::ParseJson(*text);
  if (!package) return Bad("package.json", package.error().message);
  if (!package->is_object()) return Bad("package.json", "want a JSON object");
  ASSIGN_OR_RETURN(const bool any, AsksForPackages(*package));
  if (!any) return std::optional<Manifest>();
  if (fs::is_directory(code_dir + "/node_modules")) {
    log("the source brings its own node_modules; nothing is installed");
    return std::optional<Manifest>();
  }
  RETURN_IF_ERROR(CheckNoLocalSpec(*package, code_dir));
  Manifest manifest{runtime, "package.json", *text, false, ""};
  std::string lock;
  for (const char* name : {"npm-shrinkwrap.json", "package-lock.json"}) {
    if (const auto found = ReadFile(code_dir + "/" + name); found && !manifest.locked) {
      manifest.locked = true;
      lock = *found;
      if (const auto json = base::CheckJson(lock); !json) return Bad(name, json.error().message);
    }
  }
  if (!manifest.locked && fs::exists(code_dir + "/yarn.lock"))
    log("yarn.lock is not used: npm reads package-lock.json");
  // All counts but what surely changes nothing that is installed: npm lets even devDependencies
  // decide which package a production one gets.
  nlohmann::json relevant = *package;
  for (const char* name :
       {"name",    "version",      "description",  "keywords", "homepage",   "bugs",
        "license", "author",       "contributors", "funding",  "files",      "exports",
        "main",    "module",       "types",        "type",     "repository", "scripts",
        "private", "eslintConfig", "prettier",     "jest"}) {
    relevant.erase(name);
  }
  nlohmann::json specs = nlohmann::json::object();
  for (const char* name : {"dependencies", "optionalDependencies", "peerDependencies",
                           "devDependencies", "acceptDependencies", "overrides"}) {
    if (package->contains(name)) specs[name] = (*package)[name];
  }
  const std::string npmrc = ReadFile(code_dir + "/.npmrc").value_or("");
  const bool remote =
      OnlyRemoteSpecs(specs, code_dir) && OnlyRemoteLock(lock, code_dir) && OnlyRemoteNpmrc(npmrc);
  manifest.key =
      Key({kLayers, runtime, base::DumpJson(relevant), lock, npmrc, remote ? "" : source_hash});
  return std::optional(std::move(manifest));
}

}  // namespace

base::Result<std::optional<Manifest>> ReadManifest(const std::string& code_dir,
                                                   const std::string& runtime,
                                                   const std::string& source_hash,
                                                   const LogLine& log) {
  return runtime == "nodejs20" ? ReadPackage(code_dir, runtime, source_hash, log)
                               : ReadRequirements(code_dir, runtime, source_hash);
}

}  // namespace sless::build
