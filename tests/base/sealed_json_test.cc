// Records of a run folder: a record is read back complete, or reported as damaged.
#include "base/sealed_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tests/support/paths.h"

namespace tearless::sealed_json_test {
namespace {

using nlohmann::json;

TEST(SealedRecord, ReadsBackWithoutItsSeal) {
  const json record = {{"step", 40}, {"name", "a\nb"}, {"inner", {{"list", {1, 2.5, nullptr}}}}};
  EXPECT_EQ(unsealed(sealed(record)), std::optional(record));
}

TEST(SealedRecord, WithoutItsChecksumOrAnyOtherFieldIsRejected) {
  json record = json::parse(sealed({{"step", 40}, {"state", "done"}}));
  ASSERT_EQ(record.size(), 4u) << "two fields, a checksum, and the word that there is one";
  for (const auto& [key, value] : record.items()) {
    json without = record;
    without.erase(key);
    EXPECT_EQ(unsealed(without.dump()), std::nullopt) << key;
    json other = record;
    other[key] = "other";
    EXPECT_EQ(unsealed(other.dump()), std::nullopt) << key;
  }
}

TEST(Record, OfAProgramThatDoesNotSealIsAccepted) {
  EXPECT_EQ(unsealed(R"({"code": 3})"), std::optional(json{{"code", 3}}));
  for (const char* text : {"", "3", "[1]", "null", R"({"code": 3)", R"({"code": 3} x)"}) {
    EXPECT_EQ(unsealed(text), std::nullopt) << text;
  }
}

TEST(Record, NestedTooDeeplyIsRejected) {
  const auto nested = [](int deep) {
    std::string text = "1";
    for (int i = 0; i < deep; ++i) text = R"({"a":)" + text + "}";
    return text;
  };
  EXPECT_EQ(unsealed(nested(32))->dump(), nested(32));
  EXPECT_LT(unsealed(nested(33))->dump().size(), nested(33).size());
  EXPECT_TRUE(unsealed(nested(1000)));
}

}  // namespace
}  // namespace tearless::sealed_json_test
