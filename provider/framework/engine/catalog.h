#pragma once

// What a provider offers, looked up by name. Schemas are built at the first use of each object.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "provider/framework/provider.h"

namespace sless::framework::engine {

/// One object of the provider with its schema and the type of its values.
template <class T>
struct Entry {
  std::string type_name;
  std::unique_ptr<T> object;
  Schema schema;
  cty::Type type;
};

struct ResourceEntry : Entry<Resource> {
  std::optional<IdentitySchema> identity;
  cty::Type identity_type;  ///< dynamic where there is no identity schema
};

struct FunctionEntry {
  std::string name;
  std::unique_ptr<Function> function;
  FunctionDefinition definition;
};

/// Thread safety: all methods may be called at the same time from any thread.
class Catalog {
 public:
  explicit Catalog(const Provider& provider);
  ~Catalog();

  const Schema& provider_schema() const;
  const cty::Type& provider_type() const;

  /// The object of that name, nullptr if there is none.
  const ResourceEntry* FindResource(std::string_view type_name) const;
  const Entry<DataSource>* FindDataSource(std::string_view type_name) const;
  const FunctionEntry* FindFunction(std::string_view name) const;
  const Entry<EphemeralResource>* FindEphemeral(std::string_view type_name) const;
  const Entry<Action>* FindAction(std::string_view type_name) const;
  const Entry<ListResource>* FindList(std::string_view type_name) const;

  /// Sorted names; no schema is built.
  std::vector<std::string> ResourceNames() const;
  std::vector<std::string> DataSourceNames() const;
  std::vector<std::string> FunctionNames() const;
  std::vector<std::string> EphemeralNames() const;
  std::vector<std::string> ActionNames() const;
  std::vector<std::string> ListNames() const;

  /// Breaches of schema rules of everything in it, and names given twice; for a unit test of each
  /// provider.
  std::vector<std::string> Check() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sless::framework::engine
