#!/usr/bin/env python3
"""get_tatoeba.py [FOLDER [OUT]]: draws German-English sentences from the Tatoeba pairs of manythings.org for grids/joey_small.toml.

FOLDER (default: shared/data/tatoeba-manythings beside the checkout) holds deu.txt of 2018-04-07, plain, .xz or .gz. OUT (default:
data/tatoeba-de-en, which git ignores) receives {train,dev,test}.{de,en}: 93,597, 500 and 2,999 pairs, as many as a published exercise
has (docs/spec/training.md, 5), words and punctuation apart, cased.

No sentence is there twice on its side, whatever its case and punctuation, so none that is held out has been trained on in either
language; sentences that differ in a word may be. Of those the longest are taken, because the sentences of the exercise are longer than
Tatoeba's. No randomness: sentences are drawn in the order of a hash.
The text is that of tatoeba.org, CC BY 2.0 FR: whoever passes it on names www.manythings.org/anki and tatoeba.org.
"""

import hashlib
import pathlib
import re

import raw_data

TOOL = "get_tatoeba"
WHERE = "deu.txt of www.manythings.org/anki"
FILE = raw_data.RawFile("deu.txt", "7a363bf8587f1a9f895583574c7195071b02f9dfdf4d0d6605947c6b5e0c25a8", 12266002, 169197)
SIZES = {"test": 2999, "dev": 500, "train": 93597}
TOKEN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def key(sentence):  # equal for sentences that differ in case or punctuation only
    return " ".join(re.findall(r"\w+", sentence.lower()))


def draw_order(pair):
    return hashlib.sha256("\t".join(map(key, pair)).encode()).digest()


def words(pair):
    return sum(len(key(side).split()) for side in pair)


def pairs_of(text):
    """(German, English), each sentence once on its side."""
    lines = text.removesuffix("\n").split("\n")  # only a line feed ends a line
    pairs = sorted({(german, english) for english, german in (line.split("\t")[:2] for line in lines)})
    pairs.sort(key=draw_order)  # equal keys are in the order of the text
    taken = {0: {""}, 1: {""}}  # a sentence without a word is none
    for pair in pairs:
        keys = [key(side) for side in pair]
        if not any(keys[side] in taken[side] for side in taken):
            for side in taken:
                taken[side].add(keys[side])
            yield pair


def parts_of(text, sizes):
    """Part → pairs. The longest pairs that there are, of equal ones the first in the order of the hash."""
    longest = sorted(pairs_of(text), key=lambda pair: (-words(pair), draw_order(pair)))[:sum(sizes.values())]
    drawn = iter(sorted(longest, key=draw_order))
    return {part: [next(drawn) for _ in range(size)] for part, size in sizes.items()}


def main(folder=raw_data.SHARED / "tatoeba-manythings", out=raw_data.ROOT / "data/tatoeba-de-en"):
    folder, out = pathlib.Path(folder), pathlib.Path(out)
    parts = parts_of(raw_data.read(TOOL, folder, FILE, WHERE).decode("utf-8"), SIZES)
    out.mkdir(parents=True, exist_ok=True)
    for part, pairs in parts.items():
        for side, language in enumerate(("de", "en")):
            lines = "".join(" ".join(TOKEN.findall(pair[side])) + "\n" for pair in pairs)
            raw_data.write_atomically(out / f"{part}.{language}", lines.encode("utf-8"))
        print(f"{out}/{part}.{{de,en}}: {len(pairs)} sentences")


if __name__ == "__main__":
    raw_data.run(main, __doc__)
