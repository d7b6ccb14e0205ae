#pragma once

// Just enough DER (X.690) to write a certificate. Pure functions over byte strings.

#include <ctime>
#include <string>
#include <string_view>

namespace sless::plugin::der {

/// The parts one after the other.
template <class... T>
std::string Join(const T&... parts) {
  std::string out;
  (out.append(parts), ...);
  return out;
}

/// One element: tag, length, content.
std::string Element(unsigned char tag, std::string_view content);

inline std::string Sequence(std::string_view content) { return Element(0x30, content); }
inline std::string Set(std::string_view content) { return Element(0x31, content); }
inline std::string Utf8(std::string_view text) { return Element(0x0c, text); }
inline std::string OctetString(std::string_view bytes) { return Element(0x04, bytes); }
/// `[number]`, constructed, around whole elements.
inline std::string Tagged(int number, std::string_view content) {
  return Element(static_cast<unsigned char>(0xa0 | number), content);
}
/// Bits from the highest of the first byte; the last `unused` ones do not count.
std::string BitString(std::string_view bytes, int unused = 0);
/// A number that is not negative, from its big-endian bytes.
std::string Integer(std::string_view big_endian);
/// UTCTime up to 2049, GeneralizedTime after, as RFC 5280 wants it.
std::string Time(std::time_t time);

/// PEM text of DER bytes: base64 in lines of 64.
std::string Pem(std::string_view label, std::string_view der);

}  // namespace sless::plugin::der
