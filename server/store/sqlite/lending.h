#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace sless::store {

/// A few things that many threads use, one thread each at a time: whoever finds none waits for the
/// first that is given back. Thread-safe but for Add.
template <class T>
class Lending {
 public:
  class Lent {
   public:
    explicit Lent(Lending& from) : from_(from), thing_(from.Take()) {}
    ~Lent() { from_.GiveBack(thing_); }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    T& operator*() const { return *thing_; }

   private:
    Lending& from_;
    T* thing_;
  };

  /// Before anybody borrows. `thing` outlives this.
  void Add(T& thing) { free_.push_back(&thing); }

 private:
  T* Take() {
    std::unique_lock lock(mutex_);
    given_back_.wait(lock, [this] { return !free_.empty(); });
    T* thing = free_.back();
    free_.pop_back();
    return thing;
  }
  void GiveBack(T* thing) {
    {
      std::lock_guard lock(mutex_);
      free_.push_back(thing);
    }
    given_back_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable given_back_;
  std::vector<T*> free_;
};

}  // namespace sless::store
