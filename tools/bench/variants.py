#!/usr/bin/env python3
"""variants.py: times each variant of CUDA's kernels that runs do not use yet (engine/ops/kernel_variants.h) beside those in use.

One process of `tearless-engine bench` for each, and one for all together, take turns with one that has none, as in compare.py: k updates
each, in an order that reverses every turn; then each decodes the source sentences of the list `real`, beam 4. A variant is faster where the
updates' median is, on both lists; search-attention, where the search's is.

    tools/bench/variants.py --engine build-portable/bin/tearless-engine --markdown results/gpu/variants.md     # two minutes
    tools/bench/variants.py --size d32 --seconds 0.1          without a GPU: the steps, no measurement, as kernels of the CPU have no variants
"""

import argparse
import contextlib
import datetime
import itertools
import json
import pathlib

from compare import HERE, ROOT, SIZES, Side, compare_updates, in_turns, quantiles, typical
from measured import processor, run, table, write

VARIANTS = ("short-attention", "norm-backward", "stored-gradients", "search-attention", "bias-gradients", "all")
NONE = "as runs have them"
SEARCHES = 5


def measure(arguments, size, kind):
    """Milliseconds of an update and of a search, with their quartiles, by variant."""
    lengths = HERE / "lengths" / f"{size.name}_{kind}.json"
    common = [arguments.engine, "bench", str(HERE / "sizes" / f"{size.name}.toml"), "--vocabulary", str(size.vocabulary), "--lengths", str(lengths),
              "--threads", "1", "--turns"]
    batches = json.loads(lengths.read_text())["batches"]
    with contextlib.ExitStack() as ends:
        sides = {}
        for name in (NONE, *VARIANTS):
            command = common if name == NONE else [*common, "--variants", name]
            sides[name] = ends.enter_context(Side(name, command, threads=1))
            sides[name].answer()
        seconds = compare_updates(sides, batches, arguments.seconds)
        found = {"updates": {name: typical(values, batches[1:] + batches[:1]) for name, values in seconds.items()}}
        if kind == "real":
            searches = {name: [] for name in sides}
            for names in itertools.islice(in_turns(sides), SEARCHES):
                for name in names:
                    searches[name].append(sides[name].ask({"decode": True}))
            found["search"] = {name: [1e3 * x for x in quantiles([answer["seconds"] for answer in answers])] for name, answers in searches.items()}
            found["sentences"] = searches[NONE][0]["sentences"]
    return found


def report(document):
    columns = {f"{kind}, ms": found["updates"] for kind, found in document["lists"].items()}
    columns |= {f"search of {found['sentences']:,} sentences, ms": found["search"] for found in document["lists"].values() if "search" in found}
    head = ["variant", *(f"{column}{what}" for column in columns for what in ("", " less"))]
    rows = []
    for name in (NONE, *VARIANTS):
        cells = []
        for measured in columns.values():
            lower, middle, upper = measured[name]
            cells += [f"{middle:.3f} ({lower:.3f} to {upper:.3f})", f"{measured[NONE][1] - middle:+.3f}" if name != NONE else "–"]
        rows.append([name, *cells])
    return "\n".join([f"# Variants of the kernels, {document['size']}", "", f"Measured {document['date']} on {document['machine']} by tools/bench/variants.py: "
                      "an update, and a search, median and quartiles, in turns; and by how much that is less than with the kernels that runs have.", "",
                      *table(head, rows)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default=str(ROOT / "build/bin/tearless-engine"), metavar="PROGRAM")
    parser.add_argument("--size", default="base_cuda", choices=[size.name for size in SIZES], help="default: base_cuda")
    parser.add_argument("--seconds", type=float, default=5, help="that the slowest works on a list (default: 5)")
    parser.add_argument("--gpu", default="", help="its name, for the page")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all medians and quartiles")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the table")
    arguments = parser.parse_args()
    size = next(size for size in SIZES if size.name == arguments.size)
    document = {"date": datetime.date.today().isoformat(), "machine": arguments.gpu or processor(), "size": size.name, "lists": {}}
    for kind in ("real", "equal"):
        document["lists"][kind] = measure(arguments, size, kind)
        write(arguments.json, json.dumps(document, indent=1))
        write(arguments.markdown, report(document))  # what is measured stays where the next list takes too long
    print(report(document))
    return 0


if __name__ == "__main__":
    run("variants", main)
