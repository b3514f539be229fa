#include "engine/model/attention_block.h"

#include <ATen/ops/empty.h>


#include "engine/model/initialisation.h"
#include "engine/ops/linear.h"

namespace tearless::engine {

void append_attention_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, const std::string& name) {
  const int64_t d = options.d_model;
  // q, k and v follow each other, so that one product makes all three.
  for (const char* part : {".q", ".k", ".v"}) {
    specs.push_back({name + part + ".weight", {d, d}, initial_matrix(options, MatrixRole::kAttentionQkv, d, d)});
  }
  for (const char* part : {".q", ".k", ".v"}) specs.push_back({name + part + ".bias", {d}, {}});
  specs.push_back({name + ".o.weight", {d, d}, initial_matrix(options, MatrixRole::kAttentionOutput, d, d)});
  specs.push_back({name + ".o.bias", {d}, {}});
}

AttentionBlock::AttentionBlock(const Parameters& p, const ModelOptions& options, uint32_t dropout_seed,
                               const std::string& name)
    : d_model_(options.d_model),
      heads_(options.heads),
      qkv_weight_(p.joined({name + ".q.weight", name + ".k.weight", name + ".v.weight"})),
      qkv_bias_(p.joined({name + ".q.bias", name + ".k.bias", name + ".v.bias"})),
      q_weight_(p.get(name + ".q.weight")),
      q_bias_(p.get(name + ".q.bias")),
      kv_weight_(p.joined({name + ".k.weight", name + ".v.weight"})),
      kv_bias_(p.joined({name + ".k.bias", name + ".v.bias"})),
      o_weight_(p.get(name + ".o.weight")),
      o_bias_(p.get(name + ".o.bias")),
      weight_dropout_(options.dropout.attention, dropout_seed, name + ".weights") {}

Value AttentionBlock::self(const Step& step, const Value& x, const AttentionSpans& spans) const {
  const Value qkv = linear(step.tape, x, qkv_weight_, qkv_bias_);  // [T, 3 D]
  const Value heads = attention(step.tape, {qkv, 0}, {qkv, d_model_}, {qkv, 2 * d_model_}, d_model_, heads_, spans,
                                weight_dropout_.at(step));
  return linear(step.tape, heads, o_weight_, o_bias_);
}

Value AttentionBlock::self_cached(const Step& step, const Value& x, const AttentionSpans& spans, KeyValueCache& cache,
                                  int64_t t) const {
  const Value qkv = linear(step.tape, x, qkv_weight_, qkv_bias_);  // [N, 3 D]
  const int64_t hypotheses = x.data().size(0);
  cache.rows.view({hypotheses, cache.capacity, 2 * d_model_})
      .select(1, t)
      .copy_(qkv.data().slice(1, d_model_, 3 * d_model_));
  const Value past(cache.rows);
  const Value heads =
      attention(step.tape, {qkv, 0}, {past, 0}, {past, d_model_}, d_model_, heads_, spans, Dropout::off());
  return linear(step.tape, heads, o_weight_, o_bias_);
}

Value AttentionBlock::project_memory(const Step& step, const Value& memory) const {
  return linear(step.tape, memory, kv_weight_, kv_bias_);
}

Value AttentionBlock::cross(const Step& step, const Value& x, const Value& keys_values,
                            const AttentionSpans& spans) const {
  const Value q = linear(step.tape, x, q_weight_, q_bias_);
  const Value heads = attention(step.tape, {q, 0}, {keys_values, 0}, {keys_values, d_model_}, d_model_, heads_, spans,
                                weight_dropout_.at(step));
  return linear(step.tape, heads, o_weight_, o_bias_);
}

}  // namespace tearless::engine
