// `[policy] same_device` on a machine with two kinds of GPU.
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::same_device_test {
namespace {

class SameDeviceTest : public RunTest {
 protected:
  // The GPUs that the runs of the grid were on.
  std::set<std::string> used(const std::string& policy) {
    std::string grid = grid_of("\"succeed\"", 50) + policy;
    grid.insert(grid.find("[axis]"), "\"fake.device\" = \"cuda\"\n");
    test::write_text(folder_ / "grid.toml", grid);
    test::write_text(folder_ / "gpus.txt", "gpu GPU-0 1000000 0 Small\ngpu GPU-1 2000000 0 Large\n");
    EXPECT_EQ(finish(with_gpus(command({"run", "grid.toml"}))).code, 0);
    std::set<std::string> devices;
    for (const auto& run : nlohmann::json::parse(ok({"--json", "explain", "last"}).output)) {
      for (const auto& attempt : run.at("attempts")) devices.insert(attempt.at("device"));
    }
    return devices;
  }
};

TEST_F(SameDeviceTest, WithoutItARunGoesWhereRoomIs) { EXPECT_EQ(used("").size(), 2u); }

TEST_F(SameDeviceTest, WithItAllRunsAreOnTheKindOfTheFirst) {
  EXPECT_EQ(used("[policy]\nsame_device = true\n").size(), 1u);
}

}  // namespace
}  // namespace tearless::harness::same_device_test
