#!/usr/bin/env python3
"""get_ted.py PAIR [FOLDER [OUT]] [--any-version]: prepares a pair of the TED talks corpus (Qi et al. 2018) for grids/twt_table3.toml.

PAIR is gl-en, sk-en, en-he or ar-en. FOLDER (default: shared/data/ted-qi2018 beside the checkout) holds either
  - all_talks_{train,dev,test}.tsv, the original tables, a language a column: rows where a side is empty or marked NULL are left out; or
  - {train,dev,test}.en-XX.{en,XX}.txt, one sentence a line, each plain, .xz or .gz. Where FOLDER also has keep.PART.en-XX.lines (line numbers
    from 1), only those rows are used.
OUT (default: data/ted-PAIR, which git ignores) receives {train,dev,test}.{L1,L2}, the text as it is: tokenised and cased. Training pairs
and words are checked against Table 1 of the paper; --any-version takes another version of the corpus.
The corpus states no licence: use it for research, do not redistribute it.
"""

import argparse
import pathlib
import re
import sys

import parallel
import raw_data

TOOL = "get_ted"
PAIRS = ("gl-en", "sk-en", "en-he", "ar-en")
WHERE = "the TED talks corpus of https://github.com/neulab/word-embeddings-for-nmt"
# A segment that a talk lacks, also as the tokeniser has left it: __NULL__, _ _ NULL _ _.
NULL = re.compile(r"_ ?_ ?NULL ?_ ?_")


def from_table(file, languages):
    """The columns `languages` of a tab-separated table with a header."""
    rows = [line.split("\t") for line in parallel.lines_of(TOOL, file, WHERE)]
    header = rows[0]
    for language in languages:
        if language not in header:
            sys.exit(f"{TOOL}: {file} has no column {language}; its columns are {', '.join(header)}")
    columns = [header.index(language) for language in languages]
    sides = {language: [] for language in languages}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            sys.exit(f"{TOOL}: {file}:{number}: {len(row)} columns in place of {len(header)}: the file is damaged")
        cells = [row[column].strip() for column in columns]
        if all(cell and not NULL.search(cell) for cell in cells):
            for language, cell in zip(languages, cells):
                sides[language].append(cell)
    return sides


def from_lines(folder, part, languages):
    """The files of a part, of which keep.PART.….lines may choose the rows."""
    name = f"{part}.en-{next(language for language in languages if language != 'en')}"
    sides = {language: parallel.lines_of(TOOL, folder / f"{name}.{language}.txt", WHERE) for language in languages}
    selection = folder / f"keep.{name}.lines"
    if not selection.exists() or len({len(lines) for lines in sides.values()}) > 1:
        return sides
    rows = [int(line) - 1 for line in selection.read_text().split()]
    count = len(sides["en"])
    if rows and not 0 <= min(rows) <= max(rows) < count:
        sys.exit(f"{TOOL}: {selection} names a line beyond the {count} of the corpus: it belongs to another version of it")
    return {language: [lines[row] for row in rows] for language, lines in sides.items()}


def main(pair, folder=raw_data.SHARED / "ted-qi2018", out=None, any_version=False):
    folder, languages = pathlib.Path(folder), pair.split("-")
    parts = {}
    for part in parallel.PARTS:
        table = folder / f"all_talks_{part}.tsv"
        parts[part] = from_table(table, languages) if raw_data.packed_file(table) else from_lines(folder, part, languages)
    parallel.write(TOOL, pair, parts, out or raw_data.ROOT / f"data/ted-{pair}", any_version)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pair", choices=PAIRS)
    parser.add_argument("folder", nargs="?", default=raw_data.SHARED / "ted-qi2018")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--any-version", action="store_true")
    main(**vars(parser.parse_args()))
