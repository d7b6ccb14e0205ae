// The server in this process, with a client that does what Terraform's does.

#include "provider/plugin/server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <thread>

#include "proto/goplugin/broker.grpc.pb.h"
#include "proto/goplugin/controller.grpc.pb.h"
#include "proto/goplugin/health.grpc.pb.h"
#include "proto/goplugin/stdio.grpc.pb.h"
#include "proto/tfplugin6/tfplugin6.grpc.pb.h"
#include "provider/plugin/convert.h"
#include "provider/plugin/socket_folder.h"
#include "provider/plugin/testing/fake_host.h"
#include "provider/plugin/testing/trial_provider.h"

namespace sless::plugin {
namespace {

using namespace std::chrono_literals;
using cty::Value;
using testing::Begun;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Thing;
using testing::ThingType;

struct Rig {
  explicit Rig(const testing::HostIdentity* host = nullptr) {
    folder = std::move(*SocketFolder::Make({"/tmp"}, "tfp-test-"));
    Server::Options options{
        .provider = testing::MakeTrialProvider(),
        .clock = clock,
        .log = {-1, std::nullopt},
        .listener = *Listener::Open({Endpoint::Network::kUnix, folder->socket_path()}),
        .on_shutdown = [this] { ++shutdowns; }};
    if (host != nullptr) {
      options.identity = *MakeServerIdentity(clock.Now());
      options.client_certificate = host->certificate_pem;
      server_der = options.identity->certificate_der;
    }
    auto started = Server::Start(std::move(options));
    if (!started) throw std::runtime_error(base::ToString(started.error()));
    server = std::move(*started);
  }
  std::string target() const { return "unix:" + folder->socket_path(); }
  std::shared_ptr<grpc::Channel> Plain() const { return testing::Connect(target(), nullptr, ""); }

  base::SystemClock clock;
  std::unique_ptr<SocketFolder> folder;
  std::string server_der;
  std::atomic<int> shutdowns = 0;
  std::unique_ptr<Server> server;
};

// A call must never hang a test.
struct Context : grpc::ClientContext {
  explicit Context(std::chrono::milliseconds limit = 20s) {
    set_deadline(std::chrono::system_clock::now() + limit);
  }
};

tfplugin6::DynamicValue Encode(const Value& value, const cty::Type& type) {
  tfplugin6::DynamicValue out;
  const auto status = ToProto(value, type, "test", &out);
  EXPECT_TRUE(status.has_value()) << base::ToString(status.error());
  return out;
}

tfplugin6::ApplyResourceChange::Request ApplyRequest(std::string_view act, int64_t wait_ms,
                                                     std::string_view name = "n") {
  tfplugin6::ApplyResourceChange::Request request;
  request.set_type_name("trial_thing");
  *request.mutable_prior_state() = Encode(Value::Null(), ThingType());
  *request.mutable_planned_state() =
      Encode(Thing(name, act, wait_ms, Value::Unknown()), ThingType());
  *request.mutable_config() = Encode(Thing(name, act, wait_ms, Value::Null()), ThingType());
  return request;
}

Value NewState(const tfplugin6::ApplyResourceChange::Response& response) {
  return FromProto(response.new_state(), ThingType(), "new state").value_or(Value::Null());
}

bool CanCall(const std::shared_ptr<grpc::Channel>& channel) {
  Context context(2s);
  tfplugin6::GetMetadataRpc::Response response;
  return tfplugin6::Provider::NewStub(channel)->GetMetadata(&context, {}, &response).ok();
}

// ---- who may connect ----

TEST(ServerTls, OnlyTheHostsCertificateMayConnect) {
  const auto host = testing::MakeHostIdentity();
  const auto stranger = testing::MakeHostIdentity();
  Rig rig(&host);
  EXPECT_TRUE(CanCall(testing::Connect(rig.target(), &host, rig.server_der)));
  EXPECT_FALSE(CanCall(testing::Connect(rig.target(), &stranger, rig.server_der)))
      << "a foreign certificate";
  const testing::HostIdentity nobody;
  EXPECT_FALSE(CanCall(testing::Connect(rig.target(), &nobody, rig.server_der)))
      << "no certificate";
  EXPECT_FALSE(CanCall(rig.Plain())) << "plaintext";
  EXPECT_TRUE(CanCall(testing::Connect(rig.target(), &host, rig.server_der)))
      << "the server still serves";
}

TEST(ServerTls, ABrokenCertificateOfTheHostLetsNobodyIn) {
  const auto host = testing::MakeHostIdentity();
  testing::HostIdentity broken = host;
  broken.certificate_pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
  Rig rig(&broken);
  EXPECT_FALSE(CanCall(testing::Connect(rig.target(), &host, rig.server_der)));
  EXPECT_FALSE(CanCall(rig.Plain()));
}

TEST(Listener, AnAddressInUseIsUnavailable) {
  const auto open = [](std::string address) {
    return Listener::Open({Endpoint::Network::kTcp, std::move(address)});
  };
  const auto first = open("127.0.0.1:0");
  ASSERT_TRUE(first.has_value());
  EXPECT_THAT((*first)->endpoint().address, ::testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]+"));
  // Two providers never share a port, as they would with SO_REUSEPORT.
  const auto second = open((*first)->endpoint().address);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, base::Code::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr("Address already in use"));
}

TEST(Listener, NamesWhatIsNoAddress) {
  for (const Endpoint& endpoint :
       std::vector<Endpoint>{{Endpoint::Network::kUnix, std::string(108, 'a')},
                             {Endpoint::Network::kUnix, "/tmp/no-such-folder-for-sless/rpc.sock"},
                             {Endpoint::Network::kTcp, "127.0.0.1"},
                             {Endpoint::Network::kTcp, "127.0.0.1:"},
                             {Endpoint::Network::kTcp, "127.0.0.1:65536"},
                             {Endpoint::Network::kTcp, "127.0.0.1:80x"},
                             {Endpoint::Network::kTcp, "0.0.0.0:0"}}) {
    const auto opened = Listener::Open(endpoint);
    ASSERT_FALSE(opened.has_value()) << endpoint.address;
    EXPECT_EQ(opened.error().code, base::Code::kUnavailable);
    EXPECT_THAT(opened.error().message, HasSubstr("cannot listen on " + endpoint.address));
  }
}

TEST(Listener, WhatComesBeforeTheServerWaits) {
  base::SystemClock clock;
  auto folder = std::move(*SocketFolder::Make({"/tmp"}, "tfp-test-"));
  auto listener = *Listener::Open({Endpoint::Network::kUnix, folder->socket_path()});
  const auto channel = testing::Connect("unix:" + folder->socket_path(), nullptr, "");
  auto call = std::async(std::launch::async, [&] { return CanCall(channel); });
  ASSERT_EQ(call.wait_for(100ms), std::future_status::timeout);
  const auto server = Server::Start({.provider = testing::MakeTrialProvider(),
                                     .clock = clock,
                                     .log = {-1, std::nullopt},
                                     .listener = std::move(listener),
                                     .on_shutdown = [] {}});
  ASSERT_TRUE(server.has_value());
  EXPECT_TRUE(call.get());
}

// ---- schema and the families of calls ----

TEST(ProviderService, SchemaListsEverything) {
  Rig rig;
  Context context;
  tfplugin6::GetProviderSchema::Response response;
  ASSERT_TRUE(
      tfplugin6::Provider::NewStub(rig.Plain())->GetProviderSchema(&context, {}, &response).ok());
  EXPECT_TRUE(response.provider().has_block());
  EXPECT_EQ(response.resource_schemas().count("trial_thing"), 1U);
  EXPECT_EQ(response.resource_schemas().at("trial_thing").version(), 2);
  EXPECT_EQ(response.data_source_schemas().count("trial_data"), 1U);
  EXPECT_EQ(response.functions().at("repeat").parameters_size(), 2);
  EXPECT_EQ(response.functions().at("repeat").return_().type(), "\"string\"");
  EXPECT_EQ(response.action_schemas().count("trial_steps"), 1U);
  EXPECT_TRUE(response.server_capabilities().plan_destroy());
  EXPECT_TRUE(response.server_capabilities().get_provider_schema_optional());
  EXPECT_TRUE(response.server_capabilities().move_resource_state());
  EXPECT_EQ(response.diagnostics_size(), 0);
}

TEST(ProviderService, MetadataAndIdentitySchemas) {
  Rig rig;
  auto stub = tfplugin6::Provider::NewStub(rig.Plain());
  Context first;
  tfplugin6::GetMetadataRpc::Response metadata;
  ASSERT_TRUE(stub->GetMetadata(&first, {}, &metadata).ok());
  ASSERT_EQ(metadata.resources_size(), 1);
  EXPECT_EQ(metadata.resources(0).type_name(), "trial_thing");
  EXPECT_EQ(metadata.actions_size(), 1);
  Context second;
  tfplugin6::GetResourceIdentitySchemas::Response identities;
  ASSERT_TRUE(stub->GetResourceIdentitySchemas(&second, {}, &identities).ok());
  EXPECT_EQ(identities.identity_schemas_size(), 0);
}

TEST(ProviderService, CreatesAThing) {
  Rig rig;
  Context context;
  tfplugin6::ApplyResourceChange::Response response;
  ASSERT_TRUE(tfplugin6::Provider::NewStub(rig.Plain())
                  ->ApplyResourceChange(&context, ApplyRequest("", 0), &response)
                  .ok());
  EXPECT_EQ(response.diagnostics_size(), 0);
  EXPECT_EQ(NewState(response).Get("id").AsString(), "id-1");
}

TEST(ProviderService, AnUnknownTypeIsADiagnostic) {
  Rig rig;
  Context context;
  auto request = ApplyRequest("", 0);
  request.set_type_name("trial_thingy");
  tfplugin6::ApplyResourceChange::Response response;
  ASSERT_TRUE(tfplugin6::Provider::NewStub(rig.Plain())
                  ->ApplyResourceChange(&context, request, &response)
                  .ok());
  ASSERT_EQ(response.diagnostics_size(), 1);
  EXPECT_EQ(response.diagnostics(0).severity(), tfplugin6::Diagnostic::ERROR);
  EXPECT_THAT(response.diagnostics(0).summary() + response.diagnostics(0).detail(),
              HasSubstr("trial_thingy"));
}

TEST(ProviderService, AnExceptionIsADiagnostic) {
  Rig rig;
  auto stub = tfplugin6::Provider::NewStub(rig.Plain());
  Context first;
  tfplugin6::ApplyResourceChange::Response applied;
  ASSERT_TRUE(stub->ApplyResourceChange(&first, ApplyRequest("throw", 0), &applied).ok());
  ASSERT_GE(applied.diagnostics_size(), 1);
  EXPECT_THAT(applied.diagnostics(0).detail(), HasSubstr("thrown by the trial resource"));
  // What existed when it was thrown is not lost.
  EXPECT_EQ(NewState(applied).Get("id").AsString(), "id-1");

  Context second;
  tfplugin6::ReadDataSource::Request read;
  read.set_type_name("trial_data");
  *read.mutable_config() =
      Encode(Value::Object({{"name", Value::String("throw")}, {"value", Value::Null()}}),
             cty::Type::Object({{"name", cty::Type::String()}, {"value", cty::Type::String()}}));
  tfplugin6::ReadDataSource::Response data;
  ASSERT_TRUE(stub->ReadDataSource(&second, read, &data).ok());
  ASSERT_GE(data.diagnostics_size(), 1);
  EXPECT_THAT(data.diagnostics(0).detail(), HasSubstr("thrown by the trial data source"));
}

TEST(ProviderService, BytesThatAreNoValueAreADiagnosticAndKeepThePriorState) {
  Rig rig;
  Context context;
  auto request = ApplyRequest("", 0);
  *request.mutable_prior_state() = Encode(Thing("old", "", 0, Value::String("id-0")), ThingType());
  request.mutable_planned_state()->set_msgpack("\xdf\xff\xff\xff\xff");
  request.set_planned_private("private");
  tfplugin6::ApplyResourceChange::Response response;
  ASSERT_TRUE(tfplugin6::Provider::NewStub(rig.Plain())
                  ->ApplyResourceChange(&context, request, &response)
                  .ok());
  ASSERT_EQ(response.diagnostics_size(), 1);
  EXPECT_THAT(response.diagnostics(0).detail(), HasSubstr("planned state"));
  EXPECT_THAT(response.diagnostics(0).detail(), HasSubstr("ApplyResourceChange"));
  EXPECT_EQ(NewState(response).Get("id").AsString(), "id-0");
  EXPECT_EQ(response.private_(), "private");
}

TEST(ProviderService, ConfigureReportsWithAPath) {
  Rig rig;
  Context context;
  tfplugin6::ConfigureProvider::Request request;
  request.set_terraform_version("1.11.4");
  *request.mutable_config() = Encode(Value::Object({{"endpoint", Value::String("bad")}}),
                                     cty::Type::Object({{"endpoint", cty::Type::String()}}));
  tfplugin6::ConfigureProvider::Response response;
  ASSERT_TRUE(tfplugin6::Provider::NewStub(rig.Plain())
                  ->ConfigureProvider(&context, request, &response)
                  .ok());
  ASSERT_EQ(response.diagnostics_size(), 1);
  EXPECT_EQ(response.diagnostics(0).attribute().steps(0).attribute_name(), "endpoint");
}

tfplugin6::CallFunction::Response CallRepeat(
    Rig& rig, const std::vector<tfplugin6::DynamicValue>& arguments) {
  Context context;
  tfplugin6::CallFunction::Request request;
  request.set_name("repeat");
  for (const auto& argument : arguments) *request.add_arguments() = argument;
  tfplugin6::CallFunction::Response response;
  EXPECT_TRUE(
      tfplugin6::Provider::NewStub(rig.Plain())->CallFunction(&context, request, &response).ok());
  return response;
}

TEST(ProviderService, FunctionsAnswerOrPointAtAnArgument) {
  Rig rig;
  const auto text = Encode(Value::String("ab"), cty::Type::String());
  const auto number = [](int64_t n) { return Encode(Value::Int(n), cty::Type::Number()); };
  EXPECT_EQ(CallRepeat(rig, {text, number(2)}).result().msgpack(),
            "\xa4"
            "abab");
  const auto negative = CallRepeat(rig, {text, number(-1)});
  EXPECT_EQ(negative.error().text(), "count must not be negative");
  EXPECT_EQ(negative.error().function_argument(), 1);
  const auto many = CallRepeat(rig, {text, number(1), number(1)});
  EXPECT_TRUE(many.has_error());
  EXPECT_FALSE(many.error().has_function_argument());
  tfplugin6::DynamicValue broken;
  broken.set_msgpack("\xc1");
  EXPECT_TRUE(CallRepeat(rig, {text, broken}).has_error());
}

TEST(ProviderService, AnActionEndsWithCompleted) {
  Rig rig;
  auto stub = tfplugin6::Provider::NewStub(rig.Plain());
  for (const int64_t count : {0, 3}) {
    Context context;
    tfplugin6::InvokeAction::Request request;
    request.set_action_type("trial_steps");
    *request.mutable_config() = Encode(Value::Object({{"count", Value::Int(count)}}),
                                       cty::Type::Object({{"count", cty::Type::Number()}}));
    auto reader = stub->InvokeAction(&context, request);
    std::vector<tfplugin6::InvokeAction::Event> events(1);
    while (reader->Read(&events.back())) events.emplace_back();
    events.pop_back();
    ASSERT_TRUE(reader->Finish().ok());
    ASSERT_EQ(events.size(), static_cast<size_t>(count) + 1);
    for (size_t i = 0; i + 1 < events.size(); ++i) EXPECT_TRUE(events[i].has_progress());
    ASSERT_TRUE(events.back().has_completed());
    EXPECT_EQ(events.back().completed().diagnostics_size(), count == 0 ? 1 : 0);
  }
}

/// Calls a method of any kind with an empty message. -> how it ends
grpc::Status CallEmpty(const Rig& rig, const std::string& method) {
  grpc::GenericStub stub(rig.Plain());
  grpc::CompletionQueue queue;
  Context context;
  const auto call = stub.PrepareCall(&context, "/tfplugin6.Provider/" + method, &queue);
  const auto done = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  done();
  const grpc::Slice empty;
  call->WriteLast(grpc::ByteBuffer(&empty, 1), {}, nullptr);
  done();
  grpc::ByteBuffer answer;
  do {
    call->Read(&answer, nullptr);
  } while (done());
  grpc::Status status;
  call->Finish(&status, nullptr);
  done();
  return status;
}

TEST(ProviderService, OnlyStateStoresAreUnimplemented) {
  Rig rig;
  std::ifstream protocol(SLESS_SOURCE_DIR "/proto/tfplugin6/tfplugin6.proto");
  std::set<std::string> unimplemented;
  for (std::string line; std::getline(protocol, line);) {
    if (!line.starts_with("  rpc ")) continue;
    const auto method = line.substr(6, line.find('(') - 6);
    const auto status = CallEmpty(rig, method);
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED)
      unimplemented.insert(method);
    else
      EXPECT_TRUE(status.ok()) << method << ": " << status.error_message();
  }
  EXPECT_THAT(unimplemented, ElementsAre("ConfigureStateStore", "DeleteState", "GetStates",
                                         "LockState", "ReadStateBytes", "UnlockState",
                                         "ValidateStateStoreConfig", "WriteStateBytes"));
}

TEST(ProviderService, LargeMessagesPass) {
  Rig rig;
  Context context;
  auto request = ApplyRequest("big", 0);
  // Above gRPC's own limit of 4 MiB, in both directions.
  *request.mutable_config() =
      Encode(Thing(std::string(5 << 20, 'n'), "big", 0, Value::Null()), ThingType());
  tfplugin6::ApplyResourceChange::Response response;
  const auto status =
      tfplugin6::Provider::NewStub(rig.Plain())->ApplyResourceChange(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(NewState(response).Get("text").AsString().size(), size_t{6} << 20);
}

// ---- many calls, stopping ----

bool StopAll(const std::shared_ptr<grpc::Channel>& channel) {
  Context context;
  tfplugin6::StopProvider::Response stopped;
  return tfplugin6::Provider::NewStub(channel)->StopProvider(&context, {}, &stopped).ok();
}

TEST(ProviderService, FiftyLongCallsRunAtOnceAndOthersAreServed) {
  Rig rig;
  const auto channel = rig.Plain();
  const Begun begun;
  std::atomic<int> done = 0;
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 50; ++i) {
      threads.emplace_back([&] {
        Context context;
        tfplugin6::ApplyResourceChange::Response response;
        const auto status = tfplugin6::Provider::NewStub(channel)->ApplyResourceChange(
            &context, ApplyRequest("wait", 0, begun.name()), &response);
        if (!status.ok() || NewState(response).Get("text").AsString() != "stopped") ++failed;
        ++done;
      });
    }
    EXPECT_TRUE(begun.Wait(50)) << "all at once: none ends by itself";
    EXPECT_TRUE(CanCall(channel));
    EXPECT_EQ(done, 0);
    EXPECT_TRUE(StopAll(channel));
  }
  EXPECT_EQ(failed, 0);
}

TEST(ProviderService, StopProviderEndsRunningCallsAndLaterOnesRun) {
  Rig rig;
  tfplugin6::ApplyResourceChange::Response response;
  grpc::Status status;
  const Begun begun;
  std::jthread apply([&] {
    Context context;
    status = tfplugin6::Provider::NewStub(rig.Plain())
                 ->ApplyResourceChange(&context, ApplyRequest("wait", 0, begun.name()), &response);
  });
  EXPECT_TRUE(begun.Wait());
  EXPECT_TRUE(StopAll(rig.Plain()));
  apply.join();
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(NewState(response).Get("text").AsString(), "stopped");
  ASSERT_EQ(response.diagnostics_size(), 1);
  Context later;
  tfplugin6::ApplyResourceChange::Response next;
  ASSERT_TRUE(tfplugin6::Provider::NewStub(rig.Plain())
                  ->ApplyResourceChange(&later, ApplyRequest("", 0), &next)
                  .ok());
  EXPECT_EQ(next.diagnostics_size(), 0);
}

TEST(Server, ACallThatTheHostGivesUpIsStopped) {
  Rig rig;
  Context context;
  const Begun begun;
  std::jthread apply([&] {
    tfplugin6::ApplyResourceChange::Response response;
    const auto status =
        tfplugin6::Provider::NewStub(rig.Plain())
            ->ApplyResourceChange(&context, ApplyRequest("wait", 0, begun.name()), &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  });
  EXPECT_TRUE(begun.Wait());
  context.TryCancel();
  apply.join();
  // The handler itself ends only when it is told: then the server can stop in far less than the 30
  // s that it waits.
  const auto began = std::chrono::steady_clock::now();
  std::jthread look([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      rig.server->StopCancelledCalls();
      std::this_thread::sleep_for(10ms);
    }
  });
  EXPECT_TRUE(rig.server->Stop(5s));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 4s);
}

TEST(Server, StopSaysWhenACallDoesNotEnd) {
  Rig rig;
  const Begun begun;
  std::jthread apply([&] {
    Context context;
    tfplugin6::ApplyResourceChange::Response response;
    tfplugin6::Provider::NewStub(rig.Plain())
        ->ApplyResourceChange(&context, ApplyRequest("hang", 1500, begun.name()), &response);
  });
  EXPECT_TRUE(begun.Wait());
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(rig.server->Stop(200ms));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
}

// ---- the services beside the provider ----

TEST(SideServices, ManySilentStreamsHoldNoThreads) {
  Rig rig;
  const auto channel = rig.Plain();
  struct Open {
    Context context;
    std::unique_ptr<grpc::ClientReader<::plugin::StdioData>> stdio;
  };
  auto stdio = ::plugin::GRPCStdio::NewStub(channel);
  auto broker = ::plugin::GRPCBroker::NewStub(channel);
  std::vector<std::unique_ptr<Open>> open;
  for (int i = 0; i < 60; ++i) {
    open.push_back(std::make_unique<Open>());
    open.back()->stdio = stdio->StreamStdio(&open.back()->context, {});
  }
  Context broker_context;
  auto stream = broker->StartStream(&broker_context);
  ::plugin::ConnInfo info;
  info.set_service_id(1);
  EXPECT_TRUE(stream->Write(info));
  EXPECT_TRUE(stream->Write(info));
  EXPECT_TRUE(CanCall(channel));

  // All of them end when the server does, by an OK.
  std::atomic<int> ok = 0;
  std::vector<std::jthread> readers;
  for (auto& one : open) {
    readers.emplace_back([&ok, &one] {
      ::plugin::StdioData data;
      EXPECT_FALSE(one->stdio->Read(&data));
      if (one->stdio->Finish().ok()) ++ok;
    });
  }
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(rig.server->Stop(3s));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 2s);
  readers.clear();
  EXPECT_EQ(ok, 60);
}

TEST(SideServices, AClientMayLeaveItsStreams) {
  Rig rig;
  for (int i = 0; i < 20; ++i) {
    const auto channel = rig.Plain();
    Context context;
    auto stream = ::plugin::GRPCStdio::NewStub(channel)->StreamStdio(&context, {});
    context.TryCancel();
    ::plugin::StdioData data;
    EXPECT_FALSE(stream->Read(&data));
    stream->Finish();
  }
  EXPECT_TRUE(CanCall(rig.Plain()));
}

TEST(SideServices, ShutdownAnswersAndSignals) {
  Rig rig;
  Context context;
  ::plugin::Empty answer;
  EXPECT_TRUE(::plugin::GRPCController::NewStub(rig.Plain())->Shutdown(&context, {}, &answer).ok());
  EXPECT_EQ(rig.shutdowns, 1);
}

TEST(SideServices, HealthKnowsThePlugin) {
  Rig rig;
  auto stub = grpc::health::v1::Health::NewStub(rig.Plain());
  grpc::health::v1::HealthCheckRequest request;
  request.set_service("plugin");
  grpc::health::v1::HealthCheckResponse response;
  Context first;
  ASSERT_TRUE(stub->Check(&first, request, &response).ok());
  EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::SERVING);
  Context watch_context;
  auto watch = stub->Watch(&watch_context, request);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::SERVING);
  request.set_service("other");
  Context second;
  EXPECT_EQ(stub->Check(&second, request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
  watch_context.TryCancel();
}

}  // namespace
}  // namespace sless::plugin
