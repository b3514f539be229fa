#include "engine/data/token_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/file_stamp.h"
#include "base/files.h"
#include "base/hash.h"
#include "engine/ops/cache.h"

namespace tearless::engine {
namespace {

static_assert(std::endian::native == std::endian::little);

/// Appends lists of numbers (stored as type `Stored`) and texts, each preceded by its size in bytes.
class Writer {
 public:
  std::string bytes;

  template <class Stored, class Number>
  void numbers(const std::vector<Number>& values) {
    const std::vector<Stored> stored(values.begin(), values.end());
    text({reinterpret_cast<const char*>(stored.data()), stored.size() * sizeof(Stored)});
  }
  void text(std::string_view value) {
    const uint64_t size = value.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(value);
  }
  void texts(const std::vector<std::string>& values) {
    std::vector<uint64_t> sizes;
    std::string all;
    for (const std::string& value : values) {
      sizes.push_back(value.size());
      all += value;
    }
    numbers<uint64_t>(sizes);
    text(all);
  }
};

void require_intact(bool holds, const char* otherwise) {
  if (!holds) throw std::runtime_error(otherwise);
}

/// Reads what Writer wrote; throws std::runtime_error for anything else.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class Stored, class Number>
  std::vector<Number> numbers() {
    const std::string_view bytes = text();
    require_intact(bytes.size() % sizeof(Stored) == 0, "a list ends within a number");
    std::vector<Stored> stored(bytes.size() / sizeof(Stored));
    if (!stored.empty()) std::memcpy(stored.data(), bytes.data(), stored.size() * sizeof(Stored));
    return {stored.begin(), stored.end()};
  }
  std::string_view text() {
    uint64_t size = 0;
    std::memcpy(&size, take(sizeof size).data(), sizeof size);
    return take(size);
  }
  std::vector<std::string> texts() {
    const auto sizes = numbers<uint64_t, uint64_t>();
    Reader all(text());
    std::vector<std::string> values;
    for (const uint64_t size : sizes) values.emplace_back(all.take(size));
    all.require_end();
    return values;
  }
  void require_end() const { require_intact(rest_.empty(), "more bytes follow its last list"); }

 private:
  std::string_view take(uint64_t size) {
    require_intact(size <= rest_.size(), "it ends too early");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string_view rest_;
};

/// Whether tokens are stored in two bytes.
bool is_narrow(const Vocabulary& vocabulary) {
  const auto [source, target] = vocabulary.sizes();
  return std::max(source, target) <= std::numeric_limits<uint16_t>::max();
}

void write_lines(Writer& out, const TokenLines& lines, bool narrow) {
  out.numbers<uint64_t>(lines.offsets);
  narrow ? out.numbers<uint16_t>(lines.tokens) : out.numbers<int32_t>(lines.tokens);
}

/// Lines whose offsets and tokens are valid: batches and kernels index with both without further checks.
TokenLines read_lines(Reader& in, int64_t vocabulary, bool narrow) {
  TokenLines lines;
  const auto offsets = in.numbers<uint64_t, uint64_t>();
  lines.tokens = narrow ? in.numbers<uint16_t, int32_t>() : in.numbers<int32_t, int32_t>();
  require_intact(!offsets.empty() && offsets.front() == 0 && offsets.back() == lines.tokens.size() &&
                     std::is_sorted(offsets.begin(), offsets.end()),
                 "the lines of a set do not lie one after another");
  lines.offsets.assign(offsets.begin(), offsets.end());
  require_intact(std::all_of(lines.tokens.begin(), lines.tokens.end(),
                             [&](int32_t token) { return token >= 0 && token < vocabulary; }),
                 "a token is outside the vocabulary");
  return lines;
}

ParallelTokens read_set(Reader& in, const VocabularySizes& vocabulary, bool narrow) {
  TokenLines source = read_lines(in, vocabulary.source, narrow);
  TokenLines target = read_lines(in, vocabulary.target, narrow);
  require_intact(source.size() == target.size(), "the two sides of a set have different numbers of lines");
  for (int64_t line = 0; line < source.size(); ++line) {
    require_intact(source.length(line) > 0 && source[line].back() == kEos, "a source line lacks its end");
  }
  return {std::move(source), std::move(target)};
}

struct Header {
  VocabularySizes vocabulary;
  bool has_source = false;           // a vocabulary of the source side
  bool has_source_subwords = false;  // a subword model of the source side
  std::string sha256;
};

Header parse_header(std::string_view line) {
  const auto json = nlohmann::json::parse(line);
  require_intact(json.at("format").get<int>() == kTokenFileFormat, "it has another format");
  const auto target = json.at("vocabulary").get<int64_t>();
  return {{json.value("source_vocabulary", target), target},
          json.contains("source_vocabulary"),
          json.value("source_subwords", false),
          json.at("sha256").get<std::string>()};
}

Vocabulary read_vocabulary(Reader& in, const Header& header) {
  Vocabulary vocabulary;
  vocabulary.pieces = in.texts();
  vocabulary.in_target = in.numbers<uint8_t, uint8_t>();
  if (header.has_source) vocabulary.source_pieces = in.texts();
  require_intact(vocabulary.sizes() == header.vocabulary &&
                     std::min(header.vocabulary.source, header.vocabulary.target) >= kFirstPiece,
                 "the vocabulary has another size than the first line says");
  require_intact(vocabulary.in_target.size() == vocabulary.pieces.size(),
                 "the vocabulary's two lists differ in length");
  require_intact(
      std::all_of(vocabulary.in_target.begin(), vocabulary.in_target.end(), [](uint8_t k) { return k <= 1; }),
      "a flag of the vocabulary is neither 0 nor 1");
  return vocabulary;
}

std::vector<std::string> read_references(Reader& in, const ParallelTokens& set) {
  std::vector<std::string> lines = in.texts();
  require_intact(static_cast<int64_t>(lines.size()) == set.size(), "a set and its references differ in length");
  return lines;
}

}  // namespace

std::string token_file_bytes(const Prepared& prepared) {
  Writer out;
  const bool narrow = is_narrow(prepared.vocabulary);
  out.text(prepared.subwords->bytes());
  if (prepared.source_subwords) out.text(prepared.source_subwords->bytes());
  out.texts(prepared.vocabulary.pieces);
  out.numbers<uint8_t>(prepared.vocabulary.in_target);
  const bool has_source = !prepared.vocabulary.source_pieces.empty();
  if (has_source) out.texts(prepared.vocabulary.source_pieces);
  for (const ParallelTokens* set : {&prepared.train, &prepared.dev, &prepared.test}) {
    write_lines(out, set->source, narrow);
    write_lines(out, set->target, narrow);
  }
  out.texts(prepared.dev_reference);
  out.texts(prepared.test_reference);
  nlohmann::json header = {
      {"format", kTokenFileFormat}, {"vocabulary", prepared.vocabulary.size()}, {"sha256", sha256(out.bytes)}};
  if (has_source) header["source_vocabulary"] = prepared.vocabulary.sizes().source;
  if (prepared.source_subwords) header["source_subwords"] = true;
  return header.dump() + "\n" + out.bytes;
}

Prepared read_token_file(const std::filesystem::path& file, TextKind kind) {
  return parse_token_file(read_file(file), kind);
}

Prepared parse_token_file(std::string_view bytes, TextKind kind) {
  const size_t end_of_header = bytes.find('\n');
  require_intact(end_of_header != std::string_view::npos, "it has no first line");
  const Header header = parse_header(bytes.substr(0, end_of_header));
  const std::string_view rest = bytes.substr(end_of_header + 1);
  require_intact(sha256(rest) == header.sha256, "its checksum is wrong");

  Reader in(rest);
  Prepared prepared;
  prepared.subwords = read_subwords(kind, in.text());
  if (header.has_source_subwords) prepared.source_subwords = read_subwords(kind, in.text());
  prepared.vocabulary = read_vocabulary(in, header);
  const bool narrow = is_narrow(prepared.vocabulary);
  for (ParallelTokens* set : {&prepared.train, &prepared.dev, &prepared.test}) {
    *set = read_set(in, header.vocabulary, narrow);
    require_intact(set->size() > 0, "a set is empty");
  }
  prepared.dev_reference = read_references(in, prepared.dev);
  prepared.test_reference = read_references(in, prepared.test);
  in.require_end();
  return prepared;
}

std::optional<VocabularySizes> token_file_vocabulary_sizes(const std::filesystem::path& file) {
  static Cache<std::pair<std::string, FileStamp>, std::optional<VocabularySizes>> known(/*entries=*/256);
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  return known.get({file.string(), FileStamp(info)}, [&]() -> std::optional<VocabularySizes> {
    std::ifstream in(file, std::ios::binary);
    std::string line;
    if (!std::getline(in, line)) return std::nullopt;
    try {
      return parse_header(line).vocabulary;
    } catch (const std::exception&) {
      return std::nullopt;  // damaged: prepare() reports and recreates it
    }
  });
}

}  // namespace tearless::engine
