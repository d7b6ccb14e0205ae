// Entrypoints and the scans of Python and Node text: the entrypoint in the first line, the file
// after it.

#include "client/base/strings.h"
#include "client/source/entrypoint.h"
#include "client/source/node_scan.h"
#include "client/source/python_scan.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {

std::vector<std::string> Seeds() {
  return {
      "handler.handle\nimport os\nasync def handle(event, context):\n    '''doc'''\n    return "
      "f\"{event!r}\"\nif x:\n  def b(): pass\nelse:\n  c = lambda e: e\n",
      "src/handler.main\nfrom x import *\nfrom y import (a as main,\n  b)\nclass main: pass\nx = y "
      "= [\n  1]\nwith a as b: pass\nfor i, j in k: pass\n",
      "handler.handle\nexports.handle = async (event) => `a${`b`}`;\nmodule.exports = { handle, "
      "other() {}, ...rest, 'x': /re[/]x/g };\n",
      "handler.handle\nexport default function handle() {}\nexport const a = 1, b = () => "
      "2;\nexport { a as handle, b };\nexport * from './x.js'; // c\n/* d */ import x from 'y';\n",
      "a.b.c\n\"\"\"x\n\\\n'''\n#!x\n"};
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  fuzz::Parts parts(fuzz::Text(data, size));
  const auto entrypoint = parts.Line();
  const auto text = parts.Rest();
  (void)source::HasModuleSyntax(text);
  for (const auto& names : {source::ScanPython(text), source::ScanNode(text)}) {
    for (const auto& name : names.functions)
      fuzz::Require(!name.empty() && names.MayHave(name), "a function that was found has a name");
  }
  const auto parsed = source::ParseEntrypoint(entrypoint);
  if (parsed)
    fuzz::Require(!parsed->file.empty() && !parsed->function.empty(),
                  "an entrypoint has both parts");
  for (const char* runtime : {"python3.11", "nodejs20"}) {
    const auto tree = source::InlineTree(runtime, entrypoint, std::string(text));
    if (!tree) continue;
    fuzz::Require(parsed.has_value(), "a tree comes from a sound entrypoint");
    const auto status = source::CheckEntrypoint(*tree, runtime, entrypoint);
    if (status) continue;
    fuzz::Require(!base::IsUtf8(fuzz::Text(data, size)) || base::IsUtf8(status.error().message),
                  "an error's text is UTF-8 where the input is");
    fuzz::Require(status.error().message.size() < 4096 + entrypoint.size(),
                  "an error's text is short, whatever the file holds");
  }
  return 0;
}
