#include "harness/plan/frozen_program.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "harness/folders/program_copies.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::frozen_program_test {
namespace {

namespace fs = std::filesystem;
using test::error_of;

class FrozenProgram : public testing::Test {
 protected:
  FrozenProgram() {
    for (const char* file : {"bin/program", "bin/beside", "lib/engine", "lib/beside"}) {
      fs::create_directories((folder_ / file).parent_path());
      test::write_text(folder_ / file, std::string("#!/bin/sh\n# ") + file + "\n");
      fs::permissions(folder_ / file, fs::perms::owner_all);
    }
  }
  fs::path frozen(const std::vector<std::string>& files, const std::string& home = "") const {
    Probe probe;
    probe.files = files;
    probe.home = home;
    const fs::path copy = workspace_.root() / freeze_program(workspace_, Program(folder_ / "bin/program"), probe);
    EXPECT_EQ(fault_of_program(workspace_, copy), "");
    return copy.parent_path();
  }
  const test::TempFolder folder_;
  const Workspace workspace_ = Workspace(folder_ / "results");
};

TEST_F(FrozenProgram, HasBesideItWhatLiesElsewhereAndIsToldItsHome) {
  const fs::path copy = frozen({"beside", (folder_ / "lib/engine").string()}, "/opt/an environment/lib");
  EXPECT_EQ(test::read_text(copy / "beside"), test::read_text(folder_ / "bin/beside"));
  EXPECT_EQ(test::read_text(copy / "engine"), test::read_text(folder_ / "lib/engine"));
  EXPECT_EQ(test::read_text(copy / "program.home"), "/opt/an environment/lib\n");
  EXPECT_EQ(copy, frozen({(folder_ / "lib/engine").string(), "beside"}, "/opt/an environment/lib"));
}

TEST_F(FrozenProgram, IsAnotherWithAnotherFileOrHome) {
  const auto files = std::vector{(folder_ / "lib/engine").string()};
  const fs::path copy = frozen(files, "/home/a");
  EXPECT_NE(copy, frozen(files, "/home/b"));
  EXPECT_NE(copy, frozen(files));
  test::write_text(folder_ / "lib/engine", "built again");
  EXPECT_NE(copy, frozen(files, "/home/a"));
}

TEST_F(FrozenProgram, HasOneFileOfAName) {
  EXPECT_EQ(frozen({"program", "beside"}), frozen({"beside"})) << "the program may name itself";
  const std::string other = (folder_ / "lib/beside").string();
  EXPECT_EQ(error_of([&] {
              frozen({"beside", other});
            }),
            "`" + (folder_ / "bin/program").string() + " probe` names " + (folder_ / "bin/beside").string() + " and " +
                other + ", and a copy can have one file of that name beside it");
  EXPECT_EQ(
      error_of([&] { frozen({"../lib/engine"}); }),
      "`" + (folder_ / "bin/program").string() +
          " probe` names the file \"../lib/engine\"; a file beside the program has a name without folders, and one "
          "elsewhere an absolute path");
}

}  // namespace
}  // namespace tearless::harness::frozen_program_test
