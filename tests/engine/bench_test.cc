// tearless-engine bench: its output, and its messages for bad input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/run_directory.h"
#include "engine/ops/matmul.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::engine::bench_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class BenchCommand : public testing::Test {
 protected:
  BenchCommand() {
    test::write_text(folder_ / "tiny.toml",
                     "[model]\nencoder_layers = 1\ndecoder_layers = 2\nd_model = 16\nd_ff = 24\nheads = 2\n"
                     "[train.batch]\ntokens = 100\n");
    test::write_text(folder_ / "lengths.json", R"({"batches": [[[3, 4], [2, 2]], [[5, 1]]]})");
  }

  test::Finished bench(const std::string& config, std::vector<std::string> more) const {
    std::vector<std::string> arguments = {test::program("tearless-engine").string(), "bench", config};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run({.arguments = arguments, .folder = folder_.path()});
  }

  static std::string equal_lengths(double sentences, double source, double target) {
    return json{{"batches", {std::vector<std::vector<double>>(static_cast<size_t>(sentences), {source, target})}}}
        .dump();
  }

  test::TempFolder folder_;
};

TEST_F(BenchCommand, AnswersStepTimeProfileAndMemory) {
  const test::Finished finished =
      bench("tiny.toml", {"--vocabulary", "50", "--lengths", "lengths.json", "--updates", "4", "--decode", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.errors;
  const json answer = json::parse(finished.output);
  EXPECT_GT(answer.at("step_seconds").get<double>(), 0);
  EXPECT_GT(answer.at("tokens_per_second").get<double>(), 0);
  EXPECT_GT(answer.at("matmul_floor_seconds").get<double>(), 0);
  EXPECT_GT(answer.at("peak_memory_bytes").get<int64_t>(), 1 << 20);
  EXPECT_EQ(answer.at("decode").at("sentences"), 3);
  EXPECT_GT(answer.at("peak_operations_per_second").get<double>(), 1e9);
  // Encoder layer: qkv, o, w1, w2. Decoder layer: qkv, o, q, o, w1, w2. Keys and values of the encoder output for both
  // layers, and logits: one each.
  EXPECT_EQ(answer.at("operations").at("matmul").at("calls").get<double>(), 4 + 2 * 6 + 2);
  EXPECT_EQ(answer.at("operations").at("attention").at("calls").get<double>(), 1 + 2 * 2);
  EXPECT_FALSE(answer.at("operations").contains("by formula"));
}

// By hand, from the shapes of each matmul: a forward multiply-add is six operations, because backward has two matmuls
// for each. A batch of equal sentences: n sentences of s source rows and t target rows.
TEST_F(BenchCommand, CountsTheOperationsThatAnUpdateNeeds) {
  struct Model {
    std::string name;
    double n, s, t, d, f, layers, types;
  };
  for (const Model& m : {Model{"d32", 3, 12, 14, 32, 128, 1, 1000}, Model{"d128", 2, 9, 7, 128, 512, 3, 4000}}) {
    const double source = m.n * m.s, target = m.n * m.t;
    const double encoder = source * (4 * m.d * m.d + 2 * m.d * m.f) + 2 * m.d * m.n * m.s * m.s;
    const double decoder = target * (6 * m.d * m.d + 2 * m.d * m.f) + source * 2 * m.d * m.d +
                           2 * m.d * m.n * (m.t * (m.t + 1) / 2 + m.t * m.s);
    const double operations =
        6 * (m.layers * (encoder + decoder) + target * m.d * (m.types - 2));  // no padding, no BOS
    test::write_text(folder_ / "equal.json", equal_lengths(m.n, m.s, m.t));
    const test::Finished finished =
        bench((test::source_root() / "tools/bench/sizes" / (m.name + ".toml")).string(),
              {"--vocabulary", fmt::format("{}", m.types), "--lengths", "equal.json", "--updates", "1", "--json"});
    ASSERT_EQ(finished.code, 0) << finished.errors;
    EXPECT_DOUBLE_EQ(json::parse(finished.output).at("operations_per_update").get<double>(), operations) << m.name;
  }
}

// A configuration has 48 features, each an embedding of 50 numbers; of several, features of the same token are computed
// once.
TEST_F(BenchCommand, CountsTheOperationsOfAParser) {
  test::write_text(folder_ / "parse.toml", "task = \"parse\"\n[model]\nhidden = 24\n[train.batch]\nexamples = 2000\n");
  test::write_text(folder_ / "one.json", R"({"batches": [[1]]})");
  const auto answer = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--vocabulary", "100", "--updates", "1", "--json"});
    const test::Finished finished = bench("parse.toml", more);
    EXPECT_EQ(finished.code, 0) << finished.errors;
    return json::parse(finished.output);
  };
  constexpr double kHidden = 24, kTransitions = 81, kOfFeature = 50 * kHidden,
                   kAfter = kHidden * kHidden + kHidden * kTransitions;
  const json one = answer({"--lengths", "one.json"});
  EXPECT_DOUBLE_EQ(one.at("operations_per_update").get<double>(), 6 * (48 * kOfFeature + kAfter));
  EXPECT_EQ(one.at("operations").at("linear of embeddings").at("calls").get<double>(), 1);
  // 100 words, 50 tags and 40 labels, and what stands for none; two layers with biases and LayerNorm, and the output.
  EXPECT_EQ(one.at("parameters").get<double>(), (100 + 3 + 50 + 3 + 40 + 1) * 50 + 48 * kOfFeature + kHidden * kHidden +
                                                    6 * kHidden + kTransitions * (kHidden + 1));
  const json all = answer({});
  const double features = (all.at("operations_per_update").get<double>() / 6 - 2000 * kAfter) / kOfFeature;
  EXPECT_GT(features, 18 * 80);
  EXPECT_LT(features, 18 * 101 + 18 * 51 + 12 * 40);
}

TEST_F(BenchCommand, PrintsTheOperationsWithTheirShares) {
  const test::Finished finished =
      bench("tiny.toml", {"--vocabulary", "50", "--lengths", "lengths.json", "--updates", "2", "--decode"});
  ASSERT_EQ(finished.code, 0) << finished.errors;
  std::istringstream lines(finished.output);
  std::map<std::string, double> calls, shares;
  const std::regex row("(.{26}) *([0-9]+) +[0-9.]+ +[0-9.]+ +([0-9.]+) %");
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_match(line, match, row)) continue;
    const std::string name = match[1].str().substr(0, match[1].str().find_last_not_of(' ') + 1);
    calls[name] = std::stod(match[2]);
    shares[name] = std::stod(match[3]);
  }
  EXPECT_EQ(calls["matmul"], 4 + 2 * 6 + 2);
  EXPECT_EQ(calls["attention"], 1 + 2 * 2);
  double sum = 0;
  for (const auto& [name, share] : shares) sum += share;
  EXPECT_NEAR(sum, 100, 0.1 * static_cast<double>(shares.size())) << finished.output;
  EXPECT_THAT(finished.output, HasSubstr("beam search: 3 sentences in "));
}

TEST_F(BenchCommand, ByReferenceRunsFormulasAlone) {
  test::write_text(folder_ / "reference.toml", test::read_text(folder_ / "tiny.toml") + "[run]\nops = \"reference\"\n");
  const test::Finished finished = bench("reference.toml", {"--vocabulary", "50", "--updates", "1", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.errors;
  const json operations = json::parse(finished.output).at("operations");
  EXPECT_TRUE(operations.contains("by formula"));
  EXPECT_FALSE(operations.contains("attention"));
}

TEST_F(BenchCommand, TimesSingleKernelsAndACopy) {
  const test::Finished finished = bench("tiny.toml", {"--vocabulary", "50", "--kernels", "--megabytes", "1", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.errors;
  const json answer = json::parse(finished.output);
  for (const char* kernel : {"copy", "LayerNorm", "residual + dropout + LayerNorm", "its backward", "clip + Adam"}) {
    EXPECT_GT(answer.at(kernel).at("gigabytes_per_second").get<double>(), 0) << kernel;
  }
  EXPECT_EQ(answer.at("copy").at("share_of_copy").get<double>(), 1);
}

TEST_F(BenchCommand, RunsTheChosenKernels) {
  const test::Finished finished =
      bench("tiny.toml", {"--vocabulary", "50", "--updates", "1", "--instructions", "x86-64-v2", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.errors;
  EXPECT_EQ(json::parse(finished.output).at("instructions"), "x86-64-v2");
}

TEST_F(BenchCommand, InBf16MultipliesByOneDnnOrSaysWhatTheProcessorLacks) {
  const test::Finished finished = bench("tiny.toml", {"--vocabulary", "50", "--updates", "1", "--bf16", "--json"});
  if (!this_processor().bf16) {
    EXPECT_EQ(finished.code, kExitSettingsRefused);
    EXPECT_THAT(finished.errors, HasSubstr("needs a processor with AVX512_BF16 instructions"));
    return;
  }
  ASSERT_EQ(finished.code, 0) << finished.errors;
  const json answer = json::parse(finished.output);
  EXPECT_THAT(answer.at("matmul").get<std::string>(),
              testing::MatchesRegex(this_processor().amx ? "oneDNN [0-9.]+ bf16 AMX" : "oneDNN [0-9.]+ bf16"));
  EXPECT_TRUE(answer.at("peak_operations_per_second").is_null()) << "the peak is that of fp32";
}

TEST_F(BenchCommand, ReportsBadInput) {
  test::write_text(folder_ / "empty.json", R"({"batches": []})");
  test::write_text(folder_ / "zero.json", R"({"batches": [[[3, 0]]]})");
  test::write_text(folder_ / "broken.json", "{\"batches\": [[3]]");
  test::write_text(folder_ / "typo.toml", "[model]\nd_modle = 16\n");
  test::write_text(folder_ / "parse.toml", "task = \"parse\"\n[model]\nhidden = 8\n[train.batch]\nexamples = 9\n");
  struct Case {
    std::string config;
    std::vector<std::string> arguments;
    std::string sentence;
  };
  for (const Case& c : {Case{"nowhere.toml", {}, "cannot read nowhere.toml"},
                        {"typo.toml", {}, "did you mean"},
                        {"tiny.toml", {"--lengths", "nowhere.json"}, "cannot read nowhere.json"},
                        {"tiny.toml", {"--lengths", "empty.json"}, "empty.json: \"batches\" is empty"},
                        {"tiny.toml", {"--lengths", "zero.json"}, "each needs at least 1"},
                        {"tiny.toml", {"--lengths", "broken.json"}, "broken.json: not a list of sentence lengths"},
                        {"tiny.toml", {"--vocabulary", "3"}, "--vocabulary"},
                        {"parse.toml", {"--lengths", "zero.json"}, "expected {\"batches\": [[rows, …], …]}"},
                        {"parse.toml", {"--decode"}, "this task does not translate: there is nothing to decode"},
                        {"tiny.toml", {"--kernels", "--megabytes", "0"}, "--megabytes"},
                        {"tiny.toml",
                         {"--instructions", "avx"},
                         "there is no instruction set \"avx\"; choose one of: x86-64-v2, x86-64-v3, x86-64-v4"}}) {
    const test::Finished finished = bench(c.config, c.arguments);
    EXPECT_EQ(finished.code, kExitSettingsRefused) << c.sentence;
    EXPECT_THAT(finished.errors, HasSubstr(c.sentence));
    EXPECT_EQ(finished.output, "") << c.sentence;
  }
}

}  // namespace
}  // namespace tearless::engine::bench_test
