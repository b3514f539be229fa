// The engine and the harness together, when the files of a corpus change or go after a run was planned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/lock_file.h"
#include "tests/e2e/small_training.h"

namespace tearless::engine_data_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class EngineData : public testing::Test {
 protected:
  EngineData() { test::write_small_corpus(folder_.path()); }
  ~EngineData() override { stop(); }

  void stop() const {
    tearless({"stop", "--now"});
    test::eventually([&] { return !LockFile::is_held(folder_ / "results/tearless.lock"); });
  }

  test::Finished tearless(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), test::program("tearless").string());
    return test::run({.arguments = std::move(arguments),
                      .environment = {{"TEARLESS_CACHE", (folder_ / "cache").string()}},
                      .folder = folder_.path()});
  }
  void submit(int seed) const {
    auto settings = test::small_settings();
    settings["train.max_epochs"] = "1";
    test::write_text(folder_ / "base.toml", test::toml_of(settings));
    test::write_text(folder_ / "grid.toml", "base = \"base.toml\"\nseeds = [" + std::to_string(seed) +
                                                "]\n[axis]\nmodel.placement = [\"pre\"]\n");
    const test::Finished submitted = tearless({"submit", "grid.toml"});
    EXPECT_EQ(submitted.code, 0) << submitted.errors;
  }
  void serve() const { EXPECT_EQ(tearless({"daemon", "--background"}).code, 0); }
  bool newest_run_is(const std::string& state) const {
    return test::eventually([&] { return newest_run().at("state") == state; });
  }
  json newest_run() const {
    return json::parse(tearless({"--json", "sql", "SELECT state, reason FROM runs_view"}).output).back();
  }

  test::TempFolder folder_;
};

TEST_F(EngineData, ARunOfChangedOrMissingFilesWaitsForThem) {
  submit(1);
  const std::string file = fs::canonical(folder_.path()) / "train.en", planned = test::read_text(file);
  test::write_text(file, "other text\n");
  serve();
  ASSERT_TRUE(newest_run_is("waiting_data")) << newest_run();
  EXPECT_EQ(newest_run().at("reason"), file + " has the SHA-256 " + sha256("other text\n") +
                                           ", but the run was planned with " + sha256(planned) +
                                           "; the run continues when that file is back");
  fs::remove(file);
  EXPECT_TRUE(test::eventually([&] {
    return newest_run().at("reason").get<std::string>().starts_with(file + " is missing; ");
  })) << newest_run();
  test::write_text(file, planned);
  EXPECT_TRUE(newest_run_is("done")) << newest_run();

  // The prepared corpus is all that the next run needs.
  stop();
  submit(2);
  fs::remove(file);
  serve();
  EXPECT_TRUE(newest_run_is("done")) << newest_run();
}

}  // namespace
}  // namespace tearless::engine_data_test
