// Properties of the whole model: its parameter count, what a position may attend to, and that a sentence's loss does
// not depend on its batch.
#include "engine/model/transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <stdexcept>

#include "engine/model/classifier.h"
#include "engine/model/digit_network.h"
#include "tests/engine/model/tiny_model.h"

namespace tearless::engine::transformer_test {
namespace {

using test::batch_of;
using test::Sentences;
using test::tiny_options;
using test::TinyModel;
using test::usual_output_vocabulary;

const Sentences kSources = {{4, 5, 6, 7, kEos}, {8, kEos}, {9, 4, 9, 10, 11, 5, kEos}};
const Sentences kTargets = {{7, 8, 9}, {4, 5, 6, 10, 11, 4}, {5}};
const std::vector<int32_t> kLines = {12, 70'000, 3};

// docs/spec/knobs.md §13.
TEST(ParameterCount, AgreesWithThePublishedCounts) {
  constexpr int64_t kVocabulary = 1000;
  const auto count = [](const char* norm, Placement placement) {
    ModelOptions options;  // 6 + 6 layers, 512, 2048: the papers' base model
    options.norm.kind = norm;
    options.placement = placement;
    return parameter_count(options, kVocabulary) - kVocabulary * 512 - kVocabulary;  // less embedding and output bias
  };
  constexpr int64_t kBody = 44'107'776;
  EXPECT_EQ(count("none", Placement::kPre), kBody);
  EXPECT_EQ(count("layer_norm", Placement::kPre), kBody + 32'768);
  EXPECT_EQ(count("layer_norm", Placement::kPost), kBody + 30'720);
  EXPECT_EQ(count("layer_norm", Placement::kPreNoFinal), kBody + 30'720);
  EXPECT_EQ(count("layer_norm", Placement::kPost), 44'138'496);  // the body of the depth-scaled-init paper
  EXPECT_EQ(count("rms_norm", Placement::kPre), kBody + 32 * 512);
  EXPECT_EQ(count("scale_norm", Placement::kPre), kBody + 32);
  EXPECT_EQ(count("scale_norm", Placement::kPost), kBody + 30);
}

// DS Table 3 (docs/spec/knobs.md §11.3, §13): what a decoder layer gains or loses against self-attention and
// cross-attention, of the base model.
TEST(ParameterCount, OfEachKindOfDecoderAttentionAgreesWithThePublishedCounts) {
  const auto count = [](const char* sublayers, int64_t layers) {
    ModelOptions options;
    options.placement = Placement::kPost;
    options.norm.kind = "layer_norm";
    options.encoder_layers = options.decoder_layers = layers;
    options.decoder_sublayers = sublayers;
    return parameter_count(options, 4);
  };
  constexpr int64_t kD = 512, kNorm = 2 * kD, kAttention = 4 * kD * kD + 4 * kD, kGate = 4 * kD * kD + 2 * kD,
                    kFfn = 2 * kD * 2048 + 2048 + kD;
  for (const int64_t layers : {6, 12, 20}) {
    const auto more = [&](const char* sublayers) {
      return (count(sublayers, layers) - count("self_attention, cross_attention, ffn", layers)) / layers;
    };
    EXPECT_EQ(more("matt, ffn"), -1'051'648);
    EXPECT_EQ(more("matt, ffn"), -kAttention - kNorm);
    EXPECT_EQ(more("matt_self, ffn"), -kNorm);
    EXPECT_EQ(more("matt_aan, ffn"), kGate - kAttention - kNorm);
    EXPECT_EQ(more("aan, cross_attention, ffn"), kGate - kAttention);
    EXPECT_EQ(more("aan_ffn, cross_attention, ffn"), kGate + kFfn - kAttention);
  }
  // In millions, with the 28.1M of embeddings that the paper's 72.3M leave.
  const auto millions = [&](const char* sublayers, int64_t layers) {
    const double embeddings = 72.3e6 - 44'138'496;
    const int64_t own = count(sublayers, layers) - 4 * kD - 4;
    return std::round((static_cast<double>(own) + embeddings) / 1e5) / 10;
  };
  EXPECT_EQ(millions("matt, ffn", 6), 66.0);
  EXPECT_EQ(millions("matt, ffn", 12), 103.8);
  EXPECT_EQ(millions("matt, ffn", 20), 154.3);
  EXPECT_EQ(millions("matt_self, ffn", 6), 72.3);
  EXPECT_EQ(millions("self_attention, cross_attention, ffn", 12), 116.4);
  EXPECT_EQ(millions("self_attention, cross_attention, ffn", 20), 175.3);
}

// docs/spec/knobs.md §4.4: the three models of the exercise, with a vocabulary of 2,915.
TEST(ParameterCount, OfThePlacementsOfJoeyIsThatOfPreNorm) {
  for (const Placement placement : {Placement::kPre, Placement::kJoeyPre, Placement::kJoeyPost}) {
    ModelOptions options;
    options.encoder_layers = 4;
    options.decoder_layers = 1;
    options.d_model = 256;
    options.d_ff = 512;
    options.heads = 2;
    options.placement = placement;
    options.output_bias = false;
    EXPECT_EQ(parameter_count(options, 2915), 3'646'464);
  }
}

TEST(ParameterCount, FollowsTyingAndOutputBias) {
  ModelOptions options = tiny_options();
  const auto count = [&] { return parameter_count(options, 20); };
  const int64_t tied = count();
  options.tied_embeddings = Tying::kTarget;
  EXPECT_EQ(count(), tied + 20 * 12);
  options.tied_embeddings = Tying::kNone;
  EXPECT_EQ(count(), tied + 2 * 20 * 12);
  options.output_bias = false;
  EXPECT_EQ(count(), tied + 2 * 20 * 12 - 20);
  options.language_embedding = true;
  EXPECT_EQ(count(), tied + 2 * 20 * 12 - 20 + 2 * 12);
}

TEST(ParameterCount, FollowsTheVocabularyOfTheSource) {
  ModelOptions options = tiny_options();
  for (const Tying tying : {Tying::kTarget, Tying::kNone}) {
    options.tied_embeddings = tying;
    EXPECT_EQ(parameter_count(options, 20, 20), parameter_count(options, 20));
    EXPECT_EQ(parameter_count(options, 20, 31) - parameter_count(options, 20), 11 * 12) << "one matrix is longer";
  }
}

// Counts are remembered: each number that the data give must count.
TEST(ParameterCount, FollowsTheSizesOfTheData) {
  const ModelOptions options = tiny_options();
  EXPECT_EQ(parameter_count(options, 21) - parameter_count(options, 20), 12 + 1);  // embedding and output bias
  const ClassifierOptions classifier;
  EXPECT_EQ(parameter_count(classifier, 21, 3) - parameter_count(classifier, 20, 3), classifier.d_model);
  EXPECT_EQ(parameter_count(classifier, 21, 4) - parameter_count(classifier, 21, 3), classifier.d_model + 1);
  const DigitNetworkOptions digits;
  EXPECT_GT(parameter_count(digits, 32, 28), parameter_count(digits, 28, 28));
  EXPECT_GT(parameter_count(digits, 28, 32), parameter_count(digits, 28, 28));
}

at::Tensor logits_of(const TinyModel& model, const PackedBatch& batch, Tape::Ops ops = Tape::Ops::kFast) {
  Tape tape(Tape::Kind::kForward, ops);
  const ForwardContext context{tape};
  const Embeddings::Tables tables = model.transformer.prepare(context);
  return model.transformer
      .logits(context, tables, batch.target, model.transformer.encode(context, tables, batch.source), batch.source)
      .data();
}

TEST(Transformer, AFutureTargetTokenChangesNoEarlierOutput) {
  std::vector<ModelOptions> all;
  for (const Placement placement : test::placements()) {
    all.push_back(tiny_options());
    all.back().placement = placement;
  }
  for (const std::string& sublayers : test::attending_sublayers()) {
    all.push_back(tiny_options());
    all.back().decoder_sublayers = sublayers;
  }
  for (const ModelOptions& options : all) {
    SCOPED_TRACE(options.decoder_sublayers);
    const TinyModel model(options, usual_output_vocabulary(12));
    PackedBatch batch = batch_of(kSources, kTargets, kLines);
    const at::Tensor before = logits_of(model, batch);
    constexpr int64_t kChanged = 4 + 3;  // position 3 of the second sentence
    batch.target.tokens[kChanged] = 9;
    const at::Tensor after = logits_of(model, batch);
    EXPECT_TRUE(at::equal(before.slice(0, 0, kChanged), after.slice(0, 0, kChanged)));
    EXPECT_TRUE(at::equal(before.slice(0, 11), after.slice(0, 11))) << "another sentence changed";
    for (int64_t t = kChanged; t < 11; ++t)
      EXPECT_FALSE(at::equal(before[t], after[t])) << "row " << t << " must see the change";
  }
}

TEST(Transformer, EverySourceTokenReachesEveryOutputOfItsSentenceOnly) {
  const TinyModel model(tiny_options(), usual_output_vocabulary(12));
  PackedBatch batch = batch_of(kSources, kTargets, kLines);
  const at::Tensor before = logits_of(model, batch);
  batch.source.tokens[2] = 11;
  const at::Tensor after = logits_of(model, batch);
  for (int64_t t = 0; t < 4; ++t) EXPECT_FALSE(at::equal(before[t], after[t]));
  EXPECT_TRUE(at::equal(before.slice(0, 4), after.slice(0, 4)));
}

TEST(Transformer, TheLossOfASentenceDoesNotDependOnItsBatchWithDropoutOn) {
  const TinyModel model(tiny_options(), usual_output_vocabulary(12));
  const auto loss = [&](const std::vector<size_t>& chosen) {
    Sentences sources, targets;
    std::vector<int32_t> sentence_ids;
    for (const size_t i : chosen) {
      sources.push_back(kSources[i]);
      targets.push_back(kTargets[i]);
      sentence_ids.push_back(kLines[i]);
    }
    Tape tape(Tape::Kind::kRecording);
    const PackedBatch batch = batch_of(sources, targets, sentence_ids);
    const CrossEntropySums sums = model.transformer.loss({tape, 7}, batch, 0.1);
    tape.backward();
    return sums;
  };
  const CrossEntropySums together = loss({0, 1, 2});
  CrossEntropySums apart;
  for (const size_t i : {2, 0, 1}) apart += loss({i});
  EXPECT_EQ(apart.tokens, together.tokens);
  EXPECT_NEAR(apart.loss, together.loss, 1e-5 * together.loss);
  EXPECT_NEAR(apart.nll, together.nll, 1e-5 * together.nll);
}

TEST(Transformer, DropoutChangesWithTheUpdateAndWithTheSeedAndRepeats) {
  const PackedBatch batch = batch_of(kSources, kTargets, kLines);
  const auto loss = [&](uint32_t dropout_seed, uint32_t update) {
    const TinyModel model(tiny_options(), usual_output_vocabulary(12), 1, dropout_seed);
    Tape tape(Tape::Kind::kRecording);
    const double sum = model.transformer.loss({tape, update}, batch, 0.1).loss;
    tape.backward();
    return sum;
  };
  EXPECT_EQ(loss(2, 1), loss(2, 1));
  EXPECT_NE(loss(2, 1), loss(2, 2));
  EXPECT_NE(loss(2, 1), loss(3, 1));
}

TEST(Transformer, ALabelOutsideTheOutputVocabularyCountsAsUnknown) {
  std::vector<uint8_t> in_output_vocabulary = usual_output_vocabulary(12);
  in_output_vocabulary[7] = 0;
  const TinyModel model(tiny_options(), in_output_vocabulary);
  const auto loss = [&](int32_t label) {
    PackedBatch batch = batch_of(kSources, kTargets, kLines);
    batch.labels[0] = label;
    Tape tape(Tape::Kind::kForward);
    return model.transformer.loss({tape}, batch, 0.1).loss;
  };
  EXPECT_EQ(loss(7), loss(kUnk));
  EXPECT_NE(loss(8), loss(kUnk));
}

// The two sides' vectors are apart: a model without them is one whose vectors are 0.
TEST(Transformer, AddsTheVectorOfItsLanguageToEachSide) {
  const PackedBatch batch = batch_of(kSources, kTargets, kLines);
  ModelOptions options = tiny_options();
  const at::Tensor without = logits_of(TinyModel(options, usual_output_vocabulary(12)), batch);
  options.language_embedding = true;
  TinyModel model(options, usual_output_vocabulary(12));
  const at::Tensor source = model.parameters.get("embedding.source.language").data();
  const at::Tensor target = model.parameters.get("embedding.target.language").data();
  ASSERT_EQ(source.sizes(), at::IntArrayRef({12}));
  EXPECT_FALSE(at::equal(source, target));
  const at::Tensor both = logits_of(model, batch);
  for (const Tape::Ops ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    EXPECT_LT((logits_of(model, batch, ops) - both).abs().max().item<double>(), 1e-5);
  }
  source.zero_();
  const at::Tensor of_target = logits_of(model, batch);
  target.zero_();
  const at::Tensor none = logits_of(model, batch);
  EXPECT_LT((none - without).abs().max().item<double>(), 1e-6);
  EXPECT_GT((both - of_target).abs().max().item<double>(), 1e-3);
  EXPECT_GT((of_target - none).abs().max().item<double>(), 1e-3);
}

TEST(DecoderStart, IsTheFirstInputOfEveryTargetInTrainingAndEvaluation) {
  const PackedBatch batch = batch_of(kSources, kTargets, kLines);
  std::vector<double> losses;
  for (const auto& [start, token] :
       {std::pair{DecoderStart::kBos, kBos}, {DecoderStart::kEos, kEos}, {DecoderStart::kZero, kPad}}) {
    ModelOptions options = tiny_options();
    options.dropout.word = 0;
    options.decoder_start = start;
    const TinyModel model(options, usual_output_vocabulary(12));
    for (const std::optional<uint32_t> update : {std::optional<uint32_t>(), std::optional<uint32_t>(3)}) {
      const ReadyBatch ready = model.transformer.ready(batch, update);
      EXPECT_EQ(ready.target.tokens, (std::vector<int32_t>{token, 7, 8, 9, token, 4, 5, 6, 10, 11, 4, token, 5}));
      EXPECT_EQ(ready.source.tokens, batch.source.tokens);
      EXPECT_EQ(model.transformer.ready(batch, std::nullopt).labels, ready.labels);
    }
    Tape tape(Tape::Kind::kForward);
    losses.push_back(model.transformer.loss({tape}, batch, 0.1).loss);
  }
  EXPECT_NE(losses[0], losses[1]);
  EXPECT_NE(losses[0], losses[2]);
}

TEST(DecoderStart, MayBeDroppedAsAWordUnlessItIsAZeroVector) {
  const PackedBatch batch = batch_of(kSources, kTargets, kLines);
  for (const auto& [start, token] : {std::pair{DecoderStart::kBos, kBos}, {DecoderStart::kZero, kPad}}) {
    ModelOptions options = tiny_options();
    options.dropout.word = 0.9;
    options.decoder_start = start;
    const TinyModel model(options, usual_output_vocabulary(12));
    int dropped = 0;
    for (uint32_t update = 1; update <= 10; ++update) {
      for (const int32_t first : {0, 4, 11}) {
        dropped += model.transformer.ready(batch, update).target.tokens[static_cast<size_t>(first)] == kUnk;
      }
    }
    EXPECT_EQ(dropped > 15, start == DecoderStart::kBos) << token << ": " << dropped << " of 30";
    EXPECT_EQ(dropped == 0, start == DecoderStart::kZero);
  }
}

// The zero vector is the embedding of PAD, which no label is; as an input it gets no gradient.
TEST(DecoderStart, OfZeroStaysZeroUnderEveryTying) {
  const PackedBatch batch = batch_of(kSources, kTargets, kLines);
  for (const Tying tying : {Tying::kAll, Tying::kTarget, Tying::kNone}) {
    for (const bool fix_norm : {false, true}) {
      for (const Tape::Ops ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
        ModelOptions options = tiny_options();
        options.decoder_start = DecoderStart::kZero;
        options.tied_embeddings = tying;
        options.fix_norm = fix_norm;
        options.mask_target_vocabulary = fix_norm;
        options.dropout.word = 0;
        const TinyModel model(options, usual_output_vocabulary(12));
        Tape tape(Tape::Kind::kRecording, ops);
        model.transformer.loss({tape, 1}, batch, 0.1);
        tape.backward();
        const Value table = model.parameters.get(tying == Tying::kAll ? "embedding.shared" : "embedding.target");
        EXPECT_TRUE(table.data()[kPad].eq(0).all().item<bool>());
        EXPECT_TRUE(table.grad()[kPad].eq(0).all().item<bool>());
        EXPECT_FALSE(table.data()[7].eq(0).any().item<bool>());
        EXPECT_FALSE(table.grad()[7].eq(0).all().item<bool>());
      }
    }
  }
}

// PAD has then a row as every other token, in every matrix, which the zero vector has nothing to do with.
TEST(SpecialOutputs, LeaveTheZeroVectorNoTokenAndTrainTheRowOfPadAsAllOthers) {
  const PackedBatch batch = batch_of(kSources, kTargets, kLines);
  for (const Tying tying : {Tying::kAll, Tying::kTarget, Tying::kNone}) {
    for (const bool fix_norm : {false, true}) {
      for (const Tape::Ops ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
        ModelOptions options = tiny_options();
        options.decoder_start = DecoderStart::kZero;
        options.tied_embeddings = tying;
        options.fix_norm = fix_norm;
        options.mask_target_vocabulary = false;
        options.special_outputs = true;
        options.dropout.word = 0.9;
        const TinyModel model(options, usual_output_vocabulary(12));
        EXPECT_EQ(model.transformer.decoder_start(), kNoToken);
        const ReadyBatch ready = model.transformer.ready(batch, 3);
        for (const size_t first : {0u, 4u, 11u}) EXPECT_EQ(ready.target.tokens[first], kNoToken);
        Tape tape(Tape::Kind::kRecording, ops);
        model.transformer.loss({tape, 1}, batch, 0.1);
        tape.backward();
        const Value output = model.parameters.get(tying == Tying::kAll      ? "embedding.shared"
                                                  : tying == Tying::kTarget ? "embedding.target"
                                                                            : "output.weight");
        for (const int64_t token : {kPad, kBos, 7}) {
          EXPECT_FALSE(output.data()[token].eq(0).any().item<bool>());
          EXPECT_FALSE(output.grad()[token].eq(0).any().item<bool>());
        }
        if (tying != Tying::kNone) continue;
        const Value input = model.parameters.get("embedding.target");
        EXPECT_FALSE(input.data()[kPad].eq(0).any().item<bool>());
        EXPECT_TRUE(input.grad()[kPad].eq(0).all().item<bool>()) << "it is not the decoder's first input";
      }
    }
  }
}

// Without them the zero vector is the embedding of PAD. Where PAD is no output either, the two models are one.
TEST(SpecialOutputs, MoveNothingButTheSoftmaxOfAModelThatStartsWithAZeroVector) {
  ModelOptions options = tiny_options();
  options.decoder_start = DecoderStart::kZero;
  options.mask_target_vocabulary = false;
  options.dropout.word = 0;
  const PackedBatch batch = batch_of(kSources, kTargets, kLines);
  const TinyModel without(options, usual_output_vocabulary(12));
  options.special_outputs = true;
  const TinyModel with(options, usual_output_vocabulary(12));
  const at::Tensor few = logits_of(without, batch), all = logits_of(with, batch);
  EXPECT_EQ(few.size(1), 10);
  EXPECT_EQ(all.size(1), 12);
  EXPECT_LT((all.slice(1, 2) - few).abs().max().item<double>(), 1e-6);
  const auto sums_of = [&](const TinyModel& model, double smoothing) {
    Tape tape(Tape::Kind::kForward);
    return model.transformer.loss({tape}, batch, smoothing);
  };
  EXPECT_GT(sums_of(with, 0).nll, sums_of(without, 0).nll) << "PAD and BOS have a part of the softmax";
}

TEST(OutputVocabulary, CountsTheLabelsOutsideIt) {
  std::vector<uint8_t> in_target = usual_output_vocabulary(12);
  in_target[7] = in_target[9] = 0;
  const std::vector<int32_t> labels = {7, 8, 7, kUnk, 9, kEos};
  EXPECT_EQ(OutputVocabulary::from(in_target, true).outside(labels), 3) << "UNK itself is inside";
  EXPECT_EQ(OutputVocabulary::from(in_target, false).outside(labels), 0);
  EXPECT_EQ(OutputVocabulary::from(in_target, false, /*loss_over_all=*/true).outside(labels), 0);
}

TEST(Transformer, HasALossOverTheWholeVocabularyButASearchWithoutPadAndBos) {
  ModelOptions options = tiny_options();
  options.mask_target_vocabulary = false;
  options.tied_embeddings = Tying::kNone;
  const auto vocabulary = usual_output_vocabulary(12);
  TinyModel all(options, vocabulary, 1, 2, at::kCPU, RowPrecision::kFp32, /*loss_over_all=*/true);
  TinyModel without(options, vocabulary);
  const PackedBatch batch = batch_of(kSources, kTargets, kLines);
  EXPECT_EQ(logits_of(all, batch).size(1), 10);
  EXPECT_TRUE(at::equal(logits_of(all, batch), logits_of(without, batch)));
  const auto nll = [&](TinyModel& model, const PackedBatch& of) {
    Tape tape(Tape::Kind::kForward);
    return model.transformer.loss({tape}, of, 0.0).nll;
  };
  // Each p is smaller by the mass that PAD and BOS have, the same in all rows of one label: a label that is PAD shows.
  EXPECT_GT(nll(all, batch), nll(without, batch));
  PackedBatch padded = batch;
  padded.labels[0] = kPad;
  EXPECT_NE(nll(all, padded), nll(all, batch)) << "PAD has a column of its own";
  EXPECT_LT(nll(all, padded), 1e3);

  const auto pad_and_bos = [&](TinyModel& model) {
    Tape tape(Tape::Kind::kRecording);
    model.transformer.loss({tape, 1}, batch, 0.1);
    tape.backward();
    return model.parameters.get("output.weight").grad().slice(0, 0, 2).abs().sum().item<double>();
  };
  EXPECT_GT(pad_and_bos(all), 0);
  EXPECT_EQ(pad_and_bos(without), 0);
}

// The shared matrix is then an input of the embedding and the weight of the output layer, without a slice between.
TEST(Transformer, HasTheGradientOfALossOverTheWholeVocabulary) {
  for (const bool fix_norm : {false, true}) {
    ModelOptions options = tiny_options();
    options.mask_target_vocabulary = false;
    options.fix_norm = fix_norm;
    TinyModel model(options, usual_output_vocabulary(12), 1, 2, at::kCPU, RowPrecision::kFp32, /*loss_over_all=*/true);
    const PackedBatch batch = batch_of(kSources, kTargets, kLines);
    const LabelSmoothing smoothing(0.3, SmoothingForm::kJoey);
    const auto gradient = [&](Tape::Ops ops) {
      model.parameters.gradients().zero_();
      Tape tape(Tape::Kind::kRecording, ops);
      model.transformer.loss({tape, 1}, batch, smoothing);
      tape.backward();
      return model.parameters.gradients().clone();
    };
    const at::Tensor reference = gradient(Tape::Ops::kReference);
    EXPECT_LT((gradient(Tape::Ops::kFast) - reference).abs().max().item<double>(), 1e-5);

    const at::Tensor matrix = model.parameters.get("embedding.shared").data();
    const at::Tensor of_matrix = model.parameters.get("embedding.shared").grad().clone();
    for (const int64_t token : {int64_t{kPad}, int64_t{kEos}, int64_t{7}}) {
      const auto mean_at = [&](float offset) {
        at::Tensor element = matrix[token][3];
        const float before = element.item<float>();
        element.fill_(before + offset);
        Tape tape(Tape::Kind::kRecording);
        const CrossEntropySums sums = model.transformer.loss({tape, 1}, batch, smoothing);
        element.fill_(before);
        return sums.loss / static_cast<double>(sums.tokens);
      };
      const float step = fix_norm ? 4e-4f : 1e-2f;  // with FixNorm the rows are short: U(±0.01)
      const double difference = (mean_at(step) - mean_at(-step)) / (2 * static_cast<double>(step));
      EXPECT_NEAR(of_matrix[token][3].item<double>(), difference, fix_norm ? 0.02 : 2e-3)
          << token << " fix_norm " << fix_norm;
    }
  }
}

TEST(Transformer, WeighedBySentenceHasTheMeanOfTheGradientsOfItsSentences) {
  ModelOptions options = tiny_options();
  options.dropout = {.residual = 0, .attention = 0, .relu = 0, .word = 0};
  TinyModel model(options, usual_output_vocabulary(12));
  const auto gradient = [&](const std::vector<size_t>& chosen, bool by_sentence) {
    Sentences sources, targets;
    std::vector<int32_t> sentence_ids;
    for (const size_t i : chosen) {
      sources.push_back(kSources[i]);
      targets.push_back(kTargets[i]);
      sentence_ids.push_back(kLines[i]);
    }
    ReadyBatch ready = model.transformer.ready(batch_of(sources, targets, sentence_ids), 1);
    if (by_sentence) {
      ready.weigh_by_sentence();
      EXPECT_EQ(ready.loss_divisor(), static_cast<int64_t>(chosen.size()));
      if (chosen.size() > 1) ready.pad();  // as on a device: padding rows weigh nothing
    }
    model.parameters.gradients().zero_();
    Tape tape(Tape::Kind::kRecording);
    model.transformer.loss({tape, 1}, ready, {0.3, SmoothingForm::kTwt});
    tape.backward();
    return model.parameters.gradients().clone();
  };
  const at::Tensor mean = (gradient({0}, false) + gradient({1}, false) + gradient({2}, false)) / 3;
  EXPECT_LT((gradient({0, 1, 2}, true) - mean).abs().max().item<double>(), 1e-6);
  EXPECT_GT((gradient({0, 1, 2}, false) - mean).abs().max().item<double>(), 1e-3) << "the sentences differ in length";
}

/// The variances of what a pass shows to one that sees no gradients.
struct Sums final : StreamObserver {
  bool sees_gradients() const override { return false; }
  void see(Tape&, const std::string& sublayer, StreamPoint point, const Value& rows) override {
    EXPECT_EQ(point, StreamPoint::kSum);
    ElementVariance variance;
    variance.add(rows.data());
    EXPECT_TRUE(variances.emplace(sublayer, variance.value()).second) << sublayer << " twice";
  }
  std::map<std::string, double> variances;
};

// Without norms every placement is x + F(x).
TEST(Transformer, ShowsTheResidualSumOfTheResidualSumOfEverySublayer) {
  const PackedBatch batch = batch_of(kSources, kTargets, kLines);
  for (const Placement placement : test::placements()) {
    ModelOptions options = tiny_options();
    options.placement = placement;
    options.norm.kind = "none";
    options.encoder_sublayers = "ffn";
    options.dropout = {.residual = 0, .attention = 0, .relu = 0, .word = 0};
    TinyModel model(options, usual_output_vocabulary(12));
    Tape tape(Tape::Kind::kRecording);
    Sums sums;
    model.transformer.loss({.tape = tape, .update = 1, .observer = &sums}, batch, 0.1);
    const std::map<std::string, double>& variances = sums.variances;
    EXPECT_EQ(variances.size(), 2u + 2 * 3) << "two layers of one sublayer, two of three";

    Tape aside(Tape::Kind::kForward);
    const ForwardContext context{aside};
    const TokenEmbedding inputs(LayerScope(model.parameters, options, 1), "embedding.source", Stack::kEncoder);
    at::Tensor x = inputs.forward(context, model.transformer.prepare(context).source, batch.source).data();
    for (const std::string layer : {"encoder.1.ffn", "encoder.2.ffn"}) {
      const auto parameter = [&](const char* part) { return model.parameters.get(layer + part).data(); };
      const at::Tensor inner = (x.matmul(parameter(".w1.weight").t()) + parameter(".w1.bias")).clamp_min(0);
      x = x + inner.matmul(parameter(".w2.weight").t()) + parameter(".w2.bias");
      const at::Tensor centred = (x - x.mean()).to(at::kDouble);
      EXPECT_NEAR(variances.at(layer), (centred * centred).mean().item<double>(), 1e-5) << layer;
    }
    EXPECT_GT(variances.at("decoder.2.cross_attention"), 0);
  }
}

TEST(Transformer, NamesTheGainsOfAllScaleNorms) {
  ModelOptions options = tiny_options();
  options.encoder_layers = options.decoder_layers = 1;
  options.norm.kind = "scale_norm";
  const TinyModel model(options, usual_output_vocabulary(12));
  std::vector<std::string> names;
  for (const auto& [name, g] : learned_lengths(model.parameters)) {
    names.push_back(name);
    EXPECT_FLOAT_EQ(static_cast<float>(g), std::sqrt(12.0f));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"g.encoder.1.self_attention", "g.encoder.1.ffn", "g.encoder.final",
                                             "g.decoder.1.self_attention", "g.decoder.1.cross_attention",
                                             "g.decoder.1.ffn", "g.decoder.final"}));
  const TinyModel layer_norm(tiny_options(), usual_output_vocabulary(12));
  EXPECT_TRUE(learned_lengths(layer_norm.parameters).empty());
}

TEST(Transformer, WithOneMatrixForTwoVocabulariesOfDifferentSizesIsRefused) {
  ModelOptions options = tiny_options();
  options.tied_embeddings = Tying::kAll;
  Parameters parameters(/*seed=*/1, at::kCPU);
  EXPECT_THROW(
      Transformer(parameters, options, OutputVocabulary::from(usual_output_vocabulary(12), false), /*dropout_seed=*/2,
                  /*source_vocab_size=*/40),
      std::logic_error);
}

TEST(Transformer, TakesSourceTokensThatTheTargetHasNot) {
  ModelOptions options = tiny_options();
  options.tied_embeddings = Tying::kTarget;
  Parameters parameters(/*seed=*/1, at::kCPU);
  const Transformer model(parameters, options,
                          OutputVocabulary::from(usual_output_vocabulary(12), options.mask_target_vocabulary),
                          /*dropout_seed=*/2, /*source_vocab_size=*/40);
  parameters.allocate();
  EXPECT_EQ(parameters.get("embedding.source").data().size(0), 40);
  EXPECT_EQ(parameters.get("embedding.target").data().size(0), 12);
  PackedBatch batch = batch_of(kSources, kTargets, kLines);
  batch.source.tokens[0] = 39;
  Tape tape(Tape::Kind::kRecording);
  EXPECT_TRUE(std::isfinite(model.loss({tape, 1}, batch, 0.1).loss));
  tape.backward();
  // With this update's word dropout, or without it, one of the two rows moves.
  const at::Tensor gradient = parameters.get("embedding.source").grad();
  EXPECT_FALSE(gradient[39].eq(0).all().item<bool>() && gradient[kUnk].eq(0).all().item<bool>());
}

TEST(Transformer, WithFixNormTheLossDoesNotDependOnTheLengthOfAnEmbedding) {
  ModelOptions options = tiny_options();
  options.fix_norm = true;
  TinyModel model(options, usual_output_vocabulary(12));
  const PackedBatch batch = batch_of(kSources, kTargets, kLines);
  const at::Tensor before = logits_of(model, batch);
  model.parameters.get("embedding.shared").data()[5].mul_(16);
  EXPECT_LT((logits_of(model, batch) - before).abs().max().item<double>(), 1e-5);
}

}  // namespace
}  // namespace tearless::engine::transformer_test
