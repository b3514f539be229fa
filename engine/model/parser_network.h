// The network of the task parse (docs/spec/tasks.md §4.3): embeddings of the features of a configuration side by side,
// hidden layers with a norm before their activation, and a linear map to the transitions.
//
//   tokens [F] → W₁ [e₁ ‖ … ‖ e_F] + b₁ – norm – activation – dropout – … – W x + b → logits [K]
//
// Chen and Manning's network (2014) is hidden_layers = 1, activation = "cube", output_bias = false, init = "uniform".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/batch.h"
#include "engine/model/padded_batch.h"
#include "engine/model/scope.h"
#include "engine/ops/cross_entropy.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// [model] of parse.
struct ParserNetworkOptions {
  enum class Activation { kRelu, kCube };
  enum class Init {
    kTorchDefault,  // weights and biases U(±√(1 / fan_in))
    kUniform        // weights and biases U(±0.01)
  };
  enum class EmbeddingInit {
    kUniform,  // U(±0.01)
    kNormal    // N(0, e^-½)
  };
  /// The transitions that the softmax of training is over.
  enum class Softmax { kLegal, kAll };

  int64_t embedding = 50;
  int64_t hidden = 512;
  int64_t hidden_layers = 2;
  Activation activation = Activation::kRelu;
  bool output_bias = true;
  Softmax softmax = Softmax::kLegal;
  Init init = Init::kTorchDefault;
  EmbeddingInit embedding_init = EmbeddingInit::kUniform;
  NormOptions norm;
  double hidden_dropout = 0.2;  // [model.dropout] hidden: after each activation
  bool rescaled_dropout = true;
};
void describe(SettingsVisitor& visitor, ParserNetworkOptions& options);

/// The sizes of a network that the data give.
struct ParserSizes {
  int64_t types = 0;        // V: words, tags and labels
  int64_t features = 0;     // F
  int64_t transitions = 0;  // K
};

/// A batch of configurations as the forward pass takes it.
struct ReadyConfigurations final : Batch {
  PackedRows tokens;            // [N · F] the tokens of the features, all of position 0
  PackedRows inputs;            // [N] the dropout counters
  std::vector<int32_t> legal;   // [N] the row of the table of illegal transitions
  std::vector<int32_t> labels;  // [N] transitions; negative: padding, and predictions that nothing is known of
  int64_t full = 0;             // configurations of every batch of a pass but the last, which is padded to as many

  int64_t rows() const override { return predictions(); }
  int64_t predictions() const override { return predictions_of(labels); }
  /// {configurations}.
  std::vector<int64_t> bucket() const override { return {full}; }
  void pad() override;
  std::vector<Part> parts() const override;
};

class ParserNetwork {
 public:
  /// `is_legal` [rows, K]: of each value of ReadyConfigurations::legal, which transitions are. Declares its parameters;
  /// call parameters.allocate() next. Borrows both.
  ParserNetwork(Parameters& parameters, const ParserNetworkOptions& options, const ParserSizes& sizes,
                std::vector<std::vector<bool>> is_legal, uint32_t dropout_seed);

  /// `tokens` [N · F]; `ids` [N] select the dropout masks.
  ReadyConfigurations ready(std::vector<int32_t> tokens, std::vector<int32_t> legal, std::vector<int32_t> labels,
                            std::span<const int32_t> ids) const;
  /// The logits of the transitions [N, K]; those of illegal ones are about -1e30 where the softmax is over legal ones
  /// alone. `batch` must outlive the tape.
  Value logits(const ForwardContext& context, const ReadyConfigurations& batch) const;
  /// The loss summed over the batch. On a recording tape, call tape.backward() next.
  CrossEntropySums loss(const ForwardContext& context, const ReadyConfigurations& batch, double label_smoothing) const {
    return smoothed_cross_entropy(context, logits(context, batch), batch.labels, label_smoothing);
  }

 private:
  struct Layer {
    Linear linear;
    NormOp norm;
    DropoutSite dropout;
  };
  Value activate(const ForwardContext& context, const Layer& layer, Value x, const PackedRows& rows) const;

  const ParserNetworkOptions& options_;
  Parameters& parameters_;
  int64_t features_;
  Value table_;  // [V, E]
  std::vector<Layer> hidden_;
  Linear output_;
  at::Tensor illegal_;  // [rows, K] 0, or -1e30 of transitions that are not legal
};

/// The number of parameters of the network. Allocates none.
int64_t parameter_count(const ParserNetworkOptions& options, const ParserSizes& sizes);
/// The parameters with data of some size, on which neither their names nor which of them are a norm's length depend.
DeclaredParameters declared_parameters(const ParserNetworkOptions& options);
/// About how many numbers of a batch of `examples` configurations training holds at a time.
int64_t saved_numbers(const ParserNetworkOptions& options, const ParserSizes& sizes, int64_t examples);

}  // namespace tearless::engine
