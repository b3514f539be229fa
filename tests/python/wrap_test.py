#!/usr/bin/env python3
"""`tearless wrap`: scripts of other people's form as programs of a grid, killed and stopped."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import junit_report

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("TEARLESS_BIN", SOURCE / "build" / "bin"))
METRICS = r"step (?P<step>\d+) loss (?P<train__loss>\S+)"
STEPS = 12

# What the scripts do, whatever their flags are: of each step one line; where a file `hold` lies they wait at step 7.
TRAIN = """
import json, os, signal, sys, time
def train(lr, seed, begin=0, total=0.0, save=None):
    open("begins", "a").write("%d\\n" % begin)
    for step in range(begin + 1, 13):
        total += lr * seed / step
        print("step", step, "loss", total)
        if save and step % 3 == 0:
            save(step, total)
        time.sleep(0.03)
        while step == 7 and os.path.exists("hold"):
            time.sleep(0.01)
    return total
"""
ARGPARSE = TRAIN + """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--sizes", type=int, nargs="*")
parser.add_argument("--amp", action="store_true")
options = parser.parse_args()
total = train(options.lr, options.seed)
print(json.dumps({"test": {"total": total, "sizes": sum(options.sizes or [])}, "amp": int(options.amp)}))
print("bye")
"""
RESUMES = TRAIN + """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--seed", type=int)
parser.add_argument("--out")
parser.add_argument("--resume")
options = parser.parse_args()
begin, total = json.load(open(options.resume)) if options.resume else (0, 0.0)
def save(step, total):
    with open(options.out + "/last.json", "w") as file:
        json.dump([step, total], file)
print(json.dumps({"total": train(options.lr, options.seed, begin, total, save)}))
"""
RESUMING = ["--flags", "--lr={lr} --seed={train.seed} --out={folder}", "--scores", "last-json-line", "--metrics", METRICS,
            "--resume-flag", "--resume {folder}/last.json"]


def text_of(file):
    return file.read_text() if file.exists() else ""


def total_of(lr, seed):
    total = 0.0
    for step in range(1, STEPS + 1):
        total += lr * seed / step
    return total


class Wrapped(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("TEARLESS_", "PYTHON"))}
        self.environment["PATH"] = os.pathsep.join([str(BIN), os.path.dirname(sys.executable), os.environ["PATH"]])

    # --- what a user types ---

    def file(self, name, text):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(textwrap.dedent(text))

    def run_program(self, *words, code=0, given=""):
        ended = subprocess.run([str(word) for word in words], cwd=self.folder, env=self.environment, input=given, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        if code is not None:
            self.assertEqual(ended.returncode, code, ended.stdout)
        return ended.stdout

    def tearless(self, *words, code=0):
        return self.run_program(BIN / "tearless", *words, code=code)

    def wrap(self, script, *options, write="program", command=("python3", "train.py"), code=0):
        if script is not None:
            self.file("train.py", script)
        return self.tearless("wrap", "--write", write, *options, "--", *command, code=code)

    def grid(self, axes, score, seeds=2):
        self.file("grid.toml", f'program = "program"\nseeds = {seeds}\n[axis]\n{axes}\n[table]\nscores = "{score}"\n')

    # --- what came of it ---

    def check(self, settings, code=0, **more):
        line = json.dumps({"settings": settings, "folder": str(self.folder), "folders": {}, "smoke": False, **more})
        return json.loads(self.run_program(self.folder / "program", "check", "--json", given=line + "\n", code=code))

    def refusal(self, settings, **more):
        return self.check(settings, **more)["error"]

    def new_run(self, settings):
        answer = self.check(settings)
        run = self.folder / "by_hand" / answer["id"]
        run.mkdir(parents=True, exist_ok=True)
        (run / "run.toml").write_text(answer["canonical"])
        (run / "local.toml").write_text(answer["local"])
        return run

    def start(self, run):
        return subprocess.Popen([self.folder / "program", "train", run], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)

    def kill(self, program):
        program.kill()
        program.wait()
        program.stdout.close()

    def end(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def train(self, settings, code=0):
        """What it printed, and its folder."""
        run = self.new_run(settings)
        return self.run_program(self.folder / "program", "train", run, code=code), run

    def scores(self):
        return {row["run"]: row for row in json.loads(self.tearless("runs", "--json", "--scores", "*"))}

    def run_folders(self):
        return sorted((self.folder / "results" / "runs").iterdir())

    def metrics(self, run):
        return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]

    def logs(self):
        return "".join(log.read_text() for log in sorted(self.folder.glob("results/runs/*/attempts/*/log.txt")))

    # --- disturbances ---

    def until(self, what, happened):
        end = time.monotonic() + 60
        while not happened():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def hold_at_step_7(self, runs=1):
        """Submits the grid, and returns once so many runs wait at step 7."""
        self.file("hold", "")
        self.tearless("submit", "grid.toml")
        self.addCleanup(self.tearless, "stop", "--now", code=None)

        def at_step_7():
            files = list(self.folder.glob("results/runs/*/metrics.jsonl"))
            return sum('"step": 7' in file.read_text() for file in files) == runs
        self.until("no run came to step 7", at_step_7)
        if "resume" in (self.folder / "program").read_text():
            self.until("no checkpoint was kept", lambda: list(self.folder.glob("results/runs/*/checkpoints/step-7")))

    def programs(self):
        """The processes that the supervisors have started."""
        found = []
        for start in self.folder.glob("results/runs/*/attempts/*/start.json"):
            supervisor = json.loads(start.read_text())["supervisor"]["pid"]
            children = pathlib.Path(f"/proc/{supervisor}/task/{supervisor}/children")
            found += [int(pid) for pid in children.read_text().split()] if children.exists() else []
        return found

    def kill_programs(self, number):
        for pid in self.programs():
            os.kill(pid, number)
        (self.folder / "hold").unlink()
        self.tearless("wait")

    def stop_and_continue(self):
        self.tearless("stop", "--now")
        self.until("the service does not end", lambda: "service works here" not in self.tearless("status"))
        status = self.tearless("status")
        (self.folder / "hold").unlink()
        self.tearless("run", "grid.toml")
        return status

    def assert_undisturbed(self, score="test.total"):
        rows = self.scores().values()
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual(row["state"], "done", row)
            lr = float(row.get("lr", row.get("coordinates", {}).get("lr", "nan")))
            self.assertEqual(row["scores"][score] if "scores" in row else row[score], total_of(lr, row["seed"]))
        for run in self.run_folders():
            self.assertEqual([line["step"] for line in self.metrics(run)], list(range(1, STEPS + 1)))
            self.assertEqual(self.metrics(run)[-1]["name"], "train.loss")


class Grids(Wrapped):
    def test_a_script_is_trained_by_a_tearless_that_is_not_on_PATH(self):
        self.environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), "/usr/bin", "/bin"])
        self.wrap(ARGPARSE, "--flags", "--lr={lr}")
        self.grid("lr = [0.5]", "test.total", seeds=1)
        self.assertIn("1 done", self.tearless("run", "grid.toml"))

    def test_an_argparse_script_that_is_killed_starts_again_and_status_says_so(self):
        self.wrap(ARGPARSE, "--flags", "--lr={lr} --seed={train.seed}", "--scores", "last-json-line", "--metrics", METRICS)
        self.grid("lr = [0.5]", "test.total")
        self.hold_at_step_7(runs=2)
        self.kill_programs(signal.SIGKILL)
        self.assert_undisturbed()
        self.assertEqual((self.folder / "begins").read_text().split(), ["0"] * 4)
        self.assertEqual(self.logs().count("train.py keeps no checkpoint, as it has no --resume-flag, and starts again"), 2)
        self.assertIn("lost: 14 updates", self.tearless("status"))

    def test_an_argparse_script_that_is_stopped_starts_again_and_status_says_so(self):
        self.wrap(ARGPARSE, "--flags", "--lr={lr}", "--metrics", METRICS)  # scores are the last line of JSON
        self.grid("lr = [0.5]", "test.total", seeds=1)
        self.hold_at_step_7()
        self.assertIn("to start again from the beginning, without a checkpoint: 1 run", self.stop_and_continue())
        self.assert_undisturbed()
        self.assertNotIn("to start again", self.tearless("status"))

    def test_an_interrupted_run_says_what_starts_again(self):
        self.wrap(ARGPARSE, "--flags", "--lr={lr}", "--metrics", METRICS)  # scores are the last line of JSON
        self.grid("lr = [0.5]", "test.total", seeds=1)
        self.file("hold", "")
        run = subprocess.Popen([BIN / "tearless", "run", "grid.toml"], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True)
        self.until("no step 7", lambda: any('"step": 7' in text_of(file) for file in self.folder.glob("results/runs/*/metrics.jsonl")))
        run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=60)[0]
        self.assertIn("Interrupted; 1 run without a checkpoint will start from the beginning. To continue: tearless run grid.toml", said)

    def test_a_script_with_a_resume_flag_that_is_killed_resumes_where_it_was(self):
        self.resumes_after(lambda: self.kill_programs(signal.SIGKILL))

    def test_a_script_with_a_resume_flag_that_is_stopped_resumes_where_it_was(self):
        self.resumes_after(lambda: self.assertNotIn("to start again", self.stop_and_continue()))

    def resumes_after(self, disturb):
        self.wrap(RESUMES, *RESUMING)
        self.grid("lr = [0.5]", "total", seeds=1)
        self.hold_at_step_7()
        disturb()
        self.assert_undisturbed("total")
        self.assertEqual((self.folder / "begins").read_text().split(), ["0", "6"])
        self.assertIn("train.py resumes from its checkpoint of step 7", self.logs())

    def test_stops_of_a_script_that_resumes_change_no_byte(self):
        self.wrap(RESUMES.replace("sleep(0.03)", "sleep(1.5 if step == 5 else 0.03)"), *RESUMING)
        self.grid("lr = [0.5]", "total")
        self.tearless("run", "grid.toml")
        self.assertIn("2 equal, 0 different", self.tearless("verify-resume", "last"))
        self.assertIn("3", (self.folder / "begins").read_text().split(), "no stop came behind a checkpoint")

    def test_a_script_of_hydras_form_is_killed_and_starts_again(self):
        self.wrap(TRAIN + """
settings = dict(word.split("=", 1) for word in sys.argv[1:])
assert sorted(settings) == ["model.name", "optim.lr", "seed"], settings
total = train(float(settings["optim.lr"]), int(settings["seed"]))
print(json.dumps({"test.total": total}))
""", "--flags", "seed={train.seed} {key}={value}", "--scores", "last-json-line", "--metrics", METRICS)
        self.grid('"optim.lr" = [0.5]', "test.total", seeds=1)
        (self.folder / "grid.toml").write_text((self.folder / "grid.toml").read_text() + '[set]\n"model.name" = "two words"\n')
        self.hold_at_step_7()
        self.kill_programs(signal.SIGKILL)
        (row,) = self.scores().values()
        self.assertEqual(row["state"], "done")
        self.assertIn(repr(total_of(0.5, 1)), (self.run_folders()[0] / "scores.json").read_text())

    def test_a_script_of_hydra_itself(self):
        try:
            import hydra
        except ImportError:
            self.skipTest("hydra-core is not installed for this Python")
        self.file("conf/config.yaml", "seed: 0\noptim:\n  lr: 0\n")
        self.wrap("import hydra\n" + TRAIN + """
@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    print(json.dumps({"test": {"total": train(cfg.optim.lr, cfg.seed)}}))
main()
""", "--flags", "{key}={value} seed={train.seed} hydra.run.dir={folder}", "--scores", "last-json-line", "--metrics", METRICS)
        self.grid('"optim.lr" = [0.5]', "test.total", seeds=1)
        self.hold_at_step_7()
        self.kill_programs(signal.SIGKILL)
        self.assertIn(repr(total_of(0.5, 1)), (self.run_folders()[0] / "scores.json").read_text())
        self.assertFalse((self.folder / "outputs").exists(), "Hydra wrote beside the script")

    def test_another_version_of_a_package_marks_a_cell_as_mixed(self):
        self.wrap(ARGPARSE, "--flags", "--lr={lr} --seed={train.seed}", "--scores", "last-json-line")
        for seeds, version in ((1, "1.4"), (2, "1.5")):
            self.file(f"{version}/norms-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: norms\nVersion: {version}\n")
            self.environment["PYTHONPATH"] = str(self.folder / version)
            self.grid("lr = [0.5]", "test.total", seeds=seeds)
            self.tearless("run", "grid.toml")
            self.assertEqual("°" in self.tearless("table", "grid.toml"), seeds == 2)
        lists = [file.read_text() for file in self.folder.glob("results/runs/*/attempts/1/packages.txt")]
        self.assertEqual(sorted("norms==1.5\n" in text for text in lists), [False, True])

    def test_files_that_change_after_the_submission_are_not_trained_with(self):
        self.wrap(ARGPARSE, "--flags", "--lr={lr}", "--scores", "last-json-line", "--metrics", METRICS)
        self.grid("lr = [0.5, 0.25]", "test.total", seeds=1)
        self.hold_at_step_7(runs=2)
        self.tearless("stop", "--now")
        self.until("the service does not end", lambda: "service works here" not in self.tearless("status"))
        self.file("train.py", ARGPARSE + "# another one\n")
        (self.folder / "hold").unlink()
        self.tearless("resume", "all", code=None)
        self.tearless("wait", code=None)
        self.assertIn("not what this run was submitted with (train.py changed last)", self.tearless("status"))
        self.assertEqual((self.folder / "begins").read_text().split(), ["0"] * 2)
        self.assertIn("2 runs: 2 done", self.tearless("run", "grid.toml"))


class Flags(Wrapped):
    def wrap_printing(self, flags, *options):
        self.wrap('import json, os, sys\nprint(sys.argv[1:], os.environ.get("LR"))\nprint(\'{"a": 1}\')\n', "--flags", flags, "--scores",
                  "last-json-line", *options)

    def test_all_forms_become_words_and_variables(self):
        self.wrap_printing('LR={lr} --seed={train.seed} name="{n} x" {sizes} {amp?--amp} {fast?--fast} --t={t} "{key}={value}"')
        settings = {"lr": 1e-05, "train.seed": 3, "n": "a b", "sizes": [1, 2], "amp": True, "fast": False, "t": True, "c.d": [1, "x"]}
        said, _ = self.train(settings)
        self.assertEqual(said.splitlines()[0],
                         "['--seed=3', 'name=a b x', '1', '2', '--amp', '--t=true', 'c.d=[1,\"x\"]'] 1e-05")

    def test_a_setting_that_no_flag_passes_on_is_refused(self):
        self.wrap_printing("--lr={lr}")
        self.assertEqual(self.refusal({"lr": 1, "model.deep": 2}),
                         "no flag of train.py passes on model.deep: put {model.deep} into --flags, or take model.deep out of the grid")

    def test_a_flag_without_its_setting_is_refused(self):
        self.wrap_printing("--lr={lr}")
        self.assertEqual(self.refusal({"train.seed": 2}), "the flags of train.py have {lr}, and the grid sets no lr")

    def test_a_condition_on_what_is_neither_true_nor_false_is_refused(self):
        self.wrap_printing("{lr?--lr}")
        self.assertEqual(self.refusal({"lr": 2}), "{lr?--lr} is for a setting that is true or false, and lr is 2")

    def test_seeds_that_no_flag_passes_on_are_refused_and_one_is_not(self):
        self.wrap_printing("--lr={lr}")
        lines = [json.dumps({"settings": {"lr": 1, "train.seed": seed}}) for seed in (1, 2)]
        answers = [json.loads(line) for line in self.run_program(self.folder / "program", "check", given="\n".join(lines) + "\n").splitlines()]
        self.assertEqual(answers[0]["unused"], {"train.seed": ""})
        self.assertTrue(answers[1]["error"].startswith("no flag of train.py passes on train.seed, so all seeds would be one run"))

    def test_a_short_form_is_refused(self):
        self.wrap_printing("--lr={lr}")
        self.assertIn("leave out --calibrate", self.refusal({"lr": 1}, smoke=True))


class Scores(Wrapped):
    def scores_of(self, text, *options):
        self.wrap(f"import sys\n{textwrap.dedent(text)}", *options)
        said, run = self.train({})
        return json.loads((run / "scores.json").read_text()), said

    def refused(self, text, *options):
        self.wrap(f"import sys\n{textwrap.dedent(text)}", *options)
        said, run = self.train({}, code=2)
        self.assertFalse((run / "DONE").exists())
        self.assertFalse((run / "scores.json").exists())
        return said.splitlines()[-1]

    def test_the_last_json_line_counts(self):
        scores, said = self.scores_of(r'print("{\"acc\": 1}\n{\"test\": {\"acc\": 2}, \"loss\": 0.5}\nbye\n{7}")', "--scores", "last-json-line")
        self.assertEqual(scores, {"test.acc": 2, "loss": 0.5})
        self.assertIn("bye", said)

    def test_a_regular_expression_takes_its_last_match_also_from_standard_error(self):
        scores, _ = self.scores_of('print("acc 1.5")\nprint("\\racc 2.5 of dev", file=sys.stderr)', "--scores", r"regex:acc (?P<dev__acc>[\d.]+)")
        self.assertEqual(scores, {"dev.acc": 2.5})

    def test_a_regular_expression_takes_any_name(self):
        scores, _ = self.scores_of('print("test.acc: 1, test.loss: 2")', "--scores", r"regex:(?P<name>\S+): (?P<value>[\d.]+)")
        self.assertEqual(scores, {"test.acc": 1, "test.loss": 2})

    def test_a_file_of_the_runs_folder(self):
        scores, _ = self.scores_of('open(sys.argv[1] + "/s.json", "w").write("{\\n\\"acc\\": 1,\\n\\"who\\": \\"me\\"}")', "--scores", "file:s.json",
                                   "--flags", "{folder}", "--score-names", "acc")
        self.assertEqual(scores, {"acc": 1})

    def test_no_score_names_the_last_line(self):
        self.assertEqual(self.refused('print("all done")', "--scores", "last-json-line"),
                         'tearless: train.py printed no line of JSON, so it has no score; its last line is "all done"')
        self.assertEqual(self.refused("", "--scores", "regex:acc (?P<acc>.*)"),
                         "tearless: train.py printed no line that --scores regex: matches, so it has no score; it printed nothing")
        self.assertIn("left no JSON in ", self.refused('print("x")', "--scores", "file:s.json", "--flags", "--out={folder}"))

    def test_a_score_that_is_no_number(self):
        self.assertEqual(self.refused("print('{\"acc\": \"high\"}')", "--scores", "last-json-line"),
                         'tearless: the score acc is "high", not a number')
        self.assertEqual(self.refused("print('{\"acc\": [1]}')", "--scores", "last-json-line"), "tearless: the score acc is [1], not a number")
        self.assertIn("not a number", self.refused('print("acc: high")', "--scores", "regex:acc: (?P<acc>.*)"))

    def test_a_score_that_is_asked_for_and_missing(self):
        self.assertEqual(self.refused("print('{\"acc\": 1}')", "--scores", "last-json-line", "--score-names", "bleu"),
                         'tearless: train.py left no score bleu but acc; its last line is "{"acc": 1}"')

    def test_nan_is_said_and_counts_as_no_number(self):
        scores, said = self.scores_of("print('{\"acc\": NaN, \"loss\": 1}')", "--scores", "last-json-line")
        self.assertEqual(scores, {"acc": None, "loss": 1})
        self.assertIn("the score acc is nan", said)

    def test_metrics_twice_backwards_and_without_a_number_are_left_out_with_one_sentence(self):
        self.wrap('for s in (1, 2, 2, 1, "x", 3): print("step", s, "loss", s)\nprint("step 4 loss high")\nprint(\'{"a": 1}\')\n',
                  "--scores", "last-json-line", "--metrics", r"step (?P<step>\S+) loss (?P<train__loss>\S+)")
        said, run = self.train({})
        self.assertEqual([line["step"] for line in self.metrics(run)], [1, 2, 3])
        self.assertEqual([line for line in said.splitlines() if line.startswith("tearless:")],
                         ["tearless: train.loss of step 2 is printed after step 2, or twice; such metrics are left out"])
        shutil.rmtree(run)
        self.wrap('print("step 1 loss high")\nprint(\'{"a": 1}\')\n', "--scores", "last-json-line", "--metrics", METRICS)
        self.assertIn('train.loss at step 1 is "high", not a number; such metrics are left out', self.train({})[0])


class Ends(Wrapped):
    def test_exit_codes_are_kept(self):
        for code in (1, 2, 4, 66, 74):
            self.wrap(f"import sys; sys.exit({code})", "--scores", "last-json-line")
            _, run = self.train({}, code=code)
            self.assertFalse((run / "DONE").exists())
        self.wrap("print('loss is inf'); exit(3)", "--scores", "last-json-line")
        _, run = self.train({}, code=3)
        done = json.loads((run / "DONE").read_text())
        self.assertEqual((done["outcome"], done["reason"]), ("diverged", "loss is inf"))

    def test_a_signal_that_ends_the_script_ends_the_program(self):
        self.wrap("import os; os.kill(os.getpid(), 9)", "--scores", "last-json-line")
        self.train({}, code=-signal.SIGKILL)

    def test_a_script_that_ends_well_when_it_is_stopped_is_not_done(self):
        self.wrap("import signal, sys, time\n"
                  "def stop(*_): print('{\"acc\": 0.1}'); sys.exit(0)\n"
                  "signal.signal(signal.SIGTERM, stop)\nprint('ready')\ntime.sleep(60)\n", "--scores", "last-json-line")
        run = self.new_run({})
        program = self.start(run)
        self.assertEqual(program.stdout.readline(), "ready\n")
        program.send_signal(signal.SIGTERM)
        self.assertIn("0.1", program.stdout.read())
        program.stdout.close()
        self.assertEqual(program.wait(), 75)
        self.assertFalse((run / "DONE").exists())

    def test_a_script_dies_with_its_program(self):
        self.wrap("import os, time\nprint(os.getpid())\ntime.sleep(300)\n", "--scores", "last-json-line")
        program = self.start(self.new_run({}))
        script = int(program.stdout.readline())
        self.addCleanup(self.end, script)
        self.kill(program)
        self.until("the script lives on", lambda: not pathlib.Path(f"/proc/{script}").exists()
                   or ") Z " in pathlib.Path(f"/proc/{script}/stat").read_text())

    def test_what_the_script_leaves_running_holds_the_run(self):
        self.wrap("import os, time\nif not os.fork(): print(os.getpid())\ntime.sleep(300)", "--scores", "last-json-line")
        run = self.new_run({})
        program = self.start(run)
        child = int(program.stdout.readline())
        self.addCleanup(self.end, child)
        self.kill(program)
        time.sleep(0.5)  # the script ends
        self.assertIn("in use by another process", self.run_program(self.folder / "program", "train", run, code=75))

    def test_numbers_that_are_printed_after_their_checkpoint_outlive_two_kills(self):
        self.wrap(RESUMES.replace("        print(", "        if step == 6: save(step, total); time.sleep(1.5)\n        print(").replace(
            "step % 3 == 0", "False").replace("    open(", "    while begin and os.path.exists('block'): time.sleep(0.01)\n    open("), *RESUMING)
        run = self.new_run({"lr": 0.5, "train.seed": 1})
        self.file("hold", "")
        self.file("block", "")
        program = self.start(run)
        self.until("no step 7", lambda: '"step": 7' in text_of(run / "metrics.jsonl"))
        self.assertEqual([path.name for path in (run / "checkpoints").iterdir()], ["step-5"])
        self.kill(program)
        program = self.start(run)
        self.until("it does not resume", lambda: not (run / "metrics.jsonl").read_text().count('"step": 6'))
        time.sleep(0.5)
        self.kill(program)
        (self.folder / "hold").unlink()
        (self.folder / "block").unlink()
        self.run_program(self.folder / "program", "train", run)
        self.assertEqual([line["step"] for line in self.metrics(run)], list(range(1, STEPS + 1)))
        self.assertEqual((self.folder / "begins").read_text().split(), ["0", "6"])
        self.assertEqual(json.loads((run / "scores.json").read_text()), {"total": total_of(0.5, 1)})

    def test_a_checkpoint_that_the_script_cannot_read_is_removed(self):
        fails = RESUMES.replace("json.load(open(options.resume))", "sys.exit(5)").replace("    return total", "    time.sleep(1.5)\n    sys.exit(5)", 1)
        self.wrap(fails, *RESUMING)
        settings = {"lr": 0.5, "train.seed": 1}
        _, run = self.train(settings, code=5)
        self.assertEqual([path.name for path in (run / "checkpoints").iterdir()], ["step-12"])
        said, _ = self.train(settings, code=5)
        self.assertIn("train.py could not resume from its checkpoint of step 12, which is removed", said)
        said, _ = self.train(settings, code=5)
        self.assertIn("train.py had no checkpoint yet, and starts again from the beginning", said)


class Identity(Wrapped):
    def identity(self):
        return json.loads(self.run_program(self.folder / "program", "probe", "--json"))["identity"]

    def changes(self, name, text):
        before = self.identity()
        self.file(name, text)
        return self.identity() != before

    def test_every_python_file_that_git_does_not_ignore_counts(self):
        self.run_program("git", "init", "-q")
        self.file(".gitignore", "ignored.py\n")
        self.file("lib/a.py", "1")
        self.wrap("", "--scores", "last-json-line")
        self.run_program("git", "add", "lib/a.py")
        self.assertTrue(self.changes("lib/a.py", "2"), "tracked")
        self.assertTrue(self.changes("lib/b.py", "1"), "untracked")
        self.assertTrue(self.changes("train.py", "#"), "the script")
        self.assertFalse(self.changes("ignored.py", "1"))
        self.assertFalse(self.changes("notes.txt", "1"))
        self.assertIn("3 files", self.identity())

    def test_files_names_those_that_count(self):
        self.file("lib/a.py", "1")
        self.file("model.yaml", "1")
        self.wrap("", "--scores", "last-json-line", "--files", "*.yaml")
        self.assertTrue(self.changes("model.yaml", "2"))
        self.assertTrue(self.changes("train.py", "#"))
        self.assertFalse(self.changes("lib/a.py", "2"))

    def test_options_that_make_numbers_count_and_an_interpreters_path_does_not(self):
        self.wrap("", "--scores", "last-json-line")
        before = self.identity()
        self.wrap("", "--scores", "last-json-line", command=(sys.executable, "train.py"))
        self.assertEqual("python3" == pathlib.Path(sys.executable).name, self.identity() == before)
        self.wrap("", "--scores", "last-json-line", "--threads", "4")
        self.assertEqual(self.identity(), before)
        self.wrap("", "--scores", "last-json-line", "--flags", "--fast")
        self.assertNotEqual(self.identity(), before)


class Mistakes(Wrapped):
    def refused(self, *options, script="", **more):
        said = self.wrap(script, *options, code=2, **more)
        self.assertFalse((self.folder / "program").exists(), said)
        return said

    def test_are_told_in_one_sentence_before_anything_is_written(self):
        self.assertIn("none of last-json-line, file:PATH and regex:PATTERN", self.refused("--scores", "json"))
        self.assertIn("is none of last-json-line", self.refused("--scores", ""))
        self.assertIn("tell the script by {folder}", self.refused("--scores", "file:s.json"))
        self.assertIn("is no regular expression", self.refused("--scores", "regex:("))
        self.assertIn("must name its numbers", self.refused("--scores", "regex:acc (.*)"))
        self.assertIn("must name its numbers", self.refused("--scores", "last-json-line", "--metrics", "loss (?P<loss>.*)"))
        self.assertIn("--resume-flag names the file", self.refused("--scores", "last-json-line", "--resume-flag", "--resume"))
        self.assertIn('--flags "a\'b"', self.refused("--scores", "last-json-line", "--flags", "a'b"))
        self.assertIn("--files *.yaml matches no file", self.refused("--scores", "last-json-line", "--files", "*.yaml"))
        self.assertIn("there is no other.py to run in", self.refused("--scores", "last-json-line", command=("python3", "other.py")))
        self.assertIn("there is no nothing to run in", self.refused("--scores", "last-json-line", command=("nothing",)))
        self.assertIn("name the command behind --", self.refused("--scores", "last-json-line", command=()))
        self.assertIn('which files does "python3 -m json.tool" run?', self.refused("--scores", "last-json-line", command=("python3", "-m", "json.tool")))

    def test_a_file_of_somebody_else_is_not_overwritten(self):
        self.file("program", "mine")
        self.assertIn("program is there already", self.wrap("", "--scores", "last-json-line", code=2))
        self.assertEqual((self.folder / "program").read_text(), "mine")

    def test_a_program_in_another_folder_runs_the_script_where_it_was_wrapped(self):
        self.wrap("import os\nprint(os.getcwd())\nprint('{\"a\": 1}')", "--scores", "last-json-line", write="program")
        (self.folder / "grids").mkdir()
        self.wrap(None, "--scores", "last-json-line", write="grids/program")
        (self.folder / "program").write_text((self.folder / "grids" / "program").read_text().replace('")"/..', '")"'))
        said = self.run_program(self.folder / "grids" / "program", "probe", "--json")
        self.assertIn("train.py wrapped", said)


if __name__ == "__main__":
    sys.exit(junit_report.run("PythonWrap", *sys.argv[1:]))
