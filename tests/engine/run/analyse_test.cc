// derived.kind = "analyse": its scores against the gradients of parameters, which come another way, and against what
// training logs of its first update.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/hash.h"
#include "engine/run/attempt.h"
#include "engine/train/execution.h"
#include "engine/train/model_file.h"
#include "tests/engine/run/small_digits.h"
#include "tests/engine/run/small_runs.h"
#include "tests/engine/train/in_memory.h"
#include "tests/support/error_of.h"

namespace tearless::engine::analyse_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using tearless::test::error_of;
using test::read_text;
using test::Settings;
using test::with;
using testing::HasSubstr;

class Analyse : private test::InMemory, public testing::Test {
 protected:
  Analyse() {
    runs_.write("train", {{"a b c", "c b a"}, {"b a", "a b"}, {"d a c b", "b c a d"}, {"c d", "d c"}});
    runs_.write("dev", {{"a b", "b a"}, {"c a d", "d a c"}});
    runs_.write("test", {{"b c d", "d c b"}, {"a d", "d a"}});
    fs::create_directory(runs_.folder() / "labelled");
    for (const char* set : {"train", "dev", "test"}) {
      runs_.write_labelled(std::string("labelled/") + set, {{"bad one", 0}, {"good one", 1}, {"good two", 1}});
    }
  }

  static Settings layers() {
    return {{"model.d_model", 8},
            {"model.d_ff", 12},
            {"model.heads", 2},
            {"model.placement", "post"},
            {"model.dropout.residual", 0.1},
            {"model.dropout.attention", 0.1},
            {"model.dropout.relu", 0.1},
            {"train.seed", 4},
            {"train.max_updates", 2},
            {"train.epoch_updates", 9},
            {"train.early_stop", 0},
            {"train.schedule.kind", "nowarmup"},
            {"train.schedule.peak_lr", 1e-2},
            {"run.log_updates", 1}};
  }
  static Settings translate(const Settings& changes = {}) {
    Settings settings = with(test::corpus_settings(), {{"text.kind", "segmented"},
                                                       {"model.encoder_layers", 2},
                                                       {"model.decoder_layers", 2},
                                                       {"train.batch.tokens", 12},
                                                       {"decode.max_length", 4}});
    return with(with(settings, layers()), changes);
  }
  static Settings classify(const Settings& changes = {}) {
    Settings settings = with(test::labelled_settings(), {{"data.train", "labelled/train"},
                                                         {"data.dev", "labelled/dev"},
                                                         {"data.test", "labelled/test"},
                                                         {"text.min_count", 1},
                                                         {"model.layers", 3}});
    return with(with(settings, layers()), changes);
  }
  static Settings without_dropout() {
    return {{"model.dropout.residual", 0.0}, {"model.dropout.attention", 0.0}, {"model.dropout.relu", 0.0}};
  }
  static Settings analysing(const Settings& changes = {}) {
    return with({{"derived.kind", "analyse"}, {"derived.name", "seen"}}, changes);
  }

  RunDirectory trained(const Settings& settings) const {
    RunDirectory run = runs_.made(runs_.asked(settings, {}));
    EXPECT_EQ(attempt_run(run.root()), kExitDone);
    return run;
  }
  RunDirectory done(const Settings& settings, const Settings& analysis) const {
    RunDirectory run = runs_.made(runs_.asked(settings, {analysis}));
    EXPECT_EQ(attempt_run(run.root()), kExitDone);
    return run;
  }
  /// The scores of an analysis of a run that was trained, without its name.
  std::map<std::string, double> scores(const Settings& settings, const Settings& analysis) const {
    std::map<std::string, double> scores;
    const json all = json::parse(read_text(done(settings, analysis).scores()));
    for (const auto& [name, value] : all.items()) {
      EXPECT_TRUE(name.starts_with("seen.")) << name;
      scores[name.substr(5)] = value;
    }
    return scores;
  }
  /// The metrics of the first update.
  static std::map<std::string, double> first_metrics(const RunDirectory& run) {
    std::map<std::string, double> metrics;
    for (const std::string& line : test::lines_of(run.metrics())) {
      const json record = json::parse(line);
      if (record.at("step") == 1) metrics[record.at("name")] = record.at("value");
    }
    return metrics;
  }

  test::SmallRuns runs_;
};

void expect_near(double a, double b, const std::string& what) {
  EXPECT_NEAR(a, b, 1e-5 * std::max(std::abs(b), 1e-3)) << what;
}

/// The gradients of the first batch's loss, as training computes them.
void gradients_of_first_batch(Task& task) {
  task.start_pass(0);
  const std::unique_ptr<Batch> batch = task.ready(0, 1);
  Tape tape(Tape::Kind::kRecording);
  task.loss({.tape = tape, .update = 1}, *batch);
  tape.backward();
}

double gradient_norm(Task& task, const std::string& parameter) {
  return task.parameters().get(parameter).grad().to(at::kDouble).norm().item<double>();
}

/// Of all parameters that begin so.
double gradient_norm_of_all(Task& task, const std::string& beginning) {
  double squares = 0;
  for (const ParameterSpec& spec : task.parameters().specs()) {
    if (spec.name.starts_with(beginning)) squares += std::pow(gradient_norm(task, spec.name), 2);
  }
  return std::sqrt(squares);
}

// Without dropout the last bias of a sublayer has the gradient Σ δ_r, that of its norm Σ δ_o, and what the embedding
// adds to every row Σ δ_x: so the ratios follow from gradients of parameters.
TEST_F(Analyse, TheRatiosAreThoseOfTheGradientsOfBiases) {
  const Settings settings = with(translate(without_dropout()), {{"model.language_embedding", true}});
  trained(settings);
  const std::map<std::string, double> seen = scores(settings, analysing());

  const RunOptions options = runs_.options(settings);
  const std::unique_ptr<Task> task = test::task_of(options);
  gradients_of_first_batch(*task);
  const auto gradient = [&](const std::string& parameter) { return gradient_norm(*task, parameter); };

  size_t checked = 0;
  for (const std::string stack : {"encoder", "decoder"}) {
    double x = gradient(stack == "encoder" ? "embedding.source.language" : "embedding.target.language");
    const std::vector<std::string> kinds = stack == "encoder"
                                               ? std::vector<std::string>{"self_attention", "ffn"}
                                               : std::vector<std::string>{"self_attention", "cross_attention", "ffn"};
    std::map<std::string, double> means;
    for (int layer = 1; layer <= 2; ++layer) {
      for (const std::string& kind : kinds) {
        const std::string sublayer = fmt::format("{}.{}.{}", stack, layer, kind);
        const double r = gradient(sublayer + (kind == "ffn" ? ".w2.bias" : ".o.bias")),
                     o = gradient(sublayer + ".norm.bias");
        for (const auto& [name, ratio] : {std::pair("beta_ln", r / o), {"beta_rc", x / r}, {"beta", x / o}}) {
          expect_near(seen.at(fmt::format("{}.{}", name, sublayer)), ratio, name + sublayer);
          means[fmt::format("{}.{}.{}", name, stack, kind)] += ratio / 2;
          ++checked;
        }
        x = o;
      }
      expect_near(seen.at(fmt::format("grad_norm.{}.{}", stack, layer)),
                  gradient_norm_of_all(*task, fmt::format("{}.{}.", stack, layer)), stack);
    }
    for (const auto& [name, mean] : means) expect_near(seen.at(name), mean, name);
  }
  EXPECT_EQ(checked, 3u * 2 * 5);
}

// With every dropout on, and with micro-batches: what training logs of its first update is of the same masks.
TEST_F(Analyse, NormsAndVariancesAreThoseThatTrainingLogsOfItsFirstUpdate) {
  const Settings observed = {{"observe.groups", true}, {"observe.variances", true}};
  for (const Settings& settings : {translate(), translate({{"train.accumulate", 2}}),
                                   translate({{"train.accumulate", 2}, {"train.accumulate_by", "batches"}}),
                                   translate({{"train.accumulate", 2}, {"train.loss_mean", "sentences"}}),
                                   translate({{"run.ops", "reference"}, {"model.placement", "pre"}}),
                                   translate({{"model.placement", "joey_post"}, {"model.norm.kind", "scale_norm"}}),
                                   translate({{"model.placement", "joey_pre"}}), classify()}) {
    SCOPED_TRACE(json(settings).dump());
    const std::map<std::string, double> logged = first_metrics(trained(with(settings, observed)));
    const std::map<std::string, double> seen = scores(with(settings, observed), analysing());
    std::map<std::string, double> squares;
    size_t variances = 0;
    for (const auto& [name, value] : logged) {
      const std::string place = name.substr(name.find('.') + 1);
      const bool in_layer = std::isdigit(static_cast<unsigned char>(place[place.find('.') + 1]));
      if (name.starts_with("grad_norm.") && in_layer) squares[place.substr(0, place.rfind('.'))] += value * value;
      if (name.starts_with("variance.") && settings.count("train.accumulate") == 0) {
        expect_near(seen.at("residual_variance." + place), value, name);
        ++variances;
      }
    }
    EXPECT_GE(squares.size(), 3u);
    EXPECT_TRUE(variances > 0 || settings.count("train.accumulate") > 0);
    for (const auto& [layer, sum] : squares) expect_near(seen.at("grad_norm." + layer), std::sqrt(sum), layer);
  }
}

// A norm's bias is added after every dropout: its gradient is Σ δ_o with dropout too, and Σ δ_x of the next sublayer.
TEST_F(Analyse, WithDropoutTheModelRatiosAreThoseOfTheGradientsOfTheNormsBiases) {
  const Settings settings = translate();
  trained(settings);
  const std::map<std::string, double> seen = scores(settings, analysing());
  const RunOptions options = runs_.options(settings);
  const std::unique_ptr<Task> task = test::task_of(options);
  gradients_of_first_batch(*task);
  const std::vector<std::string> decoder = {
      "decoder.1.self_attention", "decoder.1.cross_attention", "decoder.1.ffn",
      "decoder.2.self_attention", "decoder.2.cross_attention", "decoder.2.ffn",
  };
  for (size_t i = 1; i < decoder.size(); ++i) {
    expect_near(seen.at("beta." + decoder[i]),
                gradient_norm(*task, decoder[i - 1] + ".norm.bias") / gradient_norm(*task, decoder[i] + ".norm.bias"),
                decoder[i]);
  }
  expect_near(
      seen.at("beta.encoder.2.ffn"),
      gradient_norm(*task, "encoder.2.self_attention.norm.bias") / gradient_norm(*task, "encoder.2.ffn.norm.bias"),
      "encoder.2.ffn");
}

TEST_F(Analyse, MeansAreOverTheLayersOfAStack) {
  const Settings settings = classify();
  trained(settings);
  const std::map<std::string, double> seen = scores(settings, analysing());
  for (const std::string what : {"beta_ln", "beta_rc", "beta", "residual_variance"}) {
    double sum = 0;
    for (const char* layer : {"1", "2", "3"}) sum += seen.at(what + ".encoder." + layer + ".ffn");
    EXPECT_DOUBLE_EQ(seen.at(what + ".encoder.ffn"), sum / 3) << what;
  }
}

TEST_F(Analyse, CheckTellsTheNamesOfTheScores) {
  for (const Settings& settings :
       {translate(), translate({{"model.decoder_sublayers", "matt_aan, ffn"}, {"model.placement", "joey_post"}}),
        translate({{"model.placement", "pre"}, {"model.norm.kind", "none"}}), classify()}) {
    trained(settings);
    const std::set<std::string> told = runs_.asked(settings, {analysing()}).at("scores");
    std::set<std::string> left;
    for (const auto& [name, value] : scores(settings, analysing())) {
      std::string pattern = "seen." + name;
      for (char& letter : pattern) {
        if (std::isdigit(static_cast<unsigned char>(letter))) letter = '*';
      }
      left.insert(pattern);
    }
    EXPECT_EQ(told, left);
  }
}

TEST_F(Analyse, WhereNoNormFollowsTheSumItIsTheOutput) {
  const auto of_placement = [&](const char* placement) {
    const Settings settings = translate({{"model.placement", placement}});
    trained(settings);
    return scores(settings, analysing());
  };
  for (const char* placement : {"pre", "pre_no_final", "joey_pre"}) {
    const std::map<std::string, double> seen = of_placement(placement);
    for (const char* sublayer : {"encoder.2.ffn", "decoder.1.cross_attention", "decoder.self_attention"}) {
      EXPECT_EQ(seen.at(std::string("beta_ln.") + sublayer), 1) << placement;
      EXPECT_EQ(seen.at(std::string("beta.") + sublayer), seen.at(std::string("beta_rc.") + sublayer));
      EXPECT_NE(seen.at(std::string("beta_rc.") + sublayer), 1);
    }
  }
  const std::map<std::string, double> joey = of_placement("joey_post");
  EXPECT_EQ(joey.at("beta_ln.encoder.1.self_attention"), 1) << "it has no norm there";
  EXPECT_NE(joey.at("beta_ln.encoder.1.ffn"), 1);
}

TEST_F(Analyse, EachSettingHasItsEffect) {
  const Settings settings = translate();
  const RunDirectory run = trained(settings);
  const std::map<std::string, double> start = scores(settings, analysing()),
                                      named = scores(settings, analysing({{"derived.at", "start"}})),
                                      end = scores(settings, analysing({{"derived.at", "end"}})),
                                      elements = scores(settings, analysing({{"derived.ratio", "per_element"}}));
  EXPECT_EQ(start, named);
  std::set<std::string> ids;
  for (const Settings& analysis : {analysing(), analysing({{"derived.at", "end"}}),
                                   analysing({{"derived.ratio", "per_element"}}), analysing({{"derived.name", "b"}})}) {
    ids.insert(runs_.asked(settings, {analysis}).at("id"));
  }
  EXPECT_EQ(ids.size(), 4u);
  for (const auto& [name, value] : start) {
    EXPECT_NE(end.at(name), value) << name;
    const bool is_ratio = name.starts_with("beta");
    EXPECT_EQ(elements.at(name) != value, is_ratio) << name;
  }
}

TEST_F(Analyse, AtTheEndIsOfTheModelOfTheRun) {
  const Settings settings = translate(), analysis = analysing({{"derived.at", "end"}});
  const RunDirectory run = trained(settings);
  const RunOptions options = runs_.options(settings);
  const std::unique_ptr<Task> task = test::task_of(options);
  read_finished_model(run, options.train, *task);
  const std::map<std::string, double> before = scores(settings, analysis);

  gradients_of_first_batch(*task);
  expect_near(before.at("grad_norm.decoder.2"), gradient_norm_of_all(*task, "decoder.2."), "decoder.2");

  const json of_end = json::parse(read_text(done(settings, analysis).done())),
             of_start = json::parse(read_text(done(settings, analysing()).done()));
  EXPECT_EQ(of_end.at("inputs"), (json{{run.id() + "/DONE", sha256_of_file(run.done())},
                                       {run.id() + "/model.safetensors", sha256_of_file(run.model())}}));
  EXPECT_EQ(of_start.at("inputs"), (json{{run.id() + "/DONE", sha256_of_file(run.done())}}));
}

TEST_F(Analyse, AtTheStartNeedsNothingThatTheTrainingLeft) {
  const Settings settings = translate();
  const RunDirectory run = trained(settings);
  const std::map<std::string, double> before = scores(settings, analysing());
  fs::remove_all(run.checkpoints());
  fs::remove(run.model());
  EXPECT_EQ(scores(settings, analysing()), before);

  const RunDirectory gone = runs_.made(runs_.asked(settings, {analysing({{"derived.at", "end"}})}));
  EXPECT_THAT(error_of([&] { attempt_run(gone.root()); }), HasSubstr("has no model.safetensors: it was deleted"));
  EXPECT_FALSE(fs::exists(gone.done()));

  write_done(run, "diverged", 7, "the loss is not finite", {"metrics.jsonl"});
  EXPECT_EQ(scores(settings, analysing()), before);
  EXPECT_EQ(attempt_run(gone.root()), kExitDiverged);
}

TEST_F(Analyse, TheSameSeedGivesTheSameBytesOnOneThreadAndOnTwo) {
  const Settings settings = translate(), two = with(settings, {{"run.threads", 2}});
  trained(settings);
  EXPECT_EQ(runs_.asked(settings, {analysing()}).at("id"), runs_.asked(two, {analysing()}).at("id"));
  const std::string one_thread = read_text(done(settings, analysing()).scores());
  EXPECT_EQ(read_text(done(two, analysing()).scores()), one_thread);
  const Settings other = with(settings, {{"train.seed", 5}});
  trained(other);
  EXPECT_NE(read_text(done(other, analysing()).scores()), one_thread);
}

TEST_F(Analyse, NeedsWhatTheTrainedRunNeeds) {
  const Settings settings = translate({{"run.threads", 2}});
  trained(settings);  // which prepares the data
  const json training = runs_.asked(settings, {}), analysis = runs_.asked(settings, {analysing()});
  EXPECT_FALSE(training.at("memory_bytes").is_null());
  for (const char* need : {"memory_bytes", "threads", "device"}) {
    EXPECT_EQ(analysis.at(need), training.at(need)) << need;
  }
  EXPECT_EQ(analysis.at("metrics"), json::array());
}

TEST_F(Analyse, IsRefusedInOneSentence) {
  const auto refused = [&](const Settings& settings, const std::vector<Settings>& chain) {
    const json answer = runs_.asked(settings, chain);
    return answer.value("key", "") + ": " + answer.value("error", "");
  };
  test::write_digits(runs_.folder());
  EXPECT_EQ(refused(test::small_digits(), {analysing()}),
            "derived.kind: derived.kind = \"analyse\" is for models of layers and sublayers, which task = \"digits\" "
            "does not have");
  EXPECT_EQ(refused(translate(), {{{"derived.kind", "decode"}, {"derived.name", "again"}}, analysing()}),
            "derived.kind: derived.kind = \"analyse\" analyses a trained run; it cannot derive from another derived "
            "run");
  EXPECT_THAT(refused(translate(), {analysing({{"derived.at", "begin"}})}),
              testing::AllOf(HasSubstr("derived.at: "), HasSubstr("start, end")));
  EXPECT_THAT(refused(translate(), {analysing({{"derived.ratio", "sum"}})}), HasSubstr("derived.ratio: "));
}

}  // namespace
}  // namespace tearless::engine::analyse_test
