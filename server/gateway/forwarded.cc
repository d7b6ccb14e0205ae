#include "server/gateway/forwarded.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "client/base/strings.h"

namespace sless::gateway {
namespace {

constexpr size_t kMaxHost = 255 + 6;  // a name and a port

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// An entry as proxies write it: an address, with or without a port; IPv6 with a port in brackets,
// or without one, too.
std::optional<base::IpAddress> EntryAddress(std::string_view entry) {
  if (entry.starts_with('[')) {
    const auto end = entry.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const auto after = entry.substr(end + 1);
    if (!after.empty() && (after[0] != ':' || !IsPort(after.substr(1)))) return std::nullopt;
    entry = entry.substr(1, end - 1);
    if (!base::Contains(entry, ':')) return std::nullopt;
  } else if (const auto colon = entry.find(':');
             colon != std::string_view::npos && colon == entry.rfind(':')) {
    if (!IsPort(entry.substr(colon + 1))) return std::nullopt;
    entry = entry.substr(0, colon);
  }
  const auto address = base::IpAddress::Parse(entry);
  return address ? std::optional(*address) : std::nullopt;
}

bool IsHostName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxHost &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) || base::Contains("-._:[]", static_cast<char>(c));
         });
}

std::string ClientOf(std::string_view forwarded, base::IpAddress nearest,
                     const base::AddressSet& trusted) {
  const auto entries = base::Split(forwarded, ',');
  for (auto it = entries.rbegin(); it != entries.rend() && trusted.Contains(nearest); ++it) {
    const auto entry = base::Trim(*it);
    if (entry.empty()) continue;
    const auto address = EntryAddress(entry);
    if (!address) break;
    nearest = *address;
  }
  return nearest.ToString();
}

}  // namespace

std::string Joined(const http::Headers& headers, std::string_view name) {
  std::string all;
  for (const auto& [key, value] : headers) {
    if (!http::SameNoCase(key, name)) continue;
    if (!all.empty()) all += ", ";
    all += value;
  }
  return all;
}

Origin OriginOf(const http::Request& request, const base::AddressSet& trusted,
                std::string_view scheme) {
  Origin origin{request.peer, std::string(scheme), std::string(request.headers.Get("Host"))};
  // A link-local peer comes with its zone.
  const auto peer = base::IpAddress::Parse(request.peer.substr(0, request.peer.find('%')));
  if (!peer || !trusted.Contains(*peer)) return origin;

  origin.address = ClientOf(Joined(request.headers, "X-Forwarded-For"), *peer, trusted);
  const auto proto = Joined(request.headers, "X-Forwarded-Proto");
  for (const std::string_view known : {"http", "https"}) {
    if (http::SameNoCase(base::Trim(proto), known)) origin.scheme = known;
  }
  const auto host = Joined(request.headers, "X-Forwarded-Host");
  if (IsHostName(base::Trim(host))) origin.host = base::Trim(host);
  return origin;
}

}  // namespace sless::gateway
