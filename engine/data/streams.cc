#include "engine/data/streams.h"

#include <algorithm>

#include "base/error.h"
#include "base/words.h"
#include "engine/data/cut.h"

namespace tearless::engine {

StreamSegment Streams::at(int64_t number, int64_t segment) const {
  require(number >= 0 && number < segments(segment), "a pass has no such segment");
  const int64_t begin = number * segment;
  const int64_t length = std::min(segment, predictions() - begin);
  StreamSegment out;
  out.rows.offsets = {0};
  for (int64_t stream = 0; stream < streams_; ++stream) {
    const auto first = tokens_.begin() + stream * length_ + begin;
    out.rows.tokens.insert(out.rows.tokens.end(), first, first + length);
    out.labels.insert(out.labels.end(), first + 1, first + 1 + length);
    add_sentence(out.rows, static_cast<int32_t>(stream), length);
  }
  return out;
}

void require_long_enough(int64_t tokens, const std::string& file, const NamedCount& streams, const NamedCount& segment,
                         const NamedCount& memory) {
  const int64_t length = tokens / streams.value;
  const auto refuse = [&](const std::string& why, const NamedCount& setting) {
    fail("{}: {} in {} = {} streams are {} a stream, {}; make {} or {} smaller, or use more text", file,
         counted(tokens, "symbol"), streams.key, streams.value, length, why, setting.key, streams.key);
  };
  if (length < segment.value + 1) {
    refuse(fmt::format("fewer than {} = {} and the symbol after them", segment.key, segment.value), segment);
  }
  if (length < memory.value) refuse(fmt::format("so that {} = {} never fills", memory.key, memory.value), memory);
}

}  // namespace tearless::engine
