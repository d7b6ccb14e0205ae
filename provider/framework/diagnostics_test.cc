#include "provider/framework/diagnostics.h"

#include <gmock/gmock.h>

namespace sless::framework {
namespace {

using base::Code;
using base::Error;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Diagnostics, DropsEqualOnes) {
  Diagnostics d;
  d.AddError("S", "D");
  d.AddError("S", "D");
  d.AddError(cty::Path("a"), "S", "D");
  d.AddWarning("S", "D");
  EXPECT_EQ(d.size(), 3u);
  EXPECT_TRUE(d.HasError());
  Diagnostics other;
  other.AddWarning("S", "D");
  EXPECT_FALSE(other.HasError());
  other.Append(d);
  EXPECT_EQ(other.size(), 3u);
  EXPECT_EQ(other.ToString(), "warning: S: D\nerror: S: D\nerror: a: S: D");
}

const FieldMap kFields = {{"/spec", cty::Path()},
                          {"/spec/memoryMb", cty::Path("memory_mb")},
                          {"/spec/http", cty::Path("http")},
                          {"/spec/http/path", cty::Path("http").Attribute("path")},
                          {"/spec/environment", cty::Path("environment"), true}};

struct FieldCase {
  const char* field;
  const char* path;  // nullptr: none
};

TEST(FromError, MapsFields) {
  for (const auto& c :
       {FieldCase{"/spec/memoryMb", "memory_mb"}, FieldCase{"/spec/http/path", "http.path"},
        FieldCase{"/spec/http/methods/0", "http"},
        FieldCase{"/spec/environment/A", "environment[\"A\"]"},
        FieldCase{"/spec/environment", "environment"},
        FieldCase{"/spec/environment/a~1b~0", "environment[\"a/b~\"]"},
        FieldCase{"/spec/memoryMbX", ""}, FieldCase{"/metadata/name", nullptr},
        FieldCase{"", nullptr}}) {
    SCOPED_TRACE(c.field);
    const auto d = FromError(Error{Code::kInvalidArgument, "no good", c.field, "", {}},
                             "create thing x", kFields);
    ASSERT_EQ(d.path.has_value(), c.path != nullptr);
    if (d.path) {
      EXPECT_EQ(d.path->ToString(), c.path);
    } else if (*c.field != '\0') {
      EXPECT_THAT(d.detail, HasSubstr(c.field));
    }
  }
}

TEST(FromError, TellsTheWholeStory) {
  Error error{Code::kFailedPrecondition,
              "handler failed: KeyError",
              "",
              "HandlerError",
              {"app/handler.py", 12, {"one", "two"}}};
  const auto d = FromError(error, "run job default/x");
  EXPECT_EQ(d.summary, "Cannot run job default/x");
  EXPECT_EQ(d.detail,
            "handler failed: KeyError.\n\nAt app/handler.py:12\n\nLast log lines:\n  one\n  two");
  EXPECT_EQ(d.severity, Severity::kError);
}

TEST(FromError, EveryCodeGivesText) {
  for (int code = 0; code <= static_cast<int>(Code::kInternal); ++code) {
    const auto d = FromError(Error{static_cast<Code>(code), "", "", "", {}}, "do it");
    EXPECT_FALSE(d.detail.empty());
  }
  EXPECT_THAT(FromError(Error{Code::kUnavailable, "refused", "", "", {}}, "x").detail,
              HasSubstr("check that it runs"));
  EXPECT_THAT(FromError(Error{Code::kInvalidArgument, "bad", "", "", {}}, "x").detail,
              Not(HasSubstr("\n")));
  EXPECT_EQ(FromError(Error{Code::kDeadlineExceeded, "timed out", "", "", {}}, "x").detail,
            "timed out.")
      << "which timeout could be raised is for the message to say";
}

}  // namespace
}  // namespace sless::framework
