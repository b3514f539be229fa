"""What the scripts of parallel corpora share: they write {train,dev,test}.LANGUAGE and check them against Table 1 of "Transformers without Tears"."""

import dataclasses
import pathlib
import sys

import raw_data

PARTS = ("train", "dev", "test")


@dataclasses.dataclass(frozen=True)
class Expected:
    """Table 1 of the paper: training pairs in thousands, and words of both sides in millions, before BPE."""
    pairs: int
    words: float


TABLE_1 = {"gl-en": Expected(10, 0.37), "sk-en": Expected(61, 2.32), "en-vi": Expected(133, 5.99), "en-he": Expected(212, 7.88),
           "ar-en": Expected(214, 8.09)}


def words_of(lines):
    return sum(len(line.split()) for line in lines)


def check(tool, pair, sides, any_version):
    """Says the counts of the training pairs; exits with a sentence if they are not those of Table 1, unless any version will do.

    Words within 3 % count as equal: the paper gives two decimals, and its rows of gl-en are not known exactly."""
    pairs, words = len(next(iter(sides.values()))), sum(words_of(lines) for lines in sides.values())
    expected = TABLE_1[pair]
    said = f"{pairs:,} training pairs and {words:,} words"
    wrong = round(pairs / 1000) != expected.pairs or abs(words / 1e6 - expected.words) > 0.03 * expected.words
    if wrong and not any_version:
        sys.exit(f"{tool}: {pair} has {said}, Table 1 of the paper {expected.pairs}k and {expected.words}M: it is another version of the "
                 "corpus, or incomplete; --any-version takes it as it is")
    return f"{said} ({'not ' if wrong else ''}as in Table 1: {expected.pairs}k, {expected.words}M)"


def lines_of(tool, file, where):
    """The lines of FILE, packed or not. Only a line feed ends a line: the text holds U+0085 and the like."""
    read, data = raw_data.unpacked(tool, file, where)
    try:
        return data.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        sys.exit(f"{tool}: {read} is not UTF-8 ({error}); download it again")


def complete_pairs(sides):
    """Without the rows of which a side is empty."""
    rows = [row for row in zip(*sides.values()) if all(side.strip() for side in row)]
    return {language: [row[i] for row in rows] for i, language in enumerate(sides)}


def write(tool, pair, parts, out, any_version):
    """Writes parts (part → language → lines) to OUT. All are checked before the first is written."""
    for part, sides in parts.items():
        counts = {language: len(lines) for language, lines in sides.items()}
        if len(set(counts.values())) > 1 or not all(counts.values()):
            sys.exit(f"{tool}: the sides of {part} of {pair} have " + " and ".join(f"{n} lines ({l})" for l, n in counts.items()) +
                     ": line n of one must be the translation of line n of the other")
    said = check(tool, pair, parts["train"], any_version)
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for part, sides in parts.items():
        for language, lines in sides.items():
            raw_data.write_atomically(out / f"{part}.{language}", "".join(line + "\n" for line in lines).encode("utf-8"))
        print(f"{out}/{part}.{{{','.join(sides)}}}: {len(next(iter(sides.values())))} sentences")
    print(f"{pair}: {said}")
