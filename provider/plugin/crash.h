#pragma once

// Crash text in the form that a plugin host shows to its user.

#include <string>

namespace sless::plugin {

/// From now on a fatal signal or an exception that nobody caught writes "panic: <program>: <why>"
/// and the addresses of the stack to stderr, then the process ends as it would have. `program` is a
/// name and version. Call once, at the start.
void InstallCrashText(const std::string& program);

/// A crash also removes this file and then its folder. Call once, before other threads are started.
void RemoveAtCrash(const std::string& file);

}  // namespace sless::plugin
