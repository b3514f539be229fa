// Settings. A group of settings is a plain struct with defaults and a function describe(), which states the key,
// meaning and limits of each field once. From it come the settings reader (with its checks for unknown keys), the
// canonical text that a run's id is hashed from, the generated documentation and the test of every key.
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
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tearless {

/// Whether a setting is part of a run's identity.
enum class Identity {
  kResult,  ///< the result depends on it: part of the canonical text in run.toml
  kLocal,   ///< paths, threads, logging: never part of it, written to local.toml
};

/// The description of one setting. Its texts are views of literals or of static storage: `check` describes the settings
/// of each of 100,000 runs, and copies of the texts would be most of the work.
struct Field {
  std::string_view key;                                   // the last part of the dotted name
  std::string_view meaning;                               // one phrase, with unit and source in the paper
  double min = -std::numeric_limits<double>::infinity();  // smallest legal number, inclusive
  double max = std::numeric_limits<double>::infinity();   // largest legal number, inclusive
  std::span<const std::string_view> choices = {};         // the legal words; empty: any text
  // The value at which the setting has no effect. At this value it is left out of the canonical text, so that adding a
  // setting does not change the ids of older runs. It is not the default and must never change; a changed default does
  // change ids.
  std::optional<nlohmann::json> neutral = std::nullopt;
  Identity identity = Identity::kResult;
  // The word for an optional number that is unset, such as "train.seed" for a seed that follows another one. With a
  // word the unset value is read and written as that word; without one it is left out.
  std::string_view unset_word = {};
  // The dotted key of the setting that makes this one meaningless ("train.optimiser.kind" for β of an optimiser that
  // has none); of several the first; "": none does. The setting is then read but left out of the canonical text, so
  // that two equal runs do not get two ids.
  std::string_view switched_off_by = {};
};

/// Visits every field of a settings struct. Nested structs are tables, as in TOML.
class SettingsVisitor {
 public:
  virtual ~SettingsVisitor() = default;
  virtual void flag(const Field& field, bool& value) = 0;
  virtual void integer(const Field& field, int64_t& value) = 0;
  virtual void number(const Field& field, double& value) = 0;
  virtual void word(const Field& field, std::string& value) = 0;
  /// A setting that may stay unset because its default depends on other settings.
  virtual void optional_integer(const Field& field, std::optional<int64_t>& value) = 0;
  virtual void optional_number(const Field& field, std::optional<double>& value) = 0;
  virtual void optional_word(const Field& field, std::optional<std::string>& value) = 0;

  /// Visits a nested struct as the table `name`.
  template <class Options>
  void table(std::string_view name, Options& options) {
    table_of(name, [&] { describe(*this, options); });
  }
  /// Fields that `describe_fields` visits belong to the table `name`.
  template <class DescribeFields>
  void table_of(std::string_view name, DescribeFields&& describe_fields) {
    const size_t outer = prefix_.size();
    prefix_.append(name).push_back('.');
    describe_fields();
    prefix_.resize(outer);
  }

  /// Visits an enum as a word. `names` are in the order of the enumerators and have static storage.
  template <class Enum, size_t N>
  void choice(Field field, Enum& value, const std::array<std::string_view, N>& names) {
    field.choices = names;
    std::string name(names.at(static_cast<size_t>(value)));
    word(field, name);
    for (size_t i = 0; i < N; ++i) {
      if (names[i] == name) value = static_cast<Enum>(i);
    }
  }

 protected:
  /// The field's full dotted name, e.g. "train.schedule.warmup_updates".
  std::string dotted(const Field& field) const { return std::string(prefix_).append(field.key); }

 private:
  std::string prefix_;  // of the tables that are being visited: "train.schedule."
};

using Describe = std::function<void(SettingsVisitor&)>;

/// Settings as a file or a grid wrote them, not yet checked against any description.
struct WrittenSettings {
  std::map<std::string, nlohmann::json> values;  // dotted key → value
  std::map<std::string, std::string> locations;  // dotted key → location for error messages, "grid.toml:12"
  std::string name;                              // the file, or another name for error messages

  /// The location of a key; `name` if it is not known.
  std::string location_of(const std::string& key) const;
};

/// Reads a TOML file into dotted keys. UserError with file and line for a syntax error, a date, or an array of tables.
WrittenSettings read_toml_settings(const std::filesystem::path& file);

/// As read_toml_settings(), for a text that error messages call `name`.
WrittenSettings parse_toml_settings(std::string_view text, const std::string& name);

/// Fills the described structs; fields whose keys are not written keep their values, but a number that may be unset,
/// and would switch off a written setting, is unset. UserError for an unknown key (with the nearest known one), a wrong
/// type, or a value out of range (with the range).
void read_settings(const WrittenSettings& written, const Describe& describe_all);

/// The canonical text: one `key = value` line for each setting of `identity`, sorted by key, numbers in the shortest
/// form that reads back exactly. It is valid TOML. Settings that are unset are left out; so are, from the kResult text,
/// settings at their neutral value and settings that another one switches off.
std::string canonical_settings(Identity identity, const Describe& describe_all);

/// A setting with its current value.
struct DescribedField {
  std::string key;       // dotted
  std::string type;      // "true/false", "integer", "number", "text"
  nlohmann::json value;  // the struct's value, its default unless it was read; null if unset
  Field field;
};

/// Of the written settings those that results do not depend on because another setting switches them off: key → that
/// setting with its value, as TOML writes it. Local settings are never among them.
std::map<std::string, std::string> unused_settings(const WrittenSettings& written, const Describe& describe_all);

/// All settings, in the order in which describe() visits them.
std::vector<DescribedField> list_settings(const Describe& describe_all);

/// A value as TOML text on one line: true, 0.5, "text", [1, 2].
std::string toml_value(const nlohmann::json& value);

}  // namespace tearless
