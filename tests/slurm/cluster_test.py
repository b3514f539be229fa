#!/usr/bin/env python3
"""cluster_test.py [REPORT]: tests of the Slurm cluster that other tests use. REPORT: results as JUnit XML."""

import os
import pathlib
import sys
import tempfile
import time
import unittest

import cluster
import configuration
import processes

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import junit_report  # noqa: E402

# Says where it starts, and lives until it is killed or told to end.
JOB = """#!/bin/bash
log() { echo "$SLURM_JOB_ID $SLURMD_NODENAME ${SLURM_RESTART_COUNT:-0} $1" >> log; }
trap 'log warned; exit 0' USR1
trap 'log TERM' TERM
log start
for i in $(seq 3000); do sleep 0.1 & wait; done
"""


def mounts():
    return pathlib.Path("/proc/self/mountinfo").read_text()


class ACluster(unittest.TestCase):
    def setUp(self):
        if reason := cluster.why_not():
            self.skipTest(reason)
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "cluster"

    def start(self, **options):
        self.cluster = cluster.Cluster(self.folder, configuration.Options(**options))
        self.cluster.__enter__()
        self.addCleanup(self.cluster.__exit__)
        (self.cluster.shared / "job.sh").write_text(JOB)
        (self.cluster.shared / "job.sh").chmod(0o755)

    def on(self, machine, *command):
        return self.cluster.run(machine, *command, cwd=self.cluster.shared).stdout.strip()

    def submit(self, *arguments):
        return self.on("login", "sbatch", "--parsable", "-c2", "--mem=100", "-o", "/dev/null", *arguments, "job.sh")

    def log(self):
        file = self.cluster.shared / "log"
        return file.read_text().splitlines() if file.exists() else []

    def state(self, job):
        return self.on("login", "squeue", "-h", "-t", "all", "-j", job, "-o", "%T")

    def wait_for(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{what}; log: {self.log()}; {self.on('login', 'squeue', '-t', 'all')}")
            time.sleep(0.2)

    def test_HasMachinesOfTheirOwnWithOneSharedFolder(self):
        before = mounts()
        self.start(gpus=True)
        self.assertEqual([self.on(name, "uname", "-n") for name in configuration.MACHINES], configuration.MACHINES)
        self.assertEqual(len({self.on(name, "cat", "/proc/sys/kernel/random/boot_id") for name in configuration.MACHINES}), 4)
        self.on("n1", "sh", "-c", "touch /tmp/here /local/here /dev/shm/here there")
        seen = self.on("n2", "sh", "-c", "ls /local; echo /tmp/here* /dev/shm/here*; echo there*")
        self.assertEqual(seen, "/tmp/here* /dev/shm/here*\nthere")
        self.assertFalse(os.path.exists("/tmp/here") or os.path.exists("/dev/shm/here"))
        self.assertEqual(self.on("login", "sinfo", "-h", "-p", "low", "-N", "-o", "%N %G"), "n1 gpu:a:2\nn2 gpu:a:2\nn3 gpu:b:1")
        self.assertEqual(self.on("login", "srun", "--gres=gpu:b:1", "sh", "-c", "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"), "n3 0")

        self.cluster.fault("hide", "n1")
        self.assertNotIn("there", self.on("n1", "ls", self.cluster.shared))
        self.cluster.fault("show", "n1")
        self.assertIn("there", self.on("n1", "ls", self.cluster.shared))

        other = cluster.Cluster(self.folder.with_name("other"))
        with other:
            self.assertEqual(other.run("n1", "sinfo", "-h", "-p", "low", "-o", "%D %T").stdout, "3 idle\n")
            self.assertEqual(other.run("n1", "ls", "/local").stdout, "")
        self.assertEqual(self.on("n1", "ls", "/local"), "here")
        self.assertEqual(mounts(), before)

    def test_PreemptsWithAWarningAndLosesANodeWhoseJobLivesOn(self):
        self.start(warn_preempted=True, slurmd_timeout=5)
        lost = self.submit("-x", "n3")
        self.wait_for(lambda: self.log(), "the job starts")
        node = self.log()[0].split()[1]
        self.cluster.fault("kill-daemon", node)

        warned = self.submit("-w", "n3", "--signal=B:USR1@5")
        self.wait_for(lambda: f"{warned} n3 0 start" in self.log(), "the second job starts")
        high = self.cluster.fault("preempt", "n3", "1")
        self.wait_for(lambda: f"{warned} n3 0 warned" in self.log(), "the warning")
        self.wait_for(lambda: self.state(high) == "COMPLETED", "the job of the partition high ends")
        self.assertEqual(self.state(warned), "COMPLETED", "Slurm takes exit 0 after a warning for the end of the job")

        other = {"n1": "n2", "n2": "n1"}[node]
        self.wait_for(lambda: f"{lost} {other} 1 start" in self.log(), "the copy starts")
        for name in (node, other):
            self.assertEqual(len(self.cluster.processes(name, "slurm_script")), 1, name)
        self.cluster.fault("start-daemon", node)
        self.wait_for(lambda: not self.cluster.processes(node, "slurm_script"), "slurmd ends the old copy")

        self.cluster.fault("kill-daemon", "login")
        self.assertNotEqual(self.cluster.run("login", "squeue", check=False).returncode, 0)
        self.cluster.fault("start-daemon", "login")
        self.wait_for(lambda: self.state(lost) == "RUNNING", "slurmctld remembers")
        self.cluster.fault("crash", other)
        self.assertEqual(self.cluster.processes(other), {})
        self.cluster.fault("boot", other)
        self.cluster.fault("drain", other)
        self.assertIn("drain", self.on("login", "sinfo", "-h", "-N", "-n", other, "-p", "low", "-o", "%T"))

    def test_LeavesNothingBehind(self):
        self.start()
        self.submit()
        self.wait_for(self.log, "the job starts")
        everything = {pid for name in configuration.MACHINES for pid in self.cluster.processes(name)}
        self.cluster.fault("freeze", "n1")
        cluster.stop(self.folder)
        left = {pid: pathlib.Path(f"/proc/{pid}/cmdline").read_text() for pid in everything if os.path.exists(f"/proc/{pid}")}
        self.assertEqual(left, {})
        self.assertNotIn(str(self.folder), mounts())

    def test_EndsWithTheProcessThatItIsFor(self):
        child = os.fork()
        if child == 0:
            cluster.Cluster(self.folder).__enter__()
            os._exit(0)  # as if killed
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        pids = [self.folder / "machines" / name for name in ("keeper", *configuration.MACHINES)]
        self.assertTrue(all(file.exists() for file in pids))
        deadline = time.monotonic() + 10
        while any(map(processes.recall, pids)):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(junit_report.run("SlurmCluster", *sys.argv[1:]))
