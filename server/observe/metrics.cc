#include "server/observe/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace sless::observe {
namespace {

std::string Escape(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

/// {a="x",b="y"}, with `extra` as a last pair that is already written.
std::string LabelText(const std::vector<std::string>& names, const std::vector<std::string>& values,
                      const std::string& extra = "") {
  std::string out;
  for (size_t i = 0; i < names.size() && i < values.size(); ++i) {
    out += fmt::format("{}{}=\"{}\"", out.empty() ? "" : ",", names[i], Escape(values[i], true));
  }
  if (!extra.empty()) out += (out.empty() ? "" : ",") + extra;
  return out.empty() ? out : "{" + out + "}";
}

void Head(std::string& out, const std::string& name, const std::string& help,
          std::string_view type) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, Escape(help, false), name, type);
}

void Samples(std::string& out, const std::string& name, const std::vector<std::string>& names,
             const std::vector<std::string>& values, const Histogram& histogram) {
  // Counts are cumulative in the text. The total is the sum of the buckets as read here, so that it
  // agrees with them.
  uint64_t total = 0;
  for (size_t i = 0; i <= histogram.bounds().size(); ++i) {
    total += histogram.bucket(i);
    const auto bound =
        i < histogram.bounds().size() ? fmt::format("{}", histogram.bounds()[i]) : "+Inf";
    out += fmt::format("{}_bucket{} {}\n", name, LabelText(names, values, "le=\"" + bound + "\""),
                       total);
  }
  const auto labels = LabelText(names, values);
  out += fmt::format("{}_sum{} {}\n{}_count{} {}\n", name, labels, histogram.sum(), name, labels,
                     total);
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), buckets_(bounds_.size() + 1) {}

void Histogram::Observe(double value) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  buckets_[at].fetch_add(1, std::memory_order_relaxed);
  double sum = sum_.load(std::memory_order_relaxed);
  while (!sum_.compare_exchange_weak(sum, sum + value, std::memory_order_relaxed)) {
  }
}

std::vector<double> LatencyBounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
}

Family<Counter>& Registry::Counters(const std::string& name, const std::string& help,
                                    std::vector<std::string> labels) {
  std::lock_guard lock(mutex_);
  auto& entry = counters_[name];
  if (!entry.family) {
    entry = {help, std::make_unique<Family<Counter>>(std::move(labels),
                                                     [] { return std::make_unique<Counter>(); })};
  }
  return *entry.family;
}

Family<Gauge>& Registry::Gauges(const std::string& name, const std::string& help,
                                std::vector<std::string> labels) {
  std::lock_guard lock(mutex_);
  auto& entry = gauges_[name];
  if (!entry.family) {
    entry = {help, std::make_unique<Family<Gauge>>(std::move(labels),
                                                   [] { return std::make_unique<Gauge>(); })};
  }
  return *entry.family;
}

Family<Histogram>& Registry::Histograms(const std::string& name, const std::string& help,
                                        std::vector<std::string> labels,
                                        std::vector<double> bounds) {
  std::lock_guard lock(mutex_);
  auto& entry = histograms_[name];
  if (!entry.family) {
    entry = {help,
             std::make_unique<Family<Histogram>>(std::move(labels), [bounds = std::move(bounds)] {
               return std::make_unique<Histogram>(bounds);
             })};
  }
  return *entry.family;
}

void Registry::Forget(std::string_view label, std::string_view value) {
  std::lock_guard lock(mutex_);
  for (auto& [name, entry] : counters_) entry.family->Forget(label, value);
  for (auto& [name, entry] : gauges_) entry.family->Forget(label, value);
  for (auto& [name, entry] : histograms_) entry.family->Forget(label, value);
}

std::string Registry::Text() const {
  std::lock_guard lock(mutex_);
  std::map<std::string, std::string> parts;  // sorted by name over all types
  const auto plain = [&](const auto& families, std::string_view type) {
    for (const auto& [name, entry] : families) {
      auto& out = parts[name];
      Head(out, name, entry.help, type);
      entry.family->ForEach(
          [&, &name = name, &entry = entry](const auto& values, const auto& metric) {
            out += fmt::format("{}{} {}\n", name, LabelText(entry.family->label_names(), values),
                               metric.value());
          });
    }
  };
  plain(counters_, "counter");
  plain(gauges_, "gauge");
  for (const auto& [name, entry] : histograms_) {
    auto& out = parts[name];
    Head(out, name, entry.help, "histogram");
    entry.family->ForEach(
        [&, &name = name, &entry = entry](const auto& values, const auto& metric) {
          Samples(out, name, entry.family->label_names(), values, metric);
        });
  }
  std::string all;
  for (const auto& [name, part] : parts) all += part;
  return all;
}

}  // namespace sless::observe
