#pragma once

// Calls into a provider's own code.

#include <fmt/core.h>

#include <exception>
#include <string_view>

#include "provider/framework/diagnostics.h"

namespace sless::framework::engine {

/// Calls f(); whatever it throws becomes an error: a crash would lose the object that it was about
/// to return.
template <class F>
void Guard(std::string_view what, Diagnostics& diagnostics, F&& f) {
  const auto report = [&](std::string_view text) {
    diagnostics.AddError(
        "Provider Bug",
        fmt::format("{} ended with an exception: {}. This is a bug of the provider: please "
                    "report it.",
                    what, text));
  };
  try {
    f();
  } catch (const std::exception& e) {
    report(e.what());
  } catch (...) {
    report("of unknown type");
  }
}

}  // namespace sless::framework::engine
