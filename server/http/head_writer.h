#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace sless::http {

/// Bytes of the header fields of a function's answer, each with its name and 4 more. The runner
/// refuses what is above it; the rest of the head is its own and small.
inline constexpr size_t kMaxAnswerHeaders = 64 * 1024;

/// "Not Found" for 404; "" for a status without a name.
std::string_view ReasonPhrase(int status);
/// True if an answer with this status to this method has no body.
bool HasNoBody(int status, std::string_view method);
/// True if `name` is a token and `value` has no CR, LF or NUL: safe to write.
bool IsSafeField(std::string_view name, std::string_view value);

enum class Framing { kNone, kLength, kChunked, kUntilClose };

/// Status line and header fields with the empty line. Fields that frame the message or are for one
/// hop are ours: those in `headers` are left out, and so is any field that is not safe.
std::string WriteResponseHead(int status, const Headers& headers, Framing framing, uint64_t length,
                              bool keep_alive);
/// `host` is used where `headers` has no Host.
std::string WriteRequestHead(std::string_view method, std::string_view target,
                             std::string_view host, const Headers& headers, Framing framing,
                             uint64_t length);
/// True for header fields that speak of one connection only (RFC 9110, 7.6.1) and for those that
/// `connection` names.
bool IsHopByHop(std::string_view name, std::string_view connection);

}  // namespace sless::http
