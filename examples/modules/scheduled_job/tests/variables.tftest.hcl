# What the variables refuse. Nothing is created here.
provider "sless" {}

variables {
  name       = "sum"
  namespace  = "scheduled-job-test"
  runtime    = "nodejs20"
  source_dir = "./tests/src"
  schedule   = "@daily"
}

run "four_fields" {
  command = plan
  variables {
    schedule = "* * * *"
  }
  expect_failures = [var.schedule]
}

run "negative_run_id" {
  command = plan
  variables {
    run_id = -1
  }
  expect_failures = [var.run_id]
}

run "unknown_overlap" {
  command = plan
  variables {
    overlap = "kill"
  }
  expect_failures = [var.overlap]
}

run "unknown_misfire" {
  command = plan
  variables {
    misfire = "never"
  }
  expect_failures = [var.misfire]
}
