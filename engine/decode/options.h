// The settings of search.
#pragma once

#include <cstdint>

#include "base/settings.h"

namespace tearless::engine {

/// [decode] (docs/spec/training.md §1.12)
struct DecodeOptions {
  int64_t beam = 4;             // hypotheses per sentence; 1: greedy search
  double alpha = 0.6;           // length penalty ((5 + length) / 6)^α (Wu et al. 2016); beam > 1 only
  int64_t max_extra = 50;       // an output has at most source length + this many tokens, EOS counted in both
  int64_t batch_tokens = 4096;  // limit for a batch: sentences × 2 × longest source; not part of the identity
};

inline void describe(SettingsVisitor& v, DecodeOptions& o) {
  v.integer(
      {.key = "beam", .meaning = "beam size, the hypotheses of one sentence; 1 is greedy search", .min = 1, .max = 64},
      o.beam);
  v.number({.key = "alpha",
            .meaning = "length penalty ((5 + length) / 6)^α (Wu et al. 2016)",
            .min = 0,
            .max = 10,
            .applies = o.beam > 1},
           o.alpha);
  v.integer({.key = "max_extra",
             .meaning = "an output has at most source length + this many tokens, EOS counted on both sides",
             .min = 1,
             .max = 10000},
            o.max_extra);
  v.integer({.key = "batch_tokens",
             .meaning = "sentences decoded together: count × 2 × longest source stays within this",
             .min = 1,
             .max = 1e9,
             .identity = Identity::kLocal},
            o.batch_tokens);
}

}  // namespace tearless::engine
