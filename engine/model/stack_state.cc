#include "engine/model/stack_state.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace tearless::engine {

ColumnSlice Slot::extend(Tape& tape, const ColumnSlice& now) const {
  if (!rows_.defined()) return now;
  const auto columns = [column = now.column, width = rows_.size(1)](const at::Tensor& rows) {
    return rows.slice(1, column, column + width);
  };
  const int64_t first = written_.first, end = first + now.rows.data().size(0);
  const at::Tensor& indices = written_.indices;
  if (indices.defined()) {
    rows_.index_copy_(0, indices, columns(now.rows.data()));
  } else {
    rows_.slice(0, first, end).copy_(columns(now.rows.data()));
  }
  const Value all(rows_);
  tape.record("state", [=] {
    if (!all.has_grad()) return;
    columns(now.rows.grad_buffer())
        .add_(indices.defined() ? all.grad().index_select(0, indices) : all.grad().slice(0, first, end));
  });
  return {all, 0};
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
