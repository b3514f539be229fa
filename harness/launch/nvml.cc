#include "harness/launch/nvml.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <optional>

namespace tearless::harness {
namespace {

// NVML's C interface as its reference documents it: a stable ABI, in which a changed layout gets a new suffix.
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlInsufficientSize = 7;
constexpr uint64_t kNvmlNotAvailable = ~uint64_t{0};  // memory of a process that the driver does not count
constexpr unsigned kNvmlNameSize = 96;                // of device names and UUIDs, including the final zero
enum ComputeMode : unsigned { kExclusiveThread = 1, kProhibited = 2, kExclusiveProcess = 3 };

// NVIDIA's MPS computes for the processes that use it, which are listed beside its server.
bool is_of_mps(unsigned pid) {
  std::string name;  // the kernel cuts it to 15 characters
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
  return name == "nvidia-cuda-mps";
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
  // Null where the driver lacks them.
  int (*compute_mode)(void*, unsigned*) = nullptr;
  int (*mig_mode)(void*, unsigned* now, unsigned* after_reset) = nullptr;
  int (*instance_slots)(void*, unsigned*) = nullptr;
  int (*instance)(void*, unsigned, void**) = nullptr;
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

  bool find_all() {
    find(compute_mode, "nvmlDeviceGetComputeMode");
    find(mig_mode, "nvmlDeviceGetMigMode");
    find(instance_slots, "nvmlDeviceGetMaxMigDeviceCount");
    find(instance, "nvmlDeviceGetMigDeviceHandleByIndex");
    return find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") && find(error_text, "nvmlErrorString") &&
           find(count, "nvmlDeviceGetCount_v2") && find(handle, "nvmlDeviceGetHandleByIndex_v2") &&
           find(uuid, "nvmlDeviceGetUUID") && find(name, "nvmlDeviceGetName") &&
           find(memory, "nvmlDeviceGetMemoryInfo") &&
           // Drivers before 510 export _v2 alone; both fill the same struct.
           (find(processes, "nvmlDeviceGetComputeRunningProcesses_v3") ||
            find(processes, "nvmlDeviceGetComputeRunningProcesses_v2"));
  }

  bool is_divided(void* gpu) const {
    unsigned now = 0, after_reset = 0;
    return mig_mode && mig_mode(gpu, &now, &after_reset) == kNvmlSuccess && now == 1;
  }

  /// What programs see of the GPU at `index`: itself, or its instances if MIG divides it and there are any.
  std::vector<void*> parts_of(unsigned index) const {
    void* gpu = nullptr;
    if (handle(index, &gpu) != kNvmlSuccess) return {};
    std::vector<void*> parts;
    unsigned slots = 0;
    if (instance && instance_slots && is_divided(gpu)) instance_slots(gpu, &slots);
    for (unsigned slot = 0; slot < slots; ++slot) {
      void* part = nullptr;
      if (instance(gpu, slot, &part) == kNvmlSuccess) parts.push_back(part);  // else the slot is empty
    }
    return parts.empty() ? std::vector{gpu} : parts;
  }

  /// Nullopt if it cannot be used.
  std::optional<Device> describe(unsigned index, void* found) const {
    std::array<char, kNvmlNameSize> id{}, model{};
    Api::Memory sizes{};
    const bool answers = uuid(found, id.data(), id.size()) == kNvmlSuccess &&
                         name(found, model.data(), model.size()) == kNvmlSuccess &&
                         memory(found, &sizes) == kNvmlSuccess;
    if (!answers) return std::nullopt;
    return Device{.uuid = id.data(),
                  .name = model.data(),
                  .memory_bytes = static_cast<int64_t>(sizes.total),
                  .index = static_cast<int>(index)};
  }
};

NvmlMonitor::NvmlMonitor(const std::filesystem::path& library) {
  auto api = std::make_unique<Api>();
  api->library = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!api->library || !api->find_all() || api->init() != kNvmlSuccess) return;
  api->initialised = true;
  api_ = std::move(api);
  unsigned count = 0;
  if (api_->count(&count) != kNvmlSuccess) return;
  for (unsigned index = 0; index < count; ++index) {
    for (void* const part : api_->parts_of(index)) {
      std::optional<Device> device = api_->describe(index, part);
      if (!device) continue;
      handles_[device->uuid] = part;
      devices_.push_back(*std::move(device));
    }
  }
}

NvmlMonitor::~NvmlMonitor() = default;

DeviceUse NvmlMonitor::use_of(const std::string& uuid) {
  const auto found = handles_.find(uuid);
  if (found == handles_.end()) return {.error = "no GPU has this UUID"};
  if (!uuid.starts_with("MIG-") && api_->is_divided(found->second)) {
    return {.closed =
                "is divided by MIG, and the service has seen no instance of it: start the service again once there are "
                "some (`nvidia-smi mig -cgi …`) or MIG has ended (`nvidia-smi -mig 0`)"};
  }
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
  if (result != kNvmlSuccess) return {.error = api_->error_text(result)};

  DeviceUse use{.used_bytes = static_cast<int64_t>(sizes.used)};
  listed.resize(count);
  unsigned mode = 0;
  if (api_->compute_mode) api_->compute_mode(found->second, &mode);
  if (mode == kProhibited) use.closed = "is in compute mode Prohibited (`nvidia-smi -c 0` ends it)";
  // The server of MPS is then the one process, for as many runs as use it.
  const bool has_mps = std::erase_if(listed, [](const Api::Process& process) { return is_of_mps(process.pid); }) > 0;
  use.one_process = !has_mps && (mode == kExclusiveThread || mode == kExclusiveProcess);
  for (const Api::Process& process : listed) {
    DeviceProcess& added = use.processes.emplace_back(DeviceProcess{.pid = process.pid, .bytes = std::nullopt});
    if (process.used_memory != kNvmlNotAvailable) added.bytes = static_cast<int64_t>(process.used_memory);
  }
  return use;
}

}  // namespace tearless::harness
