"""What the stand-ins of Slurm (stand_in.py) know in place of slurmctld: FOLDER/config.json and FOLDER/state.json."""

import fcntl
import json
import time

import stand_in_step

CONFIG = {
    "slots": 4,  # jobs that run at once
    "nodes": ["n1", "n2", "n3"],  # names for SLURMD_NODENAME: all are this machine
    "cpus": 2, "memory": 4000,  # of a node; more is refused
    "partitions": {"low": 60, "high": 60},  # MaxTime in minutes, 0: none; the first is the default
    "gres": {"gpu:a": 2, "gpu:b": 1},  # the most that a node has
    "enforce_limits": False,  # EnforcePartLimits
    "max_array_size": 1001, "max_job_count": 10000,
    "min_job_age": 15, "kill_wait": 3, "requeue_delay": 2,
    "warn_preempted": False,  # a job that is preempted gets the signal of its --signal
    "grace_time": 1,
    "full_queue_seconds": 120,  # for which sbatch tries again when max_job_count is reached
}
ENDED = {"COMPLETED": "CD", "FAILED": "F", "CANCELLED": "CA", "TIMEOUT": "TO", "PREEMPTED": "PR"}
SHORT = {"PENDING": "PD", "RUNNING": "R", "COMPLETING": "CG", **ENDED}


def write_json(file, value):
    partial = file.with_name(f"{file.name}.part")
    partial.write_text(json.dumps(value, indent=1))
    partial.rename(file)


def tasks_of(text):
    """The tasks that --array names, and how many of them may run at once (0: all)."""
    listed, _, throttle = text.partition("%")
    tasks = set()
    for part in listed.split(","):
        bounds, _, stride = part.partition(":")
        first, _, last = bounds.partition("-")
        tasks.update(range(int(first), int(last or first) + 1, int(stride or 1)))
    return sorted(tasks), int(throttle or 0)


class State:
    """What slurmctld would know, in FOLDER/state.json; one command at a time changes it."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.lock = open(self.folder / "lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.config = CONFIG | json.loads((self.folder / "config.json").read_text())
        self.values = json.loads((self.folder / "state.json").read_text())
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            write_json(self.folder / "state.json", self.values)
        self.lock.close()

    @property
    def jobs(self):
        return self.values["jobs"]

    def job_of_key(self, key):
        return next(job for job in self.jobs if job["key"] == key)

    def known(self):
        """The jobs that have not been forgotten."""
        oldest = time.time() - self.config["min_job_age"]
        return [job for job in self.jobs if not job["forgotten"] and (job["state"] not in ENDED or job["end"] > oldest)]

    def chosen(self, text):
        """The known jobs that an id names: a job, an array, an element or a list [0-3] of them."""
        number, _, tasks = text.partition("_")
        tasks = tasks_of(tasks.strip("[]"))[0] if tasks else None
        found = [job for job in self.known() if str(job["array"] if job["task"] is not None else job["id"]) == number
                 and (tasks is None or job["task"] in tasks)]
        return found or [job for job in self.known() if tasks is None and str(job["id"]) == number]

    def add(self, job, tasks, job_id=None):
        """Adds a job, or one for each element of its array; returns the id."""
        if job_id is None:
            job_id = self.new_id()
        else:  # one that another job had
            for old in self.jobs:
                old["forgotten"] = old["forgotten"] or job_id in (old["id"], old["array"])
        for task in tasks or [None]:
            self.jobs.append(job | {"id": job_id, "array": job_id, "task": task, "tasks": tasks, "key": self.values["next_key"]})
            self.values["next_key"] += 1
        return job_id

    def new_id(self):
        self.values["next"] += 1
        return self.values["next"] - 1

    def schedule(self):
        """Starts what may start."""
        if (self.folder / "stop").exists():
            return
        for job in self.jobs:
            running = [other for other in self.jobs if other["state"] in ("RUNNING", "COMPLETING")]
            if job["state"] != "PENDING" or job["held"] or job["reason"] == "PartitionTimeLimit":
                continue
            if job["begin"] > time.time():
                job["reason"] = "BeginTime"
            elif job["throttle"] and sum(other["array"] == job["array"] for other in running) >= job["throttle"]:
                job["reason"] = "JobArrayTaskLimit"
            elif len(running) >= self.config["slots"]:
                job["reason"] = "Resources"
            else:
                # An element gets an id of its own when it starts, the last one that of the array.
                if any(other["id"] == other["array"] == job["id"] and other["state"] == "PENDING"
                       for other in self.jobs if other is not job):
                    job["id"] = self.new_id()
                busy = [other["node"] for other in running]
                job |= {"state": "RUNNING", "reason": "None", "node": min(self.config["nodes"], key=busy.count), "start": time.time()}
                stand_in_step.start(self.folder, job, self.config)
