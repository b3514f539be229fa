#include "harness/grid/labels.h"

#include "base/settings.h"

namespace tearless::harness {

std::string label_of(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : toml_value(value);
}

std::vector<std::string> labels_in(const toml::node& node, const std::string& key, const std::string& file) {
  const nlohmann::json value = toml_to_json(node, key, file);
  std::vector<std::string> labels;
  for (const nlohmann::json& one : value.is_array() ? value : nlohmann::json::array({value}))
    labels.push_back(label_of(one));
  return labels;
}

}  // namespace tearless::harness
