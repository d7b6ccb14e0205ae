#include "provider/framework/engine/consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sless::framework::engine {
namespace {

using Attributes = std::vector<Attribute>;
using Blocks = std::vector<Block>;

class Report {
 public:
  void Add(const cty::Path& path, std::string reason) {
    problems_.push_back(path.empty() ? std::move(reason) : path.ToString() + ": " + reason);
  }
  std::vector<std::string> Take() { return std::move(problems_); }

 private:
  std::vector<std::string> problems_;
};

bool HasSecret(const Attribute& attribute) {
  const auto& parts = attribute.type.attributes;
  return attribute.options.sensitive || std::any_of(parts.begin(), parts.end(), HasSecret);
}

class PlannedCheck {
 public:
  void Level(const Attributes& attributes, const Blocks& blocks, const cty::Value& config,
             const cty::Value& prior, const cty::Value& planned, const cty::Path& path) {
    for (const auto& a : attributes) {
      One(a, config.Get(a.name), prior.Get(a.name), planned.Get(a.name), path.Attribute(a.name));
    }
    for (const auto& b : blocks) {
      One(b, config.Get(b.name), prior.Get(b.name), planned.Get(b.name), path.Attribute(b.name));
    }
  }
  Report report;

 private:
  // The order of these rules is that of the host.
  void One(const Attribute& attribute, const cty::Value& config, const cty::Value& prior,
           const cty::Value& planned, const cty::Path& path) {
    const auto& o = attribute.options;
    if (o.write_only) {
      if (!planned.IsNull()) report.Add(path, "planned value for write-only attribute is not null");
      return;
    }
    if (planned == config) return;
    if (planned == prior && !prior.IsNull() && !config.IsNull()) return;
    if (o.computed && (!o.optional || config.IsNull())) return;
    const auto show = [&](const cty::Value& value) {
      return hidden_ || HasSecret(attribute) ? "(sensitive)" : value.ToString().substr(0, 200);
    };
    if (config.IsNull())
      return report.Add(
          path, fmt::format("planned value {} for a non-computed attribute", show(planned)));
    if (attribute.type.nesting) return NestedValue(attribute, config, prior, planned, path);
    if (prior.IsNull()) {
      return report.Add(path, fmt::format("planned value {} does not match config value {}",
                                          show(planned), show(config)));
    }
    report.Add(path,
               fmt::format("planned value {} does not match config value {} nor prior value {}",
                           show(planned), show(config), show(prior)));
  }

  void NestedValue(const Attribute& attribute, const cty::Value& config, const cty::Value& prior,
                   const cty::Value& planned, const cty::Path& path) {
    if (planned.IsNull()) return report.Add(path, "planned for absence but config wants existence");
    if (config.IsUnknown()) return report.Add(path, "planned a value for an unknown configuration");
    if (planned.IsUnknown()) return report.Add(path, "planned unknown for configured value");
    const bool outer = std::exchange(hidden_, hidden_ || attribute.options.sensitive);
    Elements(*attribute.type.nesting, attribute.type.attributes, {}, config, prior, planned, path,
             "count");
    hidden_ = outer;
  }

  void One(const Block& block, const cty::Value& config, const cty::Value& prior,
           const cty::Value& planned, const cty::Path& path) {
    if (planned == config) return;
    if (config.IsUnknown()) return report.Add(path, "planned value for unknown dynamic block");
    if (planned.IsUnknown())
      return report.Add(path, "attribute representing nested block must not be unknown itself");
    if (planned.IsNull()) {
      return report.Add(path, block.nesting == Nesting::kSingle
                                  ? "planned for absence but config wants existence"
                                  : "attribute representing nested blocks must be empty to "
                                    "indicate no blocks, not null");
    }
    if (config.IsNull()) return report.Add(path, "planned for existence but config wants absence");
    Elements(block.nesting, block.attributes, block.blocks, config, prior, planned, path,
             "block count");
  }

  void Elements(Nesting nesting, const Attributes& attributes, const Blocks& blocks,
                const cty::Value& config, const cty::Value& prior, const cty::Value& planned,
                const cty::Path& path, std::string_view count) {
    if (nesting == Nesting::kSingle) return Level(attributes, blocks, config, prior, planned, path);
    if (planned.size() != config.size()) {
      return report.Add(path, fmt::format("{} in plan ({}) disagrees with count in config ({})",
                                          count, planned.size(), config.size()));
    }
    if (nesting == Nesting::kSet) return;
    if (nesting == Nesting::kMap) {
      for (const auto& [key, item] : planned.AsMap()) {
        if (!config.AsMap().contains(key)) {
          report.Add(path, fmt::format("map key \"{}\" from plan is not present in config", key));
        } else {
          Element(attributes, blocks, config.Get(key), prior.Get(key), item, path.Key(key));
        }
      }
      return;
    }
    for (size_t i = 0; i < planned.AsList().size(); ++i) {
      const cty::Value old = i < prior.AsList().size() ? prior.AsList()[i] : cty::Value::Null();
      Element(attributes, blocks, config.AsList()[i], old, planned.AsList()[i],
              path.Index(static_cast<int64_t>(i)));
    }
  }

  void Element(const Attributes& attributes, const Blocks& blocks, const cty::Value& config,
               const cty::Value& prior, const cty::Value& planned, const cty::Path& path) {
    if (planned == config) return;
    if (planned.IsUnknown()) return report.Add(path, "planned unknown for configured value");
    if (planned.IsNull() != config.IsNull())
      return report.Add(path, "planned for absence or existence against config");
    Level(attributes, blocks, config, prior, planned, path);
  }

  bool hidden_ = false;  // within an attribute that is sensitive as a whole
};

// How a value is declared: what must not be shown of it, and the parts of its objects.
struct Declared {
  bool sensitive = false;
  const Attributes* attributes = nullptr;  // null: its parts have no flags of their own
  const Blocks* blocks = nullptr;

  Declared Of(const Attribute& part) const {
    return {sensitive || part.options.sensitive,
            part.type.nesting ? &part.type.attributes : nullptr, nullptr};
  }
  Declared Of(const Block& part) const { return {sensitive, &part.attributes, &part.blocks}; }
  Declared Part(const std::string& name) const {
    const auto named = [&](const auto& part) { return part.name == name; };
    if (attributes != nullptr) {
      const auto it = std::find_if(attributes->begin(), attributes->end(), named);
      if (it != attributes->end()) return Of(*it);
    }
    if (blocks != nullptr) {
      const auto it = std::find_if(blocks->begin(), blocks->end(), named);
      if (it != blocks->end()) return Of(*it);
    }
    return {.sensitive = sensitive};
  }
};

// Everything that is known in the plan must be in the result.
class AppliedCheck {
 public:
  void Compare(const cty::Value& planned, const cty::Value& actual, const cty::Path& path,
               const Declared& as) {
    if (planned.IsUnknown()) return;
    if (planned == actual) return;
    if (actual.IsUnknown()) return Differ(path, "was known, but now unknown", as);
    if (actual.IsNull()) return Differ(path, "was present, but now null", as);
    if (planned.IsNull()) return Differ(path, "was null, but now present", as);
    if (planned.kind() != actual.kind()) return Differ(path, "wrong final value type", as);
    using Kind = cty::Value::Kind;
    switch (planned.kind()) {
      case Kind::kList:
      case Kind::kTuple:
        return CompareList(planned, actual, path, as);
      case Kind::kSet:
        return CompareSet(planned, actual, path, as);
      case Kind::kMap:
      case Kind::kObject:
        return CompareMembers(planned, actual, path, as);
      default:
        break;
    }
    Differ(path,
           as.sensitive ? ""
                        : fmt::format("was {}, but now {}", planned.ToString(), actual.ToString()),
           as);
  }

  void Level(const Attributes& attributes, const Blocks& blocks, const cty::Value& planned,
             const cty::Value& actual) {
    const auto part = [&](const auto& p) {
      Compare(planned.Get(p.name), actual.Get(p.name), cty::Path(p.name), Declared{}.Of(p));
    };
    for (const auto& a : attributes) part(a);
    for (const auto& b : blocks) part(b);
  }
  Report report;

 private:
  void Differ(const cty::Path& path, std::string reason, const Declared& as) {
    report.Add(path,
               as.sensitive ? "inconsistent values for sensitive attribute" : std::move(reason));
  }
  void CompareList(const cty::Value& planned, const cty::Value& actual, const cty::Path& path,
                   const Declared& as) {
    if (planned.size() != actual.size()) {
      return Differ(path,
                    fmt::format("length changed from {} to {}", planned.size(), actual.size()), as);
    }
    for (size_t i = 0; i < planned.size(); ++i) {
      Compare(planned.AsList()[i], actual.AsList()[i], path.Index(static_cast<int64_t>(i)), as);
    }
  }
  void CompareMembers(const cty::Value& planned, const cty::Value& actual, const cty::Path& path,
                      const Declared& as) {
    const bool map = planned.kind() == cty::Value::Kind::kMap;
    for (const auto& [key, item] : planned.AsMap()) {
      if (!actual.AsMap().contains(key)) {
        Differ(path, fmt::format("element \"{}\" has vanished", key), as);
      } else {
        Compare(item, actual.Get(key), map ? path.Key(key) : path.Attribute(key),
                map ? as : as.Part(key));
      }
    }
    for (const auto& [key, item] : actual.AsMap()) {
      if (!planned.AsMap().contains(key))
        Differ(path, fmt::format("new element \"{}\" has appeared", key), as);
    }
  }
  static bool Fits(const cty::Value& planned, const cty::Value& actual) {
    AppliedCheck check;
    check.Compare(planned, actual, cty::Path(), {});
    return check.report.Take().empty();
  }
  void CompareSet(const cty::Value& planned, const cty::Value& actual, const cty::Path& path,
                  const Declared& as) {
    if (actual.size() > planned.size()) {
      return Differ(path,
                    fmt::format("length changed from {} to {}", planned.size(), actual.size()), as);
    }
    const auto some = [](const cty::Value::Elements& items, const auto& fits) {
      for (const auto& item : items) {
        if (fits(item)) return true;
      }
      return false;
    };
    for (const auto& p : planned.AsList()) {
      if (!some(actual.AsList(), [&](const cty::Value& a) { return Fits(p, a); }))
        Differ(path, "planned set element does not correlate with any element in actual", as);
    }
    for (const auto& a : actual.AsList()) {
      if (!some(planned.AsList(), [&](const cty::Value& p) { return Fits(p, a); }))
        Differ(path, "actual set element does not correlate with any element in plan", as);
    }
  }
};

void CheckShape(const Schema& schema, const cty::Value& value, Report& report) {
  if (const auto fits = cty::Conforms(value, ImpliedType(schema)); !fits)
    report.Add(cty::Path(), fits.error().message);
}

}  // namespace

std::vector<std::string> CheckPlanned(const Schema& schema, const cty::Value& config,
                                      const cty::Value& prior, const cty::Value& planned) {
  PlannedCheck check;
  CheckShape(schema, planned, check.report);
  if (config.IsNull()) {
    if (!planned.IsNull()) check.report.Add(cty::Path(), "planned a non-null destroy value");
  } else if (planned.IsNull()) {
    check.report.Add(cty::Path(), "planned for absence but config wants existence");
  } else if (planned.IsUnknown()) {
    check.report.Add(cty::Path(), "planned an unknown object");
  } else {
    check.Level(schema.attributes, schema.blocks, config, prior, planned, cty::Path());
  }
  return check.report.Take();
}

std::vector<std::string> CheckApplied(const Schema& schema, const cty::Value& planned,
                                      const cty::Value& actual, bool allow_unknown) {
  AppliedCheck check;
  CheckShape(schema, actual, check.report);
  if (!allow_unknown) {
    for (const auto& path : cty::UnknownPaths(actual))
      check.report.Add(path, "still unknown after apply");
  }
  if (planned.IsNull() != actual.IsNull()) {
    check.report.Add(cty::Path(), planned.IsNull() ? "root object was absent, but now present"
                                                   : "root object was present, but now absent");
  } else if (planned.IsKnown()) {
    check.Level(schema.attributes, schema.blocks, planned, actual);
  }
  return check.report.Take();
}

}  // namespace sless::framework::engine
