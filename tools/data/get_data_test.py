#!/usr/bin/env python3
"""get_data_test.py [REPORT]: tests of tools/data/get_*.py, which prepare the data sets. REPORT: results as JUnit XML."""

import contextlib
import gzip
import hashlib
import io
import itertools
import lzma
import os
import pathlib
import re
import sys
import tarfile
import tempfile
import unittest
import unittest.mock
import zipfile

import characters
import get_enwik8
import get_iwslt14
import get_iwslt15
import get_mnist
import get_rt
import get_sst5
import get_tatoeba
import get_ted
import get_text8
import parallel
import raw_data

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
import junit_report  # noqa: E402

TEXT = b"a \xe9\nb\n"
FILE = raw_data.RawFile("toy.txt", hashlib.sha256(TEXT).hexdigest(), len(TEXT), 2)
OTHER = raw_data.RawFile("other.bin", hashlib.sha256(b"xyz").hexdigest(), 3)


def zipped(**files):
    """The bytes of an archive of zip with these files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


class Unpacking(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "made" / "out"

    def get(self, *files):
        """What is printed, or the sentence with which it exits."""
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                raw_data.get("get_toy", files, "the toy data", self.folder, self.out)
        except SystemExit as end:
            return end.code
        return printed.getvalue()

    def test_AFileIsTakenPlainOrPacked(self):
        for name, data in [("toy.txt", TEXT), ("toy.txt.xz", lzma.compress(TEXT)), ("toy.txt.gz", gzip.compress(TEXT)),
                           ("toy.txt.zip", zipped(any_name=TEXT))]:
            with self.subTest(name):
                (self.folder / name).write_bytes(data)
                self.assertEqual(self.get(FILE), f"{self.out / 'toy.txt'}: 2 sentences\n")
                self.assertEqual((self.out / "toy.txt").read_bytes(), TEXT)
                (self.folder / name).unlink()
                (self.out / "toy.txt").unlink()
        self.assertEqual([path.name for path in self.out.iterdir()], [])

    def test_BytesThatAreNoTextAreCounted(self):
        (self.folder / "other.bin").write_bytes(b"xyz")
        self.assertEqual(self.get(OTHER), f"{self.out / 'other.bin'}: 3 bytes\n")

    def test_AMissingFileIsNamedAndWhereToGetIt(self):
        self.assertEqual(self.get(FILE), f"get_toy: {self.folder / 'toy.txt'} (or .xz, .gz, .zip) is missing: put the toy data there, or "
                                         "name its folder")

    def test_AnotherFileIsRefusedBeforeAnyIsWritten(self):
        file = self.folder / "other.bin"
        (self.folder / "toy.txt").write_bytes(TEXT)
        for data, sentence in [(b"xy", "has 2 bytes in place of 3: it is another version of the data, or incomplete"),
                               (b"xyy", f"has the SHA-256 {hashlib.sha256(b'xyy').hexdigest()} in place of {OTHER.sha256}: "
                                        "it is another version of the data")]:
            with self.subTest(data):
                file.write_bytes(data)
                self.assertEqual(self.get(FILE, OTHER), f"get_toy: {file} {sentence}")
                self.assertFalse(self.out.exists())
        (self.folder / "toy.txt").write_bytes(b"a\nb\nc\n"[:len(TEXT)])
        self.assertEqual(self.get(FILE), f"get_toy: {self.folder / 'toy.txt'} has 3 lines in place of 2: it is another version of the data")

    def test_ADamagedArchiveIsRefused(self):
        for name, data in [("toy.txt.xz", lzma.compress(TEXT)[:-5]), ("toy.txt.gz", gzip.compress(TEXT)[:-3]), ("toy.txt.gz", b"no archive"),
                           ("toy.txt.zip", b"no archive"), ("toy.txt.zip", zipped(a=TEXT, b=TEXT))]:
            with self.subTest(name):
                (self.folder / name).write_bytes(data)
                self.assertRegex(self.get(FILE), f"^get_toy: .*{name} cannot be unpacked .*; download it again$")
                (self.folder / name).unlink()


class Pairs(unittest.TestCase):
    TABLE = "talk_name\ten\tgl\the\nt1\ta b c\td e\tx\nt1\t\tf\tx\nt2\tg\t__NULL__\tx\nt2\th\t_ _ NULL _ _\tx\nt3\ti j\tk NULL \tx\n"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.out = pathlib.Path(folder.name), pathlib.Path(folder.name) / "out"
        self.expected = dict(parallel.TABLE_1)
        self.addCleanup(lambda: parallel.TABLE_1.update(self.expected))
        parallel.TABLE_1["gl-en"] = parallel.Expected(0, 9e-6)  # nine words

    def get(self, main, *arguments, **options):
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                main(*arguments, **options)
        except SystemExit as end:
            return end.code
        return printed.getvalue()

    def tables(self, text=TABLE):
        for part in parallel.PARTS:
            (self.folder / f"all_talks_{part}.tsv").write_text(text, encoding="utf-8")

    def test_RowsThatLackASideAreLeftOut(self):
        self.tables()
        said = self.get(get_ted.main, "gl-en", self.folder, self.out)
        self.assertEqual((self.out / "train.gl").read_text(), "d e\nk NULL\n")
        self.assertEqual((self.out / "train.en").read_text(), "a b c\ni j\n")
        self.assertEqual(sorted(path.name for path in self.out.iterdir()),
                         sorted(f"{part}.{language}" for part in parallel.PARTS for language in ("gl", "en")))
        self.assertEqual(said.splitlines()[-1], "gl-en: 2 training pairs and 9 words (as in Table 1: 0k, 9e-06M)")

    def test_AnotherVersionIsRefusedUnlessAnyWillDo(self):
        self.tables()
        for expected in (parallel.Expected(1, 9e-6), parallel.Expected(0, 9.3e-6), parallel.Expected(0, 8.7e-6)):
            parallel.TABLE_1["gl-en"] = expected
            self.assertRegex(self.get(get_ted.main, "gl-en", self.folder, self.out),
                             "^get_ted: gl-en has 2 training pairs and 9 words, Table 1 of the paper .*: it is another version")
            self.assertFalse(self.out.exists())
        self.assertIn("(not as in Table 1", self.get(get_ted.main, "gl-en", self.folder, self.out, any_version=True))
        self.assertEqual((self.out / "train.gl").read_text(), "d e\nk NULL\n")

    def test_ADamagedTableIsRefused(self):
        self.tables(self.TABLE + "t4\ta\n")
        self.assertRegex(self.get(get_ted.main, "gl-en", self.folder, self.out), "train.tsv:7: 2 columns in place of 4: the file is damaged$")
        self.tables(self.TABLE.replace("gl", "xx"))
        self.assertRegex(self.get(get_ted.main, "gl-en", self.folder, self.out), "has no column gl; its columns are talk_name, en, xx, he$")
        self.assertFalse(self.out.exists())

    def test_FilesOfLinesMayHaveASelectionOfRows(self):
        for part in parallel.PARTS:
            (self.folder / f"{part}.en-gl.en.txt").write_text("a b c\nx\ni j\n", encoding="utf-8")
            (self.folder / f"{part}.en-gl.gl.txt.xz").write_bytes(lzma.compress("d\u0085 e\ny\nk NULL\n".encode()))
        (self.folder / "keep.train.en-gl.lines").write_text("1\n3\n")
        self.get(get_ted.main, "gl-en", self.folder, self.out)
        self.assertEqual((self.out / "train.gl").read_text(encoding="utf-8"), "d\u0085 e\nk NULL\n")
        self.assertEqual((self.out / "dev.en").read_text(), "a b c\nx\ni j\n")
        (self.folder / "keep.train.en-gl.lines").write_text("1\n4\n")
        self.assertRegex(self.get(get_ted.main, "gl-en", self.folder, self.out), "names a line beyond the 3 of the corpus")

    def test_OfVietnameseTheTestsOfTwoYearsAreDevAndTest(self):
        parallel.TABLE_1["en-vi"] = parallel.Expected(0, 5e-6)
        for name, pairs in {"train": [("a b", "c d e"), ("", "f"), ("g", " ")], "tst2012": [("h", "i")], "tst2013": [("", "k")]}.items():
            for side, language in enumerate(("en", "vi")):
                (self.folder / f"{name}.{language}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
        self.get(get_iwslt15.main, self.folder, self.out)
        self.assertEqual((self.out / "train.vi").read_text(), "c d e\n")
        self.assertEqual((self.out / "dev.en").read_text(), "h\n")
        self.assertEqual((self.out / "test.en").read_text(), "\n", "sentences of a test set stay")
        (self.folder / "tst2012.vi").write_text("i\nj\n")
        self.assertRegex(self.get(get_iwslt15.main, self.folder, self.out), r"the sides of dev of en-vi have 1 lines \(en\) and 2 lines \(vi\)")
        (self.folder / "tst2012.vi").unlink()
        self.assertRegex(self.get(get_iwslt15.main, self.folder, self.out), "tst2012.vi .* is missing: put IWSLT'15")


class Characters(unittest.TestCase):
    TEXT = bytes(b" abcdefghij"[i * i % 11] for i in range(239))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.out = pathlib.Path(folder.name), pathlib.Path(folder.name) / "out"

    def put(self, name, data):
        (self.folder / name).write_bytes(data)

    def get(self, tool=get_text8):
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                tool.main(self.folder, self.out)
        except SystemExit as end:
            return end.code
        return printed.getvalue()

    def sets(self):
        return [(self.out / f"{part}.txt").read_bytes() for part in ("train", "dev", "test")]

    def test_ABeginningIsCutInto90And5And5PerCent(self):
        self.put("text8.first239.xz", lzma.compress(self.TEXT))
        self.assertEqual(self.get(), "".join(f"{self.out}/{part}.txt: {size} bytes\n" for part, size in (("train", 217), ("dev", 11), ("test", 11))))
        self.assertEqual(self.sets(), [self.TEXT[:217], self.TEXT[217:228], self.TEXT[228:]])

    def test_TheWholeTextIsCutAsInThePapers(self):
        self.assertEqual(characters.sizes_of(100_000_000), {"train": 90_000_000, "dev": 5_000_000, "test": 5_000_000})
        text = b"<mediawiki>\n\xff" + self.TEXT
        whole = unittest.mock.patch.object(characters, "SIZES", {"train": 200, "dev": 30, "test": 22})
        known = unittest.mock.patch.object(get_enwik8, "SHA256", hashlib.sha256(text).hexdigest())
        self.put("enwik8.first10", b"not taken")
        self.put("enwik8.zip", zipped(enwik8=text))
        with whole, known:
            self.get(get_enwik8)
        self.assertEqual(self.sets(), [text[:200], text[200:230], text[230:]])
        with whole:
            self.assertRegex(self.get(get_enwik8), "enwik8.zip has the SHA-256 [0-9a-f]{64} in place of 2b49.*: it is another version of the data$")

    def test_AnotherTextIsRefusedBeforeAnyIsWritten(self):
        self.assertEqual(self.get(), f"get_text8: {self.folder / 'text8'} (or .xz, .gz, .zip) is missing: put text8 of "
                                     "http://mattmahoney.net/dc/text8.zip there, or name its folder")
        for name, data, sentence in [
                ("text8", self.TEXT, r"has 239 bytes in place of 100000000: it is incomplete; its first N bytes alone may be text8.firstN"),
                ("text8.first240", self.TEXT, "has 239 bytes in place of 240: it is incomplete"),
                ("text8.first19", self.TEXT[:19], "has 19 bytes, too few for three sets; put more of text8 there"),
                ("text8.first239", self.TEXT[:-1] + b"A", "is no beginning of text8; put text8 of http"),
                ("text8.first239", self.TEXT[:-1] + b"\n", "is no beginning of text8; put text8 of http")]:
            with self.subTest(name):
                self.put(name, data)
                self.assertRegex(self.get(), f"^get_text8: {self.folder / name} {sentence}")
                self.assertFalse(self.out.exists())
                (self.folder / name).unlink()
        self.put("enwik8.first239", self.TEXT)
        self.assertRegex(self.get(get_enwik8), "^get_enwik8: .*/enwik8.first239 is no beginning of enwik8; put enwik8 of http")
        for size in (100, 239):
            self.put(f"text8.first{size}.xz", lzma.compress(self.TEXT[:size]))
        self.assertEqual(self.get(), f"get_text8: {self.folder} has several beginnings of text8, text8.first100 and text8.first239: leave one there")


class Tatoeba(unittest.TestCase):
    def text(self, pairs):
        return "".join("\t".join(pair) + "\n" for pair in pairs)

    def parts(self, pairs, **sizes):
        return get_tatoeba.parts_of(self.text(pairs), sizes)

    def test_ASentenceIsThereOnceOnItsSideWhateverItsCaseAndPunctuation(self):
        run = ("We run.", "Wir rennen.")
        for other in [("I go.", "Hans eilt."), ("We go.", "Hans geht."), ("i go", "Hans eilt"), ("We go", "hans geht"), ("I go!", "Hans geht")]:
            for pairs in itertools.permutations([("I go.", "Hans geht."), other, run]):
                kept = list(get_tatoeba.pairs_of(self.text(pairs)))
                self.assertEqual(len(kept), 2)
                self.assertIn(run[::-1], kept)
                self.assertEqual(kept, list(get_tatoeba.pairs_of(self.text([("I go.", "Hans geht."), other, run]))), "the order of the file")

    def test_ASentenceWithoutAWordIsNone(self):
        self.assertEqual(list(get_tatoeba.pairs_of(self.text([("...", "Nichts."), ("Nothing.", "?!")]))), [])

    def test_OfSentencesThatDifferInPunctuationTheFirstByItsTextIsTaken(self):
        marks = "!(,.:;?"
        for name in ("Hans", "Anna", "Otto"):  # not the first by chance
            pairs = [(f"I go{mark}", f"{name} geht{mark}") for mark in marks]
            self.assertEqual(list(get_tatoeba.pairs_of(self.text(pairs))), [(f"{name} geht!", "I go!")])

    def test_TheLongestAreTaken(self):
        lines = [("a " * n + str(n), "b " * n + str(n)) for n in range(1, 30)]
        parts = self.parts(lines, test=3, dev=2, train=15)
        self.assertEqual({part: len(pairs) for part, pairs in parts.items()}, {"test": 3, "dev": 2, "train": 15})
        taken = [int(english.split()[-1]) for pairs in parts.values() for _, english in pairs]
        self.assertEqual(sorted(taken), list(range(10, 30)))
        for order in (sorted(taken), sorted(taken, reverse=True)):
            self.assertNotEqual(taken, order, "sets are drawn, not cut by length")

    def test_PunctuationIsApartAndOnlyALineFeedEndsALine(self):
        text = "Don't go, Tom!\tGeh nicht, \u201eTom\u201c!\nOnce\u2028more\tNoch\u0085einmal\n".encode()
        toy = raw_data.RawFile("deu.txt", hashlib.sha256(text).hexdigest(), len(text), 2)
        with tempfile.TemporaryDirectory() as name, unittest.mock.patch.object(get_tatoeba, "FILE", toy), \
             unittest.mock.patch.object(get_tatoeba, "SIZES", {"test": 1, "train": 1}), contextlib.redirect_stdout(io.StringIO()):
            folder = pathlib.Path(name)
            (folder / "deu.txt").write_bytes(text)
            get_tatoeba.main(folder, folder / "out")
            english = sorted((folder / f"out/{part}.en").read_text(encoding="utf-8") for part in ("test", "train"))
            german = sorted((folder / f"out/{part}.de").read_text(encoding="utf-8") for part in ("test", "train"))
        self.assertEqual(english, ["Don't go , Tom !\n", "Once more\n"])
        self.assertEqual(german, ["Geh nicht , \u201e Tom \u201c !\n", "Noch einmal\n"])


def words_and_marks(language):
    """A tokeniser that shows its language: „x“ apart for German, x's for English, and & escaped."""
    def tokenise(line):
        line = line.replace("&", "&amp;").replace("|", "&#124;")
        line = re.sub("([„“])", r" \1 ", line) if language == "de" else line.replace("'s", " &apos;s")
        return re.sub("([.,?!])", r" \1 ", line)

    return tokenise


class Iwslt14(unittest.TestCase):
    TALK = {
        "de": ["<url>http://www.ted.com/talks/a</url>", "<keywords>talks, Physik</keywords>", "<speaker>Anna Öl</speaker>",
               "<talkid>1</talkid>", "<title>Anna Öl: Über „Straßen“</title>", "<description>TED Talk Beschreibung: Berge</description>"],
        "en": ["<url>http://www.ted.com/talks/a</url>", "<keywords>talks, physics</keywords>", "<speaker>Anna Öl</speaker>",
               "<talkid>1</talkid>", "<title>Anna Öl: On Anna's roads</title>", "<description>TED Talk Subtitles: roads</description>"]}
    # Its pairs after cleaning: the speaker, the title and the description (7 and 7, 4 and 4 tokens) stay.
    KEPT_OF_TALK = [("<speaker>anna öl</speaker>", "<speaker>anna öl</speaker>"),
                    ("anna öl: über „ straßen “", "anna öl: on anna &apos;s roads"),
                    ("ted talk beschreibung: berge", "ted talk subtitles: roads")]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.out = pathlib.Path(folder.name) / "raw", pathlib.Path(folder.name) / "made" / "out"
        self.folder.mkdir()
        self.files = {f"train.tags.de-en.{language}": lines + [f"Satz {n} ." if language == "de" else f"Line {n} ." for n in range(43)]
                      for language, lines in self.TALK.items()}
        for test in ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"):
            for language in ("de", "en"):
                self.files[f"IWSLT14.{test}.de-en.{language}.xml"] = [
                    '<?xml version="1.0" encoding="UTF-8"?>', '<doc docid="1">', "<title>not taken</title>",
                    f'<seg id="1"> {test} „A“ {language}’s B. </seg>', '  <seg id="2">AT&amp;T</seg>  ', "</doc>"]
        fake = unittest.mock.patch.object(get_iwslt14, "moses_tokenisers", lambda: [words_and_marks("de"), words_and_marks("en")])
        fake.start()
        self.addCleanup(fake.stop)

    def put(self):
        for name, lines in self.files.items():
            (self.folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")

    def pack(self):
        with tarfile.open(self.folder / "de-en.tgz", "w:gz") as archive:
            for name, lines in self.files.items():
                data = "".join(line + "\n" for line in lines).encode()
                member = tarfile.TarInfo("de-en/" + name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))

    def get(self):
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                get_iwslt14.main(self.folder, self.out)
        except SystemExit as end:
            self.assertFalse(self.out.exists())
            return end.code
        return printed.getvalue()

    def made(self, part):
        sides = [(self.out / f"{part}.{language}").read_text(encoding="utf-8").split("\n") for language in ("de", "en")]
        self.assertEqual([side.pop() for side in sides], ["", ""])
        return list(zip(*sides, strict=True))

    def test_EveryTwentyThirdPairIsDev(self):
        self.put()
        said = self.get().splitlines()
        pairs = self.KEPT_OF_TALK + [(f"satz {n} .", f"line {n} .") for n in range(43)]
        self.assertEqual(self.made("dev"), [("satz 19 .", "line 19 ."), ("satz 42 .", "line 42 .")])
        self.assertEqual(self.made("train"), [pair for pair in pairs if pair not in self.made("dev")])
        self.assertEqual(len(self.made("train")), 44)
        self.assertEqual(said, [f"{self.out}/train.{{de,en}}: 44 pairs (not as published: 160,239)",
                                f"{self.out}/dev.{{de,en}}: 2 pairs (not as published: 7,283)",
                                f"{self.out}/test.{{de,en}}: 10 pairs (not as published: 6,750)"])
        self.assertEqual(len(list(self.out.iterdir())), 6)
        with unittest.mock.patch.object(get_iwslt14, "PUBLISHED", {"train": 44, "dev": 2, "test": 10}):
            self.assertEqual([line.split(": ")[1] for line in self.get().splitlines()],
                             ["44 pairs (as published)", "2 pairs (as published)", "10 pairs (as published)"])

    def test_TheNumbersAreThosePublished(self):
        self.assertEqual(get_iwslt14.PUBLISHED, {"train": 160239, "dev": 7283, "test": 6750})

    def test_TheTestSetsFollowEachOther(self):
        self.put()
        self.get()
        self.assertEqual(self.made("test"), [pair for test in ("ted . dev2010", "tedx . dev2012", "ted . tst2010", "ted . tst2011", "ted . tst2012")
                                             for pair in [(f"{test} „ a “ de's b .", f"{test} „a“ en &apos;s b ."), ("at&amp;amp;t", "at&amp;amp;t")]])

    def test_OnlySomeTagsAreLeftOutWithTheirLines(self):
        self.files["train.tags.de-en.de"] = ["a <url> b", "<talkid>2", "x <keywords>", "<translator>C</translator>", "<title>D</title> E<title>"]
        self.files["train.tags.de-en.en"] = ["<url>", "<talkid>", "<keywords>", "<translator>c</translator>", "<description>d e</description>"]
        self.put()
        self.get()
        self.assertEqual(self.made("train"), [("<translator>c</translator>", "<translator>c</translator>"), ("d e", "d e")])

    def test_PairsAreCleanedByTheirTokens(self):
        def words(count):
            return " ".join(["W"] * count)

        pairs = [(words(175), words(175)), (words(176), words(175)), (words(175), words(176)), (words(3), words(2)), (words(2), words(3)),
                 (words(4), words(2)), (words(2), words(4)), (words(150), words(100)), (words(151), words(100)), (words(100), words(151)),
                 ("", "w"), ("w", "  "), ("", ""), ("W.", "W"), ("W.", "W w"), (words(173) + ".,", words(120)), (words(174) + ".,", words(120)),
                 (" a\u00a0 b\t", "A  B")]
        for language, side in zip(("de", "en"), zip(*pairs)):
            self.files[f"train.tags.de-en.{language}"] = list(side)
        self.put()
        self.get()
        def lower(count):
            return words(count).lower()
        self.assertEqual(self.made("train"), [
            (lower(175), lower(175)), (lower(3), lower(2)), (lower(2), lower(3)), (lower(150), lower(100)), ("w .", "w w"),
            (lower(173) + " . ,", lower(120)), ("a b", "a b")])

    def test_LettersAreLoweredOneByOne(self):
        self.files["train.tags.de-en.de"], self.files["train.tags.de-en.en"] = ["ÄÖÜ ẞ ΟΔΟΣ"], ["A B C"]
        self.put()
        self.get()
        self.assertEqual(self.made("train"), [("äöü ß οδοσ", "a b c")])

    def test_AnArchiveAndPackedFilesAreAsGood(self):
        self.put()
        self.get()
        plain = {file.name: file.read_bytes() for file in self.out.iterdir()}
        self.assertEqual(len(plain), 6)

        def expect_the_same():
            for file in self.out.iterdir():
                file.unlink()
            self.get()
            self.assertEqual({file.name: file.read_bytes() for file in self.out.iterdir()}, plain)

        for file in self.folder.iterdir():
            (self.folder / (file.name + ".xz")).write_bytes(lzma.compress(file.read_bytes()))
            file.unlink()
        expect_the_same()
        for file in self.folder.iterdir():
            file.unlink()
        self.pack()
        expect_the_same()
        for language in ("de", "en"):
            self.files[f"IWSLT14.TED.dev2012.de-en.{language}.xml"] = self.files.pop(f"IWSLT14.TEDX.dev2012.de-en.{language}.xml")
        self.pack()
        expect_the_same()
        (self.folder / "de-en.tgz").unlink()
        self.put()
        expect_the_same()

    def test_AMissingFileIsNamed(self):
        for name in list(self.files):
            with self.subTest(name):
                self.put()
                (self.folder / name).unlink()
                self.assertEqual(self.get(), f"get_iwslt14: {self.folder / name} (or .xz, .gz, .zip) is missing: put de-en.tgz of IWSLT'14 (WIT3, "
                                             "2014-01, https://wit3.fbk.eu), or its files, there, or name its folder")
                lines = self.files.pop(name)
                self.pack()
                self.assertEqual(self.get(), f"get_iwslt14: {self.folder / 'de-en.tgz'} has no {name}: it is another corpus, or incomplete; put "
                                             "de-en.tgz of IWSLT'14 (WIT3, 2014-01, https://wit3.fbk.eu) there")
                (self.folder / "de-en.tgz").unlink()
                self.files[name] = lines

    def test_AMissingLineIsNamedWithItsTalk(self):
        second = {"de": ["<url>b</url>", "Eins", "Zwei", "Drei"], "en": ["<url>b</url>", "One", "Two", "Three"]}
        for language in ("de", "en"):
            self.files[f"train.tags.de-en.{language}"] += second[language]
        del self.files["train.tags.de-en.en"][-2]
        self.put()
        self.assertEqual(self.get(), "get_iwslt14: without the lines of <url>, <talkid>, <keywords> train.tags.de-en.de has 49 lines and "
                                     "train.tags.de-en.en has 48 lines (talk 2 3 and 2): line n of one must be the translation of line n of the "
                                     "other; download them again")
        for language in ("de", "en"):
            self.files[f"train.tags.de-en.{language}"] = ["A", "B"][:1 if language == "en" else 2]
        self.put()
        self.assertIn("has 2 lines and train.tags.de-en.en has 1 lines: line n", self.get())

    def test_AMissingSegmentIsNamed(self):
        name = "IWSLT14.TED.tst2011.de-en.{}.xml"
        for side, segment, sentence in [
                ("de", 4, f"segment 2 of {name.format('de')} is missing and of {name.format('en')} has the id 2"),
                ("en", 3, f"segment 1 of {name.format('de')} has the id 1 and of {name.format('en')} has the id 2")]:
            lines = list(self.files[name.format(side)])
            del self.files[name.format(side)][segment]
            self.put()
            self.assertEqual(self.get(), f"get_iwslt14: {sentence}: both must have the same segments; download them again")
            self.files[name.format(side)] = lines
        for side in ("de", "en"):
            self.files[name.format(side)] = ["<doc>", "</doc>"]
        self.put()
        self.assertEqual(self.get(), f"get_iwslt14: {name.format('de')} has no segment: it is damaged; download it again")

    def test_ADamagedFileIsRefused(self):
        self.put()
        (self.folder / "train.tags.de-en.de").write_bytes(b"caf\xe9\n")
        self.assertRegex(self.get(), f"^get_iwslt14: {self.folder}/train.tags.de-en.de is not UTF-8 .*; download it again$")
        self.pack()
        packed = self.folder / "de-en.tgz"
        packed.write_bytes(packed.read_bytes()[:-200])
        self.assertRegex(self.get(), f"^get_iwslt14: {packed} cannot be unpacked .*; download it again$")
        packed.write_bytes(b"no archive")
        self.assertRegex(self.get(), f"^get_iwslt14: {packed} cannot be unpacked .*; download it again$")

    def test_WithoutTheTokeniserASentenceSaysHowToGetIt(self):
        self.put()
        unittest.mock.patch.stopall()
        with unittest.mock.patch.dict(sys.modules, {"sacremoses": None}):
            self.assertRegex(self.get(), "^get_iwslt14: tokenising needs the package sacremoses: python3 -m pip install sacremoses")

    def test_EachSideIsTokenisedInItsLanguageWithEscapes(self):
        class MosesTokenizer:
            def __init__(self, language):
                self.language = language

            def tokenize(self, line, return_str, escape):
                return f"{self.language} {return_str} {escape} {line}"

        self.files["train.tags.de-en.de"], self.files["train.tags.de-en.en"] = ["A"], ["B"]
        self.put()
        unittest.mock.patch.stopall()
        with unittest.mock.patch.dict(sys.modules, {"sacremoses": unittest.mock.Mock(MosesTokenizer=MosesTokenizer)}):
            self.get()
        self.assertEqual(self.made("train"), [("de true true a", "en true true b")])

    def test_TheTokeniserIsThatOfMoses(self):
        try:
            import sacremoses  # noqa: F401
        except ImportError:
            self.skipTest("needs the package sacremoses")
        unittest.mock.patch.stopall()
        # What Moses' scripts of October 2018 makes of these lines, with -l de and -l en.
        self.files["train.tags.de-en.de"] = ["„Das war's“, sagte Dr. Müller z.B. am 3. Mai [1,5 % & mehr]... <b>"]
        self.files["train.tags.de-en.en"] = ["\"That's it,\" said Dr. Miller, e.g. on No. 3 [1,500 | 2] A&B's U.S. -- it was an A."]
        self.put()
        self.get()
        self.assertEqual(self.made("train"), [(
            "„ das war &apos; s “ , sagte dr. müller z.b. am 3. mai &#91; 1,5 % &amp; mehr &#93; ... &lt; b &gt;",
            "&quot; that &apos;s it , &quot; said dr. miller , e.g. on no. 3 &#91; 1,500 &#124; 2 &#93; a &amp; b &apos;s u.s. -- it was an a.")])


class RealData(unittest.TestCase):
    def test_GalicianIsAsInTable1(self):
        shared = pathlib.Path(os.environ.get("TEARLESS_SHARED", raw_data.SHARED.parent)) / "data/ted-qi2018"
        if not shared.exists():
            self.skipTest("needs data/ted-qi2018 in $TEARLESS_SHARED or ../shared")
        printed = io.StringIO()
        with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(printed):
            get_ted.main("gl-en", shared, out)
        self.assertEqual(printed.getvalue().splitlines()[-1],
                         "gl-en: 10,017 training pairs and 377,240 words (as in Table 1: 10k, 0.37M)")

    def test_TatoebaHasTheSizesOfTheExercise(self):
        shared = pathlib.Path(os.environ.get("TEARLESS_SHARED", raw_data.SHARED.parent)) / "data/tatoeba-manythings"
        if not shared.exists():
            self.skipTest("needs data/tatoeba-manythings in $TEARLESS_SHARED or ../shared")
        with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(io.StringIO()):
            get_tatoeba.main(shared, out)
            lines = {file.name: file.read_text(encoding="utf-8").split("\n")[:-1] for file in pathlib.Path(out).iterdir()}
        self.assertEqual({name: len(part) for name, part in lines.items()},
                         {f"{part}.{language}": size for part, size in (("train", 93597), ("dev", 500), ("test", 2999)) for language in ("de", "en")})
        for language in ("de", "en"):
            keys = [get_tatoeba.key(line) for part in parallel.PARTS for line in lines[f"{part}.{language}"]]
            self.assertEqual(len(set(keys)), 93597 + 500 + 2999)

    def get(self, tool, name):
        """What the script prints of the data in the shared folder."""
        shared = pathlib.Path(os.environ.get("TEARLESS_SHARED", raw_data.SHARED.parent)) / "data" / name
        if not shared.exists():
            self.skipTest(f"needs data/{name} in $TEARLESS_SHARED or ../shared")
        printed = io.StringIO()
        with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(printed):
            tool.main(shared, out)
            files = {raw.name: (pathlib.Path(out) / raw.name).stat().st_size for raw in tool.FILES}
            self.assertEqual(files, {raw.name: raw.bytes for raw in tool.FILES})
        return printed.getvalue().splitlines()

    def test_Text8sBeginningIsCut(self):
        shared = pathlib.Path(os.environ.get("TEARLESS_SHARED", raw_data.SHARED.parent)) / "data/charlm"
        if not shared.exists():
            self.skipTest("needs data/charlm in $TEARLESS_SHARED or ../shared")
        with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(io.StringIO()):
            get_text8.main(shared, out)
            sizes = {file.name: file.stat().st_size for file in pathlib.Path(out).iterdir()}
        self.assertEqual(sizes, {"train.txt": 6190043, "dev.txt": 343891, "test.txt": 343891})

    def test_RtLeavesOneSentenceOver(self):
        self.assertEqual(self.get(get_rt, "rt-polarity")[-1], "10662 sentences: 8608 train + 964 dev + 1089 test, 1 left over")

    def test_Sst5HasThreeSets(self):
        self.assertEqual([line.split(": ")[1] for line in self.get(get_sst5, "sst5")],
                         ["8544 sentences", "1101 sentences", "2210 sentences"])

    def test_MnistHasFourFiles(self):
        self.assertEqual([line.split(": ")[1] for line in self.get(get_mnist, "mnist")],
                         ["47040016 bytes", "60008 bytes", "7840016 bytes", "10008 bytes"])


if __name__ == "__main__":
    sys.exit(junit_report.run("GetData", *sys.argv[1:]))
