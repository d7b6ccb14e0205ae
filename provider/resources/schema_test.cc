#include <gtest/gtest.h>

#include "provider/resources/testing/world.h"

namespace sless::resources {
namespace {

void ExpectDescribed(const std::string& where,
                     const std::vector<framework::Attribute>& attributes) {
  for (const auto& attribute : attributes) {
    EXPECT_FALSE(attribute.options.description.empty()) << where << attribute.name;
    if (!attribute.options.description.empty()) {
      EXPECT_EQ(attribute.options.description.back(), '.') << where << attribute.name;
    }
    ExpectDescribed(where + attribute.name + ".", attribute.type.attributes);
  }
}

TEST(Schema, KeepsTheHostsRulesAndDescribesEverything) {
  World world;
  const auto& catalog = world.engine.catalog();
  for (const auto& name : catalog.ResourceNames()) {
    const auto* entry = catalog.FindResource(name);
    for (const auto& breach :
         framework::ValidateSchema(entry->schema, framework::SchemaUse::kResource))
      ADD_FAILURE() << name << ": " << breach;
    EXPECT_FALSE(entry->schema.description.empty());
    ExpectDescribed(name + ".", entry->schema.attributes);
  }
  EXPECT_EQ(catalog.ResourceNames(),
            (std::vector<std::string>{"sless_function", "sless_job", "sless_trigger"}));
  EXPECT_TRUE(catalog.Check().empty());
}

}  // namespace
}  // namespace sless::resources
