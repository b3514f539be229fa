#!/usr/bin/env python3
"""Mutation testing: changes one place of the program at a time and looks whether a test fails. docs/testing.md says how to read the result.

The mutants are drawn uniformly over the lines of code of base/, engine/ and harness/. Each is built and tested in a copy of the working
tree under build-mutate/, uncommitted changes included; the tree itself is not touched. The test programs run in a sandbox (needs unshare of
util-linux): a mutant may kill the wrong process or remove the wrong folder.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import fcntl
import hashlib
import itertools
import json
import os
import pathlib
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from mutants import mutants_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build-mutate"
PROGRAMS = ("tearless", "tearless-engine", "fake-engine")

# Optimised enough for the tests to be quick, little enough for the compiler to be; without assertions, as `make test` builds it.
CONFIGURATION = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -DNDEBUG", "-DTEARLESS_PCH=ON", "-DTEARLESS_UNITY=OFF",
                 "-DTEARLESS_CUDA=OFF"]

# A namespace of its own, so that nothing outlives the test program and kill(-1) reaches nobody else. For root everything but $TMPDIR and
# /tmp, where GoogleTest writes, is read-only. The limits: memory of a process in KiB, size of a file in blocks of 512 bytes.
NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
SANDBOX = """ulimit -d 8388608; ulimit -f 4194304
if [ "$(id -u)" = 0 ]; then
  mount --bind "$TMPDIR" "$TMPDIR" && mount --bind /tmp /tmp && mount -o remount,bind,ro / || exit 125
fi
cd "$TMPDIR"
"$@"
code=$?; exit $code"""
# A mutant can keep the compiler busy, too: 8 GiB of memory are enough for every file.
LIMITED = ["sh", "-c", 'ulimit -v 8388608; exec "$@"', "sh"]

HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")

KILLED, SURVIVED, HUNG, NO_COMPILE, NO_CHANGE = "killed", "survived", "hung", "does not compile", "no change"
COUNTED = (KILLED, SURVIVED, HUNG)


class Stopped(Exception):
    """What runs was ended because the user asked to stop."""


def room_of(file):
    return os.path.dirname(file).replace("engine/ops/cpu", "engine/ops")


def tracked_files():
    """What belongs to the working tree: tracked files and those that git does not ignore."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    return sorted({name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()})


def changed_since(revision):
    """The lines (file, number) of the working tree that the revision has not."""
    command = ["git", "diff-index", "--patch", "--unified=0", "--no-ext-diff", "--no-prefix", revision, "--"]
    diff = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if diff.returncode:
        sys.exit(f"mutate: git knows no revision {revision}: {diff.stderr.splitlines()[0]}")
    lines, file = set(), ""
    for line in diff.stdout.splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ ")
        elif hunk := HUNK.match(line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            lines.update((file, number) for number in range(first, first + count))
    return lines


def all_mutants(with_engine):
    rooms = ("base/", "harness/", "engine/") if with_engine else ("base/", "harness/")
    files = [name for name in tracked_files() if name.startswith(rooms) and name.endswith((".cc", ".h"))]
    return [mutant for file in files for mutant in mutants_of(file, (ROOT / file).read_text())]


def draws(mutants, seed):
    """All lines in a random order, of each one mutant: every line is as likely, however much stands on it."""
    lines = collections.defaultdict(list)
    for mutant in mutants:
        lines[mutant.file, mutant.line].append(mutant)
    chance = random.Random(seed)
    places = sorted(lines)
    chance.shuffle(places)
    return [chance.choice(lines[place]) for place in places]


@dataclasses.dataclass
class Test:
    """A test program, with the programs that its tests start."""

    name: str
    room: str
    programs: list
    environment: dict
    digest: str = ""  # of all these programs without a mutant
    seconds: float = 0

    def order_for(self, file):
        """Its own room's tests first; then what is quick to build and to run."""
        mine = room_of(file) == self.room
        return not mine, "tearless-engine" in self.programs, self.room.startswith("engine"), self.seconds


class Worker:
    """A copy of the working tree, a build folder and a folder for what tests write."""

    def __init__(self, number, with_engine, build_jobs, scratch, stop):
        self.source = WORK / str(number) / "source"
        self.build = WORK / str(number) / ("build" if with_engine else "build-harness")
        self.bin = self.build / "bin"
        self.temporary = scratch / str(number)
        self.temporary.mkdir()
        self.with_engine, self.build_jobs, self.stop = with_engine, build_jobs, stop
        self.mutated, self.original = None, ""  # the file that has a mutant now, and its text without
        self.tests = []
        self.environment = {
            **os.environ,
            "CCACHE_DIR": str(WORK / "ccache"), "CCACHE_BASEDIR": str(WORK / str(number)), "CCACHE_NOHASHDIR": "1",
            "GIT_CEILING_DIRECTORIES": str(WORK / str(number)),  # the build's stamp stays the same whatever is committed
            "TEARLESS_SHARED": os.environ.get("TEARLESS_SHARED", str(ROOT.parent / "shared"))}

    def command(self, command, seconds):
        return self.commands([command], [self.environment], seconds)

    def commands(self, commands, environments, seconds):
        """Runs commands side by side: the exit code of the first that fails (None: it took too long) and the end of what it wrote."""
        outputs = [tempfile.TemporaryFile(dir=self.temporary) for _ in commands]
        processes = [subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                      cwd=ROOT, env=environment)
                     for command, output, environment in zip(commands, outputs, environments)]
        deadline = time.monotonic() + seconds
        while True:
            codes = [process.poll() for process in processes]
            is_late = time.monotonic() > deadline or self.stop.is_set()
            if is_late or None not in codes or any(codes):
                break
            time.sleep(0.02)
        for process in processes:
            process.terminate() if "cmake" in commands[0] else process.kill()  # ninja ends what it started
            process.wait()
        if self.stop.is_set():
            raise Stopped
        failed = [i for i, code in enumerate(codes) if code] or [i for i, code in enumerate(codes) if code is None] or [0]
        output = outputs[failed[0]]
        output.seek(max(0, output.seek(0, os.SEEK_END) - (1 << 18)))
        return codes[failed[0]], output.read().decode(errors="replace")

    def make(self, targets):
        """Builds; the compiler's complaint, or ""."""
        command = [*LIMITED, "cmake", "--build", self.build, "--parallel", self.build_jobs, "--target", *targets]
        code, output = self.command(command, 3600)
        if "Killed signal" in output:  # the machine had no memory left: once more
            code, output = self.command(command, 3600)
        if code == 0:
            return ""
        errors = re.findall(r"^.*(?:error:|undefined reference).*$", output, re.MULTILINE)
        return (errors or [output.strip()[-1000:] or "the build hung"])[0]

    def run(self, test, seconds):
        """None where all tests pass, else (KILLED or HUNG, by which test)."""
        shards = 4 if test.programs else 1  # tests that start programs mostly wait for them
        folders = [pathlib.Path(tempfile.mkdtemp(prefix="", dir=self.temporary)) for _ in range(shards)]
        environments = []
        for shard, folder in enumerate(folders):
            folder.chmod(0o1777)  # like /tmp: tests also run as the user nobody
            environments.append({**self.environment, **test.environment, "TMPDIR": str(folder), "XDG_CACHE_HOME": str(folder / "cache"),
                                 "GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)})
        identity = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
        command = [*NAMESPACE, *identity, "sh", "-c", SANDBOX, "sh", self.bin / test.name, "--gtest_fail_fast"]
        try:
            code, output = self.commands([command] * shards, environments, seconds)
        finally:
            for folder in folders:
                subprocess.run(["chmod", "-R", "u+rwx", folder], stderr=subprocess.DEVNULL)
                shutil.rmtree(folder, ignore_errors=True)
        if code == 0:
            return None
        failed = re.findall(r"\[  FAILED  \] (\w[\w/]*\.[\w/]+)", output)
        begun = re.findall(r"\[ RUN      \] (\w[\w/]*\.[\w/]+)", output)
        killer = failed[0] if failed else begun[-1] if begun else f"{test.name}: {output.strip()[-200:]}"
        return HUNG if code is None else KILLED, killer

    def digest(self, test):
        digest = hashlib.sha256()
        for program in (test.name, *test.programs):
            digest.update((self.bin / program).read_bytes())
        return digest.hexdigest()

    # --- without a mutant -----------------------------------------------------------------------------------------------------------

    def copy_tree(self):
        """Copies what differs, so that a second run builds only that."""
        wanted = tracked_files()
        self.source.mkdir(parents=True, exist_ok=True)
        for file in self.source.rglob("*"):
            if file.is_file() and str(file.relative_to(self.source)) not in set(wanted):
                file.unlink()
        for name in wanted:
            copy = self.source / name
            if not copy.is_file() or copy.read_bytes() != (ROOT / name).read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy)

    def prepare(self, only_tests):
        """Builds everything without a mutant and finds the test programs, whose shards are put together."""
        self.copy_tree()
        engine = "-DTEARLESS_ENGINE=" + ("ON" if self.with_engine else "OFF")
        code, output = self.command(["cmake", "-G", "Ninja", "-S", self.source, "-B", self.build, *CONFIGURATION, engine], 600)
        if code != 0:
            sys.exit(f"mutate: cannot configure:\n{output}")
        if complaint := self.make(["programs", "tests"]):
            sys.exit(f"mutate: the tree does not build: {complaint}")
        listed = subprocess.run(["ctest", "--test-dir", self.build, "--show-only=json-v1"], stdout=subprocess.PIPE, check=True).stdout
        folders = {"test_" + str(folder.relative_to(ROOT / "tests")).replace("/", "_"): folder
                   for folder in (ROOT / "tests").rglob("*") if folder.is_dir()}
        tests = {}
        for test in json.loads(listed)["tests"]:
            name = pathlib.Path(test.get("command", [""])[0]).name  # none where it was not built: what carries a label
            if name not in folders or not re.search(only_tests, name):
                continue
            lines = dict(entry.values() for entry in test["properties"]).get("ENVIRONMENT", [])
            environment = dict(line.split("=", 1) for line in lines if not line.startswith("GTEST_"))
            code = "".join(file.read_text() for file in folders[name].iterdir() if file.suffix in (".cc", ".h"))
            programs = [program for program in PROGRAMS if f'"{program}"' in code and (self.with_engine or program != "tearless-engine")]
            tests[name] = Test(name, str(folders[name].relative_to(ROOT / "tests")), programs, environment)
        self.tests = list(tests.values())
        for test in self.tests:
            test.digest = self.digest(test)

    def time_tests(self):
        """Every test must pass without a mutant; the time of each is reused while its programs are the same."""
        kept = self.build / "clean.json"
        known = json.loads(kept.read_text()) if kept.exists() else {}
        failures = []
        for test in self.tests:
            if test.digest not in known:
                began = time.monotonic()
                if failure := self.run(test, 3600):
                    failures.append(f"mutate: {test.name} fails without a mutant: {failure[1]}")
                    continue
                known[test.digest] = time.monotonic() - began
                kept.write_text(json.dumps(known))
            test.seconds = known[test.digest]
        if failures:
            sys.exit("\n".join(failures))

    # --- with one -------------------------------------------------------------------------------------------------------------------

    def restore(self):
        if self.mutated:
            (self.source / self.mutated).write_text(self.original)
            self.mutated = None

    def tests_for(self, file, own):
        tests = sorted(self.tests, key=lambda test: test.order_for(file))
        of_the_room = [test for test in tests if test.room == room_of(file)]
        return of_the_room if own and of_the_room else tests

    def evaluate(self, mutant, own):
        """(result, the test that killed it or what the compiler said); own: only the tests of its room are asked."""
        if self.mutated != mutant.file:
            self.restore()
            self.mutated, self.original = mutant.file, (self.source / mutant.file).read_text()
        (self.source / mutant.file).write_text(mutant.applied_to(self.original))
        result = NO_CHANGE
        for test in self.tests_for(mutant.file, own):
            if complaint := self.make([test.name, *test.programs]):
                return NO_COMPILE, complaint
            if self.digest(test) == test.digest:
                continue  # the same programs have the same results
            if failure := self.run(test, 4 * test.seconds + 10):
                return failure
            result = SURVIVED
        return result, ""


class Evaluation:
    """Evaluates mutants by several workers and writes each result immediately."""

    def __init__(self, workers, own, out, total):
        self.own, self.out, self.total, self.done = own, out, total, 0
        self.stop, self.lock, self.free = workers[0].stop, threading.Lock(), queue.SimpleQueue()
        self.pool = concurrent.futures.ThreadPoolExecutor(len(workers))
        for worker in workers:
            self.free.put(worker)

    def evaluate(self, mutants):
        # Mutants of one file share what is rebuilt.
        waiting = [self.pool.submit(self._evaluate, mutant) for mutant in sorted(mutants, key=lambda mutant: (mutant.file, mutant.offset))]
        try:
            return [future.result() for future in waiting]
        except BaseException:
            self.stop.set()
            self.pool.shutdown(cancel_futures=True)
            raise

    def _evaluate(self, mutant):
        worker = self.free.get()
        began = time.monotonic()
        try:
            result, by = worker.evaluate(mutant, self.own)
        finally:
            self.free.put(worker)
        record = dataclasses.asdict(mutant) | {"result": result, "by": by, "seconds": round(time.monotonic() - began, 1)}
        del record["offset"]
        with self.lock:
            self.done += result in COUNTED
            if self.out:
                print(json.dumps(record, ensure_ascii=False), file=self.out, flush=True)
            print(f"{self.done:4}/{self.total}  {result:<16}  {line_of(record)}  ({record['seconds']:.0f} s)", flush=True)
        return record


def short(text, length=56):
    text = " ".join(text.split())
    return text if len(text) <= length else text[:length - 1] + "…"


def line_of(record):
    by = f"  by {short(record['by'], 80)}" if record.get("by") else ""
    return f"{record['id']}  {record['file']}:{record['line']}  {record['kind']}: {short(record['before'])} -> {short(record['after'])}{by}"


def summary_of(records):
    counted = [record for record in records if record["result"] in COUNTED]
    rooms = collections.defaultdict(collections.Counter)
    for record in records:
        rooms[room_of(record["file"])][record["result"]] += 1
        rooms["all"][record["result"]] += 1
    lines = ["", f"{'room':<18} tried  killed    %  survived  hung  redrawn"]
    for room, counts in sorted(rooms.items(), key=lambda entry: (entry[0] == "all", entry[0])):
        tried = sum(counts[result] for result in COUNTED)
        percent = f"{100 * counts[KILLED] / tried:.0f}" if tried else "-"
        lines.append(f"{room:<18} {tried:5}  {counts[KILLED]:6}  {percent:>3}  {counts[SURVIVED]:8}  {counts[HUNG]:4}"
                     f"  {counts[NO_COMPILE] + counts[NO_CHANGE]:7}")
    for result in (SURVIVED, HUNG):
        lines += ["", f"{result}:"] + [f"  {line_of(record)}" for record in counted if record["result"] == result]
    return "\n".join(lines)


def read_list(file):
    """The head of a list (what was drawn how) and its records."""
    try:
        head, *records = [json.loads(line) for line in file.read_text().splitlines()]
    except (OSError, ValueError) as error:
        sys.exit(f"mutate: {file} is no list of mutants: {error}")
    return head, records


def scratch_folder():
    """On memory where there is some: fsync on a disk is most of what the tests take. Its path is short, because the name of a socket is."""
    memory = pathlib.Path("/dev/shm")
    has_room = memory.is_dir() and shutil.disk_usage(memory).free >= 2 << 30
    folder = pathlib.Path(tempfile.mkdtemp(prefix="m-", dir=memory if has_room else None))
    folder.chmod(0o755)
    return folder


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="mutants to try (%(default)s)")
    parser.add_argument("--seed", type=int, help="of the draw; default: a new one, printed")
    parser.add_argument("--only", default="", metavar="ROOM", help="a room, or a folder of rooms: harness/store, engine")
    parser.add_argument("--since", default="", metavar="REVISION", help="only lines that are not in this revision of git: one's own change")
    parser.add_argument("--no-engine", action="store_true", help="base and harness alone, built without LibTorch")
    parser.add_argument("--tests", default="", metavar="REGEX", help="only test programs with such a name")
    parser.add_argument("--own", action="store_true", help="only the tests of a mutant's own room: minutes less for what survives")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at once (%(default)s); the cores are shared out among them")
    parser.add_argument("--list", action="store_true", help="print the draw and run nothing")
    parser.add_argument("--mutant", metavar="ID", help="run one mutant")
    parser.add_argument("--replay", type=pathlib.Path, metavar="LIST", help="run again what survived or hung in an earlier list")
    return parser.parse_args()


def chosen(given):
    """The mutants that the arguments ask for, in the order of the draw; fills in the arguments that were left open."""
    mutants = all_mutants(not given.no_engine)
    if given.mutant:
        drawn = [mutant for mutant in mutants if mutant.id == given.mutant]
        if not drawn:
            sys.exit(f"mutate: there is no mutant {given.mutant}: its line has changed")
        given.count = 1
    elif given.replay:
        head, earlier = read_list(given.replay)
        asked = {record["id"]: record for record in earlier if record["result"] in (SURVIVED, HUNG)}
        drawn = [mutant for mutant in mutants if mutant.id in asked]
        for gone in asked.keys() - {mutant.id for mutant in drawn}:
            print(f"left out, its line has changed: {line_of(asked[gone])}")
        given.seed, given.count = head["seed"], len(drawn)
    else:
        room = given.only.rstrip("/")
        inside = [mutant for mutant in mutants if not room or mutant.file.startswith(room + "/")]
        if not inside:
            sys.exit(f"mutate: there is no code in {room}; a room is a folder such as harness/store")
        if given.since:
            changed = changed_since(given.since)
            inside = [mutant for mutant in inside if (mutant.file, mutant.line) in changed]
            if not inside:
                sys.exit(f"mutate: nothing that can be mutated has changed since {given.since}")
        if given.seed is None:
            given.seed = random.randrange(10000)
        drawn = draws(inside, given.seed)
        print(f"seed {given.seed}: {len(inside)} mutants on {len(drawn)} lines")
    return drawn


def main():
    given = arguments()
    drawn = chosen(given)
    if given.list:
        for mutant in drawn[:given.count]:
            print(line_of(dataclasses.asdict(mutant)))
        return 0

    for number in (signal.SIGINT, signal.SIGTERM):  # the first is ignored by what a shell starts in the background
        signal.signal(number, signal.default_int_handler)
    os.nice(10)
    WORK.mkdir(exist_ok=True)
    lock = (WORK / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"mutate: another mutate.py is running in {WORK}")
    out = WORK / (f"replay-{given.replay.name}" if given.replay else f"seed-{given.seed}.jsonl")
    head = {"seed": given.seed, "only": given.only, "since": given.since, "engine": not given.no_engine, "tests": given.tests, "own": given.own}
    earlier = []
    if out.exists() and not given.mutant:
        written, earlier = read_list(out)
        if written != head:
            sys.exit(f"mutate: {out} was drawn otherwise: {json.dumps(written)}; give the same arguments, or move it away")

    stop, scratch = threading.Event(), scratch_folder()
    try:
        cores = max(1, len(os.sched_getaffinity(0)) // given.jobs)
        workers = [Worker(number + 1, not given.no_engine, cores, scratch, stop) for number in range(given.jobs)]
        for worker in workers:
            print(f"building without a mutant in {worker.build}", flush=True)
            worker.prepare(given.tests)
        workers[0].time_tests()
        seconds = {test.name: test.seconds for test in workers[0].tests}
        for worker in workers:
            for test in worker.tests:
                test.seconds = seconds[test.name]
        print("without a mutant: " + ", ".join(f"{name} {time:.1f} s" for name, time in seconds.items()), flush=True)
        if given.mutant:
            return evaluate_all(Evaluation(workers, given.own, None, 1), drawn, [], 1)
        with out.open("a") as file:
            if file.tell() == 0:
                print(json.dumps(head), file=file, flush=True)
            return evaluate_all(Evaluation(workers, given.own, file, given.count), drawn, earlier, given.count)
    except KeyboardInterrupt:
        print(f"\nstopped; go on with the same arguments and --seed {given.seed}")
        return 130
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def evaluate_all(evaluation, drawn, earlier, count):
    """Takes mutants in the order of the draw until `count` of them have a result."""
    known = {record["id"]: record for record in earlier}
    records, pending = [], iter(drawn)
    while (missing := count - sum(record["result"] in COUNTED for record in records)) > 0:
        batch = list(itertools.islice(pending, missing))
        if not batch:
            break
        records += [known[mutant.id] for mutant in batch if mutant.id in known]
        evaluation.done = sum(record["result"] in COUNTED for record in records)
        records += evaluation.evaluate([mutant for mutant in batch if mutant.id not in known])
    print(summary_of(records))
    return 0


if __name__ == "__main__":
    sys.exit(main())
