#!/usr/bin/env python3
"""configure_test.py [REPORT]: tests of tools/configure.sh and of the Makefile that calls it. REPORT: results as JUnit XML."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import junit_report

ROOT = pathlib.Path(__file__).resolve().parent.parent
# It says which folder it was configured for, how often, and with which option.
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(example NONE)
set(OPTION "" CACHE STRING "")
file(WRITE "${PROJECT_BINARY_DIR}/option" "${OPTION}")
add_custom_target(programs COMMAND "${CMAKE_COMMAND}" -E echo "programs of ${PROJECT_SOURCE_DIR} in ${PROJECT_BINARY_DIR}" VERBATIM)
"""


class ACheckout(unittest.TestCase):
    """Makefile, presets and configure.sh of this repository, and a project that takes no time."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name).resolve()
        self.checkout = self.folder / "a checkout"
        (self.checkout / "tools").mkdir(parents=True)
        for name in ["Makefile", "CMakePresets.json", "tools/configure.sh"]:
            shutil.copy(ROOT / name, self.checkout / name)
        (self.checkout / "CMakeLists.txt").write_text(PROJECT)
        setup = self.checkout / "tools/setup.sh"
        setup.write_text("#!/bin/sh\n")
        setup.chmod(0o755)

    def run_in(self, checkout, *command):
        done = subprocess.run(command, cwd=checkout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def assertBuilds(self, checkout):
        self.assertIn(f"programs of {checkout} in {checkout}/build\n", self.run_in(checkout, "make", "build"))

    def configured_with(self, checkout, *arguments):
        self.run_in(checkout, "tools/configure.sh", "--preset", "release", *arguments)
        return (checkout / "build/option").read_text()

    def test_ThatIsCopiedWithItsBuildFoldersIsBuiltWhereItIs(self):
        self.assertBuilds(self.checkout)
        self.run_in(self.checkout, "tools/configure.sh", "--preset", "harness")
        copy = self.folder / "copy"
        shutil.copytree(self.checkout, copy, symlinks=True)
        self.assertBuilds(copy)
        self.run_in(copy, "tools/configure.sh", "--preset", "harness")
        for cache in copy.glob("build*/CMakeCache.txt"):
            self.assertNotIn(str(self.checkout), cache.read_text(), cache)
        self.assertBuilds(self.checkout)

    def test_ThatIsMovedIsBuiltWhereItIs(self):
        self.assertBuilds(self.checkout)
        moved = self.checkout.rename(self.folder / "moved")
        self.assertBuilds(moved)

    def test_KeepsItsCacheWhereItIs(self):
        self.assertEqual(self.configured_with(self.checkout, "-DOPTION=5"), "5")
        self.assertEqual(self.configured_with(self.checkout), "5")
        link = self.folder / "link"
        link.symlink_to(self.checkout)
        self.assertEqual(self.configured_with(link), "5", "the same folder by another name")
        copy = self.folder / "copy"
        shutil.copytree(self.checkout, copy)
        self.assertEqual(self.configured_with(copy), "", "what the copy was not configured with may name the other folder")
        self.assertEqual(self.configured_with(self.checkout), "5")


if __name__ == "__main__":
    sys.exit(junit_report.run("Configure", *sys.argv[1:]))
