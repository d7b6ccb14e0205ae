#include "provider/plugin/convert.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/base/strings.h"
#include "provider/cty/msgpack.h"
#include "provider/cty/wire_json.h"

namespace sless::plugin {
namespace {

using framework::Nesting;
using Block = tfplugin6::Schema::Block;

tfplugin6::Schema::Object::NestingMode ObjectNesting(Nesting nesting) {
  switch (nesting) {
    case Nesting::kSingle:
      return tfplugin6::Schema::Object::SINGLE;
    case Nesting::kList:
      return tfplugin6::Schema::Object::LIST;
    case Nesting::kSet:
      return tfplugin6::Schema::Object::SET;
    case Nesting::kMap:
      return tfplugin6::Schema::Object::MAP;
  }
  return tfplugin6::Schema::Object::INVALID;
}

tfplugin6::Schema::NestedBlock::NestingMode BlockNesting(Nesting nesting) {
  switch (nesting) {
    case Nesting::kSingle:
      return tfplugin6::Schema::NestedBlock::SINGLE;
    case Nesting::kList:
      return tfplugin6::Schema::NestedBlock::LIST;
    case Nesting::kSet:
      return tfplugin6::Schema::NestedBlock::SET;
    case Nesting::kMap:
      return tfplugin6::Schema::NestedBlock::MAP;
  }
  return tfplugin6::Schema::NestedBlock::INVALID;
}

template <class Message>
void SetTexts(const std::string& description, const std::string& deprecation, Message* out) {
  out->set_description(ToUtf8(description));
  out->set_description_kind(tfplugin6::MARKDOWN);
  if (deprecation.empty()) return;
  out->set_deprecated(true);
  out->set_deprecation_message(ToUtf8(deprecation));
}

void Fill(const framework::Attribute& attribute, tfplugin6::Schema::Attribute* out) {
  out->set_name(attribute.name);
  if (attribute.type.nesting) {
    auto* nested = out->mutable_nested_type();
    nested->set_nesting(ObjectNesting(*attribute.type.nesting));
    for (const auto& inner : attribute.type.attributes) Fill(inner, nested->add_attributes());
  } else {
    out->set_type(attribute.type.type.ToJson());
  }
  const framework::AttributeOptions& options = attribute.options;
  SetTexts(options.description, options.deprecation, out);
  out->set_required(options.required);
  out->set_optional(options.optional);
  out->set_computed(options.computed);
  out->set_sensitive(options.sensitive);
  out->set_write_only(options.write_only);
}

void Fill(const std::vector<framework::Attribute>& attributes,
          const std::vector<framework::Block>& blocks, Block* out);

void Fill(const framework::Block& block, tfplugin6::Schema::NestedBlock* out) {
  out->set_type_name(block.name);
  out->set_nesting(BlockNesting(block.nesting));
  out->set_min_items(block.min_items);
  // A single block has one limit, written twice: 1 and 1 where it is required.
  out->set_max_items(block.nesting == Nesting::kSingle ? block.min_items : block.max_items);
  SetTexts(block.description, block.deprecation, out->mutable_block());
  Fill(block.attributes, block.blocks, out->mutable_block());
}

void Fill(const std::vector<framework::Attribute>& attributes,
          const std::vector<framework::Block>& blocks, Block* out) {
  for (const auto& attribute : attributes) Fill(attribute, out->add_attributes());
  for (const auto& block : blocks) Fill(block, out->add_block_types());
}

void Fill(const framework::Parameter& parameter, tfplugin6::Function::Parameter* out) {
  out->set_name(parameter.name);
  out->set_type(parameter.type.ToJson());
  out->set_allow_null_value(parameter.allow_null);
  out->set_allow_unknown_values(parameter.allow_unknown);
  out->set_description(ToUtf8(parameter.description));
  out->set_description_kind(tfplugin6::MARKDOWN);
}

}  // namespace

tfplugin6::Schema ToProto(const framework::Schema& schema) {
  tfplugin6::Schema out;
  out.set_version(schema.version);
  Block* block = out.mutable_block();
  block->set_version(schema.version);
  SetTexts(schema.description, schema.deprecation, block);
  Fill(schema.attributes, schema.blocks, block);
  return out;
}

tfplugin6::ResourceIdentitySchema ToProto(const framework::IdentitySchema& schema) {
  tfplugin6::ResourceIdentitySchema out;
  out.set_version(schema.version);
  for (const auto& attribute : schema.attributes) {
    auto* field = out.add_identity_attributes();
    field->set_name(attribute.name);
    field->set_type(attribute.type.ToJson());
    field->set_required_for_import(attribute.required_for_import);
    field->set_optional_for_import(!attribute.required_for_import);
    field->set_description(ToUtf8(attribute.description));
  }
  return out;
}

tfplugin6::Function ToProto(const framework::FunctionDefinition& definition) {
  tfplugin6::Function out;
  for (const auto& parameter : definition.parameters) Fill(parameter, out.add_parameters());
  if (definition.variadic) Fill(*definition.variadic, out.mutable_variadic_parameter());
  out.mutable_return_()->set_type(definition.result.ToJson());
  out.set_summary(ToUtf8(definition.summary));
  out.set_description(ToUtf8(definition.description));
  out.set_description_kind(tfplugin6::MARKDOWN);
  out.set_deprecation_message(ToUtf8(definition.deprecation));
  return out;
}

tfplugin6::AttributePath ToProto(const cty::Path& path) {
  tfplugin6::AttributePath out;
  for (const cty::Step& step : path.steps()) {
    auto* to = out.add_steps();
    switch (step.kind) {
      case cty::Step::Kind::kAttribute:
        to->set_attribute_name(ToUtf8(step.name));
        break;
      case cty::Step::Kind::kKey:
        to->set_element_key_string(ToUtf8(step.name));
        break;
      case cty::Step::Kind::kIndex:
        to->set_element_key_int(step.index);
        break;
    }
  }
  return out;
}

tfplugin6::Diagnostic ToProto(const framework::Diagnostic& diagnostic) {
  tfplugin6::Diagnostic out;
  out.set_severity(diagnostic.severity == framework::Severity::kError
                       ? tfplugin6::Diagnostic::ERROR
                       : tfplugin6::Diagnostic::WARNING);
  out.set_summary(ToUtf8(diagnostic.summary));
  out.set_detail(ToUtf8(diagnostic.detail));
  if (diagnostic.path && !diagnostic.path->empty())
    *out.mutable_attribute() = ToProto(*diagnostic.path);
  return out;
}

void Append(const framework::Diagnostics& from, ProtoDiagnostics& to) {
  for (const auto& diagnostic : from) *to.Add() = ToProto(diagnostic);
}

namespace {
base::Error Named(base::Error error, std::string_view what) {
  error.message = fmt::format("{}: {}", what, error.message);
  return error;
}
}  // namespace

base::Result<cty::Value> FromProto(const tfplugin6::DynamicValue& value, const cty::Type& type,
                                   std::string_view what) {
  if (value.msgpack().empty() && value.json().empty()) return cty::Value::Null();
  auto decoded = value.msgpack().empty() ? cty::DecodeJson(value.json(), type)
                                         : cty::DecodeMsgpack(value.msgpack(), type);
  if (!decoded) return base::Err(Named(std::move(decoded).error(), what));
  return decoded;
}

base::Status ToProto(const cty::Value& value, const cty::Type& type, std::string_view what,
                     tfplugin6::DynamicValue* out) {
  auto encoded = cty::EncodeMsgpack(value, type);
  if (!encoded) return base::Err(Named(std::move(encoded).error(), what));
  out->set_msgpack(std::move(*encoded));
  return base::Ok();
}

base::Result<cty::Value> FromProto(const tfplugin6::ResourceIdentityData& data,
                                   const cty::Type& type) {
  return FromProto(data.identity_data(), type, "identity");
}

framework::ClientCapabilities FromProto(const tfplugin6::ClientCapabilities& capabilities) {
  return {.deferral_allowed = capabilities.deferral_allowed(),
          .write_only_attributes_allowed = capabilities.write_only_attributes_allowed()};
}

std::string ToUtf8(std::string_view text) {
  if (base::IsUtf8(text)) return std::string(text);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    // The longest valid sequence that starts here; a valid one has 1 to 4 bytes, and no valid one
    // begins another.
    size_t length = 1;
    while (length <= 4 && at + length <= text.size() && !base::IsUtf8(text.substr(at, length)))
      ++length;
    if (length > 4 || at + length > text.size()) {
      out += "\xef\xbf\xbd";
      ++at;
    } else {
      out += text.substr(at, length);
      at += length;
    }
  }
  return out;
}

}  // namespace sless::plugin
