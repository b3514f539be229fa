#!/usr/bin/env python3
"""export_test.py [REPORT] [NAME…]: `tearless export`, read by TensorBoard's own reader, pandas and pyarrow, and to_wandb(). REPORT: results as JUnit XML."""

import contextlib
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import packages

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tools")]
import junit_report  # noqa: E402
import tearless  # noqa: E402

BIN = pathlib.Path(os.environ.get("TEARLESS_BIN", ROOT / "build" / "bin"))
os.environ.update(TEARLESS_PROGRAM=str(BIN / "tearless"), TEARLESS_ENGINE=str(BIN / "fake-engine"))
needs_packages = unittest.skipIf(packages.use(), packages.use())
ARCHIVE = ROOT / "results" / "twt_figures_small.tar.gz"

# A metric that 32 bits cannot hold, one that is none, and a label that is no name of a folder.
GRID = """
seeds = [1, 2]
[set]
"fake.updates" = 4
[axis]
"model.kind" = ["a/b", "é"]
[[axis.value]]
label = "big"
set = { "fake.metric.value" = 1e300 }
[[axis.value]]
label = "third"
set = { "fake.metric.value" = 0.3333333333333333 }
[table]
"""


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def tearless(self, *words, code=0):
        done = subprocess.run([BIN / "tearless", *words], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def trained(self):
        (self.folder / "grid.toml").write_text(GRID, encoding="utf-8")
        self.tearless("run", "grid.toml")


def events_in(folder):
    """{run's folder: [(tag, step, value)]}, as TensorBoard reads it: it checks each checksum."""
    from tensorboard.backend.event_processing import event_file_loader

    runs = {}
    for file in sorted(folder.rglob("*tfevents*")):
        events = list(event_file_loader.EventFileLoader(str(file)).Load())
        assert events[0].file_version == "brain.Event:2", events[0]
        runs[file.parent.name] = [
            (value.tag, event.step, value.tensor.float_val[0] if value.tensor.float_val else value.simple_value)
            for event in events[1:]
            for value in event.summary.value
        ]
    return runs


@needs_packages
class TensorBoard(Case):
    def test_ReadsEachMetricAndScoreToThePrecisionOf32Bits(self):
        import numpy

        workspace = tearless.open(ARCHIVE)
        self.tearless("export", "all", "--workspace", str(ARCHIVE), "--to", "tb", "--format", "tensorboard")
        runs, metrics = workspace.runs("all"), workspace.metrics("all")
        read = events_in(self.folder / "tb")
        self.assertEqual(len(read), len(runs))
        for run in runs.itertuples():
            (events,) = [events for name, events in read.items() if name == f"system={run.system},seed={run.seed}"]
            wanted = [(m.name, m.step, float(numpy.float32(m.value))) for m in metrics[metrics["run"] == run.run].itertuples()]
            norms = [event for event in events if event[0] == "gradient_norms"]
            self.assertEqual(sorted(e for e in events if e[0] != "gradient_norms" and not e[0].startswith("score/")), sorted(wanted))
            self.assertEqual([step for _, step, _ in norms], list(range(1, run.updates + 1)))
            bleu = runs.loc[runs["run"] == run.run, "test.bleu_13a"].iloc[0]
            self.assertIn(("score/test.bleu_13a", run.updates, float(numpy.float32(bleu))), events)

    def test_HasOneFolderForEachRunWhateverItsLabels(self):
        import numpy

        self.trained()
        self.tearless("export", "--to", "tb", "--format", "tensorboard", "--metrics", "value")
        read = events_in(self.folder / "tb")
        self.assertEqual(
            sorted(read),
            sorted(f"model.kind={kind},value={value},seed={seed}" for kind in ("a_b", "é") for value in ("big", "third") for seed in (1, 2)),
        )
        for name, events in read.items():
            values = {value for tag, _, value in events if tag == "value"}
            self.assertEqual({tag for tag, _, _ in events if not tag.startswith("score/")}, {"value"})
            third = [float(numpy.float32(update * 0.3333333333333333)) for update in range(1, 5)]
            self.assertEqual(values, {math.inf} if "value=big" in name else set(third), name)


@needs_packages
class Csv(Case):
    def test_HasEachMetricAndScoreToTheLastDigit(self):
        import pandas
        import pyarrow.csv

        workspace = tearless.open(ARCHIVE)
        self.tearless("export", "all", "--workspace", str(ARCHIVE), "--to", "csv", "--format", "csv")
        self.assertEqual(sorted(os.listdir(self.folder / "csv")), ["metrics.csv", "runs.csv"])
        order = ["run", "step", "name"]
        for read in (pandas.read_csv, lambda file: pyarrow.csv.read_csv(file).to_pandas()):
            metrics, wanted = (frame[frame["name"] != "gradient_norms"].sort_values(order).reset_index(drop=True)
                               for frame in (read(self.folder / "csv/metrics.csv"), workspace.metrics("all")))
            pandas.testing.assert_frame_equal(metrics, wanted, check_exact=True, check_dtype=False)
            runs, wanted = read(self.folder / "csv/runs.csv"), workspace.runs("all", settings=True)
            for column in ("run", "seed", "state", "test.bleu_13a", "dev.ppl", "system"):
                self.assertEqual(runs[column].tolist(), wanted[column].tolist(), column)
            self.assertEqual(set(runs["model.d_model"]), {64}, "settings that do not differ, too")


def records_in(file):
    """The records of a file of W&B's client as bytes, in the blocks of LevelDB's log."""
    data, at, record = file.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack("<IHB", data[at:at + 7])
        record, at = record + data[at + 7:at + 7 + length], at + 7 + length
        if kind in (1, 4):
            yield record
            record = b""


class Client:
    """What to_wandb() calls of W&B's client, with the client's rule that steps grow."""

    def __init__(self):
        self.runs = []

    def init(self, **given):
        self.given, self.history, self.summary = given, [], {}
        self.runs.append((given, self.history, self.summary))
        return contextlib.nullcontext(self)

    def log(self, values, step):
        assert not self.history or step > self.history[-1][0], (step, self.history[-1])
        self.history.append((step, values))


@needs_packages
class WeightsAndBiases(Case):
    WORDS = ["all", "seed=1"]

    def imported_as_wandb(self, module):
        self.addCleanup(sys.modules.pop, "wandb")
        sys.modules["wandb"] = module
        return module

    def wanted(self):
        """{run: (config, [(step, {name: value})], scores)}"""
        workspace = tearless.open(ARCHIVE)
        runs = json.loads(self.tearless("runs", *self.WORDS, "--settings", "--json", "--workspace", str(ARCHIVE)))
        metrics = workspace.metrics(self.WORDS)
        return {run["run"]: ({**run["coordinates"], "seed": 1, **run["settings"]},
                             [(step, dict(zip(at["name"], at["value"]))) for step, at in metrics[metrics["run"] == run["run"]].groupby("step")],
                             {**run["scores"], "state": "done"}) for run in runs}

    def test_HasEachRunWithItsSettingsMetricsAndScores(self):
        client = self.imported_as_wandb(Client())
        tearless.open(ARCHIVE).to_wandb(self.WORDS, project="p", mode="offline", entity="e")
        self.assertEqual({given["id"]: (given["config"], history, summary) for given, history, summary in client.runs}, self.wanted())
        given = client.runs[0][0]
        self.assertEqual((given["project"], given["mode"], given["entity"], given["group"]), ("p", "offline", "e", "twt_figures_small"))
        self.assertEqual(given["name"], "system=PostNorm + LayerNorm seed=1")

    def test_OfChosenMetricsHasThese(self):
        client = self.imported_as_wandb(Client())
        tearless.open(ARCHIVE).to_wandb(self.WORDS, "train.*", project="p")
        self.assertEqual({name.split(".")[0] for _, history, _ in client.runs for _, values in history for name in values}, {"train"})

    def test_IsInTheClientsOwnFilesToTheLastDigit(self):
        try:
            from wandb.proto import wandb_internal_pb2
        except ImportError:
            self.skipTest("the client of Weights & Biases is not installed: pip install wandb")
        script = f"import tearless; tearless.open({str(ARCHIVE)!r}).to_wandb({self.WORDS}, project='p', mode='offline', dir='.')"
        subprocess.run([sys.executable, "-c", script], cwd=self.folder, check=True, capture_output=True,
                       env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})  # its files are whole at its end
        found = {}
        for file in self.folder.rglob("*.wandb"):
            for data in records_in(file):
                record = wandb_internal_pb2.Record.FromString(data)
                if record.HasField("run"):
                    config = {one.key: json.loads(one.value_json) for one in record.run.config.update if not one.key.startswith("_")}
                    run = found.setdefault(record.run.run_id, (config, [], {}))
                if record.HasField("history"):
                    values = {one.nested_key[0]: json.loads(one.value_json) for one in record.history.item if one.nested_key and not one.nested_key[0].startswith("_")}
                    run[1].extend([(record.history.step.num, values)] if values else [])
                if record.HasField("summary"):
                    run[2].update({one.key: json.loads(one.value_json) for one in record.summary.update if one.key})
        wanted = self.wanted()
        self.assertEqual({run: (config, history) for run, (config, history, _) in found.items()}, {run: (config, history) for run, (config, history, _) in wanted.items()})
        for run, (_, _, scores) in wanted.items():
            self.assertEqual({**found[run][2], **scores}, found[run][2])

    def test_WithoutTheClientSaysWhatToInstall(self):
        self.imported_as_wandb(None)
        with self.assertRaisesRegex(tearless.Error, "pip install wandb"):
            tearless.open(ARCHIVE).to_wandb(project="p")


class Mistakes(Case):
    def test_AreRefusedInOneSentenceAndNothingIsLeft(self):
        self.trained()
        (self.folder / "there").mkdir()
        for words, sentence in (
            (["--to", "there", "--format", "csv"], "--to there: it is there already; delete it, or name another folder"),
            (["--to", "none/x", "--format", "csv"], f"--to none/x: there is no folder {self.folder}/none"),
            (["--to", "x", "--format", "parquet"], "--format parquet is not known; it must be tensorboard or csv"),
            (["nosuch", "--to", "x", "--format", "csv"], '"nosuch" is no sweep'),
        ):
            said = self.tearless("export", *words, code=2)
            self.assertTrue(said.startswith("tearless: ") and sentence in said and said.count("\n") == 1, said)
            self.assertEqual(sorted(os.listdir(self.folder)), ["grid.toml", "results", "there"])

    def test_OnAFullDiskLeaveNothing(self):
        self.trained()
        limited = f"ulimit -f 0; trap '' XFSZ; '{BIN / 'tearless'}' export --to x --format csv"
        done = subprocess.run(["bash", "-c", limited], cwd=self.folder, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["grid.toml", "results"])


if __name__ == "__main__":
    sys.exit(junit_report.run("Export", *sys.argv[1:]))
