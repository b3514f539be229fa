#!/usr/bin/env python3
"""compare.py: times the engine against the same model in plain PyTorch (peer.py), side by side, and prints the ratios.

For each size and each list of batches, engine and peers run as processes with the same number of threads, one active at a time, and
take turns: k updates each, in an order that reverses every turn, until the slowest has worked for --seconds (at least ten turns, and
three visits to every batch where they differ). All make the same updates of the same batches, and the same work in them: forward with dropout, loss,
backward, clipping, Adam. The share of the peak is the operations that an update's matmuls and attention need (forward once, backward twice, of real
rows) over its time, against the fastest matmul of square matrices of 512 to 2048 rows by any library of the engine's build, with the same
number of threads, timed after the turns. Where the processor has AVX512_BF16, the engine also takes turns with run.precision = "bf16", against the
same peers in fp32. The time of an update is the median over updates of batches of one shape, averaged over the batches of the list; a
ratio is the peer's time over the engine's.

Lists (tools/bench/lengths/) have the rows of each sentence of twelve batches. `equal`: all sentences are equally long, so packing gains
nothing; the goals refer to it (of rt to `real`). `real`: drawn from TED gl-en after 3,000 joint BPE merges, EOS counted, and for rt from
RT, words as they are, cut into batches as the engine cuts a pass. Decoding is beam search over 48 sentences of TED's test set, by a
PyTorch search that runs whole prefixes again (the goals refer to that) and by one with caches.

With --limit each peer takes turns with the engine by itself, and is given up that many seconds after its start, or where it fails:
torch.compile may take minutes, and must not cost what others have measured. Its row then holds the turns until then, or says that there
were none. Exit code 1 where one failed. On a GPU peers and engine compute in bf16, the peers by autocast.

    tools/bench/compare.py                                   all sizes that run on the CPU
    tools/bench/compare.py --sizes d32,d64 --threads 1       some
    tools/bench/compare.py --device cuda --threads 1         those for a GPU (tools/gpu_peers.sh)

Needs a Python with torch 2.11.0: this one, or the one that TEARLESS_BENCH_PYTHON names.
"""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from measured import cores, numbers, output_of, processor, run, table, write

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MIN_TURNS, MIN_VISITS = 10, 3
MAX_DECODING_TURNS = 7
DECODING_GOAL = 10


@dataclasses.dataclass
class Size:
    name: str  # of sizes/NAME.toml and lengths/NAME_*.json
    vocabulary: int
    goals: dict  # peer → least ratio on the list of the goals, or {threads: ratio}
    device: str = "cpu"
    lists: tuple = ("equal", "real", "decode")
    goal_list: str = "equal"
    peers: tuple = ()  # names in PEERS; (): all of the device
    peak: float = 0  # least share of the peak on one thread and the list of the goals; 0: no goal
    bf16: float = 0  # least ratio of the padded peer to the engine in bf16, likewise

    def goals_of(self, kind, threads):
        if kind != self.goal_list:
            return {}
        goals = {name: goal.get(threads) if isinstance(goal, dict) else goal for name, goal in self.goals.items()}
        return {name: goal for name, goal in goals.items() if goal}

    def of_one_thread(self, goal, kind, threads):
        return goal if kind == self.goal_list and threads == 1 else 0


# The goals are those of a processor of AMD with AVX-512.
SIZES = [
    Size("d32", 1000, {"padded": 9}),
    Size("d64", 2000, {"padded": {1: 5.5, 2: 6.5}}, peak=0.4),
    Size("d128", 4000, {"padded": {1: 3.2, 2: 3.5}}, peak=0.6, bf16=4),
    Size("d256", 8000, {}),
    Size("base", 8000, {"padded": {1: 2.2, 2: 2.4}}, peak=0.8, bf16=3.2),
    Size("rt", 9058, {"padded": 2}, lists=("equal", "real"), goal_list="real"),
    Size("mnist", 10, {}, lists=("equal",), peers=("padded",)),
    Size("base_cuda", 8000, {"eager padded": 2.8, "compiled layers": 1.3, "compiled padded": 1.3, "compiled padded with graphs": 1.3}, "cuda"),
]
PEERS = {
    "cpu": {"padded": ["--form", "padded"], "packed": ["--form", "packed"]},
    "cuda": {
        "eager padded": ["--form", "padded"],
        "eager packed": ["--form", "packed"],
        "compiled layers": ["--form", "padded", "--variant", "compile-layers"],
        "compiled padded": ["--form", "padded", "--variant", "compile"],
        "compiled padded with graphs": ["--form", "padded", "--variant", "compile-graphs"],
    },
}
LISTS = ("equal", "real", "decode")


# --- the sides -------------------------------------------------------------------------------------------------------------------
class GivenUp(Exception):
    """A peer took too long, or failed; says which."""


class Side:
    """A process that speaks the protocol of `tearless-engine bench --turns`. `ready` is its first answer; after `limit` seconds it is given up."""

    def __init__(self, name, command, threads, limit=None):
        self.name, self.limit, self.given_up = name, limit, False
        self.errors = tempfile.TemporaryFile("w+")
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                            env=environment)
        except OSError as error:
            sys.exit(f"compare: cannot start {name}: {error}")
        self.timer = threading.Timer(limit or 0, self.give_up)
        self.timer.daemon = True
        if limit:
            self.timer.start()

    def give_up(self):
        self.given_up = True
        self.process.kill()

    def answer(self):
        line = self.process.stdout.readline()
        if self.given_up:
            raise GivenUp(f"no turn within {self.limit:g} s")
        try:
            return json.loads(line)
        except json.JSONDecodeError:
            code = self.process.wait() if not line else "running"
            self.errors.seek(0)
            said = self.errors.read().strip().splitlines()[-1:] or [line.strip() or "it said nothing"]
            failure = f"{self.name} gave no answer (exit code {code}): {said[0]}"
            if self.limit:
                raise GivenUp(failure) from None
            sys.exit(f"compare: {failure}")

    def ask(self, request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # answer() reports its exit
        return self.answer()

    def update(self, count):
        """Seconds of each of `count` updates."""
        seconds = self.ask({"updates": count})["seconds"]
        if len(seconds) != count:
            sys.exit(f"compare: {self.name} answered {len(seconds)} updates where {count} were asked for")
        return seconds

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.timer.cancel()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Sides(dict):
    """Engine and peers by name, started one after another so that none warms up beside another."""

    def __init__(self, arguments, size, lengths, threads, peers, bf16=False):
        super().__init__()
        common = [str(HERE / "sizes" / f"{size.name}.toml"), "--vocabulary", str(size.vocabulary), "--lengths", str(lengths),
                  "--threads", str(threads), "--turns"]
        self.commands = {name: [arguments.python, str(HERE / "peer.py"), *common, *options] for name, options in peers.items()}
        self.commands["engine"] = [arguments.engine, "bench", *common]
        if bf16:
            self.commands["engine, bf16"] = [*self.commands["engine"], "--bf16"]
        self.threads, self.limit = threads, arguments.limit

    def __enter__(self):
        try:
            for name, command in self.commands.items():
                if name.startswith("engine"):
                    self[name] = Side(name, command, self.threads)
                else:
                    self[name] = Side(f"peer ({name})", command, self.threads, self.limit)
                self[name].ready = self[name].answer()
        except BaseException:
            self.__exit__()
            raise
        parameters = {name: side.ready["parameters"] for name, side in self.items()}
        if len(set(parameters.values())) > 1:
            self.__exit__()
            sys.exit(f"compare: the sides have different models: {parameters} parameters")
        return self

    def __exit__(self, *_):
        for side in self.values():
            side.__exit__()


# --- measuring -------------------------------------------------------------------------------------------------------------------
def quantiles(values):
    """(lower quartile, median, upper quartile)"""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3


def typical(seconds, batches):
    """Lower quartile, median and upper quartile of an update in milliseconds. seconds[i] is of batch i modulo their number; batches of one
    shape are evaluated together, and the result is the mean over the batches of the list."""
    shapes = [json.dumps(sorted(batch)) for batch in batches]
    samples = {shape: [] for shape in shapes}
    for i, value in enumerate(seconds):
        samples[shapes[i % len(shapes)]].append(value)
    of_shape = {shape: quantiles(values) for shape, values in samples.items()}
    return [1e3 * statistics.mean(of_shape[shape][i] for shape in shapes) for i in range(3)]


def in_turns(sides):
    """All sides, over and over; every second round in reverse."""
    names = list(sides)
    while True:
        yield names
        names = names[::-1]


def compare_updates(sides, batches, box):
    """{name: [seconds of each update]}, all of equal length; the first is of batch 1, because a trial took batch 0. Where a peer is given up,
    of the turns until then if they have all batches that differ."""
    slowest = max(side.update(1)[0] for side in sides.values())
    count = max(1, int(box / (2 * MIN_TURNS) / slowest))
    seconds = {name: [] for name in sides}
    shapes = len({json.dumps(sorted(batch)) for batch in batches})
    for turn, names in enumerate(in_turns(sides), 1):
        try:
            for name in names:
                seconds[name] += sides[name].update(count)
        except GivenUp:
            if (turn - 1) * count < (1 if shapes == 1 else len(batches)):
                raise
            return {name: values[:(turn - 1) * count] for name, values in seconds.items()}
        enough = turn >= MIN_TURNS and (shapes == 1 or turn * count >= MIN_VISITS * len(batches))
        if enough and max(map(sum, seconds.values())) >= box:
            return seconds


def rows_of(example):
    """Of a sentence pair, or of a sentence."""
    return sum(example) if isinstance(example, list) else example


def measure_updates(arguments, size, kind, threads, names):
    lengths = HERE / "lengths" / f"{size.name}_{kind}.json"
    batches = json.loads(lengths.read_text())["batches"]
    peers = {name: PEERS[size.device][name] for name in names}
    with Sides(arguments, size, lengths, threads, peers, bf16=size.device == "cpu" and "padded" in peers and has_bf16()) as sides:
        seconds = compare_updates(sides, batches, arguments.seconds)
        limit = sides["engine"].ask({"peak": True})
        ready = {name: side.ready for name, side in sides.items()}
    result = {"what": "update", "size": size.name, "list": kind, "threads": threads,
              "parameters": ready["engine"]["parameters"], "rows_per_batch": statistics.mean(sum(map(rows_of, b)) for b in batches),
              "updates": len(seconds["engine"]), "ready": ready, "ms": {}, "quartiles_ms": {}}
    for name, values in seconds.items():
        lower, middle, upper = typical(values, batches[1:] + batches[:1])
        result["ms"][name], result["quartiles_ms"][name] = middle, [lower, upper]
    if "engine, bf16" in result["ms"]:
        result["bf16"] = {"ms": result["ms"].pop("engine, bf16")}
        result["bf16"]["ratio"] = result["ms"]["padded"] / result["bf16"]["ms"]
        if goal := size.of_one_thread(size.bf16, kind, threads):
            result["bf16"] |= {"goal": goal, "met": result["bf16"]["ratio"] >= goal}
    if limit["peak_operations_per_second"]:
        rate = limit["operations_per_update"] / (1e-3 * result["ms"]["engine"])
        result["peak"] = limit | {"share": rate / limit["peak_operations_per_second"]}
        if goal := size.of_one_thread(size.peak, kind, threads):
            result["peak"] |= {"goal": goal, "met": result["peak"]["share"] >= goal}
    return with_ratios(result, size.goals_of(kind, threads))


def decoding_peer(size):
    return "padded" if size.device == "cpu" else "eager padded"


def measure_decoding(arguments, size, threads):
    peer = decoding_peer(size)
    with Sides(arguments, size, HERE / "lengths" / "decode.json", threads, {peer: PEERS[size.device][peer]}) as sides:
        searches = {"engine": (sides["engine"], {"decode": True}),
                    **{s: (sides[peer], {"decode": True, "search": s}) for s in ("straightforward", "cached")}}
        answers = {name: [] for name in searches}
        for turn, names in enumerate(in_turns(searches), 1):
            for name in names:
                side, request = searches[name]
                answers[name].append(side.ask(request))
            worked = max(sum(answer["seconds"] for answer in turns) for turns in answers.values())
            if turn >= MAX_DECODING_TURNS or worked >= arguments.seconds:
                break
        ready = {name: side.ready for name, side in sides.items()}
    result = {"what": "decoding", "size": size.name, "threads": threads, "turns": turn, "ready": ready,
              "sentences": answers["engine"][0]["sentences"], "tokens": {n: a[0]["tokens"] for n, a in answers.items()},
              "ms": {}, "quartiles_ms": {}}
    for name, turns in answers.items():
        lower, middle, upper = quantiles([1e3 * answer["seconds"] for answer in turns])
        result["ms"][name], result["quartiles_ms"][name] = middle, [lower, upper]
    return with_ratios(result, {"straightforward": DECODING_GOAL} if size.device == "cpu" else {})


def measure(arguments, size, kind, threads, names):
    """Of updates or of decoding; without a time where a peer was given up before it had one."""
    try:
        return measure_decoding(arguments, size, threads) if kind == "decode" else measure_updates(arguments, size, kind, threads, names)
    except GivenUp as reason:
        return {"what": "decoding" if kind == "decode" else "update", "given_up": {name: str(reason) for name in names}, "ready": {}, "ms": {},
                "ratios": {}, "goals": {}}


def with_ratios(result, goals):
    """With the ratio of every peer, and of the best of them."""
    ratios = {name: ms / result["ms"]["engine"] for name, ms in result["ms"].items() if name != "engine"}
    ratios["best"] = min(ratios.values())
    return result | {"ratios": ratios, "goals": {name: {"goal": goal, "met": ratios[name] >= goal} for name, goal in goals.items() if name in ratios}}


# --- the report ------------------------------------------------------------------------------------------------------------------
def goal_cells(result):
    goals = result["goals"]
    of = {name: f" (of {name})" if len(goals) > 1 else "" for name in goals}
    return [", ".join(f"{g['goal']:g}x{of[name]}" for name, g in goals.items()) or "–",
            ", ".join("yes" if g["met"] else "no" for g in goals.values()) or "–"]


def peak_cell(result):
    peak = result.get("peak")
    if not peak:
        return "–"
    goal = f" (goal {100 * peak['goal']:.0f} %: {'yes' if peak['met'] else 'no'})" if "goal" in peak else ""
    return f"{100 * peak['share']:.0f} % of {1e-9 * peak['peak_operations_per_second']:.0f} GFLOP/s{goal}"


def bf16_cells(result):
    bf16 = result.get("bf16")
    if not bf16:
        return ["–", "–"]
    goal = f" (goal {bf16['goal']:g}x: {'yes' if bf16['met'] else 'no'})" if "goal" in bf16 else ""
    return [number(bf16["ms"]), f"{bf16['ratio']:.2f}{goal}"]


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def report(document):
    """The readable page."""
    machine = document["machine"]
    gpu = f" and an {machine['gpu']}" if "gpu" in machine else ""
    matmul = f", matmuls by {document['matmul']}" if document["matmul"] and machine["device"] == "cpu" else ""
    lines = [f"# Training updates and decoding against plain PyTorch, {machine['device']}", "",
             f"Measured {document['date']} on {machine['processor']}, {machine['cores']} cores{gpu}; engine "
             f"{document['engine']}{matmul}; peer: Python torch {document['torch']}. What is timed, and how: tools/bench/compare.py."]
    on_gpu = machine["device"] == "cuda"
    if on_gpu:
        lines += ["Both compute in bf16: PyTorch under autocast, the engine with run.precision."]
    updates = [result for result in document["results"] if result["what"] == "update"]
    given_up = [(result, name, reason) for result in document["results"] for name, reason in result.get("given_up", {}).items()]
    decodings = [result for result in document["results"] if result["what"] == "decoding" and result["ms"]]
    if updates:
        peers = list(dict.fromkeys(name for result in updates for name in (*result["ms"], *result.get("given_up", {})) if name != "engine"))
        alone = () if on_gpu else ("share of the peak", "engine in bf16, ms", "ratio, padded fp32")
        head = ["size", "list", "threads", *(f"{p}, ms" for p in peers), "engine, ms", *(f"ratio, {p}" for p in peers), "goal", "met", *alone]

        def row(r):
            cells = {name: number(ms) for name, ms in r["ms"].items()} | dict.fromkeys(r.get("given_up", {}), "given up")
            return [r["size"], r["list"], str(r["threads"]), *(cells.get(name, "–") for name in (*peers, "engine")),
                    *(f"{r['ratios'][p]:.2f}" if p in r["ratios"] else "–" for p in peers), *goal_cells(r),
                    *([] if on_gpu else [peak_cell(r), *bf16_cells(r)])]

        lines += ["", "## One update", "", *table(head, [row(r) for r in updates])]
        if len(peers) > 2 and not any(r.get("given_up") for r in updates):
            lines += ["", "Ratio to the best peer: " + ", ".join(f"{r['size']} {r['list']} {r['ratios']['best']:.2f}" for r in updates) + "."]
    if given_up:
        lines += ["", *(f"{name}, {r['size']} `{r['list']}`: {reason}." for r, name, reason in given_up)]
    if decodings:
        head = ["size", "threads", "whole prefixes, s", "cached, s", "engine, s", "engine, sentences/s", "ratio", "ratio, cached", "goal", "met"]
        lines += ["", f"## Beam-4 decoding of {decodings[0]['sentences']} sentences", "", *table(head, [[
            r["size"], str(r["threads"]), *(number(r["ms"][s] / 1e3) for s in ("straightforward", "cached", "engine")),
            number(1e3 * r["sentences"] / r["ms"]["engine"]), f"{r['ratios']['straightforward']:.2f}", f"{r['ratios']['cached']:.2f}",
            *goal_cells(r)] for r in decodings])]
    goals = [goal["met"] for result in document["results"] for goal in (*result["goals"].values(), result.get("peak", {}), result.get("bf16", {})) if "met" in goal]
    lines += ["", f"{sum(goals)} of {len(goals)} goals met."]
    return "\n".join(lines) + "\n"


def has_bf16():
    return "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text()


def find_torch(python):
    """Its version; or an end with one sentence."""
    try:
        return output_of([python, "-c", "import tomllib, torch; print(torch.__version__)"], timeout=120)
    except RuntimeError as error:
        sys.exit(f"compare: {python} is no Python 3.11 or newer with torch ({error}): get it with `pip install torch==2.11.0` in one that "
                 "is, and name that with TEARLESS_BENCH_PYTHON=/path/to/python")


# --- the front ---------------------------------------------------------------------------------------------------------------------
def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default=str(ROOT / "build/bin/tearless-engine"), metavar="PROGRAM")
    parser.add_argument("--device", choices=tuple(PEERS), default="cpu")
    parser.add_argument("--sizes", metavar="NAME,…", help="default: all of the device")
    parser.add_argument("--lists", default=",".join(LISTS), metavar="NAME,…", help="of equal, real, decode; default: all")
    parser.add_argument("--peers", metavar="NAME,…", help="of updates; default: all of the device")
    parser.add_argument("--threads", metavar="N,…", help="default: 1 and the number of cores")
    parser.add_argument("--seconds", type=float, default=10, help="that the slowest side works on a list (default: 10)")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="time each peer by itself, and give it up after so long or where it fails")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all medians and quartiles")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the tables")
    parser.add_argument("--resume", action="store_true", help="keep what --json has of these programs and this machine, but peers given up")
    parser.add_argument("--find-torch", action="store_true", help="only say whether there is a Python torch to compare with")
    arguments = parser.parse_args()
    arguments.python = os.environ.get("TEARLESS_BENCH_PYTHON") or sys.executable
    if arguments.limit is not None and not arguments.limit > 0:
        parser.error("--limit must be above 0")

    def chosen(text, known, option):
        names = text.split(",")
        for name in names:
            if name not in known:
                parser.error(f"{option}: there is no {name!r}; there are {', '.join(known)}")
        return names

    sizes = {size.name: size for size in SIZES if size.device == arguments.device}
    arguments.sizes = [sizes[name] for name in chosen(arguments.sizes or ",".join(sizes), sizes, "--sizes")]
    arguments.lists = chosen(arguments.lists, LISTS, "--lists")
    peers = PEERS[arguments.device]
    arguments.peers = chosen(arguments.peers or ",".join(peers), peers, "--peers")
    arguments.threads = numbers(parser, "--threads", arguments.threads, 1) if arguments.threads else sorted({1, cores()})
    return arguments


def kept(arguments, document):
    """Results of the file of --json that hold here, too."""
    if not (arguments.resume and arguments.json and arguments.json.exists()):
        return []
    before = json.loads(arguments.json.read_text())
    same = all(before[key] == document[key] for key in ("engine", "torch", "seconds")) and document["machine"].items() <= before["machine"].items()
    if not same:
        return []
    document["machine"], document["matmul"] = before["machine"], before["matmul"]
    return before["results"]


def main():
    arguments = parse_arguments()
    torch_version = find_torch(arguments.python)
    if arguments.find_torch:
        print(f"torch {torch_version}")
        return 0
    try:
        version = output_of([arguments.engine, "--version"])
    except RuntimeError as error:
        sys.exit(f"compare: {arguments.engine} does not run ({error}): `make build` makes it, or name it with --engine")
    document = {
        "date": datetime.date.today().isoformat(),
        "machine": {"device": arguments.device, "processor": processor(), "cores": cores()},
        "engine": version.splitlines()[0],
        "matmul": "",
        "torch": torch_version,
        "seconds": arguments.seconds,
        "results": [],
    }
    document["results"] = kept(arguments, document)
    parts = []
    for size in arguments.sizes:
        names = [name for name in arguments.peers if not size.peers or name in size.peers]
        for kind in (kind for kind in arguments.lists if kind in size.lists):
            together = [[decoding_peer(size)]] if kind == "decode" else [[name] for name in names] if arguments.limit else [names]
            parts += [(size, kind, threads, group) for threads in arguments.threads for group in together]
    for i, (size, kind, threads, names) in enumerate(parts, 1):
        start = time.monotonic()
        part = {"size": size.name, "list": kind, "threads": threads, "peers": names}
        print(f"[{i}/{len(parts)}] {size.name} {kind}, threads {threads}: ", end="", flush=True)
        before = [result for result in document["results"] if part.items() <= result.items()]
        if any(not result.get("given_up") for result in before):
            print("kept", flush=True)
            continue
        result = part | measure(arguments, size, kind, threads, names)
        document["machine"] |= {"gpu": ready["gpu"] for ready in result["ready"].values() if "gpu" in ready}
        document["matmul"] = result["ready"].get("engine", {}).get("matmul", document["matmul"])
        document["results"] = [result for result in document["results"] if result not in before] + [result]
        said = ", ".join(f"{name} {number(ms)} ms" for name, ms in result["ms"].items()) or ", ".join(result["given_up"].values())
        print(f"{said} ({time.monotonic() - start:.0f} s)", flush=True)
        write(arguments.json, json.dumps(document, indent=1))
        write(arguments.markdown, report(document))
    print("\n" + report(document), end="")
    return 1 if any("gave no answer" in reason for result in document["results"] for reason in result.get("given_up", {}).values()) else 0


if __name__ == "__main__":
    run("compare", main)
