#include "engine/data/token_file.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/hash.h"

namespace tearless::engine {
namespace {

static_assert(std::endian::native == std::endian::little);

/// Numbers as `Stored` after their count, text as bytes after their count.
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

/// Reads what Writer wrote; throws where the bytes end too early.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class Stored, class Number>
  std::vector<Number> numbers() {
    const std::string_view bytes = text();
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
    return values;
  }

 private:
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) throw std::runtime_error("it ends too early");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string_view rest_;
};

/// Two bytes a token where the vocabulary allows it.
bool is_narrow(const Vocabulary& vocabulary) { return vocabulary.size() <= std::numeric_limits<uint16_t>::max(); }

void write_lines(Writer& out, const TokenLines& lines, bool narrow) {
  out.numbers<uint64_t>(lines.offsets);
  narrow ? out.numbers<uint16_t>(lines.tokens) : out.numbers<int32_t>(lines.tokens);
}

TokenLines read_lines(Reader& in, bool narrow) {
  TokenLines lines;
  lines.offsets = in.numbers<uint64_t, int64_t>();
  lines.tokens = narrow ? in.numbers<uint16_t, int32_t>() : in.numbers<int32_t, int32_t>();
  return lines;
}

struct Header {
  int64_t vocabulary = 0;
  std::string sha256;
};

Header parse_header(std::string_view line) {
  const auto json = nlohmann::json::parse(line);
  if (json.at("format").get<int>() != kTokenFileFormat) throw std::runtime_error("it has another format");
  return {json.at("vocabulary").get<int64_t>(), json.at("sha256").get<std::string>()};
}

}  // namespace

std::string token_file_bytes(const Prepared& prepared) {
  Writer out;
  const bool narrow = is_narrow(prepared.vocabulary);
  out.text(prepared.subwords->bytes());
  out.texts(prepared.vocabulary.pieces);
  out.numbers<uint8_t>(prepared.vocabulary.target_kept);
  for (const ParallelTokens* set : {&prepared.train, &prepared.dev, &prepared.test}) {
    write_lines(out, set->source_lines(), narrow);
    write_lines(out, set->target_lines(), narrow);
  }
  out.texts(prepared.dev_reference);
  out.texts(prepared.test_reference);
  const nlohmann::json header = {
      {"format", kTokenFileFormat}, {"vocabulary", prepared.vocabulary.size()}, {"sha256", sha256(out.bytes)}};
  return header.dump() + "\n" + out.bytes;
}

Prepared read_token_file(const std::filesystem::path& file, TextKind kind) {
  const std::string bytes = read_file(file);
  const size_t end_of_header = bytes.find('\n');
  if (end_of_header == std::string::npos) throw std::runtime_error("it has no first line");
  const Header header = parse_header(std::string_view(bytes).substr(0, end_of_header));
  const std::string_view rest = std::string_view(bytes).substr(end_of_header + 1);
  if (sha256(rest) != header.sha256) throw std::runtime_error("its checksum is wrong");

  Reader in(rest);
  Prepared prepared;
  prepared.subwords = read_subwords(kind, in.text());
  prepared.raw_text = kind == TextKind::kSentencepiece;
  prepared.vocabulary.pieces = in.texts();
  prepared.vocabulary.target_kept = in.numbers<uint8_t, uint8_t>();
  const bool narrow = is_narrow(prepared.vocabulary);
  for (ParallelTokens* set : {&prepared.train, &prepared.dev, &prepared.test}) {
    TokenLines source = read_lines(in, narrow);
    TokenLines target = read_lines(in, narrow);
    *set = ParallelTokens(std::move(source), std::move(target));
  }
  prepared.dev_reference = in.texts();
  prepared.test_reference = in.texts();
  return prepared;
}

std::optional<int64_t> token_file_vocabulary_size(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  try {
    return parse_header(line).vocabulary;
  } catch (const std::exception&) {
    return std::nullopt;  // damaged: prepare() will say so and make it anew
  }
}

}  // namespace tearless::engine
