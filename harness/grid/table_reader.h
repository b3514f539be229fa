// Reads one TOML table of a grid file: values by key with their types checked, and at the end no key may be left that
// nobody asked for. For .cc files of this room only.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/toml.h"

namespace tearless::harness {

class TableReader {
 public:
  /// `what` is how messages call the table ("[table]"; "" for the file itself). Borrows `table`.
  TableReader(const toml::table& table, std::string what, std::string file)
      : table_(table), what_(std::move(what)), file_(std::move(file)) {}

  const std::string& file() const { return file_; }
  std::string place() const { return place(table_); }
  std::string place(const std::string& key) const;  ///< of a key's value; of the table where the key is absent
  std::string place(const toml::node& node) const;

  /// Each is empty (or null) where the key is absent and a UserError where it has another type.
  std::optional<std::string> text(const std::string& key);
  std::optional<double> number(const std::string& key);
  std::vector<std::string> texts(const std::string& key);  ///< one text or a list of them
  const toml::table* table(const std::string& key);
  const toml::array* list(const std::string& key);
  const toml::node* any(const std::string& key);

  /// `text`, which must be one of `choices`; the index of it.
  size_t choice(const std::string& key, const std::vector<std::string>& choices, size_t otherwise);

  /// UserError naming the first unknown key in the file, its nearest neighbour and all that are known. `if_a_table` is
  /// added where that key is a table and like none of them.
  void refuse_leftovers(const std::string& if_a_table = "") const;

 private:
  std::string name(const std::string& key) const { return what_.empty() ? key : what_ + " " + key; }
  [[noreturn]] void wrong_type(const std::string& key, const toml::node& node, const char* wanted) const;

  const toml::table& table_;
  std::string what_;
  std::string file_;
  std::vector<std::string> known_;
};

/// The keys of a table in the order in which the file writes them (toml++ sorts them by name).
std::vector<std::pair<std::string, const toml::node*>> in_written_order(const toml::table& table);

}  // namespace tearless::harness
