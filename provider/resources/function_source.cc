#include "provider/resources/function_source.h"

#include <fmt/format.h>

#include <filesystem>

#include "client/source/entrypoint.h"
#include "provider/resources/values.h"

namespace sless::resources {
namespace {

// Terraform runs a provider in its own working directory, so a relative path is relative to where
// terraform was started.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

base::Result<source::Tree> ReadTree(const api::Source& source, const std::string& runtime,
                                    const std::string& entrypoint) {
  if (source.type == "dir") return source::ReadDirectory(source.path);
  if (source.type == "zip") return source::ReadZip(source.path);
  return source::InlineTree(runtime, entrypoint, source.code);
}

void AddSourceError(const base::Error& error, const api::Source& source,
                    framework::Diagnostics& diagnostics) {
  std::string attribute = SourceAttribute(source);
  std::string summary = "Invalid source";
  if (error.field == "/spec/entrypoint") {
    attribute = "entrypoint";
    summary = "Handler not found";
  } else if (error.field == "/spec/runtime") {
    attribute = "runtime";
    summary = "Unknown runtime";
  } else if (error.code == base::Code::kNotFound) {
    summary = "Source not found";
  }
  std::string detail = source.type == "code" ? error.message
                                             : fmt::format("{} \"{}\": {}", SourceAttribute(source),
                                                           source.path, error.message);
  if (!detail.ends_with('?')) detail += '.';
  if (error.code == base::Code::kNotFound && !source.path.empty() && source.path[0] != '/') {
    detail += fmt::format(
        "\n\nA relative path starts where terraform runs: {}. ${{path.module}}/… starts at the "
        "module instead.",
        Absolute(source.path));
  }
  if (error.code == base::Code::kNotFound && !source.path.empty()) {
    detail +=
        "\n\nA destroy needs no source, but the host plans as if to apply first: `terraform "
        "destroy "
        "-refresh=false` goes without.";
  }
  diagnostics.AddError(cty::Path(attribute), summary, detail);
}

}  // namespace

api::Source SourceOf(const cty::Value& object) {
  api::Source out;
  out.type = "";
  const auto known = [&](std::string_view name) { return object.Get(name).IsKnown(); };
  if (known("source_dir")) {
    out.type = "dir";
    out.path = TextAt(object, "source_dir");
  } else if (known("source_zip")) {
    out.type = "zip";
    out.path = TextAt(object, "source_zip");
  } else if (known("source_code")) {
    out.type = "code";
    out.code = TextAt(object, "source_code");
  }
  return out;
}

std::string SourceAttribute(const api::Source& source) {
  if (source.type == "zip") return "source_zip";
  if (source.type == "code") return "source_code";
  return "source_dir";
}

std::optional<LoadedSource> LoadSource(const api::Source& source, const std::string& runtime,
                                       const std::string& entrypoint,
                                       framework::Diagnostics& diagnostics) {
  auto tree = ReadTree(source, runtime, entrypoint);
  if (!tree) {
    AddSourceError(tree.error(), source, diagnostics);
    return std::nullopt;
  }
  const auto status = source::CheckEntrypoint(*tree, runtime, entrypoint);
  if (!status) {
    AddSourceError(status.error(), source, diagnostics);
    return std::nullopt;
  }
  auto hash = source::TreeHash(*tree);
  return LoadedSource{std::move(*tree), std::move(hash)};
}

}  // namespace sless::resources
