#pragma once

// What every call into a resource, data source, … is given beside its values.

#include <memory>
#include <stop_token>
#include <string>
#include <typeindex>
#include <typeinfo>

#include "client/base/clock.h"
#include "client/base/log.h"

namespace sless::framework {

/// What Configure made (a client, say), shared by all calls. Null until configured, and for
/// functions.
class ProviderData {
 public:
  ProviderData() = default;
  template <class T>
  static ProviderData Of(std::shared_ptr<T> data) {
    ProviderData result;
    result.data_ = std::move(data);
    result.type_ = typeid(T);
    return result;
  }
  /// The object if it is one of exactly this type, else nullptr. It must be thread-safe.
  template <class T>
  T* Get() const {
    return type_ == std::type_index(typeid(T)) ? static_cast<T*>(data_.get()) : nullptr;
  }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  std::shared_ptr<void> data_;
  std::type_index type_ = typeid(void);
};

/// Lives as long as the call.
struct Context {
  std::stop_token
      stop;  ///< set when the host asks to stop: return soon, with the state as far as it is known
  base::Logger& log;
  const base::Clock& clock;
  ProviderData provider_data;
  std::string terraform_version;  ///< of the host, "" if not configured

  base::Deadline DeadlineIn(std::chrono::nanoseconds wait) const {
    return base::Deadline::After(clock, wait);
  }
};

/// What the host understands (ClientCapabilities of the protocol).
struct ClientCapabilities {
  bool deferral_allowed = false;
  bool write_only_attributes_allowed = false;
};

}  // namespace sless::framework
