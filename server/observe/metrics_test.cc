#include "server/observe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace sless::observe {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Registry, WritesTheTextExposition) {
  Registry registry;
  registry.Counters("sless_b_total", "How many \\ b", {"function"}).With({"a\"b\n"}).Add(3);
  registry.GetGauge("sless_a", "Now").Set(-2);
  auto& histogram = registry.Histograms("sless_c_seconds", "Took", {}, {0.1, 1}).With({});
  histogram.Observe(0.1);
  histogram.Observe(0.5);
  histogram.Observe(7);
  EXPECT_EQ(
      registry.Text(),
      "# HELP sless_a Now\n# TYPE sless_a gauge\nsless_a -2\n"
      "# HELP sless_b_total How many \\\\ b\n# TYPE sless_b_total counter\n"
      "sless_b_total{function=\"a\\\"b\\n\"} 3\n"
      "# HELP sless_c_seconds Took\n# TYPE sless_c_seconds histogram\n"
      "sless_c_seconds_bucket{le=\"0.1\"} 1\nsless_c_seconds_bucket{le=\"1\"} 2\n"
      "sless_c_seconds_bucket{le=\"+Inf\"} 3\nsless_c_seconds_sum 7.6\nsless_c_seconds_count 3\n");
}

TEST(Family, KeepsABoundedNumberOfSeries) {
  Registry registry;
  auto& family = registry.Counters("x_total", "x", {"name"});
  for (int i = 0; i < 3000; ++i) family.With({std::to_string(i)}).Add();
  size_t series = 0;
  uint64_t sum = 0;
  family.ForEach([&](const auto&, const Counter& c) { ++series, sum += c.value(); });
  EXPECT_LE(series, Family<Counter>::kMaxSeries + 1);
  EXPECT_EQ(sum, 3000u);
  EXPECT_THAT(registry.Text(), HasSubstr("x_total{name=\"other\"} 2000"));
}

TEST(Registry, ForgetsWhatIsGone) {
  Registry registry;
  auto& calls = registry.Counters("calls_total", "x", {"function", "outcome"});
  calls.With({"a", "ok"}).Add();
  calls.With({"a", "error"}).Add();
  calls.With({"b", "ok"}).Add();
  registry.Histograms("took_seconds", "x", {"function"}).With({"a"}).Observe(1);
  registry.Gauges("a", "x", {"other"}).With({"a"}).Set(1);
  registry.Forget("function", "a");
  const auto text = registry.Text();
  EXPECT_THAT(text, Not(HasSubstr("function=\"a\"")));
  EXPECT_THAT(text, HasSubstr("calls_total{function=\"b\",outcome=\"ok\"} 1"));
  EXPECT_THAT(text, HasSubstr("a{other=\"a\"} 1"));
}

TEST(Registry, SameNameIsTheSameFamily) {
  Registry registry;
  registry.Counters("y_total", "y").With({}).Add();
  registry.Counters("y_total", "other help").With({}).Add();
  EXPECT_THAT(registry.Text(), HasSubstr("y_total 2"));
  EXPECT_THAT(registry.Text(), Not(HasSubstr("other help")));
}

TEST(Registry, CountsFromManyThreads) {
  Registry registry;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) {
          registry.Counters("z_total", "z", {"l"}).With({"v"}).Add();
          registry.Histograms("z_seconds", "z").With({}).Observe(0.001);
          if (i % 100 == 0) registry.Text();
        }
      });
    }
  }
  EXPECT_THAT(registry.Text(), HasSubstr("z_total{l=\"v\"} 4000"));
  EXPECT_THAT(registry.Text(), HasSubstr("z_seconds_count 4000"));
}

}  // namespace
}  // namespace sless::observe
