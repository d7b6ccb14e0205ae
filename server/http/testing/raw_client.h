#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace sless::http {

/// A client of bytes: says exactly what a test wants, also what is no HTTP. Blocking, with a bound
/// on every read.
class RawClient {
 public:
  /// "127.0.0.1:port" or "unix:/path". Aborts the test program where it cannot connect.
  explicit RawClient(const std::string& address);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// False once the server closed the connection.
  bool Send(std::string_view bytes);
  /// One whole answer (head and body by its framing); what came so far where the connection ends or
  /// 10 s passed. Answers to HEAD have no body: say so.
  std::string ReadResponse(bool head = false);
  /// All to the end of the connection.
  std::string ReadToEnd();
  /// True if the server closes within `wait`, nothing more coming.
  bool ClosedWithin(std::chrono::milliseconds wait);
  void Close();

 private:
  bool Fill();
  int fd_ = -1;
  std::string buffer_;
};

struct Answer {
  int status = 0;
  std::string head;
  std::string body;
  /// Value of a header, "" if absent.
  std::string Header(std::string_view name) const;
};
/// Takes an answer of ReadResponse apart; a chunked body is joined.
Answer ParseAnswer(const std::string& text);
/// One request on a connection of its own. `extra`: header lines, each with CRLF.
Answer Call(const std::string& address, std::string_view method, std::string_view target,
            std::string_view body = "", std::string_view extra = "");

}  // namespace sless::http
