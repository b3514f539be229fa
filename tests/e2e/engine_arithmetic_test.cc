// Variables of the environment that change the sums of a library, and what an attempt says of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/small_training.h"

namespace tearless::engine_arithmetic_test {
namespace {

namespace fs = std::filesystem;
using Environment = std::map<std::string, std::string>;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class EngineArithmetic : public testing::Test {
 protected:
  EngineArithmetic() {
    test::write_small_corpus(folder_.path());
    auto settings = test::small_settings();
    settings["train.max_epochs"] = "1";
    settings["run.matmul"] = "\"mkl\"";
    test::write_text(folder_ / "settings.toml", test::toml_of(settings));
  }

  test::Finished engine(std::vector<std::string> arguments, Environment environment) const {
    arguments.insert(arguments.begin(), test::program("tearless-engine").string());
    environment.emplace("TEARLESS_CACHE", (folder_ / "cache").string());
    return test::run(
        {.arguments = std::move(arguments), .environment = std::move(environment), .folder = folder_.path()});
  }

  struct Trained {
    std::string arithmetic, metrics;
  };
  Trained trained(const Environment& environment) const {
    fs::remove_all(folder_ / "runs");
    const test::Finished ended = engine({"train", "--config", "settings.toml", "--runs", "runs"}, environment);
    EXPECT_EQ(ended.code, 0) << ended.errors;
    const RunDirectory run(fs::directory_iterator(folder_ / "runs")->path());
    return {test::read_text(run.attempt(1) / "arithmetic"), test::read_text(run.metrics())};
  }
  std::string probed(const Environment& environment) const {
    return nlohmann::json::parse(engine({"probe", "--json"}, environment).output).at("arithmetic");
  }

  test::TempFolder folder_;
};

// On some processors a variable changes nothing; it is named all the same.
TEST_F(EngineArithmetic, NamesEachVariableThatChangesTheNumbersOfARun) {
  const Trained plain = trained({});
  EXPECT_THAT(plain.arithmetic, Not(HasSubstr("=")));
  int changed = 0;
  for (const auto& [name, value] : Environment{{"MKL_CBWR", "COMPATIBLE"},
                                               {"MKL_ENABLE_INSTRUCTIONS", "SSE4_2"},
                                               {"ATEN_CPU_CAPABILITY", "default"},
                                               {"ONEDNN_MAX_CPU_ISA", "SSE41"},
                                               {"DNNL_MAX_CPU_ISA", "SSE41"},
                                               {"GLIBC_TUNABLES", "glibc.cpu.hwcaps=-FMA,-AVX2"}}) {
    const Trained with = trained({{name, value}});
    changed += with.metrics != plain.metrics;
    EXPECT_THAT(with.arithmetic, EndsWith(fmt::format(" {}={}\n", name, value)));
  }
  EXPECT_GT(changed, 0) << "no variable changes a number on this processor";
}

TEST_F(EngineArithmetic, OfProbeIsThatOfAnAttempt) {
  EXPECT_THAT(probed({{"DNNL_MAX_CPU_ISA", "AVX2"}}), EndsWith(" DNNL_MAX_CPU_ISA=AVX2"));
  EXPECT_THAT(probed({{"MKL_CBWR", "COMPATIBLE"}, {"NVIDIA_TF32_OVERRIDE", "0"}}),
              EndsWith(" MKL_CBWR=COMPATIBLE NVIDIA_TF32_OVERRIDE=0"));
}

TEST_F(EngineArithmetic, LeavesOutVariablesThatAreEmptyOrAboutSomethingElse) {
  const std::string plain = probed({});
  for (const auto& other : {Environment{{"MKL_CBWR", ""}},
                            {{"MKL_NUM_THREADS", "2"}},
                            {{"ONEDNN_VERBOSE", "0"}},
                            {{"GLIBC_TUNABLES", "glibc.malloc.check=0"}}}) {
    EXPECT_EQ(probed(other), plain) << other.begin()->first;
  }
}

}  // namespace
}  // namespace tearless::engine_arithmetic_test
