terraform {
  required_providers {
    sless = {
      source = "sless/sless"
    }
  }
}

provider "sless" {
  endpoint  = "https://sless.example.com" # or SLESS_ENDPOINT
  namespace = "shop"                      # or SLESS_NAMESPACE
  # The token is best given by SLESS_TOKEN, so that it is in no file.
}
