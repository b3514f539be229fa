#include "engine/model/transformer_xl.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/model/declared_parameters.h"
#include "engine/model/padded_batch.h"
#include "engine/model/token_embedding.h"
#include "engine/ops/add_norm.h"
#include "engine/ops/embedding.h"
#include "engine/ops/linear.h"

namespace tearless::engine {

TransformerXlOptions::TransformerXlOptions() {
  placement = Placement::kPost;
  init = Init::kTxl;
  dropout = {.residual = 0.1, .attention = 0, .relu = 0.1, .word = 0};
}

void describe(SettingsVisitor& v, TransformerXlOptions& o) {
  v.integer({.key = "layers", .meaning = "layers", .min = 1, .max = 200}, o.layers);
  v.integer({.key = "memory",
             .meaning = "rows of earlier segments that each layer sees in training; 0: none",
             .min = 0,
             .max = 1e6},
            o.memory);
  describe_layer_fields(v, o);
  v.flag({.key = "output_bias", .meaning = "one bias per type at the output"}, o.output_bias);
  describe_layer_tables(v, o, /*has_decoder=*/false, /*reads_words=*/false);
}

void check_consistent(const TransformerXlOptions& o) {
  check_consistent(static_cast<const LayerOptions&>(o));
  if (o.d_model % 2 != 0) fail("model.d_model = {} must be even: the vectors of distances have two halves", o.d_model);
  const bool of_a_stack = o.norm.scope == NormScope::kEncoder || o.norm.scope == NormScope::kDecoder;
  if (of_a_stack && o.norm.scope_applies()) {
    // "decoder" would be "all" under another id.
    fail("model.norm.scope = \"{}\": the language model has one stack; use \"all\" or \"final_only\"",
         o.norm.scope == NormScope::kEncoder ? "encoder" : "decoder");
  }
}

// --- segments --------------------------------------------------------------------------------------------------------

void ReadySegment::pad() { engine::pad(tokens, tokens.row_count()); }

std::vector<Batch::Part> ReadySegment::parts() const {
  return {tokens.tokens, tokens.by_token, tokens.positions, tokens.sentence_ids, spans.spans, labels};
}

namespace {

at::Tensor distance_vectors(int64_t count, int64_t d_model) {
  at::Tensor vectors = at::empty({count, d_model}, at::kFloat);
  float* row = vectors.mutable_data_ptr<float>();
  const int64_t half = d_model / 2;
  for (int64_t a = 0; a < count; ++a, row += d_model) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(a) / std::pow(10000.0, 2.0 * static_cast<double>(i) / static_cast<double>(d_model));
      row[i] = static_cast<float>(std::sin(angle));
      row[half + i] = static_cast<float>(std::cos(angle));
    }
  }
  return vectors;
}

/// Distances from 0 that rows of a segment can be apart.
int64_t distance_count(const SegmentSizes& sizes) {
  const int64_t all = sizes.memory + sizes.segment;
  return sizes.clamp == 0 ? all : std::min(all, sizes.clamp + 1);
}

}  // namespace

SegmentMemory::SegmentMemory(const LayerStack& stack, int64_t d_model, const SegmentSizes& sizes, MemoryOf what,
                             const at::TensorOptions& options)
    : sizes_(sizes),
      state_(
          stack.make_state(sizes.streams * (sizes.memory + sizes.segment), options, what == MemoryOf::kKeysAndValues)),
      distances_(distance_vectors(distance_count(sizes), d_model).to(options)),
      distance_rows_(rows_without_tokens(std::array{0}, static_cast<int32_t>(distance_count(sizes)))) {
  for (const at::Tensor& slot : tensors()) slot.zero_();
}

std::vector<at::Tensor> SegmentMemory::tensors() const {
  std::vector<at::Tensor> all;
  std::ranges::copy_if(state_.slots, std::back_inserter(all), [](const at::Tensor& slot) { return slot.defined(); });
  return all;
}

const StackState& SegmentMemory::next(int64_t rows) {
  const int64_t block = sizes_.memory + sizes_.segment;
  if (sizes_.memory > 0) {
    for (const at::Tensor& slot : tensors()) {
      const at::Tensor blocks = slot.view({sizes_.streams, block, slot.size(1)});
      blocks.slice(1, 0, sizes_.memory).copy_(blocks.slice(1, sizes_.segment, block).clone());
    }
  }
  at::Tensor& written = written_[rows];
  if (!written.defined()) {
    std::vector<int64_t> indices;
    for (int64_t stream = 0; stream < sizes_.streams; ++stream) {
      for (int64_t row = 0; row < rows; ++row) indices.push_back(stream * block + sizes_.memory + row);
    }
    written = at::tensor(indices, at::kLong).to(distances_.device());
  }
  state_.written = {.first = 0, .indices = written};
  return state_;
}

// --- the model -------------------------------------------------------------------------------------------------------

namespace {

SharedQueries declare_shared(const LayerScope& root) {
  const LayerOptions& o = root.options();
  const Initial initial = initial_matrix(o, {.role = MatrixRole::kSelfQkv}, o.d_model / o.heads, o.heads);
  return {root.declare("u", {o.d_model}, initial), root.declare("w", {o.d_model}, initial)};
}

std::vector<LayerStack::Part> layer_of(const SharedQueries& shared) {
  return {{"relative_attention",
           [shared](const LayerScope& scope) { return std::make_unique<RelativeSelfAttention>(scope, shared); }},
          {"ffn", [](const LayerScope& scope) {
             SourceProjection none;
             return sublayer_kinds().at("ffn").make(scope, none);
           }}};
}

}  // namespace

TransformerXl::TransformerXl(Parameters& parameters, const TransformerXlOptions& options, int64_t vocab_size,
                             uint32_t dropout_seed)
    : TransformerXl(LayerScope(parameters, options, dropout_seed), options, vocab_size) {}

TransformerXl::TransformerXl(const LayerScope& root, const TransformerXlOptions& options, int64_t vocab_size)
    : options_(options),
      parameters_(root.parameters()),
      table_(declare_embedding(root, "embedding", vocab_size)),
      shared_(declare_shared(root)),
      stack_(root.in_stack(Stack::kDecoder), options.layers, layer_of(shared_)),
      output_bias_(options.output_bias ? root.declare("output.bias", {vocab_size}, Initial{}) : Value()),
      input_dropout_(root.dropout("embedding", options.dropout.of_embedding())),
      distance_dropout_(root.dropout("distances", options.dropout.residual)),
      output_dropout_(root.dropout("output", options.dropout.residual)) {}

SegmentMemory TransformerXl::make_memory(const SegmentSizes& sizes, MemoryOf what) const {
  return {stack_, options_.d_model, sizes, what,
          at::TensorOptions().dtype(parameters_.row_type()).device(parameters_.device())};
}

ReadySegment TransformerXl::ready(PackedRows rows, std::vector<int32_t> labels, int64_t number,
                                  const SegmentSizes& sizes) const {
  ReadySegment ready;
  const auto count = static_cast<int32_t>(rows.row_count() / sizes.streams);
  const auto memory = static_cast<int32_t>(sizes.memory);
  const auto filled = static_cast<int32_t>(std::min(sizes.memory, number * sizes.segment));
  const auto block = static_cast<int32_t>(sizes.memory + sizes.segment);
  ready.spans.causal = true;
  for (int32_t stream = 0; stream < sizes.streams; ++stream) {
    ready.spans.add({.query_begin = stream * count,
                     .query_count = count,
                     .key_begin = stream * block + memory - filled,
                     .key_count = filled + count,
                     .sentence_id = stream});
  }
  // Captured updates of a pass differ in how much of the memory is filled.
  ready.spans.max_key_length = sizes.memory + count;
  ready.tokens = std::move(rows);
  ready.labels = std::move(labels);
  return ready;
}

Value TransformerXl::logits(const ForwardContext& context, const ReadySegment& batch, SegmentMemory& memory) const {
  Tape& tape = context.tape;
  const int64_t rows = batch.tokens.row_count() / memory.sizes().streams;
  const Value table = embedding_rows(context, options_, table_);
  const double scale = options_.embedding_scale.value_or(std::sqrt(static_cast<double>(options_.d_model)));
  const at::Tensor no_positions = at::zeros({rows, options_.d_model}, table_.data().options().dtype(at::kFloat));
  const Value x =
      embedding(tape, table, batch.tokens, no_positions, scale, input_dropout_.at(context), parameters_.row_type());
  const Value vectors(memory.distances(), /*requires_grad=*/false);
  const Value dropped = drop_rows(tape, vectors, distance_dropout_.at(context), memory.distance_rows());
  const Distances distances = {.vectors = Value(dropped.data(), /*requires_grad=*/false),
                               .window = memory.sizes().window};
  SublayerInputs inputs{batch.tokens, batch.spans};
  inputs.distances = &distances;
  const Value out = stack_.forward(context, x, inputs, &memory.next(rows));
  return linear(tape, drop_rows(tape, out, output_dropout_.at(context), batch.tokens), table, output_bias_);
}

CrossEntropySums TransformerXl::loss(const ForwardContext& context, const ReadySegment& batch, SegmentMemory& memory,
                                     double label_smoothing) const {
  return smoothed_cross_entropy(context, logits(context, batch, memory), batch.labels, label_smoothing);
}

int64_t parameter_count(const TransformerXlOptions& options, int64_t vocab_size) {
  return declared<TransformerXl>(options, vocab_size)->count();
}

DeclaredParameters declared_parameters(const TransformerXlOptions& options) {
  return declared<TransformerXl>(options, /*vocab_size=*/kFirstPiece);
}

int64_t saved_numbers(const TransformerXlOptions& o, const SegmentSizes& sizes) {
  const int64_t rows = sizes.streams * sizes.segment, remembered = sizes.streams * (sizes.memory + sizes.segment);
  const int64_t of_rows = rows * (12 * o.d_model + 3 * o.d_ff + o.heads * (sizes.memory + sizes.segment));
  return o.layers * (of_rows + 4 * remembered * o.d_model);
}

}  // namespace tearless::engine
