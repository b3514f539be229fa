// What `tearless-engine check` answers to settings that it refuses: the sentence, and the setting that it is about.
#include "engine/run/check.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tearless::engine {
namespace {

using nlohmann::json;

json answer_to(const json& settings) {
  return check_line(json{{"settings", settings}, {"folder", "/"}, {"folders", json::object()}}.dump());
}

TEST(Check, NamesTheSettingThatTheSentenceIsAboutAndNotASuggestion) {
  EXPECT_EQ(answer_to({{"model.nor", 1}, {"model.norm.kind", "none"}}).at("key"), "model.nor");
  EXPECT_EQ(answer_to({{"model.norm", "none"}, {"model.norm.kind", "none"}}).at("key"), "model.norm");
  EXPECT_EQ(answer_to({{"model.heads", 5}, {"model.d_model", 64}}).at("key"), "model.heads");
  const json longer = answer_to({{"model.norm.kind", "x"}, {"model.norm", 1}});
  EXPECT_EQ(longer.at("key"), "model.norm.kind") << longer.at("error") << ": the longer of two keys that begin alike";
}

}  // namespace
}  // namespace tearless::engine
