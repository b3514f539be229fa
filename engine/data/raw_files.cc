#include "engine/data/raw_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "base/file_stamp.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "engine/data/text_encoding.h"
#include "engine/ops/cache.h"

namespace tearless::engine {
namespace {

bool file_exists(const std::string& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0;
}

constexpr size_t kCachedFiles = 256;

/// The SHA-256 of a file; read once per process while its stamp stays the same.
std::string cached_sha256(const std::string& file, std::string_view expected) {
  static Cache<std::pair<std::string, FileStamp>, std::string> known(kCachedFiles);
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return sha256_of_file(file);  // throws: says why it cannot be read
  if (!S_ISREG(info.st_mode)) fail("{} is not a regular file; replace it by {}", file, expected);
  return known.get({file, FileStamp(info)}, [&] { return sha256_of_file(file); });
}

FileStart first_bytes(const std::string& file, int64_t bytes) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  FileStart start{.bytes = {}, .file_size = in.tellg()};
  start.bytes.resize(static_cast<size_t>(std::clamp<int64_t>(start.file_size, 0, bytes)));
  in.seekg(0);
  if (!in.read(start.bytes.data(), static_cast<std::streamsize>(start.bytes.size()))) fail("cannot read {}", file);
  return start;
}

/// looks_coded() of the beginning of a file; read once, as by cached_sha256().
std::string_view cached_look(const std::string& file, std::string_view expected) {
  constexpr int64_t kBeginning = 1 << 16;
  static Cache<std::pair<std::string, FileStamp>, std::string_view> known(kCachedFiles);
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return "";
  return known.get({fmt::format("{} {}", expected, file), FileStamp(info)},
                   [&] { return looks_coded(first_bytes(file, kBeginning).bytes, expected == kPlainText); });
}

/// files_sha256() of files with these SHA-256s.
std::string combined(const std::vector<std::string>& sums) {
  if (sums.size() == 1) return sums.front();
  std::string list;
  for (const std::string& sum : sums) list.append(list.empty() ? "" : " ").append(sum);
  return sha256(list);
}

/// "a", "a or b", "a, b or c" with the conjunction "or".
std::string listed(std::span<const std::string> files, std::string_view conjunction) {
  std::string text;
  for (size_t i = 0; i < files.size(); ++i) {
    if (i > 0) text += i + 1 < files.size() ? ", " : fmt::format(" {} ", conjunction);
    text += files[i];
  }
  return text;
}

}  // namespace

std::vector<std::string> DataSet::files() const {
  std::vector<std::string> files;
  for (const DataSetting& setting : settings) {
    for (const std::string& ending : setting.endings) files.push_back(*setting.path + ending);
  }
  return files;
}

std::string DataFiles::missing() const {
  for (const Required& setting : required) {
    if (!setting.is_set) fail("data.{} is not set: {}", setting.key, needs);
  }
  for (const DataSet& set : sets) {
    for (const DataSetting& setting : set.settings) {
      if (setting.path->empty() && !setting.endings.empty()) fail("{} is not set: {}", setting.key, needs);
    }
  }
  for (const DataSet& set : sets) {
    for (const std::string& file : set.files()) {
      if (file_exists(file)) continue;
      const std::string sentence = fmt::format("{} lacks the file {}", what, file);
      return how_to_get.empty() ? sentence : sentence + ": " + how_to_get;
    }
  }
  return "";
}

void DataFiles::require() const {
  if (const std::string sentence = missing(); !sentence.empty()) throw DataError(sentence);
}

bool DataFiles::has_checksums() const {
  return std::none_of(sets.begin(), sets.end(), [](const DataSet& set) { return set.sha256->empty(); });
}

void DataFiles::fingerprint() const {
  for (const DataSet& set : sets) *set.sha256 = files_sha256(set.files(), expected);
}

void DataFiles::verify() const {
  for (const DataSet& set : sets) {
    const std::vector<std::string> files = set.files();
    if (!std::all_of(files.begin(), files.end(), file_exists)) continue;
    if (files_sha256(files, expected) == *set.sha256) continue;
    throw DataError(fmt::format("{} {} that this run was planned with; restore {}, or plan a new run",
                                listed(files, "and"), files.size() == 1 ? "is not the file" : "are not the files",
                                files.size() == 1 ? "it" : "those"));
  }
}

void DataFiles::check() const {
  if (has_checksums()) return verify();
  require();
  fingerprint();
}

std::vector<std::string> DataFiles::doubts() const {
  if (expected != kTextFile && expected != kPlainText) return {};
  std::map<std::string_view, std::string> files_of;  // look → "data.train (train.txt), data.dev (dev.txt)"
  for (const DataSet& set : sets) {
    for (const DataSetting& setting : set.settings) {
      for (const std::string& ending : setting.endings) {
        const std::string file = *setting.path + ending;
        const std::string_view look = cached_look(file, expected);
        if (look.empty()) continue;
        std::string& files = files_of[look];
        const std::string name = printable(std::filesystem::path(file).filename().string());
        files += fmt::format("{}{} ({}{})", files.empty() ? "" : ", ", setting.key, name,
                             file_exists(file + ".raw") ? fmt::format("; {}.raw is beside it", name) : "");
      }
    }
  }
  std::vector<std::string> sentences;
  for (const auto& [look, files] : files_of) sentences.push_back(fmt::format("{}: the text {}", files, look));
  return sentences;
}

std::string named(std::string_view noun, const std::string& name) {
  return name.empty() ? fmt::format("the {}", noun) : fmt::format("the {} {}", noun, name);
}

Field name_field(const char* meaning, bool has_checksums) {
  return {.key = "name", .meaning = meaning, .identity = has_checksums ? Identity::kLocal : Identity::kResult};
}

Field path_field(const char* key, const char* meaning, std::string_view switched_off_by) {
  return {.key = key, .meaning = meaning, .identity = Identity::kLocal, .switched_off_by = switched_off_by};
}

Field checksum_field(const char* key, const char* meaning, std::string_view switched_off_by) {
  return {.key = key, .meaning = meaning, .neutral = "", .switched_off_by = switched_off_by};
}

std::string files_sha256(std::span<const std::string> files, std::string_view expected) {
  std::vector<std::string> sums;
  for (const std::string& file : files) sums.push_back(cached_sha256(file, expected));
  return combined(sums);
}

void refuse_compressed(std::string_view bytes, const std::string& file) {
  struct Format {
    size_t at;  // of the magic number; that of bzip2's first block, because its header is text
    std::string_view magic, name, unpack;
  };
  constexpr Format kFormats[] = {{0, "\x1f\x8b", "gzip", "gunzip"},
                                 {0, "\xfd\x37zXZ", "xz", "unxz"},
                                 {0, "\x28\xb5\x2f\xfd", "zstd", "unzstd"},
                                 {4, "1AY&SY", "bzip2", "bunzip2"},
                                 {0, "PK\x03\x04", "zip", "unzip"}};
  for (const Format& format : kFormats) {
    if (bytes.substr(std::min(format.at, bytes.size())).starts_with(format.magic)) {
      fail("{} is compressed with {}; unpack it with {}", file, format.name, format.unpack);
    }
  }
}

FileStart read_start(const std::string& file, int64_t bytes) {
  static Cache<std::pair<std::string, FileStamp>, FileStart> known(kCachedFiles);
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return first_bytes(file, bytes);  // throws
  return known.get({fmt::format("{} bytes of {}", bytes, file), FileStamp(info)},
                   [&] { return first_bytes(file, bytes); });
}

std::vector<std::string> read_files(const DataSet& set) {
  const std::vector<std::string> files = set.files();
  std::vector<std::string> contents;
  std::vector<std::string> sums;
  for (const std::string& file : files) {
    contents.push_back(read_regular_file(file, std::numeric_limits<uint64_t>::max()));
    refuse_compressed(contents.back(), file);
    if (!set.sha256->empty()) sums.push_back(sha256(contents.back()));
  }
  if (!set.sha256->empty() && combined(sums) != *set.sha256) {
    throw DataError(fmt::format("{} changed while it was read; run again when no program writes to {}",
                                listed(files, "or"), files.size() == 1 ? "it" : "them"));
  }
  return contents;
}

}  // namespace tearless::engine
