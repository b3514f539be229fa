#!/usr/bin/env python3
"""sweep_test.py [REPORT.xml] [CLASS[.METHOD]]…: sweeps of tearless-engine through a Slurm on this machine, disturbed, end as on one machine.

Programs: $TEARLESS_BIN, else build/bin. Where there can be no cluster the tests are skipped with a sentence; with TEARLESS_SLURM=required
they fail with it. REPORT: results as JUnit XML. Class ADisturbedSweep is part of `make test`, all are `make test-slurm`.
"""

import atexit
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import cluster
import configuration
import faults
import packages
import sweep

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import junit_report  # noqa: E402

SCRATCH = None
LOCAL = None


def scratch():
    global SCRATCH
    if SCRATCH is None:
        SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="slurm-sweep."))
        atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)
    return SCRATCH


def local():
    """The sweep of this machine, with which all others are compared. The first call begins it, in the background."""
    global LOCAL
    if LOCAL is None:
        LOCAL = sweep.LocalSweep(scratch() / "local")
    return LOCAL


def why_not():
    """A sentence why there can be no such sweep here; "" if there can."""
    if reason := cluster.why_not() or sweep.why_not():
        return reason
    try:
        packages.fetch()
    except RuntimeError as error:
        return str(error)
    return ""


class SweepTest(unittest.TestCase):
    """A cluster for the tests of a class, and a sweep for each test."""

    OPTIONS = configuration.Options(grace_time=0, min_job_age=300)

    @classmethod
    def setUpClass(cls):
        cls.why_not = why_not()
        if not cls.why_not:
            cls.cluster = cluster.Cluster(scratch() / cls.__name__, cls.OPTIONS, sweep.visible())
            cls.enterClassContext(cls.cluster)

    def setUp(self):
        if self.why_not and os.environ.get("TEARLESS_SLURM") == "required":
            self.fail(f"TEARLESS_SLURM=required, but {self.why_not}")
        if self.why_not:
            self.skipTest(self.why_not)

    def submit(self, section="", variables=()):
        self.sweep = sweep.Sweep(self.cluster, self.id().rpartition("test_")[2], section, variables)
        self.sweep.submit()

    def wait_for(self, condition, what):
        return sweep.wait_for(condition, what, note=self.sweep.describe)

    def wait_for_word(self, job, *words):
        self.wait_for(lambda: self.sweep.word_for(job) in words, f"the job {job} is {' or '.join(words)}")

    def expect_the_sweep_of_this_machine(self):
        """Waits for its end first. And for that of its processes: jobs that are idle are asked to end."""
        self.sweep.wait()
        table, files = local().results()
        self.assertEqual(self.sweep.tearless("table", "last").stdout, table)
        found = sweep.results_of(self.sweep.workspace)
        self.assertEqual(sorted(found), sorted(files))
        self.assertEqual([name for name, content in files.items() if found[name] != content], [], "other bytes")
        for run, outcomes in self.sweep.outcomes().items():
            self.assertEqual(outcomes.count("done"), 1, f"{run}: {outcomes}")
            self.assertLessEqual(set(outcomes), {"done", "stopped", "lost"}, run)
        faults.slurm(self.cluster.folder, "scancel", "--user=root")
        self.sweep.tearless("stop", "--wait")
        for machine in configuration.MACHINES:
            self.wait_for(lambda: not self.cluster.processes(machine, "tearless"), f"no process is left on {machine}")
        self.assertEqual([str(path) for path in self.sweep.workspace.glob("runs/*/attempts/*/*") if path.is_dir()], [])
        self.assertEqual(self.sweep.tearless("verify", check=False).returncode, 0, self.sweep.tearless("verify", check=False).stdout)


class ADisturbedSweep(SweepTest):
    """Three faults in one sweep, for `make test`."""

    def test_IsThatOfOneMachineThoughPreemptedDoubledAndWithoutService(self):
        self.submit()
        preempted, doubled, undisturbed = self.sweep.caught()
        jobs = [self.sweep.job(attempt) for attempt in (preempted, doubled)]

        # A program that does not get its checkpoint written in time: nobody is told how the attempt ended.
        self.sweep.hold_to_the_end(preempted)
        self.cluster.fault("preempt", preempted.node, "1")
        # A node that nobody can reach: its slurmd is gone, and the worker does nothing any more. The program lives.
        self.cluster.fault("kill-daemon", doubled.node)
        self.cluster.fault("freeze", doubled.node)
        self.assertEqual(self.sweep.kill_service(), 1)
        waiting = self.sweep.start("wait", "last")  # starts another one
        self.addCleanup(waiting.wait)
        local()
        self.wait_for_word(jobs[0], "PREEMPTED")
        self.wait_for_word(jobs[1], "NODE_FAIL")
        self.assertFalse(preempted.is_done or doubled.is_done)
        self.sweep.release(undisturbed)

        others = {attempt.run: attempt for attempt in self.sweep.caught(2, number=2)}
        self.assertEqual(set(others), {preempted.run, doubled.run})
        # Both copies train at the same time. Then the node is back.
        second = others[doubled.run]
        self.assertNotEqual(second.node, doubled.node)
        before = doubled.metrics, second.metrics
        self.sweep.release(doubled)
        self.sweep.release(second)
        self.wait_for(lambda: doubled.metrics > before[0] and second.metrics > before[1], "both copies train")
        self.assertTrue(self.sweep.program(doubled) and self.sweep.program(second))
        self.cluster.fault("thaw", doubled.node)
        self.cluster.fault("start-daemon", doubled.node)
        self.sweep.release(others[preempted.run])
        self.expect_the_sweep_of_this_machine()
        outcomes = self.sweep.outcomes()
        self.assertEqual(outcomes[undisturbed.run], ["done"], "the next service goes on with what is trained")
        self.assertEqual(len(outcomes[preempted.run]), 2)
        self.assertEqual(len(outcomes[doubled.run]), 2)


if __name__ == "__main__":
    sys.exit(junit_report.run("SlurmSweep", *sys.argv[1:]))
