#include "engine/model/residual.h"

namespace tearless::engine {
namespace {

bool has_final_norm(Placement placement) { return placement == Placement::kPre; }

NormSite final_site(const std::string& stack) {
  const bool in_decoder = stack == "decoder";
  return {.in_decoder = in_decoder, .after_stack = true, .decoder_output = in_decoder};
}

NormOp make_norm(const Parameters& parameters, const ModelOptions& options, const std::string& name,
                 const NormSite& site) {
  const ChosenNorm norm = options.norm.at(site, options.fix_norm);
  return norm.kind.make(parameters.get(name + ".norm.gain"), parameters.get(name + ".norm.bias"), norm.denominator,
                        options.d_model);
}

}  // namespace

void append_norm_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, const std::string& name,
                       const NormSite& site) {
  const NormKind& kind = options.norm.at(site, options.fix_norm).kind;
  if (const int64_t size = kind.gain_size(options.d_model); size > 0) {
    specs.push_back({name + ".norm.gain", {size}, {Initial::Kind::kConstant, kind.initial_gain(options.d_model)}});
  }
  if (kind.bias) specs.push_back({name + ".norm.bias", {options.d_model}, {}});
}

void append_final_norm_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, const std::string& stack) {
  if (has_final_norm(options.placement)) append_norm_specs(specs, options, stack + ".final", final_site(stack));
}

SublayerConnection make_sublayer_connection(const Parameters& parameters, const ModelOptions& options,
                                            uint32_t dropout_seed, const std::string& name, const NormSite& site) {
  return {make_norm(parameters, options, name, site), DropoutSite(options.dropout.residual, dropout_seed, name)};
}

NormOp make_final_norm(const Parameters& parameters, const ModelOptions& options, const std::string& stack) {
  return has_final_norm(options.placement) ? make_norm(parameters, options, stack + ".final", final_site(stack))
                                           : norm_kind("none").make({}, {}, {}, options.d_model);
}

NormSite sublayer_site(const ModelOptions& options, bool in_decoder, bool last) {
  return {.in_decoder = in_decoder, .decoder_output = in_decoder && last && options.placement == Placement::kPost};
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
