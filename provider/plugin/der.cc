#include "provider/plugin/der.h"

#include <fmt/format.h>

#include "client/base/strings.h"

namespace sless::plugin::der {

std::string Element(unsigned char tag, std::string_view content) {
  std::string out(1, static_cast<char>(tag));
  if (content.size() < 0x80) {
    out += static_cast<char>(content.size());
  } else {
    std::string length;
    for (size_t rest = content.size(); rest > 0; rest >>= 8)
      length.insert(length.begin(), static_cast<char>(rest & 0xff));
    out += static_cast<char>(0x80 | length.size());
    out += length;
  }
  out += content;
  return out;
}

std::string BitString(std::string_view bytes, int unused) {
  std::string content(1, static_cast<char>(unused));
  content += bytes;
  return Element(0x03, content);
}

std::string Integer(std::string_view big_endian) {
  while (big_endian.size() > 1 && big_endian.front() == 0) big_endian.remove_prefix(1);
  std::string content(big_endian);
  // The highest bit is the sign.
  if (content.empty() || (content.front() & 0x80) != 0) content.insert(content.begin(), '\0');
  return Element(0x02, content);
}

std::string Time(std::time_t time) {
  std::tm utc{};
  gmtime_r(&time, &utc);
  const int year = utc.tm_year + 1900;
  const std::string rest = fmt::format("{:02}{:02}{:02}{:02}{:02}Z", utc.tm_mon + 1, utc.tm_mday,
                                       utc.tm_hour, utc.tm_min, utc.tm_sec);
  if (year < 2050) return Element(0x17, fmt::format("{:02}{}", year % 100, rest));
  return Element(0x18, fmt::format("{:04}{}", year, rest));
}

std::string Pem(std::string_view label, std::string_view der) {
  const std::string base64 = base::Base64Encode(der);
  std::string out = fmt::format("-----BEGIN {}-----\n", label);
  for (size_t at = 0; at < base64.size(); at += 64) out += base64.substr(at, 64) + "\n";
  return out + fmt::format("-----END {}-----\n", label);
}

}  // namespace sless::plugin::der
