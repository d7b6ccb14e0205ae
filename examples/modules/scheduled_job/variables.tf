variable "name" {
  description = "Name of the function, its trigger and its job."
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

variable "schedule" {
  description = "Five cron fields (minute, hour, day, month, weekday), or a name such as @daily."
  type        = string

  validation {
    condition     = can(regex("^(@[a-z]+|[^ ]+( +[^ ]+){4})$", var.schedule))
    error_message = "The schedule needs five fields (minute, hour, day, month, weekday) or a name such as @daily."
  }
}

variable "timezone" {
  description = "IANA time zone of the schedule."
  type        = string
  default     = "UTC"
}

variable "payload" {
  description = "Event that the handler gets, by the schedule and by a run at apply."
  type        = any
  default     = {}
}

variable "overlap" {
  description = "While the last run still runs: skip, queue or allow."
  type        = string
  default     = "skip"

  validation {
    condition     = contains(["skip", "queue", "allow"], var.overlap)
    error_message = "overlap must be skip, queue or allow."
  }
}

variable "misfire" {
  description = "For runs missed while the server was down: skip, once or all."
  type        = string
  default     = "skip"

  validation {
    condition     = contains(["skip", "once", "all"], var.misfire)
    error_message = "misfire must be skip, once or all."
  }
}

variable "enabled" {
  description = "false stops the schedule."
  type        = bool
  default     = true
}

variable "run_id" {
  description = "Raise it to run once at apply, beside the schedule; 0 runs nothing."
  type        = number
  default     = 0

  validation {
    condition     = var.run_id >= 0 && floor(var.run_id) == var.run_id
    error_message = "run_id must be a whole number, 0 or above."
  }
}

variable "timeout_sec" {
  description = "Longest time of one run in seconds."
  type        = number
  default     = 600
}

variable "memory_mb" {
  description = "Memory of the run in MiB."
  type        = number
  default     = 256
}

variable "max_retries" {
  description = "Further attempts after a failed run at apply."
  type        = number
  default     = 0
}
