// The models against PyTorch: logits, loss, every gradient and ten losses of training, dropout on, by the kernels and
// by the formulas: the encoder-decoder and the classifier for every norm and placement, the network for digits for both
// architectures and every site of norms, the parser's network for both activations. The expected numbers are from
// tools/make_golden.py, tools/make_golden_digits.py (which has channels first, convolutions, and ReLU before pooling)
// tools/make_golden_parser.py (which embeds every token, and has a softmax over legal transitions alone) and
// tools/make_golden_language_model.py (which looks up a vector for each pair of rows, and appends to its memory). These
// programs share no code with the engine and compute in double; what is allowed here is the rounding of float.
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/settings.h"
#include "engine/model/digit_network.h"
#include "engine/model/parser_network.h"
#include "engine/model/transformer_xl.h"
#include "engine/ops/adam.h"
#include "engine/ops/embedding.h"
#include "tests/engine/model/tiny_classifier.h"
#include "tests/engine/model/tiny_model.h"
#include "tests/support/paths.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::parity_test {
namespace {

using nlohmann::json;

constexpr double kLabelSmoothing = 0.1;
// Some thousand float operations deep, and six digits in the files.
constexpr double kTolerance = 2e-5;
// Ten updates of Adam, whose first steps divide small gradients by themselves.
constexpr double kTrainingTolerance = 2e-4;

std::filesystem::path golden_folder(const std::string& folder) {
  return tearless::test::source_root() / "tests" / "golden" / folder;
}

/// The cases in tests/golden/`folder`, sorted.
std::vector<std::string> golden_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder(folder))) {
    names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// [model] of a case with these settings.
template <class Options>
Options options_of(const json& settings) {
  WrittenSettings written;
  written.name = "golden file";
  for (const auto& [key, value] : settings.items()) written.values[key] = value;
  Options options;
  read_settings(written, [&](SettingsVisitor& v) { v.table("model", options); });
  return options;
}

at::Tensor numbers(const json& list) { return at::tensor(list.get<std::vector<double>>(), at::kDouble); }

/// One case: the settings, the batch and what must come out.
class Golden {
 public:
  Golden(const std::string& folder, const std::string& name)
      : json_(json::parse(std::ifstream(golden_folder(folder) / (name + ".json")))) {}
  virtual ~Golden() = default;

  const json& at(const char* key) const { return json_.at(key); }
  virtual Parameters& parameters() = 0;
  /// Of the case's batch in that update; on a tape that does not record as in an evaluation.
  virtual CrossEntropySums loss(Tape& tape, uint32_t update) = 0;
  virtual at::Tensor logits(Tape& tape, uint32_t update) = 0;

 private:
  json json_;
};

class GoldenTransformer final : public Golden {
 public:
  static constexpr const char* kFolder = "parity";
  explicit GoldenTransformer(const std::string& name) : Golden(kFolder, name) {}

  Parameters& parameters() override { return model_.parameters; }
  CrossEntropySums loss(Tape& tape, uint32_t update) override {
    return model_.transformer.loss({tape, update}, batch_, kLabelSmoothing);
  }
  at::Tensor logits(Tape& tape, uint32_t update) override {
    const Transformer& model = model_.transformer;
    const ReadyBatch& ready = tape.save(model.ready(batch_, update));
    const ForwardContext context{tape, update};
    const Embeddings::Tables tables = model.prepare(context);
    EXPECT_EQ(model.output_vocabulary().tokens, at("kept").get<std::vector<int32_t>>());
    return model.logits(context, tables, ready.target, model.encode(context, tables, ready.source), ready.source)
        .data();
  }

 private:
  std::vector<uint8_t> kept_types() const {
    std::vector<uint8_t> in_output(at("vocabulary").get<size_t>(), 0);
    for (const int32_t token : at("kept")) in_output[static_cast<size_t>(token)] = 1;
    return in_output;
  }

  PackedBatch batch_ = test::batch_of(at("sources"), at("targets"), at("lines"));
  test::TinyModel model_{options_of<ModelOptions>(at("settings")), kept_types(), at("init_seed"), at("dropout_seed")};
};

class GoldenClassifier final : public Golden {
 public:
  static constexpr const char* kFolder = "classifier_parity";
  explicit GoldenClassifier(const std::string& name) : Golden(kFolder, name) {}

  Parameters& parameters() override { return model_.parameters; }
  CrossEntropySums loss(Tape& tape, uint32_t update) override {
    return model_.classifier.loss({tape, update}, ready(tape, update), kLabelSmoothing);
  }
  at::Tensor logits(Tape& tape, uint32_t update) override {
    return model_.classifier.logits({tape, update}, ready(tape, update)).data();
  }

 private:
  const ReadySentences& ready(Tape& tape, uint32_t update) const {
    const auto drops_words = tape.recording() ? std::optional(update) : std::nullopt;
    return tape.save(model_.classifier.ready(batch_.rows, batch_.labels, drops_words));
  }

  LabelledBatch batch_ = test::labelled_batch_of(at("sentences"), at("labels"), at("lines"));
  test::TinyClassifier model_{options_of<ClassifierOptions>(at("settings")), at("vocabulary"), at("classes"),
                              at("init_seed"), at("dropout_seed")};
};

class GoldenDigits final : public Golden {
 public:
  static constexpr const char* kFolder = "digits_parity";
  explicit GoldenDigits(const std::string& name) : Golden(kFolder, name) {
    parameters_.allocate();
    at::set_num_threads(1);  // for so little work one thread is faster
    std::vector<float> pixels;
    for (const double byte : at("pixels")) {
      pixels.push_back(static_cast<float>((byte / 255 - at("mean").get<double>()) / at("deviation").get<double>()));
    }
    batch_ = model_.ready(pixels, at("labels"), at("numbers").get<std::vector<int32_t>>());
  }

  Parameters& parameters() override { return parameters_; }
  CrossEntropySums loss(Tape& tape, uint32_t update) override {
    return model_.loss({tape, update}, batch_, kLabelSmoothing);
  }
  at::Tensor logits(Tape& tape, uint32_t update) override { return model_.logits({tape, update}, batch_).data(); }

 private:
  DigitNetworkOptions options_ = options_of<DigitNetworkOptions>(at("settings"));
  Parameters parameters_{at("init_seed"), at::kCPU};
  DigitNetwork model_{parameters_, options_, at("height"), at("width"), at("dropout_seed")};
  ReadyImages batch_;
};

class GoldenParser final : public Golden {
 public:
  static constexpr const char* kFolder = "parser_parity";
  explicit GoldenParser(const std::string& name) : Golden(kFolder, name) {
    parameters_.allocate();
    at::set_num_threads(1);
    const std::vector<int32_t> numbers = at("numbers");
    batch_ = model_.ready(at("tokens"), at("legal"), at("labels"), numbers);
  }

  Parameters& parameters() override { return parameters_; }
  CrossEntropySums loss(Tape& tape, uint32_t update) override {
    return model_.loss({tape, update}, batch_, at("label_smoothing").get<double>());
  }
  at::Tensor logits(Tape& tape, uint32_t update) override { return model_.logits({tape, update}, batch_).data(); }

 private:
  std::vector<std::vector<bool>> is_legal() const {
    std::vector<std::vector<bool>> rows;
    for (const auto& row : at("is_legal").get<std::vector<std::vector<int>>>())
      rows.emplace_back(row.begin(), row.end());
    return rows;
  }

  ParserNetworkOptions options_ = options_of<ParserNetworkOptions>(at("settings"));
  Parameters parameters_{at("init_seed"), at::kCPU};
  ParserNetwork model_{parameters_,
                       options_,
                       {.types = at("types"), .features = at("features"), .transitions = at("transitions")},
                       is_legal(),
                       at("dropout_seed")};
  ReadyConfigurations batch_;
};

/// Update n reads segment n, with a memory of those before: segment 0 has been read by then, without dropout.
class GoldenLanguageModel final : public Golden {
 public:
  static constexpr const char* kFolder = "language_model_parity";
  explicit GoldenLanguageModel(const std::string& name) : Golden(kFolder, name) {
    parameters_.allocate();
    at::set_num_threads(1);
    Tape tape(Tape::Kind::kForward);
    model_.logits({tape}, segment(tape, 0), memory_);
  }

  Parameters& parameters() override { return parameters_; }
  CrossEntropySums loss(Tape& tape, uint32_t update) override {
    return model_.loss({tape, update}, segment(tape, update), memory_, kLabelSmoothing);
  }
  at::Tensor logits(Tape& tape, uint32_t update) override {
    return model_.logits({tape, update}, segment(tape, update), memory_).data();
  }

  /// Of four segments in evaluation, from an empty memory.
  std::vector<double> losses_in_evaluation(MemoryOf what) {
    SegmentMemory memory = model_.make_memory(sizes_, what);
    std::vector<double> losses;
    for (int64_t number = 0; number < 4; ++number) {
      Tape tape(Tape::Kind::kForward);
      losses.push_back(model_.loss({tape}, segment(tape, number), memory, 0).nll);
    }
    return losses;
  }

 private:
  const ReadySegment& segment(Tape& tape, int64_t number) const {
    PackedRows rows;
    std::vector<int32_t> labels;
    rows.offsets = {0};
    const auto length = std::ssize(text_) / sizes_.streams;
    for (int64_t stream = 0; stream < sizes_.streams; ++stream) {
      for (int64_t row = 0; row < sizes_.segment; ++row) {
        const auto at = static_cast<size_t>(stream * length + number * sizes_.segment + row);
        rows.tokens.push_back(text_[at]);
        rows.positions.push_back(static_cast<int32_t>(row));
        rows.sentence_ids.push_back(static_cast<int32_t>(stream));
        labels.push_back(text_[at + 1]);
      }
      rows.offsets.push_back(static_cast<int32_t>(rows.tokens.size()));
    }
    return tape.save(model_.ready(std::move(rows), std::move(labels), number, sizes_));
  }

  TransformerXlOptions options_ = options_of<TransformerXlOptions>(at("settings"));
  SegmentSizes sizes_ = {.streams = at("streams"), .segment = at("segment"), .memory = options_.memory};
  std::vector<int32_t> text_ = at("text");
  Parameters parameters_{at("init_seed"), at::kCPU};
  TransformerXl model_{parameters_, options_, at("vocabulary"), at("dropout_seed")};
  SegmentMemory memory_ = model_.make_memory(sizes_);
};

/// A case, by kernels or by formulas.
struct ParityCase {
  std::string name;
  Tape::Ops ops;
  std::unique_ptr<Golden> (*make)(const std::string& name);
};

template <class OneGolden>
auto cases() {
  std::vector<ParityCase> all;
  const auto make = [](const std::string& name) -> std::unique_ptr<Golden> {
    return std::make_unique<OneGolden>(name);
  };
  for (const std::string& name : golden_names(OneGolden::kFolder)) {
    all.push_back({name, Tape::Ops::kFast, make});
    // LibTorch's code, which is not instrumented.
    if (!tearless::test::kSanitized) all.push_back({name, Tape::Ops::kReference, make});
  }
  return testing::ValuesIn(all);
}

class Parity : public testing::TestWithParam<ParityCase> {
 protected:
  const std::unique_ptr<Golden> golden_ = GetParam().make(GetParam().name);
};

std::string case_name(const testing::TestParamInfo<ParityCase>& info) {
  return info.param.name + (info.param.ops == Tape::Ops::kFast ? "_fast" : "_reference");
}
INSTANTIATE_TEST_SUITE_P(Translation, Parity, cases<GoldenTransformer>(), case_name);
INSTANTIATE_TEST_SUITE_P(Classifier, Parity, cases<GoldenClassifier>(), case_name);
INSTANTIATE_TEST_SUITE_P(Digits, Parity, cases<GoldenDigits>(), case_name);
INSTANTIATE_TEST_SUITE_P(Parser, Parity, cases<GoldenParser>(), case_name);
INSTANTIATE_TEST_SUITE_P(LanguageModel, Parity, cases<GoldenLanguageModel>(), case_name);

TEST_P(Parity, LogitsInTraining) {
  Tape tape(Tape::Kind::kRecording, GetParam().ops);
  const at::Tensor logits = golden_->logits(tape, 1);
  const at::Tensor expected = numbers(golden_->at("logits")).view_as(logits);
  EXPECT_LT((logits.to(at::kDouble) - expected).abs().max().item<double>(),
            kTolerance * expected.abs().max().item<double>());
}

TEST_P(Parity, LossAndEveryGradient) {
  Tape tape(Tape::Kind::kRecording, GetParam().ops);
  const CrossEntropySums sums = golden_->loss(tape, 1);
  tape.backward();
  if (GetParam().ops == Tape::Ops::kFast) {
    EXPECT_EQ(tape.fallback_ops(), 0) << "an operation has no hand-written backward";
  }
  const double loss = golden_->at("loss_sum"), nll = golden_->at("nll_sum");
  EXPECT_NEAR(sums.loss, loss, kTolerance * loss);
  EXPECT_NEAR(sums.nll, nll, kTolerance * nll);

  Parameters& parameters = golden_->parameters();
  const double norm = golden_->at("gradient_norms")[0];
  EXPECT_NEAR(global_norm(parameters.gradients()), norm, kTolerance * norm);
  ASSERT_EQ(parameters.specs().size(), golden_->at("gradients").size());
  for (const ParameterSpec& spec : parameters.specs()) {
    const at::Tensor gradient = parameters.get(spec.name).grad().to(at::kDouble);
    const at::Tensor expected = numbers(golden_->at("gradients").at(spec.name)).view_as(gradient);
    // Key biases have a gradient of exactly zero (a softmax does not see a shift): only rounding may remain there.
    const double allowed = kTolerance * std::max(expected.abs().max().item<double>(), 0.01 * norm);
    EXPECT_LT((gradient - expected).abs().max().item<double>(), allowed) << spec.name;
  }
}

TEST(LanguageModelMemory, OfKeysAndValuesGivesTheLossesOfOneOfInputs) {
  for (const std::string& name : golden_names(GoldenLanguageModel::kFolder)) {
    GoldenLanguageModel golden(name);
    const auto inputs = golden.losses_in_evaluation(MemoryOf::kInputs);
    const auto keys = golden.losses_in_evaluation(MemoryOf::kKeysAndValues);
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_NEAR(keys[i], inputs[i], kTolerance * inputs[i]) << name << ", segment " << i;
    }
  }
}

TEST_P(Parity, LossInEvaluationHasNoDropout) {
  Tape tape(Tape::Kind::kForward, GetParam().ops);
  const double nll = golden_->at("evaluation_nll");
  EXPECT_NEAR(golden_->loss(tape, 1).nll, nll, kTolerance * nll);
}

TEST_P(Parity, TenLossesOfTraining) {
  Parameters& parameters = golden_->parameters();
  at::Tensor first = at::zeros_like(parameters.values()), second = at::zeros_like(parameters.values());
  const std::vector<double> rates = golden_->at("rates"), losses = golden_->at("losses"),
                            norms = golden_->at("gradient_norms");
  ASSERT_EQ(losses.size(), 10u);
  for (size_t n = 1; n <= losses.size(); ++n) {
    parameters.gradients().zero_();
    Tape tape(Tape::Kind::kRecording, GetParam().ops);
    const CrossEntropySums sums = golden_->loss(tape, static_cast<uint32_t>(n));
    tape.backward();
    const double norm = global_norm(parameters.gradients());
    EXPECT_NEAR(sums.loss / static_cast<double>(sums.tokens), losses[n - 1], kTrainingTolerance * losses[n - 1])
        << "update " << n;
    EXPECT_NEAR(norm, norms[n - 1], 5 * kTrainingTolerance * norms[n - 1]) << "update " << n;
    adam_step({.learning_rate = rates[n - 1], .update = static_cast<int64_t>(n)}, norm, parameters.gradients(),
              parameters.values(), first, second);
  }
}

/// The words that the setting `key` of [model] can have.
template <class Options>
std::vector<std::string> choices_of(const std::string& key) {
  Options options;
  for (const DescribedField& f : list_settings([&](SettingsVisitor& v) { v.table("model", options); })) {
    if (f.key == key) return {f.field.choices.begin(), f.field.choices.end()};
  }
  ADD_FAILURE() << key << " is no setting";
  return {};
}

TEST(ParityCases, HaveEveryNormPlacementArchitectureAndNormSite) {
  const auto expect_each = [](const std::string& folder, const std::string& key, const std::string& program,
                              const std::vector<std::string>& choices) {
    std::set<std::string> met;
    for (const std::string& name : golden_names(folder)) {
      const json settings = json::parse(std::ifstream(golden_folder(folder) / (name + ".json"))).at("settings");
      if (settings.contains(key)) met.insert(settings.at(key).get<std::string>());
    }
    for (const std::string& choice : choices) {
      EXPECT_TRUE(met.contains(choice)) << "no case in tests/golden/" << folder << " has " << key << " = \"" << choice
                                        << "\": teach it to " << program
                                        << ", add a case to its cases(), run it, and keep the new file alone";
    }
  };
  const char *text = "tools/make_golden.py", *images = "tools/make_golden_digits.py",
             *parser = "tools/make_golden_parser.py";
  for (const char* key : {"model.norm.kind", "model.placement"}) {
    expect_each(GoldenTransformer::kFolder, key, text, choices_of<ModelOptions>(key));
  }
  for (const char* key : {"model.arch", "model.norm_sites"}) {
    expect_each(GoldenDigits::kFolder, key, images, choices_of<DigitNetworkOptions>(key));
  }
  for (const char* key : {"model.activation", "model.softmax", "model.init", "model.embedding_init"}) {
    expect_each(GoldenParser::kFolder, key, parser, choices_of<ParserNetworkOptions>(key));
  }
}

TEST(ParityCases, HaveEverySublayer) {
  std::string parameters;
  for (const std::string& name : golden_names(GoldenTransformer::kFolder)) {
    const json golden = json::parse(std::ifstream(golden_folder(GoldenTransformer::kFolder) / (name + ".json")));
    for (const auto& [parameter, gradient] : golden.at("gradients").items()) parameters += parameter + "\n";
  }
  for (const auto& kind : sublayer_kinds()) {
    EXPECT_NE(parameters.find(fmt::format(".{}.", kind->name)), std::string::npos)
        << "no case has " << kind->name
        << ": teach it to tools/make_golden.py, add a case to its cases(), run it, and keep the new file alone";
  }
}

TEST(ParityCases, CoverEveryPlacementAndNormSite) {
  const auto expect_each = [](const std::string& folder, const std::vector<std::string>& norms,
                              const std::vector<std::string>& sites) {
    const std::vector<std::string> names = golden_names(folder);
    for (const std::string& norm : norms) {
      for (const std::string& site : sites) {
        EXPECT_TRUE(std::binary_search(names.begin(), names.end(), norm + "_" + site))
            << folder << "/" << norm << "_" << site;
      }
    }
  };
  const std::vector<std::string> placements = choices_of<ModelOptions>("model.placement");
  expect_each(GoldenTransformer::kFolder, {"none", "layer_norm", "rms_norm", "scale_norm"}, placements);
  expect_each(GoldenClassifier::kFolder, {"none", "layer_norm", "scale_norm", "ada_norm"}, placements);
  expect_each(GoldenDigits::kFolder, {"layer_norm", "scale_norm", "ada_norm"},
              {"activations", "activations_conv_conv_fc", "linear", "inputs", "inputs_conv_conv_fc"});
}

TEST(ClassifierSize, IsThatOfTheModelThatIsMade) {
  for (const std::string& name : golden_names(GoldenClassifier::kFolder)) {
    GoldenClassifier golden(name);
    EXPECT_EQ(parameter_count(options_of<ClassifierOptions>(golden.at("settings")), golden.at("vocabulary"),
                              golden.at("classes")),
              golden.parameters().values().numel());
  }
}

}  // namespace
}  // namespace tearless::engine::parity_test
