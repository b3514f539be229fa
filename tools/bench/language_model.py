#!/usr/bin/env python3
"""language_model.py: times task = "language_model" (Transformer-XL) against the same model in plain PyTorch (language_model_peer.py).

For each size and number of threads, engine and PyTorch run as processes, one active at a time, and take turns in an order that reverses
every time. A turn is some updates of one batch with a full memory (forward with all dropouts, loss, backward, clipping, Adam), and one
evaluation: a forward pass over a made-up text, segment by segment, with a memory that starts empty. The engine's evaluation is that of
dev in a run of two updates, by the seconds of its measured.json; start and checkpoints do not count. It keeps keys and values of the
memory; PyTorch projects the memory again for each segment, as the released code does. Ratios are of medians. Where one thread is used, the
time of the processor is compared as well: another program on the machine hardly changes it.

    tools/bench/language_model.py                                d = 128 and 256, one thread and two
    tools/bench/language_model.py --sizes lm128 --threads 1      some
    tools/bench/language_model.py --losses 200                   trains both instead, on one thread: bits per character by update

Needs a Python with torch 2.11.0: this one, or the one that TEARLESS_BENCH_PYTHON names.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile

from compare import HERE, ROOT, Side, find_torch, in_turns
from measured import cores, numbers, output_of, processor, run, table, write

SIZES = {"lm128": "4 layers, d = 128", "lm256": "6 layers, d = 256"}
VOCABULARY = 204  # of enwik8
SECONDS = 2  # of updates in a turn, of the slower side
EVALUATED, TRAINED = 32_000, 400_000  # symbols of the texts
LOSS_EVERY = 20  # updates
SEED = 7


def made_up_text(symbols, seed):
    """Bytes of VOCABULARY kinds: three of four follow from the one before, the others are drawn evenly. All kinds occur."""
    rng, kinds = random.Random(seed), list(range(VOCABULARY))
    while len(kinds) < symbols:
        kinds.append((7 * kinds[-1] + 3) % VOCABULARY if rng.random() < 0.75 else rng.randrange(VOCABULARY))
    return bytes(kind + 11 for kind in kinds)  # above the line feed


def settings(size, folder, threads, **train):
    """A file with the size's settings, the texts in `folder` and these of [train]."""
    text = (HERE / f"sizes/{size}.toml").read_text()
    text = text.replace("[train]\n", "[train]\n" + "".join(f"{key} = {value}\n" for key, value in train.items()), 1)
    text = text.replace("[run]\n", f"[run]\nthreads = {threads}\n", 1)
    file = folder / f"{size}.toml"
    file.write_text(text + '\n[data]\ntrain = "train.txt"\ndev = "dev.txt"\ntest = "test.txt"\n')
    return file


def write_texts(folder, dev):
    for name, symbols in (("train", TRAINED), ("dev", dev), ("test", EVALUATED)):
        (folder / f"{name}.txt").write_bytes(made_up_text(symbols, f"{SEED} {name}"))


def train_engine(arguments, config, runs):
    """→ the directory of a new run."""
    try:
        output_of([arguments.engine, "train", "--config", config, "--runs", runs])
    except RuntimeError as error:
        sys.exit(f"language_model: the engine did not train: {error}")
    (directory,) = runs.iterdir()
    return directory


def start(arguments, size, threads, names=("PyTorch", "engine")):
    common = [str(HERE / f"sizes/{size}.toml"), "--vocabulary", str(VOCABULARY), "--threads", str(threads), "--turns"]
    commands = {"PyTorch": [arguments.python, str(HERE / "language_model_peer.py"), *common], "engine": [arguments.engine, "bench", *common]}
    sides = {}
    for name in names:
        sides[name] = Side(name, commands[name], threads)
        sides[name].ready = sides[name].answer()
    return sides


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def evaluate_engine(arguments, config, runs):
    """Seconds of an evaluation of dev, and of nothing else."""
    (file,) = train_engine(arguments, config, runs).glob("attempts/*/measured.json")
    measured = json.loads(file.read_text())
    return measured["evaluation_seconds"] / measured["evaluations"]


def measure(arguments, size, threads, folder):
    write_texts(folder, EVALUATED)
    config = settings(size, folder, threads, epoch_updates=2, max_updates=2)
    sides = start(arguments, size, threads)
    try:
        parameters = {name: side.ready["parameters"] for name, side in sides.items()}
        if len(set(parameters.values())) > 1:
            sys.exit(f"language_model: the sides have different models: {parameters} parameters")
        count = max(1, round(SECONDS / max(side.update(1)[0] for side in sides.values())))
        found = {name: {"updates": [], "processor": [], "evaluations": []} for name in sides}
        for turn, names in zip(range(arguments.turns), in_turns(sides)):
            for name in names:
                before = processor_seconds(sides[name].process)
                found[name]["updates"] += sides[name].update(count)
                found[name]["processor"].append((processor_seconds(sides[name].process) - before) / count)
                if name == "engine":
                    found[name]["evaluations"].append(evaluate_engine(arguments, config, folder / f"{size}_{threads}_{turn}"))
                else:
                    answer = sides[name].ask({"evaluate": True, "text": str(folder / "dev.txt")})
                    found[name]["evaluations"].append(answer["seconds"])
            print(f"{size}, threads {threads}, turn {turn + 1} of {arguments.turns}: " +
                  ", ".join(f"{name} {1e3 * statistics.median(f['updates'][-count:]):.0f} ms, evaluation {f['evaluations'][-1]:.2f} s"
                            for name, f in found.items()), file=sys.stderr, flush=True)
        return {"size": size, "threads": threads, "parameters": parameters["engine"], "symbols": answer["symbols"],
                "updates_a_turn": count, "ready": {name: side.ready for name, side in sides.items()}, "seconds": found}
    finally:
        for side in sides.values():
            side.__exit__()


def losses(arguments, size, folder):
    """Lines of Markdown: bits per character while both train on one text, and of dev afterwards."""
    write_texts(folder, EVALUATED)
    config = settings(size, folder, 1, epoch_updates=LOSS_EVERY, max_updates=arguments.losses, max_epochs=10**6)
    directory = train_engine(arguments, config, folder / "runs")
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    engine = {name: [line["value"] for line in lines if line["name"] == name] for name in ("train.bpc", "dev.bpc")}
    sides = start(arguments, size, 1, ["PyTorch"])
    try:
        bpc = sides["PyTorch"].ask({"train": arguments.losses, "text": str(folder / "train.txt")})["bpc"]
        dev = sides["PyTorch"].ask({"evaluate": True, "text": str(folder / "dev.txt")})["bpc"]
    finally:
        sides["PyTorch"].__exit__()
    rows = [[f"{at + 1} … {at + LOSS_EVERY}", f"{statistics.mean(bpc[at:at + LOSS_EVERY]):.3f}", f"{ours:.3f}"]
            for at, ours in zip(range(0, arguments.losses, LOSS_EVERY), engine["train.bpc"], strict=True)]
    return table(["updates", "PyTorch", "engine"], [*rows, ["dev", f"{dev:.3f}", f"{engine['dev.bpc'][-1]:.3f}"]])


def report(document):
    rows = []
    for r in document["results"]:
        ms = {name: {what: 1e3 * statistics.median(values) for what, values in of.items()} for name, of in r["seconds"].items()}
        ratio = {what: f"{ms['PyTorch'][what] / ms['engine'][what]:.2f}" for what in ms["engine"]}
        rows.append([SIZES[r["size"]], r["threads"], f"{r['parameters'] / 1e6:.2f} M",
                     *(f"{ms[name]['updates']:,.0f} ms" for name in ms), ratio["updates"], ratio["processor"] if r["threads"] == 1 else "–",
                     *(f"{1e3 * r['symbols'] / ms[name]['evaluations']:,.0f}/s" for name in ms), ratio["evaluations"]])
    head = ["size", "threads", "parameters", "update: PyTorch", "engine", "ratio", "of processor time", "evaluation: PyTorch", "engine", "ratio"]
    return "\n".join([f"{document['cores']} cores of {document['processor']}; {document['engine']}, matmuls by {document['matmul']}; "
                      f"torch {document['torch']}; {document['date']}, {document['turns']} turns, seeds 147 and {SEED}.", "",
                      *table(head, [[str(cell) for cell in row] for row in rows])]) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default=str(ROOT / "build/bin/tearless-engine"), metavar="PROGRAM")
    parser.add_argument("--sizes", default=",".join(SIZES), metavar="NAME,…")
    parser.add_argument("--threads", metavar="N,…", help="default: 1 and the number of cores")
    parser.add_argument("--turns", type=int, default=7, metavar="N", help="of each side (default: 7)")
    parser.add_argument("--losses", type=int, metavar="N", help="train both for so many updates of the first size instead, a multiple of "
                        f"{LOSS_EVERY}")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all that was measured")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the table")
    arguments = parser.parse_args()
    arguments.sizes = arguments.sizes.split(",")
    for size in arguments.sizes:
        if size not in SIZES:
            parser.error(f"--sizes: there is no {size!r}; there are {', '.join(SIZES)}")
    arguments.threads = numbers(parser, "--threads", arguments.threads, 1) if arguments.threads else sorted({1, cores()})
    if arguments.turns < 1:
        parser.error("--turns: wanted is a number of at least 1")
    if arguments.losses is not None and (arguments.losses < LOSS_EVERY or arguments.losses % LOSS_EVERY):
        parser.error(f"--losses: wanted is a multiple of {LOSS_EVERY}")
    arguments.python = os.environ.get("TEARLESS_BENCH_PYTHON") or sys.executable
    return arguments


def main():
    arguments = parse_arguments()
    torch_version = find_torch(arguments.python)
    try:
        version = output_of([arguments.engine, "--version"]).splitlines()[0]
    except RuntimeError as error:
        sys.exit(f"language_model: {arguments.engine} does not run ({error}): `make build` makes it, or name it with --engine")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if arguments.losses:
            print("\n".join(losses(arguments, arguments.sizes[0], folder)))
            return 0
        document = {"date": datetime.date.today().isoformat(), "processor": processor(), "cores": cores(), "engine": version,
                    "torch": torch_version, "turns": arguments.turns, "results": []}
        for threads in arguments.threads:
            for size in arguments.sizes:
                document["results"].append(measure(arguments, size, threads, folder))
                document["matmul"] = document["results"][-1]["ready"]["engine"]["matmul"]
                write(arguments.json, json.dumps(document, indent=1))
                write(arguments.markdown, report(document))
    print(report(document), end="")
    return 0


if __name__ == "__main__":
    run("language_model", main)
