// What the classification task trains on: which sentences, in which order, and which of their words are dropped.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/model/classifier.h"
#include "tests/engine/run/small_runs.h"
#include "tests/engine/train/in_memory.h"

namespace tearless::engine::classify_batches_test {
namespace {

using test::Settings;
using Numbers = std::vector<int32_t>;

class ClassifyBatches : private test::InMemory, public testing::Test {
 protected:
  ClassifyBatches() {
    std::vector<test::Labelled> sentences;
    for (int i = 0; i < 24; ++i) {
      std::string sentence = "a";
      for (int n = 0; n < i % 5; ++n) sentence += " " + std::string(1, static_cast<char>('a' + (i + n) % 7));
      sentences.emplace_back(sentence, i % 2);
    }
    for (const char* set : {"train", "dev", "test"}) runs_.write_labelled(set, sentences);
  }

  /// The tokens or the sentence ids of the batches of a pass, one batch after another. Batch i is of update `first` +
  /// i.
  Numbers of_pass(int64_t pass, std::vector<int32_t> PackedRows::*numbers, uint32_t first = 1) {
    Numbers all;
    const int64_t batches = task_->start_pass(pass);
    for (int64_t i = 0; i < batches; ++i) {
      const auto batch = task_->ready(i, first + static_cast<uint32_t>(i));
      const Numbers& own = dynamic_cast<const ReadySentences&>(*batch).words.*numbers;
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }
  void make(const Settings& changes) {
    task_.reset();
    options_ = runs_.options(test::with(test::with(test::labelled_settings(), {{"text.min_count", 1},
                                                                               {"model.layers", 1},
                                                                               {"model.d_model", 8},
                                                                               {"model.d_ff", 8},
                                                                               {"model.heads", 1},
                                                                               {"model.dropout.word", 0.5},
                                                                               {"train.batch.tokens", 12}}),
                                        changes));
    task_ = test::task_of(options_);
  }

  test::SmallRuns runs_;
  RunOptions options_;
  std::unique_ptr<Task> task_;
};

TEST_F(ClassifyBatches, APassHasEverySentenceOnceAndAnotherOrderThanTheOneBefore) {
  make({{"model.dropout.word", 0.0}});
  const Numbers first = of_pass(0, &PackedRows::sentence_ids), second = of_pass(1, &PackedRows::sentence_ids);
  EXPECT_NE(first, second);
  EXPECT_EQ(of_pass(0, &PackedRows::sentence_ids), first) << "a function of the pass";
  const auto sorted = [](Numbers numbers) {
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  };
  EXPECT_EQ(sorted(first), sorted(second));
  EXPECT_EQ(std::set<int32_t>(first.begin(), first.end()).size(), 24u);
}

TEST_F(ClassifyBatches, LabelsAreThoseOfTheSentences) {
  make({});
  const int64_t batches = task_->start_pass(0);
  for (int64_t i = 0; i < batches; ++i) {
    const auto batch = task_->ready(i, 1);
    const ReadySentences& ready = dynamic_cast<const ReadySentences&>(*batch);
    EXPECT_EQ(batch->predictions(), ready.words.sentence_count());
    EXPECT_EQ(batch->rows(), ready.words.row_count());
    ASSERT_EQ(ready.labels.size(), static_cast<size_t>(ready.words.sentence_count()));
    for (size_t s = 0; s < ready.labels.size(); ++s) {
      const auto row = static_cast<size_t>(ready.words.offsets[s]);
      EXPECT_EQ(ready.labels[s], ready.words.sentence_ids[row] % 2);
      EXPECT_EQ(ready.pooled.sentence_ids[s], ready.words.sentence_ids[row]);
    }
  }
}

// What is missing among the parts would keep the numbers of the batch that was captured.
TEST_F(ClassifyBatches, EveryArrayOfABatchIsAPartAndPaddingIsNotCounted) {
  make({});
  task_->start_pass(0);
  const auto batch = task_->ready(0, 1);
  const int64_t rows = batch->rows(), sentences = batch->predictions();
  batch->pad();
  EXPECT_EQ(batch->rows(), rows);
  EXPECT_EQ(batch->predictions(), sentences);
  const ReadySentences& ready = dynamic_cast<const ReadySentences&>(*batch);
  std::set<const void*> found;
  for (const Batch::Part& part : batch->parts()) found.insert(part.data);
  EXPECT_EQ(found, (std::set<const void*>{ready.words.tokens.data(), ready.words.positions.data(),
                                          ready.words.sentence_ids.data(), ready.words.by_token.data(),
                                          ready.spans.spans.data(), ready.pooled.positions.data(),
                                          ready.pooled.sentence_ids.data(), ready.labels.data()}));
}

TEST_F(ClassifyBatches, TheScheduleHasTheWidthOfTheModel) {
  make({});
  EXPECT_EQ(task_->schedule_width(), 8);
}

TEST_F(ClassifyBatches, OtherWordsAreDroppedInEachUpdate) {
  make({});
  const Numbers first = of_pass(0, &PackedRows::tokens);
  EXPECT_EQ(of_pass(0, &PackedRows::tokens), first);
  EXPECT_NE(of_pass(0, &PackedRows::tokens, /*first=*/2), first);
  const auto dropped = static_cast<double>(std::count(first.begin(), first.end(), kUnk));
  EXPECT_NEAR(dropped / static_cast<double>(first.size()), 0.5, 0.15);
}

TEST_F(ClassifyBatches, EachSeedIsForWhatItsNameSays) {
  struct Seen {
    std::vector<float> parameters;
    Numbers order, tokens;
  };
  const auto with_seed = [&](const Settings& seed) {
    make(seed);
    const at::Tensor& values = task_->parameters().values();
    return Seen{{values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()},
                of_pass(0, &PackedRows::sentence_ids),
                of_pass(0, &PackedRows::tokens)};
  };
  const Seen before = with_seed({}), init = with_seed({{"train.init_seed", 7}}),
             order = with_seed({{"train.order_seed", 7}}), dropout = with_seed({{"train.dropout_seed", 7}});
  EXPECT_NE(init.parameters, before.parameters);
  EXPECT_EQ(init.order, before.order);
  EXPECT_EQ(init.tokens, before.tokens);
  EXPECT_EQ(order.parameters, before.parameters);
  EXPECT_NE(order.order, before.order);
  EXPECT_EQ(dropout.parameters, before.parameters);
  EXPECT_EQ(dropout.order, before.order);
  EXPECT_NE(dropout.tokens, before.tokens);
}

}  // namespace
}  // namespace tearless::engine::classify_batches_test
