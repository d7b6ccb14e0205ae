#include "provider/framework/engine/catalog.h"

#include <fmt/format.h>

namespace sless::framework::engine {
namespace {

const std::string& KeyOf(const FunctionEntry& entry) { return entry.name; }
template <class T>
const std::string& KeyOf(const Entry<T>& entry) {
  return entry.type_name;
}

void Fill(Entry<Resource>& base) {
  auto& entry = static_cast<ResourceEntry&>(base);
  entry.schema = entry.object->Schema();
  entry.type = ImpliedType(entry.schema);
  entry.identity = entry.object->Identity();
  if (entry.identity) entry.identity_type = ImpliedType(*entry.identity);
}
template <class T>
void Fill(Entry<T>& entry) {
  entry.schema = entry.object->Schema();
  entry.type = ImpliedType(entry.schema);
}
void Fill(FunctionEntry& entry) { entry.definition = entry.function->Definition(); }

// The objects of one kind: the list is asked for at the first use of the kind, each schema at the
// first use of its object.
template <class EntryT>
class Kind {
 public:
  template <class Load>
  const EntryT* Find(std::string_view name, const Load& load) {
    LoadOnce(load);
    const auto it = slots_.find(name);
    if (it == slots_.end()) return nullptr;
    Slot& slot = it->second;
    std::call_once(slot.filled, [&] { Fill(slot.entry); });
    return &slot.entry;
  }
  template <class Load>
  std::vector<std::string> Names(const Load& load) {
    LoadOnce(load);
    std::vector<std::string> names;
    for (const auto& [name, slot] : slots_) names.push_back(name);
    return names;
  }
  const std::vector<std::string>& twice() const { return twice_; }

 private:
  struct Slot {
    EntryT entry;
    std::once_flag filled;
  };
  template <class Load>
  void LoadOnce(const Load& load) {
    std::call_once(loaded_, [&] {
      for (EntryT& entry : load()) {
        const std::string name = KeyOf(entry);
        const auto [it, added] = slots_.try_emplace(name);
        if (added) {
          it->second.entry = std::move(entry);
        } else {
          twice_.push_back(name);
        }
      }
    });
  }

  std::once_flag loaded_;
  std::map<std::string, Slot, std::less<>> slots_;
  std::vector<std::string> twice_;
};

template <class EntryT, class T>
std::vector<EntryT> Entries(std::vector<std::unique_ptr<T>> objects) {
  std::vector<EntryT> entries;
  for (auto& object : objects) {
    EntryT entry;
    entry.type_name = object->TypeName();
    entry.object = std::move(object);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

struct Catalog::Impl {
  const Provider& provider;
  std::once_flag schema_built;
  Schema schema;
  cty::Type type;
  Kind<ResourceEntry> resources;
  Kind<Entry<DataSource>> data_sources;
  Kind<FunctionEntry> functions;
  Kind<Entry<EphemeralResource>> ephemerals;
  Kind<Entry<Action>> actions;
  Kind<Entry<ListResource>> lists;

  void BuildSchema() {
    std::call_once(schema_built, [this] {
      schema = provider.Schema();
      type = ImpliedType(schema);
    });
  }
  auto LoadResources() {
    return [this] { return Entries<ResourceEntry>(provider.Resources()); };
  }
  auto LoadDataSources() {
    return [this] { return Entries<Entry<DataSource>>(provider.DataSources()); };
  }
  auto LoadEphemerals() {
    return [this] { return Entries<Entry<EphemeralResource>>(provider.EphemeralResources()); };
  }
  auto LoadActions() {
    return [this] { return Entries<Entry<Action>>(provider.Actions()); };
  }
  auto LoadLists() {
    return [this] { return Entries<Entry<ListResource>>(provider.ListResources()); };
  }
  auto LoadFunctions() {
    return [this] {
      std::vector<FunctionEntry> entries;
      for (auto& function : provider.Functions()) {
        std::string name = function->Name();
        entries.push_back({std::move(name), std::move(function), {}});
      }
      return entries;
    };
  }
};

Catalog::Catalog(const Provider& provider) : impl_(new Impl{.provider = provider}) {}
Catalog::~Catalog() = default;

const Schema& Catalog::provider_schema() const {
  impl_->BuildSchema();
  return impl_->schema;
}
const cty::Type& Catalog::provider_type() const {
  impl_->BuildSchema();
  return impl_->type;
}

const ResourceEntry* Catalog::FindResource(std::string_view name) const {
  return impl_->resources.Find(name, impl_->LoadResources());
}
const Entry<DataSource>* Catalog::FindDataSource(std::string_view name) const {
  return impl_->data_sources.Find(name, impl_->LoadDataSources());
}
const FunctionEntry* Catalog::FindFunction(std::string_view name) const {
  return impl_->functions.Find(name, impl_->LoadFunctions());
}
const Entry<EphemeralResource>* Catalog::FindEphemeral(std::string_view name) const {
  return impl_->ephemerals.Find(name, impl_->LoadEphemerals());
}
const Entry<Action>* Catalog::FindAction(std::string_view name) const {
  return impl_->actions.Find(name, impl_->LoadActions());
}
const Entry<ListResource>* Catalog::FindList(std::string_view name) const {
  return impl_->lists.Find(name, impl_->LoadLists());
}

std::vector<std::string> Catalog::ResourceNames() const {
  return impl_->resources.Names(impl_->LoadResources());
}
std::vector<std::string> Catalog::DataSourceNames() const {
  return impl_->data_sources.Names(impl_->LoadDataSources());
}
std::vector<std::string> Catalog::FunctionNames() const {
  return impl_->functions.Names(impl_->LoadFunctions());
}
std::vector<std::string> Catalog::EphemeralNames() const {
  return impl_->ephemerals.Names(impl_->LoadEphemerals());
}
std::vector<std::string> Catalog::ActionNames() const {
  return impl_->actions.Names(impl_->LoadActions());
}
std::vector<std::string> Catalog::ListNames() const {
  return impl_->lists.Names(impl_->LoadLists());
}

namespace {

void CheckSchema(const std::string& name, const Schema& schema, SchemaUse use,
                 std::vector<std::string>& out) {
  for (const auto& problem : ValidateSchema(schema, use)) out.push_back(name + ": " + problem);
}

bool ValidIdentity(const IdentityAttribute& attribute) {
  const cty::Type& type = attribute.type;
  return type.IsPrimitive() ||
         (type.kind() == cty::Type::Kind::kList && type.element().IsPrimitive());
}

}  // namespace

std::vector<std::string> Catalog::Check() const {
  std::vector<std::string> out;
  CheckSchema("provider", provider_schema(), SchemaUse::kProvider, out);
  for (const auto& name : ResourceNames()) {
    const auto* entry = FindResource(name);
    CheckSchema(name, entry->schema, SchemaUse::kResource, out);
    if (!entry->identity) continue;
    for (const auto& attribute : entry->identity->attributes) {
      if (!ValidIdentity(attribute)) {
        out.push_back(fmt::format("{}: identity {}: must be a primitive or a list of primitives",
                                  name, attribute.name));
      }
    }
  }
  for (const auto& name : DataSourceNames())
    CheckSchema(name, FindDataSource(name)->schema, SchemaUse::kDataSource, out);
  for (const auto& name : EphemeralNames())
    CheckSchema(name, FindEphemeral(name)->schema, SchemaUse::kEphemeral, out);
  for (const auto& name : ActionNames())
    CheckSchema(name, FindAction(name)->schema, SchemaUse::kAction, out);
  for (const auto& name : ListNames()) {
    CheckSchema(name, FindList(name)->schema, SchemaUse::kList, out);
    const auto* resource = FindResource(name);
    if (resource == nullptr || !resource->identity) {
      out.push_back(
          fmt::format("{}: a list resource needs the managed resource with an identity", name));
    }
  }
  FunctionNames();
  for (const auto* twice :
       {&impl_->resources.twice(), &impl_->data_sources.twice(), &impl_->functions.twice(),
        &impl_->ephemerals.twice(), &impl_->actions.twice(), &impl_->lists.twice()}) {
    for (const auto& name : *twice) out.push_back(name + ": declared twice");
  }
  return out;
}

}  // namespace sless::framework::engine
