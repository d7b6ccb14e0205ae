#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "client/base/digest.h"
#include "client/source/ignore.h"
#include "client/source/paths.h"
#include "client/source/source.h"

namespace sless::source {
namespace {

using base::Code;

void Put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

/// Writes a zip piece by piece: what is asked for is made, nothing is kept but the directory. Not
/// thread-safe.
class ZipMaker {
 public:
  explicit ZipMaker(Tree tree) : tree_(std::move(tree)) {}
  ~ZipMaker() {
    if (deflating_) deflateEnd(&stream_);
  }
  ZipMaker(const ZipMaker&) = delete;

  base::Result<size_t> Read(char* out, size_t size) {
    while (ready_.size() == given_ && !done_) {
      ready_.clear();
      given_ = 0;
      RETURN_IF_ERROR(Step());
    }
    const size_t n = ready_.copy(out, size, given_);
    given_ += n;
    return n;
  }

 private:
  struct Written {
    std::string path;
    bool executable;
    uint32_t crc;
    uint64_t packed, size, offset;
  };

  /// Makes the next piece.
  base::Status Step() {
    if (!checked_) {
      RETURN_IF_ERROR(Check());
      checked_ = true;
      if (!tree_.ignore_text.empty()) return IgnoreFile();
    }
    if (deflating_) return Continue();
    if (next_ < tree_.entries.size()) return Start(tree_.entries[next_++]);
    Directory();
    done_ = true;
    return base::Ok();
  }

  base::Status Check() const {
    // Without zip64; the default limits are far below.
    if (tree_.entries.size() > 60'000 || tree_.TotalBytes() > (3ull << 30)) {
      return base::Err(Code::kTooLarge,
                       "a source of more than 60000 files or 3 GiB cannot be packed");
    }
    return base::Ok();
  }

  void Emit(std::string_view bytes) {
    ready_ += bytes;
    offset_ += bytes.size();
  }

  void Common(std::string& out) const {
    Put(out, 20, 2);                // version 2.0
    Put(out, 1 << 3 | 1 << 11, 2);  // sizes behind the data, UTF-8
    Put(out, 8, 2);                 // deflated
    Put(out, 0, 2);                 // 00:00
    Put(out, 0x21, 2);              // 1980-01-01
  }

  void Begin(const std::string& path, bool executable) {
    written_.push_back({path, executable, 0, 0, 0, offset_});
    std::string head = "PK\x03\x04";
    Common(head);
    head.append(12, '\0');  // CRC and sizes: behind the data
    Put(head, path.size(), 2);
    Put(head, 0, 2);
    Emit(head + path);
    packed_from_ = offset_;
    crc_ = 0;
    read_ = 0;
  }

  base::Status StartDeflate() {
    stream_ = {};
    if (deflateInit2(&stream_, Z_BEST_SPEED, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
      return base::Err(Code::kResourceExhausted, "no memory to pack the source");
    }
    deflating_ = true;
    return base::Ok();
  }

  void Deflate(std::string_view bytes, bool last) {
    crc_ =
        crc32(crc_, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    read_ += bytes.size();
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(packed_.data());
      stream_.avail_out = static_cast<uInt>(packed_.size());
      deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
      Emit(std::string_view(packed_).substr(0, packed_.size() - stream_.avail_out));
    } while (stream_.avail_out == 0);
  }

  void End() {
    deflateEnd(&stream_);
    deflating_ = false;
    auto& written = written_.back();
    written.crc = static_cast<uint32_t>(crc_);
    written.packed = offset_ - packed_from_;
    written.size = read_;
    std::string descriptor = "PK\x07\x08";
    Put(descriptor, written.crc, 4);
    Put(descriptor, written.packed, 4);
    Put(descriptor, written.size, 4);
    Emit(descriptor);
  }

  base::Status IgnoreFile() {
    Begin(std::string(kIgnoreFile), false);
    RETURN_IF_ERROR(StartDeflate());
    Deflate(tree_.ignore_text, true);
    End();
    return base::Ok();
  }

  base::Status Start(const Entry& entry) {
    ASSIGN_OR_RETURN(reader_, tree_.contents->Open(entry));
    entry_ = &entry;
    hash_ = base::Sha256();
    Begin(entry.path, entry.executable);
    return StartDeflate();
  }

  base::Status Continue() {
    ASSIGN_OR_RETURN(const size_t n, reader_(in_.data(), in_.size()));
    const auto bytes = std::string_view(in_).substr(0, n);
    hash_.Update(bytes);
    if (read_ + n > entry_->size) return Changed();
    Deflate(bytes, n == 0);
    if (n > 0) return base::Ok();
    if (read_ != entry_->size || hash_.Hex() != entry_->digest) return Changed();
    End();
    reader_ = nullptr;
    return base::Ok();
  }

  base::Status Changed() const {
    return BadFile(entry_->path, "was changed after the source was hashed; run again",
                   Code::kAborted);
  }

  void Directory() {
    const uint64_t start = offset_;
    for (const auto& file : written_) {
      std::string head = "PK\x01\x02";
      Put(head, 3 << 8 | 20, 2);  // made by unix
      Common(head);
      Put(head, file.crc, 4);
      Put(head, file.packed, 4);
      Put(head, file.size, 4);
      Put(head, file.path.size(), 2);
      Put(head, 0, 2 + 2 + 2 + 2);  // no extra field, no comment, disk 0, no internal attributes
      Put(head, uint64_t{file.executable ? 0100755u : 0100644u} << 16, 4);
      Put(head, file.offset, 4);
      Emit(head + file.path);
    }
    std::string end = "PK\x05\x06";
    Put(end, 0, 4);
    Put(end, written_.size(), 2);
    Put(end, written_.size(), 2);
    Put(end, offset_ - start, 4);
    Put(end, start, 4);
    Put(end, 0, 2);
    Emit(end);
  }

  const Tree tree_;
  std::vector<Written> written_;
  std::string ready_;    // made, not yet given
  size_t given_ = 0;     // of ready_
  uint64_t offset_ = 0;  // of the end of ready_ in the archive
  size_t next_ = 0;      // entry
  bool checked_ = false, done_ = false, deflating_ = false;
  // Of the entry being written:
  const Entry* entry_ = nullptr;
  Reader reader_;
  base::Sha256 hash_;
  z_stream stream_{};
  uLong crc_ = 0;
  uint64_t read_ = 0, packed_from_ = 0;
  std::string in_ = std::string(64 << 10, '\0');
  std::string packed_ = std::string(64 << 10, '\0');
};

}  // namespace

OpenReader ZipStream(Tree tree) {
  return [tree = std::move(tree)]() -> base::Result<Reader> {
    const auto maker = std::make_shared<ZipMaker>(tree);
    return Reader([maker](char* out, size_t size) { return maker->Read(out, size); });
  };
}

base::Status WriteZip(const Tree& tree, const std::function<base::Status(std::string_view)>& sink) {
  ZipMaker maker(tree);
  std::string buffer(64 << 10, '\0');
  for (;;) {
    ASSIGN_OR_RETURN(const size_t n, maker.Read(buffer.data(), buffer.size()));
    if (n == 0) return base::Ok();
    RETURN_IF_ERROR(sink(std::string_view(buffer).substr(0, n)));
  }
}

}  // namespace sless::source
