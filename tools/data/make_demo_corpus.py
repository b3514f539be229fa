#!/usr/bin/env python3
"""make_demo_corpus.py [ARCHIVE]: writes grids/demo/{train,dev,test}.{de,en} from the Tatoeba pairs of manythings.org (deu.txt, .xz or plain).

Short sentences of frequent words, so that a tiny model learns something within a minute. Held-out sentences are new on both sides:
none of them, whatever its case and punctuation, is in the training part. No randomness: sentences are drawn in the order of a hash.
The output is committed; ARCHIVE defaults to the copy beside the checkout.
"""

import collections
import hashlib
import lzma
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ARCHIVE = ROOT.parent / "shared/data/tatoeba-manythings/deu.txt.xz"
FREQUENT_ENGLISH, FREQUENT_GERMAN = 250, 360  # the most frequent words of each side; a sentence with any other word is dropped
SHORTEST, LONGEST = 3, 7                      # words a side
HELD_OUT = 300                                # dev, and test


def words(sentence):
    return re.findall(r"\w+(?:'\w+)?", sentence.lower())


def key(sentence):  # equal for sentences that differ in case or punctuation only
    return " ".join(words(sentence))


def draw_order(sentence):
    return hashlib.sha256(key(sentence).encode()).digest()


def read_pairs(archive):
    opener = lzma.open if archive.suffix == ".xz" else open
    with opener(archive, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            english, german = line.rstrip("\n").split("\t")[:2]
            yield german, english


def frequent(sentences, count):
    counts = collections.Counter(word for sentence in sentences for word in words(sentence))
    return set(sorted(counts, key=lambda word: (-counts[word], word))[:count])


def simple_pairs(archive):
    pairs = sorted({pair for pair in read_pairs(archive) if all(SHORTEST <= len(words(side)) <= LONGEST for side in pair)})
    german = frequent((pair[0] for pair in pairs), FREQUENT_GERMAN)
    english = frequent((pair[1] for pair in pairs), FREQUENT_ENGLISH)
    return [pair for pair in pairs if german.issuperset(words(pair[0])) and english.issuperset(words(pair[1]))]


def split(pairs):
    by_english = collections.defaultdict(list)
    for german, english in pairs:
        by_english[key(english)].append((german, english))
    names = sorted(by_english, key=draw_order)
    parts, taken_german = [], set()
    for _ in ("test", "dev"):
        part = []
        while len(part) < HELD_OUT:  # one translation each; the others of the same English side are dropped
            german, english = by_english[names.pop(0)][0]
            if key(german) not in taken_german:
                taken_german.add(key(german))
                part.append((german, english))
        parts.append(part)
    train = [pair for name in names for pair in by_english[name] if key(pair[0]) not in taken_german]
    return {"test": parts[0], "dev": parts[1], "train": train}


def main(archive=ARCHIVE):
    for name, part in split(simple_pairs(pathlib.Path(archive))).items():
        for language, side in (("de", 0), ("en", 1)):
            text = "".join(pair[side] + "\n" for pair in part)
            (ROOT / f"grids/demo/{name}.{language}").write_text(text, encoding="utf-8", newline="\n")
        print(f"{name}: {len(part)} pairs")


if __name__ == "__main__":
    main(*sys.argv[1:])
