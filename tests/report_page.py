#!/usr/bin/env python3
"""report_page.py [REPORT]: what a reader without this program finds in a page of `tearless report`. REPORT: results as JUnit XML."""

import base64
import hashlib
import html.parser
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))
import junit_report  # noqa: E402

BIN = pathlib.Path(os.environ.get("TEARLESS_BIN", ROOT / "build" / "bin"))
ARCHIVES = sorted((ROOT / "results").glob("*.tar.gz"))
VOID = {"meta", "br", "hr", "img", "input", "link"}
SCRIPT = "</script><script>alert(1)</script>"

# Looks at three claims, a label and a note that are markup, runs that diverge, fail, and wait for data. By seed a is above b by 1.8,
# 1.9, 2, 2.1 and 2.2, and c by -0.29, 0.01, 0.31, 0.61 and 0.91.
GRID = rf"""
title = "Norms & {SCRIPT}"
note = "a <b>note</b>"
seeds = 5
variables = ["level", "spread"]
[set]
"fake.updates" = 12
[policy.tries]
crashed = 1
[computed]
"fake.score.test.bleu" = "level + spread * (train.seed - 3)"
[[axis.s]]
label = "a <i>\"x\"</i>"
set = {{ level = 3.0, spread = 0.1 }}
[[axis.s]]
label = "b"
set = {{ level = 1.0, spread = 0.0 }}
[[axis.s]]
label = "c"
set = {{ level = 1.31, spread = 0.3 }}
[[axis.s]]
label = "d"
set = {{ level = 1.0, spread = 0.0, "fake.behaviour" = "diverge" }}
[[axis.s]]
label = "e"
set = {{ level = 1.0, spread = 0.0, "fake.behaviour" = "crash" }}
[table]
rows = "s"
scores = "test.bleu"
[[figure]]
caption = "Losses"
y = "train.loss"
lines = "s"
[claims]
looks = [2, 3, 5]
[[claim]]
text = "a is better <u>than</u> b"
better = ['a <i>"x"</i>', "b"]
[[claim]]
text = "c is better than b"
better = ["c", "b"]
[[claim]]
text = "e is better than b"
better = ["e", "b"]
"""


SMALL = 'title = "G"\nseeds = 1\n[set]\n"fake.metric.speed" = 2.5\n[axis]\n"model.kind" = ["a"]\n[table]\nscores = "test.score"\n'


class Page(html.parser.HTMLParser):
    """The elements of a page as (name, attributes, children), well formed or an error."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.root = ("", {}, [])
        self.open = [self.root]
        self.feed(text)
        self.close()
        if len(self.open) != 1:
            raise ValueError(f"{self.open[-1][0]} is not closed")

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(set(names)) != len(names):
            raise ValueError(f"{tag} has an attribute twice")
        element = (tag, dict(attrs), [])
        self.open[-1][2].append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.open[-1][2].append((tag, dict(attrs), []))

    def handle_endtag(self, tag):
        if self.open[-1][0] != tag:
            raise ValueError(f"{tag} ends where {self.open[-1][0]} is open")
        self.open.pop()

    def handle_data(self, data):
        self.open[-1][2].append(data)

    def all(self, tag, within=None, **attributes):
        for element in (within or self.root)[2]:
            if isinstance(element, str):
                continue
            if element[0] == tag and all(element[1].get(name.rstrip("_")) == value for name, value in attributes.items()):
                yield element
            yield from self.all(tag, element, **attributes)

    def one(self, tag, within=None, **attributes):
        found = list(self.all(tag, within, **attributes))
        if len(found) != 1:
            raise ValueError(f"{len(found)} of {tag} {attributes}")
        return found[0]

    def json(self, name):
        return json.loads(text_of(self.one("script", id=name)))

    def rows(self, table):
        return [[text_of(cell) for cell in row[2] if not isinstance(cell, str)] for row in self.all("tr", table)]


def text_of(element):
    return "".join(child if isinstance(child, str) else text_of(child) for child in element[2])


def points_of(text):
    numbers = struct.unpack(f"<{len(base64.b64decode(text)) // 4}f", base64.b64decode(text))
    return list(zip(numbers[::2], numbers[1::2]))


def number_in(text):
    """The first number of a cell, or of an interval."""
    found = re.search(r"[+−-]?\d+(\.\d+)?", text)
    return float(found[0].replace("−", "-")) if found else None


class Scratch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name).resolve()
        self.addCleanup(lambda: subprocess.run([BIN / "tearless", "stop", "--now"], cwd=self.folder, env=self.environment, capture_output=True))
        self.environment = os.environ | {"XDG_CACHE_HOME": str(self.folder / "cache"), "TEARLESS_ENGINE": str(BIN / "fake-engine"),
                                         "WANDB_API_KEY": "a-secret-value", "PLAIN_VALUE": "a-plain-value"}

    def tearless(self, *words, code=0):
        done = subprocess.run([BIN / "tearless", *map(str, words)], cwd=self.folder, env=self.environment, text=True, capture_output=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def report(self, *words):
        self.tearless("report", *words, "-o", "report.html")
        return (self.folder / "report.html").read_text()

    def assertLoadsNothing(self, page):
        policy = page.one("meta", **{"http-equiv": "Content-Security-Policy"})[1]["content"]
        self.assertTrue(policy.startswith("default-src 'none'; "), policy)
        script = [element for element in page.all("script") if "type" not in element[1]]
        self.assertEqual(len(script), 1)
        for name, elements in [("script", script), ("style", list(page.all("style")))]:
            self.assertEqual(len(elements), 1)
            digest = base64.b64encode(hashlib.sha256(text_of(elements[0]).encode()).digest()).decode()
            self.assertIn(f"{name}-src 'sha256-{digest}'", policy)
        for tag, attributes in [(element[0], element[1]) for element in self.every(page.root)]:
            for name, value in attributes.items():
                self.assertFalse(name == "style" or name.startswith("on"), f"{tag} has {name}")
                if name in ("src", "href", "xlink:href", "action", "srcset"):
                    self.assertTrue(value.startswith("#"), f"{tag} {name}={value}")

    def every(self, element):
        for child in element[2]:
            if not isinstance(child, str):
                yield child
                yield from self.every(child)


class AReport(Scratch):
    def test_SaysWhatWasTrainedAndWhatBecameOfIt(self):
        (self.folder / "grid.toml").write_text(GRID.replace("[policy.tries]", '[policy]\nenvironment = ["PLAIN_VALUE", "WANDB_API_KEY"]\n[policy.tries]'))
        self.tearless("run", "grid.toml", "--until-decided", code=1)
        text = self.report("grid.toml")
        page = Page(text)
        self.assertLoadsNothing(page)
        self.assertEqual(text_of(page.one("title")), f"Norms & {SCRIPT}")
        self.assertEqual(text_of(page.one("h1")), f"Norms & {SCRIPT}")
        # The grid as it was submitted.
        submitted = next(self.folder.glob("results/sweeps/*/grid.toml")).read_text()
        asked = page.one("section", id="asked")
        self.assertEqual(text_of(page.one("pre", asked)), submitted)
        self.assertIn(["s", 'a <i>"x"</i>, b, c, d, e'], page.rows(asked))
        self.assertIn(["seeds", "1, 2, 3, 4, 5"], page.rows(asked))
        # Each run with its settings.
        data = page.json("data")
        runs = data["runs"]
        folders = {run.name: run for run in self.folder.glob("results/runs/*")}
        self.assertEqual({run["id"] for run in runs}, set(folders))
        for run in runs:
            settings = data["settings"] | run["settings"]
            written = dict(line.split(" = ", 1) for line in (folders[run["id"]] / "run.toml").read_text().splitlines() if line)
            self.assertEqual(settings, written)
            self.assertEqual(run["state"], {"d": "diverged", "e": "failed"}.get(run["label"].split()[-1], "done"), run)
            if run["state"] != "done":
                self.assertTrue(run["reason"] or run["state"] == "diverged", run)
        listed = page.rows(page.one("table", id="run-table"))[1:]
        self.assertEqual([row[0] for row in listed], [f"{run['label']}, seed {run['seed']}" for run in runs])
        self.assertEqual([row[1] for row in listed], [run["state"] for run in runs])
        # Each cell is the mean of its runs, or has none, and they say why.
        table = page.one("section", id="tables")
        cells = list(page.all("button", table, class_="cell"))
        self.assertEqual(len(cells), 5)
        for cell in cells:
            own = [runs[int(run)] for run in cell[1]["data-runs"].split()]
            values = [run["scores"][cell[1]["data-score"]] for run in own if run["state"] == "done"]
            if values:
                self.assertAlmostEqual(number_in(text_of(cell)), statistics.mean(values), delta=0.0051)
            else:
                self.assertEqual(len({run["state"] for run in own}), 1)
                self.assertRegex(text_of(cell), "^(div|fail)")
        # Each verdict, with its look, the seeds and the interval.
        header, *rows = page.rows(page.one("details", page.one("section", id="claims")))
        claims = {row[0]: dict(zip(header, row)) for row in rows}
        for claim, facts in {"a is better <u>than</u> b": {"Verdict": "held", "Look": "1 of 3", "Seeds": "2", "Why": ""},
                            "c is better than b": {"Verdict": "cannot tell", "Look": "3 of 3", "Seeds": "5", "Why": ""},
                            "e is better than b": {"Verdict": "not tested", "Look": "1 of 3", "Seeds": "", "Why": "2/2 of e missing"}}.items():
            self.assertEqual(claims[claim], claims[claim] | facts)
        self.assertNotIn("Source", header, "no claim has one")
        low, high = (float(n.replace("−", "-").replace("+", "")) for n in re.findall(r"\((\S+) … (\S+)\)", claims["c is better than b"]["Estimate (interval)"])[0])
        differences = [0.31 + 0.3 * (seed - 3) for seed in range(1, 6)]
        self.assertLess(low, 0)
        self.assertAlmostEqual((low + high) / 2, statistics.mean(differences), delta=0.02)
        answer = json.loads(self.tearless("check-table", "grid.toml", "--json").stdout)
        self.assertEqual([claim["verdict"] for claim in answer["claims"]], [claim["Verdict"] for claim in claims.values()])
        # Failures, and what is no result's business.
        failures = page.rows(page.one("section", id="failures"))
        self.assertIn("crashed", [row[2] for row in failures])
        provenance = page.rows(page.one("section", id="provenance"))
        self.assertIn(["variables", "PLAIN_VALUE, WANDB_API_KEY, WANDB_API_KEY (secret)"], provenance)
        self.assertIn("a <b>note</b>", [text_of(line) for line in page.all("p", page.one("header"))])
        visible = re.sub(r"<(style|script)>.*?</\1>", "", text, flags=re.S)  # with the data of the script
        host = os.uname().nodename
        for secret in ("a-secret-value", "a-plain-value", str(self.folder), *([host] if len(host) > 9 else [])):  # a short one is a word
            self.assertFalse(secret in visible, secret)
        self.assertEqual(text_of(page.one("pre", page.one("section", id="commands"))),
                         "tearless run grid.toml\ntearless report grid.toml -o report.html\n")
        # Curves: what was reported, as fp32.
        curves = page.json("curve-data")
        done = next(i for i, run in enumerate(runs) if run["state"] == "done")
        lines = [json.loads(line) for line in (folders[runs[done]["id"]] / "metrics.jsonl").read_text().splitlines()]
        losses = [(line["step"], line["value"]) for line in lines if line["name"] == "train.loss"]
        self.assertEqual(points_of(curves[str(done)]["train.loss"]), [struct.unpack("<2f", struct.pack("<2f", *loss)) for loss in losses])
        self.assertEqual(self.report("grid.toml"), text, "the same results give the same bytes")

    def test_OfAFailureSaysNotWhoTrained(self):
        engine = self.folder / "engine.sh"
        engine.write_text(f"""#!/bin/sh
for folder; do :; done
if [ "$1" = train ] && grep -q '"b"' "$folder/run.toml"; then echo "/home/alice/train.py: no $folder"; exit 1; fi
exec {BIN / "fake-engine"} "$@"
""")
        engine.chmod(0o755)
        (self.folder / "grid.toml").write_text(SMALL.replace('["a"]', '["a", "b"]') + "[policy.tries]\ncrashed = 1\n")
        self.tearless("run", "grid.toml", "--engine", engine, code=1)
        text = self.report("last")
        self.assertIn("exit code 1: train.py: no ", text)
        for who in ("alice", str(self.folder)):
            self.assertNotIn(who, re.sub(r"<(style|script)>.*?</\1>", "", text, flags=re.S))

    def test_OfGridsThatShareRunsHasTheCurvesAndTheSweepsOfEach(self):
        for name, metric in {"a": "speed", "b": "other"}.items():
            (self.folder / f"{name}.toml").write_text(
                SMALL.replace("[set]", '[set]\n"fake.metric.other" = 1.5') + f'[[figure]]\ncaption = "{metric}"\ny = "{metric}"\n')
            self.tearless("run", f"{name}.toml")
        (self.folder / "both.toml").write_text('title = "Both"\ngrids = ["a.toml", "b.toml"]\n')
        page = Page(self.report("both.toml"))
        self.assertEqual(len(page.json("data")["runs"]), 1)
        self.assertLessEqual({"speed", "other"}, set(page.json("curve-data")["0"]))
        self.assertEqual(page.json("data")["metrics"][:2], ["speed", "train.loss"], "the first figure's metric is the first")
        commands = text_of(page.one("section", id="commands"))
        self.assertEqual(commands.split("\n")[-5:-2], ["tearless run a.toml", "tearless run b.toml", "tearless report both.toml -o report.html"])
        self.assertIn("tearless report both.toml --part a -o report.html\n",
                      text_of(Page(self.report("both.toml", "--part", "a")).one("section", id="commands")))

    def test_OfAnArchiveWithoutASweepIsRefused(self):
        (self.folder / "grid.toml").write_text(SMALL)
        self.tearless("run", "grid.toml")
        self.tearless("copy", "all.tar.gz")
        with tarfile.open(self.folder / "all.tar.gz") as whole, tarfile.open(self.folder / "runs.tar.gz", "w:gz", format=tarfile.USTAR_FORMAT) as runs:
            for member in whole.getmembers():
                if member.name.startswith("runs/"):
                    runs.addfile(member, whole.extractfile(member))
        self.assertIn("has no sweep", self.tearless("--workspace", "runs.tar.gz", "report", "-o", "r.html", code=2).stderr)

    def test_HasWhatItIsAskedFor(self):
        (self.folder / "grid.toml").write_text(SMALL)
        if shutil.which("git"):
            for words in (["init", "-q"], ["add", "grid.toml"], ["-c", "user.name=N", "-c", "user.email=e@x", "commit", "-qm", "c"]):
                subprocess.run(["git", *words], cwd=self.folder, check=True)
        self.tearless("run", "grid.toml")
        page = Page(self.report(self.folder / "grid.toml", "--title", "Two & more", "--all-curves"))
        self.assertEqual(text_of(page.one("h1")), "Two & more")
        self.assertIn("tearless report grid.toml --title 'Two & more' --all-curves -o report.html\n",
                      text_of(page.one("section", id="commands")))
        more, usual = page.json("data")["metrics"], Page(self.report("grid.toml")).json("data")["metrics"]
        self.assertLess(set(usual), set(more))
        self.assertTrue(all(metric == "train.loss" or metric.startswith("dev.") for metric in usual), usual)
        if shutil.which("git"):
            commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.folder, check=True, capture_output=True, text=True).stdout.strip()
            self.assertIn(["commit", f"{commit}, clean"], page.rows(page.one("section", id="provenance")))

    def test_ReplacesAReportAndNothingElse(self):
        (self.folder / "grid.toml").write_text(SMALL)
        self.assertIn("no run", self.tearless("report", "grid.toml", "-o", "r.html", code=2).stderr)
        self.tearless("run", "grid.toml")
        (self.folder / "r.html").write_text("<p>A page of my own")
        self.assertIn("r.html: it is there and is no report", self.tearless("report", "-o", "r.html", code=2).stderr)
        self.assertEqual((self.folder / "r.html").read_text(), "<p>A page of my own")
        self.tearless("report", "-o", "new.html")
        self.tearless("report", "-o", "new.html")
        self.assertIn("Add -o report.html", self.tearless("report", code=2).stderr)
        self.assertIn("/nowhere/r.html", self.tearless("report", "-o", "/nowhere/r.html", code=2).stderr)

    def test_OfACommittedArchiveHasItsTablesToTheDigit(self):
        self.assertTrue(ARCHIVES)
        self.environment["TEARLESS_ENGINE"] = "none"
        for archive in ARCHIVES:
            text = self.report("--workspace", archive)
            page = Page(text)
            self.assertLoadsNothing(page)
            self.assertLess(len(text), 5_000_000)
            runs = page.json("data")["runs"]
            answer = json.loads(self.tearless("--workspace", archive, "runs", "--derived", "--json", "all").stdout)
            self.assertEqual({run["id"] for run in runs}, {run["run"] for run in answer}, archive)
            checked = 0
            for table in page.all("table", page.one("section", id="tables")):
                for cell in page.all("button", table, class_="cell"):
                    values = [runs[int(run)]["scores"].get(cell[1]["data-score"]) for run in cell[1]["data-runs"].split()]
                    shown = re.match(r"([−+]?[\d.]+)( ± [\d.]+)?( ?\[|$)", text_of(cell))
                    if not shown or None in values or text_of(cell).startswith(("+", "−")):
                        continue
                    digits = len(shown[1].partition(".")[2])
                    mean = statistics.mean(values)
                    self.assertTrue(math.isclose(float(shown[1]), mean, abs_tol=0.51 * 10**-digits) or
                                    math.isclose(float(shown[1]), 100 * mean, abs_tol=0.51 * 10**-digits), f"{archive}: {text_of(cell)} {mean}")
                    checked += 1
            self.assertGreater(checked, 0, archive)
            self.assertEqual(self.report("--workspace", archive), text)


if __name__ == "__main__":
    sys.exit(junit_report.run("ReportPage", *sys.argv[1:]))
