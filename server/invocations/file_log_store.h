#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/base/clock.h"
#include "client/base/log.h"
#include "server/invocations/log_store.h"

namespace sless::invocations {

/// Each function has a file of at most this size and one older one, so at most twice as much.
inline constexpr uint64_t kSegmentBytes = 8ull << 20;

/// Lines of all functions that wait for the disk; further ones are lost.
inline constexpr size_t kMaxWaitingBytes = 16ull << 20;

/// Keeps logs as <dir>/<namespace>/<function>/{current,older}.jsonl, one JSON line per record;
/// files 0600, folders 0700, made when first needed. A thread of its own writes what was appended,
/// at once where the disk takes it: then it survives kill -9 of slessd, not always a loss of power.
/// A line that a crash cut is skipped by Read. Times are kept to the microsecond. `clock` and `log`
/// outlive it. One process per `dir`.
std::unique_ptr<LogStore> MakeFileLogStore(const std::string& dir, const base::Clock& clock,
                                           base::Logger& log,
                                           uint64_t segment_bytes = kSegmentBytes,
                                           size_t max_waiting_bytes = kMaxWaitingBytes);

}  // namespace sless::invocations
