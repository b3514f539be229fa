// Approved texts under tests/golden/: a test's output must equal them; tools/bless.sh updates them.
#pragma once

#include <string>
#include <string_view>

namespace tearless::test {

/// Fails the running test (with both texts) unless tests/golden/NAME holds exactly `text`. With TEARLESS_BLESS set,
/// writes it. Tests that call this have Golden in their name, so that bless.sh finds them.
void expect_golden(const std::string& name, std::string_view text);

}  // namespace tearless::test
