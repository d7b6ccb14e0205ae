#pragma once

// Text helpers and ids.

#include <string>
#include <string_view>
#include <vector>

#include "client/base/result.h"

namespace sless::base {

std::vector<std::string> Split(std::string_view text, char separator);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view Trim(std::string_view text);
bool Contains(std::string_view text, std::string_view word);
bool Contains(std::string_view text, char c);
/// ASCII letters in lower case, whatever the locale; other bytes stay.
std::string Lower(std::string_view text);
bool IsUtf8(std::string_view text);
/// A token as HTTP has it for methods and field names (RFC 9110, 5.6.2).
bool IsHttpToken(std::string_view text);
/// Cuts to at most `max_bytes`, never inside a UTF-8 sequence, and adds "…" (3 bytes more) where
/// something was cut.
std::string Truncate(std::string_view text, size_t max_bytes);
/// 2 * bytes lower-case hex digits from the system's random source.
std::string RandomHex(size_t bytes);
/// The entry of `known` nearest to `word` (edit distance at most 3), "" if none is near. For "did
/// you mean".
std::string Nearest(std::string_view word, const std::vector<std::string>& known);
/// "" if `name` is a DNS label as in RFC 1123 (1 to 63 of a-z, 0-9, '-', alphanumeric at both
/// ends), else what is wrong.
std::string DnsLabelProblem(std::string_view name);
std::string Base64Encode(std::string_view bytes);
/// Standard alphabet, padding required, nothing else (RFC 4648, 4). Error: kInvalidArgument.
Result<std::string> Base64Decode(std::string_view text);
/// %XX decoded; '+' stays. Error: kInvalidArgument for a broken escape.
Result<std::string> PercentDecode(std::string_view text);
/// Encodes all but unreserved characters (RFC 3986); '/' too.
std::string PercentEncode(std::string_view text);

}  // namespace sless::base
