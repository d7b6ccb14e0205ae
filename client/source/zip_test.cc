#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <random>

#include "client/base/testing/result_matchers.h"
#include "client/source/source.h"
#include "client/source/testing/raw_zip.h"
#include "client/source/testing/temp_dir.h"

namespace sless::source {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::IsError;
using base::IsOk;
using testing::AllOf;
using testing::HasSubstr;

RawEntry File(std::string name, std::string bytes = "x", uint32_t mode = 0100644) {
  RawEntry entry;
  entry.name = std::move(name);
  entry.bytes = std::move(bytes);
  entry.mode = mode;
  return entry;
}
template <class F>
RawEntry With(RawEntry entry, F change) {
  change(entry);
  return entry;
}

base::Result<Tree> ReadBytes(const std::string& bytes, const Limits& limits = {}) {
  const MemoryFile file(bytes);
  return ReadZip(file.path(), limits);
}
base::Result<Tree> ReadEntries(std::vector<RawEntry> entries) {
  return ReadBytes(RawZip{std::move(entries)}.Bytes());
}

std::string Paths(const base::Result<Tree>& tree) {
  if (!tree) return base::ToString(tree.error());
  std::string paths;
  for (const auto& entry : tree->entries) paths += entry.path + (entry.executable ? "* " : " ");
  return paths;
}

struct Hostile {
  const char* name;
  RawZip zip;
  const char* entry;  ///< expected Error.source.file
  const char* text;
  Code code = Code::kInvalidArgument;
};
void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

std::vector<Hostile> HostileCases() {
  const std::string deep = [] {
    std::string path;
    for (int i = 0; i < 40; ++i) path += "d/";
    return path + "f";
  }();
  std::vector<Hostile> cases{
      {"Parent", {{File("a"), File("../evil")}}, "../evil", "leaves the tree"},
      {"ParentInside", {{File("a/../../evil")}}, "a/../../evil", "leaves the tree"},
      {"ParentThatStays", {{File("a/../b")}}, "a/../b", "leaves the tree"},
      {"ParentFolder", {{File("../", ""), File("a")}}, "../", "leaves the tree"},
      {"Absolute", {{File("/etc/passwd")}}, "/etc/passwd", "absolute"},
      {"DoubleSlash", {{File("//a")}}, "//a", "absolute"},
      {"Backslash", {{File("..\\evil")}}, "..\\evil", "backslash"},
      {"Drive", {{File("C:/x")}}, "C:/x", "drive letter"},
      {"DriveRelative", {{File("c:x")}}, "c:x", "drive letter"},
      {"Control", {{File("a\nb")}}, "a\nb", "control character"},
      {"NotUtf8", {{File("caf\xe9.py")}}, "\"caf\\xe9.py\"", "not UTF-8"},
      {"OverlongUtf8",
       {{File("a\xc0\xaf"
              "b")}},
       "\"a\\xc0\\xafb\"",
       "not UTF-8"},
      {"EmptyName", {{File("")}}, "", "empty"},
      {"Deep", {{File(deep)}}, nullptr, "levels deep"},
      {"Long", {{File(std::string(2000, 'a'))}}, nullptr, "bytes"},
      {"LinkOut", {{File("l", "../../etc/passwd", 0120777)}}, "l", "outside of the archive"},
      {"LinkAbsolute", {{File("l", "/etc/passwd", 0120777)}}, "l", "outside of the archive"},
      {"LinkDangling", {{File("l", "nothing", 0120777)}}, "l", "not there"},
      {"LinkToFolder", {{File("d/f"), File("l", "d", 0120777)}}, "l", "a folder"},
      {"LinkLoop", {{File("l", "m", 0120777), File("m", "l", 0120777)}}, "l", "too many links"},
      {"LinkThenThrough",
       {{File("l", "/tmp", 0120777), File("l/evil")}},
       "l/evil",
       "which is a link"},
      {"ThroughThenLink",
       {{File("l/evil"), File("l", "/tmp", 0120777)}},
       "l/evil",
       "which is a link"},
      {"LinkFolder", {{File("l/", "/tmp", 0120777)}}, "l/", "folder by its name"},
      {"Device", {{File("d", "", 0020666)}}, "d", "device"},
      {"Twice", {{File("a"), File("b"), File("a", "y")}}, "a", "there twice"},
      {"TwiceNormalised", {{File("d/a"), File("./d//a", "y")}}, "d/a", "there twice"},
      {"FileAndFolder", {{File("a"), File("a/b")}}, "a/b", "which is a file"},
      {"FileAndEmptyFolder",
       {{File("a"), File("a/", "", 0040755)}},
       "a",
       "both as a file and as a folder"},
      {"FolderWithContents", {{File("a/", "x", 0040755)}}, "a/", "folder with contents"},
      {"Encrypted", {{With(File("a"), [](auto& e) { e.flags = 1; })}}, "a", "encrypted"},
      {"EncryptedAes", {{With(File("a"), [](auto& e) { e.method = 99; })}}, "a", "encrypted"},
      {"Method", {{With(File("a"), [](auto& e) { e.method = 12; })}}, "a", "method 12"},
      {"Crc", {{With(File("a"), [](auto& e) { e.crc = 1; })}}, "a", "CRC is wrong"},
      {"StoredCrc",
       {{With(File("a"), [](auto& e) { e.crc = 1, e.deflate = false; })}},
       "a",
       "CRC is wrong"},
      {"Larger",
       {{With(File("a", "abcdef"), [](auto& e) { e.size = 3; })}},
       "a",
       "larger than the archive says"},
      {"Smaller",
       {{With(File("a", "abc"), [](auto& e) { e.size = 4; })}},
       "a",
       "has 3 bytes, the archive says 4"},
      {"StoredSizes",
       {{With(File("a", "abc"), [](auto& e) { e.size = 2, e.deflate = false; })}},
       "a",
       "two sizes differ"},
      {"LocalName", {{With(File("a"), [](auto& e) { e.local_name = "b"; })}}, "a", "another name"},
      {"LocalCrc",
       {{With(File("a"), [](auto& e) { e.local_crc = 7; })}},
       "a",
       "another size or CRC"},
      {"Overlap",
       {{File("a", "x"), With(File("b", "x"), [](auto& e) { e.offset = 0, e.local_name = "a"; })}},
       "b",
       "shares bytes"},
      {"OffsetOutside", {{With(File("a"), [](auto& e) { e.offset = 100000; })}}, nullptr, ""},
      {"PackedOutside",
       {{With(File("a"), [](auto& e) { e.packed_size = 100000; })}},
       "a",
       "reaches outside"},
      {"TooFewCounted", {{File("a"), File("b")}, "", "", "", false, 1}, "", "more entries"},
      {"TooManyCounted", {{File("a")}, "", "", "", false, 2}, "", "broken directory"},
      {"Before", {{File("a")}, "", "#!/bin/sh\n"}, "", "belong to no entry"},
      {"After", {{File("a")}, "", "", "more"}, "", "added at its end"},
      {"Empty", {{}}, "", "no entry"},
      {"OnlyFolders", {{File("a/", "", 0040755)}}, "", "holds no file"},
      {"OnlyIgnored", {{File(".git/config"), File("a.pyc")}}, "", "holds no file"},
      {"AMillionSaid",
       {{File("a")}, "", "", "", true, 1'000'000},
       "",
       "1000000 entries",
       Code::kTooLarge},
      {"IgnoredButHostile", {{File("a"), File(".git/../../x")}}, ".git/../../x", "leaves the tree"},
  };
  return cases;
}

class HostileZip : public testing::TestWithParam<Hostile> {};

TEST_P(HostileZip, IsRefusedByNameBeforeAnythingIsWritten) {
  const auto& row = GetParam();
  const TempDir dir;
  const auto zip = dir.Write("a.zip", row.zip.Bytes());
  const auto tree = Unpack(zip, dir / "out");
  ASSERT_THAT(tree, IsError(row.code, HasSubstr(row.text)));
  EXPECT_EQ(tree.error().reason, "BadArchive");
  if (row.entry != nullptr) {
    EXPECT_EQ(tree.error().source.file, row.entry);
  }
  EXPECT_FALSE(fs::exists(dir / "out"));
}
INSTANTIATE_TEST_SUITE_P(Cases, HostileZip, testing::ValuesIn(HostileCases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Zip, NulInAName) {
  EXPECT_THAT(ReadEntries({File(std::string("a\0b", 3))}),
              IsError(Code::kInvalidArgument, HasSubstr("NUL")));
}

TEST(Zip, AcceptsWhatToolsWrite) {
  RawZip zip;
  zip.entries = {
      With(File("stored", "s"), [](auto& e) { e.deflate = false; }),
      With(File("descriptor", "d"), [](auto& e) { e.descriptor = true; }),
      With(File("wide", "w"), [](auto& e) { e.zip64 = true; }),
      With(File("wide-descriptor", "wd"), [](auto& e) { e.zip64 = e.descriptor = true; }),
      With(File("caf\xc3\xa9", "u"), [](auto& e) { e.flags = 1 << 11; }),
      File("run.sh", "#!/bin/sh", 0100755),
      File("no-mode", "", 0),
      File("empty", ""),
      File("dir/", "", 0040755),
      File("./", "", 0040755),
      File("./dir//in", "i"),
      File("link", "dir/../run.sh", 0120777),
      File("dir/link2", "../link", 0120777)};
  zip.comment = "a comment";
  zip.zip64_end = true;
  const auto tree = ReadBytes(zip.Bytes());
  EXPECT_EQ(Paths(tree),
            "caf\xc3\xa9 descriptor dir/in dir/link2* empty link* no-mode run.sh* stored wide "
            "wide-descriptor ");
  ASSERT_THAT(tree, IsOk());
  EXPECT_EQ(tree->Find("link")->digest, tree->Find("run.sh")->digest);
}

TEST(Zip, SaysWhatElseAFileIs) {
  struct Row {
    std::string bytes;
    const char* text;
  };
  std::string tar(1024, '\0');
  tar.replace(257, 5, "ustar");
  const Row rows[] = {{"", "0 bytes"},
                      {"\x1f\x8b\x08junkjunkjunkjunkjunkjunk", "gzip"},
                      {tar, "tar file"},
                      {"7z\xbc\xaf\x27\x1c", "7z"},
                      {"BZh9", "bzip2"},
                      {"hello", "not a zip"},
                      {RawZip{{File("a")}}.Bytes().substr(0, 60), "truncated"}};
  for (const auto& row : rows)
    EXPECT_THAT(ReadBytes(row.bytes), IsError(Code::kInvalidArgument, HasSubstr(row.text)));
  const TempDir dir;
  EXPECT_THAT(ReadZip(dir / "none.zip"), IsError(Code::kNotFound, HasSubstr("none.zip")));
  EXPECT_THAT(ReadZip(dir.path()), IsError(Code::kInvalidArgument, HasSubstr("source_dir")));
}

TEST(Zip, EveryTruncationIsRefused) {
  const auto bytes = RawZip{{File("a", "hello hello hello"), File("b", "world")}}.Bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(ReadBytes(bytes.substr(0, size)), IsError(Code::kInvalidArgument, HasSubstr("")))
        << size;
  }
}

TEST(Zip, LimitsHoldForWhatIsReallyThere) {
  Limits limits;
  limits.max_file_bytes = 1000;
  limits.max_total_bytes = 1500;
  limits.max_files = 3;
  const auto read = [&](std::vector<RawEntry> entries) {
    return ReadBytes(RawZip{std::move(entries)}.Bytes(), limits);
  };
  EXPECT_THAT(read({File("a", std::string(1000, 'x'))}), IsOk());
  EXPECT_THAT(read({File("a", std::string(1001, 'x'))}),
              IsError(Code::kTooLarge, HasSubstr("\"a\"")));
  // A bomb that declares little.
  EXPECT_THAT(read({With(File("a", std::string(10'000'000, 'x')), [](auto& e) { e.size = 10; })}),
              IsError(Code::kInvalidArgument, HasSubstr("larger")));
  EXPECT_THAT(read({File("a", std::string(800, 'x')), File("b", std::string(800, 'x'))}),
              IsError(Code::kTooLarge, HasSubstr("\"b\"")));
  EXPECT_THAT(read({File("a"), File("b"), File("c"), File("d")}),
              IsError(Code::kTooLarge, HasSubstr("more than 3 files")));
  EXPECT_THAT(read({File("a"), File("b"), File("c"), File(".git/d")}), IsOk());
  // Links count as what they stand for.
  EXPECT_THAT(read({File("a", std::string(800, 'x')), File("l", "a", 0120777)}),
              IsError(Code::kTooLarge, HasSubstr("more than")));
  limits.max_archive_bytes = 100;
  EXPECT_THAT(read({File("a"), File("b")}),
              IsError(Code::kTooLarge, HasSubstr("at most 100 bytes")));
}

TEST(Zip, AMillionEntries) {
  RawZip zip;
  for (int i = 0; i < 60'000; ++i)
    zip.entries.push_back(
        With(File("f" + std::to_string(i), ""), [](auto& e) { e.deflate = false; }));
  EXPECT_THAT(ReadBytes(zip.Bytes()), IsError(Code::kTooLarge, HasSubstr("60000 entries")));
}

TEST(Zip, TwoEndRecordsAreATrick) {
  const auto inner = RawZip{{File("a")}}.Bytes();
  RawZip outer{{File("b")}};
  outer.comment = inner.substr(inner.size() - 22);
  EXPECT_THAT(ReadBytes(outer.Bytes()),
              IsError(Code::kInvalidArgument, HasSubstr("two end records")));
}

/// Flips, cuts, copies and doubles bytes: whatever comes of it is read or refused, never more, and
/// never unpacked elsewhere.
TEST(Zip, ThousandsOfMutations) {
  RawZip zip;
  zip.entries = {File("handler.py", "def handle(e):\n  return e\n"),
                 With(File("d/s", "stored"), [](auto& e) { e.deflate = false; }),
                 With(File("d/desc", "descriptor"), [](auto& e) { e.descriptor = true; }),
                 File("l", "d/s", 0120777),
                 With(File("wide", "w"), [](auto& e) { e.zip64 = true; })};
  zip.zip64_end = true;
  const auto sound = zip.Bytes();
  const TempDir dir;
  std::mt19937 random(20260101);
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    auto bytes = sound;
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % bytes.size();
      switch (random() % 5) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
        case 2:
          bytes.erase(at, random() % 8);
          break;
        case 3:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 60));
          break;
        default:
          bytes[at] = static_cast<char>(random() % 2 ? 0xff : 0);
          break;
      }
      if (bytes.empty()) bytes = "P";
    }
    const MemoryFile file(bytes);
    Limits limits;
    limits.max_total_bytes = 1 << 20;
    const auto tree = ReadZip(file.path(), limits);
    if (!tree) {
      EXPECT_FALSE(tree.error().message.empty());
      EXPECT_NE(tree.error().code, Code::kInternal);
      continue;
    }
    ++accepted;
    EXPECT_LE(tree->entries.size(), 6u);
    if (accepted % 20 == 0) {
      ASSERT_THAT(Unpack(*tree, dir / ("out" + std::to_string(round))), IsOk());
    }
  }
  EXPECT_GT(accepted, 100);  // dates, comments and the like do not count
  EXPECT_LT(accepted, 2000);
}

TEST(Zip, WriteThenReadGivesTheSameTree) {
  const TempDir dir;
  dir.Write("src/handler.py", "def handle(e): pass\n");
  dir.Write("src/bin/run", std::string(300'000, 'r'), true);
  dir.Write("src/empty", "");
  dir.Write("src/caf\xc3\xa9", "u");
  dir.Write("src/.slessignore", "*.tmp\n!__pycache__/\n");
  dir.Write("src/a.tmp", "ignored");
  dir.Write("src/__pycache__/kept", "kept");
  const auto tree = ReadDirectory(dir / "src");
  ASSERT_THAT(tree, IsOk());
  EXPECT_EQ(Paths(tree), "__pycache__/kept bin/run* caf\xc3\xa9 empty handler.py ");
  std::string bytes;
  ASSERT_THAT(WriteZip(*tree, [&](std::string_view piece) { return bytes += piece, base::Ok(); }),
              IsOk());
  const auto back = ReadZip(dir.Write("a.zip", bytes));
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(TreeHash(*back), TreeHash(*tree));

  // The stream, in odd pieces, gives the same bytes, and so does a zip of the zip.
  for (const auto* from : {&*tree, &*back}) {
    const auto reader = ZipStream(*from)();
    ASSERT_THAT(reader, IsOk());
    std::string streamed;
    char piece[977];
    for (;;) {
      const auto n = (*reader)(piece, sizeof piece);
      ASSERT_THAT(n, IsOk());
      if (*n == 0) break;
      streamed.append(piece, *n);
    }
    EXPECT_EQ(streamed, bytes);
  }
}

TEST(Zip, AFileThatChangesDuringTheUploadIsSeen) {
  const TempDir dir;
  dir.Write("src/a", "one");
  const auto tree = ReadDirectory(dir / "src");
  ASSERT_THAT(tree, IsOk());
  const auto write = [&] { return WriteZip(*tree, [](std::string_view) { return base::Ok(); }); };
  ASSERT_THAT(write(), IsOk());
  for (const char* bytes : {"two", "", "longer than before"}) {
    dir.Write("src/a", bytes);
    EXPECT_THAT(write(), IsError(Code::kAborted, AllOf(HasSubstr("\"a\""), HasSubstr("changed"))))
        << bytes;
  }
  fs::remove(dir / "src/a");
  EXPECT_THAT(write(), IsError(Code::kAborted, HasSubstr("\"a\"")));
  fs::create_symlink("/etc/passwd", dir / "src/a");
  EXPECT_THAT(write(), IsError(Code::kAborted, HasSubstr("\"a\"")));
}

TEST(Unpack, ModesAndContents) {
  const TempDir dir;
  const auto zip =
      dir.Write("a.zip", RawZip{{File("d/e/run", "#!", 0100777), File("d/f", "f", 0100600),
                                 File("d/l", "e/run", 0120777), File("g")}}
                             .Bytes());
  const auto old = umask(077);
  const auto tree = Unpack(zip, dir / "out");
  umask(old);
  ASSERT_THAT(tree, IsOk());
  EXPECT_EQ(dir.Read("out/d/e/run"), "#!");
  EXPECT_EQ(dir.Read("out/d/l"), "#!");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(dir / "out/d/l")));
  EXPECT_EQ(static_cast<int>(fs::status(dir / "out/d/e/run").permissions()), 0755);
  EXPECT_EQ(static_cast<int>(fs::status(dir / "out/d/f").permissions()), 0644);
  EXPECT_EQ(static_cast<int>(fs::status(dir / "out/d/e").permissions()), 0755);
  const auto back = ReadDirectory(dir / "out");
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(TreeHash(*back), TreeHash(*tree));
  EXPECT_THAT(Unpack(zip, dir / "out"), IsError(Code::kFailedPrecondition, HasSubstr("not empty")));
}

TEST(Unpack, NeverThroughALink) {
  const TempDir dir;
  const auto zip = dir.Write("a.zip", RawZip{{File("a")}}.Bytes());
  fs::create_directory(dir / "elsewhere");
  fs::create_symlink(dir / "elsewhere", dir / "out");
  EXPECT_FALSE(Unpack(zip, dir / "out").has_value());
  EXPECT_TRUE(fs::is_empty(dir / "elsewhere"));
  Tree forged;
  forged.entries.push_back({"../evil", false, 0, "", 0});
  EXPECT_THAT(Unpack(forged, dir / "out2"),
              IsError(Code::kInvalidArgument, HasSubstr("leaves the tree")));
}

}  // namespace
}  // namespace sless::source
