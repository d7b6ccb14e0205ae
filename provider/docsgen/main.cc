// The program that writes the registry's pages, or checks them; see its --help.

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "provider/docsgen/pages.h"
#include "provider/provider.h"

namespace {

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The first line in which two texts differ, for the message.
std::string FirstDifference(const std::string& have, const std::string& want) {
  std::istringstream a(have);
  std::istringstream b(want);
  std::string left;
  std::string right;
  for (int line = 1;; ++line) {
    const bool more_left = static_cast<bool>(std::getline(a, left));
    const bool more_right = static_cast<bool>(std::getline(b, right));
    if (!more_left && !more_right) return "line ends";
    if (more_left != more_right || left != right) {
      return fmt::format("line {}:\n  committed: {}\n  generated: {}", line,
                         more_left ? left : "(end)", more_right ? right : "(end)");
    }
  }
}

// Pages of resources that the provider no longer has.
bool FindStrangers(const std::filesystem::path& docs,
                   const std::map<std::string, std::string>& pages) {
  bool found = false;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(docs / "resources", error)) {
    if (pages.contains("resources/" + file.path().filename().string())) continue;
    fmt::print(stderr, "docs/resources/{} belongs to no resource: remove it\n",
               file.path().filename().string());
    found = true;
  }
  return found;
}

int Run(bool check, const std::filesystem::path& root) {
  const auto provider = sless::provider::MakeProvider();
  const auto pages = sless::docsgen::MakePages(*provider, "sless", root.string());
  if (!pages) {
    fmt::print(stderr, "docsgen: {}\n", pages.error().message);
    return 1;
  }
  bool differs = check && FindStrangers(root / "docs", *pages);
  for (const auto& [name, text] : *pages) {
    const auto path = root / "docs" / name;
    const auto have = ReadAll(path);
    if (have == text) continue;
    if (check) {
      fmt::print(stderr, "docs/{} is not up to date (run docsgen), {}\n", name,
                 FirstDifference(have, text));
      differs = true;
      continue;
    }
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    out << text;
    if (!out.flush()) {
      fmt::print(stderr, "docsgen: cannot write {}\n", path.string());
      return 1;
    }
  }
  return differs ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  const bool check = first == "--check", help = first == "--help";
  if (help || argc != (check ? 3 : 2)) {
    fmt::print(help ? stdout : stderr,
               "usage: docsgen [--check] REPOSITORY\n\n"
               "Writes docs/index.md and docs/resources/ of the repository from the schemas and "
               "examples/.\n"
               "--check writes nothing; exit code 1 where a page is not what it would write.\n");
    return help ? 0 : 2;
  }
  return Run(check, argv[argc - 1]);
}
