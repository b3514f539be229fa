#include "engine/data/corpus.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "base/words.h"
#include "engine/data/shuffle.h"
#include "engine/data/text_lines.h"

namespace tearless::engine {

std::vector<std::string> sentences_of(const std::string& bytes, const std::string& file) {
  std::vector<std::string> lines;
  for (const std::string_view line : text_lines(bytes)) {
    lines.emplace_back(line);
    if (!valid_utf8(line)) {
      fail("{}:{}: not valid UTF-8; convert the file, for example with iconv", file, lines.size());
    }
  }
  if (lines.empty()) fail("{} is empty: put one sentence a line into it", file);
  return lines;
}

DataFiles data_files(DataOptions& data) {
  const std::vector<std::string> endings = {"." + data.source, "." + data.target};
  return {.what = named("corpus", data.name),
          .how_to_get = data.how_to_get,
          .required = {{"source", !data.source.empty()}, {"target", !data.target.empty()}},
          .needs = "[data] needs train, dev, test, source and target",
          .sets = {{{{"data.train", &data.train, endings}}, &data.train_sha256},
                   {{{"data.dev", &data.dev, endings}}, &data.dev_sha256},
                   {{{"data.test", &data.test, endings}}, &data.test_sha256}}};
}

ParallelText read_parallel(const DataSet& set) {
  const std::vector<std::string> files = set.files();
  // The cache entry is named by the files' checksums, so it must be made from exactly those bytes.
  const std::vector<std::string> bytes = read_files(set);
  ParallelText text{sentences_of(bytes[0], files[0]), sentences_of(bytes[1], files[1])};
  if (text.source.size() != text.target.size()) {
    fail("{} has {} lines but {} has {}: line n of one must translate line n of the other", files[0],
         text.source.size(), files[1], text.target.size());
  }
  return text;
}

ParallelText training_pairs(ParallelText text, int64_t max_words, const DataOptions& data) {
  const auto usable = [&](const std::string& line) {
    const size_t words = split_words(line).size();
    return words > 0 && (max_words == 0 || words <= static_cast<size_t>(max_words));
  };
  std::vector<int32_t> chosen;
  for (size_t i = 0; i < text.source.size(); ++i) {
    if (usable(text.source[i]) && usable(text.target[i])) chosen.push_back(static_cast<int32_t>(i));
  }
  if (chosen.empty()) {
    fail("{}: no pair of lines can be trained on; every one has an empty or an overlong side", data.train);
  }
  if (data.train_count > std::ssize(chosen)) {
    fail("data.train_count = {} is too many: {} has {} that can be trained on", data.train_count, data.train,
         counted(std::ssize(chosen), "pair"));
  }
  if (data.train_count > 0) {
    shuffle(chosen, RandomStream(0, "train_count"), /*pass=*/0, /*which=*/0);
    chosen.resize(static_cast<size_t>(data.train_count));
    std::ranges::sort(chosen);
  }
  ParallelText pairs;
  for (const int32_t i : chosen) {
    pairs.source.push_back(std::move(text.source[static_cast<size_t>(i)]));
    pairs.target.push_back(std::move(text.target[static_cast<size_t>(i)]));
  }
  return pairs;
}

}  // namespace tearless::engine
