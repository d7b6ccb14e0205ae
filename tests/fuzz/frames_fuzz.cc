// Frames of a language worker. However the bytes arrive in pieces, the same frames come out; the
// first byte says how long pieces are.

#include <algorithm>

#include "server/runner/frames.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {
namespace {

struct Read {
  std::vector<std::string> frames;  // head, payload, head, …
  bool broken = false;
  bool operator==(const Read&) const = default;
};

Read All(std::string_view bytes, size_t piece) {
  runner::FrameReader reader;
  Read out;
  while (!bytes.empty() && !out.broken) {
    reader.Feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      auto frame = reader.Next();
      out.broken = !frame;
      if (!frame || !*frame) break;
      Require((*frame)->head.size() + (*frame)->payload.size() <= runner::kMaxFrame,
              "a frame is within its limit");
      out.frames.push_back((*frame)->head);
      out.frames.push_back((*frame)->payload);
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string one = runner::EncodeFrame(R"({"type":"result","id":1})", "[1,2,3]");
  return {"\x03" + runner::EncodeFrame(R"({"type":"ready"})", "") + one + one,
          "\x40" + runner::EncodeFrame("", "") + one,
          std::string("\x01\xff\xff\xff\xff\xff\xff\xff\xff", 9)};
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  if (size == 0) return 0;
  const auto bytes = fuzz::Text(data + 1, size - 1);
  const auto whole = fuzz::All(bytes, bytes.size() + 1);
  fuzz::Require(fuzz::All(bytes, 1 + data[0] % 64) == whole, "pieces do not matter");
  std::string again;
  for (size_t i = 0; i < whole.frames.size(); i += 2)
    again += runner::EncodeFrame(whole.frames[i], whole.frames[i + 1]);
  fuzz::Require(again == bytes.substr(0, again.size()), "frames are what was sent");
  return 0;
}
