// What the tasks share: the training set is cut into batches of examples, and the loss is a cross-entropy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/execution.h"
#include "engine/train/options.h"
#include "engine/train/task.h"

namespace tearless::engine {

/// `Ready`: a Batch as the model's forward pass takes it.
template <class Options, class Ready>
class TaskOf : public Task {
 public:
  /// The numbers of a batch's examples in the training set.
  using Examples = std::vector<int32_t>;

  Parameters& parameters() override { return parameters_; }
  std::vector<std::string> loss_names() const override { return {"loss", "nll"}; }
  int64_t start_pass(int64_t pass) override { return train_on(cut(pass)); }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override {
    return std::make_unique<Ready>(ready_examples(batches_[static_cast<size_t>(index)], update));
  }
  LossSums loss(const ForwardContext& context, const Batch& batch) override {
    return loss_sums(model_loss(context, static_cast<const Ready&>(batch)));
  }

  /// Takes these batches in place of those of a pass. Returns their number.
  int64_t train_on(std::vector<Examples> batches) {
    batches_ = std::move(batches);
    return static_cast<int64_t>(batches_.size());
  }

 protected:
  /// The examples of the largest of the batches.
  int64_t most_examples() const {
    size_t most = 0;
    for (const Examples& batch : batches_) most = std::max(most, batch.size());
    return static_cast<int64_t>(most);
  }

  /// Borrows all options, which must outlive the task.
  TaskOf(const Options& options, const TrainOptions& train, const ExecutionOptions& execution)
      : options_(options),
        train_(train),
        execution_(execution),
        parameters_(train.seed_for_init(), device_of(execution), row_precision(execution)) {}

  /// The batches of a pass.
  virtual std::vector<Examples> cut(int64_t pass) const = 0;
  /// These training examples, prepared for that update.
  virtual Ready ready_examples(const Examples& examples, uint32_t update) const = 0;
  virtual CrossEntropySums model_loss(const ForwardContext& context, const Ready& batch) const = 0;

  const Options& options_;
  const TrainOptions& train_;
  const ExecutionOptions& execution_;
  Parameters parameters_;

 private:
  std::vector<Examples> batches_;
};

}  // namespace tearless::engine
