#pragma once

// A function's source as a content tree: read from a directory, a zip or inline text; one canonical
// hash (docs/source-hash.md); written as a zip or unpacked. Shared by the provider (at plan) and
// the server (re-check, unpack).
//
// Nothing here keeps the contents of files in memory, and nothing trusts the clock of a file: each
// read reads the bytes. Free functions, no shared state: may be called from any thread. A Tree is
// immutable and may be read from many threads.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/base/result.h"

namespace sless::source {

/// What a source may hold at most. All sizes are those of the real, unpacked bytes, whatever an
/// archive declares.
struct Limits {
  size_t max_files = 10'000;
  size_t max_archive_entries = 50'000;  ///< of a zip, with directories and ignored files
  uint64_t max_total_bytes = 256ull << 20;
  uint64_t max_file_bytes = 128ull << 20;
  uint64_t max_archive_bytes = 256ull << 20;  ///< size of a zip file itself
  size_t max_path_bytes = 1024;
  size_t max_depth = 32;
};

/// One regular file of the tree.
struct Entry {
  std::string path;         ///< relative, '/' separators, UTF-8, no "." or ".." segment
  bool executable = false;  ///< owner's x bit
  uint64_t size = 0;
  std::string digest;  ///< SHA-256 of the bytes, 64 hex digits
  size_t where = 0;    ///< for Contents
};

/// Gives the next bytes: writes at most `size` to `out`, returns how many, 0 at the end.
using Reader = std::function<base::Result<size_t>(char* out, size_t size)>;
/// Opens a stream at its start. The same type as transport::OpenBody.
using OpenReader = std::function<base::Result<Reader>()>;

/// Where the bytes of a tree's entries are (directory, zip, memory).
class Contents {
 public:
  virtual ~Contents() = default;
  virtual base::Result<Reader> Open(const Entry& entry) const = 0;
};

struct Tree {
  std::vector<Entry> entries;  ///< sorted by path, in byte order
  std::string ignore_text;     ///< the root's .slessignore; not content, but it goes with the zip
  std::shared_ptr<const Contents> contents;
  uint64_t TotalBytes() const;
  /// nullptr if there is no such file.
  const Entry* Find(std::string_view path) const;
};

/// Reads a directory (ignore rules applied, symbolic links inside the tree to regular files
/// followed). Errors: kNotFound no such directory; kInvalidArgument a file that cannot be part of a
/// source, named in Error.source.file; kTooLarge a limit; kPermissionDenied a file cannot be read;
/// kAborted a file vanished meanwhile.
base::Result<Tree> ReadDirectory(const std::string& path, const Limits& limits = {});

/// Reads a folder that Unpack wrote: each of its regular files counts, but for a .slessignore at
/// the root, whatever rules left out what when the source was read. What Unpack does not write
/// (links, special files, names that no source may have) is passed over. Errors: as for
/// ReadDirectory.
base::Result<Tree> ReadUnpacked(const std::string& path, const Limits& limits = {});

/// Reads a zip: checks the whole central directory, then inflates every file once (CRC, sizes,
/// digest). Accepts zip64, data descriptors, stored and deflated entries, comments. Ignore rules as
/// for directories. Errors: kNotFound no such file; kInvalidArgument not a zip, broken, or hostile;
/// the entry is in Error.source.file and in the message, Error.reason is "BadArchive"; kTooLarge a
/// limit.
base::Result<Tree> ReadZip(const std::string& path, const Limits& limits = {});
/// As ReadZip, but each file counts, but for a .slessignore at the root: an upload holds only what
/// counted by the rules of the version that made it.
base::Result<Tree> ReadWholeZip(const std::string& path, const Limits& limits = {});

/// A tree of one file, named after the entrypoint ("handler.handle" → handler.py; for Node
/// handler.mjs if the text has an import or export statement, else handler.js). Errors:
/// kInvalidArgument runtime or entrypoint.
base::Result<Tree> InlineTree(std::string_view runtime, std::string_view entrypoint,
                              std::string text, const Limits& limits = {});

/// "sha256:<64 hex>" of paths, bytes and executable bits; see docs/source-hash.md.
std::string TreeHash(const Tree& tree);

/// A zip of the tree as a stream, for an upload: files are read again while it is read, and a file
/// that is no longer what was hashed ends it with kAborted. The same tree gives the same bytes
/// (with the same zlib).
OpenReader ZipStream(Tree tree);

/// Writes ZipStream to a sink. Errors: the sink's, or as for ZipStream.
base::Status WriteZip(const Tree& tree, const std::function<base::Status(std::string_view)>& sink);

/// Writes the tree's files below `dir` (made if missing, must be empty), 0644 or 0755, never
/// through a link, never over a file. What was written is compared with the digests. Errors:
/// kAborted contents changed; kInternal cannot write (kResourceExhausted: disk full).
base::Status Unpack(const Tree& tree, const std::string& dir);
/// ReadZip, then Unpack: nothing is written when the archive is refused. Returns the tree.
base::Result<Tree> Unpack(const std::string& zip_path, const std::string& dir,
                          const Limits& limits = {});

}  // namespace sless::source
