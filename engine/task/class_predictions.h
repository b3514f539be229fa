// The predictions of a classifier for one set, and what is scored and written of them: accuracy, loss, the classes, and
// which of them are right.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/score/sentence_stats.h"
#include "engine/train/task.h"

namespace tearless::engine {

class ClassPredictions {
 public:
  /// Adds a batch: logits [N, C] and the N right classes.
  void add(const at::Tensor& logits, std::span<const int32_t> labels);

  /// `set`.accuracy in percent, and `set`.loss, the mean cross-entropy without label smoothing.
  NamedNumbers scores(const std::string& set) const;
  static std::vector<std::string> score_names(const std::string& set) { return {set + ".accuracy", set + ".loss"}; }
  /// The class with the largest logit, of equal ones the first.
  const std::vector<int32_t>& classes() const { return classes_; }
  /// Of each example whether its class is right: they add up to the accuracy.
  SentenceStats stats() const;
  /// From the making of this object to the last batch.
  DecodingTime time() const { return {.seconds = seconds_, .sentences = std::ssize(classes_)}; }
  /// One class a line, by its name in `names`.
  std::string lines(std::span<const std::string> names) const;

 private:
  std::vector<int32_t> classes_;
  std::vector<bool> right_;  // of each of them
  double nll_ = 0;           // Σ -log p(label)
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double seconds_ = 0;
};

/// The names of a classifier's numbers.
TaskNumbers class_numbers();

/// The scores of the test set, and the classes and statistics of both. The scores of dev are known from the evaluation.
FinalScores final_class_scores(const ClassPredictions& dev, const ClassPredictions& test,
                               std::span<const std::string> names);

}  // namespace tearless::engine
