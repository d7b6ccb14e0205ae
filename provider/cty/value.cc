#include "provider/cty/value.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/base/json.h"

namespace sless::cty {

using base::Code;
using base::Err;

struct Value::Payload {
  std::string text;  // kString
  cty::Number number;
  Elements items;
  Members members;
  std::optional<Type> dynamic_type;
  bool wholly_known = true;
};

namespace {

bool AllKnown(const Value::Elements& items) {
  return std::all_of(items.begin(), items.end(), [](const Value& v) { return v.IsWhollyKnown(); });
}
bool AllKnown(const Value::Members& members) {
  return std::all_of(members.begin(), members.end(),
                     [](const auto& m) { return m.second.IsWhollyKnown(); });
}

}  // namespace

Value Value::Number(const cty::Number& value) {
  if (const auto whole = value.AsInt64()) return Int(*whole);
  auto payload = std::make_shared<Payload>();
  payload->number = value;
  return Value(Kind::kNumber, std::move(payload));
}
Value Value::String(std::string_view value) {
  auto payload = std::make_shared<Payload>();
  payload->text = value;
  return Value(Kind::kString, std::move(payload));
}
Value Value::List(Elements elements) {
  auto payload = std::make_shared<Payload>();
  payload->wholly_known = AllKnown(elements);
  payload->items = std::move(elements);
  return Value(Kind::kList, std::move(payload));
}
Value Value::Tuple(Elements elements) {
  auto value = List(std::move(elements));
  value.kind_ = Kind::kTuple;
  return value;
}
Value Value::Set(Elements elements) {
  std::sort(elements.begin(), elements.end(),
            [](const Value& a, const Value& b) { return a.Compare(b) < 0; });
  const auto same = [](const Value& a, const Value& b) { return a.IsWhollyKnown() && a == b; };
  elements.erase(std::unique(elements.begin(), elements.end(), same), elements.end());
  auto value = List(std::move(elements));
  value.kind_ = Kind::kSet;
  return value;
}
Value Value::Map(Members elements) {
  auto payload = std::make_shared<Payload>();
  payload->wholly_known = AllKnown(elements);
  payload->members = std::move(elements);
  return Value(Kind::kMap, std::move(payload));
}
Value Value::Object(Members attributes) {
  auto value = Map(std::move(attributes));
  value.kind_ = Kind::kObject;
  return value;
}
Value Value::StringList(const std::vector<std::string>& elements) {
  Elements items;
  items.reserve(elements.size());
  for (const auto& text : elements) items.push_back(String(text));
  return List(std::move(items));
}
Value Value::StringSet(const std::vector<std::string>& elements) {
  return Set(StringList(elements).AsList());
}
Value Value::StringMap(const std::map<std::string, std::string>& elements) {
  Members members;
  for (const auto& [key, text] : elements) members.emplace(key, String(text));
  return Map(std::move(members));
}

bool Value::IsWhollyKnown() const {
  if (IsUnknown()) return false;
  return !payload_ || payload_->wholly_known;
}

cty::Number Value::AsNumber() const {
  if (kind_ != Kind::kNumber) return cty::Number();
  const bool in_payload = payload_ && !payload_->number.AsInt64();
  return in_payload ? payload_->number : cty::Number(scalar_);
}
const std::string& Value::AsString() const {
  static const std::string kEmpty;
  return kind_ == Kind::kString ? payload_->text : kEmpty;
}
const Value::Elements& Value::AsList() const {
  static const Elements kNone;
  const bool has = kind_ == Kind::kList || kind_ == Kind::kSet || kind_ == Kind::kTuple;
  return has ? payload_->items : kNone;
}
const Value::Members& Value::AsMap() const {
  static const Members kNone;
  return kind_ == Kind::kMap || kind_ == Kind::kObject ? payload_->members : kNone;
}

const Value& Value::Get(std::string_view name) const {
  static const Value kNull;
  const auto& members = AsMap();
  const auto it = members.find(name);
  return it == members.end() ? kNull : it->second;
}

namespace {

// The part that one step leads to, nullptr if there is none.
const Value* Part(const Value& value, const Step& step) {
  if (step.kind == Step::Kind::kIndex) {
    const bool indexed = value.kind() == Value::Kind::kList || value.kind() == Value::Kind::kTuple;
    const auto index = static_cast<size_t>(step.index);
    return indexed && step.index >= 0 && index < value.AsList().size() ? &value.AsList()[index]
                                                                       : nullptr;
  }
  const auto it = value.AsMap().find(step.name);
  return it == value.AsMap().end() ? nullptr : &it->second;
}

Value Replace(const Value& value, const Path& path, size_t at, const Value& part) {
  if (at == path.steps().size()) return part;
  const Step& step = path.steps()[at];
  const Value* old = Part(value, step);
  const bool last = at + 1 == path.steps().size();
  const bool keyed = value.kind() == Value::Kind::kMap || value.kind() == Value::Kind::kObject;
  if (old == nullptr && !(last && keyed && step.kind != Step::Kind::kIndex)) return value;
  Value changed = old == nullptr ? part : Replace(*old, path, at + 1, part);
  if (keyed) return value.With(step.name, std::move(changed));
  auto items = value.AsList();
  items[static_cast<size_t>(step.index)] = std::move(changed);
  return value.kind() == Value::Kind::kTuple ? Value::Tuple(std::move(items))
                                             : Value::List(std::move(items));
}

}  // namespace

std::optional<Value> Value::At(const Path& path) const {
  const Value* at = this;
  for (const Step& step : path.steps()) {
    at = Part(*at, step);
    if (at == nullptr) return std::nullopt;
  }
  return *at;
}

Value Value::WithAt(const Path& path, const Value& value) const {
  return Replace(*this, path, 0, value);
}

Value Value::With(std::string_view name, Value value) const {
  if (kind_ != Kind::kMap && kind_ != Kind::kObject) return *this;
  auto members = payload_->members;
  members.insert_or_assign(std::string(name), std::move(value));
  return kind_ == Kind::kMap ? Map(std::move(members)) : Object(std::move(members));
}

const Type* Value::dynamic_type() const {
  return payload_ && payload_->dynamic_type ? &*payload_->dynamic_type : nullptr;
}
Value Value::WithDynamicType(Type type) const {
  Value copy = *this;
  auto payload = payload_ ? std::make_shared<Payload>(*payload_) : std::make_shared<Payload>();
  payload->dynamic_type = std::move(type);
  copy.payload_ = std::move(payload);
  return copy;
}

std::strong_ordering Value::Compare(const Value& other) const {
  if (kind_ != other.kind_) return kind_ <=> other.kind_;
  switch (kind_) {
    case Kind::kNull:
    case Kind::kUnknown:
      return std::strong_ordering::equal;
    case Kind::kBool:
      return scalar_ <=> other.scalar_;
    case Kind::kNumber:
      return AsNumber() <=> other.AsNumber();
    default:
      break;
  }
  if (payload_ == other.payload_) return std::strong_ordering::equal;
  if (kind_ == Kind::kString) return payload_->text.compare(other.payload_->text) <=> 0;
  const auto &a = payload_->items, &b = other.payload_->items;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (const auto order = a[i].Compare(b[i]); order != 0) return order;
  }
  if (a.size() != b.size()) return a.size() <=> b.size();
  auto left = payload_->members.begin();
  auto right = other.payload_->members.begin();
  for (; left != payload_->members.end() && right != other.payload_->members.end();
       ++left, ++right) {
    if (const auto order = left->first.compare(right->first) <=> 0; order != 0) return order;
    if (const auto order = left->second.Compare(right->second); order != 0) return order;
  }
  return payload_->members.size() <=> other.payload_->members.size();
}

void Value::Print(std::string& out) const {
  const auto list = [&](char open, char close) {
    out += open;
    for (size_t i = 0; i < AsList().size(); ++i) {
      if (i != 0) out += ", ";
      AsList()[i].Print(out);
    }
    out += close;
  };
  switch (kind_) {
    case Kind::kNull:
      out += "null";
      return;
    case Kind::kUnknown:
      out += "(unknown)";
      return;
    case Kind::kBool:
      out += AsBool() ? "true" : "false";
      return;
    case Kind::kNumber:
      out += AsNumber().ToString();
      return;
    case Kind::kString:
      out += '"' + AsString() + '"';
      return;
    case Kind::kList:
      return list('[', ']');
    case Kind::kTuple:
      return list('[', ']');
    case Kind::kSet:
      out += "set";
      return list('(', ')');
    case Kind::kMap:
    case Kind::kObject:
      break;
  }
  out += '{';
  bool first = true;
  for (const auto& [key, value] : AsMap()) {
    if (!first) out += ", ";
    first = false;
    out += kind_ == Kind::kMap ? '"' + key + '"' : key;
    out += '=';
    value.Print(out);
  }
  out += '}';
}

std::string Value::ToString() const {
  std::string out;
  Print(out);
  return out;
}

}  // namespace sless::cty
