#include "engine/ops/reshape.h"

namespace tearless::engine {

Value reshape(Tape& tape, const Value& x, int64_t width) {
  const Value out(x.data().view({x.data().numel() / width, width}), x.requires_grad());
  tape.record("reshape", [x, out] {
    if (out.has_grad()) x.add_grad(out.grad().view_as(x.data()));
  });
  return out;
}

}  // namespace tearless::engine
