#pragma once

// A provider that does what a test asks for, through the attribute `act` of its one resource
// `trial_thing`:
// "" (make it), "wait" (until told to stop; then an error beside the state), "sleep" (`wait_ms`),
// "throw", "big" (an answer of 6 MB), "crash", "env" (are the host's variables gone?), "hang" (deaf
// to everything, for `wait_ms`). A `name` that begins with "/" is a file that gets a byte when the
// call has begun (see Begun). One function `repeat(text, count)`, one action `trial_steps`, one
// data source.

#include <memory>
#include <string>

#include "provider/framework/provider.h"

namespace sless::plugin::testing {

std::unique_ptr<framework::Provider> MakeTrialProvider();

/// Type of a `trial_thing`: id, name, act, wait_ms, text.
cty::Type ThingType();
/// An object of that type: `id` and `text` as given, the rest from the arguments.
cty::Value Thing(std::string_view name, std::string_view act, int64_t wait_ms, cty::Value computed);

/// A name for a `trial_thing` that tells when calls have begun, also in another process.
class Begun {
 public:
  Begun();
  ~Begun();
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;
  const std::string& name() const { return path_; }
  /// True once so many calls have begun; false if that takes longer than 20 s.
  bool Wait(size_t calls = 1) const;

 private:
  std::string path_;
};

}  // namespace sless::plugin::testing
