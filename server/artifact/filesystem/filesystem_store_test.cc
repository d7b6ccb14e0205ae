#include "server/artifact/filesystem/filesystem_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "client/base/testing/result_matchers.h"
#include "server/artifact/testing/artifact_store_conformance.h"

namespace sless::artifact {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using base::IsOkAndHolds;
using testing::HasSubstr;

class TempDir {
 public:
  TempDir() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "sless-artifact-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The store and its folder as one object.
class StoreInTempDir final : public ArtifactStore {
 public:
  StoreInTempDir() : store_(OpenFilesystemStore(dir_.File("a/b"), kConformanceLimit).value()) {}
  base::Result<bool> Has(const std::string& ns, const std::string& digest) const override {
    return store_->Has(ns, digest);
  }
  base::Result<std::unique_ptr<Writer>> Create(const std::string& ns) override {
    return store_->Create(ns);
  }
  base::Result<std::string> Fetch(const std::string& ns, const std::string& digest) override {
    return store_->Fetch(ns, digest);
  }
  base::Status Remove(const std::string& ns, const std::string& digest,
                      base::TimePoint unused_since) override {
    return store_->Remove(ns, digest, unused_since);
  }
  base::Result<std::vector<Info>> List(const std::string& ns) const override {
    return store_->List(ns);
  }
  base::Result<std::vector<std::string>> Namespaces() const override {
    return store_->Namespaces();
  }

 private:
  TempDir dir_;
  std::unique_ptr<ArtifactStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Filesystem, ArtifactStoreConformance, testing::ValuesIn(ArtifactDriver([] {
                           return std::make_unique<StoreInTempDir>();
                         })));

const std::string kDigest = "sha256:" + std::string(64, 'a');

base::Status Put(ArtifactStore& store, std::string_view bytes) {
  ASSIGN_OR_RETURN(const auto writer, store.Create("x"));
  RETURN_IF_ERROR(writer->Write(bytes));
  return writer->Commit(kDigest);
}

TEST(FilesystemStore, SurvivesAReopenAndRemovesWhatACrashLeft) {
  const TempDir dir;
  const std::string root = dir.File("artifacts");
  {
    auto store = OpenFilesystemStore(root);
    ASSERT_THAT(Put(**store, "bytes"), IsOk());
  }
  std::ofstream(root + "/.tmp/0123") << "half";
  auto store = OpenFilesystemStore(root);
  ASSERT_THAT(store, IsOk());
  EXPECT_THAT((*store)->Has("x", kDigest), IsOkAndHolds(true));
  EXPECT_TRUE(std::filesystem::is_empty(root + "/.tmp"));
}

TEST(FilesystemStore, FilesAreForTheOwnerOnly) {
  const TempDir dir;
  const mode_t old = ::umask(0);
  auto store = OpenFilesystemStore(dir.File("artifacts"));
  ASSERT_THAT(Put(**store, "bytes"), IsOk());
  ::umask(old);
  struct stat info {};
  ASSERT_EQ(::stat((*store)->Fetch("x", kDigest)->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  for (const char* folder : {"artifacts", "artifacts/x", "artifacts/.tmp"}) {
    ASSERT_EQ(::stat(dir.File(folder).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u) << folder;
  }
}

TEST(FilesystemStore, ALinkIsNoArtifact) {
  const TempDir dir;
  auto store = OpenFilesystemStore(dir.File("artifacts"));
  std::filesystem::create_directory(dir.File("artifacts/x"));
  std::filesystem::create_symlink("/etc/passwd", dir.File("artifacts/x/") + std::string(64, 'a'));
  EXPECT_THAT((*store)->Has("x", kDigest), testing::Not(IsOkAndHolds(true)));
  EXPECT_FALSE((*store)->Fetch("x", kDigest).has_value());
  EXPECT_TRUE((*store)->List("x")->empty());
}

TEST(FilesystemStore, SaysWhereItCannotOpen) {
  EXPECT_THAT(OpenFilesystemStore("/proc/nowhere"),
              IsError(Code::kUnavailable, HasSubstr("/proc/nowhere")));
}

TEST(FilesystemStore, AFullDiskIsToldAsSuch) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  const TempDir dir;
  auto store = OpenFilesystemStore(dir.File("artifacts"));
  const auto writer = (*store)->Create("x");
  ASSERT_THAT(writer, IsOk());
  // The open descriptor is led to a device that is always full.
  const std::string path = *(*writer)->Path();
  int target = -1;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (std::filesystem::read_symlink(entry.path(), error) == path)
      target = std::stoi(entry.path().filename());
  }
  ASSERT_GE(target, 0);
  FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  ::dup2(::fileno(full), target);
  std::fclose(full);
  EXPECT_THAT((*writer)->Write("1"), IsError(Code::kUnavailable, HasSubstr("the disk is full")));
}

}  // namespace
}  // namespace sless::artifact
