#include "provider/docsgen/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "client/base/strings.h"

namespace sless::docsgen {

using framework::Attribute;
using framework::Block;
using framework::Nesting;

namespace {

base::Result<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return base::Err(base::Code::kNotFound,
                     fmt::format("the example {} is missing: write it", path));
  std::stringstream text;
  text << in.rdbuf();
  return std::string(base::Trim(text.str()));
}

// As the registry's own generator writes types: "String", "List of String", "Attributes".
std::string TypeWord(const cty::Type& type) {
  switch (type.kind()) {
    case cty::Type::Kind::kString:
      return "String";
    case cty::Type::Kind::kNumber:
      return "Number";
    case cty::Type::Kind::kBool:
      return "Boolean";
    case cty::Type::Kind::kList:
      return "List of " + TypeWord(type.element());
    case cty::Type::Kind::kSet:
      return "Set of " + TypeWord(type.element());
    case cty::Type::Kind::kMap:
      return "Map of " + TypeWord(type.element());
    case cty::Type::Kind::kObject:
      return "Object";
    case cty::Type::Kind::kTuple:
      return "Tuple";
    case cty::Type::Kind::kDynamic:
      return "Dynamic";
  }
  return "Dynamic";
}

std::string NestingWord(Nesting nesting, std::string_view what) {
  switch (nesting) {
    case Nesting::kSingle:
      return std::string(what);
    case Nesting::kList:
      return fmt::format("{} List", what);
    case Nesting::kSet:
      return fmt::format("{} Set", what);
    case Nesting::kMap:
      return fmt::format("{} Map", what);
  }
  return std::string(what);
}

std::string ValueWord(const cty::Value& value) {
  if (value.kind() == cty::Value::Kind::kString) return '"' + value.AsString() + '"';
  if (value.kind() == cty::Value::Kind::kNumber) return value.AsNumber().ToString();
  if (value.kind() == cty::Value::Kind::kBool) return value.AsBool() ? "true" : "false";
  return value.ToString();
}

std::string Anchor(const std::string& parent, const std::string& name) {
  return parent.empty() ? "nestedatt--" + name : parent + "--" + name;
}

// " Must be between 1 and 10." for the description "value must be between 1 and 10"; nothing for an
// empty one.
std::string Sentence(std::string text) {
  if (text.empty()) return "";
  if (text.starts_with("value ")) text = text.substr(6);
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return " " + text + ".";
}

// One line of a list, and below nested attributes a link to their section.
std::string AttributeLine(const Attribute& attribute, const std::string& parent) {
  const auto& options = attribute.options;
  std::string type = attribute.type.nesting ? NestingWord(*attribute.type.nesting, "Attributes")
                                            : TypeWord(attribute.type.type);
  if (options.sensitive) type += ", Sensitive";
  if (options.write_only) type += ", Write-only";
  if (!options.deprecation.empty()) type += ", Deprecated";
  std::string line = fmt::format("- `{}` ({}) {}", attribute.name, type, options.description);
  if (options.default_value)
    line += fmt::format(" Default: `{}`.", ValueWord(*options.default_value));
  for (const auto& validator : options.validators) line += Sentence(validator.description);
  if (attribute.type.nesting)
    line += fmt::format(" (see [below for nested schema](#{}))", Anchor(parent, attribute.name));
  return line + "\n";
}

enum class Group { kRequired, kOptional, kReadOnly };

Group GroupOf(const Attribute& attribute) {
  if (attribute.options.required) return Group::kRequired;
  return attribute.options.optional ? Group::kOptional : Group::kReadOnly;
}

std::string Lists(std::vector<Attribute> attributes, const std::vector<Block>& blocks,
                  const std::string& parent, std::string_view heading) {
  std::sort(attributes.begin(), attributes.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string out;
  for (const auto& [group, title] : {std::pair{Group::kRequired, "Required"},
                                     {Group::kOptional, "Optional"},
                                     {Group::kReadOnly, "Read-Only"}}) {
    std::string lines;
    for (const auto& attribute : attributes) {
      if (GroupOf(attribute) == group) lines += AttributeLine(attribute, parent);
    }
    if (group == Group::kOptional) {
      for (const auto& block : blocks) {
        lines += fmt::format("- `{}` ({}){} (see [below for nested schema](#nestedblock--{}))\n",
                             block.name, NestingWord(block.nesting, "Block"),
                             block.description.empty() ? "" : " " + block.description, block.name);
      }
    }
    if (!lines.empty())
      out += fmt::format("\n{}{}{}\n\n{}", heading, title, heading.empty() ? ":" : "", lines);
  }
  return out;
}

void AddNested(const std::vector<Attribute>& attributes, const std::string& parent,
               const std::string& path, std::string& out) {
  for (const auto& attribute : attributes) {
    if (!attribute.type.nesting) continue;
    const auto anchor = Anchor(parent, attribute.name);
    const auto full = path.empty() ? attribute.name : path + "." + attribute.name;
    out += fmt::format("\n<a id=\"{}\"></a>\n### Nested Schema for `{}`\n", anchor, full);
    out += Lists(attribute.type.attributes, {}, anchor, "");
    AddNested(attribute.type.attributes, anchor, full, out);
  }
}

std::string SchemaSection(const framework::Schema& schema) {
  std::string out = "## Schema\n";
  out += Lists(schema.attributes, schema.blocks, "", "### ");
  AddNested(schema.attributes, "", "", out);
  for (const auto& block : schema.blocks) {
    out += fmt::format("\n<a id=\"nestedblock--{}\"></a>\n### Nested Schema for `{}`\n", block.name,
                       block.name);
    out += Lists(block.attributes, block.blocks, "nestedblock--" + block.name, "");
  }
  return out;
}

// The description on one line, without marks that would end the YAML text.
std::string FrontMatter(const std::string& title, const std::string& description) {
  const auto first = description.substr(0, description.find("\n\n"));
  return fmt::format("---\npage_title: \"{}\"\ndescription: |-\n  {}\n---\n\n", title, first);
}

base::Result<std::string> IndexPage(const framework::Provider& provider, const std::string& name,
                                    const std::string& root) {
  ASSIGN_OR_RETURN(const auto example, ReadFile(root + "/examples/provider/provider.tf"));
  const auto schema = provider.Schema();
  return FrontMatter(fmt::format("{} Provider", name), schema.description) +
         fmt::format("# {} Provider\n\n{}\n\n## Example Usage\n\n```terraform\n{}\n```\n\n{}", name,
                     schema.description, example, SchemaSection(schema));
}

base::Result<std::string> ResourcePage(const framework::Resource& resource, const std::string& name,
                                       const std::string& root) {
  const auto type = resource.TypeName();
  const auto folder = root + "/examples/resources/" + type;
  ASSIGN_OR_RETURN(const auto example, ReadFile(folder + "/resource.tf"));
  const auto schema = resource.Schema();
  auto page =
      FrontMatter(fmt::format("{} Resource - {}", type, name), schema.description) +
      fmt::format("# {} (Resource)\n\n{}\n\n## Example Usage\n\n```terraform\n{}\n```\n\n{}", type,
                  schema.description, example, SchemaSection(schema));
  if (const auto import = ReadFile(folder + "/import.sh")) {
    page +=
        fmt::format("\n## Import\n\nImport by `namespace/name`:\n\n```shell\n{}\n```\n", *import);
  }
  return page;
}

}  // namespace

base::Result<std::map<std::string, std::string>> MakePages(const framework::Provider& provider,
                                                           const std::string& name,
                                                           const std::string& root) {
  std::map<std::string, std::string> pages;
  ASSIGN_OR_RETURN(pages["index.md"], IndexPage(provider, name, root));
  for (const auto& resource : provider.Resources()) {
    const auto type = resource->TypeName();
    const auto file = "resources/" + type.substr(name.size() + 1) + ".md";
    ASSIGN_OR_RETURN(pages[file], ResourcePage(*resource, name, root));
  }
  return pages;
}

}  // namespace sless::docsgen
