// Checkpoints: complete or absent, and never believed unread.
#include "engine/train/checkpoint.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/paths.h"
#include "tests/support/privileges.h"

namespace tearless::engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class Checkpointed : public testing::Test {
 protected:
  Checkpointed() : run_(folder_.path()), checkpoints_(run_) {}

  static TrainedState numbers(double first, int64_t size = 5) {
    const at::Tensor values = at::arange(size, at::kFloat).add_(first);
    return {values, values + 100, values + 200};
  }
  static TrainedState empty(int64_t size = 5) { return {at::zeros({size}), at::zeros({size}), at::zeros({size})}; }

  void write(int64_t step) { checkpoints_.write(step, numbers(static_cast<double>(step)), {{"update", step}}); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(run_.checkpoints())) found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }
  std::string refusal(int64_t step, TrainedState buffers) const {
    try {
      checkpoints_.read(step, buffers);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  std::string refusal(int64_t step) const { return refusal(step, empty()); }

  test::TempFolder folder_;
  RunDirectory run_;
  Checkpoints checkpoints_;
};

TEST_F(Checkpointed, ComesBackAsItWas) {
  EXPECT_EQ(checkpoints_.newest(), std::nullopt);
  write(30);
  write(7);
  write(200);
  EXPECT_EQ(checkpoints_.newest(), 200) << "by number, not by name";
  TrainedState buffers = empty();
  EXPECT_EQ(checkpoints_.read(30, buffers), (json{{"update", 30}}));
  const TrainedState written = numbers(30);
  EXPECT_TRUE(at::equal(buffers.parameters, written.parameters));
  EXPECT_TRUE(at::equal(buffers.first_moment, written.first_moment));
  EXPECT_TRUE(at::equal(buffers.second_moment, written.second_moment));

  at::Tensor parameters = at::zeros({5});
  checkpoints_.read_parameters(7, parameters);
  EXPECT_TRUE(at::equal(parameters, numbers(7).parameters));
}

TEST_F(Checkpointed, IsReadIntoTheBuffersThatTheModelLooksAt) {
  write(1);
  TrainedState buffers = empty();
  const at::Tensor view = buffers.parameters.narrow(0, 2, 2);
  checkpoints_.read(1, buffers);
  EXPECT_EQ(view[0].item<float>(), 3.0f);
}

TEST_F(Checkpointed, KeepsTheNewestAndTheBest) {
  for (const int64_t step : {10, 20, 30, 40}) write(step);
  checkpoints_.prune(2, 10);
  EXPECT_THAT(names(), testing::ElementsAre("step-10", "step-30", "step-40"));
  checkpoints_.prune(1, std::nullopt);
  EXPECT_THAT(names(), testing::ElementsAre("step-40"));
  checkpoints_.prune(5, 40);
  EXPECT_THAT(names(), testing::ElementsAre("step-40"));
}

TEST_F(Checkpointed, HalfWrittenIsAbsentAndSweptAway) {
  write(10);
  fs::create_directories(run_.checkpoints() / "tmp-20");
  test::write_text(run_.checkpoints() / "tmp-20" / "state.bin", "half");
  EXPECT_EQ(checkpoints_.newest(), 10);
  write(20);  // the same step again, over what the crash left
  EXPECT_EQ(checkpoints_.newest(), 20);
  fs::create_directories(run_.checkpoints() / "tmp-30");
  checkpoints_.prune(5, std::nullopt);
  EXPECT_THAT(names(), testing::ElementsAre("step-10", "step-20"));
}

TEST_F(Checkpointed, DamagedIsRefusedWithAWayOut) {
  write(10);
  const fs::path state = run_.checkpoints() / "step-10" / "state.bin";
  const fs::path manifest = run_.checkpoints() / "step-10" / "manifest.json";
  const std::string sentence =
      "the checkpoint " + (run_.checkpoints() / "step-10").string() +
      " is damaged; delete that folder, and the run goes on from an older one or from the start";
  const std::string good_state = test::read_text(state), good_manifest = test::read_text(manifest);

  std::string flipped = good_state;
  flipped[17] = static_cast<char>(flipped[17] ^ 1);
  for (const std::string& bad : {flipped, good_state.substr(0, 12), std::string()}) {
    test::write_text(state, bad);
    EXPECT_EQ(refusal(10), sentence);
    at::Tensor parameters = at::zeros({5});
    EXPECT_THROW(checkpoints_.read_parameters(10, parameters), UserError);
  }
  test::write_text(state, good_state);
  EXPECT_EQ(refusal(10), "");

  for (const char* bad : {"", "{", "[]", R"({"format": 2})", R"({"format": 2, "files": {}, "state": {}})"}) {
    test::write_text(manifest, bad);
    EXPECT_EQ(refusal(10), sentence) << bad;
  }
  test::write_text(manifest, R"({"format": 1, "files": {}, "state": {}})");
  EXPECT_THAT(refusal(10), HasSubstr("step-10 was written by another version of the engine; delete that folder"));
  test::write_text(manifest, good_manifest);
  fs::remove(state);
  EXPECT_THAT(refusal(10), HasSubstr("state.bin"));
}

TEST_F(Checkpointed, OfAnotherModelIsRefused) {
  write(10);
  EXPECT_THAT(refusal(10, empty(6)), HasSubstr("is of a model of another size"));
}

TEST_F(Checkpointed, AFolderThatCannotBeWrittenIsNamedAndNothingAppears) {
  fs::permissions(folder_.path(),
                  fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
  const test::WithoutRoot ordinary;
  try {
    write(10);
    FAIL() << "written into a read-only folder";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr(run_.checkpoints().string()));
  }
  EXPECT_EQ(checkpoints_.newest(), std::nullopt);
}

}  // namespace
}  // namespace tearless::engine
