"""A job of the stand-ins of Slurm (stand_in.py): its script as a process, ended as slurmstepd would.

Files in FOLDER/jobs/KEY-RESTART ask it for something: `end` has the state that the job is to be ended with, `preempt` exists if it
is preempted, `signals` has lines `b15` (SIGTERM for the script) or `a15` (for all its processes).
"""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import processes
import stand_in_state

PR_SET_CHILD_SUBREAPER = 36
TICK = 0.05  # seconds


def place(folder, job):
    return folder / "jobs" / f"{job['key']}-{job['restarts']}"


def ask(folder, job, what, text=""):
    """Asks the process of a job for something."""
    with open(place(folder, job) / what, "a") as file:
        file.write(text)


def start(folder, job, config):
    """Starts the process that runs a job's script and ends with it."""
    own = place(folder, job)
    own.mkdir(parents=True)
    job = job | json.loads((folder / "jobs" / f"{job['submission']}.json").read_text())
    script = own / "slurm_script"
    script.write_text(job["script"])
    script.chmod(0o700)
    child = os.fork()
    if child != 0:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if step := os.fork():
            processes.remember(own / "pid", step)
        else:
            null = os.open("/dev/null", os.O_RDWR)
            for fd in range(3):
                os.dup2(null, fd)
            os.closerange(3, 1024)
            Step(folder, job, config).run()
    except BaseException as error:
        (own / "error").write_text(repr(error))
    os._exit(0)


def environment(job):
    identity = {"SLURM_JOB_ID": job["id"], "SLURM_JOBID": job["id"], "SLURM_JOB_NAME": job["name"], "SLURM_JOB_PARTITION": job["partition"],
                "SLURMD_NODENAME": job["node"], "SLURM_JOB_NODELIST": job["node"], "SLURM_NODELIST": job["node"],
                "SLURM_JOB_NUM_NODES": 1, "SLURM_NNODES": 1, "SLURM_CLUSTER_NAME": "stand-in", "SLURM_SUBMIT_DIR": job["submit_dir"],
                "SLURM_SUBMIT_HOST": "login", "SLURM_CPUS_ON_NODE": job["cpus"], "SLURM_JOB_CPUS_PER_NODE": job["cpus"],
                "SLURM_PROCID": 0, "SLURM_LOCALID": 0, "SLURM_NODEID": 0, "SLURM_JOB_USER": "root", "SLURM_JOB_UID": os.getuid()}
    if job["task"] is not None:
        identity |= {"SLURM_ARRAY_JOB_ID": job["array"], "SLURM_ARRAY_TASK_ID": job["task"], "SLURM_ARRAY_TASK_COUNT": len(job["tasks"]),
                     "SLURM_ARRAY_TASK_MIN": min(job["tasks"]), "SLURM_ARRAY_TASK_MAX": max(job["tasks"]), "SLURM_ARRAY_TASK_STEP": 1}
    if job["restarts"]:  # 22.05 does not set it at the first start, and SLURM_JOB_END_TIME never
        identity["SLURM_RESTART_COUNT"] = job["restarts"]
    if job["memory"]:
        identity["SLURM_MEM_PER_NODE"] = job["memory"]
    if job["gpus"]:
        identity["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(job["gpus"])))
    inherited = {name: value for name, value in job["environment"].items() if not name.startswith("SLURM_")}
    return inherited | {name: str(value) for name, value in identity.items()}


def expand(pattern, job):
    """A name of an output file."""
    values = {"j": job["id"], "A": job["array"], "a": job["task"] if job["task"] is not None else 4294967294, "x": job["name"],
              "N": job["node"], "u": "root", "%": "%"}
    return re.sub(r"%(\w|%)", lambda match: str(values.get(match[1], match[0])), pattern)


def descendants():
    """The processes that this one has started, and theirs. What double-forked came back to this one: it is a subreaper."""
    children = {}
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            parent = int(pathlib.Path(f"/proc/{int(entry)}/stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry))
    found, at = [], [os.getpid()]
    while at:
        at = [child for parent in at for child in children.get(parent, [])]
        found += at
    return found


def send(pids, *numbers):
    for pid in pids:
        for number in numbers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


class Step:
    def __init__(self, folder, job, config):
        self.folder, self.job, self.config, self.place = folder, job, config, place(folder, job)
        self.limit = job["start"] + 60 * job["limit"] if job["limit"] else float("inf")
        self.warned = False
        self.preempted = float("inf")  # when its grace time is over
        self.ending = ""  # the state that it is being ended with
        self.kill = float("inf")

    def run(self):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            self.batch = self.start_script()
        except OSError:
            self.end("FAILED", "JobLaunchFailure", 1)
            return
        try:
            while self.batch.poll() is None and not self.is_over():
                self.tick()
                time.sleep(TICK)
        finally:
            self.kill_rest()
        if not self.is_over():
            self.read_requests()
            code = self.batch.returncode
            if self.ending:
                self.end(self.ending, "TimeLimit" if self.ending == "TIMEOUT" else "None", code)
            else:
                self.end("COMPLETED" if code == 0 else "FAILED", "None" if code == 0 else "NonZeroExitCode", code)

    def is_over(self):
        """The test has stopped the stand-ins, or has removed their folder."""
        return (self.folder / "stop").exists() or not self.folder.exists()

    def kill_rest(self):
        while left := descendants():
            send(left, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(TICK)

    def start_script(self):
        job = self.job
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if job["open_mode"] == "append" else os.O_TRUNC)

        def output(pattern):
            return os.open(os.path.join(job["chdir"], expand(pattern, job)), flags, 0o644)

        out = output(job["output"] or ("slurm-%A_%a.out" if job["task"] is not None else "slurm-%j.out"))
        err = output(job["error"]) if job["error"] else out
        return subprocess.Popen([self.place / "slurm_script", *job["arguments"]], cwd=job["chdir"], env=environment(job),
                                stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def read_requests(self):
        """Returns whether the job is to be ended now."""
        with contextlib.suppress(FileNotFoundError):
            lines = (self.place / "signals").read_text().split()
            (self.place / "signals").unlink()
            for line in lines:
                send([self.batch.pid] if line[0] == "b" else descendants(), int(line[1:]))
        if self.preempted == float("inf") and (self.place / "preempt").exists():
            self.preempted = time.time() + self.config["grace_time"]
            if self.config["warn_preempted"]:
                self.warn()
        if not self.ending and (self.place / "end").exists():
            self.ending = (self.place / "end").read_text()
            return True
        return False

    def warn(self):
        if self.job["signal"] and not self.warned:
            send([self.batch.pid] if self.job["signal_batch"] else [], self.job["signal"], signal.SIGCONT)
        self.warned = True

    def tick(self):
        ends, now = self.read_requests(), time.time()
        if not self.ending and now >= min(self.limit, self.preempted):
            self.ending, ends = "PREEMPTED" if now >= self.preempted else "TIMEOUT", True
            with stand_in_state.State(self.folder) as state:
                state.job_of_key(self.job["key"])["state"] = "COMPLETING"
        elif now >= self.limit - self.job["signal_time"]:
            self.warn()
        if ends:
            self.kill = now + self.config["kill_wait"]
            send(descendants(), signal.SIGCONT, signal.SIGTERM)
        if now >= self.kill:
            send(descendants(), signal.SIGKILL)

    def end(self, how, reason, code):
        with stand_in_state.State(self.folder) as state:
            job = state.job_of_key(self.job["key"])
            again = how == "REQUEUE" or how == "PREEMPTED" and job["requeue"]
            if again:
                job |= {"state": "PENDING", "reason": "BeginTime", "node": "", "restarts": job["restarts"] + 1,
                        "begin": time.time() + self.config["requeue_delay"]}
            else:
                job |= {"state": how, "reason": reason, "end": time.time(), "code": code}
            state.schedule()
        begin = time.time() + self.config["requeue_delay"]
        while again and not self.is_over():
            time.sleep(TICK)
            if time.time() > begin:
                with stand_in_state.State(self.folder) as state:
                    state.schedule()
                again = False
