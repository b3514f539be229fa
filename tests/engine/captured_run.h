// What updates leave, so that captured ones can be compared with those that ran operation by operation.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <vector>

#include "engine/train/updater.h"

namespace tearless::engine::test {

struct Trained {
  std::vector<UpdateResult> results;
  at::Tensor parameters, first, second;  // Adam's moments
  int64_t captured = 0;

  void expect_same_bits(const Trained& other) const {
    ASSERT_EQ(results.size(), other.results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].sums.values, other.results[i].sums.values) << "update " << i + 1;
      EXPECT_EQ(results[i].sums.predictions, other.results[i].sums.predictions) << "update " << i + 1;
      EXPECT_EQ(results[i].gradient_norm, other.results[i].gradient_norm) << "update " << i + 1;
    }
    EXPECT_TRUE(at::equal(parameters, other.parameters));
    EXPECT_TRUE(at::equal(first, other.first));
    EXPECT_TRUE(at::equal(second, other.second));
  }
};

}  // namespace tearless::engine::test
