#include "engine/task/class_predictions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include <algorithm>

namespace tearless::engine {

void ClassPredictions::add(const at::Tensor& logits, std::span<const int32_t> labels) {
  const at::Tensor log_p = at::log_softmax(logits.to(at::kDouble), 1).cpu();
  const double* row = log_p.const_data_ptr<double>();
  const int64_t count = log_p.size(1);
  for (const int32_t label : labels) {
    classes_.push_back(static_cast<int32_t>(std::max_element(row, row + count) - row));
    right_ += classes_.back() == label;
    nll_ -= row[label];
    row += count;
  }
}

NamedNumbers ClassPredictions::scores(const std::string& set) const {
  constexpr double kMaxLoss = 700;  // also where the parameters are not finite: JSON has finite numbers alone
  const auto count = static_cast<double>(classes_.size());
  return {{set + ".accuracy", 100.0 * static_cast<double>(right_) / count},
          {set + ".loss", std::min(kMaxLoss, nll_ / count)}};
}

std::string ClassPredictions::lines(std::span<const std::string> names) const {
  std::string text;
  for (const int32_t label : classes_) text += names[static_cast<size_t>(label)] + "\n";
  return text;
}

TaskNumbers class_numbers() {
  return {.training = {},
          .dev = ClassPredictions::score_names("dev"),
          .final = ClassPredictions::score_names("test"),
          .selection = {.score = "dev.accuracy"},
          .dev_loss = "dev.loss"};
}

FinalScores final_class_scores(const ClassPredictions& dev, const ClassPredictions& test,
                               std::span<const std::string> names) {
  return {.numbers = test.scores("test"),
          .files = {{"outputs/dev.classes", dev.lines(names)}, {"outputs/test.classes", test.lines(names)}}};
}

}  // namespace tearless::engine
