// The engine with the real workers.

#include "server/runner/engine.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <thread>

#include "client/base/spawn.h"
#include "client/base/strings.h"
#include "server/runner/log_writer.h"
#include "server/runner/manifest.h"

namespace sless::runner {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// Outcomes by request id.
class Answers {
 public:
  std::function<void(Outcome)> For(const std::string& id) {
    return [this, id](Outcome outcome) {
      std::lock_guard lock(mutex_);
      outcomes_[id] = std::move(outcome);
      changed_.notify_all();
    };
  }
  Outcome Get(const std::string& id, seconds most = seconds(20)) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, most, [&] { return outcomes_.contains(id); })) {
      ADD_FAILURE() << "no answer to " << id;
      return {};
    }
    return outcomes_[id];
  }
  bool Has(const std::string& id) {
    std::lock_guard lock(mutex_);
    return outcomes_.contains(id);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Outcome> outcomes_;
};

// Handlers that sleep for as many seconds as their event says.
constexpr const char* kSleeps =
    "import time\ndef handle(event):\n  print('begin', event)\n  time.sleep(event)\n  return "
    "event\n";
constexpr const char* kSleepsInNode =
    "export const handle = async (event) => {\n  console.log('begin', event);\n  await new "
    "Promise((r) => setTimeout(r, event * 1000));\n  return event;\n};\n";

class EngineTest : public testing::Test {
 protected:
  EngineTest() {
    char name[] = "/tmp/sless-test-XXXXXX";
    dir_ = mkdtemp(name);
    log_ = open((dir_ + "/log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    options_.timeout = seconds(10);
    options_.grace = seconds(5);
    options_.function = "default/fn";
    options_.revision = 7;
    options_.log_fd = log_;
  }
  ~EngineTest() override {
    engine_.reset();
    close(log_);
    std::error_code ignored;
    fs::remove_all(dir_, ignored);
  }

  void Python(const std::string& code) { Start("python3.11", "handler.py", code); }
  void Node(const std::string& code) { Start("nodejs20", "handler.mjs", code); }
  void Start(const std::string& runtime, const std::string& file, const std::string& code) {
    fs::create_directories(dir_ + "/code");
    std::ofstream(dir_ + "/code/" + file) << code;
    const bool node = runtime == "nodejs20";
    const std::string path = getenv("PATH");
    const WorkerFacts facts{
        runtime,
        node ? base::FindProgram("node", path) : "/usr/bin/python3.11",
        std::string(SLESS_RUNTIMES) + "/" + runtime + (node ? "/worker.mjs" : "/worker.py"),
        dir_ + "/code",
        "",
        entrypoint_,
        options_.concurrency,
        options_.memory_mb};
    options_.runtime = runtime;
    options_.entrypoint = entrypoint_;
    options_.worker = {
        WorkerCommand(facts).value(), {"PATH=/usr/bin:/bin", "HOME=/tmp"}, dir_ + "/code", 0, 0};
    engine_ = std::make_unique<Engine>(options_, clock_);
    const auto until = clock_.Steady() + seconds(20);
    while (engine_->health().phase == Phase::kStarting && clock_.Steady() < until)
      std::this_thread::sleep_for(milliseconds(5));
  }
  // The same test in both languages, the ids of its calls beginning with `name`.
  void InBoth(const std::string& python, const std::string& node,
              const std::function<void(const std::string& name)>& test) {
    Python(python);
    test("python ");
    engine_.reset();
    Node(node);
    test("node ");
  }
  void Send(const std::string& id, const std::string& event, std::stop_token gone = {}) {
    engine_->Submit({id, "job", event, gone, answers_.For(id)});
  }
  Outcome Call(const std::string& id, const std::string& event) {
    Send(id, event);
    return answers_.Get(id);
  }
  static std::string Reason(const Outcome& outcome) {
    return outcome.error ? outcome.error->reason : "OK";
  }
  std::string Log() {
    std::ifstream in(dir_ + "/log");
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  void UntilLog(const std::string& word) {
    const auto until = clock_.Steady() + seconds(10);
    while (!base::Contains(Log(), word) && clock_.Steady() < until)
      std::this_thread::sleep_for(milliseconds(5));
  }
  bool Ended() {
    pollfd fd{engine_->ended_fd(), POLLIN, 0};
    return poll(&fd, 1, 10'000) == 1;
  }

  std::string dir_;
  std::string entrypoint_ = "handler.handle";
  int log_ = -1;
  base::SystemClock clock_;
  EngineOptions options_;
  Answers answers_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineTest, PythonKeepsNumbersAndTellsItsContext) {
  Python(
      "def handle(event, context):\n  print('line')\n  return [event, context.function, "
      "context.revision, context.source, context.request_id]\n");
  const Outcome outcome = Call("r1", "123456789012345678901234567890");
  EXPECT_EQ(outcome.result_json, R"([123456789012345678901234567890,"default/fn",7,"job","r1"])");
  EXPECT_THAT(outcome.log_tail, ElementsAre("line"));
  EXPECT_THAT(Log(), HasSubstr(R"("s":"stdout","r":"r1","m":"line"})"));
}

TEST_F(EngineTest, AnErrorHasTypeFileLineAndOnlyOwnFrames) {
  Python("import json\ndef handle(event):\n  print('before')\n  json.loads('{')\n");
  const Outcome outcome = Call("r1", "1");
  ASSERT_EQ(Reason(outcome), "HandlerError");
  EXPECT_THAT(outcome.error->message, HasSubstr("JSONDecodeError: "));
  EXPECT_EQ(outcome.error->source.file, "handler.py");
  EXPECT_EQ(outcome.error->source.line, 4);
  EXPECT_THAT(testing::PrintToString(outcome.trace),
              AllOf(HasSubstr("json.loads('{')"), testing::Not(HasSubstr("decoder.py"))));
  EXPECT_THAT(outcome.log_tail, ElementsAre("before"));
  EXPECT_EQ(Reason(Call("r2", "1")), "HandlerError") << "the worker goes on";
}

TEST_F(EngineTest, TheWorkerSurvivesWhatAHandlerMayDo) {
  Python(R"(
import os, sys, threading
def handle(event):
    if event == "exit": sys.exit(3)
    if event == "nan": return float("nan")
    if event == "set": return {"a": {1}}
    if event == "close": os.close(1); os.close(2); sys.stdout.close(); print("still"); return "closed"
    if event == "raw": os.write(1, b"raw bytes\n"); return "wrote"
    if event == "fork":
        if os.fork() == 0: os._exit(0)
        os.wait(); return "forked"
    if event == "flood":
        for i in range(20000): print("x" * 100)
        return "flooded"
    if event == "long": print("y" * 100000); return "long"
    return event
)");
  EXPECT_THAT(Call("1", R"("exit")").error->message, HasSubstr("sys.exit(3)"));
  EXPECT_THAT(Call("2", R"("nan")").error->message, HasSubstr("nan"));
  EXPECT_THAT(Call("3", R"("set")").error->message, HasSubstr("type set at result['a']"));
  EXPECT_EQ(Call("4", R"("fork")").result_json, R"("forked")");
  const Outcome raw = Call("5", R"("raw")");
  EXPECT_THAT(raw.log_tail, ElementsAre("raw bytes"));
  EXPECT_EQ(Call("6", R"("flood")").log_tail.size(), 30u);
  const Outcome lengthy = Call("7", R"("long")");
  EXPECT_EQ(lengthy.result_json, R"("long")");
  ASSERT_FALSE(lengthy.log_tail.empty());
  for (const auto& line : lengthy.log_tail) EXPECT_LE(line.size(), 1003u);
  const Outcome closed = Call("8", R"("close")");
  EXPECT_EQ(closed.result_json, R"("closed")");
  EXPECT_THAT(closed.log_tail, ElementsAre("still"));
  EXPECT_EQ(Call("9", R"("again")").result_json, R"("again")");
}

// What the text of a head may not break: half surrogate pairs, which clients can send too.
TEST_F(EngineTest, TextThatIsNoTextIsShownAndBreaksNothing) {
  InBoth(
      "def handle(event):\n  print('log', event['u'])\n  if 'raise' in event: raise "
      "ValueError('unknown ' + event['u'])\n  if 'back' in event: return [event['u']]\n",
      "export const handle = (event) => {\n  console.log('log', event.u);\n  if (event.raise) "
      "throw new Error('unknown ' + event.u);\n  if (event.back) return [event.u];\n};\n",
      [&](const std::string& name) {
        const Outcome printed = Call(name + "1", R"({"u":"\ud83d"})");
        EXPECT_EQ(Reason(printed), "OK");
        ASSERT_EQ(printed.log_tail.size(), 1u);
        EXPECT_THAT(printed.log_tail[0], testing::StartsWith("log "));
        const Outcome raised = Call(name + "2", R"({"u":"\ud83d","raise":1})");
        ASSERT_EQ(Reason(raised), "HandlerError");
        EXPECT_THAT(raised.error->message, HasSubstr("Error: unknown "));
        const Outcome back = Call(name + "3", R"({"u":"\ud83d","back":1})");
        ASSERT_EQ(Reason(back), "HandlerError");
        EXPECT_THAT(back.error->message, HasSubstr("half a surrogate pair at result[0]"));
      });
}

TEST_F(EngineTest, ALongLineBecomesSeveralWholeOnes) {
  InBoth("def handle(e): print('日' * 15000 + 'é' * 15000, end='END')\n",
         "export const handle = (e) => { process.stdout.write('日'.repeat(15000) + "
         "'é'.repeat(15000) + 'END'); };\n",
         [&](const std::string& name) {
           const size_t each = name == "node " ? 30000 : 15000;
           EXPECT_EQ(Reason(Call(name, "1")), "OK");
           size_t three = 0, two = 0;
           const std::string log = Log();
           for (size_t at = 0; (at = log.find("日", at)) != std::string::npos; at += 3) ++three;
           for (size_t at = 0; (at = log.find("é", at)) != std::string::npos; at += 2) ++two;
           EXPECT_EQ(three, each);
           EXPECT_EQ(two, each);
           EXPECT_THAT(log, HasSubstr("END\"}"));
           EXPECT_THAT(log, testing::Not(HasSubstr("\xef\xbf\xbd")));
         });
}

TEST_F(EngineTest, ErrorsAreDescribedWhateverTheCodeHasOrRaises) {
  fs::create_directories(dir_ + "/code");
  for (const char* file : {"traceback.py", "linecache.py", "datetime.py", "logging.py"})
    std::ofstream(dir_ + "/code/" + file) << "mine = 1\n";
  Python(R"(
import asyncio, os, sys, logging
class Odd(Exception):
    __cause__ = property(lambda self: 1 / 0)
async def fails(): raise KeyError("real cause")
async def group():
    async with asyncio.TaskGroup() as tasks: tasks.create_task(fails())
def handle(event, context):
    context.logger.info("until %s", context.deadline.year)
    if event == "plain": raise ValueError("boom")
    if event == "syntax": raise SyntaxError("bad", (b"file", 1, 1, 5))
    if event == "odd": raise Odd("x")
    if event == "group": asyncio.run(group())
    return logging.mine
)");
  const Outcome plain = Call("1", R"("plain")");
  EXPECT_EQ(plain.error->message, "ValueError: boom");
  EXPECT_EQ(plain.error->source.line, 10);
  EXPECT_EQ(Call("2", R"("syntax")").error->message, "SyntaxError: bad");
  EXPECT_THAT(Call("3", R"("odd")").error->message, HasSubstr("cannot be shown"));
  const Outcome group = Call("4", R"("group")");
  EXPECT_THAT(group.error->message, HasSubstr("the first is KeyError: 'real cause'"));
  EXPECT_THAT(group.trace, Contains("KeyError: 'real cause'"));
  EXPECT_EQ(Call("5", "1").result_json, "1");
}

TEST_F(EngineTest, AChildThatComesOutOfTheHandlerEndsThere) {
  Python(R"(
import os, sys
def handle(event):
    child = os.fork()
    if child == 0:
        if event == "exit": sys.exit(3)
        if event == "raise": raise KeyError("in the child")
        return "child"
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
)");
  EXPECT_EQ(Call("1", R"("exit")").result_json, "3");
  EXPECT_EQ(Call("2", R"("return")").result_json, "0");
  EXPECT_EQ(Call("3", R"("raise")").result_json, "1");
  UntilLog("in the child");
  EXPECT_THAT(Log(), HasSubstr("KeyError: 'in the child'"));
}

TEST_F(EngineTest, ALineThatAChildLeavesOpenIsTheCallsOwn) {
  Python("import subprocess\ndef handle(event): subprocess.run(['printf', event])\n");
  EXPECT_THAT(Call("1", R"("secret ")").log_tail, ElementsAre("secret "));
  EXPECT_THAT(Call("2", R"("line\n")").log_tail, ElementsAre("line"));
}

// Whichever call its threads were started in.
TEST_F(EngineTest, WhatAPoolPrintsBelongsToTheCallThatAskedForIt) {
  options_.concurrency = 4;
  Python(R"(
import time
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
def work(event):
    time.sleep(0.2)
    print("work of", event)
def handle(event): pool.submit(work, event).result()
)");
  for (int i = 0; i < 4; ++i) Send(std::to_string(i), std::to_string(i));
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(answers_.Get(std::to_string(i)).log_tail,
                ElementsAre("work of " + std::to_string(i)));
  }
}

TEST_F(EngineTest, ATaskThatIsLeftBehindDoesNotEndItsLoop) {
  options_.concurrency = 2;
  Python(R"(
import asyncio, sys
async def ends(): sys.exit(4)
async def handle(event):
    if event == "leave": asyncio.get_running_loop().create_task(ends())
    await asyncio.sleep(0.3)
    return event
)");
  EXPECT_EQ(Call("1", R"("leave")").result_json, R"("leave")");
  EXPECT_EQ(Call("2", "2").result_json, "2");
  EXPECT_THAT(Log(), HasSubstr("a background task ended with SystemExit"));
}

TEST_F(EngineTest, AHandlersFolderMayHaveTheNameOfAModule) {
  fs::create_directories(dir_ + "/code/http");
  std::ofstream(dir_ + "/code/http/handler.py")
      << "import http.client\ndef handle(e): return http.client.__name__\n";
  entrypoint_ = "http/handler.handle";
  Python("");
  EXPECT_EQ(Call("1", "1").result_json, R"("http.client")");
}

TEST_F(EngineTest, NodeSurvivesStrayErrors) {
  Node(R"(
export async function handle(event) {
  if (event === 'exit') process.exit(3);
  if (event === 'reject') { Promise.reject(new Error('stray')); await new Promise(() => {}); }
  if (event === 'timer') { setTimeout(() => { throw new Error('late'); }, 5); await new Promise(() => {}); }
  if (event === 'nan') return { a: NaN };
  console.log('seen', event);
  return event;
})");
  EXPECT_THAT(Call("1", R"("exit")").error->message, HasSubstr("process.exit(3)"));
  const Outcome stray = Call("2", R"("reject")");
  EXPECT_THAT(stray.error->message, HasSubstr("Error: stray"));
  EXPECT_EQ(stray.error->source.line, 4);
  EXPECT_THAT(Call("3", R"("timer")").error->message, HasSubstr("late"));
  EXPECT_THAT(Call("4", R"("nan")").error->message, HasSubstr("NaN at result.a"));
  const Outcome good = Call("5", R"({"k":"é"})");
  EXPECT_EQ(good.result_json, R"({"k":"é"})");
  EXPECT_EQ(good.log_tail.size(), 1u);
}

TEST_F(EngineTest, NodeRefusesWhatJsonWouldLose) {
  Node(R"(
const make = {
  buffer: () => ({ body: Buffer.from([1, 2, 3]) }),
  promise: () => ({ a: (async () => 1)() }),
  generator: () => (function* () { yield 1; })(),
  later: () => [(async function* () { yield 1; })()],
  error: () => new TypeError('lost'),
  regexp: () => /x/,
  weak: () => new WeakMap(),
  map: () => new Map(),
  response: () => new Response('x'),
  headers: () => ({ statusCode: 200, body: new Headers() }),
  query: () => new URLSearchParams('a=1'),
  number: () => new Number(1),
  date: () => new Date(0),
  own: () => ({ toJSON: () => 'own' }),
  evaluated: () => eval('(() => { throw new Error("in eval"); })()'),
};
export const handle = async (event) => make[event]();
)");
  struct Case {
    const char* event;
    const char* want;
  };
  for (const Case& c :
       {Case{"buffer", "bytes (Buffer) at result.body"}, Case{"promise", "Promise at result.a"},
        Case{"generator", "generator at result"}, Case{"later", "generator at result[0]"},
        Case{"error", "TypeError at result"}, Case{"regexp", "RegExp at result"},
        Case{"weak", "WeakMap at result"}, Case{"map", "Map at result"},
        Case{"response", "Response at result, which JSON cannot hold; return { statusCode"},
        Case{"headers", "Headers at result.body"}, Case{"query", "URLSearchParams at result"}}) {
    const Outcome outcome = Call(c.event, "\"" + std::string(c.event) + "\"");
    ASSERT_EQ(Reason(outcome), "HandlerError") << c.event;
    EXPECT_THAT(outcome.error->message, HasSubstr(c.want));
  }
  EXPECT_EQ(Call("d", R"("date")").result_json, R"("1970-01-01T00:00:00.000Z")");
  EXPECT_EQ(Call("o", R"("own")").result_json, R"("own")");
  EXPECT_EQ(Call("n", R"("number")").result_json, "1");
  const Outcome evaluated = Call("e", R"("evaluated")");
  EXPECT_EQ(evaluated.error->source.file, "handler.mjs");
  EXPECT_EQ(evaluated.error->source.line, 17);
}

TEST_F(EngineTest, ATimeoutIsAnsweredInTimeAndTheReplicaGoesOn) {
  options_.timeout = milliseconds(3000);  // the next call's runs while it waits
  Python("import time\ndef handle(event):\n  if event == 'slow': time.sleep(60)\n  return event\n");
  const auto begin = clock_.Steady();
  EXPECT_EQ(Reason(Call("1", R"("slow")")), "Timeout");
  EXPECT_LT(clock_.Steady() - begin, milliseconds(3600));
  EXPECT_EQ(Call("2", R"("next")").result_json, R"("next")")
      << "waits for the new worker instead of failing";
  EXPECT_THAT(Log(), HasSubstr("the process is replaced"));
}

TEST_F(EngineTest, APythonLoopIsEndedWithoutANewProcess) {
  options_.timeout = milliseconds(300);
  Python("import os\ndef handle(event):\n  while event == 'loop': pass\n  return os.getpid()\n");
  const std::string before = Call("1", "1").result_json;
  EXPECT_EQ(Reason(Call("2", R"("loop")")), "Timeout");
  EXPECT_EQ(Call("3", "1").result_json, before);
}

TEST_F(EngineTest, AFloodOfLinesDoesNotStopTheClock) {
  options_.timeout = milliseconds(1500);
  Python("import os\ndef handle(event):\n  while True: print('x')\n");
  const auto begin = clock_.Steady();
  EXPECT_EQ(Reason(Call("r1", "1")), "Timeout");
  EXPECT_LT(clock_.Steady() - begin, milliseconds(2500));
}

// A pipe whose reader takes nothing until it is asked to.
class LateReader {
 public:
  LateReader() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC | O_NONBLOCK), 0); }
  ~LateReader() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int fd() const { return ends_[1]; }
  const std::string& text() const { return text_; }
  /// Reads a piece at once, with a pause between.
  bool ReadUntil(std::string_view word, milliseconds pause = {}, size_t piece = 65536) {
    const auto until = std::chrono::steady_clock::now() + seconds(10);
    while (!base::Contains(text_, word) && std::chrono::steady_clock::now() < until) {
      pollfd fd{ends_[0], POLLIN, 0};
      poll(&fd, 1, 100);
      char buffer[65536];
      const ssize_t n = read(ends_[0], buffer, std::min(piece, sizeof buffer));
      if (n > 0) text_.append(buffer, static_cast<size_t>(n));
      std::this_thread::sleep_for(pause);
    }
    return base::Contains(text_, word);
  }

 private:
  int ends_[2] = {-1, -1};
  std::string text_;
};

TEST_F(EngineTest, AStalledReaderOfTheLogStopsNeitherTheClockNorAFunctionForLong) {
  LateReader reader;
  options_.log_fd = reader.fd();
  options_.timeout = milliseconds(500);
  Python(
      "def handle(event):\n  while event == 'flood': print('x' * 1000)\n"
      "  for i in range(event): print('y' * 1000)\n  print('last', event)\n  return 1\n");
  const auto begin = clock_.Steady();
  EXPECT_EQ(Reason(Call("r1", R"("flood")")), "Timeout");
  EXPECT_LT(clock_.Steady() - begin, milliseconds(1500));
  std::this_thread::sleep_until(begin + kLogPatience + milliseconds(500));
  EXPECT_EQ(Call("r2", "200").result_json, "1");
  ASSERT_TRUE(reader.ReadUntil(" log lines are missing here"));
  EXPECT_EQ(Call("r3", "1").result_json, "1");
  EXPECT_TRUE(reader.ReadUntil("\"m\":\"last 1\""));
  // Nothing is missing that is not counted.
  int64_t arrived = 0, missing = 0;
  for (const auto& line : base::Split(reader.text(), '\n')) {
    if (base::Contains(line, "yyy")) ++arrived;
    const auto count = line.find(" log lines are missing here");
    if (count == std::string::npos) continue;
    missing += std::stoll(line.substr(line.rfind('"', count) + 1));
  }
  EXPECT_GE(arrived + missing, 201);
  EXPECT_GT(missing, 0);
  EXPECT_THAT(reader.text(), testing::Not(HasSubstr("last 200")));
  engine_.reset();
}

TEST_F(EngineTest, AReaderThatIsSlowLosesNothing) {
  LateReader reader;
  options_.log_fd = reader.fd();
  Python("def handle(event):\n  for i in range(1500): print('y' * 1000)\n  print('last')\n");
  Send("r1", "1");
  EXPECT_TRUE(reader.ReadUntil("\"m\":\"last\"", milliseconds(100)));
  EXPECT_THAT(reader.text(), testing::Not(HasSubstr("missing")));
  const auto lines = base::Split(reader.text(), '\n');
  EXPECT_EQ(std::ranges::count_if(lines, [](auto& l) { return base::Contains(l, "yyy"); }), 1500);
  engine_.reset();
}

TEST_F(EngineTest, AReaderThatIsTooSlowIsNotWaitedForForEver) {
  LateReader reader;
  options_.log_fd = reader.fd();
  Python("def handle(event):\n  for i in range(1500): print('y' * 1000)\n");
  std::jthread slow([&] { reader.ReadUntil("missing", milliseconds(50), 4096); });
  const auto begin = clock_.Steady();
  EXPECT_EQ(Reason(Call("r1", "1")), "OK");
  EXPECT_LT(clock_.Steady() - begin, seconds(12));
  slow.join();
  EXPECT_TRUE(reader.ReadUntil(" log lines are missing here"));
  engine_.reset();
}

TEST_F(EngineTest, WhatTheLogsReaderTakesLateStillArrives) {
  LateReader reader;
  options_.log_fd = reader.fd();
  Python("def handle(event):\n  for i in range(150): print('x' * 1000)\n  print('last')\n");
  EXPECT_EQ(Reason(Call("r1", "1")), "OK");  // more than a pipe holds, less than stops the worker
  EXPECT_TRUE(reader.ReadUntil("\"m\":\"last\""));
  engine_.reset();
}

TEST_F(EngineTest, OtherCallsEndBeforeAStuckWorkerIsReplaced) {
  options_.timeout = milliseconds(700);
  options_.concurrency = 3;
  Python(kSleeps);
  Send("stuck", "60");
  UntilLog("begin 60");
  std::this_thread::sleep_for(milliseconds(400));
  Send("fine", "0.5");
  EXPECT_EQ(Reason(answers_.Get("stuck")), "Timeout");
  EXPECT_EQ(Reason(answers_.Get("fine")), "OK");
  EXPECT_EQ(Call("after", "0.01").result_json, "0.01");
}

// A call that outlives its time and ends by itself while another one runs: what was to be killed
// is sound again.
TEST_F(EngineTest, AReplicaGoesOnWhereAStuckCallEndsBeforeTheOthers) {
  options_.timeout = milliseconds(1000);
  options_.concurrency = 2;
  InBoth(kSleeps, kSleepsInNode, [&](const std::string& name) {
    Send(name + "stuck", "1.7");
    UntilLog(R"(stuck","m":"begin 1.7)");
    std::this_thread::sleep_for(milliseconds(900));
    Send(name + "fine", "0.9");  // ends after the stuck one
    EXPECT_EQ(Reason(answers_.Get(name + "stuck")), "Timeout");
    EXPECT_EQ(Reason(answers_.Get(name + "fine")), "OK");
    EXPECT_EQ(Call(name + "after", "0.01").result_json, "0.01");
  });
}

TEST_F(EngineTest, CallsThatWaitForAProcessThatIsNotReplacedInTimeAreSentElsewhere) {
  options_.timeout = milliseconds(3000);
  options_.concurrency = 2;
  options_.replace_wait = milliseconds(200);
  Python(kSleeps);
  std::stop_source gone;
  engine_->Submit({"stuck", "job", "60", gone.get_token(), answers_.For("stuck"), true});
  Send("long", "2");
  UntilLog("begin 60");
  gone.request_stop();
  UntilLog("the process is replaced");
  EXPECT_EQ(Reason(Call("next", "1")), "Draining");
  EXPECT_EQ(Reason(answers_.Get("long")), "OK");
  EXPECT_EQ(Reason(Call("after", "0.01")), "OK");
}

TEST_F(EngineTest, OtherCallsOfAProcessThatIsReplacedHaveSomeTimeAndNoMore) {
  options_.concurrency = 2;
  options_.cancel_wait = milliseconds(100);
  options_.others_wait = milliseconds(300);
  Python(kSleeps);
  std::stop_source gone;
  engine_->Submit({"stuck", "job", "60", gone.get_token(), answers_.For("stuck"), true});
  Send("long", "9");
  UntilLog("begin 60");
  UntilLog("begin 9");
  const auto begin = clock_.Steady();
  gone.request_stop();
  EXPECT_EQ(Reason(answers_.Get("long")), "ReplicaDied");
  EXPECT_LT(clock_.Steady() - begin, seconds(5));
  EXPECT_EQ(Reason(answers_.Get("stuck")), "Timeout");
  EXPECT_THAT(Log(), HasSubstr("1 other calls of the process did not end within 300 ms"));
  EXPECT_EQ(Reason(Call("after", "0.01")), "OK");
}

// Clients go away all the time: one that does must not close the process to others.
TEST_F(EngineTest, ACallWhoseCallerHasGoneOnlyKeepsItsPlaceWhileItHangs) {
  options_.concurrency = 3;
  options_.cancel_wait = milliseconds(50);
  InBoth(kSleeps, kSleepsInNode, [&](const std::string& name) {
    const size_t before = Log().size();
    std::stop_source gone;
    Send(name + "hangs", "60", gone.get_token());
    Send(name + "long", "3");
    UntilLog(name + R"(hangs","m":"begin)");
    UntilLog(name + R"(long","m":"begin)");
    gone.request_stop();
    EXPECT_EQ(Reason(answers_.Get(name + "hangs")), "Timeout");
    std::this_thread::sleep_for(milliseconds(200));  // it is found stuck meanwhile
    EXPECT_EQ(Reason(Call(name + "next", "0.01")), "OK");
    EXPECT_FALSE(answers_.Has(name + "long"));
    EXPECT_THAT(Log().substr(before), testing::Not(HasSubstr("the process is replaced")));
    EXPECT_EQ(Reason(answers_.Get(name + "long")), "OK");
  });
}

TEST_F(EngineTest, ACallThatBlocksItsProcessAndWhoseCallerHasGoneClosesItToOthers) {
  options_.concurrency = 3;
  options_.cancel_wait = milliseconds(50);
  options_.replace_wait = milliseconds(200);
  InBoth(
      "import asyncio, time\nasync def handle(event):\n  print('begin', event)\n  if event == "
      "'other': await asyncio.sleep(60)\n  time.sleep(9)\n",
      "export const handle = async (event) => {\n  console.log('begin', event);\n  if (event "
      "=== 'other') await new Promise(() => {});\n  for (const end = Date.now() + 9000; "
      "Date.now() < end;);\n};\n",
      [&](const std::string& name) {
        std::stop_source gone;
        Send(name + "other", R"("other")");
        UntilLog(name + R"(other","m":"begin)");
        Send(name + "blocks", R"("blocks")", gone.get_token());
        UntilLog(name + R"(blocks","m":"begin)");
        gone.request_stop();
        EXPECT_EQ(Reason(Call(name + "next", "1")), "Draining");
      });
}

// asyncio ends a task that has not begun before its first line.
TEST_F(EngineTest, AnAsyncCallThatIsCancelledBeforeItBeginsGivesItsPlaceBack) {
  options_.concurrency = 2;
  options_.slot_wait = seconds(2);
  Python(
      "import asyncio, time\nasync def handle(event):\n  print('begin', event)\n  if event == "
      "'long':\n    time.sleep(.7)\n    await asyncio.sleep(8)\n  return event\n");
  std::stop_source gone;
  Send("long", R"("long")");
  UntilLog("begin long");
  Send("early", R"("early")", gone.get_token());
  gone.request_stop();
  EXPECT_EQ(Reason(answers_.Get("early")), "Timeout");
  EXPECT_EQ(Call("next", "1").result_json, "1");
  EXPECT_FALSE(answers_.Has("long"));
  EXPECT_THAT(Log(), testing::Not(HasSubstr("begin early")));
}

TEST_F(EngineTest, ANewProcessThatHangsWhileItLoadsEndsTheReplica) {
  options_.timeout = milliseconds(200);
  options_.restart_wait = milliseconds(500);
  Python(
      "import os, time\nif os.path.exists('second'): time.sleep(60)\nopen('second', "
      "'w').close()\ndef handle(event): time.sleep(event)\n");
  EXPECT_EQ(Reason(Call("1", "60")), "Timeout");
  EXPECT_EQ(Reason(Call("2", "0")), "Draining");
  ASSERT_TRUE(Ended());
  EXPECT_EQ(engine_->exit_code(), kExitStartFailed);
  EXPECT_THAT(Log(), HasSubstr("was not ready within 500 ms"));
}

TEST_F(EngineTest, MoreCallsThanConcurrencyAreBusy) {
  options_.concurrency = 2;
  Python(kSleeps);
  Send("1", "0.5");
  Send("2", "0.5");
  UntilLog("begin 0.5");
  EXPECT_EQ(Reason(Call("3", "1")), "Busy");
  EXPECT_EQ(Reason(answers_.Get("1")), "OK");
  EXPECT_EQ(Reason(answers_.Get("2")), "OK");
}

TEST_F(EngineTest, AsyncCallsRunAtOnceWithTheirOwnLogs) {
  options_.concurrency = 20;
  Python(
      "import asyncio\nasync def handle(event):\n  print('begin', event)\n  await "
      "asyncio.sleep(.3)\n  print('end', event)\n  return event\n");
  const auto begin = clock_.Steady();
  for (int i = 0; i < 20; ++i) Send(std::to_string(i), std::to_string(i));
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(answers_.Get(std::to_string(i)).log_tail,
                ElementsAre("begin " + std::to_string(i), "end " + std::to_string(i)));
  }
  EXPECT_LT(clock_.Steady() - begin, seconds(3));
}

// "Ended" must be true for a run that is tried again under the same number.
TEST_F(EngineTest, ACallThatAwaitsItsEndIsAnsweredOnlyThen) {
  options_.concurrency = 2;
  Python(kSleeps);
  std::stop_source gone;
  engine_->Submit({"slow", "job", "60", gone.get_token(), answers_.For("slow"), true});
  engine_->Submit({"other", "job", "1.5", {}, answers_.For("other"), true});
  UntilLog("begin 60");
  UntilLog("begin 1.5");
  gone.request_stop();
  EXPECT_EQ(Reason(answers_.Get("other")), "OK");
  EXPECT_FALSE(answers_.Has("slow")) << "its process lives on for the other call";
  EXPECT_EQ(Reason(answers_.Get("slow")), "Timeout");
  EXPECT_EQ(Reason(Call("after", "0.01")), "OK");
}

TEST_F(EngineTest, ACallerThatLeavesEndsItsCall) {
  Python(
      "import asyncio\nasync def handle(event):\n  print('begin')\n  try:\n    await "
      "asyncio.sleep(event)\n  except asyncio.CancelledError:\n    print('cancelled')\n    "
      "raise\n");
  std::stop_source gone;
  Send("1", "60", gone.get_token());
  UntilLog("begin");
  gone.request_stop();
  answers_.Get("1");
  UntilLog("cancelled");
  EXPECT_THAT(Log(), HasSubstr("cancelled"));
  EXPECT_EQ(Reason(Call("2", "0.01")), "OK");
}

TEST_F(EngineTest, DeathFailsTheRunningCallsAndEndsTheEngine) {
  options_.concurrency = 2;
  Python(
      "import os, time\ndef handle(event):\n  print('begin', event)\n  if event: "
      "time.sleep(event)\n  os._exit(9)\n");
  Send("1", "30");
  UntilLog("begin 30");
  const Outcome outcome = Call("2", "0");
  EXPECT_EQ(Reason(outcome), "ReplicaDied");
  EXPECT_THAT(outcome.error->message, HasSubstr("exit code 9"));
  EXPECT_EQ(Reason(answers_.Get("1")), "ReplicaDied");
  ASSERT_TRUE(Ended());
  EXPECT_EQ(engine_->exit_code(), kExitWorkerDied + kExitInCall);
  EXPECT_EQ(Reason(Call("3", "1")), "Draining");
}

TEST_F(EngineTest, ADeathBetweenCallsIsToldApart) {
  Python(
      "import os, threading\ndef handle(event): threading.Timer(0.3, lambda: "
      "os._exit(9)).start()\n");
  EXPECT_EQ(Reason(Call("1", "0")), "OK");
  ASSERT_TRUE(Ended());
  EXPECT_EQ(engine_->exit_code(), kExitWorkerDied);
}

TEST_F(EngineTest, ABrokenChannelEndsTheReplica) {
  Python("import os\ndef handle(event):\n  os.write(100, b'\\xff' * 64)\n  return 1\n");
  EXPECT_EQ(Reason(Call("1", "1")), "ReplicaDied");
  EXPECT_TRUE(Ended());
}

TEST_F(EngineTest, LoadFailuresAreKeptForTheProbe) {
  Python("x = (1\n");
  ASSERT_EQ(engine_->health().phase, Phase::kStartFailed);
  EXPECT_EQ(engine_->health().failure->source.file, "handler.py");
  EXPECT_EQ(engine_->health().failure->source.line, 1);
  EXPECT_EQ(Reason(Call("1", "1")), "Draining");
}

TEST_F(EngineTest, ACrashWhileLoadingSaysSo) {
  Python("import os\nprint('loading')\nos._exit(4)\n");
  ASSERT_EQ(engine_->health().phase, Phase::kStartFailed);
  EXPECT_THAT(engine_->health().failure->message,
              HasSubstr("ended with exit code 4 while it loaded handler"));
  EXPECT_THAT(engine_->health().failure->source.log_tail, Contains("loading"));
}

TEST_F(EngineTest, NodeTellsWhereASyntaxErrorIs) {
  Node("export const a = 1;\nexport const handle = ;\n");
  ASSERT_EQ(engine_->health().phase, Phase::kStartFailed);
  EXPECT_EQ(engine_->health().failure->source.file, "handler.mjs");
  EXPECT_EQ(engine_->health().failure->source.line, 2);
}

TEST_F(EngineTest, AHandlerThatWantsMoreThanThereIsIsRefusedAtTheStart) {
  for (const bool node : {false, true}) {
    engine_.reset();
    node ? Node("export const handle = (event, context, callback) => callback(null, 1);\n")
         : Python("def handle(event, context, callback): callback(None, 1)\n");
    ASSERT_EQ(engine_->health().phase, Phase::kStartFailed);
    const auto failure = *engine_->health().failure;
    EXPECT_THAT(failure.message, HasSubstr("want a function of (event, context) or (event), but "
                                           "this one takes 3 "));
    EXPECT_EQ(failure.source.file, node ? "handler.mjs" : "handler.py");
  }
  engine_.reset();
  Node("export const handle = async (event, context, unused) => 1;\n");
  EXPECT_EQ(Call("1", "1").result_json, "1");
}

TEST_F(EngineTest, NodeTellsWhereAModuleLacksAnExportAndOfAnAwaitThatNeverSettles) {
  fs::create_directories(dir_ + "/code");
  std::ofstream(dir_ + "/code/b.mjs") << "export const a = 1;\n";
  Node("export const x = 1;\nimport { nope } from './b.mjs';\nexport const handle = () => 1;\n");
  ASSERT_EQ(engine_->health().phase, Phase::kStartFailed);
  EXPECT_EQ(engine_->health().failure->source.file, "handler.mjs");
  EXPECT_EQ(engine_->health().failure->source.line, 2);
  engine_.reset();
  Node("await new Promise(() => {});\nexport const handle = () => 1;\n");
  ASSERT_EQ(engine_->health().phase, Phase::kStartFailed);
  EXPECT_THAT(engine_->health().failure->message,
              HasSubstr("an await at the top of the code never settles"));
}

// As the gateway counts it: the handler must be able to keep its deadline.
TEST_F(EngineTest, TheTimeOfACallThatWaitsForItsProcessRuns) {
  options_.timeout = milliseconds(3000);
  Python(
      "import time\ndef handle(event, context):\n  print('begin')\n  if event == 'block': "
      "time.sleep(60)\n  return context.remaining_ms()\n");
  std::stop_source gone;
  Send("block", R"("block")", gone.get_token());
  UntilLog("begin");
  gone.request_stop();
  EXPECT_LT(std::stoi(Call("next", "1").result_json), 3000 - 450);  // cancel_wait is 500
}

TEST_F(EngineTest, ADrainEndsRunningCallsAndRefusesNewOnes) {
  Python(
      "import time\ndef handle(event):\n  print('begin')\n  time.sleep(event)\n  return event\n");
  Send("1", "0.5");
  UntilLog("begin");
  engine_->Drain();
  EXPECT_EQ(Reason(Call("2", "0")), "Draining");
  EXPECT_EQ(answers_.Get("1").result_json, "0.5");
  ASSERT_TRUE(Ended());
  EXPECT_EQ(engine_->exit_code(), kExitDrained);
}

// The worker listens to the end: what is cancelled meanwhile does not run on beside the others.
TEST_F(EngineTest, ACallIsCancelledDuringADrainToo) {
  options_.concurrency = 2;
  options_.cancel_wait = seconds(10);  // by its worker, not with it
  for (const bool async : {false, true}) {
    engine_.reset();
    Python(async ? "import asyncio\nasync def handle(event):\n  print('begin', event)\n  try: "
                   "await asyncio.sleep(event)\n  finally: print('end', event)\n"
                 : "import time\ndef handle(event):\n  print('begin', event)\n  try:\n    for i "
                   "in range(int(event * 100)): time.sleep(.01)\n  finally: print('end', "
                   "event)\n");
    const std::string name = async ? "async " : "sync ";
    std::stop_source gone;
    Send(name + "other", "1.5");
    Send(name + "gone", "60", gone.get_token());
    UntilLog(name + R"(other","m":"begin)");
    UntilLog(name + R"(gone","m":"begin)");
    engine_->Drain();
    std::this_thread::sleep_for(milliseconds(200));
    gone.request_stop();
    UntilLog(name + R"(gone","m":"end 60)");
    EXPECT_FALSE(answers_.Has(name + "other"));
    EXPECT_EQ(Reason(answers_.Get(name + "other")), "OK");
    ASSERT_TRUE(Ended());
    EXPECT_EQ(engine_->exit_code(), kExitDrained);
  }
}

TEST_F(EngineTest, ADrainDoesNotWaitForever) {
  options_.grace = milliseconds(200);
  Python("import time\ndef handle(event):\n  print('begin')\n  time.sleep(60)\n");
  Send("1", "1");
  UntilLog("begin");
  engine_->Drain();
  EXPECT_EQ(Reason(answers_.Get("1")), "ReplicaDied");
  EXPECT_TRUE(Ended());
}

TEST_F(EngineTest, LargeEventsAndResultsPass) {
  Python("def handle(event): return len(event) if len(event) < 100 else event\n");
  const std::string event = "\"" + std::string(6 << 20, 'x') + "\"";
  EXPECT_EQ(Call("1", event).result_json, event);
  engine_.reset();
  Node("export const handle = (event) => event.repeat(2);\n");
  EXPECT_THAT(Call("2", event).error->message, HasSubstr("at most 8388608"));
  EXPECT_EQ(Call("3", "\"ab\"").result_json, "\"abab\"");
}

// The worker would end itself, and the calls of others with it.
TEST_F(EngineTest, AnEventThatIsLargerThanAFrameIsRefused) {
  Python("import os\ndef handle(event): return os.getpid()\n");
  const std::string before = Call("1", "1").result_json;
  const Outcome refused = Call("2", "\"" + std::string(32 << 20, 'x') + "\"");
  EXPECT_EQ(Reason(refused), "TooLarge");
  EXPECT_THAT(refused.error->message, HasSubstr("at most 33554432 are allowed"));
  EXPECT_EQ(Call("3", "1").result_json, before);
}

}  // namespace
}  // namespace sless::runner
