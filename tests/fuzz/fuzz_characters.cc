#include "base/error.h"
#include "base/utf8.h"
#include "engine/data/character_text.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/targets.h"
#include "tests/support/paths.h"

namespace tearless::fuzz {
namespace {

using namespace tearless::engine;

bool is_compressed(std::string_view bytes) {
  try {
    refuse_compressed(bytes, "text");
    return false;
  } catch (const UserError&) {
    return true;
  }
}

}  // namespace

/// The first byte chooses unit and newlines; the others are all three texts.
int fuzz_characters(const uint8_t* data, size_t size) {
  static const test::TempFolder folder;
  std::string_view bytes = text_of(data, size);
  const uint8_t choice = take_byte(bytes);
  const SymbolOptions options{.unit = choice % 2 == 0 ? TextUnit::kByte : TextUnit::kCharacter,
                              .newlines = choice / 2 % 2 == 0};
  const std::filesystem::path file = folder / "text";
  write_new(file, bytes);
  std::string symbols(bytes);
  if (!options.newlines) std::erase(symbols, '\n');
  try {
    const auto text = character_text({.train = file.string(), .dev = file.string(), .test = file.string()}, options,
                                     [](const std::string&) {});
    std::string joined;
    for (const int32_t token : text->train) joined += text->symbols.at(static_cast<size_t>(token));
    require(joined == symbols, "the symbols are not the text");
    require(text->dev == text->train && text->test == text->train, "equal texts have other numbers");
    for (const std::string& symbol : text->symbols) {
      require(options.unit == TextUnit::kByte ? symbol.size() == 1 : utf8_length(symbol) == symbol.size(),
              "a symbol is not one byte or one character");
    }
  } catch (const UserError&) {
    require(symbols.empty() || (options.unit == TextUnit::kCharacter && !valid_utf8(bytes)) || is_compressed(bytes),
            "a text is refused without a reason");
  }
  return 0;
}

}  // namespace tearless::fuzz
