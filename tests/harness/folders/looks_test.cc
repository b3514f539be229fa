// The record of looks: what is read is what was written, a torn end is no look, and nothing else passes for one.
#include "harness/folders/looks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::looks_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

class Looks : public testing::Test {
 protected:
  Looks() { make_folders(workspace_.sweep("g-1")); }

  std::filesystem::path file(const std::string& sweep = "g-1") const { return workspace_.sweep(sweep) / kLooksFile; }
  void append(const std::string& claim) {
    append_looks(workspace_, "g-1",
                 {{.claim = claim,
                   .hash = "0123",
                   .place = {{"z", "1"}, {"a", "line\nbreak"}},
                   .look = 2,
                   .seeds = 5,
                   .verdict = "held",
                   .level = 0.015,
                   .estimate = 0.1,
                   .low = -1e-300,
                   .n = {5, 4},
                   .reason = "r",
                   .shown = "+0.1",
                   .saw = {{"run", "sum"}},
                   .asks = {"x", "y"},
                   .at = "2026-01-31T12:00:00Z"}});
  }
  std::vector<std::string> claims() const {
    std::vector<std::string> all;
    for (const LookTaken& look : read_looks(workspace_, "g-1")) all.push_back(look.claim);
    return all;
  }

  test::TempFolder folder_;
  Workspace workspace_{folder_ / "results"};
};

TEST_F(Looks, AreReadAsTheyWereWrittenInTheirOrder) {
  EXPECT_THAT(claims(), IsEmpty()) << "no file";
  append("one");
  append("two");
  EXPECT_THAT(claims(), ElementsAre("one", "two"));
  const LookTaken look = read_looks(workspace_, "g-1").at(1);
  EXPECT_EQ(look.hash, "0123");
  EXPECT_EQ(look.place, (Labels{{"z", "1"}, {"a", "line\nbreak"}})) << "in the order of the axes";
  EXPECT_EQ(look.look, 2u);
  EXPECT_EQ(look.seeds, 5u);
  EXPECT_EQ(look.verdict, "held");
  EXPECT_EQ(look.level, 0.015);
  EXPECT_EQ(look.estimate, 0.1);
  EXPECT_EQ(look.low, -1e-300);
  EXPECT_EQ(look.high, std::nullopt);
  EXPECT_THAT(look.n, ElementsAre(5, 4));
  EXPECT_EQ(look.reason, "r");
  EXPECT_EQ(look.shown, "+0.1");
  EXPECT_EQ(look.saw.at("run"), "sum");
  EXPECT_THAT(look.asks, ElementsAre("x", "y"));
  EXPECT_EQ(look.at, "2026-01-31T12:00:00Z");
}

TEST_F(Looks, TheLastOfWhichAPowerCutToreIsNoneAndTheNextTakesItsPlace) {
  append("one");
  const std::string one = test::read_text(file());
  append("two");
  const std::string both = test::read_text(file());
  for (size_t size = one.size(); size < both.size(); ++size) {
    test::write_text(file(), both.substr(0, size));
    ASSERT_THAT(claims(), ElementsAre("one")) << size;
  }
  append("two");
  EXPECT_EQ(test::read_text(file()), both);
}

TEST_F(Looks, OfAnotherSweepOrWithAnotherByteAreRefusedByLine) {
  append("one");
  append("two");
  const std::string both = test::read_text(file());
  make_folders(workspace_.sweep("g-2"));
  test::write_text(file("g-2"), both);
  EXPECT_THAT(test::error_of([&] { read_looks(workspace_, "g-2"); }),
              HasSubstr("g-2/looks.jsonl: line 1 is damaged or"));
  const size_t second = both.find("two");
  for (const size_t at : {second, both.find("held", second), both.find("sha256", second) + 12}) {
    std::string damaged = both;
    damaged[at] ^= 1;
    test::write_text(file(), damaged);
    EXPECT_THAT(
        test::error_of([&] { read_looks(workspace_, "g-1"); }),
        EndsWith("looks.jsonl: line 2 is damaged or of another sweep; restore the file, or delete the sweep and "
                 "submit its grid again"))
        << at;
  }
}

}  // namespace
}  // namespace tearless::harness::looks_test
