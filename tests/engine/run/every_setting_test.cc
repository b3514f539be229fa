// The rows of translation's settings, and of those that every task has.
#include "tests/engine/run/every_setting.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <spdlog/sinks/ostream_sink.h>

#include <cctype>
#include <set>

#include "base/words.h"
#include "engine/data/batches.h"
#include "engine/data/prepared.h"
#include "engine/ops/matmul.h"
#include "engine/run/check.h"
#include "engine/score/metric.h"
#include "engine/task/translate.h"
#include "engine/train/execution.h"
#include "engine/train/schedule.h"
#include "tests/engine/run/recomputed.h"
#include "tests/support/error_of.h"

namespace tearless::engine {
namespace {

const char* const kOtherMatmulLibrary =
    matmul_library_for(this_processor(), why_no_openblas().empty()) == MatmulLibrary::kMkl ? "openblas" : "mkl";

using nlohmann::json;
using test::Change;
using test::Ended;
using test::recomputed;
using test::Settings;
using test::with;
using testing::HasSubstr;

/// `count` pairs of up to six words over a small alphabet; the target is the source backwards, without its words in q.
std::vector<std::pair<std::string, std::string>> made_up_pairs(int count, uint32_t seed) {
  const std::vector<std::string> words = {"a", "ba", "cab", "dab", "qad", "abba", "cd", "qb"};
  const RandomStream random(seed, "made up");
  std::vector<std::pair<std::string, std::string>> pairs;
  for (int i = 0; i < count; ++i) {
    const auto draw = [&](uint32_t n) { return random.draw(n, 0, static_cast<uint32_t>(i), 0); };
    std::string source, target;
    for (uint32_t n = 0; n < 2 + draw(99) % 5; ++n) {
      const std::string& word = words[n == 0 ? 1 : draw(n) % words.size()];
      source += (n > 0 ? " " : "") + word;
      if (word[0] != 'q') target = word + (target.empty() ? "" : " ") + target;
    }
    pairs.emplace_back(source, target);
  }
  return pairs;
}

Settings nowarmup() { return {{"train.schedule.kind", "nowarmup"}, {"train.schedule.lr", 0.01}}; }

/// Learning rates that grow until the dev loss rises, while dev BLEU is 0 at each evaluation.
Settings getting_worse() { return {{"train.schedule.peak_lr", 10}, {"train.schedule.warmup_updates", 20}}; }

Settings of_kind(const char* schedule) { return {{"train.schedule.kind", schedule}, {"train.schedule.peak_lr", 0.02}}; }

Settings in_buffers() { return {{"train.batch.regenerate", "buffers"}}; }

class TranslateSettings final : public test::SettingChecks {
 public:
  static constexpr const char* kTask = "translate";
  static constexpr bool kHasCommonRows = true;
  static Settings small();
  static const test::SettingRows<TranslateSettings>& rows();
  static std::vector<Settings> contexts();
  static std::vector<std::string> conditional();

  TranslateSettings() {
    for (const auto& [set, count] : {std::pair("train", 40), std::pair("dev", 6), std::pair("test", 6)}) {
      runs_.write(set, made_up_pairs(count, fnv1a32(set)));
      std::string reversed, forward;  // the same sets with other suffixes and other contents
      for (const auto& [source, target] : made_up_pairs(count, 5)) {
        reversed += target + "\n";
        forward += source + "\n";
      }
      test::write_text(runs_.folder() / (std::string(set) + ".reversed"), reversed);
      test::write_text(runs_.folder() / (std::string(set) + ".forward"), forward);
    }
    runs_.write("other", made_up_pairs(40, 6));
    runs_.write("unseen", {{"ba qad", "qad ba"}});  // of the training text the source alone has qad
  }

  void outputs_differ(const Change& c) {
    EXPECT_EQ(trained(c.before).metric("train.loss"), trained(c.after).metric("train.loss"));
    EXPECT_NE(trained(c.before).outputs.at("test.hyp"), trained(c.after).outputs.at("test.hyp"));
  }
  /// Each sentence has that many lines, of which the first is the hypothesis.
  void lists_are_written(const Change& c) {
    EXPECT_FALSE(trained(c.before).outputs.contains("test.nbest"));
    const std::vector<std::string_view> hypotheses = split_lines(trained(c.after).outputs.at("test.hyp"));
    const std::vector<std::string_view> lists = split_lines(trained(c.after).outputs.at("test.nbest"));
    ASSERT_EQ(lists.size(), 2 * hypotheses.size());
    for (size_t line = 0; line < lists.size(); ++line) {
      const std::string begin = fmt::format("{} ||| ", line / 2);
      EXPECT_TRUE(lists[line].starts_with(begin)) << lists[line];
      if (line % 2 > 0) continue;
      EXPECT_TRUE(lists[line].starts_with(fmt::format("{}{} ||| -", begin, hypotheses[line / 2]))) << lists[line];
      const auto score = [&](size_t at) { return std::stod(std::string(lists[at].substr(lists[at].rfind(' ') + 1))); };
      EXPECT_GE(score(line), score(line + 1));
    }
  }
  /// Under names of its own, with the score of sacreBLEU's tokeniser for the translations that the run leaves.
  void bleu_is_of_characters(const Change& c) {
    EXPECT_EQ(trained(c.before).metric("train.loss"), trained(c.after).metric("train.loss"));
    const Ended& after = trained(c.after);
    EXPECT_TRUE(after.metric("dev.bleu").empty());
    EXPECT_FALSE(after.scores.contains("test.bleu"));
    EXPECT_EQ(after.metric("dev.bleu_char").size(), trained(c.before).metric("dev.bleu").size());
    std::unique_ptr<TextMetric> metric = text_metrics().at("sacrebleu").clone();
    read_settings({.values = {{"tokeniser", "char"}}, .locations = {}, .name = "test"},
                  [&](SettingsVisitor& v) { metric->describe(v); });
    for (const char* set : {"dev", "test"}) {
      const std::string references = test::read_text(runs_.folder() / (std::string(set) + ".tgt"));
      const double score =
          score_text(*metric, split_lines(after.outputs.at(std::string(set) + ".hyp")), split_lines(references)).value;
      EXPECT_NEAR(after.scores.at(std::string(set) + ".bleu_char").get<double>(), score, 1e-9);
      int64_t letters = 0, counted = 0;
      for (const char c : references) letters += c != ' ' && c != '\n';
      const std::vector<std::string_view> stats = split_lines(after.outputs.at(std::string(set) + ".stats"));
      for (size_t i = 1; i < stats.size(); ++i) {
        counted += std::stoll(std::string(stats[i].substr(stats[i].rfind('\t') + 1)));
      }
      EXPECT_EQ(counted, letters) << "the lengths of the references";
      const std::string name = std::string(set) + ".bleu_char";
      EXPECT_EQ(after.scores.at(name).get<double>(), recomputed(name, after.outputs.at(std::string(set) + ".stats")));
    }
  }
  void length_differs(const Change& c) {
    EXPECT_NE(trained(c.before).done.at("step"), trained(c.after).done.at("step"));
  }
  /// The same updates, with evaluations elsewhere.
  void evaluations_differ(const Change& c) {
    EXPECT_EQ(trained(c.before).metric("train.loss"), trained(c.after).metric("train.loss"));
    EXPECT_EQ(trained(c.before).metric("dev.ppl").size(), 2u);
    EXPECT_EQ(trained(c.after).metric("dev.ppl").size(), 3u);
  }
  /// The same training, another model.
  void model_differs(const Change& c) {
    EXPECT_EQ(trained(c.before).metrics, trained(c.after).metrics);
    EXPECT_NE(trained(c.before).scores.at("test.ppl"), trained(c.after).scores.at("test.ppl"));
  }
  void learning_rates_differ(const Change& c) { EXPECT_NE(learning_rates(c.before), learning_rates(c.after)); }
  /// The task decides which settings there are, so it is not changed alone.
  void the_settings_of_both_tasks_are_named(const Change& c) {
    EXPECT_EQ(tearless::test::error_of([&] { runs_.options(c.after); }),
              "settings: data.source is a setting of task = \"translate\", but the task is \"classify\"; remove it, "
              "or set the task");
  }

  void parameters_are_on_the_device(const Change& c) {
    const RunOptions options = runs_.options(c.after);
    try {
      const std::unique_ptr<Task> task = test::task_of(options);
      EXPECT_FALSE(task->parameters().values().is_cpu());
    } catch (const c10::Error& error) {  // no such device here
      EXPECT_THAT(error.what_without_backtrace(), HasSubstr("CUDA"));
    }
  }
  void formulas_are_used(const Change& c) {
    EXPECT_EQ(trained(c.before).measured.at("fallback_ops"), 0);
    std::ostringstream log;
    const auto before = spdlog::default_logger();
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
    EXPECT_GT(trained(c.after).measured.at("fallback_ops"), 0);
    spdlog::set_default_logger(before);
    EXPECT_THAT(log.str(), HasSubstr("operations of an update run by their formulas, which is slow: run.ops = "
                                     "\"reference\" asks for it"));
    EXPECT_THAT(trained(c.after).metric("train.loss"),
                testing::Pointwise(testing::DoubleNear(1e-3), trained(c.before).metric("train.loss")));
  }
  void matmuls_are_bf16(const Change& c) {
    if (!this_processor().bf16) GTEST_SKIP() << "this processor has no AVX512_BF16";
    EXPECT_THAT(trained(c.after).arithmetic,
                testing::MatchesRegex(this_processor().amx ? "oneDNN [0-9.]+ bf16 AMX\n" : "oneDNN [0-9.]+ bf16\n"));
    EXPECT_NE(trained(c.after).metric("train.loss"), trained(c.before).metric("train.loss"));
    EXPECT_THAT(trained(c.after).metric("train.loss"),
                testing::Pointwise(testing::DoubleNear(0.02), trained(c.before).metric("train.loss")));
    EXPECT_EQ(trained(c.after).measured.at("fallback_ops"), 0);
  }

  // Local settings: the results stay the same, byte for byte, and something else changes.
  void threads_are_used(const Change& c) {
    EXPECT_EQ(trained(c.after).measured.at("threads"), c.after.at("run.threads"));
    EXPECT_EQ(trained(c.before).metrics, trained(c.after).metrics);
    same_results(c);
  }
  void matmul_library_is_used(const Change& c) {
    if (const std::string why = why_no_openblas(); !why.empty()) GTEST_SKIP() << "without OpenBLAS: " << why;
    EXPECT_NE(trained(c.before).arithmetic, trained(c.after).arithmetic);
    EXPECT_THAT(trained(c.after).metric("train.loss"),
                testing::Pointwise(testing::DoubleNear(1e-3), trained(c.before).metric("train.loss")));
  }
  void reports_are_fewer(const Change& c) {
    EXPECT_EQ(trained(c.before).metric("train.loss").size(), 6u);
    EXPECT_EQ(trained(c.after).metric("train.loss").size(), 3u);
    same_results(c);
  }
  void the_early_stop_is_logged(const Change& c) {
    EXPECT_TRUE(trained(c.before).metric("would_stop.dev.bleu").empty());
    EXPECT_EQ(trained(c.after).metric("would_stop.dev.bleu").size(), 1u);
    same_results(c);
  }
  /// The other metrics are as they were.
  void more_is_logged(const Change& c, const std::string& series, size_t at_least) {
    std::string others;
    std::map<std::string, std::vector<double>> logged;
    std::istringstream lines(trained(c.after).metrics);
    for (std::string line; std::getline(lines, line);) {
      const json record = json::parse(line);
      const std::string name = record.at("name");
      const bool more =
          name.starts_with("grad_norm.") || name.starts_with("step_norm.") || name.starts_with(series + ".");
      more ? logged[name].push_back(record.at("value")) : void(others += line + "\n");
    }
    EXPECT_EQ(others, trained(c.before).metrics);
    same_results(c);
    size_t of_series = 0;
    const std::vector<double> norms = trained(c.after).metric("train.grad_norm");
    std::vector<double> squares(norms.size());
    for (const auto& [name, values] : logged) {
      of_series += name.starts_with(series + ".");
      // The output bias begins at 0: it has no ratio at first.
      if (!name.starts_with("update_ratio.output")) {
        EXPECT_EQ(values.size(), norms.size()) << name;
      }
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_GT(values[i], 0) << name;
        if (name.starts_with("grad_norm.")) squares[i] += values[i] * values[i];
      }
    }
    EXPECT_GE(of_series, at_least);
    if (series != "update_ratio") return;
    for (size_t i = 0; i < norms.size(); ++i) EXPECT_NEAR(std::sqrt(squares[i]), norms[i], 1e-5 * norms[i]);
  }
  void groups_are_logged(const Change& c) { more_is_logged(c, "update_ratio", 8); }
  void variances_are_logged(const Change& c) { more_is_logged(c, "variance", 5); }
  /// Of reports of two updates: the means of what reports of one update say.
  void window_means_are_logged(const Change& c) {
    more_is_logged(c, "grad_norm_window_mean", 8);
    const test::Ended single = trained(test::with(c.after, {{"run.log_updates", 1}, {"observe.groups", true}}));
    for (const char* group : {"encoder.1.ffn", "embedding.shared"}) {
      const std::vector<double> norms = single.metric(std::string("grad_norm.") + group),
                                means = trained(c.after).metric(std::string("grad_norm_window_mean.") + group);
      ASSERT_EQ(norms.size(), 6u);
      ASSERT_EQ(means.size(), 3u);
      for (size_t i = 0; i < means.size(); ++i) {
        EXPECT_DOUBLE_EQ(means[i], (norms[2 * i] + norms[2 * i + 1]) / 2) << group;
      }
    }
  }
  void groups_are_of_layers(const Change& c) {
    const std::vector<double> layer = trained(c.after).metric("grad_norm.encoder.1"),
                              attention = trained(c.before).metric("grad_norm.encoder.1.self_attention"),
                              ffn = trained(c.before).metric("grad_norm.encoder.1.ffn");
    ASSERT_EQ(layer.size(), 6u);
    for (size_t i = 0; i < layer.size(); ++i) EXPECT_NEAR(layer[i], std::hypot(attention[i], ffn[i]), 1e-6 * layer[i]);
    EXPECT_TRUE(trained(c.after).metric("grad_norm.encoder.1.ffn").empty());
    EXPECT_EQ(trained(c.after).metric("grad_norm.embedding.shared"),
              trained(c.before).metric("grad_norm.embedding.shared"));
    same_results(c);
  }
  void only_these_groups_are_logged(const Change& c) {
    for (const char* metric : {"grad_norm.", "step_norm.", "update_ratio."}) {
      const std::string chosen = std::string(metric) + "encoder.1.ffn",
                        other = std::string(metric) + "embedding.shared";
      EXPECT_EQ(trained(c.after).metric(chosen), trained(c.before).metric(chosen));
      EXPECT_FALSE(trained(c.after).metric(chosen).empty());
      EXPECT_TRUE(trained(c.after).metric(other).empty());
      EXPECT_FALSE(trained(c.before).metric(other).empty());
    }
    same_results(c);
  }
  void checkpoints_are_retained(const Change& c) {
    EXPECT_EQ(trained(c.before).checkpoints.size() + 1, trained(c.after).checkpoints.size());
    same_results(c);
  }
  void checkpoints_are_fewer(const Change& c) {
    EXPECT_LT(trained(c.after).checkpoints.size(), trained(c.before).checkpoints.size());
    same_results(c);
  }
  void decoding_batches_differ(const Change& c) {
    const RunOptions before = runs_.options(c.before), after = runs_.options(c.after);
    const Translate task = test::translate_task(after);
    const ParallelTokens& dev = task.prepared().dev;
    EXPECT_NE(decoding_batches(dev, test::translation(before).decode.batch_tokens).size(),
              decoding_batches(dev, test::translation(after).decode.batch_tokens).size());
    same_results(c);
  }

 private:
  Settings training_data_elsewhere() override {
    for (const char* side : {".src", ".tgt"}) {
      test::write_text(runs_.folder() / (std::string("copy") + side),
                       test::read_text(runs_.folder() / (std::string("train") + side)));
    }
    return {{"data.train", "copy"}};
  }

  void same_results(const Change& c) { EXPECT_TRUE(trained(c.before).same_results(trained(c.after))); }

  std::vector<double> learning_rates(const Settings& settings) const {
    const RunOptions options = runs_.options(settings);
    Schedule schedule(options.train.schedule, test::translation(options).model.d_model, options.train.update_limit());
    std::vector<double> learning_rates;
    int64_t update = 0;
    for (const double bleu : {9.0, 8.0, 8.5, 8.4, 8.2, 7.0, 10.0, 9.0}) {
      learning_rates.push_back(schedule.learning_rate(++update));
      schedule.on_evaluation(bleu, update);
    }
    return learning_rates;
  }
};

/// Six updates of a tiny model in which everything is switched on.
Settings TranslateSettings::small() {
  return with(with(test::corpus_settings(), test::tiny_layers_and_training()), {{"text.kind", "bpe"},
                                                                                {"text.merges", 6},
                                                                                {"model.encoder_layers", 1},
                                                                                {"model.decoder_layers", 1},
                                                                                {"decode.beam", 3},
                                                                                {"decode.max_extra", 6}});
}

const test::SettingRows<TranslateSettings>& TranslateSettings::rows() {
  using Checks = TranslateSettings;
  static const test::SettingRows<Checks> all = [] {
    test::SettingRows<Checks> rows = {
        {"task", {"classify", &Checks::the_settings_of_both_tasks_are_named}},
        {"data.source", {"reversed", &Checks::bytes_count}},
        {"data.target", {"forward", &Checks::bytes_count}},
        {"data.train_count", {20, &Checks::training_differs}},
        {"text.kind", {"segmented", &Checks::training_differs}},
        {"text.vocabulary", {"per_side", &Checks::training_differs, {{"model.tied_embeddings", "target"}}}},
        {"text.min_count", {20, &Checks::training_differs}},
        {"text.merges", {2, &Checks::training_differs}},
        {"text.pieces", {18, &Checks::training_differs, {{"text.kind", "sentencepiece"}, {"text.pieces", 22}}}},
        {"text.learned", {"per_side", &Checks::training_differs}},
        {"text.split_unseen", {false, &Checks::training_differs, {{"data.dev", "unseen"}, {"text.merges", 30}}}},
        {"text.bleu", {"char", &Checks::bleu_is_of_characters}},
        {"model.encoder_layers", {2, &Checks::training_differs}},
        {"model.encoder_sublayers", {"ffn, self_attention", &Checks::training_differs}},
        {"model.decoder_sublayers", {"cross_attention, ffn", &Checks::training_differs}},
        {"model.decoder_layers", {2, &Checks::training_differs}},
        {"model.ds_init.stacks", {"decoder", &Checks::training_differs, test::ds_init()}},
        {"model.tied_embeddings", {"none", &Checks::training_differs}},
        {"model.init_pad",
         {"zero",
          &Checks::training_differs,
          {{"model.mask_target_vocabulary", false}, {"train.label_smoothing_form", "fairseq"}}}},
        {"model.init_output_pad",
         {"random",
          &Checks::training_differs,
          {{"model.init_output_pad", "zero"},
           {"model.init", "fairseq"},
           {"model.tied_embeddings", "none"},
           {"model.mask_target_vocabulary", false},
           {"train.label_smoothing_form", "fairseq"}}}},
        {"model.decoder_start", {"zero", &Checks::training_differs}},
        {"model.language_embedding", {true, &Checks::training_differs}},
        {"model.input_vector", {true, &Checks::training_differs}},
        {"model.output_bias", {false, &Checks::training_differs}},
        {"model.mask_target_vocabulary", {false, &Checks::training_differs}},
        {"model.special_outputs", {true, &Checks::training_differs, {{"model.mask_target_vocabulary", false}}}},
        {"model.norm.scope", {"encoder", &Checks::training_differs, {{"model.norm.kind", "rms_norm"}}}},
        {"train.seed", {2, &Checks::training_differs}},
        {"train.init_seed", {2, &Checks::training_differs}},
        {"train.order_seed", {2, &Checks::training_differs}},
        {"train.dropout_seed", {2, &Checks::training_differs}},
        {"train.epoch_updates", {2, &Checks::length_differs}},
        {"train.evaluate_updates", {2, &Checks::evaluations_differ}},
        {"train.max_epochs", {1, &Checks::length_differs}},
        {"train.max_updates", {4, &Checks::length_differs}},
        {"train.early_stop", {1, &Checks::length_differs, {{"train.max_epochs", 4}}}},
        {"train.min_lr", {0.1, &Checks::length_differs, nowarmup()}},
        {"train.label_smoothing", {0.3, &Checks::training_differs}},
        {"train.label_smoothing_form", {"zero", &Checks::training_differs, {{"model.mask_target_vocabulary", false}}}},
        {"train.loss_mean", {"sentences", &Checks::training_differs}},
        {"train.diverged_loss", {1e-3, &Checks::length_differs}},
        {"train.clip_norm", {0.01, &Checks::training_differs}},
        {"train.batch.count", {"padded_sum", &Checks::training_differs}},
        {"train.batch.regenerate", {"once", &Checks::training_differs}},
        {"train.batch.buffer", {7, &Checks::training_differs, in_buffers()}},
        {"train.batch.leak_ratio",
         {0.4, &Checks::training_differs,
          with(in_buffers(), {{"train.batch.buffer", 1}, {"train.batch.leak_ratio", 0.0}})}},
        {"train.batch.truncate", {3, &Checks::training_differs}},
        {"train.select.kind", {"last", &Checks::model_differs, with(getting_worse(), {{"train.select.by", "loss"}})}},
        {"train.select.count", {2, &Checks::model_differs}},
        {"train.select.by", {"loss", &Checks::model_differs, getting_worse()}},
        {"train.schedule.kind", {"valdecay", &Checks::training_differs}},
        {"train.schedule.scale", {0.2, &Checks::training_differs}},
        {"train.schedule.warmup_updates", {5, &Checks::training_differs}},
        {"train.schedule.lr", {0.02, &Checks::training_differs, nowarmup()}},
        {"train.schedule.peak_lr", {0.02, &Checks::training_differs}},
        {"train.schedule.decay_factor", {0.5, &Checks::learning_rates_differ, nowarmup()}},
        {"train.schedule.decay_patience", {2, &Checks::learning_rates_differ, nowarmup()}},
        {"train.schedule.decay_rule", {"best_patience", &Checks::learning_rates_differ, nowarmup()}},
        {"train.schedule.inverse_sqrt.init_lr", {0.01, &Checks::training_differs, of_kind("inverse_sqrt")}},
        {"train.schedule.cosine.floor", {0.005, &Checks::training_differs, of_kind("cosine")}},
        {"train.optimiser.kind", {"fairseq_adam", &Checks::training_differs}},
        {"train.optimiser.weight_decay", {0.5, &Checks::training_differs}},
        {"train.optimiser.l2", {0.5, &Checks::training_differs}},
        {"train.optimiser.adagrad.eps", {0.1, &Checks::training_differs, {{"train.optimiser.kind", "adagrad"}}}},
        {"train.optimiser.sgd.momentum", {0.9, &Checks::training_differs, {{"train.optimiser.kind", "sgd"}}}},
        {"train.accumulate", {2, &Checks::training_differs}},
        {"train.accumulate_by", {"batches", &Checks::training_differs, {{"train.accumulate", 2}}}},
        {"train.adam.beta1", {0.5, &Checks::training_differs}},
        {"train.adam.beta2", {0.9, &Checks::training_differs}},
        {"train.adam.eps", {0.1, &Checks::training_differs}},
        {"decode.beam", {1, &Checks::outputs_differ}},
        {"decode.alpha", {8, &Checks::outputs_differ}},
        {"decode.max_extra", {1, &Checks::outputs_differ, {{"decode.alpha", 8}}}},
        {"decode.max_length", {2, &Checks::outputs_differ}},
        {"decode.search", {"fairseq", &Checks::outputs_differ, {{"decode.alpha", 8}}}},
        {"decode.stop", {"batch", &Checks::outputs_differ, {{"decode.search", "t2t"}, {"decode.alpha", 8}}}},
        {"decode.length_penalty", {"length", &Checks::outputs_differ, {{"decode.alpha", 1.5}}}},
        {"decode.n_best", {2, &Checks::lists_are_written}},
        {"decode.batch_tokens", {1, &Checks::decoding_batches_differ}},
        {"run.device", {"cuda", &Checks::parameters_are_on_the_device}},
        {"run.precision", {"bf16", &Checks::matmuls_are_bf16}},
        {"run.ops", {"reference", &Checks::formulas_are_used}},
        {"run.threads", {2, &Checks::threads_are_used}},
        {"run.matmul", {kOtherMatmulLibrary, &Checks::matmul_library_is_used}},
        {"run.log_updates", {2, &Checks::reports_are_fewer}},
        {"observe.early_stop", {1, &Checks::the_early_stop_is_logged, {{"train.max_epochs", 4}}}},
        {"observe.groups", {true, &Checks::groups_are_logged}},
        {"observe.variances", {true, &Checks::variances_are_logged}},
        {"observe.window_means", {true, &Checks::window_means_are_logged, {{"run.log_updates", 2}}}},
        {"observe.group_by", {"layer", &Checks::groups_are_of_layers, {{"observe.groups", true}}}},
        {"observe.only", {"encoder.1.ffn", &Checks::only_these_groups_are_logged, {{"observe.groups", true}}}},
        {"run.keep_checkpoints", {2, &Checks::checkpoints_are_retained, {{"train.max_epochs", 4}}}},
        {"run.checkpoint_share", {0, &Checks::checkpoints_are_fewer, {{"run.keep_checkpoints", 1000}}}},
    };
    rows.merge(test::text_rows<Checks>());
    return rows;
  }();
  return all;
}

std::vector<Settings> TranslateSettings::contexts() {
  return {
      {{"train.schedule.kind", "invsqrt"}},
      {{"train.schedule.kind", "nowarmup"}},
      {{"train.schedule.peak_lr", 0.01}},
      {{"train.schedule.kind", "valdecay"}, {"train.schedule.peak_lr", 0.01}},
      {{"train.schedule.kind", "nowarmup"}, {"train.schedule.peak_lr", 0.01}},
      of_kind("inverse_sqrt"),
      of_kind("cosine"),
      {{"train.optimiser.kind", "sgd"}},
      {{"train.optimiser.kind", "adagrad"}},
      {{"train.select.kind", "last"}},
      {{"train.label_smoothing", 0.0}},
      {{"model.norm.kind", "none"}},
      {{"model.init", "small_init"}},
      {{"model.init", "fairseq"}},
      {{"text.kind", "bpe"}},
      {{"text.kind", "segmented"}},
      {{"decode.beam", 1}},
      {{"decode.max_length", 5}},
      {{"train.init_seed", 5}, {"train.order_seed", 6}, {"train.dropout_seed", 7}},
  };
}

std::vector<std::string> TranslateSettings::conditional() {
  return {"decode.alpha",
          "decode.length_penalty",
          "decode.max_extra",
          "model.ds_init.alpha",
          "model.ds_init.form",
          "model.ds_init.stacks",
          "model.init_output_pad",
          "model.init_pad",
          "model.init_qkv_fan",
          "model.init_std",
          "model.norm.deviation",
          "model.norm.eps",
          "model.norm.eps_mode",
          "model.norm.scope",
          "text.learned",
          "text.merges",
          "text.pieces",
          "text.split_unseen",
          "train.accumulate_by",
          "train.adam.beta1",
          "train.adam.beta2",
          "train.adam.eps",
          "train.batch.buffer",
          "train.batch.leak_ratio",
          "train.label_smoothing_form",
          "train.schedule.decay_factor",
          "train.schedule.decay_patience",
          "train.schedule.decay_rule",
          "train.schedule.lr",
          "train.schedule.scale",
          "train.schedule.warmup_updates",
          "train.seed",
          "train.select.by"};
}

}  // namespace

namespace test {
INSTANTIATE_TYPED_TEST_SUITE_P(Translate, EverySetting, TranslateSettings);
}

namespace {

// Its rows are the test suite Translate/EverySetting/0 of the task translate.
TEST(EveryTask, HasRowsForItsSettings) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::set<std::string> suites;
  for (int i = 0; i < all.total_test_suite_count(); ++i) suites.insert(all.GetTestSuite(i)->name());
  for (const auto& kind : task_kinds()) {
    std::string name(kind->name);
    name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
    EXPECT_TRUE(suites.contains(name + "/EverySetting/0"))
        << "the task " << kind->name << " has no rows for its settings: add a file every_" << kind->name
        << "_setting_test.cc, as the head of every_setting.h says, with INSTANTIATE_TYPED_TEST_SUITE_P(" << name
        << ", EverySetting, …)";
  }
}

TEST(RunPrecision, ThatTheDeviceLacksIsRefused) {
  TranslateSettings checks;
  EXPECT_THAT(tearless::test::error_of([&] {
                checks.runs().options(with(TranslateSettings::small(), {{"run.precision", "tf32"}}));
              }),
              HasSubstr("run.precision = \"tf32\" needs run.device"));
}

TEST(RunPrecision, IsThatOfRowsOnAGpuAlone) {
  ExecutionOptions run;
  run.precision = ExecutionOptions::Precision::kBf16;
  EXPECT_EQ(row_precision(run), RowPrecision::kFp32);
  run.device = ExecutionOptions::Device::kCuda;
  EXPECT_EQ(row_precision(run), RowPrecision::kBf16);
  EXPECT_EQ(Parameters(1, at::kCPU, row_precision(run)).row_type(), at::kBFloat16);
}

}  // namespace
}  // namespace tearless::engine
