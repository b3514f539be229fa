// Whole runs of the task parse: what is learnt, scored, refused, and read of the data.
#include "engine/task/parse.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "engine/run/check.h"
#include "tests/engine/run/recomputed.h"
#include "tests/engine/run/small_treebank.h"
#include "tests/engine/train/in_memory.h"
#include "tests/support/error_of.h"

namespace tearless::engine::parse_test {
namespace {

using tearless::test::error_of;
namespace fs = std::filesystem;
using nlohmann::json;
using test::Ended;
using test::Settings;
using test::with;
using testing::HasSubstr;

class ParserRuns : private test::InMemory, public testing::Test {
 protected:
  ParserRuns() { test::write_treebank(runs_.folder()); }

  Ended trained(const Settings& changes) { return runs_.train(with(test::small_parser(), changes)); }
  std::string refused(const Settings& changes) {
    return error_of([&] { runs_.options(with(test::small_parser(), changes)); });
  }

  test::SmallRuns runs_;
};

// --- features --------------------------------------------------------------------------------------------------------

// Word i of the sentence has token 10 + i and tag 30 + i; 0, 1 and 2 are NULL of words, tags and labels, and label l
// has token 50 + l.
TEST(ParserFeatureTokens, AreThoseOfStackBufferAndChildren) {
  EncodedTree tree;
  for (int32_t i = 0; i <= 9; ++i) {
    tree.words.push_back(10 + i);
    tree.tags.push_back(30 + i);
  }
  tree.heads.assign(9, 0);
  Treebank treebank;
  treebank.no_word = 0, treebank.no_tag = 1, treebank.no_label = 2, treebank.first_label = 50;
  const Transitions transitions{.labels = 4, .root_label = 0};
  Configuration configuration(9);
  // Arcs 3→2 (1), 3→1 (2), 3→4 (3), then 5, 6→5 (1), and 7, 8, 9 in the buffer: the stack is ROOT 3 6.
  const auto shift = transitions.shift();
  for (const int32_t t : {shift, shift, shift, transitions.left(1), transitions.left(2), shift, transitions.right(3),
                          shift, shift, transitions.left(1)}) {
    configuration.apply(transitions, t);
  }
  std::vector<int32_t> tokens;
  add_features(ParserFeatures::kAll, configuration, tree, treebank, tokens);
  const std::vector<int32_t> words = {10, 13, 16, 17, 18, 19,  // s3 s2 s1 b1 b2 b3
                                      15, 0,  0,  0,  0,  0,   // of s1 = 6
                                      11, 14, 12, 0,  0,  0};  // of s2 = 3: lc1, rc1, lc2, …
  std::vector<int32_t> expected = words;
  for (const int32_t word : words) expected.push_back(word == 0 ? 1 : word + 20);
  const std::vector<int32_t> labels = {51, 2, 2, 2, 2, 2, 52, 53, 51, 2, 2, 2};
  expected.insert(expected.end(), labels.begin(), labels.end());
  EXPECT_EQ(tokens, expected);
  EXPECT_EQ(std::ssize(tokens), feature_count(ParserFeatures::kAll));

  tokens.clear();
  add_features(ParserFeatures::kWordsAndTags, configuration, tree, treebank, tokens);
  expected.resize(36);
  EXPECT_EQ(tokens, expected);
  EXPECT_EQ(std::ssize(tokens), feature_count(ParserFeatures::kWordsAndTags));

  // 6→7 and 7→… make children of children: lc1(lc1) and rc1(rc1).
  for (const int32_t t : {shift, shift, transitions.right(2), transitions.right(3)})
    configuration.apply(transitions, t);
  tokens.clear();
  add_features(ParserFeatures::kAll, configuration, tree, treebank, tokens);  // the stack is ROOT 3 6, 6→7→8
  EXPECT_EQ(tokens[6], 15);
  EXPECT_EQ(tokens[7], 17) << "rc1 of 6 is 7";
  EXPECT_EQ(tokens[11], 18) << "rc1 of 7 is 8";
  EXPECT_EQ(tokens[36 + 5], 52) << "with the label of 7→8";
}

// --- learning --------------------------------------------------------------------------------------------------------

TEST_F(ParserRuns, LearnTheTreesOfEveryPattern) {
  for (const char* activation : {"relu", "cube"}) {
    for (const char* features : {"all", "words_tags"}) {
      for (const char* labels : {"main", "none"}) {
        SCOPED_TRACE(std::string(activation) + ", " + features + ", " + labels);
        const Ended ended = trained({{"model.activation", activation},
                                     {"model.hidden", 24},
                                     {"model.features", features},
                                     {"data.labels", labels},
                                     {"model.dropout.hidden", 0.0},
                                     {"train.epoch_updates", 150},
                                     {"train.max_epochs", 1}});
        EXPECT_EQ(ended.code, kExitDone);
        EXPECT_EQ(ended.measured.at("fallback_ops"), 0);
        EXPECT_LT(ended.metric("train.loss").back(), 0.02);
        // One of 8 test sentences is not projective, which no parser of this kind gets right.
        EXPECT_GT(ended.scores.at("test.uas"), 90);
        EXPECT_LT(ended.scores.at("test.uas"), 100);
        EXPECT_LT(ended.scores.at("test.loss"), 0.05);
        EXPECT_LE(ended.scores.at("test.las"), ended.scores.at("test.uas"));
      }
    }
  }
}

TEST_F(ParserRuns, ScoreTheTreesThatTheyWrite) {
  const Ended ended = trained({{"train.epoch_updates", 20}, {"train.max_epochs", 1}});
  const auto fields = [](const std::string& line) {
    std::vector<std::string> columns = {""};
    for (const char c : line) c == '\t' ? void(columns.emplace_back()) : columns.back().push_back(c);
    return columns;
  };
  int tokens = 0, heads = 0, words = 0, word_heads = 0, arcs = 0;
  std::vector<std::string> gold;
  for (const std::string& line : test::lines_of(runs_.folder() / "test.conllu")) {
    if (!line.starts_with('#')) gold.push_back(line);
  }
  test::write_text(runs_.folder() / "parsed.conllu", ended.outputs.at("test.conllu"));
  const std::vector<std::string> parsed = test::lines_of(runs_.folder() / "parsed.conllu");
  ASSERT_EQ(parsed.size(), gold.size());
  for (size_t i = 0; i < gold.size(); ++i) {
    if (gold[i].empty()) {
      EXPECT_EQ(parsed[i], "");
      continue;
    }
    const auto a = fields(gold[i]), b = fields(parsed[i]);
    ASSERT_EQ(b.size(), 10u);
    EXPECT_EQ(a[0], b[0]);
    EXPECT_EQ(a[1], b[1]);
    const bool right = a[6] == b[6], is_word = a[4] != "." && a[4] != ",";
    ++tokens, heads += right, words += is_word, word_heads += right && is_word;
    arcs += right && a[7].substr(0, a[7].find(':')) == b[7];
  }
  EXPECT_LT(heads, tokens) << "nothing is wrong: the test shows nothing";
  EXPECT_NE(word_heads * tokens, heads * words) << "punctuation makes no difference: the test shows nothing";
  EXPECT_LT(arcs, heads);
  EXPECT_DOUBLE_EQ(ended.scores.at("test.uas"), 100.0 * heads / tokens);
  EXPECT_DOUBLE_EQ(ended.scores.at("test.uas_no_punct"), 100.0 * word_heads / words);
  EXPECT_DOUBLE_EQ(ended.scores.at("test.las"), 100.0 * arcs / tokens);
  for (const std::string set : {"dev", "test"}) {
    for (const char* score : {".uas", ".uas_no_punct", ".las"}) {
      EXPECT_EQ(ended.scores.at(set + score).get<double>(),
                test::recomputed(set + score, ended.outputs.at(set + ".stats")));
    }
  }
  EXPECT_EQ(ended.measured.at("decoded_sentences"), 8);
}

TEST_F(ParserRuns, DoNotDependOnTheNumberOfThreads) {
  const Settings larger = {{"model.embedding", 50}, {"model.hidden", 128}, {"train.batch.examples", 300}};
  const Ended one = trained(with(larger, {{"run.threads", 1}})), two = trained(with(larger, {{"run.threads", 2}}));
  EXPECT_EQ(two.measured.at("threads"), 2);
  EXPECT_EQ(one.metrics, two.metrics);
  EXPECT_TRUE(one.same_results(two));
  at::set_num_threads(1);
}

// --- data ------------------------------------------------------------------------------------------------------------

const Settings kLearning = {
    {"model.hidden", 24}, {"model.dropout.hidden", 0.0}, {"train.epoch_updates", 150}, {"train.max_epochs", 1}};

/// A treebank with other labels.
std::string relabelled(std::string text, const std::string& label, const std::string& other) {
  for (size_t at = 0; (at = text.find("\t" + label + "\t", at)) != text.npos;)
    text.replace(at + 1, label.size(), other);
  return text;
}

// A label that training does not have is counted as wrong, and its transition is not in the loss. The most frequent
// label, nsubj, stands for it in derivations, but not the root's.
TEST_F(ParserRuns, HaveLabelsOfDevAndTestThatTrainingLacksAsWrong) {
  const auto file = [&](const char* set) { return runs_.folder() / (std::string(set) + ".conllu"); };
  const std::string train = test::read_text(file("train")), dev = test::read_text(file("dev")),
                    test = test::read_text(file("test"));
  for (const std::string label : {"nsubj", "det"}) {
    for (const bool root_is_most_frequent : {false, true}) {
      SCOPED_TRACE(label + (root_is_most_frequent ? ", the root's label is the most frequent one" : ""));
      const std::string hello = root_is_most_frequent ? "1\tHello\t_\tINTJ\tUH\t_\t0\troot\t_\t_\n\n" : "";
      test::write_text(file("train"), train + hello);
      test::write_text(file("dev"), relabelled(dev, label, "new"));
      test::write_text(file("test"), relabelled(test, label, "new"));
      const Ended ended = trained(kLearning);
      EXPECT_EQ(ended.code, kExitDone);
      EXPECT_GT(ended.scores.at("test.uas"), 90);
      EXPECT_LT(ended.scores.at("test.las"), 85);
      EXPECT_LT(ended.metric("dev.loss").back(), 0.05);
      EXPECT_LT(ended.scores.at("test.loss"), 0.05);
    }
  }
  // With these arcs the loss would be another one.
  test::write_text(file("test"), relabelled(test, "det", "nsubj"));
  EXPECT_GT(trained(kLearning).scores.at("test.loss"), 0.1);
}

// The transition system gives the root label to the arc from ROOT alone, and no other label to it.
TEST_F(ParserRuns, HaveRootLabelsOfDevAndTestInOtherPlacesAsWrong) {
  const Ended before = trained(kLearning);
  for (const char* set : {"dev.conllu", "test.conllu"}) {
    std::string text = test::read_text(runs_.folder() / set);
    const size_t root = text.find("\troot\t"), subject = text.find("\tnsubj\t", root);
    text.replace(subject, 7, "\troot\t").replace(root, 6, "\tobj\t");
    test::write_text(runs_.folder() / set, text);
  }
  const Ended after = trained(kLearning);
  EXPECT_EQ(after.scores.at("test.uas"), before.scores.at("test.uas"));
  EXPECT_LT(after.scores.at("test.las").get<double>(), before.scores.at("test.las").get<double>() - 2);
  EXPECT_LT(after.scores.at("test.loss"), 0.05) << "these two arcs are left out of it";
}

TEST_F(ParserRuns, HaveTheSizesThatTheFilesGive) {
  const auto answer = [&](const Settings& changes) {
    return check_run(runs_.options(with(test::small_parser(), changes)));
  };
  const auto parameters = [&](const Settings& changes) { return answer(changes).at("parameters").get<int64_t>(); };
  // det, nsubj, root, obj, punct, amod, advmod; 14 words, 7 tags, 3 + 3 + 1 tokens besides: 35 of width 6
  const int64_t embedding = 6 * (14 + 7 + 7 + 7), transitions = 2 * 7 + 1;
  EXPECT_EQ(parameters({{"model.norm.kind", "none"}}),
            embedding + (48 * 6 + 1) * 10 + (10 + 1) * 10 + (10 + 1) * transitions);
  EXPECT_EQ(parameters({}), parameters({{"model.norm.kind", "none"}}) + 2 * 2 * 10);
  EXPECT_EQ(parameters({{"model.hidden_layers", 1}}), parameters({}) - 11 * 10 - 2 * 10);
  EXPECT_EQ(parameters({{"model.output_bias", false}}), parameters({}) - transitions);
  EXPECT_EQ(parameters({{"model.features", "words_tags"}}), parameters({}) - 12 * 6 * 10);
  EXPECT_EQ(parameters({{"data.labels", "none"}}), parameters({}) - 6 * 6 - 11 * 12);
  EXPECT_GT(answer({}).at("memory_bytes"), 16 * parameters({}));
}

// --- what is refused -------------------------------------------------------------------------------------------------

TEST_F(ParserRuns, WithSettingsThatContradictEachOtherAreRefused) {
  EXPECT_EQ(refused({{"train.label_smoothing", 0.1}}),
            "settings: train.label_smoothing = 0.1 gives mass to illegal transitions, which model.softmax = \"legal\" "
            "excludes; set it to 0, or model.softmax = \"all\"");
  EXPECT_EQ(refused({{"train.label_smoothing", 0.1}, {"model.softmax", "all"}}), "");
  EXPECT_THAT(refused({{"train.schedule.kind", "invsqrt"}}),
              HasSubstr("the network of parse does not have; set train.schedule.peak_lr"));
  EXPECT_THAT(refused({{"model.heads", 4}}), HasSubstr("model.heads is a setting of task = \"translate\""));
  EXPECT_THAT(
      refused({{"train.label_smoothing_form", "joey"}, {"train.label_smoothing", 0.1}, {"model.softmax", "all"}}),
      HasSubstr("task = \"translate\""));
}

TEST_F(ParserRuns, WithFilesThatAreNoTreesAreRefusedByCheckAndByTraining) {
  const auto error = [&] {
    const RunOptions options = runs_.options(test::small_parser());
    const std::string by_check = error_of([&] { check_run(options); });
    EXPECT_EQ(by_check, error_of([&] { test::task_of(options); }));
    return by_check;
  };
  EXPECT_EQ(error(), "");
  test::write_text(runs_.folder() / "dev.conllu", "1\ta\t_\tX\tX\t_\t2\tdep\n2\tb\t_\tX\tX\t_\t1\tdep\n");
  EXPECT_THAT(error(), HasSubstr("dev.conllu:1: "));
  const std::string without_xpos = "1\ta\t_\tX\t_\t_\t0\troot\n";
  for (const char* set : {"train", "dev", "test"}) {
    test::write_treebank(runs_.folder());
    test::write_text(runs_.folder() / (std::string(set) + ".conllu"), without_xpos);
    EXPECT_THAT(error(), HasSubstr(std::string(set) + ".conllu: every tag is \"_\"")) << "and not by scores";
  }
  fs::remove(runs_.folder() / "dev.conllu");
  EXPECT_THAT(error_of([&] { test::task_of(runs_.options(test::small_parser())); }),
              HasSubstr("the treebank sentences lacks the file"));
}

}  // namespace
}  // namespace tearless::engine::parse_test
