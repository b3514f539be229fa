#include "harness/serve/access.h"

#include <gtest/gtest.h>

#include <set>

namespace tearless::harness {
namespace {

TEST(AccessTest, TokensAndCookiesAre128BitsThatDoNotComeAgain) {
  std::set<std::string> tokens, cookies;
  for (int i = 0; i < 100; ++i) {
    const Access access("here");
    EXPECT_EQ(access.token().size(), 32);
    EXPECT_EQ(access.token().find_first_not_of("0123456789abcdef"), std::string::npos);
    tokens.insert(access.token());
    cookies.insert(access.cookie());
    EXPECT_EQ(access.cookie().find(access.token()), std::string::npos) << "the cookie does not give the token away";
  }
  EXPECT_EQ(tokens.size(), 100);
  EXPECT_EQ(cookies.size(), 100);
}

TEST(AccessTest, ATokenIsTheWholeTextAndNoOther) {
  const Access access("here");
  EXPECT_TRUE(access.is_token(access.token()));
  EXPECT_FALSE(access.is_token(""));
  EXPECT_FALSE(access.is_token(access.token().substr(1)));
  EXPECT_FALSE(access.is_token(access.token() + "0"));
  for (size_t i = 0; i < 32; ++i) {
    std::string other = access.token();
    other[i] = other[i] == '0' ? '1' : '0';
    EXPECT_FALSE(access.is_token(other)) << i;
  }
}

// A browser sends the cookies of all ports of a host to each of them.
TEST(AccessTest, ServersAtDifferentPlacesHaveCookiesOfDifferentNames) {
  const auto name = [](const Access& access) { return access.cookie().substr(0, access.cookie().find('=')); };
  EXPECT_NE(name(Access("here")), name(Access("there")));
  EXPECT_EQ(name(Access("here")), name(Access("here"))) << "a new start replaces the old cookie";
}

}  // namespace
}  // namespace tearless::harness
