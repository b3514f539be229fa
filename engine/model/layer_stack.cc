#include "engine/model/layer_stack.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>

namespace tearless::engine {

namespace {

/// The parts of a layer that the settings name; `source` outlives the stack.
std::vector<LayerStack::Part> parts_of(std::string_view sublayers, SourceProjection& source) {
  std::vector<LayerStack::Part> parts;
  for (const SublayerKind* kind : sublayers_of(sublayers)) {
    parts.push_back(
        {std::string(kind->name), [kind, &source](const LayerScope& scope) { return kind->make(scope, source); }});
  }
  return parts;
}

}  // namespace

LayerStack::LayerStack(const LayerScope& stack, int64_t layers, std::string_view sublayers)
    : source_(std::make_unique<SourceProjection>()) {
  add_layers(stack, layers, parts_of(sublayers, *source_));
}

LayerStack::LayerStack(const LayerScope& stack, int64_t layers, const std::vector<Part>& layer)
    : source_(std::make_unique<SourceProjection>()) {
  add_layers(stack, layers, layer);
}

void LayerStack::add_layers(const LayerScope& stack, int64_t layers, const std::vector<Part>& layer) {
  for (int64_t l = 1; l <= layers; ++l) {
    for (const Part& part : layer) {
      const bool last = &part == &layer.back();
      const LayerScope scope = stack.in_layer(l).in_sublayer(part.name);
      std::unique_ptr<Sublayer> sublayer = part.make(scope);
      sublayers_.push_back({std::move(sublayer), make_connection(scope, {.first_of_layer = &part == &layer.front(),
                                                                         .last_of_layer = last,
                                                                         .last_of_stack = last && l == layers})});
    }
  }
  source_->declare(stack.parameters());
  final_norms_ = make_final_norms(stack);
}

Value LayerStack::forward(const ForwardContext& context, const Value& x, SublayerInputs inputs,
                          const StackState* state) const {
  Residual stream(context, x, inputs.rows);
  for (size_t i = 0; i < sublayers_.size(); ++i) {
    const auto& [sublayer, connection] = sublayers_[i];
    if (state) inputs.slot = {state->slots[i], state->written};
    stream.add(connection, sublayer->forward(context, stream.input(connection), inputs));
  }
  return stream.output(final_norms_);
}

StackState LayerStack::make_state(int64_t rows, const at::TensorOptions& options, bool constant) const {
  StackState state;
  state.capacity = rows;
  for (const auto& [sublayer, connection] : sublayers_) {
    const int64_t width = constant ? sublayer->constant_slot_width() : sublayer->slot_width();
    const bool wide = sublayer->slot_is_wide() && options.dtype() == at::kBFloat16;
    state.slots.push_back(width == 0 ? at::Tensor()
                                     : at::empty({rows, width}, wide ? options.dtype(at::kFloat) : options));
  }
  return state;
}

int64_t saved_numbers(const LayerOptions& o, std::string_view sublayers) {
  const auto count = static_cast<int64_t>(sublayers_of(sublayers).size());
  return std::max<int64_t>(1, count - 1) * (10 * o.d_model + 3 * o.d_ff);
}

}  // namespace tearless::engine
