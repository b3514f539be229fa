#include "engine/cuda/torch_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::engine::torch_folder_test {
namespace {

namespace fs = std::filesystem;
using tearless::test::error_of;

class TorchFolder : public testing::Test {
 protected:
  /// An installed torch, as far as it is looked at.
  fs::path install(const std::string& below, const std::string& version, const std::string& cuda) const {
    const fs::path torch = folder_ / below;
    fs::create_directories(torch / "lib");
    tearless::test::write_text(torch / "version.py", "from typing import Optional\n__version__ = '" + version +
                                                         "'\ncuda: Optional[str] = " + cuda + "\n");
    tearless::test::write_text(torch / "lib/libtorch_cuda.so", "");
    return torch;
  }
  fs::path chosen(const fs::path& asked = "") const { return torch_with_cuda(asked, folder_.path()); }
  std::string refusal(const fs::path& asked = "") const {
    return error_of([&] { chosen(asked); });
  }
  const std::string needs_ = "device = \"cuda\" needs torch 2.11.0 for CUDA 13.0, and ";
  const std::string advice_ = ": pip install torch==2.11.0, or set TEARLESS_TORCH to a folder of it";
  const tearless::test::TempFolder folder_;
};

TEST_F(TorchFolder, IsThatOfTheEnvironment) {
  install("lib/python3.9/site-packages/torch", "2.10.0+cu128", "'12.8'");
  const fs::path torch = install("lib64/python3.11/site-packages/torch", "2.11.0+cu130", "'13.0'");
  EXPECT_EQ(chosen(), torch);
}

TEST_F(TorchFolder, IsTheOneThatIsAskedForThoughTheEnvironmentHasOne) {
  install("lib/python3.11/site-packages/torch", "2.11.0+cu130", "'13.0'");
  const fs::path torch = install("elsewhere/torch", "2.11.0", "'13.0'");
  EXPECT_EQ(chosen(torch), torch);
  const fs::path other = install("other/torch", "2.11.0+cu128", "'12.8'");
  EXPECT_EQ(refusal(other), needs_ + "TEARLESS_TORCH = " + other.string() + " is 2.11.0 for CUDA 12.8" + advice_);
  EXPECT_EQ(refusal("/nowhere"), needs_ + "TEARLESS_TORCH = /nowhere is no torch" + advice_);
}

TEST_F(TorchFolder, OfAnotherBuildIsRefusedByName) {
  EXPECT_EQ(refusal(), needs_ + "there is none in " + folder_.path().string() + advice_);
  const fs::path torch = install("lib/python3.11/dist-packages/torch", "2.10.0+cu130", "'13.0'");
  EXPECT_EQ(refusal(), needs_ + torch.string() + " is 2.10.0 for CUDA 13.0" + advice_);
  install("lib/python3.11/dist-packages/torch", "2.11.0+cpu", "None");
  EXPECT_EQ(refusal(), needs_ + torch.string() + " is 2.11.0 without CUDA" + advice_);
  install("lib/python3.11/dist-packages/torch", "2.11.0+cu130", "'13.0'");
  fs::remove(torch / "lib/libtorch_cuda.so");
  EXPECT_EQ(refusal(), needs_ + torch.string() + " is 2.11.0 for CUDA 13.0, but has no lib/libtorch_cuda.so" + advice_);
}

}  // namespace
}  // namespace tearless::engine::torch_folder_test
