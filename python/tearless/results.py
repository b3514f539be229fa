"""A workspace, or an archive of one, as pandas DataFrames. It asks the program alone, for JSON, for CSV and by SQL on the documented views, so what
it reads is what the program prints, to the last digit; reading changes nothing. docs/python.md lists the columns."""

import importlib
import json
import os
from typing import TYPE_CHECKING, Any, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .contract import Error
from .program import call

if TYPE_CHECKING:
    from types import ModuleType

    import pandas

    from .frames import Figure, Table

Word = Union[str, "os.PathLike[str]"]
Words = Union[Word, Sequence[Word]]  # as on the command line: sweeps, runs, places, states, axis=label, grid files
Option = Union[Word, float, bool, None, Sequence[Union[Word, float]], Mapping[str, object]]

STATES = ["done", "diverged", "failed", "running", "queued", "held", "waiting_data", "cancelled"]
RUNS_AT_ONCE = 500  # in one question about metrics: what fits a command line, and memory


def _list(words: Words) -> List[str]:
    return [os.fspath(words)] if isinstance(words, (str, os.PathLike)) else [os.fspath(word) for word in words]


def _words(words: Words) -> List[str]:
    found = _list(words)
    if not found:
        raise Error('an empty list names no sweep or run; "last" is the newest sweep, "all" is all of them')
    return found


def _options(name: str, values: Sequence[str]) -> List[str]:
    return [word for value in values for word in ("--" + name, value)]


def _typed_options(options: Mapping[str, Option]) -> Iterator[str]:
    """The program's options from Python's: stall_timeout=5 is `--stall-timeout 5`, smoke=True `--smoke`, set={"train.lr": 0.1} `--set train.lr=0.1`;
    a list is one of each."""
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, Mapping):
            for key, one in value.items():
                labels = one if isinstance(one, (list, tuple)) and name != "set" else [one]
                for label in labels:
                    yield from (option, f"{key}={json.dumps(label, ensure_ascii=False) if name == 'set' else label}")
        elif value is True:
            yield option
        elif value is not None and value is not False:
            for each in [value] if isinstance(value, (str, os.PathLike, int, float)) else value:
                yield from (option, os.fspath(each) if isinstance(each, os.PathLike) else str(each))


def _frames() -> "ModuleType":
    try:
        from . import frames
    except ImportError as error:
        if error.name not in ("pandas", "numpy"):
            raise
        raise Error("results are read into pandas, which is not installed here: pip install pandas") from error
    return frames


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Submission(NamedTuple):
    """Sweeps that were submitted."""

    workspace: "Workspace"
    sweeps: Tuple[str, ...]  # their ids, words for all that reads

    def wait(self) -> bool:
        """Returns when they have ended: True if each run is done or has diverged."""
        return self.workspace.wait(self.sweeps)


class Workspace:
    """Results in a folder or an archive, as `open()` returns it. What cannot be read raises tearless.Error with the program's sentence."""

    def __init__(self, path: Optional[Word] = None) -> None:
        self.path = None if path is None else os.path.abspath(os.fspath(path))

    def __repr__(self) -> str:
        return f"tearless.open({self.path or ''!r})"

    def _call(self, *arguments: str, words: Sequence[str] = ()) -> str:
        return call([*arguments, *(["--", *words] if words else [])], self.path).text

    def _json(self, *arguments: str, words: Sequence[str] = ()) -> Any:
        return json.loads(self._call("--json", *arguments, words=words))

    # --- reading ----------------------------------------------------------------------------------------------------------
    def sweeps(self) -> "pandas.DataFrame":
        """One row a sweep, the oldest first: sweep (its id), name, title, grid_file, state, reason, priority, submitted_at, runs, and how many of these
        are in each state."""
        counts = ", ".join(f"coalesce(sum(r.state = '{state}'), 0) AS {state}" for state in STATES)
        frame: "pandas.DataFrame" = _frames().sweeps(self._json("sql", words=[
            f"SELECT s.id AS sweep, s.name, s.title, s.grid_file, s.state, s.reason, s.priority, s.submitted_at, s.runs, {counts} FROM sweeps_view s "
            "LEFT JOIN sweep_runs_view r ON r.sweep = s.id GROUP BY s.id ORDER BY s.submitted_at, s.id"]), STATES)
        return frame

    def runs(self, words: Words = "last", *, settings: bool = False, derived: bool = False, where: Words = (), scores: Optional[str] = None,
             by: str = "run") -> "pandas.DataFrame":
        """One row a run: the columns of `tearless runs --csv` and the sweep's name: what it is, how it ended, a column for each axis, score and, with
        `settings`, each setting in which the runs differ. `where`: conditions such as "test.bleu > 20". `scores`: names with commas between, in
        which * is any text, "test.*,measured.*"; default: all scores. `by`: "run", or "sweep" for a row for each sweep that has the run."""
        arguments = ["runs", "--by", by, *_options("where", _list(where)), *(["--scores", scores] if scores is not None else [])]
        arguments += ["--settings"] * settings + ["--derived"] * derived
        frame: "pandas.DataFrame" = _frames().runs(self._json(*arguments, words=_words(words)))
        return frame

    def metrics(self, runs: "Union[Words, pandas.DataFrame]" = "last", names: Words = "*") -> "pandas.DataFrame":
        """One row a metric that a run reported: run, step (updates made), name, value; NaN where it was not a number. `runs`: words, or what runs()
        returned. `names`: in which * is any text."""
        frame: "pandas.DataFrame" = _frames().joined(list(self._metrics(self._ids(runs), _list(names))))
        return frame

    def result(self, run: Word) -> "pandas.DataFrame":
        """One row a number of a run: name, kind ("score" or "measured"), value; scores of its derived runs too. `.attrs` has the rest: run, sweep,
        state, reason, labels …"""
        found = self._json("runs", "--scores", "*,measured.*,*.measured.*", words=_words(run))
        if len(found) != 1:
            raise Error(f"{os.fspath(run)} means {len(found)} runs, and result() is about one: name it by its id; runs() lists several")
        frame: "pandas.DataFrame" = _frames().result(found[0])
        return frame

    def table(self, what: Words = "last", *, layout: Optional[Word] = None, part: Words = ()) -> "Table":
        """One row a cell of a grid's tables, or of a sweep's as it was submitted: table (1, 2, …), its axes, score, mean, spread (the sample standard
        deviation), n, seeds and values … `.attrs["notes"]` has what stands below each table. In a notebook it shows as the table in print."""
        chosen = self._view("table", what, layout, part)
        answer = json.loads(self._call(*chosen[0], "--format", "json", words=chosen[1]))
        table: "Table" = _frames().table(answer, lambda: self._call(*chosen[0], "--format", "html", words=chosen[1]))
        return table

    def claims(self, what: Words = "last", *, layout: Optional[Word] = None, part: Words = ()) -> "pandas.DataFrame":
        """One row a claim and place, then one a published number with a tolerance: verdict, estimate, low and high (of `unit`), n …"""
        chosen = self._view("check-table", what, layout, part)
        frame: "pandas.DataFrame" = _frames().claims(json.loads(self._call(*chosen[0], "--format", "json", words=chosen[1])))
        return frame

    def figure(self, what: Words = "last", *, layout: Optional[Word] = None, part: Words = (), only: Words = ()) -> "Figure":
        """One row a point of a grid's figures: figure, its axes, y, x, mean, low, high, runs, source, diverged. In a notebook it shows as SVG."""
        chosen = self._view("figure", what, layout, part)
        arguments = [*chosen[0], *_options("only", _list(only)), "--format"]
        figure: "Figure" = _frames().figure(self._call(*arguments, "csv", words=chosen[1]), lambda: self._svgs(arguments, chosen[1]))
        return figure

    def sql(self, query: str) -> "pandas.DataFrame":
        """The rows of a SELECT on the views of docs/sql.md."""
        frame: "pandas.DataFrame" = _frames().rows(self._json("sql", words=[query]))
        return frame

    def to_parquet(self, folder: Word, words: Words = "all", names: Words = "*") -> None:
        """Writes FOLDER/runs.parquet, a row a run with all scores and settings, and FOLDER/metrics.parquet, a row a metric, which `run` joins: two
        files since a run has one set of scores, and thousands of metrics. A file is replaced when it is whole."""
        frames = _frames()
        runs = self.runs(words, settings=True)
        os.makedirs(folder, exist_ok=True)
        frames.write_parquet(os.path.join(folder, "runs.parquet"), iter([runs]))
        frames.write_parquet(os.path.join(folder, "metrics.parquet"), self._metrics(list(runs["run"]), _list(names)))

    def to_wandb(self, words: Words = "last", names: Words = "*", *, project: str, **init: Any) -> None:
        """Writes each run as one of Weights & Biases, by their client: with its id, labels and settings, metrics by update and scores as its summary.
        mode="offline" keeps it on this machine until `wandb sync`; `init` are other arguments of wandb.init(), such as entity and dir."""
        try:
            wandb = importlib.import_module("wandb")
        except ImportError:
            raise Error("to_wandb() needs the client of Weights & Biases: pip install wandb") from None
        for run in self._json("runs", "--settings", words=_words(words)):
            labels = {**run["coordinates"], **({} if run["seed"] is None else {"seed": run["seed"]})}  # no sweep: no seed
            title = " ".join(f"{axis}={label}" for axis, label in labels.items()) or run["run"]
            metrics = self.metrics([run["run"]], names).sort_values("step", kind="stable")
            with wandb.init(project=project, id=run["run"], name=title, group=run["name"], config={**labels, **run["settings"]}, **init) as there:
                for _, reported in metrics.groupby("step"):
                    there.log(dict(zip(reported["name"], reported["value"])), step=int(reported["step"].iloc[0]))
                there.summary.update({**run["scores"], "state": run["state"]})

    # --- training ---------------------------------------------------------------------------------------------------------
    def submit(self, grid: Words, **options: Option) -> Submission:
        """Has grids trained in the background. Options are those of `tearless submit`: only={"model.init": "small_init"}, set={"train.lr": 0.1},
        jobs=2, smoke=True."""
        answer = self._json("submit", *_typed_options(options), words=_words(grid))
        return Submission(self, tuple(sweep["id"] for sweep in answer["sweeps"]))

    def wait(self, words: Words = "last") -> bool:
        """Returns when sweeps or runs have ended: True if each run is done or has diverged."""
        return call(["wait", "--", *_words(words)], self.path).code == 0

    def plan(self, grid: Word, **options: Option) -> "pandas.DataFrame":
        """One row a run that a grid asks for: grid (its file), run, its axes, seed, plan ("to_run", "done" …), state, updates, parameters. `.attrs` has
        the counts and the estimate of time. Options are those of `tearless plan`."""
        answer = self._json("plan", *_typed_options(options), words=_words(grid))
        errors = [error for part in answer.get("parts", [answer]) for error in part["errors"]]
        if errors:
            raise Error(errors[0] + (f" (and {len(errors) - 1} more)" if errors[1:] else ""))
        frame: "pandas.DataFrame" = _frames().plan(answer)
        return frame

    # --- what several do --------------------------------------------------------------------------------------------------
    def _view(self, command: str, what: Words, layout: Optional[Word], part: Words) -> Tuple[List[str], List[str]]:
        layouts = ["--layout", os.fspath(layout)] if layout is not None else []
        return [command, *layouts, *_options("part", _list(part))], _words(what)

    def _svgs(self, arguments: Sequence[str], words: Sequence[str]) -> "dict[str, str]":
        import pathlib
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            self._call(*arguments, "svg", "--out", folder + "/", words=words)
            return {file.stem: file.read_text(encoding="utf-8") for file in sorted(pathlib.Path(folder).iterdir())}

    def _ids(self, runs: "Union[Words, pandas.DataFrame]") -> List[str]:
        listed: Any = runs
        if hasattr(runs, "columns"):
            return list(listed["run"].unique())
        return [row["run"] for row in self._json("runs", "--scores", "", words=_words(listed))]

    def _metrics(self, runs: Sequence[str], names: Sequence[str]) -> "Iterator[pandas.DataFrame]":
        globs = " OR ".join(f"name GLOB {_quoted(name.replace('[', '[[]').replace('?', '[?]'))}" for name in names) or "FALSE"
        runs = sorted(runs)
        for first in range(0, max(len(runs), 1), RUNS_AT_ONCE):
            ids = ", ".join(map(_quoted, runs[first:first + RUNS_AT_ONCE]))
            yield _frames().metrics(self._call("sql", "--csv", words=[
                f"SELECT run, step, name, value FROM metrics_view WHERE run IN ({ids}) AND ({globs}) ORDER BY run, step, name"]))


def open(path: Optional[Word] = None) -> Workspace:
    """Results to read: a workspace's folder or an archive, FILE.tar.gz; None: that of $TEARLESS_WORKSPACE, else the nearest results/ from here upwards,
    else ./results. Nothing is read, and nothing need exist, before one of its methods is called."""
    return Workspace(path)


def submit(grid: Words, workspace: Optional[Word] = None, **options: Option) -> Submission:
    """open(workspace).submit(grid, …)"""
    return open(workspace).submit(grid, **options)


def wait(words: Words = "last", workspace: Optional[Word] = None) -> bool:
    """open(workspace).wait(words)"""
    return open(workspace).wait(words)


def plan(grid: Word, workspace: Optional[Word] = None, **options: Option) -> "pandas.DataFrame":
    """open(workspace).plan(grid, …)"""
    return open(workspace).plan(grid, **options)
