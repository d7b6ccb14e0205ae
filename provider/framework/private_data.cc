#include "provider/framework/private_data.h"

#include <nlohmann/json.hpp>

#include "client/base/json.h"
#include "client/base/strings.h"

namespace sless::framework {

PrivateData PrivateData::Decode(std::string_view bytes) {
  PrivateData result;
  if (bytes.empty()) return result;
  const auto tree = base::ParseJson(bytes);
  bool ours = tree && tree->is_object();
  if (ours) {
    for (const auto& [key, item] : tree->items()) {
      auto value = item.is_string() ? base::Base64Decode(item.get_ref<const std::string&>())
                                    : base::Err(base::Code::kInvalidArgument, "not a string");
      ours = ours && value.has_value();
      if (ours) result.entries_.emplace(key, std::move(*value));
    }
  }
  if (!ours) {
    result.entries_.clear();
    result.foreign_ = bytes;
  }
  return result;
}

std::string PrivateData::Encode() const {
  if (!foreign_.empty()) return foreign_;
  if (entries_.empty()) return "";
  auto tree = nlohmann::json::object();
  for (const auto& [key, value] : entries_) tree[key] = base::Base64Encode(value);
  return base::DumpJson(tree);
}

std::optional<std::string> PrivateData::Get(std::string_view key) const {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return std::nullopt;
  return it->second;
}

void PrivateData::Set(std::string key, std::string value) {
  foreign_.clear();
  entries_.insert_or_assign(std::move(key), std::move(value));
}

void PrivateData::Remove(std::string_view key) {
  const auto it = entries_.find(key);
  if (it != entries_.end()) entries_.erase(it);
}

}  // namespace sless::framework
