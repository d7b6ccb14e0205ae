# A namespace that no other run of the test has. Revisions count on in a namespace for a while after a function of the same name was deleted there.
terraform {
  required_providers {
    sless = { # not used here, but OpenTofu wants to know the test's provider
      source = "sless/sless"
    }
  }
}

resource "terraform_data" "run" {
  input = substr(uuid(), 0, 8)

  lifecycle {
    ignore_changes = [input]
  }
}

output "namespace" {
  value = "http-api-test-${terraform_data.run.output}"
}
