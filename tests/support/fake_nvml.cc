// A stand-in for libnvidia-ml.so.1: the functions that harness/launch/nvml.cc calls, as NVML's reference documents
// them, over a file that the environment variable TEARLESS_FAKE_NVML names. Each call reads the file again, so a test
// can change a device while it is used. Its lines, those about a device after that device:
//
//   init ERROR                           what nvmlInit_v2 returns; 0 without the line
//   gpu UUID TOTAL USED NAME             a device, in order of index; bytes
//   lost INDEX ERROR                     every call for this device returns ERROR: 15 is "GPU is lost"
//   process INDEX PID BYTES              BYTES -1: the driver does not report it
//   mode INDEX MODE                      its compute mode; 0 without the line
//   mig INDEX                            MIG divides it
//   part INDEX UUID TOTAL USED NAME      an instance that MIG has made of it; has an index as if it were the next
//   device

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0, kUninitialised = 1, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6,
              kInsufficientSize = 7;

struct FakeProcess {
  unsigned pid = 0;
  unsigned long long bytes = 0;
};

constexpr size_t kNoGpu = ~size_t{0};

struct FakeGpu {
  std::string uuid, name;
  unsigned long long total = 0, used = 0;
  int error = 0;
  unsigned mode = 0;
  bool is_divided = false;
  size_t part_of = kNoGpu;
  std::vector<FakeProcess> processes;
};

struct Script {
  int init = 0;
  std::vector<FakeGpu> gpus;
};

Script read_script() {
  Script script;
  const char* file = std::getenv("TEARLESS_FAKE_NVML");
  std::ifstream in(file ? file : "");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind;
    size_t index = 0;
    words >> kind;
    if (kind == "init") {
      words >> script.init;
    } else if (kind == "gpu" || kind == "part") {
      FakeGpu& gpu = script.gpus.emplace_back();
      if (kind == "part") words >> gpu.part_of;
      words >> gpu.uuid >> gpu.total >> gpu.used >> std::ws;
      std::getline(words, gpu.name);
    } else if (kind == "lost") {
      words >> index;
      words >> script.gpus.at(index).error;
    } else if (kind == "mode") {
      words >> index;
      words >> script.gpus.at(index).mode;
    } else if (kind == "mig") {
      words >> index;
      script.gpus.at(index).is_divided = true;
    } else if (kind == "process") {
      FakeProcess process;
      long long bytes = 0;
      words >> index >> process.pid >> bytes;
      process.bytes = static_cast<unsigned long long>(bytes);
      script.gpus.at(index).processes.push_back(process);
    }
  }
  return script;
}

bool initialised = false;

// A handle is the index + 1 as a pointer.
template <class Action>
int with_gpu(void* handle, Action&& action) {
  if (!initialised) return kUninitialised;
  const Script script = read_script();
  const size_t index = reinterpret_cast<size_t>(handle) - 1;
  if (index >= script.gpus.size()) return kInvalidArgument;
  if (script.gpus[index].error != 0) return script.gpus[index].error;
  return action(script.gpus[index]);
}

int copy_text(const std::string& text, char* out, unsigned size) {
  if (text.size() >= size) return kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kSuccess;
}

}  // namespace

extern "C" {

struct nvmlMemory_t {
  unsigned long long total, free, used;
};

struct nvmlProcessInfo_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId, computeInstanceId;
};

int nvmlInit_v2() {
  const int result = read_script().init;
  initialised = result == kSuccess;
  return result;
}

int nvmlShutdown() {
  initialised = false;
  return kSuccess;
}

const char* nvmlErrorString(int result) {
  switch (result) {
    case 4:
      return "Insufficient Permissions";
    case 9:
      return "Driver Not Loaded";
    case 15:
      return "GPU is lost";
    default:
      return "Unknown Error";
  }
}

int nvmlDeviceGetCount_v2(unsigned int* count) {
  const std::vector<FakeGpu> all = read_script().gpus;
  *count = static_cast<unsigned>(
      std::count_if(all.begin(), all.end(), [](const FakeGpu& gpu) { return gpu.part_of == kNoGpu; }));
  return initialised ? kSuccess : kUninitialised;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** handle) {
  *handle = reinterpret_cast<void*>(static_cast<size_t>(index) + 1);
  return with_gpu(*handle, [](const FakeGpu&) { return kSuccess; });
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned int length) {
  return with_gpu(device, [&](const FakeGpu& gpu) { return copy_text(gpu.uuid, uuid, length); });
}

int nvmlDeviceGetName(void* device, char* name, unsigned int length) {
  return with_gpu(device, [&](const FakeGpu& gpu) { return copy_text(gpu.name, name, length); });
}

int nvmlDeviceGetMemoryInfo(void* device, nvmlMemory_t* memory) {
  return with_gpu(device, [&](const FakeGpu& gpu) {
    *memory = {gpu.total, gpu.total - gpu.used, gpu.used};
    return kSuccess;
  });
}

int nvmlDeviceGetComputeMode(void* device, unsigned int* mode) {
  return with_gpu(device, [&](const FakeGpu& gpu) {
    *mode = gpu.mode;
    return kSuccess;
  });
}

int nvmlDeviceGetMigMode(void* device, unsigned int* now, unsigned int* after_reset) {
  return with_gpu(device, [&](const FakeGpu& gpu) {
    *now = *after_reset = 1;
    return gpu.is_divided ? kSuccess : kNotSupported;
  });
}

int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned int* count) {
  *count = 8;
  return with_gpu(device, [](const FakeGpu&) { return kSuccess; });
}

// The slots with odd numbers are empty.
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned int slot, void** handle) {
  return with_gpu(device, [&](const FakeGpu&) {
    const std::vector<FakeGpu> all = read_script().gpus;
    unsigned skipped = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].part_of + 1 != reinterpret_cast<size_t>(device) || 2 * skipped++ != slot) continue;
      *handle = reinterpret_cast<void*>(i + 1);
      return kSuccess;
    }
    return kNotFound;
  });
}

// Fills no more than *count entries. Too few: kInsufficientSize, and *count is the number there are.
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned int* count, nvmlProcessInfo_t* infos) {
  return with_gpu(device, [&](const FakeGpu& gpu) {
    const auto there = static_cast<unsigned>(gpu.processes.size());
    const bool fits = there <= *count;
    *count = there;
    if (!fits) return kInsufficientSize;
    for (unsigned i = 0; i < there; ++i) {
      infos[i] = {gpu.processes[i].pid, gpu.processes[i].bytes, 0xFFFFFFFF, 0xFFFFFFFF};
    }
    return kSuccess;
  });
}

}  // extern "C"
