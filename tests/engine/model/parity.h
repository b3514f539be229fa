// What the tests against PyTorch share: the files that tools/make_golden.py writes, and the comparison of a model with
// one of them. The program shares no code with the engine and computes in double; what is allowed here is the rounding
// of float.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "base/settings.h"
#include "engine/model/parameters.h"
#include "engine/ops/adam.h"
#include "engine/ops/cross_entropy.h"
#include "tests/support/paths.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::test {

constexpr double kLabelSmoothing = 0.1;
// Some thousand float operations deep, and six digits in the files.
constexpr double kTolerance = 2e-5;
// Ten updates of Adam, whose first steps divide small gradients by themselves.
constexpr double kTrainingTolerance = 2e-4;

inline std::filesystem::path golden_folder(const std::string& folder) {
  return tearless::test::source_root() / "tests" / "golden" / folder;
}

/// The cases in tests/golden/`folder`, sorted.
inline std::vector<std::string> golden_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder(folder))) {
    names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline nlohmann::json read_golden(const std::string& folder, const std::string& name) {
  return nlohmann::json::parse(std::ifstream(golden_folder(folder) / (name + ".json")));
}

/// [model] of a case.
template <class Options>
Options golden_options(const nlohmann::json& golden) {
  WrittenSettings written;
  written.name = "golden file";
  for (const auto& [key, value] : golden.at("settings").items()) written.values[key] = value;
  Options options;
  read_settings(written, [&](SettingsVisitor& v) { v.table("model", options); });
  return options;
}

inline at::Tensor golden_numbers(const nlohmann::json& list) {
  return at::tensor(list.get<std::vector<double>>(), at::kDouble);
}

/// A case, by kernels or by formulas.
using ParityCase = std::tuple<std::string, Tape::Ops>;

inline auto parity_cases(const std::string& folder) {
  std::vector<Tape::Ops> ways = {Tape::Ops::kFast};
  if (!tearless::test::kSanitized) ways.push_back(Tape::Ops::kReference);  // LibTorch's code, which is not instrumented
  return testing::Combine(testing::ValuesIn(golden_names(folder)), testing::ValuesIn(ways));
}
inline std::string parity_case_name(const testing::TestParamInfo<ParityCase>& info) {
  return std::get<0>(info.param) + (std::get<1>(info.param) == Tape::Ops::kFast ? "_fast" : "_reference");
}

/// The loss of the case's batch in that update.
using LossOfUpdate = std::function<CrossEntropySums(Tape& tape, uint32_t update)>;

inline void expect_golden_logits(const at::Tensor& logits, const nlohmann::json& golden) {
  const at::Tensor expected = golden_numbers(golden.at("logits")).view_as(logits);
  EXPECT_LT((logits.to(at::kDouble) - expected).abs().max().item<double>(),
            kTolerance * expected.abs().max().item<double>());
}

inline void expect_golden_loss_and_gradients(Parameters& parameters, const nlohmann::json& golden, Tape::Ops ops,
                                             const LossOfUpdate& loss_of) {
  Tape tape(Tape::Kind::kRecording, ops);
  const CrossEntropySums sums = loss_of(tape, 1);
  tape.backward();
  if (ops == Tape::Ops::kFast) {
    EXPECT_EQ(tape.fallback_ops(), 0) << "an operation has no hand-written backward";
  }
  const double loss = golden.at("loss_sum"), nll = golden.at("nll_sum");
  EXPECT_NEAR(sums.loss, loss, kTolerance * loss);
  EXPECT_NEAR(sums.nll, nll, kTolerance * nll);

  const double norm = golden.at("gradient_norms")[0];
  EXPECT_NEAR(global_norm(parameters.gradients()), norm, kTolerance * norm);
  ASSERT_EQ(parameters.specs().size(), golden.at("gradients").size());
  for (const ParameterSpec& spec : parameters.specs()) {
    const at::Tensor gradient = parameters.get(spec.name).grad().to(at::kDouble);
    const at::Tensor expected = golden_numbers(golden.at("gradients").at(spec.name)).view_as(gradient);
    // Key biases have a gradient of exactly zero (a softmax does not see a shift): only rounding may remain there.
    const double allowed = kTolerance * std::max(expected.abs().max().item<double>(), 0.01 * norm);
    EXPECT_LT((gradient - expected).abs().max().item<double>(), allowed) << spec.name;
  }
}

inline void expect_golden_evaluation(const nlohmann::json& golden, Tape::Ops ops, const LossOfUpdate& loss_of) {
  Tape tape(Tape::Kind::kForward, ops);
  const double nll = golden.at("evaluation_nll");
  EXPECT_NEAR(loss_of(tape, 1).nll, nll, kTolerance * nll);
}

inline void expect_golden_training(Parameters& parameters, const nlohmann::json& golden, Tape::Ops ops,
                                   const LossOfUpdate& loss_of) {
  at::Tensor first = at::zeros_like(parameters.values()), second = at::zeros_like(parameters.values());
  const std::vector<double> rates = golden.at("rates"), losses = golden.at("losses"),
                            norms = golden.at("gradient_norms");
  ASSERT_EQ(losses.size(), 10u);
  for (size_t n = 1; n <= losses.size(); ++n) {
    parameters.gradients().zero_();
    Tape tape(Tape::Kind::kRecording, ops);
    const CrossEntropySums sums = loss_of(tape, static_cast<uint32_t>(n));
    tape.backward();
    const double norm = global_norm(parameters.gradients());
    EXPECT_NEAR(sums.loss / static_cast<double>(sums.tokens), losses[n - 1], kTrainingTolerance * losses[n - 1])
        << "update " << n;
    EXPECT_NEAR(norm, norms[n - 1], 5 * kTrainingTolerance * norms[n - 1]) << "update " << n;
    adam_step({.learning_rate = rates[n - 1], .update = static_cast<int64_t>(n)}, norm, parameters.gradients(),
              parameters.values(), first, second);
  }
}

/// Each of these norms at each placement has a case NORM_PLACEMENT in the folder.
inline void expect_a_case_for_each_placement(const std::string& folder, const std::vector<std::string>& norms) {
  const std::vector<std::string> names = golden_names(folder);
  for (const std::string& norm : norms) {
    for (const char* placement : {"post", "pre", "pre_no_final"}) {
      EXPECT_TRUE(std::binary_search(names.begin(), names.end(), norm + "_" + placement)) << norm << " " << placement;
    }
  }
}

}  // namespace tearless::engine::test
