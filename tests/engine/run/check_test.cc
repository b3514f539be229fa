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

// Runs of one shape need the same memory and are equally fast.
TEST(Check, GivesRunsOneShapeUnlessASettingChangesTheirMemoryOrSpeed) {
  const auto shape = [](json changes) {
    json settings = {{"data.name", "x"}, {"data.source", "a"}, {"data.target", "b"}};
    for (const char* set : {"train", "dev", "test"}) settings[std::string("data.") + set] = "absent";
    settings.update(changes);
    const json answer = answer_to(settings);
    EXPECT_FALSE(answer.contains("error")) << answer;
    return answer.value("shape", "");
  };
  const std::string plain = shape(json::object());
  EXPECT_EQ(plain.size(), 16u);
  for (const json& same :
       {json{{"train.seed", 2}}, json{{"train.schedule.warmup_updates", 7}}, json{{"train.max_updates", 7}},
        json{{"model.init", "xavier_normal"}}, json{{"train.label_smoothing", 0.2}}}) {
    EXPECT_EQ(shape(same), plain) << same;
  }
  for (const json& other :
       {json{{"model.norm.kind", "none"}}, json{{"model.d_model", 64}}, json{{"train.batch.tokens", 64}},
        json{{"run.threads", 2}}, json{{"model.encoder_layers", 1}}, json{{"decode.beam", 7}}}) {
    EXPECT_NE(shape(other), plain) << other;
  }
}

}  // namespace
}  // namespace tearless::engine
