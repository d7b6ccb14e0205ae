resource "sless_function" "this" {
  namespace  = var.namespace
  name       = var.name
  runtime    = var.runtime
  entrypoint = var.entrypoint
  source_dir = var.source_dir

  environment = var.environment

  memory_mb    = var.memory_mb
  timeout_sec  = var.timeout_sec
  max_replicas = 1
}

resource "sless_trigger" "schedule" {
  namespace = var.namespace
  name      = var.name
  function  = sless_function.this.name
  type      = "cron"
  enabled   = var.enabled

  cron = {
    schedule = var.schedule
    timezone = var.timezone
    payload  = jsonencode(var.payload)
    overlap  = var.overlap
    misfire  = var.misfire
  }
}

resource "sless_job" "now" {
  namespace        = var.namespace
  name             = var.name
  function         = sless_function.this.name
  event_json       = jsonencode(var.payload)
  run_id           = var.run_id
  max_retries      = var.max_retries
  wait_timeout_sec = (var.max_retries + 1) * var.timeout_sec + 60
}
