// Training by the kernels and by the formulas gives the same losses: ten updates with every dropout on.
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/ops/adam.h"
#include "tests/engine/model/tiny_model.h"
#include "tests/engine/ops/op_check.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::curves_test {
namespace {

constexpr int64_t kUpdates = tearless::test::kSanitized ? 3 : 10;

std::vector<double> losses(const ModelOptions& options, Tape::Ops ops) {
  const std::vector<uint8_t> in_output_vocabulary = {0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1};
  test::TinyModel model(options, in_output_vocabulary);
  const PackedBatch batch = test::batch_of({{4, 5, 6, kEos}, {7, kEos}, {10, 9, 8, 7, 6, 5, kEos}},
                                           {{6, 7}, {8, 9, 10, 4, 6}, {4}}, {3, 1, 8});
  at::Tensor first = at::zeros_like(model.parameters.values()), second = at::zeros_like(first);
  std::vector<double> curve;
  for (int64_t n = 1; n <= kUpdates; ++n) {
    Tape tape(Tape::Kind::kRecording, ops);
    curve.push_back(model.transformer.loss({tape, static_cast<uint32_t>(n)}, batch, 0.1).loss);
    tape.backward();
    adam_step({.learning_rate = 0.01, .update = n}, global_norm(model.parameters.gradients()),
              model.parameters.gradients(), model.parameters.values(), first, second);
  }
  return curve;
}

TEST(Curves, OfKernelsAndFormulasCoincide) {
  for (const auto& kind : norm_kinds()) {
    for (const Placement placement : {Placement::kPost, Placement::kPre, Placement::kPreNoFinal}) {
      SCOPED_TRACE(fmt::format("{}, placement {}", kind->name, static_cast<int>(placement)));
      ModelOptions options = test::tiny_options();
      options.norm.kind = kind->name;
      options.placement = placement;
      options.fix_norm = placement == Placement::kPost;
      const std::vector<double> reference = losses(options, Tape::Ops::kReference);
      test::for_each_cpu_backend([&] {
        const std::vector<double> fast = losses(options, Tape::Ops::kFast);
        for (size_t n = 0; n < fast.size(); ++n)
          EXPECT_NEAR(fast[n], reference[n], 1e-4 * reference[n]) << "update " << n + 1;
      });
      EXPECT_LT(reference.back(), 0.99 * reference.front()) << "nothing was learnt: the comparison shows nothing";
    }
  }
}

}  // namespace
}  // namespace tearless::engine::curves_test
