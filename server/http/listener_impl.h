#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <string>
#include <variant>

#include "server/http/listener.h"

namespace sless::http {

struct Listener::Impl {
  using Tcp = boost::asio::ip::tcp;
  using Local = boost::asio::local::stream_protocol;

  explicit Impl(boost::asio::io_context& loop)
      : acceptor(std::in_place_type<Tcp::acceptor>, loop) {}
  ~Impl();

  base::Status OpenTcp(boost::asio::io_context& loop, const std::string& listen);
  base::Status OpenPath(boost::asio::io_context& loop, const std::string& listen);
  base::Status TakeDescriptor(boost::asio::io_context& loop, const std::string& listen);

  std::string address;
  std::string socket_path;  ///< unlinked at the end; "" if there is none
  std::variant<Tcp::acceptor, Local::acceptor> acceptor;
};

}  // namespace sless::http
