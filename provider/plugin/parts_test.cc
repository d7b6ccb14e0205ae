// The small parts of the transport: certificate, socket folder, running calls, conversion.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "client/base/testing/result_matchers.h"
#include "provider/plugin/auto_mtls.h"
#include "provider/plugin/convert.h"
#include "provider/plugin/der.h"
#include "provider/plugin/running_calls.h"
#include "provider/plugin/socket_folder.h"
#include "provider/plugin/testing/fake_host.h"

namespace sless::plugin {
namespace {

using cty::Type;
using cty::Value;

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "plugin-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::string path_;
};

// ---- auto_mtls ----

TEST(AutoMtls, MakesWhatHostsAccept) {
  const base::SystemClock clock;
  const auto identity = MakeServerIdentity(clock.Now());
  ASSERT_TRUE(identity.has_value()) << base::ToString(identity.error());

  const auto* der = reinterpret_cast<const unsigned char*>(identity->certificate_der.data());
  X509* certificate = d2i_X509(nullptr, &der, static_cast<long>(identity->certificate_der.size()));
  ASSERT_NE(certificate, nullptr);
  EXPECT_EQ(
      X509_check_host(certificate, "localhost", 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr),
      1);
  EXPECT_EQ(X509_check_host(certificate, "example.com", 0, 0, nullptr), 0);

  std::time_t half_minute_ago = std::time(nullptr) - 30;
  std::time_t next_month = std::time(nullptr) + 30 * 86400;
  EXPECT_LT(X509_cmp_time(X509_get0_notBefore(certificate), &half_minute_ago), 0);
  EXPECT_GT(X509_cmp_time(X509_get0_notAfter(certificate), &next_month), 0);
  EXPECT_TRUE(X509_get_extended_key_usage(certificate) & XKU_SSL_SERVER);
  EXPECT_TRUE(X509_get_key_usage(certificate) & KU_DIGITAL_SIGNATURE);

  const ASN1_INTEGER* serial = X509_get0_serialNumber(certificate);
  EXPECT_LE(serial->length, 20);
  EXPECT_EQ(serial->type, V_ASN1_INTEGER);  // not V_ASN1_NEG_INTEGER

  EVP_PKEY* key = X509_get0_pubkey(certificate);
  char curve[64] = "";
  size_t length = 0;
  EXPECT_EQ(EVP_PKEY_get_group_name(key, curve, sizeof curve, &length), 1);
  EXPECT_STREQ(curve, "prime256v1");
  EXPECT_EQ(X509_verify(certificate, key), 1);
  X509_free(certificate);
}

TEST(AutoMtls, EveryRunHasAKeyOfItsOwn) {
  const base::SystemClock clock;
  const auto a = MakeServerIdentity(clock.Now());
  const auto b = MakeServerIdentity(clock.Now());
  ASSERT_TRUE(a && b);
  EXPECT_NE(a->key_pem.Reveal(), b->key_pem.Reveal());
  EXPECT_NE(a->certificate_der, b->certificate_der);
}

TEST(AutoMtls, ChecksTheHostsCertificate) {
  EXPECT_TRUE(CheckCertificate(testing::MakeHostIdentity().certificate_pem).has_value());
  for (const std::string& bad :
       {std::string("x"),
        std::string("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        testing::MakeHostIdentity().key_pem, std::string(1 << 16, '-')}) {
    const auto status = CheckCertificate(bad);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, base::Code::kInvalidArgument);
    EXPECT_EQ(status.error().message.find(bad.substr(0, 40)),
              bad.size() < 3 ? status.error().message.find(bad) : std::string::npos);
  }
}

struct DerCase {
  std::string got;
  std::string want;
};
TEST(Der, HasTheShortestForm) {
  using namespace std::literals;
  for (const auto& [got, want] : std::vector<DerCase>{
           {der::Integer("\0\0\x01"sv), "\x02\x01\x01"},
           {der::Integer("\x80"sv), "\x02\x02\0\x80"s},
           {der::Integer(""sv), "\x02\x01\0"s},
           {der::BitString("\x8c"sv, 2), "\x03\x02\x02\x8c"},
           {der::Sequence(std::string(127, 'a')), "\x30\x7f" + std::string(127, 'a')},
           {der::Sequence(std::string(128, 'a')), "\x30\x81\x80" + std::string(128, 'a')},
           {der::OctetString(std::string(300, 'a')), "\x04\x82\x01\x2c" + std::string(300, 'a')},
           {der::Time(0),
            "\x17\x0d"
            "700101000000Z"},
           {der::Time(2524607999),
            "\x17\x0d"
            "491231235959Z"},
           {der::Time(2524608000),
            "\x18\x0f"
            "20500101000000Z"},
           {der::Pem("X", std::string(49, '\0')),
            "-----BEGIN X-----\n" + std::string(64, 'A') + "\nAA==\n-----END X-----\n"}}) {
    EXPECT_EQ(got, want);
  }
}

// ---- socket_folder ----

TEST(SocketFolder, IsPrivateAndGoesAway) {
  TempFolder temp;
  {
    const auto folder = SocketFolder::Make({temp.path()}, "tfp-");
    ASSERT_TRUE(folder.has_value()) << base::ToString(folder.error());
    const std::filesystem::path socket((*folder)->socket_path());
    struct stat info {};
    ASSERT_EQ(stat(socket.parent_path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U);
    std::ofstream(socket.string()) << "";  // stands for the socket
    EXPECT_TRUE((*folder)->SetAccess("").has_value());
    ASSERT_EQ(stat(socket.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U);
  }
  EXPECT_TRUE(temp.empty());
}

TEST(SocketFolder, TakesTheFirstParentThatWorks) {
  TempFolder temp;
  const std::string deep = temp.path() + "/" + std::string(100, 'd');
  std::filesystem::create_directory(deep);
  const auto folder = SocketFolder::Make({"", deep, "/does/not/exist", temp.path()}, "tfp-");
  ASSERT_TRUE(folder.has_value());
  EXPECT_LE((*folder)->socket_path().size(), kMaxSocketPath);
  EXPECT_TRUE((*folder)->socket_path().starts_with(temp.path() + "/tfp-"));
  EXPECT_TRUE(std::filesystem::is_empty(deep));
}

TEST(SocketFolder, NamesEveryReason) {
  const auto folder = SocketFolder::Make({std::string(120, 'l'), "/does/not/exist"}, "tfp-");
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().code, base::Code::kUnavailable);
  EXPECT_THAT(folder.error().message, ::testing::HasSubstr("at most 107 are possible"));
  EXPECT_THAT(folder.error().message, ::testing::HasSubstr("/does/not/exist: No such file"));
}

TEST(SocketFolder, GivesTheSocketToAGroup) {
  TempFolder temp;
  const auto folder = SocketFolder::Make({temp.path()}, "tfp-");
  ASSERT_TRUE(folder.has_value());
  std::ofstream((*folder)->socket_path()) << "";
  ASSERT_TRUE((*folder)->SetAccess(std::to_string(getgid())).has_value());
  struct stat info {};
  ASSERT_EQ(stat((*folder)->socket_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660U);
  const auto unknown = (*folder)->SetAccess("no-such-group-here");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_THAT(unknown.error().message, ::testing::HasSubstr("no-such-group-here"));
}

// ---- running_calls ----

TEST(RunningCalls, StopsThoseThatRunAndNoLaterOnes) {
  RunningCalls calls;
  auto first = calls.Begin([] { return false; });
  {
    auto ended = calls.Begin([] { return false; });
  }
  EXPECT_EQ(calls.size(), 1U);
  calls.StopAll();
  EXPECT_TRUE(first.stop_token().stop_requested());
  const auto later = calls.Begin([] { return false; });
  EXPECT_FALSE(later.stop_token().stop_requested());
}

TEST(RunningCalls, StopsOnlyTheCallThatTheHostGaveUp) {
  RunningCalls calls;
  std::atomic<bool> cancelled = false;
  const auto mine = calls.Begin([&] { return cancelled.load(); });
  const auto other = calls.Begin([] { return false; });
  calls.StopCancelled();
  EXPECT_FALSE(mine.stop_token().stop_requested());
  cancelled = true;
  calls.StopCancelled();
  EXPECT_TRUE(mine.stop_token().stop_requested());
  EXPECT_FALSE(other.stop_token().stop_requested());
}

TEST(RunningCalls, ManyThreadsBeginAndStop) {
  RunningCalls calls;
  std::atomic<int> stopped = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          auto call = calls.Begin([] { return false; });
          std::stop_callback count(call.stop_token(), [&] { ++stopped; });
          if (i % 50 == 0) calls.StopAll();
          calls.StopCancelled();
        }
      });
    }
  }
  EXPECT_EQ(calls.size(), 0U);
  EXPECT_GE(stopped, 8 * 10);
}

// ---- convert ----

struct Utf8Case {
  std::string in;
  std::string want;
};
TEST(Convert, TextsAreAlwaysUtf8) {
  for (const auto& [in, want] :
       std::vector<Utf8Case>{{"plain", "plain"},
                             {"größe €", "größe €"},
                             {"a\xff"
                              "b",
                              "a\xef\xbf\xbd"
                              "b"},
                             {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
                             {"\xe2\x82\xac\xe2", "\xe2\x82\xac\xef\xbf\xbd"},
                             {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
                             {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"}}) {
    EXPECT_EQ(ToUtf8(in), want);
  }
}

TEST(Convert, KeepsIndexZeroAndKeys) {
  const auto path = ToProto(cty::Path("a").Index(0).Key("k").Attribute("b"));
  ASSERT_EQ(path.steps_size(), 4);
  EXPECT_EQ(path.steps(0).attribute_name(), "a");
  EXPECT_EQ(path.steps(1).selector_case(), tfplugin6::AttributePath::Step::kElementKeyInt);
  EXPECT_EQ(path.steps(2).element_key_string(), "k");
  EXPECT_EQ(path.steps(3).attribute_name(), "b");
}

TEST(Convert, DiagnosticsHaveASeverityAndAPathOnlyIfTheyHaveOne) {
  framework::Diagnostics diagnostics;
  diagnostics.AddError(cty::Path("x"), "S", "D \xff");
  diagnostics.AddWarning("W", "d");
  ProtoDiagnostics out;
  Append(diagnostics, out);
  ASSERT_EQ(out.size(), 2);
  EXPECT_EQ(out[0].severity(), tfplugin6::Diagnostic::ERROR);
  EXPECT_EQ(out[0].detail(), "D \xef\xbf\xbd");
  EXPECT_TRUE(out[0].has_attribute());
  EXPECT_EQ(out[1].severity(), tfplugin6::Diagnostic::WARNING);
  EXPECT_FALSE(out[1].has_attribute());
}

TEST(Convert, SchemaHasEveryFlag) {
  using namespace framework;  // NOLINT
  const Schema schema{
      .version = 3,
      .description = "D",
      .attributes = {{"a", String(), {.required = true, .sensitive = true, .description = "*A*"}},
                     {"b",
                      ListNested({{"c", Int64(), {.optional = true, .computed = true}}}),
                      {.optional = true}},
                     {"w",
                      MapOf(Type::String()),
                      {.optional = true, .write_only = true, .deprecation = "use a"}}},
      .blocks = {{.name = "timeouts",
                  .nesting = Nesting::kSingle,
                  .attributes = {{"create", String(), {.optional = true}}}},
                 {.name = "rule", .nesting = Nesting::kSet, .min_items = 1, .max_items = 4}}};
  const auto proto = ToProto(schema);
  EXPECT_EQ(proto.version(), 3);
  const auto& block = proto.block();
  EXPECT_EQ(block.description_kind(), tfplugin6::MARKDOWN);
  ASSERT_EQ(block.attributes_size(), 3);
  EXPECT_EQ(block.attributes(0).type(), "\"string\"");
  EXPECT_TRUE(block.attributes(0).required());
  EXPECT_TRUE(block.attributes(0).sensitive());
  EXPECT_EQ(block.attributes(0).description(), "*A*");
  EXPECT_FALSE(block.attributes(0).has_nested_type());
  EXPECT_EQ(block.attributes(1).type(), "");
  EXPECT_EQ(block.attributes(1).nested_type().nesting(), tfplugin6::Schema::Object::LIST);
  EXPECT_TRUE(block.attributes(1).nested_type().attributes(0).computed());
  EXPECT_EQ(block.attributes(2).type(), R"(["map","string"])");
  EXPECT_TRUE(block.attributes(2).write_only());
  EXPECT_TRUE(block.attributes(2).deprecated());
  EXPECT_EQ(block.attributes(2).deprecation_message(), "use a");
  ASSERT_EQ(block.block_types_size(), 2);
  EXPECT_EQ(block.block_types(0).nesting(), tfplugin6::Schema::NestedBlock::SINGLE);
  EXPECT_EQ(block.block_types(0).max_items(), 0);
  EXPECT_EQ(block.block_types(1).nesting(), tfplugin6::Schema::NestedBlock::SET);
  EXPECT_EQ(block.block_types(1).min_items(), 1);
  EXPECT_EQ(block.block_types(1).max_items(), 4);
}

TEST(Convert, ReadsMsgpackThenJsonElseNull) {
  tfplugin6::DynamicValue value;
  EXPECT_TRUE(FromProto(value, Type::String(), "x")->IsNull());
  value.set_json("\"j\"");
  EXPECT_EQ(FromProto(value, Type::String(), "x")->AsString(), "j");
  value.set_msgpack("\xa1m");
  EXPECT_EQ(FromProto(value, Type::String(), "x")->AsString(), "m");
  value.set_msgpack("\xc1");
  const auto broken = FromProto(value, Type::String(), "prior state");
  ASSERT_FALSE(broken.has_value());
  EXPECT_TRUE(broken.error().message.starts_with("prior state: ")) << broken.error().message;
}

}  // namespace
}  // namespace sless::plugin
