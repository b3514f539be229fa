// The gradients of one update: those of its batches, added up.
#pragma once

#include <cstdint>

#include "engine/train/options.h"
#include "engine/train/trainable.h"

namespace tearless::engine {

class UpdateGradients {
 public:
  /// Borrows its arguments.
  UpdateGradients(Trainable& trained, const TrainOptions& train, Tape::Ops ops)
      : trained_(trained), train_(train), ops_(ops) {}

  /// Adds those of batch `index` of the started pass to Parameters::gradients(), for update n, which is counted from 1
  /// and selects the dropout masks. Does nothing once a loss is not finite.
  void add(int64_t n, int64_t index, StreamObserver* observer = nullptr, TapeProfile* profile = nullptr);
  /// What the gradients of all batches are to be divided by. One batch has the gradient of its mean.
  double divisor() const;

  // Of the batches so far.
  const LossSums& sums() const { return sums_; }
  int64_t rows() const { return rows_; }                  // Batch::rows()
  int64_t fallback_ops() const { return fallback_ops_; }  // operations that ran by formula, not by a kernel

 private:
  bool accumulates() const { return train_.accumulate > 1; }
  bool by_batches() const { return train_.accumulate_by == TrainOptions::AccumulateBy::kBatches; }

  Trainable& trained_;
  const TrainOptions& train_;
  Tape::Ops ops_;
  LossSums sums_;
  int64_t rows_ = 0, fallback_ops_ = 0;
  int64_t loss_divisor_ = 0;  // Batch::loss_divisor()
};

}  // namespace tearless::engine
