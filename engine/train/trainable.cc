#include "engine/train/trainable.h"

namespace tearless::engine {

LossSums& LossSums::operator+=(const LossSums& other) {
  values.resize(std::max(values.size(), other.values.size()));
  for (size_t i = 0; i < other.values.size(); ++i) values[i] += other.values[i];
  predictions += other.predictions;
  return *this;
}

double LossSums::mean(size_t i) const {
  return predictions == 0 || i >= values.size() ? 0 : values[i] / static_cast<double>(predictions);
}

LossSums loss_sums(const CrossEntropySums& sums) { return {{sums.loss, sums.nll}, sums.tokens}; }

}  // namespace tearless::engine
