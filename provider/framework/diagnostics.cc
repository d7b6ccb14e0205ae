#include "provider/framework/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/base/strings.h"

namespace sless::framework {

using base::Code;

void Diagnostics::Add(Diagnostic diagnostic) {
  if (std::find(items_.begin(), items_.end(), diagnostic) == items_.end())
    items_.push_back(std::move(diagnostic));
}
void Diagnostics::AddError(std::string summary, std::string detail) {
  Add({Severity::kError, std::move(summary), std::move(detail), std::nullopt});
}
void Diagnostics::AddError(cty::Path path, std::string summary, std::string detail) {
  Add({Severity::kError, std::move(summary), std::move(detail), std::move(path)});
}
void Diagnostics::AddWarning(std::string summary, std::string detail) {
  Add({Severity::kWarning, std::move(summary), std::move(detail), std::nullopt});
}
void Diagnostics::AddWarning(cty::Path path, std::string summary, std::string detail) {
  Add({Severity::kWarning, std::move(summary), std::move(detail), std::move(path)});
}
void Diagnostics::Append(const Diagnostics& other) {
  for (const auto& item : other.items_) Add(item);
}
void Diagnostics::Add(const base::Error& error, std::string_view action, const FieldMap& fields) {
  Add(FromError(error, action, fields));
}

bool Diagnostics::HasError() const {
  return std::any_of(items_.begin(), items_.end(),
                     [](const auto& d) { return d.severity == Severity::kError; });
}

std::string Diagnostics::ToString() const {
  std::string out;
  for (const auto& item : items_) {
    if (!out.empty()) out += '\n';
    out += item.severity == Severity::kError ? "error: " : "warning: ";
    if (item.path && !item.path->empty()) out += item.path->ToString() + ": ";
    out += item.summary + ": " + item.detail;
  }
  return out;
}

namespace {

// What the code means for somebody who runs terraform; "" where the message says it all.
std::string_view Advice(Code code) {
  switch (code) {
    case Code::kAborted:
      return "Somebody else changed it at the same time: plan again to see what differs, then "
             "apply.";
    case Code::kUnauthenticated:
      return "The server does not accept the provider's credentials: check them.";
    case Code::kPermissionDenied:
      return "These credentials may not do this.";
    case Code::kResourceExhausted:
      return "The server has no room for this now.";
    case Code::kCancelled:
      return "The operation was cancelled before its end.";
    case Code::kUnavailable:
      return "The server cannot be reached now: check that it runs, then try again.";
    case Code::kUnimplemented:
      return "The server does not support this: it may be older than the provider.";
    case Code::kInternal:
      return "This is a bug of the provider or the server: please report it.";
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kFailedPrecondition:
    case Code::kTooLarge:
    case Code::kDeadlineExceeded:  // which timeout there is to raise, if any, the message knows
      return "";
  }
  return "";
}

std::string Unescape(std::string_view segment) {
  std::string out;
  for (size_t i = 0; i < segment.size(); ++i) {
    if (segment[i] == '~' && i + 1 < segment.size() &&
        (segment[i + 1] == '0' || segment[i + 1] == '1')) {
      out += segment[++i] == '0' ? '~' : '/';
    } else {
      out += segment[i];
    }
  }
  return out;
}

// True if `pointer` is `field` or a parent of it.
bool Leads(std::string_view pointer, std::string_view field) {
  return field.substr(0, pointer.size()) == pointer &&
         (field.size() == pointer.size() || field[pointer.size()] == '/');
}

std::optional<cty::Path> MapField(std::string_view field, const FieldMap& fields) {
  const FieldMapping* best = nullptr;
  for (const auto& mapping : fields) {
    if (!Leads(mapping.pointer, field)) continue;
    if (best == nullptr || mapping.pointer.size() > best->pointer.size()) best = &mapping;
  }
  if (best == nullptr) return std::nullopt;
  if (!best->is_map || field.size() == best->pointer.size()) return best->path;
  std::string_view rest = field.substr(best->pointer.size() + 1);
  return best->path.Key(Unescape(rest.substr(0, rest.find('/'))));
}

void AddParagraph(std::string& detail, std::string_view text) {
  if (text.empty()) return;
  if (!detail.empty()) detail += "\n\n";
  detail += text;
}

bool EndsSentence(const std::string& text) {
  return !text.empty() &&
         (text.back() == '.' || text.back() == '!' || text.back() == '?' || text.back() == '\n');
}

}  // namespace

Diagnostic FromError(const base::Error& error, std::string_view action, const FieldMap& fields) {
  Diagnostic diagnostic;
  diagnostic.summary = fmt::format("Cannot {}", action);
  diagnostic.detail =
      error.message.empty() ? std::string(base::CodeName(error.code)) : error.message;
  if (!EndsSentence(diagnostic.detail)) diagnostic.detail += '.';
  if (!error.field.empty()) {
    diagnostic.path = MapField(error.field, fields);
    if (!diagnostic.path) AddParagraph(diagnostic.detail, fmt::format("Field: {}", error.field));
  }
  if (!error.source.file.empty()) {
    AddParagraph(diagnostic.detail,
                 error.source.line > 0
                     ? fmt::format("At {}:{}", error.source.file, error.source.line)
                     : fmt::format("In {}", error.source.file));
  }
  if (!error.source.log_tail.empty()) {
    AddParagraph(diagnostic.detail,
                 "Last log lines:\n  " + base::Join(error.source.log_tail, "\n  "));
  }
  AddParagraph(diagnostic.detail, Advice(error.code));
  return diagnostic;
}

}  // namespace sless::framework
