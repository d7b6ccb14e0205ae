#include "server/auth/authenticator.h"

#include <algorithm>
#include <map>
#include <optional>

#include "client/base/digest.h"
#include "client/base/guarded.h"
#include "client/base/strings.h"
#include "server/auth/token_record.h"
#include "server/auth/tokens.h"

namespace sless::auth {
namespace {

using base::Code;
using base::Err;
using base::Result;
using std::chrono::seconds;

constexpr auto kKnownFor =
    seconds(10);  // a token removed by another process counts no longer than this
constexpr auto kUnknownFor =
    seconds(1);  // a token made by another process counts after this at the latest
constexpr size_t kMaxEntries = 10'000;  // names that were asked for; unknown ones go first
constexpr int kMaxLookupsPerSecond = 2'000;

constexpr const char* kHint =
    "send \"Authorization: Bearer <token>\" with a token made by `slessd token create`";

// What is known of one name. No hash: there is no such token.
struct Entry {
  std::optional<std::string> hash;
  base::SteadyPoint read_at;
};

struct State {
  std::map<std::string, Entry> entries;
  int64_t version =
      0;  // raised by each change of a token, so that a read that began before it is not kept
  base::SteadyPoint window_start;
  int lookups_in_window = 0;
};

// Scheme and token of "Bearer <token>", the scheme in any case.
std::optional<std::string_view> BearerToken(std::string_view header) {
  header = base::Trim(header);
  constexpr std::string_view kScheme = "bearer";
  if (header.size() <= kScheme.size() || header[kScheme.size()] != ' ') return std::nullopt;
  const auto same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
  };
  if (!std::equal(kScheme.begin(), kScheme.end(), header.begin(),
                  [&](char b, char a) { return same(a, b); }))
    return std::nullopt;
  return base::Trim(header.substr(kScheme.size()));
}

class StoreAuthenticator final : public Authenticator {
 public:
  StoreAuthenticator(store::ObjectStore& store, const base::Clock& clock)
      : store_(store), clock_(clock) {
    state_.With([&](State& state) { state.window_start = clock_.Steady(); });
    subscription_ = store_.Subscribe([this](const store::Change& change) {
      if (change.key.kind != kKindToken) return;
      state_.With([&](State& state) {
        ++state.version;
        state.entries.erase(change.key.name);
      });
    });
  }

  Result<Caller> Check(std::string_view authorization) override {
    if (base::Trim(authorization).empty()) return Refuse("no token was sent");
    const auto text = BearerToken(authorization);
    if (!text) return Refuse("the Authorization header is not of the form \"Bearer <token>\"");
    const auto parts = SplitToken(*text);
    if (!parts)
      return Refuse(
          "the token is not of the form \"sless_<name>_<64 hex digits>\", perhaps it was cut");
    const std::string hash = base::Sha256Hex(parts->secret);

    auto entry = Cached(parts->name, hash);
    if (!entry) {
      ASSIGN_OR_RETURN(entry, Lookup(parts->name));
    }
    // Compared even where there is no such token, so that the time does not tell which names exist.
    const bool equal =
        base::ConstantTimeEqual(entry->hash.value_or(std::string(hash.size(), '-')), hash);
    if (!entry->hash || !equal) return Refuse("the token is not known to this server");
    return Caller{parts->name};
  }

 private:
  static tl::unexpected<base::Error> Refuse(const std::string& why) {
    return Err(Code::kUnauthenticated, why + "; " + kHint);
  }

  // The entry if it may still be used. A wrong secret is worth another look after a second: the
  // token may have been made anew.
  std::optional<Entry> Cached(const std::string& name, const std::string& hash) {
    return state_.With([&](State& state) -> std::optional<Entry> {
      const auto it = state.entries.find(name);
      if (it == state.entries.end()) return std::nullopt;
      const bool matches = it->second.hash && base::ConstantTimeEqual(*it->second.hash, hash);
      if (clock_.Steady() - it->second.read_at >= (matches ? kKnownFor : kUnknownFor))
        return std::nullopt;
      return it->second;
    });
  }

  Result<std::optional<Entry>> Lookup(const std::string& name) {
    const auto now = clock_.Steady();
    const auto version = state_.With([&](State& state) -> std::optional<int64_t> {
      if (now - state.window_start >= seconds(1)) {
        state.window_start = now;
        state.lookups_in_window = 0;
      }
      // A name that is known costs a look-up a second at most and is not crowded out by others.
      const auto it = state.entries.find(name);
      const bool known = it != state.entries.end() && it->second.hash;
      if (!known && ++state.lookups_in_window > kMaxLookupsPerSecond) return std::nullopt;
      return state.version;
    });
    if (!version)
      return Err(Code::kUnavailable,
                 "too many tokens that are not known were sent within a second; try again", "",
                 "TooManyTokens");

    Entry entry{std::nullopt, now};
    const auto object = store_.Get(TokenKey(name));
    if (object) {
      ASSIGN_OR_RETURN(auto record, ReadTokenObject(*object));
      entry.hash = std::move(record.hash);
    } else if (object.error().code != Code::kNotFound) {
      return Err(Code::kUnavailable, "the token cannot be checked now: " + object.error().message);
    }
    state_.With([&](State& state) {
      if (state.version != *version) return;
      if (state.entries.size() >= kMaxEntries) MakeRoom(state);
      state.entries[name] = entry;
    });
    return std::optional<Entry>(std::move(entry));
  }

  static void MakeRoom(State& state) {
    std::erase_if(state.entries, [](const auto& item) { return !item.second.hash; });
    if (state.entries.size() >= kMaxEntries) state.entries.clear();
  }

  store::ObjectStore& store_;
  const base::Clock& clock_;
  base::Guarded<State> state_;
  std::unique_ptr<store::Subscription> subscription_;  // last: ends before what its callback uses
};

}  // namespace

std::unique_ptr<Authenticator> MakeAuthenticator(store::ObjectStore& store,
                                                 const base::Clock& clock) {
  return std::make_unique<StoreAuthenticator>(store, clock);
}

}  // namespace sless::auth
