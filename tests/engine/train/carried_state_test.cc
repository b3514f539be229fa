// State that passes from one update to the next: part of every update, of checkpoints, and 0 at the start of a pass.
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "tests/engine/train/toy.h"

namespace tearless::engine::carried_state_test {
namespace {

using test::Trained;

/// Learns as Toy does, from labels that depend on the state; the state counts the updates of the pass, and holds the
/// parameters that it has seen last.
class Remembering final : public Task {
 public:
  Parameters& parameters() override { return toy_.parameters(); }
  std::vector<std::string> loss_names() const override { return toy_.loss_names(); }
  int64_t schedule_width() const override { return toy_.schedule_width(); }
  Selection selection() const override { return toy_.selection(); }
  std::string dev_loss() const override { return toy_.dev_loss(); }
  int64_t start_pass(int64_t pass) override { return toy_.start_pass(pass); }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override { return toy_.ready(index, update); }
  NamedNumbers evaluate() override { return toy_.evaluate(); }
  FinalScores final_scores() override { return toy_.final_scores(); }
  std::vector<at::Tensor> carried() override { return {count_, seen_}; }

  LossSums loss(const ForwardContext& context, const Batch& batch) override {
    if (context.update == crash_at) throw std::runtime_error("crash");
    counts.push_back(count_.item<int64_t>());
    test::ToyBatch shifted = static_cast<const test::ToyBatch&>(batch);
    const bool grew = parameters().values().sum().item<float>() > seen_.sum().item<float>();
    for (int32_t& label : shifted.labels) label = static_cast<int32_t>((label + counts.back() + grew) % test::kLabels);
    count_.add_(1);
    seen_.copy_(parameters().values());
    return toy_.loss(context, shifted);
  }

  std::vector<int64_t> counts;  // the state that each update found
  uint32_t crash_at = 0;

 private:
  test::Toy toy_;
  at::Tensor count_ = at::zeros({1}, at::kLong), seen_ = at::zeros({test::kLabels});
};

TEST_F(Trained, CarriedStatePassesFromUpdateToUpdateAndBeginsAsZerosInEachPass) {
  Remembering task;
  train_.max_updates = 8;
  EXPECT_EQ(attempt(task), kExitDone);
  EXPECT_EQ(task.counts, (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1}));
}

TEST_F(Trained, CarriedStateIsPartOfCheckpointsSoThatACrashChangesNothing) {
  train_.epoch_updates = 4;  // not a whole number of passes
  {
    Remembering whole;
    ASSERT_EQ(attempt(whole), kExitDone);
  }
  const std::string wanted = test::results_of(run_);
  for (const uint32_t crash_at : {5u, 6u, 7u, 9u, 12u}) {
    start_again();
    Remembering crashing;
    crashing.crash_at = crash_at;
    EXPECT_THROW(attempt(crashing), std::runtime_error);
    Remembering resumed;
    EXPECT_EQ(attempt(resumed), kExitDone);
    EXPECT_EQ(resumed.counts.front(), ((crash_at - 1) / 4 * 4) % 3) << "as the checkpoint left it";
    EXPECT_EQ(test::results_of(run_), wanted) << "crash at update " << crash_at;
  }
}

TEST_F(Trained, ACheckpointOfAModelWithOtherCarriedStateIsRefused) {
  test::Toy without;
  without.at_update = [](uint32_t update) {
    if (update == 6) throw std::runtime_error("crash");
  };
  EXPECT_THROW(attempt(without), std::runtime_error);
  Remembering task;
  EXPECT_THROW(attempt(task), UserError);
}

}  // namespace
}  // namespace tearless::engine::carried_state_test
