output "function" {
  description = "Name of the function."
  value       = sless_function.this.name
}

output "phase" {
  description = "How the run at apply ended; Skipped where run_id is 0."
  value       = sless_job.now.phase
}

output "result" {
  description = "What the run at apply returned; null where none ran."
  value       = try(jsondecode(sless_job.now.result_json), null)
}
