#include "harness/devices/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>

namespace tearless::harness {
namespace {

// NVML's C interface as its reference documents it: a stable ABI, in which a changed layout gets a new suffix.
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlInsufficientSize = 7;
constexpr uint64_t kNvmlNotAvailable = ~uint64_t{0};  // memory of a process that the driver does not count
constexpr unsigned kNvmlNameSize = 96;                // of device names and UUIDs, including the final zero

void add_sentence(std::string& text, const std::string& sentence) {
  if (!text.empty()) text += "; ";
  text += sentence;
}

}  // namespace

struct NvmlMonitor::Api {
  struct Memory {
    uint64_t total, free, used;  // bytes
  };
  struct Process {
    unsigned pid;
    uint64_t used_memory;  // bytes, or kNvmlNotAvailable
    unsigned gpu_instance, compute_instance;
  };

  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, void**) = nullptr;
  int (*uuid)(void*, char*, unsigned) = nullptr;
  int (*name)(void*, char*, unsigned) = nullptr;
  int (*memory)(void*, Memory*) = nullptr;
  int (*processes)(void*, unsigned*, Process*) = nullptr;
  bool initialised = false;

  ~Api() {
    if (initialised) shutdown();
    if (library) ::dlclose(library);
  }

  template <class Function>
  bool find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    return function != nullptr;
  }

  /// The name of a function that the library lacks, or "".
  std::string find_all() {
    if (!find(init, "nvmlInit_v2")) return "nvmlInit_v2";
    if (!find(shutdown, "nvmlShutdown")) return "nvmlShutdown";
    if (!find(error_text, "nvmlErrorString")) return "nvmlErrorString";
    if (!find(count, "nvmlDeviceGetCount_v2")) return "nvmlDeviceGetCount_v2";
    if (!find(handle, "nvmlDeviceGetHandleByIndex_v2")) return "nvmlDeviceGetHandleByIndex_v2";
    if (!find(uuid, "nvmlDeviceGetUUID")) return "nvmlDeviceGetUUID";
    if (!find(name, "nvmlDeviceGetName")) return "nvmlDeviceGetName";
    if (!find(memory, "nvmlDeviceGetMemoryInfo")) return "nvmlDeviceGetMemoryInfo";
    // Drivers before 510 export _v2 alone; both fill the same struct.
    if (!find(processes, "nvmlDeviceGetComputeRunningProcesses_v3") &&
        !find(processes, "nvmlDeviceGetComputeRunningProcesses_v2")) {
      return "nvmlDeviceGetComputeRunningProcesses_v3";
    }
    return "";
  }

  /// The error of listing a device at `index`, or nullopt.
  std::optional<std::string> describe(unsigned index, Device& device, void*& found) const {
    std::array<char, kNvmlNameSize> text{};
    Api::Memory sizes{};
    int result = handle(index, &found);
    if (result == kNvmlSuccess) result = uuid(found, text.data(), text.size());
    if (result == kNvmlSuccess) {
      device.uuid = text.data();
      result = name(found, text.data(), text.size());
    }
    if (result == kNvmlSuccess) {
      device.name = text.data();
      result = memory(found, &sizes);
    }
    if (result != kNvmlSuccess) return error_text(result);
    device.memory_bytes = static_cast<int64_t>(sizes.total);
    device.index = static_cast<int>(index);
    return std::nullopt;
  }
};

NvmlMonitor::NvmlMonitor(const std::filesystem::path& library) {
  auto api = std::make_unique<Api>();
  api->library = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!api->library) {
    problem_ = fmt::format("no GPU is used: NVIDIA's driver is not installed ({})", ::dlerror());
    return;
  }
  if (const std::string missing = api->find_all(); !missing.empty()) {
    problem_ = fmt::format("no GPU is used: {} has no function {}; update NVIDIA's driver", library.string(), missing);
    return;
  }
  if (const int result = api->init(); result != kNvmlSuccess) {
    problem_ = fmt::format("no GPU is used: NVIDIA's driver does not answer ({})", api->error_text(result));
    return;
  }
  api->initialised = true;
  api_ = std::move(api);
  list_devices();
}

NvmlMonitor::~NvmlMonitor() = default;

void NvmlMonitor::list_devices() {
  unsigned count = 0;
  if (const int result = api_->count(&count); result != kNvmlSuccess) {
    problem_ = fmt::format("no GPU is used: NVIDIA's driver does not list them ({})", api_->error_text(result));
    return;
  }
  for (unsigned index = 0; index < count; ++index) {
    Device device;
    void* handle = nullptr;
    if (const auto error = api_->describe(index, device, handle)) {
      add_sentence(problem_, fmt::format("GPU {} is not used: {}", index, *error));
    } else {
      handles_[device.uuid] = handle;
      devices_.push_back(std::move(device));
    }
  }
}

DeviceUse NvmlMonitor::use_of(const std::string& uuid) {
  const auto found = handles_.find(uuid);
  if (found == handles_.end()) return {.used_bytes = 0, .processes = {}, .error = "no GPU has this UUID"};
  Api::Memory sizes{};
  int result = api_->memory(found->second, &sizes);

  // Processes may start between the two calls, so the list has room for a few more than were counted.
  std::vector<Api::Process> listed(64);
  unsigned count = 0;
  for (int attempt = 0; result == kNvmlSuccess && attempt < 5; ++attempt) {
    count = static_cast<unsigned>(listed.size());
    const int answer = api_->processes(found->second, &count, listed.data());
    if (answer != kNvmlInsufficientSize) {
      result = answer;
      break;
    }
    listed.resize(count + 64);
  }
  if (result != kNvmlSuccess) return {.used_bytes = 0, .processes = {}, .error = api_->error_text(result)};

  DeviceUse use{.used_bytes = static_cast<int64_t>(sizes.used), .processes = {}, .error = ""};
  listed.resize(count);
  for (const Api::Process& process : listed) {
    DeviceProcess& added = use.processes.emplace_back(DeviceProcess{.pid = process.pid, .bytes = std::nullopt});
    if (process.used_memory != kNvmlNotAvailable) added.bytes = static_cast<int64_t>(process.used_memory);
  }
  return use;
}

}  // namespace tearless::harness
