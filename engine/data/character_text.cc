#include "engine/data/character_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/data/by_count.h"
#include "engine/ops/cache.h"

namespace tearless::engine {
namespace {

constexpr auto kTextUnits = std::to_array<std::string_view>({"byte", "character"});

/// One of the three texts.
struct RawText {
  std::string file, bytes;

  std::string location(size_t at) const {
    const auto lines = std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return fmt::format("{}:{}", file, lines + 1);
  }
};

/// The one to four bytes of a symbol, the first highest. In a table it is found three times as fast as its text.
using Symbol = uint32_t;

Symbol symbol_of(std::string_view bytes) {
  Symbol symbol = 0;
  for (const char byte : bytes) symbol = symbol << 8 | static_cast<unsigned char>(byte);
  return symbol;
}

std::string text_of(Symbol symbol) {
  std::string text;
  for (; symbol > 0 || text.empty(); symbol >>= 8) text.insert(text.begin(), static_cast<char>(symbol & 0xFF));
  return text;
}

/// Calls take(symbol, its offset in the bytes) for each symbol of the text.
template <class Take>
void for_each_symbol(const RawText& text, const SymbolOptions& options, const Take& take) {
  const std::string_view bytes = text.bytes;
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = options.unit == TextUnit::kByte ? 1 : utf8_length(bytes.substr(at));
    if (length == 0) {
      fail("{}: not valid UTF-8; convert the file, for example with iconv, or set text.unit = \"byte\"",
           text.location(at));
    }
    const Symbol symbol = symbol_of(bytes.substr(at, length));
    if (options.newlines || symbol != '\n') take(symbol, at);
    at += length;
  }
}

std::string named_symbol(Symbol symbol, TextUnit unit) {
  if (unit == TextUnit::kByte) return fmt::format("the byte 0x{:02X}", symbol);
  return fmt::format("the character \"{}\"", printable(text_of(symbol)));
}

std::vector<std::string> symbols_of(const RawText& train, const SymbolOptions& options) {
  std::unordered_map<Symbol, int64_t> counts;
  for_each_symbol(train, options, [&](Symbol symbol, size_t) { ++counts[symbol]; });
  std::vector<std::pair<std::string, int64_t>> of_texts;
  for (const auto& [symbol, count] : counts) of_texts.emplace_back(text_of(symbol), count);
  return by_count(of_texts, 1);  // the byte order of UTF-8 is that of the code points
}

using SymbolNumbers = std::unordered_map<Symbol, int32_t>;

std::vector<int32_t> numbers_of(const RawText& text, const SymbolOptions& options, const SymbolNumbers& numbers) {
  std::vector<int32_t> tokens;
  tokens.reserve(text.bytes.size());
  for_each_symbol(text, options, [&](Symbol symbol, size_t at) {
    const auto found = numbers.find(symbol);
    if (found == numbers.end()) {
      fail(
          "{}: {} does not occur in the training text, so that it has no number; replace it, or train on text that "
          "has it",
          text.location(at), named_symbol(symbol, options.unit));
    }
    tokens.push_back(found->second);
  });
  if (tokens.empty()) {
    fail("{} {}: put the text into it", text.file, text.bytes.empty() ? "is empty" : "has nothing but ends of lines");
  }
  return tokens;
}

CharacterText read_and_encode(const DataFiles& files, const SymbolOptions& options) {
  const auto raw = [&](size_t set) {
    return RawText{.file = files.sets[set].files().front(), .bytes = read_files(files.sets[set]).front()};
  };
  CharacterText out;
  const RawText train = raw(0);
  out.symbols = symbols_of(train, options);
  SymbolNumbers numbers;
  for (const std::string& symbol : out.symbols) {
    numbers.emplace(symbol_of(symbol), static_cast<int32_t>(numbers.size()));
  }
  out.train = numbers_of(train, options, numbers);
  out.dev = numbers_of(raw(1), options, numbers);
  out.test = numbers_of(raw(2), options, numbers);
  return out;
}

}  // namespace

void describe(SettingsVisitor& v, CharacterTextOptions& o) {
  const bool has_checksums = !o.train_sha256.empty() && !o.dev_sha256.empty() && !o.test_sha256.empty();
  v.word(name_field("name of the text, for messages", has_checksums), o.name);
  v.word(path_field("how_to_get", "sentence shown when a file is missing"), o.how_to_get);
  v.word(path_field("train", "training text: a plain text file, relative to the file that names it"), o.train);
  v.word(path_field("dev", "development text, likewise"), o.dev);
  v.word(path_field("test", "test text, likewise"), o.test);
  v.word(checksum_field("train_sha256", "checksum of the training text, filled in by check"), o.train_sha256);
  v.word(checksum_field("dev_sha256", "checksum of the development text, filled in by check"), o.dev_sha256);
  v.word(checksum_field("test_sha256", "checksum of the test text, filled in by check"), o.test_sha256);
}

void describe(SettingsVisitor& v, SymbolOptions& o) {
  v.choice({.key = "unit", .meaning = "what is predicted one after another: bytes, or characters of UTF-8"}, o.unit,
           kTextUnits);
  v.flag({.key = "newlines",
          .meaning = "whether the line feed is one of them; if not, the last of a line is followed by the first of the "
                     "next, as in the usual preparation of enwik8"},
         o.newlines);
}

DataFiles data_files(CharacterTextOptions& data) {
  return {.what = named("text", data.name),
          .how_to_get = data.how_to_get,
          .needs = "[data] needs train, dev and test, a text file each",
          .sets = {{{{"data.train", &data.train}}, &data.train_sha256},
                   {{{"data.dev", &data.dev}}, &data.dev_sha256},
                   {{{"data.test", &data.test}}, &data.test_sha256}},
          .expected = kPlainText};
}

std::shared_ptr<const CharacterText> character_text(CharacterTextOptions data, const SymbolOptions& text,
                                                    const Say& say) {
  const DataFiles files = data_files(data);
  files.check();
  SymbolOptions described_text = text;
  const std::string key = canonical_settings(Identity::kResult, [&](SettingsVisitor& v) {
    v.table("data", data);
    v.table("text", described_text);
  });
  static Cache<std::string, std::shared_ptr<const CharacterText>> known(/*entries=*/2);  // enwik8: 400 MB
  return known.get(key, [&] {
    files.require();
    auto read = std::make_shared<const CharacterText>(read_and_encode(files, text));
    say(fmt::format("read {}: {} training symbols, {} dev, {} test; vocabulary {}",
                    data.name.empty() ? "the text" : data.name, read->train.size(), read->dev.size(), read->test.size(),
                    read->vocabulary_size()));
    return read;
  });
}

}  // namespace tearless::engine
