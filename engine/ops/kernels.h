// The hand-written operations as plain functions over raw pointers: one struct of arguments for each, and the tables of
// function pointers (Kernels<T>, below) that a backend provides. There is a table for each CPU instruction set
// (engine/ops/cpu/) and one for CUDA (engine/cuda/). A kernel only computes: engine/ops/*.cc choose the backend,
// allocate the tensors and record on the tape. No LibTorch header here: nvcc includes this file, and so do the
// translation units that are compiled for one instruction set.
//
// T is the type of activations: float; double (gradient tests, CPU only); bf16 (CUDA only). Parameters, statistics and
// sums are Wide<T>: double for double, else float. Matrices are row-major and, where no stride is given, contiguous.
// "Added to" means +=; Adam and BeamStep update arrays in place; every other non-const array is overwritten. A null
// pointer means "not given" or "not wanted" where the comment says so.
//
// Every kernel is deterministic: it gives the same bits on every call, for any number of threads. Sums over rows are
// made of fixed blocks of rows that are added in order.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "engine/ops/bf16.h"
#include "engine/ops/body.h"
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

/// The dropout counter of each row (random.h): its position is the word `outer`, its sentence id the word `sentence`.
struct DropoutCounters {
  const int32_t* positions = nullptr;     // [T]
  const int32_t* sentence_ids = nullptr;  // [T]
};

/// A norm of one row x of width d: x̂ = (x - [centred] μ) / denominator, with s² = Σ (x - [centred] μ)² / d, or / (d -
/// 1) where `unbiased`. Without gain and bias the output is scale · (1 - shrink x̂) ⊙ x̂; the gradient of the first two
/// factors is stopped.
struct RowNorm {
  enum class Denominator {
    kOne,               // 1: no norm at all
    kRootAddEps,        // √(s² + ε): LayerNorm (centred), RMSNorm
    kDeviationAddEps,   // s + ε
    kDeviationClamped,  // max(s, ε)
    kLengthClamped      // max(‖x‖₂, ε): ScaleNorm, FixNorm. A clamped row's derivative is that of x/ε
  };
  bool centred = false;  // subtract the row's mean
  Denominator denominator = Denominator::kOne;
  double eps = 0;
  bool unbiased = false;
  bool mean_has_gradient = true, denominator_has_gradient = true;  // false: treated as a constant in backward
  double scale = 1, shrink = 0;                                    // not 1 and 0 only without gain and bias
};

/// What a norm's backward needs of a row. x̂ = (x - mean) · inverse; `weight` is the factor of the term that comes from
/// the derivative of the denominator (docs/spec/knobs.md §2.2):
///   ∂ℓ/∂x = inverse · (δ' - [mean has a gradient] mean(δ') - x̂ · weight · Σ δ' x̂)
///   δ' = gain ⊙ δ, or scale · (1 - shrink x̂) ⊙ δ
/// With n the divisor of s², weight is 1/n for √(s² + ε) (exact with ε, since x̂ holds the same inverse), (s + ε)/(n s)
/// for s + ε, 1/n for s, 1 for the length, and 0 where the denominator is constant: no norm, a clamped row, s = 0, or
/// no gradient.
template <class T>
struct RowStatistics {
  T mean, inverse, weight;
};

/// x = residual + drop(y);  normed = gain ⊙ x̂ + bias, or scale · (1 - shrink x̂) ⊙ x̂ where there is no gain (RowNorm).
template <class T>
struct AddNorm {
  int64_t rows = 0, width = 0;
  const T* residual = nullptr;  // [T, D]
  const T* y = nullptr;         // [T, D]; null: x = residual
  Dropout dropout = {};         // on y
  DropoutCounters counters = {};
  RowNorm norm = {};
  const Wide<T>* gain = nullptr;                 // [gain_size]
  int64_t gain_size = 0;                         // D, 1, or 0: none
  const Wide<T>* bias = nullptr;                 // [D] or null
  T* sum = nullptr;                              // x [T, D]; null: not wanted, or y is null
  T* normed = nullptr;                           // [T, D]; null: only the sum
  RowStatistics<Wide<T>>* statistics = nullptr;  // [T]; null where no backward follows
};

/// ∂ℓ/∂x = d_sum (its gradient from elsewhere) + d_normed propagated through the norm. Then d_residual = ∂ℓ/∂x and
/// d_y = m ⊙ ∂ℓ/∂x, with m the dropout multipliers.
template <class T>
struct AddNormBackward {
  int64_t rows = 0, width = 0;
  const T* x = nullptr;                                // [T, D] the norm's input; not read where d_normed is null
  const RowStatistics<Wide<T>>* statistics = nullptr;  // [T]
  RowNorm norm = {};
  const Wide<T>* gain = nullptr;
  int64_t gain_size = 0;
  Dropout dropout = {};
  DropoutCounters counters = {};
  const T* d_normed = nullptr;  // [T, D] or null
  const T* d_sum = nullptr;     // [T, D] or null
  T* d_residual = nullptr;      // [T, D]; may be d_normed or d_sum itself
  T* d_y = nullptr;             // [T, D] or null
  Wide<T>* d_gain = nullptr;    // [gain_size], added to; null: none
  Wide<T>* d_bias = nullptr;    // [D], added to; null: none
  bool ahead = false;           // KernelVariants::norm_backward; CUDA only
};

/// out = drop(max(x + bias, 0)); x and out may be the same.
template <class T>
struct BiasReluDropout {
  int64_t rows = 0, width = 0;
  const T* x = nullptr;           // [T, F]
  const Wide<T>* bias = nullptr;  // [F]; null: none
  Dropout dropout = {};
  DropoutCounters counters = {};
  T* out = nullptr;  // [T, F]
};
/// out > 0 exactly where x + bias > 0 and dropout kept the element, so the mask is not recomputed.
template <class T>
struct BiasReluDropoutBackward {
  int64_t rows = 0, width = 0;
  const T* out = nullptr;  // [T, F]
  Dropout dropout = {};
  const T* d_out = nullptr;   // [T, F]
  T* d_x = nullptr;           // [T, F]; may be d_out itself
  Wide<T>* d_bias = nullptr;  // [F], added to; null: none
};

/// One sentence of an attention (in search: one beam): its queries see its keys and nothing else.
struct AttentionSpan {
  /// Queries are rows query_begin … query_begin + query_count - 1 of q. Keys are rows key_begin … of k and v, or
  /// with Attention::key_rows the rows that its elements key_begin … name.
  int32_t query_begin, query_count, key_begin, key_count;
  int32_t sentence_id;  // of the dropout counters (random.h): outer = query | head << 16, inner = key

  /// Keys before the first query where the mask is causal: the queries are then the last of the span's keys, so query i
  /// sees keys 0 … keys_before() + i. REQUIRES then: key_count ≥ query_count.
  TEARLESS_BOTH int32_t keys_before() const { return key_count - query_count; }
};

/// out = drop(softmax(q kᵀ / √d_h)) v for each span and head. Queries of spans must not overlap; keys may where no
/// backward follows. Rows of `out` that no span covers are not written.
///
/// With key_rows (search over a KV cache), a span's keys are key_rows[key_begin …]: any rows of k and v, in any order,
/// shared between spans or not. Dropout and `causal` then use a key's index in its span, not its row. No backward.
template <class T>
struct Attention {
  const AttentionSpan* spans = nullptr;  // [span_count]
  int64_t span_count = 0;
  int64_t max_query_length = 0, max_key_length = 0;  // upper bounds of query_count and key_count
  bool causal = false;                               // query i sees keys 0 … span.keys_before() + i
  int64_t heads = 0, d_head = 0;
  const T* q = nullptr;  // [T, heads · d_h], rows q_stride apart; k and v are [S, heads · d_h]
  const T* k = nullptr;
  const T* v = nullptr;
  int64_t q_stride = 0, k_stride = 0, v_stride = 0;
  const int32_t* key_rows = nullptr;  // search: key j of a span is row key_rows[key_begin + j] of k and v; or null
  Dropout dropout = {};
  bool one_query = false;  // KernelVariants::search_attention; CUDA only
  T* out = nullptr;        // [T, heads · d_h]
  /// Not 0, CUDA only: rows of `out` that no span covers get 0 up to this one. REQUIRES: the spans cover the rows from
  /// the first on, and those without queries are the last ones and begin behind the others.
  int64_t padded_rows = 0;
  Wide<T>* saved = nullptr;  // [Kernels::attention_saved_size()], for the same backend's backward; null: none follows
};
template <class T>
struct AttentionBackward {
  Attention<T> forward = {};  // the arguments of the forward call
  const T* d_out = nullptr;   // [T, heads · d_h]
  T* d_q = nullptr;           // [T, heads · d_h], added to, as d_k and d_v are; rows d_q_stride apart
  T* d_k = nullptr;
  T* d_v = nullptr;
  int64_t d_q_stride = 0, d_k_stride = 0, d_v_stride = 0;
  bool short_spans = false;  // KernelVariants::short_attention; CUDA only
  /// Not 0, CUDA only: d_q is stored and not added to. It has so many rows, of which those that no span covers get 0.
  /// With `stores_keys` d_k and d_v too, which then have as many. REQUIRES: as Attention::padded_rows.
  int64_t stored_rows = 0;
  bool stores_keys = false;
};

/// Attention with relative positions: with a = span.keys_before() + i - j the distance from query i of a span back to
/// its key j, and rows that are fewer than the distances ending with the one of all that are farther,
///   score(i, j) = ((q_i + u) · k_j + (q_i + w) · r[min(a, positions - 1)]) / √d_h
///   out = drop(softmax(score)) v    over the keys with a ≥ 0, and a < `window` where that is not 0
/// in each head. REQUIRES: attention.causal, no key_rows, positions ≥ 1.
template <class T>
struct RelativeAttention {
  Attention<T> attention = {};
  int64_t positions = 0;       // P
  const T* r = nullptr;        // [P, heads · d_h]
  const Wide<T>* u = nullptr;  // [heads · d_h]
  const Wide<T>* w = nullptr;  // [heads · d_h]
  int64_t window = 0;
};
/// Each gradient is added to; null: not wanted. REQUIRES: no row is a key of two spans.
template <class T>
struct RelativeAttentionBackward {
  RelativeAttention<T> forward = {};  // the arguments of the forward call
  const T* d_out = nullptr;           // [T, heads · d_h]
  T* d_q = nullptr;                   // [T, heads · d_h], rows d_q_stride apart; so d_k and d_v
  T* d_k = nullptr;
  T* d_v = nullptr;
  int64_t d_q_stride = 0, d_k_stride = 0, d_v_stride = 0;
  T* d_r = nullptr;        // [P, heads · d_h]
  Wide<T>* d_u = nullptr;  // [heads · d_h]
  Wide<T>* d_w = nullptr;  // [heads · d_h]
};

/// loss_t = Σ_v q(v) · -log p(v) - `entropy`, where q(v) = `each` for every token v but `without`, which has 0, and
/// q(label_t) is greater by `gold`; nll_t = -log p(label_t). Which numbers make which form: engine/ops/cross_entropy.h.
struct RowLoss {
  double loss, nll;
};
template <class T>
struct CrossEntropy {
  int64_t rows = 0, vocab_size = 0;
  int64_t stride = 0;   // from one row of logits to the next: K or more
  T* logits = nullptr;  // [T, K]; where `gradient`, replaced by ∂(Σ_t loss_scale · w_t · loss_t)/∂logits
  const int32_t* labels = nullptr;     // [T] in 0 … K-1; negative: a padding row, whose loss and gradient are 0
  double gold = 1, each = 0;           // masses of q
  int32_t without = -1;                // the token that has no mass, which is never a label; -1: none
  double entropy = 0;                  // H(q), or 0
  const float* row_weights = nullptr;  // [T] w; null: 1. The losses are not multiplied by them, the gradient is
  double loss_scale = 0;               // of each row in the gradient: 1 / tokens
  bool gradient = false;
  RowLoss* row_losses = nullptr;  // [T]
  // CUDA only, for a captured update:
  const double* loss_scale_at = nullptr;  // device memory, read instead of `loss_scale` when the kernel runs; or null
  RowLoss* sum = nullptr;                 // [1] Σ row_losses is added to it; or null
};

inline constexpr int64_t kLogitBlock = 32;
/// log Σ_v e^logits[t, v] of each row, and its largest logit in each block of kLogitBlock columns; NaN counts as -∞ in
/// these.
template <class T>
struct LogitSummaries {
  int64_t rows = 0, vocab_size = 0;
  int64_t stride = 0;         // from one row of logits to the next: K or more
  const T* logits = nullptr;  // [T, K]
  T* log_sums = nullptr;      // [T]
  T* maxima = nullptr;        // [T, ⌈K / kLogitBlock⌉]
};

inline constexpr int64_t kMaxBestTokens = 65;  // a beam of 64 and one more, because EOS is forbidden at position 0
/// The candidates of beam search: the `count` largest logits of each row and their log-softmax over the whole row, best
/// first, ties to the smaller token. NaN counts as -∞. Where a row has fewer than `count` tokens, the rest is token -1
/// with -∞.
template <class T>
struct BestTokens {
  int64_t rows = 0, vocab_size = 0;
  int64_t stride = 0;         // from one row of logits to the next: K or more
  int64_t count = 0;          // 1 … kMaxBestTokens
  int32_t forbidden = -1;     // a token that is never chosen but counts in the softmax; -1: none
  const T* logits = nullptr;  // [T, K]
  int32_t* tokens = nullptr;  // [T, count]
  float* log_p = nullptr;     // [T, count]
};

/// A hypothesis of beam search in device memory. Those of a sentence are contiguous, best first.
struct BeamHypothesis {
  enum State : int32_t { kAbsent, kOpen, kFinished };
  double log_probability = 0;  // Σ log p
  double score = 0;            // log_probability / length penalty
  int32_t length = 0;          // tokens, EOS counted
  State state = kAbsent;
};
/// One position of beam search for a batch of sentences, each with `beam` slots for hypotheses: chooses the hypotheses
/// that continue, by the rules of engine/decode/beam.h, and writes the inputs of the decoder's next position.
///
/// rows = sentences · beam, and row r = sentence · beam + hypothesis. The self-attention keys and values of row r at
/// position t are row t · rows + r of the KV cache. A sentence that is done does not change. The decoder still computes
/// its rows, and those of absent and finished hypotheses; the results are ignored.
struct BeamStep {
  int64_t sentences = 0, beam = 0;
  int64_t candidates = 0;                    // tokens in `best_*` of a row: min(beam + 1, K)
  int64_t max_length = 0;                    // P: capacity of the tables below, in positions
  int32_t eos = 0;                           // its column in the logits
  const int32_t* token_of_column = nullptr;  // [K] column of the logits → token
  const double* penalties = nullptr;         // [P + 1] length penalty by number of tokens: score = Σ log p / penalty
  const int32_t* limits = nullptr;           // [sentences] maximum number of tokens of the output, ≤ P
  const int32_t* best_columns = nullptr;     // [rows, candidates] BestTokens::tokens
  const float* best_log_p = nullptr;         // [rows, candidates]
  BeamHypothesis* hypotheses = nullptr;      // [rows]
  int32_t* columns = nullptr;                // [rows, P] the tokens of a hypothesis, as columns of the logits
  int32_t* key_rows = nullptr;               // [rows, P] the row of the KV cache of each of its positions
  // Inputs of the next position:
  int32_t* tokens = nullptr;       // [rows]
  int32_t* positions = nullptr;    // [rows]
  AttentionSpan* spans = nullptr;  // [rows] over key_rows; on entry key_count = the current position + 1
  int64_t* cache_rows = nullptr;   // [rows] the row of the KV cache that the next position's key and value go to

  int32_t* done = nullptr;  // [sentences] 1: the sentence has no open hypothesis, or is at its limit
};

/// out = drop(scale · table[token] + positions[position]), without the first term where the token is -1.
template <class T>
struct Embedding {
  int64_t rows = 0, width = 0;
  const Wide<T>* table = nullptr;    // [V, D]
  const float* positions = nullptr;  // [P, D]
  const int32_t* tokens = nullptr;   // [T] 0 … V - 1, or -1
  double scale = 1;
  Dropout dropout = {};
  DropoutCounters counters = {};
  T* out = nullptr;  // [T, D]
};
template <class T>
struct EmbeddingBackward {
  int64_t rows = 0, width = 0;
  const T* d_out = nullptr;  // [T, D]
  const int32_t* tokens = nullptr;
  /// [T] the rows ordered by token, then by row: a token's rows are contiguous and are added in this order.
  const int32_t* by_token = nullptr;
  double scale = 1;
  Dropout dropout = {};
  DropoutCounters counters = {};
  Wide<T>* d_table = nullptr;  // [V, D], added to
};

/// y = x Wᵀ + b, with W laid out for it (PackedWeights in packed_weights.h): panels of Kernels::panel_width outputs, of
/// which the last is filled up with zeros; in a panel its outputs of each input one after another. An element is the
/// same sum in the same order whatever the other rows are.
template <class T>
struct PackedMatmul {
  int64_t rows = 0, inputs = 0, outputs = 0;
  const T* x = nullptr;  // [rows, inputs], rows x_stride apart
  int64_t x_stride = 0;
  const T* panels = nullptr;  // [⌈outputs / panel_width⌉, inputs, panel_width]
  const T* bias = nullptr;    // [outputs], or null
  T* y = nullptr;             // [rows, outputs]
};

/// sum[c] += Σ_t rows[t, c].
template <class T>
struct ColumnSums {
  int64_t rows = 0, width = 0, stride = 0;
  const T* data = nullptr;  // [T, W], rows stride apart
  Wide<T>* sum = nullptr;   // [W]
};

/// d_weight += d_yᵀ x, and bias_sums = Σ_t d_y[t].
template <class T>
struct WeightGradient {
  int64_t rows = 0, in = 0, out = 0;
  const T* x = nullptr;    // [rows, in], rows x_stride apart
  const T* d_y = nullptr;  // [rows, out], rows d_y_stride apart
  int64_t x_stride = 0, d_y_stride = 0;
  Wide<T>* d_weight = nullptr;  // [out, in], rows d_weight_stride apart
  int64_t d_weight_stride = 0;
  Wide<T>* bias_sums = nullptr;  // [out]
};

/// out[i] = the mean of the rows key_begin … key_begin + key_count - 1 of x, of spans[i]; 0 where key_count is 0.
template <class T>
struct SpanMeans {
  const AttentionSpan* spans = nullptr;  // [span_count]
  int64_t span_count = 0;
  int64_t rows = 0, width = 0;
  const T* x = nullptr;  // [T, D]
  T* out = nullptr;      // [span_count, D]
};
/// REQUIRES: no row is a key of two spans.
template <class T>
struct SpanMeansBackward {
  const AttentionSpan* spans = nullptr;  // [span_count]
  int64_t span_count = 0;
  int64_t rows = 0, width = 0;
  const T* d_out = nullptr;  // [span_count, D]
  T* d_x = nullptr;          // [T, D], added to
};

/// out[t] of the queries of each span = the mean of the rows that it sees: with n = key_count - query_count keys before
/// its queries, query i has the mean of those and of queries 0 … i. x has the queries alone. Where n > 0, row
/// key(n - 1) of `sums` holds the sum of the keys before; where there are `sums`, the sum up to each query is written
/// to the row of its key. The rows of a sentence are added in order, one after another.
template <class T>
struct RunningMeans {
  const AttentionSpan* spans = nullptr;  // [span_count]
  int64_t span_count = 0;
  int64_t rows = 0, width = 0;
  const int32_t* key_rows = nullptr;  // key j of a span is row key_rows[key_begin + j]; null: row key_begin + j
  const T* x = nullptr;               // [T, D]
  Wide<T>* sums = nullptr;            // [any, D], or null where no span has keys before its queries
  T* out = nullptr;                   // [T, D]; rows in no span are not written
};
/// Sums of earlier keys are constant.
template <class T>
struct RunningMeansBackward {
  const AttentionSpan* spans = nullptr;  // [span_count]
  int64_t span_count = 0;
  int64_t rows = 0, width = 0;
  const T* d_out = nullptr;  // [T, D]
  T* d_x = nullptr;          // [T, D], added to
};

/// out[c] = σ(gates[c]) x[c] + σ(gates[D + c]) x[D + c] in each row, σ(z) = 1 / (1 + e⁻ᶻ).
template <class T>
struct GatedSum {
  int64_t rows = 0, width = 0;  // T, D
  const T* gates = nullptr;     // [T, 2 D]
  const T* x = nullptr;         // [T, 2 D]
  T* out = nullptr;             // [T, D]
};
template <class T>
struct GatedSumBackward {
  int64_t rows = 0, width = 0;
  const T* gates = nullptr;
  const T* x = nullptr;
  const T* d_out = nullptr;  // [T, D]
  T* d_gates = nullptr;      // [T, 2 D]
  T* d_x = nullptr;          // [T, 2 D], added to
};

/// out = x³.
template <class T>
struct Cube {
  int64_t rows = 0, width = 0;
  const T* x = nullptr;  // [T, W]
  T* out = nullptr;      // [T, W]
};
/// ∂ℓ/∂x = 3 x² ∂ℓ/∂out.
template <class T>
struct CubeBackward {
  int64_t rows = 0, width = 0;
  const T* x = nullptr;
  const T* d_out = nullptr;
  T* d_x = nullptr;  // may be d_out itself
};

/// out[n] = bias + Σ_f terms[term_of[n, f]], added in the order of f: F rows of a table for each row.
template <class T>
struct SumsOfTerms {
  int64_t rows = 0, each = 0, width = 0;  // N, F, W
  const T* terms = nullptr;               // [P, W]
  const int32_t* term_of = nullptr;       // [N, F] 0 … P - 1
  const Wide<T>* bias = nullptr;          // [W], or null
  T* out = nullptr;                       // [N, W]
};
/// d_terms[p] = Σ d_out[n] over the places n · F + f whose term is p.
template <class T>
struct SumsOfTermsBackward {
  int64_t terms = 0, each = 0, width = 0;  // P, F, W
  const int32_t* places = nullptr;         // [N · F] ordered by their term, then by place
  const int32_t* first = nullptr;          // [P + 1] the places of term p are first[p] … first[p + 1] - 1 of these
  const T* d_out = nullptr;                // [N, W]
  T* d_terms = nullptr;                    // [P, W]
};

/// Images are rows of pixels, channels last: pixel (y, x) of image n is row (n · height + y) · width + x of
/// [N · height · width, channels].
struct ImageShape {
  int64_t height = 0, width = 0, channels = 0;

  TEARLESS_BOTH int64_t pixels() const { return height * width; }
  /// The size × size windows with stride 1, as Patches has them.
  TEARLESS_BOTH ImageShape windows(int64_t size) const {
    return {height - size + 1, width - size + 1, size * size * channels};
  }
  /// The 2 × 2 windows with stride 2, as MaxPool has them.
  TEARLESS_BOTH ImageShape pooled() const { return {height / 2, width / 2, channels}; }
};

/// The size × size windows of each image, one a row: with k = size and C channels, row (n · (H-k+1) + y) · (W-k+1) + x
/// of `out` has pixel (y + ky, x + kx) of image n in columns (ky · k + kx) · C …. REQUIRES: 1 ≤ k ≤ H, W.
template <class T>
struct Patches {
  int64_t images = 0;
  ImageShape image = {};
  int64_t size = 0;
  const T* x = nullptr;  // [N · H · W, C]
  T* out = nullptr;      // [N · (H-k+1) · (W-k+1), k · k · C]
};
/// ∂ℓ/∂x of a pixel is the sum over the windows that it lies in, added in the order of the windows.
template <class T>
struct PatchesBackward {
  int64_t images = 0;
  ImageShape image = {};
  int64_t size = 0;
  const T* d_out = nullptr;  // [N · (H-k+1) · (W-k+1), k · k · C]
  T* d_x = nullptr;          // [N · H · W, C]
};

/// The maximum of each 2 × 2 window, stride 2; an odd last row or column is in none. `winners` is the window's pixel
/// (2 · row + column: 0 … 3) that the maximum is of: the first of equal ones. A window with NaN gives NaN, and its last
/// NaN is the winner.
template <class T>
struct MaxPool {
  int64_t images = 0;
  ImageShape image = {};       // of x
  const T* x = nullptr;        // [N · H · W, C]
  T* out = nullptr;            // [N · ⌊H/2⌋ · ⌊W/2⌋, C]
  uint8_t* winners = nullptr;  // [N · ⌊H/2⌋ · ⌊W/2⌋, C]; null where no backward follows
};
template <class T>
struct MaxPoolBackward {
  int64_t images = 0;
  ImageShape image = {};             // of d_x
  const uint8_t* winners = nullptr;  // [N · ⌊H/2⌋ · ⌊W/2⌋, C]
  const T* d_out = nullptr;          // [N · ⌊H/2⌋ · ⌊W/2⌋, C]
  T* d_x = nullptr;                  // [N · H · W, C]
};

/// What of Adam changes from update to update (adam.h: adam_factors()).
struct AdamFactors {
  float step_size = 0, inverse_sqrt_correction2 = 0, eps = 0;
  float decay = 0;  // lr · weight decay. Not 1 - lr · weight decay, which in fp32 has no more than a digit of 1e-7
};
/// θ ← θ - (decay · θ + step_size · m / (√v · inverse_sqrt_correction2 + ε)) with m, v the moments of clip · g; then
/// g ← 0.
struct Adam {
  int64_t size = 0;  // of each of the four arrays
  float* theta = nullptr;
  float* first_moment = nullptr;
  float* second_moment = nullptr;
  float* gradients = nullptr;
  float clip = 1, beta1 = 0, beta2 = 0, one_minus_beta1 = 0, one_minus_beta2 = 0;
  AdamFactors factors;
};

/// *sum = Σ g², in double over fixed blocks.
struct SquaredNorm {
  int64_t size = 0;
  const float* gradients = nullptr;
  double* sum = nullptr;
};

/// What changes from update to update. The host writes it to device memory before each replay of a captured update.
struct UpdateInputs {
  double loss_scale = 0;  // 1 / Batch::loss_divisor(); CrossEntropy::loss_scale_at may point here
  AdamFactors adam;
  uint32_t update = 0;  // counted from 1; Dropout::update_at may point here
};
/// Outcome of the updates, in device memory; the host reads it back now and then. Zero before the first update.
struct UpdateOutcome {
  double squared_norm = 0;  // Σ g² of the latest update; SquaredNorm::sum may point here
  uint32_t frozen_at = 0;   // first update with a gradient that is not finite: parameters are fixed from it on. 0: none
};
/// Adam without synchronising with the host: clip = min(1, clip_norm / (√outcome->squared_norm + 1e-6)), and factors
/// and update number come from `inputs`.
struct AdamOnDevice {
  Adam adam;                             // clip and factors are not read
  double clip_norm = 0;                  // 0: no clipping
  const UpdateInputs* inputs = nullptr;  // device memory
  UpdateOutcome* outcome = nullptr;      // device memory; reads squared_norm, writes frozen_at
  /// [size] θ rounded to bf16 (as 16 bits), for the matmuls; or null.
  uint16_t* theta_bf16 = nullptr;
};

/// The kernels of one backend for one type of activations; null where it has none: the operation then runs by its
/// formula. `stream`: a cudaStream_t; ignored by the CPU kernels. CUDA kernels are launched asynchronously: every
/// pointer is to device memory and must stay valid until the stream is done.
template <class T>
struct Kernels {
  void (*add_norm)(const AddNorm<T>&, void* stream) = nullptr;
  void (*add_norm_backward)(const AddNormBackward<T>&, void* stream) = nullptr;
  void (*bias_relu_dropout)(const BiasReluDropout<T>&, void* stream) = nullptr;
  void (*bias_relu_dropout_backward)(const BiasReluDropoutBackward<T>&, void* stream) = nullptr;
  /// Elements of Attention::saved for these spans, which are in host memory; of relative attention too.
  int64_t (*attention_saved_size)(const AttentionSpan* spans, int64_t span_count, int64_t heads) = nullptr;
  void (*attention)(const Attention<T>&, void* stream) = nullptr;
  void (*attention_backward)(const AttentionBackward<T>&, void* stream) = nullptr;
  bool stores_attention = false;  // they know Attention::padded_rows and AttentionBackward::stored_rows
  void (*relative_attention)(const RelativeAttention<T>&, void* stream) = nullptr;
  void (*relative_attention_backward)(const RelativeAttentionBackward<T>&, void* stream) = nullptr;
  void (*cross_entropy)(const CrossEntropy<T>&, void* stream) = nullptr;
  void (*embedding)(const Embedding<T>&, void* stream) = nullptr;
  void (*embedding_backward)(const EmbeddingBackward<T>&, void* stream) = nullptr;
  void (*column_sums)(const ColumnSums<T>&, void* stream) = nullptr;
  /// bf16 on CUDA only. False: the library has nothing for such operands, and nothing was computed.
  bool (*weight_gradient)(const WeightGradient<T>&, void* stream) = nullptr;
  void (*packed_matmul)(const PackedMatmul<T>&, void* stream) = nullptr;  // CPU only
  int64_t panel_width = 0;                                                // of packed_matmul
  void (*span_means)(const SpanMeans<T>&, void* stream) = nullptr;
  void (*span_means_backward)(const SpanMeansBackward<T>&, void* stream) = nullptr;
  void (*running_means)(const RunningMeans<T>&, void* stream) = nullptr;
  void (*running_means_backward)(const RunningMeansBackward<T>&, void* stream) = nullptr;
  void (*gated_sum)(const GatedSum<T>&, void* stream) = nullptr;
  void (*gated_sum_backward)(const GatedSumBackward<T>&, void* stream) = nullptr;
  void (*cube)(const Cube<T>&, void* stream) = nullptr;
  void (*cube_backward)(const CubeBackward<T>&, void* stream) = nullptr;
  void (*sums_of_terms)(const SumsOfTerms<T>&, void* stream) = nullptr;                   // CPU only
  void (*sums_of_terms_backward)(const SumsOfTermsBackward<T>&, void* stream) = nullptr;  // CPU only
  void (*patches)(const Patches<T>&, void* stream) = nullptr;
  void (*patches_backward)(const PatchesBackward<T>&, void* stream) = nullptr;
  void (*max_pool)(const MaxPool<T>&, void* stream) = nullptr;
  void (*max_pool_backward)(const MaxPoolBackward<T>&, void* stream) = nullptr;
  /// The largest d_head that the kernels of attention accept, relative or not; wider heads run by their formula.
  int64_t widest_head = INT64_MAX;
  void (*logit_summaries)(const LogitSummaries<T>&, void* stream) = nullptr;  // CPU only
  void (*best_tokens)(const BestTokens<T>&, void* stream) = nullptr;          // CUDA only
};
/// The kernels of beam search besides Kernels::best_tokens.
struct SearchKernels {
  void (*beam_step)(const BeamStep&, void* stream) = nullptr;
};
/// The optimiser's kernels: fp32 whatever the type of activations.
struct OptimiserKernels {
  void (*squared_norm)(const SquaredNorm&, void* stream) = nullptr;
  void (*adam)(const Adam&, void* stream) = nullptr;
  void (*adam_on_device)(const AdamOnDevice&, void* stream) = nullptr;  // CUDA only
};

/// Captures the kernel launches made by `launches` as a CUDA graph without running them. The returned function replays
/// the graph. Memory allocated during capture belongs to the graph and is freed with that function.
/// REQUIRES: the current stream is not the default stream; nothing synchronises with the device or copies from the host
/// during capture; graphs never run concurrently, because they share one memory pool.
using CaptureGraph = std::function<void()> (*)(const std::function<void()>& launches);

/// All kernels of one CPU instruction set, or of CUDA. Null where a backend has none.
struct Backend {
  std::string_view name;  // "x86-64-v2": SSE4; "x86-64-v3": AVX2; "x86-64-v4": AVX-512; "cuda"
  bool supported = true;  // by this processor
  const Kernels<float>* float_kernels = nullptr;
  const Kernels<double>* double_kernels = nullptr;  // CPU only
  const Kernels<bf16>* bf16_kernels = nullptr;      // CUDA only
  const OptimiserKernels* optimiser = nullptr;
  const SearchKernels* search = nullptr;  // CUDA only
  CaptureGraph capture = nullptr;         // CUDA only
};

}  // namespace tearless::engine
