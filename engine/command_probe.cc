// tearless-engine probe: reports versions and the devices that runs can use.
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/run_directory.h"
#include "engine/commands.h"
#include "engine/cuda/cuda_library.h"
#include "engine/cuda/torch_folder.h"
#include "engine/ops/matmul.h"
#include "engine/run/run_options.h"

namespace tearless::engine {
namespace fs = std::filesystem;

Action command_probe(CLI::App& app) {
  const auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "machine-readable");
  return [as_json] {
    if (*as_json) {
      const bool has_cuda = fs::exists(cuda_library_file());
      nlohmann::json answer = {{"program", "tearless-engine"},         {"version", program_version()},
                               {"runtime", "LibTorch " TORCH_VERSION}, {"numerics", kNumerics},
                               {"arithmetic", arithmetic_name()},      {"cuda", has_cuda},
                               {"files", nlohmann::json::array()}};
      if (has_cuda) answer["files"].push_back(cuda_library_file());
      if (const char* const libraries =
              std::getenv(kLibrariesVariable)) {  // else LibTorch is found where the build found it
        const fs::path self = fs::read_symlink("/proc/self/exe");
        answer["files"].push_back(self);
        answer["files"].push_back(self.parent_path() / "tearless-engine.libraries");
        answer["home"] = fs::canonical(libraries);
      }
      fmt::print("{}\n", answer.dump());
      return static_cast<int>(kExitDone);
    }
    std::vector<TearlessCudaDevice> devices;
    std::string no_cuda;
    try {
      devices = cuda_devices();
    } catch (const UserError& error) {
      no_cuda = error.what();  // a machine without CUDA is no error here
    }
    fmt::print("tearless-engine {}, numerics {}, LibTorch {}\ncpu: {} cores, matmuls by {}{}\n", program_version(),
               kNumerics, TORCH_VERSION, std::thread::hardware_concurrency(), arithmetic_name(),
               missing_matmul_library());
    for (const TearlessCudaDevice& d : devices) {
      fmt::print("cuda: {} {} ({} GiB, sm_{}{})\n", d.uuid, d.name, d.memory_bytes >> 30, d.compute_major,
                 d.compute_minor);
    }
    if (devices.empty()) fmt::print("cuda: none{}\n", no_cuda.empty() ? "" : " (" + no_cuda + ")");
    return static_cast<int>(kExitDone);
  };
}

}  // namespace tearless::engine
