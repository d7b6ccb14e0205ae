variable "name" {
  description = "Name of the function; also the last part of its URL."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$", var.name))
    error_message = "The name must be 1 to 50 lower-case letters, digits and hyphens, with a letter or digit at both ends."
  }
}

variable "namespace" {
  description = "Namespace; null takes the provider's."
  type        = string
  default     = null
}

variable "runtime" {
  description = "Language and version."
  type        = string

  validation {
    condition     = contains(["python3.11", "nodejs20"], var.runtime)
    error_message = "The runtime must be python3.11 or nodejs20."
  }
}

variable "entrypoint" {
  description = "The handler, as file.function."
  type        = string
  default     = "handler.handle"
}

variable "source_dir" {
  description = "Directory with the code."
  type        = string
}

variable "environment" {
  description = "Environment variables of the function."
  type        = map(string)
  default     = {}
}

variable "labels" {
  description = "Labels for people and tools."
  type        = map(string)
  default     = {}
}

variable "routes" {
  description = "What answers in public: route name => path below the URL, methods (null: all) and whether a token is needed."
  type = map(object({
    path    = optional(string, "/")
    methods = optional(set(string))
    auth    = optional(string, "none")
  }))
  default = { all = {} }

  validation {
    condition     = length(var.routes) > 0
    error_message = "At least one route is needed, or nothing would answer."
  }

  validation {
    condition     = alltrue([for route in values(var.routes) : startswith(route.path, "/")])
    error_message = "Each path must begin with \"/\"."
  }

  validation {
    condition     = alltrue([for route in values(var.routes) : contains(["none", "token"], route.auth)])
    error_message = "auth must be \"none\" or \"token\"."
  }

  validation {
    condition     = alltrue([for name in keys(var.routes) : can(regex("^[a-z0-9]{1,12}$", name))])
    error_message = "A route's name must be 1 to 12 lower-case letters and digits."
  }
}

variable "enabled" {
  description = "false answers 503 on all routes and stops the replicas."
  type        = bool
  default     = true
}

variable "memory_mb" {
  description = "Memory of one replica in MiB."
  type        = number
  default     = 256

  validation {
    condition     = var.memory_mb >= 64 && var.memory_mb <= 4096
    error_message = "memory_mb must be 64 to 4096."
  }
}

variable "timeout_sec" {
  description = "Longest time of one request in seconds."
  type        = number
  default     = 30
}

variable "scaling" {
  description = "Least and most replicas, and requests at once per replica."
  type = object({
    min         = optional(number, 0)
    max         = optional(number, 5)
    concurrency = optional(number, 1)
  })
  default = {}

  validation {
    condition     = var.scaling.min <= var.scaling.max
    error_message = "scaling.min must not be above scaling.max."
  }
}
