// Expressions over settings, as in "model.d_ff" = "4 * model.d_model": + - * /, parentheses, the functions of
// expression.cc, and at most one comparison, which is true or false. Whole numbers stay whole as long as they can; a
// quotient is whole if it has no remainder. + joins texts, with numbers too: "'data/train.' + lang".
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tearless::harness {

class Expression {
 public:
  using IsName = std::function<bool(const std::string& name)>;

  /// What stands in quotation marks is a setting if `is_name` says so, and else a text. UserError, without a location,
  /// for a text that is no expression.
  Expression(std::string_view text, const IsName& is_name);

  /// The names of the settings that it needs, each once, in the order of the text.
  const std::vector<std::string>& names() const { return names_; }

  /// The setting that it begins with; null if it begins with something else.
  const std::string* first_name() const;

  /// `value_of` gives the settings' values; one that is copied, by its name alone, may be of any kind. UserError,
  /// without a location, for a division by zero, for operands of another kind, and for a result that is not finite or,
  /// as a whole number, does not fit into 64 bits.
  nlohmann::json value(const std::function<nlohmann::json(const std::string& name)>& value_of) const;

 private:
  friend class ExpressionParser;

  /// In postfix order: operands before what is applied to them.
  struct Step {
    enum class Kind { kConstant, kName, kApply } kind;
    nlohmann::json constant = {};  // kConstant: a number or a text
    size_t index = 0;              // kName: into names_; kApply: into the table of operations
    size_t operands = 0;           // kApply
  };
  std::vector<Step> steps_;
  std::vector<std::string> names_;
};

/// The <, >, <=, >=, ≤ or ≥ that `text` begins with, or "".
std::string_view comparison_at(std::string_view text);

}  // namespace tearless::harness
