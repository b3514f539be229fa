// One description of a struct serves reading, canonical text and documentation; every bad input gets its own sentence.
#include "base/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/toml.h"
#include "tests/support/error_of.h"

namespace tearless::settings_test {
namespace {

enum class Placement { kPost, kPre };
constexpr std::array<std::string_view, 2> kPlacements = {"post", "pre"};
constexpr std::array<std::string_view, 3> kNormKinds = {"none", "layer_norm", "scale_norm"};

struct NormOptions {
  std::string kind = "layer_norm";
  double eps = 1e-5;
};

void describe(SettingsVisitor& v, NormOptions& o) {
  v.word({.key = "kind", .meaning = "which norm", .choices = kNormKinds}, o.kind);
  v.number({.key = "eps",
            .meaning = "added or clamped",
            .min = 0,
            .max = 1,
            .switched_off_by = o.kind == "none" ? "model.norm.kind" : ""},
           o.eps);
}

struct ExampleOptions {
  bool tied = true;
  int64_t layers = 6;
  Placement placement = Placement::kPre;
  std::optional<int64_t> warmup;
  std::optional<double> scale;
  std::optional<int64_t> split = 1;  // unset: as layers
  std::string title;
  int64_t threads = 1;
  double later = 0;  // a setting that was added later
  NormOptions norm;
};

void describe(SettingsVisitor& v, ExampleOptions& o) {
  v.flag({.key = "tied", .meaning = "tie"}, o.tied);
  v.integer({.key = "layers", .meaning = "depth", .min = 1, .max = 100}, o.layers);
  v.choice({.key = "placement", .meaning = "where"}, o.placement, kPlacements);
  const auto of_deep_models = o.layers == 1 ? "model.layers" : "";
  v.optional_integer({.key = "warmup", .meaning = "updates", .min = 1, .switched_off_by = of_deep_models}, o.warmup);
  v.optional_number({.key = "scale", .meaning = "factor"}, o.scale);
  v.optional_integer({.key = "split", .meaning = "seed", .min = 0, .unset_word = "model.layers"}, o.split);
  v.word({.key = "title", .meaning = "free text"}, o.title);
  v.integer(
      {.key = "threads", .meaning = "cores", .min = 1, .identity = Identity::kLocal, .switched_off_by = of_deep_models},
      o.threads);
  v.number({.key = "later", .meaning = "new", .neutral = 0.0}, o.later);
  v.table("norm", o.norm);
}

Describe describe_all(ExampleOptions& options) {
  return [&options](SettingsVisitor& v) { v.table("model", options); };
}

ExampleOptions read(std::string_view text) {
  ExampleOptions options;
  read_settings(parse_toml_settings(text, "run.toml"), describe_all(options));
  return options;
}

std::string error_of(std::string_view text) {
  return test::error_of([&] { read(text); });
}

TEST(Settings, KeepDefaultsWhereNothingIsWritten) {
  const ExampleOptions options = read("");
  EXPECT_TRUE(options.tied);
  EXPECT_EQ(options.layers, 6);
  EXPECT_EQ(options.placement, Placement::kPre);
  EXPECT_EQ(options.warmup, std::nullopt);
  EXPECT_EQ(options.norm.eps, 1e-5);
}

TEST(Settings, AreReadFromTablesAndDottedKeysAlike) {
  const ExampleOptions options = read(R"(
model.tied = false
"model.layers" = 12
[model.norm]
kind = "scale_norm"
eps = 1
)");
  EXPECT_FALSE(options.tied);
  EXPECT_EQ(options.layers, 12);
  EXPECT_EQ(options.norm.kind, "scale_norm");
  EXPECT_EQ(options.norm.eps, 1.0);  // a whole number serves where a number is wanted
}

TEST(Settings, ReadOptionalAndChosenValues) {
  const ExampleOptions options =
      read("[model]\nwarmup = 400\nscale = 0.5\nplacement = \"post\"\nsplit = \"model.layers\"\n");
  EXPECT_EQ(options.warmup, 400);
  EXPECT_EQ(options.scale, 0.5);
  EXPECT_EQ(options.split, std::nullopt);
  EXPECT_EQ(options.placement, Placement::kPost);
}

TEST(Settings, NameAnUnknownKeyAndTheNearestKnownOne) {
  EXPECT_EQ(error_of("[model]\nlayer = 3\n"),
            "run.toml:2: unknown setting \"model.layer\" (did you mean \"model.layers\"?)");
  EXPECT_EQ(error_of("[norm]\neps = 3\n"),
            "run.toml:2: unknown setting \"norm.eps\" (did you mean \"model.norm.eps\"?)");
  EXPECT_EQ(error_of("colour = 3\n"), "run.toml:1: unknown setting \"colour\"");
}

TEST(Settings, NameASettingOfASectionThatIsWrittenLikeASetting) {
  EXPECT_EQ(
      error_of("\nmodel.norm = \"none\"\n"),
      "run.toml:2: \"model.norm\" is a section, not a setting; name one of its settings, such as model.norm.kind");
  EXPECT_THAT(error_of("model.nor = 1\n"), testing::HasSubstr("unknown setting"));
}

TEST(Settings, NameAWrongType) {
  EXPECT_EQ(error_of("model.tied = 1\n"), "run.toml:1: model.tied = 1 must be true or false");
  EXPECT_EQ(error_of("model.layers = 2.0\n"), "run.toml:1: model.layers = 2.0 must be a whole number");
  EXPECT_EQ(error_of("model.layers = \"2\"\n"), "run.toml:1: model.layers = \"2\" must be a whole number");
  EXPECT_EQ(error_of("model.norm.eps = true\n"), "run.toml:1: model.norm.eps = true must be a number");
  EXPECT_EQ(error_of("model.title = 3\n"), "run.toml:1: model.title = 3 must be text in quotes");
  EXPECT_EQ(error_of("model.title = [\"a\", \"b\"]\n"),
            "run.toml:1: model.title = [\"a\",\"b\"] must be text in quotes");
  EXPECT_EQ(error_of("model.warmup = \"x\"\n"), "run.toml:1: model.warmup = \"x\" must be a whole number");
  EXPECT_EQ(error_of("model.split = \"layers\"\n"),
            "run.toml:1: model.split = \"layers\" must be a whole number or \"model.layers\"");
}

TEST(Settings, NameTheRangeOfAValueOutsideIt) {
  EXPECT_EQ(error_of("model.layers = 0\n"),
            "run.toml:1: model.layers = 0 is out of range; it must be between 1 and 100");
  EXPECT_EQ(error_of("model.warmup = 0\n"), "run.toml:1: model.warmup = 0 is out of range; it must be at least 1");
  EXPECT_EQ(error_of("model.norm.eps = -1e-9\n"),
            "run.toml:1: model.norm.eps = -1e-09 is out of range; it must be between 0 and 1");
  EXPECT_EQ(error_of("model.norm.eps = nan\n"),
            "run.toml:1: model.norm.eps = nan is out of range; it must be between 0 and 1");
  EXPECT_EQ(error_of("model.scale = inf\n"),
            "run.toml:1: model.scale = inf is out of range; it must be a finite number");
}

TEST(Settings, ListTheChoicesForAnUnknownWord) {
  EXPECT_EQ(error_of("model.norm.kind = \"layernorm\"\n"),
            "run.toml:1: model.norm.kind = \"layernorm\" is not known (did you mean \"layer_norm\"?); "
            "it must be one of: none, layer_norm, scale_norm");
  EXPECT_EQ(error_of("model.placement = \"middle\"\n"),
            "run.toml:1: model.placement = \"middle\" is not known; it must be one of: post, pre");
}

TEST(Settings, NameTheLineOfASyntaxErrorADateAndADoubleKey) {
  EXPECT_THAT(error_of("[model]\nlayers = \n"), testing::StartsWith("run.toml:2: "));
  EXPECT_EQ(error_of("model.title = 1979-05-27\n"), "run.toml:1: model.title must be a number, text, true or false");
  EXPECT_EQ(error_of("[[model]]\nlayers = 1\n"), "run.toml:1: model must be a number, text, true or false");
  EXPECT_EQ(error_of("\"model.layers\" = 1\n[model]\nlayers = 2\n"),
            "run.toml:3: model.layers is defined twice (first at run.toml:1); remove one of the two");
}

TEST(Settings, HaveACanonicalTextThatReadsBackTheSame) {
  ExampleOptions options =
      read("[model]\nscale = 0.1\ntitle = \"a \\\"b\\\" \\\\ → \\t\\u007f\"\nnorm.eps = 1e-12\nwarmup = 3\n");
  const std::string text = canonical_settings(Identity::kResult, describe_all(options));
  ExampleOptions again = read(text);
  EXPECT_EQ(canonical_settings(Identity::kResult, describe_all(again)), text);
  EXPECT_EQ(again.title, options.title);
}

TEST(Settings, WriteAnUnsetNumberThatHasAWordAsThatWord) {
  ExampleOptions options = read("model.split = \"model.layers\"\n");
  const std::string text = canonical_settings(Identity::kResult, describe_all(options));
  EXPECT_THAT(text, testing::HasSubstr("model.split = \"model.layers\"\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("warmup"))) << "it has no word";
  EXPECT_EQ(read(text).split, std::nullopt) << "not the default";
}

TEST(Settings, OmitFromTheCanonicalTextWhatDoesNotAffectTheResult) {
  ExampleOptions options;
  EXPECT_EQ(canonical_settings(Identity::kResult, describe_all(options)),
            "model.layers = 6\n"
            "model.norm.eps = 1e-05\n"
            "model.norm.kind = \"layer_norm\"\n"
            "model.placement = \"pre\"\n"
            "model.split = 1\n"
            "model.tied = true\n"
            "model.title = \"\"\n");
  EXPECT_EQ(canonical_settings(Identity::kLocal, describe_all(options)), "model.threads = 1\n");
  options.later = 2;
  options.norm.kind = "none";
  const std::string text = canonical_settings(Identity::kResult, describe_all(options));
  EXPECT_THAT(text, testing::HasSubstr("model.later = 2.0\n"));     // no longer neutral
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("norm.eps")));  // a norm without an epsilon is not split by it
}

std::map<std::string, std::string> unused_in(std::string_view text) {
  const WrittenSettings written = parse_toml_settings(text, "run.toml");
  ExampleOptions options;
  read_settings(written, describe_all(options));
  return unused_settings(written, describe_all(options));
}

TEST(Settings, WithoutEffectAreToldWithTheSettingThatSwitchesThemOff) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  using testing::Pair;
  EXPECT_THAT(unused_in("model.norm.kind = \"none\"\nmodel.norm.eps = 0.1\n"),
              ElementsAre(Pair("model.norm.eps", "model.norm.kind = \"none\"")));
  EXPECT_THAT(unused_in("model.layers = 1\nmodel.warmup = 7\nmodel.norm.eps = 0.1\n"),
              ElementsAre(Pair("model.warmup", "model.layers = 1")));
  EXPECT_THAT(unused_in("model.layers = 1\nmodel.norm.kind = \"none\"\n"), IsEmpty()) << "nobody wrote them";
  EXPECT_THAT(unused_in("model.layers = 1\nmodel.threads = 3\n"), IsEmpty()) << "results never depend on it";
  EXPECT_THAT(unused_in("model.later = 0\nmodel.norm.eps = 0.1\nmodel.warmup = 7\n"), IsEmpty())
      << "a neutral value is a value";
}

/// Numbers that a task may have as defaults.
struct RateOptions {
  std::string kind = "scaled";
  double scale = 1, fixed = 2;
  std::optional<double> peak = 0.5;
  std::optional<int64_t> updates = 9, epochs = 3;  // unset: a pass; epochs alone
};
constexpr std::array<std::string_view, 2> kRateKinds = {"scaled", "fixed"};

void describe(SettingsVisitor& v, RateOptions& o) {
  v.word({.key = "kind", .meaning = "which", .choices = kRateKinds}, o.kind);
  const auto unless = [&](const char* kind) { return o.kind != kind ? "rate.kind" : o.peak ? "rate.peak" : ""; };
  v.number({.key = "scale", .meaning = "of the first kind", .switched_off_by = unless("scaled")}, o.scale);
  v.number({.key = "fixed", .meaning = "of the second", .switched_off_by = unless("fixed")}, o.fixed);
  v.optional_number({.key = "peak", .meaning = "in place of both"}, o.peak);
  v.optional_integer({.key = "updates", .meaning = "length", .unset_word = "pass"}, o.updates);
  v.optional_integer({.key = "epochs", .meaning = "length", .switched_off_by = o.updates ? "rate.updates" : ""},
                     o.epochs);
}

TEST(Settings, ThatAreWrittenAreOutrankedByWrittenOnesAlone) {
  const auto read_rate = [](std::string_view text) {
    RateOptions options;
    const auto described = [&](SettingsVisitor& v) { v.table("rate", options); };
    read_settings(parse_toml_settings(text, "run.toml"), described);
    return options;
  };
  EXPECT_EQ(read_rate("").peak, 0.5);
  EXPECT_EQ(read_rate("rate.scale = 3.0\n").peak, std::nullopt);
  EXPECT_EQ(read_rate("rate.scale = 3.0\n").scale, 3) << "read, as it was the first time";
  EXPECT_EQ(read_rate("rate.kind = \"fixed\"\nrate.fixed = 0.0\n").peak, std::nullopt);
  EXPECT_EQ(read_rate("rate.scale = 3.0\nrate.peak = 0.5\n").peak, 0.5) << "written, though with the default's value";
  EXPECT_EQ(read_rate("rate.kind = \"fixed\"\nrate.scale = 3.0\n").peak, 0.5) << "the kind, which is written, does it";
  EXPECT_EQ(read_rate("rate.fixed = 3.0\n").peak, 0.5) << "so does a default that cannot be unset";
  EXPECT_EQ(read_rate("rate.epochs = 4\n").updates, 9) << "unset, it is another value";
}

TEST(Settings, AreListedWithTypesAndDefaultsInOrder) {
  ExampleOptions options;
  const std::vector<DescribedField> fields = list_settings(describe_all(options));
  ASSERT_EQ(fields.size(), 11u);
  EXPECT_EQ(fields[0].key, "model.tied");
  EXPECT_EQ(fields[0].type, "true/false");
  EXPECT_EQ(fields[3].key, "model.warmup");
  EXPECT_TRUE(fields[3].value.is_null());
  EXPECT_EQ(fields[5].value, 1);
  EXPECT_EQ(fields[10].key, "model.norm.eps");
  EXPECT_EQ(fields[10].value, 1e-5);
  options.split.reset();
  EXPECT_EQ(list_settings(describe_all(options))[5].value, "model.layers");
}

TEST(TomlValue, IsTheShortestThatReadsBack) {
  EXPECT_EQ(toml_value(1.0), "1.0");
  EXPECT_EQ(toml_value(0.1), "0.1");
  EXPECT_EQ(toml_value(1e300), "1e+300");
  EXPECT_EQ(toml_value(3), "3");
  EXPECT_EQ(toml_value("a\nb"), "\"a\\nb\"");
  for (const double number : {0.1 + 0.2, 1.0 / 3, 6.62607015e-34, 123456789.0}) {
    EXPECT_EQ(parse_toml_settings("x = " + toml_value(number), "t").values.at("x").get<double>(), number);
  }
}

}  // namespace
}  // namespace tearless::settings_test
