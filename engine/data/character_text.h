// Plain text for a language model, symbol by symbol: the settings of the data ([data]) and of its symbols ([text]), and
// the text as token numbers (docs/spec/tasks.md §1.1). How the tokens are read: streams.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.h"
#include "engine/data/raw_files.h"

namespace tearless::engine {

/// [data] of language_model. Its paths are not part of a run's identity; its checksums are.
struct CharacterTextOptions {
  std::string name = "";                        // for messages; part of the identity only while checksums are missing
  std::string how_to_get = "";                  // sentence shown when a file is missing
  std::string train = "", dev = "", test = "";  // plain text files, read byte for byte
  // SHA-256 of each file, filled in by DataFiles::fingerprint(); "" until then.
  std::string train_sha256 = "", dev_sha256 = "", test_sha256 = "";
};

/// What one token stands for.
enum class TextUnit {
  kByte,
  kCharacter  // a code point of UTF-8
};

/// [text] of language_model.
struct SymbolOptions {
  TextUnit unit = TextUnit::kByte;
  bool newlines = false;  // false: a line feed ends a line and is no symbol
};

void describe(SettingsVisitor& visitor, CharacterTextOptions& options);
void describe(SettingsVisitor& visitor, SymbolOptions& options);

/// The files of train, dev and test. Borrows `data`.
DataFiles data_files(CharacterTextOptions& data);

struct CharacterText {
  /// [V] The symbols of the training text by decreasing count, ties by value: one byte each, or one character in UTF-8.
  std::vector<std::string> symbols;
  std::vector<int32_t> train, dev, test;  // the symbols' numbers

  int64_t vocabulary_size() const { return static_cast<int64_t>(symbols.size()); }
};

/// Reads and encodes the three texts. Verifies the checksums of `data`, or computes them if they are not known. The
/// last results are cached in the process by checksums and settings; `say` receives messages only when files are read.
/// Throws UserError for a text without a symbol, and naming file and line for bytes that are not UTF-8 (kCharacter) and
/// a symbol of dev or test that the training text does not have; DataError for files that are missing or not those of
/// the checksums. Thread-safe.
std::shared_ptr<const CharacterText> character_text(CharacterTextOptions data, const SymbolOptions& text,
                                                    const Say& say);

}  // namespace tearless::engine
