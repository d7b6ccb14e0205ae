#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "server/store/object_store.h"

namespace sless::store {

/// A store whose writes the test may refuse, or do something before. Thread-safe.
class HookedStore final : public ObjectStore {
 public:
  using Hook = std::function<base::Status(const api::ObjectKey&)>;
  explicit HookedStore(std::unique_ptr<ObjectStore> store) : store_(std::move(store)) {}

  /// Called before every write, which its error refuses. It may write itself, and is called for
  /// that too.
  void BeforeWrite(Hook hook) {
    std::lock_guard lock(mutex_);
    hook_ = std::move(hook);
  }

  base::Result<StoredObject> Get(const api::ObjectKey& key) const override {
    return store_->Get(key);
  }
  base::Result<Page> List(const ListQuery& query) const override { return store_->List(query); }
  base::Result<StoredObject> Create(StoredObject object) override {
    RETURN_IF_ERROR(Ask(object.key));
    return store_->Create(std::move(object));
  }
  base::Result<StoredObject> Update(StoredObject object) override {
    RETURN_IF_ERROR(Ask(object.key));
    return store_->Update(std::move(object));
  }
  base::Status Delete(const api::ObjectKey& key,
                      std::optional<std::string> resource_version) override {
    RETURN_IF_ERROR(Ask(key));
    return store_->Delete(key, std::move(resource_version));
  }
  std::unique_ptr<Subscription> Subscribe(std::function<void(const Change&)> callback) override {
    return store_->Subscribe(std::move(callback));
  }

 private:
  base::Status Ask(const api::ObjectKey& key) {
    Hook hook;
    {
      std::lock_guard lock(mutex_);
      hook = hook_;
    }
    return hook ? hook(key) : base::Ok();
  }

  const std::unique_ptr<ObjectStore> store_;
  std::mutex mutex_;
  Hook hook_;
};

}  // namespace sless::store
