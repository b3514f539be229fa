// What a service understands, and what it refuses with which sentence.
#include "harness/service/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace tearless::harness::protocol_test {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(Protocol, ARequestIsReadAsItWasWritten) {
  for (int verb = 0; verb <= static_cast<int>(Verb::kStop); ++verb) {
    const Request sent{.verb = static_cast<Verb>(verb),
                       .sweeps = {"norm-89abcdef"},
                       .runs = {"0c95df28"},
                       .now = true,
                       .keep_results = true,
                       .all = true};
    const Request read = request_from(to_json(sent).dump());
    EXPECT_EQ(read.verb, sent.verb);
    EXPECT_EQ(read.sweeps, sent.sweeps);
    EXPECT_EQ(read.runs, sent.runs);
    EXPECT_TRUE(read.now);
    EXPECT_TRUE(read.keep_results);
    EXPECT_TRUE(read.all);
  }
  EXPECT_EQ(request_from(to_json({.verb = Verb::kPriority, .priority = -3}).dump()).priority, -3);
}

TEST(Protocol, AnythingElseIsRefusedWithASentence) {
  const auto refusal = [](const std::string& line) { return error_of([&] { request_from(line); }); };
  for (const char* line : {"", "garbage", "[]", "7", "{", "{\"verb\": \"status\"", "\xff\xfe", "null"}) {
    EXPECT_EQ(refusal(line), "a request is one line with a JSON object") << line;
  }
  EXPECT_EQ(refusal("{}"), "a request needs a \"verb\"");
  EXPECT_EQ(refusal(R"({"verb": 7})"), "a request needs a \"verb\"");
  EXPECT_THAT(refusal(R"({"verb": "explode"})"), HasSubstr("does not know the verb \"explode\""));
  EXPECT_THAT(refusal(R"({"verb": "hold", "runz": []})"), HasSubstr("does not know \"runz\""));
  EXPECT_EQ(refusal(R"({"verb": "hold", "runs": "a"})"), "\"runs\" of a request must be a list of ids");
  EXPECT_EQ(refusal(R"({"verb": "hold", "runs": [1]})"), "\"runs\" of a request must be a list of ids");
  EXPECT_EQ(refusal(R"({"verb": "priority", "priority": 1.5})"), "\"priority\" of a request must be a whole number");
  EXPECT_EQ(refusal(R"({"verb": "delete", "keep_results": 1})"), "\"keep_results\" of a request must be true or false");
  EXPECT_EQ(refusal(R"({"verb": "stop", "now": 1})"), "\"now\" of a request must be true or false");
}

TEST(Protocol, AnIdNeverLeadsOutOfTheWorkspace) {
  for (const char* id : {"../../etc", "/etc/passwd", "..", ".", "", "a/b", "a\\u0000b"}) {
    const std::string line = std::string(R"({"verb": "submit", "sweeps": [")") + id + "\"]}";
    EXPECT_EQ(error_of([&] { request_from(line); }), "\"sweeps\" of a request must be a list of ids") << id;
  }
}

}  // namespace
}  // namespace tearless::harness::protocol_test
