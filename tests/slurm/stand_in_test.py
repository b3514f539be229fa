#!/usr/bin/env python3
"""stand_in_test.py [REPORT]: tests of the stand-ins of Slurm that other tests use. REPORT: results as JUnit XML."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import stand_in

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import junit_report  # noqa: E402

QUEUE = ["squeue", "-h", "-r", "-t", "all", "-o", "%i|%A|%F|%K|%T|%r|%N|%k"]


class StandIns(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "slurm"
        self.install()

    def install(self, **config):
        if self.folder.exists():
            stand_in.stop(self.folder)
            self.folder = self.folder.with_name("again")
        self.bin = stand_in.install(self.folder, **{"kill_wait": 0.5, "requeue_delay": 0.3, "grace_time": 0.3} | config)
        self.addCleanup(stand_in.stop, self.folder)

    def call(self, name, *arguments, timeout=60):
        return subprocess.run([self.bin / name, *arguments], cwd=self.folder.parent, env={"PATH": os.environ["PATH"], "OWN": "value"},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=timeout)

    def submit(self, script, *arguments):
        file = self.folder.parent / "script"
        file.write_text(script)
        return self.call("sbatch", "--parsable", "-o", "%A_%a.out", *arguments, file)

    def misbehave(self, *entries):
        (self.folder / "script.json").write_text(json.dumps(entries))

    def states(self):
        return {line.split("|")[0]: line.split("|")[4] for line in self.call(*QUEUE).stdout.splitlines()}

    def wait_for(self, states):
        deadline = time.monotonic() + 60
        while (seen := self.states()) != states:
            self.assertLess(time.monotonic(), deadline, seen)

    def output(self, name):
        return (self.folder.parent / f"{name}.out").read_text()

    def test_RunAnArrayAsSlurmDoes(self):
        self.install(slots=2)
        done = self.submit('#!/bin/sh\necho $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $OWN; while ! [ -e go ]; do sleep 0.05; done; exit $SLURM_ARRAY_TASK_ID\n',
                           "--array=0-2", "--comment=a b|c")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("1\n", "", 0))
        self.assertIn("1_2|1|1|2|PENDING|Resources||a b|c\n", self.call(*QUEUE).stdout)
        (self.folder.parent / "go").touch()
        self.wait_for({"1_0": "COMPLETED", "1_1": "FAILED", "1_2": "FAILED"})
        self.assertEqual([self.output(f"1_{task}") for task in range(3)], ["1 0 value\n", "1 1 value\n", "1 2 value\n"])

    def test_WarnRequeueAndKill(self):
        self.install(warn_preempted=True)
        script = "#!/bin/bash\necho \"start $SLURM_RESTART_COUNT\"\ntrap 'echo USR1' USR1\ntrap 'echo TERM' TERM\n"
        script += "setsid sleep 1000 &\nwhile :; do sleep 0.02; done\n"
        self.assertEqual(self.submit(script, "--signal=B:USR1@10", "--open-mode=append", "-o", "%j.out").stdout, "1\n")
        self.wait_for({"1": "RUNNING"})
        time.sleep(0.2)
        stand_in.preempt(self.folder, "1")
        deadline = time.monotonic() + 60
        wanted = ["start ", "USR1", "TERM", "start 1", ""]
        while (seen := [line for line in self.output("1").split("\n") if line != "Terminated"]) != wanted:
            self.assertLess(time.monotonic(), deadline, seen)  # Terminated: bash, of what it started
            time.sleep(0.05)
        self.assertEqual(self.call("scontrol", "requeue", "9").stderr, "Invalid job id specified for job 9\n")
        self.call("scancel", "1")
        self.wait_for({"1": "CANCELLED"})

    def test_RequeueAllElementsOfAnArrayByItsId(self):
        self.install(requeue_delay=1000)
        self.submit("#!/bin/sh\nexec sleep 1000\n", "--array=0-1")
        self.wait_for({"1_0": "RUNNING", "1_1": "RUNNING"})
        self.assertEqual(self.call("scontrol", "requeue", "1").returncode, 0)
        self.wait_for({"1_0": "PENDING", "1_1": "PENDING"})

    def test_RefuseWhatSlurmRefuses(self):
        self.install(full_queue_seconds=0.1, max_job_count=2, enforce_limits=True)
        failed = "sbatch: error: Batch job submission failed:"
        for arguments, text in [
                (["-p", "no"], f"sbatch: error: invalid partition specified: no\n{failed} Invalid partition name specified\n"),
                (["--gres=gpu:a:3"], f"{failed} Requested node configuration is not available\n"),
                (["-t", "61"], f"{failed} Requested time limit is invalid (missing or exceeds some limit)\n"),
                (["--array=0-1"], f"{stand_in.ERRORS['queue-full']}\n")]:
            done = self.submit("#!/bin/sh\n", *arguments)
            self.assertEqual((done.stdout, done.stderr, done.returncode), ("", text, 1))
        self.assertEqual(self.call("sacct").stderr, "Slurm accounting storage is disabled\n")
        self.assertEqual(self.call("squeue", "-j", "7").stderr, "slurm_load_jobs error: Invalid job id specified\n")

    def test_MisbehaveAsToldAndRecordTheCalls(self):
        self.misbehave({"command": "sbatch", "do": "lose-answer", "seconds": 0}, {"command": "sbatch", "do": "reuse-id", "id": 1},
                       {"command": "squeue", "do": "empty"}, {"command": "squeue", "do": "garbage"},
                       {"command": "squeue", "do": "forget", "skip": 1}, {"command": "sbatch", "do": "fail", "error": "no-controller"})
        done = self.submit("#!/bin/sh\nexec sleep 1000\n", "--comment=first")
        self.assertEqual((done.stdout, done.stderr, done.returncode), (
            "", "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n", 1))
        self.assertEqual(self.submit("#!/bin/sh\nexec sleep 1000\n", "--comment=second").stdout, "1\n")
        self.assertEqual(self.call(*QUEUE).stdout, "")
        self.assertIn("502", self.call(*QUEUE).stdout)
        self.assertEqual(self.call(*QUEUE).stdout, "1|1|1|N/A|RUNNING|None|n2|second\n")
        self.assertEqual(self.call(*QUEUE).stdout, "")
        self.assertEqual(self.submit("#!/bin/sh\n").stderr, f"{stand_in.ERRORS['no-controller']}\n")
        calls = [json.loads(line) for line in (self.folder / "calls.jsonl").read_text().splitlines()]
        self.assertEqual([(call["command"], call["misbehaviour"]) for call in calls], [
            ("sbatch", "lose-answer"), ("sbatch", "reuse-id"), ("squeue", "empty"), ("squeue", "garbage"), ("squeue", None),
            ("squeue", "forget"), ("sbatch", "fail")])


if __name__ == "__main__":
    sys.exit(junit_report.run("SlurmStandIns", *sys.argv[1:]))
