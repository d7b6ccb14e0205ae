# The job's life: skipped, run, run again with another event, skipped again.
provider "sless" {}

variables {
  name       = "sum"
  namespace  = "scheduled-job-test"
  runtime    = "nodejs20"
  source_dir = "./tests/src"
  schedule   = "30 2 * * *"
  timezone   = "Europe/Berlin"
  payload    = { numbers = [1, 2, 3] }
}

run "nothing_runs_with_run_id_0" {
  assert {
    condition     = output.phase == "Skipped" && output.result == null
    error_message = "phase ${output.phase}, result ${jsonencode(output.result)}"
  }
}

run "runs_once" {
  variables {
    run_id = 1
  }

  assert {
    condition     = output.phase == "Succeeded" && output.result.sum == 6
    error_message = "phase ${output.phase}, result ${jsonencode(output.result)}"
  }

  assert {
    condition     = sless_job.now.attempts == 1
    error_message = "${sless_job.now.attempts} attempts"
  }
}

run "another_event_alone_runs_nothing" {
  variables {
    run_id  = 1
    payload = { numbers = [10, 20] }
  }

  assert {
    condition     = output.result.sum == 6
    error_message = "result ${jsonencode(output.result)}"
  }
}

run "a_raised_run_id_runs_again" {
  variables {
    run_id  = 2
    payload = { numbers = [10, 20] }
  }

  assert {
    condition     = output.result.sum == 30
    error_message = "result ${jsonencode(output.result)}"
  }
}

run "back_to_0" {
  variables {
    run_id  = 0
    enabled = false
  }

  assert {
    condition     = output.phase == "Skipped" && !sless_trigger.schedule.enabled
    error_message = "phase ${output.phase}"
  }
}
