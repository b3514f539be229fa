// Shared memory of the attention kernels (attention_body.h), computed on the host and passed with the launch: how many
// rows a tile has, and where each array starts, in bytes.
//
// Both begin with two tiles, [2, tile_rows, row stride]: forward keys and values; backward keys and values, later
// queries and gradients of the output. The row stride is an odd multiple of 16 bytes, so that the eight lanes which
// read eight rows at once have no bank conflict. Tiles are as large as the longest span needs and shared memory allows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "engine/cuda/block.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// Every GPU since compute capability 8.0 has that much for a block.
inline constexpr int64_t kAttentionSharedBytes = 96 << 10;

/// Backward: two floats for each query of the span, which the pass for ∂q leaves to the pass for ∂k and ∂v.
struct QueryStats {
  int at;       // offset in shared memory: [2, queries] float
  int queries;  // max_query_length, padded; 0 forward

  static constexpr int64_t bytes_for(int64_t queries) { return 2 * 4 * queries; }

  /// log Σ_j e^score; in base 2 for tensor cores.
  template <class Block>
  TEARLESS_BODY float* logsumexp(Block& block) const {
    return reinterpret_cast<float*>(block.shared() + at);
  }
  /// Σ_j P_j G_j.
  template <class Block>
  TEARLESS_BODY float* p_dot_g(Block& block) const {
    return logsumexp(block) + queries;
  }
};

// --- without tensor cores ---

inline constexpr int kWarpRows = 4;    // rows of a warp: numbers in a Philox call, and 4 rows × 8 calls are 32 lanes
inline constexpr int kTileChunks = 4;  // chunks of 32 rows in the largest tile
inline constexpr int64_t kMaxHead = 256;

/// What a kernel has in shared memory besides its two tiles.
struct SimtNeeds {
  int operands = 1;      // of a warp, with their rows and weights
  bool stats = false;    // QueryStats
  int skewed_tiles = 0;  // of relative_attention_body.h
};

struct SimtLayout {
  static constexpr int kThreads = 128;
  static constexpr int kWarps = kThreads / kLanes;
  static constexpr int kRoundRows = kWarps * kWarpRows;  // rows that the block's warps take at a time
  int channels;                                          // of a head, rounded up to 16 bytes; zeros from d_head on
  int row_elements;                                      // row stride of a tile
  int tile_rows;                                         // a multiple of 32
  int warp_rows_at;  // [kWarps, operands, kWarpRows, channels] float: the warps' rows
  int weights_at;    // [kWarps, operands, tile_rows, kWarpRows] float
  QueryStats stats;  // queries: a multiple of 4
  int skewed_at;     // [skewed tiles, skewed_rows(), row_elements]
  int64_t bytes;     // in total

  /// A row for each distance between a row of a tile and one of the block's warps.
  TEARLESS_BOTH int skewed_rows() const { return tile_rows + kRoundRows; }

  /// `longest`: rows of the side that tiles are loaded of.
  template <class T>
  static SimtLayout of(const Attention<T>& a, int64_t longest, const SimtNeeds& needs) {
    constexpr int kWide = kWideGroup<T>;
    if (a.d_head > kMaxHead) {
      throw std::invalid_argument("attention heads of " + std::to_string(a.d_head) +
                                  " channels are too wide for the CUDA kernel, which takes " +
                                  std::to_string(kMaxHead) + ": use more heads");
    }
    SimtLayout l;
    const int blocks_of_16 = static_cast<int>(blocks_for(a.d_head, kWide));
    l.channels = blocks_of_16 * kWide;
    l.row_elements = (blocks_of_16 | 1) * kWide;
    const int64_t operands = needs.operands;
    const int64_t row_bytes = l.row_elements * static_cast<int64_t>(sizeof(T));
    const int64_t warp_rows = kWarps * operands * kWarpRows * l.channels * 4;
    l.stats.queries = needs.stats ? static_cast<int>(blocks_for(a.max_query_length, kWarpRows) * kWarpRows) : 0;
    const int64_t stats = QueryStats::bytes_for(l.stats.queries);
    const int64_t of_tile_row =
        (2 + needs.skewed_tiles) * row_bytes + kWarps * operands * kWarpRows * 4;  // with its weights
    const int64_t left = kAttentionSharedBytes - warp_rows - stats - needs.skewed_tiles * kRoundRows * row_bytes;
    const int64_t chunks = std::min<int64_t>(
        {blocks_for(std::max<int64_t>(longest, 1), kLanes), kTileChunks, left / (of_tile_row * kLanes)});
    l.tile_rows = static_cast<int>(std::max<int64_t>(chunks, 1) * kLanes);
    l.warp_rows_at = static_cast<int>(2 * l.tile_rows * row_bytes);
    l.weights_at = l.warp_rows_at + static_cast<int>(warp_rows);
    l.stats.at = l.weights_at + kWarps * static_cast<int>(operands) * l.tile_rows * kWarpRows * 4;
    l.skewed_at = l.stats.at + static_cast<int>(stats);
    l.bytes = l.skewed_at + needs.skewed_tiles * l.skewed_rows() * row_bytes;
    return l;
  }
};

// --- on tensor cores ---

inline constexpr int kMmaRows = 16;  // rows of a warp, and of a fragment
inline constexpr int64_t kMaxMmaHead = 128;

/// Row stride of a tile, in elements. kChunks: blocks of 16 channels.
template <int kChunks>
inline constexpr int kMmaRowElements = kChunks * 16 + 8;

struct MmaLayout {
  static constexpr int kMaxWarps = 4;
  static constexpr int kMaxTileRows = 128;
  int warps;         // no more than there are blocks of 16 rows
  int tile_rows;     // a multiple of 16
  QueryStats stats;  // queries: a multiple of 16
  int keep_bits_at;  // [stats.queries, key_blocks] uint16_t: dropout bits of 16 keys (backward, with dropout)
  int key_blocks;    // blocks of 16 keys
  int64_t bytes;     // in total

  /// Fills in the layout; false where shared memory is too small.
  static bool of(const Attention<bf16>& a, int row_elements, bool backward, MmaLayout& l) {
    const auto blocks_of_16 = [](int64_t rows) { return blocks_for(std::max<int64_t>(rows, 1), kMmaRows); };
    const int64_t queries = blocks_of_16(a.max_query_length), keys = blocks_of_16(a.max_key_length);
    const int64_t warp_blocks = backward ? std::max(queries, keys) : queries;  // the side that the warps share
    const int64_t tile_blocks = backward ? std::max(queries, keys) : keys;     // the side that tiles are loaded of
    l.stats.queries = backward ? static_cast<int>(queries * kMmaRows) : 0;
    const int64_t stats = QueryStats::bytes_for(l.stats.queries);
    const int64_t keep_bits = backward && a.dropout.active() ? queries * kMmaRows * keys * 2 : 0;
    const int64_t of_tile_row = 2 * row_elements * static_cast<int64_t>(sizeof(bf16));
    const int64_t left = kAttentionSharedBytes - stats - keep_bits;
    if (left < kMmaRows * of_tile_row) return false;
    l.warps = static_cast<int>(std::min<int64_t>(warp_blocks, kMaxWarps));
    l.tile_rows = static_cast<int>(
        std::min<int64_t>({tile_blocks * kMmaRows, kMaxTileRows, left / of_tile_row / kMmaRows * kMmaRows}));
    l.stats.at = static_cast<int>(l.tile_rows * of_tile_row);
    l.keep_bits_at = l.stats.at + static_cast<int>(stats);
    l.key_blocks = static_cast<int>(keys);
    l.bytes = l.keep_bits_at + keep_bits;
    return true;
  }
};

}  // namespace tearless::engine
