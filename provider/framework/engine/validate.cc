#include "provider/framework/engine/validate.h"

#include <fmt/format.h>

#include "provider/framework/engine/guard.h"

namespace sless::framework::engine {
namespace {

class Validation {
 public:
  Validation(const cty::Value& root, bool write_only_allowed, Diagnostics& out)
      : root_(root), write_only_allowed_(write_only_allowed), out_(out) {}

  void Level(const std::vector<Attribute>& attributes, const std::vector<Block>& blocks,
             const cty::Value& object, const cty::Path& path) {
    for (const auto& attribute : attributes)
      One(attribute, object.Get(attribute.name), path.Attribute(attribute.name));
    for (const auto& block : blocks) One(block, object.Get(block.name), path.Attribute(block.name));
  }

 private:
  void One(const Attribute& attribute, const cty::Value& value, const cty::Path& path) {
    if (!Allowed(attribute.options, value, path)) return;
    const size_t before = out_.size();
    for (const auto& validator : attribute.options.validators) {
      if (!value.IsKnown() && !validator.sees_null_and_unknown) continue;
      const ValidateContext context{path, value, root_, attribute.options.sensitive};
      Guard("A validator", out_, [&] { validator.check(context, out_); });
    }
    // What is out of range has been said to be so, and between what bounds it may be.
    if (attribute.type.whole_number && out_.size() == before) WholeNumber(attribute, value, path);
    if (attribute.type.nesting)
      Elements(*attribute.type.nesting, attribute.type.attributes, {}, value, path);
  }

  // What the flags of an attribute say about its value; false ends its checks.
  bool Allowed(const AttributeOptions& options, const cty::Value& value, const cty::Path& path) {
    const std::string name = path.ToString();
    if (options.required && value.IsNull()) {
      out_.AddError(path, "Missing Configuration for Required Attribute",
                    fmt::format("Attribute {} must be set to a value that is not null.", name));
      return false;
    }
    if (options.computed && !options.optional && !value.IsNull()) {
      out_.AddError(
          path, "Invalid Configuration for Read-Only Attribute",
          fmt::format("Attribute {} is set by the provider and cannot be configured: remove it.",
                      name));
      return false;
    }
    if (options.write_only && !write_only_allowed_ && !value.IsNull()) {
      out_.AddError(path, "WriteOnly Attribute Not Allowed",
                    fmt::format("Attribute {} is write-only, which this version of Terraform would "
                                "store: it needs 1.11 or later.",
                                name));
      return false;
    }
    if (!options.deprecation.empty() && value.IsKnown()) {
      out_.AddWarning(path, "Attribute Deprecated",
                      fmt::format("Attribute {}: {}", name, options.deprecation));
    }
    return true;
  }

  void WholeNumber(const Attribute& attribute, const cty::Value& value, const cty::Path& path) {
    if (value.kind() != cty::Value::Kind::kNumber || value.AsNumber().AsInt64()) return;
    const std::string got =
        attribute.options.sensitive ? "" : ", got: " + value.AsNumber().ToString().substr(0, 100);
    out_.AddError(path, "Invalid Attribute Value",
                  fmt::format("Attribute {} must be a whole number that fits into 64 bits{}.",
                              path.ToString(), got));
  }

  void One(const Block& block, const cty::Value& value, const cty::Path& path) {
    const bool there = value.IsKnown() && (block.nesting == Nesting::kSingle || value.size() > 0);
    if (there && !block.deprecation.empty()) {
      out_.AddWarning(path, "Block Deprecated",
                      fmt::format("Block {}: {}", path.ToString(), block.deprecation));
    }
    Elements(block.nesting, block.attributes, block.blocks, value, path);
  }

  void Elements(Nesting nesting, const std::vector<Attribute>& attributes,
                const std::vector<Block>& blocks, const cty::Value& value, const cty::Path& path) {
    if (!value.IsKnown()) return;
    if (nesting == Nesting::kSingle) return Level(attributes, blocks, value, path);
    const auto element = [&](const cty::Value& item, const cty::Path& at) {
      if (item.IsNull()) {
        out_.AddError(at, "Invalid Attribute Value",
                      fmt::format("Attribute {} must not be null.", at.ToString()));
      } else if (item.IsKnown()) {
        Level(attributes, blocks, item, at);
      }
    };
    const auto& items = value.AsList();
    for (size_t i = 0; i < items.size(); ++i) {
      element(items[i], nesting == Nesting::kSet ? path : path.Index(static_cast<int64_t>(i)));
    }
    for (const auto& [key, item] : value.AsMap()) element(item, path.Key(key));
  }

  const cty::Value& root_;
  bool write_only_allowed_;
  Diagnostics& out_;
};

template <class Entry>
Diagnostics ValidateEntry(const Entry& entry, const cty::Value& config, bool write_only_allowed) {
  Diagnostics diagnostics;
  ValidateValue(entry.schema, config, write_only_allowed, diagnostics);
  if (!config.IsKnown()) return diagnostics;
  Guard(fmt::format("Validating {}", entry.type_name), diagnostics,
        [&] { entry.object->ValidateConfig(ValidateRequest{config}, diagnostics); });
  return diagnostics;
}

}  // namespace

void ValidateValue(const Schema& schema, const cty::Value& config, bool write_only_allowed,
                   Diagnostics& diagnostics) {
  if (!config.IsKnown()) return;
  Validation(config, write_only_allowed, diagnostics)
      .Level(schema.attributes, schema.blocks, config, cty::Path());
}

Diagnostics ValidateProvider(const Engine& engine, const cty::Value& config) {
  Diagnostics diagnostics;
  ValidateValue(engine.catalog().provider_schema(), config, true, diagnostics);
  if (!config.IsKnown()) return diagnostics;
  Guard("Validating the provider's configuration", diagnostics,
        [&] { engine.provider().ValidateConfig(ValidateRequest{config}, diagnostics); });
  return diagnostics;
}

Diagnostics ValidateResource(const ResourceEntry& entry, const cty::Value& config,
                             ClientCapabilities capabilities) {
  return ValidateEntry(entry, config, capabilities.write_only_attributes_allowed);
}
Diagnostics ValidateDataSource(const Entry<DataSource>& entry, const cty::Value& config) {
  return ValidateEntry(entry, config, true);
}
Diagnostics ValidateEphemeral(const Entry<EphemeralResource>& entry, const cty::Value& config) {
  return ValidateEntry(entry, config, true);
}
Diagnostics ValidateAction(const Entry<Action>& entry, const cty::Value& config) {
  return ValidateEntry(entry, config, true);
}
Diagnostics ValidateList(const Entry<ListResource>& entry, const cty::Value& config) {
  return ValidateEntry(entry, config, true);
}

}  // namespace sless::framework::engine
