#include "engine/data/corpus.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "base/words.h"

namespace tearless::engine {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

std::string source_file(const DataOptions& data, const std::string& prefix) { return prefix + "." + data.source; }
std::string target_file(const DataOptions& data, const std::string& prefix) { return prefix + "." + data.target; }

bool is_there(const std::string& file) {
  std::error_code unreachable;
  return fs::exists(file, unreachable);
}

/// The SHA-256 of a file; read once per process while its size and modification time stay the same.
std::string remembered_sha256(const std::string& file) {
  using Stamp = std::tuple<std::string, off_t, time_t, long>;
  static std::mutex mutex;
  static std::map<Stamp, std::string> known;
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return sha256_of_file(file);  // throws: says why it cannot be read
  if (!S_ISREG(info.st_mode))
    fail("{} is not a regular file; replace it by a text file with one sentence a line", file);
  const Stamp stamp{file, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
  const std::lock_guard lock(mutex);
  auto it = known.find(stamp);
  if (it == known.end()) it = known.emplace(stamp, sha256_of_file(file)).first;
  return it->second;
}

std::string pair_sha256(const DataOptions& data, const std::string& prefix) {
  return sha256(remembered_sha256(source_file(data, prefix)) + " " + remembered_sha256(target_file(data, prefix)));
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

std::string missing_corpus(const DataOptions& data) {
  const std::array<std::pair<const char*, const std::string*>, 5> keys = {{{"source", &data.source},
                                                                           {"target", &data.target},
                                                                           {"train", &data.train},
                                                                           {"dev", &data.dev},
                                                                           {"test", &data.test}}};
  for (const auto& [key, value] : keys) {
    if (value->empty()) fail("data.{} is not set: [data] needs train, dev, test, source and target", key);
  }
  for (const std::string& prefix : {data.train, data.dev, data.test}) {
    for (const std::string& file : {source_file(data, prefix), target_file(data, prefix)}) {
      if (is_there(file)) continue;
      const std::string corpus = data.name.empty() ? "the corpus" : fmt::format("the corpus {}", data.name);
      return data.how_to_get.empty() ? fmt::format("{} lacks the file {}", corpus, file)
                                     : fmt::format("{} lacks the file {}: {}", corpus, file, data.how_to_get);
    }
  }
  return "";
}

void fingerprint(DataOptions& data) {
  data.train_sha256 = pair_sha256(data, data.train);
  data.dev_sha256 = pair_sha256(data, data.dev);
  data.test_sha256 = pair_sha256(data, data.test);
}

void verify_fingerprint(const DataOptions& data) {
  const std::array<std::pair<std::string, std::string>, 3> sets = {
      {{data.train, data.train_sha256}, {data.dev, data.dev_sha256}, {data.test, data.test_sha256}}};
  for (const auto& [prefix, recorded] : sets) {
    const std::string source = source_file(data, prefix);
    const std::string target = target_file(data, prefix);
    if (!is_there(source) || !is_there(target)) continue;
    if (pair_sha256(data, prefix) != recorded) {
      fail("{} and {} are not the files that this run was planned with; restore those, or plan a new run", source,
           target);
    }
  }
}

ParallelText read_parallel(const DataOptions& data, const std::string& prefix) {
  const std::string source = source_file(data, prefix);
  const std::string target = target_file(data, prefix);
  const std::string source_bytes = read_regular_file(source, kNoLimit);
  const std::string target_bytes = read_regular_file(target, kNoLimit);
  // The cache entry is named by the files' checksums, so it must be made from exactly those bytes.
  const std::string recorded = recorded_sha256(data, prefix);
  if (!recorded.empty() && sha256(sha256(source_bytes) + " " + sha256(target_bytes)) != recorded) {
    fail("{} or {} changed while it was read; run again when no program writes to them", source, target);
  }
  ParallelText text{lines_of(source_bytes, source), lines_of(target_bytes, target)};
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
