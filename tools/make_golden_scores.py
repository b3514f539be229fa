#!/usr/bin/env python3
"""Writes tests/golden/scores.json: awkward and random sets of sentences, and what other programs print for them.

Needs sacreBLEU 2 from PyPI and the script multi-bleu.perl of Moses with perl. sacreBLEU 1 prints the lines of the old form. Run
by hand, look at the difference, commit it:

    python3 tools/make_golden_scores.py --multi-bleu multi-bleu.perl --old-python venv-with-sacrebleu-1.5.1/bin/python \\
        > tests/golden/scores.json
    python3 tools/make_golden_scores.py … --seed 2 --random 3000    # more random sets, to look for a difference
"""
import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import tempfile

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

SPACES = [" ", "\t", "\v", "\f", "\r", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\xa0", "\u1680", "\u2000", "\u2007", "\u200a", "\u2028",
          "\u2029", "\u202f", "\u205f", "\u3000"]
NO_SPACES = ["\u180e", "\u200b", "\u200d", "\u2060", "\ufeff", "\0", "\x7f", "\u0301"]  # look like spaces, or have no width

# Name → pairs of hypothesis and reference.
AWKWARD = {
    "one word": [("word", "word")],
    "one word of two": [("word", "word again")],
    "nothing matches": [("a b c d e", "v w x y z")],
    "empty lines": [("", ""), ("the cat sat on the mat", "the cat sat on a mat"), ("", "a reference alone"), ("a hypothesis alone", "")],
    "no hypothesis": [("", "all of it is missing"), (" \t", "here too")],
    "no reference": [("all of it is too much", ""), ("here too", "  ")],
    "nothing at all": [("", ""), (" ", "\t")],
    "shorter than four words": [("the cat sat", "the cat sat"), ("a b", "a c")],
    "too long": [("the the the the the the the", "the cat is on the mat")],
    "too short": [("a b c d e", "a b c d e f g h")],
    "equal": [("the quick brown fox jumps .", "the quick brown fox jumps .")],
    "punctuation": [("Hello, world!", "Hello world!!"), ("\"Yes,\" he said; (no?) [sic] {x} <y> ~z^ `q` $5 50% a/b a\\b @c #d *e +f =g |h _i",
                                                       "'Yes', he said: (no!) [sic] {x} <y> ~z^ `q` $5 50% a/b a\\b @c #d *e +f =g |h _j"),
                    ("wait.. ,,no ... .", "wait. . , no ..."), ("...", "..."), ("!?", "!?")],
    "punctuation at the ends of words": [("(hi) \"hello\" don't 'tis é. .é !é! a. .a .. !", "(hi \"hello\" don't 'tis é .é !é! a .a . !")],
    "numbers": [("1,000.50 and 3.14 and 5. 6 .7 8.", "1,000.5 and 3.14 and 5.6 .7 8 ."), ("1990-1995 in 2-3 of 10 - 12", "1990 - 1995 in 2-3 of 10-12"),
                ("1.000,00 $ -5 +5 1e-5 ٣.٤ ３.４", "1.000,00$ -5 +5 1e-5 ٣ . ٤ ３ . ４")],
    "HTML escapes": [("&quot;a&amp;lt;b&gt;&apos;c&#39; &amp;amp; &AMP;", "\"a<b>'c' & & &"), ("x<skipped>y &lt;skipped&gt; <skipped", "xy <skipped>")],
    "hyphens": [("a state-of-the-art well-known x-é-y -a b- a--b - a-b-c-d", "a state-of-the-art well known x-é-y - a b - a-b-c d"),
                ("Ein Fuß-Ball-Spiel - E-Mail", "Ein Fußball-Spiel - E-Mail")],
    "CJK": [("这是一个测试。", "这是一次测试。"), ("これは　テスト です。", "これはテストです。"), ("이것은 시험입니다 .", "이것은 시험이다 .")],
    "Arabic and Hebrew": [("هذا اختبار، أليس كذلك؟", "هذا هو اختبار ، أليس كذلك؟"), ("זהו מבחן פשוט", "זה מבחן פשוט")],
    "mixed case": [("The Cat SAT On The Mat", "the cat sat on the mat"), ("ÄÖÜ Straße İstanbul ΣΑΣ Ǆ", "äöü STRASSE istanbul σας ǆ")],
    "odd line separators": [("one\u2028two\x85three\vfour\ffive\rsix\x1cseven\x1deight\x1enine\u2029ten", "one two three four five six seven eight nine ten"),
                            ("a\x85b c", "a b c"), ("ends with CR\r", "ends with CR"), ("a\vb\fc", "a b c")],
    "trailing and doubled spaces": [("  a  b   c d  ", "a b c d"), ("a b c d\u2028\u3000 ", "a b c d"), ("5.\xa0", "5."), ("a-\t", "a-")],
    "NBSP and other spaces": [(f"a{space}b c d e", "a b c d e") for space in SPACES] + [("50\xa0% of 1\u202f000", "50 % of 1 000")],
    "no spaces": [(f"a{character}b c d e", "a b c d e") for character in NO_SPACES],
    "emoji and combining marks": [("👍🏽 e\u0301tait 👨\u200d👩\u200d👧 !", "👍 était 👨\u200d👩\u200d👧!"), ("𝔘𝔫𝔦 𐍈", "𝔘𝔫𝔦 𐍈")],
    "repeated n-grams": [("a a a a a a b b b a a a", "a a a b b a a a a a"), ("abababababab", "bababababa")],
    # Of 80 words 23 or 41 match: 28.75 % and 51.25 %. Rounding them to one decimal depends on the order of operations.
    "a tie": [(" ".join(f"w{i}" for i in range(80)), " ".join(f"w{i}" if i < 23 else "x" for i in range(80)))],
    "another tie": [(" ".join(f"w{i}" for i in range(80)), " ".join(f"w{i}" if i < 41 else "x" for i in range(80)))],
}


def random_character(draw):
    kind = draw.random()
    if kind < 0.35:
        return draw.choice("abcABZ")
    if kind < 0.45:
        return draw.choice("0159")
    if kind < 0.6:
        return draw.choice(".,-'!&;<>\"()/$_")
    if kind < 0.65:
        return draw.choice(["&amp;", "&lt;", "&quot;", "&gt;", "<skipped>", "##"])
    if kind < 0.75:
        return draw.choice(SPACES)
    if kind < 0.78:
        return draw.choice(NO_SPACES)
    if kind < 0.9:
        return draw.choice("éßİσ日本語اعбж")
    while True:
        point = draw.randrange(0x110000 if kind > 0.97 else 0x800)
        if not 0xD800 <= point < 0xE000 and point != 0x0A:
            return chr(point)


def random_set(seed):
    """Hypotheses are references in which one word of five is dropped, replaced, doubled, or changes a character."""
    draw = random.Random(f"sentences {seed}")
    words = ["".join(random_character(draw) for _ in range(draw.choice([1, 1, 2, 3, 5]))) for _ in range(12)]
    pairs = []
    for _ in range(draw.randrange(1, 5)):
        reference = [draw.choice(words) for _ in range(draw.choice([0, 1, 3, 6, 10, 15]))]
        hypothesis = []
        for word in reference:
            change = draw.randrange(20)
            hypothesis += [[], [draw.choice(words)], [word, word], [word + random_character(draw)]][change] if change < 4 else [word]
        join = (lambda text: "".join(word + (draw.choice(SPACES) if draw.random() < 0.1 else " ") for word in text))
        pairs.append((join(hypothesis), join(reference)))
    return pairs


def multi_bleu(script, hypotheses, references, *options):
    """The script's line; None where it fails, for hypotheses without words."""
    with tempfile.TemporaryDirectory() as folder:
        reference = pathlib.Path(folder) / "reference"
        reference.write_bytes(b"".join(line + b"\n" for line in references))
        ended = subprocess.run(["perl", script, *options, str(reference)], input=b"".join(line + b"\n" for line in hypotheses),
                               capture_output=True, env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
        return ended.stdout.decode().strip() or None


def compound_split(line):
    return re.sub(rb"([^ \t-\r])-([^ \t-\r])", rb"\1 ##AT##-##AT## \2", line)


def as_characters(line):
    """Each byte as a character that Python splits at exactly where Perl splits bytes."""
    return "".join(chr(byte) if 0x20 <= byte < 0x80 or 9 <= byte <= 13 else chr(0x100 + byte) for byte in line)


OLD = """
import json, sys
from argparse import Namespace
from sacrebleu.metrics import BLEU
for pair in json.load(sys.stdin):
    bleu = BLEU(Namespace(smooth_method='exp', smooth_value=None, tokenize='13a', lc=False, force=True, num_refs=1, short=False))
    try:
        print(bleu.corpus_score(pair[0], [pair[1]]).format(2, False, str(bleu.signature)))
    except (ZeroDivisionError, EOFError):
        print()
"""


def expected(pairs, script):
    hypotheses, references = [list(side) for side in zip(*pairs)]
    bytes_of = [[line.encode() for line in side] for side in (hypotheses, references)]
    split = [[compound_split(line) for line in side] for side in bytes_of]
    characters = [[as_characters(line) for line in side] for side in bytes_of]
    sacre = BLEU(force=True)
    lines = {
        "multi-bleu": multi_bleu(script, *bytes_of),
        "multi-bleu lower_case": multi_bleu(script, *bytes_of, "-lc"),
        "multi-bleu compound_split": multi_bleu(script, *split),
    }
    score = sacre.corpus_score(hypotheses, [references])
    signature = sacre.get_signature().format()
    lines["sacrebleu"] = score.format(2, False, signature)
    lines["sacrebleu json"] = score.format(2, False, signature, is_json=True)
    for name, options in (("chrf", {}), ("chrf beta=3", {"beta": 3}), ("chrf word_order=1", {"word_order": 1}), ("chrf word_order=2", {"word_order": 2})):
        chrf = CHRF(**options)
        lines[name] = chrf.corpus_score(hypotheses, [references]).format(2, False, chrf.get_signature().format())
    lines["chrf json"] = CHRF().corpus_score(hypotheses, [references]).format(2, False, lines["chrf"].split(" ")[0].partition("|")[2], is_json=True)
    none = BLEU(tokenize="none", smooth_method="none", force=True).corpus_score(characters[0], [characters[1]])
    return {"lines": lines, "bleu_by_sacrebleu": round(none.score, 10)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--multi-bleu", required=True, help="the script")
    parser.add_argument("--old-python", required=True, help="a Python that has sacreBLEU 1.5")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--random", type=int, default=40, help="random sets")
    args = parser.parse_args()
    sets = [{"name": name, "pairs": pairs} for name, pairs in AWKWARD.items()]
    sets += [{"name": f"random {i}", "pairs": random_set((args.seed, i))} for i in range(args.random)]
    for one in sets:
        one.update(expected(one["pairs"], args.multi_bleu))
    asked = json.dumps([list(zip(*one["pairs"])) for one in sets])
    old = subprocess.run([args.old_python, "-c", OLD], input=asked, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
    for one, line in zip(sets, old):
        # For the form of the signature alone: it refuses empty references, and smooths even if nothing matches.
        same = line and line.split(" = ", 1)[1] == one["lines"]["sacrebleu"].split(" = ", 1)[1]
        one["lines"]["sacrebleu signature=1"] = line if same else None
    print(json.dumps({"sacrebleu": sacrebleu.__version__, "sacrebleu_old": re.search(r"version\.([0-9.]+) ", old[0])[1]})[:-1] + ', "sets": [')
    print(",\n".join(json.dumps(one) for one in sets))
    print("]}")


if __name__ == "__main__":
    main()
