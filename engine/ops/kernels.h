// The hand-written operations as plain functions over raw pointers. A backend is one table of them: the processor's
// (one a vector width, engine/ops/cpu/) and CUDA's (engine/cuda/). What stands on the tape, who owns the tensors and
// which backend runs is decided once, in engine/ops/*.cc; a kernel only computes. No LibTorch here: nvcc and the units
// that are compiled for one instruction set include this file.
//
// T is the type of activations: float; double (tests of gradients, processor only); bf16 (CUDA only). Parameters,
// statistics and sums are Wide<T>. All matrices are row-major and, where no stride is named, contiguous. "Added to"
// means +=; everything else that is not const is written. Every kernel gives the same bits on every call, whatever the
// number of threads: sums over rows are made of fixed blocks that are added in order.
#pragma once

#include <cstdint>

#include "engine/ops/bf16.h"
#include "engine/ops/random.h"

namespace tearless::engine {

template <class T>
struct WideOf {
  using type = float;
};
template <>
struct WideOf<double> {
  using type = double;
};
template <class T>
using Wide = typename WideOf<T>::type;

/// What names the random numbers of a row (random.h): `outer` and `line` of its counter.
struct RowNames {
  const int32_t* positions = nullptr;  // [T]
  const int32_t* lines = nullptr;      // [T]
};

/// How a norm treats one row x of width d; ms = (1/d) Σ (x - [centred] μ)².
struct RowNorm {
  enum class Denominator {
    kOne,           // 1: no norm at all
    kRootAddEps,    // √(ms + ε): LayerNorm (centred), RMSNorm
    kLengthClamped  // max(‖x‖₂, ε): ScaleNorm, FixNorm. A clamped row's derivative is that of x/ε
  };
  bool centred = false;
  Denominator denominator = Denominator::kOne;
  double eps = 0;
};

/// What a norm's backward needs of a row: x̂ = (x - mean) · inverse, and how the denominator moves with the row:
///   ∂ℓ/∂x = inverse · (δ' - [centred] mean(δ') - x̂ · weight · Σ δ' x̂),  δ' = gain ⊙ δ  (knobs.md §2.2)
/// weight is 1/d for √(ms + ε) (exact with ε, since x̂ holds the same inverse), 1 for the length, 0 where the
/// denominator is constant (no norm, or a clamped length).
template <class T>
struct RowStatistics {
  T mean, inverse, weight;
};

/// x = residual + drop(y);  normed = gain ⊙ x̂ + bias.
template <class T>
struct AddNorm {
  int64_t rows = 0, width = 0;
  const T* residual = nullptr;  // [T, D]
  const T* y = nullptr;         // [T, D]; null: x = residual
  Dropout dropout = {};         // on y
  RowNames names = {};
  RowNorm norm = {};
  const Wide<T>* gain = nullptr;                 // [gain_size]
  int64_t gain_size = 0;                         // D, 1, or 0: none
  const Wide<T>* bias = nullptr;                 // [D] or null
  T* sum = nullptr;                              // x [T, D]; null where nobody asks, or y is null
  T* normed = nullptr;                           // [T, D]; null: only the sum
  RowStatistics<Wide<T>>* statistics = nullptr;  // [T]; null where no backward follows
};

/// Given ∂ℓ/∂normed and ∂ℓ/∂x from elsewhere, with their sum ∂ℓ/∂x:  d_residual = ∂ℓ/∂x,  d_y = mask ⊙ ∂ℓ/∂x.
template <class T>
struct AddNormBackward {
  int64_t rows = 0, width = 0;
  const T* x = nullptr;                                // [T, D] as the norm saw it; not read where d_normed is null
  const RowStatistics<Wide<T>>* statistics = nullptr;  // [T]
  RowNorm norm = {};
  const Wide<T>* gain = nullptr;
  int64_t gain_size = 0;
  Dropout dropout = {};
  RowNames names = {};
  const T* d_normed = nullptr;  // [T, D] or null
  const T* d_sum = nullptr;     // [T, D] or null
  T* d_residual = nullptr;      // [T, D]; may be d_normed or d_sum itself
  T* d_y = nullptr;             // [T, D] or null
  Wide<T>* d_gain = nullptr;    // [gain_size], added to; null: none
  Wide<T>* d_bias = nullptr;    // [D], added to; null: none
};

/// out = drop(max(x + bias, 0)); x and out may be the same.
template <class T>
struct BiasReluDropout {
  int64_t rows = 0, width = 0;
  const T* x = nullptr;           // [T, F]
  const Wide<T>* bias = nullptr;  // [F]
  Dropout dropout = {};
  RowNames names = {};
  T* out = nullptr;  // [T, F]
};
/// out > 0 exactly where the ReLU was open and the element was kept: no mask need be made again.
template <class T>
struct BiasReluDropoutBackward {
  int64_t rows = 0, width = 0;
  const T* out = nullptr;  // [T, F]
  Dropout dropout = {};
  const T* d_out = nullptr;   // [T, F]
  T* d_x = nullptr;           // [T, F]; may be d_out itself
  Wide<T>* d_bias = nullptr;  // [F], added to
};

/// One sentence (or, in search, one beam) of an attention: its queries see its keys and nothing else.
struct AttentionSpan {
  int32_t query_begin, query_count, key_begin, key_count;
  int32_t line;  // names the span's random numbers: outer = query | head << 16, inner = key (random.h)
};

/// out = drop(softmax(q kᵀ / √d_h)) v for each span and head. Queries of spans do not overlap; keys may where no
/// backward follows. Rows of `out` that no span covers are not written.
///
/// With key_rows, key_begin is a place in that list, which may name any row of k and v, in any order and as often as
/// spans share it. Dropout and `causal` go by a key's place in its span, not by its row. No backward follows.
template <class T>
struct Attention {
  const AttentionSpan* spans = nullptr;  // [span_count]
  int64_t span_count = 0;
  int64_t longest_query = 0, longest_key = 0;  // no span is longer
  bool causal = false;                         // query i sees keys 0 … i; query_count == key_count then
  int64_t heads = 0, d_head = 0;
  const T* q = nullptr;  // [T, heads · d_h], rows q_stride apart; likewise k, v
  const T* k = nullptr;
  const T* v = nullptr;
  int64_t q_stride = 0, k_stride = 0, v_stride = 0;
  const int32_t* key_rows = nullptr;  // search: key j of a span is row key_rows[key_begin + j] of k and v; or null
  Dropout dropout = {};
  T* out = nullptr;         // [T, heads · d_h]
  Wide<T>* kept = nullptr;  // [Kernels::attention_kept()]: what the backend's backward wants; null where none follows
};
template <class T>
struct AttentionBackward {
  Attention<T> forward = {};  // as it was called
  const T* d_out = nullptr;   // [T, heads · d_h]
  T* d_q = nullptr;           // added to; rows stride apart as below, likewise d_k, d_v
  T* d_k = nullptr;
  T* d_v = nullptr;
  int64_t d_q_stride = 0, d_k_stride = 0, d_v_stride = 0;
};

/// loss_t = (1-ε)·nll_t + (ε/K)·Σ_v -log p(v) (training.md §1.8), statistics in Wide<T>.
struct RowLoss {
  double loss, nll;
};
template <class T>
struct CrossEntropy {
  int64_t rows = 0, types = 0;
  T* logits = nullptr;              // [T, K]; where `gradient`, replaced by ∂(Σ_t share · loss_t)/∂logits
  const int32_t* labels = nullptr;  // [T] in 0 … K-1; negative: the row counts for nothing, its gradient is 0
  double smoothing = 0;
  double share = 0;
  bool gradient = false;
  RowLoss* row_losses = nullptr;  // [T]
  // CUDA only, for a step that is captured once and replayed:
  const double* share_at = nullptr;  // in device memory; where given, read instead of `share` when the kernel runs
  RowLoss* sum = nullptr;            // [1]; where given, Σ row_losses is added to it
};

inline constexpr int64_t kMostBestTokens = 65;  // of a beam of 64 at the first position, where EOS does not count
/// The tokens that a search goes on with: the `count` largest logits of each row and their log-softmax over the whole
/// row, best first, ties to the smaller token. What is not a number counts as -∞. Where a row has fewer tokens than
/// `count`, the rest is token -1 with -∞.
template <class T>
struct BestTokens {
  int64_t rows = 0, types = 0;
  int64_t count = 0;          // 1 … kMostBestTokens
  int32_t forbidden = -1;     // is not chosen, though it has its share of the probability; -1: none
  const T* logits = nullptr;  // [T, K]
  int32_t* tokens = nullptr;  // [T, count]
  float* log_p = nullptr;     // [T, count]
};

/// A hypothesis of a search that goes on in device memory. Those of a sentence stand side by side, better first.
struct BeamHypothesis {
  enum State : int32_t { kAbsent, kOpen, kFinished };
  double log_probability = 0;  // Σ log p
  double score = 0;            // normalised by length
  int32_t length = 0;          // tokens, EOS counted
  State state = kAbsent;
};
/// One position of beam search for sentences side by side, each with room for `beam` hypotheses: chooses those that go
/// on, by the rules of engine/decode/beam.h, and writes what the walk over the next position reads. Row r = sentence ·
/// beam + hypothesis; row r of position t stands at t · rows + r of the cache. A sentence that is done stays as it is;
/// its rows, and those of absent and finished hypotheses, are computed for nothing.
struct BeamStep {
  int64_t sentences = 0, beam = 0;
  int64_t candidates = 0;                 // tokens in `best_*` of a row: beam + 1, or all there are
  int64_t room = 0;                       // P: positions that the tables below have room for
  int32_t eos = 0;                        // its column in the logits
  const int32_t* types = nullptr;         // [K] column of the logits → token
  const double* penalties = nullptr;      // [P + 1] what a sum over so many tokens is divided by
  const int32_t* limits = nullptr;        // [sentences] the most tokens of an output, ≤ P
  const int32_t* best_columns = nullptr;  // [rows, candidates] BestTokens::tokens
  const float* best_log_p = nullptr;      // [rows, candidates]
  BeamHypothesis* hypotheses = nullptr;   // [rows]
  int32_t* columns = nullptr;             // [rows, P] the tokens of a hypothesis, as columns of the logits
  int32_t* key_rows = nullptr;            // [rows, P] where its positions stand in the cache
  int32_t* tokens = nullptr;              // [rows] of the next position, likewise below
  int32_t* positions = nullptr;           // [rows]
  AttentionSpan* spans = nullptr;         // [rows] over key_rows; their key_count says which position it is
  int64_t* cache_rows = nullptr;          // [rows]
  int32_t* done = nullptr;                // [sentences] 1: nothing of the sentence is open
};

/// out = drop(scale · table[token] + positions[position]).
template <class T>
struct Embedding {
  int64_t rows = 0, width = 0;
  const Wide<T>* table = nullptr;    // [V, D]
  const float* positions = nullptr;  // [P, D]
  const int32_t* tokens = nullptr;   // [T]
  double scale = 1;
  Dropout dropout = {};
  RowNames names = {};
  T* out = nullptr;  // [T, D]
};
template <class T>
struct EmbeddingBackward {
  int64_t rows = 0, width = 0;
  const T* d_out = nullptr;  // [T, D]
  const int32_t* tokens = nullptr;
  /// [T] the rows ordered by token, then by row: a token's rows stand together and are added in this order.
  const int32_t* by_token = nullptr;
  double scale = 1;
  Dropout dropout = {};
  RowNames names = {};
  Wide<T>* d_table = nullptr;  // [V, D], added to
};

/// sum[c] += Σ_t rows[t, c].
template <class T>
struct ColumnSums {
  int64_t rows = 0, width = 0, stride = 0;
  const T* data = nullptr;  // [T, W], rows stride apart
  Wide<T>* sum = nullptr;   // [W]
};

/// θ ← θ - rate · m / (√v · inverse_root + ε) with m, v the moments of clip · g; then g ← 0.
struct Adam {
  int64_t size = 0;
  float* theta = nullptr;
  float* first_moment = nullptr;
  float* second_moment = nullptr;
  float* gradients = nullptr;
  float clip = 1, beta1 = 0, beta2 = 0, rest1 = 0, rest2 = 0, rate = 0, inverse_root = 0, eps = 0;
};

/// Σ g² in double, in fixed blocks.
struct SquaredNorm {
  int64_t size = 0;
  const float* gradients = nullptr;
  double* sum = nullptr;
};

/// What changes from update to update, written by the host into device memory, so that a captured step can be replayed.
struct UpdateInputs {
  double share = 0;  // CrossEntropy::share_at may point here
  float rate = 0;    // as in Adam
  float inverse_root = 0;
  uint32_t update = 0;  // counted from 1; Dropout::update_at may point here
};
/// What the device says of its updates, read back now and then. All zero at first.
struct UpdateOutcome {
  double squared_norm = 0;  // of the newest gradients; SquaredNorm::sum may point here
  uint32_t frozen_at = 0;   // the first update whose gradients were not finite; no weight moves from it on. 0: none
};
/// Adam without a word from the host: clip = min(1, clip_norm / (√outcome->squared_norm + 1e-6)).
struct AdamOnDevice {
  Adam adam;                             // clip, rate and inverse_root are not read
  double clip_norm = 0;                  // 0: no clipping
  const UpdateInputs* inputs = nullptr;  // device memory
  UpdateOutcome* outcome = nullptr;      // device memory; squared_norm stands here already
  /// [size] θ once more, rounded to bf16 (its 16 bits), for the products; or null.
  uint16_t* theta_bf16 = nullptr;
};

/// One backend for one type. `stream`: a cudaStream_t; the processor's kernels take null.
template <class T>
struct Kernels {
  void (*add_norm)(const AddNorm<T>&, void* stream);
  void (*add_norm_backward)(const AddNormBackward<T>&, void* stream);
  void (*bias_relu_dropout)(const BiasReluDropout<T>&, void* stream);
  void (*bias_relu_dropout_backward)(const BiasReluDropoutBackward<T>&, void* stream);
  /// Size of Attention::kept for these spans (host memory), and the two walks.
  int64_t (*attention_kept)(const AttentionSpan* spans, int64_t span_count, int64_t heads);
  void (*attention)(const Attention<T>&, void* stream);
  void (*attention_backward)(const AttentionBackward<T>&, void* stream);
  void (*cross_entropy)(const CrossEntropy<T>&, void* stream);
  void (*embedding)(const Embedding<T>&, void* stream);
  void (*embedding_backward)(const EmbeddingBackward<T>&, void* stream);
  void (*column_sums)(const ColumnSums<T>&, void* stream);
  /// Heads of more channels than this run by their formula; attention and attention_backward refuse them.
  int64_t widest_head = INT64_MAX;
  /// Whether attention reads Attention::key_rows; else the rows are gathered for it.
  bool reads_key_rows = true;
  void (*best_tokens)(const BestTokens<T>&, void* stream) = nullptr;  // CUDA only
};
/// A search's kernels besides Kernels::best_tokens.
struct SearchKernels {
  void (*beam_step)(const BeamStep&, void* stream);
};
/// The optimiser's kernels: fp32 whatever the type of activations.
struct OptimiserKernels {
  void (*squared_norm)(const SquaredNorm&, void* stream);
  void (*adam)(const Adam&, void* stream);
  void (*adam_on_device)(const AdamOnDevice&, void* stream) = nullptr;  // CUDA only
};

}  // namespace tearless::engine
