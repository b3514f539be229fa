#include "engine/data/subwords.h"

#include <cstdlib>

#include "base/error.h"
#include "base/utf8.h"
#include "base/words.h"
#include "engine/data/bpe.h"
#include "engine/data/sentencepiece.h"

namespace tearless::engine {

std::string join_continued(std::span<const std::string> pieces) {
  std::string line;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].ends_with("@@")) {
      line.append(pieces[i], 0, pieces[i].size() - 2);
    } else {
      line += pieces[i];
      if (i + 1 < pieces.size()) line += ' ';
    }
  }
  return line;
}

namespace {

constexpr std::string_view kContinues = "@@";
constexpr size_t kShownColumns = 40;  // of a word in a message

void refuse_marks_of_bpe(std::string_view line, const std::string& location) {
  for (const std::string_view word : split_words(line)) {
    if (word.ends_with(kContinues)) {
      fail(
          "{}: the word \"{}\" ends with @@, with which BPE marks that a word continues; if the text is cut into "
          "subwords already, set text.kind = \"segmented\", else replace the word",
          location, fitted(printable(word), kShownColumns));
    }
    if (word.find(kWordEnd) != std::string_view::npos) {
      fail(
          "{}: the word \"{}\" has {} in it, with which BPE marks the end of a word; if the text is cut into subwords "
          "already, write them as text.kind = \"segmented\" has them, else replace the word",
          location, fitted(printable(word), kShownColumns), kWordEnd);
    }
  }
}

void refuse_marks_of_sentencepiece(std::string_view line, const std::string& location) {
  if (line.find(kSpaceMark) == std::string_view::npos) return;
  fail(
      "{}: there is {} (U+2581), with which SentencePiece marks a space; if the text is cut into subwords already, "
      "join it with spm_decode, or write the subwords as text.kind = \"segmented\" has them; else replace the "
      "character",
      location, kSpaceMark);
}

}  // namespace

void refuse_subword_marks(TextKind kind, std::span<const std::string> lines, const std::string& file) {
  if (kind == TextKind::kSegmented) return;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string location = fmt::format("{}:{}", file, i + 1);
    kind == TextKind::kBpe ? refuse_marks_of_bpe(lines[i], location)
                           : refuse_marks_of_sentencepiece(lines[i], location);
  }
}

void refuse_subword_marks(TextKind kind, const ParallelText& text, const std::vector<std::string>& files) {
  refuse_subword_marks(kind, text.source, files.at(0));
  refuse_subword_marks(kind, text.target, files.at(1));
}

bool looks_cut(TextKind kind, std::string_view line) {
  const std::vector<std::string_view> words = split_words(line);
  for (size_t i = 0; i < words.size(); ++i) {
    if (kind == TextKind::kSentencepiece && i + 1 < words.size() && words[i].ends_with(kContinues)) return true;
    if (kind != TextKind::kSentencepiece && words[i].starts_with(kSpaceMark)) return true;
  }
  return false;
}

std::vector<std::string> Segmented::encode(std::string_view line, Side) const {
  const auto words = split_words(line);
  return {words.begin(), words.end()};
}

std::unique_ptr<Subwords> learn_subwords(const TextOptions& options, const TrainingText& train) {
  switch (options.kind) {
    case TextKind::kBpe:
      return std::make_unique<Bpe>(Bpe::learn(train, options.merges, options.split_unseen));
    case TextKind::kSentencepiece:
      return learn_sentencepiece(train, options.pieces);
    case TextKind::kSegmented:
      return std::make_unique<Segmented>();
  }
  std::abort();
}

std::unique_ptr<Subwords> read_subwords(TextKind kind, std::string_view bytes) {
  switch (kind) {
    case TextKind::kBpe:
      return std::make_unique<Bpe>(Bpe::from_bytes(bytes));
    case TextKind::kSentencepiece:
      return read_sentencepiece(bytes);
    case TextKind::kSegmented:
      return std::make_unique<Segmented>();
  }
  std::abort();
}

}  // namespace tearless::engine
