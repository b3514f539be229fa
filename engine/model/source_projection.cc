#include "engine/model/source_projection.h"

#include <utility>

#include "engine/ops/linear.h"

namespace tearless::engine {

int64_t SourceProjection::add(const LayerScope& scope, std::initializer_list<const char*> parts) {
  const int64_t d = scope.options().d_model;
  const int64_t first = columns_;
  for (const char* part : parts) {
    weights_.push_back(scope.weight(part, MatrixRole::kCrossQkv, d, d));
    biases_.push_back(scope.bias(part, MatrixRole::kCrossQkv, d, d));
    columns_ += d;
  }
  return first;
}

void SourceProjection::declare(Parameters& parameters) {
  if (weights_.empty()) return;
  const Value weight = parameters.declare_joined(std::move(weights_));
  maps_ = {weight, parameters.declare_joined(std::move(biases_))};
}

Value SourceProjection::forward(const ForwardContext& context, const Value& encoder_output) const {
  return linear(context.tape, encoder_output, maps_.weight, maps_.bias);
}

Linear SourceProjection::map(Tape& tape, int64_t column) const {
  const int64_t end = column + maps_.weight.data().size(1);
  return {slice_rows(tape, maps_.weight, column, end), slice_rows(tape, maps_.bias, column, end)};
}

}  // namespace tearless::engine
