// The task digits: images of digits with a label each, a convolutional network, cross-entropy, and as scores accuracy
// and loss (docs/spec/tasks.md §3).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/digits.h"
#include "engine/model/digit_network.h"
#include "engine/task/class_predictions.h"
#include "engine/task/task_kind.h"
#include "engine/task/task_of.h"

namespace tearless::engine {

struct DigitsTaskOptions {
  DigitsOptions data;
  DigitNetworkOptions model;
  ImageBatchOptions batch;  // [train.batch]
};

class DigitsTask final : public TaskOf<DigitsTaskOptions, ReadyImages> {
 public:
  /// Borrows all options, which must outlive the task.
  DigitsTask(const DigitsTaskOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
             Digits digits);

  int64_t schedule_width() const override { return 1; }
  Selection selection() const override { return class_numbers().selection; }
  std::string dev_loss() const override { return class_numbers().dev_loss; }
  NamedNumbers evaluate() override;
  FinalScores final_scores() override;

 private:
  std::vector<Examples> cut(int64_t pass) const override;
  ReadyImages ready_examples(const Examples& examples, uint32_t update) const override;
  CrossEntropySums model_loss(const ForwardContext& context, const ReadyImages& batch) const override {
    return model_.loss(context, batch, train_.label_smoothing);
  }
  /// Without dropout.
  ClassPredictions predictions(const DigitSet& set) const;
  ReadyImages ready_images(const DigitSet& set, const ImageIds& images) const;

  Digits digits_;
  DigitNetwork model_;
};

}  // namespace tearless::engine
