#include "client/base/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/base/fd.h"
#include "client/base/strings.h"

namespace sless::base {
namespace {

using std::chrono::milliseconds;

struct Channel {
  Fd read, write;
};

Channel Make(bool socket) {
  int fds[2];
  EXPECT_EQ(
      socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) : pipe2(fds, O_CLOEXEC), 0);
  return {Fd(fds[0]), Fd(fds[1])};
}

/// What is there now.
std::string Drain(int fd) {
  std::string all;
  char buffer[4096];
  for (pollfd one{fd, POLLIN, 0}; poll(&one, 1, 0) > 0;) {
    const auto n = read(fd, buffer, sizeof buffer);
    if (n <= 0) break;
    all.append(buffer, static_cast<size_t>(n));
  }
  return all;
}

TEST(JournalLog, LinesBeginWithTheirPriority) {
  auto [read, write] = Make(true);
  JsonLogger log(write.get(), Level::kTrace, JsonLogger::Keys::kJournal);
  log.Trace("a");
  log.Info("b");
  log.Warn("c");
  log.Error("d");
  const auto lines = Split(Drain(read.get()), '\n');
  const std::vector<std::string> begins{"<7>{\"time\"", "<6>{", "<4>{", "<3>{", ""};
  ASSERT_EQ(lines.size(), begins.size());
  for (size_t i = 0; i < begins.size(); ++i)
    EXPECT_EQ(lines[i].substr(0, begins[i].size()), begins[i]);
}

TEST(JournalLog, IsForTheDescriptorThatSystemdNames) {
  const auto [read, write] = Make(true);
  const auto [other, another] = Make(true);
  struct stat about {};
  ASSERT_EQ(fstat(write.get(), &about), 0);
  const auto name = fmt::format("{}:{}", about.st_dev, about.st_ino);
  EXPECT_TRUE(IsJournal(write.get(), name));
  EXPECT_FALSE(IsJournal(other.get(), name));
  EXPECT_FALSE(IsJournal(write.get(), ""));
  EXPECT_FALSE(IsJournal(-1, name));
}

class LogToReader : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Kinds, LogToReader, testing::Bool(),
                         [](const auto& info) { return info.param ? "Socket" : "Pipe"; });

TEST_P(LogToReader, ThatStopsHoldsNobodyUpAndGetsWholeLines) {
  auto [read, write] = Make(GetParam());
  JsonLogger log(write.get(), Level::kInfo, JsonLogger::Keys::kPlain);
  constexpr int kThreads = 4, kLines = 300;
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        // Some are longer than what a pipe takes in one piece.
        for (int i = 0; i < kLines; ++i)
          log.Info("line",
                   {{"n", t * kLines + i}, {"x", std::string(i % 7 == 0 ? 8000 : 900, 'x')}});
      });
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));

  std::string all = Drain(read.get());
  EXPECT_FALSE(all.empty());
  for (int i = 0; i < 3; ++i) {
    log.Info("after");
    all += Drain(read.get());
  }
  int64_t lines = 0, lost = 0, after = 0;
  ASSERT_TRUE(all.ends_with('\n'));
  all.pop_back();
  for (const auto& text : Split(all, '\n')) {
    const auto line = nlohmann::json::parse(text, nullptr, false);
    ASSERT_FALSE(line.is_discarded()) << text;
    lines += line["msg"] == "line";
    after += line["msg"] == "after";
    if (line.contains("lines")) lost += line["lines"].get<int64_t>();
  }
  EXPECT_GT(lost, 0);
  EXPECT_GE(after, 2);
  EXPECT_EQ(lines + lost + after, kThreads * kLines + 3);
}

TEST_P(LogToReader, ThatIsSlowLosesNothing) {
  auto [read, write] = Make(GetParam());
  std::string all;
  std::jthread reader([&, fd = read.get()] {
    char buffer[16384];
    for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;) {
      all.append(buffer, static_cast<size_t>(n));
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  JsonLogger log(write.get(), Level::kInfo, JsonLogger::Keys::kPlain);
  for (int i = 0; i < 500; ++i) log.Info("line", {{"x", std::string(900, 'x')}});
  close(write.Release());
  reader.join();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 500);
}

TEST(Log, ToNobodyEndsAtOnce) {
  auto [read, write] = Make(true);
  close(read.Release());
  JsonLogger log(write.get(), Level::kInfo, JsonLogger::Keys::kPlain);
  JsonLogger none(-1, Level::kInfo, JsonLogger::Keys::kPlain);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    log.Info("line");
    none.Info("line");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

}  // namespace
}  // namespace sless::base
