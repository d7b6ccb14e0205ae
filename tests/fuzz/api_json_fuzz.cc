// JSON bodies: parsing, every kind in the strict and the lenient reading, the checks of the domain,
// error bodies.

#include <nlohmann/json.hpp>

#include "client/api/error_body.h"
#include "client/api/fields.h"
#include "client/api/function.h"
#include "client/api/job.h"
#include "client/api/trigger.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/domain/validate.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {
namespace {

base::Status Valid(const api::FunctionSpec& spec) { return domain::ValidateFunction(spec); }
base::Status Valid(const api::TriggerSpec& spec) { return domain::ValidateTrigger(spec); }
base::Status Valid(const api::JobSpec& spec) { return domain::ValidateJob(spec); }
base::Status Valid(const api::RunSpec&) { return base::Ok(); }

template <class T>
void TryKind(const nlohmann::json& in) {
  if (const auto strict = api::FromJson<T>(in, api::Unknown::kError)) {
    Require(api::FromJson<T>(in, api::Unknown::kIgnore).has_value(),
            "what the strict reading takes the lenient one takes");
  }
  const auto object = api::FromJson<T>(in, api::Unknown::kIgnore);
  if (!object) {
    Require(!object.error().message.empty(), "an error says something");
    return;
  }
  const auto text = api::ToJsonText(*object);
  const auto again = api::FromJsonText<T>(text, api::Unknown::kError);
  Require(again && api::ToJsonText(*again) == text,
          "an object stays the same when it is written and read");
  (void)domain::ValidateMetadata(object->metadata);
  if (const auto status = Valid(object->spec); !status) {
    Require(base::IsUtf8(status.error().message), "an error's text is UTF-8");
    Require(status.error().message.size() < 4096, "an error's text is short, whatever was sent");
  }
}

}  // namespace

std::vector<std::string> Seeds() {
  api::Function function;
  function.metadata.annotations = {{"a", "b"}};
  function.spec.runtime = "python3.11";
  function.spec.source = {"code", "", "sha256:" + std::string(64, 'a'),
                          "def handle(event):\n  return 1\n"};
  function.spec.environment = {{"NAME", "value"}};
  function.spec.labels = {{"team", "x"}};
  function.spec.replicas = 1;
  function.status.failure = api::Failure{"BuildFailed", "text", "handler.py", 3, {"line"}};
  api::Trigger http, cron;
  http.spec.type = "http";
  http.spec.http = api::HttpSpec{};
  cron.spec.type = "cron";
  cron.spec.cron = api::CronSpec{
      .schedule = "*/5 1-4 * JAN,FEB mon", .timezone = "Europe/Berlin", .payload = "{\"a\":[1]}"};
  api::Job job;
  job.spec.event_json = "{\"x\":1.50}";
  job.spec.run_id = 3;
  return {api::ToJsonText(function),
          api::ToJsonText(http),
          api::ToJsonText(cron),
          api::ToJsonText(job),
          api::ToJsonText(api::Run{}),
          api::ErrorBody({base::Code::kNotFound, "text", "/spec/x", "Reason", {"f", 1, {"l"}}})};
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  const auto text = fuzz::Text(data, size);
  const auto error = api::ErrorFromBody(500, text);
  fuzz::Require(!error.message.empty(), "an error that was read says something");
  const auto value = base::ParseJson(text);
  const bool fine = base::CheckJson(text).has_value();
  fuzz::Require(!value || fine, "what can be read is valid");
  if (!value) {
    fuzz::Require(base::IsUtf8(value.error().message), "an error's text is UTF-8");
    return 0;
  }
  const auto again = base::ParseJson(base::DumpJson(*value));
  fuzz::Require(again && *again == *value, "a value stays the same when it is written and read");
  fuzz::Require(base::JsonEqual(text, text), "JSON is equal to itself");
  fuzz::TryKind<api::Function>(*value);
  fuzz::TryKind<api::Trigger>(*value);
  fuzz::TryKind<api::Job>(*value);
  fuzz::TryKind<api::Run>(*value);
  return 0;
}
