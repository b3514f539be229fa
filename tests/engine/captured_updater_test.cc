// Captured updates: the same bits as the same padded batches operation by operation, in whatever order they are
// captured; padding changes nothing; an update that is not finite freezes the parameters. The kernels are CUDA's. Their
// bodies run on the CPU, where a captured update repeats the forward and backward pass with the host's batch of the
// capture: an operation that reads the host's batch instead of the device's then gives other bits. With a GPU the
// kernels and CUDA graphs themselves run.
#include "engine/train/captured_updater.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

#include "engine/task/digits.h"
#include "engine/task/language_model.h"
#include "engine/task/parse.h"
#include "engine/train/trainer.h"
#include "tests/engine/model/tiny_classifier.h"
#include "tests/engine/model/tiny_model.h"
#include "tests/engine/on_devices.h"
#include "tests/support/paths.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::captured_updater_test {
namespace {

constexpr int32_t kVocabSize = 23;
constexpr int64_t kUpdates = tearless::test::kSanitized ? 9 : 15;

std::vector<int32_t> sentence(std::mt19937& bits, size_t words) {
  std::vector<int32_t> tokens;
  for (size_t w = 0; w < words; ++w) tokens.push_back(4 + static_cast<int32_t>(bits() % (kVocabSize - 4)));
  return tokens;
}

/// The numbers of sentences in the batches. Pairs of similar size, so that different batches share a bucket.
constexpr std::array<size_t, 4> kBatchSizes = {2, 9, 2, 8};

/// A tiny model on some device, with batches of sentences of all lengths.
class Tiny : public Trainable {
 public:
  std::vector<std::string> loss_names() const override { return {"loss", "nll"}; }
  virtual int64_t batch_count() const { return kBatchSizes.size(); }
};

class TinyTranslation final : public Tiny {
 public:
  TinyTranslation(const ModelOptions& options, RowPrecision precision, at::Device device,
                  const LabelSmoothing& smoothing = 0.1, bool by_sentence = false)
      : model_(options, test::usual_output_vocabulary(kVocabSize), 1, 2, device, precision,
               smoothing.over_whole_vocabulary()),
        smoothing_(smoothing),
        by_sentence_(by_sentence) {
    std::mt19937 bits(7);
    int32_t next_id = 0;
    for (const size_t sentences : kBatchSizes) {
      test::Sentences sources, targets;
      std::vector<int32_t> sentence_ids;
      for (size_t s = 0; s < sentences; ++s) {
        sources.push_back(sentence(bits, 1 + bits() % 6));
        sources.back().push_back(kEos);
        targets.push_back(sentence(bits, bits() % 7));
        sentence_ids.push_back(next_id++);
      }
      batches_.push_back(test::batch_of(sources, targets, sentence_ids));
    }
  }

  Parameters& parameters() override { return model_.parameters; }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override {
    auto batch =
        std::make_unique<ReadyBatch>(model_.transformer.ready(batches_.at(static_cast<size_t>(index)), update));
    if (by_sentence_) batch->weigh_by_sentence();
    return batch;
  }
  LossSums loss(const ForwardContext& context, const Batch& batch) override {
    return loss_sums(model_.transformer.loss(context, static_cast<const ReadyBatch&>(batch), smoothing_));
  }

 private:
  test::TinyModel model_;
  LabelSmoothing smoothing_;
  bool by_sentence_;
  std::vector<PackedBatch> batches_;
};

class TinyClassification final : public Tiny {
 public:
  TinyClassification(const ClassifierOptions& options, RowPrecision precision, at::Device device)
      : model_(options, kVocabSize, kClasses, 1, 2, device, precision) {
    std::mt19937 bits(7);
    int32_t next_id = 0;
    for (const size_t sentences : kBatchSizes) {
      test::Sentences tokens;
      std::vector<int32_t> labels, sentence_ids;
      for (size_t s = 0; s < sentences; ++s) {
        tokens.push_back(sentence(bits, 1 + bits() % 7));
        labels.push_back(static_cast<int32_t>(bits() % kClasses));
        sentence_ids.push_back(next_id++);
      }
      batches_.push_back(test::labelled_batch_of(tokens, labels, sentence_ids));
    }
  }

  Parameters& parameters() override { return model_.parameters; }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override {
    const LabelledBatch& batch = batches_.at(static_cast<size_t>(index));
    return std::make_unique<ReadySentences>(model_.classifier.ready(batch.rows, batch.labels, update));
  }
  LossSums loss(const ForwardContext& context, const Batch& batch) override {
    return loss_sums(model_.classifier.loss(context, static_cast<const ReadySentences&>(batch), 0.1));
  }

 private:
  static constexpr int64_t kClasses = 3;
  test::TinyClassifier model_;
  std::vector<LabelledBatch> batches_;
};

/// A task in its first pass.
class FirstPass final : public Tiny {
 public:
  explicit FirstPass(std::unique_ptr<Task> task) : task_(std::move(task)), batches_(task_->start_pass(0)) {}

  int64_t batch_count() const override { return batches_; }
  Parameters& parameters() override { return task_->parameters(); }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override { return task_->ready(index, update); }
  LossSums loss(const ForwardContext& context, const Batch& batch) override { return task_->loss(context, batch); }
  std::vector<at::Tensor> carried() override { return task_->carried(); }

 private:
  std::unique_ptr<Task> task_;
  int64_t batches_;
};

/// 13 images of noise for each set.
Digits noise() {
  std::mt19937 bits(7);
  DigitSet set;
  for (int i = 0; i < 13; ++i) {
    for (int p = 0; p < 8 * 7; ++p) set.pixels.push_back(static_cast<uint8_t>(bits()));
    set.labels.push_back(static_cast<int32_t>(bits() % 10));
  }
  return {.height = 8, .width = 7, .train = set, .dev = set, .test = set};
}

/// 51 letters in two streams: four segments of six, and one of one.
std::shared_ptr<const CharacterText> letters() {
  CharacterText text;
  text.symbols = {"a", "b", "c"};
  for (int32_t i = 0; i < 52; ++i) text.train.push_back(i * i % 3);
  text.dev = text.test = text.train;
  return std::make_shared<CharacterText>(std::move(text));
}

/// Two sentences of three and of four words for each set: 14 examples.
std::shared_ptr<const Treebank> two_trees() {
  Treebank treebank;
  treebank.tokens.resize(17);
  treebank.no_word = 0, treebank.no_tag = 6, treebank.no_label = 12, treebank.first_label = 13;
  treebank.labels = {"root", "subject", "object"};
  treebank.train = {{.forms = {},
                     .words = {1, 3, 4, 5},
                     .tags = {7, 9, 10, 11},
                     .heads = {2, 0, 2},
                     .labels = {1, 0, 2},
                     .is_word = {1, 1, 1}},
                    {.forms = {},
                     .words = {1, 5, 3, 3, 4},
                     .tags = {7, 9, 10, 11, 9},
                     .heads = {2, 3, 0, 3},
                     .labels = {2, 1, 0, 2},
                     .is_word = {1, 1, 1, 1}}};
  treebank.dev = treebank.test = treebank.train;
  return std::make_shared<Treebank>(std::move(treebank));
}

/// A translation with a memory: a number that every update halves and adds to, and reports as a third sum.
class TinyWithMemory final : public Tiny {
 public:
  TinyWithMemory(const ModelOptions& options, RowPrecision precision, at::Device device)
      : tiny_(options, precision, device),
        memory_(at::zeros({1}, tiny_.parameters().values().options().dtype(at::kDouble))) {}

  Parameters& parameters() override { return tiny_.parameters(); }
  std::vector<std::string> loss_names() const override { return {"loss", "nll", "memory"}; }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override { return tiny_.ready(index, update); }
  std::vector<at::Tensor> carried() override { return {memory_}; }
  LossSums loss(const ForwardContext& context, const Batch& batch) override {
    memory_.mul_(0.5).add_(parameters().values().abs().sum());
    LossSums sums = tiny_.loss(context, batch);
    if (context.on_device) {
      context.on_device->loss.sums.slice(0, 2, 3).add_(memory_);
    } else {
      sums.values.push_back(memory_.item<double>());
    }
    return sums;
  }

 private:
  TinyTranslation tiny_;
  at::Tensor memory_;
};

/// What updates leave, so that captured ones can be compared with those that ran operation by operation.
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

class CapturedUpdates : public test::OnDevices {
 protected:
  CapturedUpdates() {
    train_.adam.beta2 = 0.98;
    train_.clip_norm = 0.7;
    options_ = test::tiny_options();
    options_.encoder_layers = options_.decoder_layers = 1;
    options_.d_model = 16;  // rows of 16 bytes in bf16 too
    options_.d_ff = 24;
    options_.heads = 2;
  }

  virtual std::unique_ptr<Tiny> tiny() const {
    return std::make_unique<TinyTranslation>(options_, GetParam().precision, GetParam().device);
  }

  std::unique_ptr<CapturedUpdater> updater(Tiny& trained, OptimiserState& moments, int64_t most_captured) const {
    return std::make_unique<CapturedUpdater>(trained, train_, moments, capture_for(trained.parameters().values()),
                                             most_captured);
  }

  /// Passes over the batches, `together` updates in flight at once.
  Trained train(int64_t most_captured, int64_t together, int64_t updates = kUpdates) const {
    const std::unique_ptr<Tiny> trained = tiny();
    OptimiserState moments(train_.optimiser.chosen(), trained->parameters().values());
    const auto updates_of = updater(*trained, moments, most_captured);
    Trained out;
    for (int64_t n = 1; n <= updates; ++n) {
      updates_of->start(n, (n - 1) % trained->batch_count(), 0.02);
      if (n % together != 0 && n != updates) continue;
      for (const UpdateResult& result : updates_of->collect()) out.results.push_back(result);
    }
    out.parameters = trained->parameters().values();
    out.first = moments.buffers[0];
    out.second = moments.buffers[1];
    out.captured = updates_of->captured();
    return out;
  }

  void expect_the_bits_of_eager_updates() const {
    const Trained captured = train(/*most_captured=*/512, /*together=*/4);
    EXPECT_GT(captured.captured, 1) << "nothing was captured: the comparison shows nothing";
    const Trained eager = train(/*most_captured=*/0, /*together=*/4);
    EXPECT_EQ(eager.captured, 0);
    captured.expect_same_bits(eager);
    EXPECT_LT(captured.results.back().sums.mean(), 0.97 * captured.results.front().sums.mean()) << "nothing was learnt";
  }
  void expect_the_updates_without_padding(int64_t updates = 10) const {
    const std::unique_ptr<Tiny> padded = tiny(), plain = tiny();
    OptimiserState padded_moments(train_.optimiser.chosen(), padded->parameters().values());
    OptimiserState plain_moments(train_.optimiser.chosen(), plain->parameters().values());
    const auto captured = updater(*padded, padded_moments, 512);
    ExecutionOptions execution;
    TapeProfile profile;  // asks for operations one by one
    const auto eager = make_updater(*plain, train_, execution, plain_moments, &profile);
    // Sums of other lengths are taken in another order; in bf16 a rounding that falls the other way is 2⁻⁸ of a number.
    const double tolerance = GetParam().precision == RowPrecision::kFp32 ? 1e-5 : 1e-2;
    for (int64_t n = 1; n <= updates; ++n) {
      captured->start(n, (n - 1) % padded->batch_count(), 0.003);
      eager->start(n, (n - 1) % padded->batch_count(), 0.003);
      const UpdateResult a = captured->collect().at(0), b = eager->collect().at(0);
      EXPECT_EQ(a.sums.predictions, b.sums.predictions);
      EXPECT_EQ(a.rows, b.rows);
      EXPECT_NEAR(a.sums.values.at(0), b.sums.values.at(0), tolerance * b.sums.values[0]) << "update " << n;
      EXPECT_NEAR(a.sums.values.at(1), b.sums.values.at(1), tolerance * b.sums.values[1]) << "update " << n;
      EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 3 * tolerance * b.gradient_norm) << "update " << n;
    }
  }

  TrainOptions train_;
  ModelOptions options_;
};

/// The same of a loss over the whole vocabulary, with a token without mass, and of the mean over sentences.
class CapturedUpdatesBySentence : public CapturedUpdates {
 protected:
  CapturedUpdatesBySentence() { options_.mask_target_vocabulary = false; }
  std::unique_ptr<Tiny> tiny() const override {
    return std::make_unique<TinyTranslation>(options_, GetParam().precision, GetParam().device,
                                             LabelSmoothing(0.2, SmoothingForm::kJoey), /*by_sentence=*/true);
  }
};

/// The same of a classifier.
class CapturedUpdatesOfAClassifier : public CapturedUpdates {
 protected:
  CapturedUpdatesOfAClassifier() {
    static_cast<LayerOptions&>(classifier_) = options_;
    classifier_.layers = 1;
  }
  std::unique_ptr<Tiny> tiny() const override {
    return std::make_unique<TinyClassification>(classifier_, GetParam().precision, GetParam().device);
  }

  ClassifierOptions classifier_;
};

/// Tasks whose batches have equal sizes but for the last of a pass.
class CapturedUpdatesOfATask : public CapturedUpdates {
 protected:
  CapturedUpdatesOfATask() {
    execution_.device = on_processor() ? ExecutionOptions::Device::kCpu : ExecutionOptions::Device::kCuda;
    execution_.precision = GetParam().precision == RowPrecision::kBf16 ? ExecutionOptions::Precision::kBf16
                                                                       : ExecutionOptions::Precision::kFp32;
  }

  /// With three batches in a pass.
  void expect_the_bits_of_padded_batches(int64_t predictions_of_the_last) const {
    const Trained captured = train(/*most_captured=*/512, /*together=*/4, /*updates=*/9);
    EXPECT_EQ(captured.captured, 1) << "the smaller last batch of a pass is padded to the others' size";
    captured.expect_same_bits(train(/*most_captured=*/0, /*together=*/1, /*updates=*/9));
    for (const UpdateResult& result : captured.results) EXPECT_EQ(result.fallback_ops, 0);
    EXPECT_EQ(captured.results[2].sums.predictions, predictions_of_the_last);
    EXPECT_TRUE(at::isfinite(captured.parameters).all().item<bool>());
  }

  ExecutionOptions execution_;
};

class CapturedUpdatesOfDigits : public CapturedUpdatesOfATask {
 protected:
  CapturedUpdatesOfDigits() {
    digits_.model.conv1_channels = 3;
    digits_.model.conv2_channels = 4;
    digits_.model.kernel = 2;
    digits_.model.hidden = 5;
    digits_.model.conv_dropout = digits_.model.hidden_dropout = 0.2;
    digits_.batch.images = 5;
  }
  std::unique_ptr<Tiny> tiny() const override {
    return std::make_unique<FirstPass>(std::make_unique<DigitsTask>(digits_, train_, execution_, noise()));
  }
  void expect_the_bits_of_padded_batches() const { CapturedUpdatesOfATask::expect_the_bits_of_padded_batches(3); }

  DigitsTaskOptions digits_;
};

class CapturedUpdatesOfAParser : public CapturedUpdatesOfATask {
 protected:
  CapturedUpdatesOfAParser() {
    parse_.model.embedding = 8;
    parse_.model.hidden = 16;
    parse_.batch_examples = 6;
  }
  std::unique_ptr<Tiny> tiny() const override {
    return std::make_unique<FirstPass>(std::make_unique<Parse>(parse_, train_, execution_, two_trees()));
  }

  ParseOptions parse_;
};

class CapturedUpdatesOfALanguageModel : public CapturedUpdatesOfATask {
 protected:
  CapturedUpdatesOfALanguageModel() {
    language_.model.layers = 2;
    language_.model.d_model = 16;
    language_.model.d_ff = 24;
    language_.model.heads = 2;
    language_.model.memory = 15;
    language_.model.dropout.attention = 0.2;
    language_.streams = 2;
    language_.segment = 6;
  }
  std::unique_ptr<Tiny> tiny() const override {
    return std::make_unique<FirstPass>(std::make_unique<LanguageModel>(language_, train_, execution_, letters()));
  }

  LanguageModelOptions language_;
};

class CapturedUpdatesWithMemory : public CapturedUpdates {
 protected:
  std::unique_ptr<Tiny> tiny() const override {
    return std::make_unique<TinyWithMemory>(options_, GetParam().precision, GetParam().device);
  }
};

TEST(Device, RefusesAGpuThatNoKernelIsCompiledFor) {
  EXPECT_EQ(why_not_usable("NVIDIA H200", 9, 0), "");
  EXPECT_EQ(why_not_usable("NVIDIA A100", 8, 0), "");
  EXPECT_EQ(why_not_usable("Tesla T4", 7, 5),
            "run.device = \"cuda\", but Tesla T4 has compute capability 7.5; 8.0 or later is needed (A100, RTX 30): "
            "leave it out of CUDA_VISIBLE_DEVICES");
}

// The words of CUDA 13's cudaGetErrorString().
TEST(Device, AdvisesOnWhatMpsAndComputeModesDo) {
  EXPECT_EQ(advice_on("the model has no layers"), "");
  EXPECT_THAT(advice_on("CUDA error: unspecified launch failure"), testing::HasSubstr("dmesg"));
  EXPECT_THAT(advice_on("CUDA error: CUDA-capable device(s) is/are busy or unavailable"),
              testing::HasSubstr("`nvidia-smi -c 0`"));
  for (const char* error : {"MPS client failed to connect to the MPS control daemon or the MPS server",
                            "the remote procedural call between the MPS server and the MPS client failed",
                            "MPS server is not ready to accept new MPS client requests",
                            "the MPS client has been terminated by the server"}) {
    EXPECT_THAT(advice_on(error), testing::HasSubstr("nvidia-cuda-mps-control -d")) << error;
  }
}

TEST_P(CapturedUpdates, HaveTheBitsOfTheSamePaddedBatchesOperationByOperation) { expect_the_bits_of_eager_updates(); }
TEST_P(CapturedUpdatesOfAClassifier, HaveTheBitsOfTheSamePaddedBatchesOperationByOperation) {
  expect_the_bits_of_eager_updates();
}

TEST_P(CapturedUpdatesBySentence, HaveTheBitsOfTheSamePaddedBatchesOperationByOperation) {
  expect_the_bits_of_eager_updates();
}

TEST_P(CapturedUpdates, DoNotDependOnHowManyAreInFlightNorOnEarlierCaptures) {
  train(512, 1).expect_same_bits(train(512, 16));
  train(1, 3).expect_same_bits(train(512, 5));
}

TEST_P(CapturedUpdates, EqualTheUpdatesOfTheBatchWithoutPadding) { expect_the_updates_without_padding(); }
TEST_P(CapturedUpdatesOfAClassifier, EqualTheUpdatesOfTheBatchWithoutPadding) { expect_the_updates_without_padding(); }
TEST_P(CapturedUpdatesBySentence, EqualTheUpdatesOfTheBatchWithoutPadding) { expect_the_updates_without_padding(); }

TEST_P(CapturedUpdatesOfDigits, OfEveryArchitectureAndNormSiteHaveTheBitsOfTheSamePaddedBatches) {
  using Sites = DigitNetworkOptions::NormSites;
  expect_the_bits_of_padded_batches();
  for (const Sites sites : {Sites::kLinear, Sites::kInputs}) {
    digits_.model.norm_sites = sites;
    digits_.model.norm.kind = sites == Sites::kLinear ? "scale_norm" : "rms_norm";
    expect_the_bits_of_padded_batches();
  }
  digits_.model.arch = DigitNetworkOptions::Arch::kConvConvFc;
  digits_.model.hidden_dropout = 0;
  expect_the_bits_of_padded_batches();
}

TEST_P(CapturedUpdatesOfDigits, EqualTheUpdatesOfTheBatchWithoutPadding) {
  digits_.model.conv2_channels = 12;  // so many that dropout and ReLU leave no row of zeros, whose norm is NaN
  digits_.model.hidden = 16;
  digits_.model.norm.eps = 0;  // a norm of padding is finite all the same
  digits_.model.norm_sites = DigitNetworkOptions::NormSites::kInputs;
  for (const char* kind : {"layer_norm", "scale_norm", "ada_norm"}) {
    SCOPED_TRACE(kind);
    digits_.model.norm.kind = kind;
    expect_the_updates_without_padding(/*updates=*/3);
  }
}

TEST_P(CapturedUpdatesOfAParser, OfEveryActivationHaveTheBitsOfTheSamePaddedBatches) {
  expect_the_bits_of_padded_batches(2);
  parse_.model.activation = ParserNetworkOptions::Activation::kCube;
  parse_.model.softmax = ParserNetworkOptions::Softmax::kAll;
  parse_.model.rescaled_dropout = false;
  expect_the_bits_of_padded_batches(2);
}

TEST_P(CapturedUpdatesOfAParser, EqualTheUpdatesOfTheBatchWithoutPadding) {
  for (const char* kind : {"layer_norm", "none"}) {
    parse_.model.norm.kind = kind;
    expect_the_updates_without_padding(/*updates=*/3);
  }
}

// The memory fills in the first three updates, and is shifted by each. Nothing is padded: the shorter last segment of a
// pass is captured by itself. The pass is not begun again, so its memory stays for the next.
TEST_P(CapturedUpdatesOfALanguageModel, CarryTheMemoryOfTheSameUpdatesOperationByOperation) {
  const Trained captured = train(/*most_captured=*/512, /*together=*/4, /*updates=*/15);
  EXPECT_EQ(captured.captured, 2);
  captured.expect_same_bits(train(/*most_captured=*/0, /*together=*/1, /*updates=*/15));
  for (const UpdateResult& result : captured.results) EXPECT_EQ(result.fallback_ops, 0);
  EXPECT_EQ(captured.results[4].sums.predictions, 2);
  EXPECT_TRUE(at::isfinite(captured.parameters).all().item<bool>());
}

TEST_P(CapturedUpdatesWithMemory, PassItFromUpdateToUpdateAndReportEverySum) {
  expect_the_bits_of_eager_updates();
  const Trained captured = train(/*most_captured=*/512, /*together=*/5);
  double previous = 0;
  for (const UpdateResult& result : captured.results) {
    ASSERT_EQ(result.sums.values.size(), 3u);
    EXPECT_GT(result.sums.values[2], 0.5 * previous) << "half of the memory of the update before, and more";
    EXPECT_NE(result.sums.values[2], previous);
    previous = result.sums.values[2];
  }
  EXPECT_GT(previous, 1.5 * captured.parameters.abs().sum().item<double>()) << "it remembers more than one update";
}

TEST_P(CapturedUpdates, OfEveryPlacementAndWithFixNormAndPartOfTheVocabularyAreTheSame) {
  for (const Placement placement : test::placements()) {
    options_.placement = placement;
    options_.fix_norm = placement != Placement::kPre && placement != Placement::kJoeyPre;
    options_.norm.kind = placement == Placement::kPost ? "scale_norm" : "layer_norm";
    options_.tied_embeddings = placement == Placement::kPreNoFinal ? Tying::kNone : Tying::kAll;
    options_.language_embedding = placement == Placement::kPost;
    options_.decoder_start = placement == Placement::kPost ? DecoderStart::kZero : DecoderStart::kBos;
    train(512, 3).expect_same_bits(train(0, 1));
  }
}

TEST_P(CapturedUpdates, OfEveryKindOfDecoderAttentionAreTheSame) {
  for (const std::string& sublayers : test::attending_sublayers()) {
    SCOPED_TRACE(sublayers);
    options_.decoder_sublayers = sublayers;
    train(512, 3).expect_same_bits(train(0, 1));
    expect_the_updates_without_padding(/*updates=*/2);
  }
}

TEST_P(CapturedUpdates, OfAModelWhoseTargetsStartWithoutATokenAreTheSame) {
  options_.decoder_start = DecoderStart::kZero;
  options_.mask_target_vocabulary = false;
  options_.special_outputs = true;
  const Trained captured = train(512, 3);
  captured.expect_same_bits(train(0, 1));
  options_.special_outputs = false;
  EXPECT_FALSE(at::equal(train(512, 3).parameters, captured.parameters));
  options_.input_vector = true;  // which the start is without
  train(512, 3).expect_same_bits(train(0, 1));
  expect_the_updates_without_padding(/*updates=*/2);
}

TEST_P(CapturedUpdates, OfFairseqsAdamWithWeightDecayAreTheSame) {
  train_.optimiser.kind = "fairseq_adam";
  train_.optimiser.weight_decay = 0.5;
  train_.adam.eps = 1e-3;
  const Trained captured = train(/*most_captured=*/512, /*together=*/4);
  captured.expect_same_bits(train(/*most_captured=*/0, /*together=*/4));
  expect_the_updates_without_padding(/*updates=*/3);
  train_.optimiser = {};
  EXPECT_FALSE(at::equal(train(512, 4).parameters, captured.parameters));
}

TEST_P(CapturedUpdates, ANumberThatIsNotFiniteFreezesTheParameters) {
  const std::unique_ptr<Tiny> tiny_model = tiny();
  Tiny& trained = *tiny_model;
  OptimiserState moments(train_.optimiser.chosen(), trained.parameters().values());
  const auto updates = updater(trained, moments, 512);
  for (int64_t n = 1; n <= 13; ++n) {
    updates->start(n, (n - 1) % trained.batch_count(), 0.01);
    ASSERT_EQ(updates->collect().size(), 1u);
  }
  trained.parameters().values()[3] = std::numeric_limits<float>::infinity();
  trained.parameters().update_bf16_copy();
  const at::Tensor before = trained.parameters().values().clone(), moment = moments.buffers[0].clone();
  for (int64_t n = 14; n <= 18; ++n) updates->start(n, (n - 1) % trained.batch_count(), 0.01);
  const std::vector<UpdateResult> results = updates->collect();
  ASSERT_EQ(results.size(), 1u) << "what comes behind the first number that is not finite is no result";
  EXPECT_FALSE(results[0].finite());
  EXPECT_TRUE(at::equal(trained.parameters().values(), before));
  EXPECT_TRUE(at::equal(moments.buffers[0], moment));
}

TEST_P(CapturedUpdates, KeepTheBf16CopyEqualToTheRoundedFp32Weights) {
  if (GetParam().precision != RowPrecision::kBf16) GTEST_SKIP() << "for bf16";
  const std::unique_ptr<Tiny> tiny_model = tiny();
  Tiny& trained = *tiny_model;
  OptimiserState moments(train_.optimiser.chosen(), trained.parameters().values());
  const auto updates = updater(trained, moments, 512);
  for (int64_t n = 1; n <= 8; ++n) updates->start(n, (n - 1) % trained.batch_count(), 0.01);
  ASSERT_EQ(updates->collect().size(), 8u);
  const at::Tensor low = trained.parameters().bf16_copy().clone();
  trained.parameters().update_bf16_copy();
  EXPECT_TRUE(at::equal(low, trained.parameters().bf16_copy()));
}

/// Tiny with one operation more, which has no kernel.
class WithFormula final : public Trainable {
 public:
  explicit WithFormula(std::unique_ptr<Tiny> tiny) : tiny_(std::move(tiny)) {}
  Parameters& parameters() override { return tiny_->parameters(); }
  std::vector<std::string> loss_names() const override { return tiny_->loss_names(); }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override { return tiny_->ready(index, update); }
  LossSums loss(const ForwardContext& context, const Batch& batch) override {
    const Value one(at::ones({1}, parameters().values().options()));
    context.tape.by_formula({one}, [](const std::vector<at::Tensor>& in) { return in[0].mul(2); });
    return tiny_->loss(context, batch);
  }
  int64_t batch_count() const { return tiny_->batch_count(); }

 private:
  std::unique_ptr<Tiny> tiny_;
};

TEST_P(CapturedUpdates, AreNotMadeOfOperationsThatRunByFormula) {
  WithFormula trained(tiny());
  OptimiserState moments(train_.optimiser.chosen(), trained.parameters().values());
  CapturedUpdater updater(trained, train_, moments, capture_for(trained.parameters().values()), 512);
  for (int64_t n = 1; n <= kUpdates; ++n) {
    updater.start(n, (n - 1) % trained.batch_count(), 0.02);
    for (const UpdateResult& result : updater.collect()) EXPECT_EQ(result.fallback_ops, 1);
  }
  EXPECT_EQ(updater.captured(), 0) << "a formula may copy from the host or wait for the device";
}

TEST_P(CapturedUpdates, OfADeviceThatLacksAKernelRunByItsFormulaUncaptured) {
  const Trained whole = train(/*most_captured=*/0, /*together=*/1);
  Backend less = on_processor() ? cpu_backend() : cuda_backend();
  Kernels<float> float_kernels = *less.float_kernels;
  Kernels<bf16> bf16_kernels = *less.bf16_kernels;
  float_kernels.attention_backward = nullptr;
  bf16_kernels.attention_backward = nullptr;
  less.float_kernels = &float_kernels;
  less.bf16_kernels = &bf16_kernels;
  const auto use = [this](const Backend& backend) {
    on_processor() ? use_cpu_backend(backend) : use_cuda_backend(backend);
  };
  const Backend& before = on_processor() ? cpu_backend() : cuda_backend();
  use(less);
  const Trained formula = train(/*most_captured=*/512, /*together=*/1);
  use(before);
  EXPECT_EQ(formula.captured, 0);
  const double tolerance = GetParam().precision == RowPrecision::kFp32 ? 1e-3 : 0.05;
  for (size_t i = 0; i < whole.results.size(); ++i) {
    EXPECT_EQ(formula.results[i].fallback_ops, 3) << "self-attention of encoder and decoder, cross-attention";
    EXPECT_NEAR(formula.results[i].sums.mean(), whole.results[i].sums.mean(), tolerance * whole.results[i].sums.mean());
  }
}

TEST_P(CapturedUpdates, AreNotAskedOfADeviceWithoutTheirOptimiser) {
  const std::unique_ptr<Tiny> trained = tiny();
  OptimiserState moments(train_.optimiser.chosen(), trained->parameters().values());
  ExecutionOptions execution;
  execution.device = ExecutionOptions::Device::kCuda;
  const auto captured = [&] {
    const auto updater = make_updater(*trained, train_, execution, moments);
    return dynamic_cast<const CapturedUpdater*>(updater.get()) != nullptr;
  };
  EXPECT_TRUE(captured());
  train_.accumulate = 2;
  EXPECT_FALSE(captured()) << "a captured update has one batch";
  train_.accumulate = 1;
  train_.optimiser.kind = "sgd";
  EXPECT_FALSE(captured()) << "it has no kernel";
  train_.optimiser.kind = "fairseq_adam";
  EXPECT_TRUE(captured());
  train_.optimiser.l2 = 0.1;
  EXPECT_FALSE(captured()) << "a captured update lacks the gradient of L2";
  train_.optimiser.l2 = 0;
  if (!on_processor()) return;
  const Backend& before = cpu_backend();
  Backend less = before;
  OptimiserKernels optimiser = *less.optimiser;
  optimiser.adam_on_device = nullptr;
  less.optimiser = &optimiser;
  use_cpu_backend(less);
  EXPECT_FALSE(captured());
  use_cpu_backend(before);
}

/// A whole task around Tiny, which may crash.
class TinyTask final : public Task {
 public:
  explicit TinyTask(std::unique_ptr<Tiny> tiny) : tiny_(std::move(tiny)) {}
  Parameters& parameters() override { return tiny_->parameters(); }
  int64_t start_pass(int64_t) override { return tiny_->batch_count(); }
  std::vector<std::string> loss_names() const override { return tiny_->loss_names(); }
  int64_t schedule_width() const override { return 16; }
  Selection selection() const override { return {.score = "dev.bleu"}; }
  std::string dev_loss() const override { return "dev.ppl"; }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override {
    if (update == crash_at) throw std::runtime_error("crash");
    return tiny_->ready(index, update);
  }
  LossSums loss(const ForwardContext& context, const Batch& batch) override { return tiny_->loss(context, batch); }
  NamedNumbers evaluate() override {
    return {{"dev.bleu", static_cast<double>(parameters().values().abs().sum().item<float>())}};
  }
  FinalScores final_scores() override { return {.numbers = {{"test.size", evaluate().at("dev.bleu")}}, .files = {}}; }

  uint32_t crash_at = 0;

 private:
  std::unique_ptr<Tiny> tiny_;
};

TEST_P(CapturedUpdates, OfARunThatCrashedAndResumedLeaveTheSameBytes) {
  train_.epoch_updates = 5;
  train_.max_epochs = 3;
  train_.early_stop = 0;
  train_.schedule.kind = "nowarmup";
  train_.schedule.lr = 0.02;
  ExecutionOptions execution;
  execution.log_updates = 2;
  execution.device = on_processor() ? ExecutionOptions::Device::kCpu : ExecutionOptions::Device::kCuda;
  spdlog::set_level(spdlog::level::err);
  tearless::test::TempFolder folder;
  const auto attempt = [&](const std::string& name, uint32_t crash_at) {
    const RunDirectory run(folder / name);
    std::filesystem::create_directories(run.root());
    TinyTask task(tiny());
    task.crash_at = crash_at;
    return Trainer(task, train_, execution, run, run.make_attempt()).run();
  };
  EXPECT_EQ(attempt("whole", 0), kExitDone);
  EXPECT_THROW(attempt("broken", 8), std::runtime_error);   // updates 6 and 7 are in flight
  EXPECT_THROW(attempt("broken", 13), std::runtime_error);  // and resumes from the checkpoint of update 5
  EXPECT_EQ(attempt("broken", 0), kExitDone);
  for (const char* file : {"metrics.jsonl", "gradient_norms.f32", "scores.json"}) {
    EXPECT_EQ(tearless::test::read_text(folder / "whole" / file), tearless::test::read_text(folder / "broken" / file));
  }
}

// Sixteen updates could be in flight, but a pass has four.
TEST_P(CapturedUpdates, StopAtTheEndOfAPassThatIsAnEpoch) {
  train_.epoch_updates = std::nullopt;
  train_.max_epochs = 2;
  train_.early_stop = 0;
  train_.schedule.kind = "nowarmup";
  ExecutionOptions execution;
  execution.device = on_processor() ? ExecutionOptions::Device::kCpu : ExecutionOptions::Device::kCuda;
  spdlog::set_level(spdlog::level::err);
  tearless::test::TempFolder folder;
  const RunDirectory run(folder / "run");
  std::filesystem::create_directories(run.root());
  TinyTask task(tiny());
  EXPECT_EQ(Trainer(task, train_, execution, run, run.make_attempt()).run(), kExitDone);
  const std::string metrics = tearless::test::read_text(run.metrics());
  for (const char* written :
       {R"({"step": 4, "name": "dev.bleu")", R"({"step": 8, "name": "dev.bleu")",
        R"({"step": 4, "name": "epoch", "value": 1.0})", R"({"step": 8, "name": "epoch", "value": 2.0})"}) {
    EXPECT_NE(metrics.find(written), std::string::npos) << metrics;
  }
  EXPECT_EQ(read_done(run).value().step, 8);
}

INSTANTIATE_TEST_SUITE_P(All, CapturedUpdatesBySentence, test::device_settings(), test::device_setting_name);
INSTANTIATE_TEST_SUITE_P(All, CapturedUpdatesOfDigits, test::device_settings(), test::device_setting_name);
INSTANTIATE_TEST_SUITE_P(All, CapturedUpdatesOfAParser, test::device_settings(), test::device_setting_name);
INSTANTIATE_TEST_SUITE_P(All, CapturedUpdatesOfALanguageModel, test::device_settings(), test::device_setting_name);
INSTANTIATE_TEST_SUITE_P(All, CapturedUpdatesWithMemory, test::device_settings(), test::device_setting_name);
INSTANTIATE_TEST_SUITE_P(All, CapturedUpdates, test::device_settings(), test::device_setting_name);
INSTANTIATE_TEST_SUITE_P(All, CapturedUpdatesOfAClassifier, test::device_settings(), test::device_setting_name);

}  // namespace
}  // namespace tearless::engine::captured_updater_test
