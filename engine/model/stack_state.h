// What a stack of layers keeps of the rows of a pass for later passes: in search the keys and values of earlier
// positions or the sum of the rows so far, in a language model the memory of earlier segments. The stack never moves
// the rows of a slot: which of them a row sees, AttentionSpans say (ops/attention.h). Whoever owns a state resets and
// reorders by other spans, or moves rows (SegmentMemory). On a recording tape a span's rows are consecutive; key_rows,
// which lists them in any order, is for search.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/ops/attention.h"

namespace tearless::engine {

/// The rows of every slot that a pass writes, one for each row of its input.
struct StateRows {
  int64_t first = 0;        // T consecutive rows from this one, if `indices` is undefined
  at::Tensor indices = {};  // [T] int64 row numbers
};

/// The part of the state that one sublayer keeps, in one pass. By default there is none.
class Slot {
 public:
  Slot() = default;
  Slot(at::Tensor rows, const StateRows& written) : rows_(std::move(rows)), written_(written) {}

  /// The rows that a sublayer's spans refer to: `now` [T, W] itself if there is no state; else all rows of the slot
  /// [capacity, W], after `now` has been written to those of this pass. Gradients reach `now` alone: what earlier
  /// passes left is constant.
  ColumnSlice extend(Tape& tape, const ColumnSlice& now) const;
  /// linear() of all rows of the slot, after `now` [T, W] has been written: [capacity, out] for weight [out, W]. Does
  /// not compute the gradients of what earlier passes left, which a linear() of extend() would compute and drop.
  /// REQUIRES: a state (std::logic_error).
  Value extend_linear(Tape& tape, const Value& now, const Value& weight) const;
  /// All rows of the slot [capacity, W], for an operation that writes those of this pass by itself; undefined if there
  /// is no state.
  const at::Tensor& rows() const { return rows_; }

 private:
  void write(const at::Tensor& now) const;
  /// Of `rows`, those that this pass writes, `count` in number.
  at::Tensor written(const at::Tensor& rows, int64_t count) const;

  at::Tensor rows_;
  StateRows written_;
};

/// The state of a stack, from LayerStack::make_state().
struct StackState {
  std::vector<at::Tensor> slots;  // of each sublayer [capacity, its slot_width()], undefined where that is 0
  int64_t capacity = 0;           // rows
  StateRows written;              // by the next pass

  /// Makes room for at least `rows` rows; the first `filled` are retained.
  void reserve(int64_t rows, int64_t filled);
};

}  // namespace tearless::engine
