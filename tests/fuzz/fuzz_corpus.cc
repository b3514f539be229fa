#include <fmt/ranges.h>

#include "base/error.h"
#include "base/words.h"
#include "engine/data/bpe.h"
#include "engine/data/corpus.h"
#include "engine/data/subwords.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/targets.h"
#include "tests/support/paths.h"

namespace tearless::fuzz {
namespace {

using namespace tearless::engine;

void encode_and_join(const Bpe& bpe, const ParallelText& text) {
  const Bpe again = Bpe::from_bytes(bpe.bytes());
  for (const Side side : {Side::kSource, Side::kTarget}) {
    for (const std::string& line : side == Side::kSource ? text.source : text.target) {
      const std::vector<std::string> pieces = bpe.encode(line, side);
      require(again.encode(line, side) == pieces, "subwords differ after they were written and read");
      require(bpe.join(pieces) == fmt::format("{}", fmt::join(split_words(line), " ")),
              "pieces do not join to their line");
    }
  }
}

}  // namespace

/// The first byte is the number of merges; a record separator divides the two sides.
int fuzz_corpus(const uint8_t* data, size_t size) {
  static const test::TempFolder folder;
  std::string_view bytes = text_of(data, size);
  const uint8_t merges = take_byte(bytes);
  const size_t middle = std::min(bytes.find('\x1e'), bytes.size());
  write_new(folder / "train.src", bytes.substr(0, middle));
  write_new(folder / "train.tgt", bytes.substr(std::min(middle + 1, bytes.size())));
  DataOptions options;
  options.source = "src";
  options.target = "tgt";
  options.train = (folder / "train").string();
  try {
    const ParallelText text = training_pairs(read_parallel(data_files(options).sets[0]), /*max_words=*/50, options);
    refuse_subword_marks(TextKind::kBpe, text, {"train.src", "train.tgt"});
    encode_and_join(Bpe::learn(text, merges), text);
    const Segmented segmented;
    for (const std::string& line : text.source) segmented.join(segmented.encode(line, Side::kSource));
  } catch (const UserError&) {
  }
  return 0;
}

}  // namespace tearless::fuzz
