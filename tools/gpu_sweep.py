#!/usr/bin/env python3
"""A sweep over all GPUs of this machine, killed and resumed, against one that was not.

    1. A daemon trains a grid of small Transformers, in fp32 and bf16, several runs on each GPU.
    2. At two fifths of the updates kill -9 ends the daemon and one engine. A new daemon finishes the sweep.
    3. A daemon with --runs-per-gpu 1 trains the same grid in another workspace, undisturbed.

Table, scores.json, metrics.jsonl and translations of both must be equal, byte for byte, and dev BLEU of bf16 must be that
of fp32 within the noise of the seeds. The page says what was killed and lost, how many runs shared a GPU, how much memory
was estimated and used, and how long both took. Exit code 0 if all holds, 1 if not, 2 for a mistake in the command.

--fake needs no GPU and no engine: the programs of tests/support take their places, with two GPUs.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ("metrics.jsonl", "gradient_norms.f32", "scores.json", "outputs/test.hyp")
KILL_AT = 0.4           # of all updates
FAKE_UPDATES = 60
FAKE_SLEEP = 60         # milliseconds an update; 10 in the undisturbed sweep
FAKE_BYTES = 2000       # of GPU memory that a fake engine uses

GRID = """title = "GPU sweep: norm × precision, tiny"
base  = "{root}/grids/base/demo.toml"
seeds = {seeds}
[set]
"run.device" = "cuda"
"train.epoch_updates" = {epoch}
"train.max_epochs" = 10
[axis]
"model.norm.kind" = ["layer_norm", "scale_norm"]
"run.precision" = ["fp32", "bf16"]
[table]
rows   = ["model.norm.kind", "run.precision"]
scores = ["test.bleu_13a", "test.ppl"]
"""
FAKE_GRID = """title = "GPU sweep with fake GPUs"
seeds = {seeds}
[set]
"fake.device" = "cuda"
"fake.updates" = {updates}
"fake.sleep_ms" = {sleep}
[axis]
"model.kind" = ["a", "b"]
[table]
scores = ["test.score"]
"""
PROGRAM = pathlib.Path(sys.argv[0]).stem  # gpu_packing and gpu_gl_en share this module


def fail(sentence):
    print(f"{PROGRAM}: {sentence}", file=sys.stderr)
    sys.exit(2)


def read_json(file):
    try:
        return json.loads(file.read_text())
    except (OSError, json.JSONDecodeError):
        return {}


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def minutes(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def size(count):
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


class RunFolder:
    def __init__(self, path):
        self.path, self.id = path, path.name

    def is_done(self):
        return (self.path / "DONE").exists()

    def step(self):
        try:
            lines = (self.path / "metrics.jsonl").read_bytes().split(b"\n")[:-1]
            return json.loads(lines[-1])["step"] if lines else 0
        except OSError:
            return 0

    def checkpoint(self):
        return max((int(f.name[5:]) for f in self.path.glob("checkpoints/step-*")), default=0)

    def start(self):
        """start.json of the newest attempt."""
        numbers = [int(f.parent.name) for f in self.path.glob("attempts/*/start.json")]
        return read_json(self.path / f"attempts/{max(numbers)}/start.json") if numbers else {}

    def engine(self):
        """The pid of its living engine, or None."""
        supervisor = self.start().get("supervisor", {}).get("pid", 0)
        try:
            return int(pathlib.Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0])
        except (OSError, IndexError):
            return None

    def digest(self, name):
        return hashlib.sha256((self.path / name).read_bytes()).hexdigest()


class Machine:
    """The GPUs and the programs."""

    def __init__(self, options):
        self.programs = (options.portable / "bin" if options.portable else options.bin).resolve()
        self.environment = os.environ | {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
        if options.portable:
            self.environment["LD_LIBRARY_PATH"] = self.libraries(options.portable.resolve())
        self.require("tearless", "tearless-engine")
        try:
            said = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                                  capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            fail("no NVIDIA GPU is visible (nvidia-smi fails); to see the steps without one: tools/gpu_sweep.sh --fake")
        self.gpus = said.strip().splitlines()

    def require(self, *names):
        for name in names:
            if not (self.programs / name).exists():
                fail(f"{self.programs / name} is missing: build it (`make build`), or name the folder of the programs with --bin")

    @staticmethod
    def libraries(portable):
        torch = importlib.util.find_spec("torch")
        if not torch:
            fail("--portable needs Python's torch, whose libraries the engine uses")
        site = pathlib.Path(torch.origin).parent.parent
        return ":".join(map(str, [portable / "lib", site / "torch/lib", *sorted(site.glob("nvidia/*/lib"))]))

    def note_memory(self, runs):
        """The driver counts the memory that runs use."""


class FakeMachine(Machine):
    def __init__(self, options, folder):
        self.programs = options.bin.resolve()
        self.require("tearless", "fake-engine", "libfake-nvml.so")
        self.script = folder / "gpus.txt"
        self.gpus = ["Fake GPU 0", "Fake GPU 1"]
        self.environment = os.environ | {"TEARLESS_ENGINE": str(self.programs / "fake-engine"),
                                         "TEARLESS_NVML": str(self.programs / "libfake-nvml.so"), "TEARLESS_FAKE_NVML": str(self.script)}
        self.note_memory([])

    def note_memory(self, runs):
        processes, used = [], [0, 0]
        for run in runs:
            engine, uuid = run.engine(), run.start().get("cuda_device", "")
            if engine and uuid:
                gpu = int(uuid.removeprefix("GPU-"))
                processes.append(f"process {gpu} {engine} {FAKE_BYTES}")
                used[gpu] += FAKE_BYTES
        lines = [f"gpu GPU-{gpu} 1000000 {used[gpu]} Fake GPU" for gpu in (0, 1)] + processes
        fresh = self.script.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        fresh.rename(self.script)


class Sweep:
    """One sweep in a workspace of its own."""

    def __init__(self, machine, folder, grid, updates, look_every, daemon_options):
        self.machine, self.grid, self.updates, self.look_every = machine, grid, updates, look_every
        self.workspace, self.daemon_options = folder, daemon_options
        self.most_on_one = 0  # runs on a GPU at the same time
        self.killed = []      # sentences

    def tearless(self, *arguments, codes=(0,)):
        command = [self.machine.programs / "tearless", *arguments, "--workspace", self.workspace]
        ended = subprocess.run(command, capture_output=True, text=True, env=self.machine.environment)
        if ended.returncode not in codes:
            sys.exit(f"{PROGRAM}: tearless {' '.join(map(str, arguments))} ended with {ended.returncode}: {ended.stderr or ended.stdout}")
        return ended.stdout

    def start_daemon(self):
        said = self.tearless("daemon", "--background", *self.daemon_options)
        self.daemon = int(re.search(r"process (\d+)", said)[1])

    def start(self):
        self.start_daemon()
        self.began = time.monotonic()
        self.tearless("submit", self.grid)
        self.resource_classes = {row["id"]: row for row in json.loads(self.tearless("sql", "SELECT id, resource_class, memory_bytes FROM runs_view", "--json"))}

    def runs(self):
        return [RunFolder(path) for path in sorted((self.workspace / "runs").glob("*")) if (path / "run.toml").exists()]

    def part_done(self):
        return sum(self.updates if run.is_done() else run.step() for run in self.runs()) / (self.updates * len(self.resource_classes))

    def seconds(self):
        return time.monotonic() - self.began

    def look(self):
        """Notes how the runs share the GPUs. False if none runs or waits any more."""
        self.machine.note_memory(self.runs())
        devices = [run.start().get("cuda_device") for run in self.runs() if run.engine()]
        self.most_on_one = max([self.most_on_one, *map(devices.count, devices)])
        known = json.loads(self.tearless("explain", "last", "--json"))
        return any(run["state"] in ("queued", "running") for run in known)

    def wait(self, until=lambda: False):
        while self.look() and not until():
            time.sleep(self.look_every)

    def finish(self):
        self.wait()
        self.tearless("wait", "all")
        self.took = self.seconds()
        self.tearless("stop")
        self.tearless("verify")
        self.known = json.loads(self.tearless("explain", "last", "--json"))

    def kill_in_the_middle(self):
        in_the_middle = []

        def reached():
            in_the_middle[:] = [run for run in self.runs() if not run.is_done() and run.engine() and 0 < run.checkpoint() < run.step()]
            return in_the_middle and self.part_done() >= KILL_AT

        self.wait(reached)
        if not in_the_middle:
            sys.exit("gpu_sweep: the sweep ended before anything could be killed; give its runs more updates")
        run, engine = in_the_middle[0], in_the_middle[0].engine()
        os.kill(self.daemon, signal.SIGKILL)
        if engine:
            os.kill(engine, signal.SIGKILL)
        self.killed = [f"after {minutes(self.seconds())}: the daemon, process {self.daemon}", f"and the engine of run {run.id}, process {engine}"]
        while is_alive(self.daemon):
            time.sleep(0.01)
        self.machine.note_memory(self.runs())
        self.start_daemon()

    def adopted(self):
        return len(re.findall(r"  adopted", (self.workspace / "service.log").read_text()))

    def table(self):
        return self.tearless("table", "last").replace(str(self.workspace), "WORKSPACE")

    def end_whatever_happened(self):
        subprocess.run([self.machine.programs / "tearless", "stop", "--now", "--workspace", self.workspace], capture_output=True,
                       env=self.machine.environment)


def claims_of(packed, alone):
    """Claim → whether it holds, and what differs."""
    claims = {"the tables are equal": (packed.table() == alone.table(), "")}
    ids = [[run.id for run in sweep.runs()] for sweep in (packed, alone)]
    claims["both have the same runs, all done or diverged"] = (
        ids[0] == ids[1] and all(run["state"] in ("done", "diverged") for sweep in (packed, alone) for run in sweep.known), "")
    for name in RESULTS:
        pairs = zip(packed.runs(), alone.runs())
        differ = [a.id for a, b in pairs if (a.path / name).exists() != (b.path / name).exists()
                  or (a.path / name).exists() and a.digest(name) != b.digest(name)]
        claims[f"{name} of all {len(ids[0])} runs is equal"] = (not differ, ", ".join(differ))
    return claims | precision_claims(packed)


def precision_claims(sweep):
    """Of each norm, that both precisions have the same dev BLEU, but for what the seeds change."""
    bleu = {}
    for run in json.loads(sweep.tearless("runs", "last", "--json")):
        if precision := run["coordinates"].get("run.precision"):
            bleu.setdefault(run["coordinates"]["model.norm.kind"], {}).setdefault(precision, []).append(run["scores"]["dev.bleu_13a"])
    return {f"bf16 scores within seed noise of fp32 with {norm}": (
        abs(statistics.mean(of["fp32"]) - statistics.mean(of["bf16"])) <= max(1, *(max(b) - min(b) for b in of.values())), str(of))
        for norm, of in bleu.items()}


def page_of(machine, options, updates, packed, alone, claims):
    lines = [f"# A sweep over {len(machine.gpus)} GPU{'s' if len(machine.gpus) > 1 else ''}, killed and resumed", ""]
    if options.fake:
        lines += ["With fake GPUs and a fake engine: this shows the steps, not a measurement.", ""]
    lines += [f"{len(packed.known)} runs of {updates:,} updates. GPU, driver, memory:", "", *(f"- {gpu}" for gpu in machine.gpus), ""]
    lines += ["## Equal to an undisturbed sweep", ""]
    lines += [f"- {'holds' if holds else '**broken**'}: {claim}{': ' + what if what else ''}" for claim, (holds, what) in claims.items()]
    lines += ["", "## Killed (kill -9)", "", ", ".join(packed.killed) + f". The new daemon adopted {packed.adopted()} runs.", "",
              "| run | ended | lost |", "|---|---|---|"]
    for run in packed.known:
        lines += [f"| {run['id']} {run['title']} | {attempt['outcome']} | {lost_text(attempt['lost'])} |"
                  for attempt in run["attempts"] if attempt["outcome"] not in ("done", "diverged")]
    titles = {run["id"]: run["title"] for run in packed.known}
    lines += ["", "## Memory of one run", "", "| runs like | estimated | measured peak |", "|---|---|---|", *memory_lines(packed, titles)]
    lines += ["", "## Time", "", "| | wall time | most runs on one GPU |", "|---|---|---|",
              f"| {options.runs_per_gpu} a GPU, killed and resumed | {minutes(packed.took)} | {packed.most_on_one} |",
              f"| one run a GPU, undisturbed | {minutes(alone.took)} | {alone.most_on_one} |", ""]
    if not options.fake:
        lines += [f"The first was {alone.took / packed.took:.2f} times as fast.", ""]
    lines += ["## Table", "", "```", packed.table().rstrip(), "```", "", f"By `{' '.join(['tools/gpu_sweep.sh', *sys.argv[1:]])}`."]
    return "\n".join(lines) + "\n"


def lost_text(lost):
    return f"{lost['updates']} updates, {minutes(lost['seconds'])}" if lost else "not known"


def memory_lines(sweep, titles):
    learnt = {row["resource_class"]: json.loads(row["learnt"]) for row in json.loads(sweep.tearless("sql", "SELECT resource_class, learnt FROM resource_classes", "--json"))}
    seen = set()
    for id, row in sweep.resource_classes.items():
        if row["resource_class"] in seen:
            continue
        seen.add(row["resource_class"])
        peak = learnt.get(row["resource_class"], {}).get("peak_bytes")
        yield f"| {titles[id]} | {size(row['memory_bytes']) if row['memory_bytes'] else 'not known'} | {size(peak) if peak else 'not measured'} |"


def main():
    parser = argparse.ArgumentParser(prog="gpu_sweep.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, help="of each run, a multiple of 10 (default: 4000)")
    parser.add_argument("--seeds", type=int, help="four runs a seed (default: 3)")
    parser.add_argument("--runs-per-gpu", type=int, default=2, help="of the first sweep (default: 2)")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin", help="the folder of the programs (default: build/bin)")
    parser.add_argument("--portable", type=pathlib.Path, help="instead of --bin: what tools/portable.sh gathered")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "results/bench/gpu_sweep.md", help="default: results/bench/gpu_sweep.md")
    parser.add_argument("--fake", action="store_true", help="with fake GPUs and a fake engine, in seconds; needs --page")
    options = parser.parse_args()
    if options.fake and options.page == parser.get_default("page"):
        fail("--fake measures nothing: name another file for its page with --page")
    if options.updates is not None and (options.updates < 10 or options.updates % 10):
        fail(f"--updates {options.updates} is not a multiple of 10")
    if options.seeds is not None and options.seeds < 1:
        fail(f"--seeds {options.seeds} is not a number from 1")

    folder = pathlib.Path(tempfile.mkdtemp(prefix="tearless-gpu-sweep-"))
    sweeps, equal = [], False
    try:
        machine = FakeMachine(options, folder) if options.fake else Machine(options)
        updates = options.updates or (FAKE_UPDATES if options.fake else 4000)
        seeds = options.seeds or (2 if options.fake else 3)
        grid = folder / "gpu_sweep.toml"
        text = FAKE_GRID if options.fake else GRID
        look_every = 0.05 if options.fake else 0.5

        def sweep(name, runs_per_gpu, sleep):
            grid.write_text(text.format(root=ROOT, seeds=seeds, updates=updates, epoch=updates // 10, sleep=sleep))
            sweeps.append(Sweep(machine, folder / name, grid, updates, look_every, ["--runs-per-gpu", str(runs_per_gpu)]))
            sweeps[-1].start()
            return sweeps[-1]

        packed = sweep("packed", options.runs_per_gpu, FAKE_SLEEP)
        packed.kill_in_the_middle()
        packed.finish()
        print(f"gpu_sweep: killed and resumed: {minutes(packed.took)}", flush=True)
        alone = sweep("alone", 1, 10)
        alone.finish()
        print(f"gpu_sweep: undisturbed, one run a GPU: {minutes(alone.took)}", flush=True)

        claims = claims_of(packed, alone)
        page = page_of(machine, options, updates, packed, alone, claims)
        equal = all(holds for holds, _ in claims.values())
    finally:
        for sweep in sweeps:
            sweep.end_whatever_happened()
        if equal:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"gpu_sweep: the workspaces are kept: {folder}", file=sys.stderr)
    options.page.parent.mkdir(parents=True, exist_ok=True)
    options.page.write_text(page)
    for claim, (holds, what) in claims.items():
        print(f"{'holds ' if holds else 'BROKEN'}  {claim}{': ' + what if what else ''}")
    print(f"gpu_sweep: {options.page}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
