#include "client/api/rules.h"
#include "provider/framework/defaults.h"
#include "provider/framework/semantic.h"
#include "provider/framework/validators.h"
#include "provider/resources/common.h"
#include "provider/resources/job_resource.h"

namespace sless::resources {

using framework::Attribute;

framework::Schema JobResource::Schema() const {
  const auto doc = [](std::string_view field) { return DocOf<api::JobSpec>(field); };
  const auto computed = [](std::string name, framework::AttributeType type,
                           std::string description) {
    return Attribute{std::move(name),
                     std::move(type),
                     {.computed = true, .description = std::move(description)}};
  };
  const api::JobSpec defaults;
  framework::Schema schema;
  schema.description =
      "Runs a function once at apply and waits for the result. `run_id = 0` runs nothing; each "
      "raised `run_id` runs once, in place. A failed run "
      "fails the apply with its traceback, and the next apply starts one more attempt under the "
      "same `run_id`. A `run_id` that succeeded never "
      "runs again, and reading never runs anything. To run once more on purpose, raise `run_id`: a "
      "job that was "
      "tainted is taken back as it is. A job that is destroyed or replaced (`-replace`, "
      "`replace_triggered_by`) is forgotten with its runs: the new one runs its `run_id` (with "
      "`create_before_destroy` it is taken back as it is, and nothing runs). An apply "
      "fails where another writer changes or deletes the job while it waits for the run. The API "
      "lists the newest 100 runs of a job.";
  schema.attributes = IdentityAttributes("job");
  const std::vector<Attribute> rest = {
      FunctionAttribute("Name of the function, in the same namespace. Write "
                        "`sless_function.x.name`, so that Terraform makes the function first."),
      {"event_json",
       framework::String(),
       {.optional = true,
        .computed = true,
        .description = "JSON text that the handler gets as its event. Compared by meaning. A "
                       "change of it alone runs nothing.",
        .default_value = framework::Str(defaults.event_json),
        .validators = {TextUpTo(api::kMaxEventBytes), framework::JsonText()},
        .semantic_equal = framework::JsonEqual}},
      IntAttribute("run_id", doc("runId"), defaults.run_id,
                   "0 runs nothing. A raised number runs once; back to 0 is possible, a lower "
                   "positive number is not."),
      IntAttribute("wait_timeout_sec", doc("waitTimeoutSec"), defaults.wait_timeout_sec,
                   "How long an apply waits for the run, in seconds. The run goes on at the "
                   "server; the next apply waits for it again."),
      IntAttribute("max_retries", doc("maxRetries"), defaults.max_retries,
                   "Further attempts after a failed one when a `run_id` runs first; an apply that "
                   "takes a failed run up again makes one attempt, one that creates the job anew "
                   "after a destroy as many as at first."),
      computed("phase", framework::String(),
               "`Pending`, `Running`, `Succeeded`, `Failed` or `Skipped`."),
      computed("result_json", framework::String(),
               "What the handler returned, as JSON text; null where there is none."),
      computed("error", framework::String(), "Why the run failed; null where it did not."),
      computed("log_tail", framework::String(), "Last lines of the run's log."),
      computed("attempts", framework::Int64(), "Attempts under this `run_id`."),
      computed("started_at", framework::String(), "Start of the last attempt, RFC 3339."),
      computed("finished_at", framework::String(), "End of the last attempt, RFC 3339."),
  };
  schema.attributes.insert(schema.attributes.end(), rest.begin(), rest.end());
  return schema;
}

}  // namespace sless::resources
