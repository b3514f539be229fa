#include "engine/model/stack_state.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/error.h"
#include "engine/ops/linear.h"

namespace tearless::engine {

void Slot::write(const at::Tensor& now) const {
  if (written_.indices.defined()) {
    rows_.index_copy_(0, written_.indices, now);
  } else {
    written(rows_, now.size(0)).copy_(now);
  }
}

at::Tensor Slot::written(const at::Tensor& rows, int64_t count) const {
  return written_.indices.defined() ? rows.index_select(0, written_.indices)
                                    : rows.slice(0, written_.first, written_.first + count);
}

ColumnSlice Slot::extend(Tape& tape, const ColumnSlice& now) const {
  if (!rows_.defined()) return now;
  const auto columns = [column = now.column, width = rows_.size(1)](const at::Tensor& rows) {
    return rows.slice(1, column, column + width);
  };
  write(columns(now.rows.data()));
  const Value all(rows_);
  tape.record("state", [=, slot = *this] {
    if (!all.has_grad()) return;
    columns(now.rows.grad_buffer()).add_(slot.written(all.grad(), now.rows.data().size(0)));
  });
  return {all, 0};
}

Value Slot::extend_linear(Tape& tape, const Value& now, const Value& weight) const {
  require(rows_.defined(), "extend_linear: there is no state");
  write(now.data());
  const Value all = linear(tape, Value(rows_, /*requires_grad=*/false), weight, {});
  tape.record("matmul", [=, slot = *this] {
    if (!all.has_grad() || !now.requires_grad()) return;
    const at::Tensor dy = slot.written(all.grad(), now.data().size(0));
    matmul(dy, weight.as(dy.scalar_type()), now.grad_buffer(), /*add=*/true);
  });
  return all;
}

void StackState::reserve(int64_t rows, int64_t filled) {
  if (rows <= capacity) return;
  capacity = std::max(rows, 2 * capacity);
  for (at::Tensor& slot : slots) {
    if (!slot.defined()) continue;
    const at::Tensor larger = at::empty({capacity, slot.size(1)}, slot.options());
    larger.slice(0, 0, filled).copy_(slot.slice(0, 0, filled));
    slot = larger;
  }
}

}  // namespace tearless::engine
