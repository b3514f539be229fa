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
  EXPECT_THAT(said({}), ElementsAre(HasSubstr("2 of 3 training pairs"), "source: 3 words, 4 subwords, 4 types",
                                    "target: 4 words, 5 subwords, 3 types", "output vocabulary: 5 types",
                                    "batches of the first pass: 2", HasSubstr(end)));
  EXPECT_THAT(said({{"train.batch.tokens", 10}}),
              ElementsAre("source: 3 words, 4 subwords, 4 types", "target: 4 words, 5 subwords, 3 types",
                          "output vocabulary: 5 types", "batches of the first pass: 1", HasSubstr(end)))
      << "two pairs of five target tokens, BOS included, are ten";
  EXPECT_THAT(said({{"model.mask_target_vocabulary", false}}), testing::Contains("output vocabulary: 9 types"))
      << "all of the joint vocabulary but PAD and BOS";
}

}  // namespace
}  // namespace tearless::engine::prepare_test
