output "python_url" {
  description = "Answers with a greeting by the Python function; try ?name=you."
  value       = sless_trigger.python_http.url
}

output "node_url" {
  description = "Answers with a greeting by the Node function; try ?name=you."
  value       = sless_trigger.node_http.url
}

output "job_result" {
  description = "What the job's run returned."
  value       = try(jsondecode(sless_job.first_run.result_json), null) # null until it has run
}
