// Derived runs: a decoding gives what the model gives with that search, a score what the metric gives for the outputs;
// what they need and no longer have is said in a sentence, and leaves no result.
#include "engine/run/derived_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/omitted.h"
#include "engine/data/raw_files.h"
#include "engine/run/attempt.h"
#include "engine/run/check.h"
#include "engine/score/metric.h"
#include "engine/train/model_file.h"
#include "tests/engine/run/recomputed.h"
#include "tests/engine/run/small_runs.h"
#include "tests/engine/train/in_memory.h"
#include "tests/support/error_of.h"

namespace tearless::engine::derived_run_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using tearless::test::error_of;
using test::lines_of;
using test::read_text;
using test::recomputed;
using test::Settings;
using test::write_text;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kBlue = "d c b";

class DerivedRuns : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const test::InMemory in_memory;
    runs_ = new test::SmallRuns;
    // The first pair cannot be trained on.
    runs_->write("train", {{"", "a"}, {"a b c", "c b a"}, {"b a", "a b"}, {"d a c b", "b c a d"}, {"c d", "d c"}});
    runs_->write("dev", {{"a b", "b a"}, {"c a d", "d a c"}});
    runs_->write("test", {{"b c d", "d c b"}, {"a d", "d a"}, {"c", "c"}, {"d b a", "a b d"}});
    runs_->write("news", {{"b d", "d b"}, {"a c b", kBlue}, {"d", "d"}});
    settings_ = test::with(test::corpus_settings(), {{"text.kind", "segmented"},
                                                     {"model.encoder_layers", 1},
                                                     {"model.decoder_layers", 1},
                                                     {"model.d_model", 8},
                                                     {"model.d_ff", 16},
                                                     {"model.heads", 1},
                                                     {"train.epoch_updates", 10},
                                                     {"train.max_epochs", 2},
                                                     {"train.schedule.kind", "nowarmup"},
                                                     {"train.schedule.peak_lr", 1e-2},
                                                     {"run.log_updates", 5}});
    trained_ = new RunDirectory(runs_->make(settings_));
    ASSERT_EQ(attempt_run(trained_->root()), kExitDone);
  }
  static void TearDownTestSuite() {
    delete trained_;
    delete runs_;
  }

  static json asked(const std::vector<Settings>& chain, const Settings& changes = {}) {
    return runs_->asked(test::with(settings_, changes), chain);
  }
  static Settings decoding(const Settings& changes = {}, const char* name = "again") {
    return test::with({{"derived.kind", "decode"}, {"derived.name", name}}, changes);
  }
  static Settings scoring(const Settings& changes = {}) {
    return test::with({{"derived.kind", "score"}, {"derived.name", "mark"}, {"derived.metric", "chrf"}}, changes);
  }
  static Settings of_news() {
    return {{"derived.set", "news"}, {"derived.source", "news.src"}, {"derived.reference", "news.tgt"}};
  }

  /// The folder of the last of the chain, with its settings, beside that of the trained run.
  static RunDirectory made(const std::vector<Settings>& chain) {
    const json answer = asked(chain);
    EXPECT_FALSE(answer.contains("error")) << answer;
    const RunDirectory run(trained_->root().parent_path() / answer.at("id").get<std::string>());
    fs::remove_all(run.root());
    fs::create_directories(run.root());
    write_text(run.settings(), answer.at("canonical").get<std::string>());
    write_text(run.local(), answer.at("local").get<std::string>());
    return run;
  }
  static RunDirectory done(const std::vector<Settings>& chain) {
    const RunDirectory run = made(chain);
    EXPECT_EQ(attempt_run(run.root()), kExitDone);
    return run;
  }
  static json scores_of(const RunDirectory& run) { return json::parse(read_text(run.scores())); }

  /// What is said of a derived run that cannot be made. It must leave no result.
  static std::string refusal(const RunDirectory& run) {
    std::string sentence = error_of([&] { attempt_run(run.root()); });
    EXPECT_FALSE(fs::exists(run.done()));
    EXPECT_FALSE(fs::exists(run.scores()));
    EXPECT_FALSE(fs::exists(run.outputs()));
    EXPECT_EQ(std::count(sentence.begin(), sentence.end(), '\n'), 0) << sentence;
    return sentence;
  }
  /// With a file changed, or with "" gone, while `action` runs.
  static void with_file(const fs::path& file, const std::string& bytes, const std::function<void()>& action) {
    const std::string good = read_text(file);
    bytes.empty() ? void(fs::remove(file)) : write_text(file, bytes);
    action();
    write_text(file, good);
  }

  /// With other hypotheses of test, as if they were what training left, while `action` runs.
  static void with_hypotheses(const std::string& lines, const std::function<void()>& action) {
    json result = json::parse(read_text(trained_->done()));
    result["files"]["outputs/test.hyp"] = sha256(lines);
    result.erase("sealed");
    result.erase("sha256");
    with_file(trained_->outputs() / "test.hyp", lines, [&] { with_file(trained_->done(), result.dump(), action); });
  }
  static double score_of(const char* metric, const std::vector<std::string>& ours,
                         const std::vector<std::string>& theirs) {
    return score_text(*text_metrics().at(metric).clone(), {ours.begin(), ours.end()}, {theirs.begin(), theirs.end()})
        .value;
  }

  /// The hypotheses of the run's model, by the model itself.
  static std::vector<std::string> hypotheses(const Settings& decode, const std::string& set) {
    const RunOptions options = runs_->options(test::with(settings_, decode));
    Translate task = test::translate_task(options);
    read_finished_model(*trained_, options.train, task);
    return task.hypotheses(set == "dev" ? task.prepared().dev : task.prepared().test);
  }

  static test::SmallRuns* runs_;
  static Settings settings_;
  static RunDirectory* trained_;
};
test::SmallRuns* DerivedRuns::runs_ = nullptr;
Settings DerivedRuns::settings_;
RunDirectory* DerivedRuns::trained_ = nullptr;

TEST_F(DerivedRuns, ADecodingWithoutSettingsRepeatsWhatTrainingLeft) {
  const RunDirectory run = done({decoding()});
  for (const char* file : {"test.hyp", "test.stats"}) {
    EXPECT_EQ(read_text(run.outputs() / file), read_text(trained_->outputs() / file));
  }
  EXPECT_EQ(scores_of(run), (json{{"again.test.bleu", scores_of(*trained_).at("test.bleu")}}));
  EXPECT_FALSE(fs::exists(run.outputs() / "dev.hyp"));
}

TEST_F(DerivedRuns, TheSettingsOfADecodingAreThoseOfItsSearch) {
  const std::vector<std::pair<Settings, Settings>> settings = {
      {{{"derived.beam", 1}}, {{"decode.beam", 1}}},
      {{{"derived.beam", 7}, {"derived.alpha", 3.0}}, {{"decode.beam", 7}, {"decode.alpha", 3.0}}},
      {{{"derived.alpha", 0.0}}, {{"decode.alpha", 0.0}}},
      {{{"derived.search", "fairseq"}, {"derived.length_penalty", "length"}, {"derived.alpha", 2.0}},
       {{"decode.search", "fairseq"}, {"decode.length_penalty", "length"}, {"decode.alpha", 2.0}}},
      {{{"derived.search", "t2t"}, {"derived.alpha", 4.0}}, {{"decode.search", "t2t"}, {"decode.alpha", 4.0}}},
      {{{"derived.search", "t2t"}, {"derived.alpha", 4.0}, {"derived.stop", "batch"}, {"derived.batch_tokens", 40}},
       {{"decode.search", "t2t"}, {"decode.alpha", 4.0}, {"decode.stop", "batch"}, {"decode.batch_tokens", 40}}},
      {{{"derived.search", "t2t"}, {"derived.alpha", 4.0}, {"derived.stop", "batch"}, {"derived.batch_tokens", 1}},
       {{"decode.search", "t2t"}, {"decode.alpha", 4.0}}},
      {{{"derived.search", "joey"}, {"derived.beam", 5}, {"derived.max_length", 9}},
       {{"decode.search", "joey"}, {"decode.beam", 5}, {"decode.max_length", 9}}},
      {{{"derived.max_length", 2}, {"derived.n_best", 2}}, {{"decode.max_length", 2}}},
      {{{"derived.max_extra", 1}, {"derived.alpha", 10.0}}, {{"decode.max_extra", 1}, {"decode.alpha", 10.0}}}};
  std::set<std::string> ids;
  for (const auto& [derived, decode] : settings) {
    const RunDirectory run = done({decoding(derived)});
    EXPECT_EQ(lines_of(run.outputs() / "test.hyp"), hypotheses(decode, "test")) << json(derived);
    ids.insert(run.id());
  }
  EXPECT_EQ(ids.size(), settings.size());
  EXPECT_NE(hypotheses({{"decode.max_extra", 1}, {"decode.alpha", 10.0}}, "test"),
            hypotheses({{"decode.alpha", 10.0}}, "test"));
  EXPECT_NE(hypotheses({{"decode.beam", 1}}, "test"), hypotheses({{"decode.beam", 7}, {"decode.alpha", 3.0}}, "test"));
  EXPECT_NE(hypotheses({{"decode.max_length", 2}}, "test"), hypotheses({}, "test"));
  for (const char* search : {"twt", "fairseq", "t2t", "joey"}) {
    const RunDirectory of_search = done({decoding({{"derived.search", search}, {"derived.n_best", 2}})});
    const std::vector<std::string> best = lines_of(of_search.outputs() / "test.hyp"),
                                   all = lines_of(of_search.outputs() / "test.nbest");
    size_t line = 0;
    for (size_t i = 0; i < best.size(); ++i) {  // a search may find one output alone
      EXPECT_TRUE(all[line].starts_with(fmt::format("{} ||| {} ||| -", i, best[i]))) << search << ": " << all[line];
      while (line < all.size() && all[line].starts_with(fmt::format("{} ||| ", i))) ++line;
    }
    EXPECT_EQ(line, all.size()) << search;
    EXPECT_GT(all.size(), best.size()) << search;
  }
  const RunDirectory lists = done({decoding({{"derived.n_best", 2}})});
  EXPECT_EQ(lines_of(lists.outputs() / "test.nbest").size(), 2 * lines_of(lists.outputs() / "test.hyp").size());
  EXPECT_TRUE(read_done(lists)->files.contains("outputs/test.nbest"));
  const RunDirectory dev = done({decoding({{"derived.set", "dev"}})});
  EXPECT_EQ(read_text(dev.outputs() / "dev.hyp"), read_text(trained_->outputs() / "dev.hyp"));
  EXPECT_TRUE(scores_of(dev).contains("again.dev.bleu"));
}

TEST_F(DerivedRuns, ATestSetOfItsOwnIsEncodedAsTheCorpusIs) {
  const RunDirectory run = done({decoding(of_news(), "late")});
  runs_->write("as_test", {{"b d", "d b"}, {"a c b", kBlue}, {"d", "d"}});
  const RunOptions options = runs_->options(test::with(settings_, {{"data.test", "as_test"}}));
  Translate task = test::translate_task(options);
  read_finished_model(*trained_, options.train, task);
  const FinalScores scores = task.scored_translations("news", task.prepared().test, task.prepared().test_reference);
  EXPECT_EQ(read_text(run.outputs() / "news.hyp"), scores.files.at("outputs/news.hyp"));
  EXPECT_EQ(read_text(run.outputs() / "news.stats"), scores.files.at("outputs/news.stats"));
  EXPECT_EQ(scores_of(run), (json{{"late.news.bleu", scores.numbers.at("news.bleu")}}));
}

TEST_F(DerivedRuns, AScoreIsThatOfTheHypothesesThatTheRunHasLeft) {
  const auto chrf = [](const fs::path& hypotheses, const char* references, int64_t beta) {
    const std::vector<std::string> ours = lines_of(hypotheses), theirs = lines_of(runs_->folder() / references);
    const std::unique_ptr<TextMetric> metric = text_metrics().at("chrf").clone();
    read_settings({.values = {{"beta", beta}}, .locations = {}, .name = ""},
                  [&](SettingsVisitor& v) { metric->describe(v); });
    return score_text(*metric, {ours.begin(), ours.end()}, {theirs.begin(), theirs.end()}).value;
  };
  const double plain = chrf(trained_->outputs() / "test.hyp", "test.tgt", 2);
  EXPECT_EQ(scores_of(done({scoring()})), (json{{"mark.test.chrf", plain}}));
  const double recall = chrf(trained_->outputs() / "test.hyp", "test.tgt", 3);
  EXPECT_NE(recall, plain);
  EXPECT_EQ(scores_of(done({scoring({{"derived.beta", 3}})})), (json{{"mark.test.chrf", recall}}));
  EXPECT_EQ(scores_of(done({scoring({{"derived.set", "dev"}})})),
            (json{{"mark.dev.chrf", chrf(trained_->outputs() / "dev.hyp", "dev.tgt", 2)}}));

  const RunDirectory decoded = done({decoding(of_news())});
  EXPECT_EQ(scores_of(done({decoding(of_news()), scoring()})),
            (json{{"mark.news.chrf", chrf(decoded.outputs() / "news.hyp", "news.tgt", 2)}}));
  EXPECT_EQ(scores_of(done({scoring({{"derived.metric", "multi_bleu"}})})).at("mark.test.multi_bleu"),
            scores_of(*trained_).at("test.bleu"));
}

TEST_F(DerivedRuns, OfDetokenisedTextAreOfRawReferences) {
  const std::string tokenised = "the boys ' house , l' eau ?\n( a ) &quot; b &quot; c d e f\nc d\n5 % of a @-@ b .\n";
  const std::vector<std::string> english = {"the boys' house, l' eau?", "(a) \"b\" c d e f", "c d", "5% of a-b."},
                                 french = {"the boys 'house, l'eau ?", "(a) \"b\" c d e f", "c d", "5 % of a-b."},
                                 raw = {"The boys' house, l'eau?", "(a) \"b\" c d e f", "c e", "5% of a-b."};
  write_text(runs_->folder() / "raw.en", fmt::format("{}\n", fmt::join(raw, "\n")));
  const auto bleu = [](const Settings& changes) {
    const Settings of_raw = {{"derived.metric", "multi_bleu"}, {"derived.raw_reference", "raw.en"}};
    return scores_of(done({scoring(test::with(of_raw, changes))})).at("mark.test.multi_bleu").get<double>();
  };
  with_hypotheses(tokenised, [&] {
    const double in_english = score_of("multi_bleu", english, raw);
    EXPECT_GT(in_english, 10);
    EXPECT_EQ(bleu({{"derived.detokenise", "en"}}), in_english);
    EXPECT_EQ(bleu({{"derived.detokenise", "fr"}}), score_of("multi_bleu", french, raw));
    EXPECT_NE(bleu({{"derived.detokenise", "fr"}}), in_english);
    EXPECT_LT(bleu({}), in_english);
    with_file(runs_->folder() / "raw.en", "one line\n", [&] {
      EXPECT_THAT(refusal(made({scoring({{"derived.raw_reference", "raw.en"}})})),
                  AllOf(HasSubstr("test.hyp has 4 lines, "), HasSubstr("raw.en 1: both must hold")));
    });
  });

  // Without raw ones the tokenised references are joined, too.
  write_text(runs_->folder() / "cut.tgt", "b , d .\n( a )\nd !\n");
  const Settings of_cut = test::with(of_news(), {{"derived.reference", "cut.tgt"}});
  const RunDirectory decoded = done({decoding(of_cut, "cut")});
  EXPECT_EQ(
      scores_of(done({decoding(of_cut, "cut"), scoring({{"derived.detokenise", "de"}})})),
      (json{{"mark.news.chrf", score_of("chrf", lines_of(decoded.outputs() / "news.hyp"), {"b, d.", "(a)", "d!"})}}));
  EXPECT_EQ(scores_of(done(
                {decoding(of_cut, "cut"), scoring({{"derived.metric", "multi_bleu"}, {"derived.detokenise", "de"}})})),
            (json{{"mark.news.multi_bleu",
                   score_of("multi_bleu", lines_of(decoded.outputs() / "news.hyp"), {"b, d.", "(a)", "d!"})}}));
}

TEST_F(DerivedRuns, OfSomeLinesAreOfTheseSentencesAlone) {
  write_text(runs_->folder() / "some.lines", "1\n2\n4\n");
  const std::vector<std::string> ours = lines_of(trained_->outputs() / "test.hyp"),
                                 theirs = lines_of(runs_->folder() / "test.tgt");
  const RunDirectory some = done({scoring({{"derived.lines", "some.lines"}})});
  EXPECT_EQ(
      scores_of(some),
      (json{{"mark.test.chrf", score_of("chrf", {ours[0], ours[1], ours[3]}, {theirs[0], theirs[1], theirs[3]})}}));
  EXPECT_EQ(lines_of(some.outputs() / "test.stats").size(), 1u + 3u);
  EXPECT_NE(some.id(), done({scoring()}).id());
  const std::pair<const char*, const char*> mistakes[] = {{"1\ntwo\n", "some.lines:2: \"two\" is no line number"},
                                                          {"0\n", "some.lines:1: \"0\" is no line number"},
                                                          {"1\n\n", "some.lines:2: \"\" is no line number"},
                                                          {"-1\n", "some.lines:1: \"-1\" is no line number"},
                                                          {"2\n5\n", "some.lines:2: line 5 of a set of 4"},
                                                          {"2\n1\n", "some.lines:2: 1 after 2; sort"},
                                                          {"2\n2\n", "some.lines:2: 2 after 2; sort"}};
  for (const auto& [lines, sentence] : mistakes) {
    with_file(runs_->folder() / "some.lines", lines, [&, &lines = lines, &sentence = sentence] {
      EXPECT_THAT(refusal(made({scoring({{"derived.lines", "some.lines"}})})), HasSubstr(sentence)) << lines;
    });
  }
  for (const char* key : {"derived.lines", "derived.raw_reference"}) {
    const json answer = asked({scoring({{key, "absent"}})});
    EXPECT_EQ(answer.at("state"), "waiting_data");
    EXPECT_THAT(answer.at("waiting_for").get<std::string>(), HasSubstr("the test set test lacks the file"));
    const RunDirectory changed = made({scoring({{key, "some.lines"}})});
    with_file(runs_->folder() / "some.lines", "1\n", [&] {
      EXPECT_THAT(error_of<DataError>([&] { attempt_run(changed.root()); }),
                  HasSubstr("that this run was planned with"));
    });
  }
}

TEST_F(DerivedRuns, OfTrainTranslateItsUsablePairs) {
  runs_->write("used", {{"a b c", "c b a"}, {"b a", "a b"}, {"d a c b", "b c a d"}, {"c d", "d c"}});
  const RunOptions options = runs_->options(test::with(settings_, {{"data.test", "used"}}));
  Translate task = test::translate_task(options);
  read_finished_model(*trained_, options.train, task);
  FinalScores expected = task.scored_translations("train", task.prepared().test, task.prepared().test_reference);
  NamedNumbers scores;
  for (const auto& [name, value] : expected.numbers) scores["again." + name] = value;
  const NamedNumbers perplexities = task.final_scores().numbers;
  scores["again.train.ppl"] = perplexities.at("test.ppl");
  scores["again.train.ppl_smoothed"] = perplexities.at("test.ppl_smoothed");

  const Settings train = {{"derived.set", "train"}};
  const auto of = [&](const Settings& changes) { return done({decoding(test::with(train, changes))}); };
  const RunDirectory all = of({});
  EXPECT_EQ(scores_of(all), json(scores));
  EXPECT_EQ(read_text(all.outputs() / "train.hyp"), expected.files.at("outputs/train.hyp"));
  EXPECT_EQ(read_text(all.outputs() / "train.stats"), expected.files.at("outputs/train.stats"));

  const std::vector<std::string> stats = lines_of(all.outputs() / "train.stats");
  std::set<std::vector<std::string>> draws;
  for (int seed = 1; seed <= 8; ++seed) {
    const RunDirectory drawn = of({{"derived.sample", 3}, {"derived.sample_seed", seed}});
    const std::vector<std::string> some = lines_of(drawn.outputs() / "train.stats");
    ASSERT_EQ(some.size(), 1u + 3u);
    size_t at = 0;
    for (const std::string& line : some) {  // in the order of the file, none twice
      while (at < stats.size() && stats[at] != line) ++at;
      EXPECT_LT(at++, stats.size()) << "sample_seed " << seed;
    }
    EXPECT_NE(scores_of(drawn).at("again.train.ppl"), scores.at("again.train.ppl"));
    draws.insert(some);
  }
  EXPECT_GT(draws.size(), 1u);
  EXPECT_EQ(scores_of(of({{"derived.sample", 99}})), json(scores)) << "there are fewer";
  EXPECT_EQ(asked({decoding({{"derived.sample", 3}})}).at("unused"),
            (json{{"derived.sample", "derived.set = \"test\""}}));
  EXPECT_EQ(asked({decoding({{"derived.set", "train"}, {"derived.sample_seed", 3}})}).at("unused"),
            (json{{"derived.sample_seed", "derived.sample = 0"}}));
  const RunDirectory late = made({decoding(train, "late")});
  with_file(runs_->folder() / "train.src", "",
            [&] { EXPECT_THAT(error_of<DataError>([&] { attempt_run(late.root()); }), HasSubstr("lacks the file")); });
}

// To the last bit, with the tokenisers, options and sets that change what is counted.
TEST_F(DerivedRuns, TheStatisticsThatTheyLeaveMakeTheirScores) {
  const std::vector<std::vector<Settings>> chains = {
      {scoring()},
      {scoring({{"derived.beta", 3}, {"derived.word_order", 2}})},
      {scoring({{"derived.metric", "multi_bleu"}, {"derived.compound_split", true}})},
      {scoring({{"derived.metric", "sacrebleu"}, {"derived.set", "dev"}})},
      {scoring({{"derived.metric", "sacrebleu"}, {"derived.tokeniser", "char"}})},
      {decoding(of_news()), scoring({{"derived.metric", "sacrebleu"}})},
      {scoring({{"derived.metric", "sacrebleu"}, {"derived.detokenise", "de"}})},
      {decoding({{"derived.beam", 2}})},
      {decoding(of_news())}};
  for (const std::vector<Settings>& chain : chains) {
    const RunDirectory run = done(chain);
    const json scores = scores_of(run);
    ASSERT_EQ(scores.size(), 1u);
    const std::string name = scores.begin().key(), set = name.substr(name.find('.') + 1);
    const std::string file = "outputs/" + set.substr(0, set.find('.')) + ".stats";
    EXPECT_EQ(recomputed(name, read_text(run.root() / file)), scores.begin().value().get<double>()) << json(chain);
    EXPECT_EQ(lines_of(run.root() / file).size(),
              1 + lines_of(runs_->folder() / (set.substr(0, set.find('.')) + ".tgt")).size());
    EXPECT_TRUE(read_done(run)->files.contains(file)) << name;
  }
}

TEST_F(DerivedRuns, MeasureTheDecodingOfTheirSet) {
  const auto measured = [](const RunDirectory& run) {
    return json::parse(read_text(run.attempt(1) / "measured.json"));
  };
  const json decoded = measured(done({decoding(of_news())}));
  EXPECT_EQ(decoded.at("decoded_sentences"), 3);
  EXPECT_GT(decoded.at("decoding_seconds"), 0);
  EXPECT_LE(decoded.at("decoding_seconds"), decoded.at("seconds"));
  EXPECT_GE(decoded.at("threads"), 1);
  EXPECT_EQ(measured(*trained_).at("decoded_sentences"), 4) << "of test, not of dev";
  EXPECT_FALSE(measured(done({scoring()})).contains("decoding_seconds")) << "it decodes nothing";
}

TEST_F(DerivedRuns, AreMadeAgainAfterAKillWithTheSameBytes) {
  const RunDirectory run = done({decoding({{"derived.beam", 2}})});
  const std::string done_text = read_text(run.done()), scores = read_text(run.scores());
  fs::remove(run.done());
  write_text(run.scores(), "{");
  EXPECT_EQ(attempt_run(run.root()), kExitDone);
  EXPECT_EQ(read_text(run.done()), done_text);
  EXPECT_EQ(read_text(run.scores()), scores);
  EXPECT_EQ(attempt_run(run.root()), kExitDone) << "it is done";
  EXPECT_EQ(run.newest_attempt(), 2);
}

TEST_F(DerivedRuns, DoneSaysWhatTheResultWasMadeFrom) {
  const RunDirectory decoded = done({decoding()}), scored = done({scoring()});
  const json inputs = json::parse(read_text(decoded.done())).at("inputs");
  EXPECT_EQ(inputs, (json{{trained_->id() + "/DONE", sha256_of_file(trained_->done())},
                          {trained_->id() + "/model.safetensors", sha256_of_file(trained_->model())},
                          {"references", sha256_of_file(runs_->folder() / "test.tgt")}}));
  EXPECT_EQ(json::parse(read_text(scored.done())).at("inputs").at(trained_->id() + "/outputs/test.hyp"),
            sha256_of_file(trained_->outputs() / "test.hyp"));
  EXPECT_FALSE(json::parse(read_text(trained_->done())).contains("inputs"));
}

TEST_F(DerivedRuns, TheIdIsOfTheTrainedRunAndTheSettings) {
  const json answer = asked({decoding({{"derived.beam", 8}})});
  EXPECT_EQ(answer.at("canonical"),
            fmt::format("derived.beam = 8\nderived.kind = \"decode\"\nderived.name = \"again\"\nderived.of = \"{}\"\n"
                        "derived.set = \"test\"\n",
                        trained_->id()));
  EXPECT_EQ(answer.at("id"), run_id(answer.at("canonical").get<std::string>()));
  EXPECT_EQ(derived_from(answer.at("canonical").get<std::string>()), trained_->id());
  EXPECT_EQ(derived_from(read_text(trained_->settings())), "");
  EXPECT_EQ(derived_from("data.name = \"derived.of = \\\"0123456789abcdef\\\"\"\n"), "");

  std::set<std::string> ids;
  const std::vector<std::vector<Settings>> chains = {{decoding()},
                                                     {decoding({}, "other")},
                                                     {decoding({{"derived.set", "dev"}})},
                                                     {decoding(of_news())},
                                                     {scoring()},
                                                     {scoring({{"derived.beta", 3}})},
                                                     {decoding(), scoring()}};
  for (const std::vector<Settings>& chain : chains) {
    ids.insert(asked(chain).at("id"));
  }
  ids.insert(asked({decoding()}, {{"train.seed", 2}}).at("id"));
  EXPECT_EQ(ids.size(), 8u);
  EXPECT_EQ(asked({decoding({{"derived.beam", 1}, {"derived.alpha", 0.5}})}).at("id"),
            asked({decoding({{"derived.beam", 1}})}).at("id"));
}

TEST_F(DerivedRuns, OfSeveralSeedsAreCheckedAsEachByItself) {
  CheckBatch batch;
  for (const int seed : {1, 2, 3}) {
    const json question = {{"settings", test::with(settings_, {{"train.seed", seed}})},
                           {"derived", json::array({decoding(), scoring()})},
                           {"folder", runs_->folder().string()}};
    EXPECT_EQ(batch.answer(question.dump()), CheckBatch().answer(question.dump()));
  }
}

TEST_F(DerivedRuns, CheckSaysWhatTheyNeed) {
  const json decoded = asked({decoding(of_news())}), scored = asked({scoring()}), trained = asked({});
  EXPECT_EQ(decoded.at("updates"), 0);
  EXPECT_EQ(decoded.at("memory_bytes"), trained.at("memory_bytes"));
  EXPECT_TRUE(decoded.at("data").contains((runs_->folder() / "news.tgt").string()));
  EXPECT_TRUE(decoded.at("data").contains((runs_->folder() / "test.tgt").string()));
  EXPECT_TRUE(scored.at("memory_bytes").is_null());
  std::set<std::string> classes;
  for (const json& answer : {decoded, scored, trained, asked({decoding({{"derived.beam", 9}})})}) {
    classes.insert(answer.at("resource_class"));
  }
  EXPECT_EQ(classes.size(), 4u);
  EXPECT_EQ(asked({decoding({}, "other")}).at("resource_class"),
            asked({decoding()}, {{"train.seed", 2}}).at("resource_class"));
}

TEST_F(DerivedRuns, CheckSaysWhatTheirScoresWillBeCalled) {
  done({decoding()});  // of which the last is a score
  for (const std::vector<Settings>& chain :
       std::vector<std::vector<Settings>>{{decoding({}, "beam8")},
                                          {decoding(of_news())},
                                          {scoring({{"derived.set", "dev"}})},
                                          {decoding(), scoring({{"derived.metric", "multi_bleu"}})}}) {
    std::vector<std::string> left;
    const json scores = scores_of(done(chain));
    for (const auto& [name, value] : scores.items()) left.push_back(name);
    EXPECT_EQ(asked(chain).at("scores"), json(left));
    EXPECT_EQ(asked(chain).at("metrics"), json::array());
  }
  EXPECT_EQ(asked({decoding({}, "beam8")}).at("scores"), json::array({"beam8.test.bleu"}));
}

TEST_F(DerivedRuns, TellTheirSettingsWithoutEffectAsTheirSearchSeesThem) {
  const auto unused = [](const std::vector<Settings>& chain, const Settings& trained = {}) {
    const json answer = asked(chain, trained);
    EXPECT_FALSE(answer.contains("error")) << answer;
    return answer.value("unused", json::object());
  };
  const Settings both = {{"derived.max_length", 2}, {"derived.max_extra", 9}};
  EXPECT_EQ(unused({decoding(both)}), (json{{"derived.max_extra", "derived.max_length = 2"}}));
  EXPECT_EQ(read_text(done({decoding(both)}).outputs() / "test.hyp"),
            read_text(done({decoding({{"derived.max_length", 2}})}).outputs() / "test.hyp"));
  EXPECT_EQ(unused({decoding({{"derived.max_extra", 9}})}, {{"decode.max_length", 30}}),
            (json{{"derived.max_extra", "decode.max_length = 30"}}));

  const Settings penalty = {{"derived.alpha", 1.5}, {"derived.length_penalty", "length"}};
  EXPECT_EQ(unused({decoding(penalty)}), json::object());
  EXPECT_EQ(unused({decoding(test::with(penalty, {{"derived.beam", 1}}))}),
            (json{{"derived.alpha", "derived.beam = 1"}, {"derived.length_penalty", "derived.beam = 1"}}));
  EXPECT_EQ(unused({decoding(penalty)}, {{"decode.beam", 1}}),
            (json{{"derived.alpha", "decode.beam = 1"}, {"derived.length_penalty", "decode.beam = 1"}}));
  EXPECT_EQ(unused({decoding(test::with(penalty, {{"derived.beam", 2}}))}, {{"decode.beam", 1}}), json::object());

  EXPECT_EQ(unused({decoding()}, {{"decode.beam", 1}, {"decode.alpha", 2}}),
            (json{{"decode.alpha", "decode.beam = 1"}}))
      << "of the trained run";
  EXPECT_EQ(unused({decoding(both), scoring()}), json::object()) << "of the last derivation alone";
}

// Runs have ids with it.
TEST_F(DerivedRuns, KeepASettingWithoutEffectInTheirIdsIfATrainedRunsOrALaterOneSwitchesItOff) {
  const auto canonical = [](const Settings& derived, const Settings& trained = {}) {
    return asked({decoding(derived)}, trained).at("canonical").get<std::string>();
  };
  EXPECT_THAT(canonical({{"derived.max_length", 2}, {"derived.max_extra", 9}}), HasSubstr("derived.max_extra = 9\n"));
  EXPECT_THAT(canonical({{"derived.max_extra", 9}}, {{"decode.max_length", 30}}), HasSubstr("derived.max_extra = 9\n"));
  EXPECT_THAT(canonical({{"derived.alpha", 1.5}}, {{"decode.beam", 1}}), HasSubstr("derived.alpha = 1.5\n"));
}

TEST_F(DerivedRuns, WaitForATestSetThatIsMissing) {
  const Settings absent = test::with(of_news(), {{"derived.reference", "absent.tgt"}});
  const json answer = asked({decoding(absent)});
  EXPECT_EQ(answer.at("state"), "waiting_data");
  EXPECT_THAT(answer.at("waiting_for").get<std::string>(),
              AllOf(HasSubstr("the test set news lacks the file"), HasSubstr("absent.tgt")));
  EXPECT_EQ(asked({decoding(absent), scoring()}).at("state"), "waiting_data");

  const RunDirectory run = made({decoding(of_news(), "changed")});
  with_file(runs_->folder() / "news.tgt", "other\nlines\nhere\n", [&] {
    EXPECT_THAT(error_of<DataError>([&] { attempt_run(run.root()); }), HasSubstr("that this run was planned with"));
    EXPECT_FALSE(fs::exists(run.done()));
  });
  EXPECT_EQ(attempt_run(run.root()), kExitDone);
}

// Its files could not be made, after the training that it derives from.
TEST_F(DerivedRuns, RefuseASetWhoseNameIsTooLongForAFile) {
  const auto of = [](size_t letters) { return Settings{{"derived.set", std::string(letters, 'n')}}; };
  const json answer = asked({decoding(test::with(of_news(), of(300)))});
  EXPECT_THAT(answer.value("error", ""), HasSubstr("has 300 letters, too many for the names of its files; use 200"));
  EXPECT_EQ(answer.at("key"), "derived.set");
  EXPECT_TRUE(asked({decoding(test::with(of_news(), of(201)))}).contains("error"));
  const Settings longest = test::with(of_news(), test::with(of(200), {{"derived.beam", 2}, {"derived.n_best", 2}}));
  EXPECT_TRUE(fs::exists(done({decoding(longest)}).outputs() / (std::string(200, 'n') + ".nbest")));
}

TEST_F(DerivedRuns, ReadATestSetOfTheirOwnAsTheCorpusIsRead) {
  const std::string source = read_text(runs_->folder() / "news.src"), target = read_text(runs_->folder() / "news.tgt");
  const auto from_windows = [](const std::string& text) {
    std::string lines = "\xEF\xBB\xBF";
    for (const char c : text) lines += c == '\n' ? std::string("\r\n") : std::string(1, c);
    return lines;
  };
  const RunDirectory plain = done({decoding(of_news())});
  const std::string hypotheses = read_text(plain.outputs() / "news.hyp"), scores = read_text(plain.scores());
  with_file(runs_->folder() / "news.src", from_windows(source), [&] {
    with_file(runs_->folder() / "news.tgt", from_windows(target), [&] {
      const RunDirectory windows = done({decoding(of_news())});
      EXPECT_EQ(read_text(windows.outputs() / "news.hyp"), hypotheses);
      EXPECT_EQ(read_text(windows.scores()), scores);
    });
  });
  std::string words = "b";
  for (int i = 0; i < 10'000; ++i) words += " d";
  with_file(runs_->folder() / "news.src", "b d\n" + words + "\nd\n",
            [&] { EXPECT_THAT(refusal(made({decoding(of_news())})), HasSubstr("news.src:2 has 10001 words")); });
}

TEST_F(DerivedRuns, RefuseHypothesesAndReferencesOfDifferentNumbers) {
  const RunDirectory run = made({scoring()});
  const std::string hypotheses = read_text(trained_->outputs() / "test.hyp");
  with_hypotheses(hypotheses.substr(hypotheses.find('\n') + 1), [&] {
    EXPECT_THAT(refusal(run), AllOf(HasSubstr("has 3 lines, its references 4"), HasSubstr("the same sentences")));
  });
}

TEST_F(DerivedRuns, RefuseASetWhoseSidesDiffer) {
  runs_->write("short", {{"b d", "d b"}});
  const RunDirectory run =
      made({decoding({{"derived.set", "odd"}, {"derived.source", "news.src"}, {"derived.reference", "short.tgt"}})});
  EXPECT_THAT(refusal(run), AllOf(HasSubstr("has 3 lines but"), HasSubstr("short.tgt has 1")));
  write_text(runs_->folder() / "bytes.tgt", "a\n\xff\nb\n");
  const RunDirectory bytes =
      made({decoding({{"derived.set", "odd"}, {"derived.source", "news.src"}, {"derived.reference", "bytes.tgt"}})});
  EXPECT_THAT(refusal(bytes), HasSubstr("bytes.tgt:2: not valid UTF-8"));
}

TEST_F(DerivedRuns, SayThatTheModelIsGoneOrDamaged) {
  const RunDirectory run = made({decoding({}, "late")});
  with_file(trained_->model(), "other bytes",
            [&] { EXPECT_THAT(refusal(run), HasSubstr("model.safetensors is damaged, or of another run")); });
  const fs::path checkpoints = trained_->root() / "checkpoints", elsewhere = trained_->root() / "elsewhere";
  fs::rename(checkpoints, elsewhere);
  with_file(trained_->model(), "",
            [&] { EXPECT_THAT(refusal(run), HasSubstr("has no model.safetensors: it was deleted")); });
  fs::rename(elsewhere, checkpoints);
  EXPECT_EQ(attempt_run(run.root()), kExitDone);
}

TEST_F(DerivedRuns, OfResultsAloneSayThatTextsAndModelAreNotHere) {
  const RunDirectory decoded = made({decoding({}, "elsewhere")}), scored = made({scoring()});
  const fs::path checkpoints = trained_->root() / "checkpoints", elsewhere = trained_->root() / "elsewhere";
  fs::rename(checkpoints, elsewhere);
  write_omitted(*trained_, {{"model.safetensors", {}}, {"outputs/test.hyp", {}}}, trained_->root());
  with_file(trained_->model(), "", [&] {
    EXPECT_THAT(refusal(decoded), HasSubstr("model.safetensors is not here: this is a copy of results"));
  });
  with_file(trained_->outputs() / "test.hyp", "",
            [&] { EXPECT_THAT(refusal(scored), HasSubstr("test.hyp is not here: this is a copy of results")); });
  fs::remove(trained_->omitted());
  fs::rename(elsewhere, checkpoints);
}

// A run of an earlier build has no model.safetensors.
TEST_F(DerivedRuns, WithoutAModelFileTheSelectedCheckpointIsTheModel) {
  const RunDirectory run = made({decoding({}, "again")});
  with_file(trained_->model(), "", [&] { EXPECT_EQ(attempt_run(run.root()), kExitDone); });
  EXPECT_EQ(read_text(run.outputs() / "test.hyp"), read_text(trained_->outputs() / "test.hyp"));
}

TEST_F(DerivedRuns, SayThatWhatTheyReadWasChanged) {
  const RunDirectory scored = made({scoring()}), decoded = made({decoding({}, "late")});
  const fs::path hypotheses = trained_->outputs() / "test.hyp";
  with_file(hypotheses, "a\nb\nc\nd\n", [&] {
    EXPECT_THAT(refusal(scored), AllOf(HasSubstr(hypotheses.string()), HasSubstr("was changed after the run ended")));
  });
  with_file(hypotheses, "", [&] { EXPECT_THAT(refusal(scored), HasSubstr("test.hyp is missing")); });
  with_file(trained_->scores(), "{}",
            [&] { EXPECT_THAT(refusal(decoded), HasSubstr("scores.json was changed after the run ended")); });
  with_file(trained_->settings(), "train.seed = 2\n",
            [&] { EXPECT_THAT(refusal(decoded), HasSubstr("run.toml was changed")); });
  EXPECT_THAT(error_of([&] { read_run_directory(decoded.root()); }),
              HasSubstr("derives from the run " + trained_->id()));
}

TEST_F(DerivedRuns, NeedARunWithAResult) {
  const RunDirectory run = made({decoding({}, "early")});
  with_file(trained_->done(), "", [&] { EXPECT_THAT(refusal(run), HasSubstr("has no result yet")); });
  const fs::path elsewhere = trained_->root().string() + "-moved";
  fs::rename(trained_->root(), elsewhere);
  EXPECT_THAT(refusal(run), AllOf(HasSubstr(trained_->id()), HasSubstr("is not there")));
  fs::rename(elsewhere, trained_->root());
}

TEST_F(DerivedRuns, OfARunThatDivergedHaveDiverged) {
  const RunDirectory run = made({decoding({}, "lost")});
  const std::string good = read_text(trained_->done());
  write_done(*trained_, "diverged", 7, "the loss is not finite", {"metrics.jsonl"});
  EXPECT_EQ(attempt_run(run.root()), kExitDiverged);
  write_text(trained_->done(), good);
  const Done done = read_done(run).value();
  EXPECT_EQ(done.outcome, "diverged");
  EXPECT_EQ(done.step, 7);
  EXPECT_THAT(done.reason, HasSubstr(trained_->id()));
}

// As `tearless verify-resume` makes a copy.
TEST_F(DerivedRuns, FindTheirRunInTheFolderRunsToo) {
  const RunDirectory run = made({decoding({}, "again")});
  const fs::path workspace = runs_->folder() / "workspace";
  fs::create_directories(workspace / "verifying");
  fs::create_directories(workspace / "runs");
  fs::copy(trained_->root(), workspace / "runs" / trained_->id(), fs::copy_options::recursive);
  fs::rename(run.root(), workspace / "verifying" / run.id());
  EXPECT_EQ(attempt_run(workspace / "verifying" / run.id()), kExitDone);
}

TEST_F(DerivedRuns, RefuseSettingsInOneSentence) {
  const auto refused = [](const std::vector<Settings>& chain, const Settings& changes = {}) {
    const json answer = asked(chain, changes);
    const std::string error = answer.value("error", "");
    EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 0) << error;
    return answer.value("key", "") + ": " + error;
  };
  EXPECT_THAT(refused({decoding({{"derived.beam", 99}})}),
              HasSubstr("derived.beam: derived.beam = 99 is out of range"));
  EXPECT_THAT(refused({decoding({{"derived.n_best", 9}})}),
              HasSubstr("derived.n_best: derived.n_best = 9 is above the beam of 4"));
  EXPECT_THAT(refused({decoding({{"derived.search", "twat"}})}), HasSubstr("did you mean \"twt\""));
  EXPECT_THAT(refused({decoding({{"derived.batch_tokens", 9}})}), HasSubstr("unknown setting"));
  const Settings batches = {{"decode.search", "t2t"}, {"decode.stop", "batch"}};
  EXPECT_THAT(refused({decoding({{"derived.stop", "batch"}})}),
              HasSubstr("derived.stop: derived.search = \"twt\" ends each sentence by itself"));
  EXPECT_THAT(refused({decoding({{"derived.search", "joey"}})}, batches),
              HasSubstr("derived.search: derived.search = \"joey\" ends each sentence by itself"));
  EXPECT_THAT(refused({decoding({{"derived.stop", "batch"}, {"derived.search", "t2t"}})}),
              HasSubstr("derived.stop: derived.stop = \"batch\" needs derived.batch_tokens"));
  EXPECT_EQ(refused({decoding({{"derived.stop", "batch"}})}, batches), ": ");
  EXPECT_EQ(refused({decoding()}, batches), ": ") << "the run's id has its batches";
  EXPECT_EQ(refused({decoding({{"derived.search", "joey"}, {"derived.stop", "sentence"}})}, batches), ": ");
  EXPECT_THAT(refused({decoding({{"derived.bean", 9}})}),
              AllOf(HasSubstr("derived.bean: unknown setting"), HasSubstr("derived.beam")));
  EXPECT_THAT(refused({decoding({{"derived.kind", "decoed"}})}),
              AllOf(HasSubstr("derived.kind: "), HasSubstr("did you mean \"decode\"")));
  EXPECT_THAT(refused({scoring({{"derived.metric", "blue"}})}),
              AllOf(HasSubstr("derived.metric: "), HasSubstr("multi_bleu")));
  EXPECT_THAT(refused({scoring({{"derived.lower_case", true}})}), HasSubstr("unknown setting \"derived.lower_case\""));
  EXPECT_THAT(refused({decoding({}, "a/b")}), HasSubstr("derived.name = \"a/b\" must be"));
  EXPECT_THAT(refused({decoding({{"derived.set", "../dev"}})}), HasSubstr("derived.set = \"../dev\" must be"));
  EXPECT_THAT(refused({decoding({{"derived.set", "news"}})}), HasSubstr("none of dev, test and train"));
  EXPECT_THAT(refused({decoding({{"derived.set", "news"}, {"derived.source", "news.src"}})}),
              HasSubstr("derived.reference is not set"));
  EXPECT_THAT(refused({decoding({{"derived.source", "news.src"}})}), HasSubstr("is the corpus'"));
  EXPECT_THAT(refused({decoding(), decoding()}), HasSubstr("cannot derive from another"));
  EXPECT_THAT(refused({scoring(), scoring()}), HasSubstr("a score has none"));
  EXPECT_THAT(refused({decoding(), scoring({{"derived.set", "dev"}})}), HasSubstr("hypotheses of test alone"));
  EXPECT_THAT(refused({scoring({{"derived.set", "news"}})}), HasSubstr("hypotheses of dev and test"));
  EXPECT_THAT(refused({scoring({{"derived.detokenise", "klingon"}})}),
              AllOf(HasSubstr("derived.detokenise: "), HasSubstr("\"klingon\""), HasSubstr("general")));
  for (const std::vector<Settings>& chain : {std::vector<Settings>{scoring({{"derived.set", "train"}})},
                                             {decoding({{"derived.set", "train"}}), scoring()}}) {
    EXPECT_THAT(refused(chain), HasSubstr("are scored by the decoding itself"));
  }
  EXPECT_THAT(refused({decoding({{"derived.set", "train"}, {"derived.source", "news.src"}})}),
              HasSubstr("is the corpus'"));

  json question = {{"settings",
                    {{"task", "classify"},
                     {"data.classes", "bad good"},
                     {"data.train", "x"},
                     {"data.dev", "x"},
                     {"data.test", "x"}}}};
  for (const Settings& derived : {decoding(), scoring()}) {
    question["derived"] = json::array({derived});
    EXPECT_THAT(CheckBatch().answer(question.dump()).value("error", ""), HasSubstr("task = \"translate\""));
  }
}

}  // namespace
}  // namespace tearless::engine::derived_run_test
