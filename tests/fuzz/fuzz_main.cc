// The main of a fuzz target without libFuzzer:
//   <name>_fuzz [FILE|FOLDER...] [--seconds N] [--seed N] [--write-seeds FOLDER]
// Runs the files and the seeds as they are, then random mutations of them for N seconds. An input
// that crashes, breaks a promise or takes more than kInputLimit is shown in hex and left in
// <name>_fuzz.crash of the temp folder: give it as FILE to see it again.

#include "tests/fuzz/fuzz_main.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr unsigned kInputLimit = 20;  // seconds, under sanitizers on a busy machine
constexpr size_t kMaxInput = 1 << 16;

std::string program, crash_path, current;

void ShowInput() {
  static bool shown = false;
  if (shown) return;
  shown = true;
  if (std::FILE* file = std::fopen(crash_path.c_str(), "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
  }
  std::fprintf(stderr, "%s: %zu bytes, also in %s:\n", program.c_str(), current.size(),
               crash_path.c_str());
  for (size_t i = 0; i < std::min<size_t>(current.size(), 4096); ++i)
    std::fprintf(stderr, "%02x", static_cast<unsigned char>(current[i]));
  std::fprintf(stderr, "\n");
}

// The process is lost anyway: what is not safe in a handler of signals is worth the input that it
// shows.
void OnSignal(int number) {
  if (number == SIGALRM) std::fprintf(stderr, "an input takes more than %u s\n", kInputLimit);
  ShowInput();
  _exit(99);
}

void Run(std::string input) {
  current = std::move(input);
  alarm(kInputLimit);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(current.data()), current.size());
  alarm(0);
}

using Random = std::mt19937_64;

std::string Mutated(const std::vector<std::string>& corpus, Random& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::string bytes = corpus[below(corpus.size())];
  for (size_t changes = 1 + below(6); changes > 0; --changes) {
    if (bytes.empty()) bytes = "\n";
    const size_t at = below(bytes.size());
    static constexpr unsigned char kOdd[] = {0,   1,    '\t', '\n', '"',  '%',  '0',
                                             '9', '\\', 0x7f, 0x80, 0xc3, 0xfe, 0xff};
    switch (below(8)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(kOdd[below(sizeof kOdd)]);
        break;
      case 2:
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8));
        break;
      case 3:
        bytes.erase(at, 1 + below(16));
        break;
      case 4:
        bytes.insert(at, 1 + below(4), static_cast<char>(kOdd[below(sizeof kOdd)]));
        break;
      case 5: {  // a piece of the same input once more
        const std::string piece = bytes.substr(below(bytes.size()), 1 + below(64));
        bytes.insert(at, piece);
        break;
      }
      case 6: {  // a piece of another input
        const auto& other = corpus[below(corpus.size())];
        if (!other.empty()) bytes.insert(at, other.substr(below(other.size()), 1 + below(64)));
        break;
      }
      default: {  // a piece many times: depth and length
        const std::string piece = bytes.substr(at, 1 + below(8));
        for (size_t i = below(60); i > 0; --i) bytes.insert(at, piece);
        break;
      }
    }
  }
  bytes.resize(std::min(bytes.size(), kMaxInput));
  return bytes;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int Usage() {
  std::fprintf(stderr,
               "usage: %s [FILE|FOLDER...] [--seconds N] [--seed N] [--write-seeds FOLDER]\n",
               program.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  program = fs::path(argv[0]).filename();
  crash_path = fs::temp_directory_path() / (program + ".crash");
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(ShowInput);
  signal(SIGABRT, OnSignal);
  signal(SIGALRM, OnSignal);

  auto corpus = sless::fuzz::Seeds();
  long seconds = 0;
  uint64_t seed = std::random_device{}();
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.substr(0, 2) == "--") {
      if (++i == argc) return Usage();
      if (word == "--seconds") {
        seconds = std::atol(argv[i]);
      } else if (word == "--seed") {
        seed = std::strtoull(argv[i], nullptr, 10);
      } else if (word == "--write-seeds") {
        for (size_t n = 0; n < corpus.size(); ++n)
          std::ofstream(fs::path(argv[i]) / ("seed" + std::to_string(n)), std::ios::binary)
              << corpus[n];
        return 0;
      } else {
        return Usage();
      }
    } else if (fs::is_directory(word)) {
      for (const auto& entry : fs::directory_iterator(word))
        corpus.push_back(ReadFile(entry.path()));
    } else if (fs::is_regular_file(word)) {
      corpus.push_back(ReadFile(word));
    } else {
      std::fprintf(stderr, "%s: no such file: %s\n", program.c_str(), word.c_str());
      return 2;
    }
  }
  if (corpus.empty()) corpus.emplace_back();
  std::sort(
      corpus.begin(),
      corpus.end());  // the order of a folder is nobody's promise, and --seed shall repeat a run

  uint64_t runs = 0;
  for (const auto& input : corpus) {
    Run(input);
    ++runs;
  }
  Random random(seed);
  for (const auto end = Clock::now() + std::chrono::seconds(seconds); Clock::now() < end; ++runs)
    Run(Mutated(corpus, random));
  std::printf("%s: %llu inputs, %zu of them seeds; --seed %llu\n", program.c_str(),
              static_cast<unsigned long long>(runs), corpus.size(),
              static_cast<unsigned long long>(seed));
  return 0;
}
