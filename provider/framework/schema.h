#pragma once

// What a block may hold: the source of the protocol's schema, of validation and planning, and of
// the docs pages.
//
//   Schema{.description = "Runs a function.",
//          .attributes = {
//              {"name", String(), {.required = true, .description = "…", .plan_modifiers =
//              {RequiresReplace()}}},
//              {"memory_mb", Int64(), {.optional = true, .computed = true, .description = "…",
//                                      .default_value = Int(256), .validators = {Between(32,
//                                      32768)}}},
//              {"http", SingleNested({{"path", String(), {.optional = true}}}), {.optional =
//              true}}},
//          .blocks = {TimeoutsBlock({{"create", "30m"}})}}

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "provider/cty/value.h"
#include "provider/framework/diagnostics.h"

namespace sless::framework {

enum class Nesting : uint8_t { kSingle, kList, kSet, kMap };

struct Attribute;

/// What a validator sees. `value` is known and not null unless the validator asked for all values.
struct ValidateContext {
  const cty::Path& path;
  const cty::Value& value;
  const cty::Value& config;  ///< the whole configuration, for rules across attributes
  bool sensitive = false;    ///< then the value must not be in a message
};

/// A check of one attribute's value at validation. Pure: no I/O. See validators.h for the stock.
struct Validator {
  std::string description;  ///< for the docs page: "value must be between 1 and 10"
  std::function<void(const ValidateContext&, Diagnostics&)> check;
  bool sees_null_and_unknown = false;
};

/// What a plan modifier sees and changes. Values are those of one attribute.
struct ModifyContext {
  const cty::Path& path;
  const cty::Value& config;
  const cty::Value& prior;  ///< null without partner
  bool has_prior;  ///< false on create, and in an element that has no partner in the prior state
  cty::Value& planned;  ///< may be changed
  bool& requires_replace;
  const cty::Value& root_config;
  const cty::Value& root_prior;  ///< null: the resource is being created
  const cty::Value& root_planned;
  Diagnostics& diagnostics;
};

/// A change of one attribute's planned value. Must be deterministic. Runs for updates and creates.
/// See plan_modifiers.h.
struct PlanModifier {
  std::string description;
  std::function<void(ModifyContext&)> modify;
};

/// Type of an attribute: plain, or nested attributes.
struct AttributeType {
  cty::Type type;                     ///< implied type of the nested attributes where there are any
  std::optional<Nesting> nesting;     ///< set: nested attributes
  std::vector<Attribute> attributes;  ///< of the nested object
  bool whole_number = false;          ///< numbers: int64 only
};

/// True if two known values of one attribute mean the same, so that the spelling is kept that is
/// there already.
using SemanticEqual = std::function<bool(const cty::Value&, const cty::Value&)>;

struct AttributeOptions {
  bool required = false;    ///< the user must set it
  bool optional = false;    ///< the user may set it
  bool computed = false;    ///< the provider sets it (where the user did not)
  bool sensitive = false;   ///< hidden in output; kept in state
  bool write_only = false;  ///< never in plan or state; only with required or optional
  std::string description;  ///< Markdown
  std::string deprecation;  ///< not empty: deprecated, and what to use instead
  std::optional<cty::Value>
      default_value;  ///< only with computed; used where the configuration is null
  std::vector<Validator> validators;
  std::vector<PlanModifier> plan_modifiers;
  SemanticEqual semantic_equal;
};

struct Attribute {
  std::string name;
  AttributeType type;
  AttributeOptions options;
};

/// A nested block (`timeouts { … }`). New designs take nested attributes.
struct Block {
  std::string name;
  Nesting nesting = Nesting::kSingle;
  std::vector<Attribute> attributes;
  std::vector<Block> blocks;
  std::string description;
  std::string deprecation;
  int64_t min_items = 0;  ///< kList, kSet: 0 = no limit; kSingle: 0 or 1 (required)
  int64_t max_items = 0;
};

struct Schema {
  int64_t version = 0;  ///< of the stored state; raise it when old states need an upgrader
  std::string description;
  std::string deprecation;
  std::vector<Attribute> attributes;
  std::vector<Block> blocks;
};

// Types of attributes.
AttributeType String();
AttributeType Bool();
AttributeType Number();
/// A number that must be whole and fit into int64; checked at validation.
AttributeType Int64();
AttributeType Dynamic();
AttributeType ListOf(cty::Type element);
AttributeType SetOf(cty::Type element);
AttributeType MapOf(cty::Type element);
/// A plain object: its parts have no flags of their own.
AttributeType ObjectOf(cty::Type::Attributes attributes);
AttributeType SingleNested(std::vector<Attribute> attributes);
AttributeType ListNested(std::vector<Attribute> attributes);
/// Avoid optional and computed parts inside: hosts pair the elements of sets by their configured
/// parts, and two elements that differ only there may be taken for one.
AttributeType SetNested(std::vector<Attribute> attributes);
AttributeType MapNested(std::vector<Attribute> attributes);

/// Type of the values that a block with these parts has.
cty::Type ImpliedType(const std::vector<Attribute>& attributes, const std::vector<Block>& blocks);
cty::Type ImpliedType(const Schema& schema);

/// Attribute `name` of the list, nullptr if there is none.
const Attribute* FindAttribute(const std::vector<Attribute>& attributes, std::string_view name);
/// The attribute that `path` leads to (through nested attributes and blocks), nullptr if none.
const Attribute* FindAttribute(const Schema& schema, const cty::Path& path);

/// Where a schema is used: reserved root names and allowed features differ.
enum class SchemaUse { kProvider, kResource, kDataSource, kEphemeral, kAction, kList };
/// The rules that hosts enforce on schemas, and those that keep plans sound; one text per breach,
/// empty if it is valid. For a unit test of each provider.
std::vector<std::string> ValidateSchema(const Schema& schema, SchemaUse use);

/// The attributes that name one remote object (resource identity). Primitive and list types only.
struct IdentityAttribute {
  std::string name;
  cty::Type type;
  bool required_for_import = false;  ///< else optional for import
  std::string description;
};
struct IdentitySchema {
  int64_t version = 0;
  std::vector<IdentityAttribute> attributes;
};
cty::Type ImpliedType(const IdentitySchema& schema);

}  // namespace sless::framework
