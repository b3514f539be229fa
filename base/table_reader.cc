#include "base/table_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/nearest.h"

namespace tearless {

std::string TableReader::location(const toml::node& node) const {
  return fmt::format("{}:{}", file_, node.source().begin.line);
}

std::string TableReader::location(const std::string& key) const {
  const toml::node* node = table_.get(key);
  return location(node ? *node : table_);
}

const toml::node* TableReader::any(const std::string& key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.push_back(key);
  return table_.get(key);
}

void TableReader::wrong_type(const std::string& key, const toml::node& node, const char* wanted) const {
  fail("{}: {} must be {}", location(node), name(key), wanted);
}

std::optional<std::string> TableReader::text(const std::string& key) {
  const toml::node* node = any(key);
  if (!node) return std::nullopt;
  if (!node->is_string()) wrong_type(key, *node, "text in quotes");
  return node->as_string()->get();
}

std::optional<double> TableReader::number(const std::string& key) {
  const toml::node* node = any(key);
  if (!node) return std::nullopt;
  const std::optional<double> number = node->is_number() ? node->value<double>() : std::nullopt;
  if (!number || !std::isfinite(*number)) wrong_type(key, *node, "a finite number");
  return number;
}

std::vector<std::string> TableReader::texts(const std::string& key) {
  const toml::node* node = any(key);
  if (!node) return {};
  if (const auto* one = node->as_string()) return {one->get()};
  std::vector<std::string> all;
  const toml::array* list = node->as_array();
  if (!list) wrong_type(key, *node, "a text or a list of texts");
  for (const toml::node& item : *list) {
    if (!item.is_string()) wrong_type(key, item, "a text or a list of texts");
    all.push_back(item.as_string()->get());
  }
  return all;
}

const toml::table* TableReader::table(const std::string& key) {
  const toml::node* node = any(key);
  if (node && !node->is_table()) wrong_type(key, *node, fmt::format("a table, as in {} = {{ … }}", key).c_str());
  return node ? node->as_table() : nullptr;
}

std::vector<const toml::table*> TableReader::tables(const std::string& key) {
  const toml::node* node = any(key);
  if (!node) return {};
  if (node->is_table()) return {node->as_table()};
  std::vector<const toml::table*> all;
  const toml::array* list = node->as_array();
  if (!list) wrong_type(key, *node, fmt::format("a table, as in {} = {{ … }}", key).c_str());
  for (const toml::node& item : *list) {
    if (!item.is_table()) wrong_type(key, item, fmt::format("a table, as in {} = {{ … }}", key).c_str());
    all.push_back(item.as_table());
  }
  return all;
}

const toml::array* TableReader::list(const std::string& key) {
  const toml::node* node = any(key);
  if (node && !node->is_array()) wrong_type(key, *node, "a list");
  return node ? node->as_array() : nullptr;
}

size_t TableReader::choice(const std::string& key, const std::vector<std::string>& choices, size_t otherwise) {
  const std::optional<std::string> chosen = text(key);
  if (!chosen) return otherwise;
  const auto it = std::find(choices.begin(), choices.end(), *chosen);
  if (it == choices.end()) {
    fail("{}: {} = \"{}\" is not known{}; it must be one of: {}", location(key), name(key), *chosen,
         did_you_mean(*chosen, choices), fmt::join(choices, ", "));
  }
  return static_cast<size_t>(it - choices.begin());
}

void TableReader::refuse_leftovers(const std::string& if_a_table) const {
  for (const auto& [key, node] : in_written_order(table_)) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string neighbour = did_you_mean(key, known_);
    fail("{}: unknown key \"{}\"{}{}; known keys: {}{}", location(*node), key, what_.empty() ? "" : " in " + what_,
         neighbour, fmt::join(known_, ", "), node->is_table() && neighbour.empty() ? if_a_table : "");
  }
}

std::vector<std::pair<std::string, const toml::node*>> in_written_order(const toml::table& table) {
  struct Entry {
    toml::source_position position;
    std::string key;
    const toml::node* node;
  };
  std::vector<Entry> entries;
  for (const auto& [key, node] : table) entries.push_back({key.source().begin, std::string(key.str()), &node});
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.position < b.position; });
  std::vector<std::pair<std::string, const toml::node*>> ordered;
  for (const Entry& entry : entries) ordered.emplace_back(entry.key, entry.node);
  return ordered;
}

}  // namespace tearless
