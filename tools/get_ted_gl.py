#!/usr/bin/env python3
"""get_ted_gl.py [FOLDER [OUT]]: prepares the TED gl-en corpus (Qi et al. 2018) for grids/gl_en_small.toml.

FOLDER (default: shared/data/ted-qi2018 beside the checkout) holds {train,dev,test}.en-gl.{en,gl}.txt, each plain or .xz: tokenised text,
one sentence a line. About a tenth of its rows have a truncated Galician side; where FOLDER also has keep.PART.en-gl.lines (line numbers
from 1), only those rows are used. OUT (default: data/ted-gl-en, which git ignores) receives {train,dev,test}.{gl,en}.
The corpus states no licence: use it for research, do not redistribute it.
"""

import lzma
import pathlib
import sys

import raw_data

SOURCE = "the TED talks corpus of https://github.com/neulab/word-embeddings-for-nmt"


def read_lines(file):
    packed = file.with_name(file.name + ".xz")
    if packed.exists():
        data = lzma.open(packed).read()
    elif file.exists():
        data = file.read_bytes()
    else:
        sys.exit(f"get_ted_gl: {file} (or {packed.name}) is missing: put the gl-en part of {SOURCE} there, or name its folder")
    return data.decode("utf-8").removesuffix("\n").split("\n")  # only \n ends a line: the text holds U+0085 and the like


def kept_rows(folder, part, count):
    selection = folder / f"keep.{part}.en-gl.lines"
    if not selection.exists():
        return range(count)
    rows = [int(line) - 1 for line in selection.read_text().split()]
    if rows and not 0 <= min(rows) <= max(rows) < count:
        sys.exit(f"get_ted_gl: {selection} names a line beyond the {count} of the corpus: it belongs to another version of it")
    return rows


def main(folder=raw_data.SHARED / "ted-qi2018", out=raw_data.ROOT / "data/ted-gl-en"):
    folder, out = pathlib.Path(folder), pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        sides = {language: read_lines(folder / f"{part}.en-gl.{language}.txt") for language in ("gl", "en")}
        if len(sides["gl"]) != len(sides["en"]):
            sys.exit(f"get_ted_gl: the sides of {part} in {folder} differ in length: {len(sides['gl'])} and {len(sides['en'])} lines")
        rows = kept_rows(folder, part, len(sides["gl"]))
        for language, lines in sides.items():
            text = "".join(lines[row] + "\n" for row in rows)
            raw_data.write_atomically(out / f"{part}.{language}", text.encode("utf-8"))
        print(f"{out}/{part}.{{gl,en}}: {len(rows)} sentences")


if __name__ == "__main__":
    if any(argument in ("-h", "--help") for argument in sys.argv):
        sys.exit(__doc__)
    main(*sys.argv[1:])
