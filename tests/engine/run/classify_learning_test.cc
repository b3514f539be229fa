// Whole trainings of a classifier that must learn: overfitting one batch, and a rule that depends on the order of
// words.
#include <gtest/gtest.h>

#include "engine/ops/random.h"
#include "tests/engine/run/small_runs.h"

namespace tearless::engine::classify_learning_test {
namespace {

using test::Ended;
using test::Labelled;
using test::Settings;
using test::with;

Settings small() {
  return with(test::labelled_settings(), {{"text.min_count", 1},
                                          {"model.layers", 2},
                                          {"model.d_model", 32},
                                          {"model.d_ff", 64},
                                          {"model.heads", 4},
                                          {"model.dropout.residual", 0.0},
                                          {"model.dropout.attention", 0.0},
                                          {"model.dropout.relu", 0.0},
                                          {"model.dropout.word", 0.0},
                                          {"model.dropout.pooled", 0.0},
                                          {"train.label_smoothing", 0.0},
                                          {"train.early_stop", 0}});
}

TEST(ClassifierLearning, OneBatchIsOverfitted) {
  test::SmallRuns runs;
  const RandomStream random(1, "sentences");
  std::vector<Labelled> nine;
  for (uint32_t i = 0; i < 9; ++i) {
    std::string line(1, static_cast<char>('a' + i));
    for (uint32_t n = 0; n < random.draw(0, 1, i, 0) % 6; ++n)
      line += std::string(" ") + static_cast<char>('a' + random.draw(n, 0, i, 0) % 9);
    nine.emplace_back(line, static_cast<int32_t>(random.draw(0, 2, i, 0) % 3));
  }
  for (const int32_t label : {0, 1, 2}) nine[static_cast<size_t>(label)].second = label;  // every class has a sentence
  for (const char* set : {"train", "dev", "test"}) runs.write_labelled(set, nine);
  const Ended ended = runs.train(with(small(), {{"data.classes", "bad good fair"},
                                                {"train.epoch_updates", 100},
                                                {"train.max_epochs", 1},
                                                {"train.schedule.kind", "nowarmup"},
                                                {"train.schedule.lr", 3e-3},
                                                {"run.log_updates", 1}}));
  const std::vector<double> losses = ended.metric("train.loss");
  EXPECT_GT(losses.front(), 0.8);
  EXPECT_LT(losses.back(), 0.01);
  EXPECT_EQ(ended.scores.at("dev.accuracy"), 100);
  EXPECT_EQ(ended.scores.at("test.accuracy"), 100);
  EXPECT_LT(ended.scores.at("test.loss").get<double>(), 0.01);
}

/// Six letters, one x and one y: of class 1 if x is before y. A model that sees which words there are, and not their
/// order, is right in half of the cases.
std::vector<Labelled> ordered(uint32_t count, uint32_t seed) {
  const RandomStream random(seed, "ordered");
  std::vector<Labelled> sentences;
  for (uint32_t i = 0; i < count; ++i) {
    std::string letters;
    for (uint32_t n = 0; n < 6; ++n) letters += static_cast<char>('a' + random.draw(n, 0, i, 0) % 4);
    const uint32_t x = random.draw(0, 1, i, 0) % 6, other = random.draw(1, 1, i, 0) % 5;
    const uint32_t y = other < x ? other : other + 1;
    letters[x] = 'x';
    letters[y] = 'y';
    std::string line;
    for (const char letter : letters) line += std::string(line.empty() ? "" : " ") + letter;
    sentences.emplace_back(line, x < y ? 1 : 0);
  }
  return sentences;
}

TEST(ClassifierLearning, TheOrderOfWords) {
  test::SmallRuns runs;
  runs.write_labelled("train", ordered(2000, 1));
  runs.write_labelled("dev", ordered(100, 2));
  runs.write_labelled("test", ordered(200, 3));
  const Ended ended = runs.train(with(small(), {{"model.dropout.residual", 0.1},
                                                {"train.batch.tokens", 384},
                                                {"train.epoch_updates", 200},
                                                {"train.max_epochs", 2},
                                                {"train.schedule.kind", "nowarmup"},
                                                {"train.schedule.lr", 2e-3}}));
  EXPECT_GT(ended.scores.at("test.accuracy").get<double>(), 95);
  EXPECT_GT(ended.scores.at("dev.accuracy").get<double>(), 95);
}

}  // namespace
}  // namespace tearless::engine::classify_learning_test
