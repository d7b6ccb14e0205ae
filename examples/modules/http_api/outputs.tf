output "urls" {
  description = "Public URL of each route."
  value       = { for name, trigger in sless_trigger.route : name => trigger.url }
}

output "function" {
  description = "Name of the function, for further triggers and jobs."
  value       = sless_function.this.name
}

output "invoke_url" {
  description = "POST an event here, with a token."
  value       = sless_function.this.invoke_url
}

output "revision" {
  description = "Number of the serving revision."
  value       = sless_function.this.revision
}
