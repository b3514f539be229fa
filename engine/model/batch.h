// A batch as the training loop sees it. Only its task knows what it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tearless::engine {

class Batch {
 public:
  virtual ~Batch() = default;

  /// Rows without padding, for the throughput figure: tokens of all sides, or images.
  virtual int64_t rows() const = 0;
  /// The number of predictions whose losses are summed. An update minimises their mean.
  virtual int64_t predictions() const = 0;
  /// What the sum of the losses is divided by, where they are not of equal weights: sentences.
  virtual int64_t loss_divisor() const { return predictions(); }

  // Captured updates replay one batch's kernels on the numbers of another, so they need batches of equal sizes.

  /// The sizes to which pad() fills the batch up. A function of the batch's own sizes, with few values.
  virtual std::vector<int64_t> bucket() const = 0;
  /// Fills the batch up to the sizes of bucket(). Must not change the loss or a gradient.
  virtual void pad() = 0;

  /// An array in host memory that kernels read.
  struct Part {
    const void* data;
    size_t bytes;

    template <class T>
    Part(const std::vector<T>& array) : data(array.data()), bytes(array.size() * sizeof(T)) {}
  };
  /// All arrays of a padded batch: the same ones in the same order for all batches of a task, of equal sizes for equal
  /// buckets.
  virtual std::vector<Part> parts() const = 0;
};

}  // namespace tearless::engine
