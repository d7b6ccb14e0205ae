resource "sless_function" "this" {
  namespace  = var.namespace
  name       = var.name
  runtime    = var.runtime
  entrypoint = var.entrypoint
  source_dir = var.source_dir

  environment = var.environment
  labels      = var.labels

  memory_mb    = var.memory_mb
  timeout_sec  = var.timeout_sec
  concurrency  = var.scaling.concurrency
  min_replicas = var.scaling.min
  max_replicas = var.scaling.max
}

resource "sless_trigger" "route" {
  for_each = var.routes

  namespace = var.namespace
  name      = "${var.name}-${each.key}"
  function  = sless_function.this.name
  type      = "http"
  enabled   = var.enabled

  http = {
    path    = each.value.path
    methods = each.value.methods
    auth    = each.value.auth
  }
}
