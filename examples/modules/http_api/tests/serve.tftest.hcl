# A function with two routes: created, called, changed, switched off.
provider "sless" {}

variables {
  name        = "shop"
  runtime     = "python3.11"
  source_dir  = "./tests/src"
  environment = { STAGE = "one" }

  routes = {
    all   = {}
    admin = { path = "/admin", auth = "token", methods = ["POST"] }
  }
}

run "setup" {
  module {
    source = "./tests/setup"
  }
}

run "urls_are_known_at_plan" {
  command = plan

  variables {
    namespace = run.setup.namespace
  }

  assert {
    condition     = endswith(output.urls["all"], "/fn/${var.namespace}/shop")
    error_message = "url of the route \"all\" is ${output.urls["all"]}"
  }

  assert {
    condition     = endswith(output.urls["admin"], "/fn/${var.namespace}/shop/admin")
    error_message = "url of the route \"admin\" is ${output.urls["admin"]}"
  }
}

run "create" {
  variables {
    namespace = run.setup.namespace
  }

  assert {
    condition     = output.revision == 1
    error_message = "a new function serves revision ${output.revision}"
  }

  assert {
    condition     = sless_function.this.phase == "Ready"
    error_message = "phase is ${sless_function.this.phase}"
  }
}

run "call" {
  module {
    source = "./tests/call"
  }

  variables {
    namespace = run.setup.namespace
    function  = run.create.function
    run_id    = 1
  }

  assert {
    condition     = output.result == { stage = "one", path = "/from-the-test" }
    error_message = "the function answered ${jsonencode(output.result)}"
  }
}

run "change_the_environment" {
  variables {
    namespace   = run.setup.namespace
    environment = { STAGE = "two" }
  }

  assert {
    condition     = output.revision == 2
    error_message = "a new environment makes one further revision, got ${output.revision}"
  }
}

run "call_again" {
  module {
    source = "./tests/call"
  }

  variables {
    namespace = run.setup.namespace
    function  = run.change_the_environment.function
    run_id    = 2
  }

  assert {
    condition     = output.result.stage == "two"
    error_message = "the function answered ${jsonencode(output.result)}"
  }
}

run "switch_off" {
  variables {
    namespace   = run.setup.namespace
    environment = { STAGE = "two" }
    enabled     = false
  }

  assert {
    condition     = alltrue([for trigger in sless_trigger.route : !trigger.enabled])
    error_message = "a trigger is still enabled"
  }

  assert {
    condition     = output.revision == 2
    error_message = "switching off makes no further revision, got ${output.revision}"
  }
}

# What a module of a test made is deleted at the end by Terraform, but not by OpenTofu.
run "no_more_calls" {
  module {
    source = "./tests/call"
  }

  variables {
    namespace = run.setup.namespace
    function  = run.switch_off.function
    run_id    = 0
  }

  assert {
    condition     = output.result == null
    error_message = "the job is still there"
  }
}
