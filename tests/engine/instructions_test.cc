// How many instructions of the engine's own code a tiny update takes: a slow-down shows here whatever else the machine
// is doing. Counted by valgrind's callgrind inside Bench::updates() only, without matmuls and the C library, on the
// AVX2 kernels, which are the widest that valgrind supports.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/build_stamp.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::instructions_test {
namespace {

using nlohmann::json;

constexpr const char* kSettings = R"(
[model]
encoder_layers = 1
decoder_layers = 1
d_model = 32
d_ff = 64
heads = 2
mask_target_vocabulary = false
dropout = { residual = 0.3, attention = 0.3, relu = 0.3, word = 0.1 }

[train.batch]
tokens = 96
)";

/// Self cost of the functions of `object` in a callgrind profile, function by function. In its format a line of digits
/// is a source line and its cost; after "calls=" follows the cost of the callee, which is not counted. Names are
/// written once,
/// "(7) name", and then "(7)".
std::map<std::string, int64_t> instructions_by_function(const std::string& profile, const std::string& object) {
  std::map<std::string, std::string> objects, functions;
  const auto name_in = [](std::map<std::string, std::string>& known, const std::string& text) {
    const size_t end = text.find(')') + 1;
    const std::string id = text.substr(0, end);
    if (end < text.size()) known[id] = text.substr(end + 1);
    return known[id];
  };
  std::map<std::string, int64_t> counts;
  std::string in_object, in_function;
  bool callee = false;
  std::istringstream lines(profile);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("ob=")) {
      in_object = name_in(objects, line.substr(3));
    } else if (line.starts_with("cob=")) {
      name_in(objects, line.substr(4));
    } else if (line.starts_with("fn=")) {
      in_function = name_in(functions, line.substr(3));
    } else if (line.starts_with("cfn=")) {
      name_in(functions, line.substr(4));
    } else if (line.starts_with("calls=")) {
      callee = true;
    } else if (!line.empty() && std::string_view("0123456789+-*").find(line[0]) != std::string_view::npos) {
      if (!callee && in_object.ends_with(object)) {
        counts[in_function] += std::atoll(line.c_str() + line.find(' ') + 1);
      }
      callee = false;
    }
  }
  return counts;
}

TEST(InstructionsGolden, OfATinyUpdateDoNotGrowByATenth) {
  const auto stored_path = tearless::test::source_root() / "tests/golden/instructions.json";
  const bool bless = std::getenv("TEARLESS_BLESS") != nullptr;
  const json stored = bless ? json() : json::parse(tearless::test::read_text(stored_path));
  const std::string compiler = bless ? "GNU 12.2.0, Release" : stored.at("compiler").get<std::string>();
  if (tearless::test::kSanitized) GTEST_SKIP() << "a sanitizer's instructions are not ours";
  if (build_stamp().find(compiler) == std::string_view::npos) {
    GTEST_SKIP() << "the stored count is of " << compiler << ", this build is " << build_stamp();
  }
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "needs a processor with AVX2";
  if (std::system("command -v valgrind >/dev/null") != 0) GTEST_SKIP() << "needs valgrind";

  const tearless::test::TempFolder folder;
  tearless::test::write_text(folder / "tiny.toml", kSettings);
  const auto profile = folder / "callgrind.out";
  const tearless::test::Finished finished = tearless::test::run(
      {.arguments = {"/usr/bin/env", "valgrind", "--tool=callgrind", "--collect-atstart=no",
                     "--toggle-collect=tearless::engine::Bench::update*", "--callgrind-out-file=" + profile.string(),
                     tearless::test::program("tearless-engine").string(), "bench", (folder / "tiny.toml").string(),
                     "--vocabulary", "200", "--threads", "1", "--turns"},
       .environment = {{"OMP_NUM_THREADS", "1"}}});
  ASSERT_EQ(finished.code, 0) << finished.errors;
  ASSERT_NE(finished.output.find("x86-64-v3"), std::string::npos) << "these are not the AVX2 kernels";

  const auto counts = instructions_by_function(tearless::test::read_text(profile), "/tearless-engine");
  int64_t sum = 0;
  std::string list;
  for (const auto& [function, count] : counts) {
    sum += count;
    if (count > 20'000) list += "  " + std::to_string(count) + "  " + function.substr(0, 110) + "\n";
  }
  ASSERT_GT(sum, 100'000) << "the profile could not be parsed";
  if (bless) {
    tearless::test::write_text(stored_path, json{{"compiler", compiler}, {"instructions", sum}}.dump(2) + "\n");
    return;
  }
  const auto expected = stored.at("instructions").get<int64_t>();
  RecordProperty("instructions", std::to_string(sum));
  EXPECT_LE(static_cast<double>(sum), 1.10 * static_cast<double>(expected))
      << "three updates of a tiny model took " << sum << " instructions, stored are " << expected << "; by function:\n"
      << list << "If this is meant: tools/bless.sh";
}

}  // namespace
}  // namespace tearless::engine::instructions_test
