// Results that travel: a copy without texts, checkpoints and models, as a folder and as an archive. What is printed of
// it is what is printed of the workspace; what it lacks is named where it is asked for; what was changed is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/omitted.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::results_alone_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

class ResultsAlone : public RunTest {
 protected:
  // Two trained runs, of each a derived one, which leaves outputs/test.hyp; a trained run of another sweep fails.
  ResultsAlone() {
    test::write_text(folder_ / "grid.toml",
                     "seeds = 2\n[set]\n\"fake.updates\" = 12\n[axis]\n\"model.kind\" = [\"a\"]\n[table]\n"
                     "scores = [\"test.score\", \"wide.test.score\"]\n[derived.wide]\nbeam = 8\n");
    test::write_text(
        folder_ / "failing.toml",
        "[set]\n\"fake.updates\" = 4\n[axis]\n\"model.kind\" = [\"f\"]\n\"fake.behaviour\" = [\"refuse_late\"]\n");
    ok({"run", "grid.toml"});
    tearless({"run", "failing.toml"});
    for (const RunDirectory& run : runs()) {
      if (is_derived(run)) test::write_text(run.outputs() / "test.stats", "1 2 3\n");
      write_before_exit(run, "arithmetic", "OpenBLAS 1\n");
      if (is_derived(run)) continue;
      test::write_text(run.model(), "weights");
      test::write_text(run.gradient_norms(), "norms");
    }
  }
  static bool is_derived(const RunDirectory& run) { return !derived_from(test::read_text(run.settings())).empty(); }
  RunDirectory a_run(bool derived, const char* workspace = "results") const {
    for (const RunDirectory& run : runs()) {
      if (is_derived(run) == derived && fs::exists(run.done()))
        return RunDirectory(folder_ / workspace / "runs" / run.id());
    }
    ADD_FAILURE() << "there is no such run";
    return RunDirectory("");
  }
  // Its archives are unpacked in the test's own folder.
  test::Finished in(const std::string& workspace, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"--workspace", workspace});
    test::Command one = command(std::move(arguments));
    one.environment["XDG_CACHE_HOME"] = (folder_ / "cache").string();
    return test::run(one);
  }
  std::string shown(const std::string& workspace, const std::vector<std::string>& arguments) const {
    const test::Finished finished = in(workspace, arguments);
    EXPECT_EQ(finished.code, 0) << testing::PrintToString(arguments) << finished.errors;
    const std::string output = std::regex_replace(finished.output, std::regex(" --workspace [^ \n]*"), "");
    return std::regex_replace(output, std::regex(folder_.path().string() + "/"), "");  // of the grid file
  }
  std::vector<std::string> names_in(const fs::path& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(folder).string());
    }
    return names;
  }
};

TEST_F(ResultsAlone, PrintWhatTheWorkspacePrintsAndHaveNoTextsModelsOrCheckpoints) {
  ok({"copy", "alone", "--results"});
  const std::vector<std::string> names = names_in(folder_ / "alone");
  for (const char* left_out : {".hyp", "model.safetensors", "state.bin", "local.toml", "fake-engine", "/lock"}) {
    EXPECT_THAT(names, Each(Not(HasSubstr(left_out))));
  }
  for (const char* kept :
       {"test.stats", "metrics.jsonl", "gradient_norms.f32", "scores.json", "DONE", "run.toml", "attempts/1/start.json",
        "attempts/1/exit.json", "attempts/1/measured.json", "attempts/1/arithmetic", "omitted.json"}) {
    EXPECT_THAT(names, Contains(HasSubstr(kept)));
  }
  EXPECT_THAT(names, Contains(HasSubstr("log.txt"))) << "of the run that failed: it says why";
  ASSERT_FALSE(fs::exists(a_run(false, "alone").attempt(1) / "log.txt"));
  EXPECT_THAT(shown("alone", {"verify"}), HasSubstr("no differences"));
  for (const std::vector<std::string>& asked : {std::vector<std::string>{"table", "grid.toml"},
                                                {"table", "failing.toml"},
                                                {"runs", "all"},
                                                {"runs", "all", "--csv"},
                                                {"status"},
                                                {"plot", "grid.toml", "train.loss"}}) {
    EXPECT_EQ(shown("alone", asked), shown("results", asked)) << testing::PrintToString(asked);
  }
  EXPECT_THAT(shown("alone", {"plan", "grid.toml"}), HasSubstr("Nothing to run"));
}

// What tells of who trained, in a workspace in which each kind of file has it.
TEST_F(ResultsAlone, TellNobodyWhoTrainedThemWhereAndWithWhichVariables) {
  test::write_text(folder_ / "named.toml",
                   test::read_text(folder_ / "grid.toml") + "[policy]\nenvironment = [\"BRANCH*\"]\n");
  test::Command run =
      command({"run", "named.toml", "--again", "all", "--set", "data.train=" + folder_.path().string() + "/x"});
  run.environment["BRANCH_NAME"] = "a-branch-of-mine";
  run.environment["PYTHONPATH"] = "/somebody/python";
  test::write_text(folder_ / "x", "data");
  ASSERT_EQ(finish(run).code, 0);
  const std::string host = read_attempt(runs().front(), 1).host;
  for (const RunDirectory& failed : runs()) {
    if (fs::exists(failed.done())) continue;
    test::write_text(failed.attempt(1) / "log.txt",
                     "in /somebody/main.py\nno file '/somebody/my data/train', file:///somebody/dev, for "
                     "a-branch-of-mine on " +
                         host + ": PYTHONPATH=/somebody/python\n");
    nlohmann::json start = read_sealed(failed.attempt(1) / "start.json").value();
    start["environment"] = {{"BRANCH_NAME", "a-branch-of-mine"}, {"PYTHONPATH", "/somebody/python"}};
    start["of_a_later_version"] = "/somebody";
    write_before_exit(failed, "start.json", sealed(start));
    write_before_exit(failed, "measured.json", R"({"seconds": 2.5, "gpu_of": "/somebody"})");
    test::write_text(failed.attempt(1) / "claim.somebody-01234567", "");
  }
  ok({"copy", "alone", "--results"});
  ok({"copy", "all.tar.gz"});
  const test::Finished unpacked = test::run({.arguments = {"/bin/sh", "-c", "mkdir tar && tar xzf all.tar.gz -C tar"},
                                             .environment = {},
                                             .folder = folder_.path()});
  ASSERT_EQ(unpacked.code, 0) << unpacked.errors;
  std::string all;
  for (const char* copy : {"alone/runs", "alone/sweeps", "tar/runs", "tar/sweeps"}) {
    for (const std::string& name : names_in(folder_ / copy)) {
      const std::string text = test::read_text(folder_ / copy / name);
      all += text;
      const bool is_part_of_id = name.ends_with("/grid.toml") || name.ends_with("/run.toml");
      for (const std::string& secret :
           {std::string("a-branch-of-mine"), std::string("somebody"), folder_.path().string(), std::string("\"host\""),
            std::string("\"supervisor\"")}) {
        if (!is_part_of_id) {
          EXPECT_THAT(text, Not(HasSubstr(secret))) << copy << "/" << name;
        }
      }
      EXPECT_THAT(name, Not(HasSubstr("somebody")));
    }
  }
  EXPECT_THAT(all, AllOf(HasSubstr("\"BRANCH_NAME\": null"), HasSubstr("\"PYTHONPATH\": null")));
  EXPECT_THAT(all, HasSubstr("no file 'train', file://dev, for $BRANCH_NAME on (a machine): PYTHONPATH=$PYTHONPATH\n"));
  for (const char* copy : {"alone", "all.tar.gz"}) {
    EXPECT_THAT(shown(copy, {"verify"}), HasSubstr("no differences"));
    EXPECT_EQ(shown(copy, {"table", "named.toml"}), shown("results", {"table", "named.toml"}));
    EXPECT_EQ(shown(copy, {"runs", "named.toml"}), shown("results", {"runs", "named.toml"})) << "found by its name";
    EXPECT_THAT(shown(copy, {"runs", "failing.toml"}), HasSubstr("failed"));
  }
  ok({"copy", "whole"});
  EXPECT_THAT(test::read_text(
                  folder_ / "whole/sweeps" /
                  fs::path(shown("whole", {"sql", "SELECT id FROM sweeps WHERE grid_file LIKE '%named.toml'", "--csv"})
                               .substr(3, 14)) /
                  "sweep.json"),
              HasSubstr("a-branch-of-mine"))
      << "it trains on";
}

TEST_F(ResultsAlone, SayWhereAPathStaysThatIdsAreMadeOf) {
  test::write_text(folder_ / "mine.toml", "# as /somebody/said it\n" + test::read_text(folder_ / "grid.toml"));
  ok({"run", "mine.toml"});
  EXPECT_THAT(
      ok({"copy", "mine.tar.gz", "mine.toml"}).output,
      testing::ContainsRegex("Absolute paths stay as they were written, .* in sweeps/mine-[0-9a-f]{8}/grid.toml"));
  EXPECT_THAT(ok({"copy", "other.tar.gz", "grid.toml"}).output, Not(HasSubstr("Absolute paths")));
  ok({"run", "grid.toml", "--set", "fake.note=/somebody/note"});
  EXPECT_THAT(ok({"copy", "noted.tar.gz", "last"}).output,
              testing::ContainsRegex("Absolute paths stay .* runs/[0-9a-f]{16}/run.toml"));
}

// Of a workspace and of an archive; as a file that was edited, one that is gone, and one of another run.
TEST_F(ResultsAlone, AreRefusedWhereWhatTablesReadBesideDoneIsAnother) {
  ok({"copy", "sound", "--results"});
  const RunDirectory run = a_run(false);
  const std::string table = shown("results", {"table", "grid.toml"});
  nlohmann::json start = read_sealed(run.attempt(1) / "start.json").value();
  start["device"] = "another";
  const struct {
    const char* name;
    std::string text;
  } changes[] = {{"measured.json", R"({"seconds": 1800, "updates": 12})"},
                 {"measured.json", ""},
                 {"arithmetic", "MKL 1\n"},
                 {"arithmetic", ""},
                 {"start.json", sealed(start)},
                 {"start.json", ""}};
  for (const auto& [name, text] : changes) {
    for (const std::string workspace : {"results", "alone"}) {
      fs::remove_all(folder_ / "alone");
      fs::copy(folder_ / "sound", folder_ / "alone", fs::copy_options::recursive);
      const fs::path file = folder_ / workspace / "runs" / run.id() / "attempts/1" / name;
      const std::string before = test::read_text(file);
      text.empty() ? void(fs::remove(file)) : test::write_text(file, text);
      const std::string at = std::string("attempts/1/") + name, where = workspace + ", " + at + ": " + text;
      const test::Finished refused = in(workspace, {"table", "grid.toml"});
      EXPECT_EQ(refused.code, 2) << where;
      EXPECT_THAT(refused.errors, HasSubstr("its " + at + " is not what the run had written")) << where;
      const test::Finished verified = in(workspace, {"verify"});
      EXPECT_EQ(verified.code, 1) << where;
      EXPECT_THAT(verified.output, HasSubstr("run " + run.id() + ": " + at + " is not what was written")) << where;
      EXPECT_EQ(in(workspace, {"copy", "never.tar.gz"}).code, 2) << where;
      if (workspace == "alone") {
        const test::Finished packed =
            test::run({.arguments = {"/bin/sh", "-c", "tar czf edited.tar.gz -C alone runs sweeps"},
                       .environment = {},
                       .folder = folder_.path()});
        EXPECT_EQ(packed.code, 0);
        const test::Finished opened = in("edited.tar.gz", {"table", "grid.toml"});
        EXPECT_EQ(opened.code, 2) << where;
        EXPECT_THAT(opened.errors, AllOf(HasSubstr("is damaged"), HasSubstr(at + " is not what was written"))) << where;
      }
      test::write_text(file, before);
    }
  }
  EXPECT_EQ(shown("results", {"table", "grid.toml"}), table);
  EXPECT_FALSE(fs::exists(folder_ / "never.tar.gz"));
}

TEST_F(ResultsAlone, SayWhereARecordOfAnAttemptIsGone) {
  for (const std::string name : {"exit.json", "start.json"}) {
    fs::remove_all(folder_ / "alone");
    ok({"copy", "alone", "--results"});
    nlohmann::json exit = read_sealed(a_run(false, "alone").attempt(1) / "exit.json").value();
    exit.erase("files");  // of an older version: else start.json is missed as one that differs
    test::write_text(a_run(false, "alone").attempt(1) / "exit.json", sealed(exit));
    fs::remove(a_run(false, "alone").attempt(1) / name);
    shown("alone", {"rebuild"});
    const test::Finished verified = in("alone", {"verify"});
    EXPECT_EQ(verified.code, 0) << verified.output;
    EXPECT_THAT(verified.output, HasSubstr("run " + a_run(false).id() + ": attempts/1/" + name +
                                           " is gone, or its supervisor was killed"));
    const test::Finished table = in("alone", {"table", "grid.toml"});
    EXPECT_EQ(table.code, 0);
    EXPECT_THAT(table.errors, HasSubstr("1 run has attempts without start.json or exit.json")) << name;
  }
}

// As older versions have written them.
TEST_F(ResultsAlone, OfAttemptsWithoutChecksumsAreReadAsBefore) {
  for (const RunDirectory& run : runs()) {
    nlohmann::json exit = read_sealed(run.attempt(1) / "exit.json").value();
    ASSERT_EQ(exit.erase("files"), 1u);
    test::write_text(run.attempt(1) / "exit.json", sealed(exit));
  }
  test::write_text(a_run(false).attempt(1) / "measured.json", R"({"seconds": 1800, "updates": 12})");
  ok({"copy", "old.tar.gz"});
  for (const char* old : {"results", "old.tar.gz"}) {
    EXPECT_THAT(shown(old, {"verify"}), HasSubstr("no differences"));
    EXPECT_EQ(in(old, {"table", "grid.toml"}).code, 0);
  }
}

TEST_F(ResultsAlone, ListWhatTheyLackAsDoneHasIt) {
  ok({"copy", "alone", "--results"});
  const RunDirectory run = a_run(true, "alone"), trained = a_run(false, "alone");
  const Omitted omitted = read_omitted(run);
  EXPECT_EQ(omitted.at("outputs/test.hyp").sha256, read_done(run)->files.at("outputs/test.hyp"));
  EXPECT_EQ(omitted.at("outputs/test.hyp").bytes,
            static_cast<int64_t>(fs::file_size(a_run(true).outputs() / "test.hyp")));
  EXPECT_EQ(read_omitted(trained).at("model.safetensors").sha256, sha256("weights"));
  EXPECT_TRUE(read_omitted(trained).contains("attempts/1/log.txt"));
  EXPECT_FALSE(read_omitted(trained).contains("metrics.jsonl"));
  EXPECT_FALSE(read_omitted(trained).contains("gradient_norms.f32"));
  EXPECT_FALSE(read_omitted(trained).contains("lock"));
}

TEST_F(ResultsAlone, AreCopiedAgainWithTheSameList) {
  ok({"copy", "alone", "--results"});
  shown("alone", {"copy", "again", "--results"});
  shown("alone", {"copy", "whole"});
  for (const char* copy : {"again", "whole"}) {
    EXPECT_EQ(test::read_text(a_run(true, copy).omitted()), test::read_text(a_run(true, "alone").omitted())) << copy;
    EXPECT_THAT(shown(copy, {"verify"}), HasSubstr("no differences"));
  }
}

TEST_F(ResultsAlone, MadeSmallHaveNoGradientNormsAndNoStatisticsOfSentences) {
  for (const RunDirectory& run : runs()) {  // as the engine writes them
    if (!is_derived(run) && fs::exists(run.done())) test::write_text(run.gradient_norms(), std::string(12 * 4, '\0'));
  }
  EXPECT_EQ(in("results", {"copy", "small", "--small"}).code, 2) << "with texts and models it would not be small";
  ok({"copy", "small", "--results", "--small"});
  ok({"copy", "small.tar.gz", "--small"});
  const std::vector<std::string> names = names_in(folder_ / "small");
  EXPECT_THAT(names, AllOf(Each(Not(HasSubstr(".stats"))), Each(Not(HasSubstr("gradient_norms"))),
                           Contains(HasSubstr("metrics.jsonl"))));
  EXPECT_TRUE(read_omitted(a_run(false, "small")).contains("gradient_norms.f32"));
  EXPECT_TRUE(read_omitted(a_run(true, "small")).contains("outputs/test.stats"));
  test::write_text(folder_ / "figures.toml",
                   test::read_text(folder_ / "grid.toml") +
                       "[[figure]]\nname = \"norms\"\ncaption = \"Norms\"\nx = \"updates\"\ny = \"gradient_norms\"\n"
                       "[[figure]]\nname = \"loss\"\ncaption = \"Loss\"\nx = \"updates\"\ny = \"train.loss\"\n");
  const std::string with_norms =
      std::regex_replace(test::read_text(folder_ / "grid.toml"), std::regex("\"test.score\""), "\"norm\"");
  test::write_text(folder_ / "norms.toml", with_norms + "[score.norm]\nof = \"gradient_norms\"\ntake = \"final\"\n");
  for (const char* small : {"small", "small.tar.gz"}) {
    EXPECT_THAT(shown(small, {"verify"}), HasSubstr("no differences"));
    EXPECT_EQ(shown(small, {"table", "grid.toml"}), shown("results", {"table", "grid.toml"}));
    const auto figure = [&](const char* workspace, const char* name) {
      return shown(workspace, {"figure", "grid.toml", "--layout", "figures.toml", "--only", name});
    };
    EXPECT_EQ(figure(small, "loss"), figure("results", "loss")) << "one of which nothing is missing";
    const std::string both = shown(small, {"figure", "grid.toml", "--layout", "figures.toml"});
    EXPECT_THAT(both, AllOf(HasSubstr(figure(small, "loss")),
                            HasSubstr("Gradient norms are not here: this is a copy of results alone.")));
    EXPECT_THAT(figure("results", "norms"), Not(HasSubstr("not here")));
    EXPECT_THAT(shown(small, {"table", "grid.toml", "--layout", "norms.toml"}),
                HasSubstr("2 runs are done without norm (2 not in this copy of results alone)"));
    const test::Finished refused = in(small, {"plot", "grid.toml", "gradient_norms"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.errors, HasSubstr("gradient_norms is not here: this is a copy of results alone"));
  }
}

TEST_F(ResultsAlone, MadeSmallPrintTablesThatTestOverSentencesWithoutMarksAndTheOthersAsTheyAre) {
  const std::string grid = "[axis]\n\"model.norm\" = [\"x\", \"y\"]\n", plain = "[[table]]\nscores = \"test.bleu\"\n";
  const std::string tested = plain + "caption = \"tested\"\nrows = \"model.norm\"\nbaseline = \"x\"\n";
  test::write_text(folder_ / "both.toml",
                   grid + plain + "caption = \"plain\"\n" + tested + "[table.test]\nmethod = \"randomisation\"\n");
  test::write_text(folder_ / "plain.toml", grid + plain);
  test::Command run = command({"run", "both.toml"});
  run.environment["FAKE_SCORES"] = "test.bleu";
  run.environment["FAKE_SENTENCES"] = "40";
  ASSERT_EQ(finish(run).code, 0);
  ok({"copy", "small.tar.gz", "--small"});
  const auto table = [&](const char* workspace, const char* layout) {
    return shown(workspace, {"table", "both.toml", "--layout", layout});
  };
  const std::string marked = table("results", "both.toml"), bare = table("small.tar.gz", "both.toml");
  EXPECT_THAT(marked, AllOf(HasSubstr("† p"), Not(HasSubstr("not decided"))));
  EXPECT_THAT(bare, AllOf(Not(HasSubstr("† p")), Not(testing::ContainsRegex("[Bb]old")),
                          HasSubstr("not decided (approximate randomisation over sentences"),
                          HasSubstr("no statistics of sentences: this is a copy of results alone (1)")));
  EXPECT_THAT(bare, testing::StartsWith(table("results", "plain.toml")));
  for (const RunDirectory& one : runs()) fs::remove(one.outputs() / "test.stats");
  EXPECT_THAT(table("results", "both.toml"), HasSubstr("no statistics of sentences (1)")) << "not in a copy";
}

// As older versions made them.
TEST_F(ResultsAlone, WithoutTheGradientNormsAreReadAllTheSame) {
  ok({"copy", "alone", "--results"});
  const RunDirectory run = a_run(false, "alone");
  const Done done = read_done(run).value();
  write_done(run, done.outcome, done.step, done.reason, {"scores.json", "metrics.jsonl", "gradient_norms.f32"});
  Omitted omitted = read_omitted(run);
  omitted["gradient_norms.f32"] = {.sha256 = sha256("norms"), .bytes = 5};
  write_omitted(run, omitted, run.root());
  fs::remove(run.gradient_norms());
  shown("alone", {"rebuild"});
  shown("alone", {"copy", "old.tar.gz"});
  for (const char* old : {"alone", "old.tar.gz"}) {
    EXPECT_THAT(shown(old, {"verify"}), HasSubstr("no differences"));
    EXPECT_EQ(shown(old, {"table", "grid.toml"}), shown("results", {"table", "grid.toml"}));
    EXPECT_THAT(json::parse(shown(old, {"--json", "explain", run.id()})).at(0).at("omitted"),
                Contains("gradient_norms.f32"));
  }
}

TEST_F(ResultsAlone, SayWhatIsNotHereWhereItIsAskedFor) {
  ok({"copy", "alone", "--results"});
  const std::string trained = a_run(false).id(), derived = a_run(true).id();
  const test::Finished log = in("alone", {"log", trained});
  EXPECT_EQ(log.code, 2);
  EXPECT_THAT(log.errors, AllOf(HasSubstr("attempts/1/log.txt is not here"), HasSubstr("omitted.json")));
  EXPECT_THAT(shown("alone", {"explain", derived}),
              AllOf(HasSubstr("not here, in a copy of results alone: "), HasSubstr("outputs/test.hyp")));
  EXPECT_THAT(json::parse(shown("alone", {"--json", "explain", derived})).at(0).at("omitted"),
              Contains("outputs/test.hyp"));
  EXPECT_EQ(json::parse(shown("results", {"--json", "explain", derived})).at(0).at("omitted"), json::array());
  fs::copy(folder_ / "results/programs", folder_ / "alone/programs", fs::copy_options::recursive);
  const test::Finished verified = in("alone", {"verify-resume", trained});
  EXPECT_EQ(verified.code, 1);
  EXPECT_THAT(verified.output, AllOf(HasSubstr("not verified: "), HasSubstr("is not here")));
}

TEST_F(ResultsAlone, AreRefusedByRebuildAndVerifyWhereSomethingDiffers) {
  const auto fault_after = [&](const std::function<void(const RunDirectory&)>& change) {
    fs::remove_all(folder_ / "alone");
    ok({"copy", "alone", "--results"});
    change(a_run(true, "alone"));
    const test::Finished rebuilt = in("alone", {"rebuild"}), verified = in("alone", {"verify"});
    EXPECT_EQ(rebuilt.code, 1);
    EXPECT_EQ(verified.code, 1);
    EXPECT_THAT(verified.output, HasSubstr("run " + a_run(true).id() + ": "));
    return rebuilt.errors;
  };
  EXPECT_THAT(fault_after([](const RunDirectory& run) { test::write_text(run.scores(), "{}"); }),
              HasSubstr("scores.json is not what the run had written"));
  EXPECT_THAT(fault_after([](const RunDirectory& run) { fs::remove(run.scores()); }),
              HasSubstr("scores.json is not what the run had written"));
  EXPECT_THAT(fault_after([](const RunDirectory& run) { test::write_text(run.outputs() / "test.hyp", "mine\n"); }),
              HasSubstr("test.hyp is not what the run had written"));
  EXPECT_THAT(fault_after([](const RunDirectory& run) { fs::remove(run.omitted()); }),
              HasSubstr("test.hyp is not what the run had written"));
  EXPECT_THAT(fault_after([](const RunDirectory& run) {
                std::string text = test::read_text(run.omitted());
                test::write_text(run.omitted(), text.replace(text.find("test.hyp"), 4, "best"));
              }),
              HasSubstr("omitted.json was edited"));
}

TEST_F(ResultsAlone, OfOneSweepAreThoseOfItsRuns) {
  EXPECT_THAT(ok({"copy", "one", "grid.toml", "--results"}).output, HasSubstr("one: 1 sweep, 4 runs\n"));
  EXPECT_THAT(ok({"copy", "whole", "failing.toml"}).output, HasSubstr("whole: 1 sweep, 1 run\n"));
  EXPECT_TRUE(fs::exists(folder_ / "whole/programs"));
  EXPECT_THAT(shown("one", {"status"}), AllOf(HasSubstr("grid.toml"), Not(HasSubstr("failing.toml"))));
  const test::Finished runs_named = tearless({"copy", "some", "grid.toml", "seed=1"});
  EXPECT_EQ(runs_named.code, 2);
  EXPECT_FALSE(fs::exists(folder_ / "some"));
}

TEST_F(ResultsAlone, InAnArchiveAreReadAsThoseInAFolder) {
  ok({"copy", "all.tar.gz"});
  for (const std::vector<std::string>& asked : {std::vector<std::string>{"table", "grid.toml"},
                                                {"runs", "all", "--csv"},
                                                {"status"},
                                                {"plot", "grid.toml", "train.loss"},
                                                {"diff", a_run(false).id(), a_run(true).id()},
                                                {"sql", "SELECT count(*) FROM runs"}}) {
    EXPECT_EQ(shown("all.tar.gz", asked), shown("results", asked)) << testing::PrintToString(asked);
  }
  EXPECT_THAT(shown("all.tar.gz", {"verify"}), HasSubstr("5 runs and 2 sweeps: no differences"));
  EXPECT_THAT(shown("all.tar.gz", {"plan", "grid.toml"}), HasSubstr("Nothing to run"));
  EXPECT_THAT(shown("all.tar.gz", {"explain", a_run(true).id()}), HasSubstr("outputs/test.hyp"));
  EXPECT_THAT(in("all.tar.gz", {"runs", "none"}).errors,
              HasSubstr("tearless status --workspace " + (folder_ / "all.tar.gz").string()))
      << "the archive, not where it is unpacked";
  test::Command named_by_variable = command({"status"});
  named_by_variable.environment["TEARLESS_WORKSPACE"] = "all.tar.gz";
  named_by_variable.environment["XDG_CACHE_HOME"] = (folder_ / "cache").string();
  EXPECT_EQ(test::run(named_by_variable).output, shown("results", {"status"}));
}

TEST_F(ResultsAlone, InAnArchiveAreUnpackedOnceAndAgainWhereTheCacheIsGone) {
  ok({"copy", "all.tar.gz"});
  const std::string table = shown("all.tar.gz", {"table", "grid.toml"});
  fs::rename(folder_ / "all.tar.gz", folder_ / "moved.tar.gz");
  EXPECT_EQ(shown("moved.tar.gz", {"table", "grid.toml"}), table);
  EXPECT_THAT(in("moved.tar.gz", {"runs", "none"}).errors, HasSubstr("moved.tar.gz"));
  EXPECT_EQ(std::ranges::count_if(fs::directory_iterator(folder_ / "cache/tearless/archives"),
                                  [](const auto& entry) { return entry.is_directory(); }),
            1);
  // As of a process that was killed while it unpacked.
  for (const auto& entry : fs::directory_iterator(folder_ / "cache/tearless/archives")) {
    if (!entry.is_directory()) continue;
    fs::remove(entry.path() / "archive");
    fs::remove(entry.path() / "tearless.db");
  }
  EXPECT_EQ(shown("moved.tar.gz", {"table", "grid.toml"}), table);
  // As an earlier build unpacked it: the format of a database stands in its bytes 60 to 63.
  for (const auto& entry : fs::directory_iterator(folder_ / "cache/tearless/archives")) {
    if (!entry.is_directory()) continue;
    std::fstream database(entry.path() / "tearless.db", std::ios::in | std::ios::out | std::ios::binary);
    database.seekp(60).write("\0\0\0\x09", 4);
  }
  const test::Finished again = in("moved.tar.gz", {"table", "grid.toml"});
  EXPECT_EQ(again.output, table);
  EXPECT_EQ(again.errors, "");
  fs::remove_all(folder_ / "cache");
  EXPECT_EQ(shown("moved.tar.gz", {"table", "grid.toml"}), table);
}

TEST_F(ResultsAlone, InAnArchiveAreNotChanged) {
  ok({"copy", "all.tar.gz"});
  const std::string bytes = test::read_text(folder_ / "all.tar.gz");
  for (const std::vector<std::string>& asked : {std::vector<std::string>{"run", "grid.toml"},
                                                {"submit", "grid.toml"},
                                                {"delete", "all", "--yes"},
                                                {"clean"},
                                                {"rebuild"},
                                                {"verify", "--repair"},
                                                {"verify-resume", "last"},
                                                {"pause", "last"},
                                                {"stop"},
                                                {"wait"},
                                                {"daemon", "--background"}}) {
    const test::Finished refused = in("all.tar.gz", asked);
    EXPECT_EQ(refused.code, 2) << testing::PrintToString(asked);
    EXPECT_THAT(refused.errors, HasSubstr("all.tar.gz is an archive, which commands only read"))
        << testing::PrintToString(asked);
  }
  EXPECT_EQ(test::read_text(folder_ / "all.tar.gz"), bytes);
  shown("all.tar.gz", {"copy", "folder"});
  EXPECT_EQ(shown("folder", {"table", "grid.toml"}), shown("results", {"table", "grid.toml"}));
  EXPECT_EQ(in("folder", {"clean"}).code, 0) << "a folder of the same results can be changed";
}

TEST_F(ResultsAlone, InAnArchiveHaveANameThatEndsInTarGz) {
  for (const char* target : {"copy.tgz", "copy.tar", "copy.zip", "copy.gz", "r.tar.xz", "r.tar.bz2", "r.tar.zst",
                             "r.tbz", "r.txz", "r.7z", "r.tar.GZ", "r.tar.Z"}) {
    const test::Finished refused = in("results", {"copy", target});
    EXPECT_EQ(refused.code, 2) << target;
    EXPECT_THAT(refused.errors, HasSubstr(std::string(target) + ": an archive has a name that ends in .tar.gz"));
    EXPECT_FALSE(fs::exists(folder_ / target));
  }
  for (const char* command : {"status", "table"}) {
    const test::Finished missing = in("none.tar.gz", {command});
    EXPECT_EQ(missing.code, 2) << command;
    EXPECT_THAT(missing.errors, HasSubstr("none.tar.gz: there is no such archive"));
  }
}

TEST_F(ResultsAlone, InAnArchiveHaveTheSameBytesFromAFolderOfThem) {
  ok({"copy", "one.tar.gz", "grid.toml"});
  ok({"copy", "two.tar.gz", "grid.toml", "--results"});
  shown("one.tar.gz", {"copy", "three.tar.gz"});
  const std::string bytes = test::read_text(folder_ / "one.tar.gz");
  EXPECT_EQ(test::read_text(folder_ / "two.tar.gz"), bytes);
  EXPECT_EQ(test::read_text(folder_ / "three.tar.gz"), bytes);
  EXPECT_FALSE(fs::exists(folder_ / "one.tar.gz.partial"));
}

TEST_F(ResultsAlone, InAnArchiveThatIsCutOrHoldsSomethingElseAreRefusedAndNothingIsLeft) {
  ok({"copy", "all.tar.gz"});
  const std::string bytes = test::read_text(folder_ / "all.tar.gz");
  test::write_text(folder_ / "cut.tar.gz", bytes.substr(0, bytes.size() / 2));
  test::write_text(folder_ / "grid.tar.gz", test::read_text(folder_ / "grid.toml"));
  fs::remove(a_run(true).scores());
  const test::Finished damaged = tearless({"copy", "damaged.tar.gz"});
  EXPECT_EQ(damaged.code, 2);
  EXPECT_THAT(damaged.errors, HasSubstr("scores.json is not what the run had written"));
  for (const char* left : {"damaged.tar.gz", "damaged.tar.gz.partial"}) EXPECT_FALSE(fs::exists(folder_ / left));
  for (const auto& [archive, why] :
       {std::pair("cut.tar.gz", "is cut or damaged"), {"grid.tar.gz", "is no archive of results"}}) {
    for (int time = 0; time < 2; ++time) {
      const test::Finished refused = in(archive, {"status"});
      EXPECT_EQ(refused.code, 2);
      EXPECT_THAT(refused.errors, AllOf(HasSubstr(archive), HasSubstr(why)));
    }
  }
  EXPECT_EQ(names_in(folder_ / "cache"), std::vector<std::string>{"tearless/archives/lock"});
  EXPECT_EQ(tearless({"copy", "all.tar.gz"}).code, 2) << "a file that is there is not replaced";
  EXPECT_EQ(test::read_text(folder_ / "all.tar.gz"), bytes);
}

}  // namespace
}  // namespace tearless::harness::results_alone_test
