#pragma once

// A private folder for the server's unix socket, gone with the object.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/base/result.h"

namespace sless::plugin {

/// Longest path of a unix socket on Linux, without the closing zero byte.
inline constexpr size_t kMaxSocketPath = 107;

/// A folder of mode 0700 that holds one socket. The destructor removes both.
class SocketFolder {
 public:
  /// Makes the folder below the first of `parents` where that works and the socket's path is short
  /// enough; empty entries are skipped. Error: kUnavailable, with the reason for each parent; the
  /// caller may use TCP.
  static base::Result<std::unique_ptr<SocketFolder>> Make(const std::vector<std::string>& parents,
                                                          std::string_view prefix);
  ~SocketFolder();
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  /// Absolute path for the socket; nothing is there yet.
  const std::string& socket_path() const { return socket_; }

  /// To be called once the socket exists: mode 0600; or with a group (name or number) mode 0660 for
  /// that group, which may also pass the folder. Error: kInvalidArgument for a group that does not
  /// exist, kPermissionDenied where it may not be set.
  base::Status SetAccess(const std::string& group) const;

  /// Removes socket and folder now. May be called more than once.
  void Remove();

 private:
  SocketFolder(std::string folder, std::string socket)
      : folder_(std::move(folder)), socket_(std::move(socket)) {}
  std::string folder_;
  std::string socket_;
};

}  // namespace sless::plugin
