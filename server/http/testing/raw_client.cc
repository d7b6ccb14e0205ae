#include "server/http/testing/raw_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "server/http/message.h"

namespace sless::http {
namespace {

constexpr int kWaitMs = 10'000;

int ConnectTo(const std::string& address) {
  int fd = -1;
  int failed = -1;
  if (address.starts_with("unix:")) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::strncpy(to.sun_path, address.c_str() + 5, sizeof(to.sun_path) - 1);
    fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    failed = ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to));
  } else {
    const auto colon = address.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
    ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
    fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    failed = ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to));
  }
  if (failed != 0) {
    fmt::print(stderr, "cannot connect to {}: {}\n", address, std::strerror(errno));
    std::abort();
  }
  return fd;
}

std::string Value(std::string_view head, std::string_view name) {
  size_t at = 0;
  while (at < head.size()) {
    const auto end = std::min(head.find("\r\n", at), head.size());
    const auto line = head.substr(at, end - at);
    const auto colon = line.find(':');
    if (colon != std::string_view::npos && SameNoCase(line.substr(0, colon), name)) {
      auto value = line.substr(colon + 1);
      while (value.starts_with(" ")) value.remove_prefix(1);
      return std::string(value);
    }
    at = end + 2;
  }
  return "";
}

std::string JoinChunks(std::string_view text) {
  std::string out;
  for (;;) {
    const auto line = text.find("\r\n");
    if (line == std::string_view::npos) return out;
    const auto size = std::strtoul(std::string(text.substr(0, line)).c_str(), nullptr, 16);
    if (size == 0 || text.size() < line + 2 + size) return out;
    out += text.substr(line + 2, size);
    text.remove_prefix(std::min(text.size(), line + 4 + size));
  }
}

}  // namespace

RawClient::RawClient(const std::string& address) : fd_(ConnectTo(address)) {}
RawClient::~RawClient() { Close(); }
void RawClient::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool RawClient::Fill() {
  pollfd poll{fd_, POLLIN, 0};
  if (::poll(&poll, 1, kWaitMs) <= 0) return false;
  std::array<char, 65536> bytes{};
  const auto n = ::recv(fd_, bytes.data(), bytes.size(), 0);
  if (n <= 0) return false;
  buffer_.append(bytes.data(), static_cast<size_t>(n));
  return true;
}

std::string RawClient::ReadResponse(bool head) {
  size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!Fill()) return std::exchange(buffer_, "");
  }
  end += 4;
  const auto head_text = buffer_.substr(0, end);
  const int status = std::atoi(head_text.c_str() + 9);
  if (!head && status != 204 && status != 304 && status / 100 != 1) {
    if (Value(head_text, "Transfer-Encoding") == "chunked") {
      size_t last = 0;
      while ((last = buffer_.find("0\r\n\r\n", end)) == std::string::npos ||
             (last != end && buffer_.compare(last - 2, 2, "\r\n") != 0)) {
        if (!Fill()) return std::exchange(buffer_, "");
      }
      end = last + 5;
    } else if (const auto length = Value(head_text, "Content-Length"); !length.empty()) {
      end += std::strtoul(length.c_str(), nullptr, 10);
      while (buffer_.size() < end) {
        if (!Fill()) return std::exchange(buffer_, "");
      }
    } else {
      return ReadToEnd();
    }
  }
  auto out = buffer_.substr(0, end);
  buffer_.erase(0, end);
  return out;
}

std::string RawClient::ReadToEnd() {
  while (Fill()) {
  }
  return std::exchange(buffer_, "");
}

bool RawClient::ClosedWithin(std::chrono::milliseconds wait) {
  pollfd poll{fd_, POLLIN, 0};
  if (::poll(&poll, 1, static_cast<int>(wait.count())) <= 0) return false;
  char byte = 0;
  return ::recv(fd_, &byte, 1, MSG_PEEK) <= 0;
}

std::string Answer::Header(std::string_view name) const { return Value(head, name); }

Answer ParseAnswer(const std::string& text) {
  Answer answer;
  const auto end = text.find("\r\n\r\n");
  if (end == std::string::npos || text.size() < 12) return answer;
  answer.status = std::atoi(text.c_str() + 9);
  answer.head = text.substr(0, end);
  answer.body = text.substr(end + 4);
  if (answer.Header("Transfer-Encoding") == "chunked") answer.body = JoinChunks(answer.body);
  return answer;
}

Answer Call(const std::string& address, std::string_view method, std::string_view target,
            std::string_view body, std::string_view extra) {
  auto text = fmt::format("{} {} HTTP/1.1\r\nHost: test\r\n{}", method, target, extra);
  if (!body.empty()) text += fmt::format("Content-Length: {}\r\n", body.size());
  text.append("\r\n").append(body);
  RawClient client(address);  // when all is ready: the server waits for a head only so long
  client.Send(text);
  return ParseAnswer(client.ReadResponse(method == "HEAD"));
}

}  // namespace sless::http
