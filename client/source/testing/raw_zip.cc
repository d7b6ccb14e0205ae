#include "client/source/testing/raw_zip.h"

#include <zlib.h>

namespace sless::source {
namespace {

void Put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace

std::string Deflated(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string RawZip::Bytes() const {
  std::string out, directory;
  for (const auto& entry : entries) {
    const auto packed = entry.deflate ? Deflated(entry.bytes) : entry.bytes;
    const auto method = entry.method.value_or(entry.deflate ? 8 : 0);
    const auto crc = entry.crc.value_or(
        static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(entry.bytes.data()),
                                    static_cast<uInt>(entry.bytes.size()))));
    const uint64_t size = entry.size.value_or(entry.bytes.size());
    const uint64_t packed_size = entry.packed_size.value_or(packed.size());
    const auto flags = static_cast<uint16_t>(entry.flags | (entry.descriptor ? 8 : 0));
    const auto offset = out.size();
    const auto sizes = [&](std::string& to, bool zero, uint32_t the_crc) {
      Put(to, zero ? 0 : the_crc, 4);
      Put(to, zero ? 0 : entry.zip64 ? 0xffffffff : packed_size, 4);
      Put(to, zero ? 0 : entry.zip64 ? 0xffffffff : size, 4);
    };
    std::string extra;
    if (entry.zip64) {
      Put(extra, 1, 2);
      Put(extra, 16, 2);
      Put(extra, size, 8);
      Put(extra, packed_size, 8);
    }
    const auto& local_name = entry.local_name.value_or(entry.name);
    out += "PK\x03\x04";
    Put(out, 20, 2);
    Put(out, flags, 2);
    Put(out, method, 2);
    Put(out, 0x21, 4);
    sizes(out, entry.descriptor, entry.local_crc.value_or(crc));
    Put(out, local_name.size(), 2);
    Put(out, extra.size(), 2);
    out += local_name + extra + packed;
    if (entry.descriptor) {
      out += "PK\x07\x08";
      Put(out, crc, 4);
      Put(out, packed_size, entry.zip64 ? 8 : 4);
      Put(out, size, entry.zip64 ? 8 : 4);
    }
    directory += "PK\x01\x02";
    Put(directory, 3 << 8 | 20, 2);
    Put(directory, 20, 2);
    Put(directory, flags, 2);
    Put(directory, method, 2);
    Put(directory, 0x21, 4);
    sizes(directory, false, crc);
    Put(directory, entry.name.size(), 2);
    Put(directory, extra.size(), 2);
    Put(directory, 0, 6);  // comment, disk, internal attributes
    Put(directory, uint64_t{entry.mode} << 16, 4);
    Put(directory, entry.offset.value_or(static_cast<uint32_t>(offset)), 4);
    directory += entry.name + extra;
  }
  const auto start = out.size();
  const auto number = count.value_or(entries.size());
  out += directory;
  if (zip64_end) {
    const auto at = out.size();
    out += "PK\x06\x06";
    Put(out, 44, 8);
    Put(out, 45, 2);
    Put(out, 45, 2);
    Put(out, 0, 8);
    Put(out, number, 8);
    Put(out, number, 8);
    Put(out, directory.size(), 8);
    Put(out, start, 8);
    out += "PK\x06\x07";
    Put(out, 0, 4);
    Put(out, at, 8);
    Put(out, 1, 4);
  }
  out += "PK\x05\x06";
  Put(out, 0, 4);
  Put(out, zip64_end ? 0xffff : number, 2);
  Put(out, zip64_end ? 0xffff : number, 2);
  Put(out, zip64_end ? 0xffffffff : directory.size(), 4);
  Put(out, zip64_end ? 0xffffffff : start, 4);
  Put(out, comment.size(), 2);
  return before + out + comment + after;
}

}  // namespace sless::source
