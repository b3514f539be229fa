#!/usr/bin/env python3
"""get_iwslt14.py [FOLDER [OUT]]: prepares IWSLT'14 German-English for grids/base/ada_de_en.toml, as fairseq prepares it.

FOLDER (default: shared/data/iwslt14-de-en beside the checkout) holds de-en.tgz of 2014-01 (WIT3, https://wit3.fbk.eu), or its files:
train.tags.de-en.{de,en} and IWSLT14.{TED.dev2010,TEDX.dev2012,TED.tst2010,TED.tst2011,TED.tst2012}.de-en.{de,en}.xml, each plain, .xz or
.gz. OUT (default: data/iwslt14-de-en, which git ignores) receives {train,dev,test}.{de,en}.

1. Training lines with <url>, <talkid> or <keywords> are left out; the marks of <title> and <description> are, their text stays. Other lines
   stay as they are.
2. A test set has the text of each <seg>, with ' for the right single quotation mark.
3. All is tokenised as by Moses, with its escapes.
4. Training pairs stay where both sides have 1 to 175 tokens and neither more than 1.5 times as many as the other.
5. All is lower-cased. Every 23rd pair is dev, the others are train; the five test sets, in the order above, are test.

Tokenising needs the package sacremoses, whose rules are those of Moses before November 2018. The numbers of pairs are compared with those
that fairseq's users publish. The corpus states no licence: use it for research, do not redistribute it.
"""

import pathlib
import re
import sys
import tarfile

import raw_data

TOOL = "get_iwslt14"
WHERE = "de-en.tgz of IWSLT'14 (WIT3, 2014-01, https://wit3.fbk.eu)"
ARCHIVE = "de-en.tgz"
LANGUAGES = ("de", "en")
TRAIN = "train.tags.de-en.{}"
TESTS = [f"IWSLT14.{name}.de-en.{{}}.xml" for name in ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")]
OTHER_NAME = ("TEDX", "TED")  # of dev2012, in copies of the archive
BEGINS_TALK = "<url>"
LEFT_OUT = (BEGINS_TALK, "<talkid>", "<keywords>")
MARKS = re.compile("</?(?:title|description)>")
SEGMENT = re.compile(r'<seg id="([0-9]*)">\s*')
MOST_TOKENS, RATIO, DEV_EVERY = 175, 1.5, 23
PUBLISHED = {"train": 160_239, "dev": 7_283, "test": 6_750}


def files_of(folder):
    """Name → lines, of the archive in FOLDER, or of the files that are there."""
    names = [name.format(language) for name in (TRAIN, *TESTS) for language in LANGUAGES]
    others = {name: name.replace(*OTHER_NAME) for name in names}
    archive = folder / ARCHIVE
    members = {}
    if archive.exists():
        try:
            with tarfile.open(archive, "r:gz") as packed:
                for member in packed:
                    name = member.name.rsplit("/", 1)[-1]
                    if (name in names or name in others.values()) and member.isfile():
                        members[name] = packed.extractfile(member).read()
        except (tarfile.TarError, EOFError, OSError, ValueError) as error:
            sys.exit(f"{TOOL}: {archive} cannot be unpacked ({error}); download it again")
    files = {}
    for name in names:
        if archive.exists():
            file, data = f"{archive}: {name}", members.get(name, members.get(others[name]))
            if data is None:
                sys.exit(f"{TOOL}: {archive} has no {name}: it is another corpus, or incomplete; put {WHERE} there")
        else:
            there = name if raw_data.packed_file(folder / name) or not raw_data.packed_file(folder / others[name]) else others[name]
            file, data = raw_data.unpacked(TOOL, folder / there, f"{WHERE}, or its files,")
        try:
            files[name] = data.decode("utf-8").removesuffix("\n").split("\n")  # only a line feed ends a line
        except UnicodeDecodeError as error:
            sys.exit(f"{TOOL}: {file} is not UTF-8 ({error}); download it again")
    return files


def training_lines(lines):
    return [MARKS.sub("", line) for line in lines if not any(mark in line for mark in LEFT_OUT)]


def segments(lines):
    """Of a test set: the number in its document, and the text, of each segment."""
    found = []
    for line in lines:
        if match := SEGMENT.search(line):
            text = line[:match.start()] + line[match.end():]
            found.append((match[1], re.sub(r"\s*</seg>\s*", "", text).replace("\u2019", "'")))
    return found


def talks(lines):
    """The lines of each talk; the first has what stands before any."""
    found = [[]]
    for line in lines:
        if BEGINS_TALK in line:
            found.append([])
        found[-1].append(line)
    return found


def training_pairs(files):
    names = [TRAIN.format(language) for language in LANGUAGES]
    sides = [training_lines(files[name]) for name in names]
    if len(sides[0]) != len(sides[1]):
        counts = [[len(training_lines(talk)) for talk in talks(files[name])] for name in names]
        first = next((i for i, (one, other) in enumerate(zip(*counts)) if one != other), None)
        where = f" (talk {first} {counts[0][first]} and {counts[1][first]})" if first else ""
        sys.exit(f"{TOOL}: without the lines of {', '.join(LEFT_OUT)} " +
                 " and ".join(f"{name} has {len(side)} lines" for name, side in zip(names, sides)) + where +
                 ": line n of one must be the translation of line n of the other; download them again")
    return list(zip(*sides))


def test_pairs(files, name):
    sides = [segments(files[name.format(language)]) for language in LANGUAGES]
    for i in range(max(map(len, sides))):
        numbers = [side[i][0] if i < len(side) else None for side in sides]
        if numbers[0] != numbers[1]:
            sys.exit(f"{TOOL}: segment {i + 1} of " + " and of ".join(
                f"{name.format(language)} {f'has the id {number}' if number is not None else 'is missing'}"
                for language, number in zip(LANGUAGES, numbers)) + ": both must have the same segments; download them again")
    if not sides[0]:
        sys.exit(f"{TOOL}: {name.format('de')} has no segment: it is damaged; download it again")
    return [(german, english) for (_, german), (_, english) in zip(*sides)]


def moses_tokenisers():
    try:
        from sacremoses import MosesTokenizer
    except ImportError:
        sys.exit(f"{TOOL}: tokenising needs the package sacremoses: python3 -m pip install sacremoses, in a virtual environment where the "
                 "system's python3 takes none, and run this with its python3")

    def of(language):
        moses = MosesTokenizer(language)
        return lambda line: moses.tokenize(line, return_str=True, escape=True)

    return [of(language) for language in LANGUAGES]


def tokenised(pairs, tokenisers):
    """Pairs of lists of tokens."""
    return [[tokenise(side).split() for tokenise, side in zip(tokenisers, pair)] for pair in pairs]


def is_kept(pair):
    short, long = sorted(map(len, pair))
    return 1 <= short and long <= MOST_TOKENS and long <= RATIO * short


def lower(line):  # letter by letter: a sigma at the end of a word is one like the others, as in Perl
    return "".join(letter.lower() for letter in line)


def parts_of(files, tokenisers):
    """Part → pairs of lines."""
    tests = [pair for name in TESTS for pair in test_pairs(files, name)]
    train = training_pairs(files)
    kept = [pair for pair in tokenised(train, tokenisers) if is_kept(pair)]
    parts = {"train": [pair for number, pair in enumerate(kept, 1) if number % DEV_EVERY],
             "dev": [pair for number, pair in enumerate(kept, 1) if number % DEV_EVERY == 0], "test": tokenised(tests, tokenisers)}
    return {part: [[lower(" ".join(side)) for side in pair] for pair in pairs] for part, pairs in parts.items()}


def main(folder=raw_data.SHARED / "iwslt14-de-en", out=raw_data.ROOT / "data/iwslt14-de-en"):
    folder, out = pathlib.Path(folder), pathlib.Path(out)
    parts = parts_of(files_of(folder), moses_tokenisers())
    out.mkdir(parents=True, exist_ok=True)
    for part, pairs in parts.items():
        for side, language in enumerate(LANGUAGES):
            raw_data.write_atomically(out / f"{part}.{language}", "".join(pair[side] + "\n" for pair in pairs).encode("utf-8"))
        published = "as published" if len(pairs) == PUBLISHED[part] else f"not as published: {PUBLISHED[part]:,}"
        print(f"{out}/{part}.{{de,en}}: {len(pairs):,} pairs ({published})")


if __name__ == "__main__":
    raw_data.run(main, __doc__)
