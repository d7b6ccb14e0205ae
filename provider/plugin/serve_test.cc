// The whole process, started as a host starts it. This test program is also the plugin: see main
// below.

#include "provider/plugin/serve.h"

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/base/json.h"
#include "client/base/strings.h"
#include "proto/goplugin/controller.grpc.pb.h"
#include "proto/goplugin/stdio.grpc.pb.h"
#include "proto/tfplugin6/tfplugin6.grpc.pb.h"
#include "provider/plugin/convert.h"
#include "provider/plugin/testing/fake_host.h"
#include "provider/plugin/testing/trial_provider.h"

extern char** environ;

namespace sless::plugin {
namespace {

using namespace std::chrono_literals;
using testing::Child;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kCookie = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2";
// Generous: this machine may be busy, and sanitizers are slow.
constexpr auto kLimit = 20s;

std::string ThisProgram() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

class ServeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/serve-test-XXXXXX";
    temp_ = mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(temp_); }

  Child::Variables HostVariables() {
    return {{"SLESS_TEST_IS_PLUGIN", "1"},
            {"TF_PLUGIN_MAGIC_COOKIE", kCookie},
            {"PLUGIN_PROTOCOL_VERSIONS", "6,5"},
            {"PLUGIN_MIN_PORT", "10000"},
            {"PLUGIN_MAX_PORT", "25000"},
            {"PLUGIN_CLIENT_CERT", host_.certificate_pem},
            {"TMPDIR", temp_},
            {"ASAN_OPTIONS", "handle_segv=0:handle_abort=0:detect_leaks=0"}};
  }
  std::unique_ptr<Child> Start(const Child::Variables& variables,
                               const std::vector<std::string>& arguments = {}) {
    auto child = Child::Start(ThisProgram(), arguments, variables);
    EXPECT_TRUE(child.has_value());
    return std::move(*child);
  }
  // Starts a plugin and reads its line.
  std::unique_ptr<Child> StartServing(const Child::Variables& variables) {
    auto child = Start(variables);
    const std::string line = child->ReadLine(kLimit);
    auto parsed = testing::ParseHandshake(line);
    EXPECT_TRUE(parsed.has_value()) << line << child->ReadStderr(100ms);
    handshake_ = parsed ? *parsed : testing::Handshake{};
    return child;
  }
  std::shared_ptr<grpc::Channel> Channel() const {
    return testing::Connect(
        handshake_.network == "unix" ? "unix:" + handshake_.address : handshake_.address,
        handshake_.certificate_der.empty() ? nullptr : &host_, handshake_.certificate_der);
  }
  static bool CanCall(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    tfplugin6::GetProviderSchema::Response response;
    const auto status =
        tfplugin6::Provider::NewStub(channel)->GetProviderSchema(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return status.ok() && response.resource_schemas().count("trial_thing") == 1;
  }
  static void Shutdown(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    ::plugin::Empty answer;
    EXPECT_TRUE(::plugin::GRPCController::NewStub(channel)->Shutdown(&context, {}, &answer).ok());
  }
  bool NothingLeft() const { return std::filesystem::is_empty(temp_); }

  std::string temp_;
  testing::HostIdentity host_ = testing::MakeHostIdentity();
  testing::Handshake handshake_;
};

TEST_F(ServeTest, ServesAHostFromHandshakeToShutdown) {
  const auto child = StartServing(HostVariables());
  EXPECT_EQ(handshake_.fields.size(), 6U);
  EXPECT_EQ(handshake_.network, "unix");
  EXPECT_THAT(handshake_.address, StartsWith(temp_ + "/"));
  const auto channel = Channel();
  grpc::ClientContext stdio_context;
  auto stdio = ::plugin::GRPCStdio::NewStub(channel)->StreamStdio(&stdio_context, {});
  EXPECT_TRUE(CanCall(channel));

  const auto began = std::chrono::steady_clock::now();
  Shutdown(channel);
  int status = -1;
  ASSERT_TRUE(child->Wait(kLimit, &status));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(NothingLeft());
  EXPECT_EQ(child->ReadStdout(kLimit), "");
  EXPECT_EQ(child->ReadStderr(kLimit), "");
  ::plugin::StdioData data;
  EXPECT_FALSE(stdio->Read(&data));
  stdio->Finish();
}

TEST_F(ServeTest, WithoutClientCertificateThereIsNoTls) {
  auto variables = HostVariables();
  variables.erase("PLUGIN_CLIENT_CERT");
  const auto child = StartServing(variables);
  EXPECT_EQ(handshake_.fields[5], "");
  EXPECT_TRUE(CanCall(Channel()));
  Shutdown(Channel());
  int status = -1;
  EXPECT_TRUE(child->Wait(kLimit, &status));
}

TEST_F(ServeTest, NamesMultiplexingOnlyIfAsked) {
  auto variables = HostVariables();
  variables["PLUGIN_MULTIPLEX_GRPC"] = "true";
  const auto child = StartServing(variables);
  ASSERT_EQ(handshake_.fields.size(), 7U);
  EXPECT_EQ(handshake_.fields[6], "false");
}

TEST_F(ServeTest, ALongTempFolderIsNoProblem) {
  const std::string deep = temp_ + "/" + std::string(110, 'd');
  std::filesystem::create_directory(deep);
  auto variables = HostVariables();
  variables["TMPDIR"] = deep;
  const auto child = StartServing(variables);
  EXPECT_EQ(handshake_.network, "unix");
  EXPECT_THAT(handshake_.address, StartsWith("/tmp/"));
  EXPECT_TRUE(CanCall(Channel()));
  Shutdown(Channel());
  int status = -1;
  EXPECT_TRUE(child->Wait(kLimit, &status));
  EXPECT_FALSE(std::filesystem::exists(handshake_.address));
}

TEST_F(ServeTest, WithoutAnyFolderItServesOverTcpInTheRange) {
  auto variables = HostVariables();
  variables["PLUGIN_UNIX_SOCKET_DIR"] = temp_ + "/missing";
  const auto child = StartServing(variables);
  EXPECT_EQ(handshake_.network, "tcp");
  const auto port = std::stoi(handshake_.address.substr(handshake_.address.find(':') + 1));
  EXPECT_GE(port, 10000);
  EXPECT_LE(port, 25000);
  EXPECT_TRUE(CanCall(Channel()));
}

TEST_F(ServeTest, NeverPlaintextOverTcp) {
  auto variables = HostVariables();
  variables.erase("PLUGIN_CLIENT_CERT");
  variables["PLUGIN_UNIX_SOCKET_DIR"] = temp_ + "/missing";
  const auto child = Start(variables);
  int status = -1;
  ASSERT_TRUE(child->Wait(kLimit, &status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(child->ReadStdout(kLimit), "");
  EXPECT_THAT(child->ReadStderr(kLimit), HasSubstr("/missing: No such file"));
}

TEST_F(ServeTest, ABrokenClientCertificateIsAStartError) {
  auto variables = HostVariables();
  variables["PLUGIN_CLIENT_CERT"] = "broken";
  const auto child = Start(variables);
  int status = -1;
  ASSERT_TRUE(child->Wait(kLimit, &status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(child->ReadStdout(kLimit), "");
  EXPECT_THAT(child->ReadStderr(kLimit),
              HasSubstr("PLUGIN_CLIENT_CERT wants one certificate in PEM form"));
  EXPECT_TRUE(NothingLeft());
}

TEST_F(ServeTest, APersonGetsAHintAndNothingOnStdout) {
  for (const char* cookie : {"", "wrong"}) {
    auto variables = HostVariables();
    variables["TF_PLUGIN_MAGIC_COOKIE"] = cookie;
    const auto child = Start(variables);
    int status = -1;
    ASSERT_TRUE(child->Wait(kLimit, &status));
    EXPECT_EQ(WEXITSTATUS(status), 1);
    EXPECT_EQ(child->ReadStdout(kLimit), "");
    EXPECT_THAT(child->ReadStderr(kLimit), HasSubstr("is a plugin"));
    EXPECT_TRUE(NothingLeft());
  }
}

struct FlagCase {
  const char* flag;
  int exit_code;
  const char* out;
  const char* err;
};
TEST_F(ServeTest, FlagsNeedNoCookie) {
  for (const auto& c :
       std::vector<FlagCase>{{"--version", 0, "terraform-provider-trial 1.2.3\n", ""},
                             {"-version", 0, "terraform-provider-trial 1.2.3\n", ""},
                             {"--help", 0, "required_providers", ""},
                             {"-h", 0, "--debug", ""},
                             {"--nonsense", 2, "", "unknown argument \"--nonsense\""},
                             {"serve", 2, "", "see --help"}}) {
    const auto child = Start({{"SLESS_TEST_IS_PLUGIN", "1"}}, {c.flag});
    int status = -1;
    ASSERT_TRUE(child->Wait(kLimit, &status));
    EXPECT_EQ(WEXITSTATUS(status), c.exit_code) << c.flag;
    EXPECT_THAT(child->ReadStdout(kLimit), HasSubstr(c.out)) << c.flag;
    EXPECT_THAT(child->ReadStderr(kLimit), HasSubstr(c.err)) << c.flag;
  }
}

TEST_F(ServeTest, ATermSignalEndsGracefullyAndAnInterruptNot) {
  const auto child = StartServing(HostVariables());
  child->Signal(SIGINT);
  child->Signal(SIGPIPE);
  EXPECT_TRUE(CanCall(Channel()));
  child->Signal(SIGTERM);
  int status = -1;
  ASSERT_TRUE(child->Wait(kLimit, &status));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(NothingLeft());
}

tfplugin6::ApplyResourceChange::Request ApplyRequest(std::string_view act, int64_t wait_ms,
                                                     std::string_view name = "n") {
  tfplugin6::ApplyResourceChange::Request request;
  request.set_type_name("trial_thing");
  const auto type = testing::ThingType();
  EXPECT_TRUE(ToProto(testing::Thing(name, act, wait_ms, cty::Value::Unknown()), type, "",
                      request.mutable_planned_state()));
  EXPECT_TRUE(ToProto(testing::Thing(name, act, wait_ms, cty::Value::Null()), type, "",
                      request.mutable_config()));
  return request;
}

TEST_F(ServeTest, ATermSignalLetsARunningApplyReturnItsState) {
  const auto child = StartServing(HostVariables());
  const auto channel = Channel();
  tfplugin6::ApplyResourceChange::Response response;
  grpc::Status status;
  const testing::Begun begun;
  std::jthread apply([&] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    status = tfplugin6::Provider::NewStub(channel)->ApplyResourceChange(
        &context, ApplyRequest("wait", 0, begun.name()), &response);
  });
  ASSERT_TRUE(begun.Wait());
  child->Signal(SIGTERM);
  apply.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  const auto state = FromProto(response.new_state(), testing::ThingType(), "state");
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->Get("id").AsString(), "id-1");
  int exit_status = -1;
  ASSERT_TRUE(child->Wait(kLimit, &exit_status));
}

TEST_F(ServeTest, TheHostsVariablesAreNotInherited) {
  const auto child = StartServing(HostVariables());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  tfplugin6::ApplyResourceChange::Response response;
  ASSERT_TRUE(tfplugin6::Provider::NewStub(Channel())
                  ->ApplyResourceChange(&context, ApplyRequest("env", 0), &response)
                  .ok());
  const auto state = FromProto(response.new_state(), testing::ThingType(), "state");
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->Get("text").AsString(), "gone");
}

TEST_F(ServeTest, ShutdownDoesNotWaitForADeafCall) {
  const auto child = StartServing(HostVariables());
  const auto channel = Channel();
  const testing::Begun begun;
  std::jthread apply([&] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    tfplugin6::ApplyResourceChange::Response response;
    tfplugin6::Provider::NewStub(channel)->ApplyResourceChange(
        &context, ApplyRequest("hang", 15000, begun.name()), &response);
  });
  ASSERT_TRUE(begun.Wait());
  const auto began = std::chrono::steady_clock::now();
  Shutdown(channel);
  int status = -1;
  ASSERT_TRUE(child->Wait(kLimit, &status));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1500ms);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(NothingLeft());
}

TEST_F(ServeTest, EndsWhenTheHostDies) {
  // A process between us and the plugin is the host; its death makes the plugin an orphan.
  int to_test[2];
  ASSERT_EQ(pipe2(to_test, O_CLOEXEC), 0);
  const pid_t host = fork();
  if (host == 0) {
    auto child = Child::Start(ThisProgram(), {}, HostVariables());
    const std::string line = (*child)->ReadLine(kLimit);
    const pid_t pid = (*child)->pid();
    [[maybe_unused]] auto n = write(to_test[1], &pid, sizeof pid);
    n = write(to_test[1], line.data(), line.size());
    pause();
    _exit(0);
  }
  close(to_test[1]);
  pid_t plugin = 0;
  ASSERT_EQ(read(to_test[0], &plugin, sizeof plugin), static_cast<ssize_t>(sizeof plugin));
  char line[8192];
  ASSERT_GT(read(to_test[0], line, sizeof line), 0);
  ASSERT_EQ(kill(plugin, 0), 0);
  kill(host, SIGKILL);
  waitpid(host, nullptr, 0);
  const auto end = std::chrono::steady_clock::now() + kLimit;
  // The socket's folder goes with the process.
  while (!NothingLeft() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(NothingLeft());
  close(to_test[0]);
}

TEST_F(ServeTest, DebugModeTellsHowToAttach) {
  // No cookie, no TLS; the host's variables say nothing.
  const auto child =
      Start({{"SLESS_TEST_IS_PLUGIN", "1"}, {"TMPDIR", temp_}, {"ASAN_OPTIONS", "detect_leaks=0"}},
            {"-debug"});
  std::string text;
  while (!base::Contains(text, "TF_REATTACH_PROVIDERS")) {
    const std::string line = child->ReadLine(kLimit);
    ASSERT_NE(line, "") << child->ReadStderr(100ms);
    text = line;
  }
  const size_t from = text.find('\'') + 1;
  const auto json = base::ParseJson(text.substr(from, text.rfind('\'') - from));
  ASSERT_TRUE(json.has_value()) << text;
  const auto& server = (*json)["test/trial"];
  EXPECT_EQ(server["Pid"], child->pid());
  EXPECT_EQ(server["Test"], true);
  EXPECT_EQ(server["ProtocolVersion"], 6);
  handshake_.network = "unix";
  handshake_.address = server["Addr"]["String"];
  EXPECT_TRUE(CanCall(Channel()));
  EXPECT_TRUE(CanCall(Channel()));
  child->Signal(SIGINT);
  int status = -1;
  ASSERT_TRUE(child->Wait(kLimit, &status));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(NothingLeft());
}

TEST_F(ServeTest, ACrashIsShownAsHostsExpect) {
  const auto child = StartServing(HostVariables());
  const auto channel = Channel();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  tfplugin6::ApplyResourceChange::Response response;
  EXPECT_FALSE(tfplugin6::Provider::NewStub(channel)
                   ->ApplyResourceChange(&context, ApplyRequest("crash", 0), &response)
                   .ok());
  int status = -1;
  ASSERT_TRUE(child->Wait(kLimit, &status));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  const std::string text = child->ReadStderr(kLimit);
  EXPECT_THAT(text, StartsWith("panic: terraform-provider-trial 1.2.3: SIGABRT")) << text;
  EXPECT_THAT(text, HasSubstr("\n  at 0x"));
  EXPECT_TRUE(NothingLeft());
}

TEST_F(ServeTest, LogsJsonLinesThatHostsParse) {
  auto variables = HostVariables();
  variables["TF_LOG_PROVIDER_TRIAL"] = "trace";
  const auto child = StartServing(variables);
  const auto channel = Channel();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  tfplugin6::ApplyResourceChange::Response response;
  ASSERT_TRUE(tfplugin6::Provider::NewStub(channel)
                  ->ApplyResourceChange(&context, ApplyRequest("", 0), &response)
                  .ok());
  Shutdown(channel);
  int served = 0;
  int created = 0;
  for (const std::string& line : base::Split(child->ReadStderr(kLimit), '\n')) {
    if (line.empty()) continue;
    const auto json = base::ParseJson(line);
    ASSERT_TRUE(json.has_value()) << line;
    EXPECT_TRUE((*json)["@message"].is_string());
    EXPECT_TRUE((*json)["@level"].is_string());
    EXPECT_THAT((*json)["@timestamp"].get<std::string>(),
                ::testing::MatchesRegex(
                    "[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+\\.[0-9][0-9][0-9][0-9][0-9][0-9]Z"));
    EXPECT_EQ((*json)["tf_rpc"], "ApplyResourceChange");
    EXPECT_EQ((*json)["tf_resource_type"], "trial_thing");
    EXPECT_EQ((*json)["tf_req_id"].get<std::string>().size(), 36U);
    if ((*json)["@message"] == "served request") {
      ++served;
      EXPECT_TRUE((*json)["tf_req_duration_ms"].is_number());
    }
    if ((*json)["@message"] == "created") ++created;
  }
  EXPECT_EQ(served, 1);
  EXPECT_EQ(created, 1);
}

TEST_F(ServeTest, FilesAreClosedOnExecAndStdoutIsSilent) {
  const auto child = StartServing(HostVariables());
  EXPECT_TRUE(CanCall(Channel()));
  int seen = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(child->pid()) + "/fdinfo")) {
    const int fd = std::stoi(entry.path().filename());
    if (fd <= 2) continue;
    std::ifstream in(entry.path());
    const std::string text(std::istreambuf_iterator<char>(in), {});
    if (text.empty()) continue;  // a connection that was closed meanwhile
    const size_t at = text.find("flags:");
    ASSERT_NE(at, std::string::npos);
    EXPECT_TRUE(std::stoul(text.substr(at + 6), nullptr, 8) & O_CLOEXEC)
        << "fd " << fd << " "
        << std::filesystem::read_symlink("/proc/" + std::to_string(child->pid()) + "/fd/" +
                                         std::to_string(fd))
        << ": " << text;
    ++seen;
  }
  EXPECT_GE(seen, 3);
  EXPECT_EQ(std::filesystem::read_symlink("/proc/" + std::to_string(child->pid()) + "/fd/1"),
            "/dev/null");
}

}  // namespace
}  // namespace sless::plugin

int main(int argc, char** argv) {
  if (std::getenv("SLESS_TEST_IS_PLUGIN") != nullptr) {
    return sless::plugin::Serve(argc, argv, environ,
                                {.name = "trial", .address = "test/trial", .version = "1.2.3"},
                                &sless::plugin::testing::MakeTrialProvider);
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
