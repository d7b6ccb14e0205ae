#pragma once

#include <string>
#include <string_view>

#include "client/base/result.h"

namespace sless::app {

/// The folder that holds everything a server keeps. One server at a time has it, by a lock that
/// ends with the process.
class DataDir {
 public:
  /// Makes the folder (0700) where it is missing and takes its lock. Errors: kFailedPrecondition,
  /// another slessd has it (names its process); kUnavailable, the folder cannot be used.
  static base::Result<DataDir> Lock(const std::string& path);
  DataDir(DataDir&& other) noexcept;
  DataDir& operator=(DataDir&&) = delete;
  ~DataDir();

  /// Absolute path of a file or folder in it.
  std::string Path(std::string_view name) const { return path_ + "/" + std::string(name); }

  /// Tells scripts where this server listens: server.json, {"pid", "address"}. Written in one step,
  /// gone when this object ends.
  base::Status Announce(const std::string& address);

 private:
  DataDir(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_ = -1;
  bool announced_ = false;
};

/// The store's file in a data folder; `slessd token` opens it beside a running server, without the
/// lock.
inline constexpr std::string_view kStoreFile = "sless.db";

}  // namespace sless::app
