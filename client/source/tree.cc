#include <fmt/format.h>

#include <algorithm>

#include "client/base/digest.h"
#include "client/source/content.h"
#include "client/source/entrypoint.h"
#include "client/source/node_scan.h"
#include "client/source/paths.h"
#include "client/source/source.h"

namespace sless::source {
namespace {

using base::Code;

class TextContents final : public Contents {
 public:
  explicit TextContents(std::string text) : text_(std::move(text)) {}
  base::Result<Reader> Open(const Entry&) const override {
    return [this, at = size_t{0}](char* out, size_t size) mutable -> base::Result<size_t> {
      const size_t n = text_.copy(out, size, at);
      at += n;
      return n;
    };
  }

 private:
  const std::string text_;
};

}  // namespace

base::Status HashContent(const Reader& reader, uint64_t max_bytes, std::vector<char>& buffer,
                         Entry& entry) {
  base::Sha256 hash;
  entry.size = 0;
  for (;;) {
    ASSIGN_OR_RETURN(const size_t n, reader(buffer.data(), buffer.size()));
    if (n == 0) break;
    hash.Update(std::string_view(buffer.data(), n));
    entry.size += n;
    if (entry.size > max_bytes) return base::Ok();
  }
  entry.digest = hash.Hex();
  return base::Ok();
}

uint64_t Tree::TotalBytes() const {
  uint64_t total = 0;
  for (const auto& entry : entries) total += entry.size;
  return total;
}

const Entry* Tree::Find(std::string_view path) const {
  const auto it =
      std::lower_bound(entries.begin(), entries.end(), path,
                       [](const Entry& entry, std::string_view want) { return entry.path < want; });
  return it != entries.end() && it->path == path ? &*it : nullptr;
}

std::string TreeHash(const Tree& tree) {
  base::Sha256 hash;
  hash.Update("sless-tree 1\n");
  for (const auto& entry : tree.entries) {
    hash.Update(fmt::format("{} {} {}:{}\n", entry.executable ? 'x' : '-', entry.digest,
                            entry.path.size(), entry.path));
  }
  return "sha256:" + hash.Hex();
}

base::Result<Tree> InlineTree(std::string_view runtime, std::string_view entrypoint,
                              std::string text, const Limits& limits) {
  ASSIGN_OR_RETURN(const auto parts, ParseEntrypoint(entrypoint));
  std::string ending;
  if (runtime.starts_with("python")) {
    ending = ".py";
  } else if (runtime.starts_with("nodejs")) {
    ending = HasModuleSyntax(text) ? ".mjs" : ".js";
  } else {
    return base::Err(Code::kInvalidArgument,
                     fmt::format("want python3.11 or nodejs20, got \"{}\"", runtime),
                     "/spec/runtime");
  }
  Entry entry{parts.file + ending, false, text.size(), base::Sha256Hex(text), 0};
  if (const auto problem = PathProblem(entry.path, limits); !problem.empty())
    return BadFile(entry.path, problem);
  if (text.size() > limits.max_file_bytes) {
    return BadFile(entry.path,
                   fmt::format("has {}, at most {} are allowed", ShowBytes(text.size()),
                               ShowBytes(limits.max_file_bytes)),
                   Code::kTooLarge);
  }
  Tree tree;
  tree.entries.push_back(std::move(entry));
  tree.contents = std::make_shared<TextContents>(std::move(text));
  return tree;
}

}  // namespace sless::source
