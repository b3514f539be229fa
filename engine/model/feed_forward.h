// The feed-forward sublayer: W₂ · drop(ReLU(W₁ x + b₁)) + b₂ (docs/spec/knobs.md §4.1).
#pragma once

#include <string>
#include <vector>

#include "engine/model/forward_context.h"
#include "engine/model/options.h"
#include "engine/model/parameters.h"

namespace tearless::engine {

void append_feed_forward_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, const std::string& name);

class FeedForward {
 public:
  FeedForward(const Parameters& parameters, const ModelOptions& options, uint32_t dropout_seed,
              const std::string& name);

  /// x [T, D] → [T, D]; `rows` must outlive the tape.
  Value forward(const ForwardContext& context, const Value& x, const PackedRows& rows) const;

 private:
  Value w1_, b1_;  // [F, D], [F]
  Value w2_, b2_;  // [D, F], [D]
  DropoutSite dropout_;
};

}  // namespace tearless::engine
