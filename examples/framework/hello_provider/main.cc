// A whole Terraform provider on the framework of this repository: one resource, one function.
//
//   resource "hello_file" "note" {
//     path = "note.txt"
//     text = provider::hello::greet("world")
//   }

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "provider/framework/defaults.h"
#include "provider/framework/model.h"
#include "provider/framework/plan_modifiers.h"
#include "provider/framework/provider.h"
#include "provider/framework/validators.h"
#include "provider/plugin/serve.h"

extern char** environ;

namespace {

using namespace sless::framework;
using sless::cty::Path;
using sless::cty::Type;
using sless::cty::Value;

// ---- The resource: a text file ----

// One field for each attribute of the schema.
struct FileModel {
  Attr<std::string> id;
  Attr<std::string> path;
  Attr<std::string> text;
  Attr<bool> executable;
  Attr<int64_t> bytes;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("id", self.id);
    visit("path", self.path);
    visit("text", self.text);
    visit("executable", self.executable);
    visit("bytes", self.bytes);
  }
};

class FileResource final : public Resource {
 public:
  std::string TypeName() const override { return "hello_file"; }

  sless::framework::Schema Schema() const override {
    return {.description = "A text file on this machine.",
            .attributes = {
                {"id",
                 String(),
                 {.computed = true,
                  .description = "The path.",
                  .plan_modifiers = {UseStateForUnknown()}}},
                {"path",
                 String(),
                 {.required = true,
                  .description = "Where the file is. Another path makes another file.",
                  .validators = {LengthBetween(1, 4096)},
                  .plan_modifiers = {RequiresReplace()}}},
                {"text", String(), {.required = true, .description = "What is in it."}},
                {"executable",
                 Bool(),
                 {.optional = true,
                  .computed = true,
                  .description = "May it be run?",
                  .default_value = False()}},
                {"bytes", Int64(), {.computed = true, .description = "Length of the text."}},
            }};
  }

  void Create(const ChangeRequest& request, StateResponse& response) const override {
    Write(request.plan, response);
  }
  void Update(const ChangeRequest& request, StateResponse& response) const override {
    Write(request.plan, response);
  }

  void Read(const ReadRequest& request, StateResponse& response) const override {
    auto file = Load(request.state, response);
    if (!file) return;
    std::ifstream in(*file->path, std::ios::binary);
    if (!in) {
      response.state = Value::Null();  // gone: the next plan makes it again
      return;
    }
    file->text = std::string(std::istreambuf_iterator<char>(in), {});
    std::error_code ignored;
    const auto mode = std::filesystem::status(*file->path, ignored).permissions();
    file->executable = (mode & std::filesystem::perms::owner_exec) != std::filesystem::perms::none;
    Save(*file, response);
  }

  void Delete(const ChangeRequest& request, StateResponse& response) const override {
    const auto file = Load(request.prior, response);
    if (!file) return;
    if (std::remove(file->path->c_str()) != 0 && errno != ENOENT) {
      response.diagnostics.AddError(Path("path"), "Cannot delete the file",
                                    *file->path + ": " + std::strerror(errno));
    }
  }

  void ImportState(const ImportRequest& request, StateResponse& response) const override {
    response.state = response.state.With("path", Value::String(request.id));
  }

 private:
  static std::optional<FileModel> Load(const Value& value, StateResponse& response) {
    auto file = FromValue<FileModel>(value);
    if (file) return std::move(*file);
    response.diagnostics.Add(file.error(), "read the values");
    return std::nullopt;
  }

  void Save(FileModel& file, StateResponse& response) const {
    file.id = *file.path;
    file.bytes = static_cast<int64_t>(file.text->size());
    auto state = ToValue(file, ImpliedType(Schema()));
    if (state) {
      response.state = *state;
    } else {
      response.diagnostics.Add(state.error(), "write the state");
    }
  }

  void Write(const Value& plan, StateResponse& response) const {
    auto file = Load(plan, response);
    if (!file) return;
    std::ofstream out(*file->path, std::ios::binary | std::ios::trunc);
    out << *file->text;
    out.close();
    if (!out) {
      response.diagnostics.AddError(Path("path"), "Cannot write the file",
                                    *file->path + ": " + std::strerror(errno));
      return;
    }
    std::error_code ignored;
    std::filesystem::permissions(*file->path, std::filesystem::perms::owner_exec,
                                 *file->executable ? std::filesystem::perm_options::add
                                                   : std::filesystem::perm_options::remove,
                                 ignored);
    Save(*file, response);
  }
};

// ---- The function: provider::hello::greet("world") ----

class GreetFunction final : public Function {
 public:
  std::string Name() const override { return "greet"; }
  FunctionDefinition Definition() const override {
    return {
        .parameters = {{.name = "name", .type = Type::String(), .description = "Who is greeted."}},
        .result = Type::String(),
        .summary = "Greets somebody"};
  }
  void Call(const std::vector<Value>& arguments, FunctionResponse& response) const override {
    const std::string& name = arguments[0].AsString();
    if (name.empty()) {
      response.error = FunctionError{"name must not be empty", 0};
      return;
    }
    response.result = Value::String("Hello, " + name + "!");
  }
};

// ---- The provider: what there is ----

class HelloProvider final : public Provider {
 public:
  void Configure(const ConfigureRequest&, ConfigureResponse&) const override {}
  std::vector<std::unique_ptr<Resource>> Resources() const override {
    std::vector<std::unique_ptr<Resource>> list;
    list.push_back(std::make_unique<FileResource>());
    return list;
  }
  std::vector<std::unique_ptr<Function>> Functions() const override {
    std::vector<std::unique_ptr<Function>> list;
    list.push_back(std::make_unique<GreetFunction>());
    return list;
  }
};

}  // namespace

int main(int argc, char** argv) {
  return sless::plugin::Serve(argc, argv, environ,
                              {.name = "hello", .address = "example/hello", .version = "0.1.0"},
                              [] { return std::make_unique<HelloProvider>(); });
}
