// A whole model small enough for a test: options, parameters, output vocabulary and Transformer in one, and batches
// written by hand.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/settings.h"
#include "engine/model/transformer.h"

namespace tearless::engine::test {

using Sentences = std::vector<std::vector<int32_t>>;

inline void append_sentence(PackedRows& rows, const std::vector<int32_t>& tokens, int32_t sentence_id) {
  if (rows.offsets.empty()) rows.offsets = {0};
  for (size_t p = 0; p < tokens.size(); ++p) {
    rows.tokens.push_back(tokens[p]);
    rows.positions.push_back(static_cast<int32_t>(p));
    rows.sentence_ids.push_back(sentence_id);
  }
  rows.offsets.push_back(static_cast<int32_t>(rows.tokens.size()));
}

/// sources end with EOS; targets have neither BOS nor EOS.
inline PackedBatch batch_of(const Sentences& sources, const Sentences& targets,
                            const std::vector<int32_t>& sentence_ids) {
  PackedBatch batch;
  for (size_t i = 0; i < sources.size(); ++i) {
    append_sentence(batch.source, sources[i], sentence_ids[i]);
    std::vector<int32_t> input = targets[i];
    input.insert(input.begin(), kBos);
    append_sentence(batch.target, input, sentence_ids[i]);
    batch.labels.insert(batch.labels.end(), targets[i].begin(), targets[i].end());
    batch.labels.push_back(kEos);
  }
  return batch;
}

inline ModelOptions tiny_options() {
  ModelOptions options;
  options.encoder_layers = 2;
  options.decoder_layers = 2;
  options.d_model = 12;
  options.d_ff = 20;
  options.heads = 3;
  return options;
}

/// Every placement that a model can have.
inline std::vector<Placement> placements() {
  std::vector<Placement> all;
  ModelOptions options;
  for (const DescribedField& f : list_settings([&](SettingsVisitor& v) { describe(v, options); })) {
    for (size_t i = 0; f.key == "placement" && i < f.field.choices.size(); ++i) {
      all.push_back(static_cast<Placement>(i));
    }
  }
  return all;
}

/// Lists of sublayers that model.decoder_sublayers accepts, or the setting of a stack without a decoder: each order of
/// up to two kinds, and of three where one is cross-attention and one the feed-forward block.
inline std::vector<std::string> all_sublayers(bool in_decoder) {
  std::vector<std::string> lists = {""}, accepted;
  for (int length = 1; length <= 3; ++length) {
    std::vector<std::string> longer;
    for (const std::string& list : lists) {
      for (const auto& kind : sublayer_kinds()) {
        longer.push_back(list + (list.empty() ? "" : ", ") + std::string(kind->name));
        const bool usual = longer.back().find("cross_attention") != std::string::npos &&
                           longer.back().find("ffn") != std::string::npos;
        if (length == 3 && !usual) continue;
        try {
          check_sublayers("", longer.back(), in_decoder);
          accepted.push_back(longer.back());
        } catch (const UserError&) {
        }
      }
    }
    lists = std::move(longer);
  }
  return accepted;
}

/// Every model.decoder_sublayers with one kind in the place of self-attention, or of self-attention and
/// cross-attention.
inline std::vector<std::string> attending_sublayers() {
  std::vector<std::string> all;
  for (const auto& kind : sublayer_kinds()) {
    if (kind->name == "ffn" || kind->name == "cross_attention") continue;
    all.push_back(std::string(kind->name) + (kind->reads_encoder_output ? ", ffn" : ", cross_attention, ffn"));
  }
  return all;
}

struct TinyModel {
  ModelOptions options;
  Parameters parameters;
  Transformer transformer;

  /// in_output_vocabulary [V]: 1 for tokens of the training targets.
  TinyModel(const ModelOptions& o, const std::vector<uint8_t>& in_output_vocabulary, uint32_t init_seed = 1,
            uint32_t dropout_seed = 2, at::Device device = at::kCPU, RowPrecision precision = RowPrecision::kFp32,
            bool loss_over_all = false)
      : options(o),
        parameters(init_seed, device, precision),
        transformer(
            parameters, o,
            OutputVocabulary::from(in_output_vocabulary, o.mask_target_vocabulary, loss_over_all, o.special_outputs),
            dropout_seed) {
    parameters.allocate();
    at::set_num_threads(1);  // for so little work one thread is faster
  }
};

/// The output vocabulary of `vocabulary` tokens: all but PAD and BOS.
inline std::vector<uint8_t> usual_output_vocabulary(int64_t vocabulary) {
  std::vector<uint8_t> in_output(static_cast<size_t>(vocabulary), 1);
  in_output[kPad] = in_output[kBos] = 0;
  return in_output;
}

}  // namespace tearless::engine::test
