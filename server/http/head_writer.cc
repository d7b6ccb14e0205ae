#include "server/http/head_writer.h"

#include <fmt/format.h>

#include <array>
#include <ctime>

#include "client/base/strings.h"

namespace sless::http {
namespace {

constexpr std::array<std::string_view, 9> kHopByHop{
    "connection", "keep-alive",        "proxy-authenticate",
    "te",         "transfer-encoding", "proxy-authorization",
    "trailer",    "upgrade",           "proxy-connection"};

std::string HttpDate() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 40> text{};
  const auto size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), size};
}

void WriteFields(std::string& out, const Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (SameNoCase(name, "content-length") || IsHopByHop(name, "") || !IsSafeField(name, value))
      continue;
    out += name;
    out += ": ";
    out += value;
    out += "\r\n";
  }
}

void WriteFraming(std::string& out, Framing framing, uint64_t length) {
  if (framing == Framing::kLength) out += fmt::format("Content-Length: {}\r\n", length);
  if (framing == Framing::kChunked) out += "Transfer-Encoding: chunked\r\n";
}

}  // namespace

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 205:
      return "Reset Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

bool HasNoBody(int status, std::string_view method) {
  return method == "HEAD" || status / 100 == 1 || status == 204 || status == 304;
}

bool IsSafeField(std::string_view name, std::string_view value) {
  return base::IsHttpToken(name) &&
         value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

bool IsHopByHop(std::string_view name, std::string_view connection) {
  for (const auto hop : kHopByHop) {
    if (SameNoCase(name, hop)) return true;
  }
  for (const auto& part : base::Split(connection, ',')) {
    if (SameNoCase(base::Trim(part), name)) return true;
  }
  return false;
}

std::string WriteResponseHead(int status, const Headers& headers, Framing framing, uint64_t length,
                              bool keep_alive) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", status, ReasonPhrase(status));
  WriteFields(out, headers);
  if (!headers.Has("Date")) out += "Date: " + HttpDate() + "\r\n";
  WriteFraming(out, framing, length);
  out += keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return out;
}

std::string WriteRequestHead(std::string_view method, std::string_view target,
                             std::string_view host, const Headers& headers, Framing framing,
                             uint64_t length) {
  std::string out = fmt::format("{} {} HTTP/1.1\r\n", method, target);
  if (!headers.Has("Host")) out += fmt::format("Host: {}\r\n", host);
  WriteFields(out, headers);
  WriteFraming(out, framing, length);
  out += "\r\n";
  return out;
}

}  // namespace sless::http
