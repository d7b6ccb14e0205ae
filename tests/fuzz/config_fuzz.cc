// The configuration file. What is taken is written as a file that gives the same settings.

#include "server/config/config.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {

std::vector<std::string> Seeds() {
  return {
      "data_dir: /var/lib/sless\nlisten: 127.0.0.1:8470\nlog_level: info\nhttp:\n  workers: 5\n  "
      "max_connections: 100\njobs: {workers: 6}\n",
      "external_url: \"https://x\"\ninsecure_no_sandbox: true\n# comment\nruntime:\n  python: |\n  "
      "  /usr/bin/python3.11\n",
      "listen: [a, b]\nx: &a {y: *a}\n? !!set\n---\n...\n",
      "a: &a [x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\nd: [*c,*c]\n", "shutdown_grace_sec: 0x10\n"};
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  const auto options = config::Load({"slessd.yaml", std::string(fuzz::Text(data, size)), {}, {}});
  if (!options) {
    fuzz::Require(options.error().message.find("slessd.yaml") != std::string::npos,
                  "an error names the file");
    return 0;
  }
  const auto text = config::ToYaml(*options);
  const auto again = config::Load({"slessd.yaml", text, {}, {}});
  fuzz::Require(again && config::ToYaml(*again) == text,
                "the settings stay the same when they are written and read");
  return 0;
}
