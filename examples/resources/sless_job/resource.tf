# Runs once at apply and waits for the result. Raise run_id to run it again; 0 runs nothing.
resource "sless_job" "migrate" {
  name       = "orders-migrate"
  function   = sless_function.orders.name
  event_json = jsonencode({ action = "migrate", to = 7 })
  run_id     = 1

  wait_timeout_sec = 600
  max_retries      = 2
}

output "migrated" {
  value = try(jsondecode(sless_job.migrate.result_json), null) # null until a run succeeded
}
