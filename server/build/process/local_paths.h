#pragma once

// Whether a manifest may install files of the source. A dependency layer is shared by all functions
// that ask for the same, whoever wrote them, so what is not plainly a package of a registry or a
// remote URL counts as local. Free functions.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace sless::build {

/// Each line of a requirements.txt is a name with extras, versions, marker and hashes, or an
/// http(s) URL; none is an option.
bool OnlyRemoteRequirements(std::string_view text);

/// npm takes `spec`, the value of a dependency, for a path on the machine. `code_dir` is the
/// source.
bool IsLocalSpec(std::string_view spec, const std::string& code_dir);
/// All specs in `value`, a string or an object of objects and strings ("dependencies",
/// "overrides"), are versions, tags, or URLs of another machine.
bool OnlyRemoteSpecs(const nlohmann::json& value, const std::string& code_dir);
/// All that a package-lock.json has resolved lies on other machines.
bool OnlyRemoteLock(std::string_view text, const std::string& code_dir);
/// An .npmrc has nothing but registries, credentials, switches and numbers.
bool OnlyRemoteNpmrc(std::string_view text);

}  // namespace sless::build
