// Whole trainings that must learn, or come out as they did: one batch by heart, words backwards, ten stored losses.
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/ops/random.h"
#include "engine/score/bleu.h"
#include "tests/engine/task/small_runs.h"

namespace tearless::engine {
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

TEST(Learning, OneBatchIsLearntByHeart) {
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

// Each output word hangs on a source word at the other end: without attention to the right places, in the right order,
// and without knowing what was said already, nothing near this score comes out.
TEST(Learning, WordsBackwards) {
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

  // What broken decoders would say: the source as it is, and the right words one place too early.
  std::vector<std::string> copied, early;
  for (const auto& [source, target] : test_pairs) {
    copied.push_back(source);
    early.push_back(target.substr(2));
  }
  EXPECT_LT(bleu_of(copied, test_pairs), 30);
  EXPECT_LT(bleu_of(early, test_pairs), 85);
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
  if (std::getenv("TEARLESS_BLESS")) {
    test::write_text(file,
                     json{{"numerics", kNumerics}, {"train.loss", losses}, {"train.grad_norm", norms}}.dump(2) + "\n");
    return;
  }
  const json stored = json::parse(test::read_text(file));
  ASSERT_EQ(stored.at("numerics"), kNumerics) << "new numbers need new losses: tools/bless.sh";
  ASSERT_EQ(losses.size(), 10u);
  for (size_t i = 0; i < losses.size(); ++i) {
    const double loss = stored.at("train.loss")[i], norm = stored.at("train.grad_norm")[i];
    EXPECT_NEAR(losses[i], loss, 1e-5 * loss) << "update " << i + 1 << "; if this is meant, raise kNumerics";
    EXPECT_NEAR(norms[i], norm, 1e-4 * norm) << "update " << i + 1;
  }
}

}  // namespace
}  // namespace tearless::engine
