// Zip archives. Reading one ends in a tree within its limits or in an error; a tree that was read
// can be packed.

#include <sys/mman.h>
#include <unistd.h>

#include "client/source/source.h"
#include "client/source/testing/raw_zip.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {
namespace {

void Check(const source::Tree& tree, const source::Limits& limits) {
  Require(!tree.entries.empty() && tree.entries.size() <= limits.max_files,
          "the number of files is within the limits");
  Require(tree.TotalBytes() <= limits.max_total_bytes, "the bytes are within the limits");
  std::string last;
  for (const auto& entry : tree.entries) {
    Require(last < entry.path, "paths are sorted and there once");
    const std::string path = "/" + entry.path + "/";
    for (const char* bad : {"//", "/./", "/../", "\\"})
      Require(path.find(bad) == std::string::npos, "no path is hostile");
    Require(path.find('\0') == std::string::npos, "no path has a NUL");
    last = entry.path;
  }
  // Packing it compares every byte with the digests.
  Require(source::WriteZip(tree, [](std::string_view) { return base::Ok(); }).has_value(),
          "what was read can be packed");
}

}  // namespace

std::vector<std::string> Seeds() {
  using source::RawEntry;
  RawEntry code, stored, described, link, wide;
  code.name = "handler.py";
  code.bytes = "def handle(event):\n    return event\n";
  stored.name = "d/stored";
  stored.bytes = "stored";
  stored.deflate = false;
  described.name = "d/described";
  described.bytes = std::string(1000, 'x');
  described.descriptor = true;
  link.name = "link";
  link.bytes = "d/stored";
  link.mode = 0120777;
  wide.name = "wide";
  wide.bytes = "w";
  wide.zip64 = true;
  source::RawZip all{{code, stored, described, link, wide}};
  all.zip64_end = true;
  RawEntry rules;
  rules.name = ".slessignore";
  rules.bytes = "d/**\n!d/stored\n*.pyc\n";
  source::RawZip ignoring{{rules, code, stored}};
  ignoring.comment = "comment";
  return {all.Bytes(), ignoring.Bytes()};
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  const int fd = memfd_create("zip", MFD_CLOEXEC);
  fuzz::Require(fd >= 0 && write(fd, data, size) == static_cast<ssize_t>(size),
                "there is a memory file");
  source::Limits limits;
  limits.max_total_bytes = 4 << 20;
  if (const auto tree = source::ReadZip("/proc/self/fd/" + std::to_string(fd), limits))
    fuzz::Check(*tree, limits);
  close(fd);
  return 0;
}
