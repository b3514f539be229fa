#!/usr/bin/env python3
"""sweep_test.py [REPORT.xml] [CLASS[.METHOD]]…: sweeps of tearless-engine through a Slurm on this machine, disturbed in many ways.

Programs: $TEARLESS_BIN, else build/bin. Where there can be no cluster the tests are skipped with a sentence; with TEARLESS_SLURM=required
they fail with it. REPORT: results as JUnit XML. Class ADisturbedSweep is part of `make test`, all are `make test-slurm`.
"""

import atexit
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import unittest

import cluster
import configuration
import fault_plan
import faults
import packages
import sweep

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import junit_report  # noqa: E402

# As sbatch, but its answer to a submission takes until the file is gone that says that the job was made.
SLOW_SBATCH = """#!/bin/bash
answer=$(/usr/bin/sbatch "$@") || exit
made=$(dirname "${@: -1}")/made
[[ " $* " == *" --test-only "* ]] || { touch $made; while [ -e $made ]; do sleep 0.1; done; }
echo "$answer"
"""
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

    OPTIONS = configuration.Options(cpus=1, grace_time=0, min_job_age=300)  # so each worker takes one run

    @classmethod
    def setUpClass(cls):
        cls.why_not = why_not()
        if not cls.why_not:
            cls.cluster = cluster.Cluster(tempfile.mkdtemp(dir=scratch()), cls.OPTIONS, sweep.visible())
            cls.enterClassContext(cls.cluster)

    def setUp(self):
        if self.why_not and os.environ.get("TEARLESS_SLURM") == "required":
            self.fail(f"TEARLESS_SLURM=required, but {self.why_not}")
        if self.why_not:
            self.skipTest(self.why_not)

    def tearDown(self):
        """Repairs the cluster."""
        for machine, daemon in faults.DAEMONS.items():
            self.cluster.fault("thaw", machine)
            if not self.cluster.processes(machine, daemon):
                self.cluster.fault("start-daemon", machine)
        sweep.wait_for(lambda: faults.states(self.cluster.folder), "slurmctld answers")
        faults.slurm(self.cluster.folder, "scancel", "--user=root")
        for node, state in faults.states(self.cluster.folder).items():
            if "drain" in state:
                self.cluster.fault("resume", node)
        sweep.wait_for(lambda: set(faults.states(self.cluster.folder).values()) == {"idle"}, "all nodes are idle")

    def submit(self, more=""):
        self.sweep = sweep.Sweep(self.cluster, self.id().rpartition("test_")[2], more=more)
        self.sweep.submit()

    def wait_for(self, condition, what):
        return sweep.wait_for(condition, what, note=self.sweep.describe)

    def wait_for_word(self, attempt, word):
        job = self.sweep.job(attempt)
        self.wait_for(lambda: self.sweep.word_for(job) == word, f"the job {job} is {word}")

    def hold_to_the_end(self, attempt):
        """Its program does not get a checkpoint written before it is killed."""
        self.sweep.hold_to_the_end(self.sweep.program(attempt))

    def let_stop(self, attempt):
        """Its program continues when it has been asked to stop."""
        self.wait_for(lambda: self.sweep.is_asked_to_stop(attempt), f"the program on {attempt.node} is asked to stop")
        self.sweep.release(attempt)

    def expect_both_to_train(self, old, new, hold_new=False):
        """Of two copies of a run that are held, on two nodes; both continue, or `old` alone."""
        self.assertNotEqual(old.node, new.node)
        before = old.metrics, new.metrics
        self.sweep.release(old)
        if not hold_new:
            self.sweep.release(new)
        self.wait_for(lambda: old.metrics > before[0] and (hold_new or new.metrics > before[1]), "both copies train")
        self.assertTrue(self.sweep.program(old) or old.is_done)
        self.assertTrue(self.sweep.program(new))

    def expect_the_sweep_of_this_machine(self, ask_workers_to_end=True, seconds=sweep.SECONDS):
        """Waits for its end first, and then for the end of its processes."""
        self.sweep.wait(seconds)
        self.expect_results(self.sweep, local())
        if ask_workers_to_end:
            faults.slurm(self.cluster.folder, "scancel", "--user=root")
        self.sweep.tearless("stop", "--wait")
        for machine in configuration.MACHINES:
            self.wait_for(lambda: not self.cluster.processes(machine, "tearless"), f"no process is left on {machine}")

    def expect_the_sweep_after_losing(self, attempts, word):
        """The jobs of these attempts end with Slurm's word, before the runs do; each run then takes a second attempt."""
        for attempt in attempts:
            self.wait_for_word(attempt, word)
            self.assertFalse(attempt.is_done)
        self.expect_the_sweep_of_this_machine()
        for attempt in attempts:
            self.assertEqual(len(self.sweep.outcomes()[attempt.run]), 2)

    def expect_results(self, swept, expected):
        table, files = expected.results()
        self.assertEqual(swept.tearless("table", "last").stdout, table)
        found = sweep.results_of(swept.workspace)
        self.assertEqual(sorted(found), sorted(files))
        self.assertEqual([name for name, content in files.items() if found[name] != content], [], "other bytes")
        for run, outcomes in swept.outcomes().items():
            self.assertEqual(outcomes.count("done"), 1, f"{run}: {outcomes}")
            if set(outcomes) - {"done", "stopped", "lost"}:
                self.fail(f"a failed try: {swept.tearless('explain', run).stdout}{swept.tearless('log', run).stdout}")
        self.assertEqual([str(path) for path in swept.workspace.glob("runs/*/attempts/*/*") if path.is_dir()], [])
        swept.tearless("verify")


class ADisturbedSweep(SweepTest):
    """Three faults in one sweep, for `make test`."""

    def test_IsThatOfOneMachineThoughPreemptedDoubledAndWithoutService(self):
        self.submit()
        preempted, doubled, undisturbed = self.sweep.caught()
        self.hold_to_the_end(preempted)
        self.cluster.fault("preempt", preempted.node, "1")
        # A node that nobody can reach: its slurmd is gone, and the worker does nothing any more. The program lives.
        self.cluster.fault("kill-daemon", doubled.node)
        self.cluster.fault("freeze", doubled.node)
        self.assertEqual(self.sweep.kill_service(), 1)
        waiting = self.sweep.start("wait", "last")  # starts another one
        self.addCleanup(waiting.wait)
        local()
        self.wait_for_word(preempted, "PREEMPTED")
        self.wait_for_word(doubled, "NODE_FAIL")
        self.assertFalse(preempted.is_done or doubled.is_done)
        self.sweep.release(undisturbed)

        again = {attempt.run: attempt for attempt in self.sweep.caught(2, number=2)}
        self.assertEqual(set(again), {preempted.run, doubled.run})
        self.expect_both_to_train(doubled, again[doubled.run])
        # The node is back.
        self.cluster.fault("thaw", doubled.node)
        self.cluster.fault("start-daemon", doubled.node)
        self.sweep.release(again[preempted.run])
        self.expect_the_sweep_of_this_machine()
        outcomes = self.sweep.outcomes()
        self.assertEqual(outcomes[undisturbed.run], ["done"], "the next service continues with what is trained")
        self.assertEqual(len(outcomes[preempted.run]), 2)
        self.assertEqual(len(outcomes[doubled.run]), 2)
        if (check := self.sweep.second_result_of(doubled)) is not None:  # its first program was in time
            self.assertEqual((check["outcome"], check["attempt"]), ("equal", 1))


class ASweep(SweepTest):
    def test_LosesNodesThatLiveOn(self):
        self.submit()
        attempts = self.sweep.caught()
        for attempt in attempts[:2]:
            self.cluster.fault("kill-daemon", attempt.node)
        for attempt in attempts[:2]:
            self.wait_for_word(attempt, "NODE_FAIL")
            self.assertFalse(attempt.is_done)
        for attempt in attempts:
            self.sweep.release(attempt)
        self.expect_the_sweep_of_this_machine(ask_workers_to_end=False)
        for attempt in attempts:
            self.assertEqual(self.sweep.outcomes()[attempt.run], ["done"], "who is heard is not replaced")

    def test_HasTwoCopiesOfARunOfWhichTheOldOneIsFirst(self):
        self.submit()
        old, *others = self.sweep.caught()
        self.cluster.fault("freeze", old.node)
        self.wait_for_word(old, "NODE_FAIL")
        for attempt in others:
            self.sweep.release(attempt)
        [new] = self.sweep.caught(1, number=2)
        self.assertEqual(new.run, old.run)
        self.expect_both_to_train(old, new, hold_new=True)
        self.wait_for(lambda: old.is_done, "the old copy has a result")
        self.assertFalse((self.sweep.workspace / "runs" / old.run / "DONE").exists())
        self.sweep.release(new)
        self.cluster.fault("thaw", old.node)
        self.expect_the_sweep_of_this_machine()
        self.assertEqual(self.sweep.outcomes()[old.run], ["stopped", "done"])
        check = self.sweep.second_result_of(old)
        self.assertEqual((check["outcome"], check["attempt"]), ("equal", 1))

    def test_IsPreemptedEverywhereAtOnce(self):
        self.submit()
        attempts = self.sweep.caught()
        for attempt in attempts:
            self.hold_to_the_end(attempt)
            self.cluster.fault("preempt", attempt.node, "5")
        self.expect_the_sweep_after_losing(attempts, "PREEMPTED")

    def test_ReachesItsTimeLimit(self):
        self.submit('time = "3"')
        frozen, *others = self.sweep.caught()
        self.sweep.hold_to_the_end(*self.sweep.processes_of(frozen))
        for attempt in others:
            self.let_stop(attempt)  # by their worker, which knows its time
        self.wait_for_word(frozen, "TIMEOUT")
        self.assertFalse(frozen.is_done)
        self.expect_the_sweep_of_this_machine()
        for attempt in others:
            stopped, done = self.sweep.told()[attempt.run]
            self.assertEqual(sweep.lost_updates(stopped), 0, "it had the time for a checkpoint")
        self.assertEqual(len(self.sweep.told()[frozen.run]), 2)

    def test_ContinuesWithoutSlurmctld(self):
        self.submit()
        killed, *others = self.sweep.caught()
        self.cluster.fault("kill-daemon", configuration.LOGIN)
        for pid in self.sweep.processes_of(killed):
            with contextlib.suppress(ProcessLookupError):  # what its worker has started ends with it
                os.kill(pid, signal.SIGKILL)
        for attempt in others:
            self.sweep.release(attempt)
        self.wait_for(lambda: all(self.sweep.states()[attempt.run] == "done" for attempt in others), "the other runs end")
        self.cluster.fault("start-daemon", configuration.LOGIN)
        # What the killed slurmctld had not saved its successor does not know. It may start the job once more, or know none: then
        # the worker's silence must be long.
        job, patience = self.sweep.job(killed), dict.fromkeys(("FAILED", "NODE_FAIL", "COMPLETED"), sweep.SECONDS)
        patience[""] = sweep.SECONDS + sweep.SILENCE
        seconds = self.wait_for(lambda: patience.get(self.sweep.word_for(job)), f"the job {job} has ended or is forgotten")
        self.assertFalse(killed.is_done)
        self.expect_the_sweep_of_this_machine(seconds=seconds)
        self.assertEqual(len(self.sweep.outcomes()[killed.run]), 2)

    def test_HasAJobThatAStrangerQueuesAgain(self):
        self.submit()
        requeued, *others = self.sweep.caught()
        job = self.sweep.job(requeued)
        self.hold_to_the_end(requeued)
        self.sweep.slurm("scontrol", "update", f"JobId={job}", "Requeue=1")
        self.sweep.slurm("scontrol", "requeue", job)
        self.wait_for(lambda: len(self.sweep.workers_of(job)) == 2, "the job has its second worker")
        self.assertFalse(requeued.is_done)
        for attempt in others:
            self.sweep.release(attempt)
        self.expect_the_sweep_of_this_machine()
        self.assertEqual(len(self.sweep.outcomes()[requeued.run]), 2)

    def test_HasAllItsJobsCancelledByAStranger(self):
        self.submit()
        attempts = self.sweep.caught()
        for attempt in attempts:
            self.hold_to_the_end(attempt)
        self.sweep.slurm("scancel", *map(self.sweep.job, attempts))
        self.expect_the_sweep_after_losing(attempts, "CANCELLED")

    def test_LeavesADrainedNode(self):
        self.submit()
        drained, cancelled, other = self.sweep.caught()
        self.cluster.fault("drain", drained.node)
        self.cluster.fault("drain", cancelled.node)
        self.hold_to_the_end(cancelled)
        self.sweep.slurm("scancel", self.sweep.job(cancelled))
        self.wait_for_word(cancelled, "CANCELLED")
        self.sweep.release(drained)
        self.sweep.release(other)
        self.expect_the_sweep_of_this_machine()
        told = self.sweep.told()
        self.assertEqual([attempt["outcome"] for attempt in told[drained.run]], ["done"], "a drained node ends what it has")
        self.assertNotEqual(told[cancelled.run][1]["host"], cancelled.node)

    def test_ContinuesWhileItsServiceIsStopped(self):
        self.submit()
        attempts = self.sweep.caught()
        self.sweep.tearless("stop", "--wait")
        for attempt in attempts:
            self.sweep.release(attempt)
        self.wait_for(lambda: all(attempt.is_done for attempt in attempts), "the workers end what they have")
        self.assertEqual(self.sweep.services(), [])
        self.sweep.tearless("daemon", "--background")
        self.expect_the_sweep_of_this_machine(ask_workers_to_end=False)
        for attempt in attempts:
            self.assertEqual(self.sweep.outcomes()[attempt.run], ["done"], "the next service takes what it finds")

    def test_IsTakenOverByAnotherMachine(self):
        self.sweep = sweep.Sweep(self.cluster, "taken_over")
        # The index is on a local disk of the machine, which no other machine sees.
        self.sweep.set_variables(TEARLESS_NETWORK_DISKS=self.sweep.workspace, XDG_STATE_HOME="/local/state")
        self.sweep.submit()
        attempts = self.sweep.caught()
        [hanging] = self.sweep.services()
        os.kill(hanging, signal.SIGSTOP)
        self.sweep.machine = "n3"
        refused = self.sweep.tearless("status", check=False)
        self.assertIn("--take-over", refused.stderr)
        self.sweep.tearless("daemon", "--take-over", "--background")
        for attempt in attempts:
            self.sweep.release(attempt)
        self.wait_for(lambda: "done" in self.sweep.states().values(), "a run ends")
        os.kill(hanging, signal.SIGCONT)
        self.wait_for(lambda: not self.cluster.processes(configuration.LOGIN, "tearless"), "the first service ends")
        self.expect_the_sweep_of_this_machine()
        for attempt in attempts:
            self.assertEqual(self.sweep.outcomes()[attempt.run], ["done"], "the other service takes what it finds")

    def test_IsPausedAndCancelledInTheMiddle(self):
        self.submit()
        attempts = self.sweep.caught()
        self.sweep.tearless("pause", "last")
        for attempt in attempts:
            self.let_stop(attempt)
        self.wait_for(lambda: "running" not in self.sweep.states().values(), "all runs stop")
        self.sweep.tearless("resume", "last")
        attempts = self.sweep.caught(3, number=2)
        self.sweep.tearless("cancel", "last")
        for attempt in attempts:
            self.let_stop(attempt)
        self.wait_for(lambda: set(self.sweep.states().values()) == {"cancelled"}, "all runs are cancelled")
        self.sweep.submit()
        self.expect_the_sweep_of_this_machine()
        for attempt in attempts:
            self.assertEqual(self.sweep.outcomes()[attempt.run], ["stopped", "stopped", "done"])
            self.assertEqual(list(map(sweep.lost_updates, self.sweep.told()[attempt.run])), [0, 0, 0])


class ASweepOfWarnedJobs(SweepTest):
    OPTIONS = configuration.Options(cpus=1, warn_preempted=True, grace_time=60, min_job_age=300)

    def test_LosesNoUpdateByAPreemption(self):
        self.submit()
        preempted, *others = self.sweep.caught()
        self.cluster.fault("preempt", preempted.node, "1")
        self.let_stop(preempted)
        self.wait_for_word(preempted, "COMPLETED")
        self.assertFalse(preempted.is_done)
        for attempt in others:
            self.sweep.release(attempt)
        self.expect_the_sweep_of_this_machine()
        stopped, done = self.sweep.told()[preempted.run]
        self.assertEqual((stopped["outcome"], sweep.lost_updates(stopped)), ("stopped", 0))


class ASweepOnADiskThatLagsBehind(SweepTest):
    """What one machine writes the others see up to three seconds later, in another order, and first in part."""

    def test_IsThatOfOneMachineThoughPreempted(self):
        for machine in configuration.MACHINES:
            self.cluster.run(machine, "mkdir", "/local/beliefs")
        self.sweep = sweep.Sweep(self.cluster, "preempted")
        self.sweep.set_variables(LD_PRELOAD=sweep.BIN / "libfake-disk.so", TEARLESS_FAKE_DISK=self.sweep.workspace,
                                 TEARLESS_FAKE_DISK_CACHE="/local/beliefs", TEARLESS_FAKE_DISK_DELAY="3")
        self.sweep.submit()
        killed, stopped, other = self.sweep.caught()
        self.hold_to_the_end(killed)
        self.cluster.fault("preempt", killed.node, "1")
        self.cluster.fault("preempt", stopped.node, "1")
        for attempt in (killed, stopped):
            self.wait_for_word(attempt, "PREEMPTED")
            self.assertFalse(attempt.is_done)
            beliefs = self.cluster.run(attempt.node, "ls", "/local/beliefs").stdout.split()
            self.assertGreater(len(beliefs), 50, "the worker and its program have looked at the disk through the library")
        self.sweep.release(other)
        self.expect_the_sweep_of_this_machine()
        for attempt in (killed, stopped):
            self.assertEqual(len(self.sweep.outcomes()[attempt.run]), 2)


class ASubmission(SweepTest):
    """Of one worker to sbatch, by a service that is killed. Its short sweep is compared, too."""

    OPTIONS = configuration.Options(cpus=6, min_job_age=300)
    FEW = ["--only", "model.norm.kind=layer_norm", "--set", "train.max_epochs=2"]
    AT_ONCE = 40

    def a_sweep(self, name, **variables):
        made = sweep.Sweep(self.cluster, name, workers=1, cpus=1, more='memory = "500MiB"')
        made.set_variables(**variables)
        return made

    def is_known(self, swept):
        return any(json.loads(file.read_text())["state"] == "known" for file in swept.workspace.glob("queue/jobs/*.json"))

    def submit_until_told(self, swept):
        for _ in range(5):
            if swept.submit(*self.FEW, check=False).returncode == 0:
                return
        self.fail(swept.describe())

    def expect_one_job(self, swept, expected, what):
        with self.subTest(what):
            self.expect_results(swept, expected)
            self.assertEqual([len(outcomes) for outcomes in swept.outcomes().values()], [1, 1])
            self.assertEqual(len(swept.jobs_ever()), 1)

    def begin(self, name):
        """A sweep whose daemon is there and counts nothing yet."""
        plan = fault_plan.FaultPlan(self.cluster.shared / f"{name}.faults")
        self.sweep = self.a_sweep(name, TEARLESS_FAULTS=plan.file)
        self.sweep.tearless("daemon", "--background")
        return plan, self.sweep

    def points_to_try(self, expected):
        """A sample of the calls of a service that is not killed: until it writes down that it asks for a worker, and from there until
        it has written that it has one."""
        plan, swept = self.begin("undisturbed")
        plan.kill_service_at(0)
        submitting = swept.start("submit", *swept.SUBMIT, *self.FEW)
        while not any(swept.workspace.glob("queue/jobs/*.json")) and submitting.poll() in (None, 0):
            time.sleep(0.002)
        asked = plan.points
        self.wait_for(lambda: self.is_known(swept), "a worker is submitted")
        known = plan.points
        self.assertEqual(submitting.wait(), 0)
        swept.wait()
        self.expect_one_job(swept, expected, "undisturbed")
        seed = int(os.environ.get("TEARLESS_SEED") or time.time() // 86400)
        draw = random.Random(seed)
        before, after = range(1, asked - 10), range(asked - 10, known + 1)
        if os.environ.get("TEARLESS_CRASH") != "all":
            before, after = (draw.sample(points, min(most, len(points))) for points, most in ((before, 12), (after, 36)))
        print(f"{len(before)} and {len(after)} points of {asked - 11} and {known - asked + 11} (seed {seed})", flush=True)
        return [*before, *after]

    def test_IsMadeOnceWhereverTheServiceIsKilled(self):
        expected = sweep.LocalSweep(scratch() / "few", *self.FEW)
        points, hits = self.points_to_try(expected), 0
        for first in range(0, len(points), self.AT_ONCE):
            tried = []
            for point in points[first:first + self.AT_ONCE]:
                plan, swept = self.begin(f"point{point}")
                plan.kill_service_at(point)
                self.submit_until_told(swept)
                self.wait_for(lambda: self.is_known(swept) or plan.hits, "a worker is submitted")
                tried.append((f"killed at point {point}", plan, swept, swept.start("wait", "last")))  # whose service continues
            for what, plan, swept, waiting in tried:
                self.sweep = swept
                self.wait_for(lambda: waiting.poll() is not None, f"the sweep ends: {what}")
                self.expect_one_job(swept, expected, what)
                hits += plan.hits
                swept.tearless("stop", "--wait")
        self.assertGreater(hits, 0.5 * len(points))

    def test_IsFoundThoughTheServiceIsKilledBeforeItsAnswer(self):
        self.sweep = self.a_sweep("lost_answer", PATH=f"{self.cluster.shared}/bin:{os.environ['PATH']}")
        wrapper = self.cluster.shared / "bin/sbatch"
        wrapper.parent.mkdir()
        wrapper.write_text(SLOW_SBATCH)
        wrapper.chmod(0o755)
        self.submit_until_told(self.sweep)
        made = self.sweep.workspace / "queue/jobs/made"
        self.wait_for(made.exists, "sbatch has made the job")
        self.assertFalse(self.is_known(self.sweep))
        self.assertEqual(self.sweep.kill_service(), 1)
        made.unlink()
        self.sweep.wait()
        self.expect_one_job(self.sweep, sweep.LocalSweep(scratch() / "few2", *self.FEW), "its answer is lost")


if __name__ == "__main__":
    sys.exit(junit_report.run("SlurmSweep", *sys.argv[1:]))
