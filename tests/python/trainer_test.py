#!/usr/bin/env python3
"""tearless.Run and tearless.wandb: scripts by themselves, and as programs of grids that are killed on the way."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

import junit_report

SOURCE = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = SOURCE / "tests" / "python" / "examples"
TEARLESS = pathlib.Path(os.environ["TEARLESS_BIN"]) / "tearless"
STOPPED, REFUSED, DIVERGED, OUT_OF_MEMORY, DATA, MACHINE = 75, 2, 3, 4, 66, 74

sys.path.insert(0, str(SOURCE / "python"))
from tearless import contract  # noqa: E402


class Folder(unittest.TestCase):
    """A test in a folder of its own."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tearless"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(
            filter(None, [str(SOURCE / "python"), os.environ.get("PYTHONPATH")]))}

    def write(self, name, text):
        file = self.folder / name
        file.write_text(textwrap.dedent(text))
        file.chmod(0o755)
        return file

    def example(self, name):
        return self.write(name, (EXAMPLES / name).read_text())

    def python(self, *arguments, questions=None):
        lines = None if questions is None else "".join(json.dumps(question) + "\n" for question in questions)
        return subprocess.run([sys.executable, *arguments], cwd=self.folder, env=self.environment, input=lines,
                              capture_output=True, text=True, timeout=120)

    def script(self, text):
        """What a script that tearless has not started leaves and says."""
        self.write("train.py", text)
        return self.python("train.py")

    def check(self, **settings):
        """The answer about settings, whose dots are __."""
        asked = {key.replace("__", "."): value for key, value in settings.items()}
        ended = self.python("train.py", "check", "--json", questions=[{"settings": asked, "folder": str(self.folder)}])
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return json.loads(ended.stdout)

    def tearless(self, *arguments, code=0):
        ended = subprocess.run([TEARLESS, *arguments], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                               timeout=300)
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return ended.stdout + ended.stderr

    def read(self, name, run="runs/local"):
        return (self.folder / run / name).read_text()


class AScriptByItself(Folder):
    def test_logs_to_runs_local(self):
        self.example("plain.py")
        self.assertEqual(self.python("plain.py").returncode, 0)
        self.assertEqual(list(json.loads(self.read("scores.json"))), ["test.accuracy"])
        lines = self.read("metrics.jsonl").splitlines()
        self.assertEqual([json.loads(line)["step"] for line in lines], list(range(1, 61)))
        self.assertEqual(sorted(os.listdir(self.folder / "runs/local/checkpoints")), ["step-40", "step-60"])

    def test_begins_again_after_its_end_and_goes_on_after_a_stop(self):
        text = """
            import tearless
            run = tearless.Run({"updates": 4})
            print("from", run.step if run.resume() else "the start")
            for step in range(run.step + 1, 5):
                run.log(step, loss=1 / step)
                run.checkpoint(b"state")
                if step == 2 and not (run.folder / "failed").exists():
                    (run.folder / "failed").touch()
                    raise ValueError("words")
            run.done(score=1)
        """
        failed = self.script(text)
        self.assertEqual((failed.returncode, failed.stderr.splitlines()[-1]), (1, "ValueError: words"))
        self.assertEqual(self.script(text).stdout, "from 2\n")
        self.assertEqual(self.script(text).stdout, "from the start\n")
        self.assertEqual(self.script(text.replace("1 / step", "2 / step")).stdout, "from the start\n")

    def test_goes_on_from_the_checkpoint_before_one_that_was_cut(self):
        text = """
            import sys, tearless
            run = tearless.Run()
            saved = run.resume()
            print(saved.read_text() if saved else "")
            for step in range(run.step + 1, 4):
                run.log(step, loss=float(step))
                run.checkpoint(lambda file: file.write(b"after %d" % step))
            sys.exit(1)
        """
        self.script(text)
        whole = self.read("metrics.jsonl")
        (self.folder / "runs/local/checkpoints/step-3/state.bin").write_text("aft")
        (self.folder / "runs/local/checkpoints/tmp-1").mkdir()
        ended = self.script(text)
        self.assertEqual(ended.stdout, "after 2\n")
        self.assertIn("checkpoint 3 is removed: state.bin is not what was written", ended.stderr)
        self.assertEqual(self.read("metrics.jsonl"), whole)
        self.assertEqual(sorted(os.listdir(self.folder / "runs/local/checkpoints")), ["step-2", "step-3"])
        (self.folder / "runs/local/metrics.jsonl").write_text(whole.replace("1.0", "9.0"))
        self.assertIn("checkpoint 3 is removed: the beginning of metrics.jsonl is not what was written", self.script(text).stderr)
        (self.folder / "runs/local/metrics.jsonl").write_text("{}")
        self.assertIn("checkpoint 3 is removed: metrics.jsonl is shorter than it was", self.script(text).stderr)
        self.assertEqual(self.read("metrics.jsonl"), whole)

    def test_begins_again_if_it_does_not_resume(self):
        text = """
            import sys, tearless
            run = tearless.Run()
            run.log(1, loss=1)
            run.checkpoint(b"")
            sys.exit(1)
        """
        self.script(text)
        self.assertIn("checkpoint 1 is removed: the program does not resume()", self.script(text).stderr)
        self.assertEqual(len(self.read("metrics.jsonl").splitlines()), 1)

    def test_keeps_bytes_files_and_folders(self):
        ended = self.script("""
            import pathlib, tearless
            run = tearless.Run()
            (run.folder / "model").mkdir()
            (run.folder / "model" / "weights").write_text("w")
            for step, saved in enumerate([b"bytes", "model/weights", "model"], 1):
                run.log(step, loss=0)
                run.checkpoint(saved)
        """)
        self.assertEqual(self.read("checkpoints/step-2/state.bin"), "w")
        self.assertEqual(self.read("checkpoints/step-3/state/weights"), "w")
        self.assertIn("the program has ended without done() or diverged(), so the run has no result", ended.stderr)

    def test_is_refused_beside_another_process(self):
        text = """
            import subprocess, sys, tearless
            run = tearless.Run()
            if len(sys.argv) == 1:
                print(subprocess.run([sys.executable, "train.py", "second"], capture_output=True, text=True).stderr)
                run.done(score=1)
        """
        self.assertIn("runs/local is in use by another process; wait until that ends, or stop it first",
                      self.script(text).stdout)
        self.assertEqual(json.loads(self.read("scores.json")), {"score": 1})

    def test_writes_only_from_the_process_that_began(self):
        ended = self.script("""
            import os, tearless
            run = tearless.Run()
            if os.fork() == 0:
                run.log(1, loss=1)
            os.wait()
            run.log(1, loss=2)
            run.done(score=1)
        """)
        self.assertIn("let the first process alone do so", ended.stderr)
        self.assertEqual(json.loads(self.read("metrics.jsonl"))["value"], 2)

    def test_lets_what_it_forked_end_by_sigterm(self):
        ended = self.script("""
            import os, signal, time, tearless
            run = tearless.Run()
            (ready, tell), child = os.pipe(), os.fork()
            if child == 0:
                os.write(tell, b"x")
                time.sleep(20)
                os._exit(1)
            os.read(ready, 1)
            os.kill(child, signal.SIGTERM)
            print(os.waitpid(child, 0)[1])
            run.done(score=1)
        """)
        self.assertEqual(ended.stdout, "15\n", ended.stderr)

    def test_cuts_off_what_was_logged_after_the_checkpoint(self):
        text = """
            import tearless
            run = tearless.Run()
            run.resume()
            for step in range(run.step + 1, 4 if run.step == 0 else 0):
                run.log(step, loss=step)
                if step == 2:
                    run.checkpoint(b"")
            if run.step == 3:
                raise ValueError
            run.done(score=1)
        """
        self.script(text)
        self.assertEqual(len(self.read("metrics.jsonl").splitlines()), 3)
        self.assertEqual(self.script(text).returncode, 0)
        self.assertEqual(len(self.read("metrics.jsonl").splitlines()), 2)

    def test_ends_when_a_newer_attempt_has_replaced_it(self):
        ended = self.script("""
            import tearless
            run = tearless.Run()
            run.log(1, loss=1)
            (run.folder / "attempts" / "2").mkdir()
            run.checkpoint(b"")
        """)
        self.assertEqual((ended.returncode, ended.stderr), (STOPPED, "tearless: a newer attempt has replaced this one\n"))
        self.assertFalse((self.folder / "runs/local/checkpoints").exists())

    def test_ends_with_the_code_of_what_happened(self):
        for statement, code in (("raise MemoryError", OUT_OF_MEMORY), ("raise OSError(28, 'No space left')", MACHINE),
                                ("raise RuntimeError", 1), ("run.diverged('the loss is nan')", DIVERGED),
                                ("run.log(1, loss='x')", REFUSED), ("run.done(score=1)", 0), ("import sys; sys.exit(7)", 7)):
            with self.subTest(statement):
                self.assertEqual(self.script(f"import tearless\nrun = tearless.Run()\n{statement}\n").returncode, code)

    def test_records_a_divergence(self):
        self.script("import tearless\nrun = tearless.Run()\nrun.log(3, loss=1)\nrun.diverged('the loss is nan')\n")
        done = contract.unsealed(self.read("DONE"))
        self.assertEqual((done["outcome"], done["step"], done["reason"]), ("diverged", 3, "the loss is nan"))
        self.assertFalse((self.folder / "runs/local/scores.json").exists())


class ASentenceNames(Folder):
    def of(self, statements, code=REFUSED):
        ended = self.script("import tearless\nrun = tearless.Run()\n" + textwrap.dedent(statements))
        self.assertEqual(ended.returncode, code, ended.stderr)
        self.assertNotIn("Traceback", ended.stderr)
        return ended.stderr.strip()

    def test_a_step_that_is_logged_twice(self):
        self.assertEqual(self.of("run.log(1, loss=1)\nrun.log(1, accuracy=1)\nrun.log(1, loss=1)"),
                         "tearless: loss is logged twice at step 1")

    def test_a_step_that_goes_back(self):
        self.assertEqual(self.of("run.log(2, loss=1)\nrun.log(1, loss=1)"),
                         "tearless: step 1 is logged after step 2; steps may not go back")

    def test_a_step_that_is_none(self):
        self.assertEqual(self.of("run.log(1.5, loss=1)"), "tearless: the step 1.5 is not a whole number from 0 to 2^53")
        self.assertEqual(self.of("run.log(-1, loss=1)"), "tearless: the step -1 is not a whole number from 0 to 2^53")

    def test_a_line_after_its_checkpoint(self):
        self.assertIn("step 1 is logged after its checkpoint", self.of("run.log(1, a=1)\nrun.checkpoint(b'')\nrun.log(1, b=1)"))

    def test_a_metric_that_is_no_number(self):
        self.assertEqual(self.of("run.log(1, good=1, loss='x')"), "tearless: loss at step 1 is 'x', not a number")
        self.assertEqual(self.read("metrics.jsonl"), "")

    def test_a_score_that_is_no_number(self):
        for value, shown in (("'x'", "'x'"), ("None", "None"), ("True", "True"), ("[1]", "[1]")):
            self.assertEqual(self.of(f"run.done(good=1, score={value})"), f"tearless: the score score is {shown}, not a number")
            self.assertFalse((self.folder / "runs/local/DONE").exists())
            self.assertFalse((self.folder / "runs/local/scores.json").exists())

    def test_a_score_that_is_nan(self):
        self.assertIn("the score a is nan; it counts as no number", self.of("run.done(a=float('nan'), b=1)", code=0))
        self.assertEqual(json.loads(self.read("scores.json")), {"a": None, "b": 1})

    def test_a_result_without_scores(self):
        self.assertEqual(self.of("run.done()"), "tearless: a result has at least one score")

    def test_what_follows_the_result(self):
        self.assertIn("nothing can follow done()", self.of("run.done(score=1)\nrun.log(1, loss=1)"))

    def test_resume_after_the_first_step(self):
        self.assertIn("resume() comes after log()", self.of("run.log(1, loss=1)\nrun.resume()"))

    def test_a_checkpoint_without_step_or_content(self):
        self.assertIn("not of step 0", self.of("run.checkpoint(b'')"))
        self.assertIn("there is no file", self.of("run.log(1, a=1)\nrun.checkpoint('model.pt')"))
        self.assertIn("not a dict", self.of("run.log(1, a=1)\nrun.checkpoint({})"))
        self.assertEqual(list((self.folder / "runs/local/checkpoints").glob("step-*")), [])


class Settings(Folder):
    def setUp(self):
        super().setUp()
        self.write("train.py", """
            #!/usr/bin/env python3
            from dataclasses import dataclass, field
            from pathlib import Path
            from typing import List, Literal, Optional
            import tearless

            @dataclass
            class Train:
                lr: float = tearless.setting(0.1, above=0, max=1)
                schedule: Literal["constant", "cosine"] = "constant"
                warmup: int = tearless.setting(10, min=0, when={"train.schedule": "cosine"})
                steps: int = 100
                seed: int = 1

            @tearless.settings(identity="mine", scores=["acc"], threads=lambda s: s.threads)
            class Settings:
                data: Optional[Path] = None
                sizes: List[int] = tearless.setting([4, 8])
                dropout: float = tearless.setting(0.5, neutral=0.0)
                threads: int = tearless.setting(1, local=True)
                train: Train = field(default_factory=Train)

                def __post_init__(self):
                    if self.train.steps < self.train.warmup:
                        raise ValueError("the warm-up is longer than the training")

            run = tearless.Run(Settings)
            print(run.settings)
            run.done(score=1)
        """)

    def canonical(self, **settings):
        answer = self.check(**settings)
        self.assertNotIn("error", answer)
        return answer["canonical"]

    def test_are_canonical_whatever_was_left_out(self):
        text = 'dropout = 0.5\nsizes = [4, 8]\ntrain.lr = 0.1\ntrain.schedule = "constant"\ntrain.seed = 1\ntrain.steps = 100\n'
        self.assertEqual(self.canonical(), text)
        self.assertEqual(self.canonical(train__lr=0.1, sizes=[4, 8]), text)
        answer = self.check(threads=4)
        self.assertEqual((answer["canonical"], answer["local"], answer["threads"]), (text, "threads = 4\n", 4))
        self.assertEqual((answer["id"], answer["updates"], answer["scores"]), (contract.sha256(text.encode())[:16], 100, ["acc"]))

    def test_have_whole_numbers_where_a_fraction_may_be(self):
        self.assertIn("train.lr = 1.0\n", self.canonical(train__lr=1))

    def test_that_are_neutral_are_no_part_of_the_id(self):
        self.assertNotIn("dropout", self.canonical(dropout=0))
        self.assertIn("dropout = 0.5", self.canonical())

    def test_without_effect_are_named_and_no_part_of_the_id(self):
        answer = self.check(train__warmup=20)
        self.assertEqual(answer["unused"], {"train.warmup": 'train.schedule = "constant"'})
        self.assertNotIn("warmup", answer["canonical"])
        self.assertIn("train.warmup = 10\n", self.canonical(train__schedule="cosine"))

    def test_are_refused_by_one_sentence(self):
        for asked, sentence in (
                ({"train__lrr": 1}, 'unknown setting "train.lrr"; did you mean train.lr?'),
                ({"train__lr": 0}, "train.lr = 0; it must be above 0"),
                ({"train__lr": 2}, "train.lr = 2; it must be at most 1"),
                ({"train__warmup": -1}, "train.warmup = -1; it must be at least 0"),
                ({"train__lr": "x"}, 'train.lr = "x"; it must be a number'),
                ({"train__seed": 1.0}, "train.seed = 1.0; it must be a whole number"),
                ({"train__seed": True}, "train.seed = true; it must be a whole number"),
                ({"sizes": [1, "x"]}, 'sizes = [1, "x"]; it must be a whole number'),
                ({"sizes": 1}, "sizes = 1; it must be a list"),
                ({"train__schedule": "x"}, 'train.schedule = "x"; it must be one of "constant", "cosine"')):
            answer = self.check(**asked)
            self.assertEqual(answer, {"error": sentence, "key": next(iter(asked)).replace("__", ".")})
        self.assertEqual(self.check(train__steps=1)["error"], "the warm-up is longer than the training")

    def test_that_are_paths_count_by_the_bytes(self):
        self.assertEqual(self.check(data="a.txt")["waiting_for"], f"{self.folder}/a.txt is missing")
        (self.folder / "a.txt").write_text("a")
        answer, checksum = self.check(data="a.txt"), contract.sha256(b"a")
        self.assertIn(f'data = "{checksum}"\n', answer["canonical"])
        self.assertEqual((answer["local"], answer["data"]), (f'data = "{self.folder}/a.txt"\nthreads = 1\n',
                                                            {f"{self.folder}/a.txt": checksum}))
        (self.folder / "b.txt").write_text("a")
        self.assertEqual(self.check(data="b.txt")["id"], answer["id"])
        run = self.folder / "runs" / answer["id"]
        run.mkdir(parents=True)
        (run / "run.toml").write_text(answer["canonical"])
        (run / "local.toml").write_text(answer["local"])
        (self.folder / "a.txt").write_text("other")
        ended = self.python("train.py", "train", str(run))
        self.assertEqual((ended.returncode, ended.stderr.strip()),
                         (DATA, f"tearless: {self.folder}/a.txt is not the file that this run was planned with"))
        (self.folder / "a.txt").write_text("a")
        self.assertIn(f"data=PosixPath('{self.folder}/a.txt'), sizes=[4, 8]", self.python("train.py", "train", str(run)).stdout)

    def test_are_cut_down_for_a_trial(self):
        ended = self.python("train.py", "check", "--json", questions=[{"settings": {}, "folder": "/", "smoke": True}])
        self.assertEqual(json.loads(ended.stdout)["error"], "the warm-up is longer than the training")
        ended = self.python("train.py", "check", "--json",
                            questions=[{"settings": {"train.schedule": "cosine", "train.warmup": 0}, "folder": "/", "smoke": True}])
        self.assertEqual(json.loads(ended.stdout).get("updates"), 2, ended.stdout)

    def test_say_who_they_are_of(self):
        probe = json.loads(self.python("train.py", "probe", "--json").stdout)
        self.assertEqual((probe["program"], probe["identity"], "files" in probe), ("train.py", "mine", False))
        self.write("train.py", "import tearless\ntearless.Run(files=['model.py'])")
        self.write("model.py", "")
        first = json.loads(self.python("train.py", "probe", "--json").stdout)
        self.write("model.py", "pass")
        second = json.loads(self.python("train.py", "probe", "--json").stdout)
        self.assertEqual(first["files"], ["model.py"])
        self.assertNotEqual(first["identity"], second["identity"])

    def test_of_a_derived_run_are_refused(self):
        ended = self.python("train.py", "check", "--json", questions=[{"settings": {}, "derived": [{}]}])
        self.assertIn("makes no derived runs", json.loads(ended.stdout)["error"])

    def test_survive_the_way_through_a_file(self):
        values = {"a": 'quote " and \\ and \x01 and \x7f and ä\n', "b": [1, 2.5, "x"], "c d": True, "e": 1e-300, "f": -7}
        file = self.write("settings.toml", "")
        file.write_text(contract.toml_text(values))
        self.assertEqual(contract.settings_in(file), values)
        self.assertIn(r"\u007f", file.read_text())  # TOML has no such character itself


class Killed(Folder):
    """A test of runs that `tearless run` trains, undisturbed and killed."""

    def grid(self, script, axis, score, top=""):
        self.write("grid.toml", f'program = "{script}"\nseeds = 2\n{top}\n[axis]\n{axis}\n[table]\ncell = {{ score = "{score}" }}\n')

    def results(self, workspace):
        """What the runs have left: their bytes, by name."""
        runs = sorted((self.folder / workspace / "runs").iterdir())
        return {f"{run.name}/{name}": (run / name).read_bytes() for run in runs for name in ("DONE", "metrics.jsonl", "scores.json")}

    def attempts(self, workspace):
        return [len(list(run.iterdir())) for run in (self.folder / workspace / "runs").glob("*/attempts")]

    def killed(self, workspace, *signals, lines=8):
        """Runs the grid, and kills each run once by each signal, a few lines of metrics after the time before."""
        over = threading.Event()

        def kill(run):
            for number, by in enumerate(signals, 1):
                target = len(self.lines(run)) + lines
                while not over.is_set():
                    if (run / "attempts" / str(number) / "start.json").exists() and len(self.lines(run)) >= target:
                        break
                    time.sleep(0.01)
                for process in self.processes_of(run):
                    os.kill(process, by)
                while not over.is_set() and not (run / "attempts" / str(number + 1) / "start.json").exists():
                    time.sleep(0.01)

        def watch():
            seen = {}
            while not over.is_set():
                for run in (self.folder / workspace / "runs").glob("*"):
                    if run not in seen:
                        seen[run] = threading.Thread(target=kill, args=[run])
                        seen[run].start()
                time.sleep(0.01)
            for thread in seen.values():
                thread.join()

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            return self.tearless("run", "grid.toml", "--workspace", workspace)
        finally:
            over.set()
            watcher.join()

    @staticmethod
    def lines(run):
        return contract.read_text(run / "metrics.jsonl") and (run / "metrics.jsonl").read_text().splitlines() or []

    @staticmethod
    def processes_of(run):
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"train" in words and words[words.index(b"train") + 1:][:1] == [os.fsencode(run)] and b"supervise" not in words:
                yield int(folder.name)


class AGrid(Killed):
    def test_of_plain_python_that_is_killed_has_the_same_bytes(self):
        self.example("plain.py")
        self.grid("plain.py", "pause = [0.02]", "test.accuracy", top='seed_key = "seed"')
        self.tearless("run", "grid.toml", "--workspace", "whole")
        self.killed("killed", signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)
        self.assertEqual(self.attempts("whole"), [1, 1])
        self.assertEqual(self.attempts("killed"), [4, 4])
        self.assertEqual(self.results("whole"), self.results("killed"))
        self.assertIn("no differences", self.tearless("verify", "--workspace", "killed"))
        log = self.folder / "killed" / "runs" / os.listdir(self.folder / "killed/runs")[0] / "attempts/2/log.txt"
        self.assertRegex(log.read_text(), r"tearless: stopped at step \d+")
        self.assertIn("2 equal, 0 different", self.tearless("verify-resume", "all", "--workspace", "killed"))

    def test_whose_checkpoint_lacks_something_is_said_to_differ(self):
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("numpy is missing")
        self.example("inexact.py")
        self.grid("inexact.py", "train.pause = [0.02]", "distance")
        self.tearless("run", "grid.toml")
        self.assertIn("0 equal, 2 different", self.tearless("verify-resume", "all", code=1))
        self.assertIn("NOT the same result after stops", self.tearless("table", "grid.toml", "--resume-note"))

    def test_of_a_script_that_was_edited_is_not_trained_by_the_other(self):
        text = "#!/usr/bin/env python3\nimport tearless\nrun = tearless.Run()\nrun.done(score=1)\n"
        self.write("train.py", text)
        self.grid("train.py", "lr = [0.5]", "score")
        self.tearless("run", "grid.toml")
        run = next((self.folder / "results/runs").iterdir())
        os.remove(run / "DONE")
        self.write("train.py", text + "# another\n")
        ended = self.python("train.py", "train", str(run))
        self.assertEqual(ended.returncode, REFUSED)
        self.assertRegex(ended.stderr, r"tearless: this run is of train\.py \w+, and .*/train\.py is now train\.py \w+; submit its grid again")

    def test_with_a_setting_that_is_unknown_names_its_line(self):
        self.example("plain.py")
        self.grid("plain.py", "momentm = [0.02]", "test.accuracy", top='seed_key = "seed"')
        self.assertIn('grid.toml:5: unknown setting "momentm"; did you mean momentum?', self.tearless("plan", "grid.toml", code=2))

    def test_without_seed_key_says_what_to_write(self):
        self.example("plain.py")
        self.grid("plain.py", "lr = [0.5]", "test.accuracy")
        self.assertIn('write seed_key = "seed" at the top of the grid', self.tearless("plan", "grid.toml", code=2))

    def test_of_a_script_without_result_is_told_why(self):
        self.write("train.py", "#!/usr/bin/env python3\nimport tearless\nrun = tearless.Run()\n")
        self.grid("train.py", "lr = [0.5]", "score")
        self.tearless("run", "grid.toml", code=1)
        self.assertIn("the program has ended without done() or diverged()", self.tearless("status", "all"))


class AWandbScript(Killed):
    def setUp(self):
        super().setUp()
        before = (EXAMPLES / "wandb_script.py").read_text()
        self.text = before.replace("import wandb\n", "import tearless.wandb as wandb\n")
        self.assertEqual(sum(a != b for a, b in zip(before.splitlines(), self.text.splitlines())), 1)

    def test_trains_by_itself_with_its_flags(self):
        self.write("train.py", self.text)
        self.assertEqual(self.python("train.py", "--lr=0.2", "--epochs=3").returncode, 0)
        self.assertEqual(len(self.read("metrics.jsonl").splitlines()), 6)
        self.assertEqual(list(json.loads(self.read("scores.json"))), ["best_loss", "train/loss", "x"])
        self.assertIn("lr = 0.2\n", self.read("run.toml"))

    def test_is_trained_by_a_grid_and_begins_again_when_killed(self):
        self.write("train.py", "#!/usr/bin/env python3\n" + self.text)
        self.grid("train.py", "pause = [0.1]\nlr = [0.3]", "best_loss", top='seed_key = "seed"')
        self.tearless("run", "grid.toml", "--workspace", "whole")
        self.killed("killed", signal.SIGKILL, signal.SIGTERM, lines=2)
        self.assertEqual(self.attempts("killed"), [3, 3])
        self.assertEqual(self.results("whole"), self.results("killed"))
        scores = [json.loads(bytes) for name, bytes in self.results("whole").items() if name.endswith("scores.json")]
        self.assertNotEqual(scores[0], scores[1])

    def test_reads_the_grids_settings_from_config(self):
        self.write("train.py", """
            import tearless.wandb as wandb
            with wandb.init(config={"lr": 0.1, "model": {"width": 4}}) as run:
                assert wandb.config["model"]["width"] == wandb.config.model.width == run.config.model.width == 8
                wandb.config.update({"lr": 7, "note": "x"})
                run.log({"lr": wandb.config.lr, "inner": {"a": 1}})
                run.summary["width"] = wandb.config["model"]["width"]
        """)
        self.train(**{"lr": 0.2, "model.width": 8})
        self.assertEqual(json.loads(self.read("scores.json", self.run_folder)), {"inner.a": 1, "lr": 0.2, "width": 8})

    def train(self, code=0, **settings):
        answer = self.check(**settings)
        self.assertNotIn("error", answer)
        self.run_folder = self.folder / "runs" / answer["id"]
        self.run_folder.mkdir(parents=True, exist_ok=True)
        (self.run_folder / "run.toml").write_text(answer["canonical"])
        (self.run_folder / "local.toml").write_text(answer["local"])
        ended = self.python("train.py", "train", str(self.run_folder))
        self.assertEqual(ended.returncode, code, ended.stderr)
        return ended.stderr.strip()

    def test_is_refused_if_it_trains_with_settings_of_its_own(self):
        self.write("train.py", """
            import tearless.wandb as wandb
            lr = 0.1
            wandb.init(config={"lr": lr})
            wandb.log({"loss": lr})
        """)
        self.assertIn("the run has lr = 0.2, but the script did not read it from wandb.config",
                      self.train(REFUSED, lr=0.2))
        self.assertFalse((self.run_folder / "DONE").exists())
        self.train(lr=0.1)

    def test_has_no_result_if_it_fails(self):
        for ending in ("raise ValueError", "sys.exit(3)", "wandb.finish(exit_code=3)"):
            self.script(f"import sys\nimport tearless.wandb as wandb\nwandb.init()\nwandb.log({{'a': 1}})\n{ending}\n")
            self.assertFalse((self.folder / "runs/local/DONE").exists(), ending)

    def test_is_told_what_there_is(self):
        ended = self.script("import tearless.wandb as wandb\nwandb.init()\nwandb.Image")
        self.assertIn("AttributeError: tearless.wandb has init, config, log, summary, finish; it has no Image", ended.stderr)
        for statement, sentence in (("wandb.log({})", "wandb.log() comes after wandb.init()"),
                                    ("wandb.init()\nwandb.init()", "wandb.init() was called twice"),
                                    ("wandb.init()\nwandb.log({'a': 'x'})", "a at step 0 is 'x', not a number"),
                                    ("wandb.init(config='a.yaml')", "takes a dict or what argparse returns")):
            ended = self.script(f"import tearless.wandb as wandb\n{statement}\n")
            self.assertEqual((ended.returncode, len(ended.stderr.splitlines())), (REFUSED, 1), ended.stderr)
            self.assertIn(sentence, ended.stderr)


if __name__ == "__main__":
    sys.exit(junit_report.run("Trainer", *sys.argv[1:]))
