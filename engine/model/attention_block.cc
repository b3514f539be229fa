#include "engine/model/attention_block.h"

#include "engine/model/initialisation.h"
#include "engine/ops/linear.h"

namespace tearless::engine {
namespace {

using Parts = std::initializer_list<const char*>;

/// Appends the weights of all parts, then their biases. Each kind is adjacent, so that one matmul computes all parts.
void append_projections(std::vector<ParameterSpec>& specs, const ModelOptions& options,
                        const std::vector<std::string>& names, Parts parts, MatrixRole role) {
  const int64_t d = options.d_model;
  for (const std::string& name : names) {
    for (const char* part : parts) {
      specs.push_back({name + part + ".weight", {d, d}, initial_matrix(options, role, d, d)});
    }
  }
  for (const std::string& name : names) {
    for (const char* part : parts) specs.push_back({name + part + ".bias", {d}, {}});
  }
}

Value joined(const Parameters& parameters, const std::vector<std::string>& names, Parts parts, const char* kind) {
  std::vector<std::string> all;
  for (const std::string& name : names) {
    for (const char* part : parts) all.push_back(name + part + kind);
  }
  return parameters.joined(all);
}

}  // namespace

void append_self_attention_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options,
                                 const std::string& name) {
  append_projections(specs, options, {name}, {".q", ".k", ".v"}, MatrixRole::kAttentionQkv);
  append_projections(specs, options, {name}, {".o"}, MatrixRole::kAttentionOutput);
}

void append_cross_attention_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options,
                                  const std::string& name) {
  append_projections(specs, options, {name}, {".q"}, MatrixRole::kAttentionQkv);
  append_projections(specs, options, {name}, {".o"}, MatrixRole::kAttentionOutput);
}

void append_cross_kv_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options,
                           const std::vector<std::string>& names) {
  append_projections(specs, options, names, {".k", ".v"}, MatrixRole::kAttentionQkv);
}

SelfAttention::SelfAttention(const Parameters& p, const ModelOptions& options, uint32_t dropout_seed,
                             const std::string& name)
    : d_model_(options.d_model),
      heads_(options.heads),
      qkv_weight_(joined(p, {name}, {".q", ".k", ".v"}, ".weight")),
      qkv_bias_(joined(p, {name}, {".q", ".k", ".v"}, ".bias")),
      o_weight_(p.get(name + ".o.weight")),
      o_bias_(p.get(name + ".o.bias")),
      weight_dropout_(options.dropout.attention, dropout_seed, name + ".weights") {}

Value SelfAttention::forward(const ForwardContext& context, const Value& x, const AttentionSpans& spans) const {
  const Value qkv = linear(context.tape, x, qkv_weight_, qkv_bias_);  // [T, 3 D]
  const Value heads = attention(context.tape, {qkv, 0}, {qkv, d_model_}, {qkv, 2 * d_model_}, d_model_, heads_, spans,
                                weight_dropout_.at(context));
  return linear(context.tape, heads, o_weight_, o_bias_);
}

Value SelfAttention::forward_cached(const ForwardContext& context, const Value& x, const AttentionSpans& spans,
                                    at::Tensor& self_kv, const CacheRows& rows) const {
  const Value qkv = linear(context.tape, x, qkv_weight_, qkv_bias_);  // [N, 3 D]
  const at::Tensor keys_and_values = qkv.data().slice(1, d_model_, 3 * d_model_);
  if (rows.indices.defined()) {
    self_kv.index_copy_(0, rows.indices, keys_and_values);
  } else {
    self_kv.slice(0, rows.first, rows.first + x.data().size(0)).copy_(keys_and_values);
  }
  const Value cache(self_kv);
  const Value heads =
      attention(context.tape, {qkv, 0}, {cache, 0}, {cache, d_model_}, d_model_, heads_, spans, Dropout::off());
  return linear(context.tape, heads, o_weight_, o_bias_);
}

CrossKvProjection::CrossKvProjection(const Parameters& p, const std::vector<std::string>& names)
    : weight_(joined(p, names, {".k", ".v"}, ".weight")), bias_(joined(p, names, {".k", ".v"}, ".bias")) {}

Value CrossKvProjection::forward(const ForwardContext& context, const Value& encoder_output) const {
  return linear(context.tape, encoder_output, weight_, bias_);
}

CrossAttention::CrossAttention(const Parameters& p, const ModelOptions& options, uint32_t dropout_seed,
                               const std::string& name, int64_t layer)
    : d_model_(options.d_model),
      heads_(options.heads),
      layer_(layer),
      q_weight_(p.get(name + ".q.weight")),
      q_bias_(p.get(name + ".q.bias")),
      o_weight_(p.get(name + ".o.weight")),
      o_bias_(p.get(name + ".o.bias")),
      weight_dropout_(options.dropout.attention, dropout_seed, name + ".weights") {}

Value CrossAttention::forward(const ForwardContext& context, const Value& x, const Value& projected,
                              const AttentionSpans& spans) const {
  const Value q = linear(context.tape, x, q_weight_, q_bias_);
  const int64_t keys = layer_ * 2 * d_model_;
  const Value heads = attention(context.tape, {q, 0}, {projected, keys}, {projected, keys + d_model_}, d_model_, heads_,
                                spans, weight_dropout_.at(context));
  return linear(context.tape, heads, o_weight_, o_bias_);
}

}  // namespace tearless::engine
