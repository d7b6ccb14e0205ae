#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "client/base/testing/fake_clock.h"
#include "client/base/testing/result_matchers.h"
#include "server/auth/authenticator.h"
#include "server/auth/tokens.h"
#include "server/store/memory/memory_store.h"

namespace sless::auth {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::_;
using testing::HasSubstr;
using testing::Not;

// Counts reads, can fail, and can hide changes as if another process had made them.
class WatchedStore final : public store::ObjectStore {
 public:
  explicit WatchedStore(store::ObjectStore& inner) : inner_(inner) {}
  base::Result<store::StoredObject> Get(const api::ObjectKey& key) const override {
    ++gets;
    if (failing) return base::Err(Code::kUnavailable, "disk full");
    return inner_.Get(key);
  }
  base::Result<store::Page> List(const store::ListQuery& query) const override {
    return inner_.List(query);
  }
  base::Result<store::StoredObject> Create(store::StoredObject o) override {
    return inner_.Create(std::move(o));
  }
  base::Result<store::StoredObject> Update(store::StoredObject o) override {
    return inner_.Update(std::move(o));
  }
  base::Status Delete(const api::ObjectKey& k, std::optional<std::string> v) override {
    return inner_.Delete(k, v);
  }
  std::unique_ptr<store::Subscription> Subscribe(
      std::function<void(const store::Change&)> callback) override {
    return inner_.Subscribe([this, callback = std::move(callback)](const store::Change& change) {
      if (!other_process) callback(change);
    });
  }
  mutable std::atomic<int> gets = 0;
  std::atomic<bool> failing = false, other_process = false;

 private:
  store::ObjectStore& inner_;
};

class AuthTest : public testing::Test {
 protected:
  std::string Create(const std::string& name) {
    const auto token = CreateToken(store_, name);
    EXPECT_THAT(token, IsOk());
    return token ? "Bearer " + token->Reveal() : "";
  }
  base::FakeClock clock_;
  std::unique_ptr<store::ObjectStore> memory_ = store::MakeMemoryStore(clock_);
  WatchedStore store_{*memory_};
  std::unique_ptr<Authenticator> auth_ = MakeAuthenticator(store_, clock_);
};

TEST_F(AuthTest, ATokenNamesItsCaller) {
  const auto alice = Create("alice"), bob = Create("bob");
  EXPECT_EQ(auth_->Check(alice)->token_name, "alice");
  EXPECT_EQ(auth_->Check(bob)->token_name, "bob");
  EXPECT_EQ(auth_->Check("bEARER   " + alice.substr(7) + " ")->token_name, "alice");
}

TEST_F(AuthTest, OnlyTheHashIsKept) {
  const auto token = Create("alice");
  const auto stored = store_.Get({std::string(kKindToken), std::string(kTokenNamespace), "alice"});
  ASSERT_THAT(stored, IsOk());
  EXPECT_THAT(stored->spec_json + stored->status_json,
              Not(HasSubstr(token.substr(token.rfind('_') + 1))));
}

TEST_F(AuthTest, CreateRefusesABadOrTakenName) {
  Create("alice");
  EXPECT_THAT(CreateToken(store_, "alice"),
              IsError(Code::kAlreadyExists, HasSubstr("\"alice\" exists already")));
  for (const char* name : {"", "Alice", "a_b", "a/b", "-a", "a b"}) {
    EXPECT_THAT(CreateToken(store_, name), IsError(Code::kInvalidArgument, HasSubstr("DNS label")))
        << name;
  }
}

TEST_F(AuthTest, ListAndDelete) {
  Create("b");
  Create("a");
  const auto tokens = ListTokens(store_);
  ASSERT_THAT(tokens, IsOk());
  ASSERT_EQ(tokens->size(), 2u);
  EXPECT_EQ((*tokens)[0].name, "a");
  EXPECT_EQ((*tokens)[0].created_at, base::FormatTime(clock_.Now()));
  EXPECT_THAT(DeleteToken(store_, "a"), IsOk());
  EXPECT_THAT(DeleteToken(store_, "a"), IsError(Code::kNotFound, _));
  EXPECT_EQ(ListTokens(store_)->size(), 1u);
}

struct BadHeader {
  const char* name;
  std::string header;
  const char* text;
};
class AuthBadHeader : public testing::TestWithParam<BadHeader> {};
TEST_P(AuthBadHeader, IsRefusedWithoutShowingIt) {
  const base::FakeClock clock;
  const auto store = store::MakeMemoryStore(clock);
  ASSERT_THAT(CreateToken(*store, "alice"), IsOk());
  const auto auth = MakeAuthenticator(*store, clock);
  const auto result = auth->Check(GetParam().header);
  ASSERT_THAT(result, IsError(Code::kUnauthenticated, HasSubstr(GetParam().text)));
  EXPECT_THAT(result.error().message, HasSubstr("slessd token create"));
  EXPECT_THAT(result.error().message, Not(HasSubstr("0123456789abcdef")));
  EXPECT_THAT(result.error().message, Not(HasSubstr("hunter2")));
}
const std::string kHex64(64, '0');
INSTANTIATE_TEST_SUITE_P(
    Cases, AuthBadHeader,
    testing::Values(
        BadHeader{"None", "", "no token"}, BadHeader{"Blank", "  ", "no token"},
        BadHeader{"Basic", "Basic aHVudGVyMg==hunter2", "not of the form \"Bearer"},
        BadHeader{"NoScheme", "sless_alice_hunter2", "not of the form \"Bearer"},
        BadHeader{"SchemeOnly", "Bearer", "not of the form \"Bearer"},
        BadHeader{"EmptyToken", "Bearer  ", "not of the form"},
        BadHeader{"OtherToken", "Bearer hunter2", "sless_<name>"},
        BadHeader{"Cut", "Bearer sless_alice_0123456789abcdef", "perhaps it was cut"},
        BadHeader{"NotHex", "Bearer sless_alice_" + std::string(64, 'x'), "sless_<name>"},
        BadHeader{"NoName", "Bearer sless__" + kHex64, "sless_<name>"},
        BadHeader{"PathInName", "Bearer sless_../x_" + kHex64, "sless_<name>"},
        BadHeader{"Nul", std::string("Bearer sless_al\0ce_", 19) + kHex64, "sless_<name>"},
        BadHeader{"TwoTokens", "Bearer sless_alice_" + kHex64 + " x", "sless_<name>"},
        BadHeader{"WrongSecret", "Bearer sless_alice_" + kHex64, "not known to this server"},
        BadHeader{"UnknownName", "Bearer sless_bob_" + kHex64, "not known to this server"},
        BadHeader{"Huge", "Bearer sless_" + std::string(1 << 20, 'a'), "sless_<name>"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(AuthTest, AKnownTokenIsReadOnceInAWhile) {
  const auto token = Create("alice");
  const int before = store_.gets;
  for (int i = 0; i < 100; ++i) ASSERT_THAT(auth_->Check(token), IsOk());
  EXPECT_EQ(store_.gets, before + 1);
}

TEST_F(AuthTest, DeletionByThisProcessCountsAtOnce) {
  const auto token = Create("alice");
  ASSERT_THAT(auth_->Check(token), IsOk());
  ASSERT_THAT(DeleteToken(store_, "alice"), IsOk());
  EXPECT_THAT(auth_->Check(token), IsError(Code::kUnauthenticated, _));
  const auto again = Create("alice");
  EXPECT_THAT(auth_->Check(again), IsOk());
  EXPECT_THAT(auth_->Check(token), IsError(Code::kUnauthenticated, _));
}

TEST_F(AuthTest, ATokenOfAnotherProcessCountsWithinASecond) {
  store_.other_process = true;
  const auto first = Create("alice");
  EXPECT_THAT(auth_->Check(first), IsOk());  // never asked for before: at once

  EXPECT_THAT(auth_->Check("Bearer sless_bob_" + kHex64), IsError(Code::kUnauthenticated, _));
  const auto bob = Create("bob");
  clock_.Advance(seconds(1));
  EXPECT_THAT(auth_->Check(bob), IsOk());

  ASSERT_THAT(DeleteToken(store_, "bob"), IsOk());
  const auto anew = Create("bob");
  clock_.Advance(seconds(1));
  EXPECT_THAT(auth_->Check(anew), IsOk());
  EXPECT_THAT(auth_->Check(bob), IsError(Code::kUnauthenticated, _));
}

TEST_F(AuthTest, ATokenDeletedByAnotherProcessEndsWithinTenSeconds) {
  store_.other_process = true;
  const auto token = Create("alice");
  ASSERT_THAT(auth_->Check(token), IsOk());
  ASSERT_THAT(DeleteToken(store_, "alice"), IsOk());
  clock_.Advance(seconds(10));
  EXPECT_THAT(auth_->Check(token), IsError(Code::kUnauthenticated, _));
}

TEST_F(AuthTest, UnknownTokensDoNotHammerTheStore) {
  const int before = store_.gets;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(auth_->Check("Bearer sless_bob_" + kHex64));
  EXPECT_EQ(store_.gets, before + 1);
}

TEST_F(AuthTest, AFloodOfNamesIsCutAndKnownTokensGoOn) {
  const auto token = Create("alice");
  ASSERT_THAT(auth_->Check(token), IsOk());
  const int before = store_.gets;
  int unavailable = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto result = auth_->Check("Bearer sless_n" + std::to_string(i) + "_" + kHex64);
    unavailable += result.error().code == Code::kUnavailable;
  }
  EXPECT_GT(unavailable, 2900);
  EXPECT_LE(store_.gets, before + 2000);
  EXPECT_THAT(auth_->Check(token), IsOk());
  // Once its entry is old it is read again, whatever others ask.
  clock_.Advance(seconds(11));
  for (int i = 0; i < 3000; ++i)
    (void)auth_->Check("Bearer sless_m" + std::to_string(i) + "_" + kHex64);
  EXPECT_THAT(auth_->Check(token), IsOk());
  clock_.Advance(seconds(1));
  EXPECT_THAT(auth_->Check("Bearer sless_other_" + kHex64), IsError(Code::kUnauthenticated, _));
}

TEST_F(AuthTest, AFailingStoreIsNotAWrongToken) {
  const auto token = Create("alice");
  store_.failing = true;
  EXPECT_THAT(auth_->Check(token), IsError(Code::kUnavailable, HasSubstr("disk full")));
  store_.failing = false;
  EXPECT_THAT(auth_->Check(token), IsOk());
}

TEST_F(AuthTest, ManyThreadsWhileTokensComeAndGo) {
  const auto steady = Create("steady");
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!done) wrong += !auth_->Check(steady);
    });
  }
  for (int i = 0; i < 200; ++i) {
    const auto token = Create("other");
    wrong += !auth_->Check(token);
    wrong += !DeleteToken(store_, "other");
    wrong += auth_->Check(token).has_value();
  }
  done = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace sless::auth
