// What an Updater needs of the model that it trains: parameters, batches and the loss.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/batch.h"
#include "engine/model/forward_context.h"
#include "engine/model/parameters.h"
#include "engine/ops/cross_entropy.h"

namespace tearless::engine {

/// Sums over predictions, of a batch or of several.
struct LossSums {
  std::vector<double> values;  // in the order of Trainable::loss_names(); empty: all 0
  int64_t predictions = 0;

  LossSums& operator+=(const LossSums& other) {
    values.resize(std::max(values.size(), other.values.size()));
    for (size_t i = 0; i < other.values.size(); ++i) values[i] += other.values[i];
    predictions += other.predictions;
    return *this;
  }
  /// The mean of values[i]; 0 where there is no prediction.
  double mean(size_t i = 0) const {
    return predictions == 0 || i >= values.size() ? 0 : values[i] / static_cast<double>(predictions);
  }
};

/// The sums of a task whose loss is a cross-entropy and whose loss_names() are {"loss", "nll"}.
inline LossSums loss_sums(const CrossEntropySums& sums) { return {{sums.loss, sums.nll}, sums.tokens}; }

class Trainable {
 public:
  virtual ~Trainable() = default;

  virtual Parameters& parameters() = 0;
  /// The names of what loss() sums. An update minimises the mean of the first; the others are for reports.
  virtual std::vector<std::string> loss_names() const = 0;
  /// Batch `index` of the started pass, prepared for that update.
  virtual std::unique_ptr<Batch> ready(int64_t index, uint32_t update) = 0;
  /// The sums of a batch from ready(), which may have been padded; the first is recorded on the context's tape. With
  /// context.on_device they are added to its sums, and the result is not read.
  virtual LossSums loss(const ForwardContext& context, const Batch& batch) = 0;

  /// State that passes from one update to the next, such as the memory of a language model: read and written in place
  /// by loss() on a recording tape, and by nothing else. The same tensors for the life of the model, so that captured
  /// updates find them; checkpoints contain them. They begin as zeros, in each pass.
  virtual std::vector<at::Tensor> carried() { return {}; }
};

}  // namespace tearless::engine
