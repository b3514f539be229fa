// The names that `check` says a run will have, against those that runs of every task leave.
#include "engine/train/result_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/pattern.h"
#include "engine/run/check.h"
#include "tests/engine/run/small_digits.h"
#include "tests/engine/run/small_runs.h"
#include "tests/engine/run/small_text.h"
#include "tests/engine/run/small_treebank.h"
#include "tests/engine/train/in_memory.h"
#include "tests/support/paths.h"

namespace tearless::engine::result_names_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Settings;
using test::with;
using Names = std::set<std::string>;

/// Whether `*` of the pattern stands for some text that makes it the name.
bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty() || name.empty()) return pattern.empty() && name.empty();
  if (pattern.front() != '*') return pattern.front() == name.front() && matches(pattern.substr(1), name.substr(1));
  for (size_t length = 1; length <= name.size(); ++length) {
    if (matches(pattern.substr(1), name.substr(length))) return true;
  }
  return false;
}

struct Left {
  Names scores, metrics;
};

Left left_by(const RunDirectory& run) {
  Left left;
  if (fs::exists(run.scores())) {
    const json scores = json::parse(test::read_text(run.scores()));
    for (const auto& [name, value] : scores.items()) left.scores.insert(name);
  }
  for (const std::string& line : test::lines_of(run.metrics())) left.metrics.insert(json::parse(line).at("name"));
  return left;
}

/// What a run reported at its last update.
std::map<std::string, json> last_report(const RunDirectory& run) {
  std::map<std::string, json> values;
  int64_t last = 0;
  for (const std::string& line : test::lines_of(run.metrics())) {
    const json metric = json::parse(line);
    if (metric.at("step") > last) values.clear();
    last = metric.at("step");
    values[metric.at("name")] = metric.at("value");
  }
  return values;
}

/// Every name has a pattern, and every pattern a name, but for `absent`.
void expect_equal(const Names& told, const Names& left, const Names& absent, const std::string& what) {
  const auto told_by = [](const Names& patterns, const std::string& name) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const auto& pattern) { return matches(pattern, name); });
  };
  Names without_pattern, without_name;
  for (const std::string& name : left) {
    if (!told_by(told, name)) without_pattern.insert(name);
  }
  for (const std::string& pattern : told) {
    if (std::none_of(left.begin(), left.end(), [&](const auto& name) { return matches(pattern, name); })) {
      without_name.insert(pattern);
    }
  }
  EXPECT_EQ(without_pattern, Names()) << what << " that the run left and check did not tell";
  EXPECT_EQ(without_name, absent) << what << " that check told and the run did not leave";
}

/// Names of one sublayer each are rows of their own kind, and those of the test set stand beside those of dev.
void expect_on_the_page(const Names& scores) {
  const std::string page = test::read_text(tearless::test::source_root() / "docs/statistics_files.md");
  for (const std::string& name : scores) {
    const std::string row = name.starts_with("test.") ? "dev" + name.substr(4) : name;
    const bool is_there = page.find("`" + row + "`") != std::string::npos;
    EXPECT_TRUE(is_there || name.find('*') != std::string::npos) << "docs/statistics_files.md has no row of " << name;
  }
}

class ResultNames : private test::InMemory, public testing::Test {
 protected:
  ResultNames() {
    runs_.write("train", {{"a b c", "c b a"}, {"b a", "a b"}, {"d a c b", "b c a d"}, {"c d", "d c"}});
    runs_.write("dev", {{"a b", "b a"}, {"c a d", "d a c"}});
    runs_.write("test", {{"b c d", "d c b"}, {"a d", "d a"}, {"c", "c"}, {"d b a", "a b d"}});
    fs::create_directory(runs_.folder() / "labelled");
    for (const char* set : {"train", "dev", "test"}) {
      runs_.write_labelled(std::string("labelled/") + set, {{"bad one", 0}, {"good one", 1}, {"good two", 1}});
    }
    test::write_digits(runs_.folder());
    test::write_treebank(runs_.folder());
    test::write_texts(runs_.folder());
  }

  json answer_to(const Settings& settings) {
    return CheckBatch().answer(json{{"settings", settings}, {"folder", runs_.folder().string()}}.dump());
  }

  /// `absent`: what this run does not leave and another one with the same settings, or other data, might.
  void expect_told(const Settings& settings, const Names& absent_scores = {"diverged_step"},
                   const Names& absent_metrics = {}) {
    SCOPED_TRACE(json(settings).dump());
    const json answer = answer_to(settings);
    ASSERT_FALSE(answer.contains("error")) << answer;
    const RunDirectory run(runs_.make(settings));
    attempt_run(run.root());
    const Left left = left_by(run);
    expect_equal(answer.at("scores").get<Names>(), left.scores, absent_scores, "scores");
    expect_equal(answer.at("metrics").get<Names>(), left.metrics, absent_metrics, "metrics");
    expect_on_the_page(answer.at("scores"));
  }

  /// The metrics at whose last report it matters when the one before was are those of `windows`.
  void expect_windows(Settings settings, const Names& expected) {
    settings.erase("train.schedule.lr");
    SCOPED_TRACE(json(settings).dump());
    std::vector<std::map<std::string, json>> reports;
    for (const int updates : {1, 3}) {
      const RunDirectory run(runs_.make(with(settings, {{"train.epoch_updates", 2 * updates},
                                                        {"train.max_epochs", 6 / updates},
                                                        {"train.evaluate_updates", updates},
                                                        {"train.schedule.kind", "inverse_sqrt"},
                                                        {"train.schedule.peak_lr", 1e-3},
                                                        {"run.log_updates", updates}})));
      attempt_run(run.root());
      reports.push_back(last_report(run));
    }
    const std::vector<std::string> windows = answer_to(translate()).at("windows");
    Names changed, told;
    for (const auto& [name, value] : reports[0]) {
      if (name != "epoch" && reports[1].at(name) != value) changed.insert(name);
      const auto is_of = [&](const auto& pattern) { return matches_pattern(pattern, name); };
      if (std::ranges::any_of(windows, is_of)) told.insert(name);
    }
    EXPECT_EQ(changed, told);
    EXPECT_THAT(told, testing::IsSupersetOf(expected));
  }

  static Settings short_training() {
    return {{"train.epoch_updates", 3},
            {"train.max_epochs", 2},
            {"train.schedule.kind", "nowarmup"},
            {"train.schedule.peak_lr", 1e-3},
            {"run.log_updates", 2}};
  }
  static Settings layers() { return {{"model.d_model", 8}, {"model.d_ff", 12}, {"model.heads", 2}}; }
  static Settings translate(const Settings& changes = {}) {
    Settings settings = with(test::corpus_settings(), {{"text.kind", "segmented"},
                                                       {"model.encoder_layers", 2},
                                                       {"model.decoder_layers", 1},
                                                       {"model.mask_target_vocabulary", false}});
    return with(with(with(settings, layers()), short_training()), changes);
  }
  static Settings classify(const Settings& changes = {}) {
    Settings settings = with(test::labelled_settings(), {{"data.train", "labelled/train"},
                                                         {"data.dev", "labelled/dev"},
                                                         {"data.test", "labelled/test"},
                                                         {"text.min_count", 1},
                                                         {"model.layers", 2}});
    return with(with(with(settings, layers()), short_training()), changes);
  }
  static Settings digits(const Settings& changes = {}) { return with(test::small_digits(), changes); }
  static Settings language_model(const Settings& changes = {}) { return with(test::small_language_model(), changes); }
  static Settings parse(const Settings& changes = {}) { return with(test::small_parser(), changes); }

  test::SmallRuns runs_;
};

TEST_F(ResultNames, AreThoseThatRunsOfEveryTaskLeave) {
  expect_told(translate());
  expect_told(classify());
  expect_told(digits());
  expect_told(parse());
  expect_told(language_model());
}

TEST_F(ResultNames, FollowTheKindOfText) {
  expect_told(translate({{"text.kind", "bpe"}, {"text.merges", 2}}));
  expect_told(translate({{"text.kind", "sentencepiece"}, {"text.pieces", 12}}));
  EXPECT_THAT(answer_to(translate()).at("scores"), testing::Contains("test.bleu"));
  EXPECT_THAT(answer_to(translate({{"text.kind", "sentencepiece"}})).at("scores"), testing::Contains("test.bleu_13a"));
}

TEST_F(ResultNames, HaveTheLengthsThatTheNormsOfAModelLearn) {
  for (const char* placement : {"pre", "post", "pre_no_final"}) {
    expect_told(translate({{"model.norm.kind", "scale_norm"}, {"model.placement", placement}}));
    expect_told(classify({{"model.norm.kind", "scale_norm"}, {"model.placement", placement}}));
  }
  expect_told(translate({{"model.norm.kind", "scale_norm"}, {"model.norm.scope", "final_only"}}));
  expect_told(translate({{"model.norm.kind", "scale_norm_fixed"}, {"model.fix_norm", true}}));
  expect_told(translate({{"model.norm.kind", "rms_norm"}}));
  expect_told(translate({{"model.norm.kind", "none"}}));
  for (const char* sites : {"linear", "activations", "inputs"}) {
    expect_told(digits({{"model.norm.kind", "scale_norm"}, {"model.norm_sites", sites}}));
  }
  EXPECT_THAT(answer_to(translate({{"model.norm.kind", "scale_norm"}})).at("scores"),
              testing::IsSupersetOf({"g.encoder.*.ffn", "g.encoder.*.self_attention", "g.encoder.final",
                                     "g.decoder.*.cross_attention", "g.decoder.final"}));
}

TEST_F(ResultNames, HaveWhatIsObservedOfGroupsAndSublayers) {
  for (const Settings& observed :
       {Settings{{"observe.groups", true}}, Settings{{"observe.variances", true}},
        Settings{{"observe.groups", true}, {"observe.variances", true}, {"model.output_bias", false}}}) {
    expect_told(translate(observed));
  }
  expect_told(translate({{"observe.groups", true}, {"model.tied_embeddings", "none"}}));
  expect_told(translate({{"observe.window_means", true}}));
  expect_told(translate({{"observe.window_means", true}, {"observe.groups", true}, {"observe.group_by", "layer"}}));
  expect_told(
      translate({{"observe.window_means", true}, {"observe.group_by", "layer"}, {"observe.only", "encoder.2"}}));
  expect_told(translate({{"observe.variances", true}, {"model.encoder_sublayers", "ffn, self_attention"}}));
  expect_told(classify({{"observe.groups", true}, {"observe.variances", true}}));
  expect_told(digits({{"observe.groups", true}, {"observe.variances", true}}));
  expect_told(
      language_model({{"model.norm.kind", "scale_norm"}, {"observe.groups", true}, {"observe.variances", true}}));
  expect_told(parse({{"model.norm.kind", "scale_norm"}, {"observe.groups", true}}));
}

TEST_F(ResultNames, OfWindowsAreThoseOfTheUpdatesSinceTheLastReport) {
  const Settings observed = {{"observe.window_means", true}, {"observe.groups", true}, {"observe.variances", true}};
  const Names of_all = {"train.loss", "train.loss_sum", "train.grad_norm_window_mean"};
  expect_windows(translate(observed), {"train.ppl", "train.ppl_smoothed", "grad_norm_window_mean.encoder.2.ffn"});
  expect_windows(translate(), of_all);
  expect_windows(language_model(observed), {"train.bpc"});
  expect_windows(classify(observed), of_all);
  expect_windows(digits(observed), of_all);
  expect_windows(parse({{"observe.window_means", true}}), of_all);
}

TEST_F(ResultNames, HaveTheNumberOfAveragedCheckpoints) {
  expect_told(translate({{"train.select.kind", "last_epochs"}, {"train.select.count", 2}}));
  expect_told(classify({{"train.select.kind", "last"}, {"train.select.count", 2}}));
}

// Nothing is learned, so no evaluation is better than the first.
TEST_F(ResultNames, HaveTheEarlyStopThatIsObservedIfThereAreEnoughEvaluations) {
  const Settings still = {
      {"train.schedule.peak_lr", 1e-12}, {"train.min_lr", 0}, {"train.early_stop", 0}, {"observe.early_stop", 1}};
  expect_told(translate(still));
  expect_told(translate(with(still, {{"train.select.by", "loss"}})));
  expect_told(classify(still));
  expect_told(translate(with(still, {{"observe.early_stop", 2}})));
  expect_told(translate(with(still, {{"train.early_stop", 2}})));
  expect_told(translate(with(still, {{"observe.early_stop", 0}})));
  EXPECT_THAT(answer_to(translate(with(still, {{"train.select.by", "loss"}}))).at("metrics"),
              testing::Contains("would_stop.dev.ppl_smoothed"));
}

TEST_F(ResultNames, LackTheReportsOfARunThatIsShorterThanTheirInterval) {
  expect_told(translate({{"run.log_updates", 6}, {"observe.groups", true}}));
  expect_told(translate({{"run.log_updates", 7}, {"observe.groups", true}}));
}

TEST_F(ResultNames, HaveTheLabelsOutsideOfAMaskedVocabularyWhichNotEverySetHas) {
  const Settings masked = {{"model.mask_target_vocabulary", true}};
  const Names none = {"diverged_step", "dev.labels_outside", "test.labels_outside"};
  expect_told(translate(masked), none);
  runs_.write("train", {{"a b c", "x y z"}, {"b a", "y x"}, {"d a c b", "x z y x"}, {"c d", "z x"}});
  runs_.write("dev", {{"a b", "x a"}});
  runs_.write("test", {{"a b", "x b"}});
  expect_told(translate(masked));
  expect_told(translate(with(masked, {{"text.vocabulary", "per_side"}, {"model.tied_embeddings", "none"}})));
}

TEST_F(ResultNames, HaveTheStepAtWhichARunDiverges) {
  const Settings diverging = {{"train.schedule.peak_lr", 10},
                              {"train.clip_norm", 0},
                              {"train.optimiser.kind", "sgd"},
                              {"train.diverged_loss", 8},
                              {"run.log_updates", 1}};
  const Names of_an_epoch = {"train.loss_sum"};
  expect_told(translate(with(diverging, {{"train.evaluate_updates", 1}})), {}, of_an_epoch);
  expect_told(classify(with(diverging, {{"train.evaluate_updates", 1}})), {}, of_an_epoch);
}

TEST_F(ResultNames, OfASmokeRunAreThoseOfItsFewUpdates) {
  const json question = {
      {"settings", translate({{"run.log_updates", 50}})}, {"folder", runs_.folder().string()}, {"smoke", true}};
  EXPECT_THAT(CheckBatch().answer(question.dump()).at("metrics"), testing::Not(testing::Contains("train.loss")));
}

TEST_F(ResultNames, AreToldWhileTheDataAreMissing) {
  const Settings absent = translate({{"data.train", "absent"}});
  EXPECT_EQ(answer_to(absent).at("state"), "waiting_data");
  EXPECT_EQ(answer_to(absent).at("scores"), answer_to(translate()).at("scores"));
}

}  // namespace
}  // namespace tearless::engine::result_names_test
