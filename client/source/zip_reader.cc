#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "client/base/strings.h"
#include "client/source/content.h"
#include "client/source/ignore.h"
#include "client/source/paths.h"
#include "client/source/source.h"
#include "client/source/zip_archive.h"

namespace sless::source {
namespace {

using base::Code;
using Kind = Member::Kind;

constexpr size_t kMaxIgnoreBytes = 64 << 10;
constexpr size_t kMaxLinkBytes = 4096;
constexpr int kMaxLinks = 16;

class ZipContents final : public Contents {
 public:
  explicit ZipContents(std::shared_ptr<const ZipArchive> archive) : archive_(std::move(archive)) {}
  base::Result<Reader> Open(const Entry& entry) const override {
    return archive_->Open(archive_->members()[entry.where]);
  }

 private:
  const std::shared_ptr<const ZipArchive> archive_;
};

std::string_view Parent(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

/// From the members of an archive to a tree.
class TreeOfZip {
 public:
  TreeOfZip(std::shared_ptr<const ZipArchive> archive, const Limits& limits, bool whole)
      : archive_(std::move(archive)), limits_(limits), whole_(whole) {}

  base::Result<Tree> Run() {
    RETURN_IF_ERROR(CheckNames());
    RETURN_IF_ERROR(ReadIgnoreFile());
    RETURN_IF_ERROR(Select());
    for (auto& entry : tree_.entries) RETURN_IF_ERROR(Hash(entry));
    if (tree_.entries.empty())
      return BadArchive("", "holds no file (folders and ignored files do not count)");
    tree_.contents = std::make_shared<ZipContents>(archive_);
    return std::move(tree_);
  }

 private:
  /// No name twice, nothing both file and folder (or link and folder: "link, then write through
  /// it").
  base::Status CheckNames() {
    const auto& members = archive_->members();
    for (size_t i = 0; i < members.size(); ++i) {
      const auto& member = members[i];
      if (member.kind == Kind::kDirectory) {
        AddFolders(member.name);
      } else if (!files_.emplace(member.name, i).second) {
        return BadArchive(member.name, "is there twice");
      }
    }
    for (const auto& member : members) {
      if (member.kind != Kind::kDirectory) AddFolders(Parent(member.name));
    }
    for (const auto& member : members) {
      auto path = std::string_view(member.name);
      if (member.kind == Kind::kDirectory && files_.contains(path))
        return BadArchive(path, "is there both as a file and as a folder");
      for (path = Parent(path); !path.empty(); path = Parent(path)) {
        const auto it = files_.find(path);
        if (it == files_.end()) continue;
        return BadArchive(member.name,
                          fmt::format("lies below {}, which is a {}", ShowPath(path),
                                      members[it->second].kind == Kind::kLink ? "link" : "file"));
      }
    }
    return base::Ok();
  }

  void AddFolders(std::string_view path) {
    while (!path.empty() && folders_.emplace(path, Verdict::kUnknown).second) path = Parent(path);
  }

  base::Status ReadIgnoreFile() {
    const auto it = files_.find(kIgnoreFile);
    if (it == files_.end()) return base::Ok();
    const auto& member = archive_->members()[it->second];
    if (member.kind != Kind::kFile) return BadArchive(kIgnoreFile, "is not a regular file");
    ASSIGN_OR_RETURN(tree_.ignore_text, archive_->ReadSmall(member, kMaxIgnoreBytes));
    return base::Ok();
  }

  bool LockIn(std::string_view folder) const {
    return std::any_of(std::begin(kLockFiles), std::end(kLockFiles), [&](std::string_view name) {
      const auto path = folder.empty() ? std::string(name) : fmt::format("{}/{}", folder, name);
      return files_.contains(path) || folders_.contains(path);
    });
  }

  bool FolderIgnored(std::string_view path, IgnoreRules& rules) {
    if (path.empty()) return false;
    auto& verdict = folders_.at(path);
    if (verdict == Verdict::kUnknown) {
      const auto parent = Parent(path);
      verdict = FolderIgnored(parent, rules) || rules.Ignored(path, true, LockIn(parent))
                    ? Verdict::kIgnored
                    : Verdict::kKept;
    }
    return verdict == Verdict::kIgnored;
  }

  base::Status Select() {
    IgnoreRules rules = whole_ ? IgnoreRules::None() : IgnoreRules(tree_.ignore_text);
    if (rules.TooMany()) return BadArchive(kIgnoreFile, kTooManyRules, Code::kTooLarge);
    const auto& members = archive_->members();
    uint64_t total = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      const auto& member = members[i];
      if (member.kind == Kind::kDirectory) continue;
      const auto parent = Parent(member.name);
      const bool ignored =
          FolderIgnored(parent, rules) || rules.Ignored(member.name, false, LockIn(parent));
      if (rules.TooCostly())
        return BadArchive(kIgnoreFile, "has rules that take too long to apply", Code::kTooLarge);
      if (ignored) continue;
      ASSIGN_OR_RETURN(const size_t target, Target(i));
      if (tree_.entries.size() >= limits_.max_files) {
        return BadArchive(member.name,
                          fmt::format("the archive has more than {} files", limits_.max_files),
                          Code::kTooLarge);
      }
      if (members[target].size > limits_.max_file_bytes) {
        return BadArchive(
            member.name,
            fmt::format("unpacks to {}, at most {} are allowed", ShowBytes(members[target].size),
                        ShowBytes(limits_.max_file_bytes)),
            Code::kTooLarge);
      }
      total += members[target].size;  // cannot overflow: each is at most max_file_bytes
      if (total > limits_.max_total_bytes) {
        return BadArchive(member.name,
                          fmt::format("with it the archive unpacks to more than {}",
                                      ShowBytes(limits_.max_total_bytes)),
                          Code::kTooLarge);
      }
      tree_.entries.push_back({member.name, members[target].executable, 0, "", target});
    }
    std::sort(tree_.entries.begin(), tree_.entries.end(),
              [](const Entry& a, const Entry& b) { return a.path < b.path; });
    return base::Ok();
  }

  /// The member that a file or link stands for.
  base::Result<size_t> Target(size_t i) {
    const auto& members = archive_->members();
    const auto& link = members[i].name;
    for (int step = 0; step <= kMaxLinks; ++step) {
      const auto& member = members[i];
      if (member.kind == Kind::kFile) return i;
      ASSIGN_OR_RETURN(const auto text, archive_->ReadSmall(member, kMaxLinkBytes));
      ASSIGN_OR_RETURN(const auto path, Follow(link, Parent(member.name), text));
      const auto it = files_.find(path);
      if (it == files_.end()) {
        return BadArchive(
            link, fmt::format("is a link to {}, which is {}; only links to regular files of the "
                              "archive are followed",
                              ShowPath(text), folders_.contains(path) ? "a folder" : "not there"));
      }
      i = it->second;
    }
    return BadArchive(link, "is a link that leads through too many links");
  }

  static base::Result<std::string> Follow(std::string_view link, std::string_view folder,
                                          std::string_view text) {
    const auto outside = [&] {
      return BadArchive(
          link, fmt::format("is a link to {}, which lies outside of the archive", ShowPath(text)));
    };
    if (text.starts_with('/')) return outside();
    auto segments = folder.empty() ? std::vector<std::string>() : base::Split(folder, '/');
    for (auto& segment : base::Split(text, '/')) {
      if (segment.empty() || segment == ".") continue;
      if (segment != "..") {
        segments.push_back(std::move(segment));
        continue;
      }
      if (segments.empty()) return outside();
      segments.pop_back();
    }
    return base::Join(segments, "/");
  }

  base::Status Hash(Entry& entry) {
    ASSIGN_OR_RETURN(const auto reader, archive_->Open(archive_->members()[entry.where]));
    // Sizes were checked in Select, and the archive's reader gives no more than it declares.
    return HashContent(reader, limits_.max_file_bytes, buffer_, entry);
  }

  enum class Verdict { kUnknown, kKept, kIgnored };
  const std::shared_ptr<const ZipArchive> archive_;
  const Limits& limits_;
  const bool whole_;  // no file is ignored
  Tree tree_;
  // Keys are views of the members' names.
  std::unordered_map<std::string_view, size_t> files_;  // and links → member
  std::unordered_map<std::string_view, Verdict> folders_;
  std::vector<char> buffer_ = std::vector<char>(128 << 10);
};

}  // namespace

base::Result<Tree> ReadZip(const std::string& path, const Limits& limits) {
  ASSIGN_OR_RETURN(auto archive, ZipArchive::Load(path, limits));
  return TreeOfZip(std::move(archive), limits, false).Run();
}

base::Result<Tree> ReadWholeZip(const std::string& path, const Limits& limits) {
  ASSIGN_OR_RETURN(auto archive, ZipArchive::Load(path, limits));
  return TreeOfZip(std::move(archive), limits, true).Run();
}

}  // namespace sless::source
