#include "client/source/source.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstdlib>
#include <filesystem>

#include "client/base/digest.h"
#include "client/base/testing/result_matchers.h"
#include "client/source/ignore.h"
#include "client/source/testing/temp_dir.h"

namespace sless::source {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::IsError;
using base::IsOk;
using testing::AllOf;
using testing::HasSubstr;

std::string Hash(const base::Result<Tree>& tree) {
  return tree ? TreeHash(*tree) : base::ToString(tree.error());
}
std::string Paths(const base::Result<Tree>& tree) {
  if (!tree) return base::ToString(tree.error());
  std::string paths;
  for (const auto& entry : tree->entries) paths += entry.path + " ";
  return paths;
}

TEST(Ignore, Patterns) {
  struct Row {
    const char* rules;
    const char* path;
    bool directory;
    bool ignored;
  };
  const Row rows[] = {
      {"", ".git", true, true},
      {"", "a/.git", true, true},
      {"", ".gitignore", false, false},
      {"", "a/b.pyc", false, true},
      {"", "a/.DS_Store", false, true},
      {"", ".slessignore", false, true},
      {"", "a/.slessignore", false, false},
      {"*.log", "a/b.log", false, true},
      {"*.log", "b.logs", false, false},
      {"/a", "a", false, true},
      {"/a", "b/a", false, false},
      {"a/b", "a/b", false, true},
      {"a/b", "c/a/b", false, false},
      {"a/", "a", true, true},
      {"a/", "a", false, false},
      {"a/", "x/a", true, true},
      {"**/a", "a", false, true},
      {"**/a", "x/y/a", false, true},
      {"a/**", "a/b/c", false, true},
      {"a/**", "a", true, false},
      {"a/**/b", "a/b", false, true},
      {"a/**/b", "a/x/y/b", false, true},
      {"a/**/b", "ab", false, false},
      {"a/*", "a/b", false, true},
      {"a/*", "a/b/c", false, false},
      {"f?o", "foo", false, true},
      {"f?o", "f/o", false, false},
      {"[a-c]x", "bx", false, true},
      {"[!a-c]x", "bx", false, false},
      {"[^a-c]x", "dx", false, true},
      {"[]]x", "]x", false, true},
      {"[ab", "[ab", false, false},
      {"[[:digit:]]*", "1abc", false, true},
      {"[[:digit:]]*", "abc", false, false},
      {"[![:alpha:]_]*", "_a", false, false},
      {"[[:nosuch:]]", "n", false, false},
      {"\xef\xbb\xbf*.env\r\n", "x.env", false, true},
      {"\\#a", "#a", false, true},
      {"# comment", "# comment", false, false},
      {"\\!a", "!a", false, true},
      {"a\\*", "a*", false, true},
      {"a\\*", "ab", false, false},
      {"a   ", "a", false, true},
      {"a\\ ", "a ", false, true},
      {"*.log\r\n!keep.log\r\n", "keep.log", false, false},
      {"*.log\n!keep.log\n*.log", "keep.log", false, true},
      {"!*.pyc", "a.pyc", false, false},
      {"!.git", ".git", true, false},
      {"", "a/.terraform", true, true},
      {"", "terraform.tfstate", false, true},
      {"", ".terraform.tfstate.lock.info", false, true},
      {"", "terraform.tfstate.d", true, true},
      {"", "prod.tfvars", false, true},
      {"", "main.tf", false, false},
      {"a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false,
       false},
      {"/", "a", false, false},
      {"!", "a", false, false},
      {"**", "a/b", false, true},
      {"**/**/b", "b", false, true},
      {"**/**/b", "a/x/b", false, true},
      {"**/a/**", "x/a/y", false, true},
      {"**/a/**", "x/a", true, false},
      {"d/***/x", "d/x", false, true},
      {"d/***/x", "d/a/b/x", false, true},
      {"***/z", "z", false, true},
      {"d/****", "d/a/x", false, true},
      {"a/**/**", "a/b", false, true},
      {"a/b/c", "a/b", false, false},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(IgnoreRules(row.rules).Ignored(row.path, row.directory, false), row.ignored)
        << "\"" << row.rules << "\" on " << row.path;
  }
  EXPECT_TRUE(IgnoreRules("").Ignored("a/node_modules", true, true));
  EXPECT_FALSE(IgnoreRules("").Ignored("a/node_modules", true, false));
  EXPECT_FALSE(IgnoreRules("!node_modules").Ignored("node_modules", true, true));
}

std::string Times(size_t n, std::string_view text) {
  std::string all;
  for (size_t i = 0; i < n; ++i) all += text;
  return all;
}

TEST(Ignore, RulesMadeToTakeLongAreGivenUp) {
  std::string stars;
  for (int i = 0; i < 500; ++i) stars += "*a*a*a*a*a*a*a*a*b" + std::to_string(i) + "\n";
  const std::string name(250, 'a'), deep = Times(31, "a/") + "a";
  struct Row {
    const char* what;
    std::string rules, path;
  };
  for (const auto& [what, rules, path] :
       {Row{"many stars", stars, name}, Row{"a long class", "*[" + Times(60'000, "b") + "]", name},
        Row{"names without end", "*[" + Times(30'000, "[:") + "]", name},
        Row{"a class without end", "*[" + Times(60'000, "b"), name},
        Row{"any levels after any levels", Times(20'000, "**/") + "b", deep},
        Row{"stars behind the name", "a" + Times(60'000, "*"), "a"}}) {
    // A rule of 60 KB is looked at once or more for a path: no more than a hundred paths are asked.
    IgnoreRules ignore(rules, 2'000'000);
    int asked = 0;
    for (; asked < 100'000 && !ignore.TooCostly(); ++asked)
      (void)ignore.Ignored(path, false, false);
    EXPECT_LT(asked, 1000) << what;
    EXPECT_GT(asked, 0) << what;
  }
}

TEST(Ignore, OrdinaryRulesOnManyFilesAreCheap) {
  std::string rules;
  for (int i = 0; i < 100; ++i) rules += "/src/**/gen" + std::to_string(i) + "/*.[ch]\n";
  IgnoreRules ignore(rules);
  for (int i = 0; i < 10'000; ++i)
    ASSERT_FALSE(ignore.Ignored("lib/a/b/file" + std::to_string(i) + ".c", false, false));
  EXPECT_FALSE(ignore.TooCostly());
}

TEST(Ignore, MoreRulesThanAreAppliedAreRefused) {
  std::string most = "# keys\n\n";
  for (size_t i = 0; i < kMaxIgnoreRules; ++i) most += "key" + std::to_string(i) + "\n";
  EXPECT_FALSE(IgnoreRules(most).TooMany());
  const TempDir dir;
  dir.Write("s/handler.py", "def handle(event): pass\n");
  dir.Write("s/key999", "secret");
  dir.Write("s/.slessignore", most);
  const auto tree = ReadDirectory(dir.path() / "s");
  ASSERT_THAT(tree, IsOk());
  EXPECT_EQ(tree->entries.size(), 1u);
  dir.Write("s/.slessignore", most + "last\n");
  EXPECT_THAT(ReadDirectory(dir.path() / "s"),
              IsError(Code::kTooLarge, AllOf(HasSubstr(".slessignore"), HasSubstr("1000 rules"))));
}

TEST(Directory, HashHasAVectorAnybodyCanCompute) {
  const TempDir dir;
  dir.Write("handler.py", "def handle(event):\n    return event\n");
  dir.Write("bin/run", "#!/bin/sh\n", true);
  const auto tree = ReadDirectory(dir.path());
  // docs/source-hash.md shows this vector.
  const std::string text =
      "sless-tree 1\n"
      "x " +
      base::Sha256Hex("#!/bin/sh\n") +
      " 7:bin/run\n"
      "- " +
      base::Sha256Hex("def handle(event):\n    return event\n") + " 10:handler.py\n";
  EXPECT_EQ(Hash(tree), "sha256:" + base::Sha256Hex(text));
  EXPECT_EQ(Hash(tree), "sha256:84aec05104f4a541f2bf5e7bfe99394fd61cf84345d70bf31cb446e74b062e66");
}

TEST(Directory, WhatCountsAndWhatDoesNot) {
  const TempDir dir;
  const auto make = [&](const std::string& name) {
    dir.Write(name + "/a.py", "a");
    dir.Write(name + "/d/b", "b");
    return dir / name;
  };
  const auto base = Hash(ReadDirectory(make("base")));

  auto other = make("mtime");
  fs::last_write_time(other + "/a.py", fs::file_time_type::clock::now() - std::chrono::hours(1000));
  fs::permissions(other + "/a.py", fs::perms(0666));
  fs::create_directories(other + "/empty/folder");
  dir.Write("mtime/d/x.pyc", "ignored");
  dir.Write("mtime/.git/config", "ignored");
  dir.Write("mtime/.slessignore", "# nothing\n");
  EXPECT_EQ(Hash(ReadDirectory(other)), base);

  other = make("x");
  fs::permissions(other + "/a.py", fs::perms(0744));
  EXPECT_NE(Hash(ReadDirectory(other)), base);
  other = make("content");
  const auto time = fs::last_write_time(other + "/a.py");
  dir.Write("content/a.py", "A");  // same size
  fs::last_write_time(other + "/a.py", time);
  EXPECT_NE(Hash(ReadDirectory(other)), base);
  other = make("name");
  fs::rename(other + "/d/b", other + "/d/c");
  EXPECT_NE(Hash(ReadDirectory(other)), base);
  other = make("moved");
  fs::rename(other + "/d/b", other + "/b");
  EXPECT_NE(Hash(ReadDirectory(other)), base);
}

TEST(Directory, NodeModulesBesideALockFile) {
  const TempDir dir;
  dir.Write("a/index.js", "");
  dir.Write("a/node_modules/m/index.js", "");
  EXPECT_EQ(Paths(ReadDirectory(dir / "a")), "index.js node_modules/m/index.js ");
  dir.Write("a/package-lock.json", "{}");
  EXPECT_EQ(Paths(ReadDirectory(dir / "a")), "index.js package-lock.json ");
  dir.Write("a/.slessignore", "!node_modules/\n");
  EXPECT_EQ(Paths(ReadDirectory(dir / "a")), "index.js node_modules/m/index.js package-lock.json ");
  const auto kept = ReadDirectory(dir / "a");
  ASSERT_THAT(Unpack(*kept, dir / "layer"), IsOk());
  EXPECT_EQ(Paths(ReadDirectory(dir / "layer")), "index.js package-lock.json ");
  EXPECT_EQ(Hash(ReadUnpacked(dir / "layer")), Hash(kept));
  fs::create_symlink("index.js", dir / "layer/link");
  EXPECT_EQ(Hash(ReadUnpacked(dir / "layer")), Hash(kept)) << "Unpack makes no links";
}

TEST(Directory, Links) {
  const TempDir dir;
  dir.Write("s/d/run", "r", true);
  fs::create_symlink("d/run", dir / "s/link");
  fs::create_symlink("../link", dir / "s/d/again");
  const auto tree = ReadDirectory(dir / "s");
  EXPECT_EQ(Paths(tree), "d/again d/run link ");
  ASSERT_THAT(tree, IsOk());
  EXPECT_TRUE(tree->Find("link")->executable);
  EXPECT_EQ(tree->Find("d/again")->digest, tree->Find("d/run")->digest);

  const auto refused = [&](const std::string& target, const char* text) {
    fs::create_symlink(target, dir / "s/bad");
    const auto result = ReadDirectory(dir / "s");
    EXPECT_THAT(result,
                IsError(Code::kInvalidArgument, AllOf(HasSubstr("\"bad\""), HasSubstr(text))))
        << target;
    if (!result) {
      EXPECT_EQ(result.error().source.file, "bad");
    }
    fs::remove(dir / "s/bad");
  };
  dir.Write("outside", "o");
  dir.Write("s2/secret", "o");  // a sibling whose name starts alike
  refused("../outside", "outside of the source");
  refused("/etc/passwd", "outside of the source");
  refused(dir / "s2/secret", "outside of the source");
  refused("nothing", "cannot be followed");
  refused("bad", "cannot be followed");
  refused("d", "which is a folder");
  fs::create_symlink("/etc/passwd", dir / "s/bad");
  dir.Write("s/.slessignore", "/bad\n");
  EXPECT_THAT(ReadDirectory(dir / "s"), IsOk());
}

TEST(Directory, SpecialFilesAndOddNames) {
  const TempDir dir;
  dir.Write("s/a", "a");
  ASSERT_EQ(mkfifo((dir / "s/pipe").c_str(), 0600), 0);
  EXPECT_THAT(
      ReadDirectory(dir / "s"),
      IsError(Code::kInvalidArgument, AllOf(HasSubstr("\"pipe\""), HasSubstr("named pipe"))));
  dir.Write("s/.slessignore", "pipe");
  EXPECT_THAT(ReadDirectory(dir / "s"), IsOk());
  for (const char* name : {"a\\b", "bad\xff", "a\nb", "c:x"}) {
    dir.Write(std::string("odd/") + name, "x");
    EXPECT_THAT(ReadDirectory(dir / "odd"), IsError(Code::kInvalidArgument, HasSubstr("the name")))
        << name;
    fs::remove_all(dir / "odd");
  }
  if (geteuid() != 0) {
    dir.Write("locked/a", "x");
    fs::permissions(dir / "locked/a", fs::perms(0));
    EXPECT_THAT(ReadDirectory(dir / "locked"),
                IsError(Code::kPermissionDenied, HasSubstr("\"a\"")));
  }
}

TEST(Directory, NotADirectory) {
  const TempDir dir;
  EXPECT_THAT(ReadDirectory(dir / "none"), IsError(Code::kNotFound, HasSubstr("none")));
  EXPECT_THAT(ReadDirectory(dir.Write("f.zip", "x")),
              IsError(Code::kInvalidArgument, HasSubstr("source_zip")));
  fs::create_directories(dir / "empty/inner");
  EXPECT_THAT(ReadDirectory(dir / "empty"),
              IsError(Code::kInvalidArgument, HasSubstr("holds no file")));
}

TEST(Directory, Limits) {
  const TempDir dir;
  dir.Write("a", std::string(600, 'x'));
  dir.Write("b", std::string(600, 'x'));
  Limits limits;
  limits.max_total_bytes = 1000;
  EXPECT_THAT(ReadDirectory(dir.path(), limits), IsError(Code::kTooLarge, HasSubstr("\"b\"")));
  limits.max_file_bytes = 500;
  EXPECT_THAT(ReadDirectory(dir.path(), limits), IsError(Code::kTooLarge, HasSubstr("\"a\"")));
  limits = {};
  limits.max_files = 1;
  EXPECT_THAT(ReadDirectory(dir.path(), limits),
              IsError(Code::kTooLarge, HasSubstr("more than 1 files")));
  limits.max_archive_entries = 1;
  EXPECT_THAT(ReadDirectory(dir.path(), limits),
              IsError(Code::kTooLarge, HasSubstr("more than 1 files and folders")));
}

/// The same tree packed by the tools of this machine gives the hash of the folder.
TEST(Directory, HashIsThatOfAnyZipOfIt) {
  const TempDir dir;
  dir.Write("s/handler.py", "def handle(e): pass\n");
  dir.Write("s/bin/run", std::string(100'000, 'r'), true);
  dir.Write("s/caf\xc3\xa9/\xe2\x82\xac.txt", "euro");
  dir.Write("s/empty", "");
  dir.Write("s/.slessignore", "*.tmp\nbuild/\n");
  dir.Write("s/a.tmp", "t");
  dir.Write("s/build/out", "o");
  dir.Write("s/__pycache__/x.pyc", "p");
  dir.Write("s/web/package-lock.json", "{}");
  dir.Write("s/web/node_modules/m/i.js", "m");
  fs::create_directory(dir / "s/nothing");
  fs::create_symlink("bin/run", dir / "s/link");
  const auto want = Hash(ReadDirectory(dir / "s"));
  ASSERT_TRUE(want.starts_with("sha256:")) << want;
  const std::string python = R"(import os,sys,zipfile
z=zipfile.ZipFile(sys.argv[1],'w',zipfile.ZIP_DEFLATED)
for r,d,f in sorted(os.walk('.'),reverse=True):
  for n in sorted(f,reverse=True): z.write(os.path.join(r,n))
z.close())";
  dir.Write("pack.py", python);
  const struct {
    const char* tool;
    const char* command;
  } rows[] = {{"zip", "zip -q -9 -r ../t.zip ."},
              {"zip", "zip -q -0 -r ../t.zip ."},
              {"zip", "zip -q -y -r ../t.zip ."},  // keeps links
              {"zip", "LC_ALL=C zip -q -r ../t.zip ."},
              {"zip", "LC_ALL=C.UTF-8 zip -q -r ../t.zip ."},
              {"zip", "zip -q -D -r - . | cat > ../t.zip"},  // a stream, no folders
              {"zip", "zip -q -fz -r ../t.zip . -z < /dev/null"},
              {"python3", "python3 ../pack.py ../t.zip"},
              {"python3", "umask 077; python3 -m zipfile -c ../t.zip ."}};
  int ran = 0;
  for (const auto& row : rows) {
    if (std::system((std::string("command -v ") + row.tool + " >/dev/null 2>&1").c_str()) != 0)
      continue;
    fs::remove(dir / "t.zip");
    const auto command =
        "cd '" + (dir / "s") + "' && " + "{ " + row.command + "; } >/dev/null 2>&1";
    if (std::system(command.c_str()) != 0) continue;
    ++ran;
    EXPECT_EQ(Hash(ReadZip(dir / "t.zip")), want) << row.command;
  }
  if (ran == 0) GTEST_SKIP() << "neither zip nor python3 is here";
}

TEST(Inline, OneFile) {
  EXPECT_EQ(Paths(InlineTree("python3.11", "src/app.handle", "def handle(e): pass")),
            "src/app.py ");
  EXPECT_EQ(Paths(InlineTree("nodejs20", "handler.handle", "exports.handle = () => 1")),
            "handler.js ");
  EXPECT_EQ(Paths(InlineTree("nodejs20", "handler.handle",
                             "import fs from 'fs'\nexport const handle = () => 1")),
            "handler.mjs ");
  EXPECT_THAT(InlineTree("ruby", "h.h", ""), IsError(Code::kInvalidArgument, HasSubstr("ruby")));
  EXPECT_THAT(InlineTree("python3.11", "../h.h", ""),
              IsError(Code::kInvalidArgument, HasSubstr("leaves the tree")));
  const TempDir dir;
  const auto tree =
      InlineTree("python3.11", "handler.handle", "def handle(event):\n    return event\n");
  ASSERT_THAT(tree, IsOk());
  ASSERT_THAT(Unpack(*tree, dir / "out"), IsOk());
  EXPECT_EQ(Hash(ReadDirectory(dir / "out")), TreeHash(*tree));
}

}  // namespace
}  // namespace sless::source
