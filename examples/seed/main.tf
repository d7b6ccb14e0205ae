# The older way of life: a build step makes a zip, code_hash says when it has changed, run_id runs a job, enabled switches
# triggers. All of it still works; source_hash would notice a changed zip without code_hash too.
terraform {
  required_providers {
    sless = {
      source = "sless/sless"
    }
  }
}

provider "sless" {}

variable "run_id" {
  description = "Raise it to run the job again; 0 runs nothing."
  type        = number
  default     = 1
}

variable "enabled" {
  description = "false switches the public URL off."
  type        = bool
  default     = true
}

locals {
  package = "${path.module}/dist/worker.zip" # made by `make`
}

resource "sless_function" "worker" {
  name              = "seed-worker"
  runtime           = "python3.11"
  entrypoint        = "worker.run"
  source_zip        = local.package
  code_hash         = filesha256(local.package)
  build_timeout_sec = 120

  labels = {
    team = "seed"
  }
}

resource "sless_trigger" "api" {
  name     = "seed-api"
  function = sless_function.worker.name
  type     = "http"
  enabled  = var.enabled
  http     = {}
}

resource "sless_job" "seed" {
  name             = "seed-data"
  function         = sless_function.worker.name
  event_json       = jsonencode({ rows = 3 })
  run_id           = var.run_id
  wait_timeout_sec = 120
}

output "url" {
  value = sless_trigger.api.url
}

output "phase" {
  value = sless_job.seed.phase
}

output "result" {
  value = try(jsondecode(sless_job.seed.result_json), null)
}
