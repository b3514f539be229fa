// Checkpoints: complete or absent, and verified when read.
#include "engine/train/checkpoint.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "base/error.h"
#include "base/files.h"
#include "base/sealed_json.h"
#include "tests/engine/train/in_memory.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/privileges.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::checkpoint_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using tearless::test::read_text;
using tearless::test::write_text;
using testing::HasSubstr;

constexpr int64_t kMoments = 2;

class Checkpointed : private test::InMemory, public testing::Test {
 protected:
  Checkpointed() : run_(folder_.path()), checkpoints_(run_) {}

  static TrainedState numbers(double first, int64_t size = 5) {
    const at::Tensor values = at::arange(size, at::kFloat).add_(first);
    return {values, {values + 100, values + 200}};
  }
  static TrainedState empty(int64_t size = 5) { return {at::zeros({size}), {at::zeros({size}), at::zeros({size})}}; }

  void write(int64_t step) { checkpoints_.write(step, numbers(static_cast<double>(step)), {{"update", step}}); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(run_.checkpoints())) found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }
  /// What is said of a checkpoint that is whole, and yet of no use.
  std::string refusal(int64_t step, int64_t parameters = 5) const {
    try {
      checkpoints_.read(step, empty(parameters));
    } catch (const DamagedCheckpoint& damage) {
      return std::string("damaged: ") + damage.what();
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  bool is_damaged(int64_t step) const { return refusal(step).starts_with("damaged: "); }

  tearless::test::TempFolder folder_;
  RunDirectory run_;
  Checkpoints checkpoints_;
};

TEST_F(Checkpointed, IsReadBackAsItWas) {
  EXPECT_EQ(checkpoints_.newest(), std::nullopt);
  write(30);
  write(7);
  write(200);
  EXPECT_EQ(checkpoints_.newest(), 200) << "by number, not by name";
  TrainedState buffers = empty();
  const StoredCheckpoint stored = checkpoints_.read(30, buffers);
  EXPECT_EQ(stored.state, (json{{"update", 30}}));
  stored.copy_to(buffers);
  const TrainedState written = numbers(30);
  EXPECT_TRUE(at::equal(buffers.parameters, written.parameters));
  EXPECT_TRUE(at::equal(buffers.optimiser[0], written.optimiser[0]));
  EXPECT_TRUE(at::equal(buffers.optimiser[1], written.optimiser[1]));

  at::Tensor parameters = at::zeros({5});
  checkpoints_.read_parameters(7, parameters, kMoments, 0);
  EXPECT_TRUE(at::equal(parameters, numbers(7).parameters));
  at::Tensor too_many = at::zeros({16});
  EXPECT_THROW(checkpoints_.read_parameters(7, too_many, kMoments, 0), UserError);
}

TEST_F(Checkpointed, IsReadIntoTheBuffersOfTheModel) {
  write(1);
  TrainedState buffers = empty();
  const at::Tensor view = buffers.parameters.narrow(0, 2, 2);
  checkpoints_.read(1, buffers).copy_to(buffers);
  EXPECT_EQ(view[0].item<float>(), 3.0f);
}

TEST_F(Checkpointed, KeepsTheNewestAndThoseThatAreNeeded) {
  for (const int64_t step : {10, 20, 30, 40, 50}) write(step);
  checkpoints_.prune(2, {10, 30});
  EXPECT_THAT(names(), testing::ElementsAre("step-10", "step-30", "step-40", "step-50"));
  checkpoints_.prune(1, {10, 40});
  EXPECT_THAT(names(), testing::ElementsAre("step-10", "step-40", "step-50"));
  checkpoints_.remove(50);
  checkpoints_.prune(1, {});
  EXPECT_THAT(names(), testing::ElementsAre("step-40"));
  checkpoints_.prune(5, {40});
  EXPECT_THAT(names(), testing::ElementsAre("step-40"));
}

TEST_F(Checkpointed, HalfWrittenIsAbsentAndRemoved) {
  write(10);
  fs::create_directories(run_.checkpoints() / "tmp-20");
  write_text(run_.checkpoints() / "tmp-20" / "state.bin", "half");
  EXPECT_EQ(checkpoints_.newest(), 10);
  write(20);  // the same step again, over what the crash left
  EXPECT_EQ(checkpoints_.newest(), 20);
  fs::create_directories(run_.checkpoints() / "tmp-30");
  checkpoints_.prune(5, {});
  EXPECT_THAT(names(), testing::ElementsAre("step-10", "step-20"));
}

TEST_F(Checkpointed, PruningLeavesOtherFiles) {
  for (const int64_t step : {10, 20}) write(step);
  for (const char* name : {"notes.txt", "step-5.bak", "step-x"}) write_text(run_.checkpoints() / name, "a user's");
  checkpoints_.prune(1, {});
  EXPECT_THAT(names(), testing::ElementsAre("notes.txt", "step-20", "step-5.bak", "step-x"));
}

TEST_F(Checkpointed, DoesNotReplaceAnotherOfThatStep) {
  EXPECT_TRUE(checkpoints_.write(10, numbers(1), {{"update", 1}}));
  EXPECT_FALSE(checkpoints_.write(10, numbers(2), {{"update", 2}}));
  EXPECT_EQ(checkpoints_.read(10, empty()).state, (json{{"update", 1}}));
}

TEST_F(Checkpointed, IsGoneOnceItIsRemoved) {
  write(10);
  write(20);
  fs::create_directories(run_.checkpoints() / "tmp-20" / "of a crash");
  checkpoints_.remove(20);
  EXPECT_THAT(names(), testing::ElementsAre("step-10"));
  EXPECT_TRUE(is_damaged(20)) << "absent";
}

// Each byte of both files is under a checksum: there is no bit that could make another checkpoint of it.
TEST_F(Checkpointed, EveryTruncationAndEveryFlippedBitIsFound) {
  write(10);
  for (const char* name : {"state.bin", "manifest.json"}) {
    const fs::path file = run_.checkpoints() / "step-10" / name;
    const std::string good = read_text(file);
    for (size_t size = 0; size < good.size(); ++size) {
      write_text(file, good.substr(0, size));
      EXPECT_TRUE(is_damaged(10)) << name << " cut to " << size;
    }
    for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
      std::string flipped = good;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      write_text(file, flipped);
      EXPECT_TRUE(is_damaged(10)) << name << ", bit " << bit;
    }
    for (const std::string& longer : {good + " ", good + good}) {
      write_text(file, longer);
      EXPECT_TRUE(is_damaged(10)) << name;
    }
    write_text(file, good);
    EXPECT_EQ(refusal(10), "");
    fs::remove(file);
    EXPECT_TRUE(is_damaged(10)) << name << " is missing";
    write_text(file, good);
  }
  write(20);
  fs::remove_all(run_.checkpoints() / "step-10");
  fs::rename(run_.checkpoints() / "step-20", run_.checkpoints() / "step-10");
  EXPECT_TRUE(is_damaged(10)) << "of another step";
}

TEST_F(Checkpointed, DamagedLeavesTheParametersUnchanged) {
  write(10);
  write_text(run_.checkpoints() / "step-10" / "state.bin", "short");
  at::Tensor parameters = at::zeros({5});
  EXPECT_THROW(checkpoints_.read_parameters(10, parameters, kMoments, 0), DamagedCheckpoint);
  EXPECT_TRUE(at::equal(parameters, at::zeros({5})));
}

TEST_F(Checkpointed, OfAnotherVersionIsRefusedWithAdvice) {
  write(10);
  const fs::path file = run_.checkpoints() / "step-10" / "manifest.json";
  const std::string sentence = "the checkpoint " + (run_.checkpoints() / "step-10").string() +
                               " was written by another version of the engine; delete that folder; the run then "
                               "resumes from an older checkpoint or "
                               "from the start";
  json manifest = unsealed(read_text(file)).value();
  manifest["format"] = 1;
  write_text(file, manifest.dump(2) + "\n");
  EXPECT_EQ(refusal(10), sentence);
  for (const int format : {8, 10}) {
    manifest["format"] = format;
    write_text(file, sealed(manifest));
    EXPECT_EQ(refusal(10), sentence);
  }
  manifest["format"] = 9;
  write_text(file, manifest.dump(2) + "\n");
  EXPECT_TRUE(is_damaged(10)) << "not sealed";
}

TEST_F(Checkpointed, OfAnOlderVersionStillHasItsParameters) {
  write(10);
  const fs::path file = run_.checkpoints() / "step-10" / "manifest.json";
  json manifest = unsealed(read_text(file)).value();
  at::Tensor parameters = at::zeros({5});
  for (const auto& [format, readable] :
       {std::pair(3, false), {4, true}, {7, true}, {8, true}, {9, true}, {10, false}}) {
    manifest["format"] = format;
    write_text(file, sealed(manifest));
    parameters.zero_();
    EXPECT_EQ(tearless::test::error_of([&] { checkpoints_.read_parameters(10, parameters, kMoments, 0); }).empty(),
              readable)
        << format;
    EXPECT_EQ(at::equal(parameters, numbers(10).parameters), readable) << format;
  }
}

TEST_F(Checkpointed, MeansAreThoseOfTheParametersInDouble) {
  constexpr int64_t kSize = 1000;
  std::vector<double> sum(kSize);
  std::vector<int64_t> steps;
  for (int64_t step = 1; step <= 10; ++step) {
    TrainedState state = empty(kSize);
    for (int64_t i = 0; i < kSize; ++i) {
      state.parameters[i] = std::sin(static_cast<double>(i * step)) * std::pow(10.0, static_cast<double>(i % 7));
      sum[static_cast<size_t>(i)] += state.parameters[i].item<double>();
    }
    checkpoints_.write(step, state, {});
    steps.push_back(step);
  }
  TrainedState buffers = empty(kSize);
  buffers.parameters.fill_(7);  // what was there is no part of the mean
  checkpoints_.read_mean(steps, buffers);
  for (int64_t i = 0; i < kSize; ++i) {
    const double mean = sum[static_cast<size_t>(i)] / 10;
    EXPECT_NEAR(buffers.parameters[i].item<double>(), mean, 1e-6 * std::pow(10.0, static_cast<double>(i % 7))) << i;
  }
  EXPECT_TRUE(at::equal(buffers.optimiser[0], at::zeros({kSize})));
  checkpoints_.read_mean({3}, buffers);
  at::Tensor third = at::zeros({kSize});
  checkpoints_.read_parameters(3, third, kMoments, 0);
  EXPECT_TRUE(at::equal(buffers.parameters, third)) << "of one checkpoint bit by bit";
  write_text(run_.checkpoint(5) / "state.bin", "short");
  EXPECT_THROW(checkpoints_.read_mean(steps, buffers), DamagedCheckpoint);
  EXPECT_THROW(checkpoints_.read_mean({}, buffers), std::logic_error) << "the parameters are no mean of none";
}

/// The largest resident set of this process while it does that, beyond what it had before.
int64_t peak_bytes(const std::function<void()>& work) {
  const auto resident = [](const char* field) {
    const std::string status = read_text("/proc/self/status");
    return 1024 * std::stoll(status.substr(status.find(field) + std::strlen(field)));
  };
  write_text("/proc/self/clear_refs", "5");  // VmHWM begins again
  const int64_t before = resident("VmRSS:");
  work();
  return resident("VmHWM:") - before;
}

TEST_F(Checkpointed, TheMeanOfTenNeedsTheMemoryOfTwo) {
  if (tearless::test::kSanitized) GTEST_SKIP() << "the sanitizer keeps what is freed";
  constexpr int64_t kSize = 1 << 20;
  std::vector<int64_t> steps;
  for (int64_t step = 1; step <= 10; ++step) {
    checkpoints_.write(step, numbers(static_cast<double>(step), kSize), {});
    steps.push_back(step);
  }
  TrainedState buffers = empty(kSize);
  const int64_t one = static_cast<int64_t>(buffers.bytes());
  // The kernel counts in pages, huge ones among them.
  EXPECT_LT(peak_bytes([&] { checkpoints_.read_mean(steps, buffers); }), 5 * one / 2);
  EXPECT_GT(peak_bytes([&] {
              std::vector<StoredCheckpoint> all;
              for (const int64_t step : steps) all.push_back(checkpoints_.read(step, buffers));
            }),
            5 * one)
      << "or the measurement shows nothing";
}

TEST_F(Checkpointed, OfAnotherRunIsRefusedWithBothIdsAndAdvice) {
  const RunDirectory other(folder_ / "other");
  Checkpoints(other).write(10, numbers(10), {{"update", 10}});
  fs::create_directories(run_.checkpoints());
  fs::rename(other.checkpoint(10), run_.checkpoint(10));
  EXPECT_EQ(refusal(10), "the checkpoint " + run_.checkpoint(10).string() + " is of the run other, not of " +
                             run_.id() +
                             "; delete that folder; the run then resumes from an older checkpoint or from the start");
  at::Tensor parameters = at::zeros({5});
  EXPECT_THROW(checkpoints_.read_parameters(10, parameters, kMoments, 0), UserError);
  EXPECT_TRUE(at::equal(parameters, at::zeros({5})));
}

TEST(CheckpointIsDue, WhereItTakesNoMoreThanItsShareOfTheTime) {
  constexpr size_t kLarge = 64 << 20;
  EXPECT_TRUE(checkpoint_is_due(0.1, kLarge, 0, 0)) << "the first";
  EXPECT_FALSE(checkpoint_is_due(0.1, kLarge, 17.9, 2));
  EXPECT_TRUE(checkpoint_is_due(0.1, kLarge, 18.1, 2));
  EXPECT_TRUE(checkpoint_is_due(0.5, kLarge, 2.1, 2));
  EXPECT_TRUE(checkpoint_is_due(0.1, kLarge - 1, 0, 2)) << "a small one";
  EXPECT_TRUE(checkpoint_is_due(1, kLarge, 0, 2));
  EXPECT_FALSE(checkpoint_is_due(0, 1, 1e9, 0));
}

TEST_F(Checkpointed, OfAnotherModelIsRefused) {
  write(10);
  for (const int64_t other : {4, 6}) {
    EXPECT_THAT(refusal(10, other), testing::StartsWith("the checkpoint")) << other;
    EXPECT_THAT(refusal(10, other), HasSubstr("belongs to a model of another size"));
    at::Tensor parameters = at::zeros({other});
    EXPECT_THROW(checkpoints_.read_parameters(10, parameters, kMoments, 0), UserError);
  }
}

TEST_F(Checkpointed, AFolderThatCannotBeWrittenIsNamedAndNothingAppears) {
  fs::permissions(folder_.path(),
                  fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
  const tearless::test::WithoutRoot ordinary;
  EXPECT_THAT(tearless::test::error_of([&] { write(10); }), HasSubstr(run_.checkpoints().string()));
  EXPECT_EQ(checkpoints_.newest(), std::nullopt);
}

}  // namespace
}  // namespace tearless::engine::checkpoint_test
