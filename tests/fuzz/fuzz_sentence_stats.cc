#include "base/error.h"
#include "base/score/measures.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/targets.h"

namespace tearless::fuzz {

int fuzz_sentence_stats(const uint8_t* data, size_t size) {
  SentenceStats stats;
  try {
    stats = read_stats(text_of(data, size), "test.stats");
  } catch (const UserError&) {
    return 0;
  }
  require(read_stats(stats_text(stats), "again").rows == stats.rows,
          "statistics differ after they were written and read");
  for (const std::string& name : measure_names()) {
    try {
      score_of_sums("test." + name, stats.columns, "test.stats")(stats.sum());
    } catch (const UserError&) {  // of other columns
    }
  }
  return 0;
}

}  // namespace tearless::fuzz
