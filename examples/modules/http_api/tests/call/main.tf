# Calls the function under test once, so that a test can look at what it answers.
terraform {
  required_providers {
    sless = {
      source = "sless/sless"
    }
  }
}

variable "namespace" {
  type = string
}

variable "function" {
  type = string
}

variable "run_id" {
  description = "A further call for each further number; 0 takes the job away."
  type        = number
}

resource "sless_job" "call" {
  count = var.run_id > 0 ? 1 : 0

  namespace  = var.namespace
  name       = "call"
  function   = var.function
  event_json = jsonencode({ path = "/from-the-test" })
  run_id     = var.run_id
}

output "result" {
  value = one([for job in sless_job.call : jsondecode(job.result_json)])
}
