#include "server/invocations/file_log_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "client/base/strings.h"
#include "client/base/testing/fake_clock.h"
#include "client/base/testing/result_matchers.h"
#include "server/invocations/file.h"
#include "server/invocations/log_line.h"

namespace sless::invocations {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using testing::_;
using testing::HasSubstr;
namespace fs = std::filesystem;

class CountingLogger final : public base::Logger {
 public:
  void Log(base::Level, std::string_view, std::initializer_list<base::LogField>) override {
    ++events;
  }
  std::atomic<int> events = 0;
};

class FileLogStoreTest : public testing::Test {
 protected:
  FileLogStoreTest() {
    std::string pattern = (fs::temp_directory_path() / "sless-logs-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    dir_ = root_ + "/logs";
    Reopen();
  }
  ~FileLogStoreTest() override { fs::remove_all(root_); }

  void Reopen(uint64_t segment_bytes = kSegmentBytes) {
    store_.reset();
    store_ = MakeFileLogStore(dir_, clock_, log_, segment_bytes);
  }
  LogRecord Make(const std::string& line, const std::string& request_id = "",
                 const std::string& stream = "stdout", int64_t revision = 1) {
    return {clock_.Now(), revision, "replica-1", stream, request_id, line};
  }
  void Append(const std::string& line) { store_->Append("x", "hello", Make(line)); }
  std::string Lines(const LogQuery& query = {}, const std::string& function = "hello") {
    const auto records = store_->Read("x", function, query);
    if (!records) return base::ToString(records.error());
    std::string lines;
    for (const auto& record : *records) lines += record.line + " ";
    return lines;
  }
  /// Until what was appended is in the files.
  void Kept() { (void)store_->Read("x", "hello", {}); }
  std::string Current() const { return dir_ + "/x/hello/current.jsonl"; }

  base::FakeClock clock_;
  CountingLogger log_;
  std::string root_, dir_;
  std::unique_ptr<LogStore> store_;
};

TEST_F(FileLogStoreTest, WhatWasAppendedIsReadAtOnceOldestFirst) {
  EXPECT_EQ(Lines(), "");
  for (int i = 0; i < 5; ++i) {
    Append(std::to_string(i));
    EXPECT_THAT(Lines(), HasSubstr(std::to_string(i)));
  }
  EXPECT_EQ(Lines(), "0 1 2 3 4 ");
  EXPECT_EQ(Lines({2}), "3 4 ");
}

TEST_F(FileLogStoreTest, KeepsAllFields) {
  LogRecord record{clock_.Now() + std::chrono::microseconds(123456),
                   7,
                   "r-1",
                   "stderr",
                   "req-\"1\"",
                   "tab\t\"quote\" ä \x01 line\nbreak"};
  store_->Append("x", "hello", record);
  Reopen();
  const auto records = store_->Read("x", "hello", {});
  ASSERT_THAT(records, IsOk());
  ASSERT_EQ(records->size(), 1u);
  EXPECT_EQ((*records)[0].time, record.time);
  EXPECT_EQ((*records)[0].revision, 7);
  EXPECT_EQ((*records)[0].replica, "r-1");
  EXPECT_EQ((*records)[0].stream, "stderr");
  EXPECT_EQ((*records)[0].request_id, "req-\"1\"");
  EXPECT_EQ((*records)[0].line, record.line);
}

TEST_F(FileLogStoreTest, LongLinesAreCutAndBrokenBytesReplaced) {
  Append(std::string(kMaxLine, 'x'));
  Append(std::string(kMaxLine + 1, 'y'));
  Append(
      "a\xff"
      "b");
  const auto records = store_->Read("x", "hello", {});
  ASSERT_EQ(records->size(), 3u);
  EXPECT_EQ((*records)[0].line, std::string(kMaxLine, 'x'));
  EXPECT_LE((*records)[1].line.size(), kMaxLine);
  EXPECT_TRUE((*records)[1].line.ends_with("y…"));
  EXPECT_EQ((*records)[2].line,
            "a\xef\xbf\xbd"
            "b");
}

TEST_F(FileLogStoreTest, Filters) {
  store_->Append("x", "hello", Make("a", "r1", "stdout", 1));
  store_->Append("x", "hello", Make("b", "r2", "stderr", 1));
  store_->Append("x", "hello", Make("c", "r1", "stderr", 2));
  store_->Append("x", "hello", Make("text with \"r1\"", "r3", "build", 2));
  EXPECT_EQ(Lines({100, "r1"}), "a c ");
  EXPECT_EQ(Lines({1, "r1"}), "c ");
  EXPECT_EQ(Lines({100, "", "stderr"}), "b c ");
  EXPECT_EQ(Lines({100, "", "", 1}), "a b ");
  EXPECT_EQ(Lines({100, "r1", "stderr", 2}), "c ");
  EXPECT_EQ(Lines({100, "r"}), "");
}

TEST_F(FileLogStoreTest, FunctionsDoNotSeeEachOther) {
  store_->Append("x", "a", Make("1"));
  store_->Append("y", "a", Make("2"));
  EXPECT_EQ(Lines({}, "a"), "1 ");
  EXPECT_EQ(Lines({}, "none"), "");
}

TEST_F(FileLogStoreTest, LimitsAndNamesAreChecked) {
  EXPECT_THAT(store_->Read("x", "hello", {0}),
              IsError(Code::kInvalidArgument, HasSubstr("1 to 10000")));
  EXPECT_THAT(store_->Read("x", "hello", {10001}), IsError(Code::kInvalidArgument, _));
  EXPECT_THAT(store_->Read("..", "hello", {}), IsError(Code::kInvalidArgument, _));
  EXPECT_THAT(store_->Read("x", "../y", {}), IsError(Code::kInvalidArgument, _));
  store_->Append("..", "x", Make("1"));
  Kept();
  EXPECT_EQ(log_.events, 1);
  EXPECT_FALSE(fs::exists(root_ + "/x"));
  store_->Remove("..", "logs", 0);
  store_->Remove("x", "../..", 0);
  EXPECT_TRUE(fs::exists(root_));
}

TEST_F(FileLogStoreTest, IsBoundedAndDropsTheOldest) {
  constexpr uint64_t kSmall = 4096;
  Reopen(kSmall);
  for (int i = 0; i < 500; ++i) Append("line-" + std::to_string(i));
  Kept();
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(dir_ + "/x/hello")) bytes += entry.file_size();
  EXPECT_LE(bytes, 2 * kSmall);
  EXPECT_GT(bytes, kSmall);
  const auto records = store_->Read("x", "hello", {10000});
  ASSERT_THAT(records, IsOk());
  EXPECT_GT(records->size(), 40u);
  const int first = 500 - static_cast<int>(records->size());
  for (size_t i = 0; i < records->size(); ++i)
    EXPECT_EQ((*records)[i].line, "line-" + std::to_string(first + static_cast<int>(i)));
  Reopen(kSmall);
  EXPECT_EQ(store_->Read("x", "hello", {10000})->size(), records->size());
  Append("after");
  EXPECT_EQ(Lines({1}), "after ");
}

TEST_F(FileLogStoreTest, ALineCutByACrashIsSkipped) {
  Append("first");
  Append("second");
  Kept();
  fs::resize_file(Current(), fs::file_size(Current()) - 5);
  Reopen();
  EXPECT_EQ(Lines(), "first ");
  Append("third");
  Append("fourth");
  EXPECT_EQ(Lines(), "first third fourth ");
}

TEST_F(FileLogStoreTest, DamagedLinesAreSkipped) {
  Append("first");
  Kept();
  std::ofstream(Current(), std::ios::app)
      << "\n\n{}\n[1]\n{\"t\":1}\n{\"t\":9223372036854775807,\"v\":1,\"p\":\"\",\"s\":\"\",\"r\":"
         "\"\",\"m\":\"late\"}\n"
      << std::string(100'000, '\0') << "\n"
      << std::string(1000, '[') << "\n";
  Reopen();
  Append("last");
  EXPECT_EQ(Lines(), "first late last ");
}

TEST_F(FileLogStoreTest, RemoveDropsTheLogsAndALaterAppendBeginsAnew) {
  Append("old");
  store_->Append("x", "other", Make("stays"));
  store_->Remove("x", "hello", 0);
  store_->Remove("x", "hello", 0);
  EXPECT_EQ(Lines(), "");
  EXPECT_FALSE(fs::exists(dir_ + "/x/hello"));
  Append("new");
  EXPECT_EQ(Lines(), "new ");
  EXPECT_EQ(Lines({}, "other"), "stays ");
  store_->Remove("x", "hello", 0);
  store_->Remove("x", "other", 0);
  EXPECT_FALSE(fs::exists(dir_ + "/x"));
}

TEST_F(FileLogStoreTest, ReplicasOfARemovedFunctionThatStillDrainAreNotHeard) {
  store_->Append("x", "hello", Make("one", "", "stdout", 3));
  store_->Remove("x", "hello", 3);
  store_->Append("x", "hello", Make("late", "", "stdout", 3));
  store_->Append("x", "hello", Make("later", "", "stdout", 2));
  EXPECT_FALSE(fs::exists(dir_ + "/x"));
  // A new function of the same name has higher numbers; the old one is not heard beside it, nor
  // after its log was put away.
  store_->Append("x", "hello", Make("new", "", "stdout", 4));
  for (int i = 0; i < 200; ++i) store_->Append("x", "f" + std::to_string(i), Make("1"));
  store_->Append("x", "hello", Make("late", "", "stdout", 3));
  EXPECT_EQ(Lines(), "new ");
  EXPECT_EQ(log_.events, 0);
}

TEST_F(FileLogStoreTest, FilesAreForTheOwnerOnly) {
  const mode_t old = ::umask(0);
  Append("1");
  Kept();
  ::umask(old);
  struct stat info {};
  ASSERT_EQ(::stat(Current().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat((dir_ + "/x/hello").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(FileLogStoreTest, ManyFunctionsDoNotExhaustFiles) {
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = open_files();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 300; ++i)
      store_->Append("x", "f" + std::to_string(i), Make(std::to_string(round)));
  }
  Kept();
  EXPECT_LE(open_files(), before + 130);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(Lines({}, "f" + std::to_string(i)), "0 1 ");
}

TEST_F(FileLogStoreTest, LostLinesAreReportedOnceInAWhile) {
  ::umask(::umask(0));
  std::ofstream(dir_) << "a file where the folder belongs";
  for (int i = 0; i < 50; ++i) Append("1");
  Kept();
  EXPECT_EQ(log_.events, 1);
  clock_.Advance(std::chrono::seconds(11));
  Append("1");
  Kept();
  EXPECT_EQ(log_.events, 2);
}

// A pipe that nobody reads stands for a disk that takes nothing.
TEST_F(FileLogStoreTest, ASlowDiskHoldsNobodyUpAndWhatItLostIsSaid) {
  fs::create_directories(dir_ + "/x/hello");
  ASSERT_EQ(::mkfifo(Current().c_str(), 0600), 0);
  store_ = MakeFileLogStore(dir_, clock_, log_, kSegmentBytes, 256 * 1024);
  EXPECT_FALSE(store_->Behind());
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) Append(std::string(1000, 'x'));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_TRUE(store_->Behind());
  EXPECT_EQ(log_.events, 1);

  // Now the disk wakes up, and takes all that comes until the store is gone.
  std::string text;
  std::thread disk([&] {
    const base::Fd reader(::open(Current().c_str(), O_RDONLY | O_CLOEXEC));
    char buffer[4096];
    for (ssize_t n; (n = ::read(reader.get(), buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(n));
  });
  for (int i = 0; store_->Behind() && i < 1000; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(store_->Behind());
  store_.reset();
  disk.join();
  // It is said more than once where lines were kept in between.
  int lost = 0, kept = 0;
  for (const auto& line : base::Split(text, '\n')) {
    const size_t at = line.find(" lines were lost");
    if (at != std::string::npos) lost += std::stoi(line.substr(line.rfind('"', at) + 1));
    kept += base::Contains(line, "xxx");
  }
  EXPECT_GT(lost, 700);  // 256 KiB of about 1 MB are kept, and 64 KiB in the pipe
  EXPECT_EQ(lost + kept, 1000);
}

TEST_F(FileLogStoreTest, WritersAndReadersAtOnce) {
  Reopen(64 * 1024);
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 400; ++i)
        store_->Append("x", "hello", Make(std::to_string(i), "w" + std::to_string(t)));
    });
  }
  std::thread reader([&] {
    while (!done) {
      for (int t = 0; t < 3; ++t) {
        const auto records = store_->Read("x", "hello", {10000, "w" + std::to_string(t)});
        ASSERT_THAT(records, IsOk());
        for (size_t i = 1; i < records->size(); ++i)
          ASSERT_EQ(std::stoi((*records)[i].line), std::stoi((*records)[i - 1].line) + 1);
      }
    }
  });
  for (auto& thread : threads) thread.join();
  done = true;
  reader.join();
  for (int t = 0; t < 3; ++t)
    EXPECT_EQ(store_->Read("x", "hello", {1, "w" + std::to_string(t)})->at(0).line, "399");
  EXPECT_EQ(log_.events, 0);
}

TEST_F(FileLogStoreTest, RemovingBesideWritersIsSafe) {
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) Append(std::to_string(i));
  });
  for (int i = 0; i < 50; ++i) store_->Remove("x", "hello", 0);
  writer.join();
  Append("end");
  EXPECT_EQ(Lines({1}), "end ");
}

struct BackwardCase {
  const char* name;
  std::string text;
  std::vector<std::string> lines;
};
class ReadBackward : public testing::TestWithParam<BackwardCase> {};
TEST_P(ReadBackward, GivesLinesLastFirst) {
  std::string pattern = (fs::temp_directory_path() / "sless-lines-XXXXXX").string();
  const base::Fd file(::mkstemp(pattern.data()));
  const auto& text = GetParam().text;
  ASSERT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  std::vector<std::string> lines;
  EXPECT_THAT(ReadLinesBackward(file, text.size(),
                                [&](std::string_view line) {
                                  lines.emplace_back(line);
                                  return true;
                                }),
              IsOk());
  EXPECT_EQ(lines, GetParam().lines);
  fs::remove(pattern);
}
const std::string kLong(200'000, 'x'), kBlockLong(65536, 'y'), kBlockLess(65535, 'z');
INSTANTIATE_TEST_SUITE_P(
    Cases, ReadBackward,
    testing::Values(BackwardCase{"Empty", "", {}}, BackwardCase{"One", "a\n", {"a"}},
                    BackwardCase{"Torn", "a\nb", {"b", "a"}},
                    BackwardCase{"Blank", "\n\na\n", {"a", "", ""}},
                    BackwardCase{"NoNewline", "a", {"a"}},
                    BackwardCase{"OverBlocks", "a\n" + kLong + "\nb\n", {"b", kLong, "a"}},
                    BackwardCase{"ABlock", kBlockLong, {kBlockLong}},
                    BackwardCase{"ABlockWithNewline", "a\n" + kBlockLess + "\n", {kBlockLess, "a"}},
                    BackwardCase{
                        "NewlineAtTheBlock", "a\nb\n" + kBlockLess + "\n", {kBlockLess, "b", "a"}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sless::invocations
