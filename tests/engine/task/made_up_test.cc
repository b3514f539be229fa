// The tasks on batches that they make up, for the command bench.
#include "engine/task/made_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/model/parser_network.h"
#include "engine/task/language_model.h"
#include "engine/task/task_kind.h"
#include "tests/support/paths.h"

namespace tearless::engine::made_up_test {
namespace {

using testing::ElementsAre;

class MadeUpBatches : public testing::Test {
 protected:
  MadeUpTask made_up(const std::string& name, int64_t vocabulary, const std::string& sizes) {
    test::write_text(folder_ / "sizes.json", "{\"batches\": " + sizes + "}");
    kind_ = make_task_kind(name);
    if (auto* language_model = dynamic_cast<TaskKindWith<LanguageModelOptions>*>(kind_.get()))
      language_model->options.model.layers = 1;
    return kind_->made_up_task(train_, execution_, vocabulary, folder_ / "sizes.json");
  }

  test::TempFolder folder_;
  TrainOptions train_;
  ExecutionOptions execution_;
  std::unique_ptr<TaskKind> kind_;
};

/// Two batches, and how many predictions each has.
struct Sizes {
  std::string text;
  std::vector<int64_t> predictions;
};
const std::map<std::string, Sizes>& sizes_of_kinds() {
  static const std::map<std::string, Sizes> sizes = {{"translate", {"[[[3, 4], [2, 2]], [[5, 1]]]", {6, 1}}},
                                                     {"classify", {"[[3, 4, 9], [5, 1]]", {3, 2}}},
                                                     {"digits", {"[[5], [3]]", {5, 3}}},
                                                     {"parse", {"[[5], [3]]", {5, 3}}},
                                                     {"language_model", {"[[512], [512]]", {22 * 512, 22 * 512}}}};
  return sizes;
}

TEST_F(MadeUpBatches, OfEveryTaskAreAsLargeAsAsked) {
  for (const auto& kind : task_kinds()) {
    SCOPED_TRACE(kind->name);
    ASSERT_TRUE(sizes_of_kinds().contains(std::string(kind->name))) << "add its sizes";
    const Sizes& sizes = sizes_of_kinds().at(std::string(kind->name));
    const MadeUpTask made = made_up(std::string(kind->name), 50, sizes.text);
    ASSERT_EQ(made.batches, std::ssize(sizes.predictions));
    for (int64_t i = 0; i < made.batches; ++i) {
      EXPECT_EQ(made.task->ready(i, 1)->predictions(), sizes.predictions[static_cast<size_t>(i)]) << i;
    }
  }
}

TEST_F(MadeUpBatches, OfImagesAndOfConfigurationsArePaddedToTheLargest) {
  for (const char* name : {"digits", "parse"}) {
    const MadeUpTask made = made_up(name, 50, "[[3], [5], [2]]");
    for (int64_t i = 0; i < made.batches; ++i) EXPECT_THAT(made.task->ready(i, 1)->bucket(), ElementsAre(5)) << name;
  }
}

TEST_F(MadeUpBatches, FollowTheSeedOfTheOrder) {
  const auto tokens = [&](int64_t seed) {
    train_.order_seed = seed;
    const MadeUpTask made = made_up("parse", 50, "[[20]]");
    return dynamic_cast<const ReadyConfigurations&>(*made.task->ready(0, 1)).tokens.tokens;
  };
  EXPECT_EQ(tokens(1), tokens(1));
  EXPECT_NE(tokens(1), tokens(2));
}

// 18 words, their 18 tags and 12 labels: docs/spec/tasks.md §4.2. The tokens of V words are NULL, ROOT, UNKNOWN and
// 3 … V + 2; then come those of 50 tags, likewise, and NULL and 40 labels.
class MadeUpConfigurations : public MadeUpBatches {
 protected:
  static constexpr int32_t kWords = 60, kCount = 4000;
  static constexpr int32_t kNoTag = kWords + 3, kNoLabel = kNoTag + 53;

  MadeUpConfigurations() : made_(made_up("parse", kWords, "[[4000]]")), batch_(made_.task->ready(0, 1)) {}

  const ReadyConfigurations& batch() const { return dynamic_cast<const ReadyConfigurations&>(*batch_); }
  int32_t token(int32_t configuration, int32_t feature) const {
    return batch().tokens.tokens[static_cast<size_t>(configuration * 48 + feature)];
  }

  MadeUpTask made_;
  std::unique_ptr<Batch> batch_;
};

TEST_F(MadeUpConfigurations, HaveWordsAsOftenAsInText) {
  std::map<int32_t, double> counts;
  double all = 0, harmonic = 0;
  for (int32_t i = 0; i < kCount; ++i) {
    if (const int32_t word = token(i, 3); word >= 3) ++counts[word - 3], ++all;  // the first word of the buffer
  }
  for (int32_t rank = 0; rank < kWords; ++rank) harmonic += 1.0 / (rank + 1);
  for (const int32_t rank : {0, 1, 4, kWords - 1}) {
    const double expected = all / (rank + 1) / harmonic;
    EXPECT_NEAR(counts[rank], expected, 5 * std::sqrt(expected)) << rank;
  }
}

TEST_F(MadeUpConfigurations, HaveTheTagOfEachWordAndLabelsOfAllChildren) {
  std::set<int32_t> labels;
  for (int32_t i = 0; i < kCount; ++i) {
    for (int32_t f = 0; f < 18; ++f) {
      const int32_t word = token(i, f);
      ASSERT_LT(word, kWords + 3);
      ASSERT_EQ(token(i, f + 18), kNoTag + (word < 3 ? word : 3 + (word - 3) % 50)) << f;
      if (f < 6) continue;
      const int32_t label = token(i, f + 30);
      ASSERT_EQ(label == kNoLabel, word == 0) << f;
      if (label != kNoLabel) labels.insert(label - kNoLabel - 1);
    }
  }
  EXPECT_EQ(std::ssize(labels), 39) << "all but that of the root, which no child of a word has";
  EXPECT_FALSE(labels.contains(0));
}

TEST_F(MadeUpConfigurations, AreOfAllPlacesOfASentence) {
  // Of 32 transitions of a tree of 16 words one attaches the word below ROOT, where ROOT is second on the stack.
  std::map<int32_t, int> kinds;
  for (const int32_t legal : batch().legal) ++kinds[legal];
  EXPECT_EQ(kinds.size(), 4u);
  const double last = kCount / 32.0;
  EXPECT_NEAR(kinds[1], last, 5 * std::sqrt(last));  // Legal::kRootArc
  const auto shifts = std::ranges::count(batch().labels, 80);
  EXPECT_NEAR(static_cast<double>(shifts), kCount / 2, 5 * std::sqrt(kCount / 4.0));
}

}  // namespace
}  // namespace tearless::engine::made_up_test
