#!/usr/bin/env python3
"""Ten sweeps of grids/norm_and_placement.toml that are disturbed at random, against one that is not.

A round is a sweep in a workspace of its own. While it is not through, the harness is started again and again, and after a
random time one of these happens:
  kill -9 of the command, of the service, of all supervisors, of all engines, of everything, or of any subset of the processes;
  Ctrl-C once or twice; SIGTERM; a supervisor that is stopped (SIGSTOP) before the harness is killed;
  the disk is full for some seconds (the workspace is on a small tmpfs of its own; skipped if none can be mounted);
  the clock on the wall jumps by up to two days, either way (by libfaketime, the machine's stays; left out where it is not
  installed).
Then the sweep is run to its end. The table, every scores.json, metrics.jsonl and gradient_norms.f32 must be those of the undisturbed
sweep, byte for byte, and no process may be left. Exit code 0 where all rounds were equal.

With --daemon the grid is submitted to a daemon, which is killed and started again in place of the harness, and it and its
runs are also paused and resumed at random.
"""

import argparse
import collections
import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAKETIME = next(iter(sorted(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)
IN_NAMESPACE = "TEARLESS_TORTURE_NAMESPACE"
DISK_BYTES = 192 << 20


def processes(workspace):
    """pid -> "harness" (a command), "service", "supervisor" or "engine", of all that belong to the workspace."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if not any(str(workspace) in word for word in words):
            continue
        if "supervise" in words:
            found[int(entry.name)] = "supervisor"
        elif "train" in words:
            found[int(entry.name)] = "engine"
        elif "daemon" in words:
            found[int(entry.name)] = "service"
        elif "run" in words and "tearless" in words[0]:
            found[int(entry.name)] = "harness"
    return found


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Sweep:
    def __init__(self, folder, binaries, grid, jobs):
        self.workspace = folder / "results"
        self.workspace.mkdir()
        self.binaries, self.grid, self.jobs = binaries, grid, jobs
        self.clock = folder / "clock"
        self.log = folder / "log"
        self.set_clock(0)

    def set_clock(self, seconds):
        self.clock.write_text(f"{seconds:+d}s\n")

    def environment(self):
        extra = {"TEARLESS_IDLE_SECONDS": "0"}  # a service that a command has started leaves with its work
        if FAKETIME:
            extra |= {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(self.clock), "FAKETIME_NO_CACHE": "1",
                     "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_RESET": "1"}
        return os.environ | extra

    def command(self, verb, *more):
        return [self.binaries / "tearless", verb, "--workspace", self.workspace, *more]

    def spawn(self, *command):
        with open(self.log, "ab") as log:
            return subprocess.Popen(self.command(*command), stdout=log, stderr=log, env=self.environment())

    def start(self):
        return self.spawn("run", self.grid, "--jobs", str(self.jobs))

    def run_to_the_end(self):
        for _ in range(30):
            if self.start().wait() == 0:
                return
        sys.exit(f"torture: the sweep does not end; its output is {self.log}\n{self.log.read_text()[-2000:]}")

    def result(self):
        table = subprocess.run(self.command("table", self.grid), capture_output=True, text=True, check=True, env=self.environment()).stdout
        sums = {}
        for run in sorted((self.workspace / "runs").iterdir()):
            for name in ("scores.json", "metrics.jsonl", "gradient_norms.f32"):
                sums[f"{run.name}/{name}"] = hashlib.sha256((run / name).read_bytes()).hexdigest()
        # The advice under a table names the workspace, which is each round's own.
        return table.replace(str(self.workspace), "WORKSPACE"), sums

    def attempts(self):
        return sum(len(list((run / "attempts").iterdir())) for run in (self.workspace / "runs").iterdir())


class Daemon:
    """A daemon and the command that waits for the sweep: what play_round() takes for a `tearless run`."""

    def __init__(self, sweep):
        self.sweep = sweep
        self.daemon = sweep.spawn("daemon", "--jobs", str(sweep.jobs))
        self.pid = self.daemon.pid
        # Every command may be repeated, and starts a service of its own where the daemon was killed.
        for command in (("submit", sweep.grid), ("resume", "all"), ("resume", "held")):
            sweep.spawn(*command).wait()
        self.waiting = sweep.spawn("wait", "all")

    def poll(self):
        """0: the sweep is through; None: the daemon works on it."""
        if self.waiting.poll() == 0:
            self.sweep.spawn("stop").wait()
            self.daemon.wait()
            return 0
        if self.daemon.poll() is None:
            return None
        self.waiting.kill()
        self.waiting.wait()
        return self.daemon.returncode or 1

    def wait(self, timeout=None):
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired("tearless daemon", timeout)
            if self.waiting.poll() is not None:  # something was paused or failed meanwhile
                for command in (("resume", "all"), ("resume", "held")):
                    self.sweep.spawn(*command).wait()
                self.waiting = self.sweep.spawn("wait", "all")
            time.sleep(0.05)
        return code


class DaemonSweep(Sweep):
    def start(self):
        return Daemon(self)


class Disturber:
    """What can happen to a sweep; each method is one kind."""

    def __init__(self, sweep, chance):
        self.sweep, self.chance = sweep, chance

    def pids(self, *kinds):
        return [pid for pid, kind in processes(self.sweep.workspace).items() if not kinds or kind in kinds]

    def kill_harness(self, harness):
        send([harness.pid], signal.SIGKILL)

    def kill_the_service(self, _):
        send(self.pids("service"), signal.SIGKILL)

    def kill_supervisors(self, _):
        send(self.pids("supervisor"), signal.SIGKILL)

    def kill_engines(self, _):
        send(self.pids("engine"), signal.SIGKILL)

    def kill_everything(self, _):
        send(self.pids(), signal.SIGKILL)

    def kill_some(self, _):
        send([pid for pid in self.pids() if self.chance.random() < 0.5], signal.SIGKILL)

    def press_ctrl_c(self, harness):
        send([harness.pid], signal.SIGINT)

    def press_ctrl_c_twice(self, harness):
        send([harness.pid], signal.SIGINT)
        time.sleep(self.chance.uniform(0, 0.3))
        send([harness.pid], signal.SIGINT)

    def terminate_harness(self, harness):
        send([harness.pid], signal.SIGTERM)

    def terminate_engines(self, _):
        send(self.pids("engine"), signal.SIGTERM)

    def stop_a_supervisor(self, harness):
        supervisors = self.pids("supervisor")[:1]
        send(supervisors, signal.SIGSTOP)
        time.sleep(self.chance.uniform(0, 1))
        send([harness.pid], signal.SIGKILL)
        send(supervisors, self.chance.choice([signal.SIGCONT, signal.SIGKILL]))

    def fill_the_disk(self, _):
        ballast = self.sweep.workspace.parent / "ballast"
        try:
            with open(ballast, "wb") as file:
                while True:
                    file.write(b"\0" * (1 << 20))
        except OSError:
            pass
        time.sleep(self.chance.uniform(0.5, 3))
        ballast.unlink()

    def move_the_clock(self, _):
        self.sweep.set_clock(self.chance.randint(-2 * 86400, 2 * 86400))

    def kinds(self):
        names = [name for name in vars(type(self)) | vars(Disturber) if not name.startswith("_") and name not in ("pids", "kinds")]
        if not FAKETIME:
            names.remove("move_the_clock")
        if not os.environ.get(IN_NAMESPACE):
            names.remove("fill_the_disk")
        return names


class DaemonDisturber(Disturber):
    def _request(self, *words):
        self.sweep.spawn(*words).wait()

    def pause_and_resume(self, _):
        self._request("pause", "all")
        time.sleep(self.chance.uniform(0, 1))
        self._request("resume", "all")

    def pause_and_resume_a_run(self, _):
        self._request("pause", str(self.chance.randint(1, 4)))
        time.sleep(self.chance.uniform(0, 1))
        self._request("resume", "held")

    def stop_the_daemon(self, _):
        self._request("stop", *self.chance.choice([[], ["--now"]]))


def play_round(folder, options, chance):
    arguments = folder, options.binaries, options.grid_file, options.jobs
    sweep = DaemonSweep(*arguments) if options.daemon else Sweep(*arguments)
    disturber = (DaemonDisturber if options.daemon else Disturber)(sweep, chance)
    happened = collections.Counter()
    while sum(happened.values()) < options.disturbances:
        harness = sweep.start()
        while sum(happened.values()) < options.disturbances and harness.poll() is None:
            try:
                harness.wait(timeout=chance.uniform(0.05, options.longest_wait))
                break
            except subprocess.TimeoutExpired:
                kind = chance.choice(disturber.kinds())
                happened[kind] += 1
                getattr(disturber, kind)(harness)
        if harness.poll() == 0:
            break  # through before all was tried
        if harness.poll() is None:
            send([harness.pid], signal.SIGKILL)
        harness.wait()
    sweep.run_to_the_end()
    left = [pid for pid, kind in processes(sweep.workspace).items() if kind not in ("harness", "service")]
    return sweep, happened, left


def grid_of(folder, updates):
    """grids/norm_and_placement.toml, its runs cut down to so many updates (0: whole)."""
    if updates == 0:
        return ROOT / "grids/norm_and_placement.toml"
    text = (ROOT / "grids/norm_and_placement.toml").read_text()
    text = text.replace('"base/demo.toml"', f'"{ROOT}/grids/base/demo.toml"')
    short = f'[set]\n"train.max_updates" = {updates}\n"train.epoch_updates" = {max(1, updates // 3)}\n"run.log_updates" = 7\n\n[axis]'
    text = re.sub(r"^\[axis\]", short, text, count=1, flags=re.M)
    grid = folder / "norm_and_placement.toml"
    grid.write_text(text)
    return grid


def enter_namespace(arguments):
    """Starts this script again where it may mount a small disk of its own; continues here if that is refused."""
    if os.environ.get(IN_NAMESPACE) is not None:
        return
    probe = subprocess.run(["unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True)
    if probe.returncode != 0:
        print("torture: no disk of its own can be mounted here: the disk is never full", flush=True)
        os.environ[IN_NAMESPACE] = ""
        return
    os.environ[IN_NAMESPACE] = "1"
    os.execvp("unshare", ["unshare", "-rm", sys.executable, __file__, *arguments])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--disturbances", type=int, default=12, help="in each round, at most")
    parser.add_argument("--updates", type=int, default=60, help="of each run; 0: the grid's own 800")
    parser.add_argument("--longest-wait", type=float, default=4, help="seconds between two disturbances, at most")
    parser.add_argument("--daemon", action="store_true", help="submit the grid to a daemon that is killed and started again")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "build/bin")
    options = parser.parse_args()
    if not (options.binaries / "tearless-engine").exists():
        sys.exit(f"torture: there is no {options.binaries}/tearless-engine; run `make build`")
    enter_namespace(sys.argv[1:])

    base = pathlib.Path(tempfile.mkdtemp(prefix="tearless-torture-"))
    small_disk = bool(os.environ.get(IN_NAMESPACE))
    if small_disk:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", base], check=True)
    if not FAKETIME:
        print("torture: libfaketime is not installed (package faketime): the clock never jumps", flush=True)
    try:
        options.grid_file = grid_of(base, options.updates)
        (base / "undisturbed").mkdir()
        calm = Sweep(base / "undisturbed", options.binaries, options.grid_file, options.jobs)
        started = time.monotonic()
        calm.run_to_the_end()
        expected = calm.result()
        print(f"torture: seed {options.seed}; undisturbed: {len(expected[1]) // 2} runs in {time.monotonic() - started:.0f} s")
        print(expected[0], flush=True)
        equal = 0
        for number in range(1, options.rounds + 1):
            folder = base / f"round-{number}"
            folder.mkdir()
            started = time.monotonic()
            sweep, happened, left = play_round(folder, options, random.Random(options.seed * 1000 + number))
            result = sweep.result()
            same = result == expected and not left
            equal += same
            what = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in sorted(happened.items()))
            print(f"round {number}: {'equal' if same else 'DIFFERENT'}, {sweep.attempts()} attempts, "
                  f"{time.monotonic() - started:.0f} s: {what}", flush=True)
            if result[0] != expected[0]:
                print(result[0])
            if result[1] != expected[1]:
                print("  other bytes:", *(name for name in expected[1] if result[1].get(name) != expected[1][name]))
            if left:
                print("  left alive:", *left)
                send(left, signal.SIGKILL)
            if same:
                shutil.rmtree(folder)
        print(f"torture: {equal} equal tables of {options.rounds}")
        return 0 if equal == options.rounds else 1
    finally:
        if small_disk:
            subprocess.run(["umount", "-l", base])
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
