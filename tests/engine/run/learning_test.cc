// Whole trainings that must learn: overfitting one batch, reversing words. And ten stored losses that must not change.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/score/bleu.h"
#include "engine/data/prepared.h"
#include "engine/ops/matmul.h"
#include "engine/ops/random.h"
#include "engine/task/translate.h"
#include "engine/train/execution.h"
#include "engine/train/trainer.h"
#include "tests/engine/run/small_runs.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::learning_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Ended;
using test::Settings;
using test::with;
using SentencePairs = std::vector<std::pair<std::string, std::string>>;

/// Lines of four to seven letters of eight, and the same backwards.
SentencePairs backwards(uint32_t count, uint32_t seed) {
  const RandomStream random(seed, "backwards");
  SentencePairs pairs;
  for (uint32_t i = 0; i < count; ++i) {
    std::string line;
    const uint32_t length = 4 + random.draw(0, 1, i, 0) % 4;
    for (uint32_t n = 0; n < length; ++n)
      line += std::string(n > 0 ? " " : "") + static_cast<char>('a' + random.draw(n, 0, i, 0) % 8);
    pairs.emplace_back(line, std::string(line.rbegin(), line.rend()));
  }
  return pairs;
}

Settings segmented() {
  return with(test::corpus_settings(), {{"text.kind", "segmented"},
                                        {"model.encoder_layers", 2},
                                        {"model.decoder_layers", 2},
                                        {"model.d_model", 32},
                                        {"model.d_ff", 64},
                                        {"model.heads", 4},
                                        {"model.dropout.residual", 0.0},
                                        {"model.dropout.attention", 0.0},
                                        {"model.dropout.relu", 0.0},
                                        {"model.dropout.word", 0.0},
                                        {"train.label_smoothing", 0.0},
                                        {"train.early_stop", 0},
                                        {"decode.beam", 2}});
}

double bleu_of(const std::vector<std::string>& hypotheses, const SentencePairs& pairs) {
  BleuStats sum;
  for (size_t i = 0; i < pairs.size(); ++i) sum += bleu_stats(hypotheses[i], pairs[i].second);
  return bleu(sum);
}

TEST(Learning, OneBatchIsOverfitted) {
  test::SmallRuns runs;
  const SentencePairs eight = backwards(8, 1);
  for (const char* set : {"train", "dev", "test"}) runs.write(set, eight);
  const Ended ended = runs.train(with(segmented(), {{"train.batch.tokens", 4096},
                                                    {"train.epoch_updates", 150},
                                                    {"train.max_epochs", 1},
                                                    {"train.schedule.kind", "nowarmup"},
                                                    {"train.schedule.lr", 3e-3},
                                                    {"run.log_updates", 10}}));
  const std::vector<double> losses = ended.metric("train.loss");
  EXPECT_GT(losses.front(), 1.0);
  EXPECT_LT(losses.back(), 0.02);
  EXPECT_EQ(ended.scores.at("test.bleu"), 100);
}

// Each output word depends on a source word at the other end: without attention to the right positions in the right
// order and without knowing what was said already, nothing near this score comes out.
TEST(Learning, WordsBackwards) {
  if (tearless::test::kSanitized) GTEST_SKIP() << "a minute under the sanitizers, of code that others run";
  test::SmallRuns runs;
  runs.write("train", backwards(3000, 1));
  runs.write("dev", backwards(30, 2));
  const SentencePairs test_pairs = backwards(50, 3);
  runs.write("test", test_pairs);
  const Ended ended = runs.train(with(segmented(), {{"train.batch.tokens", 512},
                                                    {"train.epoch_updates", 300},
                                                    {"train.max_epochs", 2},
                                                    {"train.schedule.kind", "invsqrt"},
                                                    {"train.schedule.warmup_updates", 100},
                                                    {"train.schedule.scale", 0.3}}));
  EXPECT_GT(ended.scores.at("test.bleu").get<double>(), 90);

  // What broken decoders would say: the source as it is, and the right words one position too early.
  std::vector<std::string> copied, early;
  for (const auto& [source, target] : test_pairs) {
    copied.push_back(source);
    early.push_back(target.substr(2));
  }
  EXPECT_LT(bleu_of(copied, test_pairs), 30);
  EXPECT_LT(bleu_of(early, test_pairs), 85);
}

TEST(Learning, Bf16ScoresWithinSeedNoiseOfFp32) {
  if (tearless::test::kSanitized) GTEST_SKIP() << "a minute under the sanitizers, of code that others run";
  if (!this_processor().bf16) GTEST_SKIP() << "this processor has no AVX512_BF16";
  test::SmallRuns runs;
  runs.write("train", backwards(600, 1));
  runs.write("dev", backwards(60, 2));
  runs.write("test", backwards(10, 3));
  const auto dev_bleu = [&](int64_t seed, bool narrow) {
    RunOptions options = runs.options(with(segmented(), {{"model.encoder_layers", 1},
                                                         {"model.decoder_layers", 1},
                                                         {"train.seed", seed},
                                                         {"train.batch.tokens", 256},
                                                         {"train.epoch_updates", 200},
                                                         {"train.max_epochs", 1},
                                                         {"train.schedule.kind", "nowarmup"},
                                                         {"train.schedule.lr", 4e-3}}));
    if (narrow) options.run.precision = ExecutionOptions::Precision::kBf16;
    prepare_processor(options.run);
    Translate task = test::translate_task(options);
    const RunDirectory run(runs.folder() / fmt::format("{}{}", narrow ? "bf16-" : "fp32-", seed));
    fs::create_directories(run.root());
    Trainer(task, options.train, options.run, run, run.make_attempt()).run();
    return json::parse(test::read_text(run.scores())).at("dev.bleu").get<double>();
  };
  std::vector<double> wide, narrow;
  for (const int64_t seed : {1, 2, 3, 4}) wide.push_back(dev_bleu(seed, false));
  for (const int64_t seed : {1, 2, 3, 4}) narrow.push_back(dev_bleu(seed, true));
  use_bf16_matmuls(false);
  const auto [lowest, highest] = std::minmax_element(wide.begin(), wide.end());
  const double noise = *highest - *lowest;
  fmt::print("dev BLEU by seed: fp32 {:.1f}, bf16 {:.1f}\n", fmt::join(wide, " "), fmt::join(narrow, " "));
  EXPECT_GT(*lowest, 15) << "too little is learnt for a comparison";
  for (const double bleu : narrow) {
    EXPECT_GT(bleu, *lowest - noise);
    EXPECT_LT(bleu, *highest + noise);
  }
}

/// Ten updates with everything switched on.
Settings guarded() {
  return with(test::corpus_settings(), {{"text.kind", "bpe"},
                                        {"text.merges", 4},
                                        {"model.encoder_layers", 2},
                                        {"model.decoder_layers", 1},
                                        {"model.d_model", 16},
                                        {"model.d_ff", 24},
                                        {"model.heads", 2},
                                        {"model.fix_norm", true},
                                        {"model.norm.kind", "scale_norm"},
                                        {"model.dropout.residual", 0.2},
                                        {"model.dropout.attention", 0.1},
                                        {"model.dropout.relu", 0.1},
                                        {"model.dropout.word", 0.1},
                                        {"train.seed", 3},
                                        {"train.batch.tokens", 100},
                                        {"train.epoch_updates", 10},
                                        {"train.max_epochs", 1},
                                        {"train.schedule.scale", 0.5},
                                        {"train.schedule.warmup_updates", 20},
                                        {"run.log_updates", 1}});
}

// tests/golden/numerics.json holds kNumerics and what it stands for. The tolerance lets another processor pass, and no
// other algorithm. Where a change of results is meant: kNumerics + 1, then tools/bless.sh.
TEST(NumericsGolden, TheSameSettingsStillGiveTheSameTraining) {
  test::SmallRuns runs;
  for (const char* set : {"train", "dev", "test"}) runs.write(set, backwards(60, 7));
  const Ended ended = runs.train(guarded());
  const std::vector<double> losses = ended.metric("train.loss"), norms = ended.metric("train.grad_norm");
  const fs::path file = tearless::test::source_root() / "tests/golden/numerics.json";
  const json stored = json::parse(test::read_text(file));
  // The numbers of one kNumerics stay: another processor's last digits are no change.
  if (std::getenv("TEARLESS_BLESS") && stored.at("numerics") != kNumerics) {
    test::write_text(file,
                     json{{"numerics", kNumerics}, {"train.loss", losses}, {"train.grad_norm", norms}}.dump(2) + "\n");
    return;
  }
  ASSERT_EQ(stored.at("numerics"), kNumerics) << "new numbers need new losses: tools/bless.sh";
  ASSERT_EQ(losses.size(), 10u);
  for (size_t i = 0; i < losses.size(); ++i) {
    const double loss = stored.at("train.loss")[i], norm = stored.at("train.grad_norm")[i];
    EXPECT_NEAR(losses[i], loss, 1e-5 * loss) << "update " << i + 1 << "; if this is meant, raise kNumerics";
    EXPECT_NEAR(norms[i], norm, 1e-4 * norm) << "update " << i + 1;
  }
}

}  // namespace
}  // namespace tearless::engine::learning_test
