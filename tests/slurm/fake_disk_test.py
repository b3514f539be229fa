#!/usr/bin/env python3
"""fake_disk_test.py [REPORT]: tests of the preloaded library that shows a shared folder late, tests/support/fake_disk.cc.

The library is in $TEARLESS_BIN. REPORT: results as JUnit XML.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import junit_report  # noqa: E402

LIBRARY = pathlib.Path(os.environ.get("TEARLESS_BIN", "build/bin")) / "libfake-disk.so"
DELAY = 1


class Host:
    """A Python that runs what it is sent, and answers with what that returns."""

    def __init__(self, scratch, name):
        (scratch / name).mkdir()
        environment = os.environ | {"LD_PRELOAD": str(LIBRARY.resolve()), "TEARLESS_FAKE_DISK": str(scratch / "shared"),
                                    "TEARLESS_FAKE_DISK_CACHE": str(scratch / name), "TEARLESS_FAKE_DISK_DELAY": str(DELAY)}
        loop = ("import os, sys\nfor line in sys.stdin:\n try: print(eval(line), flush=True)\n"
                " except OSError as error: print(error.strerror, flush=True)")
        self.process = subprocess.Popen([sys.executable, "-c", loop], cwd=scratch / "shared", env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, expression):
        print(expression, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().rstrip("\n")

    def close(self):
        self.process.communicate()


class AFakeDisk(unittest.TestCase):
    def setUp(self):
        if not LIBRARY.exists():
            self.skipTest("needs libfake-disk.so in $TEARLESS_BIN")
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name).resolve()
        self.shared = folder / "shared"
        self.shared.mkdir()
        self.one, self.other = Host(folder, "one"), Host(folder, "other")
        self.addCleanup(self.one.close)
        self.addCleanup(self.other.close)

    def wait_for(self, expression, answer):
        """Returns the other answers that came before."""
        start, before = time.monotonic(), []
        while (seen := self.other.ask(expression)) != answer:
            self.assertLess(time.monotonic() - start, 4 * DELAY + 5, seen)
            if seen not in before:
                before.append(seen)
            time.sleep(0.02)
        return before

    def test_ShowsFilesOfOthersLateAndFirstInPart(self):
        late = short = index = 0
        # Delays are drawn, and a busy machine may look again when all is there: so many files as it takes.
        while late == 0 or short == 0:
            index += 1
            self.assertLess(index, 60)
            self.assertEqual(self.one.ask(f"open('file{index}', 'w').write('0123456789')"), "10")
            self.assertEqual(self.one.ask(f"open('file{index}').read()"), "0123456789", "its own are true at once")
            before = self.wait_for(f"open('file{index}').read()", "0123456789")
            late += "No such file or directory" in before
            short += "01234" in before
        self.assertEqual(self.other.ask("len(os.listdir('.'))"), str(index))

    def test_ShowsNamesInAnotherOrderAndFoldersFirst(self):
        self.one.ask("os.mkdir('sub')")
        for index in range(5):
            self.one.ask(f"open('sub/{index}', 'w').close()")
        self.one.ask("os.rename('sub', 'renamed')")
        self.assertEqual(self.one.ask("os.path.exists('renamed/0'), os.path.exists('sub/0')"), "(True, False)")
        self.assertEqual(self.other.ask("os.path.exists('renamed/0')"), "False")
        self.wait_for("os.path.isdir('renamed')", "True")
        self.assertIn(self.other.ask("sorted(os.listdir('renamed')) < ['0', '1', '2', '3', '4']"), ("True", "False"), "a list, no error")
        self.wait_for("sorted(os.listdir('renamed'))", "['0', '1', '2', '3', '4']")

    def test_KeepsWhatIsReplacedForAWhile(self):
        (self.shared / "file").write_text("old")
        os.utime(self.shared / "file")
        self.wait_for("open('file').read()", "old")
        self.one.ask("open('new', 'w').write('newer')")
        self.one.ask("os.rename('new', 'file')")
        self.assertEqual(self.one.ask("open('file').read(), os.path.getsize('file')"), "('newer', 5)")
        self.wait_for("os.stat('file').st_size", "5")
        self.wait_for("open('file').read()", "newer")

    def test_LetsOneHostLink(self):
        self.one.ask("open('mine', 'w').write('one')")
        self.other.ask("open('yours', 'w').write('other')")
        self.assertEqual(self.one.ask("os.link('mine', 'claim')"), "None")
        self.assertEqual(self.other.ask("os.link('yours', 'claim')"), "File exists", "though it does not see it yet")
        self.assertEqual(self.one.ask("os.stat('claim').st_nlink, os.stat('mine').st_nlink"), "(2, 2)")
        self.assertEqual(self.other.ask("os.open('claim', os.O_CREAT | os.O_EXCL)"), "File exists")
        self.wait_for("open('claim').read()", "one")


if __name__ == "__main__":
    sys.exit(junit_report.run("FakeDisk", *sys.argv[1:]))
