// tearless-engine probe: reports versions and the devices that runs can use.
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/build_stamp.h"
#include "base/error.h"
#include "base/run_directory.h"
#include "engine/commands.h"
#include "engine/cuda/cuda_library.h"
#include "engine/ops/matmul.h"
#include "engine/run/run_options.h"

namespace tearless::engine {

Action command_probe(CLI::App& app) {
  const auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "machine-readable");
  return [as_json] {
    if (*as_json) {
      // The libraries that come with the engine; LibTorch is found where the build found it.
      nlohmann::json files = nlohmann::json::array();
      if (std::filesystem::exists(cuda_library_file())) files.push_back(cuda_library_file().filename());
      fmt::print("{}\n", nlohmann::json{{"program", "tearless-engine"},
                                        {"version", std::string(build_stamp())},
                                        {"runtime", "LibTorch " TORCH_VERSION},
                                        {"numerics", kNumerics},
                                        {"arithmetic", arithmetic_name()},
                                        {"files", files}}
                             .dump());
      return static_cast<int>(kExitDone);
    }
    std::vector<TearlessCudaDevice> devices;
    std::string no_cuda;
    try {
      devices = cuda_devices();
    } catch (const UserError& error) {
      no_cuda = error.what();  // a machine without CUDA is no error here
    }
    fmt::print("tearless-engine {}, numerics {}, LibTorch {}\ncpu: {} cores, matmuls by {}{}\n", build_stamp(),
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
