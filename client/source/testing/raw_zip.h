#pragma once

// Zips byte by byte, sound ones and broken ones, for tests.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sless::source {

struct RawEntry {
  std::string name;
  std::string bytes;
  uint32_t mode = 0100644;  ///< unix mode; 0: none
  bool deflate = true;
  bool descriptor = false;  ///< sizes behind the data
  bool zip64 = false;       ///< sizes in zip64 fields
  uint16_t flags = 0;       ///< further flags
  // Lies, where set:
  std::optional<std::string> local_name;
  std::optional<uint16_t> method;
  std::optional<uint32_t> crc;
  std::optional<uint64_t> size;
  std::optional<uint64_t> packed_size;
  std::optional<uint32_t> offset;
  std::optional<uint32_t> local_crc;
};

struct RawZip {
  std::vector<RawEntry> entries;
  std::string comment;
  std::string before;  ///< bytes before the first entry, which the offsets do not count
  std::string after;
  bool zip64_end = false;
  std::optional<uint64_t> count;

  std::string Bytes() const;
};

/// The raw deflate stream of `bytes`.
std::string Deflated(const std::string& bytes);

}  // namespace sless::source
