// The network of the task digits against PyTorch: logits, loss, every gradient and ten losses of training, dropout on,
// for both architectures and every site of norms, by the kernels and by the formulas. The expected numbers are from
// tools/make_golden_digits.py, which has channels first, convolutions, and ReLU before pooling.
#include <ATen/Parallel.h>

#include "engine/model/digit_network.h"
#include "tests/engine/model/parity.h"

namespace tearless::engine::digit_parity_test {
namespace {

using test::kLabelSmoothing;
using test::ParityCase;

constexpr const char* kFolder = "digits_parity";

/// One case: the settings, the batch and what must come out.
struct Golden {
  explicit Golden(const std::string& name)
      : json(test::read_golden(kFolder, name)),
        options(test::golden_options<DigitNetworkOptions>(json)),
        parameters(json.at("init_seed"), at::kCPU),
        model(parameters, options, json.at("height"), json.at("width"), json.at("dropout_seed")) {
    parameters.allocate();
    at::set_num_threads(1);  // for so little work one thread is faster
    std::vector<float> pixels;
    for (const double byte : json.at("pixels")) {
      pixels.push_back(
          static_cast<float>((byte / 255 - json.at("mean").get<double>()) / json.at("deviation").get<double>()));
    }
    batch = model.ready(pixels, json.at("labels"), json.at("numbers").get<std::vector<int32_t>>());
  }

  test::LossOfUpdate loss() const {
    return [this](Tape& tape, uint32_t update) { return model.loss({tape, update}, batch, kLabelSmoothing); };
  }

  nlohmann::json json;
  DigitNetworkOptions options;
  Parameters parameters;
  DigitNetwork model;
  ReadyImages batch;
};

class DigitParity : public testing::TestWithParam<ParityCase> {
 protected:
  Tape::Ops ops() const { return std::get<1>(GetParam()); }
  Golden golden_{std::get<0>(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(All, DigitParity, test::parity_cases(kFolder), test::parity_case_name);

TEST_P(DigitParity, LogitsInTraining) {
  Tape tape(Tape::Kind::kRecording, ops());
  test::expect_golden_logits(golden_.model.logits({tape, 1}, golden_.batch).data(), golden_.json);
}

TEST_P(DigitParity, LossAndEveryGradient) {
  test::expect_golden_loss_and_gradients(golden_.parameters, golden_.json, ops(), golden_.loss());
}

TEST_P(DigitParity, LossInEvaluationHasNoDropout) {
  test::expect_golden_evaluation(golden_.json, ops(), golden_.loss());
}

TEST_P(DigitParity, TenLossesOfTraining) {
  test::expect_golden_training(golden_.parameters, golden_.json, ops(), golden_.loss());
}

TEST(DigitParity, CoversEveryNormSiteOfBothArchitectures) {
  const std::vector<std::string> names = test::golden_names(kFolder);
  for (const std::string norm : {"layer_norm", "scale_norm", "ada_norm"}) {
    for (const char* suffix :
         {"_activations", "_activations_conv_conv_fc", "_linear", "_inputs", "_inputs_conv_conv_fc"}) {
      EXPECT_TRUE(std::binary_search(names.begin(), names.end(), norm + suffix)) << norm << suffix;
    }
  }
}

}  // namespace
}  // namespace tearless::engine::digit_parity_test
