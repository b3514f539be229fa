#!/usr/bin/env python3
"""How many updates a second a GPU makes in all, with several runs on it at the same time: small models, time slices and MPS.

A setting is a model, a number of runs, and how they share the GPU. For each, a service starts the runs; once each has made its
first updates (graphs are captured then), their updates are counted for some seconds, and all is stopped. The metrics of a run's
first updates must be the same bytes in each setting.

    tools/gpu_packing.py --part slices      # up to ten minutes
    tools/gpu_packing.py --part mps         # likewise; begins and ends MPS itself. Adds to what the first one measured

What the page's JSON has already is not measured again, so the same command resumes a call that was stopped; without that file all is.

Exit code 0 if all settings were measured and no byte differs, 1 if not, 2 for a mistake in the command. --fake needs no GPU and
no engine: the programs of tests/support take their places.
"""

import argparse
import contextlib
import hashlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import gpu_sweep

WARM_UP = 200   # updates of each run, before it is timed
PATIENCE = 60   # seconds for these
MPS_PATIENCE = 30  # seconds for each answer of MPS
MODELS = {"d64": (2, 64, 256, 4, 1024), "d128": (3, 128, 512, 4, 2048), "base": (6, 512, 2048, 8, 4096)}  # layers, d_model, d_ff, heads, tokens
RUNS = {"d64": (1, 4, 8, 16), "d128": (1, 4, 8, 16), "base": (1, 2, 4)}
UNPINNED = ("d128", 8)  # also with cores chosen by the kernel
PARTS = {"slices": "time slices", "mps": "MPS"}
GRID = """title = "GPU packing: {model}"
base  = "{root}/grids/base/demo.toml"
seeds = {runs}
[set]
"run.device" = "cuda"
"run.precision" = "bf16"
"run.log_updates" = 10
"model.encoder_layers" = {layers}
"model.decoder_layers" = {layers}
"model.d_ff" = {d_ff}
"model.heads" = {heads}
"train.batch.tokens" = {tokens}
"train.epoch_updates" = 1000000
[axis]
"model.d_model" = [{d_model}]
"""
FAKE_GRID = """seeds = {runs}
[set]
"fake.device" = "cuda"
"fake.updates" = 1000000
"fake.sleep_ms" = 5
[axis]
"model.kind" = ["{model}"]
"""


def settings_of():
    """(model, runs, whether each run has a core of its own)."""
    for model in MODELS:
        for runs in RUNS[model]:
            yield model, runs, True
            if (model, runs) == UNPINNED:
                yield model, runs, False


class Mps:
    """NVIDIA's multi-process service of this user, while the script needs it."""

    def __init__(self, folder):
        self.environment = {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(folder / "log")}
        for path in self.environment.values():
            os.makedirs(path, exist_ok=True)

    def control(self, *arguments, said=None):
        """Why it failed, one line; "" if it did not."""
        with tempfile.TemporaryFile("w+") as output:  # not a pipe, which what it leaves running could hold open
            try:
                asked = subprocess.Popen(["nvidia-cuda-mps-control", *arguments], env=os.environ | self.environment, text=True,
                                         stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True)
                asked.communicate(said, timeout=MPS_PATIENCE)
            except OSError as error:
                return str(error)
            except subprocess.TimeoutExpired:
                os.killpg(asked.pid, signal.SIGKILL)
                asked.wait()
                return f"nvidia-cuda-mps-control has not answered for {MPS_PATIENCE} s"
            output.seek(0)
            return " ".join(output.read().split()) or f"exit code {asked.returncode}" if asked.returncode else ""

    def __enter__(self):
        if why := self.control("-d"):
            self.control(said="quit\n")  # what it has begun all the same
            gpu_sweep.fail(f"MPS does not start: {why}; without it: --part slices")
        return self

    def __exit__(self, *_):
        if why := self.control(said="quit\n"):
            print(f"gpu_packing: MPS does not end ({why}): end nvidia-cuda-mps-control by hand", file=sys.stderr)


def pin(runs):
    """Binds the threads of each run's engine to a core of its own, as far as there are some."""
    for run, core in zip(runs, sorted(os.sched_getaffinity(0))):
        for task in pathlib.Path(f"/proc/{run.engine()}/task").glob("*"):
            os.sched_setaffinity(int(task.name), {core})


def sm_active(seconds):
    """Starts to measure the share of time in which a multiprocessor had work; returns what gives it in percent, or None."""
    try:
        monitor = subprocess.Popen(["nvidia-smi", "dmon", "-i", "0", "--gpm-metrics", "2", "-d", "1", "-c", str(max(1, int(seconds)))],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return lambda: None

    def average():
        try:
            rows = [line.split() for line in monitor.communicate(timeout=30)[0].splitlines() if not line.startswith("#")]
            return sum(float(row[-1]) for row in rows) / len(rows)
        except (ValueError, ZeroDivisionError, IndexError, subprocess.TimeoutExpired):
            monitor.kill()
            return None

    return average


def wait_for(runs_of, count, updates):
    """The runs, once each has made so many updates; fails with a sentence."""
    began = time.monotonic()
    while True:
        runs = runs_of()
        if len(runs) == count and min(run.step() for run in runs) >= updates:
            return runs
        if time.monotonic() - began > PATIENCE:
            raise TimeoutError(f"{sum(run.step() >= updates for run in runs)} of {count} runs made {updates} updates in {PATIENCE} s")
        time.sleep(0.1)


def measure(machine, folder, setting, options):
    """What the row of a setting has of it."""
    model, count, is_pinned = setting
    grid = folder / "packing.toml"
    layers, d_model, d_ff, heads, tokens = MODELS[model]
    grid.write_text((FAKE_GRID if options.fake else GRID).format(root=gpu_sweep.ROOT, model=model, runs=count, layers=layers, d_model=d_model,
                                                                 d_ff=d_ff, heads=heads, tokens=tokens))
    sweep = gpu_sweep.Sweep(machine, folder / "-".join(map(str, setting)), grid, 0, 0.1, ["--runs-per-gpu", str(count)])
    try:
        sweep.start()
        runs = wait_for(sweep.runs, count, WARM_UP)
        if is_pinned:
            pin(runs)
        active = sm_active(options.seconds)
        before, began = [run.step() for run in runs], time.monotonic()
        time.sleep(options.seconds)
        after, took = [run.step() for run in runs], time.monotonic() - began
        return {"updates_per_second": (sum(after) - sum(before)) / took, "sm_active": active(), "metrics": {run.id: first_metrics(run) for run in runs}}
    finally:
        sweep.end_whatever_happened()
        shutil.rmtree(sweep.workspace, ignore_errors=True)


def first_metrics(run):
    """A digest of what a run reported of its first updates."""
    lines = (run.path / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    first = itertools.takewhile(lambda line: line.endswith(b"\n") and json.loads(line)["step"] <= WARM_UP, lines)
    return hashlib.sha256(b"".join(first)).hexdigest()


def faults_of(rows):
    yield from (f"{row['model']} × {row['runs']}, {row['shared_by']}: {row['why']}" for row in rows if row["why"])
    digests = {}
    for row in rows:
        for run, digest in row["metrics"].items():
            if digests.setdefault(run, digest) != digest:
                yield f"run {run} has other metrics with {row['model']} × {row['runs']}, {row['shared_by']}"


def page_of(gpu, rows):
    alone = {row["model"]: row["updates_per_second"] for row in rows if row["runs"] == 1 and row["shared_by"] == PARTS["slices"]}
    lines = ["# Several runs on one GPU", "", f"On {gpu}, by `tools/gpu_packing.py`; each setting started once.", "",
             "| model | runs | share the GPU by | cores | updates/s in all | one run alone × | SM active |", "|---|---|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: (list(MODELS).index(row["model"]), row["runs"], row["shared_by"], not row["pinned"])):
        rate, base = row["updates_per_second"], alone.get(row["model"])
        lines.append(f"| {row['model']} | {row['runs']} | {row['shared_by']} | {'pinned' if row['pinned'] else 'not pinned'} | "
                     + (f"{rate:.1f} | {f'{rate / base:.2f}' if base else '–'} | " if rate else f"{row['why']} | – | ")
                     + (f"{row['sm_active']:.0f} % |" if row["sm_active"] is not None else "– |"))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="gpu_packing.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, required=True, help="how the runs share the GPU")
    parser.add_argument("--seconds", type=float, default=15, help="in which updates are counted, of each setting (default: 15)")
    parser.add_argument("--bin", type=pathlib.Path, default=gpu_sweep.ROOT / "build/bin", help="the folder of the programs (default: build/bin)")
    parser.add_argument("--portable", type=pathlib.Path, help="instead of --bin: what tools/portable.sh gathered")
    parser.add_argument("--page", type=pathlib.Path, default=gpu_sweep.ROOT / "results/gpu/packing.md", help="beside it the numbers as JSON")
    parser.add_argument("--fake", action="store_true", help="with fake GPUs and a fake engine, of two settings; needs --page")
    options = parser.parse_args()
    if options.fake and options.page == parser.get_default("page"):
        gpu_sweep.fail("--fake measures nothing: name another file for its page with --page")
    file = options.page.with_suffix(".json")
    rows = [row for row in (json.loads(file.read_text()) if file.exists() else []) if row["shared_by"] != PARTS[options.part] or not row["why"]]
    measured = {(row["model"], row["runs"], row["pinned"]) for row in rows if row["shared_by"] == PARTS[options.part]}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tearless-gpu-packing-"))
    settings = [setting for setting in itertools.islice(settings_of(), 2 if options.fake else None) if setting not in measured]
    try:
        machine = gpu_sweep.FakeMachine(options, folder) if options.fake else gpu_sweep.Machine(options)
        machine.environment["CUDA_VISIBLE_DEVICES"] = "0"
        with Mps(folder) if options.part == "mps" and not options.fake else contextlib.nullcontext() as mps:
            if mps:
                machine.environment |= mps.environment
            for setting in settings:
                row = {"model": setting[0], "runs": setting[1], "pinned": setting[2], "shared_by": PARTS[options.part], "why": "",
                       "updates_per_second": 0, "sm_active": None, "metrics": {}}
                try:
                    row |= measure(machine, folder, setting, options)
                except TimeoutError as error:  # MPS died, memory was short: the others are measured all the same
                    row["why"] = str(error)
                rows.append(row)
                options.page.parent.mkdir(parents=True, exist_ok=True)
                fresh = file.with_suffix(".new")
                fresh.write_text(json.dumps(rows, indent=1) + "\n")
                fresh.replace(file)
                options.page.write_text(page_of(machine.gpus[0], rows))
                print(f"gpu_packing: {setting[0]} × {setting[1]}: {row['why'] or format(row['updates_per_second'], '.1f') + ' updates/s'}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    faults = list(faults_of(rows))
    for fault in faults:
        print(f"BROKEN  {fault}")
    print(f"gpu_packing: {options.page}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
