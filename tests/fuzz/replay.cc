#include "tests/fuzz/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <random>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "tests/support/paths.h"

namespace tearless::fuzz {
namespace {

using namespace std::string_view_literals;

// Marks of the formats, and numbers at the ends of their ranges.
constexpr std::array kTokens = {"["sv,
                                "]"sv,
                                "{"sv,
                                "}"sv,
                                "="sv,
                                ","sv,
                                "."sv,
                                "\n"sv,
                                "\r"sv,
                                "\t"sv,
                                " "sv,
                                "\0"sv,
                                "\""sv,
                                "'"sv,
                                "\"\"\""sv,
                                "#"sv,
                                "\\"sv,
                                "\\u0000"sv,
                                "*"sv,
                                "@@"sv,
                                "</w>"sv,
                                "\x1e"sv,
                                "\x1b"sv,
                                "\xff"sv,
                                "\xe2\x82"sv,
                                "null"sv,
                                "nan"sv,
                                "-inf"sv,
                                "1e999"sv,
                                "-9223372036854775808"sv,
                                "18446744073709551616"sv,
                                "\xff\xff\xff\xff\xff\xff\xff\xff"sv,
                                "\0\0\0\0\0\0\0\x80"sv,
                                "\1\0\0\0\0\0\0\0"sv};

class Mutator {
 public:
  Mutator(const std::vector<std::string>& inputs, uint32_t seed) : inputs_(inputs), random_(seed) {}

  std::string next() {
    std::string text = any_input();
    for (size_t changes = 1 + below(4); changes > 0; --changes) change(text);
    return text;
  }

 private:
  size_t below(size_t n) { return n == 0 ? 0 : random_() % n; }
  const std::string& any_input() { return inputs_[below(inputs_.size())]; }

  void change(std::string& text) {
    const size_t at = below(text.size() + 1);
    const size_t length = std::min(1 + below(16), text.size() - at);
    switch (below(6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, kTokens[below(kTokens.size())]);
        break;
      case 3: {
        const std::string_view token = kTokens[below(kTokens.size())];
        text.replace(at, std::min(token.size(), text.size() - at), token);
        break;
      }
      case 4: {
        const std::string part = text.substr(at, length);
        for (size_t times = 1 + below(64); times > 0; --times) text.insert(at, part);
        break;
      }
      default: {
        const std::string& other = any_input();
        text = text.substr(0, at) + other.substr(below(other.size() + 1));
      }
    }
  }

  const std::vector<std::string>& inputs_;
  std::mt19937 random_;
};

std::vector<std::string> kept_inputs(const std::string& name) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_root() / "tests/fuzz/corpus" / name)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  std::transform(files.begin(), files.end(), std::back_inserter(inputs), test::read_text);
  return inputs;
}

void run(Target target, const std::string& input) {
  try {
    target(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what() << "\nof the input\n" << printable(input.substr(0, 4000));
  }
}

}  // namespace

void replay(const std::string& name, Target target, int mutations) {
  const std::vector<std::string> inputs = kept_inputs(name);
  ASSERT_FALSE(inputs.empty()) << name;
  for (const std::string& input : inputs) run(target, input);

  const char* asked = std::getenv("FUZZ_SEED");
  const uint32_t seed = asked ? static_cast<uint32_t>(std::strtoul(asked, nullptr, 10)) : 1;
  testing::Test::RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("FUZZ_SEED=" + std::to_string(seed));
  Mutator mutator(inputs, seed);
  for (int i = 0; i < mutations && !testing::Test::HasFailure(); ++i) run(target, mutator.next());
}

}  // namespace tearless::fuzz
