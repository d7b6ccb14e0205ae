#pragma once

// Everything that a test of a resource needs: a fake control plane, the engine over it, Terraform's
// side, a folder with sources.

#include <atomic>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "client/base/clock.h"
#include "client/base/log.h"
#include "provider/framework/testing/core_driver.h"
#include "provider/resources/testing/fake_backend.h"
#include "provider/resources/testing/test_provider.h"

namespace sless::resources {

/// A second passes whenever somebody looks at it, so that waits end soon.
class HastyClock final : public base::Clock {
 public:
  base::TimePoint Now() const override { return base::TimePoint(std::chrono::seconds(1767225600)); }
  base::SteadyPoint Steady() const override {
    return base::SteadyPoint(std::chrono::seconds(++seconds_));
  }

 private:
  mutable std::atomic<int64_t> seconds_{1};
};

class World {
 public:
  explicit World(bool connected = true, std::optional<std::string> default_namespace = "default");
  ~World();

  framework::testing::CoreDriver Driver(const std::string& type) { return {engine, type, log}; }
  /// A configuration from JSON; attributes that are missing are null, the text "<unknown>" is
  /// unknown.
  cty::Value Config(const std::string& type, const std::string& json) const;
  /// Writes a file below dir.
  void Write(const std::string& name, const std::string& text) const;

  FakeBackend backend;
  HastyClock clock;
  base::NullLogger log;
  std::filesystem::path dir;
  framework::engine::Engine engine;
};

/// Names of the attributes that a plan changes or makes unknown.
std::set<std::string> Changed(const cty::Value& prior, const cty::Value& planned);
/// True if one error has this path and this text.
bool HasError(const framework::Diagnostics& diagnostics, const std::string& path,
              const std::string& text);

}  // namespace sless::resources
