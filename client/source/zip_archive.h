#pragma once

// The structure of a zip: central directory and local headers, checked as a whole before any byte
// is inflated.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/base/fd.h"
#include "client/source/source.h"

namespace sless::source {

struct Member {
  std::string name;  ///< normalised: no "./", no "//", no '/' at the end
  enum class Kind { kFile, kDirectory, kLink } kind = Kind::kFile;
  bool executable = false;
  uint16_t method = 0;  ///< 0 stored, 8 deflated
  uint32_t crc = 0;
  uint64_t packed = 0;  ///< bytes in the archive
  uint64_t size = 0;    ///< declared; inflating to anything else is an error
  uint64_t header = 0;  ///< offset of the local header
  uint64_t data = 0;    ///< offset of the data
};

/// An open archive whose structure is sound. Immutable; Open may be called from any thread.
class ZipArchive {
 public:
  /// Errors: as for ReadZip.
  static base::Result<std::shared_ptr<const ZipArchive>> Load(const std::string& path,
                                                              const Limits& limits);

  const std::vector<Member>& members() const { return members_; }
  /// Inflates one member; sizes and CRC are checked at its end.
  base::Result<Reader> Open(const Member& member) const;
  /// Reads a small member whole; kTooLarge above `most`.
  base::Result<std::string> ReadSmall(const Member& member, size_t most) const;

  ZipArchive(base::Fd file, uint64_t size) : file_(std::move(file)), size_(size) {}

 private:
  friend class ZipParser;
  base::Status ReadAt(uint64_t offset, char* out, size_t size) const;

  base::Fd file_;
  uint64_t size_;
  std::vector<Member> members_;
  std::weak_ptr<const ZipArchive> self_;
};

}  // namespace sless::source
