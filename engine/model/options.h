// The model's knobs (knobs.md), each with its default and meaning.
#pragma once

#include <cstdint>

#include "base/settings.h"
#include "engine/norm/norm.h"

namespace tearless::engine {

/// Where a sublayer's norm stands (knobs.md §1). Asked in engine/model/residual.cc alone.
enum class Placement { kPost, kPre, kPreNoFinal };

enum class Init { kXavierNormal, kXavierUniform, kSmallInit };
/// Which fan-out Xavier sees for the attention projections: each matrix alone, or stacked as code bases store them
/// (knobs.md §7).
enum class QkvFan { kSeparate, kFused3, kFused4 };
enum class Tying { kAll, kTarget, kNone };

/// [model.dropout]: probabilities, training only (knobs.md §9).
struct DropoutOptions {
  double residual = 0.3;
  double attention = 0.3;
  double relu = 0.3;
  double word = 0.1;
};
void describe(SettingsVisitor& visitor, DropoutOptions& options);

/// [model]
struct ModelOptions {
  int64_t encoder_layers = 6;
  int64_t decoder_layers = 6;
  int64_t d_model = 512;
  int64_t d_ff = 2048;
  int64_t heads = 8;
  Placement placement = Placement::kPre;
  Init init = Init::kSmallInit;
  QkvFan init_qkv_fan = QkvFan::kSeparate;
  bool fix_norm = false;
  Tying tied_embeddings = Tying::kAll;
  bool output_bias = true;
  bool mask_target_vocabulary = true;
  NormOptions norm;
  DropoutOptions dropout;
};
void describe(SettingsVisitor& visitor, ModelOptions& options);

/// Checks what no single field can: that the heads divide d_model. UserError.
void check_consistent(const ModelOptions& options);

}  // namespace tearless::engine
