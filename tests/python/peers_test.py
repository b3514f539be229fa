#!/usr/bin/env python3
"""What tools/gpu_peers.sh runs on a GPU, without one: peers that are slow or fail, what is kept of a run that was stopped, CTranslate2's library."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import junit_report

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BENCH = SOURCE / "tools" / "bench"
BIN = pathlib.Path(os.environ["TEARLESS_BIN"])

# Stands for the engine and, as a Python, for peers: {form} sleeps, fails or answers.
FAKE = """#!{python}
import json, sys, time
if "-c" in sys.argv or "--version" in sys.argv:
    print("2.11.0")
    sys.exit()
form = sys.argv[sys.argv.index("--form") + 1] if "--form" in sys.argv else "engine"
open({started!r}, "a").write(form + chr(10))
if form == {slow!r}:
    time.sleep(60)
if form == {failing!r}:
    sys.exit("it fails")
print(json.dumps({{"ready": True, "parameters": 1, "matmul": "none"}}), flush=True)
turns = 0
for line in sys.stdin:
    request = json.loads(line)
    if "peak" in request:
        print(json.dumps({{"peak_operations_per_second": 0}}), flush=True)
        continue
    turns += 1
    if form == {stopping!r} and turns > 4:
        time.sleep(60)
    print(json.dumps({{"seconds": [0.001 if form == "engine" else 0.003] * request["updates"]}}), flush=True)
"""


class Compare(unittest.TestCase):
    """tools/bench/compare.py --limit with peers that only answer."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tearless"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def fake(self, slow="", failing="", stopping=""):
        self.program, self.started = self.folder / "fake", self.folder / "started"
        self.program.write_text(FAKE.format(python=sys.executable, started=str(self.started), slow=slow, failing=failing, stopping=stopping))
        self.program.chmod(0o755)
        self.started.write_text("")

    def compare(self, *options):
        """(the process, the document it left, its page)"""
        files = [self.folder / "out.json", self.folder / "out.md"]
        ended = subprocess.run([sys.executable, BENCH / "compare.py", "--engine", self.program, "--sizes", "d32", "--lists", "equal", "--threads", "1",
                                "--seconds", "0.01", "--json", files[0], "--markdown", files[1], *options], capture_output=True, text=True, timeout=60,
                               env=os.environ | {"TEARLESS_BENCH_PYTHON": str(self.program)})
        return ended, json.loads(files[0].read_text()), files[1].read_text()

    def test_a_slow_peer_costs_no_other(self):
        self.fake(slow="padded")
        ended, document, page = self.compare("--limit", "5")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        slow, measured = document["results"]
        self.assertEqual(slow["given_up"], {"padded": "no turn within 5 s"})
        self.assertAlmostEqual(measured["ratios"]["packed"], 3)
        self.assertIn("padded, d32 `equal`: no turn within 5 s.", page)
        self.assertIn("given up", page)

    def test_a_peer_that_fails_costs_no_other(self):
        self.fake(failing="padded")
        ended, document, page = self.compare("--limit", "30")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("peer (padded) gave no answer (exit code 1): it fails.", page)
        self.assertAlmostEqual(document["results"][1]["ratios"]["packed"], 3)

    def test_turns_before_the_limit_count(self):
        self.fake(stopping="padded")
        ended, document, _ = self.compare("--limit", "5", "--peers", "padded")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertAlmostEqual(document["results"][0]["ratios"]["padded"], 3)
        self.assertEqual(document["results"][0]["updates"], 3)

    def test_what_was_measured_is_kept(self):
        self.fake(slow="padded")
        self.compare("--limit", "1", "--peers", "padded")
        _, _, page = self.compare("--limit", "30", "--peers", "packed", "--resume")
        self.assertIn("no turn within 1 s", page)
        self.fake()
        ended, document, page = self.compare("--limit", "30", "--resume")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("kept", ended.stdout)
        self.assertNotIn("packed", self.started.read_text())
        self.assertEqual({name for result in document["results"] for name in result["ratios"]}, {"padded", "packed", "best"})
        self.assertNotIn("given up", page)

    def test_without_a_limit_a_failure_ends_it(self):
        self.fake(failing="packed")
        ended = subprocess.run([sys.executable, BENCH / "compare.py", "--engine", self.program, "--sizes", "d32", "--lists", "equal", "--threads", "1"],
                               capture_output=True, text=True, timeout=60, env=os.environ | {"TEARLESS_BENCH_PYTHON": str(self.program)})
        self.assertEqual((ended.returncode, ended.stderr), (1, "compare: peer (packed) gave no answer (exit code 1): it fails\n"))


def missing(python, *packages):
    """Why a Python cannot import them, or ""."""
    ended = subprocess.run([python, "-P", "-c", "import " + ", ".join(packages)], capture_output=True, text=True)
    return f"{python} has not {' and '.join(packages)}" if ended.returncode else ""


CTRANSLATE2_PYTHON = os.environ.get("TEARLESS_CTRANSLATE2_PYTHON", sys.executable)
NO_CTRANSLATE2 = missing(CTRANSLATE2_PYTHON, "ctranslate2", "numpy")
if NO_CTRANSLATE2:
    NO_CTRANSLATE2 += ": name one that has with TEARLESS_CTRANSLATE2_PYTHON"


class CTranslate2(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tearless"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def test_library_of_cuda_13_gets_the_name_of_12(self):
        (self.folder / "libcublas.so.13").write_text("")
        sys.path.insert(0, str(BENCH))
        self.addCleanup(sys.path.remove, str(BENCH))
        spec = importlib.util.spec_from_file_location("bench_ctranslate2", BENCH / "ctranslate2.py")
        bench = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = bench  # its dataclass looks there
        spec.loader.exec_module(bench)
        self.addCleanup(os.environ.__setitem__, "LD_LIBRARY_PATH", os.environ.get("LD_LIBRARY_PATH", ""))
        os.environ["LD_LIBRARY_PATH"] = f"/nowhere:{self.folder}"
        environment, said = bench.cublas_as_12(self.folder / "work")
        self.assertEqual(environment["LD_LIBRARY_PATH"], f"{self.folder}/work/cublas:/nowhere:{self.folder}")
        self.assertEqual((self.folder / "work/cublas/libcublas.so.12").resolve(), (self.folder / "libcublas.so.13").resolve())
        self.assertIn("libcublas.so.12", said)

    @unittest.skipIf(NO_CTRANSLATE2, NO_CTRANSLATE2)
    def test_two_types_on_the_cpu_and_resumed(self):
        demo, sets = SOURCE / "grids/demo", {"train": "train", "val": "dev", "test_2016_flickr": "test"}
        for name, part in sets.items():
            for language in ("de", "en"):
                lines = (demo / f"{part}.{language}").read_text().splitlines(keepends=True)
                (self.folder / f"{name}.lc.norm.tok.{language}").write_text("".join(lines[:2000 if part == "train" else 50]))
        command = [sys.executable, BENCH / "ctranslate2.py", self.folder, "--folder", self.folder / "work", "--engine", BIN / "tearless-engine",
                   "--widths", "8", "--epochs", "1", "--turns", "1", "--threads", "1", "--repeat", "2", "--searches", "greedy", "--resume",
                   "--json", self.folder / "out.json"]
        for types in ("float32", "float32,int8_float32"):
            ended = subprocess.run([*command, "--types", types], capture_output=True, text=True, timeout=110,
                                   env=os.environ | {"TEARLESS_CTRANSLATE2_PYTHON": CTRANSLATE2_PYTHON})
            self.assertEqual(ended.returncode, 0, ended.stderr)
        results = json.loads((self.folder / "out.json").read_text())["results"]
        self.assertEqual([result["type"] for result in results], ["float32", "int8_float32"])
        self.assertEqual((results[0]["equal"], results[0]["bleu"]), (100, 100))
        self.assertEqual(ended.stdout.count("d = 8, greedy"), 1)


class Page(unittest.TestCase):
    def test_of_peers_alone(self):
        with tempfile.TemporaryDirectory(prefix="tearless") as folder:
            results = pathlib.Path(folder)
            (results / "bench_ctranslate2.md").write_text("# Decoding against CTranslate2, cuda\n")
            subprocess.run([sys.executable, SOURCE / "tools/gpu_page.py", results, "some GPU"], check=True)
            self.assertEqual((results / "gpu.md").read_text(), "# On some GPU\n\n# Decoding against CTranslate2, cuda\n\n")


if __name__ == "__main__":
    sys.exit(junit_report.run("Peers", *sys.argv[1:]))
