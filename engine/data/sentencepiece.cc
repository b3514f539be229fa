#include "engine/data/sentencepiece.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {
namespace {

// Longest word in the training text, without its space mark: the library stores positions in 15 bits and aborts beyond.
constexpr size_t kMaxCharacters = 32767;

/// Passes both sides to the trainer, line by line.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const TrainingText& text) : text_(text) {}
  bool done() const override { return next_ == text_.source.size() + text_.target.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override {
    return next_ < text_.source.size() ? text_.source[next_] : text_.target[next_ - text_.source.size()];
  }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const TrainingText& text_;
  size_t next_ = 0;
};

/// The number of distinct characters, the space mark included.
size_t count_characters(const TrainingText& text) {
  std::unordered_set<std::string_view> characters = {kSpaceMark};
  for (const auto& side : {text.source, text.target}) {
    for (const std::string_view line : side) {
      for (size_t begin = 0, end = 0; begin < line.size(); begin = end) {
        for (end = begin + 1; end < line.size() && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80;) ++end;
        if (line[begin] != ' ') characters.insert(line.substr(begin, end - begin));
      }
    }
  }
  return characters.size();
}

std::string_view beginning_of(std::string_view word) {
  size_t bytes = 0;
  for (int character = 0; character < 20; ++character) bytes += utf8_length(word.substr(bytes));
  return word.substr(0, bytes);
}

/// For messages: "the training text", or the side that a model is learned from.
std::string name_of(const TrainingText& text) {
  if (!text.source.empty() && !text.target.empty()) return "the training text";
  return fmt::format("the {} side of the training text", text.target.empty() ? "source" : "target");
}

void refuse_endless_words(const TrainingText& text) {
  const auto characters = [](std::string_view word) {
    return static_cast<size_t>(
        std::count_if(word.begin(), word.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  };
  for (const bool is_source : {true, false}) {
    for (const std::string_view line : is_source ? text.source : text.target) {
      for (size_t begin = 0; begin < line.size();) {
        const size_t end = std::min(line.find(' ', begin), line.size());
        const std::string_view word = line.substr(begin, end - begin);
        begin = end + 1;
        if (word.size() <= kMaxCharacters || characters(word) <= kMaxCharacters) continue;
        fail(
            "data.train: the {} side has a word of {} characters, but SentencePiece learns from words of at most {}; "
            "split the word that begins with \"{}\", or remove its line",
            is_source ? "source" : "target", characters(word), kMaxCharacters, beginning_of(word));
      }
    }
  }
}

class SentencePiece final : public Subwords {
 public:
  explicit SentencePiece(std::string_view model) : model_(model) {
    if (!processor_.LoadFromSerializedProto(model_).ok()) throw std::runtime_error("it holds no SentencePiece model");
  }

  std::vector<std::string> encode(std::string_view line, Side) const override {
    std::vector<std::string> pieces;
    require(processor_.Encode(line, &pieces).ok(), "SentencePiece: a line was not encoded");
    return pieces;
  }

  std::string join(std::span<const std::string> pieces) const override {
    std::string marked;
    for (const std::string& piece : pieces) marked += piece;
    std::string line;
    for (size_t begin = 0; begin < marked.size();) {
      const size_t mark = std::min(marked.find(kSpaceMark, begin), marked.size());
      line.append(marked, begin, mark - begin);
      if (mark < marked.size()) line += ' ';
      begin = mark + kSpaceMark.size();
    }
    if (line.starts_with(' ')) line.erase(0, 1);  // encoding puts a mark before the first word too
    return line;
  }

  std::vector<std::string> spare_pieces() const override {
    std::vector<std::string> pieces;
    for (int id = 0; id < processor_.GetPieceSize(); ++id) {
      if (!processor_.IsUnknown(id)) pieces.push_back(processor_.IdToPiece(id));
    }
    return pieces;
  }

  std::string bytes() const override { return model_; }

 private:
  std::string model_;
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

std::unique_ptr<Subwords> learn_sentencepiece(const TrainingText& train, int64_t vocabulary_size) {
  refuse_endless_words(train);
  const auto needed = static_cast<int64_t>(count_characters(train)) + kFirstPiece;
  if (vocabulary_size < needed) {
    fail("text.pieces = {} is too few: every character of {} needs a piece; set it to {} or more", vocabulary_size,
         name_of(train), needed);
  }
  // The model contains UNK as its only special piece; PAD, BOS and EOS are added outside it.
  const int64_t model_size = vocabulary_size - kFirstPiece + 1;
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(model_size)},
      {"normalization_rule_name", "identity"},
      {"character_coverage", "1.0"},
      {"split_by_unicode_script", "false"},
      {"split_by_number", "false"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "true"},
      {"max_sentence_length", "1000000000"},  // skips no line
      {"num_threads", "1"},                   // the same model on every machine
      {"unk_id", "0"},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"pad_id", "-1"},
      {"minloglevel", "2"}};
  Lines lines(train);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &lines, &model);
  if (!status.ok()) {
    // The characters fit, so the remaining cause is a text with too few pairs to merge. Only the message tells the
    // number of pieces.
    const std::string reason = status.ToString();
    const size_t limit = reason.rfind("<= ");
    if (limit == std::string::npos) fail("text.pieces = {} does not suit this corpus: {}", vocabulary_size, reason);
    fail("text.pieces = {} is too many: {} yields only {}", vocabulary_size, name_of(train),
         std::atoll(reason.c_str() + limit + 3) + kFirstPiece - 1);
  }
  return read_sentencepiece(model);
}

std::unique_ptr<Subwords> read_sentencepiece(std::string_view model) { return std::make_unique<SentencePiece>(model); }

}  // namespace tearless::engine
