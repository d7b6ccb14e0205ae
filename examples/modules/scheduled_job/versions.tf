terraform {
  required_version = ">= 1.6"

  required_providers {
    sless = {
      source = "sless/sless"
    }
  }
}
