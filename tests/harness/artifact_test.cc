// `tearless artifact` and `tearless verify FILE`: what an artefact has, that it has nothing of who made it, and which
// changes to it are found. What is changed is unpacked and packed by tar.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/files.h"
#include "base/hash.h"
#include "base/sealed_json.h"
#include "harness/commands/verify_artifact.h"
#include "harness/runs/workspace.h"
#include "tests/harness/run_fixture.h"
#include "tests/support/faults.h"

namespace tearless::harness::artifact_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

constexpr const char* kTable = "artifact/tables/grid-1.csv";

class ArtifactTest : public RunTest {
 protected:
  ArtifactTest() {
    test::write_text(folder_ / "grid.toml",
                     "title = \"G\"\nseeds = 2\n[set]\n\"fake.updates\" = 6\n[policy]\nenvironment = [\"MY_BRANCH\"]\n"
                     "[axis]\n\"model.kind\" = [\"a\", \"b\"]\n[table]\nscores = [\"test.score\"]\n"
                     "[[claim]]\ntext = \"a, not b\"\nbetter = [\"a\", \"b\"]\n"
                     "[[figure]]\ncaption = \"Losses\"\nx = \"updates\"\ny = \"train.loss\"\n");
    test::write_text(folder_ / "LICENCE.txt", "Do what you like.\n");
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    ::setenv("MY_BRANCH", "a-branch-of-mine", 1);
    ok({"run", "grid.toml"});
  }
  ~ArtifactTest() override {
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("MY_BRANCH");
  }

  void make() const { ok({"artifact", "grid.toml", "a.tar.gz", "--licence", "LICENCE.txt"}); }
  void shell(const std::string& command) const {
    const test::Finished finished =
        test::run({.arguments = {"/bin/sh", "-ec", command}, .environment = {}, .folder = folder_.path()});
    ASSERT_EQ(finished.code, 0) << command << finished.errors;
  }
  void take_apart() const { shell("rm -rf out; mkdir out; tar xzf a.tar.gz -C out"); }
  void put_together() const { shell("cd out; tar czf ../b.tar.gz --format=ustar artifact runs sweeps"); }
  fs::path unpacked(const std::string& name) const { return folder_ / "out" / name; }
  void edit(const std::string& name, const std::string& from, const std::string& to) const {
    std::string text = test::read_text(unpacked(name));
    ASSERT_NE(text.find(from), std::string::npos) << name << ": " << text;
    test::write_text(unpacked(name), text.replace(text.find(from), from.size(), to));
  }
  json manifest() const { return read_sealed(unpacked(kManifest)).value(); }
  // As whoever forges it would: with checksums of what is there now.
  void seal_again(const std::string& made_by = "") const {
    json all = manifest();
    for (auto& [name, checksum] : all["members"].items()) checksum = sha256(test::read_text(unpacked(name)));
    if (!made_by.empty()) all["made_by"] = made_by;
    test::write_text(unpacked(kManifest), sealed(all));
  }
  test::Finished verify(const std::vector<std::string>& more = {"--again"}) const {
    std::vector<std::string> words = {"verify", "b.tar.gz"};
    words.insert(words.end(), more.begin(), more.end());
    return tearless(words);
  }
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "out")) {
      if (entry.is_regular_file())
        all[entry.path().lexically_relative(folder_ / "out")] = test::read_text(entry.path());
    }
    return all;
  }
};

TEST_F(ArtifactTest, HasWhatTheCommandsPrintAndChecksumsOfAll) {
  EXPECT_THAT(ok({"artifact", "grid.toml", "a.tar.gz", "--licence", "LICENCE.txt"}).output,
              AllOf(HasSubstr("a.tar.gz: 4 runs, 1 table, 1 figure, 1 claim\n"), Not(HasSubstr("no licence")),
                    HasSubstr("Next: tearless verify a.tar.gz --again\n")));
  take_apart();
  const auto all = files();
  const std::pair<const char*, std::vector<std::string>> printed[] = {
      {"tables/grid-1.md", {"table", "--final", "--format", "markdown"}},
      {"tables/grid-1.csv", {"table", "--final", "--format", "csv"}},
      {"tables/grid-1.tex", {"table", "--final", "--format", "latex"}},
      {"tables/grid-1.json", {"table", "--final", "--format", "json"}},
      {"claims/grid.md", {"check-table", "--format", "markdown"}},
      {"claims/grid.csv", {"check-table", "--format", "csv"}},
      {"claims/grid.json", {"check-table", "--format", "json"}},
      {"figures/figure-1.csv", {"figure", "--format", "csv"}},
      {"figures/figure-1.tex", {"figure", "--format", "pgfplots"}}};
  for (const auto& [name, command] : printed) {
    ASSERT_TRUE(all.contains(std::string("artifact/") + name)) << name;
    EXPECT_EQ(all.at(std::string("artifact/") + name), ok(command).output) << name;
  }
  EXPECT_THAT(all.at("artifact/figures/figure-1.svg"), HasSubstr("<svg"));
  EXPECT_EQ(all.at("artifact/licences/LICENCE.txt"), "Do what you like.\n");
  const std::string readme = all.at("artifact/README.md");
  EXPECT_THAT(readme, AllOf(HasSubstr("# G\n"), HasSubstr("tearless verify a.tar.gz --again"),
                            ContainsRegex("grid-[0-9a-f]{8}: 4 runs \\(4 done\\) took 4 attempts and [0-9.e-]+ core-h"),
                            HasSubstr("- fake-engine 1 on cpu"), HasSubstr("- `licences/LICENCE.txt`")));

  std::string sums;
  const json members = manifest().at("members");
  for (const auto& [name, checksum] : members.items()) sums += checksum.get<std::string>() + "  " + name + "\n";
  test::write_text(folder_ / "sums", sums);
  shell("cd out; sha256sum --check --strict --quiet ../sums");
  EXPECT_EQ(members.size() + 1, all.size()) << "all but itself";
  EXPECT_EQ(manifest().at("counts"),
            json::parse(R"({"runs": 4, "results": 4, "tables": 1, "figures": 1, "claims": 1})"));
}

TEST_F(ArtifactTest, IsReadAsAWorkspaceAndItsGridTrainsTheSameRuns) {
  make();
  EXPECT_EQ(ok({"table", "last", "--workspace", "a.tar.gz"}).output, ok({"table", "last"}).output);
  EXPECT_EQ(json::parse(ok({"--json", "runs", "--workspace", "a.tar.gz"}).output).size(), 4u);
  ok({"copy", "b.tar.gz", "--workspace", "a.tar.gz"});
  EXPECT_EQ(ok({"table", "last", "--workspace", "b.tar.gz"}).output, ok({"table", "last"}).output);
  take_apart();
  const std::string sweep = folders_in(unpacked("sweeps")).at(0);
  EXPECT_THAT(test::read_text(unpacked("artifact/README.md")),
              HasSubstr("\ntearless run sweeps/" + sweep + "/merged.toml\n"));
  EXPECT_THAT(ok({"plan", "out/sweeps/" + sweep + "/merged.toml"}).output, HasSubstr("Nothing to run"));
}

TEST_F(ArtifactTest, HasNothingOfWhoTrained) {
  make();
  take_apart();
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  for (const auto& [name, text] : files()) {
    EXPECT_THAT(text, AllOf(Not(HasSubstr("a-branch-of-mine")), Not(HasSubstr(folder_.path().string())))) << name;
    if (std::string_view(host).size() <= 3) continue;
    EXPECT_THAT(text, Not(HasSubstr(host))) << name;
  }
}

// Half an hour each: three runs of two threads, one of them with an attempt before it of which no end is known, and one
// run on a GPU.
TEST_F(ArtifactTest, SaysWhatItsRunsCost) {
  const std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml",
                   std::regex_replace(grid, std::regex("\\[set\\]"), "[set]\n\"fake.threads\" = 2"));
  ok({"run", "grid.toml"});
  for (size_t i = 0; i < runs().size(); ++i) {
    const RunDirectory run = runs()[i];
    if (i == 1) {
      fs::rename(run.attempt(1), run.attempt(2));
      fs::create_directories(run.attempt(1));
      fs::copy(run.attempt(2) / "start.json", run.attempt(1) / "start.json");
    }
    const int attempt = i == 1 ? 2 : 1;
    json start = read_sealed(run.attempt(attempt) / "start.json").value();
    start["started_at"] = "2026-01-01T23:45:00Z";
    start["attempt"] = attempt;
    if (i == 0) start["device"] = "A GPU";
    write_before_exit(run, "start.json", sealed(start), attempt);
    json exit = read_sealed(run.attempt(attempt) / "exit.json").value();
    exit["ended_at"] = "2026-01-02T00:15:00Z";
    test::write_text(run.attempt(attempt) / "exit.json", sealed(exit));
  }
  ok({"rebuild"});
  make();
  take_apart();
  const std::string readme = test::read_text(unpacked("artifact/README.md"));
  EXPECT_THAT(readme,
              AllOf(HasSubstr(": 4 runs (4 done) took 5 attempts and 3.00 core-hours and 0.50 GPU-hours, without 1 "
                              "attempt of unknown length\n"),
                    HasSubstr("\n- fake-engine 1 on A GPU"), HasSubstr("\n- fake-engine 1 on cpu")));
}

TEST_F(ArtifactTest, IsVerifiedInOneLineThatOthersCanBeShown) {
  make();
  const std::string line = "20[0-9]{2}-[0-9]{2}-[0-9]{2}, tearless [^:]*: 4 runs, 1 table, 1 figure, 1 claim: ";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"verify", "a.tar.gz", "--again"}, {"verify", "--again", "--workspace", "a.tar.gz"}}) {
    EXPECT_THAT(ok(command).output, ContainsRegex(line + "all bytes equal\n$"));
  }
  take_apart();
  const std::string packed = std::to_string(manifest().at("members").size());
  EXPECT_THAT(ok({"verify", "a.tar.gz"}).output, ContainsRegex(line + packed + " files as they were packed\n$"));
  const json answer = json::parse(ok({"--json", "verify", "a.tar.gz", "--again"}).output);
  EXPECT_EQ(answer.at("same_build"), true);
  for (const char* none : {"damage", "values", "texts"}) EXPECT_THAT(answer.at(none), IsEmpty()) << none;
  EXPECT_FALSE(fs::exists(folder_ / "cache/tearless/archives/verifying"));
  put_together();
  EXPECT_THAT(verify().output, HasSubstr("all bytes equal")) << "whoever packs it";
}

TEST_F(ArtifactTest, WithAnEditedMemberIsRefusedAndItIsNamed) {
  make();
  for (const char* name : {kTable, "artifact/README.md", "runs/*/metrics.jsonl", "sweeps/*/grid.toml"}) {
    take_apart();
    shell(std::string("cd out; for f in ") + name + "; do echo x >> $f; echo $f > ../edited; break; done");
    std::string edited = test::read_text(folder_ / "edited");
    edited.pop_back();
    put_together();
    for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--again"}}) {
      const test::Finished found = verify(more);
      EXPECT_EQ(found.code, 1) << name;
      EXPECT_THAT(found.output, AllOf(HasSubstr(edited + " is not as it was packed\n"),
                                      HasSubstr(": NOT as it was made\n"), Not(HasSubstr("differs"))));
    }
  }
  take_apart();
  edit(kManifest, "\"runs\": 4", "\"runs\": 5");
  put_together();
  EXPECT_EQ(verify().code, 1);
  EXPECT_THAT(verify().output, HasSubstr("artifact/MANIFEST.json is not as it was packed\n"));
}

TEST_F(ArtifactTest, WithAMemberTooManyOrTooFewIsRefusedAndItIsNamed) {
  make();
  take_apart();
  test::write_text(unpacked("runs/extra"), "x");
  put_together();
  EXPECT_EQ(verify({}).code, 1);
  EXPECT_THAT(verify({}).output, HasSubstr("runs/extra is in it, and the manifest does not have it\n"));
  take_apart();
  fs::remove(unpacked("artifact/claims/grid.md"));
  put_together();
  EXPECT_EQ(verify({}).code, 1);
  EXPECT_THAT(verify({}).output, HasSubstr("artifact/claims/grid.md is missing\n"));
}

TEST_F(ArtifactTest, ThatIsCutOrLeavesItsFolderIsRefused) {
  make();
  const std::string bytes = test::read_text(folder_ / "a.tar.gz");
  for (const size_t size : {bytes.size() / 2, bytes.size() - 1}) {
    test::write_text(folder_ / "b.tar.gz", bytes.substr(0, size));
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"verify", "b.tar.gz"}, {"verify", "--workspace", "b.tar.gz"}}) {
      const test::Finished found = tearless(words);
      EXPECT_EQ(found.code, 1) << size;
      EXPECT_THAT(found.output, AllOf(HasSubstr("b.tar.gz is cut or damaged (it ends too early)"),
                                      HasSubstr(": b.tar.gz: NOT as it was made\n")))
          << size;
    }
  }
  take_apart();
  test::write_text(folder_ / "x", "x");
  shell("cd out; tar czPf ../b.tar.gz --format=ustar artifact runs sweeps ../x; rm ../x");
  const test::Finished found = verify({});
  EXPECT_EQ(found.code, 1);
  EXPECT_THAT(found.output, HasSubstr("b.tar.gz holds ../x, which is not in these folders"));
  EXPECT_FALSE(fs::exists(folder_ / "x"));
  EXPECT_FALSE(fs::exists(folder_ / "cache/tearless/archives/x"));
}

// Who has sealed it again has checksums that fit.
TEST_F(ArtifactTest, OfWhichAValueWasForgedIsFoundByMakingItAgain) {
  make();
  const std::pair<const char*, std::vector<std::string>> forgeries[] = {
      {kTable, {"20.4", "20.9", "artifact/tables/grid-1.csv, row 1, mean: \"20.9"}},
      {"artifact/tables/grid-1.json", {"\"n\": 2", "\"n\": 3", "rows 1, cells 1, n: 3, made again 2"}},
      {"artifact/claims/grid.csv", {"held", "cannot tell", "verdict: \"cannot tell\", made again \"held\""}},
      {"artifact/figures/figure-1.csv", {"train.loss,1,", "train.loss,9,", "row 1, x: \"9\", made again \"1\""}},
      {"artifact/claims/grid.json", {"{", "", "it has no values that can be read"}}};
  for (const char* made_by : {"", "0.0.9 (another build)"}) {
    for (const auto& [name, words] : forgeries) {
      take_apart();
      edit(name, words[0], words[1]);
      seal_again(made_by);
      put_together();
      EXPECT_EQ(verify({}).code, 0) << "the checksums are those of what it has";
      const test::Finished found = verify();
      EXPECT_EQ(found.code, 1) << name;
      EXPECT_THAT(found.output, AllOf(HasSubstr("value differs: "), HasSubstr(words[2]),
                                      HasSubstr(": 1 value differs\n"), Not(HasSubstr("text differs"))))
          << name << made_by;
    }
  }
}

TEST_F(ArtifactTest, OfWhichTheCountsWereForgedIsSaidToHaveWhatItHas) {
  make();
  take_apart();
  json all = manifest();
  all["counts"]["runs"] = 400;
  test::write_text(unpacked(kManifest), sealed(all));
  put_together();
  EXPECT_THAT(verify().output, HasSubstr(": 4 runs, 1 table, "));
}

TEST_F(ArtifactTest, OfAnotherBuildMayHaveOtherTexts) {
  make();
  take_apart();
  edit("artifact/tables/grid-1.md", "sample standard", "usual standard");
  seal_again();
  put_together();
  const test::Finished same = verify();
  EXPECT_EQ(same.code, 1) << "the build that made it prints other bytes";
  EXPECT_THAT(same.output, AllOf(HasSubstr("text differs: artifact/tables/grid-1.md\n"),
                                 HasSubstr(": 1 text differs, which the same build has made\n")));
  seal_again("0.0.9 (another build)");
  put_together();
  const test::Finished other = verify();
  EXPECT_EQ(other.code, 0) << other.output;
  EXPECT_THAT(other.output,
              AllOf(HasSubstr("text differs: artifact/tables/grid-1.md\n"),
                    HasSubstr("by tearless 0.0.9 (another build)\n"), HasSubstr(": values equal, 1 text differs\n")));
  edit("artifact/tables/grid-1.json", "sample standard", "usual standard");
  fs::remove(unpacked("artifact/figures/figure-1.tex"));
  json all = manifest();
  all["members"].erase("artifact/figures/figure-1.tex");
  test::write_text(unpacked(kManifest), sealed(all));
  seal_again();
  put_together();
  EXPECT_EQ(verify().code, 0) << "an earlier build had less to print";
  EXPECT_THAT(verify().output, HasSubstr(": values equal, 3 texts differ\n"));
}

TEST_F(ArtifactTest, OfWhichARunWasForgedIsFoundByItsOwnChecksums) {
  make();
  take_apart();
  const std::string run = folders_in(unpacked("runs")).at(0);
  edit("runs/" + run + "/scores.json", "20.", "21.");
  seal_again();
  put_together();
  EXPECT_EQ(verify().code, 1);
  EXPECT_THAT(verify().output, AllOf(HasSubstr("runs/" + run + "/scores.json"), Not(HasSubstr("verifying/"))));
}

// No time and no checkpoint goes with the archive, of which the work that an attempt lost is computed.
TEST_F(ArtifactTest, OfRunsThatFailedIsMadeAgainByteForByteAndSaysHowManyHaveResults) {
  std::string grid = test::read_text(folder_ / "grid.toml");
  grid.replace(grid.find("[axis]"), 6, "[axis]\n\"fake.behaviour\" = [\"succeed\", \"crash\"]");
  test::write_text(folder_ / "grid.toml", grid);
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);
  const std::string counts = "4 of 8 runs have a result, 1 table";
  EXPECT_THAT(ok({"artifact", "last", "-o", "a.tar.gz"}).output, HasSubstr(counts));
  fs::remove_all(folder_ / "cache");
  EXPECT_THAT(ok({"verify", "a.tar.gz", "--again"}).output, AllOf(HasSubstr(counts), HasSubstr("all bytes equal")));
  for (const RunDirectory& run : runs())
    EXPECT_THAT(ok({"explain", run.id(), "--workspace", "a.tar.gz"}).output, Not(HasSubstr("lost")));
  take_apart();
  EXPECT_THAT(test::read_text(unpacked("artifact/README.md")), HasSubstr(counts));
}

TEST_F(ArtifactTest, HasLicencesInAnyOrder) {
  test::write_text(folder_ / "AUTHORS.txt", "We.\n");
  ok({"artifact", "grid.toml", "a.tar.gz", "--licence", "LICENCE.txt", "--licence", "AUTHORS.txt"});
  EXPECT_THAT(ok({"verify", "a.tar.gz", "--again"}).output, HasSubstr("all bytes equal"));
}

TEST_F(ArtifactTest, OfWhichATextWasForgedIsFoundWhoeverSaysToHaveMadeIt) {
  make();
  for (const auto& [name, from, to] : {std::tuple{"artifact/tables/grid-1.md", "20.", "99."},
                                       {"artifact/tables/grid-1.tex", "20.", "99."},
                                       {"artifact/claims/grid.md", "held", "not tested"},
                                       {"artifact/report.html", ">20.", ">99."},
                                       {"artifact/README.md", "(4 done)", "(5 done)"},
                                       {"artifact/figures/figure-1.svg", "width=\"", "width=\"9"}}) {
    take_apart();
    edit(name, from, to);
    seal_again("0.0.9 (another build)");
    put_together();
    const test::Finished found = verify();
    EXPECT_EQ(found.code, 1) << name;
    EXPECT_THAT(found.output, HasSubstr(std::string("value differs: ") + name + ": the numbers differ: "));
  }
}

TEST_F(ArtifactTest, OfAnotherBuildThatNamesItselfDoesNotDiffer) {
  make();
  take_apart();
  const std::string made_by = manifest().at("made_by");
  std::string page = test::read_text(unpacked("artifact/report.html"));
  for (size_t at = 0; (at = page.find("tearless " + made_by)) != std::string::npos;)
    page.replace(at + 9, made_by.size(), "0.0.9 (x)");
  test::write_text(unpacked("artifact/report.html"), page);
  seal_again("0.0.9 (x)");
  put_together();
  EXPECT_THAT(ok({"verify", "b.tar.gz", "--again"}).output, HasSubstr("all bytes equal"));
  seal_again(made_by);
  put_together();
  EXPECT_EQ(verify().code, 1) << "this build has not written that";
}

TEST_F(ArtifactTest, OnAMachineWithoutACacheIsNotBlamed) {
  make();
  ::setenv("XDG_CACHE_HOME", "/proc/nope", 1);
  const test::Finished found = tearless({"verify", "a.tar.gz"});
  EXPECT_EQ(found.code, 2);
  EXPECT_THAT(found.output, Not(HasSubstr("NOT")));
  EXPECT_THAT(found.errors, HasSubstr("/proc/nope"));
}

TEST_F(ArtifactTest, ThatThisBuildCannotPrintIsNotCalledDamaged) {
  make();
  take_apart();
  const std::string sweep = folders_in(unpacked("sweeps")).at(0), name = "sweeps/" + sweep + "/merged.toml";
  edit(name, "better = ", "unheard_of = ");
  const std::string text = test::read_text(unpacked(name)), rest = text.substr(text.find('\n') + 1);
  edit(name, text.substr(text.find("SHA-256: ") + 9, 64), sha256(sweep + "\n" + rest));
  seal_again();
  put_together();
  const test::Finished found = verify();
  EXPECT_EQ(found.code, 2) << found.output;
  EXPECT_THAT(found.errors,
              AllOf(HasSubstr("a.tar.gz cannot be made again by this build: "), Not(HasSubstr("verifying/"))));
  EXPECT_THAT(found.output, Not(HasSubstr("NOT")));
}

TEST_F(ArtifactTest, WithAFileInPlaceOfAFolderIsRefused) {
  shell("echo x > runs; tar czf b.tar.gz --format=ustar runs");
  EXPECT_EQ(verify({}).code, 1);
  EXPECT_THAT(verify({}).output, HasSubstr("b.tar.gz holds runs, which is not in these folders"));
}

TEST_F(ArtifactTest, IsTrainedAgainInAFolderOfItsResultsAndCompared) {
  make();
  ok({"copy", "again", "--workspace", "a.tar.gz"});
  const test::Finished same = ok({"verify-resume", "last", "--today", "--workspace", "again"});
  EXPECT_THAT(same.output, AllOf(HasSubstr(": the same bytes\n"), HasSubstr("4 runs: 4 equal, 0 different")));
  test::Command moved = command({"verify-resume", "last", "--today", "--workspace", "again"});
  moved.environment["FAKE_EXTRA"] = "0.5";
  EXPECT_THAT(test::run(moved).output, HasSubstr("4 runs: 0 equal, 4 different"));
}

TEST_F(ArtifactTest, OfALaterFormatSaysSo) {
  make();
  take_apart();
  json later = manifest();
  later["format"] = kArtifactFormat + 1;
  test::write_text(unpacked(kManifest), sealed(later));
  put_together();
  EXPECT_EQ(verify().code, 2);
  EXPECT_THAT(verify().errors, HasSubstr("b.tar.gz was made by a later tearless (0.1.0"));
}

TEST_F(ArtifactTest, OfSeveralSweepsHasNamesOfTheirOwn) {
  std::string other = test::read_text(folder_ / "grid.toml");
  fs::create_directories(folder_ / "more");
  test::write_text(folder_ / "more/grid.toml", other.replace(other.find("\"b\"]"), 4, "\"b\", \"c\"]"));
  ok({"run", "more/grid.toml"});
  EXPECT_THAT(ok({"artifact", "all", "a.tar.gz"}).output,
              AllOf(HasSubstr("6 runs, 2 tables, 2 figures, 2 claims\n"), HasSubstr("no licence file; to add one: ")));
  take_apart();
  EXPECT_THAT(test::read_text(unpacked("artifact/README.md")), HasSubstr("No licence file was given.\n"));
  std::vector<std::string> names;
  for (const auto& [name, text] : files()) names.push_back(name);
  std::vector<std::string> wanted;
  for (const std::string& sweep : folders_in(unpacked("sweeps")))
    for (const std::string& name :
         {"tables/" + sweep + "-1.csv", "claims/" + sweep + ".csv", "figures/" + sweep + "/figure-1.svg"})
      wanted.push_back("artifact/" + name);
  EXPECT_EQ(wanted.size(), 6u);
  EXPECT_THAT(names, IsSupersetOf(wanted));
  EXPECT_THAT(ok({"verify", "a.tar.gz", "--again"}).output, HasSubstr("all bytes equal"));
}

TEST_F(ArtifactTest, MadeSmallHasOfARunWhatATableAClaimOrAFigureIsMadeOfAndNoMore) {
  test::write_text(folder_ / "norms.toml",
                   test::read_text(folder_ / "grid.toml") +
                       "[[figure]]\ncaption = \"Norms\"\nx = \"updates\"\ny = \"gradient_norms\"\n");
  ok({"run", "norms.toml"});
  for (const RunDirectory& run : runs()) {
    test::write_text(run.gradient_norms(), std::string(6 * 4, '\0'));
    test::write_text(run.outputs() / "test.stats", "statistics");
  }
  const auto names_with = [&](std::vector<std::string> sweeps) {
    std::vector<std::string> words = {"artifact"};
    words.insert(words.end(), sweeps.begin(), sweeps.end());
    words.insert(words.end(), {"a.tar.gz", "--small"});
    fs::remove(folder_ / "a.tar.gz");
    ok(words);
    EXPECT_THAT(ok({"verify", "a.tar.gz", "--again"}).output, HasSubstr("all bytes equal"));
    take_apart();
    std::string all;
    for (const auto& [name, text] : files()) all += name + "\n";
    return all;
  };
  EXPECT_THAT(names_with({"grid.toml"}),
              AllOf(HasSubstr("metrics.jsonl"), Not(HasSubstr("gradient_norms.f32")), Not(HasSubstr(".stats"))));
  EXPECT_THAT(names_with({"norms.toml"}), AllOf(HasSubstr("gradient_norms.f32"), Not(HasSubstr(".stats"))));
  const auto count_in = [](const std::string& names, const std::string& name) {
    size_t count = 0;
    for (size_t at = 0; (at = names.find(name, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  // Of a table over the same runs: how many of them keep their norms, and that it has its numbers.
  const auto norms_for = [&](const std::string& name, const std::string& table) {
    test::write_text(folder_ / name,
                     "title = \"S\"\nseeds = 2\n[set]\n\"fake.updates\" = 6\n[axis]\n\"model.kind\" = [\"a\", \"b\"]\n"
                     "[score.norm]\nof = \"gradient_norms\"\ntake = \"mean\"\n[table]\n" +
                         table);
    ok({"run", name});
    const size_t count = count_in(names_with({name}), "gradient_norms.f32");
    EXPECT_EQ(test::read_text(unpacked("artifact/tables/" + fs::path(name).stem().string() + "-1.csv")),
              ok({"table", name, "--format", "csv"}).output);
    return count;
  };
  EXPECT_EQ(norms_for("b.toml", "scores = \"norm\"\nwhere = { \"model.kind\" = \"b\" }\n"), 2u)
      << "those that it shows";
  EXPECT_EQ(norms_for("by_label.toml",
                      "columns = \"model.kind\"\nscores.\"model.kind\" = { a = \"test.score\", b = \"norm\" }\n"),
            4u);
  EXPECT_EQ(norms_for("none.toml", "scores = \"test.score\"\n"), 0u);
  EXPECT_THAT(names_with({"grid.toml", "norms.toml"}), HasSubstr("gradient_norms.f32"))
      << "one of the sweeps that have the run needs it";
  fs::remove(folder_ / "a.tar.gz");
  ok({"artifact", "grid.toml", "a.tar.gz"});
  take_apart();
  EXPECT_EQ(test::run({.arguments = {"/bin/sh", "-ec", "ls out/runs/*/gradient_norms.f32 out/runs/*/outputs/*.stats"},
                       .environment = {},
                       .folder = folder_.path()})
                .code,
            0)
      << "otherwise it has all";
}

TEST_F(ArtifactTest, MadeSmallHasStatisticsOfSentencesForATableThatComparesThem) {
  const std::string grid =
      "title = \"S\"\nseeds = 2\n[axis]\n\"model.norm\" = [\"x\", \"y\"]\n"
      "[table]\nscores = \"test.bleu\"\nrows = \"model.norm\"\nbaseline = \"x\"\n";
  for (const auto& [name, test, count] :
       {std::tuple("plain.toml", "", 0), {"tested.toml", "[table.test]\nmethod = \"randomisation\"\n", 4}}) {
    test::write_text(folder_ / name, grid + test);
    test::Command run = command({"run", name});
    run.environment["FAKE_SCORES"] = "test.bleu";
    run.environment["FAKE_SENTENCES"] = "40";
    ASSERT_EQ(finish(run).code, 0);
    fs::remove(folder_ / "a.tar.gz");
    ok({"artifact", name, "a.tar.gz", "--small"});
    take_apart();
    int found = 0;
    for (const auto& [file, text] : files()) found += file.ends_with(".stats");
    EXPECT_EQ(found, count) << name;
  }
}

TEST_F(ArtifactTest, MistakesAreRefusedAndNothingIsLeft) {
  ok({"copy", "copy.tar.gz"});
  test::write_text(folder_ / "empty", "");
  const std::string copied = test::read_text(folder_ / "copy.tar.gz");
  fs::create_directories(folder_ / "other");
  test::write_text(folder_ / "other/LICENCE.txt", "x");
  test::write_text(folder_ / "failing.toml", "[axis]\n\"fake.behaviour\" = [\"refuse_late\"]\n");
  tearless({"run", "failing.toml"});
  const std::pair<std::vector<std::string>, std::string> refusals[] = {
      {{"artifact", "grid.toml", "copy.tar.gz"}, "copy.tar.gz exists already"},
      {{"artifact"}, "name a sweep and a file: tearless artifact SWEEP FILE.tar.gz"},
      {{"verify", "grid.toml"}, "grid.toml is no archive of results"},
      {{"verify", "empty"}, "empty is no archive of results"},
      {{"artifact", "grid.toml"}, "an artefact is one file: tearless artifact SWEEP FILE.tar.gz"},
      {{"artifact", "failing.toml", "a.tar.gz"}, "has no result yet, so there is nothing to hand over"},
      {{"artifact", "nothing", "a.tar.gz"}, "nothing"},
      {{"artifact", "a.tar.gz", "--licence", "none"}, "none"},
      {{"artifact", "a.tar.gz", "--licence", "LICENCE.txt", "--licence", "other/LICENCE.txt"},
       "--licence other/LICENCE.txt: another one has that name"},
      {{"verify", "copy.tar.gz", "--again"},
       "copy.tar.gz has no tables to make again: it is no artefact; to make one: tearless artifact "},
      {{"verify", "--again"}, "--again is of an artefact"},
      {{"verify", "none.tar.gz"}, "none.tar.gz: there is no such archive"},
      {{"verify", "copy.tar.gz", "--repair"}, "copy.tar.gz is an archive, which commands only read"}};
  for (const auto& [words, sentence] : refusals) {
    const test::Finished refused = tearless(words);
    EXPECT_EQ(refused.code, 2) << sentence << refused.output;
    EXPECT_THAT(refused.errors, HasSubstr(sentence));
    EXPECT_THAT(refused.output, Not(HasSubstr("NOT as it was made")));
  }
  EXPECT_FALSE(fs::exists(folder_ / "a.tar.gz"));
  EXPECT_FALSE(fs::exists(folder_ / "a.tar.gz.partial"));
  EXPECT_EQ(test::read_text(folder_ / "copy.tar.gz"), copied);
  EXPECT_THAT(ok({"verify", "copy.tar.gz"}).output, HasSubstr("no differences")) << "as any workspace";
}

TEST_F(ArtifactTest, ThatIsKilledAnywhereIsWholeOrNotThere) {
  const auto killed_at = [&](int64_t point) {
    test::Faults faults(folder_.path());
    if (point > 0) faults.kill_at(point, fault::kCallingProcess);
    test::Command command = this->command({"artifact", "grid.toml", "a.tar.gz"});
    for (const auto& [name, value] : faults.environment()) command.environment[name] = value;
    test::run(command);
    return point > 0 ? faults.hits() : faults.points();
  };
  const int64_t points = killed_at(0);
  ASSERT_GT(points, 100);
  size_t whole = 0;
  for (int64_t point = points; point > 0; point -= point > points - 12 ? 1 : points / 12) {
    fs::remove(folder_ / "a.tar.gz");
    EXPECT_EQ(killed_at(point), 1) << point;
    if (!fs::exists(folder_ / "a.tar.gz")) continue;
    ++whole;
    EXPECT_THAT(ok({"verify", "a.tar.gz", "--again"}).output, HasSubstr("all bytes equal")) << point;
  }
  EXPECT_GT(whole, 0u);
  EXPECT_LT(whole, 12u);
  fs::remove(folder_ / "a.tar.gz");
  make();
  EXPECT_FALSE(fs::exists(folder_ / "a.tar.gz.partial")) << "that of those that were killed is replaced";
}

TEST_F(ArtifactTest, OnAFullDiskIsNotMadeAndTheReasonIsGiven) {
  for (const int64_t call : {1, 40, 90, 140}) {
    test::Faults faults(folder_.path());
    faults.fail(fault::kWrite | fault::kSync, ENOSPC, call, std::numeric_limits<int64_t>::max());
    test::Command command = this->command({"artifact", "grid.toml", "a.tar.gz"});
    for (const auto& [name, value] : faults.environment()) command.environment[name] = value;
    const test::Finished refused = test::run(command);
    EXPECT_GT(faults.hits(), 0) << call;
    EXPECT_EQ(refused.code, 2) << call << refused.output;
    EXPECT_THAT(refused.errors, HasSubstr("No space left on device")) << call;
    EXPECT_FALSE(fs::exists(folder_ / "a.tar.gz")) << call;
    EXPECT_FALSE(fs::exists(folder_ / "a.tar.gz.partial")) << call;
  }
}

ArtifactCheck compared(const std::string& name, const std::string& packed, const std::string& made) {
  ArtifactCheck check;
  compare_printed(name, packed, made, check);
  return check;
}

TEST(PrintedValues, AreEqualAsNumbersOrAsTexts) {
  const std::string header = "label,mean,n\r\n";
  const auto differs = [&](const std::string& packed, const std::string& made) {
    return compared("t.csv", header + packed, header + made).values;
  };
  EXPECT_THAT(differs("\"a, \"\"b\"\"\",0.5,x\r\n", "\"a, \"\"b\"\"\",0.50,x\r\n"), IsEmpty());
  EXPECT_EQ(compared("t.csv", header + "a,0.5,x\r\n", header + "a,0.50,x\r\n").texts,
            std::vector<std::string>{"t.csv"});
  EXPECT_THAT(differs("a,0.5,x\r\n", "a,0.5000000000000001,x\r\n"),
              ElementsAre("t.csv, row 1, mean: \"0.5\", made again \"0.5000000000000001\""));
  EXPECT_THAT(differs("a,,x\r\n", "a,0,x\r\n"), ElementsAre("t.csv, row 1, mean: \"\", made again \"0\""));
  EXPECT_THAT(differs("\"a,b\",1,x\r\n", "\"a,c\",1,x\r\n"),
              ElementsAre("t.csv, row 1, label: \"a,b\", made again \"a,c\""));
  EXPECT_THAT(differs("a,1,x\r\na,1,x\r\n", "a,1,x\r\n"), ElementsAre("t.csv, row: 2 items, made again 1 item"));
  EXPECT_THAT(differs("a,1,x,2\r\n", "a,1,x\r\n"), ElementsAre("t.csv, row 1, column 4: \"2\", made again nothing"));
}

TEST(PrintedValues, OfJsonAreAllButWordsForPeople) {
  const auto differs = [](const json& packed, const json& made) {
    return compared("t.json", packed.dump(), made.dump()).values;
  };
  EXPECT_THAT(differs({{"title", "A"}, {"n", 2}}, {{"title", "B"}, {"n", 2.0}, {"new", 1}}), IsEmpty());
  EXPECT_THAT(differs({{"n", 2}, {"old", "x"}}, {{"n", 2}}), ElementsAre("t.json, old: \"x\", made again nothing"));
  EXPECT_THAT(differs({{"n", nullptr}}, {{"n", 0}}), ElementsAre("t.json, n: nothing, made again 0"));
  EXPECT_THAT(differs({{"rows", {1, 2}}}, {{"rows", {1}}}), ElementsAre("t.json, rows: 2 items, made again 1 item"));
  EXPECT_THAT(differs({{"reason", "too few"}}, {{"reason", "none"}}),
              ElementsAre("t.json, reason: \"too few\", made again \"none\""));
  const std::string deep(1'000'000, '[');
  EXPECT_THAT(compared("t.json", "{\"n\": " + deep + std::string(deep.size(), ']') + "}", "{\"n\": 1}").values,
              ElementsAre("t.json, n: 1 item, made again 1"));
  EXPECT_THAT(compared("t.md", "1.5\n", "1.6\n").values, ElementsAre("t.md: the numbers differ: 1.5, made again 1.6"));
}

TEST(PrintedValues, OfAxesAreNeverWordsForPeople) {
  const json packed = {{"labels", {{"text", "a"}}}, {"place", {{"unit", "a"}}}};
  const json made = {{"labels", {{"text", "b"}}}, {"place", {{"unit", "b"}}}};
  EXPECT_EQ(compared("t.json", packed.dump(), made.dump()).values.size(), 2u);
  EXPECT_EQ(compared("artifact/tables/t.csv", "source,n\r\na,1\r\n", "source,n\r\nb,1\r\n").values.size(), 1u);
  EXPECT_THAT(compared("artifact/claims/t.csv", "source,n\r\na,1\r\n", "source,n\r\nb,1\r\n").values, IsEmpty());
}

TEST(PrintedValues, OfTextsAreNumbersWithTheirSignsAndVerdicts) {
  const auto differs = [](const std::string& packed, const std::string& made) {
    return !compared("t.md", packed, made).values.empty();
  };
  EXPECT_FALSE(differs("the mean is 3.09.", "a mean: 3.09"));
  EXPECT_FALSE(differs("−3.09", "$-$3.09")) << "the same sign in other letters";
  EXPECT_TRUE(differs("3.09", "3.00"));
  EXPECT_TRUE(differs("−3.09", "3.09"));
  EXPECT_TRUE(differs("3.09", "+3.09"));
  EXPECT_TRUE(differs("3.09", "3.09 4"));
  EXPECT_TRUE(differs("a claim: held", "a claim: cannot tell"));
  EXPECT_TRUE(compared("t.json", R"({"title": "of 3"})", R"({"title": "of 4"})").values.size() == 1);
}

TEST(PrintedValues, OfAPageAreWhatItShowsAndTheDataOfItsCurves) {
  const auto page = [](const std::string& style, const std::string& data) {
    return "<style>" + style + "</style><p>20.4</p><script type=\"application/json\">" + data + "</script>";
  };
  EXPECT_THAT(compared("r.html", page("a 1", "2"), page("a 3", "2")).values, IsEmpty());
  EXPECT_EQ(compared("r.html", page("a 1", "2"), page("a 1", "3")).values.size(), 1u);
}

}  // namespace
}  // namespace tearless::harness::artifact_test
