# Answers at {external URL}/fn/{namespace}/orders/v1 to those who send a token.
resource "sless_trigger" "orders_http" {
  name     = "orders-http"
  function = sless_function.orders.name
  type     = "http"

  http = {
    auth    = "token"
    methods = ["GET", "POST"]
    path    = "/v1"
  }
}

# Calls the function at half past two each night.
resource "sless_trigger" "orders_nightly" {
  name     = "orders-nightly"
  function = sless_function.orders.name
  type     = "cron"

  cron = {
    schedule = "30 2 * * *"
    timezone = "Europe/Berlin"
    payload  = jsonencode({ task = "clean-up" })
    overlap  = "queue"
    misfire  = "once"
  }
}
