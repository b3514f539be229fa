#!/usr/bin/env python3
"""results_test.py [REPORT] [NAME…]: reading results from Python, against what the program prints as CSV. REPORT: results as JUnit XML."""

import contextlib
import csv
import functools
import io
import json
import numbers
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import packages

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tools")]
import junit_report  # noqa: E402
import tearless  # noqa: E402

BIN = pathlib.Path(os.environ.get("TEARLESS_BIN", ROOT / "build" / "bin"))
os.environ.update(TEARLESS_PROGRAM=str(BIN / "tearless"), TEARLESS_ENGINE=str(BIN / "fake-engine"))
needs_pandas = unittest.skipIf(packages.use(), packages.use())
SCORES = "test.bleu_13a,parameters"  # that the fake engine gives the runs of grids/demo.toml
ARCHIVES = sorted((ROOT / "results").glob("*.tar.gz"))

# Labels that look like numbers and are none, axes called as columns are, runs that diverge or fail, metrics and scores that are missing.
GRID = r"""
title = "Odd"
seeds = [7, 2, 10]
[set]
"fake.updates" = 4
[axis]
"model.place" = ["None", "a, \"b\""]
"model.depth" = [6, 12]
"train.lr"    = [0.001, 1.5e-5]
[[axis.mean]]
label = "007"
set = { "fake.metric.big" = 1e308, "model.flag" = true }
[[axis.mean]]
label = "1"
set = { "fake.score.test.acc" = 0.1, "model.flag" = false }
[[axis.mean]]
label = "2"
set = { "fake.behaviour" = "diverge" }
[derived.beam8]
extra = 2
[table]
rows     = ["mean", "model.place"]
columns  = ["model.depth", "train.lr"]
scores   = ["test.score", "test.acc", "updates"]
baseline = ["1", "None"]
[table.published]
source    = "A paper"
score     = "test.score"
tolerance = 0.5
values    = [[20.5, 20, 21, "fail"], [20, 20, 20, 20], ["20.91*", 20, 20, ""], [20, 20, 20, 20], [20, 20, 20, 20], [20, 20, 20, 20]]
[table.test]
[[claim]]
text = "deeper is better"
name = "C1"
better = [{ "model.depth" = "12" }, { "model.depth" = "6" }]
[[figure]]
caption = "Loss"
y       = "train.loss"
lines   = ["mean", "model.place", "train.lr"]
panels  = "model.depth"
[[figure]]
name    = "depth"
kind    = "bars"
caption = "Depth"
x       = "mean"
y       = "test.score"
lines   = ["model.depth", "train.lr"]
panels  = "model.place"
"""

def printed(*words, workspace=None):
    command = [BIN / "tearless", *(["--workspace", workspace] if workspace else []), *words]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout


def lines_of(text):
    return list(csv.DictReader(io.StringIO(text)))


@functools.lru_cache(maxsize=None)
def trained():
    """A workspace with GRID's runs, and the grid file."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tearless-python-"))
    unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
    grid = folder / "odd.toml"
    grid.write_text(GRID)
    with contextlib.redirect_stderr(io.StringIO()):
        submission = tearless.submit(grid, workspace=folder / "results")
        submission.wait()
    subprocess.run([BIN / "tearless", "--workspace", folder / "results", "stop"], capture_output=True)
    return submission.workspace, grid


class Case(unittest.TestCase):
    def check(self, frame, lines, but=()):
        """Each value of `lines`, as CSV has it, is that of the frame."""
        self.assertEqual(len(frame), len(lines))
        self.assertLessEqual(set(lines[0]) - set(but), set(frame.columns))
        others = [(name, place, value, line[name]) for name in set(lines[0]) - set(but)
                  for place, (value, line) in enumerate(zip(frame[name].tolist(), lines)) if not self.is_printed_as(value, line[name])]
        self.assertEqual(others[:5], [])

    @staticmethod
    def is_printed_as(value, text):
        """A number is the very number of the text, not one near to it."""
        if isinstance(value, list):
            return " ".join(value) == text
        if isinstance(value, bool) or type(value).__name__ == "bool_":
            return str(value).lower() == text
        if text == "":
            return str(value) in ("", "nan", "<NA>")
        if isinstance(value, numbers.Real):
            return re.fullmatch(r"-?[0-9.]+(e[-+]?[0-9]+)?", text) is not None and type(value)(text) == value
        return value == text


@needs_pandas
class Numbers(Case):
    """All numbers are those of CSV, of archives and of a workspace."""

    def workspaces(self):
        return [*map(tearless.open, ARCHIVES), trained()[0]]

    def sweeps(self):
        return [(workspace, sweep) for workspace in self.workspaces() for sweep in workspace.sweeps()["sweep"]]

    def test_Runs(self):
        for workspace in self.workspaces():
            frame = workspace.runs("all", by="sweep", derived=True)
            self.check(frame, lines_of(printed("runs", "all", "--by", "sweep", "--derived", "--csv", workspace=workspace.path)))

    def test_RunsWithSettings(self):
        for workspace, sweep in self.sweeps():
            lines = lines_of(printed("runs", sweep, "--settings", "--csv", workspace=workspace.path))
            self.check(workspace.runs(sweep, settings=True), lines)

    def test_RunsThatAreChosen(self):
        workspace, _ = trained()
        frame = workspace.runs(["done", "model.depth=12"], where=["test.score > 20", "train.lr = 1.5e-05"], scores="test.*,measured.seconds")
        lines = lines_of(printed("runs", "done", "model.depth=12", "--where", "test.score > 20", "--where", "train.lr = 1.5e-05", "--scores",
                                 "test.*,measured.seconds", "--csv", workspace=workspace.path))
        self.assertEqual(len(lines), 12)
        self.check(frame, lines)

    def test_Metrics(self):
        for workspace, sweep in self.sweeps():
            query = f"SELECT * FROM metrics_view WHERE run IN (SELECT run FROM sweep_runs_view WHERE sweep = '{sweep}') ORDER BY run, step, name"
            frame, lines = workspace.metrics(workspace.runs(sweep)), lines_of(printed("sql", query, "--csv", workspace=workspace.path))
            self.assertEqual(list(frame["run"]), [line["run"] for line in lines])
            self.assertEqual(list(frame["step"]), [int(line["step"]) for line in lines])
            self.assertEqual(list(frame["name"]), [line["name"] for line in lines])
            self.assertEqual([repr(value) for value in frame["value"]], [repr(float(line["value"] or "nan")) for line in lines])

    def test_MetricsThatAreNotFinite(self):
        import tearless.frames

        frame = tearless.frames.metrics("run,step,name,value\nNA,1,null,inf\nr,2,a,-inf\nr,3,a,\n")
        self.assertEqual(list(map(repr, frame["value"])), ["inf", "-inf", "nan"])
        self.assertEqual((frame["run"][0], frame["name"][0]), ("NA", "null"))

    def test_MetricsByName(self):
        workspace, _ = trained()
        found = workspace.metrics(workspace.runs(["model.depth=6", "state=done"][0]), ["train.*", "big"])
        self.assertEqual(set(found["name"]), {"train.loss", "big"})
        for names in ("[tb]*", "trai?.loss", []):
            self.assertEqual(len(workspace.metrics(names=names)), 0)
        self.assertTrue(found["value"].isna().any(), "1e308 times 2")

    def test_Tables(self):
        for workspace, sweep in self.sweeps():
            tables = [lines_of(text) for text in printed("table", sweep, "--format", "csv", workspace=workspace.path).split("\n\n")]
            frame = workspace.table(sweep)
            self.assertEqual(sorted(set(frame["table"])), list(range(1, len(tables) + 1)))
            for number, lines in enumerate(tables, 1):
                part = frame[frame["table"] == number]
                numbers_or_texts = [line.pop("published") for line in lines]
                self.check(part, lines)
                for value, text, line in zip(part["published"], part["published_text"], numbers_or_texts):
                    self.assertTrue(text == line if text else self.is_printed_as(value, line), (value, text, line))

    def test_TablesOfAGridFile(self):
        workspace, grid = trained()
        self.check(workspace.table(grid), lines_of(printed("table", str(grid), "--format", "csv", workspace=workspace.path)), but=["published"])
        self.check(workspace.table(layout=grid), lines_of(printed("table", "--format", "csv", workspace=workspace.path)), but=["published"])

    def test_ValuesBySeed(self):
        workspace, _ = trained()
        runs = workspace.runs()
        scores = dict(zip(zip(runs["mean"], runs["model.place"], runs["model.depth"], runs["train.lr"], runs["seed"]), runs["test.score"]))
        table = workspace.table()
        cells = table[(table["score"] == "test.score") & (table["n"] > 0)].explode(["seeds", "values"])
        self.assertEqual(len(cells), 48)
        for cell in cells.to_dict("records"):
            key = (cell["mean:2"], cell["model.place"], cell["model.depth"], cell["train.lr"], cell["seeds"])
            self.assertEqual(cell["values"], scores[key])
        self.assertEqual(table["seeds"][table["n"] > 0].iloc[0], [2, 7, 10])

    def test_Claims(self):
        import pandas

        checked = 0
        for workspace, sweep in self.sweeps():
            lines = lines_of(printed("check-table", sweep, "--format", "csv", workspace=workspace.path))
            if not lines:
                with self.assertRaisesRegex(tearless.Error, "there is nothing to check"):
                    workspace.claims(sweep)
                continue
            checked += 1
            frame = workspace.claims(sweep)
            for name in ("n", "caveats"):
                frame[name] = [", ".join(map(str, values)) for values in frame[name]]
            self.check(frame, lines, but=["place"])
            for row, line in zip(frame.to_dict("records"), lines):
                axes = sorted(set(row) - {*lines[0]})
                self.assertEqual(", ".join(f"{axis}={row[axis]}" for axis in axes if not pandas.isna(row[axis])), line["place"])
        self.assertGreater(checked, 3)
        self.assertGreater(len(trained()[0].claims()), len(json.loads(printed("check-table", "--format", "json", workspace=trained()[0].path))["claims"]))

    def test_Figures(self):
        drawn = 0
        for workspace, sweep in self.sweeps():
            lines = lines_of(printed("figure", sweep, "--format", "csv", workspace=workspace.path))
            if not lines:
                with self.assertRaisesRegex(tearless.Error, "has no figure"):
                    workspace.figure(sweep)
                continue
            drawn += 1
            for line in lines:
                line["diverged"] = line["diverged"].replace("nan", "")  # runs == 0 says that a run diverged
            self.check(workspace.figure(sweep), lines)
        self.assertGreater(drawn, 3)

    def test_OneRun(self):
        for workspace in self.workspaces():
            run = workspace.runs("all")["run"][0]
            line, = lines_of(printed("runs", run, "--csv", "--scores", "*,measured.*,*.measured.*", workspace=workspace.path))
            result = workspace.result(run)
            for name, kind, value in zip(result["name"], result["kind"], result["value"]):
                self.assertEqual(value, float(line[name + ":2" if name in ("step", "updates") else name]))
                self.assertEqual(kind, "measured" if "measured." in name else "score")
            scores = lines_of(printed("sql", f"SELECT name FROM scores_view WHERE run = '{run}'", "--csv", workspace=workspace.path))
            self.assertEqual(sorted(result["name"][result["kind"] == "score"]), sorted(line["name"] for line in scores))
            self.assertEqual(result.attrs["state"], line["state"])
        self.assertIn("measured.seconds", list(result["name"]))

    def test_Sweeps(self):
        for workspace in self.workspaces():
            for line in lines_of(printed("sql", "SELECT * FROM sweeps_view", "--csv", workspace=workspace.path)):
                sweep = workspace.sweeps().set_index("sweep").loc[line["id"]]
                self.assertEqual((sweep["name"], sweep["runs"], sweep["grid_file"]), (line["name"], int(line["runs"]), line["grid_file"]))
                self.assertEqual(sweep["submitted_at"].strftime("%Y-%m-%dT%H:%M:%SZ"), line["submitted_at"])
                states = workspace.runs(line["id"], derived=True, by="sweep")["state"].value_counts()
                for state, runs in states.items():
                    self.assertEqual(sweep[state], runs)
                self.assertEqual(sum(states), sweep["runs"])


@needs_pandas
class Types(Case):
    def test_AreTheSameWhateverAColumnHolds(self):
        of_many, of_none = trained()[0].runs("all"), trained()[0].runs("done", where="test.score > 1e9")
        self.assertEqual(len(of_none), 0)
        for name in of_none.columns:
            self.assertEqual(of_none[name].dtype, of_many[name].dtype, name)
        self.assertEqual([str(of_many[name].dtype) for name in ("run", "seed", "step", "mixed", "test.acc")],
                         ["string", "Int64", "int64", "bool", "float64"])
        self.assertEqual(list(of_many["class"].unique()), [""], "a text that is not there is empty: != of a missing one would be false")

    def test_LabelsAreNumbersWhereAllOfThemAre(self):
        runs = trained()[0].runs()
        self.assertEqual({name: str(runs[name].dtype) for name in ("model.place", "model.depth", "train.lr", "mean")},
                         {"model.place": "string", "model.depth": "Int64", "train.lr": "float64", "mean": "string"})
        self.assertEqual(set(runs["mean"]), {"007", "1", "2"})
        self.assertEqual(set(runs["model.place"]), {"None", 'a, "b"'})

    def test_LabelsThatWouldBeOneNumberAreText(self):
        import tearless.frames

        self.assertEqual(str(tearless.frames.labels(["1.1", "1.10"]).dtype), "string")
        self.assertEqual(str(tearless.frames.labels(["1", None, "2"]).dtype), "Int64")
        self.assertEqual(str(tearless.frames.labels(["1", "0.5"]).dtype), "float64")

    def test_Settings(self):
        import tearless.frames

        runs = trained()[0].runs(settings=True)
        self.assertEqual(str(runs["model.flag"].dtype), "boolean")
        self.assertEqual(runs["model.flag"].isna().sum(), 24)
        mixed = tearless.frames.settings([1, "a", [1, "é"], None])
        self.assertEqual(mixed.tolist()[:3], ["1", "a", '[1, "é"]'])

    def test_ColumnsOfOneName(self):
        table, runs = trained()[0].table(), trained()[0].runs()
        self.assertEqual(set(table["mean:2"]), {"007", "1", "2"})
        self.assertEqual(list(table.columns[:6]), ["table", "mean:2", "model.place", "model.depth", "train.lr", "score"])
        self.assertEqual(runs["updates:2"].max(), 4)


@needs_pandas
class Pictures(Case):
    def test_ATableShowsAsInPrint(self):
        import pandas

        workspace, _ = trained()
        table = workspace.table()
        self.assertEqual(table._repr_html_(), printed("table", "--format", "html", workspace=workspace.path))
        self.assertIn("<caption>Odd</caption>", table._repr_html_())
        self.assertIs(type(table[table["n"] > 0]), pandas.DataFrame, "a part of it shows as data")
        self.assertNotIn("<caption>", table.head(2)._repr_html_())
        self.assertIn("seeds (7, 2, 10)", table.attrs["notes"][0][0])

    def test_AFigureShowsAsSvg(self):
        workspace, _ = trained()
        figure = workspace.figure()
        self.assertEqual(list(figure.svgs()), ["depth", "figure-1"])
        self.assertEqual(figure._repr_html_().count('<svg xmlns='), 2)
        self.assertIsNone(figure._repr_svg_(), "there are two")
        one = workspace.figure(only="depth")
        self.assertTrue(one._repr_svg_().startswith("<svg "))
        self.assertEqual(set(one["figure"]), {"depth"})


@needs_pandas
class Parquet(Case):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "parquet"

    def test_HasRunsAndMetrics(self):
        import pandas

        for workspace in (trained()[0], tearless.open(ARCHIVES[-1])):
            workspace.to_parquet(self.folder)
            self.assertEqual(sorted(os.listdir(self.folder)), ["metrics.parquet", "runs.parquet"])
            runs, metrics = (pandas.read_parquet(self.folder / f"{name}.parquet") for name in ("runs", "metrics"))
            pandas.testing.assert_frame_equal(runs, workspace.runs("all", settings=True))
            pandas.testing.assert_frame_equal(metrics, workspace.metrics("all"))
            self.assertLessEqual(set(metrics["run"]), set(runs["run"]))

    def test_IsReplacedWhenItIsWhole(self):
        workspace, _ = trained()
        workspace.to_parquet(self.folder, names="train.loss")
        before = {file.name: file.read_bytes() for file in self.folder.iterdir()}

        def broken(*_):
            yield workspace.metrics()
            raise tearless.Error("lost on the way")

        workspace_broken = tearless.open(workspace.path)
        workspace_broken._metrics = broken
        with self.assertRaisesRegex(tearless.Error, "lost on the way"):
            workspace_broken.to_parquet(self.folder)
        self.assertEqual(before, {file.name: file.read_bytes() for file in self.folder.iterdir()})

    def test_InPartsIsTheSame(self):
        import pandas
        import tearless.results

        workspace, _ = trained()
        with unittest.mock.patch.object(tearless.results, "RUNS_AT_ONCE", 7):
            workspace.to_parquet(self.folder)
        pandas.testing.assert_frame_equal(pandas.read_parquet(self.folder / "metrics.parquet"), workspace.metrics("all"))


@needs_pandas
class Training(Case):
    def setUp(self):
        scratch = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, scratch, ignore_errors=True)
        self.results, self.grid = scratch / "results", scratch / "small.toml"
        self.addCleanup(printed, "stop", "--now", workspace=self.results)
        self.grid.write_text('title = "Small"\nseeds = 2\n[axis]\n"model.init" = ["small", "large, \\"x\\""]\n"train.lr" = [0.1, 0.01]\n')
        self.said = io.StringIO()
        redirected = contextlib.redirect_stderr(self.said)
        redirected.__enter__()
        self.addCleanup(redirected.__exit__, None, None, None)

    def test_APlanIsOfEachRun(self):
        plan = tearless.plan(self.grid, workspace=self.results)
        self.assertEqual(list(plan.columns), ["grid", "run", "model.init", "train.lr", "seed", "plan", "state", "updates", "parameters"])
        self.assertEqual(list(plan["plan"]), ["to_run"] * 8)
        self.assertEqual(plan.attrs["counts"]["to_run"], 8)
        self.assertFalse(self.results.exists())

    def test_ASubmissionIsWaitedFor(self):
        submission = tearless.submit(self.grid, workspace=self.results, only={"model.init": ['large, "x"'], "train.lr": 1e-1},
                                     set={"model.text": 'a "quoted" é', "fake.updates": 3}, jobs=2, tag=["one", "two"])
        self.assertTrue(submission.wait())
        runs = submission.workspace.runs(submission.sweeps, settings=False)
        self.assertEqual((set(runs["model.init"]), set(runs["train.lr"]), set(runs["updates"]), len(runs)), ({'large, "x"'}, {0.1}, {3}, 2))
        text = submission.workspace.sql("SELECT DISTINCT value FROM settings_view WHERE key = 'model.text'")["value"]
        self.assertEqual(list(text), ['"a \\"quoted\\" é"'])
        self.assertIn("a new workspace", self.said.getvalue())
        self.assertEqual(len(submission.workspace.runs(where="tag = two")), 2)

    def test_ARunThatFails(self):
        submission = tearless.submit(self.grid, workspace=self.results, set={"fake.behaviour": "refuse_late"})
        self.assertFalse(submission.wait())
        self.assertIn("settings", set(submission.workspace.runs()["class"]))
        self.assertEqual(submission.workspace.table().iloc[0]["state"], "failed")

    def processes(self, command):
        """Those of this test's workspace that the command line started."""
        lines = []
        for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                lines.append(file.read_bytes().split(b"\0"))
        return [line for line in lines if command.encode() in line and str(self.results).encode() in line]

    def test_CtrlCEndsTheWaitingAlone(self):
        submission = tearless.submit(self.grid, workspace=self.results, set={"fake.updates": 1000, "fake.sleep_ms": 100})
        waiting = subprocess.Popen([sys.executable, "-c", f"import tearless\nprint(flush=True)\ntearless.wait(workspace={str(self.results)!r})"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        waiting.stdout.readline()
        while not self.processes("wait"):
            self.assertIsNone(waiting.poll())
            time.sleep(0.05)
        waiting.send_signal(signal.SIGINT)
        self.assertIn(b"KeyboardInterrupt", waiting.communicate(timeout=60)[1])
        self.assertIn("running", set(submission.workspace.runs()["state"]))
        for _ in range(600):  # it was told to end, and nobody waited for that
            if not self.processes("wait"):
                return
            time.sleep(0.1)
        self.fail("the command still waits")


class Errors(Case):
    @needs_pandas
    def test_AreTheProgramsSentence(self):
        empty = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, empty)
        workspace, grid = trained()
        bad = grid.with_name("bad.toml")
        bad.write_text(GRID.replace('"train.lr" ', '"trian.lr" ').replace("train.lr", "trian.lr"))
        for what, sentence in {
                lambda: tearless.open(empty).runs(): f"there is no database in {empty}",
                lambda: tearless.open(empty + "/no.tar.gz").table(): "no.tar.gz: there is no such archive",
                lambda: workspace.runs("nonsense"): '"nonsense" is no sweep, run, state, place or axis=label',
                lambda: workspace.runs([]): "an empty list names no sweep or run",
                lambda: workspace.runs("--json"): '"--json" is no sweep',
                lambda: workspace.table("gone.toml"): "gone.toml",
                lambda: workspace.result("last"): "last means 72 runs, and result() is about one",
                lambda: workspace.sql("SELECT * FROM runs_vew"): "no such table: runs_vew",
                lambda: workspace.sql("DELETE FROM runs"): "",
                lambda: tearless.plan(bad): r'unknown setting "trian.lr"',
                lambda: tearless.submit(bad, workspace=empty + "/w"): r'unknown setting "trian.lr"',
                lambda: tearless.submit(grid, workspace=empty + "/w", nonsense=1): 'tearless submit has no option "--nonsense"'}.items():
            with self.subTest(sentence=sentence), self.assertRaises(tearless.Error) as raised:
                what()
            self.assertIn(sentence, str(raised.exception))
            self.assertNotIn("tearless: ", str(raised.exception))
        self.assertEqual(os.listdir(empty), [])

    @needs_pandas
    def test_APathIsThatOfTheFolderThen(self):
        relative = tearless.open(os.path.relpath(ARCHIVES[-1]))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir("/")
        self.assertEqual(len(relative.sweeps()), 1)

    @needs_pandas
    def test_ReadingChangesNothing(self):
        def stamps():
            return {str(file): (file.stat().st_mtime_ns, file.stat().st_size) for file in (ROOT / "results").rglob("*")}

        before = stamps()
        workspace = tearless.open(ARCHIVES[-1])
        workspace.runs(), workspace.table(), workspace.sweeps()
        with self.assertRaises(tearless.Error):
            workspace.submit(trained()[1])
        self.assertEqual(before, stamps())

    def bare(self, code, **environment):
        """What a Python without packages prints."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "TEARLESS_"))}
        return subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r})\n{code}"], text=True,
                              env={**inherited, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/").stdout.strip()

    def test_WithoutPandas(self):
        reading = "import tearless\ntry: tearless.open('x').runs()\nexcept tearless.Error as error: print(error)"
        self.assertEqual(self.bare(reading), "results are read into pandas, which is not installed here: pip install pandas")

    def test_WithoutTheProgram(self):
        waiting = "import tearless\ntry: tearless.wait()\nexcept tearless.Error as error: print(error)"
        self.assertRegex(self.bare(waiting, PATH="/nowhere"), "there is no program tearless in .*, nor on PATH: pip install tearless")
        self.assertEqual(self.bare(waiting, TEARLESS_PROGRAM="/nowhere"), "cannot start /nowhere: No such file or directory")

    def test_ImportingItImportsNoOtherPackage(self):
        names = "import tearless; print([name for name in sys.modules if name.split('.')[0] in ('pandas', 'numpy', 'pyarrow')])"
        self.assertEqual(self.bare(names), "[]")
        self.assertEqual(self.bare("import tearless\nprint(tearless.open, tearless.Workspace.__name__)").split()[-1], "Workspace")
        self.assertIn("module 'tearless' has no attribute 'runs_of'", self.bare("import tearless\ntearless.runs_of"))


class Written(Case):
    @needs_pandas
    def test_TypesAreStrict(self):
        script = pathlib.Path(tempfile.mkdtemp()) / "reader.py"
        self.addCleanup(shutil.rmtree, script.parent)
        script.write_text("import tearless\nruns = tearless.open('results').runs('last', where=['state = done'])\n"
                          "seconds: str = tearless.submit('a.toml', only={'seed': 1}, jobs=2).sweeps[0]\nreveal_type(runs)\n")
        checked = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "tearless", script], cwd=ROOT / "python",
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertRegex(checked.stdout, r'Revealed type is "pandas.*DataFrame"')
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def run_code(self, blocks, results):
        """Runs code as one script, without warnings, in a folder docs/ beside the repository's results/. `results`: its own ones."""
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        self.addCleanup(printed, "stop", workspace=folder / "docs" / "results")
        (folder / "docs").mkdir()
        for place, source in {"results": ROOT / "results", "docs/results": results, "docs/grids": ROOT / "grids"}.items():
            if source:
                (folder / place).symlink_to(source)
        (folder / "docs" / "script.py").write_text("\n".join(blocks), encoding="utf-8")
        paths = [str(ROOT / "python"), os.environ["PYTHONPATH"]]
        ran = subprocess.run([sys.executable, "-W", "error", "script.py"], cwd=folder / "docs", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "FAKE_SCORES": SCORES})
        self.assertEqual(ran.returncode, 0, ran.stdout)
        return ran.stdout

    @needs_pandas
    def test_TheNotebookRuns(self):
        notebook = json.loads((ROOT / "docs" / "results.ipynb").read_text(encoding="utf-8"))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertTrue(all(not cell["outputs"] and cell["execution_count"] is None for cell in cells), "its outputs are not kept")
        said = self.run_code(["".join(cell["source"]) for cell in cells], None)
        self.assertIn("18.18 BLEU [0.39, 35.98]", said)
        self.assertIn("(7488, 4)", said)

    @needs_pandas
    def test_ThePageRuns(self):
        page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
        results = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, results, ignore_errors=True)
        with unittest.mock.patch.dict(os.environ, FAKE_SCORES=SCORES):
            printed("run", str(ROOT / "grids" / "demo.toml"), workspace=results)
        blocks = re.findall(r"(?<!-->\n)```python\n(.*?)```", page, re.DOTALL)  # without those that say that they are not run
        self.assertEqual(len(blocks), 2)
        said = self.run_code(blocks, results)
        self.assertRegex(said, r"pre +200 updates +14.8050")
        self.assertRegex(said, r"\('demo-[0-9a-f]+',\) True")
        self.assertEqual(said.count("done"), 8)

    def test_ThePageNamesEachMethod(self):
        page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
        for name in [*filter(lambda name: not name.startswith("_"), dir(tearless.Workspace)), "open", "Error"]:
            self.assertRegex(page, rf"\b{name}\b")


if __name__ == "__main__":
    sys.exit(junit_report.run("Python", *sys.argv[1:]))
