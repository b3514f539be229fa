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

namespace tearless::engine {

struct DigitsTaskOptions {
  DigitsOptions data;
  DigitNetworkOptions model;
  ImageBatchOptions batch;  // [train.batch]
};

class DigitsKind final : public TaskKindOf<DigitsKind> {
 public:
  DigitsKind();

  void describe_own(SettingsVisitor& visitor) override;
  void check_consistent(const TrainOptions& train) const override;
  std::vector<std::pair<const char*, std::string*>> paths() override;
  std::string missing_data() const override;
  void fingerprint() override;
  std::vector<Files> data_files() const override;
  std::optional<Size> size() const override;
  std::string prepare_data(const Say& say) const override;
  std::unique_ptr<Task> make(const TrainOptions& train, const ExecutionOptions& execution,
                             const Say& say) const override;

  DigitsTaskOptions options;
};

class DigitsTask final : public Task {
 public:
  /// Borrows all options, which must outlive the task.
  DigitsTask(const DigitsTaskOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
             Digits digits);

  Parameters& parameters() override { return parameters_; }
  std::vector<std::string> loss_names() const override { return {"loss", "nll"}; }
  int64_t schedule_width() const override { return 1; }
  Selection selection() const override { return {.score = "dev.accuracy"}; }
  int64_t start_pass(int64_t pass) override;
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override;
  LossSums loss(const ForwardContext& context, const Batch& batch) override;
  NamedNumbers evaluate() override;
  FinalScores final_scores() override;

  /// ready() for these training images.
  std::unique_ptr<Batch> ready_batch(const ImageIds& images) const;

 private:
  /// Without dropout.
  ClassPredictions predictions(const DigitSet& set) const;
  ReadyImages ready_images(const DigitSet& set, const ImageIds& images) const;

  const DigitsTaskOptions& options_;
  const TrainOptions& train_;
  const ExecutionOptions& execution_;
  Digits digits_;
  Parameters parameters_;
  DigitNetwork model_;
  std::vector<ImageIds> batches_;  // of the started pass
};

}  // namespace tearless::engine
