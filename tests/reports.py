#!/usr/bin/env python3
"""reports.py [--bin FOLDER] [--only NAME]… [REPORT]: small cases of other people's files and bug reports, each a folder
of field4 or field5 in $TEARLESS_SHARED (default: ../shared beside the checkout) with a README: command, expected, got.

FOLDER: where the programs are; default: $TEARLESS_BIN, else build/bin. NAME: such a folder. REPORT: results as
JUnit XML. Prints `ok` or `FAIL` for each case, of the latter with what was typed and seen; the exit code is 1 if any
fails.
"""

import argparse
import concurrent.futures
import contextlib
import csv
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))
import junit_report  # noqa: E402

SHARED = pathlib.Path(os.environ.get("TEARLESS_SHARED", ROOT.parent / "shared"))
FIELDS = [SHARED / "field4", SHARED / "field5"]
REPORTS = []


class Report(typing.NamedTuple):
    name: str  # of the folder
    claim: typing.Callable  # takes a Case
    engine: bool


def field_of(name):
    """The field that has the case; None if none has."""
    return next((field for field in FIELDS if (field / name).exists()), None)


def report(name, engine=False):
    """Says which folder a claim is about, and whether it needs tearless-engine."""
    def add(claim):
        REPORTS.append(Report(name, claim, engine))
        return claim

    return add


class Wrong(Exception):
    """What was seen instead."""


class Done(typing.NamedTuple):
    code: int
    out: str
    err: str

    @property
    def text(self):
        return self.out + self.err


class Case:
    """A copy of a report's folder, with a home of its own, in which commands are typed."""

    def __init__(self, name, programs, scratch):
        self.scratch, self.folder, self.typed = scratch, scratch / name, ""
        field = field_of(name)
        shutil.copytree(field / name, self.folder)
        for program in field.glob("*.py"):
            shutil.copy(program, scratch)
        for path in [self.folder, *self.folder.iterdir()]:
            path.chmod(path.stat().st_mode | 0o200)
        (self.folder / "tools").symlink_to(ROOT / "tools")
        self.home = scratch / "home"
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("TEARLESS_", "XDG_"))}
        self.environment |= {"HOME": str(self.home), "PATH": f"{programs}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        for kind in ("CACHE", "CONFIG", "DATA", "STATE"):
            self.environment[f"XDG_{kind}_HOME"] = str(self.home / kind.lower())
        self.home.mkdir()

    def run(self, command, timeout=120):
        """What a shell does with the command; a process that it leaves behind may keep the outputs open."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            shell = subprocess.Popen(["bash", "-o", "pipefail", "-c", command], cwd=self.folder, env=self.environment,
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
            try:
                code = shell.wait(timeout)
            except subprocess.TimeoutExpired:
                os.killpg(shell.pid, signal.SIGKILL)
                code = shell.wait()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read())
        done = Done(code, *texts)
        shown = done.text if len(done.text) <= 2000 else done.text[:2000] + "…\n"
        self.typed += f"$ {command}\n{shown}" + (f"(exit code {code})\n" if code else "")
        self.expect(code != -signal.SIGKILL, f"`{command}` has not ended after {timeout} s")
        return done

    def ok(self, command, **options):
        """Standard output of a command that succeeds."""
        done = self.run(command, **options)
        self.expect(done.code == 0, f"`{command}` ends with {done.code}")
        return done.out

    def refused(self, command):
        """The one line of a command that fails."""
        done = self.run(command)
        self.expect(done.code != 0 and done.text.count("\n") == 1, f"`{command}` is not refused with one sentence")
        return done.text

    def expect(self, holds, otherwise):
        if not holds:
            raise Wrong(otherwise)

    def expect_match(self, pattern, text):
        self.expect(re.search(pattern, text, re.MULTILINE), f"nothing printed is like {pattern}")

    def table(self, grid):
        """The cells of a grid's table: labels of the row, score → what JSON says of the cell."""
        table = json.loads(self.ok(f"tearless table {grid} --workspace w --format json"))
        return {(*row["labels"].values(), column["score"]): cell
                for row in table["rows"] for column, cell in zip(table["columns"], row["cells"], strict=True)}

    def means(self, grid):
        return {labels: cell["mean"] for labels, cell in self.table(grid).items()}

    def runs(self, name):
        """The files of that name in the folders of the runs."""
        return sorted(self.folder.glob(f"w/runs/*/{name}"))

    def expect_untrained(self):
        trained = [file for file in self.runs("metrics.jsonl") if file.stat().st_size > 0]
        self.expect(not trained, "a run was trained before")

    def edit(self, name, before, after):
        file = self.folder / name
        text = file.read_text()
        self.expect(text.count(before) == 1, f"{name} has no {before!r}: the case is another one")
        file.write_text(text.replace(before, after))

    def end(self):
        """Ends the services that commands have started, and whatever else is left."""
        if (self.folder / "w").exists():
            with contextlib.suppress(Wrong):
                self.run("tearless stop --now --wait --workspace w", timeout=20)
        mark = f"HOME={self.home}".encode()
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    os.kill(int(folder.name), signal.SIGKILL)


def rows_of(text):
    """A CSV text as dicts; a name that two columns have stands for the later one, as in other readers."""
    return list(csv.DictReader(io.StringIO(text)))


# --- what tables and lists print ------------------------------------------------------------------


@report("same_scores")
def equal_scores_have_no_spread(case):
    case.ok("tearless run grid.toml --workspace w")
    text = case.ok("tearless table grid.toml --workspace w")
    case.expect_match(r"^rule based +27\.70 ± 0\.00$", text)
    case.expect_match(r"^dictionary +0\.10 ± 0\.00$", text)
    case.expect_match(r"^trained +28\.23 ± 0\.25$", text)
    cells = case.table("grid.toml")
    for label, value in (("rule based", 27.7), ("dictionary", 0.1)):
        cell = cells[label, "test.bleu"]
        case.expect((cell["mean"], cell["spread"]) == (value, 0), f"{label}: {cell['mean']!r} ± {cell['spread']!r}")


def mean_and_spread(text):
    """The numbers of 2.5e-08 ± 1.0e-09, also as $2.5\\times10^{-8}$ or 2.5 × 10⁻⁸, and the digits of the spread."""
    text = text.replace("$", "").replace("{", "").replace("}", "")
    text = re.sub(r" *(\\times|\\cdot|×|·) *10\^?([-−⁻]?[0-9⁰¹²³⁴-⁹]+)", r"e\2", text)
    text = text.translate(str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789"))
    found = re.search(r"([0-9.]+(?:e-?[0-9]+)?) *(?:±|\\pm) *([0-9.]+(?:e-?[0-9]+)?)", text)
    if not found:
        return None
    return float(found[1]), float(found[2]), len(found[2].split("e")[0].replace(".", "").lstrip("0"))


@report("small_loss")
def values_below_a_millionth_are_printed_with_their_digits(case):
    case.ok("tearless run grid.toml --workspace w")
    for form in ("text", "latex"):
        lines = case.ok(f"tearless table grid.toml --workspace w --format {form}").splitlines()
        for label, mean, spread in (("A", 2.5e-8, 1e-9), ("B", 1.2e-7, 1e-8)):
            seen = [mean_and_spread(line) for line in lines if re.match(rf"{label}\b", line)]
            case.expect(len(seen) == 1 and seen[0], f"{form}: {label} has not one cell with mean and spread")
            seen_mean, seen_spread, digits = seen[0]
            near = abs(seen_mean / mean - 1) < 1e-6 and abs(seen_spread / spread - 1) < 1e-6
            case.expect(near and digits >= 2, f"{form}: {label} is {seen_mean} ± {seen_spread}, not {mean} ± {spread}")


@report("minus_zero")
def what_rounds_to_zero_has_no_sign(case):
    case.ok("tearless run grid.toml --workspace w")
    case.expect_match(r"^0\.1 +0\.00 ± 0\.01$", case.ok("tearless table grid.toml --workspace w"))


@report("null_score")
def a_done_run_without_the_score_is_named(case):
    case.ok("tearless run grid.toml --workspace w")
    text = case.ok("tearless table grid.toml --workspace w")
    case.expect_match(r"^0\.1 +28\.1[78] ± 0\.17\b", text)  # 28.175 is a tie
    case.expect_match(r"1/5 (no score|null)|\b(1|one)( of 5)? runs?\b.*\b(null|without|no score)\b", text)
    (row,) = rows_of(case.ok("tearless table grid.toml --workspace w --format csv"))
    case.expect((row["expected"], row["n"]) == ("5", "4"), f"expected = {row['expected']}, n = {row['n']}")
    counts = {name: int(value) for name, value in row.items() if value.isdigit() and name not in ("expected", "n")}
    case.expect(sum(counts.values()) == 1, f"the runs that are not in the mean do not add up to 1: {counts}")
    wrong = {name for name in ("diverged", "below", "failed", "missing", "stale", "mixed") if counts[name]}
    case.expect(not wrong, f"a run that is done counts as {wrong}")


@report("nan_in_scores")
def one_nan_does_not_cost_the_other_score(case):
    done = case.run("tearless run grid.toml --workspace w")
    if done.code != 0:
        case.expect_match(r"write null.*\bNaN is no JSON|\bNaN is no JSON.*write null", done.text)
        return
    means = case.means("grid.toml")
    case.expect(means == {("0.1", "test.bleu"): None, ("0.1", "test.acc"): 50}, f"the table has {means}")


@report("csv_twice")
def columns_of_a_csv_have_distinct_names(case):
    case.ok("tearless run grid.toml --workspace w")
    text = case.ok("tearless table grid.toml --workspace w --format csv")
    header = text.splitlines()[0].split(",")
    twice = sorted({name for name in header if header.count(name) > 1})
    case.expect(not twice, f"two columns are called {', '.join(twice)}")
    seen = [(row.get("score:2"), row.get("mean:2"), row["score"], row["mean"]) for row in rows_of(text)]
    expected = [(score, mean, "test.bleu", "1") for score in ("dot", "additive") for mean in ("0", "1")]
    case.expect(seen == expected, f"score:2, mean:2, score and mean are {seen}")


@report("minus_label")
def labels_come_back_from_a_csv_as_they_were(case):
    case.ok("tearless run grid.toml --workspace w")
    for command in ("runs grid.toml --csv", "table grid.toml --format csv"):
        labels = {row["system"] for row in rows_of(case.ok(f"tearless {command} --workspace w"))}
        case.expect(labels == {"full", "- warm-up"}, f"{command}: the labels are {labels}")


# --- what a grid asks for -------------------------------------------------------------------------


@report("inf_axis")
def inf_and_nan_reach_the_program_or_are_refused(case):
    first = case.run("tearless run grid.toml --workspace w")
    if first.code != 0:
        case.expect_match(r"grid\.toml:5: .*\binf\b", first.text)
        case.expect_match(r"nan\.toml:5: .*\bnan\b", case.refused("tearless run nan.toml --workspace w"))
        case.expect(not case.runs("run.toml"), "something was trained")
        return
    case.ok("tearless run nan.toml --workspace w")
    texts = [file.read_text() for file in case.runs("run.toml")]
    values = sorted(re.search(r"^clip_norm = (.*)$", text, re.MULTILINE)[1].strip('"').lower() for text in texts)
    case.expect(values == ["1.0", "inf", "nan"], f"the runs have clip_norm {values}")
    means = case.means("nan.toml")
    case.expect(means == {("nan", "test.bleu"): 20}, f"the table of nan.toml has {means}")


@report("typed_number")
def a_point_is_found_in_the_spelling_of_the_file(case):
    for axis, typed in (("lr", "5e-4"), ("wd", "1e-7")):
        plan = json.loads(case.ok(f"tearless plan grid.toml --only {axis}={typed} --workspace w --json"))
        case.expect(plan["counts"]["to_run"] == 2, f"{plan['counts']['to_run']} runs in place of 2")
        (points,) = (each["points"] for each in plan["axes"] if each["name"] == axis)
        labels = [point["label"] for point in points if point["counts"]["to_run"] > 0]
        case.expect([float(label) for label in labels] == [float(typed)], f"the points of {axis} are {labels}")


@report("full_model_row")
def a_point_that_sets_nothing_is_the_base(case):
    plan = json.loads(case.ok("tearless plan grid.toml --workspace w --json"))
    labels = [point["label"] for point in plan["axes"][0]["points"]]
    case.expect(labels == ["full", "- warm-up"], f"the points are {labels}")
    case.ok("tearless run grid.toml --workspace w")
    texts = sorted(re.search(r"^warmup = .*$", file.read_text(), re.MULTILINE)[0] for file in case.runs("run.toml"))
    case.expect(texts == ["warmup = 0", "warmup = 4000"], f"the runs have {texts}")


@report("list_axis")
def lists_and_ranges_are_values(case):
    def points_of(grid):
        plan = json.loads(case.ok(f"tearless plan {grid} --workspace w --json"))
        return [point["label"] for point in plan["axes"][0]["points"]]

    lists = points_of("grid.toml")
    case.expect([json.loads(label) for label in lists] == [[16], [32, 16], [64, 32, 16]], f"the points are {lists}")
    values = [float(label) for label in points_of("range.toml")]
    ratios = [b / a for a, b in zip(values, values[1:])]
    case.expect(len(values) == 5 and values[0] == 1e-5 and values[-1] == 1e-1, f"the values are {values}")
    case.expect(all(abs(ratio - 10) < 1e-4 for ratio in ratios), f"the ratios are {ratios}")


@report("grid_TOML")
def the_next_command_works_as_printed(case):
    printed = case.ok("tearless run grid.TOML --workspace w")
    next_command = re.search(r"^Next: (tearless table .*)$", printed, re.MULTILINE)
    case.expect(next_command, "`run` names no table as the next command")
    text = case.ok(next_command[1])
    for label in ("0.1", "0.2"):
        case.expect_match(rf"^{re.escape(label)} +1\.00$", text)
    case.expect_match(r"\bdone\b", case.ok("tearless explain grid.TOML lr=0.1 --workspace w"))


# --- which program trains, and where --------------------------------------------------------------


@report("two_programs")
def runs_of_another_program_do_not_count_as_ones_own(case):
    case.ok("cp ../prog.py a.py; chmod +x a.py; cp a.py b.py; "
            """sed -i 's/float(v)/99.0/; s/"prog", "version": "1"/"fork", "version": "2"/' b.py""")
    case.ok("tearless run a.toml --workspace w")
    case.ok("tearless run b.toml --workspace w")
    text = case.ok("tearless table b.toml --workspace w")
    own = set(case.means("b.toml").values()) == {99}
    said = re.search(r"20\.50 ± 0\.71[^ \w]", text) and re.search(r"\b(a\.py|prog 1|another program)\b", text)
    case.expect(own or said, "the table of b.py shows scores of a.py, and does not say so")
    means = set(case.means("a.toml").values())
    case.expect(means == {20.5}, f"the table of a.py shows {means}")


@report("env_of_first")
def a_sweep_has_the_environment_of_its_submission_or_says_so(case):
    case.ok("""sed 's/float(v)/float(os.environ["BRANCH"])/' ../prog.py > env.py; chmod +x env.py""")
    case.ok("BRANCH=1 tearless run one.toml --workspace w")
    second = case.run("BRANCH=2 tearless run two.toml --workspace w")
    means = [*case.means("one.toml").values(), *case.means("two.toml").values()]
    said = means == [1, 1] and re.search(r"^.*\bBRANCH\b.*$", second.text, re.MULTILINE)
    case.expect(second.code == 0 and (means == [1, 2] or said), f"the means are {means}, and nothing is said of BRANCH")


@report("program_with_gpus")
def a_gpu_is_what_the_driver_or_the_program_names(case):
    case.ok("cp ../prog.py gpu.py; chmod +x gpu.py; "
            """sed -i 's/"device": "cpu"/"device": "cuda"/; s/"devices": \\[\\]/"devices": [{"kind": "cuda", """
            """"uuid": "GPU-1", "name": "x", "memory_bytes": 25769803776}]/' gpu.py""")
    done = case.run("tearless run grid.toml --workspace w")
    if case.runs("DONE"):
        case.expect(done.code == 0 and case.means("grid.toml") == {("0.1", "test.bleu"): 20}, "the run has no result")
    else:
        case.expect_match(r"\bheld: .*\b(driver\b.*\bno GPU\b|no NVIDIA driver\b)", done.text)


@report("monitor_left_behind")
def a_run_ends_with_its_program(case):
    # Nobody waits an hour: a `run` that returns has not waited for the monitor.
    case.edit("train.sh", "setsid sleep 25", "setsid sleep 3600")
    case.ok("tearless run grid.toml --workspace w", timeout=60)
    case.expect(len(case.runs("DONE")) == 1, "there is no DONE")
    status = case.ok("tearless status --workspace w")
    case.expect("1 done" in status and "1 running" not in status, "`status` does not say that the run is done")
    explained = case.ok("tearless explain grid.toml --workspace w")
    case.expect("attempt 1" in explained, "`explain` has no attempt 1")
    case.expect("not ended" not in explained, "`explain` says that attempt 1 has not ended")
    code = json.loads(case.runs("attempts/1/exit.json")[0].read_text())["code"]
    case.expect(code == 0, f"exit.json says {code}")


@report("banner")
def a_line_that_is_no_answer_is_shown(case):
    case.ok("""(echo '#!/usr/bin/env python3'; """
            """echo 'import sys; sys.argv[1] == "check" and print("Loading kernels with AVX2 support.")'; """
            "tail -n +2 ../prog.py) > banner.py; chmod +x banner.py")
    sentence = case.refused("tearless plan grid.toml --workspace w")
    expected = 'banner.py check printed "Loading kernels with AVX2 support."; only answers belong on standard output'
    case.expect(expected in sentence, f"the sentence is not: {expected}")


# --- text -----------------------------------------------------------------------------------------

SCORE = "tearless-engine score --metric sacrebleu"


@report("chinese", engine=True)
def text_without_spaces_is_scored_or_warned_of(case):
    done = case.run(f"{SCORE} --hypothesis hyp.zh --reference ref.zh")
    if " = 74.39 " not in done.out:
        # What the warning names must then give sacreBLEU's number.
        case.expect_match(r"\bspaces?\b", done.err)
        option = re.search(r"--\w+[ =]zh\b", done.err)
        case.expect(option, "nothing says how Chinese is scored")
        done = case.run(f"{SCORE} {option[0]} --hypothesis hyp.zh --reference ref.zh")
    case.expect(done.code == 0, f"`score` ends with {done.code}")
    case.expect_match(r"\btok:zh\b.* = 74\.39 ", done.out)


@report("gzipped_hypotheses", engine=True)
def a_compressed_file_is_read_or_named(case):
    case.ok("gzip -kf ref.en")
    done = case.run(f"{SCORE} --hypothesis ref.en.gz --reference ref.en")
    if done.code == 0:
        case.expect_match(r" = 100\.00 ", done.out)
    else:
        case.expect("ref.en.gz is compressed with gzip; unpack it with gunzip" in done.text, "the file is not named")


@report("crlf_test_set", engine=True)
def carriage_returns_at_line_ends_are_no_text(case):
    case.edit("base.toml", "epoch_updates = 1500", "epoch_updates = 200")  # the rows differ long before the end
    case.ok("./make.py")
    done = case.run("tearless run grid.toml --workspace w")
    if done.code != 0:
        case.expect_match(r"crlf/test\.(de|en)\b.*(\bCR\b|CRLF|carriage return)", done.text)
        return
    rows = {"LF": {}, "CRLF": {}}
    for (ends, score), mean in case.means("grid.toml").items():
        rows[ends][score] = mean
    case.expect(rows["LF"].get("test.bleu_13a") and rows["LF"].get("test.ppl"), f"scores are missing: {rows}")
    case.expect(rows["LF"] == rows["CRLF"], f"the rows differ: {rows}")


@report("words_with_at_at", engine=True)
def words_with_subword_marks_are_copied_or_refused(case):
    case.ok("./make.py")
    done = case.run("tearless run grid.toml --workspace w")
    if done.code == 0:
        means = case.means("grid.toml")
        case.expect(round(means["1", "test.bleu"], 2) == 100, f"the model copies, but the scores are {means}")
        return
    named = re.search(r"\b((?:train|dev|test)\.(?:de|en)):([0-9]+)\b.*\bsegmented\b", done.text)
    case.expect(named, "no sentence names file, line and the kind of text to use")
    line = (case.folder / named[1]).read_text().splitlines()[int(named[2]) - 1]
    case.expect(any(word.endswith("@@") for word in line.split()), f"{named[1]}:{named[2]} has no such word: {line}")
    case.expect_untrained()


@report("long_reference", engine=True)
def an_overlong_line_is_named_before_the_training(case):
    case.ok("./make.py")
    lines = [len(line.split()) for line in (case.folder / "test.en").read_text().splitlines()]
    words = max(lines)
    done = case.run("tearless run grid.toml --workspace w")
    case.expect(done.code != 0, "such a test set is no mistake")
    case.expect_match(rf"\btest\.en:{lines.index(words) + 1}\b.*\b({words}|{words:,}) words\b", done.text)
    case.expect_untrained()


# --- archives -------------------------------------------------------------------------------------


@report("copy_xz")
def an_archive_is_a_tar_gz_whatever_its_name_promises(case):
    case.ok("tearless run grid.toml --workspace w")
    for ending in ("tar.xz", "tar.bz2", "tar.zst", "txz"):
        case.expect_match(r"ends in \.tar\.gz", case.refused(f"tearless copy r.{ending} --workspace w"))
        case.expect(not (case.folder / f"r.{ending}").exists(), f"r.{ending} was made")


@report("repacked")
def an_archive_that_another_tar_has_packed_is_read(case):
    case.ok("tearless run grid.toml --workspace w")
    case.ok("tearless copy r.tar.gz --workspace w")
    table = case.ok("tearless table last --workspace r.tar.gz")
    case.ok("mkdir x; tar xzf r.tar.gz -C x")
    for form in ("gnu", "pax", "ustar", "oldgnu"):
        case.ok(f"rm -f again.tar.gz; tar czf again.tar.gz --format={form} -C x runs sweeps")
        case.expect(case.ok("tearless table last --workspace again.tar.gz") == table, f"{form}: another table")


# --- the grid as a language -----------------------------------------------------------------------


@report("head_dim")
def a_variable_of_the_grid_is_no_setting(case):
    done = case.run("tearless plan grid.toml --workspace w")
    case.expect(done.code == 2, "it is a setting")
    case.expect_match(r'variables = "head_dim"', done.err)
    grid = (case.folder / "grid.toml").read_text()
    (case.folder / "grid.toml").write_text('variables = "head_dim"\n' + grid)
    case.expect_match(r"^all .*4$", case.ok("tearless plan grid.toml --workspace w"))


@report("copied_text")
def texts_are_copied_and_joined(case):
    case.expect_match(r"^all .*4$", case.ok("tearless plan grid.toml --workspace w"))
    case.expect_match(r"^all .*2$", case.ok("tearless plan name.toml --workspace w"))
    case.ok("tearless run grid.toml --workspace w")
    case.ok("tearless run name.toml --workspace w")
    texts = [file.read_text() for file in case.runs("run.toml")]
    for kind in ("my_", "gym_"):
        alike = [text for text in texts if f'env.obs_filter = "{kind}' in text]
        case.expect(len(alike) == 2 and all(f'evaluation.obs_filter = "{kind}' in text for text in alike),
                    f"{kind} is not copied")
    for name in ("batch-of-1", "batch-of-3"):
        case.expect(sum(f'name = "{name}"' in text for text in texts) == 1, f"no run has the name {name}")


@report("random_search")
def a_sample_of_a_large_product_is_drawn(case):
    text = case.ok("tearless plan grid.toml --workspace w")
    case.expect_match(r"30 of 17,?810,?400", text)
    case.expect(case.ok("tearless plan grid.toml --workspace w") == text, "another sample each time")


@report("too_many_heads")
def conditions_compare(case):
    case.expect_match(r"left out .*too many heads", case.ok("tearless plan grid.toml --workspace w"))


@report("seml_override")
def a_sub_grids_own_values_of_a_common_axis_are_a_condition(case):
    case.expect_match(r"when = \{ subgrid = ", case.refused("tearless plan grid.toml --workspace w"))


@report("names_1e_3")
def a_number_in_another_spelling_is_the_same_label(case):
    case.ok("tearless run grid.toml --workspace w")
    text = case.ok("tearless table grid.toml --workspace w")
    case.expect("small" in text and "large" in text, "the names are not in the table")


# --- two sweeps -----------------------------------------------------------------------------------


def diff_of(case):
    for name in "ab":
        case.run(f"tearless run {name}.toml --workspace w")
    return json.loads(case.ok("tearless --json diff a.toml b.toml --workspace w"))


@report("equal_gains")
def seeds_that_differ_by_the_same_amount_decide_nothing(case):
    case.ok("tearless run grid.toml --workspace w")
    cells = case.table("grid.toml")
    case.expect(cells["b", "test.accuracy"]["p"] is None, "b has a p")
    case.expect(abs(cells["c", "test.accuracy"]["p"] - 0.5) < 1e-6, "c's p is not 0.5")
    claims = json.loads(case.ok("tearless --json check-table grid.toml --workspace w"))["claims"]
    case.expect([claim["verdict"] for claim in claims] == ["cannot tell"], "the claim is decided")


@report("claim_beside_an_exclusion")
def a_cell_that_is_excluded_makes_no_place_of_a_claim(case):
    case.ok("tearless run grid.toml --workspace w")
    claims = json.loads(case.ok("tearless --json check-table grid.toml --strict --workspace w"))["claims"]
    case.expect([(claim["place"], claim["verdict"]) for claim in claims] == [({"lang": "x"}, "held")], "it is not held at x alone")


@report("two_layernorms")
def two_rows_of_one_name_are_noted(case):
    case.ok("tearless run grid.toml --workspace w")
    case.expect_match(r'2 rows are called "LayerNorm": layer_norm; ln_simple', case.ok("tearless table grid.toml --workspace w"))


@report("seeds_that_end_early")
def a_line_ends_where_its_first_seed_does(case):
    case.ok("tearless run grid.toml --workspace w")
    rows = list(csv.DictReader(io.StringIO(case.ok("tearless figure grid.toml --format csv --workspace w"))))
    case.expect({row["runs"] for row in rows if float(row["x"]) <= 12} == {"3"}, "it ends before 12")
    case.expect({row["runs"] for row in rows if float(row["x"]) > 12} == {"2"}, "it does not end at 12")
    case.expect_match("the mean of 3 seeds to update 12, then of 2", case.ok("tearless figure grid.toml --workspace w"))


@report("nan_in_the_middle")
def where_a_value_is_no_number_the_run_does_not_count(case):
    for value in ("null", "NaN", "Infinity"):
        case.ok(f"sed 's/None if y != y/{value} if y != y/; s/^import hashlib/null = NaN = float(\"nan\"); "
                "Infinity = float(\"inf\"); import hashlib/' ../toy.py > t.py && chmod +x t.py && rm -rf w")
        case.ok("tearless run grid.toml --workspace w")
        rows = list(csv.DictReader(io.StringIO(case.ok("tearless figure grid.toml --format csv --workspace w"))))
        runs = {float(row["x"]): row["runs"] for row in rows}
        case.expect(runs == {u: "1" if 3 <= u <= 6 else "2" for u in range(1, 9)}, f"{value}: it has {runs}")
        case.expect_match("the mean of 2 seeds, of 1 at 4 points from update 3 to update 6", case.ok("tearless figure grid.toml --workspace w"))


@report("no_momentum")
def a_label_without_a_place_on_the_axis_is_in_no_legend(case):
    case.ok("tearless run grid.toml --workspace w")
    drawn = case.ok("tearless figure grid.toml --workspace w")
    case.expect("adam" not in drawn and "yet" not in drawn, "adam is drawn, or to come")


@report("small_archive_table", engine=True)
def a_small_archive_prints_a_table_without_its_marks(case):
    case.ok("./gen.py && tearless run grid.toml --workspace w && tearless copy s.tar.gz --small --workspace w")
    case.expect_match("no statistics of sentences", case.ok("tearless table last --workspace s.tar.gz"))


@report("diff_of_a_failed_seed")
def a_seed_that_failed_is_in_no_mean_of_the_other_sweep(case):
    found = diff_of(case)
    case.expect(len(found["cells"]) == 1, "it is not one cell")
    cell = found["cells"][0]
    case.expect(cell["means"] == [27.5, 27.5] and cell["seeds"] == [2, 3], "the means are not of the seeds of both")
    case.expect(cell["n"] == [3, 2] and cell["without_value"] == [{}, {"1": "failed"}], "the failed seed is not named")


@report("diff_of_an_added_axis")
def an_axis_of_one_sweep_alone_is_averaged_in_silence_by_nobody(case):
    for name in "ab":
        case.ok(f"tearless run {name}.toml --workspace w")
    case.expect_match(r"has the axis momentum, which a-\w+ has not", case.refused("tearless diff a.toml b.toml --workspace w"))
    for value, mean in (("0.5", 25), ("0.9", 29)):
        options = f"--where momentum={value} --workspace w"
        found = json.loads(case.ok(f"tearless --json diff a.toml b.toml {options}"))
        means = {tuple(cell["means"]) for cell in found["cells"]}
        case.expect(means == ({(25, mean)} if mean != 25 else set()), f"{value} is not 25 beside {mean}")


@report("diff_of_no_results")
def where_nothing_was_compared_nothing_is_called_equal(case):
    found = diff_of(case)
    case.expect("has a result: nothing was compared" in found["notes"][0], "it is not said")


# --- corpora of other tools -----------------------------------------------------------------------


@report("numbers_for_bytes", engine=True)
def numbers_that_stand_for_bytes_are_noticed(case):
    case.ok("python3 make.py")
    looks = r"numbers"
    case.expect_match(looks, case.run("tearless-engine prepare base.toml").text)
    case.expect_match(looks, case.run("tearless plan grid.toml --workspace w").text)
    (case.folder / "raw.toml").write_text((case.folder / "base.toml").read_text().replace('.txt"', '.txt.raw"'))
    raw = case.run("tearless-engine prepare raw.toml")
    case.expect(raw.code == 0 and "numbers" not in raw.text, "the bytes themselves are no list of numbers")


@report("missing_blank", engine=True)
def a_missing_empty_line_is_named(case):
    case.ok("python3 gen.py")
    case.expect_match(r"missing_blank\.conllu:9: .*empty line", case.run("tearless-engine prepare missing_blank.toml").text)


@report("test_without_xpos", engine=True)
def a_test_set_without_the_tags_is_refused(case):
    case.ok("python3 gen.py")
    done = case.run("tearless-engine prepare xpos_missing.toml")
    case.expect(done.code == 2, "it is taken")
    case.expect_match(r'data\.tags = "coarse"', done.text)


# --- workers --------------------------------------------------------------------------------------


@report("until_1m")
def a_worker_without_time_says_so(case):
    case.ok("tearless submit grid.toml --executor workers --workspace w")
    case.expect_match(r"--until 1m leaves no time", case.refused("tearless worker --workspace w --until 1m"))
    case.ok("tearless cancel last --workspace w")


@report("worker_hup")
def a_closed_terminal_stops_a_workers_runs(case):
    case.ok("tearless submit grid.toml --executor workers --workspace w")
    done = case.run("tearless worker --workspace w --until 1h & p=$!; "
                    "while ! ls w/runs/*/attempts/*/start.json >/dev/null 2>&1; do sleep 0.2; done; "
                    "kill -HUP $p; wait $p; echo $?")
    case.expect_match(r"ends: asked\n0$", done.out)
    case.ok("tearless cancel last --workspace w")


# --- the command ----------------------------------------------------------------------------------


def tried(each, programs):
    """A kind of result as JUnit has it ("": passed), and what was seen."""
    if not field_of(each.name):
        return "skipped", f"needs the folder {each.name} of field4 or field5 in $TEARLESS_SHARED or ../shared"
    if each.engine and not (programs / "tearless-engine").exists():
        return "skipped", "needs tearless-engine beside tearless"
    with tempfile.TemporaryDirectory(prefix="reports-", ignore_cleanup_errors=True) as scratch:
        case = Case(each.name, programs, pathlib.Path(scratch))
        try:
            each.claim(case)
        except Wrong as wrong:
            return "failure", f"{wrong}\n{case.typed}"
        except (LookupError, TypeError, ValueError) as error:  # JSON or a table that is not as it was
            return "failure", f"{type(error).__name__}: {error}\n{case.typed}"
        finally:
            case.end()
    return "", ""


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--bin", type=pathlib.Path, default=os.environ.get("TEARLESS_BIN", ROOT / "build/bin"))
    arguments.add_argument("--only", metavar="NAME", action="append", choices=[each.name for each in REPORTS])
    arguments.add_argument("report", metavar="REPORT", nargs="?")
    chosen = arguments.parse_args()
    programs = pathlib.Path(chosen.bin).resolve()
    if not (programs / "tearless").exists():
        sys.exit(f"reports: there is no tearless in {programs}; build it (make), or name its folder with --bin")

    reports = [each for each in REPORTS if not chosen.only or each.name in chosen.only]
    reports.sort(key=lambda each: not each.engine)  # the longest first
    results = []
    if not any(field.exists() for field in FIELDS):
        reason = "needs field4 and field5 in $TEARLESS_SHARED or ../shared"
        print(f"reports: nothing was tried: {reason}")
        results = [(each.name, each.claim.__name__, "skipped", reason) for each in reports]
        reports = []
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        for each, (kind, seen) in zip(reports, workers.map(lambda each: tried(each, programs), reports), strict=True):
            word = {"": "ok", "skipped": "skipped", "failure": "FAIL"}[kind]
            print(f"{word} {each.name}.{each.claim.__name__}" + (f": {seen}" if seen else ""), flush=True)
            results.append((each.name, each.claim.__name__, kind, seen.split("\n")[0]))
    if chosen.report:
        junit_report.write(chosen.report, "reports", results)
    return any(kind == "failure" for _, _, kind, _ in results)


if __name__ == "__main__":
    sys.exit(main())
