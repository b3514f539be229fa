// `--until-decided`: which seeds are trained, what the looks say, and that it says the same whatever happens to the
// sweep.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "base/words.h"
#include "harness/folders/looks.h"
#include "harness/store/store.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::until_decided_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

class UntilDecided : public RunTest {
 protected:
  UntilDecided() { write(kClaims); }

  // By seed a is above b by 1.8, 1.9, 2, 2.1 and 2.2, and c by −0.29, 0.01, 0.31, 0.61 and 0.91.
  void write(const std::string& claims, const std::string& more = "", const std::string& looks = "[2, 3, 5]") {
    test::write_text(folder_ / "grid.toml",
                     "title = \"G\"\nseeds = 5\nvariables = [\"level\", \"spread\"]\n" + more +
                         "[computed]\n\"fake.score.test.bleu\" = \"level + spread * (train.seed - 3)\"\n"
                         "[[axis.s]]\nlabel = \"a\"\nset = { level = 3.0, spread = 0.1 }\n"
                         "[[axis.s]]\nlabel = \"b\"\nset = { level = 1.0, spread = 0.0 }\n"
                         "[[axis.s]]\nlabel = \"c\"\nset = { level = 1.31, spread = 0.3 }\n"
                         "[table]\nrows = \"s\"\nscores = \"test.bleu\"\n[claims]\nlooks = " +
                         looks + "\n" + claims);
  }

  /// "a 1": the runs that the newest sweep has, all with a result.
  std::set<std::string> trained() const {
    const auto store = Store::open_reader(workspace());
    std::set<std::string> runs;
    for (const RunRecord& run : store->runs_of(store->sweeps().front().id)) {
      EXPECT_EQ(run.state, RunState::kDone) << run.id;
      runs.insert(fmt::format("{} {}", label_on(run.coordinates, "s"), run.seed));
    }
    return runs;
  }

  /// "held at look 1 of 3, 2 seeds", by claim.
  std::map<std::string, std::string> verdicts(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"check-table", "--json", "grid.toml"};
    if (!more.empty()) words = more;
    std::map<std::string, std::string> all;
    const json answer = json::parse(tearless(words).output);
    for (const json& claim : answer.at("claims")) {
      all[claim.at("text")] = fmt::format("{} at look {} of {}, {} seeds, {}", claim.at("verdict").get<std::string>(),
                                          claim.at("look").dump(), claim.at("looks").dump(), claim.at("seeds").dump(),
                                          claim.at("caveats").dump());
    }
    return all;
  }

  std::vector<LookTaken> looks() const {
    std::vector<LookTaken> all;
    for (const auto& entry : fs::directory_iterator(workspace().sweeps())) {
      for (LookTaken& look : read_looks(workspace(), entry.path().filename())) all.push_back(std::move(look));
    }
    return all;
  }

  static constexpr const char* kClaims =
      "[[claim]]\ntext = \"a is better\"\nbetter = [\"a\", \"b\"]\n"
      "[[claim]]\ntext = \"c is better\"\nbetter = [\"c\", \"b\"]\n";
};

const std::map<std::string, std::string> kVerdicts = {{"a is better", "held at look 1 of 3, 2 seeds, []"},
                                                      {"c is better", "cannot tell at look 3 of 3, 5 seeds, []"}};
const auto kTrained =
    UnorderedElementsAre("a 1", "a 2", "b 1", "b 2", "b 3", "b 4", "b 5", "c 1", "c 2", "c 3", "c 4", "c 5");

TEST_F(UntilDecided, OnlyCellsOfUndecidedClaimsGetMoreSeeds) {
  const test::Finished run = ok({"run", "grid.toml", "--until-decided"});
  EXPECT_THAT(trained(), kTrained);
  EXPECT_EQ(verdicts(), kVerdicts);
  EXPECT_THAT(run.output, HasSubstr("look: \"a is better\", look 1 with 2 seeds: held +1.850 ("));
  EXPECT_THAT(run.output, HasSubstr("look: \"c is better\", look 1 with 2 seeds: cannot tell −0.140 ("));
  EXPECT_THAT(run.output, HasSubstr("); 2 runs more\n")) << "seed 3 of b and c";
  EXPECT_THAT(run.output, HasSubstr("12 runs: 12 done\n"));
  EXPECT_THAT(run.output,
              HasSubstr("Claims: 1 held, 1 cannot tell, with 12 of the grid's 15 runs: tearless check-table"));
  EXPECT_THAT(tearless({"check-table", "grid.toml"}).output,
              testing::ContainsRegex("\nDeclared on 20[0-9-]+, before a result of their cells existed\\.\n"));
  EXPECT_THAT(ok({"cost"}).output, testing::AllOf(testing::StartsWith("12 runs (12 done) took 12 attempts and "),
                                                  HasSubstr("; with all seeds they are 15 runs and about ")));
  EXPECT_EQ(json::parse(ok({"cost", "grid.toml", "--json"}).output).at("all_seeds").at("runs"), 15);
  const std::string table = ok({"table", "grid.toml"}).output;
  EXPECT_THAT(table, Not(HasSubstr("not started"))) << "nobody has asked for the others";
  EXPECT_THAT(table, HasSubstr("Looks decided how many seeds cells have"));
  const json counts = json::parse(ok({"table", "grid.toml", "--format", "json"}).output).at("rows");
  EXPECT_EQ(counts.at(0).at("cells").at(0).at("n"), 2);
  EXPECT_EQ(counts.at(2).at("cells").at(0).at("n"), 5);
}

TEST_F(UntilDecided, TheVerdictsAreThoseOfTheWholeGridAndOfASubmission) {
  ok({"run", "grid.toml"});
  EXPECT_EQ(trained().size(), 15u);
  EXPECT_EQ(verdicts(), kVerdicts) << "the first look that decides stands, whatever other seeds are there";
  EXPECT_TRUE(looks().empty()) << "no look was taken while it was trained";
  fs::remove_all(folder_ / "results");
  ok({"submit", "grid.toml", "--until-decided"});
  EXPECT_EQ(tearless({"wait", "grid.toml"}).code, 0);
  EXPECT_THAT(trained(), kTrained) << "`wait` does not return between two looks";
  EXPECT_EQ(verdicts(), kVerdicts);
}

TEST_F(UntilDecided, WorkersTrainWhatLooksAskFor) {
  has_daemon_ = true;
  ok({"submit", "grid.toml", "--until-decided", "--executor", "workers"});
  const std::future<test::Finished> worker = begin({"worker", "--idle", "8"});
  ok({"wait", "grid.toml"});
  EXPECT_THAT(trained(), kTrained);
  EXPECT_EQ(verdicts(), kVerdicts);
}

TEST_F(UntilDecided, TypedAgainTrainsNothingAndWithoutItAllTheRest) {
  ok({"run", "grid.toml", "--until-decided"});
  const size_t taken = looks().size();
  EXPECT_EQ(taken, 4u);
  EXPECT_THAT(ok({"run", "grid.toml", "--until-decided"}).output, Not(HasSubstr("started")));
  EXPECT_EQ(looks().size(), taken);
  EXPECT_EQ(attempts(), 12);
  EXPECT_THAT(ok({"run", "grid.toml"}).output, HasSubstr("15 runs: 15 done\n"));
  EXPECT_EQ(verdicts(), kVerdicts);
}

TEST_F(UntilDecided, ALostDatabaseIsRebuiltWithTheRunsThatLooksHaveAskedFor) {
  ok({"run", "grid.toml", "--until-decided"});
  fs::remove(workspace().database());
  ok({"rebuild"});
  EXPECT_THAT(trained(), kTrained);
  ok({"verify"});
}

TEST_F(UntilDecided, ALookThatASweepWasKilledAfterIsTakenUpByTheNextService) {
  ok({"run", "grid.toml", "--until-decided"});
  // As a kill leaves it between the record of look 1 and the database.
  const fs::path sweep = fs::directory_iterator(workspace().sweeps())->path();
  const std::string all = test::read_text(sweep / kLooksFile);
  std::string first;
  for (const std::string_view line : split_lines(all)) {
    if (line.find("\"look\": 1,") != std::string_view::npos) first += std::string(line) + "\n";
  }
  test::write_text(sweep / kLooksFile, first + "{\"asks\": [");
  for (const RunDirectory& run : runs()) {
    if (const std::string settings = test::read_text(run.settings());
        settings.find("train.seed = 1\n") == std::string::npos &&
        settings.find("train.seed = 2\n") == std::string::npos)
      fs::remove_all(run.root());
  }
  fs::remove(workspace().database());
  ok({"rebuild"});
  EXPECT_EQ(tearless({"wait", "grid.toml"}).code, 0);
  EXPECT_THAT(trained(), kTrained);
  EXPECT_EQ(verdicts(), kVerdicts);
  EXPECT_EQ(looks().size(), 4u) << "each once";
}

TEST_F(UntilDecided, ARunThatIsTrainedOtherwiseAfterItsLookMarksItAndChangesNoVerdict) {
  ok({"run", "grid.toml", "--until-decided"});
  const auto store = Store::open_reader(workspace());
  const RunRecord first = store->runs_of(store->sweeps().front().id).front();
  ASSERT_EQ(label_of(first), "a · seed 1");
  ok({"delete", first.id, "--yes"});
  EXPECT_EQ(verdicts().at("a is better"), "held at look 1 of 3, 2 seeds, [\"changed since\"]");
  EXPECT_EQ(tearless({"check-table", "grid.toml", "--strict"}).code, 1);
  EXPECT_THAT(tearless({"check-table", "grid.toml"}).output,
              HasSubstr("was deleted or trained again after a look had seen it: the verdict is that of the look"));
}

TEST_F(UntilDecided, ARunThatFailsHoldsTheLookOfItsClaimsOpenAndOthersGoOn) {
  write(kClaims, "[policy.tries]\ncrashed = 1\n");
  std::string grid = test::read_text(folder_ / "grid.toml");
  grid.replace(grid.find("level = 3.0"), 11, "\"fake.behaviour\" = \"crash_once\", level = 3.0");
  test::write_text(folder_ / "grid.toml", grid);
  const test::Finished run = tearless({"run", "grid.toml", "--until-decided"});
  EXPECT_EQ(run.code, 1) << run.output;
  EXPECT_THAT(run.output, HasSubstr("\"a is better\" waits at look 1 for run "));
  EXPECT_THAT(run.output, HasSubstr(", which is failed: tearless retry "));
  EXPECT_THAT(run.output, HasSubstr("; without it the claim is not tested\n"));
  EXPECT_THAT(run.output, HasSubstr("To try failed runs again: tearless run grid.toml --until-decided --retry\n"));
  EXPECT_EQ(verdicts().at("c is better"), "cannot tell at look 3 of 3, 5 seeds, []") << "others go on";
  EXPECT_THAT(verdicts().at("a is better"), HasSubstr("not tested at look 1"));
  ok({"run", "grid.toml", "--until-decided", "--retry"});
  EXPECT_EQ(verdicts().at("a is better"), "held at look 1 of 3, 2 seeds, []");
}

TEST_F(UntilDecided, LooksThatChangeAfterTheFirstWasTakenAreRefused) {
  ok({"run", "grid.toml", "--until-decided"});
  write(kClaims, "", "[2, 5]");
  const test::Finished other = tearless({"run", "grid.toml", "--until-decided"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(
      other.errors,
      HasSubstr("grid.toml: it had looks = [2, 3, 5], level = 0.05 and seeds = [1, 2, 3, 4, 5] when the first look was "
                "taken, on "));
  EXPECT_THAT(
      other.errors,
      HasSubstr(
          "and has looks = [2, 5], level = 0.05 and seeds = [1, 2, 3, 4, 5] now: write them as they were, or give the "
          "grid file another name"));
  EXPECT_EQ(verdicts().at("c is better"), "cannot tell at look 2 of 2, 5 seeds, []")
      << "no look of other seeds is taken for it";
  write(kClaims, "", "[2, 3, 5]\nlevel = 0.01");
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 2);
  write(kClaims);
  std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml", grid.replace(grid.find("seeds = 5"), 9, "seeds = [5, 4, 3, 2, 1]"));
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 2) << "other seeds first is another look";
}

TEST_F(UntilDecided, ALookAtAClaimThatWasEditedSinceIsNotTakenForIt) {
  ok({"run", "grid.toml", "--until-decided"});
  write("[[claim]]\ntext = \"a is better\"\nworse = [\"a\", \"b\"]\n");
  EXPECT_EQ(verdicts().at("a is better"), "contradicted at look 1 of 3, 2 seeds, []");
  EXPECT_THAT(tearless({"check-table", "grid.toml"}).output,
              HasSubstr("a is better: declared and not submitted yet, after 4 of its 4 results existed.\n"));
  ASSERT_TRUE(test::eventually(
      [before = std::time(nullptr)] { return std::time(nullptr) > before + 1; }));  // times are of seconds
  ok({"run", "grid.toml", "--until-decided"});
  EXPECT_THAT(tearless({"check-table", "grid.toml"}).output, HasSubstr("a is better: declared on 20"));
  write(kClaims);
  EXPECT_THAT(ok({"check-table", "grid.toml"}).output, Not(HasSubstr("declared"))) << "it was before the first result";
}

TEST_F(UntilDecided, ItNeedsLooksAndALimitNeedsIt) {
  test::write_text(folder_ / "plain.toml", "title = \"P\"\n[axis]\n\"model.kind\" = [\"a\"]\n");
  const test::Finished none = tearless({"run", "plain.toml", "--until-decided"});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(
      none.errors,
      "tearless: --until-decided: plain.toml does not say after how many seeds its claims are decided; write, for "
      "example, seeds = 12, and a section [claims] with looks = [3, 5, 8, 12]\n");
  EXPECT_EQ(tearless({"run", "grid.toml", "--max-hours", "1"}).code, 2);
  EXPECT_EQ(tearless({"run", "grid.toml", "--until-decided", "--smoke"}).code, 2);
  EXPECT_EQ(tearless({"run", "grid.toml", "--until-decided", "--only", "s=a"}).code, 2);
  EXPECT_FALSE(fs::exists(folder_ / "results"));
}

TEST_F(UntilDecided, AfterTheLimitNoLookAsksForMoreAndTypedAgainItGoesOn) {
  EXPECT_EQ(ok({"run", "grid.toml", "--until-decided", "--max-hours", "0"}).code, 0);
  EXPECT_THAT(trained(), UnorderedElementsAre("a 1", "a 2", "b 1", "b 2", "c 1", "c 2"));
  EXPECT_EQ(verdicts().at("a is better"), "held at look 1 of 3, 2 seeds, []");
  EXPECT_EQ(verdicts().at("c is better"), "cannot tell at look 1 of 3, 2 seeds, []") << "nobody asked for the next one";
  ok({"run", "grid.toml", "--until-decided"});
  EXPECT_THAT(trained(), kTrained);
  EXPECT_EQ(verdicts(), kVerdicts);
}

TEST_F(UntilDecided, ACopyOfTheResultsHasTheLooks) {
  ok({"run", "grid.toml", "--until-decided"});
  ok({"copy", "copy.tar.gz", "last"});
  EXPECT_EQ(verdicts({"check-table", "--json", "last", "--workspace", "copy.tar.gz"}), kVerdicts);
}

TEST_F(UntilDecided, ADamagedRecordOfLooksIsNamedAndNothingIsTrained) {
  ok({"run", "grid.toml", "--until-decided"});
  const fs::path file = fs::directory_iterator(workspace().sweeps())->path() / kLooksFile;
  std::string text = test::read_text(file);
  text[text.find("\"held\"") + 1] = 'H';
  test::write_text(file, text);
  const test::Finished run = tearless({"run", "grid.toml", "--until-decided"});
  EXPECT_NE(run.code, 0);
  EXPECT_THAT(run.errors + run.output, HasSubstr("looks.jsonl: line 1 is damaged or of another sweep; "));
  EXPECT_EQ(attempts(), 12);
}

}  // namespace
}  // namespace tearless::harness::until_decided_test
