# From a directory. Only the content of the files counts.
resource "sless_function" "orders" {
  name       = "orders"
  runtime    = "python3.11"
  entrypoint = "handler.handle"
  source_dir = "${path.module}/src"

  environment = {
    LOG_LEVEL = "info"
  }

  memory_mb    = 256
  timeout_sec  = 30
  concurrency  = 4
  min_replicas = 0
  max_replicas = 3

  timeouts {
    create = "10m"
  }
}

# From text, for a function of a few lines.
resource "sless_function" "ping" {
  name        = "ping"
  runtime     = "nodejs20"
  source_code = <<-EOT
    exports.handle = async (event) => ({ pong: event });
  EOT
}
