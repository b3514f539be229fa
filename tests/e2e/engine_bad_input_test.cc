// What the engine says to bad input, sentence by sentence: an approved text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/e2e/small_training.h"
#include "tests/support/golden.h"

namespace tearless::engine_bad_input_test {
namespace {

namespace fs = std::filesystem;
using Settings = std::map<std::string, std::string>;

class EngineBadInput : public testing::Test {
 protected:
  EngineBadInput() {
    test::write_small_corpus(folder_.path());
    for (const char* set : {"train", "dev", "test"}) write(set, ".empty", "");
    write("train", ".short", "one line\n");
    write("train", ".two", "a\nb\n");
    write("train", ".latin", "caf\xe9\n");
    write("train", ".blank", "\n \n");
    for (const char* suffix : {".short", ".two", ".latin", ".blank"}) {
      for (const char* set : {"dev", "test"}) write(set, suffix, "a\n");
    }
  }

  void write(const std::string& set, const std::string& suffix, std::string_view text) const {
    test::write_text(folder_ / (set + suffix), text);
  }

  /// A transcript: what was asked, the exit code, and what was said, with the temporary folder's name taken out.
  void ask(const std::string& title, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), test::program("tearless-engine").string());
    const test::Finished ended =
        test::run({.arguments = std::move(arguments), .environment = environment_, .folder = folder_.path()});
    std::string said = ended.errors;
    const std::string name = fs::canonical(folder_.path()).string() + "/";
    for (size_t at = 0; (at = said.find(name, at)) != std::string::npos;) said.erase(at, name.size());
    transcript_ += "# " + title + "\n" + std::to_string(ended.code) + ": " + said + "\n";
  }

  /// Trains with the small settings and these over them.
  void train(const std::string& title, const Settings& changes) {
    Settings settings = test::small_settings();
    for (const auto& [key, value] : changes) settings[key] = value;
    test::write_text(folder_ / "bad.toml", test::toml_of(settings));
    ask(title, {"train", "--config", "bad.toml"});
  }

  test::TempFolder folder_;
  std::map<std::string, std::string> environment_ = {{"TEARLESS_CACHE", (folder_ / "cache").string()}};
  std::string transcript_;
};

TEST_F(EngineBadInput, SettingsGolden) {
  train("a misspelt key", {{"train.schedule.warmup_update", "10"}});
  train("a group that the model does not have", {{"observe.groups", "true"}, {"observe.only", "\"encoder.1.fnn\""}});
  train("groups of which nothing is logged", {{"observe.group_by", "\"layer\""}});
  train("a misspelt table", {{"modle.heads", "2"}});
  train("a word for a number", {{"model.d_model", "\"wide\""}});
  train("a broken number for a whole one", {{"model.heads", "2.5"}});
  train("a number for a word", {{"model.init", "1"}});
  train("a number for true or false", {{"model.fix_norm", "1"}});
  train("below the range", {{"model.dropout.word", "-0.1"}});
  train("above the range", {{"train.label_smoothing", "1.5"}});
  train("an unknown kind", {{"model.norm.kind", "\"layernorm\""}});
  train("an unknown placement", {{"model.placement", "\"prenorm\""}});
  train("heads that do not divide d_model", {{"model.heads", "5"}});
  train("a sublayer that does not exist", {{"model.encoder_sublayers", "\"selfattention, ffn\""}});
  train("a decoder without its encoder", {{"model.decoder_sublayers", "\"self_attention, ffn\""}});
  train("a scope without norms",
        {{"model.placement", "\"post\""}, {"model.norm.kind", "\"rms_norm\""}, {"model.norm.scope", "\"final_only\""}});
  train("one matrix for two vocabularies", {{"text.vocabulary", "\"per_side\""}, {"model.tied_embeddings", "\"all\""}});
  train("more outputs than hypotheses", {{"decode.beam", "2"}, {"decode.n_best", "3"}});
  train("a batch that cannot end together", {{"decode.stop", "\"batch\""}});
  train("a batch of another search that cannot",
        {{"decode.search", "\"joey\""}, {"decode.stop", "\"batch\""}, {"decode.batch_tokens", "99"}});
  train("two vectors for the inputs", {{"model.input_vector", "true"}, {"model.language_embedding", "true"}});
  train("a causal sublayer in the encoder", {{"model.encoder_sublayers", "\"aan, ffn\""}});
  train("special outputs behind the target mask", {{"model.special_outputs", "true"}});
  train("a smoothed label outside the target mask", {{"train.label_smoothing_form", "\"fairseq\""}});
  train("subwords learned from one side alone", {{"text.learned", "\"target\""}});
  train("batches that are made in no known way", {{"train.batch.regenerate", "\"buffer\""}});
  train("a part of a batch that most batches lack", {{"train.batch.leak_ratio", "0.75"}});
  train("sides cut to less than nothing", {{"train.batch.truncate", "-1"}});
  train("a buffer of no sentence", {{"train.batch.buffer", "0"}});
  train("an option of another kind", {{"model.norm.scale_norm.c", "2"}});
  ask("a settings file that is not there", {"train", "--config", "nowhere.toml"});
  ask("a run that is not there", {"train", "nowhere"});
  test::expect_golden("engine/bad_settings.txt", transcript_);
}

TEST_F(EngineBadInput, CorporaGolden) {
  train("a missing file", {{"data.train", "\"nowhere\""}, {"data.how_to_get", "\"ask the librarian\""}});
  train("no path at all", {{"data.dev", "\"\""}});
  train("an empty side", {{"data.source", "\"empty\""}, {"data.target", "\"empty\""}});
  train("sides of different length", {{"data.source", "\"short\""}, {"data.target", "\"two\""}});
  train("bytes that are not UTF-8", {{"data.source", "\"latin\""}, {"data.target", "\"short\""}});
  train("nothing but blank lines", {{"data.source", "\"blank\""}, {"data.target", "\"two\""}});
  test::expect_golden("engine/bad_corpora.txt", transcript_);
}

TEST_F(EngineBadInput, AFullDiskDoesNotTakeAllThatACommandPrints) {
  for (const char* command : {"--version", "settings"}) {  // the second prints more than a buffer holds
    const test::Finished ended =
        test::run({.arguments = {"/bin/sh", "-c", "exec \"$0\" " + std::string(command) + " >/dev/full",
                                 test::program("tearless-engine").string()}});
    EXPECT_EQ(ended.errors,
              "tearless-engine: standard output took only a part of what was printed; check that its disk is not full "
              "and its reader has not ended\n")
        << command;
    EXPECT_EQ(ended.code, 74) << command;
  }
}

TEST_F(EngineBadInput, MatmulLibrariesGolden) {
  train("a library that is none", {{"run.matmul", "\"blis\""}});
  environment_["TEARLESS_OPENBLAS"] = "/nowhere/libscipy_openblas.so";
  train("a library that is not there", {{"run.matmul", "\"openblas\""}});
  environment_["TEARLESS_OPENBLAS"] = "libm.so.6";
  train("another library", {{"run.matmul", "\"openblas\""}});
  test::expect_golden("engine/bad_matmul_libraries.txt", transcript_);
}

TEST_F(EngineBadInput, WithoutOpenBlasRunsAreTrainedByMklAndProbeSaysSo) {
  const auto probe = [](const std::string& file) {
    const test::Finished ended = test::run({.arguments = {test::program("tearless-engine").string(), "probe"},
                                            .environment = {{"TEARLESS_OPENBLAS", file}}});
    EXPECT_EQ(ended.code, 0);
    return ended.output;
  };
  EXPECT_THAT(probe("/nowhere/libscipy_openblas.so"), testing::HasSubstr("matmuls by MKL "));
  if (__builtin_cpu_is("intel")) return;
  EXPECT_THAT(probe("/nowhere/libscipy_openblas.so"),
              testing::HasSubstr("(OpenBLAS would be faster, but it cannot be used: /nowhere/libscipy_openblas.so: "));
}

TEST_F(EngineBadInput, CommandLinesGolden) {
  ask("nothing", {});
  ask("a mistyped command", {"trian"});
  ask("nothing to train", {"train"});
  ask("nothing to check", {"check"});
  ask("a score of files of different length", {"score", "train.short", "train.two"});
  ask("a score of an empty file", {"score", "train.empty", "train.empty"});
  const auto ask_metric = [&](const std::string& situation, std::vector<std::string> options,
                              const std::string& hypothesis = "train.two", const std::string& reference = "train.two") {
    options.insert(options.begin(), {"score", "--metric"});
    options.insert(options.end(), {"--hypothesis", hypothesis, "--reference", reference});
    ask(situation, options);
  };
  ask("nothing to score", {"score"});
  ask("a score of files with and without a metric", {"score", "train.two", "train.two", "--metric", "chrf"});
  ask("a metric without a reference", {"score", "--metric", "chrf", "--hypothesis", "train.two"});
  ask("an unknown language to detokenise", {"score", "--metric", "chrf", "--detokenise", "klingon", "--hypothesis",
                                            "train.two", "--reference", "train.two"});
  ask("references to detokenise in no language",
      {"score", "--metric", "chrf", "--detokenise-reference", "--hypothesis", "train.two", "--reference", "train.two"});
  ask("a metric's option without the metric", {"score", "--beta", "3", "train.two", "train.two"});
  ask_metric("a mistyped metric", {"chfr"});
  ask_metric("an option of another metric", {"multi-bleu", "--beta", "3"});
  ask_metric("an option of a metric out of range", {"chrf", "--beta", "0"});
  ask_metric("an option of a metric that is no number", {"chrf", "--word-order", "two"});
  ask_metric("a metric of files of different length", {"chrf"}, "train.short");
  ask_metric("a metric of empty files", {"sacrebleu"}, "train.empty", "train.empty");
  ask_metric("a metric of a file that is not UTF-8", {"multi-bleu"}, "train.short", "train.latin");
  ask_metric("a metric of a file that is not there", {"multi-bleu"}, "nowhere");
  ask("a beam out of range", {"decode", ".", "--beam", "0"});
  ask("decoding a folder that is no run", {"decode", "nowhere"});
  test::expect_golden("engine/bad_command_lines.txt", transcript_);
}

}  // namespace
}  // namespace tearless::engine_bad_input_test
