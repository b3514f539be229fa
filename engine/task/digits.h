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

class DigitsKind final : public TaskKindOf<DigitsKind> {
 public:
  DigitsKind();

  void describe_own(SettingsVisitor& visitor) override;
  void check_consistent(const TrainOptions& train) const override;
  DataFiles data_files() override { return engine::data_files(options.data); }
  TaskNumbers numbers() const override { return class_numbers(); }
  DeclaredParameters model_parameters() const override { return declared_parameters(options.model); }
  std::optional<Size> size(const TrainOptions& train) const override;
  int64_t pass_batches(const TrainOptions& train) const override;
  std::string prepare_data(const TrainOptions& train, const Say& say) const override;
  Counts data_counts(const TrainOptions& train, const Say& say) const override;
  std::vector<std::string> data_count_names() const override;
  std::unique_ptr<Task> make(const TrainOptions& train, const ExecutionOptions& execution,
                             const Say& say) const override;
  MadeUpTask made_up_task(const TrainOptions& train, const ExecutionOptions& execution, int64_t vocab_size,
                          const std::filesystem::path& sizes) const override;

  DigitsTaskOptions options;
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
