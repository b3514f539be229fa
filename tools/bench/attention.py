#!/usr/bin/env python3
"""attention.py: times the kinds of attention of the decoder that "Improving Deep Transformer with Depth-Scaled Initialization and Merged
Attention" compares (Zhang, Titov and Sennrich 2019, Table 3), at six and twelve layers.

For each depth the kinds run as processes of `tearless-engine bench --turns`, one active at a time, and take turns in an order that
reverses every time: one beam search over the 48 sentences of lengths/decode.json, and ten updates of the size's real batches. Models are
untrained, so outputs are as long as they may be, and each kind decodes as many positions; what is compared is the median search and the
median update. A speed-up is the time of self-attention over that of the kind, at the same depth.

    tools/bench/attention.py                                        d = 256, one thread, ten minutes
    tools/bench/attention.py --size base --layers 6 --turns 5       the paper's width
    tools/bench/attention.py --size d64 --turns 2                   tries whether everything works
"""

import argparse
import datetime
import json
import pathlib
import re
import statistics
import sys
import tempfile

from compare import HERE, ROOT, SIZES, Side, in_turns
from measured import cores, numbers, output_of, processor, run, table, write

KINDS = {
    "self-attention": "self_attention, cross_attention, ffn",
    "average attention": "aan, cross_attention, ffn",
    "merged attention": "matt, ffn",
}
UPDATES = 10


def settings(size, layers, sublayers):
    """The size's file with so many layers on each side and these sublayers of the decoder."""
    text, count = re.subn(r"^((?:en|de)coder_layers) = \d+$", rf"\1 = {layers}", (HERE / f"sizes/{size.name}.toml").read_text(), flags=re.M)
    assert count == 2, size.name
    return text.replace("[model]\n", f'[model]\ndecoder_sublayers = "{sublayers}"\n', 1)


def measure(arguments, size, layers, folder):
    """Kind → what its process said when it was ready, seconds of its searches and of its updates."""
    sides = {}
    try:
        for kind, sublayers in KINDS.items():
            file = folder / f"{layers}_{len(sides)}.toml"
            file.write_text(settings(size, layers, sublayers))
            common = ["--vocabulary", str(size.vocabulary), "--threads", str(arguments.threads), "--turns"]
            for what, lengths in (("decode", "decode"), ("update", f"{size.name}_real")):
                sides[kind, what] = Side(f"{kind} ({what})", [arguments.engine, "bench", str(file), "--lengths",
                                                              str(HERE / f"lengths/{lengths}.json"), *common], arguments.threads)
                sides[kind, what].ready = sides[kind, what].answer()
        found = {kind: {"ready": sides[kind, "decode"].ready, "searches": [], "updates": []} for kind in KINDS}
        for turn, kinds in zip(range(arguments.turns), in_turns(KINDS)):
            for kind in kinds:
                answer = sides[kind, "decode"].ask({"decode": True})
                found[kind]["searches"].append(answer["seconds"])
                found[kind]["tokens"] = answer["tokens"]
                found[kind]["updates"] += sides[kind, "update"].update(UPDATES)
            print(f"{layers} layers, turn {turn + 1} of {arguments.turns}", file=sys.stderr, flush=True)
        return found
    finally:
        for side in sides.values():
            side.__exit__()


def report(document):
    rows = []
    for layers, found in document["layers"].items():
        base = found["self-attention"]
        for kind, values in found.items():
            cells = [layers, kind, f"{values['ready']['parameters'] / 1e6:.2f} M", f"{values['tokens']:,}"]
            for what in ("searches", "updates"):
                median = statistics.median(values[what])
                cells += [f"{1e3 * median:,.0f} ms", f"{statistics.median(base[what]) / median:.2f}"]
            rows.append(cells)
    head = ["layers", "attention", "parameters", "tokens", "search", "speed-up", "update", "speed-up"]
    where = f"{document['cores']} cores of {document['processor']}, {document['threads']} of them used"
    return "\n".join([f"{document['size']}, {where}; {document['engine']}, {document['date']}, medians of {document['turns']} turns.", "",
                      *table(head, rows)]) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default=str(ROOT / "build/bin/tearless-engine"), metavar="PROGRAM")
    parser.add_argument("--size", default="d256", choices=[size.name for size in SIZES if "decode" in size.lists and size.device == "cpu"])
    parser.add_argument("--layers", default="6,12", metavar="N,…")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--turns", type=int, default=9, metavar="N", help="of each kind (default: 9)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all that was measured")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the table")
    arguments = parser.parse_args()
    arguments.layers = numbers(parser, "--layers", arguments.layers, 1)
    for option in ("threads", "turns"):
        if getattr(arguments, option) < 1:
            parser.error(f"--{option}: wanted is a number of at least 1")
    return arguments


def main():
    arguments = parse_arguments()
    size = next(size for size in SIZES if size.name == arguments.size)
    try:
        version = output_of([arguments.engine, "--version"]).splitlines()[0]
    except RuntimeError as error:
        sys.exit(f"attention: {arguments.engine} does not run ({error}): `make build` makes it, or name it with --engine")
    document = {"date": datetime.date.today().isoformat(), "processor": processor(), "cores": cores(), "engine": version,
                "size": size.name, "threads": arguments.threads, "turns": arguments.turns, "layers": {}}
    with tempfile.TemporaryDirectory() as folder:
        for layers in arguments.layers:
            document["layers"][str(layers)] = measure(arguments, size, layers, pathlib.Path(folder))
            write(arguments.json, json.dumps(document, indent=1))
            write(arguments.markdown, report(document))
    print(report(document), end="")
    return 0


if __name__ == "__main__":
    run("attention", main)
