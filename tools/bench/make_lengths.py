#!/usr/bin/env python3
"""make_lengths.py TOKENS.bin RT: writes tools/bench/lengths/, the batches that tools/bench/compare.py times, as rows of each sentence.

*_equal: every sentence has as many rows on both sides, so that padding costs nothing and packing gains nothing.
*_real: sentences of TED gl-en (Qi et al. 2018) after 3,000 joint BPE merges, cut as the engine cuts a pass: shuffled, sorted by source
length, batches growing while sentences × (longest source + longest target) stays within the rows of the size, or, for the papers'
4,096, sentences × longest side. Pairs that are too long for a batch are left out. Of all batches twelve are drawn, seed 147.
decode: 48 sentences of the test set, drawn likewise, as one list.
rt: single sentences of RT (Pang and Lee 2005), words as they are, cut likewise with sentences × longest ≤ 4,096. RT: the folder that
tools/get_rt.py writes.

TOKENS.bin is the prepared corpus, whose lengths count EOS on both sides:

    tools/get_ted_gl.py && tearless-engine prepare FILE    # FILE: [data] of grids/base/twt_gl_en.toml, [text] merges = 3000
    tools/bench/make_lengths.py ~/.cache/tearless/prepared/KEY/tokens.bin data/rt
"""

import json
import pathlib
import random
import struct
import sys

LENGTHS = pathlib.Path(__file__).resolve().parent / "lengths"
SEED, BATCHES, DECODED = 147, 12, 48
TOKEN_FILE_FORMAT = 2  # kTokenFileFormat in engine/data/token_file.h


def both_sides(source, target):
    return source + target


# size: (rows of a batch, what of the longest source and target counts, rows of a sentence's side in the equal list)
SIZES = {
    "d32": (96, both_sides, 16),
    "d64": (256, both_sides, 16),
    "d128": (768, both_sides, 24),
    "d256": (1024, both_sides, 24),
    "base": (1024, both_sides, 24),
    "base_cuda": (4096, max, 24),
}


def read_pairs(file):
    """{"train", "dev", "test"}: [(source rows, target rows)], EOS counted."""
    data = pathlib.Path(file).read_bytes()
    header, at = json.loads(data[:data.index(b"\n")]), data.index(b"\n") + 1
    if header.get("format") != TOKEN_FILE_FORMAT:
        sys.exit(f"make_lengths: {file} has format {header.get('format')}, not {TOKEN_FILE_FORMAT}: prepare the corpus again")

    def block():
        nonlocal at
        (size,) = struct.unpack_from("<Q", data, at)
        at += 8 + size
        return data[at - size:at]

    def line_lengths():
        offsets = [number for (number,) in struct.iter_unpack("<Q", block())]
        block()  # the tokens themselves
        return [after - before for before, after in zip(offsets, offsets[1:])]

    for _ in ("subwords", "sizes of pieces", "pieces", "output vocabulary"):
        block()
    # Source lines are stored with EOS, target lines without.
    return {part: [(s, t + 1) for s, t in zip(line_lengths(), line_lengths())] for part in ("train", "dev", "test")}


def cut(pairs, rows, counted):
    pairs = sorted(pairs, key=lambda pair: pair[0])
    batches = []
    for source, target in pairs:
        if counted(source, target) > rows:
            continue
        wider = [max(side) for side in zip(*batches[-1], (source, target))] if batches else [0, 0]
        if not batches or (len(batches[-1]) + 1) * counted(*wider) > rows:
            batches.append([])
        batches[-1].append((source, target))
    return batches


def write(name, batches):
    text = json.dumps({"batches": batches}, separators=(",", ":")).replace("]],", "]],\n")
    (LENGTHS / f"{name}.json").write_text(text + "\n")
    padded = sum(len(b) * (max(s for s, _ in b) + max(t for _, t in b)) for b in batches)
    rows = sum(s + t for b in batches for s, t in b)
    print(f"{name}: {len(batches)} batches, {sum(map(len, batches))} sentences, {rows} rows, {100 * (1 - rows / padded):.0f} % padding")


def write_rt(folder):
    rows, equal = 4096, 24
    lines = [line for name in ("neg", "pos") for line in (pathlib.Path(folder) / f"rt-polarity.{name}").read_bytes().split(b"\n")]
    generator = random.Random(SEED)
    lengths = [len(line.split()) for line in lines if line.split()]
    shuffled = generator.sample(lengths, len(lengths))
    batches = generator.sample(cut([(words, 0) for words in shuffled], rows, both_sides), BATCHES)
    for name, listed in (("rt_equal", [[equal] * (rows // equal)] * BATCHES), ("rt_real", [[words for words, _ in b] for b in batches])):
        (LENGTHS / f"{name}.json").write_text(json.dumps({"batches": listed}, separators=(",", ":")).replace("],", "],\n") + "\n")
        print(f"{name}: {len(listed)} batches, {sum(map(len, listed))} sentences, {sum(map(sum, listed))} rows")


def main(file, rt):
    write_rt(rt)
    pairs = read_pairs(file)
    LENGTHS.mkdir(exist_ok=True)
    for name, (rows, counted, side) in SIZES.items():
        write(f"{name}_equal", [[(side, side)] * (rows // counted(side, side))] * BATCHES)
        generator = random.Random(SEED)
        train = generator.sample(pairs["train"], len(pairs["train"]))
        write(f"{name}_real", generator.sample(cut(train, rows, counted), BATCHES))
    write("decode", [random.Random(SEED).sample(pairs["test"], DECODED)])


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
