// Authorization headers: only the token lets somebody in. "%T" in an input stands for it, since a
// corpus cannot know it.

#include "client/base/strings.h"
#include "client/base/testing/fake_clock.h"
#include "server/auth/authenticator.h"
#include "server/auth/tokens.h"
#include "server/store/memory/memory_store.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {
namespace {

struct World {
  base::FakeClock clock;
  std::unique_ptr<store::ObjectStore> store = store::MakeMemoryStore(clock);
  std::string token = auth::CreateToken(*store, "ci").value().Reveal();
  std::unique_ptr<auth::Authenticator> authenticator = auth::MakeAuthenticator(*store, clock);
};

}  // namespace

std::vector<std::string> Seeds() {
  return {"Bearer %T",
          "bearer   %T ",
          "Basic %T",
          "Bearer sless_ci_" + std::string(64, 'a'),
          "Bearer sless__",
          "Bearer  \xff",
          "Bearer sless_nobody_" + std::string(64, '0'),
          "Bearer %T%T",
          "%T"};
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  static fuzz::World world;
  std::string header(fuzz::Text(data, size));
  if (const size_t at = header.find("%T"); at != std::string::npos)
    header.replace(at, 2, world.token);
  world.clock.Advance(std::chrono::milliseconds(10));
  const auto caller = world.authenticator->Check(header);
  if (caller) {
    const auto text = base::Trim(header);
    fuzz::Require(caller->token_name == "ci", "the caller is the token's");
    fuzz::Require(text.size() > 6 && base::Trim(text.substr(6)) == world.token,
                  "only the whole token counts");
    return 0;
  }
  fuzz::Require(caller.error().code == base::Code::kUnauthenticated, "all else is refused");
  fuzz::Require(caller.error().message.find(world.token.substr(9)) == std::string::npos,
                "no error shows the token");
  return 0;
}
