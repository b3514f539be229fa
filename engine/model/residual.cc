#include "engine/model/residual.h"

namespace tearless::engine {
namespace {

bool has_final_norm(Placement placement) { return placement == Placement::kPre; }

NormOp identity() { return norm_kind("none").make({}, {}, 0); }

NormOp make_norm(const Parameters& parameters, const ModelOptions& options, const std::string& name) {
  return norm_kind(options.norm.kind)
      .make(parameters.get(name + ".norm.gain"), parameters.get(name + ".norm.bias"), options.norm.eps_of_kind());
}

}  // namespace

void append_norm_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, const std::string& name) {
  const NormKind& kind = norm_kind(options.norm.kind);
  if (const int64_t size = kind.gain_size(options.d_model); size > 0) {
    specs.push_back({name + ".norm.gain", {size}, {Initial::Kind::kConstant, kind.initial_gain(options.d_model)}});
  }
  if (kind.bias) specs.push_back({name + ".norm.bias", {options.d_model}, {}});
}

void append_final_norm_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, const std::string& name) {
  if (has_final_norm(options.placement)) append_norm_specs(specs, options, name + ".final");
}

SublayerConnection make_sublayer_connection(const Parameters& parameters, const ModelOptions& options,
                                            uint32_t dropout_seed, const std::string& name) {
  return {make_norm(parameters, options, name), DropoutSite(options.dropout.residual, dropout_seed, name)};
}

NormOp make_final_norm(const Parameters& parameters, const ModelOptions& options, const std::string& name) {
  return has_final_norm(options.placement) ? make_norm(parameters, options, name + ".final") : identity();
}

Residual::Residual(Placement placement, const ForwardContext& context, Value x, const PackedRows& rows)
    : placement_(placement), context_(context), x_(std::move(x)), rows_(rows) {}

Value Residual::add_pending(const NormOp& norm) {
  if (!pending_) return norm_rows(context_.tape, x_, norm);
  const Normed out = add_norm(context_.tape, x_, pending_, pending_dropout_, rows_, norm);
  x_ = out.sum;
  pending_ = {};
  return out.normed;
}

Value Residual::input(const SublayerConnection& connection) {
  return placement_ == Placement::kPost ? x_ : add_pending(connection.norm);
}

void Residual::add(const SublayerConnection& connection, const Value& y) {
  pending_ = y;
  pending_dropout_ = connection.dropout.at(context_);
  if (placement_ == Placement::kPost) x_ = add_pending(connection.norm);
}

Value Residual::output(const NormOp& final_norm) { return add_pending(final_norm); }

}  // namespace tearless::engine
