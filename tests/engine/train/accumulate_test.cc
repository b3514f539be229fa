// Updates of several batches: those of one batch with all of their predictions, or with equal weights.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "tests/engine/train/toy.h"

namespace tearless::engine::accumulate_test {
namespace {

using test::Toy;
using test::Trained;
using testing::ElementsAre;

using Labels = std::vector<int32_t>;

/// Six rows of logits, which are the parameters. A batch labels some of them; the others have -1.
class Rows final : public Trainable {
 public:
  explicit Rows(std::vector<Labels> batches) : batches_(std::move(batches)) { parameters_.allocate(); }

  Parameters& parameters() override { return parameters_; }
  std::vector<std::string> loss_names() const override { return {"loss", "nll"}; }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t) override {
    auto batch = std::make_unique<Part>();
    batch->labels = batches_.at(static_cast<size_t>(index));
    return batch;
  }
  LossSums loss(const ForwardContext& context, const Batch& batch) override {
    // A copy, because the gradient is written over the logits.
    const Value logits =
        context.tape.by_formula({logits_}, [](const std::vector<at::Tensor>& in) { return in[0] * 1; });
    return loss_sums(smoothed_cross_entropy(context.tape, logits, static_cast<const Part&>(batch).labels, 0.1));
  }

 private:
  struct Part final : Batch {
    int64_t rows() const override { return predictions(); }
    int64_t predictions() const override {
      return std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label >= 0; });
    }
    std::vector<int64_t> bucket() const override { return {6}; }
    void pad() override {}
    std::vector<Batch::Part> parts() const override { return {labels}; }
    Labels labels;
  };

  std::vector<Labels> batches_;
  Parameters parameters_{/*seed=*/1, at::kCPU};
  Value logits_ = parameters_.declare({"logits", {6, 4}, {Initial::Kind::kNormal, 1.0}});
};

const Labels kWhole = {0, 1, 2, 3, 1, 2};
const std::vector<Labels> kParts = {{0, 1, -1, -1, -1, -1}, {-1, -1, 2, 3, 1, 2}};  // of 2 and 4 predictions

/// Updates, each of all batches of `rows`.
std::vector<UpdateResult> train(Rows& rows, TrainOptions settings, int64_t batches, int64_t updates = 3) {
  settings.accumulate = batches;
  OptimiserState state(settings.optimiser.chosen(), rows.parameters().values());
  const ExecutionOptions execution;
  const auto updater = make_updater(rows, settings, execution, state);
  std::vector<UpdateResult> results;
  for (int64_t n = 1; n <= updates; ++n) {
    for (int64_t i = 0; i + 1 < batches; ++i) updater->add(n, i);
    updater->start(n, batches - 1, 0.1);
    for (const UpdateResult& result : updater->collect()) results.push_back(result);
  }
  return results;
}

TEST(Accumulate, TwoBatchesMakeTheUpdateOfOneWithAllTheirPredictions) {
  for (const char* kind : {"adam", "sgd"}) {
    for (const double clip_norm : {0.0, 0.1}) {
      TrainOptions settings;
      settings.optimiser.kind = kind;
      settings.clip_norm = clip_norm;
      Rows whole({kWhole}), parts(kParts);
      const std::vector<UpdateResult> once = train(whole, settings, 1), twice = train(parts, settings, 2);
      ASSERT_EQ(twice.size(), once.size());
      for (size_t i = 0; i < once.size(); ++i) {
        EXPECT_NEAR(twice[i].sums.mean(0), once[i].sums.mean(0), 1e-6);
        EXPECT_NEAR(twice[i].sums.mean(1), once[i].sums.mean(1), 1e-6);
        EXPECT_EQ(twice[i].sums.predictions, 6);
        EXPECT_EQ(twice[i].rows, 6);
        EXPECT_NEAR(twice[i].gradient_norm, once[i].gradient_norm, 1e-6);
      }
      const at::Tensor difference = (whole.parameters().values() - parts.parameters().values()).abs();
      EXPECT_LT(difference.max().item<float>(), 1e-5) << kind << " clip " << clip_norm;
    }
  }
}

TEST(Accumulate, ByBatchesIsTheMeanOfTheUpdatesOfEach) {
  TrainOptions settings;
  settings.optimiser.kind = "sgd";
  settings.clip_norm = 0;
  settings.accumulate_by = TrainOptions::AccumulateBy::kBatches;
  Rows first({kParts[0]}), second({kParts[1]}), both(kParts);
  const at::Tensor before = both.parameters().values().clone();
  train(first, settings, 1, 1);
  train(second, settings, 1, 1);
  train(both, settings, 2, 1);
  const at::Tensor mean = (first.parameters().values() + second.parameters().values()) / 2;
  EXPECT_LT((both.parameters().values() - mean).abs().max().item<float>(), 1e-6);
  settings.accumulate_by = TrainOptions::AccumulateBy::kPredictions;
  Rows weighted(kParts);
  train(weighted, settings, 2, 1);
  EXPECT_GT((weighted.parameters().values() - mean).abs().max().item<float>(), 1e-3) << "the parts differ in size";
}

TEST(Accumulate, ANumberThatIsNotFiniteInTheFirstBatchLeavesTheParametersAsTheyWere) {
  Rows rows(kParts);
  rows.parameters().values()[0] = std::numeric_limits<float>::infinity();
  const at::Tensor before = rows.parameters().values().clone();
  const std::vector<UpdateResult> results = train(rows, {}, 2, 1);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_FALSE(results[0].finite());
  EXPECT_TRUE(at::equal(rows.parameters().values(), before));
}

TEST_F(Trained, AccumulatesConsecutiveBatchesAcrossPassesAndReportsUpdates) {
  Toy toy;
  train_.accumulate = 2;
  train_.max_updates = 4;
  EXPECT_EQ(attempt(toy), kExitDone);
  EXPECT_EQ(done().step, 4);
  EXPECT_THAT(toy.labels, ElementsAre(0, 1, 2, 1, 2, 3, 2, 3)) << "passes of three batches, two of them an update";
  EXPECT_EQ(metric("train.loss").size(), 2u) << "one in two updates";
}

TEST_F(Trained, AccumulatingResumesWithTheSameBytesWhereverItCrashed) {
  train_.accumulate = 2;
  train_.epoch_updates = 4;
  train_.max_epochs = 3;
  {
    Toy whole;
    ASSERT_EQ(attempt(whole), kExitDone);
  }
  const std::string wanted = test::results_of(run_);
  for (const uint32_t crash_at : {3u, 5u, 6u, 9u, 12u}) {
    start_again();
    Toy crashing;
    int batches = 0;
    crashing.at_update = [&](uint32_t update) {
      if (update == crash_at && ++batches == 2) throw std::runtime_error("crash");  // with a gradient of one batch
    };
    EXPECT_THROW(attempt(crashing), std::runtime_error);
    Toy resumed;
    EXPECT_EQ(attempt(resumed), kExitDone);
    EXPECT_EQ(test::results_of(run_), wanted) << "crash at update " << crash_at;
  }
}

TEST_F(Trained, ResumesEveryKindOfOptimiserWithTheSameBytes) {
  for (const auto& kind : optimiser_kinds()) {
    train_.optimiser.kind = kind->name;
    start_again();
    {
      Toy whole;
      ASSERT_EQ(attempt(whole), kExitDone);
    }
    const std::string wanted = test::results_of(run_);
    start_again();
    Toy crashing;
    crashing.crash_at = 10;
    EXPECT_THROW(attempt(crashing), std::runtime_error);
    Toy resumed;
    EXPECT_EQ(attempt(resumed), kExitDone);
    EXPECT_EQ(test::results_of(run_), wanted) << kind->name;
  }
}

}  // namespace
}  // namespace tearless::engine::accumulate_test
