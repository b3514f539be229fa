// Arithmetic over settings, as in "model.d_ff" = "4 * model.d_model": + - * /, parentheses, and the functions of
// expression.cc. Whole numbers stay whole as long as they can; a quotient is whole if it has no remainder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tearless::harness {

using Number = std::variant<int64_t, double>;

class Expression {
 public:
  /// UserError, without a location, for a text that is no expression.
  explicit Expression(std::string_view text);

  /// The names of the settings that it needs, each once, in the order of the text.
  const std::vector<std::string>& names() const { return names_; }

  /// `value_of` gives the settings' values. UserError, without a location, for a division by zero and for a result that
  /// is not finite or, as a whole number, does not fit into 64 bits.
  Number value(const std::function<Number(const std::string& name)>& value_of) const;

 private:
  friend class ExpressionParser;

  /// In postfix order: operands before what is applied to them.
  struct Step {
    enum class Kind { kNumber, kName, kApply } kind;
    Number number = {};   // kNumber
    size_t index = 0;     // kName: into names_; kApply: into the table of operations
    size_t operands = 0;  // kApply
  };
  std::vector<Step> steps_;
  std::vector<std::string> names_;
};

}  // namespace tearless::harness
