#!/usr/bin/env python3
"""gpu_runs.py: whole runs on one GPU, and claims about them. A made-up corpus (sentences of letters, their targets the same
backwards) is trained

    alone, and once more:                  the same bytes in metrics, scores and outputs
    stopped, killed and started again:       the same bytes
    three beside each other:               the same bytes each, and more updates a second together than one alone
    in fp32 and bf16, from three seeds:    dev BLEU within the seeds' noise

    tools/gpu_runs.py --engine build/bin/tearless-engine --json runs.json

Prints a line a claim; exit code 1 where one does not hold. `--device cpu` shows that the script itself works.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

RESULTS = ("metrics.jsonl", "scores.json", "outputs/dev.hyp", "outputs/test.hyp")
SETTINGS = """
[data]
name = "backwards"
train = "train"
dev = "dev"
test = "test"
source = "src"
target = "tgt"

[text]
kind = "segmented"

[model]
encoder_layers = 2
decoder_layers = 2
d_model = {width}
d_ff = {inner}
heads = 4
dropout = {{ residual = 0.1, attention = 0.1, relu = 0.1, word = 0.0 }}

[train]
seed = {seed}
epoch_updates = {epoch}
max_epochs = 3
early_stop = 0
batch = {{ tokens = {tokens} }}
schedule = {{ kind = "invsqrt", scale = {scale}, warmup_updates = 100 }}

[run]
device = "{device}"
precision = "{precision}"
log_updates = 10
"""


def write_corpus(folder):
    draw = random.Random(1)
    for name, count in (("train", 4000), ("dev", 200), ("test", 50)):
        with open(folder / f"{name}.src", "w") as source, open(folder / f"{name}.tgt", "w") as target:
            for _ in range(count):
                letters = [draw.choice("abcdefghijklmnop") for _ in range(draw.randint(4, 16))]
                source.write(" ".join(letters) + "\n")
                target.write(" ".join(reversed(letters)) + "\n")


class Run:
    """One run directory of its own, begun as often as start() is called."""

    def __init__(self, suite, name, **settings):
        self.suite, self.name = suite, name
        self.config = suite.folder / f"{name}.toml"
        self.config.write_text(SETTINGS.format(**(suite.settings | settings)))
        self.runs = suite.folder / f"runs-{name}"

    def start(self):
        self.log = open(self.suite.folder / f"{self.name}.log", "a")
        self.process = subprocess.Popen([self.suite.engine, "train", "--config", self.config, "--runs", self.runs],
                                        stdout=self.log, stderr=self.log, env=self.suite.environment)
        return self

    def wait(self, *wanted):
        code = self.process.wait(self.suite.limit)
        if code not in wanted:
            said = (self.suite.folder / f"{self.name}.log").read_text().strip().splitlines()[-3:]
            sys.exit(f"gpu_runs: {self.name} ended with {code}: {' | '.join(said)}")
        return self

    def train(self):
        return self.start().wait(0)

    @property
    def directory(self):
        return next(d for d in self.runs.iterdir() if (d / "run.toml").exists())

    def updates_so_far(self):
        try:
            return sum(1 for line in open(self.directory / "metrics.jsonl") if '"train.loss"' in line)
        except (OSError, StopIteration):
            return 0

    def wait_for_reports(self, count):
        end = time.monotonic() + self.suite.limit
        while self.process.poll() is None and self.updates_so_far() < count and time.monotonic() < end:
            time.sleep(0.01)

    def digest(self):
        return hashlib.sha256(b"".join((self.directory / file).read_bytes() for file in RESULTS)).hexdigest()

    def scores(self):
        return json.loads((self.directory / "scores.json").read_text())

    def updates_per_second(self):
        measured = json.loads((self.directory / "attempts/1/measured.json").read_text())
        return measured["updates"] / measured["training_seconds"]


class Suite:
    def __init__(self, arguments, folder):
        self.engine, self.folder, self.limit = str(pathlib.Path(arguments.engine).resolve()), folder, arguments.limit
        small = arguments.device == "cpu"
        self.settings = {"width": 32 if small else 256, "inner": 64 if small else 1024, "seed": 1, "epoch": 60 if small else 300,
                         "tokens": 512 if small else 2048, "scale": 0.5, "device": arguments.device,
                         "precision": "fp32" if small else "bf16"}
        self.precisions = ("fp32",) if small else ("fp32", "bf16")
        self.environment = os.environ | {"TEARLESS_CACHE": str(folder / "cache")}
        self.results = {"claims": {}}

    def claim(self, text, holds, detail=""):
        self.results["claims"][text] = bool(holds)
        print(f"{'holds ' if holds else 'BROKEN'}  {text}{': ' + detail if detail else ''}", flush=True)

    def run(self):
        write_corpus(self.folder)
        alone = Run(self, "alone").train()
        digest = alone.digest()
        self.claim("a run done twice leaves the same bytes", Run(self, "again").train().digest() == digest)

        broken = Run(self, "broken")
        reports = 3 * self.settings["epoch"] // 10
        for part, how, code in ((1 / 6, signal.SIGTERM, 75), (1 / 2, signal.SIGKILL, -signal.SIGKILL), (5 / 6, signal.SIGTERM, 75)):
            broken.start()
            broken.wait_for_reports(part * reports)
            broken.process.send_signal(how)
            broken.wait(code, 0)
        broken.train()
        attempts = len(list((broken.directory / "attempts").iterdir()))
        self.claim("a run stopped, killed and started again leaves the same bytes", attempts > 2 and broken.digest() == digest,
                   f"{attempts} attempts")

        beside = [Run(self, f"beside{i}").start() for i in range(3)]
        for run in beside:
            run.wait(0)
        self.claim("runs beside each other leave the bytes of a run alone", all(run.digest() == digest for run in beside))
        rates = [run.updates_per_second() for run in beside]
        self.results["updates_per_second"] = {"alone": alone.updates_per_second(), "three beside each other": rates}
        self.claim("three beside each other make more updates a second together than one alone",
                   sum(rates) > alone.updates_per_second(), f"{sum(rates):.1f} and {alone.updates_per_second():.1f}")

        bleu = {precision: [Run(self, f"{precision}-{seed}", precision=precision, seed=seed).train().scores()["dev.bleu"]
                            for seed in (1, 2, 3)] for precision in self.precisions}
        self.results["dev_bleu"] = bleu
        if len(bleu) == 2:
            noise = max(max(bleu["fp32"]) - min(bleu["fp32"]), max(bleu["bf16"]) - min(bleu["bf16"]), 1.0)
            means = {precision: statistics.mean(values) for precision, values in bleu.items()}
            self.claim("bf16 scores within seed noise of fp32", abs(means["fp32"] - means["bf16"]) <= noise, str(bleu))
        return self.results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", required=True)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--json", help="where the results go")
    parser.add_argument("--limit", type=float, default=120, help="seconds that one run may take")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tearless-gpu-runs-"))
    try:
        results = Suite(arguments, folder).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")
    return 0 if all(results["claims"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
