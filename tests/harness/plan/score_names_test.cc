// The scores that a grid's tables name are compared with those that its runs can have.
#include "harness/plan/score_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/paths.h"

namespace tearless::harness::score_names_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Grid grid_of(const std::string& table) {
  const test::TempFolder folder;
  test::write_text(folder / "grid.toml", "[axis]\na = [1, 2]\n[derived.wide]\nbeam = 8\n[table]\n" + table);
  return load_grid(folder / "grid.toml");
}

std::vector<std::string> mistakes(const std::string& table,
                                  const std::optional<std::vector<std::string>>& known = std::nullopt,
                                  const std::vector<Row>& rows = {}) {
  const Grid grid = grid_of(table);
  std::vector<std::string> sentences = errors_of_scores(grid, views_of(grid), known, rows);
  for (std::string& sentence : sentences) sentence.erase(0, sentence.find("grid.toml:"));
  return sentences;
}

Row done(const std::string& derivation, std::map<std::string, double> scores,
         std::map<std::string, std::string> no_numbers = {}) {
  Row row{.derivation = derivation};
  row.result.state = RunState::kDone;
  row.result.scores = std::move(scores);
  row.result.no_numbers = std::move(no_numbers);
  return row;
}

const std::vector<std::string> kKnown = {"dev.bleu_13a", "test.bleu_13a", "g.encoder.*.ffn", "wide.test.bleu_13a"};

TEST(ScoreNames, ThatNoRunCanHaveAreMistakesInEveryKeyThatNamesThem) {
  EXPECT_THAT(mistakes("cell = { score = \"test.blue_13a\" }\n", kKnown),
              ElementsAre("grid.toml:6: cell.score: no run of this grid has a score test.blue_13a (did you mean "
                          "\"test.bleu_13a\"?); they have: dev.bleu_13a, g.encoder.*.ffn, test.bleu_13a, "
                          "wide.test.bleu_13a"));
  EXPECT_THAT(mistakes("scores = [\"test.bleu_13a\", \"dev.bleu\"]\n", kKnown),
              ElementsAre(HasSubstr("grid.toml:6: scores: no run of this grid has a score dev.bleu (did")));
  EXPECT_THAT(mistakes("scores = \"test.*\"\nselect = { over = [\"a\"], by = \"dev.bleu\" }\n", kKnown),
              ElementsAre(HasSubstr("select.by: no run of this grid has a score dev.bleu ")));
  EXPECT_THAT(mistakes("scores = \"test.*\"\ndecimals = { \"test.acc\" = 1, \"test.*\" = 2 }\n", kKnown),
              ElementsAre(HasSubstr("decimals: no run of this grid has a score test.acc")));
  EXPECT_THAT(mistakes("scores = \"test.*\"\nfactor = { \"test.acc\" = 100 }\n", kKnown),
              ElementsAre(HasSubstr("factor: no run of this grid has a score test.acc")));
  EXPECT_THAT(
      mistakes("scores = \"test.*\"\npublished = { source = \"P\", score = \"test.acc\", values = [[1], [2]] }\n",
               kKnown),
      ElementsAre(HasSubstr("published.score: no run of this grid has a score test.acc")));
}

// A default is checked as a written name is, and where it means nothing all scores are shown.
TEST(ScoreNames, ThatNoTableNamesAreThoseOfTheTestSetOrElseAll) {
  const auto shown = [](const std::string& rest, const std::optional<std::vector<std::string>>& known,
                        const std::vector<Row>& rows = {}) {
    const Grid grid = grid_of(rest);
    std::vector<View> views = views_of(grid);
    show_all_without_default(grid, known, rows, views);
    return views.at(0).table().scores;
  };
  EXPECT_THAT(shown("", kKnown), IsEmpty()) << "test.*";
  EXPECT_THAT(shown("", {{"final.err", "eval.*"}}), ElementsAre("eval.*", "final.err"));
  EXPECT_THAT(shown("", {{"*"}}), IsEmpty()) << "which may be one of the test set";
  EXPECT_THAT(shown("", std::nullopt), IsEmpty()) << "nothing is known";
  EXPECT_THAT(shown("", std::nullopt, {done("", {{"err", 1}, {"acc", 2}})}), ElementsAre("acc", "err"));
  EXPECT_THAT(shown("", std::nullopt, {done("", {{"err", 1}}), done("", {{"test.acc", 2}})}), IsEmpty());
  EXPECT_THAT(shown("scores = \"dev.err\"\n", {{"final.err"}}), ElementsAre("dev.err")) << "written";
  EXPECT_THAT(shown("[score.\"test.mean\"]\nof = [\"a\", \"b\"]\ntake = \"mean\"\n", {{"a", "b"}}), IsEmpty())
      << "a score that the grid defines";
}

TEST(ScoreNames, ThatATableTakesOfALabelMustBeOfRunsWithThatLabel) {
  const test::TempFolder folder;
  test::write_text(
      folder / "grid.toml",
      "[axis]\ntask = [\"parse\", \"read\"]\n[score.loss]\nof = \"train.loss\"\ntake = \"final\"\n[table]\n"
      "columns = \"task\"\n[table.scores.task]\nparse = [\"test.uas\", \"loss\"]\n"
      "read = [\"test.uas\", \"measured.seconds_per_update\"]\n");
  const Grid grid = load_grid(folder / "grid.toml");
  const auto names = [](std::vector<std::string> all) {
    return std::make_shared<const std::vector<std::string>>(std::move(all));
  };
  std::vector<PlannedRun> plan(2);
  for (size_t i = 0; i < 2; ++i) plan[i].combination.index = {static_cast<uint32_t>(i)};
  plan[0].answer.scores = names({"test.uas", "test.las"});
  plan[1].answer.scores = names({"test.bpc"});
  EXPECT_THAT(errors_of_scores_by_label(grid, views_of(grid), plan),
              ElementsAre(testing::EndsWith("grid.toml:10: scores.task: no run with task = read has a score test.uas; "
                                            "they have: test.bpc")));
  EXPECT_THAT(errors_of_scores(grid, views_of(grid), scores_of(plan), {}), IsEmpty()) << "some run has it";
  plan[1].answer.scores = nullptr;
  EXPECT_THAT(errors_of_scores_by_label(grid, views_of(grid), plan), IsEmpty()) << "not known";
}

TEST(ScoreNames, OfAMeanAreThoseOfTheRuns) {
  const auto of = [](const std::string& scores) {
    return mistakes("scores = \"both\"\n[score.both]\nof = [" + scores + "]\ntake = \"mean\"\n", kKnown);
  };
  EXPECT_THAT(of("\"test.bleu_13a\", \"wide.test.bleu_13a\""), IsEmpty());
  EXPECT_THAT(of("\"test.bleu_13a\", \"dev.blue_13a\""),
              ElementsAre(HasSubstr("grid.toml:7: of: no run of this grid has a score dev.blue_13a (did you mean "
                                    "\"dev.bleu_13a\"?)")));
  EXPECT_THAT(of("\"test.bleu_13a\", \"measured.seconds\""),
              ElementsAre("grid.toml:7: of: measured.seconds says as much of the machine as of the run; name a score"));
}

TEST(ScoreNames, ThatMeetAPatternAreNone) {
  for (const char* score : {"g.encoder.12.ffn", "g.*", "*.bleu_13a", "g.encoder.*", "wide.*"}) {
    EXPECT_THAT(mistakes(std::string("scores = \"") + score + "\"\n", kKnown), IsEmpty()) << score;
  }
  EXPECT_THAT(mistakes("scores = \"g.decoder.*\"\n", kKnown), testing::SizeIs(1));
  EXPECT_THAT(mistakes("decimals = 3\nfactor = 100\n", kKnown), IsEmpty()) << "of every score";
}

TEST(ScoreNames, OfWhatRunsMeasureAreKnownOfEveryProgram) {
  for (const auto& known : {std::optional(kKnown), std::optional<std::vector<std::string>>()}) {
    for (const char* score : {"measured.seconds_per_update", "measured.*", "wide.measured.decoding_seconds"}) {
      EXPECT_THAT(mistakes(std::string("scores = \"") + score + "\"\n", known), IsEmpty()) << score;
    }
    EXPECT_THAT(mistakes("scores = \"measured.second_per_update\"\n", known),
                ElementsAre(HasSubstr("grid.toml:6: scores: no run of this grid has a score measured.second_per_update "
                                      "(did you mean \"measured.seconds_per_update\"?); they have: ")));
    EXPECT_THAT(mistakes("scores = \"measured.speed.*\"\n", known), testing::SizeIs(1));
    EXPECT_THAT(mistakes("scores = \"wider.measured.seconds\"\n", known),
                ElementsAre(HasSubstr("(did you mean \"wide.measured.seconds\"?)")));
    EXPECT_THAT(mistakes("scores = \"measured.*\"\nselect = { over = [\"a\"], by = \"measured.seconds\" }\n", known),
                ElementsAre("grid.toml:7: select.by: measured.seconds says as much of the machine as of the run, and "
                            "chooses none; name a score"));
    EXPECT_THAT(mistakes("scores = \"measured.*\"\nfactor = { \"measured.second\" = 1000 }\n", known),
                ElementsAre(HasSubstr("factor: no run of this grid has a score measured.second (did you mean "
                                      "\"measured.seconds\"?)")));
  }
  EXPECT_THAT(mistakes("scores = \"measure.seconds\"\n", kKnown),
              ElementsAre(HasSubstr("(did you mean \"measured.seconds\"?)")));
}

TEST(ScoreNames, OfAProgramThatDoesNotSayThemAreThoseOfRunsThatAreDone) {
  EXPECT_THAT(mistakes("scores = \"test.blue\"\n"), IsEmpty());
  Row running;
  running.result.state = RunState::kRunning;
  EXPECT_THAT(mistakes("scores = \"test.blue\"\n", std::nullopt, {running}), IsEmpty());
  EXPECT_THAT(mistakes("scores = \"test.blue\"\n", std::nullopt, {running, done("", {{"test.bleu", 1}})}),
              ElementsAre(HasSubstr("(did you mean \"test.bleu\"?); they have: test.bleu")));
  EXPECT_THAT(
      mistakes("scores = \"test.bleu\"\n", std::nullopt, {done("", {{"test.acc", 1}}, {{"test.bleu", "null"}})}),
      IsEmpty())
      << "a score without a number is one";
  EXPECT_THAT(mistakes("scores = \"wide.test.blue\"\n", std::nullopt, {done("", {{"test.bleu", 1}})}), IsEmpty())
      << "no decoding is done yet";
  EXPECT_THAT(mistakes("scores = \"wide.test.blue\"\n", std::nullopt,
                       {done("", {{"test.bleu", 1}}), done("wide", {{"wide.test.bleu", 1}})}),
              testing::SizeIs(1));
}

TEST(ScoreNames, AreKnownIfEveryAnswerHasThem) {
  const auto said = [](std::vector<std::string> names) {
    PlannedRun run;
    run.answer.scores = std::make_shared<const std::vector<std::string>>(std::move(names));
    return run;
  };
  PlannedRun refused, silent;
  refused.answer.error = "a setting is wrong";
  EXPECT_EQ(scores_of({said({"b", "a"}), said({"c"}), refused}), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(scores_of({said({"a"}), silent}), std::nullopt);
  EXPECT_EQ(scores_of({refused}), std::nullopt);
}

}  // namespace
}  // namespace tearless::harness::score_names_test
