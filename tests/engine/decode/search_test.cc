// Search with a real, tiny model: one cached position at a time gives the logits of the whole target, and a translation
// is what a search without cache, batch or packing finds.
#include "engine/decode/search.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/decode/beam.h"
#include "engine/decode/cached_decoding.h"
#include "tests/engine/decode/literal_t2t.h"
#include "tests/engine/model/tiny_model.h"

namespace tearless::engine::search_test {
namespace {

using test::append_sentence;
using test::Sentences;
using test::tiny_options;
using test::TinyModel;
using Ops = Tape::Ops;

constexpr int64_t kVocabulary = 12;
const Sentences kSources = {{4, 5, 6, 7, kEos}, {8, kEos}, {9, 4, 9, 10, 11, 5, kEos}, {kEos}, {10, 10, 4, kEos}};

/// Large weights, so that the outputs differ from sentence to sentence and from beam to beam.
TinyModel model_with_large_weights(uint32_t seed, const ModelOptions& options = tiny_options()) {
  std::vector<uint8_t> in_output_vocabulary = test::usual_output_vocabulary(kVocabulary);
  in_output_vocabulary[6] = 0;
  TinyModel model(options, in_output_vocabulary, seed);
  for (const ParameterSpec& spec : model.parameters.specs()) {
    if (spec.name.ends_with(".weight")) model.parameters.get(spec.name).data().mul_(2.5);
  }
  return model;
}

PackedRows packed(const Sentences& sentences) {
  PackedRows rows;
  for (size_t i = 0; i < sentences.size(); ++i) append_sentence(rows, sentences[i], static_cast<int32_t>(i));
  return rows;
}

/// Logits [T, K] of one target (with BOS) by a full forward.
at::Tensor full_logits(const TinyModel& model, const std::vector<int32_t>& source, const std::vector<int32_t>& target) {
  Tape tape(Tape::Kind::kForward, Ops::kReference);
  const ForwardContext context{tape};
  const auto tables = model.transformer.prepare(context);
  const PackedRows s = packed({source}), t = packed({target});
  return model.transformer.logits(context, tables, t, model.transformer.encode(context, tables, s), s).data();
}

ModelOptions with_placement(Placement placement) {
  ModelOptions options = tiny_options();
  options.placement = placement;
  return options;
}
ModelOptions with_sublayers(const std::string& of_decoder) {
  ModelOptions options = tiny_options();
  options.decoder_sublayers = of_decoder;
  return options;
}

/// And with a vector for each language.
ModelOptions with_start(DecoderStart start) {
  ModelOptions options = tiny_options();
  options.decoder_start = start;
  options.language_embedding = true;
  return options;
}

/// PAD and BOS can be chosen, and often are: their rows are trained as all others.
ModelOptions with_special_outputs(DecoderStart start) {
  ModelOptions options = tiny_options();
  options.decoder_start = start;
  options.mask_target_vocabulary = false;
  options.special_outputs = true;
  return options;
}

TEST(CachedDecoding, GivesTheLogitsOfTheWholeTargetForEveryPlacementAndEveryStack) {
  std::vector<ModelOptions> all;
  for (const Placement placement : test::placements()) all.push_back(with_placement(placement));
  for (const std::string& sublayers : test::all_sublayers(/*in_decoder=*/true))
    all.push_back(with_sublayers(sublayers));
  for (const DecoderStart start : {DecoderStart::kEos, DecoderStart::kZero}) {
    all.push_back(with_start(start));
    all.push_back(with_special_outputs(start));
  }
  ASSERT_GT(all.size(), 12u);
  for (const ModelOptions& options : all) {
    SCOPED_TRACE(options.decoder_sublayers);
    const TinyModel model = model_with_large_weights(1, options);
    // Longer than the cache's first capacity, so that it must grow.
    Sentences targets;
    for (size_t i = 0; i < 3; ++i) {
      targets.push_back({model.transformer.decoder_start()});
      const int32_t first = options.special_outputs ? kPad : kUnk;  // and EOS, which joey extends
      for (int32_t p = 0; p < 40; ++p) {
        targets.back().push_back(first + (p * (static_cast<int32_t>(i) + 2) + static_cast<int32_t>(i)) % (12 - first));
      }
    }
    const Sentences sources(kSources.begin(), kSources.begin() + 3);
    Tape tape(Tape::Kind::kForward);
    const ForwardContext context{tape};
    const auto tables = model.transformer.prepare(context);
    const PackedRows source = packed(sources);
    CachedDecoding decoding(model.transformer, context, tables, model.transformer.encode(context, tables, source),
                            /*sentences=*/3, /*rows=*/4);
    std::vector<at::Tensor> expected;
    for (size_t i = 0; i < 3; ++i) expected.push_back(full_logits(model, sources[i], targets[i]));
    AttentionSpans cross;
    for (int32_t i = 0; i < 3; ++i) {
      const auto s = static_cast<size_t>(i);
      cross.add({i, 1, source.offsets[s], source.offsets[s + 1] - source.offsets[s], 0});
    }
    for (size_t t = 0; t < targets[0].size(); ++t) {
      const at::Tensor logits = decoding.advance({targets[0][t], targets[1][t], targets[2][t]}, cross).data();
      for (int64_t i = 0; i < 3; ++i) {
        const at::Tensor row = expected[static_cast<size_t>(i)][static_cast<int64_t>(t)];
        EXPECT_LT((logits[i] - row).abs().max().item<double>(), 1e-4 * row.abs().max().item<double>())
            << "position " << t;
      }
    }
  }
}

/// The translation of one sentence by full forwards over every prefix.
std::vector<int32_t> slow_translation(const TinyModel& model, const std::vector<int32_t>& source,
                                      const DecodeOptions& options) {
  const OutputVocabulary& output_vocabulary = model.transformer.output_vocabulary();
  const std::unique_ptr<Beam> beam =
      make_beam(options, options.limit(static_cast<int64_t>(source.size())), output_vocabulary.column_of[kEos]);
  while (!beam->done()) {
    std::vector<at::Tensor> keep_alive;
    std::vector<LogitRow> rows;
    for (const Hypothesis& h : beam->hypotheses()) {
      if (h.finished) continue;
      std::vector<int32_t> target = {model.transformer.decoder_start()};
      for (const int32_t token : h.tokens) target.push_back(output_vocabulary.tokens[static_cast<size_t>(token)]);
      keep_alive.push_back(at::log_softmax(full_logits(model, source, target), 1)[-1].contiguous());
      rows.push_back({keep_alive.back().const_data_ptr<float>()});
    }
    beam->advance(rows, static_cast<int64_t>(output_vocabulary.tokens.size()));
  }
  std::vector<int32_t> tokens = beam->best().front().tokens;
  for (int32_t& token : tokens) token = output_vocabulary.tokens[static_cast<size_t>(token)];
  if (options.search == "t2t") tokens.erase(std::ranges::find(tokens, kPad), tokens.end());
  return tokens;
}

std::vector<std::vector<int32_t>> translate(const Transformer& model, const ParallelTokens& set,
                                            const DecodeOptions& options, Ops ops,
                                            const std::function<void()>& between_batches) {
  return Translator(model, options, ops).translate(set, between_batches);
}

ParallelTokens set_of(const Sentences& sources) {
  TokenLines source, target;
  for (const auto& s : sources) {
    source.add(s);
    target.add(std::vector<int32_t>{4});
  }
  return {source, target};
}

TEST(Translate, FindsTheOutputOfASearchWithoutCacheAndBatch) {
  size_t different = 0;
  for (uint32_t seed = 1; seed <= 2; ++seed) {
    const ModelOptions options = seed < 2 ? tiny_options() : with_sublayers("ffn, cross_attention, self_attention");
    const TinyModel model = model_with_large_weights(seed, options);
    for (const std::string_view search : search_kinds().names()) {
      for (const int64_t beam : {1, 4}) {
        const DecodeOptions options{.search = std::string(search), .beam = beam, .max_extra = 6, .batch_tokens = 30};
        std::vector<std::vector<int32_t>> slow;
        for (const auto& source : kSources) slow.push_back(slow_translation(model, source, options));
        for (const Ops ops : {Ops::kFast, Ops::kReference}) {
          const auto outputs = translate(model.transformer, set_of(kSources), options, ops, [] {});
          ASSERT_EQ(outputs.size(), kSources.size());
          for (size_t i = 0; i < kSources.size(); ++i) {
            EXPECT_EQ(outputs[i], slow[i]) << "sentence " << i << ", beam " << beam << ", search " << search;
            EXPECT_LE(outputs[i].size(), kSources[i].size() + 6);
            EXPECT_TRUE(!outputs[i].empty() || search == "joey");
            for (const int32_t token : outputs[i])
              EXPECT_TRUE(token != kPad && token != kBos && token != kEos && token != 6);
            different += outputs[i] != outputs[0];
          }
        }
      }
    }
  }
  EXPECT_GT(different, 20u) << "a model that says one thing to all proves nothing";
}

TEST(Translate, MayChoosePadAndBosWhereTheyAreOutputsAndExtendsThemByTheirOwnRows) {
  std::map<std::string_view, int64_t> pads, starts;
  for (const DecoderStart start : {DecoderStart::kBos, DecoderStart::kZero}) {
    const TinyModel model = model_with_large_weights(1, with_special_outputs(start));
    ASSERT_EQ(model.transformer.output_vocabulary().tokens.size(), 12u);
    for (const std::string_view search : search_kinds().names()) {
      const DecodeOptions options{
          .search = std::string(search), .beam = 4, .max_extra = 6, .n_best = 4, .batch_tokens = 30};
      const auto lists = Translator(model.transformer, options, Ops::kFast).search(set_of(kSources), [] {});
      for (size_t i = 0; i < kSources.size(); ++i) {
        EXPECT_EQ(lists[i].front().tokens, slow_translation(model, kSources[i], options)) << "sentence " << i;
        for (const SearchOutput& output : lists[i]) {
          pads[search] += std::ranges::count(output.tokens, kPad);
          starts[search] += std::ranges::count(output.tokens, kBos);
        }
      }
    }
  }
  for (const std::string_view search : search_kinds().names()) {
    EXPECT_GT(starts[search], 0);
    EXPECT_EQ(pads[search] > 0, search != "t2t") << "T2T's outputs end at PAD";
  }
}

/// By literal_t2t() with full forwards, in batches of these sentences.
std::vector<std::vector<SearchOutput>> literal_outputs(const TinyModel& model, const DecodeOptions& options,
                                                       const std::vector<std::vector<size_t>>& batches) {
  const OutputVocabulary& vocabulary = model.transformer.output_vocabulary();
  std::vector<std::vector<SearchOutput>> outputs(kSources.size());
  for (const std::vector<size_t>& batch : batches) {
    std::vector<test::LiteralSentence> sentences;
    for (const size_t i : batch) {
      const auto after = [&model, &vocabulary, i](const std::vector<int32_t>& columns) {
        std::vector<int32_t> target = {model.transformer.decoder_start()};
        for (const int32_t column : columns) target.push_back(vocabulary.tokens[static_cast<size_t>(column)]);
        const at::Tensor log_p = at::log_softmax(full_logits(model, kSources[i], target), 1)[-1].contiguous();
        return std::vector<float>(log_p.const_data_ptr<float>(), log_p.const_data_ptr<float>() + log_p.numel());
      };
      sentences.push_back({after, options.limit(static_cast<int64_t>(kSources[i].size()))});
    }
    const auto outcomes = test::literal_t2t(sentences, options, vocabulary.column_of[kEos]);
    for (size_t place = 0; place < batch.size(); ++place) {
      std::vector<SearchOutput>& ranked = outputs[batch[place]] = outcomes[place].ranked;
      ranked.resize(std::min(ranked.size(), static_cast<size_t>(options.n_best)));
      for (SearchOutput& output : ranked) {
        for (int32_t& token : output.tokens) token = vocabulary.tokens[static_cast<size_t>(token)];
      }
    }
  }
  return outputs;
}

// The sources have 5, 2, 7, 1 and 4 tokens; a batch has sentences × 2 × the longest.
TEST(Translate, EndsABatchTogetherInTheOrderOfTheFile) {
  struct Case {
    int64_t batch_tokens;
    std::vector<std::vector<size_t>> batches;
  };
  const std::vector<Case> cases = {
      {1, {{0}, {1}, {2}, {3}, {4}}}, {28, {{0, 1}, {2, 3}, {4}}}, {1000, {{0, 1, 2, 3, 4}}}};
  int differs_from_sentence = 0, of_batches = 0, beyond_the_limit = 0;
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    const TinyModel model = model_with_large_weights(seed);
    for (const double alpha : {0.6, 3.0}) {
      std::vector<std::vector<std::vector<SearchOutput>>> found;
      DecodeOptions options{.search = "t2t", .beam = 3, .alpha = alpha, .max_extra = 3, .n_best = 3};
      const auto by_sentence = Translator(model.transformer, options, Ops::kFast).search(set_of(kSources), [] {});
      options.stop = SearchStop::kBatch;
      for (const Case& c : cases) {
        options.batch_tokens = c.batch_tokens;
        found.push_back(Translator(model.transformer, options, Ops::kFast).search(set_of(kSources), [] {}));
        const auto expected = literal_outputs(model, options, c.batches);
        for (size_t i = 0; i < kSources.size(); ++i) {
          ASSERT_EQ(found.back()[i].size(), expected[i].size());
          for (size_t rank = 0; rank < expected[i].size(); ++rank) {
            EXPECT_EQ(found.back()[i][rank].tokens, expected[i][rank].tokens)
                << "seed " << seed << ", alpha " << alpha << ", batch_tokens " << c.batch_tokens << ", sentence " << i;
            EXPECT_NEAR(found.back()[i][rank].score, expected[i][rank].score, 1e-4);
            beyond_the_limit += std::ssize(expected[i][rank].tokens) > std::ssize(kSources[i]) + 3;
          }
          EXPECT_EQ(found.front()[i].size(), by_sentence[i].size());
        }
      }
      for (size_t i = 0; i < kSources.size(); ++i) {
        for (size_t rank = 0; rank < by_sentence[i].size(); ++rank) {
          EXPECT_EQ(found[0][i][rank].tokens, by_sentence[i][rank].tokens) << "a sentence is a batch of its own";
        }
      }
      differs_from_sentence += found[2] != by_sentence;
      of_batches += found[1] != found[2];
    }
  }
  EXPECT_GT(differs_from_sentence, 3);
  EXPECT_GT(of_batches, 3);
  EXPECT_GT(beyond_the_limit, 3);
}

// Nearly everything about these models is equal: without the setting all three would say the same.
TEST(Translate, BeginsWithTheStartThatTheModelIsTrainedWith) {
  std::vector<std::vector<std::vector<int32_t>>> said;
  for (const DecoderStart start : {DecoderStart::kBos, DecoderStart::kEos, DecoderStart::kZero}) {
    const TinyModel model = model_with_large_weights(2, with_start(start));
    for (const int64_t beam : {1, 4}) {
      const DecodeOptions options{.beam = beam, .max_extra = 6, .batch_tokens = 30};
      const auto outputs = translate(model.transformer, set_of(kSources), options, Ops::kFast, [] {});
      for (size_t i = 0; i < kSources.size(); ++i) {
        EXPECT_EQ(outputs[i], slow_translation(model, kSources[i], options));
      }
      if (beam == 1) said.push_back(outputs);
    }
  }
  EXPECT_NE(said[0], said[1]);
  EXPECT_NE(said[0], said[2]);
  EXPECT_NE(said[1], said[2]);
}

TEST(Translate, GivesTheSameOnAnyNumberOfThreads) {
  const TinyModel model = model_with_large_weights(3);
  Sentences sources;
  for (int32_t i = 0; i < 40; ++i) {
    sources.emplace_back();
    for (int32_t p = 0; p <= i % 7; ++p) sources.back().push_back(4 + (5 * i + 3 * p) % 8);
    sources.back().push_back(kEos);
  }
  for (const char* const kind : {"twt", "t2t"}) {
    const DecodeOptions options{.search = kind, .beam = 3, .max_extra = 6, .n_best = 3, .batch_tokens = 30};
    Translator translator(model.transformer, options, Ops::kFast);
    const auto alone = translator.search(set_of(sources), [] {});
    for (const int threads : {2, 5}) {
      at::set_num_threads(threads);
      const auto together = translator.search(set_of(sources), [] {});
      at::set_num_threads(1);
      EXPECT_EQ(together, alone) << threads << " threads";
    }
  }
}

// A stop: the other threads begin no further batch.
TEST(Translate, EndsOnAllThreadsWhereOneIsStopped) {
  const TinyModel model = model_with_large_weights(1);
  int asked = 0;
  at::set_num_threads(2);
  EXPECT_THROW(translate(model.transformer, set_of(kSources), {.batch_tokens = 1}, Ops::kFast,
                         [&] {
                           if (++asked == 2) throw std::runtime_error("stop");
                         }),
               std::runtime_error);
  at::set_num_threads(1);
  EXPECT_EQ(asked, 2) << "of 5";
}

TEST(Translate, ChecksForAStopBetweenBatches) {
  const TinyModel model = model_with_large_weights(1);
  int asked = 0;
  EXPECT_THROW(translate(model.transformer, set_of(kSources), {.batch_tokens = 1}, Ops::kFast,
                         [&] {
                           if (++asked == 3) throw std::runtime_error("stop");
                         }),
               std::runtime_error);
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace tearless::engine::search_test
