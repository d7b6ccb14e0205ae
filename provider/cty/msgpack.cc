#include "provider/cty/msgpack.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "client/base/strings.h"

namespace sless::cty {
namespace {

using base::Code;
using base::Err;
using base::Result;
using base::Status;

// What one header says: the value itself for scalars, a length for the rest.
struct Token {
  enum class Kind { kNil, kBool, kInt, kUint, kFloat, kStr, kBin, kArray, kMap, kExt };
  Kind kind = Kind::kNil;
  bool boolean = false;
  int64_t integer = 0;
  uint64_t whole = 0;  // kUint above int64
  double real = 0;
  uint32_t length = 0;
  std::string_view bytes;  // content of kStr, kBin, kExt
  int8_t ext_type = 0;
};

std::string_view KindName(Token::Kind kind) {
  switch (kind) {
    case Token::Kind::kNil:
      return "null";
    case Token::Kind::kBool:
      return "a bool";
    case Token::Kind::kInt:
    case Token::Kind::kUint:
    case Token::Kind::kFloat:
      return "a number";
    case Token::Kind::kStr:
      return "a string";
    case Token::Kind::kBin:
      return "binary data";
    case Token::Kind::kArray:
      return "an array";
    case Token::Kind::kMap:
      return "a map";
    case Token::Kind::kExt:
      return "an extension";
  }
  return "?";
}

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  Result<Value> Read(const Type& type, int depth) {
    if (depth > kMaxDepth) return Bad(fmt::format("nested deeper than {} levels", kMaxDepth));
    ASSIGN_OR_RETURN(const Token token, Next());
    if (token.kind == Token::Kind::kNil) return Value::Null();
    if (token.kind == Token::Kind::kExt) return ReadUnknown(token);
    switch (type.kind()) {
      case Type::Kind::kDynamic:
        return ReadDynamic(token, depth);
      case Type::Kind::kBool:
        if (token.kind != Token::Kind::kBool) return Mismatch(type, token);
        return Value::Bool(token.boolean);
      case Type::Kind::kNumber:
        return ReadNumber(token, type);
      case Type::Kind::kString:
        if (token.kind != Token::Kind::kStr && token.kind != Token::Kind::kBin)
          return Mismatch(type, token);
        if (!base::IsUtf8(token.bytes)) return Bad("string is not UTF-8");
        return Value::String(token.bytes);
      case Type::Kind::kList:
      case Type::Kind::kSet:
      case Type::Kind::kTuple:
        return ReadSequence(token, type, depth);
      case Type::Kind::kMap:
        return ReadMap(token, type, depth);
      case Type::Kind::kObject:
        return ReadObject(token, type, depth);
    }
    return Bad("unknown kind of type");
  }

  Status ExpectEnd() const {
    if (at_ == bytes_.size()) return base::Ok();
    return Bad(fmt::format("{} bytes after the value", bytes_.size() - at_));
  }

 private:
  tl::unexpected<base::Error> Bad(std::string_view problem) const {
    const std::string where = path_.empty() ? "value" : path_.ToString();
    return Err(Code::kInvalidArgument,
               fmt::format("{}: {} (MessagePack, before byte {})", where, problem, at_));
  }
  tl::unexpected<base::Error> Mismatch(const Type& type, const Token& token) const {
    return Bad(fmt::format("wanted {}, found {}", type.ToString(), KindName(token.kind)));
  }

  size_t Left() const { return bytes_.size() - at_; }

  Result<uint64_t> Uint(size_t width) {
    if (Left() < width) return Bad("ends in the middle of a value");
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i) value = value << 8 | static_cast<uint8_t>(bytes_[at_++]);
    return value;
  }

  Result<Token> Sized(Token::Kind kind, uint64_t length) {
    Token token;
    token.kind = kind;
    token.length = static_cast<uint32_t>(length);
    if (kind == Token::Kind::kArray || kind == Token::Kind::kMap) return token;
    if (kind == Token::Kind::kExt) {
      ASSIGN_OR_RETURN(const uint64_t type, Uint(1));
      token.ext_type = static_cast<int8_t>(type);
    }
    if (Left() < length) return Bad("ends in the middle of a value");
    token.bytes = bytes_.substr(at_, length);
    at_ += length;
    return token;
  }
  Result<Token> SizedBy(Token::Kind kind, size_t width) {
    ASSIGN_OR_RETURN(const uint64_t length, Uint(width));
    return Sized(kind, length);
  }

  Result<Token> Unsigned(size_t width) {
    ASSIGN_OR_RETURN(const uint64_t value, Uint(width));
    Token token;
    token.kind = value > static_cast<uint64_t>(INT64_MAX) ? Token::Kind::kUint : Token::Kind::kInt;
    token.whole = value;
    token.integer = static_cast<int64_t>(value);
    return token;
  }
  Result<Token> Signed(size_t width) {
    ASSIGN_OR_RETURN(const uint64_t value, Uint(width));
    Token token;
    token.kind = Token::Kind::kInt;
    switch (width) {
      case 1:
        token.integer = static_cast<int8_t>(value);
        break;
      case 2:
        token.integer = static_cast<int16_t>(value);
        break;
      case 4:
        token.integer = static_cast<int32_t>(value);
        break;
      default:
        token.integer = static_cast<int64_t>(value);
    }
    return token;
  }
  Result<Token> Float(size_t width) {
    ASSIGN_OR_RETURN(const uint64_t value, Uint(width));
    Token token;
    token.kind = Token::Kind::kFloat;
    token.real = width == 4 ? std::bit_cast<float>(static_cast<uint32_t>(value))
                            : std::bit_cast<double>(value);
    return token;
  }

  Result<Token> Next() {
    ASSIGN_OR_RETURN(const uint64_t head, Uint(1));
    using enum Token::Kind;
    Token token;
    if (head <= 0x7f || head >= 0xe0) {
      token.kind = kInt;
      token.integer = static_cast<int8_t>(head);
      return token;
    }
    if (head <= 0x8f) return Sized(kMap, head & 0x0f);
    if (head <= 0x9f) return Sized(kArray, head & 0x0f);
    if (head <= 0xbf) return Sized(kStr, head & 0x1f);
    switch (head) {
      case 0xc0:
        return token;
      case 0xc2:
      case 0xc3:
        token.kind = kBool;
        token.boolean = head == 0xc3;
        return token;
      case 0xc4:
        return SizedBy(kBin, 1);
      case 0xc5:
        return SizedBy(kBin, 2);
      case 0xc6:
        return SizedBy(kBin, 4);
      case 0xc7:
        return SizedBy(kExt, 1);
      case 0xc8:
        return SizedBy(kExt, 2);
      case 0xc9:
        return SizedBy(kExt, 4);
      case 0xca:
        return Float(4);
      case 0xcb:
        return Float(8);
      case 0xcc:
        return Unsigned(1);
      case 0xcd:
        return Unsigned(2);
      case 0xce:
        return Unsigned(4);
      case 0xcf:
        return Unsigned(8);
      case 0xd0:
        return Signed(1);
      case 0xd1:
        return Signed(2);
      case 0xd2:
        return Signed(4);
      case 0xd3:
        return Signed(8);
      case 0xd4:
        return Sized(kExt, 1);
      case 0xd5:
        return Sized(kExt, 2);
      case 0xd6:
        return Sized(kExt, 4);
      case 0xd7:
        return Sized(kExt, 8);
      case 0xd8:
        return Sized(kExt, 16);
      case 0xd9:
        return SizedBy(kStr, 1);
      case 0xda:
        return SizedBy(kStr, 2);
      case 0xdb:
        return SizedBy(kStr, 4);
      case 0xdc:
        return SizedBy(kArray, 2);
      case 0xdd:
        return SizedBy(kArray, 4);
      case 0xde:
        return SizedBy(kMap, 2);
      case 0xdf:
        return SizedBy(kMap, 4);
      default:
        return Bad("byte 0xc1 begins no value");
    }
  }

  // Any extension of at most one byte, and refined unknowns (type 12), whose refinements we do not
  // need.
  Result<Value> ReadUnknown(const Token& token) const {
    constexpr size_t kMaxRefinements = 1024;
    if (token.bytes.size() <= 1) return Value::Unknown();
    if (token.ext_type != 12)
      return Bad(fmt::format("extension type {} is not an unknown value", token.ext_type));
    if (token.bytes.size() > kMaxRefinements)
      return Bad("refinements of an unknown value above 1024 bytes");
    return Value::Unknown();
  }

  Result<Value> ReadNumber(const Token& token, const Type& type) const {
    const auto finish = [&](const Result<Number>& number) -> Result<Value> {
      if (!number) return Bad(number.error().message);
      return Value::Number(*number);
    };
    switch (token.kind) {
      case Token::Kind::kInt:
        return Value::Int(token.integer);
      case Token::Kind::kUint:
        return finish(Number::Parse(std::to_string(token.whole)));
      case Token::Kind::kFloat:
        return finish(Number::FromExactDouble(token.real));
      case Token::Kind::kStr:
        return finish(Number::Parse(token.bytes));
      default:
        return Mismatch(type, token);
    }
  }

  Result<Value> ReadDynamic(const Token& token, int depth) {
    if (token.kind != Token::Kind::kArray || token.length != 2) {
      return Bad(
          fmt::format("wanted a dynamic value as [type, value], found {}", KindName(token.kind)));
    }
    ASSIGN_OR_RETURN(const Token text, Next());
    if (text.kind != Token::Kind::kBin && text.kind != Token::Kind::kStr) {
      return Bad("the type of a dynamic value must be binary data or a string");
    }
    auto type = Type::FromJson(text.bytes);
    if (!type) return Bad(type.error().message);
    ASSIGN_OR_RETURN(const Value value, Read(*type, depth + 1));
    return value.WithDynamicType(std::move(*type));
  }

  // Each element takes a byte at least: a length that the rest cannot hold is refused before memory
  // is taken for it.
  Status CheckLength(const Token& token, size_t bytes_each) const {
    if (token.length > Left() / bytes_each) return Bad("ends in the middle of a value");
    return base::Ok();
  }

  Result<Value> ReadSequence(const Token& token, const Type& type, int depth) {
    if (token.kind != Token::Kind::kArray) return Mismatch(type, token);
    const bool tuple = type.kind() == Type::Kind::kTuple;
    if (tuple && token.length != type.elements().size()) {
      return Bad(fmt::format("wanted {} elements, found {}", type.elements().size(), token.length));
    }
    RETURN_IF_ERROR(CheckLength(token, 1));
    Value::Elements items;
    for (uint32_t i = 0; i < token.length; ++i) {
      path_.Push(Step{Step::Kind::kIndex, "", i});
      ASSIGN_OR_RETURN(auto item, Read(tuple ? type.elements()[i] : type.element(), depth + 1));
      path_.Pop();
      items.push_back(std::move(item));
    }
    if (tuple) return Value::Tuple(std::move(items));
    return type.kind() == Type::Kind::kSet ? Value::Set(std::move(items))
                                           : Value::List(std::move(items));
  }

  Result<std::string> ReadKey() {
    ASSIGN_OR_RETURN(const Token token, Next());
    if (token.kind != Token::Kind::kStr && token.kind != Token::Kind::kBin) {
      return Bad(fmt::format("a key must be a string, found {}", KindName(token.kind)));
    }
    if (!base::IsUtf8(token.bytes)) return Bad("key is not UTF-8");
    return std::string(token.bytes);
  }

  Result<Value> ReadMap(const Token& token, const Type& type, int depth) {
    if (token.kind != Token::Kind::kMap) return Mismatch(type, token);
    RETURN_IF_ERROR(CheckLength(token, 2));
    Value::Members members;
    for (uint32_t i = 0; i < token.length; ++i) {
      ASSIGN_OR_RETURN(auto key, ReadKey());
      path_.Push(Step{Step::Kind::kKey, key});
      ASSIGN_OR_RETURN(auto item, Read(type.element(), depth + 1));
      path_.Pop();
      members.insert_or_assign(std::move(key), std::move(item));
    }
    return Value::Map(std::move(members));
  }

  Result<Value> ReadObject(const Token& token, const Type& type, int depth) {
    if (token.kind != Token::Kind::kMap) return Mismatch(type, token);
    Value::Members members;
    for (uint32_t i = 0; i < token.length; ++i) {
      ASSIGN_OR_RETURN(auto name, ReadKey());
      const auto attribute = type.attributes().find(name);
      if (attribute == type.attributes().end())
        return Bad(fmt::format("there is no attribute \"{}\"", name));
      path_.Push(Step{Step::Kind::kAttribute, name});
      ASSIGN_OR_RETURN(auto item, Read(attribute->second, depth + 1));
      path_.Pop();
      if (!members.emplace(std::move(name), std::move(item)).second)
        return Bad("an attribute is there twice");
    }
    if (members.size() == type.attributes().size()) return Value::Object(std::move(members));
    for (const auto& [name, attribute] : type.attributes()) {
      if (!members.contains(name)) return Bad(fmt::format("attribute \"{}\" is missing", name));
    }
    return Bad("attributes are missing");
  }

  std::string_view bytes_;
  size_t at_ = 0;
  Path path_;
};

class Encoder {
 public:
  // `value` conforms to `type`.
  void Write(const Value& value, const Type& type) {
    if (value.kind() == Value::Kind::kNull &&
        !(type.IsDynamic() && value.dynamic_type() != nullptr))
      return Byte(0xc0);
    if (type.IsDynamic()) return WriteDynamic(value);
    switch (value.kind()) {
      case Value::Kind::kNull:
        return Byte(0xc0);
      case Value::Kind::kUnknown:
        out_.append("\xd4\x00\x00", 3);
        return;
      case Value::Kind::kBool:
        return Byte(value.AsBool() ? 0xc3 : 0xc2);
      case Value::Kind::kNumber:
        return WriteNumber(value.AsNumber());
      case Value::Kind::kString:
        return Str(value.AsString());
      case Value::Kind::kList:
      case Value::Kind::kSet:
      case Value::Kind::kTuple:
        return WriteSequence(value, type);
      case Value::Kind::kMap:
      case Value::Kind::kObject:
        return WriteMembers(value, type);
    }
  }
  std::string Take() { return std::move(out_); }

 private:
  void Byte(unsigned byte) { out_ += static_cast<char>(byte); }
  void BigEndian(uint64_t value, int width) {
    for (int shift = (width - 1) * 8; shift >= 0; shift -= 8)
      Byte(static_cast<unsigned>(value >> shift & 0xff));
  }
  void Header(size_t size, unsigned fix, size_t fix_max, unsigned h8, unsigned h16, unsigned h32) {
    if (size <= fix_max) return Byte(fix | static_cast<unsigned>(size));
    if (h8 != 0 && size <= 0xff) return Byte(h8), BigEndian(size, 1);
    if (size <= 0xffff) return Byte(h16), BigEndian(size, 2);
    Byte(h32), BigEndian(size, 4);
  }
  void Str(std::string_view text) {
    Header(text.size(), 0xa0, 31, 0xd9, 0xda, 0xdb);
    out_ += text;
  }
  void WriteInt(int64_t value) {
    if (value >= 0) {
      const auto bits = static_cast<uint64_t>(value);
      if (bits <= 0x7f) return Byte(static_cast<unsigned>(bits));
      if (bits <= 0xff) return Byte(0xcc), BigEndian(bits, 1);
      if (bits <= 0xffff) return Byte(0xcd), BigEndian(bits, 2);
      if (bits <= 0xffffffff) return Byte(0xce), BigEndian(bits, 4);
      return Byte(0xcf), BigEndian(bits, 8);
    }
    const auto bits = static_cast<uint64_t>(value);
    if (value >= -32) return Byte(static_cast<unsigned>(bits & 0xff));
    if (value >= INT8_MIN) return Byte(0xd0), BigEndian(bits & 0xff, 1);
    if (value >= INT16_MIN) return Byte(0xd1), BigEndian(bits & 0xffff, 2);
    if (value >= INT32_MIN) return Byte(0xd2), BigEndian(bits & 0xffffffff, 4);
    Byte(0xd3), BigEndian(bits, 8);
  }
  // As hosts write them: whole numbers of 64 bits as such, others as a double where that is exact,
  // else as text. Whole numbers beyond 64 bits are always text: a double would come back rounded.
  void WriteNumber(const Number& number) {
    if (const auto whole = number.AsInt64()) return WriteInt(*whole);
    const std::string text = number.ToString();
    const auto exact = !base::Contains(text, '.') ? std::nullopt : number.AsExactDouble();
    if (!exact) return Str(text);
    Byte(0xcb);
    BigEndian(std::bit_cast<uint64_t>(*exact), 8);
  }
  void WriteDynamic(const Value& value) {
    if (value.IsUnknown() && value.dynamic_type() == nullptr) {
      out_.append("\xd4\x00\x00", 3);
      return;
    }
    const Type type = InferType(value);
    const std::string text = type.ToJson();
    Byte(0x92);
    if (text.size() <= 0xff) {
      Byte(0xc4), BigEndian(text.size(), 1);
    } else if (text.size() <= 0xffff) {
      Byte(0xc5), BigEndian(text.size(), 2);
    } else {
      Byte(0xc6), BigEndian(text.size(), 4);
    }
    out_ += text;
    Write(value, type);
  }
  void WriteSequence(const Value& value, const Type& type) {
    const auto& items = value.AsList();
    Header(items.size(), 0x90, 15, 0, 0xdc, 0xdd);
    for (size_t i = 0; i < items.size(); ++i) {
      Write(items[i], type.kind() == Type::Kind::kTuple ? type.elements()[i] : type.element());
    }
  }
  void WriteMembers(const Value& value, const Type& type) {
    Header(value.AsMap().size(), 0x80, 15, 0, 0xde, 0xdf);
    for (const auto& [name, part] : value.AsMap()) {
      Str(name);
      Write(part, type.IsObject() ? type.attributes().find(name)->second : type.element());
    }
  }

  std::string out_;
};

}  // namespace

Result<Value> DecodeMsgpack(std::string_view bytes, const Type& type) {
  if (bytes.empty()) return Value::Null();
  Decoder decoder(bytes);
  ASSIGN_OR_RETURN(auto value, decoder.Read(type, 0));
  RETURN_IF_ERROR(decoder.ExpectEnd());
  return value;
}

Result<std::string> EncodeMsgpack(const Value& value, const Type& type) {
  RETURN_IF_ERROR(Conforms(value, type));
  Encoder encoder;
  encoder.Write(value, type);
  return encoder.Take();
}

}  // namespace sless::cty
