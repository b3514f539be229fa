// Every setting has an effect: one row for each setting, with another value and a check of what must change with it. A
// setting without a row fails, and so does a row without a setting. The same rows show which settings make another run.
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <set>

#include "base/error.h"
#include "engine/data/batches.h"
#include "engine/data/prepared.h"
#include "engine/run/check.h"
#include "engine/task/translate.h"
#include "engine/train/schedule.h"
#include "tests/engine/run/small_runs.h"

namespace tearless::engine {
namespace {

using nlohmann::json;
using test::Ended;
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

/// Six updates of a tiny model in which everything is switched on.
Settings small() {
  return with(test::corpus_settings(), {{"text.kind", "bpe"},
                                        {"text.merges", 6},
                                        {"model.encoder_layers", 1},
                                        {"model.decoder_layers", 1},
                                        {"model.d_model", 8},
                                        {"model.d_ff", 12},
                                        {"model.heads", 2},
                                        {"model.init", "xavier_normal"},
                                        {"model.dropout.residual", 0.1},
                                        {"model.dropout.attention", 0.1},
                                        {"model.dropout.relu", 0.1},
                                        {"model.dropout.word", 0.1},
                                        {"train.seed", 1},
                                        {"train.epoch_updates", 3},
                                        {"train.max_epochs", 2},
                                        {"train.early_stop", 0},
                                        {"train.batch.tokens", 80},
                                        {"train.schedule.scale", 0.1},
                                        {"train.schedule.warmup_updates", 3},
                                        {"decode.beam", 3},
                                        {"decode.max_extra", 6},
                                        {"run.log_updates", 1}});
}

Settings ds_init() { return {{"model.init", "ds_init"}, {"model.ds_init.alpha", 0.25}}; }
Settings nowarmup() { return {{"train.schedule.kind", "nowarmup"}, {"train.schedule.lr", 0.01}}; }

class EverySetting : public testing::Test {
 protected:
  EverySetting() {
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
  }

  const Ended& trained(const Settings& settings) {
    const std::string key = json(settings).dump();
    const auto known = trained_.find(key);
    return known != trained_.end() ? known->second : trained_.emplace(key, runs_.train(settings)).first->second;
  }

  test::SmallRuns runs_;
  std::map<std::string, Ended> trained_;
};

// --- checks ----------------------------------------------------------------------------------------------------------

struct Change {
  Settings before, after;
};

class SettingCheck : public EverySetting {
 public:
  void TestBody() override {}

  void training_differs(const Change& c) { EXPECT_NE(trained(c.before).metrics, trained(c.after).metrics); }
  void outputs_differ(const Change& c) {
    EXPECT_EQ(trained(c.before).metric("train.loss"), trained(c.after).metric("train.loss"));
    EXPECT_NE(trained(c.before).test_output, trained(c.after).test_output);
  }
  void length_differs(const Change& c) {
    EXPECT_NE(trained(c.before).done.at("step"), trained(c.after).done.at("step"));
  }
  void learning_rates_differ(const Change& c) { EXPECT_NE(learning_rates(c.before), learning_rates(c.after)); }

  /// Another corpus is another run; the same bytes elsewhere are the same one.
  void bytes_count(const Change& c) {
    EXPECT_NE(trained(c.before).metrics + trained(c.before).test_output,
              trained(c.after).metrics + trained(c.after).test_output);
    EXPECT_NE(runs_.canonical(c.before), runs_.canonical(c.after));
    for (const char* side : {".src", ".tgt"}) {
      test::write_text(runs_.folder() / (std::string("copy") + side),
                       test::read_text(runs_.folder() / (std::string("train") + side)));
    }
    EXPECT_EQ(runs_.canonical(c.before), runs_.canonical(with(c.before, {{"data.train", "copy"}})));
  }
  /// While the bytes are unknown the corpus' name stands for them.
  void provisional_id_differs(const Change& c) {
    const Settings nowhere = {{"data.train", "nowhere"}};
    EXPECT_NE(runs_.canonical(with(c.before, nowhere)), runs_.canonical(with(c.after, nowhere)));
    EXPECT_EQ(runs_.canonical(c.before), runs_.canonical(c.after));
  }
  void missing_corpus_is_explained(const Change& c) {
    const Settings nowhere = {{"data.train", "nowhere"}};
    EXPECT_THAT(runs_.options(with(c.after, nowhere)).task->missing_data(),
                HasSubstr(c.after.at("data.how_to_get").get<std::string>()));
    EXPECT_EQ(runs_.canonical(c.before), runs_.canonical(c.after));
  }
  /// Checksums are filled in by `check`; in a run directory other bytes are then refused.
  void other_bytes_are_refused(const Change& c) {
    const RunOptions known = runs_.options(c.before);
    const DataOptions& right = test::translation(known).data;
    WrittenSettings written;
    written.values = {{"data.train_sha256", right.train_sha256},
                      {"data.dev_sha256", right.dev_sha256},
                      {"data.test_sha256", right.test_sha256}};
    written.values = with(written.values, c.after);
    const RunOptions wrong = read_run_options(written, runs_.folder(), {});
    EXPECT_THROW(test::translate_task(wrong), UserError);
  }

  void parameters_are_on_the_device(const Change& c) {
    const RunOptions options = runs_.options(c.after);
    try {
      Translate task = test::translate_task(options);
      EXPECT_FALSE(task.parameters().values().is_cpu());
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
  void rows_are_bf16(const Change& c) {
    RunOptions options = runs_.options(c.after);
    options.run.device = ExecutionOptions::Device::kCpu;  // which `check` refuses
    Translate task = test::translate_task(options);
    EXPECT_EQ(task.parameters().row_type(), at::kBFloat16);
    EXPECT_EQ(task.parameters().values().scalar_type(), at::kFloat);
  }

  // Local settings: the results stay the same, byte for byte, and something else changes.
  void threads_are_used(const Change& c) {
    EXPECT_EQ(trained(c.after).measured.at("threads"), c.after.at("run.threads"));
    EXPECT_EQ(trained(c.before).metrics, trained(c.after).metrics);
    same_results(c);
  }
  void reports_are_fewer(const Change& c) {
    EXPECT_EQ(trained(c.before).metric("train.loss").size(), 6u);
    EXPECT_EQ(trained(c.after).metric("train.loss").size(), 3u);
    same_results(c);
  }
  void checkpoints_are_retained(const Change& c) {
    EXPECT_EQ(trained(c.before).checkpoints.size() + 1, trained(c.after).checkpoints.size());
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
  void same_results(const Change& c) { EXPECT_TRUE(trained(c.before).same_results(trained(c.after))); }

  std::vector<double> learning_rates(const Settings& settings) const {
    const RunOptions options = runs_.options(settings);
    Schedule schedule(options.train.schedule, test::translation(options).model.d_model);
    std::vector<double> learning_rates;
    int64_t update = 0;
    for (const double bleu : {9.0, 8.0, 8.5, 8.4, 8.2, 7.0, 10.0, 9.0}) {
      learning_rates.push_back(schedule.learning_rate(++update));
      schedule.on_evaluation(bleu, update);
    }
    return learning_rates;
  }
};

// --- the rows --------------------------------------------------------------------------------------------------------

struct Row {
  json value;  // differs from what small() or `context` sets
  void (SettingCheck::*check)(const Change& change);
  Settings context = {};  // set on both sides
};

const std::map<std::string, Row>& rows() {
  static const std::map<std::string, Row> all = {
      {"data.name", {"another name", &SettingCheck::provisional_id_differs}},
      {"data.train", {"other", &SettingCheck::bytes_count}},
      {"data.dev", {"other", &SettingCheck::bytes_count}},
      {"data.test", {"other", &SettingCheck::bytes_count}},
      {"data.source", {"reversed", &SettingCheck::bytes_count}},
      {"data.target", {"forward", &SettingCheck::bytes_count}},
      {"data.how_to_get", {"ask the librarian", &SettingCheck::missing_corpus_is_explained}},
      {"data.train_sha256", {std::string(64, '0'), &SettingCheck::other_bytes_are_refused}},
      {"data.dev_sha256", {std::string(64, '0'), &SettingCheck::other_bytes_are_refused}},
      {"data.test_sha256", {std::string(64, '0'), &SettingCheck::other_bytes_are_refused}},
      {"text.kind", {"segmented", &SettingCheck::training_differs}},
      {"text.merges", {2, &SettingCheck::training_differs}},
      {"text.pieces", {18, &SettingCheck::training_differs, {{"text.kind", "sentencepiece"}, {"text.pieces", 22}}}},
      {"text.max_words", {3, &SettingCheck::training_differs}},
      {"model.encoder_layers", {2, &SettingCheck::training_differs}},
      {"model.decoder_layers", {2, &SettingCheck::training_differs}},
      {"model.d_model", {12, &SettingCheck::training_differs}},
      {"model.d_ff", {16, &SettingCheck::training_differs}},
      {"model.heads", {4, &SettingCheck::training_differs}},
      {"model.placement", {"post", &SettingCheck::training_differs}},
      {"model.init", {"small_init", &SettingCheck::training_differs}},
      {"model.init_qkv_fan", {"fused3", &SettingCheck::training_differs}},
      {"model.ds_init.form", {"code", &SettingCheck::training_differs, ds_init()}},
      {"model.ds_init.alpha", {0.5, &SettingCheck::training_differs, ds_init()}},
      {"model.ds_init.stacks", {"decoder", &SettingCheck::training_differs, ds_init()}},
      {"model.fix_norm", {true, &SettingCheck::training_differs}},
      {"model.tied_embeddings", {"none", &SettingCheck::training_differs}},
      {"model.output_bias", {false, &SettingCheck::training_differs}},
      {"model.mask_target_vocabulary", {false, &SettingCheck::training_differs}},
      {"model.norm.kind", {"scale_norm", &SettingCheck::training_differs}},
      {"model.norm.eps", {0.1, &SettingCheck::training_differs}},
      {"model.norm.scope", {"encoder", &SettingCheck::training_differs, {{"model.norm.kind", "rms_norm"}}}},
      {"model.norm.eps_mode", {"std_add", &SettingCheck::training_differs, {{"model.norm.eps", 0.1}}}},
      {"model.norm.deviation", {"unbiased", &SettingCheck::training_differs}},
      {"model.norm.ada_norm.c", {2, &SettingCheck::training_differs, {{"model.norm.kind", "ada_norm"}}}},
      {"model.norm.ada_norm.k", {0.2, &SettingCheck::training_differs, {{"model.norm.kind", "ada_norm"}}}},
      {"model.dropout.residual", {0.4, &SettingCheck::training_differs}},
      {"model.dropout.attention", {0.4, &SettingCheck::training_differs}},
      {"model.dropout.relu", {0.4, &SettingCheck::training_differs}},
      {"model.dropout.word", {0.4, &SettingCheck::training_differs}},
      {"train.seed", {2, &SettingCheck::training_differs}},
      {"train.init_seed", {2, &SettingCheck::training_differs}},
      {"train.order_seed", {2, &SettingCheck::training_differs}},
      {"train.dropout_seed", {2, &SettingCheck::training_differs}},
      {"train.epoch_updates", {2, &SettingCheck::length_differs}},
      {"train.max_epochs", {1, &SettingCheck::length_differs}},
      {"train.max_updates", {4, &SettingCheck::length_differs}},
      {"train.early_stop", {1, &SettingCheck::length_differs, {{"train.max_epochs", 4}}}},
      {"train.min_lr", {0.1, &SettingCheck::length_differs, nowarmup()}},
      {"train.label_smoothing", {0.3, &SettingCheck::training_differs}},
      {"train.clip_norm", {0.01, &SettingCheck::training_differs}},
      {"train.batch.tokens", {40, &SettingCheck::training_differs}},
      {"train.batch.count", {"padded_sum", &SettingCheck::training_differs}},
      {"train.schedule.kind", {"valdecay", &SettingCheck::training_differs}},
      {"train.schedule.scale", {0.2, &SettingCheck::training_differs}},
      {"train.schedule.warmup_updates", {5, &SettingCheck::training_differs}},
      {"train.schedule.lr", {0.02, &SettingCheck::training_differs, nowarmup()}},
      {"train.schedule.peak_lr", {0.02, &SettingCheck::training_differs}},
      {"train.schedule.decay_factor", {0.5, &SettingCheck::learning_rates_differ, nowarmup()}},
      {"train.schedule.decay_patience", {2, &SettingCheck::learning_rates_differ, nowarmup()}},
      {"train.schedule.decay_rule", {"best_patience", &SettingCheck::learning_rates_differ, nowarmup()}},
      {"train.adam.beta1", {0.5, &SettingCheck::training_differs}},
      {"train.adam.beta2", {0.9, &SettingCheck::training_differs}},
      {"train.adam.eps", {0.1, &SettingCheck::training_differs}},
      {"decode.beam", {1, &SettingCheck::outputs_differ}},
      {"decode.alpha", {8, &SettingCheck::outputs_differ}},
      {"decode.max_extra", {1, &SettingCheck::outputs_differ, {{"decode.alpha", 8}}}},
      {"decode.batch_tokens", {1, &SettingCheck::decoding_batches_differ}},
      {"run.device", {"cuda", &SettingCheck::parameters_are_on_the_device}},
      {"run.precision", {"bf16", &SettingCheck::rows_are_bf16, {{"run.device", "cuda"}}}},
      {"run.ops", {"reference", &SettingCheck::formulas_are_used}},
      {"run.threads", {2, &SettingCheck::threads_are_used}},
      {"run.log_updates", {2, &SettingCheck::reports_are_fewer}},
      {"run.keep_checkpoints", {2, &SettingCheck::checkpoints_are_retained, {{"train.max_epochs", 4}}}},
  };
  return all;
}

Change change_of(const std::string& key, const Row& row) {
  const Settings before = with(small(), row.context);
  return {before, with(before, {{key, row.value}})};
}

TEST(SettingEffects, HaveOneRowForEachSetting) {
  SettingCheck check;
  RunOptions options;
  std::set<std::string> described;
  for (const DescribedField& f : list_settings(description_of(options))) {
    described.insert(f.key);
    const auto row = rows().find(f.key);
    if (row == rows().end()) {
      ADD_FAILURE() << f.key << " has no row: add one that shows its effect";
      continue;
    }
    SCOPED_TRACE(f.key);
    (check.*row->second.check)(change_of(f.key, row->second));
  }
  for (const auto& [key, row] : rows())
    EXPECT_TRUE(described.contains(key)) << "a row for " << key << ", which is no setting";
}

TEST_F(EverySetting, ResultsMakeAnotherRunAndLocalSettingsDoNot) {
  for (const auto& [key, row] : rows()) {
    if (key.starts_with("data.")) continue;  // see their rows
    const Change change = change_of(key, row);
    RunOptions options = runs_.options(change.after);
    for (const DescribedField& f : list_settings(description_of(options))) {
      if (f.key != key) continue;
      const bool same = runs_.canonical(change.before) == runs_.canonical(change.after);
      EXPECT_EQ(same, f.field.identity == Identity::kLocal) << key;
      EXPECT_NE(local_text(options).find(key) != std::string::npos,
                runs_.canonical(change.after).find(key) != std::string::npos)
          << key << " must be in one of the two texts";
    }
  }
}

TEST_F(EverySetting, APrecisionThatTheDeviceLacksIsRefused) {
  for (const char* precision : {"bf16", "tf32"}) {
    try {
      runs_.options(with(small(), {{"run.precision", precision}}));
      ADD_FAILURE() << precision << " was accepted on the CPU";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr("run.precision = \"" + std::string(precision) + "\" needs run.device"));
    }
  }
}

TEST_F(EverySetting, ANeutralValueIsNotInTheCanonicalText) {
  RunOptions defaults;
  int neutral = 0;
  for (const DescribedField& f : list_settings(description_of(defaults))) {
    if (!f.field.neutral || f.key.starts_with("data.")) continue;
    ++neutral;
    EXPECT_EQ(runs_.canonical(with(small(), {{f.key, *f.field.neutral}})).find("\n" + f.key + " ="), std::string::npos)
        << f.key;
  }
  EXPECT_GT(neutral, 10);
}

// What the canonical text leaves out must not be read as the default.
TEST_F(EverySetting, ARunDirectoryIsReadBackAsItWasWritten) {
  Settings neutral = small();
  RunOptions defaults;
  for (const DescribedField& f : list_settings(description_of(defaults))) {
    if (f.field.neutral && !f.key.starts_with("data.")) neutral[f.key] = *f.field.neutral;
  }
  std::vector<Settings> all = {small(), neutral};
  for (const auto& [key, row] : rows()) {
    if (!key.starts_with("data.")) all.push_back(change_of(key, row).after);
  }
  for (const Settings& settings : all) {
    RunOptions again = read_run_directory(runs_.make(settings));
    EXPECT_EQ(canonical_text(again), runs_.canonical(settings));
    RunOptions before = runs_.options(settings);
    EXPECT_EQ(local_text(again), local_text(before));
  }
}

TEST_F(EverySetting, ASettingThatDoesNotApplyDoesNotChangeTheId) {
  const Settings contexts[] = {
      {{"train.schedule.kind", "invsqrt"}},
      {{"train.schedule.kind", "nowarmup"}},
      {{"train.schedule.peak_lr", 0.01}},
      {{"train.schedule.kind", "valdecay"}, {"train.schedule.peak_lr", 0.01}},
      {{"train.schedule.kind", "nowarmup"}, {"train.schedule.peak_lr", 0.01}},
      {{"model.norm.kind", "none"}},
      {{"model.init", "small_init"}},
      {{"text.kind", "bpe"}},
      {{"text.kind", "segmented"}},
      {{"decode.beam", 1}},
      {{"train.init_seed", 5}, {"train.order_seed", 6}, {"train.dropout_seed", 7}},
  };
  std::set<std::string> met;
  for (const Settings& context : contexts) {
    const Settings before = with(small(), context);
    RunOptions options = runs_.options(before);
    for (const DescribedField& f : list_settings(description_of(options))) {
      if (f.field.applies) continue;
      met.insert(f.key);
      EXPECT_EQ(runs_.canonical(before), runs_.canonical(with(before, {{f.key, rows().at(f.key).value}}))) << f.key;
    }
  }
  EXPECT_THAT(met,
              testing::ElementsAre("decode.alpha", "model.ds_init.alpha", "model.ds_init.form", "model.ds_init.stacks",
                                   "model.init_qkv_fan", "model.norm.ada_norm.c", "model.norm.ada_norm.k",
                                   "model.norm.deviation", "model.norm.eps", "model.norm.eps_mode", "model.norm.scope",
                                   "text.merges", "text.pieces", "train.min_lr", "train.schedule.decay_factor",
                                   "train.schedule.decay_patience", "train.schedule.decay_rule", "train.schedule.lr",
                                   "train.schedule.scale", "train.schedule.warmup_updates", "train.seed"));
}

}  // namespace
}  // namespace tearless::engine
