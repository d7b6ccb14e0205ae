#include "server/store/memory/memory_store.h"

#include <map>
#include <mutex>

#include "server/store/change_feed.h"
#include "server/store/rules.h"

namespace sless::store {
namespace {

using base::Result;

class MemoryStore final : public ObjectStore {
 public:
  explicit MemoryStore(const base::Clock& clock) : clock_(clock) {}

  Result<StoredObject> Get(const api::ObjectKey& key) const override {
    std::lock_guard lock(mutex_);
    const auto it = objects_.find(key);
    if (it == objects_.end()) return NotFound(key);
    return it->second;
  }

  Result<Page> List(const ListQuery& query) const override {
    ASSIGN_OR_RETURN(const auto start, PageStart(query));
    std::lock_guard lock(mutex_);
    Page page;
    size_t bytes = 0;
    for (auto it = objects_.upper_bound({query.kind, start.first, start.second});
         it != objects_.end(); ++it) {
      const auto& [key, object] = *it;
      if (key.kind != query.kind) break;
      if (!query.ns.empty() && key.ns != query.ns) continue;
      if (!key.name.starts_with(query.name_prefix)) continue;
      if (page.items.size() == query.limit || bytes >= kMaxPageBytes) {
        page.continue_after = ContinueAfter(page.items.back().key);
        break;
      }
      bytes += SizeOf(object);
      page.items.push_back(object);
    }
    return page;
  }

  Result<StoredObject> Create(StoredObject object) override {
    RETURN_IF_ERROR(CheckKey(object.key));
    std::lock_guard lock(mutex_);
    if (objects_.contains(object.key)) return AlreadyExists(object.key);
    object = MakeNew(std::move(object), ++revision_, clock_.Now());
    objects_[object.key] = object;
    feed_.Publish({revision_, object.key, false});
    return object;
  }

  Result<StoredObject> Update(StoredObject object) override {
    std::lock_guard lock(mutex_);
    const auto it = objects_.find(object.key);
    if (it == objects_.end()) return NotFound(object.key);
    ASSIGN_OR_RETURN(auto next,
                     MakeUpdated(it->second, std::move(object), revision_ + 1, clock_.Now()));
    if (!next) return it->second;
    it->second = std::move(*next);
    feed_.Publish({++revision_, it->first, false});
    return it->second;
  }

  base::Status Delete(const api::ObjectKey& key,
                      std::optional<std::string> resource_version) override {
    std::lock_guard lock(mutex_);
    const auto it = objects_.find(key);
    if (it == objects_.end()) return NotFound(key);
    RETURN_IF_ERROR(CheckVersion(it->second, resource_version));
    objects_.erase(it);
    feed_.Publish({++revision_, key, true});
    return base::Ok();
  }

  std::unique_ptr<Subscription> Subscribe(std::function<void(const Change&)> callback) override {
    return feed_.Subscribe(std::move(callback));
  }

 private:
  const base::Clock& clock_;
  mutable std::mutex mutex_;
  std::map<api::ObjectKey, StoredObject> objects_;
  int64_t revision_ = 0;
  ChangeFeed feed_;
};

}  // namespace

std::unique_ptr<ObjectStore> MakeMemoryStore(const base::Clock& clock) {
  return std::make_unique<MemoryStore>(clock);
}

}  // namespace sless::store
