// Whether this test program is built with AddressSanitizer, under which everything takes three to ten times as long.
#pragma once

namespace tearless::test {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace tearless::test
