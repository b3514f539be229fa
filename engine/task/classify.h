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

class ClassifyKind final : public TaskKindOf<ClassifyKind> {
 public:
  ClassifyKind();

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

  ClassifyOptions options;
};

class Classify final : public Task {
 public:
  /// Borrows all options, which must outlive the task.
  Classify(const ClassifyOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
           std::shared_ptr<const LabelledTokens> data);

  Parameters& parameters() override { return parameters_; }
  std::vector<std::string> loss_names() const override { return {"loss", "nll"}; }
  int64_t schedule_width() const override { return options_.model.d_model; }
  Selection selection() const override { return {.score = "dev.accuracy"}; }
  int64_t start_pass(int64_t pass) override;
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override;
  LossSums loss(const ForwardContext& context, const Batch& batch) override;
  NamedNumbers evaluate() override;
  FinalScores final_scores() override;

  const LabelledTokens& data() const { return *data_; }
  /// ready() for these training sentences.
  std::unique_ptr<Batch> ready_sentences(const SentenceIds& sentences, uint32_t update) const;

 private:
  /// Without dropout.
  ClassPredictions predictions(const LabelledLines& set) const;

  const ClassifyOptions& options_;
  const TrainOptions& train_;
  const ExecutionOptions& execution_;
  std::shared_ptr<const LabelledTokens> data_;
  Parameters parameters_;
  Classifier model_;
  std::vector<SentenceIds> batches_;  // of the started pass
};

}  // namespace tearless::engine
