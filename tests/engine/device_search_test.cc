// The search on the device finds what the search on the host finds. The CUDA kernels run emulated on the processor,
// where a replay repeats the forward pass with the host values of the capture, and on a GPU where there is one.
#include "engine/decode/device_search.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "engine/decode/beam.h"
#include "engine/decode/search.h"
#include "tests/engine/model/tiny_model.h"
#include "tests/engine/on_devices.h"

namespace tearless::engine::device_search_test {
namespace {

constexpr int32_t kBeamVocabSize = 9, kBeamEos = 2;

/// The arrays of the kernel for three sentences, with a Beam for each that does the same on the host.
class BeamStepCase {
 public:
  BeamStepCase(int64_t beam, uint32_t seed)
      : beam_(beam),
        bits_(seed),
        hypotheses_(rows()),
        spans_(rows(), AttentionSpan{0, 1, 0, 1, 0}),
        columns_(rows() * kMaxLength),
        key_rows_(columns_.size()),
        tokens_(rows()),
        positions_(rows()),
        best_(rows() * candidates()),
        cache_rows_(rows()),
        log_p_(best_.size()) {
    const DecodeOptions options{.beam = beam, .alpha = seed % 3 == 0 ? 0.0 : 0.6, .n_best = beam};  // no early end
    for (size_t n = 0; n <= kMaxLength; ++n) {
      penalties_.push_back(n <= 1 ? 1.0 : std::pow((5.0 + static_cast<double>(n)) / 6.0, options.alpha));
    }
    for (int32_t k = 0; k < kBeamVocabSize; ++k) token_of_column_.push_back(100 + k);
    for (size_t s = 0; s < kSentences; ++s) {
      beams_.push_back(make_beam(options, limits_[s], kBeamEos));
      hypotheses_[s * width()].state = BeamHypothesis::kOpen;
    }
    for (size_t r = 0; r < rows(); ++r) key_rows_[r * kMaxLength] = static_cast<int32_t>(r);
  }

  /// One position: the same log-probabilities for the beams and for the kernel.
  void step() {
    std::vector<std::vector<float>> log_p;  // [rows, vocabulary]
    for (size_t r = 0; r < rows(); ++r) log_p.push_back(draw_row(r));
    for (size_t s = 0; s < kSentences; ++s) {
      if (beams_[s]->done()) continue;
      std::vector<LogitRow> open;
      for (size_t h = 0; h < beams_[s]->hypotheses().size(); ++h) {
        if (!beams_[s]->hypotheses()[h].finished) open.push_back({log_p[s * width() + h].data()});
      }
      beams_[s]->advance(open, kBeamVocabSize);
    }
    test::search_kernels_on_host.beam_step({.sentences = kSentences,
                                            .beam = beam_,
                                            .candidates = static_cast<int64_t>(candidates()),
                                            .max_length = kMaxLength,
                                            .eos = kBeamEos,
                                            .token_of_column = token_of_column_.data(),
                                            .penalties = penalties_.data(),
                                            .limits = limits_.data(),
                                            .best_columns = best_.data(),
                                            .best_log_p = log_p_.data(),
                                            .hypotheses = hypotheses_.data(),
                                            .columns = columns_.data(),
                                            .key_rows = key_rows_.data(),
                                            .tokens = tokens_.data(),
                                            .positions = positions_.data(),
                                            .spans = spans_.data(),
                                            .cache_rows = cache_rows_.data(),
                                            .done = done_.data()},
                                           nullptr);
  }

  /// That the kernel chose the hypotheses of the beams at `position`, and prepared the next position for them.
  void expect_as_beams(int32_t position) const {
    for (size_t s = 0; s < kSentences; ++s) {
      const Beam& expected = *beams_[s];
      EXPECT_EQ(done_[s], expected.done()) << "sentence " << s << ", position " << position;
      for (size_t h = 0; h < width(); ++h) {
        const size_t row = s * width() + h;
        if (h >= expected.hypotheses().size()) {
          EXPECT_EQ(hypotheses_[row].state, BeamHypothesis::kAbsent);
          continue;
        }
        const Hypothesis& hypothesis = expected.hypotheses()[h];
        expect_hypothesis(row, hypothesis);
        if (!expected.done() && !hypothesis.finished) expect_next_inputs(row, position, hypothesis.tokens.back());
      }
    }
  }

 private:
  static constexpr size_t kSentences = 3, kMaxLength = 12;

  size_t width() const { return static_cast<size_t>(beam_); }
  size_t rows() const { return kSentences * width(); }
  size_t candidates() const { return std::min<size_t>(width() + 1, kBeamVocabSize); }

  /// Log-probabilities from few values, so that there are ties. Sets the row's candidates.
  std::vector<float> draw_row(size_t r) {
    std::vector<float> row(kBeamVocabSize);
    for (float& x : row) x = -0.5f * static_cast<float>(1 + bits_() % 5);
    std::vector<int32_t> order(kBeamVocabSize);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)]; });
    for (size_t c = 0; c < candidates(); ++c) {
      best_[r * candidates() + c] = order[c];
      log_p_[r * candidates() + c] = row[static_cast<size_t>(order[c])];
    }
    return row;
  }

  void expect_hypothesis(size_t row, const Hypothesis& expected) const {
    const BeamHypothesis& found = hypotheses_[row];
    EXPECT_EQ(found.score, expected.score);
    EXPECT_EQ(found.log_probability, expected.log_probability);
    EXPECT_EQ(found.state == BeamHypothesis::kFinished, expected.finished);
    const int32_t* columns = columns_.data() + row * kMaxLength;
    EXPECT_EQ(std::vector<int32_t>(columns, columns + found.length), expected.tokens);
  }
  void expect_next_inputs(size_t row, int32_t position, int32_t column) const {
    EXPECT_EQ(tokens_[row], 100 + column);
    EXPECT_EQ(positions_[row], position + 1);
    EXPECT_EQ(spans_[row].key_count, position + 2);
    EXPECT_EQ(cache_rows_[row], (position + 1) * static_cast<int64_t>(rows()) + static_cast<int64_t>(row));
    EXPECT_EQ(key_rows_[row * kMaxLength + static_cast<size_t>(position) + 1], cache_rows_[row]);
  }

  int64_t beam_;
  std::mt19937 bits_;
  std::vector<std::unique_ptr<Beam>> beams_;
  std::vector<int32_t> limits_ = {6, 1, 9}, done_ = {0, 0, 0}, token_of_column_;
  std::vector<double> penalties_;
  std::vector<BeamHypothesis> hypotheses_;
  std::vector<AttentionSpan> spans_;
  std::vector<int32_t> columns_, key_rows_, tokens_, positions_, best_;
  std::vector<int64_t> cache_rows_;
  std::vector<float> log_p_;
};

TEST(BeamStepKernel, ChoosesWhatBeamChooses) {
  for (const int64_t beam : {1, 2, 4, 7}) {
    for (uint32_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(fmt::format("beam {}, seed {}", beam, seed));
      BeamStepCase search(beam, seed);
      for (int32_t position = 0; position < 9; ++position) {
        search.step();
        search.expect_as_beams(position);
      }
    }
  }
}

constexpr int64_t kVocabulary = 14;

class SearchOnDevice : public test::OnDevices {
 protected:
  /// The emulated kernels, with a capture that is counted.
  static const Backend& counting_bodies() {
    static const Backend counting = [] {
      Backend bodies = test::cuda_bodies();
      bodies.capture = [](const std::function<void()>& launches) {
        ++captures;
        return launches;
      };
      return bodies;
    }();
    return counting;
  }
  static inline int captures = 0;

  /// The translations by the search on the host: on the processor with the same kernels but without a capture, on a GPU
  /// with the formulas.
  static std::vector<std::vector<int32_t>> search_on_host(const test::TinyModel& model, const DecodeOptions& decode,
                                                          const ParallelTokens& set) {
    if (!on_processor()) return Translator(model.transformer, decode, Tape::Ops::kReference).translate(set, [] {});
    Backend without_capture = test::cuda_bodies();
    without_capture.capture = nullptr;
    use_cpu_backend(without_capture);
    auto found = Translator(model.transformer, decode, Tape::Ops::kFast).translate(set, [] {});
    use_cpu_backend(counting_bodies());
    return found;
  }
};

/// Nine sentences of one to six tokens.
ParallelTokens random_sentences() {
  TokenLines source, target;
  std::mt19937 bits(5);
  for (int line = 0; line < 9; ++line) {
    std::vector<int32_t> tokens;
    for (size_t w = 0; w < 1 + bits() % 6; ++w) tokens.push_back(4 + static_cast<int32_t>(bits() % (kVocabulary - 4)));
    tokens.push_back(kEos);
    source.add(tokens);
    target.add(std::vector<int32_t>{4});
  }
  return ParallelTokens{source, target};
}

ModelOptions model_options(bool fix_norm) {
  ModelOptions options = test::tiny_options();
  options.encoder_layers = 1;
  options.decoder_layers = 2;  // in the first one all sentences begin with the same keys and values
  options.d_model = 16;
  options.d_ff = 24;
  options.heads = 2;
  options.fix_norm = fix_norm;
  options.tied_embeddings = fix_norm ? Tying::kAll : Tying::kNone;
  options.placement = fix_norm ? Placement::kPost : Placement::kPre;
  options.norm.kind = fix_norm ? "scale_norm" : "layer_norm";
  if (fix_norm) {
    options.decoder_sublayers = "cross_attention, self_attention, ffn";
    options.decoder_start = DecoderStart::kZero;
    options.language_embedding = true;
  }
  return options;
}

/// Multiplies all weight matrices: with those of initialisation nearly all outputs are alike.
void scale_weights(test::TinyModel& model, double factor) {
  for (const ParameterSpec& spec : model.parameters.specs()) {
    if (spec.name.ends_with(".weight")) model.parameters.get(spec.name).data().mul_(factor);
  }
  model.parameters.update_bf16_copy();
}

TEST_P(SearchOnDevice, FindsWhatTheSearchOnTheHostFinds) {
  const ParallelTokens set = random_sentences();
  captures = 0;
  if (on_processor()) use_cpu_backend(counting_bodies());

  for (const bool fix_norm : {false, true}) {
    std::vector<uint8_t> output_tokens = test::usual_output_vocabulary(kVocabulary);
    output_tokens[6] = 0;  // so that the output table is a copy
    test::TinyModel model(model_options(fix_norm), output_tokens, 3, 2, GetParam().device, GetParam().precision);
    scale_weights(model, fix_norm ? 5 : 3);
    // EOS is among the best from the start, where it must not be chosen.
    model.parameters.get("output.bias").data()[kEos] = 2.0;
    const DecodeOptions decode{.beam = fix_norm ? 3 : 4,
                               .length_penalty = fix_norm ? LengthPenalty::kLength : LengthPenalty::kGnmt,
                               .max_extra = 6,
                               .max_length = fix_norm ? std::optional<int64_t>(7) : std::nullopt,
                               .batch_tokens = 40};
    Translator on_device(model.transformer, decode, Tape::Ops::kFast);
    size_t different = 0;
    for (const double factor : {1.0, 1.3}) {  // the second time with the graphs that were captured the first time
      scale_weights(model, factor);
      const auto found = on_device.translate(set, [] {});
      const auto again = on_device.translate(set, [] {});
      EXPECT_EQ(found, again);
      const std::vector<std::vector<int32_t>> expected = search_on_host(model, decode, set);
      // In bf16 on a GPU the formulas round elsewhere, and a near tie may fall the other way.
      const bool exact = on_processor() || GetParam().precision == RowPrecision::kFp32;
      size_t equal = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        if (exact) {
          EXPECT_EQ(found[i], expected[i]) << "sentence " << i << ", weights times " << factor;
        }
        equal += found[i] == expected[i];
        different += expected[i] != expected[0];
      }
      EXPECT_GE(3 * equal, 2 * expected.size());
    }
    EXPECT_GT(different, 4u) << (fix_norm ? "with FixNorm " : "")
                             << "all outputs are alike: the comparison shows nothing";
  }
  if (on_processor()) {
    EXPECT_GT(captures, 1) << "nothing was captured";
  }
}

// The first input is then no token, and PAD has a row of its own.
TEST_P(SearchOnDevice, ChoosesPadAndBosWhereTheyAreOutputs) {
  const ParallelTokens set = random_sentences();
  captures = 0;
  if (on_processor()) use_cpu_backend(counting_bodies());
  ModelOptions options = model_options(false);
  options.decoder_start = DecoderStart::kZero;
  options.mask_target_vocabulary = false;
  options.special_outputs = true;
  options.input_vector = true;  // which the first input is without
  const DecodeOptions decode{.beam = 3, .max_extra = 6, .batch_tokens = 40};
  std::array<int64_t, 2> chosen{};
  size_t equal = 0, sentences = 0;
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    test::TinyModel model(options, test::usual_output_vocabulary(kVocabulary), seed, 2, GetParam().device,
                          GetParam().precision);
    model.parameters.get("output.bias").data()[seed % 2 == 0 ? kPad : kBos] = 2.0;
    scale_weights(model, 3);
    const std::vector<std::vector<int32_t>> expected = search_on_host(model, decode, set);
    const auto found = Translator(model.transformer, decode, Tape::Ops::kFast).translate(set, [] {});
    for (size_t i = 0; i < expected.size(); ++i) {
      ++sentences;
      equal += found[i] == expected[i];
      chosen[0] += std::ranges::count(found[i], kPad);
      chosen[1] += std::ranges::count(found[i], kBos);
    }
  }
  const bool exact = on_processor() || GetParam().precision == RowPrecision::kFp32;
  EXPECT_GE(3 * equal, (exact ? 3 : 2) * sentences);
  EXPECT_THAT(chosen, testing::Each(testing::Gt(0)));
  if (on_processor()) {
    EXPECT_GT(captures, 0) << "nothing was captured";
  }
}

TEST_P(SearchOnDevice, IsTheHostsWhereTheDeviceLacksAKernelOfTheSearch) {
  if (!on_processor()) GTEST_SKIP() << "with the emulated kernels";
  const ParallelTokens set = random_sentences();
  const DecodeOptions decode{.beam = 3, .max_extra = 6, .batch_tokens = 40};
  const test::TinyModel model(model_options(false), test::usual_output_vocabulary(kVocabulary), 3, 2, GetParam().device,
                              GetParam().precision);
  const std::vector<std::vector<int32_t>> expected = search_on_host(model, decode, set);
  Backend no_beam_step = counting_bodies(), no_best_tokens = counting_bodies();
  no_beam_step.search = nullptr;
  Kernels<float> float_kernels = *no_best_tokens.float_kernels;
  Kernels<bf16> bf16_kernels = *no_best_tokens.bf16_kernels;
  float_kernels.best_tokens = nullptr;
  bf16_kernels.best_tokens = nullptr;
  no_best_tokens.float_kernels = &float_kernels;
  no_best_tokens.bf16_kernels = &bf16_kernels;
  captures = 0;
  for (const Backend* backend : {&no_beam_step, &no_best_tokens}) {
    use_cpu_backend(*backend);
    EXPECT_EQ(Translator(model.transformer, decode, Tape::Ops::kFast).translate(set, [] {}), expected);
  }
  EXPECT_EQ(captures, 0);
}

// Captured, a formula would read the host's arrays instead of the device's. The encoder, without attention, has none.
TEST_P(SearchOnDevice, IsTheHostsForOtherSearchesAndForListsOfOutputs) {
  const ParallelTokens set = random_sentences();
  if (on_processor()) use_cpu_backend(counting_bodies());
  test::TinyModel model(model_options(false), test::usual_output_vocabulary(kVocabulary), 3, 2, GetParam().device,
                        GetParam().precision);
  scale_weights(model, 3);
  for (const DecodeOptions& decode :
       {DecodeOptions{.search = "fairseq", .max_extra = 6}, DecodeOptions{.search = "t2t", .max_extra = 6},
        DecodeOptions{.search = "t2t", .stop = SearchStop::kBatch, .max_extra = 6},
        DecodeOptions{.search = "joey", .max_extra = 6}, DecodeOptions{.max_extra = 6, .n_best = 2}}) {
    captures = 0;
    const auto lists = Translator(model.transformer, decode, Tape::Ops::kFast).search(set, [] {});
    EXPECT_EQ(captures, 0);
    EXPECT_EQ(lists.front().size(), static_cast<size_t>(decode.n_best));
  }
}

TEST_P(SearchOnDevice, IsTheHostsWhereTheDecoderAloneRunsByAFormula) {
  if (!on_processor()) GTEST_SKIP() << "with the emulated kernels";
  ModelOptions options = model_options(false);
  options.encoder_sublayers = "ffn";
  Backend narrow = counting_bodies();
  Kernels<float> float_kernels = *narrow.float_kernels;
  Kernels<bf16> bf16_kernels = *narrow.bf16_kernels;
  float_kernels.widest_head = bf16_kernels.widest_head = options.d_model / options.heads - 1;
  narrow.float_kernels = &float_kernels;
  narrow.bf16_kernels = &bf16_kernels;
  const ParallelTokens set = random_sentences();
  const DecodeOptions decode{.beam = 3, .max_extra = 6, .batch_tokens = 40};
  const test::TinyModel model(options, test::usual_output_vocabulary(kVocabulary), 3, 2, GetParam().device,
                              GetParam().precision);
  use_cpu_backend(narrow);
  const auto expected = Translator(model.transformer, decode, Tape::Ops::kReference).translate(set, [] {});
  captures = 0;
  const auto found = Translator(model.transformer, decode, Tape::Ops::kFast).translate(set, [] {});
  EXPECT_EQ(captures, 0);
  size_t equal = 0;  // in bf16 a near tie may fall the other way
  for (size_t i = 0; i < expected.size(); ++i) equal += found[i] == expected[i];
  EXPECT_GE(3 * equal, (GetParam().precision == RowPrecision::kFp32 ? 3 : 2) * expected.size());
}

TEST_P(SearchOnDevice, FindsTheSameWithEveryKindOfDecoderAttention) {
  if (on_processor()) use_cpu_backend(counting_bodies());
  const ParallelTokens set = random_sentences();
  for (const std::string& sublayers : test::attending_sublayers()) {
    SCOPED_TRACE(sublayers);
    ModelOptions options = model_options(false);
    options.decoder_sublayers = sublayers;
    test::TinyModel model(options, test::usual_output_vocabulary(kVocabulary), 3, 2, GetParam().device,
                          GetParam().precision);
    scale_weights(model, 3);
    const DecodeOptions decode{.beam = 3, .max_extra = 6, .batch_tokens = 40};
    captures = 0;
    Translator on_device(model.transformer, decode, Tape::Ops::kFast);
    const auto found = on_device.translate(set, [] {});
    const auto again = on_device.translate(set, [] {});
    EXPECT_EQ(found, again);
    if (on_processor()) {
      EXPECT_GT(captures, 0);
    }
    const std::vector<std::vector<int32_t>> expected = search_on_host(model, decode, set);
    size_t equal = 0;  // in bf16 a near tie may fall the other way
    for (size_t i = 0; i < expected.size(); ++i) equal += found[i] == expected[i];
    EXPECT_GE(3 * equal, (GetParam().precision == RowPrecision::kFp32 ? 3 : 2) * expected.size());
  }
}

TEST_P(SearchOnDevice, OfADecoderThatKeepsNothingReplaysItsGraphs) {
  ModelOptions options = model_options(false);
  options.decoder_sublayers = "cross_attention, ffn";
  if (on_processor()) use_cpu_backend(counting_bodies());
  const ParallelTokens set = random_sentences();
  const DecodeOptions decode{.beam = 3, .max_extra = 6, .batch_tokens = 40};
  const test::TinyModel model(options, test::usual_output_vocabulary(kVocabulary), 3, 2, GetParam().device,
                              GetParam().precision);
  Translator on_device(model.transformer, decode, Tape::Ops::kFast);
  const auto found = on_device.translate(set, [] {});
  on_device.translate(set, [] {});  // graphs are captured at the second use of a bucket
  captures = 0;
  EXPECT_EQ(on_device.translate(set, [] {}), found);
  EXPECT_EQ(captures, 0);
  if (on_processor()) {
    EXPECT_EQ(search_on_host(model, decode, set), found);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SearchOnDevice, test::device_settings(), test::device_setting_name);

}  // namespace
}  // namespace tearless::engine::device_search_test
