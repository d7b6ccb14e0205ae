terraform {
  required_providers {
    hello = {
      source = "example/hello"
    }
  }
}

variable "name" {
  type    = string
  default = "world"
}

resource "hello_file" "note" {
  path = "${path.module}/note.txt"
  text = provider::hello::greet(var.name)
}

output "bytes" {
  value = hello_file.note.bytes
}
