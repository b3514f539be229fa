"""A sweep of tearless-engine that the workers of a cluster train, and the same sweep on this machine alone."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import typing

import configuration

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("TEARLESS_BIN", ROOT / "build/bin")).resolve()
SECONDS = 300  # until what should take some seconds has failed: a machine may be busy
SILENCE = 600  # of a worker of whose job Slurm knows nothing, until its runs are granted again

# Three runs of some ten seconds on a core, with a checkpoint in each half of a second, and a short derived run of each.
GRID = f"""\
title = "A sweep that Slurm disturbs"
base  = "{ROOT}/grids/base/demo.toml"
seeds = 1
[set]
"model.encoder_layers" = 1
"model.decoder_layers" = 1
"train.batch.tokens"   = 512
"train.epoch_updates"  = 40
"train.max_epochs"     = 20
"decode.beam"          = 1
"decode.max_extra"     = 10
"run.log_updates"      = 10
[axis]
"model.norm.kind" = ["layer_norm", "scale_norm", "rms_norm"]
[derived.wide]
beam = 2
[table]
rows   = "model.norm.kind"
scores = ["test.*", "train.*", "wide.test.*"]
"""
EXECUTOR = """\
[bed]
kind    = "slurm"
workers = {workers}
cpus    = {cpus}
{more}
"""
# What may differ between two sweeps: times, processes and places.
NOT_COMPARED = {"attempts", "lock", "local.toml", "resume.json"}


def why_not():
    """A sentence why no sweep can be trained here; "" if it can."""
    return "" if (BIN / "tearless-engine").exists() else f"a sweep through Slurm needs tearless-engine in {BIN}"


def visible():
    """Folders that the machines must be shown."""
    return [path for path in {ROOT, BIN} if any(path.is_relative_to(private) for private in ("/tmp", "/dev/shm"))]


def wait_for(condition, what, seconds=SECONDS, note=lambda: ""):
    """Returns what `condition` returns once that is true."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}\n{note()}")
        time.sleep(0.2)
    return result


def environment():
    """For tearless, without what the tests' own environment says of places."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith("TEARLESS_") and name not in ("TMPDIR", "XDG_RUNTIME_DIR")} | {
        "TEARLESS_ENGINE": str(BIN / "tearless-engine"), "OMP_NUM_THREADS": "1"}


def results_of(workspace):
    """{path: bytes} of what a sweep leaves and must not depend on who trained it. Not what a killed process had not finished."""
    return {str(file.relative_to(workspace)): file.read_bytes() for file in sorted(workspace.glob("runs/*/**/*"))
            if file.is_file() and file.relative_to(workspace).parts[2] not in NOT_COMPARED and not re.search(r"\.tmp\d+$", file.name)}


def lost_updates(attempt):
    """Of an attempt, as `explain` tells of it: those after its newest checkpoint."""
    return attempt["lost"]["updates"] if attempt["lost"] else 0


class LocalSweep:
    """The sweep on this machine, which begins in the background. `more`: options of `run`."""

    def __init__(self, folder, *more):
        self.folder = folder
        folder.mkdir(parents=True)
        (folder / "grid.toml").write_text(GRID)
        self.log = open(folder / "log", "w+")
        self.training = subprocess.Popen([BIN / "tearless", "run", "grid.toml", *more], cwd=folder, env=environment(),
                                         stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.done = None

    def results(self):
        """(table, files)"""
        if self.done is None:
            code = self.training.wait(timeout=SECONDS)
            self.log.close()
            if code != 0:
                raise AssertionError((self.folder / "log").read_text())
            table = subprocess.run([BIN / "tearless", "table", "last"], cwd=self.folder, env=environment(), check=True,
                                   stdout=subprocess.PIPE, text=True).stdout
            self.done = table, results_of(self.folder / "results")
        return self.done


class Attempt(typing.NamedTuple):
    """One on a run, by a worker."""

    run: str
    number: int
    worker: str
    folder: pathlib.Path  # in which the program trains

    @property
    def node(self):
        return self.worker.rpartition("-")[0]

    @property
    def checkpoint(self):
        """The newest one's update, 0: there is none."""
        with contextlib.suppress(FileNotFoundError):
            return max((int(path.name.removeprefix("step-")) for path in (self.folder / "checkpoints").glob("step-*")), default=0)
        return 0

    @property
    def is_done(self):
        return (self.folder / "DONE").exists()

    @property
    def metrics(self):
        """Bytes of metrics.jsonl."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "metrics.jsonl").stat().st_size
        return 0


class Sweep:
    """In the shared folder of a cluster. `workers`, `cpus`, `more`: of the executor."""

    def __init__(self, cluster, name, workers=3, cpus=1, more=""):
        self.cluster = cluster
        self.folder = cluster.shared / name
        self.workspace = self.folder / "results"
        self.machine = configuration.LOGIN  # on which commands are typed
        self.program_words = [BIN / "tearless"]
        self.jobs_seen = {}
        self.folder.mkdir()
        (self.folder / "grid.toml").write_text(GRID)
        (self.folder / "executors.toml").write_text(EXECUTOR.format(workers=workers, cpus=cpus, more=more))

    def set_variables(self, **variables):
        """Of the environment of its commands, and so of its service and its jobs."""
        self.program_words = ["env", *(f"{name}={value}" for name, value in variables.items()), BIN / "tearless"]

    # --- commands ---

    SUBMIT = ["grid.toml", "--executor", "bed", "--executor-file", "executors.toml"]

    def start(self, *words):
        """Starts a command of tearless; its output is in a file of the folder."""
        with open(self.folder / f"{words[0]}.log", "a") as log:
            return subprocess.Popen(self.cluster.command(self.machine, *self.program_words, *words), cwd=self.folder,
                                    env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def tearless(self, *words, check=True):
        return self.cluster.run(self.machine, *self.program_words, *words, check=check, cwd=self.folder, env=environment(),
                                stdin=subprocess.DEVNULL)

    def submit(self, *more, check=True):
        return self.tearless("submit", *self.SUBMIT, *more, check=check)

    def slurm(self, *words):
        return self.cluster.run(configuration.LOGIN, *words).stdout.strip()

    def wait(self, seconds=SECONDS):
        """Until all runs have ended; starts a service if there is none."""
        waiting = self.start("wait", "last")
        wait_for(lambda: waiting.poll() is not None, "the sweep ends", seconds, note=self.describe)
        if waiting.returncode != 0:
            raise AssertionError(self.describe())

    def describe(self):
        """For a person who has to find out what went wrong."""
        texts = [self.tearless(*words, check=False).stdout for words in (["status"], ["explain", "last"])]
        texts.append(self.cluster.run("login", "squeue", "-t", "all", check=False).stdout)
        texts += [f"{file.name}:\n{file.read_text(errors='replace')}" for file in
                  [*self.folder.glob("*.log"), *self.workspace.glob("service.log"), *self.workspace.glob("queue/jobs/*.out")]]
        for machine in configuration.MACHINES:
            texts += [f"{machine}: {pid} {line[-200:]}" for pid, line in self.cluster.processes(machine, "tearless").items()]
        return "\n".join(texts)

    # --- what is there ---

    def attempts(self):
        """Those whose work folders are there, of runs without a result: [Attempt]."""
        found = []
        for folder in self.workspace.glob("runs/*/attempts/*/work.*/*"):
            run, number, worker = folder.parts[-5], int(folder.parts[-3]), folder.parts[-2].removeprefix("work.")
            if folder.name == run and not folder.is_symlink():
                found.append(Attempt(run, number, worker, folder))
        return sorted(found)

    def program(self, attempt):
        """The pid of the attempt's training program, as seen from outside; None if it has ended."""
        for pid, line in self.cluster.processes(attempt.node, f"train {attempt.folder}").items():
            return pid
        return None

    def jobs(self):
        """{worker: its job, "17_0"}, also of those whose files are removed since the last call"""
        for file in self.workspace.glob("queue/workers/*.jsonl"):
            with contextlib.suppress(FileNotFoundError, json.JSONDecodeError), open(file) as lines:
                self.jobs_seen[file.stem] = json.loads(lines.readline())["job"].partition("@")[0]
        return self.jobs_seen

    def job(self, attempt):
        return self.jobs()[attempt.worker]

    def workers_of(self, job):
        return [worker for worker, of in self.jobs().items() if of == job]

    def word_for(self, job):
        """Slurm's for the state of a job: "RUNNING"; "" if it has forgotten it, None if it does not answer."""
        said = self.cluster.run("login", "squeue", "-h", "-t", "all", "-j", job, "-o", "%T", check=False)
        return said.stdout.strip() if said.returncode == 0 or "Invalid job id" in said.stderr else None

    def services(self):
        return list(self.cluster.processes(self.machine, "tearless daemon"))

    def told(self):
        """{run: what `explain` tells of its attempts}"""
        return {row["id"]: row["attempts"] for row in json.loads(self.tearless("--json", "explain", "last").stdout)}

    def outcomes(self):
        """{run: outcome of each attempt} as the database has them."""
        return {run: [attempt["outcome"] for attempt in attempts] for run, attempts in self.told().items()}

    def states(self):
        """{run: its state}"""
        return {row["id"]: row["state"] for row in json.loads(self.tearless("--json", "explain", "last").stdout)}

    def second_result_of(self, attempt):
        """What `explain` tells of the comparison of its run's two results, None if there was one alone."""
        return next(row["resume"] for row in json.loads(self.tearless("--json", "explain", attempt.run).stdout))

    def jobs_ever(self):
        """Ids of the jobs, one for each element of an array, that Slurm has or had of this sweep's tokens."""
        tokens = {file.stem for file in self.workspace.glob("queue/jobs/*.json")}
        jobs = re.findall(r"^JobId=(\d+) .* Name=tearless-(\w+)", (self.cluster.folder / "log/jobcomp.txt").read_text(), re.MULTILINE)
        jobs += re.findall(r"^(\d+) tearless-(\w+)", self.slurm("squeue", "-h", "-r", "-t", "all", "-o", "%A %j"), re.MULTILINE)
        return {job for job, token in jobs if token in tokens}

    # --- what happens to it ---

    def hold(self, attempt):
        """Stops its program (SIGSTOP). True if it had a checkpoint and no result then."""
        pid = self.program(attempt)
        if pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            if attempt.checkpoint > 0 and not attempt.is_done:
                return True
            os.kill(pid, signal.SIGCONT)
        return False

    def processes_of(self, attempt):
        """Pids of its worker, supervisor and program, which are all that the node has of this program."""
        return list(self.cluster.processes(attempt.node, "tearless"))

    def hold_to_the_end(self, *pids):
        """Stops processes again whenever somebody continues them, as Slurm does before it kills."""
        held = [os.pidfd_open(pid) for pid in pids]

        def hold():
            while held:
                for process in list(held):
                    try:
                        signal.pidfd_send_signal(process, signal.SIGSTOP)
                    except ProcessLookupError:
                        held.remove(process)
                        os.close(process)
                time.sleep(0.001)

        threading.Thread(target=hold, daemon=True).start()

    def release(self, attempt):
        pid = self.program(attempt)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def is_asked_to_stop(self, attempt):
        """Whether SIGTERM waits for its program, which is held."""
        try:
            status = pathlib.Path(f"/proc/{self.program(attempt)}/status").read_text()
        except FileNotFoundError:
            return False
        pending = int(next(line for line in status.splitlines() if line.startswith("ShdPnd:")).split()[1], 16)
        return bool(pending >> (signal.SIGTERM - 1) & 1)

    def caught(self, count=3, number=1):
        """Attempts in the middle of training, each stopped there: the first `count` that have a checkpoint."""
        held = set()

        def catch():
            for attempt in self.attempts():
                if attempt.number >= number and attempt not in held and attempt.checkpoint > 0 and len(held) < count:
                    if self.hold(attempt):
                        held.add(attempt)
            return len(held) == count

        wait_for(catch, f"{count} runs are in the middle", note=self.describe)
        self.jobs()
        return sorted(held, key=lambda attempt: attempt.node)

    def kill_service(self):
        pids = self.services()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return len(pids)
