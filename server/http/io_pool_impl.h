#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "server/http/server.h"

namespace sless::http {

// One io_context per thread: whatever lives on it needs no strand and no lock.
struct IoPool::Impl {
  struct Loop {
    boost::asio::io_context context{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
        context.get_executor()};
    std::jthread thread;
  };
  std::vector<std::unique_ptr<Loop>> loops;
  std::atomic<size_t> turn{0};

  boost::asio::io_context& Next() {
    return loops[turn.fetch_add(1, std::memory_order_relaxed) % loops.size()]->context;
  }
};

}  // namespace sless::http
