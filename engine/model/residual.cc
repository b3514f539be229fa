#include "engine/model/residual.h"

#include <utility>

namespace tearless::engine {
namespace {

/// The numbers of norms that a placement has.
struct NormPlaces {
  int before = 0, after = 0;  // each sublayer
  int before_stack = 0, after_stack = 0;
};

/// Of a sublayer at that position.
NormPlaces places_of(Placement placement, bool in_decoder, const SublayerPosition& position = {}) {
  switch (placement) {
    case Placement::kPost:
      return {.after = 1};
    case Placement::kPre:
      return {.before = 1, .after_stack = 1};
    case Placement::kPreNoFinal:
      return {.before = 1};
    case Placement::kJoeyPre:
      return {.before = 1, .before_stack = 1};
    case Placement::kJoeyPost:
      if (position.last_of_layer) return {.after = 2, .after_stack = 1};
      return {.after = in_decoder && position.first_of_layer ? 1 : 0, .after_stack = 1};
  }
  return {};
}

NormOp make_norm(const LayerScope& scope, const NormSite& site) {
  const LayerOptions& options = scope.options();
  return scope.norm(options.norm.at(site, options.fix_norm), options.d_model, gain_deviation(options));
}

bool is_decoder(const LayerScope& scope) { return scope.stack() == Stack::kDecoder; }

}  // namespace

ResidualConnection make_connection(const LayerScope& sublayer, const SublayerPosition& position) {
  const bool in_decoder = is_decoder(sublayer);
  const NormPlaces places = places_of(sublayer.options().placement, in_decoder, position);
  const NormSite before{.in_decoder = in_decoder};
  const NormSite after{.in_decoder = in_decoder,
                       .decoder_output = in_decoder && position.last_of_stack && places.after_stack == 0};
  ResidualConnection connection;
  connection.name = sublayer.name();
  connection.dropout = sublayer.dropout(sublayer.options().dropout.residual);
  for (int i = 0; i < places.before; ++i) connection.before.push_back(make_norm(sublayer, before));
  for (int i = 0; i < places.after; ++i) {
    connection.after.push_back(make_norm(i == 0 ? sublayer : sublayer.in_sublayer("second"), after));
  }
  return connection;
}

std::vector<NormOp> make_input_norms(const LayerScope& stack) {
  const bool in_decoder = is_decoder(stack);
  std::vector<NormOp> norms;
  for (int i = 0; i < places_of(stack.options().placement, in_decoder).before_stack; ++i) {
    norms.push_back(make_norm(stack.in_sublayer("input"), {.in_decoder = in_decoder}));
  }
  return norms;
}

std::vector<NormOp> make_final_norms(const LayerScope& stack) {
  const bool in_decoder = is_decoder(stack);
  const NormSite site{.in_decoder = in_decoder, .after_stack = true, .decoder_output = in_decoder};
  std::vector<NormOp> norms;
  for (int i = 0; i < places_of(stack.options().placement, in_decoder).after_stack; ++i) {
    norms.push_back(make_norm(stack.in_sublayer("final"), site));
  }
  return norms;
}

Residual::Residual(const ForwardContext& context, Value x, const PackedRows& rows)
    : context_(context), x_(std::move(x)), rows_(rows) {}

Value Residual::normed(const std::vector<NormOp>& norms) {
  Value out;
  auto next = norms.begin();
  if (!pending_) {
    out = x_;
  } else if (next == norms.end()) {
    out = x_ = add_dropped(context_.tape, x_, pending_, pending_dropout_, rows_);
  } else {
    const Normed fused = add_norm(context_.tape, x_, pending_, pending_dropout_, rows_, *next++);
    x_ = fused.sum;
    out = fused.normed;
  }
  if (pending_ && context_.observer) show(*pending_of_, StreamPoint::kSum);
  pending_ = {};
  for (; next != norms.end(); ++next) out = norm_rows(context_.tape, out, *next);
  return out;
}

Value Residual::input(const ResidualConnection& connection) {
  if (gradients_are_seen()) show(connection, StreamPoint::kInput);  // nothing is pending then
  return normed(connection.before);
}

void Residual::add(const ResidualConnection& connection, const Value& y) {
  pending_ = y;
  pending_dropout_ = connection.dropout.at(context_);
  pending_of_ = &connection;
  if (gradients_are_seen()) normed({});  // the sum by itself, before its norm
  if (!connection.after.empty()) x_ = normed(connection.after);
  if (gradients_are_seen()) show(connection, StreamPoint::kOutput);
}

Value Residual::output(const std::vector<NormOp>& final_norms) { return normed(final_norms); }

}  // namespace tearless::engine
