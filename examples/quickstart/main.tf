terraform {
  required_providers {
    sless = {
      source = "sless/sless"
    }
  }
}

# The endpoint and the token come from SLESS_ENDPOINT and SLESS_TOKEN.
provider "sless" {}

variable "greeting" {
  description = "Word that both functions greet with."
  type        = string
  default     = "Hello"
}

# A Python function from a directory. What counts is the content of the files: touching one of them changes nothing.
resource "sless_function" "python" {
  name       = "hello-python"
  runtime    = "python3.11"
  entrypoint = "handler.handle"
  source_dir = "${path.module}/hello_python"

  environment = {
    GREETING = var.greeting
  }
}

# A Node function from a zip. make_zip.py packs it from hello_node/; a zip made by any other tool gives the same hash.
resource "sless_function" "node" {
  name       = "hello-node"
  runtime    = "nodejs20"
  entrypoint = "handler.handle"
  source_zip = "${path.module}/hello_node.zip"

  environment = {
    GREETING = var.greeting
  }
}

# Functions are private until an http trigger makes them answer at /fn/{namespace}/{name}.
resource "sless_trigger" "python_http" {
  name     = "hello-python-http"
  function = sless_function.python.name
  type     = "http"

  http = {
    methods = ["GET", "POST"]
  }
}

resource "sless_trigger" "node_http" {
  name     = "hello-node-http"
  function = sless_function.node.name
  type     = "http"
  http     = {}
}

# Every five minutes, in local time.
resource "sless_trigger" "every_five_minutes" {
  name     = "hello-every-five-minutes"
  function = sless_function.python.name
  type     = "cron"

  cron = {
    schedule = "*/5 * * * *"
    timezone = "Europe/Berlin"
    payload  = jsonencode({ name = "cron" })
  }
}

# Runs once and waits for the result. Raise run_id to run it again.
resource "sless_job" "first_run" {
  name       = "hello-first-run"
  function   = sless_function.python.name
  event_json = jsonencode({ name = "job" })
  run_id     = 1
}
