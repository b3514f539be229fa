// The classification task: sentences with a class each, an encoder, cross-entropy, and as scores accuracy and loss
// (docs/spec/tasks.md §2).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/data/labelled_tokens.h"
#include "engine/model/classifier.h"
#include "engine/task/class_predictions.h"
#include "engine/task/task_kind.h"
#include "engine/task/task_of.h"

namespace tearless::engine {

/// [train.batch] of classify.
struct SentenceBatchOptions {
  int64_t tokens = 4096;  // maximum tokens per batch, padding included: sentences × longest sentence
};

struct ClassifyOptions {
  LabelledTextOptions data;
  WordOptions text;
  ClassifierOptions model;
  SentenceBatchOptions batch;
};

class Classify final : public TaskOf<ClassifyOptions, ReadySentences> {
 public:
  /// Borrows all options, which must outlive the task.
  Classify(const ClassifyOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
           std::shared_ptr<const LabelledTokens> data);

  int64_t schedule_width() const override { return options_.model.d_model; }
  Selection selection() const override { return class_numbers().selection; }
  std::string dev_loss() const override { return class_numbers().dev_loss; }
  NamedNumbers evaluate() override;
  FinalScores final_scores() override;

  const LabelledTokens& data() const { return *data_; }

 private:
  std::vector<Examples> cut(int64_t pass) const override;
  ReadySentences ready_examples(const Examples& examples, uint32_t update) const override;
  CrossEntropySums model_loss(const ForwardContext& context, const ReadySentences& batch) const override {
    return model_.loss(context, batch, train_.label_smoothing);
  }
  /// Without dropout.
  ClassPredictions predictions(const LabelledLines& set) const;

  std::shared_ptr<const LabelledTokens> data_;
  Classifier model_;
};

}  // namespace tearless::engine
