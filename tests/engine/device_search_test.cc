// Search that stays on the device finds what the search on the host finds. CUDA's kernels run on the processor here,
// and on a GPU where there is one; on the processor "captured" means done again with what the host knew at the capture.
#include "engine/decode/device_search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "engine/decode/beam.h"
#include "engine/decode/search.h"
#include "tests/engine/model/tiny_model.h"
#include "tests/engine/on_devices.h"

namespace tearless::engine {
namespace {

/// The kernel beside Beam, on log-probabilities drawn from few values, so that there are ties.
TEST(BeamStepKernel, ChoosesWhatBeamChooses) {
  constexpr int32_t kVocabSize = 9, kEos_ = 2;
  for (const int64_t beam : {1, 2, 4, 7}) {
    for (uint32_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(fmt::format("beam {}, seed {}", beam, seed));
      std::mt19937 bits(seed);
      const DecodeOptions options{.beam = beam, .alpha = seed % 3 == 0 ? 0.0 : 0.6};
      const std::vector<int32_t> limits = {6, 1, 9};
      const int64_t sentences = 3, rows = sentences * beam, room = 12,
                    candidates = std::min<int64_t>(beam + 1, kVocabSize);
      std::vector<BeamHypothesis> hypotheses(static_cast<size_t>(rows));
      std::vector<AttentionSpan> spans(static_cast<size_t>(rows), AttentionSpan{0, 1, 0, 1, 0});
      std::vector<int32_t> columns(static_cast<size_t>(rows * room)), key_rows(columns.size()), tokens(spans.size()),
          positions(spans.size()), done(3), token_of_column(kVocabSize), best(static_cast<size_t>(rows * candidates));
      std::vector<int64_t> cache_rows(spans.size());
      std::vector<float> log_p(best.size());
      std::vector<double> penalties;
      for (int64_t n = 0; n <= room; ++n) {
        penalties.push_back(n <= 1 ? 1.0 : std::pow((5.0 + static_cast<double>(n)) / 6.0, options.alpha));
      }
      for (int32_t k = 0; k < kVocabSize; ++k) token_of_column[static_cast<size_t>(k)] = 100 + k;
      std::vector<Beam> beams;
      for (int64_t s = 0; s < sentences; ++s) {
        beams.emplace_back(options, limits[static_cast<size_t>(s)], kEos_);
        hypotheses[static_cast<size_t>(s * beam)].state = BeamHypothesis::kOpen;
      }
      for (int64_t r = 0; r < rows; ++r) key_rows[static_cast<size_t>(r * room)] = static_cast<int32_t>(r);

      for (int32_t position = 0; position < 9; ++position) {
        std::vector<std::vector<float>> all(static_cast<size_t>(rows), std::vector<float>(kVocabSize));
        for (int64_t r = 0; r < rows; ++r) {
          std::vector<float>& row = all[static_cast<size_t>(r)];
          for (float& x : row) x = -0.5f * static_cast<float>(1 + bits() % 5);
          std::vector<int32_t> order(kVocabSize);
          for (int32_t k = 0; k < kVocabSize; ++k) order[static_cast<size_t>(k)] = k;
          std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
            return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)];
          });
          for (int64_t c = 0; c < candidates; ++c) {
            const auto at = static_cast<size_t>(r * candidates + c);
            best[at] = order[static_cast<size_t>(c)];
            log_p[at] = row[static_cast<size_t>(best[at])];
          }
        }
        for (int64_t s = 0; s < sentences; ++s) {
          Beam& of_sentence = beams[static_cast<size_t>(s)];
          if (of_sentence.done()) continue;
          std::vector<const float*> open;
          for (size_t h = 0; h < of_sentence.hypotheses().size(); ++h) {
            if (!of_sentence.hypotheses()[h].finished) open.push_back(all[static_cast<size_t>(s * beam) + h].data());
          }
          of_sentence.advance(open, kVocabSize);
        }
        test::search_kernels_on_host.beam_step({.sentences = sentences,
                                          .beam = beam,
                                          .candidates = candidates,
                                          .max_length = room,
                                          .eos = kEos_,
                                          .token_of_column = token_of_column.data(),
                                          .penalties = penalties.data(),
                                          .limits = limits.data(),
                                          .best_columns = best.data(),
                                          .best_log_p = log_p.data(),
                                          .hypotheses = hypotheses.data(),
                                          .columns = columns.data(),
                                          .key_rows = key_rows.data(),
                                          .tokens = tokens.data(),
                                          .positions = positions.data(),
                                          .spans = spans.data(),
                                          .cache_rows = cache_rows.data(),
                                          .done = done.data()},
                                         nullptr);
        for (int64_t s = 0; s < sentences; ++s) {
          const Beam& expected = beams[static_cast<size_t>(s)];
          EXPECT_EQ(done[static_cast<size_t>(s)], expected.done()) << "sentence " << s << ", position " << position;
          for (int64_t h = 0; h < beam; ++h) {
            const auto row = static_cast<size_t>(s * beam + h);
            const BeamHypothesis& found = hypotheses[row];
            if (static_cast<size_t>(h) >= expected.hypotheses().size()) {
              EXPECT_EQ(found.state, BeamHypothesis::kAbsent);
              continue;
            }
            const Hypothesis& wanted = expected.hypotheses()[static_cast<size_t>(h)];
            EXPECT_EQ(found.score, wanted.score);
            EXPECT_EQ(found.log_probability, wanted.log_probability);
            EXPECT_EQ(found.state == BeamHypothesis::kFinished, wanted.finished);
            const int32_t* of_row = columns.data() + row * static_cast<size_t>(room);
            EXPECT_EQ(std::vector<int32_t>(of_row, of_row + found.length), wanted.tokens);
            if (expected.done() || wanted.finished) continue;
            EXPECT_EQ(tokens[row], 100 + wanted.tokens.back());
            EXPECT_EQ(positions[row], position + 1);
            EXPECT_EQ(spans[row].key_count, position + 2);
            EXPECT_EQ(cache_rows[row], (position + 1) * rows + static_cast<int64_t>(row));
            EXPECT_EQ(key_rows[row * static_cast<size_t>(room) + static_cast<size_t>(position) + 1], cache_rows[row]);
          }
        }
      }
    }
  }
}

constexpr int64_t kVocabulary = 14;

class SearchOnDevice : public test::OnDevices {
 protected:
  /// The bodies, with a capture that is counted.
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
};

/// Kernels that cannot be captured: the host searches.
Backend without_capture(const Backend& backend) {
  Backend same = backend;
  same.capture = nullptr;
  return same;
}

TEST_P(SearchOnDevice, FindsWhatTheSearchOnTheHostFinds) {
  TokenLines source, target;
  std::mt19937 bits(5);
  for (int line = 0; line < 9; ++line) {
    std::vector<int32_t> tokens;
    for (size_t w = 0; w < 1 + bits() % 6; ++w) tokens.push_back(4 + static_cast<int32_t>(bits() % (kVocabulary - 4)));
    tokens.push_back(kEos);
    source.add(tokens);
    target.add(std::vector<int32_t>{4});
  }
  const ParallelTokens set(source, target);
  captures = 0;
  if (on_processor()) use_cpu_backend(counting_bodies());

  for (const bool fix_norm : {false, true}) {
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
    std::vector<uint8_t> kept = test::usual_kept(kVocabulary);
    kept[6] = 0;  // so that the output table is a copy
    test::TinyModel model(options, kept, 3, 2, GetParam().device, GetParam().precision);
    const auto liven = [&](double factor) {  // else nearly all outputs are alike
      for (const ParameterSpec& spec : model.parameters.specs()) {
        if (spec.name.ends_with(".weight")) model.parameters.get(spec.name).data().mul_(factor);
      }
      model.parameters.update_bf16_copy();
    };
    liven(fix_norm ? 5 : 3);
    // EOS is among the best from the start, where it must not be chosen.
    model.parameters.get("output.bias").data()[kEos] = 2.0;
    const DecodeOptions decode{.beam = fix_norm ? 3 : 4, .max_extra = 6, .batch_tokens = 40};
    Translator on_device(model.transformer, decode, Tape::Ops::kFast);
    size_t different = 0;
    for (const double factor : {1.0, 1.3}) {  // the second time over what was captured the first time
      liven(factor);
      const auto found = on_device.translate(set, [] {});
      const auto again = on_device.translate(set, [] {});
      EXPECT_EQ(found, again);
      std::vector<std::vector<int32_t>> expected;
      if (on_processor()) {
        const Backend host = without_capture(test::cuda_bodies());
        use_cpu_backend(host);
        expected = Translator(model.transformer, decode, Tape::Ops::kFast).translate(set, [] {});
        use_cpu_backend(counting_bodies());
      } else {
        expected = Translator(model.transformer, decode, Tape::Ops::kReference).translate(set, [] {});
      }
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

INSTANTIATE_TEST_SUITE_P(All, SearchOnDevice, test::device_settings(), test::device_setting_name);

}  // namespace
}  // namespace tearless::engine
