// `tearless report --text`: what it puts in the places of a page, beside what the commands print; what it refuses, with
// nothing written; and the first page that it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::text_report_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kGrid = R"(title = "A grid"
seeds = 2
[set]
"fake.updates" = 4
[names]
"model.kind" = "Kind"
[axis]
"model.kind" = ["a", "b_c"]
[[table]]
caption = "Scores --> here"
scores = ["test.score"]
[[table]]
caption = "Updates"
scores = ["updates"]
[[figure]]
name = "losses"
caption = "Loss [by update]"
y = "train.loss"
[[claim]]
text = "a is better"
better = ["a", "b_c"]
)";

class TextReport : public RunTest {
 protected:
  // pages/ beside the grid; the workspace is results/.
  TextReport() {
    test::write_text(folder_ / "grid.toml", kGrid);
    fs::create_directory(folder_ / "pages");
  }

  void write(const std::string& page) const { test::write_text(folder_ / "pages/p.md", page); }
  std::string page() const { return test::read_text(folder_ / "pages/p.md"); }
  test::Finished report() const { return tearless({"report", "--text", "pages/p.md"}); }

  // Nothing is written of a page that is refused for this.
  std::string refusal_of(const std::string& text) const {
    write(text);
    const test::Finished refused = report();
    EXPECT_EQ(refused.code, 2) << refused.output;
    EXPECT_EQ(page(), text);
    EXPECT_FALSE(fs::exists(folder_ / "pages/drawn"));
    return refused.errors;
  }
};

TEST_F(TextReport, FillsPlacesWithWhatTheCommandsPrintAndChangesNothingElse) {
  ok({"run", "grid.toml", "--name", "s"});
  const std::string markdown = ok({"table", "s", "--format", "markdown"}).output,
                    laid =
                        ok({"table", "s", "--layout", "grid.toml", "--format", "markdown", "--only", "Updates"}).output,
                    claims = ok({"check-table", "s", "--format", "markdown"}).output,
                    cell = ok({"table", "s", "--cell", "Kind=b_c", "test.score", "{mean}"}).output;
  EXPECT_NE(markdown, laid);
  EXPECT_THAT(cell, testing::MatchesRegex("-?[0-9.]+\n"));
  write(
      "# Page\n<!-- tearless table s -->\nold\n<!-- end -->\nprose  \n<!-- tearless table s --layout ../grid.toml "
      "--only "
      "Updates -->\n<!-- end -->\n\n<!-- tearless check-table s -->\n<!-- end -->\n<!-- tearless figure s --out drawn/ "
      "--format svg,csv -->\n<!-- end -->\nIt is <!-- tearless cell model.kind=b_c test.score {mean} -->0<!-- end -->, "
      "<!-- tearless table s --cell Kind=b_c test.score {mean} -->0<!-- end -->.\n```\n<!-- tearless table none "
      "-->\n```");
  const test::Finished filled = report();
  EXPECT_EQ(filled.errors, "");
  EXPECT_EQ(filled.output, "pages/p.md: 6 places, written\n");
  const std::string number = cell.substr(0, cell.size() - 1);
  const std::string whole =
      "# Page\n<!-- tearless table s -->\n" + markdown + "<!-- end -->\nprose  \n<!-- tearless table s --layout " +
      "../grid.toml --only Updates -->\n" + laid + "<!-- end -->\n\n<!-- tearless check-table s -->\n" + claims +
      "<!-- end -->\n<!-- tearless figure s --out drawn/ --format svg,csv -->\n![Loss \\[by "
      "update\\]](drawn/losses.svg)\n" +
      "<!-- end -->\nIt is <!-- tearless cell model.kind=b_c test.score {mean} -->" + number + "<!-- end -->, " +
      "<!-- tearless table s --cell Kind=b_c test.score {mean} -->" + number +
      "<!-- end -->.\n```\n<!-- tearless table none -->\n```";
  EXPECT_EQ(page(), whole);
  for (const std::string ending : {".svg", ".csv"}) {
    ok({"figure", "s", "--out", "alone" + ending});
    EXPECT_EQ(test::read_text(folder_ / ("pages/drawn/losses" + ending)),
              test::read_text(folder_ / ("alone" + ending)));
  }
  EXPECT_EQ(report().output, "pages/p.md: 6 places, unchanged\n");
  EXPECT_EQ(nlohmann::json::parse(ok({"report", "--text", "pages/p.md", "--json"}).output),
            (nlohmann::json{{"file", "pages/p.md"}, {"places", 6}, {"changed", false}}));
  EXPECT_EQ(page(), whole);
}

// a is above b by 2 in both seeds, on x, and by nothing on y.
constexpr const char* kClaims = R"(title = "G"
seeds = 2
variables = ["level", "spread"]
[computed]
"fake.score.test.bleu" = "level + spread * train.seed"
[[axis.s]]
label = "a"
set = { level = 3.0, spread = 0.25 }
[[axis.s]]
label = "b"
set = { level = 1.0, spread = 0.125 }
[axis]
"model.kind" = ["x", "y"]
[names]
"model.kind" = "Kind"
x = "The X"
[table]
rows = "s"
columns = "model.kind"
scores = "test.bleu"
[[claim]]
name = "C1"
text = "a is better"
better = ["a", "b"]
where = { "model.kind" = "x" }
[[claim]]
name = "C1"
text = "a is worse"
worse = ["a", "b"]
[[claim]]
text = "a = b"
equivalent = ["a", "b"]
within = "5 bleu"
not_claimed = { "model.kind" = "y" }
)";

TEST_F(TextReport, SaysWhatOneClaimSaysAndHowManyHaveEachVerdict) {
  test::write_text(folder_ / "grid.toml", kClaims);
  ok({"run", "grid.toml", "--name", "s"});
  const std::string table = "<!-- tearless check-table s -->\n" +
                            tearless({"check-table", "s", "--format", "markdown"}).output + "<!-- end -->\n";
  const std::vector<std::pair<std::string, std::string>> sentences = {
      {"claim \"a is better\"", "held: +2.188 (+1.393 … +2.982) bleu, n = 2"},
      {"claim \"C1 a is better\" {verdict}", "held"},
      {"claim \"a is worse\" model.kind=x \"{verdict} by {numbers} at {seeds} seeds\"",
       "contradicted by −2.188 (−2.982 … −1.393) at 2 seeds"},
      {"claim C1 \"a is worse\" \"Kind=The X\" {verdict}", "contradicted"},
      {"claim \"a = b\" model.kind=y {verdict}", "not claimed"},
      {"claim \"a = b\" Kind=x {verdict}", "held"},
      {"claims", "2 held, 2 contradicted, 1 not claimed"},
      {"claims C1", "1 held, 2 contradicted"},
      {"claims Kind=x \"{held} of {all}, {cannot tell} open\"", "2 of 3, 0 open"},
      {"claims s C1 {contradicted}", "2"},
      {"cost", "8 runs (8 done) took 8 attempts and 0.00 core-hours"}};
  std::string given = table, wanted = table;
  for (const auto& [words, text] : sentences) {
    given += "It is <!-- tearless " + words + " -->old<!-- end -->.\n";
    wanted += "It is <!-- tearless " + words + " -->" + text + "<!-- end -->.\n";
  }
  write(given);
  EXPECT_EQ(report().errors, "");
  EXPECT_EQ(page(), wanted);
}

TEST_F(TextReport, RefusesWordsThatMeanNoClaimOrSeveral) {
  test::write_text(folder_ / "grid.toml", kClaims);
  ok({"run", "grid.toml", "--name", "s"});
  const auto refusal = [&](const std::string& words) {
    const std::string errors = refusal_of("<!-- tearless check-table s -->\n<!-- end -->\nIt is <!-- tearless " +
                                          words + " --><!-- end -->.\n");
    const std::string before = "tearless: pages/p.md:3: ";
    EXPECT_EQ(errors.substr(0, before.size()), before);
    return errors.substr(before.size());
  };
  EXPECT_EQ(refusal("claim \"a is better!\""),
            "claim: no claim of the page has the name, the text or the place \"a is better!\" (did you mean \"a is "
            "better\"?)\n");
  EXPECT_EQ(refusal("claim C1"), "claim: 3 claims are meant; add one of \"a is better\", \"a is worse\"\n");
  EXPECT_EQ(refusal("claim \"a is worse\""), "claim: 2 claims are meant; add one of model.kind=x, model.kind=y\n");
  EXPECT_EQ(refusal("claim \"a is better\" Kind=y"), "claim: no claim is a is better Kind=y, all words together\n");
  EXPECT_EQ(refusal("claim \"a is better\" {p}"),
            "claim: {p}: nothing is called {p}; it is one of {verdict}, {numbers}, {seeds}, {look}\n");
  EXPECT_EQ(refusal("claim \"a is better\" {look}"), "claim: the claim has no {look}\n") << "the grid has no looks";
  EXPECT_EQ(refusal("claim \"a is better\" {verdict} {seeds}"), "claim: it shows {verdict} and {seeds}; choose one\n");
  EXPECT_THAT(refusal("claims \"{held\""),
              StartsWith("claims: {held: nothing is called {held}; it is one of {all}, {held}"));
  EXPECT_EQ(refusal_of("It is <!-- tearless claims --><!-- end -->.\n"),
            "tearless: pages/p.md:1: claims: the page has no claims; add <!-- tearless check-table SWEEP --> to it\n");
}

TEST_F(TextReport, HasTablesByTheirCaptionsOrPartsOfThem) {
  ok({"run", "grid.toml", "--name", "s"});
  const std::string both = ok({"table", "s"}).output, scores = ok({"table", "s", "--only", "Scores"}).output,
                    updates = ok({"table", "s", "--only", "Updates"}).output;
  EXPECT_EQ(both, scores + "\n" + updates);
  EXPECT_EQ(ok({"table", "s", "--only", "Updates", "--only", "here"}).output, both) << "in the order of the grid file";
  EXPECT_EQ(tearless({"table", "s", "--only", "e"}).errors,
            "tearless: --only \"e\": several tables have this in their captions; they are: \"Scores --> here\", "
            "\"Updates\"\n");
  EXPECT_THAT(tearless({"table", "s", "--only", "Updatse"}).errors,
              HasSubstr("no tables have this in their captions (did you mean \"Updates\"?)"));
}

TEST_F(TextReport, WritesAnotherPageWithItsFiguresBesideThat) {
  ok({"run", "grid.toml", "--name", "s"});
  const std::string empty = "<!-- tearless figure s --out drawn/ -->\n<!-- end -->\n";
  write(empty);
  fs::create_directory(folder_ / "elsewhere");
  ok({"report", "--text", "pages/p.md", "-o", "elsewhere/q.md"});
  EXPECT_EQ(page(), empty);
  EXPECT_THAT(test::read_text(folder_ / "elsewhere/q.md"), HasSubstr("(drawn/losses.svg)"));
  EXPECT_TRUE(fs::exists(folder_ / "elsewhere/drawn/losses.svg"));
  EXPECT_FALSE(fs::exists(folder_ / "pages/drawn"));
}

TEST_F(TextReport, ReadsEachPlaceInTheWorkspaceThatIsSaidBeforeIt) {
  ok({"run", "grid.toml", "--name", "s"});
  ok({"copy", "pages/a.tar.gz"});
  fs::rename(folder_ / "results", folder_ / "there");
  const std::string markdown = ok({"--workspace", "there", "table", "s", "--format", "markdown"}).output;
  const std::string place = "<!-- tearless table s -->\n<!-- end -->\n";
  write(place);
  EXPECT_EQ(refusal_of(place),
            "tearless: pages/p.md:1: there is no workspace at or above pages; add --workspace FOLDER\n");
  write("<!-- tearless --workspace ../there -->\n" + place + "<!-- tearless --workspace a.tar.gz -->\n" + place);
  EXPECT_EQ(report().errors, "");
  const std::string filled = "<!-- tearless table s -->\n" + markdown + "<!-- end -->\n";
  EXPECT_EQ(page(),
            "<!-- tearless --workspace ../there -->\n" + filled + "<!-- tearless --workspace a.tar.gz -->\n" + filled);
  write("<!-- tearless table s --workspace ../there -->\n<!-- end -->\n" + place);
  EXPECT_THAT(report().errors, HasSubstr("pages/p.md:3: ")) << "of that place alone";
  write(place);
  ok({"--workspace", "there", "report", "--text", "pages/p.md"});
  EXPECT_EQ(page(), filled);
}

TEST_F(TextReport, NamesTheLineOfAPlaceThatItCannotFillAndWritesNothing) {
  ok({"run", "grid.toml", "--name", "s"});
  const std::string figure = "<!-- tearless figure s --out drawn/ -->\n<!-- end -->\n", end = "\n<!-- end -->\n";
  const auto after_figure = [&](const std::string& place) { return refusal_of(figure + place + end); };
  EXPECT_EQ(after_figure("<!-- tearless tables s -->"),
            "tearless: pages/p.md:3: no place is filled by \"tables\" (did you mean \"table\"?); the commands are: "
            "cell, claim, claims, "
            "table, check-table, cost, figure\n");
  EXPECT_THAT(after_figure("<!-- tearless table t -->"), StartsWith("tearless: pages/p.md:3: \"t\" "));
  EXPECT_EQ(after_figure("<!-- tearless table s --layuot x -->"),
            "tearless: pages/p.md:3: tearless table has no option \"--layuot\" (did you mean \"--layout\"?)\n");
  EXPECT_THAT(after_figure("<!-- tearless table s --layout grid.toml -->"), HasSubstr("p.md:3: cannot read grid.toml"));
  EXPECT_EQ(after_figure("<!-- tearless table s --out t.md -->"),
            "tearless: pages/p.md:3: what is printed stands in the page; omit --out\n");
  EXPECT_EQ(after_figure("<!-- tearless figure s --format csv --out drawn/ -->"),
            "tearless: pages/p.md:3: there is no picture for the page: add --format svg, or a list with svg in it, and "
            "--out\n");
  EXPECT_THAT(after_figure("<!-- tearless figure s --format svg,csv --out a.svg -->"),
              HasSubstr("p.md:3: --format svg,csv: several formats need --out FOLDER/"));
  EXPECT_THAT(after_figure("a <!-- tearless table s -->"),
              HasSubstr("p.md:3: what is more than a line stands on lines"));
  EXPECT_THAT(after_figure(" <!-- tearless table s --cell Kind=a test.score -->"),
              HasSubstr("p.md:3: the comment begins its line"));
  EXPECT_EQ(after_figure("a <!-- tearless cell Kind=a -->"),
            "tearless: pages/p.md:3: a cell is one of the tables of the page, and it has none; add <!-- tearless table "
            "SWEEP --> to the page\n");
  const std::string table = "<!-- tearless table s -->" + end;
  EXPECT_EQ(
      refusal_of(figure + table + "a <!-- tearless cell Kind=A s test.score -->" + end),
      "tearless: pages/p.md:5: cell: no cell that is meant has the Kind \"A\" (did you mean \"a\"?); they have: a, "
      "b_c\n");
  EXPECT_EQ(
      refusal_of(figure + table + "a <!-- tearless cell Kind=a grid-2 test.score -->" + end),
      "tearless: pages/p.md:5: cell: no table of the page is of \"grid-2\", and none has such a score; they have: "
      "test.score, updates\n");
  EXPECT_EQ(after_figure("<!-- tearless figure s -->"), "tearless: pages/p.md:3: figure: add --out FOLDER/\n");
  for (const std::string format : {"pdf", "svg,png"})
    EXPECT_EQ(after_figure("<!-- tearless figure s --format " + format + " --out drawn/ -->"),
              "tearless: pages/p.md:3: a page has figures as svg, csv or pgfplots; for PDF and PNG: tearless figure\n");
  for (const std::string elsewhere : {"/tmp/", "../drawn/", "drawn/../../", "../a.svg"})
    EXPECT_THAT(after_figure("<!-- tearless figure s --out " + elsewhere + " -->"),
                HasSubstr(": a page has its figures in its own folder, or below it; name a folder there"));
  for (const std::string format : {"text", "latex", "html", "csv", "json"})
    EXPECT_EQ(after_figure("<!-- tearless table s --format " + format + " -->"),
              "tearless: pages/p.md:3: a page has tables as Markdown; omit --format " + format + "\n");
  EXPECT_THAT(after_figure("<!-- tearless check-table s --format text -->"), HasSubstr("omit --format text"));
  EXPECT_THAT(refusal_of("a\n" + figure + "<!-- tearless figure s --out 'a<!-- end --'\">\"'/' -->" + end),
              StartsWith("tearless: pages/p.md:4: with the text of this place the page would have other places"));
  EXPECT_THAT(refusal_of(figure + "<!-- tearless table s -->"), HasSubstr("p.md:3: the place has no end"));
  EXPECT_EQ(after_figure("<!-- tearless figure grid.toml --out drawn/ -->").substr(0, 24), "tearless: pages/p.md:3: ");
}

TEST_F(TextReport, RefusesAPageWithoutPlacesAndWordsForOneThatIsThere) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{}, {"s"}, {"--part", "x"}}) {
    write("Prose.\n<!-- tearless --workspace there -->\n");
    std::vector<std::string> report = {"report", "--text", "pages/p.md"};
    report.insert(report.end(), words.begin(), words.end());
    EXPECT_EQ(tearless(report).errors,
              "tearless: pages/p.md has no places; put <!-- tearless table SWEEP --> and <!-- end --> where a table is "
              "to stand\n");
    EXPECT_EQ(page(), "Prose.\n<!-- tearless --workspace there -->\n");
  }
  write("<!-- tearless table s -->\n<!-- end -->\n");
  EXPECT_THAT(tearless({"report", "--part", "x", "--text", "pages/p.md"}).errors, HasSubstr("omit \"--part\""));
}

TEST_F(TextReport, ReplacesNoOtherFileThanAPageWithPlaces) {
  ok({"run", "grid.toml", "--name", "s"});
  write("<!-- tearless figure s --out drawn/ -->\n<!-- end -->\n");
  const auto report_to = [&](const std::string& page, const std::string& other) {
    return tearless({"report", "--text", page, "-o", other}).errors;
  };
  const std::string grid = test::read_text(folder_ / "grid.toml");
  EXPECT_EQ(report_to("pages/p.md", "grid.toml"),
            "tearless: -o grid.toml: it is there and has no places; delete it, or name another file\n");
  EXPECT_EQ(test::read_text(folder_ / "grid.toml"), grid);
  EXPECT_FALSE(fs::exists(folder_ / "drawn"));
  EXPECT_EQ(report_to("pages/p.md", "q.md"), "");
  EXPECT_EQ(report_to("pages/p.md", "q.md"), "") << "a page that it wrote";
  EXPECT_EQ(tearless({"report", "s", "--text", "pages/new.md", "-o", "r.md"}).errors,
            "tearless: -o r.md: there is no page pages/new.md to fill; a first one is written by --text alone\n");
  EXPECT_FALSE(fs::exists(folder_ / "r.md") || fs::exists(folder_ / "pages/new.md"));
}

TEST_F(TextReport, WritesNothingWhereOneOfItsFilesCannotBe) {
  ok({"run", "grid.toml", "--name", "s"});
  const std::string places =
      "<!-- tearless figure s --out drawn/ -->\n<!-- end -->\n<!-- tearless figure s --out other/ -->\n<!-- end -->\n";
  fs::create_directories(folder_ / "pages/other/losses.svg");
  EXPECT_THAT(refusal_of("<!-- tearless figure s --out drawn/ -->\n<!-- end -->\n<!-- tearless figure s --out "
                         "none/a.svg -->\n<!-- end -->\n"),
              HasSubstr("--out none/a.svg: there is no folder pages/none"));
  EXPECT_THAT(refusal_of(places), HasSubstr("other/losses.svg: it is there and is no file"));
}

TEST_F(TextReport, FindsTheWorkspaceFromTheFolderOfThePageUpwards) {
  ok({"run", "grid.toml", "--name", "s"});
  const std::string markdown = ok({"table", "s", "--format", "markdown"}).output;
  fs::create_directories(folder_ / "elsewhere/empty");
  const auto from = [&](const fs::path& folder, const std::vector<std::string>& words,
                        const std::string& workspace = "") {
    test::Command report = command(words);
    report.folder = folder_.path() / folder;
    report.environment["TEARLESS_WORKSPACE"] = workspace;
    return test::run(report).errors;
  };
  const std::vector<std::string> page_elsewhere = {"report", "--text", "../pages/p.md"};
  const std::string places = "<!-- tearless table s -->\n<!-- end -->\n";
  write(places);
  fs::create_directory(folder_ / "elsewhere/results");
  fs::create_directory(folder_ / "elsewhere/results/sweeps");
  EXPECT_EQ(from("elsewhere", page_elsewhere), "") << "not the workspace of the current folder";
  EXPECT_EQ(page(), "<!-- tearless table s -->\n" + markdown + "<!-- end -->\n");
  const std::string filled = page();
  EXPECT_THAT(from("elsewhere", page_elsewhere, "results"), HasSubstr("there is no database in ../elsewhere/results"))
      << "but one that is named";
  EXPECT_EQ(page(), filled);
  EXPECT_EQ(from("", {"report", "--text", "pages/p.md"}, "results"), "");

  // A first page names the workspace if it would not be found from there.
  fs::rename(folder_ / "pages", folder_ / "elsewhere/pages");
  EXPECT_EQ(from("", {"report", "s", "--text", "elsewhere/pages/first.md"}), "");
  EXPECT_THAT(test::read_text(folder_ / "elsewhere/pages/first.md"),
              HasSubstr("<!-- tearless --workspace ../../results -->\n"));
  EXPECT_EQ(from("elsewhere/empty", {"report", "--text", "../pages/first.md"}), "");
}

TEST_F(TextReport, DoesNotReplaceATableByOneWithoutAnyResult) {
  ok({"run", "grid.toml", "--name", "s"});
  const std::string place = "<!-- tearless table ../grid.toml -->\nold\n<!-- end -->\n";
  const auto grid_with = [&](const std::string& from, const std::string& to) {
    std::string grid = kGrid;
    test::write_text(folder_ / "grid.toml", grid.replace(grid.find(from), from.size(), to));
  };
  grid_with("updates\" = 4", "updates\" = 5");
  EXPECT_THAT(refusal_of(place), HasSubstr("tearless: pages/p.md:1: no run of the table \"Scores --> here\" has a "
                                           "result here, in "));
  grid_with("\"a\", \"b_c\"]", "\"a\", \"b_c\", \"new\"]");
  report();
  EXPECT_THAT(page(), HasSubstr("(0/2)")) << "one row has results";
}

TEST_F(TextReport, FindsAProgramThatIsNamedFromTheCurrentFolder) {
  ok({"run", "grid.toml", "--name", "s"});
  write("<!-- tearless table ../grid.toml --only Updates -->\n<!-- end -->\n");
  fs::create_symlink(test::program("fake-engine"), folder_ / "engine");
  test::Command named = command({"report", "--text", "pages/p.md"});
  named.environment["TEARLESS_ENGINE"] = "./engine";
  EXPECT_EQ(test::run(named).errors, "");
  EXPECT_EQ(page(), "<!-- tearless table ../grid.toml --only Updates -->\n" +
                        ok({"table", "grid.toml", "--only", "Updates", "--format", "markdown"}).output +
                        "<!-- end -->\n");
}

TEST_F(TextReport, SaysWhichCellsOfSentencesHaveNoValue) {
  write_grid("\"succeed\", \"diverge\"", 0);
  tearless({"run", "grid.toml", "--name", "s"});
  write(
      "<!-- tearless table s -->\n<!-- end -->\nIt is <!-- tearless cell model.kind=a fake.behaviour=succeed -->"
      "<!-- end -->,\nor <!-- tearless cell model.kind=a fake.behaviour=diverge --><!-- end -->.\nOr <!-- tearless "
      "table s --cell model.kind=b fake.behaviour=diverge --><!-- end -->.\n");
  EXPECT_EQ(report().errors,
            "pages/p.md:5: the cell has no value, and is \"div. (2/2)\" in the page\n"
            "pages/p.md:4: the cell has no value, and is \"div. (2/2)\" in the page\n");
}

TEST_F(TextReport, HasAFolderOfFiguresForEachOfSeveralGridsInAFirstPage) {
  std::string unnamed = kGrid;
  unnamed.erase(unnamed.find("name = \"losses\"\n"), 16);
  test::write_text(folder_ / "grid.toml", unnamed);
  test::write_text(folder_ / "other.toml", unnamed.replace(unnamed.find("A grid"), 6, "Others"));
  test::write_text(folder_ / "paper.toml", "grids = [\"grid.toml\", \"other.toml\"]\n");
  ok({"run", "grid.toml"});
  EXPECT_EQ(ok({"report", "paper.toml", "--text", "pages/p.md"}).output, "pages/p.md: 8 places, written\n");
  for (const std::string grid : {"grid", "other"}) {
    EXPECT_THAT(page(),
                HasSubstr("<!-- tearless figure ../" + grid + ".toml --only figure-1 --out p/" + grid + "/ -->"));
    EXPECT_TRUE(fs::exists(folder_ / "pages/p" / grid / "figure-1.svg"));
  }
  EXPECT_EQ(report().output, "pages/p.md: 8 places, unchanged\n");
}

TEST_F(TextReport, WritesAFirstPageThatItFillsAgain) {
  ok({"run", "grid.toml", "--name", "s"});
  EXPECT_EQ(ok({"report", "s", "--layout", "grid.toml", "--text", "pages/p.md"}).output,
            "pages/p.md: 4 places, written\n");
  const std::string first = page();
  EXPECT_THAT(first, StartsWith("# A grid\n\n`tearless report --text p.md` makes "));
  const std::string words = "s --layout ../grid.toml", table = "table " + words + " --final --only ";
  for (const std::string& place : std::vector<std::string>{
           table + R"('Scores --'">"' here' -->)" + "\n**Scores --> here**\n", table + "Updates -->\n**Updates**\n",
           "figure " + words + " --only losses --out p/ -->\n![Loss \\[by update\\]](p/losses.svg)\n",
           "## Claims\n\n<!-- tearless check-table " + words + " -->\n" +
               ok({"check-table", "s", "--format", "markdown"}).output})
    EXPECT_THAT(first, HasSubstr(place));
  EXPECT_TRUE(fs::exists(folder_ / "pages/p/losses.svg"));
  write(first + "Prose.\n");
  EXPECT_EQ(report().output, "pages/p.md: 4 places, unchanged\n");
  EXPECT_THAT(tearless({"report", "s", "--text", "pages/p.md"}).errors,
              HasSubstr("pages/p.md is there, and its places say what it shows; omit \"s\""));
  EXPECT_THAT(tearless({"report", "--text", "pages/q.md"}).errors, HasSubstr("there is no page pages/q.md"));
  EXPECT_EQ(tearless({"report", "s", "--text", "none/q.md"}).errors,
            "tearless: there is no folder none for the page\n");

  ok({"copy", "a.tar.gz"});
  ok({"--workspace", "a.tar.gz", "report", "last", "--text", "pages/q.md"});
  EXPECT_THAT(test::read_text(folder_ / "pages/q.md"),
              AllOf(HasSubstr("<!-- tearless --workspace ../a.tar.gz -->\n"), HasSubstr("<!-- tearless table grid-")));
  ok({"report", "grid.toml", "--text", "pages/r.md"});
  EXPECT_THAT(test::read_text(folder_ / "pages/r.md"),
              HasSubstr("<!-- tearless table ../grid.toml --final --only Updates -->\n"));
}

}  // namespace
}  // namespace tearless::harness::text_report_test
