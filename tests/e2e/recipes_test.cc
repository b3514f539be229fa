// The base files of recipes whose corpora are not in the repository train at a small size, and learn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::recipes_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// A language of numbers: the target has the words of the source in their order, in capitals.
void write_corpus(const fs::path& folder) {
  const auto write = [&](const std::string& set, int first, int count) {
    std::string source, target;
    for (int line = first; line < first + count; ++line) {
      for (int word = 0; word <= line % 5; ++word) {
        const char letter = static_cast<char>('a' + (line * 7 + word * word * 3) % 9);
        source += std::string(word > 0 ? " " : "") + letter;
        target += std::string(word > 0 ? " " : "") + static_cast<char>(letter - 'a' + 'A');
      }
      source += "\n";
      target += "\n";
    }
    test::write_text(folder / (set + ".de"), source);
    test::write_text(folder / (set + ".en"), target);
  };
  write("train", 0, 400);
  write("dev", 1000, 20);
  write("test", 2000, 20);
}

class Recipe : public testing::Test {
 protected:
  Recipe() { write_corpus(folder_.path()); }

  /// The scores of each run of a grid with these base files and, besides, these axes and settings.
  std::vector<json> scores(const std::vector<std::string>& bases, const std::string& settings) {
    std::string listed;
    for (const std::string& base : bases)
      listed += "\"" + (test::source_root() / "grids/base" / base).string() + "\", ";
    test::write_text(folder_ / "small.toml",
                     "title = \"A recipe at a small size\"\nbase = [" + listed +
                         "]\n[set.data]\nname = \"made up\"\ntrain = \"train\"\ndev = \"dev\"\ntest = "
                         "\"test\"\nsource = \"de\"\ntarget = \"en\"\n" +
                         settings);
    const auto tearless = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), {test::program("tearless"), "--workspace", folder_ / "results"});
      return test::run({.arguments = std::move(arguments),
                        .environment = {{"TEARLESS_CACHE", (folder_ / "cache").string()},
                                        {"TEARLESS_ENGINE", test::program("tearless-engine")}}});
    };
    const test::Finished finished = tearless({"run", folder_ / "small.toml"});
    EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
    std::vector<json> found;
    for (const json& run : json::parse(tearless({"--json", "runs", "--scores", "*"}).output, nullptr, false)) {
      SCOPED_TRACE(run.dump());
      found.push_back(run.at("scores"));
    }
    return found;
  }

  test::TempFolder folder_;
};

constexpr const char* kSmallModel = "[set.model]\nd_model = 32\nd_ff = 64\n";

TEST_F(Recipe, OfDepthScaledInitialisationTrains) {
  const std::vector<json> found =
      scores({"ds.toml"}, std::string(kSmallModel) +
                              "heads = 4\nencoder_layers = 2\ndecoder_layers = 2\n[set.text]\nmerges = 0\n"
                              "[set.train]\nepoch_updates = 100\nmax_epochs = 4\n"
                              "[set.train.schedule]\nwarmup_updates = 100\n"
                              "[set.train.batch]\ntokens = 100\nbuffer = 200\n"
                              "[set.train.select]\ncount = 2\n"
                              "[axis]\n\"model.decoder_sublayers\" = [\"matt, ffn\", "
                              "\"self_attention, cross_attention, ffn\"]\n");
  EXPECT_EQ(found.size(), 2u);
  for (const json& run : found) {
    EXPECT_EQ(run.at("updates"), 400);
    EXPECT_EQ(run.at("averaged_checkpoints"), 2);
    EXPECT_LT(run.at("dev.ppl"), 2.0) << "of 13 words";
    EXPECT_GT(run.at("test.bleu"), 50.0);
  }
}

TEST_F(Recipe, OfTheJoeyNmtExerciseTrains) {
  const std::vector<json> found =
      scores({"joey.toml"}, std::string(kSmallModel) +
                                "encoder_layers = 1\n[set.train]\nevaluate_updates = 50\nmax_epochs = 8\n"
                                "[set.train.schedule]\nlr = 3e-3\n[set.train.batch]\ntokens = 64\n"
                                "[axis]\n\"model.placement\" = [\"pre\", \"joey_pre\", \"joey_post\"]\n"
                                "[derived.beam5]\nset = \"test\"\nbeam = 5\n");
  EXPECT_EQ(found.size(), 3u);
  for (const json& run : found) {
    EXPECT_LT(run.at("dev.ppl_smoothed"), 2.0) << "of 13 words";
    EXPECT_GT(run.at("test.bleu"), 50.0);
    EXPECT_GT(run.at("beam5.test.bleu"), 50.0);
  }
}

// Settings of a small size for each base of the AdaNorm paper's translation, and an axis with four kinds of norm.
std::string small_translation() {
  return std::string(kSmallModel) +
         "heads = 4\nencoder_layers = 2\ndecoder_layers = 2\ndropout.residual = 0.0\n"
         "[set.train]\nmax_epochs = 40\n[set.train.schedule]\npeak_lr = 1e-2\nwarmup_updates = "
         "100\n[set.train.batch]\ntokens = 100\n"
         "[axis]\n\"model.norm.kind\" = [\"none\", \"layer_norm\", \"detach_var\", \"ada_norm\"]\n";
}

class AdaNormRecipe : public Recipe, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(OfCorpora, AdaNormRecipe, testing::Values("ada_de_en", "ada_en_vi", "ada_en_de"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(AdaNormRecipe, Trains) {
  const std::string base = GetParam();
  const std::string merges = base == "ada_en_de" ? "" : "[set.text]\nmerges = 5\n";
  const std::vector<json> found = scores(
      {base + ".toml"}, merges + small_translation() +
                            "[derived.atat]\nkind = \"score\"\nmetric = \"multi_bleu\"\ncompound_split = true\n");
  EXPECT_EQ(found.size(), 4u);
  for (const json& run : found) {
    EXPECT_EQ(run.at("averaged_checkpoints"), 10);
    EXPECT_LT(run.at("dev.ppl"), 2.0) << "of 13 words";
    EXPECT_GT(run.at("test.bleu"), 50.0);
    EXPECT_GT(run.at("atat.test.multi_bleu"), 50.0);
  }
}

TEST_F(Recipe, OfTheReleasedCodeOfAdaNormTrains) {
  const std::vector<json> found =
      scores({"ada_de_en.toml", "ada_released.toml"}, "[set.text]\nmerges = 5\n" + small_translation());
  EXPECT_EQ(found.size(), 4u);
  for (const json& run : found) {
    EXPECT_FALSE(run.contains("averaged_checkpoints"));
    EXPECT_LT(run.at("dev.ppl"), 2.0) << "of 13 words";
    EXPECT_GT(run.at("test.bleu"), 50.0);
  }
}

}  // namespace
}  // namespace tearless::recipes_test
