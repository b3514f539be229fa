#include "engine/model/options.h"

#include <fmt/format.h>

#include "engine/model/sublayer.h"

namespace tearless::engine {
namespace {

constexpr auto kPlacements = std::to_array<std::string_view>({"post", "pre", "pre_no_final", "joey_pre", "joey_post"});
constexpr auto kInits =
    std::to_array<std::string_view>({"xavier_normal", "xavier_uniform", "small_init", "ds_init", "torch_default",
                                     "kaiming", "kaiming_released", "fairseq", "fairseq_0_9", "joey", "normal", "txl"});
constexpr auto kFans = std::to_array<std::string_view>({"separate", "fused3", "fused4", "fused3_self"});
constexpr auto kDsForms = std::to_array<std::string_view>({"paper", "code"});
constexpr auto kDsStacks = std::to_array<std::string_view>({"both", "encoder", "decoder"});
constexpr auto kPositionForms = std::to_array<std::string_view>({"interleaved", "halves", "sin_only"});
constexpr auto kDecoderStarts = std::to_array<std::string_view>({"bos", "eos", "zero"});
constexpr auto kInitialPads = std::to_array<std::string_view>({"zero", "random"});
constexpr auto kTyings = std::to_array<std::string_view>({"all", "target", "none"});

/// Whether the bound of attention's matrices depends on their fan-out.
bool sees_fan_out(Init init) {
  return init == Init::kXavierNormal || init == Init::kXavierUniform || init == Init::kDsInit;
}

}  // namespace

void describe(SettingsVisitor& v, DropoutOptions& o, bool reads_words) {
  const auto probability = [&](const char* key, const char* meaning, double& value) {
    v.number({.key = key, .meaning = meaning, .min = 0, .max = 0.99, .neutral = 0.0}, value);
  };
  probability("residual", "on each sublayer's output before the residual sum", o.residual);
  probability("attention", "on the attention probabilities", o.attention);
  probability("relu", "after the ReLU inside the feed-forward block", o.relu);
  if (reads_words)
    probability("word", "input tokens replaced by UNK, of translation on both sides (TwT App. A)", o.word);
  v.optional_number({.key = "embedding",
                     .meaning = "on the sum of embedding and position; unset: the rate of dropout.residual",
                     .min = 0,
                     .max = 0.99,
                     .neutral = "residual",
                     .unset_word = "residual"},
                    o.embedding);
}

void describe(SettingsVisitor& v, PositionOptions& o) {
  v.choice(
      {.key = "form",
       .meaning = "arrangement of the sinusoids: `interleaved` sin and cos in turn (TwT); `halves` all sin, then all "
                  "cos (fairseq, T2T); `sin_only` as interleaved with sin in place of cos, a bug of TwT's code "
                  "before March 2021",
       .neutral = "interleaved"},
      o.form, kPositionForms);
  v.integer({.key = "first",
             .meaning = "position of a sentence's first token; fairseq counts from 2",
             .min = 0,
             .max = 1000,
             .neutral = 0},
            o.first);
}

void describe(SettingsVisitor& v, DsInitOptions& o, std::string_view switched_off_by, bool has_decoder) {
  v.choice({.key = "form",
            .meaning = "factor of layer l = 1, 2, …: `paper` α/√l (DS eq. 15); `code` √α · l^-¼, as the published code",
            .switched_off_by = switched_off_by},
           o.form, kDsForms);
  v.number({.key = "alpha", .meaning = "α of that factor", .min = 0, .max = 1, .switched_off_by = switched_off_by},
           o.alpha);
  if (!has_decoder) return;
  v.choice({.key = "stacks",
            .meaning = "the stacks whose initial weights are scaled; the other is Xavier uniform",
            .switched_off_by = switched_off_by},
           o.stacks, kDsStacks);
}

void describe_sublayers(SettingsVisitor& v, std::string_view key, std::string_view neutral, std::string& sublayers,
                        bool in_decoder) {
  const auto listed = [](bool decoder) {
    std::string text = "sublayers of a layer, in order:";
    for (const auto& kind : sublayer_kinds()) {
      if ((kind->reads_encoder_output || kind->is_causal) && !decoder) continue;
      text += fmt::format("{} `{}` {}", text.ends_with(':') ? "" : ";", kind->name, kind->meaning);
    }
    return text;
  };
  static const std::string of_encoder = listed(false), of_decoder = listed(true);
  v.word({.key = key, .meaning = in_decoder ? of_decoder : of_encoder, .neutral = neutral}, sublayers);
}

void describe_layer_fields(SettingsVisitor& v, LayerOptions& o) {
  v.integer({.key = "d_model", .meaning = "model width d", .min = 2, .max = 16384}, o.d_model);
  v.integer({.key = "d_ff", .meaning = "width of the feed-forward block", .min = 1, .max = 65536}, o.d_ff);
  v.integer({.key = "heads", .meaning = "attention heads; must divide d_model", .min = 1, .max = 1024}, o.heads);
  v.choice(
      {.key = "placement",
       .meaning =
           "where each sublayer's norm stands: `post` N(x + F(x)) (TwT eq. 2); `pre` x + F(N(x)) with a "
           "final norm after each stack (TwT eq. 3); `pre_no_final` without the final norms; `joey_pre` without them, "
           "and with a norm on the sum of embedding and position; `joey_post` two norms after the last sublayer of a "
           "layer, one after the decoder's first, none after others, and a final norm after each stack (branches of "
           "JoeyNMT)"},
      o.placement, kPlacements);
  v.choice({.key = "init",
            .meaning =
                "initial weights, fan_in the inputs of a matrix: `xavier_normal` (TwT eq. 4); `xavier_uniform`; "
                "`small_init` attention at √(2/5d) (TwT §2.2); `ds_init` Xavier uniform scaled by depth (DS "
                "eq. 15): the paper's own tables need ds_init.form = \"code\" and init_qkv_fan = "
                "\"fused3_self\"; `torch_default` weights and biases U(±√(1/fan_in)), as PyTorch's linear "
                "layers; `kaiming` weights U(±√(1/fan_in)), biases 0, as the AdaNorm paper's code is meant to have it; "
                "`kaiming_released` attention U(±√(1/fan_in)), all else Xavier uniform, as that code has it; `fairseq` "
                "attention's q, k, v U(±√(6/4d)), all else Xavier uniform, "
                "the embedding of PAD 0, as fairseq up to 0.8; `fairseq_0_9` also the biases of q, k, v "
                "U(±√(1/d)); `joey` every matrix Xavier uniform by itself, embeddings too, the embedding of PAD 0, as "
                "JoeyNMT; `normal` N(0, init_std); `txl` every matrix and embedding N(0, 0.02), gains of norms "
                "N(their start, 0.02), as Transformer-XL. Other biases are 0 except with torch_default"},
           o.init, kInits);
  v.choice({.key = "init_qkv_fan",
            .meaning = "fan-out that Xavier sees for attention: `separate` d; `fused3` 3d for q, k, v; `fused4` 4d for "
                       "q, k, v and output; `fused3_self` 3d for q, k, v of self-attention alone",
            .neutral = "separate",
            .switched_off_by = sees_fan_out(o.init) ? "" : "model.init"},
           o.init_qkv_fan, kFans);
  v.number({.key = "init_std",
            .meaning = "standard deviation of init `normal`",
            .min = 1e-6,
            .max = 10,
            .switched_off_by = o.init == Init::kNormal ? "" : "model.init"},
           o.init_std);
  v.flag({.key = "fix_norm",
          .meaning = "word embeddings of unit length, input and output (FixNorm, TwT §2.3)",
          .neutral = false},
         o.fix_norm);
  v.optional_number({.key = "embedding_scale",
                     .meaning = "factor of the input embeddings, before positions are added; 1 is none",
                     .min = 1e-3,
                     .max = 1e6,
                     .neutral = "sqrt_d",
                     .unset_word = "sqrt_d"},
                    o.embedding_scale);
}

void describe_layer_tables(SettingsVisitor& v, LayerOptions& o, bool has_decoder, bool reads_words) {
  v.table_of("ds_init", [&] { describe(v, o.ds_init, o.init == Init::kDsInit ? "" : "model.init", has_decoder); });
  if (reads_words) v.table("positions", o.positions);
  v.table("norm", o.norm);
  v.table_of("dropout", [&] { describe(v, o.dropout, reads_words); });
}

void describe(SettingsVisitor& v, ModelOptions& o) {
  v.integer({.key = "encoder_layers", .meaning = "layers of the encoder", .min = 1, .max = 200}, o.encoder_layers);
  v.integer({.key = "decoder_layers", .meaning = "layers of the decoder", .min = 1, .max = 200}, o.decoder_layers);
  describe_sublayers(v, "encoder_sublayers", "self_attention, ffn", o.encoder_sublayers, /*in_decoder=*/false);
  describe_sublayers(v, "decoder_sublayers", "self_attention, cross_attention, ffn", o.decoder_sublayers,
                     /*in_decoder=*/true);
  describe_layer_fields(v, o);
  v.choice({.key = "tied_embeddings",
            .meaning = "one matrix for source input, target input and output (`all`), for the two of the target "
                       "(`target`), or none shared"},
           o.tied_embeddings, kTyings);
  v.choice({.key = "init_pad",
            .meaning = "PAD's row of the input embeddings, also where it is a row of the output matrix: `random` as "
                       "the other rows; `zero`, as in fairseq. The inits `fairseq`, `fairseq_0_9` and `joey` have zero",
            .neutral = "random",
            .switched_off_by = is_fairseq(o.init) || o.init == Init::kJoey ? "model.init"
                               : o.starts_with_pad()                       ? "model.decoder_start"
                                                                           : ""},
           o.init_pad, kInitialPads);
  v.choice({.key = "init_output_pad",
            .meaning = "with init `fairseq` or `fairseq_0_9` and no matrix shared, PAD's row of the output matrix: "
                       "`random` as the other rows, as in fairseq; `zero`, as runs of earlier builds have it",
            .neutral = "zero",
            .switched_off_by = !is_fairseq(o.init)                 ? "model.init"
                               : o.tied_embeddings != Tying::kNone ? "model.tied_embeddings"
                                                                   : ""},
           o.init_output_pad, kInitialPads);
  v.choice(
      {.key = "decoder_start",
       .meaning = "the decoder's first input, in training and in decoding: the embedding of BOS (`bos`), that of "
                  "EOS (`eos`, fairseq), or a zero vector (`zero`, the DS paper's code), which word dropout leaves; "
                  "its position is added in any case",
       .neutral = "bos"},
      o.decoder_start, kDecoderStarts);
  v.flag(
      {.key = "language_embedding",
       .meaning = "a learned vector for the source language and one for the target language, added to all input rows "
                  "of that side, not scaled (TwT's released code)",
       .neutral = false},
      o.language_embedding);
  v.flag({.key = "input_vector",
          .meaning = "one learned vector, added to the rows of all input words of both sides, not scaled (the DS "
                     "paper's code); the zero vector of decoder_start `zero` is without it. Not with "
                     "language_embedding",
          .neutral = false},
         o.input_vector);
  v.flag({.key = "output_bias", .meaning = "a bias for each token of the output vocabulary"}, o.output_bias);
  v.flag({.key = "mask_target_vocabulary",
          .meaning = "the output vocabulary has only the tokens that occur in the target side of the training data "
                     "(TwT App. A); false: all but PAD and BOS, see special_outputs"},
         o.mask_target_vocabulary);
  v.flag(
      {.key = "special_outputs",
       .meaning = "the output vocabulary has PAD and BOS, too, in the loss, in perplexities and in the search (the DS "
                  "paper's code, JoeyNMT); the search `t2t` cuts an output at its first PAD, and text has neither. "
                  "The zero vector of decoder_start `zero` is then not the embedding of PAD, which starts and is "
                  "trained as the others (likewise with input_vector). Needs mask_target_vocabulary = false",
       .neutral = false},
      o.special_outputs);
  describe_layer_tables(v, o, /*has_decoder=*/true);
}

void check_consistent(const LayerOptions& o) {
  if (o.d_model % o.heads != 0) {
    fail("model.heads = {} does not divide model.d_model = {}; choose heads so that d_model / heads is whole", o.heads,
         o.d_model);
  }
  if (o.norm.scope == NormScope::kFinalOnly && o.norm.scope_applies() && o.placement != Placement::kPre &&
      o.placement != Placement::kJoeyPost) {
    fail(
        "model.norm.scope = \"final_only\" needs model.placement = \"pre\" or \"joey_post\": with the other placements "
        "no norm follows a stack");
  }
}

void check_consistent(const ModelOptions& o) {
  check_consistent(static_cast<const LayerOptions&>(o));
  check_sublayers("model.encoder_sublayers", o.encoder_sublayers, /*in_decoder=*/false);
  check_sublayers("model.decoder_sublayers", o.decoder_sublayers, /*in_decoder=*/true);
  if (o.input_vector && o.language_embedding) {
    fail(
        "model.input_vector and model.language_embedding are both true, but an input row has one learned vector; set "
        "one of them to false");
  }
  if (o.special_outputs && o.mask_target_vocabulary) {
    fail(
        "model.special_outputs = true needs model.mask_target_vocabulary = false: the mask leaves out PAD and BOS, "
        "which no training target has");
  }
}

}  // namespace tearless::engine
