// Settings of a section of the trained run, such as [decode], that a derived run has otherwise: each may be unset.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/settings.h"

namespace tearless::engine {

/// describe() of the section; a member of that name would hide it.
template <class Options>
void describe_section(SettingsVisitor& visitor, Options& options) {
  describe(visitor, options);
}

template <class Options>
class Overlay {
 public:
  /// Describes each result setting as one that may be unset; `options`: what decides which of them are switched off.
  void describe(SettingsVisitor& outer, Options options) {
    Laying laying(values_, &outer);
    describe_section(laying, options);
  }
  void apply(Options& options) {
    Laying laying(values_, nullptr);
    describe_section(laying, options);
  }
  bool has(std::string_view key) const { return values_.contains(std::string(key)); }

 private:
  using Values = std::map<std::string, nlohmann::json>;  // "derived.beam" → 8; those that are set

  class Laying final : public SettingsVisitor {
   public:
    Laying(Values& values, SettingsVisitor* outer) : values_(values), outer_(outer) {}

    void flag(const Field& f, bool&) override {
      throw std::logic_error(fmt::format("{}: a flag cannot be unset; describe it as a word", f.key));
    }
    void integer(const Field& f, int64_t& v) override { lay(f, v, &SettingsVisitor::optional_integer); }
    void number(const Field& f, double& v) override { lay(f, v, &SettingsVisitor::optional_number); }
    void word(const Field& f, std::string& v) override { lay(f, v, &SettingsVisitor::optional_word); }
    void optional_integer(const Field& f, std::optional<int64_t>& v) override {
      lay(f, v, &SettingsVisitor::optional_integer);
    }
    void optional_number(const Field& f, std::optional<double>& v) override {
      lay(f, v, &SettingsVisitor::optional_number);
    }
    void optional_word(const Field& f, std::optional<std::string>& v) override {
      lay(f, v, &SettingsVisitor::optional_word);
    }

   private:
    template <class Value, class Set>
    void lay(const Field& field, Value& value, void (SettingsVisitor::*visit)(const Field&, std::optional<Set>&)) {
      if (field.identity == Identity::kLocal) return;
      const std::string key = own_key(field.key);
      std::optional<Set> set;
      if (const auto known = values_.find(key); known != values_.end()) set = known->second.get<Set>();
      if (outer_) {
        Field unset = field;
        unset.neutral.reset();
        unset.switched_off_by = decider(field.switched_off_by);
        (outer_->*visit)(unset, set);
        if (set) values_[key] = *set;
      }
      if (set) value = *set;
    }

    static std::string own_key(std::string_view name) { return fmt::format("derived.{}", name); }
    /// The setting that takes the place of `key`, one of the section, if it is set.
    std::string_view decider(std::string_view key) const {
      const auto own = values_.find(own_key(key.substr(key.find('.') + 1)));
      return own == values_.end() ? key : own->first;
    }

    Values& values_;
    SettingsVisitor* outer_;
  };

  Values values_;
};

}  // namespace tearless::engine
