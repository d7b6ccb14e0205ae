# Calls the function under test once, so that a test can look at what it answers.
terraform {
  required_providers {
    sless = {
      source = "sless/sless"
    }
  }
}

variable "function" {
  type = string
}

variable "run_id" {
  type = number
}

resource "sless_job" "call" {
  namespace  = "http-api-test"
  name       = "call"
  function   = var.function
  event_json = jsonencode({ path = "/from-the-test" })
  run_id     = var.run_id
}

output "result" {
  value = jsondecode(sless_job.call.result_json)
}
