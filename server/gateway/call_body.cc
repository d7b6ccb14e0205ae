#include "server/gateway/call_body.h"

namespace sless::gateway {
namespace {

using base::Code;

base::Error Overloaded(std::string message) {
  return {Code::kUnavailable, std::move(message), "", "Overloaded", {}};
}

}  // namespace

CallBody::CallBody(http::Exchange& exchange, const GatewayOptions& options,
                   std::atomic<size_t>& all, std::shared_ptr<FunctionState> function)
    : exchange_(exchange), options_(options), all_(all), function_(std::move(function)) {}

http::Task<base::Status> CallBody::Read(size_t least, std::chrono::steady_clock::time_point until) {
  while (!whole_ && bytes_.size() < least) {
    const auto began = std::chrono::steady_clock::now();
    const auto piece = co_await exchange_.ReadBody(until);
    took_ += std::chrono::steady_clock::now() - began;
    if (!piece && piece.error().reason == "NotYet") co_return base::Err(piece.error());
    if (!piece) co_return Fail(piece.error());
    bytes_.append(*piece);
    held_ += piece->size();
    all_ += piece->size();
    function_->buffered += piece->size();
    whole_ = piece->empty() || bytes_.size() == exchange_.body_length();
    if (function_->buffered > options_.max_buffered_of_one)
      co_return Fail(Overloaded("too many request bodies of this function are waiting; try again"));
    if (all_ > options_.max_buffered)
      co_return Fail(Overloaded("too many request bodies are waiting; try again"));
  }
  co_return base::Ok();
}

base::Status CallBody::Fail(base::Error error) {
  failed_ = true;
  return base::Err(std::move(error));
}

bool CallBody::KeepsUp(std::chrono::nanoseconds patience) const {
  const auto length = static_cast<double>(exchange_.body_length().value_or(options_.max_body));
  const auto come = static_cast<double>(bytes_.size());
  return come > 0 && took_ * ((length - come) / come) <= patience;
}

std::optional<uint64_t> CallBody::length() const {
  return whole_ ? bytes_.size() : exchange_.body_length();
}

void CallBody::Release() {
  std::string().swap(bytes_);
  all_ -= held_;
  function_->buffered -= held_;
  held_ = 0;
}

}  // namespace sless::gateway
