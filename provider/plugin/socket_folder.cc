#include "provider/plugin/socket_folder.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

namespace sless::plugin {
namespace {

using base::Code;
using base::Err;

std::optional<gid_t> FindGroup(const std::string& group) {
  gid_t number = 0;
  const auto [end, error] = std::from_chars(group.data(), group.data() + group.size(), number);
  if (error == std::errc() && end == group.data() + group.size()) return number;
  // No number, so a name: the C library asks the machine's name services.
  const struct group* entry = getgrnam(group.c_str());
  if (entry == nullptr) return std::nullopt;
  return entry->gr_gid;
}

}  // namespace

base::Result<std::unique_ptr<SocketFolder>> SocketFolder::Make(
    const std::vector<std::string>& parents, std::string_view prefix) {
  std::string problems;
  for (const std::string& parent : parents) {
    if (parent.empty()) continue;
    std::error_code error;
    const std::string absolute = std::filesystem::absolute(parent, error).string();
    std::string folder = fmt::format("{}/{}XXXXXX", absolute, prefix);
    std::string socket_name = "/rpc.sock";
    const size_t length = folder.size() + socket_name.size();
    if (length > kMaxSocketPath) {
      problems +=
          fmt::format("; {}: the socket's path would have {} bytes, at most {} are possible",
                      parent, length, kMaxSocketPath);
      continue;
    }
    if (mkdtemp(folder.data()) == nullptr) {
      problems += fmt::format("; {}: {}", parent, std::strerror(errno));
      continue;
    }
    std::string socket = folder + socket_name;
    return std::unique_ptr<SocketFolder>(new SocketFolder(std::move(folder), std::move(socket)));
  }
  return Err(Code::kUnavailable, "no folder for the plugin's socket could be made" + problems);
}

SocketFolder::~SocketFolder() { Remove(); }

base::Status SocketFolder::SetAccess(const std::string& group) const {
  if (group.empty()) {
    if (chmod(socket_.c_str(), 0600) == 0) return base::Ok();
    return Err(Code::kPermissionDenied,
               fmt::format("cannot set the mode of {}: {}", socket_, std::strerror(errno)));
  }
  const std::optional<gid_t> id = FindGroup(group);
  if (!id) {
    return Err(
        Code::kInvalidArgument,
        fmt::format("PLUGIN_UNIX_SOCKET_GROUP names the group {:?}, which does not exist here",
                    group));
  }
  if (chown(folder_.c_str(), static_cast<uid_t>(-1), *id) != 0 ||
      chmod(folder_.c_str(), 0710) != 0 ||
      chown(socket_.c_str(), static_cast<uid_t>(-1), *id) != 0 ||
      chmod(socket_.c_str(), 0660) != 0) {
    return Err(Code::kPermissionDenied, fmt::format("cannot give the socket {} to the group {}: {}",
                                                    socket_, group, std::strerror(errno)));
  }
  return base::Ok();
}

void SocketFolder::Remove() {
  if (folder_.empty()) return;
  unlink(socket_.c_str());
  rmdir(folder_.c_str());
  folder_.clear();
}

}  // namespace sless::plugin
