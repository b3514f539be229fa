#include "base/settings.h"

#include <algorithm>
#include <cmath>

#include "base/nearest.h"
#include "base/toml.h"

namespace tearless {
namespace {

using nlohmann::json;

std::string range_text(const Field& field) {
  const bool low = std::isfinite(field.min);
  const bool high = std::isfinite(field.max);
  if (low && high) return fmt::format("between {} and {}", field.min, field.max);
  if (low) return fmt::format("at least {}", field.min);
  return fmt::format("at most {}", field.max);
}

/// Passes fields of every type to one function, as JSON. The base of all visitors except the reader.
class JsonVisitor : public SettingsVisitor {
 public:
  void flag(const Field& f, bool& v) override { see(f, "true/false", v); }
  void integer(const Field& f, int64_t& v) override { see(f, "integer", v); }
  void number(const Field& f, double& v) override { see(f, "number", v); }
  void word(const Field& f, std::string& v) override { see(f, "text", v); }
  void optional_integer(const Field& f, std::optional<int64_t>& v) override {
    see(f, "integer", v ? json(*v) : json());
  }
  void optional_number(const Field& f, std::optional<double>& v) override { see(f, "number", v ? json(*v) : json()); }

 protected:
  virtual void see(const Field& field, const char* type, json value) = 0;
};

class Lister final : public JsonVisitor {
 public:
  std::vector<DescribedField> fields;

 private:
  void see(const Field& field, const char* type, json value) override {
    fields.push_back({dotted(field), type, std::move(value), field});
  }
};

class Canonical final : public JsonVisitor {
 public:
  explicit Canonical(Identity identity) : identity_(identity) {}
  std::map<std::string, std::string> lines;

 private:
  void see(const Field& field, const char*, json value) override {
    if (field.identity != identity_ || value.is_null()) return;
    if (identity_ == Identity::kResult && (!field.applies || (field.neutral && *field.neutral == value))) return;
    const std::string key = dotted(field);
    lines[key] = fmt::format("{} = {}\n", key, toml_value(value));
  }
  Identity identity_;
};

class Reader final : public SettingsVisitor {
 public:
  explicit Reader(const WrittenSettings& written) : written_(written) {}

  void flag(const Field& field, bool& value) override {
    if (const json* found = find(field)) {
      if (!found->is_boolean()) wrong_type(field, *found, "true or false");
      value = found->get<bool>();
    }
  }
  void integer(const Field& field, int64_t& value) override {
    if (const json* found = find(field)) {
      if (!found->is_number_integer()) wrong_type(field, *found, "a whole number");
      value = found->get<int64_t>();
      check_range(field, static_cast<double>(value), *found);
    }
  }
  void number(const Field& field, double& value) override {
    if (const json* found = find(field)) {
      if (!found->is_number()) wrong_type(field, *found, "a number");
      value = found->get<double>();
      check_range(field, value, *found);
    }
  }
  void word(const Field& field, std::string& value) override {
    const json* found = find(field);
    if (!found) return;
    if (!found->is_string()) wrong_type(field, *found, "text in quotes");
    const auto text = found->get<std::string>();
    if (!field.choices.empty() && std::find(field.choices.begin(), field.choices.end(), text) == field.choices.end()) {
      fail("{}: {} = \"{}\" is not known{}; it must be one of: {}", location(field), dotted(field), text,
           did_you_mean(text, field.choices), fmt::join(field.choices, ", "));
    }
    value = text;
  }
  void optional_integer(const Field& field, std::optional<int64_t>& value) override {
    int64_t read = 0;
    integer(field, read);
    if (written_.values.contains(dotted(field))) value = read;
  }
  void optional_number(const Field& field, std::optional<double>& value) override {
    double read = 0;
    number(field, read);
    if (written_.values.contains(dotted(field))) value = read;
  }

  void refuse_leftovers() const {
    for (const auto& [key, value] : written_.values) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        const auto in_section = [&](const std::string& other) { return other.starts_with(key + "."); };
        if (const auto it = std::find_if(known_.begin(), known_.end(), in_section); it != known_.end()) {
          fail("{}: \"{}\" is a section, not a setting; name one of its settings, such as {}",
               written_.location_of(key), key, *it);
        }
        fail("{}: unknown setting \"{}\"{}", written_.location_of(key), key, did_you_mean(key, known_));
      }
    }
  }

 private:
  const json* find(const Field& field) {
    known_.push_back(dotted(field));
    const auto it = written_.values.find(known_.back());
    return it == written_.values.end() ? nullptr : &it->second;
  }
  std::string location(const Field& field) const { return written_.location_of(dotted(field)); }
  [[noreturn]] void wrong_type(const Field& field, const json& found, const char* wanted) const {
    fail("{}: {} = {} must be {}", location(field), dotted(field), toml_value(found), wanted);
  }
  void check_range(const Field& field, double value, const json& found) const {
    // In this form the comparison also rejects NaN.
    if (!(value >= field.min && value <= field.max) || !std::isfinite(value)) {
      const bool bounded = std::isfinite(field.min) || std::isfinite(field.max);
      fail("{}: {} = {} is out of range; it must be {}", location(field), dotted(field), toml_value(found),
           bounded ? range_text(field) : "a finite number");
    }
  }

  const WrittenSettings& written_;
  std::vector<std::string> known_;
};

}  // namespace

std::string SettingsVisitor::dotted(const Field& field) const {
  std::string name;
  for (const std::string& table : prefix_) name += table + ".";
  return name + field.key;
}

std::string WrittenSettings::location_of(const std::string& key) const {
  const auto it = locations.find(key);
  return it == locations.end() ? name : it->second;
}

WrittenSettings read_toml_settings(const std::filesystem::path& file) {
  return parse_toml_settings(read_toml_text(file), file.string());
}

WrittenSettings parse_toml_settings(std::string_view text, const std::string& name) {
  return flatten_toml(parse_toml(text, name), name);
}

void read_settings(const WrittenSettings& written, const Describe& describe_all) {
  Reader reader(written);
  describe_all(reader);
  reader.refuse_leftovers();
}

std::string canonical_settings(Identity identity, const Describe& describe_all) {
  Canonical canonical(identity);
  describe_all(canonical);
  std::string text;
  for (const auto& [key, line] : canonical.lines) text += line;
  return text;
}

std::vector<DescribedField> list_settings(const Describe& describe_all) {
  Lister lister;
  describe_all(lister);
  return std::move(lister.fields);
}

std::string toml_value(const json& value) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    std::string text = fmt::format("{}", number);
    // TOML reads "1" as an integer, so a floating-point 1 is written "1.0".
    const bool plain = std::isfinite(number) && text.find_first_of(".e") == std::string::npos;
    return plain ? text + ".0" : text;
  }
  // JSON's strings, integers, booleans and arrays are valid TOML, except that TOML does not allow a bare U+007F.
  std::string text = value.dump();
  for (size_t at; (at = text.find('\x7f')) != std::string::npos;) text.replace(at, 1, "\\u007f");
  return text;
}

}  // namespace tearless
