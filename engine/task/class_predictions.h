// The predictions of a classifier for one set, and what is scored and written of them: accuracy, loss, and the classes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

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
  /// One class a line, by its name in `names`.
  std::string lines(std::span<const std::string> names) const;

 private:
  std::vector<int32_t> classes_;
  int64_t right_ = 0;
  double nll_ = 0;  // Σ -log p(label)
};

/// The names of a classifier's numbers.
TaskNumbers class_numbers();

/// The scores of the test set and the classes of both. The scores of dev are known from the evaluation.
FinalScores final_class_scores(const ClassPredictions& dev, const ClassPredictions& test,
                               std::span<const std::string> names);

}  // namespace tearless::engine
