#include "client/source/zip_archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "client/base/strings.h"
#include "client/source/paths.h"

namespace sless::source {
namespace {

using base::Code;
using base::ErrnoText;
using base::Fd;

constexpr size_t kEndBytes = 22, kCentralBytes = 46, kLocalBytes = 30, kLocatorBytes = 20,
                 kEnd64Bytes = 56;
constexpr uint64_t kMaxDirectoryBytes = 64 << 20;
constexpr uint32_t kEndMark = 0x06054b50, kCentralMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr uint32_t kLocatorMark = 0x07064b50, kEnd64Mark = 0x06064b50;
constexpr uint16_t kEncrypted = 1 << 0, kDescriptor = 1 << 3, kPatch = 1 << 5, kStrong = 1 << 6,
                   kMasked = 1 << 13;

uint64_t Number(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = size; i > 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i - 1]);
  return value;
}
uint16_t U16(std::string_view b, size_t at) { return static_cast<uint16_t>(Number(b, at, 2)); }
uint32_t U32(std::string_view b, size_t at) { return static_cast<uint32_t>(Number(b, at, 4)); }
uint64_t U64(std::string_view b, size_t at) { return Number(b, at, 8); }

/// The body of the extra field with this id; nullopt if there is none or the fields are malformed.
std::optional<std::string_view> Extra(std::string_view extra, uint16_t id) {
  while (extra.size() >= 4) {
    const size_t size = U16(extra, 2);
    if (size > extra.size() - 4) return std::nullopt;
    if (U16(extra, 0) == id) return extra.substr(4, size);
    extra.remove_prefix(4 + size);
  }
  return std::nullopt;
}

/// The UTF-8 name of Info-ZIP's extra field 0x7075, if it belongs to `name`.
std::string NameFrom(std::string_view name, std::string_view extra, bool utf8_flag) {
  const auto unicode = Extra(extra, 0x7075);
  if (!utf8_flag && unicode && unicode->size() > 5 && (*unicode)[0] == 1) {
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(name.data()), static_cast<uInt>(name.size()));
    if (U32(*unicode, 1) == crc) return std::string(unicode->substr(5));
  }
  return std::string(name);
}

/// Drops "./" and doubled '/'; everything else stays for PathProblem to judge.
std::string Normalised(std::string_view name) {
  std::string out;
  if (name.starts_with('/')) return std::string(name);
  for (size_t start = 0; start < name.size();) {
    const size_t end = std::min(name.find('/', start), name.size());
    const auto segment = name.substr(start, end - start);
    if (!segment.empty() && segment != ".") {
      if (!out.empty()) out += '/';
      out += segment;
    }
    start = end + 1;
  }
  return out;
}

/// What a file that is no zip seems to be.
std::string_view Guess(std::string_view head) {
  if (head.starts_with("\x1f\x8b")) return "is a gzip file, not a zip (a .tar.gz?)";
  if (head.size() >= 262 && head.substr(257, 5) == "ustar") return "is a tar file, not a zip";
  if (head.starts_with("7z\xbc\xaf\x27\x1c")) return "is a 7z file, not a zip";
  if (head.starts_with("BZh")) return "is a bzip2 file, not a zip";
  if (head.starts_with(std::string_view("\xfd"
                                        "7zXZ\0",
                                        6)))
    return "is an xz file, not a zip";
  if (head.starts_with("\x28\xb5\x2f\xfd")) return "is a zstd file, not a zip";
  if (head.starts_with("Rar!")) return "is a rar file, not a zip";
  if (head.starts_with("PK\x07\x08")) return "is one part of a split zip";
  if (head.starts_with("PK\x03\x04")) return "is truncated: the directory at its end is missing";
  return "is not a zip";
}

}  // namespace

/// Reads and checks the structure of one archive.
class ZipParser {
 public:
  ZipParser(ZipArchive& archive, const Limits& limits) : archive_(archive), limits_(limits) {}

  base::Status Run() {
    RETURN_IF_ERROR(FindEnd());
    RETURN_IF_ERROR(ReadDirectory());
    return CheckLocals();
  }

 private:
  base::Result<std::string> Bytes(uint64_t offset, size_t size) {
    std::string bytes(size, '\0');
    RETURN_IF_ERROR(archive_.ReadAt(offset, bytes.data(), size));
    return bytes;
  }

  /// The end record is the one that ends with the file. Two that do so, one in the comment of the
  /// other, are a trick.
  base::Status FindEnd() {
    const size_t tail_size =
        static_cast<size_t>(std::min<uint64_t>(archive_.size_, kEndBytes + 65535));
    ASSIGN_OR_RETURN(const auto tail, Bytes(archive_.size_ - tail_size, tail_size));
    std::optional<size_t> found;
    bool seen = false;
    for (size_t at = 0; at + kEndBytes <= tail_size; ++at) {
      if (U32(tail, at) != kEndMark) continue;
      seen = true;
      if (at + kEndBytes + U16(tail, at + 20) != tail_size) continue;
      if (found) return BadArchive("", "has two end records");
      found = at;
    }
    if (!found) {
      ASSIGN_OR_RETURN(const auto head,
                       Bytes(0, static_cast<size_t>(std::min<uint64_t>(archive_.size_, 512))));
      return BadArchive("", seen && head.starts_with("PK")
                                ? "is damaged: bytes are missing or have been added at its end"
                                : Guess(head));
    }
    return ReadEnd(std::string_view(tail).substr(*found), archive_.size_ - tail_size + *found);
  }

  base::Status ReadEnd(std::string_view end, uint64_t end_offset) {
    if (U16(end, 4) != 0 || U16(end, 6) != 0 || U16(end, 8) != U16(end, 10))
      return BadArchive("", "is one part of a split zip");
    count_ = U16(end, 10);
    directory_size_ = U32(end, 12);
    directory_ = U32(end, 16);
    uint64_t directory_end = end_offset;
    if (end_offset >= kLocatorBytes) {
      ASSIGN_OR_RETURN(const auto locator, Bytes(end_offset - kLocatorBytes, kLocatorBytes));
      if (U32(locator, 0) == kLocatorMark) {
        RETURN_IF_ERROR(ReadEnd64(locator, end_offset - kLocatorBytes));
        directory_end = U64(locator, 8);
      }
    }
    if (count_ > limits_.max_archive_entries) {
      return BadArchive("",
                        fmt::format("has {} entries, at most {} are allowed", count_,
                                    limits_.max_archive_entries),
                        Code::kTooLarge);
    }
    if (count_ == 0) return BadArchive("", "is empty: it has no entry");
    if (directory_size_ > kMaxDirectoryBytes)
      return BadArchive("", "has a directory of more than 64 MiB", Code::kTooLarge);
    if (directory_ > directory_end || directory_end - directory_ != directory_size_) {
      return BadArchive("",
                        "has bytes that belong to no entry, before its first entry or behind its "
                        "directory; zip again");
    }
    return base::Ok();
  }

  base::Status ReadEnd64(std::string_view locator, uint64_t locator_offset) {
    const uint64_t offset = U64(locator, 8);
    if (U32(locator, 4) != 0 || U32(locator, 16) > 1)
      return BadArchive("", "is one part of a split zip");
    if (locator_offset < kEnd64Bytes || offset > locator_offset - kEnd64Bytes)
      return BadArchive("", "has a broken zip64 end record");
    ASSIGN_OR_RETURN(const auto end, Bytes(offset, kEnd64Bytes));
    if (U32(end, 0) != kEnd64Mark || U64(end, 4) != locator_offset - offset - 12 ||
        U64(end, 24) != U64(end, 32)) {
      return BadArchive("", "has a broken zip64 end record");
    }
    const uint64_t count = U64(end, 32), size = U64(end, 40), directory = U64(end, 48);
    // A field of the classic record is all ones, or says the same.
    if ((count_ != 0xffff && count_ != count) ||
        (directory_size_ != 0xffffffff && directory_size_ != size) ||
        (directory_ != 0xffffffff && directory_ != directory)) {
      return BadArchive("", "has two end records that contradict each other");
    }
    count_ = count;
    directory_size_ = size;
    directory_ = directory;
    return base::Ok();
  }

  base::Status ReadDirectory() {
    ASSIGN_OR_RETURN(const auto bytes, Bytes(directory_, static_cast<size_t>(directory_size_)));
    std::string_view rest = bytes;
    for (uint64_t i = 0; i < count_; ++i) {
      if (rest.size() < kCentralBytes || U32(rest, 0) != kCentralMark)
        return BadArchive("", "has a broken directory");
      const size_t size = kCentralBytes + U16(rest, 28) + U16(rest, 30) + U16(rest, 32);
      if (size > rest.size()) return BadArchive("", "has a broken directory");
      RETURN_IF_ERROR(ReadEntry(rest.substr(0, size)));
      rest.remove_prefix(size);
    }
    if (!rest.empty()) return BadArchive("", "has more entries in its directory than it says");
    return base::Ok();
  }

  base::Status ReadEntry(std::string_view entry) {
    Member member;
    const uint16_t flags = U16(entry, 8);
    const auto raw_name = entry.substr(kCentralBytes, U16(entry, 28));
    const auto extra = entry.substr(kCentralBytes + raw_name.size(), U16(entry, 30));
    const auto name = NameFrom(raw_name, extra, (flags & (1 << 11)) != 0);
    const auto bad = [&](std::string_view why, Code code = Code::kInvalidArgument) {
      return BadArchive(name, why, code);
    };

    member.name = Normalised(name);
    const bool root_folder =
        member.name.empty() && name.ends_with('/');  // "./", as some tools write it
    if (!root_folder) {
      if (const auto problem = PathProblem(member.name, limits_); !problem.empty())
        return bad(problem);
    }
    member.method = U16(entry, 10);
    if (flags & (kEncrypted | kStrong | kMasked) || member.method == 99)
      return bad("is encrypted; zip it without a password");
    if (flags & kPatch) return bad("is patch data, which is not supported");
    member.crc = U32(entry, 16);
    member.packed = U32(entry, 20);
    member.size = U32(entry, 24);
    member.header = U32(entry, 42);
    if (!Widen(extra, member)) return bad("has a broken zip64 field");
    if (U16(entry, 34) != 0 && U16(entry, 34) != 0xffff)
      return bad("lies in another part of a split zip");
    if (const auto problem = KindProblem(U32(entry, 38) >> 16, name.ends_with('/'), member);
        !problem.empty())
      return bad(problem);
    if (member.kind != Member::Kind::kDirectory && member.method != 0 && member.method != 8) {
      return bad(
          fmt::format("is packed by method {}, want stored (0) or deflated (8)", member.method));
    }
    if (member.method == 0 && member.packed != member.size)
      return bad("is stored, but its two sizes differ");
    flags_.push_back(flags);
    raw_names_.emplace_back(raw_name);
    archive_.members_.push_back(std::move(member));
    return base::Ok();
  }

  static bool Widen(std::string_view extra, Member& member) {
    const bool needed =
        member.size == 0xffffffff || member.packed == 0xffffffff || member.header == 0xffffffff;
    if (!needed) return true;
    const auto field = Extra(extra, 0x0001);
    if (!field) return false;
    size_t at = 0;
    for (uint64_t* value : {&member.size, &member.packed, &member.header}) {
      if (*value != 0xffffffff) continue;
      if (at + 8 > field->size()) return false;
      *value = U64(*field, at);
      at += 8;
    }
    return true;
  }

  static std::string KindProblem(uint32_t mode, bool slash, Member& member) {
    using Kind = Member::Kind;
    switch (mode & S_IFMT) {
      case 0:
        member.kind = slash ? Kind::kDirectory : Kind::kFile;
        break;
      case S_IFREG:
        if (slash) return "is a file by its mode and a folder by its name";
        member.kind = Kind::kFile;
        break;
      case S_IFDIR:
        member.kind = Kind::kDirectory;
        break;
      case S_IFLNK:
        if (slash) return "is a link by its mode and a folder by its name";
        member.kind = Kind::kLink;
        break;
      default:
        return "is a device, pipe or socket, only regular files can be part of a source";
    }
    if (member.kind == Kind::kDirectory && member.size != 0) return "is a folder with contents";
    member.executable = member.kind == Kind::kFile && (mode & S_IXUSR) != 0;
    return "";
  }

  /// Every local header says what the directory says, and no two entries share bytes (the trick of
  /// overlapping bombs).
  base::Status CheckLocals() {
    auto& members = archive_.members_;
    std::vector<size_t> order(members.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return members[a].header < members[b].header; });
    uint64_t free_from = 0;
    for (const size_t i : order) {
      if (members[i].header < free_from)
        return BadArchive(members[i].name, "shares bytes with another entry");
      if (free_from == 0 && members[i].header != 0)
        return BadArchive("",
                          "has bytes before its first entry (a self-extracting one?); zip again");
      RETURN_IF_ERROR(CheckLocal(i));
      free_from = members[i].data + members[i].packed;
    }
    return base::Ok();
  }

  base::Status CheckLocal(size_t i) {
    Member& member = archive_.members_[i];
    const auto bad = [&](std::string_view why) { return BadArchive(member.name, why); };
    if (member.header > directory_ || directory_ - member.header < kLocalBytes)
      return bad("lies outside of the archive");
    ASSIGN_OR_RETURN(const auto head, Bytes(member.header, kLocalBytes));
    if (U32(head, 0) != kLocalMark) return bad("has no local header where the directory says");
    const size_t more = size_t{U16(head, 26)} + U16(head, 28);
    member.data = member.header + kLocalBytes + more;
    if (member.data > directory_ || directory_ - member.data < member.packed)
      return bad("reaches outside of the archive");
    ASSIGN_OR_RETURN(const auto names, Bytes(member.header + kLocalBytes, more));
    if (std::string_view(names).substr(0, U16(head, 26)) != raw_names_[i])
      return bad("has another name in its local header");
    const uint16_t flags = U16(head, 6);
    if (U16(head, 8) != member.method || ((flags ^ flags_[i]) & (kEncrypted | kDescriptor)) != 0) {
      return bad("has another method or other flags in its local header");
    }
    Member local;
    local.crc = U32(head, 14);
    local.packed = U32(head, 18);
    local.size = U32(head, 22);
    if (!Widen(std::string_view(names).substr(U16(head, 26)), local))
      return bad("has a broken zip64 field");
    // With a data descriptor the values come behind the data; the header has zeros, or some of them
    // already.
    const auto same = [&](uint64_t here, uint64_t there) {
      return here == there || (here == 0 && (flags & kDescriptor));
    };
    if (!same(local.crc, member.crc) || !same(local.packed, member.packed) ||
        !same(local.size, member.size)) {
      return bad("has another size or CRC in its local header");
    }
    return base::Ok();
  }

  ZipArchive& archive_;
  const Limits& limits_;
  uint64_t count_ = 0, directory_ = 0, directory_size_ = 0;
  std::vector<uint16_t> flags_;
  std::vector<std::string> raw_names_;
};

namespace {

/// Inflates or copies one member. Not thread-safe.
class MemberReader {
 public:
  MemberReader(std::shared_ptr<const ZipArchive> archive, int fd, const Member& member)
      : archive_(std::move(archive)),
        fd_(fd),
        member_(member),
        left_(member.packed),
        at_(member.data) {}
  ~MemberReader() {
    if (started_) inflateEnd(&stream_);
  }
  MemberReader(const MemberReader&) = delete;

  base::Result<size_t> Read(char* out, size_t size) {
    if (done_ || size == 0) return 0;
    ASSIGN_OR_RETURN(const size_t n, member_.method == 0 ? Stored(out, size) : Inflated(out, size));
    produced_ += n;
    if (produced_ > member_.size) return Bad("is larger than the archive says");
    crc_ = crc32(crc_, reinterpret_cast<const Bytef*>(out), static_cast<uInt>(n));
    if (n == 0 || produced_ == member_.size) RETURN_IF_ERROR(End());
    return n;
  }

 private:
  tl::unexpected<base::Error> Bad(std::string_view why) const {
    return BadArchive(member_.name, why);
  }

  /// Next bytes of the archive, at most `size`.
  base::Result<size_t> Raw(char* out, size_t size) {
    const size_t want = static_cast<size_t>(std::min<uint64_t>(size, left_));
    for (size_t got = 0; got < want;) {
      const ssize_t n = pread(fd_, out + got, want - got, static_cast<off_t>(at_ + got));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Bad("cannot be read: the archive was changed meanwhile");
      got += static_cast<size_t>(n);
    }
    at_ += want;
    left_ -= want;
    return want;
  }

  base::Result<size_t> Stored(char* out, size_t size) { return Raw(out, size); }

  base::Result<size_t> Inflated(char* out, size_t size) {
    if (!started_) {
      if (inflateInit2(&stream_, -15) != Z_OK)
        return base::Err(Code::kResourceExhausted, "no memory to inflate an archive");
      started_ = true;
      in_.resize(32 << 10);
    }
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(size, 1 << 30));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out > 0 && !stream_end_) {
      if (stream_.avail_in == 0) {
        ASSIGN_OR_RETURN(const size_t n, Raw(in_.data(), in_.size()));
        if (n == 0) return Bad("is truncated");
        stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
        stream_.avail_in = static_cast<uInt>(n);
      }
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        stream_end_ = true;
      } else if (result != Z_OK) {
        return Bad("is damaged: its bytes cannot be inflated");
      }
    }
    return room - stream_.avail_out;
  }

  base::Status End() {
    done_ = true;
    if (member_.method == 8) {
      // The end of the compressed stream may lie behind the last byte; one more byte would be too
      // much.
      char extra = 0;
      ASSIGN_OR_RETURN(const size_t more,
                       stream_end_ ? base::Result<size_t>(0) : Inflated(&extra, 1));
      if (more > 0) return Bad("is larger than the archive says");
      if (!stream_end_ || left_ > 0 || stream_.avail_in > 0)
        return Bad("has bytes behind its compressed data");
    }
    if (produced_ != member_.size)
      return Bad(fmt::format("has {} bytes, the archive says {}", produced_, member_.size));
    if (crc_ != member_.crc) return Bad("is damaged: its CRC is wrong");
    return base::Ok();
  }

  const std::shared_ptr<const ZipArchive> archive_;  // keeps the file open
  const int fd_;
  const Member& member_;  // of archive_
  uint64_t left_, at_, produced_ = 0;
  uLong crc_ = 0;
  z_stream stream_{};
  std::string in_;
  bool started_ = false, stream_end_ = false, done_ = false;
};

}  // namespace

base::Status ZipArchive::ReadAt(uint64_t offset, char* out, size_t size) const {
  if (offset > size_ || size_ - offset < size) return BadArchive("", "is truncated");
  for (size_t got = 0; got < size;) {
    const ssize_t n = pread(file_.get(), out + got, size - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return base::Err(Code::kUnavailable,
                       fmt::format("the archive cannot be read: {}", ErrnoText()));
    if (n == 0) return BadArchive("", "is truncated");
    got += static_cast<size_t>(n);
  }
  return base::Ok();
}

base::Result<std::shared_ptr<const ZipArchive>> ZipArchive::Load(const std::string& path,
                                                                 const Limits& limits) {
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) {
    const auto code =
        errno == EACCES ? Code::kPermissionDenied : base::ErrnoCode(errno, Code::kNotFound);
    return base::Err(code,
                     fmt::format("the file {} cannot be read: {}", ShowPath(path), ErrnoText()));
  }
  if (S_ISDIR(info.st_mode)) {
    return base::Err(Code::kInvalidArgument,
                     fmt::format("{} is a folder, want a zip file; a folder goes to source_dir",
                                 ShowPath(path)));
  }
  if (!S_ISREG(info.st_mode))
    return base::Err(Code::kInvalidArgument, fmt::format("{} is no regular file", ShowPath(path)));
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size == 0) return BadArchive("", "is empty: the file has 0 bytes");
  if (size > limits.max_archive_bytes) {
    return BadArchive("",
                      fmt::format("has {}, at most {} are allowed", ShowBytes(size),
                                  ShowBytes(limits.max_archive_bytes)),
                      Code::kTooLarge);
  }
  const auto archive = std::make_shared<ZipArchive>(std::move(file), size);
  archive->self_ = archive;
  RETURN_IF_ERROR(ZipParser(*archive, limits).Run());
  return archive;
}

base::Result<Reader> ZipArchive::Open(const Member& member) const {
  const auto reader = std::make_shared<MemberReader>(self_.lock(), file_.get(), member);
  return Reader([reader](char* out, size_t size) { return reader->Read(out, size); });
}

base::Result<std::string> ZipArchive::ReadSmall(const Member& member, size_t most) const {
  ASSIGN_OR_RETURN(const auto reader, Open(member));
  std::string text(most + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    ASSIGN_OR_RETURN(const size_t n, reader(text.data() + size, text.size() - size));
    if (n == 0) break;
    size += n;
  }
  if (size > most)
    return BadArchive(member.name, fmt::format("is longer than {} bytes", most), Code::kTooLarge);
  text.resize(size);
  return text;
}

}  // namespace sless::source
