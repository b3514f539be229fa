#include "harness/serve/target.h"

#include <gtest/gtest.h>

namespace tearless::harness {
namespace {

TEST(TargetTest, PathAndQueryAreDecoded) {
  const Target target = parse_target("/sweep/a%20b%C3%A9?page=2&id=x%2Fy&id=1+2&empty&=v").value();
  EXPECT_EQ(target.path, "/sweep/a bé");
  EXPECT_EQ(target.after("/sweep/"), "a bé");
  EXPECT_EQ(target.after("/run/"), std::nullopt);
  EXPECT_EQ(target.value("page"), "2");
  EXPECT_EQ(target.values("id"), (std::vector<std::string>{"x/y", "1 2"}));
  EXPECT_EQ(target.value("empty"), "");
  EXPECT_EQ(target.value("other"), "");
}

TEST(TargetTest, NothingBehindAPrefixIsNothing) { EXPECT_EQ(parse_target("/run/")->after("/run/"), std::nullopt); }

TEST(TargetTest, WhatCouldLeaveAFolderOrIsNoTextIsRefused) {
  for (const char* text : {"",        "run",     "*",       "http://localhost/",
                           "/..",     "/../x",   "/a/../b", "/a/.",
                           "/%2e%2e", "/%2E./x", "/a%2fb",  "/%",
                           "/%4",     "/%zz",    "/%00",    "/a%0a",
                           "/a\tb",   "/%7f",    "/%ff",    "/?a=%",
                           "/?a=%00", "/?%ff=b"}) {
    EXPECT_EQ(parse_target(text), std::nullopt) << text;
  }
  for (const char* text : {"/", "/...", "/.x", "/a..b", "/?a=..", "/?a=%2F..%2F"}) {
    EXPECT_NE(parse_target(text), std::nullopt) << text;
  }
}

TEST(TargetTest, WhatWasEncodedIsReadAsItWas) {
  const std::string odd = "a b/ü?&=#%+\"<'..";
  EXPECT_EQ(parse_target("/x?id=" + encoded(odd))->value("id"), odd);
  EXPECT_EQ(parse_target("/sweep/" + encoded("a b&c ü"))->after("/sweep/"), "a b&c ü");
}

}  // namespace
}  // namespace tearless::harness
