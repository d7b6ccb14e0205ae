#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "client/base/testing/result_matchers.h"
#include "client/source/source.h"
#include "server/build/process/process_builder.h"

namespace sless::build {

inline std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// A process builder over folders of its own, and the source that it builds.
class ProcessBuilderTest : public testing::Test {
 protected:
  ProcessBuilderTest() {
    char name[] = "/tmp/sless-test-XXXXXX";
    root_ = mkdtemp(name);
    Open();
  }
  ~ProcessBuilderTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  ProcessBuilderOptions Options() {
    ProcessBuilderOptions options;
    options.dir = root_ + "/layers";
    options.path = getenv("PATH");
    for (char** word = environ; *word != nullptr && home_.empty(); ++word) {
      const std::string text = *word;
      const size_t equals = text.find('=');
      if (text.starts_with("PIP_") || text.starts_with("npm_config_"))
        options.environment[text.substr(0, equals)] = text.substr(equals + 1);
    }
    for (const auto& [name, value] : environment_) options.environment[name] = value;
    options.sandbox = sandbox_;
    options.max_install_bytes = max_install_bytes_;
    if (sync_) options.sync = sync_;
    options.home = home_;
    if (home_.empty() && getenv("HOME") != nullptr) options.home = getenv("HOME");
    return options;
  }
  void Open() {
    auto made = MakeProcessBuilder(Options(), clock_, log_);
    ASSERT_THAT(made, base::IsOk());
    builder_ = std::move(*made);
  }
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_ + "/source/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  source::Tree ZipFolder(const std::string& folder, const std::string& zip) {
    auto tree = source::ReadDirectory(folder);
    EXPECT_THAT(tree, base::IsOk());
    std::ofstream out(zip, std::ios::binary);
    EXPECT_THAT(source::WriteZip(*tree,
                                 [&](std::string_view bytes) {
                                   out << bytes;
                                   return base::Ok();
                                 }),
                base::IsOk());
    return std::move(*tree);
  }
  BuildRequest Zip(const std::string& runtime) {
    const std::string zip = root_ + "/code.zip";
    const auto tree = ZipFolder(root_ + "/source", zip);
    return {"default", "fn", runtime, "handler.handle", source::TreeHash(tree), zip, ""};
  }
  base::Result<BuildOutput> Build(const BuildRequest& request,
                                  std::chrono::milliseconds most = std::chrono::seconds(120),
                                  std::stop_token stop = {}) {
    lines_.clear();
    return builder_->Build(request, base::Deadline::After(clock_, most), stop,
                           [&](std::string_view line) { lines_.emplace_back(line); });
  }
  size_t TempFolders() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(root_ + "/layers/tmp"),
                      std::filesystem::directory_iterator()));
  }

  std::string root_;
  bool sandbox_ = true;
  uint64_t max_install_bytes_ = 4ull << 30;
  std::string home_;  // where given, nothing is taken from this process
  std::function<base::Status(const std::string&)> sync_;
  std::map<std::string, std::string> environment_;  // beside that of this process
  base::SystemClock clock_;
  base::NullLogger log_;
  std::vector<std::string> lines_;
  std::unique_ptr<Builder> builder_;
};

}  // namespace sless::build
