#include "provider/plugin/running_calls.h"

#include <utility>

namespace sless::plugin {

RunningCalls::Call::Call(Call&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), position_(other.position_) {}

RunningCalls::Call::~Call() {
  if (owner_ == nullptr) return;
  owner_->entries_.With([this](Entries& entries) {
    // is_cancelled refers to the call's own context: a snapshot that still holds the entry must not
    // ask it any more.
    (*position_)->is_cancelled = nullptr;
    entries.erase(position_);
  });
}

RunningCalls::Call RunningCalls::Begin(std::function<bool()> is_cancelled) {
  auto entry = std::make_shared<Entry>();
  entry->is_cancelled = std::move(is_cancelled);
  return entries_.With([&](Entries& entries) {
    return Call(this, entries.insert(entries.end(), std::move(entry)));
  });
}

std::vector<std::shared_ptr<RunningCalls::Entry>> RunningCalls::Snapshot() const {
  return entries_.With([](const Entries& entries) {
    return std::vector<std::shared_ptr<Entry>>(entries.begin(), entries.end());
  });
}

void RunningCalls::StopAll() {
  for (const auto& entry : Snapshot()) entry->stop.request_stop();
}

void RunningCalls::StopCancelled() {
  std::vector<std::shared_ptr<Entry>> cancelled;
  entries_.With([&](const Entries& entries) {
    for (const auto& entry : entries) {
      if (!entry->stop.stop_requested() && entry->is_cancelled && entry->is_cancelled())
        cancelled.push_back(entry);
    }
  });
  for (const auto& entry : cancelled) entry->stop.request_stop();
}

size_t RunningCalls::size() const {
  return entries_.With([](const Entries& entries) { return entries.size(); });
}

}  // namespace sless::plugin
