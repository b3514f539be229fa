#include "engine/train/update_gradients.h"

#include <algorithm>
#include <cmath>

namespace tearless::engine {

double UpdateGradients::divisor() const {
  if (!accumulates()) return 1;
  return static_cast<double>(by_batches() ? train_.accumulate : std::max<int64_t>(1, loss_divisor_));
}

void UpdateGradients::add(int64_t n, int64_t index, StreamObserver* observer, TapeProfile* profile) {
  if (!std::isfinite(sums_.mean())) return;
  const auto update = static_cast<uint32_t>(n);
  const std::unique_ptr<Batch> batch = trained_.ready(index, update);
  Tape tape(Tape::Kind::kRecording, ops_);
  if (profile) tape.profile_to(profile);
  if (accumulates() && !by_batches()) tape.set_loss_scale(1);
  sums_ += trained_.loss({.tape = tape, .update = update, .observer = observer}, *batch);
  rows_ += batch->rows();
  loss_divisor_ += batch->loss_divisor();
  fallback_ops_ += tape.fallback_ops();
  if (std::isfinite(sums_.mean())) tape.backward();
}

}  // namespace tearless::engine
