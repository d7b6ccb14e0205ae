#include "provider/cty/testing/random_value.h"

namespace sless::cty::testing {

std::string RandomText(Random& random) {
  static constexpr const char* kParts[] = {"a",  "B", "7", "\"", "\\",   "\n", "é",
                                           "漢", "😀", "{", "}",  "null", " ",  "-"};
  std::string text;
  const size_t parts = random.Chance(5) ? 300 : random.Below(6);
  for (size_t i = 0; i < parts; ++i) text += kParts[random.Below(std::size(kParts))];
  return text;
}

Number RandomNumber(Random& random) {
  switch (random.Below(6)) {
    case 0:
      return Number(static_cast<int64_t>(random.Below(300)) - 150);
    case 1:
      return Number(static_cast<int64_t>(random.Below(UINT64_MAX)));
    case 2:
      return *Number::Parse(std::to_string(random.Below(1000)) + "." +
                            std::to_string(random.Below(100000)));
    case 3:
      return *Number::Parse("-0." + std::string(random.Below(30), '0') +
                            std::to_string(1 + random.Below(99)));
    case 4:
      return *Number::Parse("1" + std::string(random.Below(60), '9'));
    default:
      return *Number::FromDouble(static_cast<double>(random.Below(1u << 30)) /
                                 (1 + random.Below(1000)));
  }
}

Type RandomType(Random& random, int depth) {
  switch (random.Below(depth <= 0 ? 4 : 9)) {
    case 0:
      return Type::String();
    case 1:
      return Type::Number();
    case 2:
      return Type::Bool();
    case 3:
      return Type::Dynamic();
    case 4:
    case 5:
    case 6: {
      Type element = RandomType(random, depth - 1);
      if (element.HasDynamic()) element = Type::String();
      if (random.Chance(30)) return Type::Map(element);
      return random.Chance(50) ? Type::Set(element) : Type::List(element);
    }
    case 7: {
      std::vector<Type> elements;
      for (uint64_t i = random.Below(4); i > 0; --i)
        elements.push_back(RandomType(random, depth - 1));
      return Type::Tuple(std::move(elements));
    }
    default: {
      Type::Attributes attributes;
      for (uint64_t i = random.Below(5); i > 0; --i) {
        attributes.emplace("a" + std::to_string(random.Below(20)), RandomType(random, depth - 1));
      }
      return Type::Object(std::move(attributes));
    }
  }
}

Value RandomValue(Random& random, const Type& type, const ValueOptions& options) {
  if (random.Chance(options.null_percent)) return Value::Null();
  if (random.Chance(options.unknown_percent)) return Value::Unknown();
  const auto elements = [&](const Type& element) {
    Value::Elements items;
    for (uint64_t i = random.Chance(5) ? 20 : random.Below(4); i > 0; --i) {
      items.push_back(RandomValue(random, element, options));
    }
    return items;
  };
  switch (type.kind()) {
    case Type::Kind::kBool:
      return Value::Bool(random.Chance(50));
    case Type::Kind::kNumber:
      return Value::Number(RandomNumber(random));
    case Type::Kind::kString:
      return Value::String(RandomText(random));
    case Type::Kind::kList:
      return Value::List(elements(type.element()));
    case Type::Kind::kSet:
      return Value::Set(elements(type.element()));
    case Type::Kind::kDynamic: {
      const Type concrete =
          random.Chance(50) ? Type::String() : Type::Tuple({Type::Number(), Type::Bool()});
      return RandomValue(random, concrete, options).WithDynamicType(concrete);
    }
    case Type::Kind::kTuple: {
      Value::Elements items;
      for (const auto& element : type.elements())
        items.push_back(RandomValue(random, element, options));
      return Value::Tuple(std::move(items));
    }
    case Type::Kind::kMap: {
      Value::Members members;
      for (uint64_t i = random.Below(4); i > 0; --i) {
        members.insert_or_assign(RandomText(random), RandomValue(random, type.element(), options));
      }
      return Value::Map(std::move(members));
    }
    case Type::Kind::kObject: {
      Value::Members members;
      for (const auto& [name, attribute] : type.attributes()) {
        members.emplace(name, RandomValue(random, attribute, options));
      }
      return Value::Object(std::move(members));
    }
  }
  return Value::Null();
}

}  // namespace sless::cty::testing
