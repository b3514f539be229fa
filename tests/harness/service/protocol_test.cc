// What a service understands, and what it refuses with which sentence.
#include "harness/service/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace tearless::harness::protocol_test {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(Protocol, ARequestOfEachKindIsReadAsItWasWritten) {
  for (const RequestKind& kind : request_kinds()) {
    Request sent{.name = std::string(kind.name), .priority = -3};
    if (kind.target == RequestTarget::kSweeps || kind.target == RequestTarget::kBoth) sent.sweeps = {"norm-89abcdef"};
    if (kind.target == RequestTarget::kRuns || kind.target == RequestTarget::kBoth) sent.runs = {"0c95df28"};
    if (!kind.flags.empty()) sent.flags = {std::string(kind.flags.substr(0, kind.flags.find(' ')))};
    const Request read = request_from(to_json(sent).dump());
    EXPECT_EQ(read.name, sent.name);
    EXPECT_EQ(read.sweeps, sent.sweeps);
    EXPECT_EQ(read.runs, sent.runs);
    EXPECT_EQ(read.flags, sent.flags);
    EXPECT_EQ(read.priority, -3);
  }
}

TEST(Protocol, AnythingElseIsRefusedWithASentence) {
  const auto refusal = [](const std::string& line) { return error_of([&] { request_from(line); }); };
  for (const char* line : {"", "garbage", "[]", "7", "{", "{\"request\": \"status\"", "\xff\xfe", "null"}) {
    EXPECT_EQ(refusal(line), "a request is one line with a JSON object") << line;
  }
  EXPECT_EQ(refusal("{}"), "a request needs a name: \"request\"");
  EXPECT_EQ(refusal(R"({"request": 7})"), "a request needs a name: \"request\"");
  const std::pair<const char*, const char*> of_another_build[] = {
      {R"({"request": "explode"})", "the name \"explode\""},
      {R"({"request": "pause", "runz": []})", "the key \"runz\""},
      {R"({"verb": "pause"})", "the key \"verb\""},
      {R"({"request": "stop", "flags": ["later"]})", "the flag \"later\""},
      {R"({"request": "stop", "flags": ["no"]})", "the flag \"no\""},
  };
  for (const auto& [line, what] : of_another_build) {
    EXPECT_EQ(refusal(line), std::string("this tearless does not know ") + what +
                                 " of a request: the other one is of another build. To change to that: tearless stop, "
                                 "then the command again");
  }
  EXPECT_EQ(refusal(R"({"request": "pause", "runs": "a"})"), "\"runs\" of a request must be a list of names");
  EXPECT_EQ(refusal(R"({"request": "pause", "runs": [1]})"), "\"runs\" of a request must be a list of names");
  EXPECT_EQ(refusal(R"({"request": "submit", "priority": 1.5})"),
            "\"priority\" of a request must be a whole number of 64 bits, signed");
  for (const char* number : {"9223372036854775808", "18446744073709551615", "-9223372036854775809", "1e30"}) {
    EXPECT_THAT(refusal(fmt::format(R"({{"request": "submit", "priority": {}}})", number)),
                testing::HasSubstr("of 64 bits"))
        << number;
  }
  EXPECT_EQ(refusal(R"({"request": "submit", "runs": ["a"]})"), "the request submit takes no runs");
  EXPECT_EQ(refusal(R"({"request": "status", "sweeps": ["a"]})"), "the request status takes no sweeps");
}

TEST(Protocol, AnIdNeverLeadsOutOfTheWorkspace) {
  for (const char* id : {"../../etc", "/etc/passwd", "..", ".", "", "a/b", "a\\u0000b"}) {
    const std::string line = std::string(R"({"request": "submit", "sweeps": [")") + id + "\"]}";
    EXPECT_EQ(error_of([&] { request_from(line); }), "\"sweeps\" of a request must be a list of names") << id;
  }
}

}  // namespace
}  // namespace tearless::harness::protocol_test
