#include "harness/grid/expression.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/nearest.h"
#include "base/settings.h"
#include "base/utf8.h"
#include "harness/grid/sections.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 100;  // of parentheses: the parser is recursive

double real(const json& number) { return number.get<double>(); }
const int64_t* whole(const json& number) { return number.get_ptr<const int64_t*>(); }

json require_finite(double value, const char* what) {
  if (!std::isfinite(value)) fail("{} has no finite value", what);
  return value;
}

/// `on_whole` is one of the compiler's functions that say whether the result does not fit.
template <class OnWhole, class OnReal>
json combine(const json& a, const json& b, const char* sign, OnWhole on_whole, OnReal on_real) {
  if (whole(a) && whole(b)) {
    int64_t result = 0;
    if (on_whole(*whole(a), *whole(b), &result)) fail("{} {} {} is too large", *whole(a), sign, *whole(b));
    return result;
  }
  return require_finite(on_real(real(a), real(b)), sign);
}

/// Numbers are added; of anything else the texts are joined, as tables call them.
json add(const json& a, const json& b) {
  if (!a.is_number() || !b.is_number()) return label_of(a) + label_of(b);
  return combine(
      a, b, "+", [](int64_t x, int64_t y, int64_t* z) { return __builtin_add_overflow(x, y, z); }, std::plus<>());
}
json subtract(const json& a, const json& b) {
  return combine(
      a, b, "-", [](int64_t x, int64_t y, int64_t* z) { return __builtin_sub_overflow(x, y, z); }, std::minus<>());
}
json multiply(const json& a, const json& b) {
  return combine(
      a, b, "*", [](int64_t x, int64_t y, int64_t* z) { return __builtin_mul_overflow(x, y, z); }, std::multiplies<>());
}
json divide(const json& a, const json& b) {
  if (real(b) == 0) fail("it divides by zero");
  const bool fits = whole(a) && whole(b) && !(*whole(a) == std::numeric_limits<int64_t>::min() && *whole(b) == -1);
  if (fits && *whole(a) % *whole(b) == 0) return *whole(a) / *whole(b);
  return require_finite(real(a) / real(b), "/");
}
json negative(const json& a) { return subtract(int64_t{0}, a); }

json rounded(double value) {
  constexpr double kMaxExact = 9007199254740992;  // 2^53: above it not every whole number has a double
  if (std::abs(value) > kMaxExact) fail("{:.6g} is too large to be rounded to a whole number", value);
  return static_cast<int64_t>(value);
}
template <double (*round)(double)>
json to_whole(const json& a) {
  return whole(a) ? a : rounded(round(real(a)));
}

json square_root(const json& a) {
  if (real(a) < 0) fail("sqrt({:.6g}) is not a real number", real(a));
  return std::sqrt(real(a));
}
json logarithm(const json& a) {
  if (real(a) <= 0) fail("log({:.6g}) is not a finite number", real(a));
  return std::log(real(a));
}

template <class Before>
json first_of(std::span<const json> operands, Before before) {
  const bool all_whole = std::ranges::all_of(operands, [](const json& one) { return whole(one) != nullptr; });
  const json& first = *std::min_element(operands.begin(), operands.end(), [&](const json& a, const json& b) {
    return whole(a) && whole(b) ? before(*whole(a), *whole(b)) : before(real(a), real(b));
  });
  return all_whole ? first : json(real(first));
}

struct Operation {
  std::string_view name;
  size_t least, most;  // operands
  json (*apply)(std::span<const json>);
};
constexpr size_t kAny = 100;

// clang-format off
constexpr Operation kOperations[] = {
    {"+", 2, 2, [](std::span<const json> x) { return add(x[0], x[1]); }},
    {"-", 2, 2, [](std::span<const json> x) { return subtract(x[0], x[1]); }},
    {"*", 2, 2, [](std::span<const json> x) { return multiply(x[0], x[1]); }},
    {"/", 2, 2, [](std::span<const json> x) { return divide(x[0], x[1]); }},
    {"- ", 1, 1, [](std::span<const json> x) { return negative(x[0]); }},
    {"min",   1, kAny, [](std::span<const json> x) { return first_of(x, std::less<>()); }},
    {"max",   1, kAny, [](std::span<const json> x) { return first_of(x, std::greater<>()); }},
    {"round", 1, 1, [](std::span<const json> x) { return to_whole<std::round>(x[0]); }},
    {"floor", 1, 1, [](std::span<const json> x) { return to_whole<std::floor>(x[0]); }},
    {"ceil",  1, 1, [](std::span<const json> x) { return to_whole<std::ceil>(x[0]); }},
    {"sqrt",  1, 1, [](std::span<const json> x) { return square_root(x[0]); }},
    {"log",   1, 1, [](std::span<const json> x) { return logarithm(x[0]); }},
    {"<",  2, 2, [](std::span<const json> x) { return json(x[0] < x[1]); }},
    {">",  2, 2, [](std::span<const json> x) { return json(x[0] > x[1]); }},
    {"<=", 2, 2, [](std::span<const json> x) { return json(x[0] <= x[1]); }},
    {">=", 2, 2, [](std::span<const json> x) { return json(x[0] >= x[1]); }},
};
// clang-format on

size_t operation(std::string_view name) {
  return static_cast<size_t>(std::ranges::find(kOperations, name, &Operation::name) - std::begin(kOperations));
}

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

/// For messages.
std::vector<std::string> function_names() {
  std::vector<std::string> names;
  for (const Operation& one : kOperations) {
    if (starts_name(one.name[0])) names.emplace_back(one.name);
  }
  return names;
}

}  // namespace

class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const Expression::IsName& is_name, Expression& out)
      : text_(text), is_name_(is_name), out_(out) {}

  void parse() {
    sum();
    skip_spaces();
    if (const std::string_view sign = comparison_at(text_.substr(at_)); !sign.empty()) {
      at_ += sign.size();
      sum();
      apply(operation(sign == "≤" ? "<=" : sign == "≥" ? ">=" : sign), 2);
    }
    if (!at_end()) fail("\"{}\" is not expected after \"{}\"", rest(), printable(before()));
  }

 private:
  using Step = Expression::Step;

  void sum() {
    product();
    for (char sign; (sign = next_of("+-"));) {
      product();
      apply(operation({&sign, 1}), 2);
    }
  }

  void product() {
    signed_value();
    for (char sign; (sign = next_of("*/"));) {
      signed_value();
      apply(operation({&sign, 1}), 2);
    }
  }

  void signed_value() {
    if (next_of("-")) {
      nested([&] { signed_value(); });
      apply(operation("- "), 1);
    } else {
      value();
    }
  }

  void value() {
    skip_spaces();
    const char first = at_end() ? '\0' : text_[at_];
    if (next_of("(")) {
      nested([&] { sum(); });
      close();
    } else if (is_digit(first) || first == '.') {
      number();
    } else if (first == '\'' || first == '"') {
      quoted(first);
    } else if (starts_name(first)) {
      name_or_call();
    } else if (at_end()) {
      fail("a number or a setting is missing at its end");
    } else {
      fail("\"{}\" is neither a number nor a setting; + - * /, one < ≤ > or ≥, parentheses and {} are known", rest(),
           fmt::join(function_names(), ", "));
    }
  }

  void number() {
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    int64_t whole_number = 0;
    double real_number = 0;
    const auto as_whole = std::from_chars(begin, end, whole_number);
    const auto as_real = std::from_chars(begin, end, real_number);
    if (as_real.ec != std::errc()) fail("\"{}\" is not a number", rest());
    if (as_whole.ec == std::errc() && as_whole.ptr == as_real.ptr) {
      out_.steps_.push_back({.kind = Step::Kind::kConstant, .constant = whole_number});
    } else {
      out_.steps_.push_back({.kind = Step::Kind::kConstant, .constant = real_number});
    }
    at_ = static_cast<size_t>(as_real.ptr - text_.data());
  }

  void quoted(char quote) {
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("the quotation mark before \"{}\" is not closed", rest());
    std::string word(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    if (is_name_(word)) return add_name(std::move(word));
    out_.steps_.push_back({.kind = Step::Kind::kConstant, .constant = std::move(word)});
  }

  void name_or_call() {
    const size_t begin = at_;
    while (!at_end() && (starts_name(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (!next_of("(")) return add_name(name);
    const size_t called = operation(name);
    if (called == std::size(kOperations)) {
      const std::vector<std::string> known = function_names();
      fail("there is no function {}{}; there are {}", name, did_you_mean(name, known), fmt::join(known, ", "));
    }
    size_t operands = 0;
    do {
      nested([&] { sum(); });
      ++operands;
    } while (next_of(","));
    close();
    const Operation& function = kOperations[called];
    if (operands < function.least || operands > function.most) {
      fail("{} takes {} value{}, not {}", name, function.most == kAny ? "some" : "one",
           function.most == kAny ? "s" : "", operands);
    }
    apply(called, operands);
  }

  void add_name(std::string name) {
    auto& names = out_.names_;
    const auto found = std::ranges::find(names, name);
    out_.steps_.push_back({.kind = Step::Kind::kName, .index = static_cast<size_t>(found - names.begin())});
    if (found == names.end()) names.push_back(std::move(name));
  }

  void apply(size_t index, size_t operands) {
    out_.steps_.push_back({.kind = Step::Kind::kApply, .index = index, .operands = operands});
  }

  template <class Parse>
  void nested(const Parse& parse) {
    if (++depth_ > kMaxDepth) fail("it is nested more than {} deep", kMaxDepth);
    parse();
    --depth_;
  }

  void close() {
    if (!next_of(")")) fail("a \")\" is missing after \"{}\"", printable(before()));
  }

  /// Goes past the next character and returns it, if it is one of `characters`; '\0' otherwise.
  char next_of(std::string_view characters) {
    skip_spaces();
    if (at_end() || characters.find(text_[at_]) == std::string_view::npos) return '\0';
    return text_[at_++];
  }
  void skip_spaces() {
    while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool at_end() const { return at_ == text_.size(); }
  std::string rest() const { return printable(std::string(text_.substr(at_))); }
  std::string before() const { return std::string(text_.substr(0, at_)); }

  std::string_view text_;
  const Expression::IsName& is_name_;
  Expression& out_;
  size_t at_ = 0;
  int depth_ = 0;
};

std::string_view comparison_at(std::string_view text) {
  for (const std::string_view sign : {"<=", ">=", "≤", "≥", "<", ">"}) {
    if (text.starts_with(sign)) return text.substr(0, sign.size());
  }
  return "";
}

Expression::Expression(std::string_view text, const IsName& is_name) { ExpressionParser(text, is_name, *this).parse(); }

const std::string* Expression::first_name() const {
  return steps_.front().kind == Step::Kind::kName ? &names_[steps_.front().index] : nullptr;
}

json Expression::value(const std::function<json(const std::string& name)>& value_of) const {
  std::vector<json> stack;
  std::vector<const std::string*> said;  // the name that a value of the stack has
  for (const Step& step : steps_) {
    if (step.kind != Step::Kind::kApply) {
      said.push_back(step.kind == Step::Kind::kName ? &names_[step.index] : nullptr);
      stack.push_back(said.back() ? value_of(*said.back()) : step.constant);
      continue;
    }
    const size_t first = stack.size() - step.operands;
    const std::span<const json> operands(stack.begin() + static_cast<ptrdiff_t>(first), stack.end());
    const Operation& operation = kOperations[step.index];
    const bool may_join = operation.name == "+" && std::ranges::any_of(operands, &json::is_string);
    for (size_t i = 0; i < operands.size(); ++i) {
      const json& one = operands[i];
      if (one.is_number() || (may_join && !one.is_array())) continue;
      if (said[first + i]) fail("{} is no number but {}", *said[first + i], toml_value(one));
      fail("{} is no number{}", toml_value(one), one.is_string() ? ", nor a setting of the grid; + joins texts" : "");
    }
    json result = operation.apply(operands);
    stack.resize(first);
    said.resize(first);
    stack.push_back(std::move(result));
    said.push_back(nullptr);
  }
  return stack.back();
}

}  // namespace tearless::harness
