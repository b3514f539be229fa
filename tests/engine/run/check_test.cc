// What `tearless-engine check` answers: to settings that it refuses, the sentence and the setting that it is about; the
// resource class of a run, and its input files.
#include "engine/run/check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "tests/engine/run/small_digits.h"
#include "tests/engine/run/small_runs.h"
#include "tests/engine/run/small_text.h"
#include "tests/engine/run/small_treebank.h"

namespace tearless::engine::check_test {
namespace {

using nlohmann::json;

json answer_to(const json& settings) {
  return CheckBatch().answer(json{{"settings", settings}, {"folder", "/"}, {"folders", json::object()}}.dump());
}

TEST(Check, NamesTheSettingThatTheSentenceIsAboutAndNotASuggestion) {
  EXPECT_EQ(answer_to({{"model.nor", 1}, {"model.norm.kind", "none"}}).at("key"), "model.nor");
  EXPECT_EQ(answer_to({{"model.norm", "none"}, {"model.norm.kind", "none"}}).at("key"), "model.norm");
  EXPECT_EQ(answer_to({{"model.heads", 5}, {"model.d_model", 64}}).at("key"), "model.heads");
  EXPECT_EQ(answer_to({{"text.vocabulary", "per_side"}, {"text.min_count", 2}}).at("key"), "text.vocabulary");
  const json longer = answer_to({{"model.norm.kind", "x"}, {"model.norm", 1}});
  EXPECT_EQ(longer.at("key"), "model.norm.kind") << longer.at("error") << ": the longer of two keys that begin alike";
}

// Runs of one resource class need the same memory and are equally fast.
TEST(Check, GivesRunsOneResourceClassUnlessASettingChangesTheirMemoryOrSpeed) {
  const auto resource_class = [](const json& changes) {
    json settings = {{"data.name", "x"}, {"data.source", "a"}, {"data.target", "b"}};
    for (const char* set : {"train", "dev", "test"}) settings[std::string("data.") + set] = "absent";
    settings.update(changes);
    const json answer = answer_to(settings);
    EXPECT_FALSE(answer.contains("error")) << answer;
    return answer.value("resource_class", "");
  };
  const std::string plain = resource_class(json::object());
  EXPECT_EQ(plain.size(), 16u);
  for (const json& same :
       {json{{"train.seed", 2}}, json{{"train.schedule.warmup_updates", 7}}, json{{"train.max_updates", 7}},
        json{{"model.init", "xavier_normal"}}, json{{"train.label_smoothing", 0.2}}, json{{"model.embedding_scale", 2}},
        json{{"model.decoder_start", "zero"}}, json{{"text.bleu", "zh"}}, json{{"train.diverged_loss", 9}},
        json{{"model.positions.first", 2}, {"model.positions.form", "halves"}}}) {
    EXPECT_EQ(resource_class(same), plain) << same;
  }
  for (const json& other :
       {json{{"model.norm.kind", "none"}}, json{{"model.d_model", 64}}, json{{"train.batch.tokens", 64}},
        json{{"run.threads", 2}}, json{{"model.encoder_layers", 1}}, json{{"decode.beam", 7}},
        json{{"model.language_embedding", true}}}) {
    EXPECT_NE(resource_class(other), plain) << other;
  }
}

/// `unused` of the answer; null: it has none.
json unused_in(const json& changes) {
  json settings = {{"data.name", "x"}, {"data.source", "a"}, {"data.target", "b"}};
  for (const char* set : {"train", "dev", "test"}) settings[std::string("data.") + set] = "absent";
  settings.update(changes);
  const json answer = answer_to(settings);
  EXPECT_FALSE(answer.contains("error")) << answer;
  return answer.value("unused", json());
}

TEST(Check, TellsSettingsWithoutEffectWithTheSettingThatSwitchesThemOff) {
  const json lr = {{"train.schedule.lr", "train.schedule.kind = \"invsqrt\""}};
  EXPECT_EQ(unused_in({{"train.schedule.kind", "invsqrt"}, {"train.schedule.lr", 0.1}}), lr);
  EXPECT_EQ(unused_in({{"train.schedule.lr", 0.1}}), lr) << "nobody wrote the default kind";
  EXPECT_EQ(unused_in({{"train.optimiser.kind", "sgd"}, {"train.adam.beta1", 0.8}}),
            (json{{"train.adam.beta1", "train.optimiser.kind = \"sgd\""}}));
  EXPECT_EQ(unused_in({{"model.norm.kind", "none"}, {"model.norm.eps", 0.1}}),
            (json{{"model.norm.eps", "model.norm.kind = \"none\""}}));
  EXPECT_EQ(unused_in({{"train.label_smoothing", 0}, {"train.label_smoothing_form", "twt"}}),
            (json{{"train.label_smoothing_form", "train.label_smoothing = 0.0"}}));
  EXPECT_EQ(unused_in({{"decode.beam", 1}, {"decode.alpha", 0.6}}), (json{{"decode.alpha", "decode.beam = 1"}}));
  EXPECT_EQ(unused_in({{"decode.max_length", 90}, {"decode.max_extra", 9}}),
            (json{{"decode.max_extra", "decode.max_length = 90"}}));
  EXPECT_EQ(unused_in({{"train.init_seed", 5}, {"train.order_seed", 6}, {"train.dropout_seed", 7}, {"train.seed", 1}}),
            (json{{"train.seed", "train.init_seed = 5"}}));
  EXPECT_EQ(
      unused_in({{"model.norm.kind", "rms_norm"}, {"model.norm.ada_norm.c", 2}, {"text.pieces", 100}}),
      (json{{"model.norm.ada_norm.c", "model.norm.kind = \"rms_norm\""}, {"text.pieces", "text.kind = \"bpe\""}}));
}

TEST(Check, TellsTheKindBeforeAnotherSettingThatSwitchesOneOffToo) {
  EXPECT_EQ(unused_in({{"train.schedule.scale", 2}, {"train.schedule.peak_lr", 0.01}}),
            (json{{"train.schedule.scale", "train.schedule.peak_lr = 0.01"}}));
  EXPECT_EQ(
      unused_in({{"train.schedule.scale", 2}, {"train.schedule.peak_lr", 0.01}, {"train.schedule.kind", "nowarmup"}}),
      (json{{"train.schedule.scale", "train.schedule.kind = \"nowarmup\""}}));
  const json pad = {{"model.init_output_pad", "random"}, {"model.init", "small_init"}};
  EXPECT_EQ(unused_in(pad), (json{{"model.init_output_pad", "model.init = \"small_init\""}}));
  EXPECT_EQ(unused_in({{"model.init_output_pad", "random"}, {"model.init", "fairseq"}}),
            (json{{"model.init_output_pad", "model.tied_embeddings = \"all\""}}));
}

TEST(Check, TellsWhatMakesTheRowOfPadZeroInAnyCase) {
  for (const char* init : {"fairseq", "joey"}) {
    EXPECT_EQ(unused_in({{"model.init_pad", "zero"}, {"model.init", init}}),
              (json{{"model.init_pad", fmt::format("model.init = \"{}\"", init)}}));
  }
  const json start = {{"model.init_pad", "zero"}, {"model.decoder_start", "zero"}};
  EXPECT_EQ(unused_in(start), (json{{"model.init_pad", "model.decoder_start = \"zero\""}}));
  for (const char* other : {"model.input_vector", "model.special_outputs"}) {
    json with_other = start;
    with_other["model.mask_target_vocabulary"] = false;
    with_other[other] = true;
    EXPECT_TRUE(unused_in(with_other).is_null()) << "the zero vector is no row of the embedding";
  }
}

TEST(Check, TellsNoSettingThatHasAnEffectOrIsLocal) {
  EXPECT_TRUE(unused_in(json::object()).is_null());
  EXPECT_TRUE(unused_in({{"train.schedule.kind", "nowarmup"}, {"train.schedule.lr", 0.1}}).is_null());
  EXPECT_TRUE(unused_in({{"train.label_smoothing", 0}, {"train.accumulate", 1}}).is_null()) << "neutral values";
  EXPECT_TRUE(unused_in({{"run.threads", 2}, {"decode.batch_tokens", 9}, {"observe.early_stop", 3}}).is_null());
}

TEST(Check, SaysHowManyUpdatesAndEvaluationsThereAreAtMost) {
  json settings = {{"data.name", "x"},
                   {"data.source", "a"},
                   {"data.target", "b"},
                   {"train.max_updates", 250},
                   {"train.epoch_updates", 100}};
  for (const char* set : {"train", "dev", "test"}) settings[std::string("data.") + set] = "absent";
  const json answer = answer_to(settings);
  EXPECT_EQ(answer.at("updates"), 250);
  EXPECT_EQ(answer.at("evaluations"), 3);
}

// The batches of a pass are known once the corpus is prepared; until then 0 says that nothing is.
TEST(Check, KnowsAPassOnceTheCorpusIsPrepared) {
  const test::SmallRuns runs;
  for (const char* set : {"train", "dev", "test"}) {
    runs.write(set, {{"a b", "x y"}, {"c d", "z x"}, {"a c", "y y"}, {"b b", "x"}, {"d", "z"}});
    runs.write_labelled(set, {{"bad one", 0}, {"good one", 1}, {"good two", 1}});
  }
  const auto limits = [&](const test::Settings& base, const test::Settings& changes) {
    const json answer = CheckBatch().answer(json{
        {"settings", test::with(base, changes)},
        {"folder", runs.folder().string()},
        {"folders", json::object()}}.dump());
    EXPECT_FALSE(answer.contains("error")) << answer;
    return std::pair(answer.value("updates", -1), answer.value("evaluations", -1));
  };
  const test::Settings pairs = test::with(test::corpus_settings(), {{"text.kind", "segmented"},
                                                                    {"train.batch.tokens", 3},
                                                                    {"train.epoch_updates", "pass"},
                                                                    {"train.max_epochs", 4}});
  EXPECT_EQ(limits(pairs, {}), std::pair(0, 0));
  EXPECT_EQ(limits(pairs, {{"train.max_updates", 9}}), std::pair(9, 0));
  const RunOptions options = runs.options(pairs);
  options.task->prepare_data(options.train, [](const std::string&) {});
  // Each pair is longer than half of 3 tokens.
  EXPECT_EQ(limits(pairs, {}), std::pair(20, 4));
  EXPECT_EQ(limits(pairs, {{"train.max_updates", 9}}), std::pair(9, 2));
  EXPECT_EQ(limits(pairs, {{"train.evaluate_updates", 2}}), std::pair(20, 10));
  EXPECT_EQ(limits(pairs, {{"train.epoch_updates", 7}, {"train.evaluate_updates", "pass"}}), std::pair(28, 6));
  EXPECT_EQ(limits(pairs, {{"train.accumulate", 2}}), std::pair(12, 4)) << "an update ends each pass";
  EXPECT_EQ(limits(pairs, {{"train.batch.tokens", 1000}}), std::pair(4, 4))
      << "one batch, not the count of another run";

  // The longer sides are 3 3 3 3 2. Below seven: 2 and 3, 3 and 3, and 3, which is less than half of seven.
  const test::Settings zero = {
      {"train.batch.tokens", 7}, {"train.batch.count", "padded_below"}, {"train.batch.regenerate", "buffers"}};
  EXPECT_EQ(limits(pairs, zero), std::pair(4 * 2, 4));
  EXPECT_EQ(limits(pairs, test::with(zero, {{"train.batch.leak_ratio", 0.4}})), std::pair(4 * 3, 4));
  EXPECT_EQ(limits(pairs, test::with(zero, {{"train.batch.truncate", 1}, {"train.batch.leak_ratio", 0.0}})),
            std::pair(4 * 2, 4))
      << "all sides count one token and their EOS";
  // The targets are 4 4 4 3 3 with BOS and EOS: any two are eight at most, and any three nine at least.
  EXPECT_EQ(limits(pairs, {{"train.batch.tokens", 8},
                           {"train.batch.count", "padded_bos_eos"},
                           {"train.batch.regenerate", "unsorted"}}),
            std::pair(4 * 3, 4));

  const test::Settings passes = {{"train.epoch_updates", "pass"}, {"train.max_epochs", 4}};
  EXPECT_EQ(limits(test::with(test::labelled_settings(), {{"text.min_count", 1}, {"train.batch.tokens", 4}}), passes),
            std::pair(8, 4));
}

/// An answer about small texts, which it writes.
json answer_to_text(const test::SmallRuns& runs, const test::Settings& changes) {
  return CheckBatch().answer(json{
      {"settings", test::with(test::small_language_model(), changes)},
      {"folder", runs.folder().string()},
      {"folders",
       json::object()}}.dump());
}

// To fall to the pass' end without a word would make another result of runs that exist.
TEST(Check, RefusesACosineThatDoesNotFallToTheLastUpdateAndSaysWhichThatIs) {
  const test::SmallRuns runs;
  test::write_texts(runs.folder());  // ten batches a pass
  const test::Settings cosine = {{"train.epoch_updates", "pass"},
                                 {"train.max_epochs", 3},
                                 {"train.schedule.kind", "cosine"},
                                 {"train.schedule.peak_lr", 1e-3}};
  const auto error = [&](int64_t max_updates, const test::Settings& changes = {}) {
    return answer_to_text(runs, test::with(test::with(cosine, {{"train.max_updates", max_updates}}), changes))
        .value("error", "");
  };
  const int64_t last = answer_to_text(runs, test::with(cosine, {{"train.schedule.kind", "nowarmup"}})).at("updates");
  EXPECT_EQ(last, 3 * 10);
  EXPECT_EQ(error(400'000),
            "train.schedule.kind = \"cosine\" falls to the last update, which is taken to be "
            "train.max_updates = 400000, but with train.epoch_updates = \"pass\" and train.max_epochs = 3 "
            "the training ends after 30; set train.max_updates = 30");
  EXPECT_NE(error(last + 1), "");
  EXPECT_EQ(error(last), "");
  EXPECT_EQ(error(last - 1), "") << "it ends the training";
  EXPECT_EQ(error(400'000, {{"train.epoch_updates", 5}}), "") << "15 updates";
  EXPECT_EQ(error(400'000, {{"train.schedule.kind", "inverse_sqrt"}}), "") << "it has no end";
  // The default of the task is no other.
  test::Settings written = test::with(test::small_language_model(), cosine);
  written.erase("train.max_updates");
  written.erase("train.schedule.lr");
  written.erase("train.schedule.kind");
  EXPECT_EQ(
      CheckBatch()
          .answer(json{{"settings", written}, {"folder", runs.folder().string()}, {"folders", json::object()}}.dump())
          .value("error", ""),
      error(400'000));
}

TEST(Check, WarnsOfTextThatAnotherToolHasCoded) {
  const test::SmallRuns runs;
  test::write_texts(runs.folder());
  EXPECT_FALSE(answer_to_text(runs, {}).contains("warnings"));
  std::string numbers;
  for (const char symbol : test::read_text(runs.folder() / "train.txt")) {
    numbers += symbol == '\n' ? "\n" : fmt::format("{} ", static_cast<int>(symbol));
  }
  test::write_text(runs.folder() / "train.txt.raw", test::read_text(runs.folder() / "train.txt"));
  test::write_text(runs.folder() / "train.txt", numbers);
  const test::Settings alike = {{"data.dev", "train.txt"}, {"data.test", "train.txt"}};
  const json answer = answer_to_text(runs, alike);
  const std::string file = " (train.txt; train.txt.raw is beside it)";
  EXPECT_EQ(answer.value("warnings", json()),
            json::array({"data.train" + file + ", data.dev" + file + ", data.test" + file +
                         ": the text consists of digits and blanks alone; it may be a list of numbers, which stand for "
                         "another text"}));
  EXPECT_EQ(answer.at("state"), "ready") << "nothing is refused";
  // Sentences, too, of which only one side may be so.
  for (const char* set : {"train", "dev", "test"}) runs.write(set, {{"12 9 11", "a b"}});
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "12 9 11\n";
  test::write_text(runs.folder() / "dev.src", lines);
  const json pairs = CheckBatch().answer(json{
      {"settings", test::corpus_settings()},
      {"folder", runs.folder().string()},
      {"folders", json::object()}}.dump());
  EXPECT_EQ(pairs.value("warnings", json()),
            json::array({"data.dev (dev.src): the text consists of digits and blanks alone; it may be a list of "
                         "numbers, which stand for another text"}));
}

TEST(Check, KnowsAPassOfDigits) {
  const test::SmallRuns runs;
  test::write_digits(runs.folder());  // 24 of them for training
  const json answer = CheckBatch().answer(json{
      {"settings", test::with(test::small_digits(), {{"train.epoch_updates", "pass"}, {"train.batch.images", 10}})},
      {"folder", runs.folder().string()},
      {"folders", json::object()}}.dump());
  ASSERT_FALSE(answer.contains("error")) << answer;
  EXPECT_EQ(answer.at("updates"), 4 * 3);
  EXPECT_EQ(answer.at("evaluations"), 4);
}

// The files' paths are the values in `local` and these endings.
TEST(Check, NamesTheInputFilesOfARunWithTheirChecksums) {
  const test::SmallRuns runs;
  const auto in_folder = [&](const test::Settings& settings) {
    return CheckBatch().answer(
        json{{"settings", settings}, {"folder", runs.folder().string()}, {"folders", json::object()}}.dump());
  };
  const auto sums = [&](const std::vector<std::string>& files) {
    json all = json::object();
    for (const std::string& file : files) all[runs.folder() / file] = sha256_of_file(runs.folder() / file);
    return all;
  };
  EXPECT_FALSE(in_folder(test::corpus_settings()).contains("data")) << "while one is missing";
  for (const char* set : {"train", "dev", "test"}) {
    runs.write(set, {{std::string("source of ") + set, std::string("target of ") + set}});
    runs.write_labelled(set, {{std::string("bad ") + set, 0}, {std::string("good ") + set, 1}});
  }

  const json translated = in_folder(test::corpus_settings());
  EXPECT_EQ(translated.at("data"), sums({"train.src", "train.tgt", "dev.src", "dev.tgt", "test.src", "test.tgt"}));
  EXPECT_THAT(translated.at("local").get<std::string>(),
              testing::HasSubstr("data.train = \"" + (runs.folder() / "train").string() + "\"\n"));

  EXPECT_EQ(in_folder(test::with(test::labelled_settings(), {{"text.min_count", 1}})).at("data"),
            sums({"train", "dev", "test"}));

  for (const char* name : {"bad", "good"}) {
    test::write_text(runs.folder() / (std::string("all.") + name), std::string("one ") + name + "\ntwo\nthree\nfour\n");
  }
  const json drawn = in_folder(test::with(test::labelled_settings(), {{"data.form", "class_files"},
                                                                      {"data.train", "all"},
                                                                      {"data.dev_count", 1},
                                                                      {"data.test_count", 1},
                                                                      {"text.min_count", 1}}));
  EXPECT_EQ(drawn.at("data"), sums({"all.bad", "all.good"})) << drawn;

  test::write_digits(runs.folder());
  EXPECT_EQ(in_folder(test::small_digits()).at("data"),
            sums({"train.images", "train.labels", "test.images", "test.labels"}));

  test::write_treebank(runs.folder());
  EXPECT_EQ(in_folder(test::small_parser()).at("data"), sums({"train.conllu", "dev.conllu", "test.conllu"}));

  test::write_texts(runs.folder());
  EXPECT_EQ(in_folder(test::small_language_model()).at("data"), sums({"train.txt", "dev.txt", "test.txt"}));
}

/// Questions about runs over small corpora, as the harness writes them.
class Questions : public testing::Test {
 protected:
  Questions() {
    for (const char* set : {"train", "dev", "test"}) {
      runs_.write(set, {{"a b c", "d e f"}, {"g h", "i j"}});
      runs_.write_labelled(std::string("labelled.") + set, {{"bad", 0}, {"good", 1}});
    }
    test::write_digits(runs_.folder());
    classify_ = test::with(test::labelled_settings(), {{"text.min_count", 1}});
    for (const char* set : {"train", "dev", "test"}) {
      classify_[std::string("data.") + set] = std::string("labelled.") + set;
    }
  }
  std::string question(const test::Settings& settings, bool smoke = false) const {
    return json{
        {"settings", settings}, {"folder", runs_.folder().string()}, {"folders", json::object()}, {"smoke", smoke}}
        .dump();
  }
  /// `line` with other digits for those of "train.seed":1.
  static std::string seeded(std::string line, const std::string& seed) {
    const std::string key = "\"train.seed\":";
    return line.replace(line.find(key + "1"), key.size() + 1, key + seed);
  }

  /// Settings whose split, and so their vocabulary, depends on the seed.
  test::Settings drawn_by_seed() const {
    for (const char* name : {"bad", "good"}) {
      std::string lines, line;
      for (int i = 0; i < 20; ++i) lines += (line += fmt::format(" {}{}", name, i)) + "\n";
      test::write_text(runs_.folder() / (std::string("all.") + name), lines);
    }
    return test::with(test::labelled_settings(), {{"data.form", "class_files"},
                                                  {"data.train", "all"},
                                                  {"data.train_count", 4},
                                                  {"data.dev_count", 18},
                                                  {"data.test_count", 18},
                                                  {"data.split_seed", "train.seed"},
                                                  {"text.min_count", 1}});
  }

  const test::SmallRuns runs_;
  const test::Settings translate_ = test::with(test::corpus_settings(), {{"text.kind", "segmented"}});
  test::Settings classify_;
};

TEST_F(Questions, ThatArriveTogetherAreAnsweredAsEachIsAlone) {
  std::vector<std::string> lines;
  for (const test::Settings& settings :
       {translate_, test::with(translate_, {{"train.init_seed", 5}}), test::with(translate_, {{"run.threads", 2}}),
        classify_, test::small_digits(), test::with(test::corpus_settings(), {{"data.train", "absent"}}),
        test::with(translate_, {{"train.init_seed", 1}, {"train.order_seed", 2}, {"train.dropout_seed", 3}})}) {
    for (const bool smoke : {false, true}) {
      const std::string line = question(test::with(settings, {{"train.seed", 1}}), smoke);
      for (const char* seed : {"1", "2", "0", "147", "4294967295", "2"}) lines.push_back(seeded(line, seed));
    }
    lines.push_back(question(settings));  // of the default seed
  }
  CheckBatch batch;
  std::set<std::string> ids;
  for (const std::string& line : lines) {
    const json answer = batch.answer(line);
    EXPECT_EQ(answer, CheckBatch().answer(line)) << line;
    ids.insert(answer.value("id", ""));
  }
  EXPECT_GT(ids.size(), 50u);
}

TEST_F(Questions, AboutSeedsThatDrawTheSplitGetTheSizeOfEachVocabulary) {
  const std::string line = question(test::with(drawn_by_seed(), {{"train.seed", 1}}));
  CheckBatch batch;
  std::set<json> sizes;
  for (const char* seed : {"1", "2", "3"}) {
    const json answer = batch.answer(seeded(line, seed));
    EXPECT_EQ(answer, CheckBatch().answer(seeded(line, seed))) << seed;
    sizes.insert(answer.value("parameters", json(answer.value("error", ""))));
  }
  EXPECT_GT(sizes.size(), 1u) << "seeds whose splits have other words";
}

TEST_F(Questions, WithASeedThatIsNoneAreRefusedAfterGoodOnesToo) {
  const std::string line = question(test::with(translate_, {{"train.seed", 1}}));
  CheckBatch batch;
  for (const char* seed : {"-1", "4294967296", "99999999999999999999", "1.5", "1e1", "007", "+1", "", "true", "\"1\"",
                           "1 1", "null", "[1]", "0x1"}) {
    EXPECT_FALSE(batch.answer(line).contains("error"));
    EXPECT_EQ(batch.answer(seeded(line, seed)), CheckBatch().answer(seeded(line, seed))) << seed;
  }
  EXPECT_TRUE(batch.answer(seeded(line, "-1")).contains("error"));
}

TEST_F(Questions, ThatNameTheSeedTwiceOrElsewhereAreAnsweredAsEachIsAlone) {
  const std::string line = question(test::with(translate_, {{"train.seed", 1}}));
  const auto with_member = [](std::string question, const std::string& member) {
    question.back() = ',';
    return question + member + "}";
  };
  CheckBatch batch;
  for (const std::string& first :
       {seeded(line, R"(1,"train.seed":1)"), with_member(line, R"("settings":{"train.seed":1})"),
        with_member(line, R"("train.seed":1)"), with_member(question(translate_), R"("train.seed":1)"),
        with_member(question(translate_), R"("folders":{"train.seed":1})"),
        question(test::with(translate_, {{"train.seed", 1}, {"data.how_to_get", "\"train.seed\":1"}}))}) {
    for (const std::string& each : {first, seeded(first, "2")}) {
      EXPECT_EQ(batch.answer(each), CheckBatch().answer(each)) << each;
    }
  }
}

// A plan that looked at the files for each of 100,000 runs would take twice as long.
TEST_F(Questions, AboutTheSeedsOfOneCellLookAtTheFilesOnce) {
  const std::string line = question(test::with(translate_, {{"train.seed", 1}}));
  CheckBatch batch;
  const json before = batch.answer(line);
  runs_.write("train", {{"longer than", "before"}});
  EXPECT_EQ(batch.answer(seeded(line, "2")).at("data"), before.at("data"));
  EXPECT_NE(CheckBatch().answer(seeded(line, "2")).at("data"), before.at("data"));
}

// As the harness writes it where it keeps copies of the files.
TEST(Check, APathInLocalTomlMayBeRelativeToTheRunsFolder) {
  test::SmallRuns runs;
  for (const char* set : {"train", "dev", "test"}) runs.write(set, {{"a b c", "d e f"}, {"g h", "i j"}});
  const RunDirectory run(runs.make(test::with(test::corpus_settings(), {{"text.kind", "segmented"}})));
  std::string local = test::read_text(run.local());
  const std::string path = "\"" + (runs.folder() / "train").string() + "\"";
  ASSERT_NE(local.find(path), std::string::npos) << local;
  local.replace(local.find(path), path.size(), "\"../../train\"");
  test::write_text(run.local(), local);
  EXPECT_EQ(test::translation(read_run_directory(run.root())).data.train, (runs.folder() / "train").string());
}

}  // namespace
}  // namespace tearless::engine::check_test
