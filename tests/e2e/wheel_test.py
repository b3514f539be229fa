#!/usr/bin/env python3
"""wheel_test.py [REPORT]: the wheels that tools/wheel.sh and tools/wheel_engine.sh pack of the programs in $TEARLESS_BIN (default: build/bin),
installed by pip into a folder. REPORT: results as JUnit XML."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tools"))
import junit_report  # noqa: E402

BIN = pathlib.Path(os.environ.get("TEARLESS_BIN", ROOT / "build/bin"))
GRID = """[axis]
"model.placement" = ["post"]
[set]
"data.name" = "small"
"data.train" = "train"
"data.dev" = "dev"
"data.test" = "dev"
"data.source" = "de"
"data.target" = "en"
"text.kind" = "sentencepiece"
"text.pieces" = 200
"model.encoder_layers" = 1
"model.decoder_layers" = 1
"model.d_model" = 32
"model.d_ff" = 64
"model.heads" = 2
"train.epoch_updates" = 5
"train.max_epochs" = 2
"train.batch.tokens" = 300
"decode.beam" = 1
"decode.max_extra" = 8
"""


def run(*command, **environment):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, **environment})


def made(*command, **environment):
    done = run(*command, **environment)
    if done.returncode != 0:
        raise AssertionError(f"{command} failed with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


class AnInstalledEngine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name).resolve()
        cls.prefix = cls.folder / "an environment"
        for script in ["wheel.sh", "wheel_engine.sh"]:
            made(ROOT / "tools" / script, "--built", "--level", "1", "--out", cls.folder / "dist", TEARLESS_BIN=str(BIN))
        made("pip3", "install", "--quiet", "--no-index", "--no-deps", "--prefix", cls.prefix, *cls.folder.glob("dist/*.whl"))
        cls.engine = next(cls.prefix.glob("**/bin/tearless-engine"))
        cls.home = next(cls.prefix.glob("**/lib/tearless-engine"))
        for name, lines in [("train", 200), ("dev", 5)]:
            for language in ["de", "en"]:
                text = (ROOT / f"grids/demo/{name}.{language}").read_text().splitlines(keepends=True)
                (cls.folder / f"{name}.{language}").write_text("".join(text[:lines]))
        (cls.folder / "grid.toml").write_text(GRID)

    def tearless(self, *words, engine=None):
        """In a workspace of its own, which the last word names."""
        *words, workspace = words
        return made(BIN / "tearless", *words, "--workspace", self.folder / workspace, TEARLESS_ENGINE=str(engine or self.engine),
                    TEARLESS_CACHE=str(self.folder / "cache"), TEARLESS_IDLE_SECONDS="0")

    def results(self, workspace):
        (found,) = (self.folder / workspace / "runs").iterdir()
        return {file: (found / file).read_bytes() for file in ["DONE", "metrics.jsonl", "scores.json", "model.safetensors"]}

    def copy_in(self, workspace):
        return next((self.folder / workspace / "programs").glob("*/tearless-engine"))

    def refusal(self, engine, **environment):
        """The one line with which it ends at once."""
        done = run(engine, "probe", **environment)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (74, "", 1), done)
        return done.stderr.removeprefix("tearless-engine: ").removesuffix("\n")

    def test_NamesItsWheelAndNeedsNothingOfTheBuild(self):
        self.assertRegex(made(self.engine, "--version"), r", wheel manylinux_2_\d+\)\n$")
        needed = made("ldd", self.home / "tearless-engine.elf", LD_LIBRARY_PATH=str(self.home))
        self.assertIn(f"{self.home}/libtorch_cpu.so", needed)
        self.assertNotRegex(needed, r"not found|\.cache")
        link = self.folder / "link"
        link.symlink_to(self.engine)
        self.assertEqual(made(link, "--version"), made(self.engine, "--version"))

    def test_IsTheOneThatTheHarnessBesideItTrainsAPackagedGridWith(self):
        work = self.folder / "an empty folder"
        work.mkdir()
        tearless = self.engine.with_name("tearless")
        without = {name: value for name, value in os.environ.items() if not name.startswith("TEARLESS_")}

        def typed(*words):
            done = subprocess.run([tearless, *words], cwd=work, env={**without, "TEARLESS_IDLE_SECONDS": "0"}, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done)
            return done.stdout + done.stderr

        said = typed("run", "demo", "--only", "seed=1", "--only", "model.placement=pre", "--only", "warm-up=none", "--set", "train.max_epochs=1")
        self.assertRegex(said, r"demo is the packaged grid .*/share/tearless/grids/demo\.toml")
        self.assertIn("2 runs: 2 done", said)
        self.assertRegex(typed("table"), r"PreNorm .* \d+\.\d+ \(1/2\)")
        typed("copy", "results.tar.gz")
        self.assertRegex(typed("table", "--workspace", "results.tar.gz"), r"PreNorm .* \d+\.\d+ \(1/2\)")
        package = subprocess.run([sys.executable, "-c", "import tearless; print(tearless.__version__, tearless.__file__)"], capture_output=True, text=True,
                                 env={**without, "PYTHONPATH": str(next(self.prefix.glob("**/tearless/__init__.py")).parent.parent)})
        self.assertRegex(package.stdout, r"^\d+\.\d+\.\d+ .*/tearless/__init__\.py\n$")

    def test_TrainsFromAWorkspaceByAWorkerAndInACopyOfThatAsTheBuiltOneDoes(self):
        self.tearless("run", self.folder / "grid.toml", "built", engine=BIN / "tearless-engine")
        self.tearless("run", self.folder / "grid.toml", "installed")
        self.tearless("submit", self.folder / "grid.toml", "--executor", "workers", "worked")
        for _ in range(60):  # a worker may leave before the service has granted anything
            self.tearless("worker", "--jobs", "1", "--idle", "1", "worked")
            if any((self.folder / "worked" / "runs").glob("*/DONE")):
                break
        self.tearless("wait", "all", "worked")
        self.assertEqual(self.results("installed"), self.results("built"))
        self.assertEqual(self.results("worked"), self.results("built"))
        self.tearless("copy", self.folder / "copied", "worked")
        shutil.rmtree(self.folder / "worked")
        self.assertIn("1 equal, 0 different", self.tearless("verify-resume", "1", "copied"))
        files = list(self.copy_in("copied").parent.iterdir())
        self.assertIn("tearless-engine.elf", [file.name for file in files])
        self.assertLess(sum(file.stat().st_size for file in files), 30e6)

    def test_SaysWhatACopyOfItLacks(self):
        self.tearless("run", self.folder / "grid.toml", "lacking")
        copy = self.copy_in("lacking")
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "getconf").write_text("#!/bin/sh\necho glibc 2.31\n")
        (tools / "getconf").chmod(0o755)
        self.assertRegex(self.refusal(copy, PATH=f"{tools}:{os.environ['PATH']}"), r"^it needs glibc 2\.\d+ or later, and \S+ has 2\.31: ")
        libraries = self.home / "tearless-engine.libraries"
        text = libraries.read_text()
        try:
            libraries.write_text("0.2.0 manylinux_2_34_x86_64 of_another_build\n")
            self.assertEqual(self.refusal(copy), f"the libraries in {self.home} are of another build, 0.2.0: "
                                                 f"pip install tearless-engine=={text.split()[0]} there, or submit the grid again")
            libraries.unlink()
            self.assertRegex(self.refusal(copy), f"^its libraries are in {self.home}, which \\S+ does not have: pip install tearless-engine==")
        finally:
            libraries.write_text(text)
        self.assertIn("LibTorch", made(copy, "probe"))

    def test_TakesBothHalvesOfLibTorchFromOneFolder(self):
        if not (self.home / "libtearless_cuda.so").exists():
            self.skipTest("needs nvcc 13 where it is built")
        nothing = f"needs torch 2.11.0 for CUDA 13.0, and there is none in {self.prefix}: pip install torch==2.11.0"
        self.assertIn(nothing, made(self.engine, "probe"))
        torch = self.home.parent / "python3.11/site-packages/torch"
        (torch / "lib").mkdir(parents=True)
        for library in self.home.glob("lib*.so*"):
            os.link(library, torch / "lib" / library.name)
        (torch / "lib/libtorch_cuda.so").write_text("a stand-in")
        for version, cuda, sentence in [("2.10.0+cu130", "'13.0'", f"{torch} is 2.10.0 for CUDA 13.0: pip"),
                                        ("2.11.0+cpu", "None", "2.11.0 without CUDA")]:
            (torch / "version.py").write_text(f"__version__ = '{version}'\ncuda: Optional[str] = {cuda}\n")
            self.assertIn(sentence, made(self.engine, "probe"))
        (torch / "version.py").write_text("__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n")
        for environment in [{}, {"TEARLESS_TORCH": str(torch)}]:
            probe = run(self.engine, "probe", LD_DEBUG="files", **environment)
            self.assertIn(f"{torch}/lib/libtorch_cuda.so", probe.stdout, "of it was opened")
            self.assertIn("pip install torch", probe.stdout)
            loaded = [os.path.normpath(file) for file in re.findall(r"calling init: (.*/libtorch_cpu\.so)", probe.stderr)]
            self.assertEqual(loaded[-1], f"{torch}/lib/libtorch_cpu.so")
            self.assertEqual(set(loaded), {f"{self.home}/libtorch_cpu.so", f"{torch}/lib/libtorch_cpu.so"})


if __name__ == "__main__":
    sys.exit(junit_report.run("WheelEngine", *sys.argv[1:]))
