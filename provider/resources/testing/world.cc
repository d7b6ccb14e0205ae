#include "provider/resources/testing/world.h"

#include <fstream>

#include "client/base/strings.h"
#include "provider/cty/wire_json.h"
#include "provider/framework/engine/shape.h"

namespace sless::resources {
namespace {

std::filesystem::path MakeFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "sless-world-XXXXXX").string();
  return mkdtemp(pattern.data());
}

}  // namespace

World::World(bool connected, std::optional<std::string> default_namespace)
    : dir(MakeFolder()),
      engine(MakeTestProvider(connected ? &backend : nullptr, std::move(default_namespace)),
             clock) {
  engine.Configure({{}, log}, "1.11.4", cty::Value::Object({}), {});
}

World::~World() {
  std::error_code ignored;
  std::filesystem::remove_all(dir, ignored);
}

cty::Value World::Config(const std::string& type, const std::string& json) const {
  const auto* entry = engine.catalog().FindResource(type);
  const auto value = cty::DecodeJson(json, entry->type);
  if (!value) throw std::runtime_error(json + ": " + value.error().message);
  return cty::Transform(framework::engine::Shape(entry->schema, *value),
                        [](const cty::Path&, const cty::Value& part) {
                          return part.kind() == cty::Value::Kind::kString &&
                                         part.AsString() == "<unknown>"
                                     ? cty::Value::Unknown()
                                     : part;
                        });
}

void World::Write(const std::string& name, const std::string& text) const {
  std::filesystem::create_directories((dir / name).parent_path());
  std::ofstream(dir / name, std::ios::binary) << text;
}

std::set<std::string> Changed(const cty::Value& prior, const cty::Value& planned) {
  std::set<std::string> names;
  for (const auto& [name, value] : planned.AsMap()) {
    if (!value.IsWhollyKnown() || value != prior.Get(name)) names.insert(name);
  }
  return names;
}

bool HasError(const framework::Diagnostics& diagnostics, const std::string& path,
              const std::string& text) {
  for (const auto& item : diagnostics) {
    const bool there = item.path && item.path->ToString() == path;
    if (there && item.severity == framework::Severity::kError &&
        base::Contains(item.summary + "\n" + item.detail, text))
      return true;
  }
  return false;
}

}  // namespace sless::resources
