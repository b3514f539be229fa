#!/usr/bin/env python3
"""parser.py FOLDER: times an epoch of training the parser (task = "parse") against the same network in plain PyTorch (parser_peer.py).

FOLDER has UD English EWT as docs/corpus.md says: en_ewt-ud-train.conllu, -dev and -test, not compressed. Both sides read the trees and
derive their examples by themselves; what is timed is a pass over all of them: batches, forward, loss, backward, optimiser. Not timed are
start, reading and evaluations: of the engine it is the `training_seconds` that a run of one epoch writes to measured.json, of PyTorch the
loop over the batches, after three updates of another network. The sides take turns, in an order that reverses every time, each with the
same number of threads. Seed k of one is not seed k of the other, so losses are equal but for that.

    TEARLESS_BENCH_PYTHON=/path/to/python tools/bench/parser.py FOLDER       both networks, one thread and all cores: half an hour
    tools/bench/parser.py FOLDER --networks parse_ada --threads 1 --turns 1  tries whether everything works

Needs a Python with torch 2.11.0: this one, or the one that TEARLESS_BENCH_PYTHON names.
"""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

from compare import HERE, ROOT, Side, find_torch, in_turns
from measured import cores, numbers, output_of, processor, run, table, write

NETWORKS = {"parse_ada": "2 × 512, LayerNorm, ReLU, batch 1,024, Adam", "parse_corenlp": "200, cube, batch 10,000, AdaGrad"}  # of sizes/NAME.toml
SETS = ("train", "dev", "test")


def trees_of(folder, name):
    return folder / f"en_ewt-ud-{name}.conllu"


def settings(arguments, network, threads, seed):
    """Of a run of one pass, or its first updates, that reports its loss after each update."""
    data = "\n".join(f"{name} = {json.dumps(str(trees_of(arguments.data, name).resolve()))}" for name in SETS)
    text = (HERE / f"sizes/{network}.toml").read_text().replace("[train]\n", f"[train]\nseed = {seed}\nmax_epochs = 1\nmax_updates = {arguments.updates or 0}\n")
    return f'{text}\n[data]\nname = "UD English EWT"\n{data}\n\n[run]\nthreads = {threads}\nlog_updates = 1\n'


def engine_epoch(arguments, network, threads, seed, folder):
    """What the peer answers."""
    (folder / "settings.toml").write_text(settings(arguments, network, threads, seed))
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    output_of([arguments.engine, "train", "--config", folder / "settings.toml", "--runs", folder / "runs"], env=environment)
    directory, = (folder / "runs").iterdir()
    measured = json.loads((directory / "attempts/1/measured.json").read_text())
    arithmetic = (directory / "attempts/1/arithmetic").read_text().strip()
    parameters = json.loads((directory / "scores.json").read_text())["parameters"]
    metrics = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    shutil.rmtree(folder / "runs")
    of_name = {name: [metric["value"] for metric in metrics if metric["name"] == name] for name in ("train.loss", "dev.loss")}
    return {"seconds": measured["training_seconds"], "losses": of_name["train.loss"], "dev_loss": of_name["dev.loss"][-1],
            "arithmetic": arithmetic, "parameters": parameters}


def measure(arguments, network, threads, folder):
    """Side → its answers."""
    command = [arguments.python, str(HERE / "parser_peer.py"), str(HERE / f"sizes/{network}.toml"), str(trees_of(arguments.data, "train")),
               str(trees_of(arguments.data, "dev")), "--threads", str(threads)]
    found = {"network": network, "threads": threads, "load": [load()], "engine": [], "PyTorch": []}
    with Side("peer", command, threads) as peer:
        found["ready"] = peer.answer()
        for turn, sides in zip(range(arguments.turns), in_turns(("engine", "PyTorch"))):
            for side in sides:
                seed = turn + 1
                found[side].append(engine_epoch(arguments, network, threads, seed, folder) if side == "engine"
                                   else peer.ask({"seed": seed, "updates": arguments.updates}))
            seconds = ", ".join(f"{side} {found[side][-1]['seconds']:.1f} s" for side in sides)
            print(f"{network}, threads {threads}, turn {turn + 1} of {arguments.turns}: {seconds}", file=sys.stderr, flush=True)
    found["load"].append(load())
    if len({len(answer["losses"]) for side in ("engine", "PyTorch") for answer in found[side]}) > 1:
        sys.exit("parser: the sides made different numbers of updates")
    if {answer["parameters"] for answer in found["engine"]} != {found["ready"]["parameters"]}:
        sys.exit("parser: the sides have different numbers of parameters")
    return found


def median(answers, value):
    return statistics.median(map(value, answers))


def report(document):
    speeds, losses = [], []
    for found in document["results"]:
        engine, peer = (found[side] for side in ("engine", "PyTorch"))
        seconds = {side: [answer["seconds"] for answer in found[side]] for side in ("engine", "PyTorch")}
        ratio = statistics.median(seconds["PyTorch"]) / statistics.median(seconds["engine"])
        updates = len(engine[0]["losses"])
        speeds.append([NETWORKS[found["network"]], str(found["threads"]), str(updates), str(len(engine)),
                       *(f"{statistics.median(values):.2f} s ({min(values):.2f} – {max(values):.2f})" for values in reversed(seconds.values())),
                       f"{ratio:.2f}", ", ".join(found["load"])])
        tenth = updates // 10
        for side, answers in (("engine", engine), ("PyTorch", peer)):
            parts = [median(answers, lambda answer: statistics.mean(answer["losses"][i * tenth:(i + 1) * tenth])) for i in (0, 1, 4, 9)]
            losses.append([found["network"], str(found["threads"]), side, *(f"{part:.3f}" for part in parts),
                           f"{median(answers, lambda answer: answer['dev_loss']):.3f}"])
    ready = document["results"][0]["ready"]
    where = f"{document['cores']} cores of {document['processor']}"
    return "\n".join([
        f"{where}; {document['engine']}, {document['results'][0]['engine'][0]['arithmetic']}; torch {ready['torch']}; {document['date']}. "
        f"{ready['examples']:,} examples of {ready['trees']:,} trees; medians of the turns (least – most). Load: of the machine "
        "before and after.", "",
        *table(["network", "threads", "updates", "turns", "PyTorch", "engine", "ratio", "load"], speeds), "",
        "Mean loss of the first, second, fifth and last tenth of the updates, and of dev after them:", "",
        *table(["network", "threads", "side", "1st", "2nd", "5th", "10th", "dev"], losses)]) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--engine", default=str(ROOT / "build/bin/tearless-engine"), metavar="PROGRAM")
    parser.add_argument("--networks", default=",".join(NETWORKS), metavar="NAME,…", help=f"default: {','.join(NETWORKS)}")
    parser.add_argument("--threads", metavar="N,…", help="default: 1 and the number of cores")
    parser.add_argument("--turns", type=int, default=5, metavar="N", help="of each side (default: 5)")
    parser.add_argument("--updates", type=int, metavar="N", help="only the first of the pass, where a pass takes too long (default: all)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all that was measured")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the tables")
    arguments = parser.parse_args()
    arguments.python = os.environ.get("TEARLESS_BENCH_PYTHON") or sys.executable
    arguments.networks = arguments.networks.split(",")
    arguments.threads = numbers(parser, "--threads", arguments.threads, 1) if arguments.threads else sorted({1, cores()})
    for name in arguments.networks:
        if name not in NETWORKS:
            parser.error(f"--networks: there is no {name!r}; there are {', '.join(NETWORKS)}")
    for option, least in (("turns", 1), ("updates", 10)):
        if getattr(arguments, option) is not None and getattr(arguments, option) < least:
            parser.error(f"--{option}: wanted is a number of at least {least}")
    for name in SETS:
        if not trees_of(arguments.data, name).is_file():
            parser.error(f"{trees_of(arguments.data, name)} is not there: get UD English EWT as docs/corpus.md says")
    return arguments


def load():
    return f"{os.getloadavg()[0]:.1f}"


def main():
    arguments = parse_arguments()
    find_torch(arguments.python)
    try:
        version = output_of([arguments.engine, "--version"]).splitlines()[0]
    except RuntimeError as error:
        sys.exit(f"parser: {arguments.engine} does not run ({error}): `make build` makes it, or name it with --engine")
    document = {"date": datetime.date.today().isoformat(), "processor": processor(), "cores": cores(), "engine": version,
                "turns": arguments.turns, "results": []}
    with tempfile.TemporaryDirectory() as folder:
        for network in arguments.networks:
            for threads in arguments.threads:
                document["results"].append(measure(arguments, network, threads, pathlib.Path(folder)))
                write(arguments.json, json.dumps(document, indent=1))
                write(arguments.markdown, report(document))
    print(report(document), end="")
    return 0


if __name__ == "__main__":
    run("parser", main)
