#include "engine/data/labelled_tokens.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/words.h"
#include "engine/data/by_count.h"
#include "engine/data/cut.h"
#include "engine/data/raw_files.h"
#include "engine/ops/cache.h"

namespace tearless::engine {
namespace {

/// The training sentences that `text` allows.
LabelledText usable_sentences(const LabelledText& train, const std::vector<std::string>& classes, int64_t max_words) {
  if (max_words == 0) return train;
  LabelledText usable;
  for (size_t i = 0; i < train.text.size(); ++i) {
    if (split_words(train.text[i]).size() > static_cast<size_t>(max_words)) continue;
    usable.text.push_back(train.text[i]);
    usable.label.push_back(train.label[i]);
  }
  require_every_class(usable.label, classes,
                      fmt::format("text.max_words = {} leaves no training sentence of", max_words));
  return usable;
}

void lower_case(LabelledText& set) {
  for (std::string& line : set.text) line = lower_cased(line);
}

/// The vocabulary of these training sentences, as LabelledTokens has it.
std::vector<std::string> word_vocabulary(const LabelledText& train, int64_t min_count) {
  std::unordered_map<std::string_view, int64_t> counts;
  for (const std::string& line : train.text) {
    for (const std::string_view word : split_words(line)) ++counts[word];
  }
  const std::vector<std::string> words = by_count(counts, min_count);
  if (words.empty()) fail("text.min_count = {} leaves no word: every word of the training set is rarer", min_count);
  std::vector<std::string> vocabulary = {"<pad>", "<bos>", "<eos>", "<unk>"};
  vocabulary.insert(vocabulary.end(), words.begin(), words.end());
  return vocabulary;
}

LabelledLines encode_set(const LabelledText& set, const PieceNumbers& numbers) {
  LabelledLines out{.lines = {}, .labels = set.label};
  std::vector<int32_t> ids;
  for (const std::string& line : set.text) {
    ids.clear();
    for (const std::string_view word : split_words(line)) ids.push_back(numbers.of(word));
    if (ids.empty()) ids.push_back(kUnk);
    out.lines.add(ids);
  }
  return out;
}

auto lengths_in(const TokenLines& lines) {
  return [&lines](int32_t line) { return std::array{lines.length(line)}; };
}

int64_t only_side(const std::array<int64_t, 1>& longest) { return longest[0]; }

}  // namespace

LabelledTokens encode(const LabelledSets& sets, std::vector<std::string> classes, const WordOptions& text) {
  LabelledText train = usable_sentences(sets.train, classes, text.max_words);
  LabelledText dev = sets.dev;
  LabelledText test = sets.test;
  if (text.lower_case) {
    for (LabelledText* set : {&train, &dev, &test}) lower_case(*set);
  }
  LabelledTokens out;
  out.classes = std::move(classes);
  out.vocabulary = word_vocabulary(train, text.min_count);
  const PieceNumbers numbers(out.vocabulary);
  out.train = encode_set(train, numbers);
  out.dev = encode_set(dev, numbers);
  out.test = encode_set(test, numbers);
  return out;
}

std::shared_ptr<const LabelledTokens> labelled_tokens(LabelledTextOptions data, const WordOptions& text,
                                                      const Say& say) {
  const DataFiles files = data_files(data);
  files.check();
  WordOptions described_text = text;
  const std::string key = canonical_settings(Identity::kResult, [&](SettingsVisitor& v) {
    v.table("data", data);
    v.table("text", described_text);
  });

  static Cache<std::string, std::shared_ptr<const LabelledTokens>> known(/*entries=*/8);  // a few MB each
  return known.get(key, [&] {
    files.require();
    const LabelledSets sets = read_labelled(data, say);
    const auto tokens = std::make_shared<const LabelledTokens>(encode(sets, class_names(data), text));
    say(fmt::format("read {}: {} of {} training sentences, {} dev, {} test; vocabulary {}",
                    data.name.empty() ? "the corpus" : data.name, tokens->train.size(), sets.train.text.size(),
                    tokens->dev.size(), tokens->test.size(), tokens->vocabulary_size()));
    return tokens;
  });
}

std::vector<SentenceIds> cut_labelled_batches(const TokenLines& lines, int64_t tokens, uint32_t seed, int64_t pass) {
  const auto sort_and_cut = [&](SentenceIds sentences) {
    sort_by_length(sentences, lengths_in(lines));
    return cut(sentences, tokens, lengths_in(lines), only_side);
  };
  return batches_of_pass(lines.size(), Regenerate::kPerPass, sort_and_cut, seed, pass);
}

std::vector<SentenceIds> evaluation_batches(const TokenLines& lines, int64_t tokens) {
  return cut(in_order(lines.size()), tokens, lengths_in(lines), only_side);
}

LabelledBatch pack(const LabelledLines& set, std::span<const int32_t> sentences) {
  LabelledBatch batch;
  batch.rows.offsets = {0};
  for (const int32_t sentence : sentences) {
    const auto tokens = set.lines[sentence];
    batch.rows.tokens.insert(batch.rows.tokens.end(), tokens.begin(), tokens.end());
    add_sentence(batch.rows, sentence, set.lines.length(sentence));
    batch.labels.push_back(set.labels[static_cast<size_t>(sentence)]);
  }
  return batch;
}

}  // namespace tearless::engine
