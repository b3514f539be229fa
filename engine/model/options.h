// The settings of the model, [model] and its tables (docs/spec/knobs.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "engine/norm/norm.h"
#include "engine/ops/embedding.h"

namespace tearless::engine {

/// Placement of each sublayer's norm (docs/spec/knobs.md §1). Only engine/model/residual.cc distinguishes the cases.
enum class Placement {
  kPost,        // N(x + F(x)) (TwT eq. 2)
  kPre,         // x + F(N(x)), with a final norm after each stack (TwT eq. 3)
  kPreNoFinal,  // as kPre, without the final norms
  kJoeyPre,     // as kPreNoFinal, with a norm on the sum of embedding and position (a branch of JoeyNMT)
  kJoeyPost     // two norms after the last sublayer of a layer, one after the decoder's first, final norms (another)
};

/// Initial weights (docs/spec/knobs.md §7). N(0, σ) is given by its standard deviation.
enum class Init {
  kXavierNormal,   // N(0, √(2 / (fan_in + fan_out))) (TwT eq. 4)
  kXavierUniform,  // U(±√(6 / (fan_in + fan_out)))
  kSmallInit,      // attention N(0, √(2 / (5 d))), feed-forward as Xavier normal (TwT §2.2)
  kDsInit,         // Xavier uniform with a factor that falls with the layer: DsInitOptions
  kTorchDefault,   // weights and biases U(±√(1 / fan_in)), as PyTorch's linear layers by default
  kKaiming,  // every weight U(±√(1 / fan_in)), biases 0: what the AdaNorm paper's `--init_method km` is meant to be
  // As its released code has it (docs/spec/discrepancies.md B5): attention U(±√(1 / fan_in)), but the feed-forward
  // weights Xavier uniform, because an argument of theirs is misplaced.
  kKaimingReleased,
  // fairseq ≤ 0.8: q, k and v Xavier uniform of gain 1/√2, U(±√(6 / (4 d))); all else Xavier uniform; the embedding of
  // PAD 0.
  kFairseq,
  kFairseq09,  // fairseq 0.9: the same, but the biases of q, k and v are U(±√(1 / d))
  kJoey,       // JoeyNMT: every matrix Xavier uniform by itself, embeddings too; the embedding of PAD 0
  kNormal,     // every matrix N(0, LayerOptions::init_std)
  kTxl         // Transformer-XL: every matrix and embedding N(0, 0.02), gains of norms N(their start, 0.02)
};
inline bool is_fairseq(Init init) { return init == Init::kFairseq || init == Init::kFairseq09; }
/// The fan-out of attention projections in Xavier initialisation. Code bases that stack the projections into one matrix
/// use the stacked size (docs/spec/knobs.md §7).
enum class QkvFan {
  kSeparate,   // d
  kFused3,     // 3 d for q, k and v; d for the output projection
  kFused4,     // 4 d for q, k, v and the output projection
  kFused3Self  // 3 d for q, k and v of self-attention; d for those of cross-attention and for the output projection
};
/// Depth-scaled initialisation: the bound γ of Xavier uniform is multiplied by a factor of the layer l = 1, 2, …,
/// counted in each stack (docs/spec/knobs.md §7.1).
struct DsInitOptions {
  enum class Form {
    kPaper,  // α / √l (DS eq. 15)
    kCode    // √α · l^-¼: the published code scales the variance, not the bound
  };
  enum class Stacks { kBoth, kEncoder, kDecoder };
  Form form = Form::kPaper;
  double alpha = 1;
  Stacks stacks = Stacks::kBoth;  // the other stack is Xavier uniform
};
/// Without a decoder there is no setting `stacks`: it would have no effect.
void describe(SettingsVisitor& visitor, DsInitOptions& options, std::string_view switched_off_by, bool has_decoder);

/// Which of source embedding, target embedding and output layer share a matrix.
enum class Tying {
  kAll,     // all three
  kTarget,  // target embedding and output layer
  kNone
};

/// The decoder's first input, in training and in decoding (docs/spec/knobs.md §6).
enum class DecoderStart {
  kBos,  // the embedding of BOS (TwT, JoeyNMT)
  kEos,  // the embedding of EOS (fairseq)
  kZero  // a zero vector, to which the position is added (zero); the embedding of PAD, unless special_outputs or
         // input_vector
};

/// [model.dropout]: probabilities, in training only (docs/spec/knobs.md §9).
struct DropoutOptions {
  double residual = 0.3;   // on each sublayer's output before the residual sum
  double attention = 0.3;  // on the attention probabilities
  double relu = 0.3;       // after the ReLU of the feed-forward sublayer
  double word = 0.1;       // input tokens replaced by UNK, of translation on both sides (TwT App. A)
  std::optional<double> embedding = std::nullopt;  // on the sum of embedding and position; unset: residual

  double of_embedding() const { return embedding.value_or(residual); }
};
void describe(SettingsVisitor& visitor, DropoutOptions& options, bool reads_words = true);

/// [model.positions]: the position vectors that are added to word embeddings (docs/spec/knobs.md §6).
struct PositionOptions {
  PositionForm form = PositionForm::kInterleaved;
  int64_t first = 0;  // the position of a sentence's first token
};
void describe(SettingsVisitor& visitor, PositionOptions& options);

/// The settings that every stack of Transformer layers has.
struct LayerOptions {
  int64_t d_model = 512;  // model width D
  int64_t d_ff = 2048;    // feed-forward width F
  int64_t heads = 8;      // attention heads H; must divide d_model
  Placement placement = Placement::kPre;
  Init init = Init::kSmallInit;
  QkvFan init_qkv_fan = QkvFan::kSeparate;  // of the Xavier inits and ds_init
  double init_std = 0.02;                   // of Init::kNormal
  DsInitOptions ds_init;
  bool fix_norm = false;                  // word embeddings of unit length, input and output (FixNorm, TwT §2.3)
  std::optional<double> embedding_scale;  // factor of the input embeddings; unset: √d
  PositionOptions positions;
  NormOptions norm;
  DropoutOptions dropout;
};
/// Throws UserError if `heads` does not divide `d_model`, or if no norm of the placement is in the scope of norm.kind.
void check_consistent(const LayerOptions& options);

/// [model] of the encoder-decoder.
struct ModelOptions : LayerOptions {
  int64_t encoder_layers = 6;                             // layers of the encoder
  int64_t decoder_layers = 6;                             // layers of the decoder
  std::string encoder_sublayers = "self_attention, ffn";  // of a layer, in order: sublayers_of()
  std::string decoder_sublayers = "self_attention, cross_attention, ffn";
  Tying tied_embeddings = Tying::kAll;
  /// The initial row of PAD: 0, or as the other rows.
  enum class InitialPad { kZero, kRandom };
  InitialPad init_pad = InitialPad::kRandom;         // of the input embeddings; without effect where the init says it
  InitialPad init_output_pad = InitialPad::kRandom;  // of `fairseq` and an output matrix of its own
  DecoderStart decoder_start = DecoderStart::kBos;
  bool language_embedding = false;     // a learned vector for each side, added to its input rows
  bool input_vector = false;           // one learned vector, added to the input rows of words of both sides (zero)
  bool output_bias = true;             // one bias per token of the output vocabulary
  bool mask_target_vocabulary = true;  // restrict the output vocabulary to tokens seen on the target side (TwT App. A)
  bool special_outputs = false;        // the output vocabulary has PAD and BOS; needs mask_target_vocabulary = false

  /// The decoder's zero vector is the embedding of PAD.
  bool starts_with_pad() const { return decoder_start == DecoderStart::kZero && !special_outputs && !input_vector; }
};
void describe(SettingsVisitor& visitor, ModelOptions& options);
/// Throws UserError as for LayerOptions, by check_sublayers(), if the mask leaves special outputs out, and for two
/// vectors of one input row.
void check_consistent(const ModelOptions& options);

/// A setting for the sublayers of a layer; `neutral` is its default.
void describe_sublayers(SettingsVisitor& visitor, std::string_view key, std::string_view neutral,
                        std::string& sublayers, bool in_decoder);
/// The fields of LayerOptions, for the describe() of a model that has such stacks. TOML wants fields before tables: a
/// describe() calls describe_layer_tables() last.
void describe_layer_fields(SettingsVisitor& visitor, LayerOptions& options);
/// `reads_words`: the model adds positions to its input and has word dropout.
void describe_layer_tables(SettingsVisitor& visitor, LayerOptions& options, bool has_decoder, bool reads_words = true);

}  // namespace tearless::engine
