// Freed memory that is cached for the next tensor. In a child process: the allocator is set for the whole process.
#include "engine/ops/memory.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/sanitized.h"

namespace tearless::engine::memory_test {
namespace {

TEST(CachedMemory, IsReusedByTheNextTensorOfItsSizeOrHalfOfItAndByNoLargerOne) {
  EXPECT_EXIT(
      {
        cache_freed_memory();
        at::Tensor first = at::full({1000}, 1.0f);
        const void* address = first.data_ptr();
        const bool aligned = reinterpret_cast<uintptr_t>(address) % 64 == 0;
        first.reset();
        const bool cached = cached_memory_bytes() >= 4000;
        const at::Tensor larger = at::full({1200}, 2.0f);
        const bool elsewhere = larger.data_ptr() != address;
        const at::Tensor second = at::full({1010}, 3.0f);
        const bool again = second.data_ptr() == address;
        const at::Tensor third = at::full({1000}, 4.0f);  // the block is in use now
        const bool apart = third.data_ptr() != address && second[0].item<float>() == 3.0f;
        at::Tensor large = at::full({4000}, 5.0f);
        const void* address_of_large = large.data_ptr();
        large.reset();
        const bool for_too_small = at::full({1900}, 6.0f).data_ptr() == address_of_large;
        const bool for_half = at::full({2100}, 7.0f).data_ptr() == address_of_large;
        const at::Tensor empty = at::empty({0});
        std::_Exit(aligned && cached && elsewhere && again && apart && !for_too_small && for_half && empty.numel() == 0
                       ? 0
                       : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(CachedMemory, AFailedAllocationIsAnOutOfMemoryError) {
  if (tearless::test::kSanitized) {
    GTEST_SKIP() << "the sanitizer ends the process where an allocation cannot succeed";
  }
  EXPECT_EXIT(
      {
        cache_freed_memory();
        at::full({1000}, 1.0f).reset();
        if (cached_memory_bytes() == 0) std::_Exit(3);
        try {
          at::empty({int64_t{1} << 50});
        } catch (const c10::Error& error) {
          const bool named =
              std::string_view(error.what_without_backtrace()).find("allocate memory") != std::string::npos;
          std::_Exit(!named ? 2 : cached_memory_bytes() != 0 ? 4 : 0);  // all cached memory was returned first
        }
        std::_Exit(1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tearless::engine::memory_test
