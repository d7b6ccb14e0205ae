#pragma once

// Checks that more than one kind needs. For this room only. All give kInvalidArgument at `path`.

#include <map>
#include <string>
#include <string_view>

#include "client/base/result.h"

namespace sless::domain {

tl::unexpected<base::Error> Invalid(std::string message, std::string path);
/// A DNS label; `what` for the message: "the name of a function".
base::Status CheckLabel(std::string_view what, const std::string& name, const std::string& path);
/// api::TextProblem as a status.
base::Status CheckText(std::string_view what, const std::string& text, size_t max,
                       const std::string& path);
/// JSON of at most api::kMaxEventBytes.
base::Status CheckEvent(const std::string& text, const std::string& path);
/// `path` and the key as a JSON pointer.
std::string MemberPath(const std::string& path, std::string_view key);

}  // namespace sless::domain
