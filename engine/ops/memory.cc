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

class CachingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &free_block, c10::Device(c10::DeviceType::CPU)};
    void* data = allocate_block(size_class(bytes));
    return {data, data, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }

  int64_t cached_bytes() {
    const std::lock_guard lock(mutex_);
    int64_t bytes = 0;
    for (const auto& [size, blocks] : free_blocks_) bytes += static_cast<int64_t>(size * blocks.size());
    return bytes;
  }

 private:
  void* allocate_block(size_t size) {
    {
      const std::lock_guard lock(mutex_);
      // A search needs less memory with each hypothesis that ends, and touching new memory takes long.
      for (auto it = free_blocks_.lower_bound(size); it != free_blocks_.end() && it->first <= 2 * size; ++it) {
        if (it->second.empty()) continue;
        Header* header = it->second.back();
        it->second.pop_back();
        return header + 1;
      }
    }
    void* memory = std::aligned_alloc(kAlignment, sizeof(Header) + size);
    if (!memory) {
      free_cache();
      memory = std::aligned_alloc(kAlignment, sizeof(Header) + size);
    }
    TORCH_CHECK(memory, "cannot allocate memory: ", size, " bytes for a tensor");
    auto* header = static_cast<Header*>(memory);
    header->size = size;
    return header + 1;
  }

  void free_cache() {
    const std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : free_blocks_) {
      for (Header* header : blocks) std::free(header);
      blocks.clear();
    }
  }

  static void free_block(void* data);

  std::mutex mutex_;
  std::map<size_t, std::vector<Header*>> free_blocks_;
};

CachingAllocator& allocator() {
  static auto* const instance = new CachingAllocator;  // never destroyed: static tensors may be freed after main()
  return *instance;
}

void CachingAllocator::free_block(void* data) {
  if (!data) return;
  Header* header = static_cast<Header*>(data) - 1;
  CachingAllocator& self = allocator();
  const std::lock_guard lock(self.mutex_);
  self.free_blocks_[header->size].push_back(header);
}

}  // namespace

void cache_freed_memory() { c10::SetAllocator(c10::DeviceType::CPU, &allocator(), /*priority=*/1); }

int64_t cached_memory_bytes() { return allocator().cached_bytes(); }

int64_t peak_memory_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace tearless::engine
