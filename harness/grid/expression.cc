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
#include "base/utf8.h"

namespace tearless::harness {
namespace {

constexpr int kMaxDepth = 100;  // of parentheses: the parser is recursive

double real(const Number& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}
const int64_t* whole(const Number& number) { return std::get_if<int64_t>(&number); }

Number require_finite(double value, const char* what) {
  if (!std::isfinite(value)) fail("{} has no finite value", what);
  return value;
}

/// `on_whole` is one of the compiler's functions that say whether the result does not fit.
template <class OnWhole, class OnReal>
Number combine(const Number& a, const Number& b, const char* sign, OnWhole on_whole, OnReal on_real) {
  if (whole(a) && whole(b)) {
    int64_t result = 0;
    if (on_whole(*whole(a), *whole(b), &result)) fail("{} {} {} is too large", *whole(a), sign, *whole(b));
    return result;
  }
  return require_finite(on_real(real(a), real(b)), sign);
}

Number add(const Number& a, const Number& b) {
  return combine(
      a, b, "+", [](int64_t x, int64_t y, int64_t* z) { return __builtin_add_overflow(x, y, z); }, std::plus<>());
}
Number subtract(const Number& a, const Number& b) {
  return combine(
      a, b, "-", [](int64_t x, int64_t y, int64_t* z) { return __builtin_sub_overflow(x, y, z); }, std::minus<>());
}
Number multiply(const Number& a, const Number& b) {
  return combine(
      a, b, "*", [](int64_t x, int64_t y, int64_t* z) { return __builtin_mul_overflow(x, y, z); }, std::multiplies<>());
}
Number divide(const Number& a, const Number& b) {
  if (real(b) == 0) fail("it divides by zero");
  const bool fits = whole(a) && whole(b) && !(*whole(a) == std::numeric_limits<int64_t>::min() && *whole(b) == -1);
  if (fits && *whole(a) % *whole(b) == 0) return *whole(a) / *whole(b);
  return require_finite(real(a) / real(b), "/");
}
Number negative(const Number& a) { return subtract(int64_t{0}, a); }

Number rounded(double value) {
  constexpr double kMaxExact = 9007199254740992;  // 2^53: above it not every whole number has a double
  if (std::abs(value) > kMaxExact) fail("{:.6g} is too large to be rounded to a whole number", value);
  return static_cast<int64_t>(value);
}
template <double (*round)(double)>
Number to_whole(const Number& a) {
  return whole(a) ? a : rounded(round(real(a)));
}

Number square_root(const Number& a) {
  if (real(a) < 0) fail("sqrt({:.6g}) is not a real number", real(a));
  return std::sqrt(real(a));
}
Number logarithm(const Number& a) {
  if (real(a) <= 0) fail("log({:.6g}) is not a finite number", real(a));
  return std::log(real(a));
}

template <class Before>
Number first_of(std::span<const Number> operands, Before before) {
  const bool all_whole = std::ranges::all_of(operands, [](const Number& one) { return whole(one) != nullptr; });
  const Number& first = *std::min_element(operands.begin(), operands.end(), [&](const Number& a, const Number& b) {
    return whole(a) && whole(b) ? before(*whole(a), *whole(b)) : before(real(a), real(b));
  });
  return all_whole ? first : Number(real(first));
}

struct Operation {
  const char* name;
  size_t least, most;  // operands
  Number (*apply)(std::span<const Number>);
};
constexpr size_t kAny = 100;

// clang-format off
constexpr Operation kOperations[] = {
    {"+", 2, 2, [](std::span<const Number> x) { return add(x[0], x[1]); }},
    {"-", 2, 2, [](std::span<const Number> x) { return subtract(x[0], x[1]); }},
    {"*", 2, 2, [](std::span<const Number> x) { return multiply(x[0], x[1]); }},
    {"/", 2, 2, [](std::span<const Number> x) { return divide(x[0], x[1]); }},
    {"- ", 1, 1, [](std::span<const Number> x) { return negative(x[0]); }},
    {"min",   1, kAny, [](std::span<const Number> x) { return first_of(x, std::less<>()); }},
    {"max",   1, kAny, [](std::span<const Number> x) { return first_of(x, std::greater<>()); }},
    {"round", 1, 1, [](std::span<const Number> x) { return to_whole<std::round>(x[0]); }},
    {"floor", 1, 1, [](std::span<const Number> x) { return to_whole<std::floor>(x[0]); }},
    {"ceil",  1, 1, [](std::span<const Number> x) { return to_whole<std::ceil>(x[0]); }},
    {"sqrt",  1, 1, [](std::span<const Number> x) { return square_root(x[0]); }},
    {"log",   1, 1, [](std::span<const Number> x) { return logarithm(x[0]); }},
};
// clang-format on

size_t operation(std::string_view name) {
  const auto* found =
      std::ranges::find(kOperations, name, [](const Operation& one) { return std::string_view(one.name); });
  return static_cast<size_t>(found - std::begin(kOperations));
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
  ExpressionParser(std::string_view text, Expression& out) : text_(text), out_(out) {}

  void parse() {
    sum();
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
      quoted_name(first);
    } else if (starts_name(first)) {
      name_or_call();
    } else if (at_end()) {
      fail("a number or a setting is missing at its end");
    } else {
      fail("\"{}\" is neither a number nor a setting; + - * /, parentheses and {} are known", rest(),
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
      out_.steps_.push_back({.kind = Step::Kind::kNumber, .number = whole_number});
    } else {
      out_.steps_.push_back({.kind = Step::Kind::kNumber, .number = real_number});
    }
    at_ = static_cast<size_t>(as_real.ptr - text_.data());
  }

  void quoted_name(char quote) {
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("the quotation mark before \"{}\" is not closed", rest());
    add_name(std::string(text_.substr(at_ + 1, end - at_ - 1)));
    at_ = end + 1;
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
  Expression& out_;
  size_t at_ = 0;
  int depth_ = 0;
};

Expression::Expression(std::string_view text) { ExpressionParser(text, *this).parse(); }

Number Expression::value(const std::function<Number(const std::string& name)>& value_of) const {
  std::vector<Number> stack;
  for (const Step& step : steps_) {
    if (step.kind == Step::Kind::kNumber) {
      stack.push_back(step.number);
    } else if (step.kind == Step::Kind::kName) {
      stack.push_back(value_of(names_[step.index]));
    } else {
      const std::span<const Number> operands(stack.end() - static_cast<ptrdiff_t>(step.operands), stack.end());
      const Number result = kOperations[step.index].apply(operands);
      stack.resize(stack.size() - step.operands);
      stack.push_back(result);
    }
  }
  return stack.back();
}

}  // namespace tearless::harness
