#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/hash.h"
#include "engine/data/batches.h"
#include "engine/data/token_file.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/targets.h"

namespace tearless::fuzz {
namespace {

using namespace tearless::engine;

std::optional<Prepared> parsed(const std::string& bytes, TextKind kind) {
  try {
    return parse_token_file(bytes, kind);
  } catch (const std::exception&) {  // prepare() regenerates the corpus
    return std::nullopt;
  }
}

/// What training and decoding do with a corpus.
void use(const Prepared& prepared) {
  for (const SentenceIds& lines : cut_batches(prepared.train, {.tokens = 64}, /*seed=*/1, /*pass=*/0)) {
    pack(prepared.train, lines);
  }
  for (const SentenceIds& lines : decoding_batches(prepared.dev, /*tokens=*/64)) pack(prepared.dev, lines);
  for (int64_t line = 0; line < prepared.test.size(); ++line) prepared.to_text(prepared.test.source[line]);
  prepared.encode_source(std::vector<std::string>{"a b", ""});
}

}  // namespace

/// The first byte chooses the kind of text, and by its high bit a second subword model; the second is the vocabulary's
/// size, the rest is what the checksum covers.
int fuzz_token_file(const uint8_t* data, size_t size) {
  std::string_view body = text_of(data, size);
  const uint8_t first = take_byte(body);
  const auto kind = static_cast<TextKind>(first % 0x80 % kTextKindNames.size());
  nlohmann::json header = {{"format", kTokenFileFormat}, {"vocabulary", take_byte(body)}, {"sha256", sha256(body)}};
  if (first >= 0x80) header["source_subwords"] = true;
  const std::string bytes = header.dump() + "\n" + std::string(body);
  if (const auto prepared = parsed(bytes, kind)) {
    use(*prepared);
    require(parsed(token_file_bytes(*prepared), kind).has_value(), "a corpus cannot be read after it was written");
  }
  parsed(std::string(body), kind);  // as a whole file: the first line, too, is foreign
  return 0;
}

}  // namespace tearless::fuzz
