#pragma once

// Include in .cc files only (coroutines).

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "server/gateway/gateway.h"
#include "server/gateway/pool.h"
#include "server/http/stream.h"

namespace sless::gateway {

/// The body of one call, as it comes from its client. What has come is kept until Release, so that
/// a call that did not begin can be sent again, and counts among the bodies of all and of its
/// function. From the call's coroutine only.
class CallBody {
 public:
  /// All outlive it; `all`: bytes that the bodies of all calls hold.
  CallBody(http::Exchange& exchange, const GatewayOptions& options, std::atomic<size_t>& all,
           std::shared_ptr<FunctionState> function);
  CallBody(const CallBody&) = delete;
  CallBody& operator=(const CallBody&) = delete;
  ~CallBody() { Release(); }

  /// Reads until it is whole or has `least` bytes. Errors: those of Exchange::ReadBody ("NotYet" at
  /// `until`; it can be read on), and kUnavailable, reason Overloaded, where too many are held.
  http::Task<base::Status> Read(
      size_t least = std::numeric_limits<size_t>::max(),
      std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max());
  /// As fast as it came so far, the rest is here within `patience`. One whose length is not
  /// announced counts as the longest that is allowed.
  bool KeepsUp(std::chrono::nanoseconds patience) const;

  bool whole() const { return whole_; }
  /// What has come.
  const std::string& bytes() const { return bytes_; }
  /// As announced; nullopt: chunked, and not whole yet.
  std::optional<uint64_t> length() const;
  /// A Read ended in an error that is its last: the call ends for what its client sent.
  bool failed() const { return failed_; }
  /// The bytes, which go on to count as held.
  std::string Take() { return std::move(bytes_); }
  void Release();

 private:
  base::Status Fail(base::Error error);

  http::Exchange& exchange_;
  const GatewayOptions& options_;
  std::atomic<size_t>& all_;
  std::shared_ptr<FunctionState> function_;
  std::string bytes_;
  size_t held_ = 0;
  bool whole_ = false;
  bool failed_ = false;
  std::chrono::steady_clock::duration took_{};  ///< waiting for its client
};

}  // namespace sless::gateway
