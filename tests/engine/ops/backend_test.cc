// Which instruction sets can be chosen by name.
#include "engine/ops/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/error_of.h"

namespace tearless::engine::backend_test {
namespace {

using testing::HasSubstr;

TEST(CpuBackends, StartWithOneThatEveryProcessorSupports) {
  EXPECT_EQ(cpu_backends().front().name, "x86-64-v2");
  EXPECT_TRUE(cpu_backends().front().supported);
}

TEST(CpuBackends, AreChosenByNameAndOtherNamesAreRefused) {
  const std::string_view before = cpu_backend().name;
  use_cpu_backend("x86-64-v2");
  EXPECT_EQ(cpu_backend().name, "x86-64-v2");
  use_cpu_backend(before);
  EXPECT_THAT(tearless::test::error_of([&] { use_cpu_backend("avx9"); }),
              HasSubstr("no instruction set \"avx9\"; choose one of: x86-64-v2, x86-64-v3, x86-64-v4"));
  EXPECT_EQ(cpu_backend().name, before);
}

}  // namespace
}  // namespace tearless::engine::backend_test
