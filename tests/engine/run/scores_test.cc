// Every number that a run prints or stores, computed a second time in another way: perplexities and translations from
// the logits of one sentence after another, BLEU by counting, sums from the corpus.
#include <cmath>
#include <numeric>

#include "engine/data/batches.h"
#include "engine/data/prepared.h"
#include "engine/decode/search.h"
#include "engine/task/translate.h"
#include "engine/train/checkpoint.h"
#include "tests/engine/run/recomputed.h"
#include "tests/engine/run/scored.h"

namespace tearless::engine::scores_test {
namespace {

using test::lines_of;
namespace fs = std::filesystem;
using Rows = std::vector<std::vector<double>>;

constexpr int kUpdates = 60;

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream text(line);
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

/// matches 1 … 4, totals 1 … 4, length of the hypothesis and of the reference: each n-gram of the reference is crossed
/// out when it is found.
std::vector<int64_t> count_by_hand(const std::string& hypothesis, const std::string& reference) {
  const auto said = words_of(hypothesis), wanted = words_of(reference);
  std::vector<int64_t> counts(10);
  for (size_t n = 1; n <= 4; ++n) {
    std::vector<bool> crossed_out(wanted.size());
    for (size_t i = 0; i + n <= said.size(); ++i) {
      ++counts[4 + n - 1];
      for (size_t j = 0; j + n <= wanted.size(); ++j) {
        if (crossed_out[j] || !std::equal(said.begin() + i, said.begin() + i + n, wanted.begin() + j)) continue;
        crossed_out[j] = true;
        ++counts[n - 1];
        break;
      }
    }
  }
  counts[8] = static_cast<int64_t>(said.size());
  counts[9] = static_cast<int64_t>(wanted.size());
  return counts;
}

double bleu_by_hand(const std::vector<int64_t>& counts) {
  double precisions = 1;
  for (size_t n = 0; n < 4; ++n) {
    if (counts[4 + n] == 0) return 0;
    precisions *= static_cast<double>(counts[n]) / static_cast<double>(counts[4 + n]);
  }
  const auto said = static_cast<double>(counts[8]), wanted = static_cast<double>(counts[9]);
  return 100 * std::pow(precisions, 0.25) * (said < wanted ? std::exp(1 - wanted / said) : 1);
}

class Scored : public test::ScoredRun {
 protected:
  static void SetUpTestSuite() {
    // dev and test ask for words that training does not show there: BLEU is neither 0 nor 100.
    const auto write = [](const test::SmallRuns& runs) {
      using Pairs = std::vector<std::pair<std::string, std::string>>;
      runs.write("train", Pairs{{"a b c d e", "e d c b a"},
                                {"b a d c", "c d a b"},
                                {"e e a b c", "c b a e e"},
                                {"d a b e c", "c e b a d"},
                                {"c a e b d", "d b e a c"},
                                {"a c b d b e", "e b d b c a"}});
      runs.write("dev", Pairs{{"a b c d e", "e d c b a b"}, {"b a d c", "c d a b"}, {"d a b e c", "c e b a a"}});
      runs.write("test", Pairs{{"e e a b c", "c b a e d"},
                               {"a c b d b e", "e b d b c a"},
                               {"c a e b d", "d b e a c d e"},
                               {"b a d c", "c d a"}});
    };
    train(kUpdates,
          test::with(test::corpus_settings(), {{"text.kind", "segmented"},
                                               {"model.encoder_layers", 1},
                                               {"model.decoder_layers", 2},
                                               {"train.schedule.lr", 8e-3},
                                               {"decode.beam", 1},
                                               {"decode.max_extra", 4}}),
          write);
    prepared_ = new Prepared(
        prepare(test::translation(*options_).data, test::translation(*options_).text, [](const std::string&) {}));
  }
  static void TearDownTestSuite() {
    delete prepared_;
    ScoredRun::TearDownTestSuite();
  }

  /// The model with the parameters after that update; 0: the initial ones.
  struct StoredModel {
    Parameters parameters{options_->train.seed_for_init(), at::kCPU};
    Transformer transformer{parameters, test::translation(*options_).model,
                            OutputVocabulary::from(prepared_->vocabulary.in_target,
                                                   test::translation(*options_).model.mask_target_vocabulary),
                            /*dropout_seed=*/0};
    explicit StoredModel(int64_t step) {
      parameters.allocate();
      if (step > 0) Checkpoints(*run_).read_parameters(step, parameters.values(), /*buffers=*/2, /*carried_bytes=*/0);
    }
  };
  /// log p [T, K] of a batch, by the formulas of the operations, normalised here.
  static Rows log_probabilities(const Transformer& model, const PackedRows& source, const PackedRows& target) {
    Tape tape(Tape::Kind::kForward, Tape::Ops::kReference);
    const ForwardContext context{tape};
    const auto tables = model.prepare(context);
    const at::Tensor logits =
        model.logits(context, tables, target, model.encode(context, tables, source), source).data().to(at::kDouble);
    Rows rows;
    for (int64_t t = 0; t < logits.size(0); ++t) {
      const double* row = logits.const_data_ptr<double>() + t * logits.size(1);
      rows.emplace_back(row, row + logits.size(1));
      double sum = 0;
      for (const double value : rows.back()) sum += std::exp(value);
      for (double& value : rows.back()) value -= std::log(sum);
    }
    return rows;
  }

  struct Perplexities {
    double smoothed, plain;
  };
  /// Of a set, a sentence at a time.
  static Perplexities perplexities(int64_t step, const ParallelTokens& set) {
    const StoredModel stored(step);
    const Transformer& model = stored.transformer;
    double nll = 0, loss = 0;
    int64_t tokens = 0;
    for (int32_t line = 0; line < set.size(); ++line) {
      const ReadyBatch batch = model.ready(pack(set, std::vector{line}), std::nullopt);
      const Rows rows = log_probabilities(model, batch.source, batch.target);
      for (size_t t = 0; t < rows.size(); ++t) {
        const double gold = rows[t].at(static_cast<size_t>(batch.labels[t]));
        const double all = std::accumulate(rows[t].begin(), rows[t].end(), 0.0);
        nll -= gold;
        loss -= (1 - kSmoothing) * gold + kSmoothing / static_cast<double>(rows[t].size()) * all;
        ++tokens;
      }
    }
    EXPECT_EQ(tokens, set.target.offsets.back() + set.size()) << "every word, and an EOS a line";
    const auto count = static_cast<double>(tokens);
    return {std::exp(loss / count), std::exp(nll / count)};
  }

  /// Greedy search with a full forward over the prefix for each word.
  static std::vector<std::string> translations(int64_t step, const ParallelTokens& set) {
    const StoredModel stored(step);
    const Transformer& model = stored.transformer;
    std::vector<std::string> lines;
    for (int32_t line = 0; line < set.size(); ++line) {
      const PackedBatch batch = pack(set, std::vector{line});
      std::vector<int32_t> said;
      const size_t longest =
          batch.source.tokens.size() + static_cast<size_t>(test::translation(*options_).decode.max_extra);
      while (said.size() < longest) {
        PackedRows target;
        target.tokens = {kBos};
        target.tokens.insert(target.tokens.end(), said.begin(), said.end());
        target.positions.resize(target.tokens.size());
        std::iota(target.positions.begin(), target.positions.end(), 0);
        target.sentence_ids.assign(target.tokens.size(), 0);
        target.offsets = {0, static_cast<int32_t>(target.tokens.size())};
        const std::vector<double> row = log_probabilities(model, batch.source, target).back();
        const auto best = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
        const int32_t token = model.output_vocabulary().tokens[best];
        if (token == kEos) break;
        said.push_back(token);
      }
      lines.push_back(prepared_->to_text(said));
    }
    return lines;
  }

  static std::vector<int64_t> counts(const std::vector<std::string>& said, const std::vector<std::string>& wanted) {
    std::vector<int64_t> sum(10);
    for (size_t i = 0; i < said.size(); ++i) {
      const auto counted = count_by_hand(said[i], wanted[i]);
      for (size_t c = 0; c < sum.size(); ++c) sum[c] += counted[c];
    }
    return sum;
  }

  static inline Prepared* prepared_ = nullptr;
};

TEST_F(Scored, PerplexitiesAreThoseOfTheirSetAndStep) {
  for (const int64_t step : {int64_t{1}, int64_t{20}, selected(), int64_t{kUpdates}}) {
    const Perplexities dev = perplexities(step, prepared_->dev);
    EXPECT_CLOSE(metrics_["dev.ppl"][step], dev.plain);
    EXPECT_CLOSE(metrics_["dev.ppl_smoothed"][step], dev.smoothed);
    EXPECT_GT(std::abs(dev.plain - dev.smoothed), 0.01) << "or a mix-up would not show";
    // An epoch is one batch, of all pairs, before the update that is made of it.
    const Perplexities train = perplexities(step - 1, prepared_->train);
    EXPECT_CLOSE(metrics_["train.ppl"][step], train.plain);
    EXPECT_CLOSE(metrics_["train.ppl_smoothed"][step], train.smoothed);
    EXPECT_CLOSE(metrics_["train.loss"][step], std::log(train.smoothed));
  }
  const Perplexities test = perplexities(selected(), prepared_->test);
  EXPECT_CLOSE(score("test.ppl"), test.plain);
  EXPECT_CLOSE(score("test.ppl_smoothed"), test.smoothed);
  for (const char* name : {"dev.ppl", "dev.ppl_smoothed", "dev.bleu", "train.ppl", "train.ppl_smoothed"})
    EXPECT_EQ(score(name), metrics_[name][selected()]) << name;
}

TEST(Perplexity, IsAlwaysANumber) {
  EXPECT_NEAR(perplexity(10, 5), std::exp(2.0), 1e-12);
  EXPECT_TRUE(std::isfinite(perplexity(1e9, 1)));
  EXPECT_EQ(perplexity(0, 0), 0);
}

TEST_F(Scored, TranslationsAreThoseOfGreedySearch) {
  EXPECT_EQ(lines_of(run_->outputs() / "test.hyp"), translations(selected(), prepared_->test));
  EXPECT_EQ(lines_of(run_->outputs() / "dev.hyp"), translations(selected(), prepared_->dev));
}

TEST_F(Scored, BleuIsWhatTheTranslationsCount) {
  for (const char* set : {"dev", "test"}) {
    const auto references = lines_of(runs_->folder() / (std::string(set) + ".tgt"));
    const auto said = lines_of(run_->outputs() / (std::string(set) + ".hyp"));
    ASSERT_EQ(said.size(), references.size());
    const double bleu = bleu_by_hand(counts(said, references));
    EXPECT_NEAR(score(std::string(set) + ".bleu"), bleu, 1e-9) << set;
    EXPECT_GT(bleu, 5) << "too little is learnt for a comparison";
    EXPECT_LT(bleu, 99);

    const auto stats = lines_of(run_->outputs() / (std::string(set) + ".stats"));
    ASSERT_EQ(stats.size(), references.size() + 1);
    for (size_t i = 0; i < said.size(); ++i) {
      std::vector<int64_t> stored;
      for (const std::string& number : words_of(stats[i + 1])) stored.push_back(std::stoll(number));
      EXPECT_EQ(stored, count_by_hand(said[i], references[i])) << set << " " << i;
    }
    EXPECT_EQ(
        score(std::string(set) + ".bleu"),
        test::recomputed(std::string(set) + ".bleu", test::read_text(run_->outputs() / (std::string(set) + ".stats"))));
  }
  EXPECT_NE(score("dev.bleu"), score("test.bleu"));
}

TEST_F(Scored, DevBleuOfAStepIsThatOfItsTranslations) {
  const auto references = lines_of(runs_->folder() / "dev.tgt");
  for (const int64_t step : {20, 30, 40}) {
    EXPECT_NEAR(metrics_["dev.bleu"][step], bleu_by_hand(counts(translations(step, prepared_->dev), references)), 1e-9);
  }
}

TEST_F(Scored, TheSelectedStepIsTheLatestOfThoseWithTheBestPrintedBleu) {
  EXPECT_EQ(selected(), best_step("dev.bleu"));
}

TEST_F(Scored, LearnedLengthsAreThoseOfTheCheckpointOfTheirEvaluationAndOfTheSelectedOne) {
  const std::map<std::string, std::string> parameter_of = {
      {"g.encoder.1.self_attention", "encoder.1.self_attention.norm.gain"},
      {"g.encoder.1.ffn", "encoder.1.ffn.norm.gain"},
      {"g.encoder.final", "encoder.final.norm.gain"},
      {"g.decoder.1.self_attention", "decoder.1.self_attention.norm.gain"},
      {"g.decoder.1.cross_attention", "decoder.1.cross_attention.norm.gain"},
      {"g.decoder.1.ffn", "decoder.1.ffn.norm.gain"},
      {"g.decoder.2.self_attention", "decoder.2.self_attention.norm.gain"},
      {"g.decoder.2.cross_attention", "decoder.2.cross_attention.norm.gain"},
      {"g.decoder.2.ffn", "decoder.2.ffn.norm.gain"},
      {"g.decoder.final", "decoder.final.norm.gain"}};
  const auto is_length = [](const std::string& name) { return name.starts_with("g."); };
  size_t lengths = 0, logged = 0;
  for (const auto& [name, value] : scores_.items()) lengths += is_length(name);
  for (const auto& [name, values] : metrics_) {
    logged += is_length(name);
    if (is_length(name)) {
      EXPECT_EQ(values.size(), metrics_["dev.bleu"].size()) << name << " is not in every evaluation";
    }
  }
  EXPECT_EQ(lengths, parameter_of.size());
  EXPECT_EQ(logged, parameter_of.size());
  for (const int64_t step : {int64_t{1}, int64_t{20}, selected(), int64_t{kUpdates}}) {
    const StoredModel stored(step);
    const Parameters& parameters = stored.parameters;
    for (const auto& [name, parameter] : parameter_of) {
      const auto g = parameters.get(parameter).data().item<double>();
      EXPECT_EQ(metrics_[name][step], g) << name << " " << step;
      EXPECT_NE(g, 4.0) << name << " stands where it began: at √d_model";
      if (step == selected()) {
        EXPECT_EQ(score(name), g) << name;
      }
    }
  }
}

TEST_F(Scored, GradientNormsAreThoseReported) {
  const auto& norms = metrics_["train.grad_norm"];
  ASSERT_EQ(norms.size(), static_cast<size_t>(kUpdates));
  double sum = 0, largest = 0;
  for (const auto& [step, norm] : norms) {
    sum += norm;
    largest = std::max(largest, norm);
  }
  EXPECT_DOUBLE_EQ(score("train.grad_norm_mean"), sum / kUpdates);
  EXPECT_EQ(score("train.grad_norm_max"), largest);
}

TEST_F(Scored, CountsAreThoseOfWhatWasDone) {
  EXPECT_EQ(score("updates"), kUpdates);
  const auto bytes = fs::file_size(run_->checkpoints() / ("step-" + std::to_string(selected())) / "state.bin");
  EXPECT_EQ(score("parameters"), static_cast<double>(bytes) / 12) << "three buffers of four bytes each";
  EXPECT_EQ(scores_.size(), 10 + 8 + 5u) << "a score without a test: " << scores_.dump();

  int64_t rows = 0;
  for (const auto& pair : {lines_of(runs_->folder() / "train.src"), lines_of(runs_->folder() / "train.tgt")}) {
    for (const std::string& line : pair) rows += static_cast<int64_t>(words_of(line).size()) + 1;  // EOS, or BOS
  }
  EXPECT_NEAR(rows_seen(), static_cast<double>(kUpdates * rows), 1e-3);
}

TEST_F(Scored, DoneNamesEveryResult) {
  EXPECT_THAT(result_files(),
              testing::ElementsAre("gradient_norms.f32", "metrics.jsonl", "outputs/dev.hyp", "outputs/dev.stats",
                                   "outputs/test.hyp", "outputs/test.stats", "scores.json"));
}

}  // namespace
}  // namespace tearless::engine::scores_test
