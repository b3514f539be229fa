#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/grants/worker_file.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/targets.h"

namespace tearless::fuzz {
namespace {

using harness::WorkerNews;

void append(WorkerNews& all, WorkerNews news) {
  if (news.facts) all.facts = std::move(news.facts);
  std::ranges::move(news.claims, std::back_inserter(all.claims));
  std::ranges::move(news.ends, std::back_inserter(all.ends));
  if (!news.bye.empty()) all.bye = news.bye;
}

}  // namespace

// The first byte says how much of the file is seen at the first look.
int fuzz_worker_file(const uint8_t* data, size_t size) {
  std::string_view bytes = text_of(data, size);
  const size_t seen = take_byte(bytes) * bytes.size() / 255;
  static const test::TempFolder folder;
  const std::filesystem::path file = folder / "n1-1.jsonl";
  WorkerNews pieces;
  write_new(file, bytes.substr(0, seen));
  harness::WorkerTail tail(file);
  append(pieces, tail.read());
  write_new(file, bytes);
  append(pieces, tail.read());
  const WorkerNews whole = harness::WorkerTail(file).read();
  const bool is_same = pieces.facts.has_value() == whole.facts.has_value() && pieces.claims == whole.claims &&
                       pieces.ends.size() == whole.ends.size() && pieces.bye == whole.bye;
  require(is_same, "a file that is read in two pieces says something else");
  if (whole.facts) harness::fits(*whole.facts, {}, 0);
  return 0;
}

}  // namespace tearless::fuzz
