#include "engine/data/subwords.h"

#include <cstdlib>

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

std::vector<std::string> Segmented::encode(std::string_view line, Side) const {
  const auto words = split_words(line);
  return {words.begin(), words.end()};
}

std::unique_ptr<Subwords> learn_subwords(const TextOptions& options, const ParallelText& train) {
  switch (options.kind) {
    case TextKind::kBpe:
      return std::make_unique<Bpe>(Bpe::learn(train, options.merges));
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
