# What the variables refuse. Nothing is created here.
provider "sless" {}

variables {
  name       = "shop"
  namespace  = "http-api-test"
  runtime    = "python3.11"
  source_dir = "./tests/src"
}

run "name_with_capitals" {
  command = plan
  variables {
    name = "Shop"
  }
  expect_failures = [var.name]
}

run "unknown_runtime" {
  command = plan
  variables {
    runtime = "python2"
  }
  expect_failures = [var.runtime]
}

run "no_routes" {
  command = plan
  variables {
    routes = {}
  }
  expect_failures = [var.routes]
}

run "relative_path" {
  command = plan
  variables {
    routes = { a = { path = "a" } }
  }
  expect_failures = [var.routes]
}

run "unknown_auth" {
  command = plan
  variables {
    routes = { a = { auth = "basic" } }
  }
  expect_failures = [var.routes]
}

run "more_least_than_most_replicas" {
  command = plan
  variables {
    scaling = { min = 3, max = 2 }
  }
  expect_failures = [var.scaling]
}
