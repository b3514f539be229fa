#!/usr/bin/env python3
"""How the harness behaves with many runs: times submission, restart, the overhead per job, ingestion, queries and the
pages of `tearless serve`, and prints them beside their goals.

    tools/bench/scale.py [--bin build/bin] [--folder DIR] [--part NAME ...] [--markdown FILE] [--scale 1.0]

The training program is fake-engine (tests/support/fake_engine.cc), which is part of the tests: its trivial runs make one
update. `engine` plans through tearless-engine. --folder: on the disk whose cost is to be measured (default: a folder
of the repository that is deleted afterwards). --scale 0.01: a hundredth of the runs, to try the script. Plans,
submissions, status and tables are the shortest of three; all else happens once. Beside the overhead per job stand the
same runs without the harness, and GNU parallel if it is installed.
"""

import argparse
import datetime
import hashlib
import html
import http.client
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from measured import processor, run, table, write

PARTS = ["fsync", "submit", "restart", "watch", "jobs", "ingest", "serve", "engine"]


def grid(runs, seeds, sleep_ms=0, batch=1):
    axis = ", ".join(str(i) for i in range(runs // seeds))
    return (f'title = "scale"\nseeds = {seeds}\n[policy]\ngrace = 1\n[set]\n"fake.updates" = 1\n"fake.sleep_ms" = {sleep_ms}\n"model.batch" = {batch}\n'
            f'[axis]\n"model.n" = [{axis}]\n[table]\nscores = ["test.score"]\n')


class Bench:
    def __init__(self, options):
        self.bin = options.bin.resolve()
        self.folder = options.folder
        self.scale = options.scale
        self.rows = []  # (what, measured, goal, met or None)

    def runs(self, count, seeds=100):
        return max(seeds, int(count * self.scale) // seeds * seeds)

    def report(self, what, measured, unit, goal=None, at_most=True):
        met = None if goal is None else (measured <= goal if at_most else measured >= goal)
        limit = "–" if goal is None else f"{'≤' if at_most else '≥'} {goal:g} {unit}"
        number = f"{measured:,.3g} {unit}" if measured < 1000 else f"{measured:,.0f} {unit}"
        self.rows.append((what, number, limit, "–" if met is None else "yes" if met else "no"))
        print(f"{what}: {number}" + ("" if met is None else f" ({limit}: {'met' if met else 'missed'})"), flush=True)

    def place(self, name):
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        return place

    def tearless(self, place, *arguments, engine="fake-engine"):
        """Runs a command; returns its seconds."""
        begin = time.monotonic()
        done = subprocess.run([self.bin / "tearless", *map(str, arguments), "--engine", self.bin / engine], cwd=place,
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"scale: tearless {' '.join(map(str, arguments))}: {done.stderr or done.stdout}")
        return time.monotonic() - begin

    def shortest(self, place, *arguments, **options):
        """The seconds of a command that can be repeated: the shortest of three."""
        return min(self.tearless(place, *arguments, **options) for _ in range(3))

    def daemon(self, place, *arguments):
        begin = time.monotonic()
        self.tearless(place, "daemon", "--background", *arguments)
        return time.monotonic() - begin

    def daemon_pid(self, place):
        done = subprocess.run([self.bin / "tearless", "status"], cwd=place, capture_output=True, text=True)
        return int(done.stdout.rsplit("(process ", 1)[1].split(",")[0])

    # --- parts

    def fsync(self):
        place = self.place("fsync")
        count = 200
        with open(place / "file", "wb", buffering=0) as file:
            begin = time.monotonic()
            for _ in range(count):
                file.write(b"x" * 4096)
                os.fsync(file.fileno())
        self.report("one write of 4 KiB with fsync", 1000 * (time.monotonic() - begin) / count, "ms")

    def submission(self, place, workspace):
        """The seconds of a submission; the service that it starts is stopped then."""
        seconds = self.tearless(place, "submit", "grid.toml", "--workspace", workspace)
        self.stop(place, workspace)
        return seconds

    def stop(self, place, workspace="results"):
        """Ends the service and its runs, and waits for them."""
        self.tearless(place, "stop", "--now", "--wait", "--workspace", workspace)

    def submit(self):
        for runs, plan_goal, goal, status_goal in ((self.runs(10_000), 1.5, 0.5, 0.2), (self.runs(100_000), 12, 8, None)):
            place = self.place("submit")
            (place / "grid.toml").write_text(grid(runs, 100))
            plan = self.shortest(place, "plan", "grid.toml")
            first = min(self.submission(place, f"results{i}") for i in range(3))
            self.report(f"plan {runs:,} runs (fake program)", plan, "s", plan_goal)
            self.report(f"submit {runs:,} runs, without planning them", first - plan, "s", goal)
            again = min(self.submission(place, "results0") for _ in range(3))
            self.report("submit them again", again - plan, "s")
            status = self.shortest(place, "status", "--workspace", "results0")
            self.report(f"status of {runs:,} queued runs", status, "s", status_goal)

    def restart(self):
        sweeps, runs = 100, self.runs(1_000)
        place = self.place("restart")
        names = [f"grid{n}.toml" for n in range(sweeps)]
        for n, name in enumerate(names):
            (place / name).write_text(grid(runs, 100, sleep_ms=100_000, batch=n))
        self.report(f"submit {sweeps} grids of {runs:,} runs, planned (fake program)", self.tearless(place, "submit", *names), "s")
        self.tearless(place, "pause", "all")
        self.stop(place)
        self.report(f"restart of the daemon with {sweeps * runs:,} runs of {sweeps} sweeps, all paused", self.daemon(place), "s", 1)
        self.tearless(place, "resume", "all")
        pid = self.daemon_pid(place)
        os.kill(pid, signal.SIGKILL)
        time.sleep(1)
        self.report(f"restart of the killed daemon with {sweeps * runs:,} active runs of {sweeps} sweeps", self.daemon(place), "s", 1)
        pid = self.daemon_pid(place)
        time.sleep(3)
        wait = subprocess.Popen([self.bin / "tearless", "wait", "all"], cwd=place, stderr=subprocess.DEVNULL)
        time.sleep(1)
        before, begin = [cpu_seconds(p) for p in (pid, wait.pid)], time.monotonic()
        time.sleep(20)
        share = [100 * (cpu_seconds(p) - b) / (time.monotonic() - begin) for p, b in zip((pid, wait.pid), before)]
        wait.kill()
        wait.wait()
        self.report("CPU of the daemon while runs train", share[0], "%", 1)
        self.report("CPU of tearless wait all", share[1], "%", 5)
        self.stop(place)

    def watch(self):
        """Two runs train for as long as this takes; all others wait."""
        place, runs = self.place("watch"), self.runs(10_000)
        (place / "grid.toml").write_text(grid(runs, 100, sleep_ms=100_000))
        self.tearless(place, "submit", "grid.toml", "--jobs", 2)
        pid, seconds = self.daemon_pid(place), 20
        time.sleep(2)
        alone = cpu_share(pid, lambda: time.sleep(seconds))
        terminal, end = pty.openpty()
        watching = subprocess.Popen([self.bin / "tearless", "watch"], cwd=place, stdin=end, stdout=end, stderr=end)
        time.sleep(2)
        redraws = []

        def read_redraws():
            begin = last = time.monotonic()
            while time.monotonic() < begin + seconds:
                if select.select([terminal], [], [], 0.1)[0]:
                    os.read(terminal, 65536)
                    if time.monotonic() - last > 0.1:  # else the rest of one
                        redraws.append(last)
                    last = time.monotonic()

        drawn = cpu_seconds(watching.pid)
        watched = cpu_share(pid, read_redraws)
        drawn = cpu_seconds(watching.pid) - drawn
        self.report(f"CPU of the daemon for one tearless watch, of {runs:,} runs", max(0, watched - alone), "%", 1)
        self.report("CPU time of a redraw", 1000 * drawn / len(redraws), "ms", 50)
        self.report("redraws in a second", len(redraws) / seconds, "")
        watching.kill()
        watching.wait()
        self.stop(place)

    def jobs(self):
        goal = 6
        for runs in (self.runs(1_000), self.runs(10_000)):
            place = self.place("jobs")
            (place / "grid.toml").write_text(grid(runs, 100))
            plan = self.tearless(place, "plan", "grid.toml")
            seconds = self.tearless(place, "run", "grid.toml", "--jobs", os.cpu_count())
            per_job = 1000 * (seconds - plan) / runs
            alone = self.alone(place, runs)
            self.report(f"a trivial job, of {runs:,}, with its program", per_job, "ms")
            self.report(f"its program alone, {os.cpu_count()} at a time (xargs)", alone, "ms")
            self.report(f"overhead of the harness per job, of {runs:,}", per_job - alone, "ms", goal)
        if shutil.which("parallel"):
            begin = time.monotonic()
            subprocess.run(["parallel", "-j", str(os.cpu_count())], input="true\n" * 1000, text=True, check=True, capture_output=True)
            self.report("a job /bin/true, of 1,000, by GNU parallel", time.monotonic() - begin, "ms")
        # Churn: does the memory of a daemon grow with the runs that have ended?
        place = self.place("churn")
        self.daemon(place, "--jobs", os.cpu_count())
        pid = self.daemon_pid(place)
        sizes = []
        for batch in range(5):  # SQLite's cache of pages is full after three
            (place / f"grid{batch}.toml").write_text(grid(self.runs(1_000), 100, batch=batch))
            self.tearless(place, "submit", f"grid{batch}.toml")
            self.tearless(place, "wait", "all")
            sizes.append(rss(pid))
        self.report(f"growth of the daemon's memory per run that has ended, after the first {3 * self.runs(1_000):,}",
                    (sizes[4] - sizes[2]) / (2 * self.runs(1_000)), "bytes", 300)
        self.report("CPU of an idle daemon", cpu_share(pid, lambda: time.sleep(20)), "%", 0.5)
        self.stop(place)

    def alone(self, place, runs):
        """The training program on the same runs without the harness: milliseconds each."""
        ids = []
        for folder in sorted((place / "results/runs").iterdir()):
            copy = place / "alone" / folder.name
            copy.mkdir(parents=True)
            for name in ("run.toml", "local.toml"):
                shutil.copy(folder / name, copy / name)
            ids.append(str(copy))
        begin = time.monotonic()
        subprocess.run(["xargs", "-P", str(os.cpu_count()), "-n", "1", str(self.bin / "fake-engine"), "train"], input="\n".join(ids),
                       text=True, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return 1000 * (time.monotonic() - begin) / runs

    def rebuilt(self, place, runs, metrics):
        """A workspace in which each of the runs has these lines of metrics. Returns the seconds of the rebuild."""
        (place / "grid.toml").write_text(grid(runs, 100))
        self.submission(place, "results")
        shutil.rmtree(place / "results/runs", ignore_errors=True)  # the service has begun some
        sweep = next((place / "results/sweeps").iterdir())
        lines = "".join(json.dumps(metric) + "\n" for metric in metrics)
        for line in (sweep / "runs.jsonl").read_text().splitlines():
            job = json.loads(line)
            folder = place / "results/runs" / job["id"]
            folder.mkdir(parents=True)
            scores = json.dumps({"test.score": 20.0}) + "\n"
            (folder / "run.toml").write_text(job["canonical"])
            (folder / "metrics.jsonl").write_text(lines)
            (folder / "scores.json").write_text(scores)
            (folder / "DONE").write_text(json.dumps({
                "id": job["id"], "outcome": "done", "step": metrics[-1]["step"], "reason": "max_updates",
                "files": {"scores.json": hashlib.sha256(scores.encode()).hexdigest()}}))
        subprocess.run(["sync"], check=True)
        return self.tearless(place, "rebuild")

    def ingest(self):
        runs, points = self.runs(10_000), 1000
        place = self.place("ingest")
        seconds = self.rebuilt(place, runs, losses(points))
        self.report(f"rebuild of {runs:,} runs with {points:,} metrics each", seconds, "s", 120)
        self.report("metrics stored durably", runs * points / seconds, "rows/s", 100_000, at_most=False)
        self.report("status of that database", self.shortest(place, "status"), "s", 0.2)
        self.report("table of that database, planning included", self.shortest(place, "table", "grid.toml"), "s", 0.5)
        self.report("  of it the plan", self.shortest(place, "plan", "grid.toml"), "s")

    def serve(self):
        """Pages of a workspace, then one page that is watched while two runs train, by a client that does what
        live.js does."""
        runs, names, evaluations, points = self.runs(10_000), 200, 5, 1000
        place = self.place("serve")
        self.rebuilt(place, runs, losses(points) + [{"step": points // evaluations * (i + 1), "name": f"dev.m{n}", "value": 1 / (i + n + 1)}
                                                    for i in range(evaluations) for n in range(names - 1)])
        size = f"{runs:,} runs with {names} metrics each"
        sweep, some = next((place / "results/sweeps").iterdir()).name, next((place / "results/runs").iterdir()).name
        server = subprocess.Popen([self.bin / "tearless", "serve", "--port", "0"], cwd=place, stdout=subprocess.PIPE, text=True)
        address = server.stdout.readline().strip().removeprefix("http://")
        host, token = address.split("/", 1)
        visitor = Visitor(host, "/" + token)
        self.report(f"first page of serve, of {size}", visitor.seconds("/"), "s", 1)
        self.report("page of the sweep", visitor.seconds(f"/sweep/{sweep}"), "s")
        self.report("page of a run", visitor.seconds(f"/run/{some}"), "s")
        self.report(f"a curve of {points:,} points", visitor.seconds(f"/curve?run={some}&metric=train.loss"), "s", 0.2)
        (place / "trains.toml").write_text(grid(200, 100, sleep_ms=100).replace('"fake.updates" = 1', '"fake.updates" = 100000'))
        self.tearless(place, "submit", "trains.toml", "--jobs", 2)
        time.sleep(2)
        stop = threading.Event()
        watching = threading.Thread(target=visitor.watch, args=("/", stop), daemon=True)
        watching.start()
        time.sleep(5)
        asked = visitor.asked
        share = cpu_share(server.pid, lambda: time.sleep(60))
        self.report("CPU of serve while its first page is watched and two runs train", share, "%", 1)
        self.report("  the page was asked for again, in a minute", visitor.asked - asked, "times")
        stop.set()
        server.send_signal(signal.SIGINT)
        server.wait()
        self.stop(place)

    def engine(self):
        if not (self.bin / "tearless-engine").exists():
            return
        place = self.place("engine")
        runs = self.runs(100_000)
        axis = ",\n".join(f"{1e-4 * (1 + i):.4g}" for i in range(runs // 200))  # a line of TOML has at most 100 dots
        corpus = pathlib.Path("grids/base").resolve()
        (place / "grid.toml").write_text(
            f'title = "plan"\nseeds = 100\nbase = "{corpus}/demo.toml"\n[axis]\n"train.schedule.peak_lr" = [{axis}]\n'
            '"model.norm.kind" = ["layer_norm", "scale_norm"]\n[table]\nscores = ["test.bleu_13a"]\n')
        seconds = self.shortest(place, "plan", "grid.toml", engine="tearless-engine")
        self.report(f"plan {runs:,} runs through tearless-engine", seconds, "s", 12)


class Visitor:
    """A browser with the cookie of a server."""

    def __init__(self, host, address):
        self.host, self.asked, self.headers = host, 0, {}
        self.headers = {"Cookie": self.answer(address)[1].getheader("Set-Cookie").split(";")[0]}

    def answer(self, path):
        connection = http.client.HTTPConnection(self.host, timeout=60)
        connection.request("GET", path, headers=self.headers)
        answer = connection.getresponse()
        return answer.read(), answer

    def seconds(self, path):
        begin = time.monotonic()
        text, answer = self.answer(path)
        if answer.status != 200:
            sys.exit(f"scale: {path}: {answer.status} {text[:200]}")
        return time.monotonic() - begin

    def watch(self, path, stop):
        """At each event asks for the page again, and for the curves that it draws."""
        events = http.client.HTTPConnection(self.host, timeout=60)
        events.request("GET", "/events", headers=self.headers)
        answer = events.getresponse()
        while not stop.is_set() and (line := answer.readline()):
            if line.startswith(b"data:"):
                for drawn in re.findall(r'data-curves="([^"]*)"', self.answer(path)[0].decode()):
                    curves = json.loads(html.unescape(drawn))
                    for curve in curves["runs"]:
                        self.seconds(f"/curve?run={curve['run']}&metric={curves['metrics'][0]}")
                self.asked += 1


def losses(points):
    return [{"step": i + 1, "name": "train.loss", "value": 1 / (i + 1)} for i in range(points)]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_share(pid, meanwhile):
    """The percentage of a core that a process takes while `meanwhile` runs."""
    before, begin = cpu_seconds(pid), time.monotonic()
    meanwhile()
    return 100 * (cpu_seconds(pid) - before) / (time.monotonic() - begin)


def rss(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return 1024 * int(line.split()[1])
    return 0


def page(rows):
    lines = ["# Many runs", "", f"Measured {datetime.date.today()} on {processor()}, {os.cpu_count()} cores. What is timed, and how: "
             "tools/bench/scale.py.", "", *table(["what", "measured", "goal", "met"], rows)]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    if not (options.bin / "fake-engine").exists():
        sys.exit(f"scale: {options.bin}/fake-engine is missing; it is built with the tests: cmake --build build")
    temporary = options.folder is None
    if temporary:
        options.folder = pathlib.Path(tempfile.mkdtemp(prefix="build-scale-", dir="."))
    options.folder = options.folder.resolve()
    bench = Bench(options)
    try:
        for part in options.part:
            getattr(bench, part)()
    finally:
        if temporary:
            shutil.rmtree(options.folder, ignore_errors=True)
    write(options.markdown, page(bench.rows))


if __name__ == "__main__":
    run("scale", main)
