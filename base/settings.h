// Settings are plain structs with defaults; one describe() a struct says each field's key, meaning and limits, once.
// From that one description come the reader (with leftover keys and "did you mean"), the canonical text that a run's
// identity is hashed from, the generated documentation, and the test that walks every key.
//
//   struct AdamOptions { double beta1 = 0.9; … };
//   inline void describe(SettingsVisitor& v, AdamOptions& o) {
//     v.number({.key = "beta1", .meaning = "decay of the first moment", .min = 0, .max = 1}, o.beta1);
//   }
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tearless {

/// How a setting enters a run's identity.
enum class Identity {
  kResult,  ///< the result depends on it: part of the canonical text
  kLocal,   ///< paths, threads, logging: never part of it
};

/// What stands beside a field.
struct Field {
  std::string key;      // the last part of the dotted name
  std::string meaning;  // one phrase; units and paper source
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  // for words: the legal ones (empty: any text)
  // The value at which the setting is as if it did not exist: it is then left out of the canonical text. Frozen for
  // ever, and not the default: a later setting must not change the identity of older runs, a changed default must.
  std::optional<nlohmann::json> neutral = std::nullopt;
  Identity identity = Identity::kResult;
  // False where the other settings make this one meaningless (beta of an optimiser that has none): read, but left out
  // of the canonical text, so that it cannot split one run into two.
  bool applies = true;
};

/// Visits every field of a settings struct, in tables named like TOML's.
class SettingsVisitor {
 public:
  virtual ~SettingsVisitor() = default;
  virtual void flag(const Field& field, bool& value) = 0;
  virtual void integer(const Field& field, int64_t& value) = 0;
  virtual void number(const Field& field, double& value) = 0;
  virtual void word(const Field& field, std::string& value) = 0;
  /// A number that may be left unset, for a default that depends on other settings.
  virtual void optional_integer(const Field& field, std::optional<int64_t>& value) = 0;
  virtual void optional_number(const Field& field, std::optional<double>& value) = 0;

  /// Visits a nested struct as the table `name`.
  template <class Options>
  void table(const std::string& name, Options& options) {
    prefix_.push_back(name);
    describe(*this, options);
    prefix_.pop_back();
  }

  /// Visits an enum by its names, given in the enum's order.
  template <class Enum, size_t N>
  void choice(Field field, Enum& value, const std::array<std::string_view, N>& names) {
    field.choices.assign(names.begin(), names.end());
    std::string name(names.at(static_cast<size_t>(value)));
    word(field, name);
    for (size_t i = 0; i < N; ++i) {
      if (names[i] == name) value = static_cast<Enum>(i);
    }
  }

 protected:
  /// The field's full dotted name, e.g. "train.schedule.warmup_updates".
  std::string dotted(const Field& field) const;

 private:
  std::vector<std::string> prefix_;
};

using Describe = std::function<void(SettingsVisitor&)>;

/// Settings as they were written: dotted key → value, and where it stands, for messages ("grid.toml:12").
struct WrittenSettings {
  std::map<std::string, nlohmann::json> values;
  std::map<std::string, std::string> places;
  std::string name;  // the file, or another name of the whole

  std::string place_of(const std::string& key) const;
};

/// Reads a TOML file into dotted keys. UserError with file and line for a syntax error, a date, or an array of tables.
WrittenSettings read_toml_settings(const std::filesystem::path& file);
WrittenSettings parse_toml_settings(std::string_view text, const std::string& name);

/// Fills a struct: keys that are not written keep their default. UserError for an unknown key (with its nearest
/// neighbour), a wrong type, or a value out of range (with the range).
void read_settings(const WrittenSettings& written, const Describe& describe_all);

/// One `key = value` line a setting, sorted by key, numbers in shortest round-trip form: valid TOML. Settings of the
/// asked identity only; those at their neutral value and those that do not apply are left out of the kResult text.
std::string canonical_settings(Identity identity, const Describe& describe_all);

/// Every field in order of description, with its default as written in the struct.
struct DescribedField {
  std::string key;
  std::string type;  // "true/false", "integer", "number", "text"
  nlohmann::json value;
  Field field;
};
std::vector<DescribedField> list_settings(const Describe& describe_all);

/// `{ "a": true }` → `a = true`: one TOML value on one line.
std::string toml_value(const nlohmann::json& value);

}  // namespace tearless
