// Variants of CUDA's kernels that were never timed on a GPU. A run does not use them: `tearless-engine bench
// --variants` does, and tests. tools/bench/variants.py times each in turns with the kernels in use; one that is faster
// is then to replace its kernel, and one that is not, to go.
#pragma once

#include <string>

namespace tearless::engine {

struct KernelVariants {
  bool short_attention = false;   // backward of attention that computes P once (AttentionBackward::short_spans)
  bool norm_backward = false;     // with the next row's loads ahead (AddNormBackward::ahead)
  bool stored_gradients = false;  // attention stores what it else adds to zeros (AttentionBackward::stored_rows)
  bool search_attention = false;  // of one query, without shared memory (Attention::one_query)
  bool bias_gradients = false;    // by cuBLASLt with the gradient of the weight (WeightGradient)
};

/// Those in use; not thread-safe.
KernelVariants& kernel_variants();

/// "short-attention, norm-backward, …, all"
std::string kernel_variant_names();
/// Of names separated by commas, such as "short-attention,norm-backward"; "all" is all of them. UserError for others.
KernelVariants kernel_variants_of(const std::string& names);

}  // namespace tearless::engine
