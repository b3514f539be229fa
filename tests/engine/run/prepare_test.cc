// What `tearless-engine prepare` prints of a corpus, counted by hand.
#include <gmock/gmock.h>

#include "tests/engine/run/small_runs.h"

namespace tearless::engine::prepare_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Prepare, CountsWordsSubwordsTypesAndBatches) {
  const test::SmallRuns runs;
  const std::pair<std::string, std::string> empty = {"", "w"};  // not used
  runs.write("train", {{"a b@@ c", "x y@@ z x"}, {"d", "x"}, empty});
  for (const char* set : {"dev", "test"}) runs.write(set, {{"a", "x"}});
  const auto said = [&](const test::Settings& changes) {
    const RunOptions options = runs.options(test::with(
        test::with(test::corpus_settings(), {{"text.kind", "segmented"}, {"train.batch.tokens", 9}}), changes));
    std::vector<std::string> lines;
    lines.push_back(options.task->prepare_data(options.train, [&](const std::string& line) { lines.push_back(line); }));
    return lines;
  };
  const std::string end = ": 2 training, 1 dev, 1 test pairs; vocabulary 11";
  EXPECT_THAT(said({}),
              ElementsAre(HasSubstr("2 of 3 training pairs"), "source: 3 words, 4 subwords, 4 types",
                          "target: 4 words, 5 subwords, 3 types", "output vocabulary: 5 types",
                          "labels outside the target vocabulary, which count as UNK: 0 training, 0 dev, 0 test",
                          "batches of the first pass: 2", HasSubstr(end)));
  EXPECT_THAT(said({{"train.batch.tokens", 10}}),
              ElementsAre("source: 3 words, 4 subwords, 4 types", "target: 4 words, 5 subwords, 3 types",
                          "output vocabulary: 5 types",
                          "labels outside the target vocabulary, which count as UNK: 0 training, 0 dev, 0 test",
                          "batches of the first pass: 1", HasSubstr(end)))
      << "two pairs of five target tokens, BOS included, are ten";
  EXPECT_THAT(said({{"model.mask_target_vocabulary", false}}), testing::Contains("output vocabulary: 9 types"))
      << "all of the joint vocabulary but PAD and BOS";
}

// Sides with EOS: 4, 2 and 3 of the source, 5, 2 and 2 of the target.
TEST(Prepare, CountsTheSidesThatAreCutAndThePairsThatAreInNoBatch) {
  const test::SmallRuns runs;
  runs.write("train", {{"a b c", "x y z x"}, {"d", "x"}, {"a b", "z"}});
  for (const char* set : {"dev", "test"}) runs.write(set, {{"a b c d e f g", "x"}});
  const auto said = [&](const test::Settings& changes) {
    const RunOptions options = runs.options(test::with(
        test::with(test::corpus_settings(), {{"text.kind", "segmented"}, {"train.batch.tokens", 6}}), changes));
    std::vector<std::string> lines;
    options.task->prepare_data(options.train, [&](const std::string& line) { lines.push_back(line); });
    return lines;
  };
  using testing::Contains;
  using testing::Not;
  EXPECT_THAT(said({}), Not(Contains(testing::AnyOf(HasSubstr("sides cut"), HasSubstr("in no batch")))));
  const auto cut = [](const char* counts) { return std::string("training sides cut to ") + counts; };
  EXPECT_THAT(said({{"train.batch.truncate", 2}}), Contains(cut("2 tokens, which lose their EOS: 2 source, 1 target")));
  EXPECT_THAT(said({{"train.batch.truncate", 3}}), Contains(cut("3 tokens, which lose their EOS: 1 source, 1 target")));
  EXPECT_THAT(said({{"train.batch.truncate", 5}}), Contains(cut("5 tokens, which lose their EOS: 0 source, 0 target")));
  EXPECT_THAT(said({{"train.batch.truncate", 2}}), Contains("batches of the first pass: 1"));
  const auto left_out = [](const char* count) {
    return std::string("training pairs left out at the end of each pass, because their batch is too small: ") + count;
  };
  // Two pairs of at most three tokens, five together, and one of five.
  EXPECT_THAT(said({{"train.batch.regenerate", "buffers"}}),
              testing::IsSupersetOf({left_out("0"), std::string("batches of the first pass: 2")}));
  // Each by itself, as 2 × 3 is not below six; of these the first has two tokens.
  EXPECT_THAT(said({{"train.batch.regenerate", "buffers"}, {"train.batch.count", "padded_below"}}),
              testing::IsSupersetOf({left_out("1"), std::string("batches of the first pass: 2")}));
}

// <unk> does not tell whether more of its word follows.
TEST(Prepare, CountsTheWordsOfWhichPartsAreTooRareForAPieceOfTheirOwn) {
  const test::SmallRuns runs;
  runs.write("train", {{"ab@@ c c", "x"}, {"c", "y@@ x"}, {"c", "z@@ y@@ x y@@ x"}});
  for (const char* set : {"dev", "test"}) runs.write(set, {{"c", "x"}});
  const RunOptions options =
      runs.options(test::with(test::corpus_settings(), {{"text.kind", "segmented"}, {"text.min_count", 2}}));
  std::vector<std::string> lines;
  options.task->prepare_data(options.train, [&](const std::string& line) { lines.push_back(line); });
  EXPECT_THAT(lines, testing::IsSupersetOf({"source: 4 words, 5 subwords, 1 types",
                                            "target: 4 words, 8 subwords, 2 types", "output vocabulary: 4 types"}));
}

/// What it prints for these settings, a line each.
std::vector<std::string> printed(const test::SmallRuns& runs, const test::Settings& settings) {
  const RunOptions options = runs.options(settings);
  std::vector<std::string> lines;
  lines.push_back(options.task->prepare_data(options.train, [&](const std::string& line) { lines.push_back(line); }));
  return lines;
}

// The second time, too, when the corpus is in the cache.
TEST(Prepare, CountsWhatItLeavesOutOfTheFiles) {
  const test::SmallRuns runs;
  for (const char* set : {"train", "dev", "test"}) {
    runs.write(set, {{"a b", "x y"}, {"b", "y"}});
    runs.write_labelled(set, {{"bad one", 0}, {"good one", 1}});
  }
  test::write_text(runs.folder() / "dev.tgt", "\xEF\xBB\xBFx\r\ny\r\n");
  test::write_text(runs.folder() / "test", "0 bad\r\n1 good\n");
  const auto settings = test::with(test::corpus_settings(), {{"text.kind", "bpe"}, {"text.merges", 1}});
  for (int time = 0; time < 2; ++time) {
    EXPECT_THAT(printed(runs, settings),
                testing::Contains((runs.folder() / "dev.tgt").string() +
                                  ": left out the carriage returns at the ends of 2 lines, and the byte order mark at "
                                  "the start"));
    EXPECT_THAT(
        printed(runs, test::with(test::labelled_settings(), {{"text.min_count", 1}})),
        testing::Contains((runs.folder() / "test").string() + ": left out the carriage returns at the ends of 1 line"));
  }
}

TEST(Prepare, WarnsOfReferencesWithHardlyASpaceUnlessBleuCountsCharacters) {
  const test::SmallRuns runs;
  for (const char* set : {"train", "dev", "test"}) {
    runs.write(set,
               {{"the weather is nice today", "今天天气不错我们去公园散步吧"}, {"a war", "这是二十一世纪的新战争"}});
  }
  for (const char* kind : {"bpe", "sentencepiece"}) {
    const auto settings =
        test::with(test::corpus_settings(), {{"text.kind", kind}, {"text.merges", 1}, {"text.pieces", 60}});
    EXPECT_THAT(printed(runs, settings),
                testing::IsSupersetOf({testing::StartsWith("warning: the references of dev have hardly a space"),
                                       testing::StartsWith("warning: the references of test have hardly a space")}));
    for (const char* bleu : {"zh", "char"}) {
      EXPECT_THAT(printed(runs, test::with(settings, {{"text.bleu", bleu}})),
                  testing::Not(testing::Contains(HasSubstr("hardly a space"))));
    }
  }
}

TEST(Prepare, WarnsOfTextThatWasCutByAnotherKindOfSubwords) {
  const test::SmallRuns runs;
  for (const char* set : {"train", "dev", "test"}) runs.write(set, {{"the n@@ ew cat", "x"}, {"a cat", "y"}});
  EXPECT_THAT(printed(runs, test::with(test::corpus_settings(), {{"text.kind", "sentencepiece"}, {"text.pieces", 20}})),
              testing::Contains(
                  testing::AllOf(testing::StartsWith("warning: 1 line of " + (runs.folder() / "dev.src").string()),
                                 HasSubstr("text.kind = \"segmented\""))));
  for (const char* set : {"train", "dev", "test"}) runs.write(set, {{"\u2581the \u2581n ew", "x"}, {"\u2581a", "y"}});
  for (const char* kind : {"bpe", "segmented"}) {
    EXPECT_THAT(printed(runs, test::with(test::corpus_settings(), {{"text.kind", kind}, {"text.merges", 1}})),
                testing::Contains(
                    testing::AllOf(testing::StartsWith("warning: 2 lines of " + (runs.folder() / "test.src").string()),
                                   HasSubstr("spm_decode"))));
  }
}

}  // namespace
}  // namespace tearless::engine::prepare_test
