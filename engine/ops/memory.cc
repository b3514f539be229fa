#include "engine/ops/memory.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace tearless::engine {
namespace {

constexpr size_t kAlignment = 64;

/// Precedes each block's data.
struct alignas(kAlignment) Header {
  size_t size;  // of the data, in bytes: a size class
};

/// Rounded up to one of eight sizes between a power of two and the next.
size_t size_class(size_t bytes) {
  const size_t step = std::max(kAlignment, std::bit_ceil(bytes) / 16);
  return (bytes + step - 1) / step * step;
}

class KeepingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &give_back, c10::Device(c10::DeviceType::CPU)};
    void* data = take(size_class(bytes));
    return {data, data, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }

  int64_t kept_bytes() {
    const std::lock_guard lock(mutex_);
    int64_t bytes = 0;
    for (const auto& [size, blocks] : kept_) bytes += static_cast<int64_t>(size * blocks.size());
    return bytes;
  }

 private:
  void* take(size_t size) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = kept_.find(size); it != kept_.end() && !it->second.empty()) {
        Header* header = it->second.back();
        it->second.pop_back();
        return header + 1;
      }
    }
    void* memory = std::aligned_alloc(kAlignment, sizeof(Header) + size);
    if (!memory) {
      release();
      memory = std::aligned_alloc(kAlignment, sizeof(Header) + size);
    }
    TORCH_CHECK(memory, "cannot allocate memory: ", size, " bytes for a tensor");
    auto* header = static_cast<Header*>(memory);
    header->size = size;
    return header + 1;
  }

  void release() {
    const std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : kept_) {
      for (Header* header : blocks) std::free(header);
      blocks.clear();
    }
  }

  static void give_back(void* data);

  std::mutex mutex_;
  std::map<size_t, std::vector<Header*>> kept_;
};

KeepingAllocator& allocator() {
  static auto* const instance = new KeepingAllocator;  // never destroyed: static tensors may be freed after main()
  return *instance;
}

void KeepingAllocator::give_back(void* data) {
  if (!data) return;
  Header* header = static_cast<Header*>(data) - 1;
  KeepingAllocator& self = allocator();
  const std::lock_guard lock(self.mutex_);
  self.kept_[header->size].push_back(header);
}

}  // namespace

void keep_freed_memory() { c10::SetAllocator(c10::DeviceType::CPU, &allocator(), /*priority=*/1); }

int64_t kept_memory_bytes() { return allocator().kept_bytes(); }

int64_t peak_memory_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace tearless::engine
