#pragma once

// Counters, gauges and histograms, and their text form for Prometheus (exposition format 0.0.4).

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace sless::observe {

/// A number that only rises. Names end in "_total". Thread-safe, lock-free.
class Counter {
 public:
  void Add(uint64_t by = 1) { value_.fetch_add(by, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

/// A number that rises and falls. Thread-safe, lock-free.
class Gauge {
 public:
  void Set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void Add(int64_t by) { value_.fetch_add(by, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

/// How often values fell below bounds. Names end in their unit ("_seconds", "_bytes"). Thread-safe,
/// lock-free.
class Histogram {
 public:
  /// `bounds`: upper bounds, rising; +Inf is added.
  explicit Histogram(std::vector<double> bounds);
  void Observe(double value);
  const std::vector<double>& bounds() const { return bounds_; }
  uint64_t bucket(size_t i) const { return buckets_[i].load(std::memory_order_relaxed); }
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::vector<std::atomic<uint64_t>> buckets_;
  std::atomic<double> sum_{0};
};

/// Bounds for durations from 1 ms to 60 s.
std::vector<double> LatencyBounds();

/// A family of metrics of one name, told apart by label values. At most kMaxSeries are kept; label
/// values beyond that share one series whose labels are all "other", so that hostile or many names
/// cannot fill the memory.
template <class Metric>
class Family {
 public:
  static constexpr size_t kMaxSeries = 1000;
  using Labels = std::vector<std::string>;

  Family(std::vector<std::string> label_names, std::function<std::unique_ptr<Metric>()> make)
      : label_names_(std::move(label_names)), make_(std::move(make)) {}

  /// The metric of these label values, in the order of the label names. The reference stays valid
  /// until Registry::Forget.
  Metric& With(const Labels& values) {
    std::lock_guard lock(mutex_);
    const auto it = series_.find(values);
    if (it != series_.end()) return *it->second;
    const bool full = series_.size() >= kMaxSeries || values.size() != label_names_.size();
    auto& slot = series_[full ? Labels(label_names_.size(), "other") : values];
    if (!slot) slot = make_();
    return *slot;
  }
  void Forget(std::string_view label, std::string_view value) {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < label_names_.size(); ++i) {
      if (label_names_[i] == label)
        std::erase_if(series_, [&](const auto& item) { return item.first[i] == value; });
    }
  }
  const std::vector<std::string>& label_names() const { return label_names_; }
  template <class F>
  void ForEach(F&& f) const {
    std::lock_guard lock(mutex_);
    for (const auto& [values, metric] : series_) f(values, *metric);
  }

 private:
  std::vector<std::string> label_names_;
  std::function<std::unique_ptr<Metric>()> make_;
  mutable std::mutex mutex_;
  std::map<Labels, std::unique_ptr<Metric>> series_;
};

/// All metrics of a process. Asking twice for a name gives the same family (its first help and
/// labels stay). Thread safety: all methods may be called at the same time from any thread;
/// families live as long as the registry.
class Registry {
 public:
  Family<Counter>& Counters(const std::string& name, const std::string& help,
                            std::vector<std::string> labels = {});
  Family<Gauge>& Gauges(const std::string& name, const std::string& help,
                        std::vector<std::string> labels = {});
  Family<Histogram>& Histograms(const std::string& name, const std::string& help,
                                std::vector<std::string> labels = {},
                                std::vector<double> bounds = LatencyBounds());
  /// Without labels.
  Gauge& GetGauge(const std::string& name, const std::string& help) {
    return Gauges(name, help).With({});
  }

  /// Drops, of all families, the series whose `label` has this value: what it names is gone. Nobody
  /// may hold one of these metrics.
  void Forget(std::string_view label, std::string_view value);

  /// The text exposition, families sorted by name.
  std::string Text() const;

 private:
  template <class Metric>
  struct Entry {
    std::string help;
    std::unique_ptr<Family<Metric>> family;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Entry<Counter>> counters_;
  std::map<std::string, Entry<Gauge>> gauges_;
  std::map<std::string, Entry<Histogram>> histograms_;
};

}  // namespace sless::observe
