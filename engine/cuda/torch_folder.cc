#include "engine/cuda/torch_folder.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/sys.h"

namespace tearless::engine {
namespace fs = std::filesystem;
namespace {

constexpr char kTorchCuda[] = "13.0";  // of the wheel in tools/wheels/torch.txt

/// As torch/version.py says; both empty where there is none.
struct TorchBuild {
  std::string version = {}, cuda = {};
  bool operator==(const TorchBuild&) const = default;
};

/// `'2.11.0+cu130'` → `2.11.0`
std::string quoted_in(const std::string& line) {
  const size_t begin = line.find('\'');
  return begin == std::string::npos ? "" : line.substr(begin + 1, line.find_first_of("+'", begin + 1) - begin - 1);
}

TorchBuild build_in(const fs::path& torch) {
  TorchBuild build;
  std::ifstream file(torch / "version.py");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("__version__ =")) build.version = quoted_in(line);
    if (line.starts_with("cuda")) build.cuda = quoted_in(line);
  }
  return build;
}

const TorchBuild& needed() {
  static const TorchBuild build{TORCH_VERSION, kTorchCuda};
  return build;
}

std::string shown(const TorchBuild& build) {
  return build.version + (build.cuda.empty() ? " without CUDA" : " for CUDA " + build.cuda);
}

std::vector<fs::path> torches_below(const fs::path& prefix) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const char* lib : {"lib", "lib64"}) {
    for (const auto& python : fs::directory_iterator(prefix / lib, none)) {
      if (!python.path().filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        const fs::path torch = python.path() / packages / "torch";
        if (fs::exists(torch / "version.py")) found.push_back(torch);
      }
    }
  }
  return found;
}

}  // namespace

fs::path torch_with_cuda(const fs::path& asked, const fs::path& prefix) {
  const std::vector<fs::path> found = asked.empty() ? torches_below(prefix) : std::vector{asked};
  for (const fs::path& torch : found) {
    if (build_in(torch) == needed() && fs::exists(torch / "lib/libtorch_cuda.so")) return fs::canonical(torch);
  }
  std::string here = fmt::format("there is none in {}", prefix.string());
  if (!found.empty()) {
    const TorchBuild build = build_in(found[0]);
    here = fmt::format("{}{} is {}", asked.empty() ? "" : "TEARLESS_TORCH = ", found[0].string(),
                       build.version.empty() ? "no torch" : shown(build));
    if (build == needed()) here += ", but has no lib/libtorch_cuda.so";
  }
  fail("device = \"cuda\" needs torch {}, and {}: pip install torch=={}, or set TEARLESS_TORCH to a folder of it",
       shown(needed()), here, TORCH_VERSION);
}

fs::path torch_in_use() {
  void* const library = ::dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  link_map* map = nullptr;
  require(library && ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0, "libtorch_cpu.so is not loaded");
  return fs::path(map->l_name).parent_path();
}

void start_again_with(const fs::path& torch) {
  const std::string first = (torch / "lib").string() + ":";
  const char* const before = std::getenv("LD_LIBRARY_PATH");
  if (before && std::string_view(before).starts_with(first)) {
    fail("the loader took LibTorch from {} and not from {}", torch_in_use().string(), (torch / "lib").string());
  }
  ::setenv("LD_LIBRARY_PATH", (first + (before ? before : "")).c_str(), /*overwrite=*/1);
  std::string line = read_file("/proc/self/cmdline");  // each argument ends with a zero byte
  std::vector<char*> arguments;
  for (size_t at = 0; at < line.size(); at = line.find('\0', at) + 1) arguments.push_back(&line[at]);
  arguments.push_back(nullptr);
  sys::execve("/proc/self/exe", arguments.data(), environ);
  fail_errno("start again", fs::read_symlink("/proc/self/exe"));
}

}  // namespace tearless::engine
