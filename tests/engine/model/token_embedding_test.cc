// The rows that enter the first layer, against sums written out here, with a gradient of each part.
#include "engine/model/token_embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/model/tiny_model.h"

namespace tearless::engine::token_embedding_test {
namespace {

constexpr int64_t kVocabulary = 7, kWidth = 6;

ModelOptions narrow() {
  ModelOptions options;
  options.d_model = kWidth;
  options.heads = 1;
  options.dropout.residual = 0;
  return options;
}

/// The input side alone, of tokens 5, 3, 5 | 6.
class Inputs {
 public:
  explicit Inputs(const ModelOptions& options)
      : options_(options),
        table_(declare_embedding(scope_, "table", kVocabulary)),
        language_(options.language_embedding ? scope_.declare("language", {kWidth}, normal_embedding(kWidth))
                                             : Value()),
        embedding_(scope_, "table", Stack::kEncoder, language_) {
    parameters_.allocate();
    test::append_sentence(rows_, {5, 3, 5}, 8);
    test::append_sentence(rows_, {6}, 2);
  }

  at::Tensor forward(Tape& tape) const { return value(tape).data(); }
  Value value(Tape& tape, uint32_t update = 1) const { return embedding_.forward({tape, update}, table_, rows_); }
  /// E[token of that row, channel].
  double word(int64_t row, int64_t channel) const {
    return table_.data()[rows_.tokens[static_cast<size_t>(row)]][channel].item<double>();
  }
  const Value& table() const { return table_; }
  const Value& language() const { return language_; }

 private:
  ModelOptions options_;
  Parameters parameters_{/*seed=*/1, at::kCPU};
  LayerScope scope_{parameters_, options_, /*dropout_seed=*/2};
  Value table_, language_;
  TokenEmbedding embedding_;
  PackedRows rows_;
};

/// The first two channels of interleaved sinusoids: sin p, cos p.
double position(int64_t p, int64_t channel) {
  const auto angle = static_cast<double>(p);
  return channel == 0 ? std::sin(angle) : std::cos(angle);
}

TEST(TokenEmbedding, IsTheScaledWordAndItsPosition) {
  for (const std::optional<double> scale : {std::optional<double>(), std::optional(1.0), std::optional(2.5)}) {
    for (const int64_t first : {0, 2}) {
      for (const Tape::Ops ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
        ModelOptions options = narrow();
        options.embedding_scale = scale;
        options.positions.first = first;
        const Inputs inputs(options);
        Tape tape(Tape::Kind::kForward, ops);
        const at::Tensor x = inputs.forward(tape);
        for (int64_t t = 0; t < 4; ++t) {
          for (int64_t c = 0; c < 2; ++c) {
            const int64_t p = first + t % 3;
            EXPECT_NEAR(x[t][c].item<double>(), scale.value_or(std::sqrt(6.0)) * inputs.word(t, c) + position(p, c),
                        1e-6);
          }
        }
      }
    }
  }
}

TEST(TokenEmbedding, OfPadIsItsPositionAloneWhereThatRowStartsAtZero) {
  for (const bool fix_norm : {false, true}) {
    const ModelOptions options = [&] {
      ModelOptions o = narrow();
      o.fix_norm = fix_norm;
      return o;
    }();
    Parameters parameters(/*seed=*/1, at::kCPU);
    const LayerScope scope(parameters, options, /*dropout_seed=*/2);
    const Value table = declare_embedding(scope, "table", kVocabulary, PadRow::kZero);
    const TokenEmbedding embedding(scope, "table", Stack::kEncoder);
    parameters.allocate();
    PackedRows rows;
    test::append_sentence(rows, {kPad, 5, kPad}, 8);
    Tape tape(Tape::Kind::kForward);
    const at::Tensor x = embedding.forward({tape}, embedding_rows({tape}, options, table), rows).data();
    for (int64_t c = 0; c < 2; ++c) {
      EXPECT_NEAR(x[0][c].item<double>(), position(0, c), 1e-7);
      EXPECT_NEAR(x[2][c].item<double>(), position(2, c), 1e-6);
      EXPECT_GT(std::abs(x[1][c].item<double>() - position(1, c)), 1e-3);
    }
  }
}

// Beside PAD, which has a word of its own then.
TEST(TokenEmbedding, OfNoTokenIsItsPositionAlone) {
  for (const Tape::Ops ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    Parameters parameters(/*seed=*/1, at::kCPU);
    const ModelOptions options = narrow();
    const LayerScope scope(parameters, options, /*dropout_seed=*/2);
    const Value table = declare_embedding(scope, "table", kVocabulary);
    const TokenEmbedding embedding(scope, "table", Stack::kEncoder);
    parameters.allocate();
    PackedRows rows;
    test::append_sentence(rows, {kNoToken, kPad, kNoToken, 5}, 8);
    Tape tape(Tape::Kind::kRecording, ops);
    const Value x = embedding.forward({tape, 1}, embedding_rows({tape}, options, table), rows);
    for (int64_t c = 0; c < 2; ++c) {
      EXPECT_NEAR(x.data()[0][c].item<double>(), position(0, c), 1e-7);
      EXPECT_NEAR(x.data()[2][c].item<double>(), position(2, c), 1e-6);
      for (const int64_t t : {1, 3}) {
        EXPECT_NEAR(
            x.data()[t][c].item<double>(),
            std::sqrt(6.0) * table.data()[rows.tokens[static_cast<size_t>(t)]][c].item<double>() + position(t, c),
            1e-6);
      }
    }
    x.add_grad(at::ones_like(x.data()));
    tape.backward();
    for (int64_t token = 0; token < kVocabulary; ++token) {
      EXPECT_NEAR(table.grad()[token][0].item<double>(), token == kPad || token == 5 ? std::sqrt(6.0) : 0.0, 1e-6);
    }
  }
}

TEST(TokenEmbedding, TakesTheFormOfItsPositions) {
  ModelOptions options = narrow();
  options.positions.form = PositionForm::kHalves;
  const Inputs inputs(options);
  Tape tape(Tape::Kind::kForward);
  const at::Tensor x = inputs.forward(tape);
  for (int64_t t = 0; t < 3; ++t) {
    const auto p = static_cast<double>(t);  // e^(-ir) = 1, 0.01, 0.0001
    EXPECT_NEAR(x[t][1].item<double>(), std::sqrt(6.0) * inputs.word(t, 1) + std::sin(0.01 * p), 1e-6);
    EXPECT_NEAR(x[t][3].item<double>(), std::sqrt(6.0) * inputs.word(t, 3) + std::cos(p), 1e-6);
  }
}

/// The share of elements that dropout sets to 0, among 600; those that stay must be the others divided by 1 - p.
double dropped(const DropoutOptions& dropout, double p) {
  ModelOptions options = narrow();
  const Inputs without(options);
  options.dropout = dropout;
  const Inputs with(options);
  int64_t zeros = 0, count = 0;
  for (uint32_t update = 1; update <= 25; ++update) {
    Tape tape(Tape::Kind::kRecording), plain(Tape::Kind::kForward);
    const at::Tensor x = with.value(tape, update).data(), expected = without.forward(plain) / (1 - p);
    for (int64_t t = 0; t < 4; ++t) {
      for (int64_t c = 0; c < kWidth; ++c, ++count) {
        const double found = x[t][c].item<double>();
        if (found == 0) {
          ++zeros;
        } else {
          EXPECT_NEAR(found, expected[t][c].item<double>(), 1e-5);
        }
      }
    }
  }
  return static_cast<double>(zeros) / static_cast<double>(count);
}

// Three standard errors of 600 draws: 0.06.
TEST(TokenEmbedding, HasADropoutRateOfItsOwnOrThatOfTheResiduals) {
  EXPECT_NEAR(dropped({.residual = 0.3}, 0.3), 0.3, 0.06);
  EXPECT_NEAR(dropped({.residual = 0.3, .embedding = 0.6}, 0.6), 0.6, 0.06);
  EXPECT_EQ(dropped({.residual = 0.3, .embedding = 0.0}, 0), 0);
}

TEST(TokenEmbedding, AddsTheVectorOfTheLanguageUnscaled) {
  for (const Tape::Ops ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    ModelOptions options = narrow();
    options.language_embedding = true;
    const Inputs inputs(options);
    Tape tape(Tape::Kind::kRecording, ops);
    const Value x = inputs.value(tape);
    for (int64_t t = 0; t < 4; ++t) {
      for (int64_t c = 0; c < 2; ++c) {
        EXPECT_NEAR(
            x.data()[t][c].item<double>(),
            std::sqrt(6.0) * inputs.word(t, c) + position(t % 3, c) + inputs.language().data()[c].item<double>(), 1e-6);
      }
    }
    at::Tensor upstream = at::zeros({4, kWidth});
    for (int64_t t = 0; t < 4; ++t) upstream.select(0, t).fill_(static_cast<double>(t + 1));
    x.add_grad(std::move(upstream));
    tape.backward();
    EXPECT_NEAR(inputs.language().grad()[0].item<double>(), 1 + 2 + 3 + 4, 1e-5);
  }
}

TEST(TokenEmbedding, HasTheScaleInItsGradient) {
  for (const Tape::Ops ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    ModelOptions options = narrow();
    options.embedding_scale = 2.5;
    const Inputs inputs(options);
    Tape tape(Tape::Kind::kRecording, ops);
    const Value x = inputs.value(tape);
    x.add_grad(at::zeros({4, kWidth}) + 1);
    tape.backward();
    EXPECT_NEAR(inputs.table().grad()[5][0].item<double>(), 5.0, 1e-6) << "two rows of token 5";
    EXPECT_NEAR(inputs.table().grad()[6][0].item<double>(), 2.5, 1e-6);
    EXPECT_EQ(inputs.table().grad()[4][0].item<double>(), 0);
  }
}

}  // namespace
}  // namespace tearless::engine::token_embedding_test
