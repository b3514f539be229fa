// Every mistake a grid file can have is named in one sentence with file and line; what is right is read in order.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "harness/grid/expand.h"
#include "harness/grid/grid.h"
#include "harness/grid/paper.h"
#include "tests/support/golden.h"
#include "tests/support/paths.h"

namespace tearless::harness::load_test {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using test::write_text;

Grid load_text(const TempFolder& folder, std::string_view text) {
  write_text(folder / "grid.toml", text);
  return load_grid(folder / "grid.toml");
}

/// The sentence that a grid file gets, with the folder's name taken out.
std::string error_of_file(const TempFolder& folder, const fs::path& file, std::string_view text) {
  write_text(file, text);
  try {
    views_of(load_grid(file));
  } catch (const UserError& error) {
    std::string sentence = error.what();
    const std::string prefix = folder.path().string() + "/";
    for (size_t at; (at = sentence.find(prefix)) != std::string::npos;) sentence.erase(at, prefix.size());
    return sentence;
  }
  return "(no error)";
}

std::string error_of(const TempFolder& folder, std::string_view text) {
  return error_of_file(folder, folder / "grid.toml", text);
}

struct Mistake {
  const char* situation;
  const char* text;
};

constexpr Mistake kMistakes[] = {
    {"empty file", ""},
    {"empty axis table", "[axis]\n"},
    {"syntax error", "title = \"x\"\nseeds = = 3\n"},
    {"unknown key", "titel = \"x\"\n[axis]\na = [1]\n"},
    {"zip outside of an axis", "[axis]\na = [1]\n[zip]\nb = [1]\n"},
    {"settings in place of a grid", "[data]\ntrain = \"x\"\n[model]\nd_model = 64\n"},
    {"mistyped table in a file without an axis", "[axs]\na = [1]\n"},
    {"unknown key in table", "[axis]\na = [1]\n[table]\ncolums = [\"a\"]\n"},
    {"unknown key in exclude", "[axis]\na = [1]\n[[exclude]]\nif = {}\n"},
    {"unknown key in a bundle", "[[axis.s]]\nlabel = \"x\"\nsets = { a = 1 }\n"},
    {"wrong type of title", "title = 3\n[axis]\na = [1]\n"},
    {"axis that is no list", "[axis]\n\"model.init\" = \"post\"\n"},
    {"axis without values", "[axis]\n\"model.init\" = []\n"},
    {"axis with a date as value", "[axis]\na = [1979-05-27]\n"},
    {"value twice", "[axis]\na = [1,\n 2,\n 1]\n"},
    {"axis twice, quoted and not", "[axis]\n\"a.b\" = [1, 2]\na.b = [3]\n"},
    {"axis twice, same spelling", "[axis]\na = [1]\na = [2]\n"},
    {"values and bundles mixed", "[axis]\na = [{ label = \"x\", set = { b = 1 } }, 3]\n"},
    {"bundle without label", "[[axis.s]]\nset = { a = 1 }\n"},
    {"setting that is an empty table", "[set]\na = {}\n[axis]\nb = [1]\n"},
    {"setting that is a table elsewhere", "[set]\n\"m.norm\" = 1\n[axis]\n\"m.norm.kind\" = [\"a\"]\n"},
    {"setting and table in two points",
     "[[axis.s]]\nlabel = \"x\"\nset = { m = 1 }\n[[axis.s]]\nlabel = \"y\"\nset = { m.n = 2 }\n"},
    {"number that JSON lacks on an axis", "[axis]\na = [1.0, inf]\n"},
    {"number that JSON lacks in set", "[set]\na.b = -nan\n[axis]\nb = [1]\n"},
    {"number that JSON lacks in a list of a bundle", "[[axis.s]]\nlabel = \"x\"\nset = { a = [1.0, -inf] }\n"},
    {"value of Python", "[axis]\na = [True, None]\n"},
    {"file of YAML", "seeds: 3\naxis:\n  lr: [0.1, 0.2]\n"},
    {"label twice", "[[axis.s]]\nlabel = \"x\"\nset = { a = 1 }\n[[axis.s]]\nlabel = \"x\"\nset = { a = 2 }\n"},
    {"one setting on two axes", "[axis]\n\"a.b\" = [1, 2]\n[[axis.s]]\nlabel = \"x\"\nset = { a.b = 3 }\n"},
    {"seed as an axis", "[axis]\n\"train.seed\" = [1, 2]\n"},
    {"seed in a bundle", "[[axis.s]]\nlabel = \"x\"\nset = { \"train.seed\" = 3 }\n"},
    {"no seeds", "seeds = 0\n[axis]\na = [1]\n"},
    {"seed twice", "seeds = [1, 2, 1]\n[axis]\na = [1]\n"},
    {"seeds of text", "seeds = \"three\"\n[axis]\na = [1]\n"},
    {"seed that is no whole number", "seeds = [1, 2.5]\n[axis]\na = [1]\n"},
    {"base file missing", "title = \"x\"\nbase = \"base/none.toml\"\n[axis]\na = [1]\n"},
    {"base that includes itself", "base = \"circle_a.toml\"\n[axis]\na = [1]\n"},
    {"mistake in a base", "base = \"broken.toml\"\n[axis]\na = [1]\n"},
    {"setting twice in set", "[set]\n\"a.b\" = 1\na.b = 2\n[axis]\nc = [1]\n"},
    {"table in set is an array of tables", "[[set]]\na = 1\n[axis]\nc = [1]\n"},
    {"exclusion of an unknown key",
     "[axis]\n\"model.init\" = [1]\n[[exclude]]\nwhen = { \"model.int\" = 1 }\nwhy = \"w\"\n"},
    {"exclusion of an unknown value",
     "[axis]\n\"model.init\" = [\"small\", \"large\"]\n[[exclude]]\nwhy = \"w\"\nwhen = { \"model.init\" = \"smal\" "
     "}\n"},
    {"exclusion of what never varies", "[set]\nb = 1\n[axis]\na = [1]\n[[exclude]]\nwhen = { b = 1 }\nwhy = \"w\"\n"},
    {"exclusion without reason", "[axis]\na = [1, 2]\n[[exclude]]\nwhen = { a = 1 }\n"},
    {"exclusion without condition", "[axis]\na = [1, 2]\n[[exclude]]\nwhy = \"w\"\n"},
    {"exclusion that contradicts itself",
     "[[axis.s]]\nlabel = \"x\"\nset = { a = 1 }\n[[axis.s]]\nlabel = \"y\"\nset = { a = 2 }\n"
     "[[exclude]]\nwhen = { s = \"x\", a = 2 }\nwhy = \"w\"\n"},
    {"exclusion of everything", "[axis]\na = [1]\n[[exclude]]\nwhen = { a = 1 }\nwhy = \"w\"\n"},
    {"too many combinations",
     "seeds = 10000\n[axis]\na = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n"
     "b = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\nc = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n"},
    {"rows of an unknown axis", "[axis]\n\"model.init\" = [1]\n[table]\nrows = [\"init\"]\n"},
    {"axis in rows and columns", "[axis]\na = [1]\nb = [1]\n[table]\nrows = [\"a\", \"b\"]\ncolumns = [\"a\"]\n"},
    {"axis in neither", "[axis]\na = [1]\nb = [1]\nc = [1]\n[table]\nrows = [\"a\"]\ncolumns = [\"b\"]\n"},
    {"unknown way to show a cell", "[axis]\na = [1]\n[table]\ncell = { score = \"s\", show = \"mean ± st\" }\n"},
    {"score and scores", "[axis]\na = [1]\n[table]\nscores = [\"s\"]\ncell = { score = \"s\" }\n"},
    {"decimals of text", "[axis]\na = [1]\n[table]\ndecimals = \"two\"\n"},
    {"factor of text", "[axis]\na = [1]\n[table]\nfactor = \"percent\"\n"},
    {"factor of zero", "[axis]\na = [1]\n[table]\nfactor = 0\n"},
    {"negative factor of a score", "[axis]\na = [1]\n[table.factor]\n\"test.acc\" = -100\n"},
    {"infinite factor", "[axis]\na = [1]\n[table]\nfactor = inf\n"},
    {"factor of a score that is not shown",
     "[axis]\na = [1]\n[table]\nscores = [\"test.acc\", \"test.loss\"]\nfactor = { \"test.ac\" = 100 }\n"},
    {"selection without a score", "[axis]\na = [1]\nb = [1]\n[table]\nselect = { over = [\"b\"] }\n"},
    {"two tables without a caption", "[axis]\na = [1]\n[[table]]\nscores = \"s\"\n[[table]]\nscores = \"t\"\n"},
    {"two tables of one caption", "[axis]\na = [1]\n[[table]]\ncaption = \"c\"\n[[table]]\ncaption = \"c\"\n"},
    {"mistake in the second table", "[axis]\na = [1]\n[[table]]\n[[table]]\ncaption = \"c\"\nrows = \"b\"\n"},
    {"tables that are numbers", "table = [1]\n[axis]\na = [1]\n"},
    {"published without source", "[axis]\na = [1]\n[table]\npublished = { values = [[1]] }\n"},
    {"unknown key in published",
     "[axis]\na = [1]\n[table]\npublished = { source = \"s\", values = [[1]], year = 2019 }\n"},
    {"published with too few rows", "[axis]\na = [1, 2]\n[table]\npublished = { source = \"s\", values = [[1]] }\n"},
    {"published with too few columns",
     "[axis]\na = [1]\nb = [1, 2]\n[table]\npublished = { source = \"s\", values = [[1]] }\n"},
    {"show with an unknown statistic", "[axis]\na = [1]\n[table]\nshow = \"{meen} ± {std}\"\n"},
    {"show with another format", "[axis]\na = [1]\n[table]\nshow = \"{mean:2d}\"\n"},
    {"show with an open brace", "[axis]\na = [1]\n[table]\nshow = \"{mean\"\n"},
    {"show without a statistic", "[axis]\na = [1]\n[table]\nshow = \"mean\u2009± std\"\n"},
    {"best of another word", "[axis]\na = [1]\n[table]\nbest = \"smallest\"\n"},
    {"where of an unknown axis", "[axis]\na = [1]\n[table]\nwhere = { b = 1 }\n"},
    {"where of an unknown label", "[axis]\na = [1, 2]\n[table]\nwhere = { a = [1, 3] }\n"},
    {"where that leaves nothing", "[axis]\na = [1, 2]\n[table]\nwhere = { a = [] }\n"},
    {"average and select",
     "[axis]\na = [1]\nb = [1]\nc = [1]\n[table]\naverage = \"b\"\nselect = { over = [\"c\"], by = \"s\" }\n"},
    {"scores of labels without one", "[axis]\na = [1]\nb = [1, 2]\n[table]\nscores.b = { 1 = \"s\" }\n"},
    {"scores of labels of a row", "[axis]\na = [1]\nb = [1]\n[table]\nscores.a = { 1 = \"s\" }\n"},
    {"scores of two axes", "[axis]\na = [1]\nb = [1]\n[table.scores]\na = { 1 = \"s\" }\nb = { 1 = \"s\" }\n"},
    {"baseline that is no row", "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"layer_norm\"\n"},
    {"added row without a label", "[axis]\na = [1, 2]\n[table]\nrow = { mean = true }\n"},
    {"added row of nothing", "[axis]\na = [1, 2]\n[table]\nrow = { label = \"r\" }\n"},
    {"added row of two kinds",
     "[axis]\na = [1, 2]\n[table]\nrow = { label = \"r\", mean = true, difference = [2, 1] }\n"},
    {"difference of three rows", "[axis]\na = [1, 2, 3]\n[table]\nrow = { label = \"r\", difference = [2, 1, 3] }\n"},
    {"difference from an unknown row", "[axis]\na = [1, 2]\n[table]\nrow = { label = \"r\", difference = [2, 3] }\n"},
    {"added row before an unknown one",
     "[axis]\na = [1, 2]\n[table]\nrow = { label = \"r\", mean = true, before = 3 }\n"},
    {"published row with too few values",
     "[axis]\na = [1, 2]\nb = [1, 2]\n[table]\nrow = { label = \"r\", published = { source = \"s\", values = [1] } "
     "}\n"},
    {"added row with a label too many", "[axis]\na = [1, 2]\n[table]\nrow = { label = [\"r\", \"s\"], mean = true }\n"},
    {"added column of nothing", "[axis]\na = [1, 2]\n[table]\ncolumn = { label = \"c\", baseline = 1 }\n"},
    {"header of unknown labels",
     "[axis]\na = [1]\nb = [1, 2]\n[[table.header]]\nname = \"Layers\"\ntexts = { 1 = 6, 3 = 6 }\n"},
    {"added row with a label of the grid", "[axis]\na = [1, 2]\n[table]\nrow = { label = \"2\", mean = true }\n"},
    {"two added rows of one label",
     "[axis]\na = [1, 2]\n[table]\nrow = [{ label = \"m\", mean = true }, { label = \"m\", mean = [1] }]\n"},
    {"header without texts", "[axis]\na = [1]\nb = [1, 2]\n[[table.header]]\nname = \"Layers\"\n"},
    {"statistic of a test without one",
     "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\nshow = \"{mean} {p}\"\n"},
    {"statistic of sentences with a test over seeds",
     "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\nshow = \"{se}\"\n[table.test]\nmethod = \"t\"\n"},
    {"test of nothing", "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\n[table.test]\nbold = false\n"},
    {"test of an unknown method",
     "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\n[table.test]\nmethod = \"permutation\"\n"},
    {"test with an unknown correction",
     "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\n[table.test]\ncorrection = \"bonferroni\"\n"},
    {"test with an unknown key",
     "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\n[table.test]\nlevels = 0.05\n"},
    {"levels that rise",
     "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\n[table.test]\nlevel = [0.01, 0.05]\n"},
    {"level above one", "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\n[table.test]\nlevel = 5\n"},
    {"three levels",
     "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\n[table.test]\nlevel = [0.05, 0.01, 0.001]\n"},
    {"too few samples for the level",
     "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\n[table.test]\nsamples = 50\nlevel = [0.05, "
     "0.01]\n"},
    {"samples that are no whole number",
     "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\n[table.test]\nsamples = 1000.5\n"},
    {"samples of a test without",
     "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\n[table.test]\nmethod = \"t\"\nsamples = 1000\n"},
    {"paired of a test that always is",
     "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\n[table.test]\nmethod = \"sign-flip\"\npaired = "
     "false\n"},
    {"sacreBLEU's bootstrap as another test",
     "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\n[table.test]\ncompat = \"sacrebleu\"\n"},
    {"bold that is a text",
     "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = \"ln\"\n[table.test]\nbold = \"yes\"\n"},
    {"equivalence by a test over sentences",
     "seeds = 2\n[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nscores = [\"test.bleu\", \"test.ter\"]\nbaseline = "
     "\"ln\"\n[table.test]\nmethod = \"bootstrap\"\nwithin = \"0.3 BLEU\"\n"},
    {"equivalence by a test of signs",
     "seeds = 2\n[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nscores = [\"test.bleu\", \"test.ter\"]\nbaseline = "
     "\"ln\"\n[table.test]\nmethod = \"sign-flip\"\nwithin = \"0.3 BLEU\"\n"},
    {"equivalence without a baseline",
     "seeds = 2\n[axis]\na = [1, 2]\n[table]\nscores = \"test.bleu\"\n[table.test]\nwithin = \"0.3 BLEU\"\n"},
    {"equivalence within a number without a unit",
     "seeds = 2\n[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nscores = [\"test.bleu\", \"test.ter\"]\nbaseline = "
     "\"ln\"\n[table.test]\nwithin = 0.3\n"},
    {"equivalence in the unit of one of two scores",
     "seeds = 2\n[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nscores = [\"test.bleu\", \"test.ter\"]\nbaseline = "
     "\"ln\"\n[table.test]\nwithin = \"0.3 BLEU\"\n"},
    {"equivalence of a score that the table does not show",
     "seeds = 2\n[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nscores = [\"test.bleu\", \"test.ter\"]\nbaseline = "
     "\"ln\"\n[table.test]\nwithin = { \"test.chrf\" = \"0.3 chrF\" }\n"},
    {"equivalence of scores that the runs decide",
     "seeds = 2\n[axis]\na = [1, 2]\n[table]\nbaseline = \"1\"\n[table.test]\nwithin = \"0.3 BLEU\"\n"},
    {"a note of no such name", "[axis]\na = [1]\n[table]\nnotes = [\"cells\",\n  \"powers\"]\n"},
    {"a note that is a number", "[axis]\na = [1]\n[table]\nnotes = [3]\n"},
    {"notes that are no list", "[axis]\na = [1]\n[table]\nnotes = \"cells\"\n"},
    {"a note of one's own without a text", "[axis]\na = [1]\n[table]\nnotes = [{ latex = \"$x$\" }]\n"},
    {"a caption whose latex breaks the table",
     "[axis]\na = [1]\n[table]\ncaption = { text = \"t\", latex = \"100 %\" }\n"},
    {"a source that is a number", "[axis]\na = [1]\n[table]\npublished = { source = 3, values = [[1]] }\n"},
    {"baselines of which one is no row",
     "[axis]\nnorm = [\"ln\", \"ada\", \"rms\"]\n[table]\nbaseline = [\"ln\", \"rsm\"]\n"},
    {"baseline twice", "[axis]\nnorm = [\"ln\", \"ada\"]\n[table]\nbaseline = [\"ln\", \"ln\"]\n"},
    {"baselines of two axes that are labels",
     "[axis]\na = [1, 2]\nb = [1, 2]\n[table]\nrows = [\"a\", \"b\"]\nbaseline = [[1, 1], 2]\n"},
    {"show of a score that is no text", "[axis]\na = [1]\n[table]\nshow = { \"test.bleu\" = 2 }\n"},
    {"ratio without a baseline", "[axis]\na = [1]\n[table]\nshow = { \"test.bleu\" = \"{mean}/{ratio}\" }\n"},
    {"delta without a baseline", "[axis]\na = [1]\n[table]\nshow = \"{mean} ({delta})\"\n"},
    {"count with digits", "[axis]\na = [1]\n[table]\nshow = \"{mean} ({n:.2f})\"\n"},
    {"show twice", "[axis]\na = [1]\n[table]\nshow = \"{mean}\"\ncell.show = \"mean\"\n"},
    {"fail_below with scores of labels",
     "[axis]\na = [1]\nb = [1]\n[table]\nscores.b = { 1 = \"s\" }\nfail_below = 1\n"},
    {"added column without an axis of columns",
     "[axis]\na = [1, 2]\n[table]\ncolumn = { label = \"c\", mean = true }\n"},
    {"published score that is not shown",
     "[axis]\na = [1]\n[table]\nscores = \"test.bleu\"\n"
     "published = { source = \"s\", score = \"test.bleu_13a\", values = [[1]] }\n"},
    {"label that LaTeX would read", "[axis]\na = [1]\n[table]\nlabel = \"tab:a}\"\n"},
    {"width of another word", "[axis]\na = [1]\n[table]\nwidth = \"wide\"\n"},
    {"published value with an unknown key",
     "[axis]\na = [1]\n[table]\npublished = { source = \"s\", values = [[{ value = 1, from = \"x\" }]] }\n"},
    {"name that is no text", "[axis]\na = [1]\n[names]\na = 3\n"},
    {"name with an unknown key", "[axis]\na = [1]\n[names]\na = { text = \"A\", tex = \"$A$\" }\n"},
    {"latex with an open dollar", "[axis]\na = [1]\n[names]\na = { text = \"A\", latex = \"$A\" }\n"},
    {"latex with an open brace", "[axis]\na = [1]\n[names]\na = { text = \"A\", latex = \"{A\" }\n"},
    {"latex with a brace too many", "[axis]\na = [1]\n[names]\na = { text = \"A\", latex = \"A}{\" }\n"},
    {"latex with an ampersand", "[axis]\na = [1]\n[names]\na = { text = \"A\", latex = \"A & B\" }\n"},
    {"latex with a control character", "[axis]\na = [1]\n[names]\na = { text = \"A\", latex = \"A\\u001b[31m\" }\n"},
    {"latex with a bare subscript", "[axis]\na = [1]\n[names]\na = { text = \"A\", latex = \"a_1\" }\n"},
    {"latex with displayed math", "[axis]\na = [1]\n[names]\na = { text = \"A\", latex = \"$$a$$\" }\n"},
    {"latex with a per cent sign", "[axis]\na = [1]\n[names]\na = { text = \"A\", latex = \"5 %\" }\n"},
    {"latex that ends a line", "[axis]\na = [1]\n[names]\na = { text = \"A\", latex = \"A \\\\\\\\ B\" }\n"},
    {"latex that ends in a backslash", "[axis]\na = [1]\n[names]\na = { text = \"A\", latex = \"A\\\\\" }\n"},
    {"published that is no number", "[axis]\na = [1]\n[table]\npublished = { source = \"s\", values = [[true]] }\n"},
    {"label without a value", "[axis]\na = [{ label = \"x\" }, 2]\n"},
    {"value without a label", "[axis]\na = [{ value = 1 }, 2]\n"},
    {"table as a value", "[axis]\na = [{ value = { b = 1 }, label = \"x\" }]\n"},
    {"unknown key of a value", "[axis]\na = [{ value = 1, label = \"x\", name = \"y\" }]\n"},
    {"one value in two spellings", "[axis]\na = [1,\n 1.0]\n"},
    {"one value under two labels", "[axis]\na = [1e-3,\n { value = 0.001, label = \"small\" }]\n"},
    {"range in another tool's words", "[axis]\nlr = { distribution = \"log_uniform\", min = 1e-5, max = 1e-1 }\n"},
    {"range without its end", "[axis]\na = { from = 1, count = 3 }\n"},
    {"range with count and step", "[axis]\na = { from = 1, to = 5, count = 3, step = 2 }\n"},
    {"logarithmic range with a step", "[axis]\na = { from = 1, to = 5, step = 2, scale = \"log\" }\n"},
    {"logarithmic range from zero", "[axis]\na = { from = 0, to = 5, count = 3, scale = \"log\" }\n"},
    {"range of text", "[axis]\na = { from = \"1\", to = 5, count = 3 }\n"},
    {"range to infinity", "[axis]\na = { from = 1, to = inf, count = 3 }\n"},
    {"range that goes the other way", "[axis]\na = { from = 1, to = 5, step = -1 }\n"},
    {"range that does not move", "[axis]\na = { from = 1, to = 5, step = 0 }\n"},
    {"range of one value", "[axis]\na = { from = 1, to = 5, count = 1 }\n"},
    {"range of a fractional count", "[axis]\na = { from = 1, to = 5, count = 2.5 }\n"},
    {"range with a value twice", "[axis]\na = { from = 1, to = 1.000001, count = 5 }\n"},
    {"range of too many values", "[axis]\na = { from = 0, to = 1, step = 1e-9 }\n"},
    {"unknown scale of a range", "[axis]\na = { from = 1, to = 5, count = 3, scale = \"ln\" }\n"},
    {"whole range of a fraction", "[axis]\na = { from = 1, to = 5.5, count = 3, whole = true }\n"},
    {"whole range with a value twice", "[axis]\na = { from = 1, to = 4, count = 8, scale = \"log\", whole = true }\n"},
    {"constant as an axis", "[axis]\na = { value = 3 }\n"},
    {"zip of unequal lengths", "[axis.s]\nzip = { a = [1, 2], b = [1, 2, 3] }\n"},
    {"inline table in two lines", "[axis.s]\nzip = { a = [1, 2],\n b = [1, 2] }\n"},
    {"zip of nothing", "[axis.s]\nzip = {}\n"},
    {"zip of a number", "[axis.s]\nzip = { a = 1 }\n"},
    {"zip and values", "[axis.s]\nzip = { a = [1] }\nvalues = [2]\n"},
    {"condition without values", "[axis]\na = [1]\n[axis.b]\nwhen = { a = 1 }\n"},
    {"unknown key of an axis", "[axis.b]\nvalues = [1]\nif = { a = 1 }\n"},
    {"condition on an axis that comes later", "[axis.b]\nvalues = [1]\nwhen = { a = 1 }\n[axis]\na = [1]\n"},
    {"condition on an axis that is not there", "[axis]\nopt = [1]\n[axis.b]\nvalues = [1]\nwhen = { op = 1 }\n"},
    {"condition on a value that is not there",
     "[axis]\nopt = [\"sgd\"]\n[axis.b]\nvalues = [1]\nwhen = { opt = \"sdg\" }\n"},
    {"condition of an unknown sign", "[axis]\na = [1, 2]\n[[exclude]]\nwhy = \"w\"\nwhen = { a = \"=> 1\" }\n"},
    {"condition that is not equal", "[axis]\na = [1, 2]\n[axis.b]\nvalues = [1]\nwhen = { a = \"!= 1\" }\n"},
    {"comparison with nothing", "[axis]\na = [1, 2]\n[[exclude]]\nwhy = \"w\"\nwhen = { a = \">\" }\n"},
    {"comparison with an unknown setting",
     "[axis]\nheads = [1, 2]\n[[exclude]]\nwhy = \"w\"\nwhen = { heads = \"> head\" }\n"},
    {"comparison of texts", "[axis]\na = [\"x\", \"y\"]\n[[exclude]]\nwhy = \"w\"\nwhen = { a = \"> 1\" }\n"},
    {"comparison with the seed", "[axis]\na = [1, 2]\n[[exclude]]\nwhy = \"w\"\nwhen = { a = \"< train.seed\" }\n"},
    {"condition of an axis that compares two settings",
     "[axis]\na = [1, 2]\nb = [1, 2]\n[axis.c]\nvalues = [1]\nwhen = { a = \"> b\" }\n"},
    {"condition on a mistyped key that a point leaves out",
     "base = \"right.toml\"\n[[axis.s]]\nlabel = \"x\"\nunset = \"m.d\"\n[[axis.s]]\nlabel = \"y\"\n[[exclude]]\nwhy = "
     "\"w\"\nwhen = { m.dd = 2 }\n"},
    {"condition with no alternatives", "[axis]\na = [1]\n[axis.b]\nvalues = [1]\nwhen = { a = [] }\n"},
    {"conditions that never hold together",
     "[axis]\na = [1, 2]\n[axis.b]\nvalues = [1]\nwhen = { a = 1 }\n[[axis.c]]\nlabel = \"x\"\nwhen = { a = 2, b = 1 "
     "}\n"},
    {"label of the absent point", "[axis]\na = [1, 2]\n[axis.b]\nvalues = [\"–\"]\nwhen = { a = 1 }\n"},
    {"sub-grid without a label", "[[subgrid]]\naxis.a = [1]\n"},
    {"sub-grid twice", "[[subgrid]]\nlabel = \"x\"\naxis.a = [1]\n[[subgrid]]\nlabel = \"x\"\naxis.a = [2]\n"},
    {"unknown key of a sub-grid", "[[subgrid]]\nlabel = \"x\"\nseeds = 3\n"},
    {"sample of a sub-grid", "[[subgrid]]\nlabel = \"x\"\naxis.a = [1]\nsample = { count = 1 }\n"},
    {"axis of all and of one of three sub-grids",
     "[axis]\na = [1]\n[[subgrid]]\nlabel = \"x\"\naxis.a = [2]\n[[subgrid]]\nlabel = \"y\"\n[[subgrid]]\nlabel = "
     "\"z\"\n"},
    {"axis of all and of a sub-grid", "[axis]\na = [1]\n[[subgrid]]\nlabel = \"x\"\naxis.a = [1]\n"},
    {"axis twice in a sub-grid", "[[subgrid]]\nlabel = \"x\"\n[subgrid.axis]\na.b = [1]\n\"a.b\" = [2]\n"},
    {"label of two sub-grids with other settings",
     "[[subgrid]]\nlabel = \"x\"\n[[subgrid.axis.s]]\nlabel = \"p\"\nset = { a = 1 }\n"
     "[[subgrid]]\nlabel = \"y\"\n[[subgrid.axis.s]]\nlabel = \"p\"\nset = { a = 2 }\n"},
    {"label of two sub-grids that unset other settings",
     "set.a = 1\nset.b = 1\n[[subgrid]]\nlabel = \"x\"\n[[subgrid.axis.s]]\nlabel = \"p\"\nunset = \"a\"\n"
     "[[subgrid]]\nlabel = \"y\"\n[[subgrid.axis.s]]\nlabel = \"p\"\nunset = \"b\"\n"},
    {"label of two sub-grids under other conditions",
     "[axis]\nn = [1, 2]\n[[subgrid]]\nlabel = \"x\"\n[[subgrid.axis.s]]\nlabel = \"p\"\nwhen = { n = 1 }\n"
     "[[subgrid]]\nlabel = \"y\"\n[[subgrid.axis.s]]\nlabel = \"p\"\nwhen = { n = 2 }\n"},
    {"labels of an axis' values apart", "[axis.s]\nvalues = [1, 2]\nlabels = [\"one\", \"two\"]\n"},
    {"setting of a sub-grid and of an axis of all", "[axis]\na = [1]\n[[subgrid]]\nlabel = \"x\"\nset = { a = 1 }\n"},
    {"exclusion that matches nothing in its sub-grid",
     "[[subgrid]]\nlabel = \"x\"\naxis.a = [1, 2]\n[[subgrid]]\nlabel = \"y\"\naxis.b = [1]\n"
     "[[subgrid.exclude]]\nwhen = { a = 1 }\nwhy = \"w\"\n"},
    {"unset of what no base sets", "unset = \"a.c\"\n[set]\na.b = 1\n[axis]\nx = [1]\n"},
    {"set and unset", "base = \"right.toml\"\nunset = \"m.d\"\n[set]\nm.d = 1\n[axis]\nx = [1]\n"},
    {"computed setting below another one", "[axis]\na = [1]\n[computed]\na.b = \"2 * a\"\n"},
    {"unset and set by two axes", "[set]\na = 1\n[axis]\na = [2]\n[[axis.s]]\nlabel = \"x\"\nunset = \"a\"\n"},
    {"computed value that is no text", "[axis]\na = [1]\n[computed]\nb = 4\n"},
    {"computed with a mistake", "[axis]\na = [1]\n[computed]\nb = \"4 * \"\n"},
    {"computed with an unknown sign", "[axis]\na = [1]\n[computed]\nb = \"a ^ 2\"\n"},
    {"computed with an open parenthesis", "[axis]\na = [1]\n[computed]\nb = \"4 * (a + 1\"\n"},
    {"computed with an unknown function", "[axis]\na = [1]\n[computed]\nb = \"sqr(a)\"\n"},
    {"computed with a function of too many values", "[axis]\na = [1]\n[computed]\nb = \"sqrt(a, 2)\"\n"},
    {"computed from what is not set", "[axis]\nm.width = [1]\n[computed]\nb = \"4 * m.width_\"\n"},
    {"computed from a mistyped name in quotes",
     "[set]\nmax-update = 9\n[axis]\na = [1]\n[computed]\nb = \"a + 'max-updte'\"\n"},
    {"computed from each other", "[axis]\na = [1]\n[computed]\nb = \"c + 1\"\nc = \"d + 1\"\nd = \"2 * b\"\n"},
    {"computed from itself", "[axis]\na = [1]\n[computed]\nb = \"b + 1\"\n"},
    {"computed and set by an axis", "[axis]\na = [1]\nb = [1]\n[computed]\nb = \"2 * a\"\n"},
    {"computed seed", "[axis]\na = [1]\n[computed]\ntrain.seed = \"2 * a\"\n"},
    {"sample without a count", "[axis]\na = [1]\n[sample]\nseed = 1\n"},
    {"sample of none", "sample = { count = 0 }\n[axis]\na = [1]\n"},
    {"unknown key of a sample", "sample = { count = 1, size = 2 }\n[axis]\na = [1]\n"},
    {"axis in another tool's section", "[parameters]\nlr = [1, 2]\n"},
    {"settings in another tool's section", "[fixed]\nlr = 1\n[axis]\na = [1]\n"},
    {"draws in another tool's words", "run_cap = 20\n[axis]\na = [1]\n"},
    {"list of grids in place of a grid", "grids = [\"a.toml\"]\n"},
    {"seeds below a section", "[axis]\na = [1]\nseeds = [1, 2]\n"},
    {"variable that nothing sets", "variables = \"head_dims\"\n[axis]\nhead_dim = [1]\n"},
    {"seed as a variable", "variables = \"train.seed\"\n[axis]\na = [1]\n"},
    {"variables below a section", "[set]\nx = 1\nvariables = [\"x\"]\n[axis]\na = [1]\n"},
    {"unset below a section", "[set]\nx = 1\nunset = [\"y\"]\n[axis]\na = [1]\n"},
    {"seed_key below a section", "[set]\nx = 1\nseed_key = \"rng\"\n[axis]\na = [1]\n"},
    {"sample below a section", "[axis]\na = [1]\nsample = { count = 2 }\n"},
    {"grids below a section", "[set]\nx = 1\ngrids = [\"a.toml\"]\n[axis]\na = [1]\n"},
    {"base below a section", "[set]\nx = 1\nbase = \"nowhere.toml\"\n[axis]\na = [1]\n"},
    {"bundle in single brackets", "[axis.optim]\nlabel = \"adam\"\nset = { lr = 1 }\n"},
    {"axis of another tool's keys", "[axis.lr]\ntype = \"choice\"\noptions = [1, 2]\n"},
    {"sub-grid in single brackets", "[subgrid.small]\naxis.a = [1]\n"},
    {"name with a hyphen in an expression", "[axis]\nbatch-size = [1]\n[computed]\nb = \"25000 / batch-size\"\n"},
    {"comment of another language", "// a comment\n[axis]\na = [1]\n"},
    {"tag of two words", "tag = [\"first\", \"two words\"]\n[axis]\na = [1]\n"},
    {"note of two lines", "note = \"one\\ntwo\"\n[axis]\na = [1]\n"},
    {"claim without a text", "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\nbetter = [\"x\", \"y\"]\n"},
    {"two claims of one text",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"y\"]\n[[claim]]\ntext = "
     "\"t\"\nworse = [\"x\", \"y\"]\n"},
    {"claim of no kind", "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\n"},
    {"claim of two kinds",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"y\"]\nworse = [\"x\", "
     "\"y\"]\n"},
    {"claim with a key of another kind",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"y\"]\nwithin = \"0.3 "
     "bleu\"\n"},
    {"claim about one cell", "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\"]\n"},
    {"claim about an unknown table",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\ncaption = \"Norms\"\n[[claim]]\ntext = \"t\"\ntable = "
     "\"Norm\"\nbetter = [\"x\", \"y\"]\n"},
    {"claim about an unknown label",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"z\"]\n"},
    {"claim about an unknown axis",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [{ c = \"x\" }, \"y\"]\n"},
    {"claim about an unknown label of an axis",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [{ a = \"x\" }, { a = \"w\" }]\n"},
    {"claim about a label of two axes",
     "[axis]\na = [\"x\", \"y\"]\nb = [\"x\", \"z\"]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"y\"]\n"},
    {"claim about several cells",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", [\"y\", \"2\"]]\n"},
    {"claim about cells that the table lacks",
     "[axis]\na = [\"x\", \"y\"]\nb = [\"p\", \"q\"]\n[[exclude]]\nwhen = { a = \"x\", b = \"p\" }\nwhy = "
     "\"w\"\n[table]\nrows = [\"a\", \"b\"]\n[[claim]]\ntext = \"t\"\nbetter = [[\"x\", \"p\"], [\"y\", \"p\"]]\n"},
    {"claim about an unknown score",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\n[[claim]]\ntext = \"t\"\nscore = \"test.blue\"\nbetter = [\"x\", \"y\"]\n"},
    {"claim about several scores",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\n[[claim]]\ntext = \"t\"\nscore = \"test.*\"\nbetter = [\"x\", \"y\"]\n"},
    {"claim with both score and scores",
     "[axis]\na = [\"x\", \"y\"]\n[table]\nscores = [\"s\", \"t\"]\n[[claim]]\ntext = \"c\"\nbetter = [\"x\", \"x\"]\n"
     "score = \"s\"\nscores = [\"s\", \"t\"]\n"},
    {"claim with too few scores",
     "[axis]\na = [\"x\", \"y\"]\n[table]\nscores = [\"s\", \"t\"]\n[[claim]]\ntext = \"c\"\nbetter = [\"x\", \"x\", "
     "\"y\"]\nscores = [\"s\", \"t\"]\n"},
    {"claim without a score among several",
     "[axis]\na = [\"x\", \"y\"]\n[[claim]]\ntext = \"c\"\nbetter = [\"x\", \"y\"]\nscores = []\n"},
    {"claim with the same cell and score twice",
     "[axis]\na = [\"x\", \"y\"]\n[table]\nscores = [\"s\", \"t\"]\n[[claim]]\ntext = \"c\"\nbetter = [\"x\", \"x\"]\n"
     "scores = [\"s\", \"s\"]\n"},
    {"claim of one score with several",
     "[axis]\na = [\"x\", \"y\"]\n[table]\nscores = [\"s\", \"t\"]\n[[claim]]\ntext = \"c\"\nabove = [\"x\", \"y\"]\n"
     "than = 1\nscores = [\"s\", \"t\"]\n"},
    {"claim with a score that the table lacks among several",
     "[axis]\na = [\"x\", \"y\"]\n[table]\nscores = [\"s\", \"t\"]\n[[claim]]\ntext = \"c\"\nbetter = [\"x\", \"x\"]\n"
     "scores = [\"s\", \"u\"]\n"},
    {"claim that compares two scores",
     "[axis]\na = [\"x\", \"y\"]\nb = [\"p\", \"q\"]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores.b = { p = "
     "\"test.acc\", q = \"test.bpc\" }\n[[claim]]\ntext = \"t\"\nbetter = [\"p\", \"q\"]\n"},
    {"limit without a unit",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\n[[claim]]\ntext = \"t\"\nequivalent = [\"x\", \"y\"]\nwithin = 0.3\n"},
    {"limit without a number",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\n[[claim]]\ntext = \"t\"\nequivalent = [\"x\", \"y\"]\nwithin = \"a bit\"\n"},
    {"limit in the unit of another score",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\n[[claim]]\ntext = \"t\"\nnot_worse = [\"x\", \"y\"]\nwithin = \"0.3 ter\"\n"},
    {"limit of zero",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\n[[claim]]\ntext = \"t\"\nnot_worse = [\"x\", \"y\"]\nwithin = \"0 bleu\"\n"},
    {"claim without its limit",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\n[[claim]]\ntext = \"t\"\nnot_worse = [\"x\", \"y\"]\n"},
    {"limit where the runs decide on the score",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nnot_worse = [\"x\", \"y\"]\nwithin = \"0.3 "
     "bleu\"\n"},
    {"ratio without its limits",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nratio = [\"x\", \"y\"]\n"},
    {"ratio with its limits exchanged",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nratio = [\"x\", \"y\"]\nbetween = [1.1, "
     "0.9]\n"},
    {"slope over labels that are not numbers",
     "[axis]\na = [\"x\", \"y\"]\nb = [\"4k\", \"8k\"]\n[[claim]]\ntext = \"t\"\nslope = \"x\"\nover = "
     "\"b\"\ndirection = \"up\"\n"},
    {"slope without an axis",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nslope = \"x\"\ndirection = \"up\"\n"},
    {"slope over the axis of its cell",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nslope = { b = 2 }\nover = \"b\"\ndirection = "
     "\"up\"\n"},
    {"slope without a direction",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nslope = \"x\"\nover = \"b\"\n"},
    {"straight line through two points",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2]\n[[claim]]\ntext = \"t\"\nlinear = \"x\"\nover = \"b\"\nr2 = 0.9\n"},
    {"straight line without its limit",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nlinear = \"x\"\nover = \"b\"\n"},
    {"two labels of one axis for a cell",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [[\"x\", \"y\"], \"y\"]\n"},
    {"one cell twice", "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"x\"]\n"},
    {"places of an axis that the cells fix",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"y\"]\nwhere = { a = \"x\" "
     "}\n"},
    {"places of an unknown label",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"y\"]\nnot_claimed = { b = "
     "[1, 4] }\n"},
    {"places that are a text",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"y\"]\npaired = "
     "\"seed\"\n"},
    {"places that are none",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"y\"]\nwhere = {}\n"},
    {"places that are none of not_claimed",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"y\"]\nnot_claimed = {}\n"},
    {"places of no label",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"y\"]\nwhere = { b = [] "
     "}\n"},
    {"places of no label beside others",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"y\"]\npaired = { b = [] "
     "}\n"},
    {"where that is false",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbetter = [\"x\", \"y\"]\nwhere = false\n"},
    {"best of no other cell",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[[claim]]\ntext = \"t\"\nbest = \"x\"\nof = [\"x\"]\n"},
    {"tolerance of zero",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\npublished = { source = \"s\", tolerance = 0, values = [[1, 2, 3], [4, 5, 6]] }\n"},
    {"tolerance that is a text",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\npublished = { source = \"s\", tolerance = \"0.5\", values = [[1, 2, 3], [4, 5, 6]] }\n"},
    {"prediction without a greatest half-width",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\npublished = { source = \"s\", tolerance = { prediction = true }, values = [[1, 2, 3], [4, 5, 6]] "
     "}\n"},
    {"prediction of a greatest half-width of zero",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\npublished = { source = \"s\", tolerance = { prediction = true, at_most = 0 }, values = [[1, 2, "
     "3], [4, 5, 6]] }\n"},
    {"prediction that is none",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\npublished = { source = \"s\", tolerance = { prediction = false, at_most = 0.5 }, values = [[1, 2, "
     "3], [4, 5, 6]] }\n"},
    {"prediction that is not said",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\npublished = { source = \"s\", tolerance = { at_most = 0.5, runs = 3 }, values = [[1, 2, 3], [4, "
     "5, 6]] }\n"},
    {"prediction of half a run",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\npublished = { source = \"s\", tolerance = { prediction = true, at_most = 0.5, runs = 0.5 }, "
     "values = [[1, 2, 3], [4, 5, 6]] }\n"},
    {"prediction with an unknown key",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\npublished = { source = \"s\", tolerance = { predicton = true, at_most = 0.5 }, values = [[1, 2, "
     "3], [4, 5, 6]] }\n"},
    {"prediction of one score without a greatest half-width",
     "[axis]\na = [\"x\", \"y\"]\nb = [1, 2, 3]\n[table]\nrows = \"a\"\ncolumns = \"b\"\nscores = [\"test.bleu\", "
     "\"test.ter\"]\npublished = { source = \"s\", tolerance = { \"test.bleu\" = 0.5, \"test.ter\" = { prediction = "
     "true } }, values = [[1, 2, 3], [4, 5, 6]] }\n"},
    {"looks that fall", "seeds = 5\n[claims]\nlooks = [3, 8, 5]\n[axis]\na = [\"x\", \"y\"]\n"},
    {"looks that repeat", "seeds = 5\n[claims]\nlooks = [3, 3, 5]\n[axis]\na = [\"x\", \"y\"]\n"},
    {"look at one seed", "seeds = 5\n[claims]\nlooks = [1, 5]\n[axis]\na = [\"x\", \"y\"]\n"},
    {"look at too many seeds", "seeds = 101\n[claims]\nlooks = [3, 101]\n[axis]\na = [\"x\", \"y\"]\n"},
    {"look at half a seed", "seeds = 5\n[claims]\nlooks = [2.5, 5]\n[axis]\na = [\"x\", \"y\"]\n"},
    {"look in words", "seeds = 5\n[claims]\nlooks = [\"three\", 5]\n[axis]\na = [\"x\", \"y\"]\n"},
    {"too many looks", "seeds = 10\n[claims]\nlooks = [2, 3, 4, 5, 6, 7, 8, 9, 10]\n[axis]\na = [\"x\", \"y\"]\n"},
    {"no looks", "seeds = 5\n[claims]\nlooks = []\n[axis]\na = [\"x\", \"y\"]\n"},
    {"looks that are a number", "seeds = 5\n[claims]\nlooks = 3\n[axis]\na = [\"x\", \"y\"]\n"},
    {"looks before the last seed", "seeds = 12\n[claims]\nlooks = [3, 5]\n[axis]\na = [\"x\", \"y\"]\n"},
    {"looks beyond the last seed", "seeds = [4, 7, 9]\n[claims]\nlooks = [3, 5]\n[axis]\na = [\"x\", \"y\"]\n"},
    {"looks without seeds", "[claims]\nlooks = [3, 5]\n[axis]\na = [\"x\", \"y\"]\n"},
    {"looks without a claim", "seeds = 5\n[claims]\nlooks = [3, 5]\n[axis]\na = [\"x\", \"y\"]\n"},
    {"level of zero", "[claims]\nlevel = 0\n[axis]\na = [\"x\", \"y\"]\n"},
    {"level of one half", "[claims]\nlevel = 0.5\n[axis]\na = [\"x\", \"y\"]\n"},
    {"level that is no number", "[claims]\nlevel = nan\n[axis]\na = [\"x\", \"y\"]\n"},
    {"level in per cent", "[claims]\nlevel = \"5 %\"\n[axis]\na = [\"x\", \"y\"]\n"},
    {"unknown key of claims", "[claims]\nlook = [3, 5]\n[axis]\na = [\"x\", \"y\"]\n"},
    {"claims that are a list", "claims = [3, 5]\n[axis]\na = [\"x\", \"y\"]\n"},
};

TEST(LoadGrid, NamesEveryMistakeGolden) {
  const TempFolder folder;
  write_text(folder / "circle_a.toml", "base = \"circle_b.toml\"\n");
  write_text(folder / "circle_b.toml", "a = 1\nbase = \"circle_a.toml\"\n");
  write_text(folder / "broken.toml", "a = 1\nb = \n");
  write_text(folder / "right.toml", "m.d = 2\nm.e = 3\n");
  std::string text;
  for (const Mistake& mistake : kMistakes) {
    text += std::string(mistake.situation) + "\n    " + error_of(folder, mistake.text) + "\n";
  }
  test::expect_golden("harness/grid_mistakes.txt", text);
}

TEST(LoadGrid, NamesAMissingFile) {
  try {
    load_grid("no/such/grid.toml");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "cannot read no/such/grid.toml: No such file or directory");
  }
}

TEST(LoadGrid, ReadsOrdinaryFilesOnly) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("loop", folder / "loop");
  const auto base_error = [&](const std::string& base) {
    return error_of(folder, "base = \"" + base + "\"\n[axis]\na = [1]\n");
  };
  EXPECT_EQ(base_error("/dev/zero"), "cannot read /dev/zero: it is a pipe or a device; name a regular file");
  EXPECT_EQ(base_error("pipe"), "cannot read pipe: it is a pipe or a device; name a regular file");
  EXPECT_EQ(base_error("loop"), "grid.toml:1: the base file loop cannot be read: Too many levels of symbolic links");
}

TEST(LoadGrid, LimitsTheNumberOfBaseFiles) {
  const TempFolder folder;
  for (int level = 0; level < 40; ++level) {  // 2^40 files, were all of them read
    const std::string next = std::to_string(level + 1) + ".toml";
    write_text(folder / (std::to_string(level) + ".toml"), "base = [\"" + next + "\", \"" + next + "\"]\n");
  }
  write_text(folder / "40.toml", "");
  EXPECT_THAT(error_of(folder, "base = \"0.toml\"\n[axis]\na = [1]\n"),
              testing::EndsWith("more than 100 base files are read here; name each of them once"));
}

TEST(LoadGrid, RefusesMoreAxesSeedsAndExclusionsThanCanBeCompared) {
  const TempFolder folder;
  std::string axes = "[axis]\n", seeds = "seeds = [", exclusions = "[axis]\na = [1, 2]\n";
  for (int i = 0; i < 101; ++i) axes += "a" + std::to_string(i) + " = [1]\n";
  for (int i = 0; i < 10'001; ++i) seeds += std::to_string(i) + ", ";
  for (int i = 0; i < 1'001; ++i) exclusions += "[[exclude]]\n";
  EXPECT_EQ(error_of(folder, axes), "grid.toml:102: the grid has more than 100 axes; split it");
  EXPECT_EQ(error_of(folder, seeds + "]\n[axis]\na = [1]\n"),
            "grid.toml:1: the grid has more than 10000 seeds; split it");
  EXPECT_EQ(error_of(folder, exclusions), "grid.toml:3: the grid has more than 1000 exclusions; split it");
}

TEST(LoadGrid, RefusesANameThatNoSweepMayHave) {
  const TempFolder folder;
  fs::create_directory(folder / "caf\xe9");
  const std::string longest(200, 'x');
  for (const std::string& file :
       {std::string("caf\xe9/grid.toml"), std::string("caf\xe9.toml"), std::string(".x.toml"), std::string("-x.toml"),
        std::string("a=b.toml"), std::string("a\x1b[1m.toml"), longest + "x.toml"}) {
    EXPECT_THAT(error_of_file(folder, folder / file, "[axis]\na = [1]\n"), testing::HasSubstr(": rename it")) << file;
  }
  for (const std::string& file : {std::string("café.toml"), std::string("x.y-z w.toml"), longest + ".toml"}) {
    EXPECT_EQ(error_of_file(folder, folder / file, "[axis]\na = [1]\n"), "(no error)") << file;
  }
}

TEST(LoadGrid, KeepsAxesAndValuesInTheOrderOfTheFile) {
  const TempFolder folder;
  const Grid grid = load_text(folder, R"(
[axis]
zebra = ["b", "a"]
model.depth = [12, 6]
[[axis.corpus]]
label = "second"
set = { x = 1 }
[[axis.corpus]]
label = "first"
set = { x = 2 }
[axis.apple]
lr = [1e-3, 3e-4]
)");
  ASSERT_EQ(grid.axes.size(), 4u);
  EXPECT_EQ(grid.axes[0].name, "zebra");
  EXPECT_EQ(grid.axes[1].name, "model.depth");
  EXPECT_EQ(grid.axes[2].name, "corpus");
  EXPECT_EQ(grid.axes[3].name, "apple.lr");
  EXPECT_EQ(grid.axes[0].points[0].label, "b");
  EXPECT_EQ(grid.axes[1].points[0].label, "12");
  EXPECT_EQ(grid.axes[2].points[0].label, "second");
  EXPECT_EQ(grid.axes[3].points[1].label, "0.0003");
}

TEST(LoadGrid, LaterBasesWinThenSetThenAxes) {
  const TempFolder folder;
  fs::create_directories(folder / "base");
  write_text(folder / "base/root.toml", "[m]\na = \"root\"\nb = \"root\"\nc = \"root\"\nd = \"root\"\ne = \"root\"\n");
  write_text(folder / "base/one.toml",
             "base = \"root.toml\"\nm = { b = \"one\", c = \"one\", d = \"one\", e = \"one\" }\n");
  write_text(folder / "base/two.toml", "m = { c = \"two\", d = \"two\", e = \"two\" }\n");
  const Grid grid = load_text(folder, R"(
base = ["base/one.toml", "base/two.toml"]
seeds = [7]
[set]
m.d = "set"
m.e = "set"
[axis]
"m.e" = ["axis", "other"]
)");
  const Combination first = runs_of(grid).front();
  const RunSpec run = materialise(grid, first);
  EXPECT_EQ(run.settings.at("m.a"), "root");
  EXPECT_EQ(run.settings.at("m.b"), "one");
  EXPECT_EQ(run.settings.at("m.c"), "two");
  EXPECT_EQ(run.settings.at("m.d"), "set");
  EXPECT_EQ(run.settings.at("m.e"), "axis");
  EXPECT_FALSE(run.settings.contains("base"));
  EXPECT_EQ(run.settings.at("train.seed"), 7);
  EXPECT_EQ(run.folders.at("m.a"), (folder / "base").string());
  EXPECT_EQ(run.folders.at("m.e"), folder.path().string());
  EXPECT_EQ(*refused_location(grid, first, "m.b", ""), (folder / "base/one.toml").string() + ":2");
}

TEST(LoadGrid, ABundleMayTakeItsSettingsFromABaseFile) {
  const TempFolder folder;
  fs::create_directories(folder / "corpora");
  write_text(folder / "corpora/small.toml", "data.train = \"small/train\"\nmodel.layers = 2\n");
  const Grid grid = load_text(folder, R"(
[set]
model.layers = 6
[[axis.corpus]]
label = "small"
base = "corpora/small.toml"
[[axis.corpus]]
label = "large"
set.data.train = "large/train"
)");
  const std::vector<Combination> runs = runs_of(grid);
  const RunSpec small = materialise(grid, runs[0]);
  const RunSpec large = materialise(grid, runs[1]);
  EXPECT_EQ(small.settings.at("model.layers"), 2);
  EXPECT_EQ(small.folders.at("data.train"), (folder / "corpora").string());
  EXPECT_EQ(large.settings.at("model.layers"), 6);
  EXPECT_EQ(large.folders.at("data.train"), folder.path().string());
}

TEST(LoadGrid, TheSeedKeyCanBeNamedAndTheBaseMayGiveTheSeed) {
  const TempFolder folder;
  const Grid grid = load_text(folder, "seed_key = \"rng\"\nset.rng = 11\n[axis]\na = [1]\n");
  EXPECT_EQ(grid.seeds, std::vector<int64_t>{11});
  EXPECT_EQ(materialise(grid, runs_of(grid).front()).settings.at("rng"), 11);
}

TEST(LoadGrid, PutsTheFirstAxisInRowsAndTheRestInColumnsByDefault) {
  const TempFolder folder;
  const Grid grid = load_text(folder, "[axis]\na = [1]\nb = [1]\nc = [1]\n");
  EXPECT_THAT(views_of(grid).front().table().arrangement.rows, testing::ElementsAre(0));
  EXPECT_THAT(views_of(grid).front().table().arrangement.columns, testing::ElementsAre(1, 2));
  const Grid chosen = load_text(folder, "[axis]\na = [1]\nb = [1]\nc = [1]\n[table]\ncolumns = [\"b\"]\n");
  EXPECT_THAT(views_of(chosen).front().table().arrangement.rows, testing::ElementsAre(0, 2));
}

TEST(LoadGrid, EachTableIsAView) {
  const TempFolder folder;
  const std::string axes = "title = \"T\"\n[axis]\na = [1]\nb = [1]\n";
  const Grid none = load_text(folder, axes);
  ASSERT_EQ(views_of(none).size(), 1u);
  EXPECT_EQ(views_of(none)[0].title.text, "T");
  const Grid grid = load_text(folder, axes + "[[table]]\n[[table]]\ncaption = \"Turned\"\nrows = \"b\"\n");
  ASSERT_EQ(views_of(grid).size(), 2u);
  EXPECT_EQ(views_of(grid)[0].title.text, "T");
  EXPECT_THAT(views_of(grid)[0].table().arrangement.rows, testing::ElementsAre(0));
  EXPECT_EQ(views_of(grid)[1].title.text, "Turned");
  EXPECT_THAT(views_of(grid)[1].table().arrangement.rows, testing::ElementsAre(1));
  EXPECT_THAT(views_of(grid)[1].table().arrangement.columns, testing::ElementsAre(0));
  std::string many;
  for (int i = 0; i < 101; ++i) many += "[[table]]\n";
  EXPECT_EQ(error_of(folder, axes + many), "grid.toml:5: the grid has more than 100 tables; split it");
}

TEST(LoadGrid, ReadsEveryGridInTheRepository) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(test::source_root() / "grids")) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path());
    EXPECT_NO_THROW({
      for (const fs::path& grid : grids_in(entry.path(), {})) views_of(load_grid(grid));
    });
    ++count;
  }
  EXPECT_GE(count, 3);
}

// --- [policy] ------------------------------------------------------------------------------------------------------

TEST(Load, APolicySaysHowRunsAreTreated) {
  const TempFolder folder;
  test::write_text(folder / "grid.toml",
                   "[axis]\na = [1, 2]\n[policy]\nstall_timeout = 2.5\ngrace = 120\nmemory = \"8 GiB\"\n"
                   "environment = [\"BRANCH\", \"HF_*\"]\nsame_device = true\n[policy.tries]\ncrashed = 5\n");
  const GridPolicy policy = load_grid(folder / "grid.toml").policy;
  EXPECT_EQ(policy.stall_minutes, 2.5);
  EXPECT_EQ(policy.grace_seconds, 120);
  EXPECT_EQ(policy.memory_bytes, int64_t{8} << 30);
  EXPECT_TRUE(policy.same_device);
  EXPECT_EQ(policy.tries, (std::map<std::string, int>{{"crashed", 5}}));
  EXPECT_EQ(policy.environment, (std::vector<std::string>{"BRANCH", "HF_*"}));
  test::write_text(folder / "grid.toml", "[axis]\na = [1, 2]\n");
  EXPECT_FALSE(load_grid(folder / "grid.toml").policy.grace_seconds);
  EXPECT_FALSE(load_grid(folder / "grid.toml").policy.same_device);
}

TEST(Load, AMistakeInThePolicyNamesItsLine) {
  const TempFolder folder;
  const auto error = [&](const std::string& policy) {
    return error_of(folder, "[axis]\na = [1, 2]\n[policy]\n" + policy);
  };
  EXPECT_THAT(error("memory = \"lots\"\n"),
              testing::EndsWith("grid.toml:4: memory = \"lots\" is not a size such as \"8 GiB\""));
  EXPECT_THAT(error("grace = -1\n"), testing::EndsWith("grid.toml:4: grace must be a whole number from 0 to 86400"));
  EXPECT_THAT(error("stall_timeout = -1\n"),
              testing::EndsWith("grid.toml:4: stall_timeout must be minutes, 0 for never"));
  EXPECT_THAT(
      error("environment = \"CUDA_VISIBLE_DEVICES\"\n"),
      testing::EndsWith("grid.toml:4: environment names \"CUDA_VISIBLE_DEVICES\": the service gives each run its "
                        "own"));
  EXPECT_THAT(error("environment = [\"A\", \"TEARLESS_X\"]\n"),
              testing::EndsWith("\"TEARLESS_X\": variables of tearless itself are not handed on"));
  for (const char* name : {"", "A=1", "HF-*", "$A"}) {
    EXPECT_THAT(
        error(fmt::format("environment = \"{}\"\n", name)),
        testing::EndsWith(fmt::format("environment names \"{}\": it is no name of a variable, nor one with * or "
                                      "?, such as \"HF_*\"",
                                      name)));
  }
  EXPECT_THAT(error("same_device = \"H100\"\n"), testing::EndsWith("grid.toml:4: same_device must be true or false"));
  EXPECT_THAT(error("environment = 1\n"), testing::HasSubstr("environment must be a text or a list of texts"));
  EXPECT_THAT(error("tries.crashd = 2\n"),
              testing::HasSubstr("unknown key \"crashd\" in [policy.tries] (did you mean \"crashed\"?)"));
  EXPECT_THAT(error("tries.timeout = 2\n"), testing::HasSubstr("unknown key \"timeout\" in [policy.tries]"));
  EXPECT_THAT(error("tries.crashed = 0\n"), testing::EndsWith("crashed must be a whole number from 1 to 1000"));
  EXPECT_THAT(error("keep_data = false\n"), testing::HasSubstr("unknown key \"keep_data\" in [policy]"));
  EXPECT_THAT(error("patience = 2\n"), testing::HasSubstr("unknown key \"patience\" in [policy]"));
}

}  // namespace
}  // namespace tearless::harness::load_test
