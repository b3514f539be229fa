// Reads one TOML table of a file: returns values by key, checks their types, and finally reports keys that were never
// requested. Slow to compile, as toml.h.
//
//   TableReader reader(table, "[table]", file);
//   const auto caption = reader.text("caption");
//   reader.refuse_leftovers();
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/toml.h"

namespace tearless {

class TableReader {
 public:
  /// `what` is the table's name in messages ("[table]"; "" for the file's root). Borrows `table`.
  TableReader(const toml::table& table, std::string what, std::string file)
      : table_(table), what_(std::move(what)), file_(std::move(file)) {}

  const std::string& file() const { return file_; }
  std::string location() const { return location(table_); }

  /// "file:line" of a key's value; of the table if the key is absent.
  std::string location(const std::string& key) const;
  std::string location(const toml::node& node) const;

  bool has(const std::string& key) const { return table_.contains(key); }
  const std::vector<std::string>& known() const { return known_; }  ///< the keys that were requested

  // Each of these marks `key` as known and returns its value; nothing (or null) if the key is absent. UserError if the
  // value has another type.
  std::optional<std::string> text(const std::string& key);
  std::optional<double> number(const std::string& key);
  std::vector<std::string> texts(const std::string& key);  ///< one text or a list of them
  const toml::table* table(const std::string& key);
  std::vector<const toml::table*> tables(const std::string& key);  ///< one [key], or any number of [[key]]
  const toml::array* list(const std::string& key);
  const toml::node* any(const std::string& key);  ///< of any type

  /// The index of a text in `choices`; `otherwise` if the key is absent. UserError for a text that is not among them.
  size_t choice(const std::string& key, const std::vector<std::string>& choices, size_t otherwise);

  /// UserError for the first key of the table that was not requested, with the nearest known key and all known keys.
  /// `if_a_table` is appended to the message if that key is a table and no known key is close.
  void refuse_leftovers(const std::string& if_a_table = "") const;

 private:
  std::string name(const std::string& key) const { return what_.empty() ? key : what_ + " " + key; }
  [[noreturn]] void wrong_type(const std::string& key, const toml::node& node, const char* wanted) const;

  const toml::table& table_;
  std::string what_;
  std::string file_;
  std::vector<std::string> known_;
};

/// The entries of a table in the order of the file (toml++ sorts them by key).
std::vector<std::pair<std::string, const toml::node*>> in_written_order(const toml::table& table);

}  // namespace tearless
