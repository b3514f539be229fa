// The LibTorch that serves a GPU. tearless-engine as pip installs it brings LibTorch's CPU half alone, and both halves
// must be of one build: for a GPU it starts again with those of a torch that is installed.
#pragma once

#include <filesystem>

namespace tearless::engine {

/// The variable in which engine/starter.sh names the folder of the libraries that were packed with the engine. Not set:
/// the engine runs where it was built.
inline constexpr const char* kLibrariesVariable = "TEARLESS_LIBRARIES";

/// The folder, with lib/, of the torch that `asked` (TEARLESS_TORCH) names, or, where that is empty, of the Python
/// packages in the environment `prefix`. UserError unless it is of the version and CUDA that the engine was built with.
std::filesystem::path torch_with_cuda(const std::filesystem::path& asked, const std::filesystem::path& prefix);

/// The folder of the libtorch_cpu.so that this process runs with.
std::filesystem::path torch_in_use();

/// Runs this process's command line again, from its start, with the libraries in torch/lib. UserError if they would not
/// be taken.
[[noreturn]] void start_again_with(const std::filesystem::path& torch);

}  // namespace tearless::engine
