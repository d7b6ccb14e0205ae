#include "client/source/entrypoint.h"

#include <gtest/gtest.h>

#include <map>

#include "client/base/testing/result_matchers.h"

namespace sless::source {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using testing::AllOf;
using testing::HasSubstr;

class MapContents final : public Contents {
 public:
  explicit MapContents(std::map<std::string, std::string> files) : files_(std::move(files)) {}
  base::Result<Reader> Open(const Entry& entry) const override {
    return Reader([text = files_.at(entry.path), at = size_t{0}](
                      char* out, size_t size) mutable -> base::Result<size_t> {
      const size_t n = text.copy(out, size, at);
      at += n;
      return n;
    });
  }

 private:
  std::map<std::string, std::string> files_;
};

Tree MakeTree(const std::map<std::string, std::string>& files) {
  Tree tree;
  for (const auto& [path, text] : files) tree.entries.push_back({path, false, text.size(), "", 0});
  tree.contents = std::make_shared<MapContents>(files);
  return tree;
}

base::Status Python(const std::string& text) {
  return CheckEntrypoint(MakeTree({{"handler.py", text}}), "python3.11", "handler.handle");
}
base::Status Node(const std::string& text) {
  return CheckEntrypoint(MakeTree({{"handler.js", text}}), "nodejs20", "handler.handle");
}

TEST(Entrypoint, Grammar) {
  const auto good = ParseEntrypoint("src/app.v2.handle_1");
  ASSERT_THAT(good, IsOk());
  EXPECT_EQ(good->file, "src/app.v2");
  EXPECT_EQ(good->function, "handle_1");
  for (const char* text : {"", "handler", ".handle", "handler.", "handler.a-b", "handler.1a",
                           "/h.h", "../h.h", "a/../h.h", "a//h.h", "a\\h.h", "a/.h", "h.a b"}) {
    const auto result = ParseEntrypoint(text);
    EXPECT_THAT(result, IsError(Code::kInvalidArgument, HasSubstr("file.function"))) << text;
    if (!result) {
      EXPECT_EQ(result.error().field, "/spec/entrypoint");
    }
  }
}

TEST(Entrypoint, FileHints) {
  const auto hint = [](const char* runtime, const char* entrypoint,
                       const std::map<std::string, std::string>& files) {
    const auto result = EntrypointFile(MakeTree(files), runtime, entrypoint);
    return result ? *result : result.error().message;
  };
  EXPECT_EQ(hint("python3.11", "a/b.f", {{"a/b.py", ""}}), "a/b.py");
  EXPECT_EQ(hint("nodejs20", "b.f", {{"b.mjs", ""}, {"b.cjs", ""}}), "b.mjs");
  EXPECT_EQ(hint("nodejs20", "b.prod.f", {{"b.prod.js", ""}}), "b.prod.js");
  EXPECT_THAT(hint("python3.11", "handlr.f", {{"handler.py", ""}}),
              AllOf(HasSubstr("handlr.py"), HasSubstr("did you mean \"handler.f\"")));
  EXPECT_THAT(hint("python3.11", "a.b.f", {{"a/b.py", ""}}), HasSubstr("\"a/b.f\""));
  EXPECT_THAT(hint("python3.11", "h.py.f", {{"h.py", ""}}),
              HasSubstr("without its ending: \"h.f\""));
  EXPECT_THAT(hint("python3.11", "h.f", {{"app/h.py", ""}, {"app/x", ""}}),
              AllOf(HasSubstr("below the folder app/"), HasSubstr("\"app/h.f\"")));
  EXPECT_THAT(hint("python3.11", "h.f", {{"app/h.py", ""}, {"x", ""}}),
              HasSubstr("did you mean \"app/h.f\""));
  EXPECT_THAT(hint("nodejs20", "h.f", {{"h.ts", ""}}), HasSubstr("TypeScript"));
  EXPECT_THAT(hint("nodejs20", "h.f", {{"h.py", ""}}), HasSubstr("no .js file at all"));
  EXPECT_THAT(hint("ruby", "h.f", {{"h.rb", ""}}), HasSubstr("want python3.11 or nodejs20"));
}

TEST(Entrypoint, PythonThatHasIt) {
  for (const char* text : {
           "def handle(event): pass",
           "async def handle(event, context):\n  pass",
           "@decorated\ndef handle(e): pass",
           "handle = lambda e: e",
           "handle: Callable = make()",
           "a = handle = f",
           "other, handle = f()",
           "(other,\n handle) = f()",
           "from x import handle",
           "from x import (\n    a,\n    other as handle,\n)",
           "import x as handle",
           "import handle",
           "from x import *",
           "class handle:\n  pass",
           "try:\n  from fast import handle\nexcept ImportError:\n  def handle(e): pass",
           "if True:\n    def handle(e): pass",
           "if x: handle = 1",
           "for handle in x: pass",
           "with x() as handle: pass",
           "def setup():\n  global handle\n  handle = 1",
           "globals()['handle'] = f",
           "exec(code)",
           "def __getattr__(name): return f",
           "\xef\xbb\xbf"
           "def handle(e): pass",
           "x = 1; handle = f",
           "def f():\n  '''\n'''\n  pass\ndef handle(e): pass",
           "s = 'a\\\n'\ndef handle(e): pass",
           "x = \\\n  1\ndef handle(e): pass",
           "def other(): pass\nhandle = functools.partial(other, 1)",
           "s = f'{x}'\r\ndef handle(e):\r\n  pass\r\n",
           "if (handle := f()): pass",
           "class A:\n\tdef x(self): pass\ndef handle(e): pass",
           "def a(x=(1,\n2)):\n  pass\n# c\ndef handle(e): pass",
           "match x:\n  case 1:\n    handle = f",
       }) {
    EXPECT_THAT(Python(text), IsOk()) << text;
  }
}

TEST(Entrypoint, PythonThatDoesNot) {
  for (const char* text : {
           "",
           "def handler(e): pass",
           "# def handle(e): pass",
           "'''\ndef handle(e): pass\n'''",
           "x = 'def handle(e): pass'",
           "def outer():\n  def handle(e): pass",
           "class A:\n  def handle(self): pass",
           "handle(1)",
           "x.handle = 1",
           "x = handle(1)",
           "if handle == 1: pass",
           "r'''\ndef handle(e): pass\n'''",
           "def f():\n  from x import handle",
           "print(\"\"\"\ndef handle(e): pass\"\"\")",
       }) {
    const auto result = Python(text);
    EXPECT_THAT(result,
                IsError(Code::kInvalidArgument, HasSubstr("handler.py has no function \"handle\"")))
        << text;
    if (!result) {
      EXPECT_EQ(result.error().field, "/spec/entrypoint");
      EXPECT_EQ(result.error().source.file, "handler.py");
    }
  }
  EXPECT_THAT(
      Python("def handel(e): pass\ndef other(): pass"),
      IsError(Code::kInvalidArgument, AllOf(HasSubstr("it has handel, other"),
                                            HasSubstr("did you mean \"handler.handel\"?"))));
  EXPECT_THAT(Python("x = 1"), IsError(Code::kInvalidArgument, HasSubstr("defines no function")));
}

TEST(Entrypoint, NodeThatHasIt) {
  for (const char* text : {
           "exports.handle = async (e) => e",
           "module.exports.handle = function () {}",
           "module.exports = { handle }",
           "module.exports = { other, handle: f }",
           "module.exports = { async handle(e) {} }",
           "module.exports = { 'handle': f }",
           "module.exports = { '': f, handle }",
           "module.exports = { ...require('./x') }",
           "module.exports = require('./x')",
           "module.exports = make()",
           "exports['handle'] = f",
           "exports[name] = f",
           "Object.assign(module.exports, x)",
           "Object.defineProperty(exports, 'handle', x)",
           "export function handle() {}",
           "export async function handle() {}",
           "export function* handle() {}",
           "export const handle = () => 1",
           "export const other = 1, handle = 2",
           "export let { a, handle } = x",
           "export { handle }",
           "export { f as handle, g }",
           "export { handle } from './x.js'",
           "export * from './x.js'",
           "export default { handle() {} }",
           "export default make()",
           "const e = exports; e.handle = f",
           "this.handle = f",
           "module.exports = exports = { handle }",
           "exports = module.exports = { handle }",
           "0 && (module.exports = { handle })",
           "const r = /[/'\"]/; exports.handle = f",
           "const t = `${`'`}'`; exports.handle = f",
           "module.exports = { get handle() { return f } }",
           "export class handle {}",
           "const m = module; m.exports = x",
           "#!/usr/bin/env node\nexports.handle = f",
           "module.exports = { [n]: f }",
           "const x = a / b; exports.handle = f; const y = c / d",
       }) {
    EXPECT_THAT(Node(text), IsOk()) << text;
  }
}

TEST(Entrypoint, NodeThatDoesNot) {
  for (const char* text : {
           "",
           "function handle() {}",
           "// exports.handle = f",
           "/* exports.handle = f */",
           "const s = 'exports.handle = f'",
           "const s = `exports.handle = f`",
           "exports.handler = f",
           "module.exports = { handler }",
           "export function handler() {}",
           "export { handle as handler }",
           "x.exports.handle = f",
           "exports.other = { handle: f }",
           "module.exports = { other: { handle } }",
           "const r = /exports.handle = f/",
           "export default function handle() {}",
       }) {
    EXPECT_THAT(Node(text), IsError(Code::kInvalidArgument,
                                    HasSubstr("handler.js has no exported function \"handle\"")))
        << text;
  }
  EXPECT_THAT(
      Node("exports.handler = f; exports.other = g"),
      IsError(Code::kInvalidArgument, AllOf(HasSubstr("it has handler, other"),
                                            HasSubstr("did you mean \"handler.handler\"?"))));
  EXPECT_THAT(Node("function handle() {}"),
              IsError(Code::kInvalidArgument, HasSubstr("exports nothing")));
}

TEST(Entrypoint, LongTextsDoNotTakeLong) {
  std::string defs, nested, functions;
  for (int i = 0; i < 10'000; ++i) {
    defs += "def f" + std::to_string(i) + "(): pass\n";
    nested += "exports = { ";
    functions += "exports.f" + std::to_string(i) + " = 1;";
  }
  EXPECT_THAT(Python(defs), IsError(Code::kInvalidArgument, HasSubstr("no function")));
  EXPECT_THAT(Node(nested), IsOk());  // cannot tell
  EXPECT_THAT(Node(functions), IsError(Code::kInvalidArgument, HasSubstr("no exported function")));
  EXPECT_THAT(Python(std::string(2 << 20, ' ')), IsOk());  // not looked at
}

TEST(Entrypoint, BrokenTextsEndTheScan) {
  const std::string pieces[] = {"\"",
                                "'''",
                                "`",
                                "`${",
                                "/*",
                                "/",
                                "\\",
                                "(",
                                "}",
                                "export",
                                "module.exports = {",
                                "from",
                                "def",
                                "global",
                                "\n",
                                "\xff",
                                "export {",
                                "export const",
                                "import",
                                "\t",
                                "exports",
                                "[",
                                "class"};
  for (const auto& a : pieces) {
    for (const auto& b : pieces) {
      for (const auto& text : {a + b, a + b + a, a + b + b}) {
        (void)Python(text);
        (void)Node(text);
      }
    }
  }
}

}  // namespace
}  // namespace sless::source
