#include "engine/data/subwords.h"

#include <cstdlib>

#include "engine/data/bpe.h"
#include "engine/data/segmented.h"
#include "engine/data/sentencepiece.h"

namespace tearless::engine {

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
