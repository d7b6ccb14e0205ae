#include "server/http/io_pool_impl.h"
#include "server/http/stream.h"

namespace sless::http {

IoPool::IoPool(int threads) : impl_(std::make_unique<Impl>()) {
  if (threads <= 0)
    threads = std::clamp<int>(static_cast<int>(std::thread::hardware_concurrency()), 1, 4);
  for (int i = 0; i < threads; ++i) {
    auto& loop = *impl_->loops.emplace_back(std::make_unique<Impl::Loop>());
    loop.thread = std::jthread([&context = loop.context] { context.run(); });
  }
}

IoPool::~IoPool() { Stop(); }

void IoPool::Stop() {
  for (auto& loop : impl_->loops) {
    loop->work.reset();
    loop->context.stop();
  }
  for (auto& loop : impl_->loops) {
    if (loop->thread.joinable()) loop->thread.join();
  }
}

boost::asio::any_io_executor NextExecutor(IoPool& io) { return io.impl().Next().get_executor(); }

}  // namespace sless::http
