// Sums over rows without atomics (kernels.h: ColumnSums), in two launches: ColumnSumRows writes the partial sums of
// blocks of rows to the workspace, AddPartials adds those of each column in order. The partition into blocks depends
// only on the matrix's shape, so the bits do not depend on the device.
#pragma once

#include <algorithm>

#include "engine/cuda/block.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// Rows in one block of rows: at least `at_least`. Gives up to 512 blocks: enough to fill a large GPU, few enough for
/// the partial sums to stay in its cache.
inline int64_t rows_per_partial(int64_t rows, int64_t at_least) {
  constexpr int64_t kPartials = 512;
  return std::max(at_least, blocks_for(rows, kPartials));
}

/// to[c] += Σ_i partial[i, c]; the first `first_width` columns go to `first`, the rest to `second`. A block takes 32
/// columns, each of its 16 warps every 16th partial sum.
struct AddPartials {
  static constexpr const char* kName = "add_partials";
  static constexpr int kThreads = 512;
  const float* partial;  // [count, width]
  int64_t count, width;
  float* first;
  int64_t first_width;
  float* second;

  Shape shape() const { return {blocks_for(width, kLanes), kThreads, kThreads * static_cast<int64_t>(sizeof(float))}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t c = block.index() * kLanes + block.lane();
    float sum = 0;
    if (c < width) {
      TEARLESS_UNROLL_BY(8)
      for (int64_t i = block.warp(); i < count; i += kThreads / kLanes) sum += partial[i * width + c];
    }
    float* sums = reinterpret_cast<float*>(block.shared());
    sums[block.thread()] = sum;
    block.sync();
    if (block.warp() != 0 || c >= width) return;
    for (int w = 1; w < kThreads / kLanes; ++w) sum += sums[w * kLanes + block.lane()];
    float* to = c < first_width ? first + c : second + (c - first_width);
    *to += sum;
  }
};

/// A source of rows for ColumnSumRows: load() gives the group of row t at channel c.
template <class T, bool kAligned>
struct PlainRows {
  static constexpr const char* kName = "column_sums";
  const T* data;
  int64_t stride;

  template <int kSize>
  TEARLESS_BODY void load(int64_t t, int64_t c, int count, float (&x)[kSize]) const {
    load_group<kAligned>(data + t * stride + c, count, x);
  }
};

/// partial[b, c] = Σ over the rows of block b of rows.
template <class Rows, int kSize>
struct ColumnSumRows {
  static constexpr const char* kName = Rows::kName;
  static constexpr int kThreads = Tiling::kThreads;
  Rows source;
  int64_t rows, width, rows_per_block;
  Tiling tiling;
  float* partial;  // [blocks of rows, width]

  Shape shape() const {
    return {blocks_for(rows, rows_per_block) * tiling.tiles, kThreads,
            kThreads * kSize * static_cast<int64_t>(sizeof(float))};
  }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t part = tiling.part_of(block.index());
    const int64_t c = tiling.column_of(block.index(), block.thread(), kSize);
    const int count = inside<kSize>(c, width);
    const int64_t first = part * rows_per_block;
    const int64_t last = first + rows_per_block < rows ? first + rows_per_block : rows;
    float sum[kSize] = {};
    if (count > 0) {
      TEARLESS_UNROLL_BY(4)
      for (int64_t t = first + tiling.y(block.thread()); t < last; t += tiling.down()) {
        float x[kSize];
        source.load(t, c, count, x);
        TEARLESS_UNROLL
        for (int i = 0; i < kSize; ++i) sum[i] += x[i];
      }
    }
    // [i][thread] and not [thread][i], which would cause bank conflicts.
    float* sums = reinterpret_cast<float*>(block.shared());
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) sums[i * kThreads + block.thread()] = sum[i];
    block.sync();
    if (tiling.y(block.thread()) != 0) return;
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) {
      if (i >= count) break;
      float total = sum[i];
      for (int y = 1; y < tiling.down(); ++y) total += sums[i * kThreads + y * tiling.across() + block.thread()];
      partial[part * width + c + i] = total;
    }
  }
};

/// to[c] += Σ_t source.load(t)[c], in two launches. `to` null: the sums are not wanted, only what load() writes.
template <int kSize, class Rows, class Runner>
void launch_column_sums(const Rows& source, int64_t rows, int64_t width, float* to, Runner& runner) {
  if (rows == 0 || width == 0) return;
  const Tiling tiling = Tiling::of(width, kSize);
  const int64_t per_block = rows_per_partial(rows, std::max<int64_t>(16, 2 * tiling.down()));
  const int64_t parts = blocks_for(rows, per_block);
  float* partial = runner.template workspace<float>(parts * width);
  runner.run(ColumnSumRows<Rows, kSize>{source, rows, width, per_block, tiling, partial});
  if (to) runner.run(AddPartials{partial, parts, width, to, width, nullptr});
}

template <class T, class Runner>
void launch(const ColumnSums<T>& a, Runner& runner) {
  if (is_aligned(a.data, a.stride) && a.width % kWideGroup<T> == 0) {
    launch_column_sums<kWideGroup<T>>(PlainRows<T, true>{a.data, a.stride}, a.rows, a.width, a.sum, runner);
  } else {
    launch_column_sums<4>(PlainRows<T, false>{a.data, a.stride}, a.rows, a.width, a.sum, runner);
  }
}

}  // namespace tearless::engine
