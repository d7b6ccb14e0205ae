// Feeds bytes to the zip reader. With clang: -fsanitize=fuzzer -DSLESS_LIBFUZZER. Otherwise a program of its own:
//   zip_fuzz FILE...          replays files (a corpus, a crash)
//   zip_fuzz --seconds N      mutates sound archives for N seconds
// Whatever the bytes are, reading them ends in a tree within its limits or in an error, and a tree that was read can be read again.

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "client/source/source.h"

namespace {

using sless::source::Limits;

[[noreturn]] void Broken(const char* what) {
  std::fprintf(stderr, "zip_fuzz: %s\n", what);
  std::abort();
}

void Check(const sless::source::Tree& tree, const Limits& limits) {
  if (tree.entries.empty() || tree.entries.size() > limits.max_files) Broken("number of files");
  if (tree.TotalBytes() > limits.max_total_bytes) Broken("more bytes than allowed");
  std::string last;
  for (const auto& entry : tree.entries) {
    if (entry.path <= last) Broken("paths are not sorted or double");
    if (entry.path[0] == '/' || entry.path.find("..") == 0 || entry.path.find('\\') != std::string::npos) Broken("a hostile path");
    last = entry.path;
  }
  // Packing it compares every byte with the digests.
  const auto status = sless::source::WriteZip(tree, [](std::string_view) { return sless::base::Ok(); });
  if (!status) Broken(status.error().message.c_str());
}

/// True if the archive was read.
bool TryOne(const uint8_t* data, size_t size) {
  const int fd = memfd_create("zip", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size)) Broken("no memory file");
  Limits limits;
  limits.max_total_bytes = 4 << 20;
  const auto tree = sless::source::ReadZip("/proc/self/fd/" + std::to_string(fd), limits);
  if (tree) Check(*tree, limits);
  close(fd);
  return tree.has_value();
}
bool TryOne(const std::string& bytes) { return TryOne(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()); }

}  // namespace

#ifdef SLESS_LIBFUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  TryOne(data, size);
  return 0;
}
#else

#include "client/source/testing/raw_zip.h"

namespace {

std::string Seed() {
  using sless::source::RawEntry;
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
  sless::source::RawZip zip{{code, stored, described, link, wide}};
  zip.zip64_end = true;
  return zip.Bytes();
}

void Mutate(std::string& bytes, std::mt19937& random) {
  for (unsigned changes = 1 + random() % 5; changes > 0 && !bytes.empty(); --changes) {
    const size_t at = random() % bytes.size();
    const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff, static_cast<unsigned char>(random())};
    switch (random() % 4) {
      case 0: bytes[at] = static_cast<char>(values[random() % 6]); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
      case 2: bytes.erase(at, random() % 16); break;
      default: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 100)); break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--seconds") {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[2]));
    std::mt19937 random(std::random_device{}());
    const auto seed = Seed();
    uint64_t rounds = 0, accepted = 0;
    for (; std::chrono::steady_clock::now() < end; ++rounds) {
      auto bytes = seed;
      Mutate(bytes, random);
      std::ofstream("/dev/shm/zip_fuzz_last", std::ios::binary) << bytes;  // what a crash leaves behind
      accepted += TryOne(bytes);
    }
    unlink("/dev/shm/zip_fuzz_last");
    std::printf("%llu archives, %llu accepted\n", static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(accepted));
    return 0;
  }
  for (int i = 1; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    std::printf("%s: %s\n", argv[i], TryOne(bytes) ? "accepted" : "refused");
  }
  return argc > 1 ? 0 : 2;
}
#endif
