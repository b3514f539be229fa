#!/usr/bin/env python3
"""get_data_test.py [REPORT]: tests of tools/get_*.py, which unpack the data sets. REPORT: results as JUnit XML."""

import contextlib
import gzip
import hashlib
import io
import lzma
import os
import pathlib
import sys
import tempfile
import unittest

import get_mnist
import get_rt
import get_sst5
import junit_report
import raw_data

TEXT = b"a \xe9\nb\n"
FILE = raw_data.RawFile("toy.txt", hashlib.sha256(TEXT).hexdigest(), len(TEXT), 2)
OTHER = raw_data.RawFile("other.bin", hashlib.sha256(b"xyz").hexdigest(), 3)


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
        for name, data in [("toy.txt", TEXT), ("toy.txt.xz", lzma.compress(TEXT)), ("toy.txt.gz", gzip.compress(TEXT))]:
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
        self.assertEqual(self.get(FILE), f"get_toy: {self.folder / 'toy.txt'} (or .xz, .gz) is missing: put the toy data there, or name "
                                         "its folder")

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
        for name, data in [("toy.txt.xz", lzma.compress(TEXT)[:-5]), ("toy.txt.gz", gzip.compress(TEXT)[:-3]), ("toy.txt.gz", b"no archive")]:
            with self.subTest(name):
                (self.folder / name).write_bytes(data)
                self.assertRegex(self.get(FILE), f"^get_toy: .*{name} cannot be unpacked .*; download it again$")
                (self.folder / name).unlink()


class RealData(unittest.TestCase):
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
