#pragma once

#include <string>
#include <string_view>

#include "client/base/address.h"
#include "server/http/message.h"

namespace sless::gateway {

/// Where a request came from and what its client asked for, as functions are told.
struct Origin {
  std::string address;  ///< of the client; "unix" where it came by a unix socket
  std::string scheme;   ///< "http" or "https"
  std::string host;     ///< with its port where it has one
};

/// The values of all fields of that name as one list (RFC 9110, 5.3).
std::string Joined(const http::Headers& headers, std::string_view name);

/// What the peer says of it counts where the peer is one of `trusted`, and of the addresses in
/// X-Forwarded-For the last one that is none of them: those before it are the client's own words.
/// An entry that is no address ends the search at the proxy that wrote it. X-Forwarded-Proto and
/// -Host of such a peer count where they have one well-formed value; else `scheme` and Host do.
Origin OriginOf(const http::Request& request, const base::AddressSet& trusted,
                std::string_view scheme);

}  // namespace sless::gateway
