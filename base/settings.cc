#include "base/settings.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

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

class Lister final : public SettingsVisitor {
 public:
  void flag(const Field& f, bool& v) override { add(f, "true/false", v); }
  void integer(const Field& f, int64_t& v) override { add(f, "integer", v); }
  void number(const Field& f, double& v) override { add(f, "number", v); }
  void word(const Field& f, std::string& v) override { add(f, "text", v); }
  void optional_integer(const Field& f, std::optional<int64_t>& v) override { add(f, "integer", value_or_word(f, v)); }
  void optional_number(const Field& f, std::optional<double>& v) override { add(f, "number", value_or_word(f, v)); }
  void optional_word(const Field& f, std::optional<std::string>& v) override { add(f, "text", value_or_word(f, v)); }

  std::vector<DescribedField> fields;

 private:
  template <class Value>
  static json value_or_word(const Field& field, const std::optional<Value>& value) {
    if (value) return *value;
    return field.unset_word.empty() ? json() : json(field.unset_word);
  }
  void add(const Field& field, const char* type, json value) {
    fields.push_back({dotted(field), type, std::move(value), field});
  }
};

std::string toml_number(double number) {
  std::string text = fmt::format("{}", number);
  // TOML reads "1" as an integer, so a floating-point 1 is written "1.0".
  const bool plain = std::isfinite(number) && text.find_first_of(".e") == std::string::npos;
  return plain ? text + ".0" : text;
}

class Canonical final : public SettingsVisitor {
 public:
  explicit Canonical(Identity identity) : identity_(identity) {}

  void flag(const Field& f, bool& v) override {
    if (belongs(f, v)) add(f, v ? "true" : "false");
  }
  void integer(const Field& f, int64_t& v) override {
    if (belongs(f, v)) add(f, fmt::format_int(v).c_str());
  }
  void number(const Field& f, double& v) override {
    if (belongs(f, v)) add(f, toml_number(v));
  }
  void word(const Field& f, std::string& v) override {
    if (belongs(f, v)) add(f, toml_value(v));
  }
  void optional_integer(const Field& f, std::optional<int64_t>& v) override { v ? integer(f, *v) : unset(f); }
  void optional_number(const Field& f, std::optional<double>& v) override { v ? number(f, *v) : unset(f); }
  void optional_word(const Field& f, std::optional<std::string>& v) override { v ? word(f, *v) : unset(f); }

  std::string text() {
    // A line begins with its key and a space, which sorts before every character of a key.
    std::sort(lines_.begin(), lines_.end());
    std::string all;
    for (const std::string& line : lines_) all += line;
    return all;
  }

 private:
  template <class Value>
  bool belongs(const Field& field, const Value& value) const {
    if (field.identity != identity_) return false;
    if (identity_ == Identity::kLocal) return true;
    return field.switched_off_by.empty() && !(field.neutral && *field.neutral == json(value));
  }
  void unset(const Field& f) {
    if (!f.unset_word.empty() && belongs(f, f.unset_word)) add(f, toml_value(f.unset_word));
  }
  void add(const Field& field, std::string_view value) {
    std::string& line = lines_.emplace_back(dotted(field));
    line.append(" = ").append(value).push_back('\n');
  }

  Identity identity_;
  std::vector<std::string> lines_;
};

class UnusedFinder final : public SettingsVisitor {
 public:
  explicit UnusedFinder(const WrittenSettings& written) : written_(written) {}

  void flag(const Field& f, bool&) override { look_at(f); }
  void integer(const Field& f, int64_t&) override { look_at(f); }
  void number(const Field& f, double&) override { look_at(f); }
  void word(const Field& f, std::string&) override { look_at(f); }
  void optional_integer(const Field& f, std::optional<int64_t>&) override { look_at(f); }
  void optional_number(const Field& f, std::optional<double>&) override { look_at(f); }
  void optional_word(const Field& f, std::optional<std::string>&) override { look_at(f); }

  std::map<std::string, std::string> switched_off_by;  // key → key

 private:
  void look_at(const Field& field) {
    if (field.switched_off_by.empty() || field.identity == Identity::kLocal) return;
    if (std::string key = dotted(field); written_.values.contains(key)) {
      switched_off_by.emplace(std::move(key), field.switched_off_by);
    }
  }

  const WrittenSettings& written_;
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
    if (const json* found = find(field)) value = integer_in(field, *found);
  }
  void number(const Field& field, double& value) override {
    if (const json* found = find(field)) value = number_in(field, *found);
  }
  void word(const Field& field, std::string& value) override {
    const json* found = find(field);
    if (!found) return;
    if (!found->is_string()) wrong_type(field, *found, "text in quotes");
    const auto& text = found->get_ref<const std::string&>();
    if (!field.choices.empty() && std::find(field.choices.begin(), field.choices.end(), text) == field.choices.end()) {
      fail("{}: {} = \"{}\" is not known{}; it must be one of: {}", location(field), dotted(field), text,
           did_you_mean(text, std::vector<std::string>(field.choices.begin(), field.choices.end())),
           fmt::join(field.choices, ", "));
    }
    value = text;
  }
  void optional_integer(const Field& field, std::optional<int64_t>& value) override {
    read_optional(field, value, &Reader::integer_in);
  }
  void optional_number(const Field& field, std::optional<double>& value) override {
    read_optional(field, value, &Reader::number_in);
  }
  void optional_word(const Field& field, std::optional<std::string>& value) override {
    std::string text = value.value_or("");
    word(field, text);
    if (find(field)) value = text;
  }

  /// Whether a default that may be unset switches off a written setting. It is unset when it is visited again.
  bool has_outranking(const Describe& describe_all) {
    if (defaults_.empty()) return false;
    UnusedFinder finder(written_);
    describe_all(finder);
    for (const auto& [key, by] : finder.switched_off_by) {
      if (defaults_.contains(by)) outranking_.insert(by);
    }
    return !outranking_.empty();
  }

  /// Throws UserError for a written key that no field has. `describe_all`: the description that was visited.
  void refuse_leftovers(const Describe& describe_all) {
    std::sort(found_.begin(), found_.end());
    for (const auto& entry : written_.values) {  // clang 14 captures no structured binding
      if (std::binary_search(found_.begin(), found_.end(), &entry.second)) continue;
      const std::string& key = entry.first;
      std::vector<std::string> known;
      for (DescribedField& f : list_settings(describe_all)) known.push_back(std::move(f.key));
      const auto in_section = [&](const std::string& other) { return other.starts_with(key + "."); };
      if (const auto it = std::find_if(known.begin(), known.end(), in_section); it != known.end()) {
        fail("{}: \"{}\" is a section, not a setting; name one of its settings, such as {}", written_.location_of(key),
             key, *it);
      }
      fail("{}: unknown setting \"{}\"{}", written_.location_of(key), key, did_you_mean(key, known));
    }
  }

 private:
  const json* find(const Field& field) {
    const auto it = written_.values.find(dotted(field));
    if (it == written_.values.end()) return nullptr;
    found_.push_back(&it->second);
    return found_.back();
  }
  template <class Number>
  void read_optional(const Field& field, std::optional<Number>& value,
                     Number (Reader::*number)(const Field&, const json&) const) {
    if (const json* found = find(field)) {
      const bool is_unset = !field.unset_word.empty() && *found == json(field.unset_word);
      value = is_unset ? std::nullopt : std::optional((this->*number)(field, *found));
    } else if (value && field.unset_word.empty()) {
      std::string key = dotted(field);
      outranking_.contains(key) ? value.reset() : void(defaults_.insert(std::move(key)));
    }
  }
  int64_t integer_in(const Field& field, const json& found) const {
    if (!found.is_number_integer()) wrong_type(field, found, "a whole number");
    const auto value = found.get<int64_t>();
    check_range(field, static_cast<double>(value), found);
    return value;
  }
  double number_in(const Field& field, const json& found) const {
    if (!found.is_number()) wrong_type(field, found, "a number");
    const auto value = found.get<double>();
    check_range(field, value, found);
    return value;
  }
  std::string location(const Field& field) const { return written_.location_of(dotted(field)); }
  [[noreturn]] void wrong_type(const Field& field, const json& found, const char* wanted) const {
    fail("{}: {} = {} must be {}{}", location(field), dotted(field), toml_value(found), wanted,
         field.unset_word.empty() ? "" : fmt::format(" or \"{}\"", field.unset_word));
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
  std::vector<const json*> found_;    // the values that were read
  std::set<std::string> defaults_;    // keys of defaults that may be unset
  std::set<std::string> outranking_;  // those of them that are to be unset
};

}  // namespace

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
  reader.refuse_leftovers(describe_all);
  if (reader.has_outranking(describe_all)) describe_all(reader);
}

std::string canonical_settings(Identity identity, const Describe& describe_all) {
  Canonical canonical(identity);
  describe_all(canonical);
  return canonical.text();
}

std::map<std::string, std::string> unused_settings(const WrittenSettings& written, const Describe& describe_all) {
  UnusedFinder finder(written);
  describe_all(finder);
  std::map<std::string, std::string> unused = std::move(finder.switched_off_by);
  if (unused.empty()) return unused;
  const std::vector<DescribedField> all = list_settings(describe_all);
  for (auto& [key, by] : unused) {
    const auto decider = std::ranges::find(all, by, &DescribedField::key);
    if (decider == all.end()) throw std::logic_error(fmt::format("{} names no setting: \"{}\"", key, by));
    by += " = " + toml_value(decider->value);
  }
  return unused;
}

std::vector<DescribedField> list_settings(const Describe& describe_all) {
  Lister lister;
  describe_all(lister);
  return std::move(lister.fields);
}

std::string toml_value(const json& value) {
  if (value.is_number_float()) return toml_number(value.get<double>());
  // JSON's other values are valid TOML, except that TOML does not allow a bare U+007F.
  std::string text = value.dump();
  for (size_t at; (at = text.find('\x7f')) != std::string::npos;) text.replace(at, 1, "\\u007f");
  return text;
}

}  // namespace tearless
