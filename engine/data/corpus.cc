#include "engine/data/corpus.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "base/words.h"
#include "engine/data/raw_files.h"

namespace tearless::engine {
namespace {

/// The source file and the target file of the set `prefix`.
std::array<std::string, 2> files_of(const DataOptions& data, const std::string& prefix) {
  const std::vector<std::string> endings = corpus_endings(data);
  return {prefix + endings[0], prefix + endings[1]};
}

std::vector<std::string> lines_of(const std::string& bytes, const std::string& file) {
  if (bytes.empty()) fail("{} is empty: put one sentence a line into it", file);
  std::vector<std::string> lines;
  for (const std::string_view line : split_lines(bytes)) {
    lines.emplace_back(line);
    if (!valid_utf8(line)) {
      fail("{}:{}: not valid UTF-8; convert the file, for example with iconv", file, lines.size());
    }
  }
  return lines;
}

/// "" before fingerprint().
std::string recorded_sha256(const DataOptions& data, const std::string& prefix) {
  return prefix == data.train ? data.train_sha256 : prefix == data.dev ? data.dev_sha256 : data.test_sha256;
}

}  // namespace

std::vector<std::string> corpus_endings(const DataOptions& data) { return {"." + data.source, "." + data.target}; }

std::string missing_corpus(const DataOptions& data) {
  const std::array<std::pair<const char*, const std::string*>, 5> keys = {{{"source", &data.source},
                                                                           {"target", &data.target},
                                                                           {"train", &data.train},
                                                                           {"dev", &data.dev},
                                                                           {"test", &data.test}}};
  for (const auto& [key, value] : keys) {
    if (value->empty()) fail("data.{} is not set: [data] needs train, dev, test, source and target", key);
  }
  const std::string corpus = data.name.empty() ? "the corpus" : fmt::format("the corpus {}", data.name);
  std::vector<std::string> files;
  for (const std::string& prefix : {data.train, data.dev, data.test}) {
    for (const std::string& file : files_of(data, prefix)) files.push_back(file);
  }
  return missing_file(corpus, data.how_to_get, files);
}

void fingerprint(DataOptions& data) {
  data.train_sha256 = files_sha256(files_of(data, data.train));
  data.dev_sha256 = files_sha256(files_of(data, data.dev));
  data.test_sha256 = files_sha256(files_of(data, data.test));
}

void verify_fingerprint(const DataOptions& data) {
  verify_files(files_of(data, data.train), data.train_sha256);
  verify_files(files_of(data, data.dev), data.dev_sha256);
  verify_files(files_of(data, data.test), data.test_sha256);
}

ParallelText read_parallel(const DataOptions& data, const std::string& prefix) {
  const std::array<std::string, 2> files = files_of(data, prefix);
  const auto& [source, target] = files;
  // The cache entry is named by the files' checksums, so it must be made from exactly those bytes.
  const std::vector<std::string> bytes = read_files(files, recorded_sha256(data, prefix));
  ParallelText text{lines_of(bytes[0], source), lines_of(bytes[1], target)};
  if (text.source.size() != text.target.size()) {
    fail("{} has {} lines but {} has {}: line n of one must translate line n of the other", source, text.source.size(),
         target, text.target.size());
  }
  return text;
}

ParallelText usable_pairs(ParallelText text, int64_t max_words, const std::string& prefix) {
  const auto usable = [&](const std::string& line) {
    const size_t words = split_words(line).size();
    return words > 0 && (max_words == 0 || words <= static_cast<size_t>(max_words));
  };
  size_t kept = 0;
  for (size_t i = 0; i < text.source.size(); ++i) {
    if (!usable(text.source[i]) || !usable(text.target[i])) continue;
    if (kept != i) {
      text.source[kept] = std::move(text.source[i]);
      text.target[kept] = std::move(text.target[i]);
    }
    ++kept;
  }
  if (kept == 0) fail("{}: no pair of lines can be trained on; every one has an empty or an overlong side", prefix);
  text.source.resize(kept);
  text.target.resize(kept);
  return text;
}

}  // namespace tearless::engine
