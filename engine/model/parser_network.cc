#include "engine/model/parser_network.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"
#include "engine/model/declared_parameters.h"
#include "engine/model/initialisation.h"
#include "engine/ops/backend.h"
#include "engine/ops/bias_relu_dropout.h"
#include "engine/ops/cube.h"
#include "engine/ops/linear.h"
#include "engine/ops/linear_of_embeddings.h"

namespace tearless::engine {
namespace {

constexpr auto kActivations = std::to_array<std::string_view>({"relu", "cube"});
constexpr auto kParserInits = std::to_array<std::string_view>({"torch_default", "uniform"});
constexpr auto kEmbeddingInits = std::to_array<std::string_view>({"uniform", "normal"});
constexpr auto kSoftmaxes = std::to_array<std::string_view>({"legal", "all"});
constexpr double kUniform = 0.01;
constexpr double kIllegal = -1e30;  // finite, so that a row's maximum and its gradient are

}  // namespace

void describe(SettingsVisitor& v, ParserNetworkOptions& o) {
  v.integer({.key = "embedding", .meaning = "width of an embedding", .min = 1, .max = 4096}, o.embedding);
  v.integer({.key = "hidden", .meaning = "outputs of a hidden layer", .min = 1, .max = 65536}, o.hidden);
  v.integer({.key = "hidden_layers", .meaning = "hidden layers; the first reads the embeddings", .min = 1, .max = 16},
            o.hidden_layers);
  v.choice({.key = "activation", .meaning = "of hidden layers: `relu`, or `cube`, x³ (Chen and Manning 2014)"},
           o.activation, kActivations);
  v.flag({.key = "output_bias", .meaning = "whether the output layer has a bias"}, o.output_bias);
  v.choice({.key = "softmax",
            .meaning = "transitions that the softmax of the loss is over: `legal` ones of the configuration, or `all`. "
                       "The parser takes legal ones alone"},
           o.softmax, kSoftmaxes);
  v.choice(
      {.key = "init", .meaning = "initial weights and biases: `torch_default` U(±√(1 / fan_in)); `uniform` U(±0.01)"},
      o.init, kParserInits);
  v.choice({.key = "embedding_init", .meaning = "initial embeddings: `uniform` U(±0.01); `normal` N(0, width^-½)"},
           o.embedding_init, kEmbeddingInits);
  v.table_of("norm", [&] { describe(v, o.norm, /*has_stacks=*/false); });
  v.table_of("dropout", [&] {
    v.number({.key = "hidden", .meaning = "after each activation", .min = 0, .max = 0.99, .neutral = 0.0},
             o.hidden_dropout);
    v.flag({.key = "rescale",
            .meaning = "whether the units that dropout keeps are multiplied by 1 / (1 - p), as usual; CoreNLP's parser "
                       "does not",
            .neutral = true,
            .switched_off_by = o.hidden_dropout == 0 ? "model.dropout.hidden" : ""},
           o.rescaled_dropout);
  });
}

void ReadyConfigurations::pad() {
  const auto count = static_cast<int64_t>(labels.size());
  const auto features = tokens.row_count() / count;
  // Copies of the first: tokens and transitions that exist.
  for (int64_t i = count * features; i < full * features; ++i) {
    tokens.tokens.push_back(tokens.tokens[static_cast<size_t>(i % features)]);
  }
  legal.resize(static_cast<size_t>(full), legal[0]);
  engine::pad(tokens, full * features);
  engine::pad(inputs, full);
  engine::pad(labels, full);
}

std::vector<Batch::Part> ReadyConfigurations::parts() const {
  return {tokens.tokens, tokens.by_token, tokens.positions, tokens.sentence_ids, inputs.positions, inputs.sentence_ids,
          legal,         labels};
}

ParserNetwork::ParserNetwork(Parameters& parameters, const ParserNetworkOptions& options, const ParserSizes& sizes,
                             std::vector<std::vector<bool>> is_legal, uint32_t dropout_seed)
    : options_(options), parameters_(parameters), features_(sizes.features) {
  using Kind = Initial::Kind;
  const Scope root(parameters, dropout_seed);
  const bool is_normal = options.embedding_init == ParserNetworkOptions::EmbeddingInit::kNormal;
  table_ = root.inside("embedding")
               .declare("weight", {sizes.types, options.embedding},
                        is_normal ? normal_embedding(options.embedding) : Initial{Kind::kUniform, kUniform});
  const auto initial = [&](int64_t fan_in) {
    const bool as_torch = options.init == ParserNetworkOptions::Init::kTorchDefault;
    return as_torch ? torch_default(fan_in) : Initial{Kind::kUniform, kUniform};
  };
  int64_t width = sizes.features * options.embedding;
  for (int64_t layer = 1; layer <= options.hidden_layers; ++layer) {
    const Scope scope = root.inside("hidden." + std::to_string(layer));
    Layer made;
    made.linear = scope.linear(options.hidden, width, initial(width), initial(width));
    made.norm = scope.norm(options.norm.at(NormSite{}, /*fix_norm=*/false), options.hidden);
    made.dropout = scope.dropout(options.hidden_dropout);
    if (!options.rescaled_dropout) made.dropout = made.dropout.without_rescaling();
    hidden_.push_back(std::move(made));
    width = options.hidden;
  }
  const Scope output = root.inside("output");
  output_.weight = output.declare("weight", {sizes.transitions, width}, initial(width));
  if (options.output_bias) output_.bias = output.declare("bias", {sizes.transitions}, initial(width));
  illegal_ = at::zeros({static_cast<int64_t>(is_legal.size()), sizes.transitions}, at::kFloat);
  for (size_t row = 0; row < is_legal.size(); ++row) {
    for (size_t transition = 0; transition < is_legal[row].size(); ++transition) {
      if (!is_legal[row][transition]) {
        illegal_.mutable_data_ptr<float>()[row * is_legal[row].size() + transition] = static_cast<float>(kIllegal);
      }
    }
  }
  illegal_ = illegal_.to(parameters.device(), parameters.row_type());
}

ReadyConfigurations ParserNetwork::ready(std::vector<int32_t> tokens, std::vector<int32_t> legal,
                                         std::vector<int32_t> labels, std::span<const int32_t> ids) const {
  ReadyConfigurations ready;
  const size_t count = tokens.size();
  require(count == labels.size() * static_cast<size_t>(features_), "parser: not one token a feature");
  ready.tokens = {.tokens = std::move(tokens),
                  .positions = std::vector<int32_t>(count),
                  .sentence_ids = std::vector<int32_t>(count),
                  .offsets = {0, static_cast<int32_t>(count)},
                  .by_token = {}};
  ready.inputs = rows_without_tokens(ids, 1);
  ready.legal = std::move(legal);
  ready.labels = std::move(labels);
  return ready;
}

Value ParserNetwork::activate(const ForwardContext& context, const Layer& layer, Value x,
                              const PackedRows& rows) const {
  x = norm_rows(context.tape, x, layer.norm);
  const Dropout dropout = layer.dropout.at(context);
  if (options_.activation == ParserNetworkOptions::Activation::kRelu) {
    return bias_relu_dropout(context.tape, x, Value(), dropout, rows);
  }
  return drop_rows(context.tape, cube(context.tape, x), dropout, rows);
}

Value ParserNetwork::logits(const ForwardContext& context, const ReadyConfigurations& batch) const {
  Tape& tape = context.tape;
  const Linear& first = hidden_.front().linear;
  Value x =
      linear_of_embeddings(tape, table_, batch.tokens, features_, first.weight, first.bias, parameters_.row_type());
  for (size_t layer = 0; layer < hidden_.size(); ++layer) {
    if (layer > 0) x = linear(tape, x, hidden_[layer].linear.weight, hidden_[layer].linear.bias);
    x = activate(context, hidden_[layer], x, batch.inputs);
  }
  x = linear(tape, x, output_.weight, output_.bias);
  if (options_.softmax == ParserNetworkOptions::Softmax::kLegal) {
    // A constant is added, so the gradient passes as it is; that of an illegal transition, whose probability is 0, is
    // 0.
    const OnDevice<int32_t> rows(tape, batch.legal, x.data());
    const at::Tensor indices =
        at::from_blob(const_cast<int32_t*>(rows.data()), {x.data().size(0)}, x.data().options().dtype(at::kInt));
    x.data().add_(illegal_.index_select(0, indices));
  }
  return x;
}

namespace {

DeclaredParameters declared(const ParserNetworkOptions& options, const ParserSizes& sizes) {
  return declared_once(options, {sizes.types, sizes.features, sizes.transitions}, [&](Parameters& parameters) {
    const ParserNetwork network(parameters, options, sizes, {}, /*dropout_seed=*/0);
  });
}

}  // namespace

int64_t parameter_count(const ParserNetworkOptions& options, const ParserSizes& sizes) {
  return declared(options, sizes)->count();
}

DeclaredParameters declared_parameters(const ParserNetworkOptions& options) {
  return declared(options, {.types = 1, .features = 1, .transitions = 1});
}

int64_t saved_numbers(const ParserNetworkOptions& o, const ParserSizes& sizes, int64_t examples) {
  return 2 * examples * (sizes.features * o.embedding + 4 * o.hidden_layers * o.hidden + 2 * sizes.transitions);
}

}  // namespace tearless::engine
