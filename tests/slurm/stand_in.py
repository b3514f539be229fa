#!/usr/bin/env python3
"""Stand-ins for sbatch, squeue, scontrol, scancel, sacct and sinfo, which misbehave when a test says so.

    stand_in.py install FOLDER [KEY=VALUE…]   makes FOLDER/bin, to be put first in PATH; KEYs are in CONFIG of stand_in_state.py
    stand_in.py preempt FOLDER JOB            ends a running job as if one of another partition needed its node
    stand_in.py stop FOLDER                   ends all jobs

Without a misbehaviour they do what Slurm 22.05.8 without accounting does, on one machine: jobs are processes of this one. Texts and
exit codes are copied from there, but for those marked as not measured. No root needed.

FOLDER/script.json: a list of misbehaviours, which a test writes at any time; an entry {"command": "sbatch", "do": "lose-answer",
"times": 2} concerns the next two calls of sbatch; without "times" only the next; "skip": 3 lets three calls pass before;
"containing": only calls with that text in their arguments. What can be done:

    lose-answer   the command does its work, waits "seconds" (default: until it is killed), and says that the socket timed out
    hang          it does nothing, waits likewise, and says the same
    slow          it waits "seconds", then does its work
    fail          it prints "text", or the text of "error" (see ERRORS), to stderr and ends with "code" (1)
    empty         it prints nothing and ends with "code" (0), its work done
    garbage       it prints "text" or bytes that are no text, and ends with "code" (0)
    cut           it prints the first half of what it should
    stale         it prints what it printed in its last call with the same arguments
    reuse-id      sbatch gives the id "id" (default: 1), even though another job had it
    forget        from now on the jobs "ids" (default: all) are unknown, though their processes run

FOLDER/calls.jsonl: each call as {"time", "command", "arguments", "misbehaviour"}. FOLDER/jobs/ID-RESTART: script and process of a job.
"""

import datetime
import getopt
import itertools
import json
import os
import pathlib
import re
import shlex
import signal
import sys
import time

import processes
import stand_in_state
import stand_in_step

NAMES = ["sbatch", "squeue", "scontrol", "scancel", "sacct", "sinfo"]
TIMED_OUT = "Socket timed out on send/recv operation"
ERRORS = {  # of sbatch
    "queue-full": "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\n"
                  "sbatch: error: Batch job submission failed: Resource temporarily unavailable",
    # Not measured: needs accounting. From the sources of 22.05.
    "submit-limit": "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy "
                    "(job submit limit, user's size and/or time limits)",
    "no-account": "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",  # not measured
    "no-partition": "sbatch: error: invalid partition specified: nosuch\n"
                    "sbatch: error: Batch job submission failed: Invalid partition name specified",
    "no-gres": "sbatch: error: Batch job submission failed: Requested node configuration is not available",
    "no-controller": "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
    "squeue-no-controller": "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
}


class Refused(Exception):
    """The text for stderr and the exit code of a command."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.text, self.code = text, code


# --- texts --------------------------------------------------------------------------------------------------------------


def moment(seconds):
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%dT%H:%M:%S") if seconds else "N/A"


def duration(seconds, short=False):
    hours, minutes, seconds = int(seconds) // 3600, int(seconds) // 60 % 60, int(seconds) % 60
    if hours >= 24:
        return f"{hours // 24}-{hours % 24:02}:{minutes:02}:{seconds:02}"
    return f"{hours}:{minutes:02}:{seconds:02}" if hours or not short else f"{minutes}:{seconds:02}"


def minutes_of(text):
    """Of a time limit: minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]."""
    if text.upper() in ("INFINITE", "UNLIMITED"):
        return 0
    days, dash, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if dash:
        hours, minutes, seconds = (parts + [0, 0])[:3]
    elif len(parts) == 3:
        hours, minutes, seconds = parts
    else:
        hours, (minutes, seconds) = 0, (parts + [0])[:2]
    return (int(days or 0) * 24 + hours) * 60 + minutes + (seconds + 59) // 60


def mebibytes(text):
    number, unit = re.fullmatch(r"(\d+)([KMGT]?)B?", text.upper()).groups()
    return int(number) * {"K": 1, "M": 1024, "": 1024, "G": 1 << 20, "T": 1 << 30}[unit] // 1024


def ranges(tasks):
    """[0, 1, 2, 5] -> 0-2,5"""
    groups = [list(group) for _, group in itertools.groupby(sorted(tasks), lambda task, count=itertools.count(): task - next(count))]
    return ",".join(f"{group[0]}-{group[-1]}" if len(group) > 1 else str(group[0]) for group in groups)


def filled(form, fields):
    """A format of squeue or sinfo, %i or %.18i, with its fields."""
    def field(match):
        right, width, letter = match.groups()
        text = str(fields[letter])
        return text if not width else text[:int(width)].rjust(int(width)) if right else text[:int(width)].ljust(int(width))

    return re.sub(r"%(\.?)(\d*)(\w)", field, form)


# --- the commands: each returns what it prints ---------------------------------------------------------------------------

SBATCH = {  # long option: short one, whether it has a value
    "parsable": ("", False), "test-only": ("", False), "quiet": ("Q", False), "requeue": ("", False), "no-requeue": ("", False),
    "exclusive": ("", False), "hold": ("H", False), "partition": ("p", True), "account": ("A", True), "qos": ("q", True),
    "time": ("t", True), "cpus-per-task": ("c", True), "mem": ("", True), "gres": ("", True), "job-name": ("J", True),
    "output": ("o", True), "error": ("e", True),
    "array": ("a", True), "comment": ("", True), "signal": ("", True), "open-mode": ("", True), "export": ("", True), "chdir": ("D", True),
    "nodelist": ("w", True), "exclude": ("x", True), "nodes": ("N", True), "ntasks": ("n", True), "constraint": ("C", True),
    "wrap": ("", True), "dependency": ("d", True), "begin": ("b", True), "reservation": ("", True)}


def options_of(name, arguments, table):
    """{long option: value or True} and the rest."""
    short = "".join(letter + (":" if valued else "") for letter, valued in table.values() if letter)
    try:
        found, rest = getopt.getopt(arguments, short, [option + ("=" if valued else "") for option, (_, valued) in table.items()])
    except getopt.GetoptError as error:
        option = f"option '--{error.opt}'" if len(error.opt) > 1 else f"option -- '{error.opt}'"
        raise Refused(f"{name}: unrecognized {option}\nTry \"{name} --help\" for more information",
                      255 if name == "sbatch" else 1) from None
    long_of = {f"-{letter}": option for option, (letter, _) in table.items() if letter}
    return {long_of.get(option, option[2:]): value or True for option, value in found}, rest


def sbatch(state, arguments, job_id=None):
    options, rest = options_of("sbatch", arguments, SBATCH)
    if "wrap" in options:
        script, name, rest = f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{options['wrap']}\n", "wrap", []
    elif rest:
        if not os.path.exists(rest[0]):
            raise Refused(f"sbatch: error: Unable to open file {rest[0]}")
        script, name = pathlib.Path(rest[0]).read_text(), os.path.basename(rest[0])
    else:
        script, name = sys.stdin.read(), "sbatch"
    if not script.startswith("#!"):
        raise Refused("sbatch: error: This does not look like a batch script.  The first\nsbatch: error: line must start with #! "
                      "followed by the path to an interpreter.\nsbatch: error: For instance: #!/bin/sh")
    for line in script.splitlines():
        if line.startswith("#SBATCH "):
            options = options_of("sbatch", shlex.split(line[len("#SBATCH "):], comments=True), SBATCH)[0] | options
        elif line and not line.startswith("#"):
            break
    warning, warning_time, warns_batch = signal_of(options.get("signal", ""))

    partitions, test = state.config["partitions"], "test-only" in options
    partition = options.get("partition", next(iter(partitions)))
    failure = "allocation failure: " if test else "sbatch: error: Batch job submission failed: "
    if partition not in partitions:
        raise Refused(f"sbatch: error: invalid partition specified: {partition}\n{failure}Invalid partition name specified")
    unavailable = Refused(f"{failure}Requested node configuration is not available")
    gpus = 0
    for gres in options.get("gres", "").split(",") if "gres" in options else []:
        kind, _, number = gres.rpartition(":") if gres.rpartition(":")[2].isdigit() else (gres, "", "1")
        if kind.split(":")[0] not in {known.split(":")[0] for known in state.config["gres"]}:
            raise Refused("sbatch: error: Invalid generic resource (gres) specification")
        gpus = int(number)
        if all(gpus > most for known, most in state.config["gres"].items() if f"{known}:".startswith(f"{kind}:")):
            raise unavailable
    cpus, memory = int(options.get("cpus-per-task", 1)), mebibytes(options.get("mem", "0"))
    if cpus > state.config["cpus"] or memory > state.config["memory"]:
        raise unavailable
    tasks, throttle = stand_in_state.tasks_of(options["array"]) if "array" in options else ([], 0)
    if tasks and tasks[-1] >= state.config["max_array_size"]:
        raise Refused(f"{failure}Invalid job array specification")
    limit = minutes_of(options["time"]) if "time" in options else partitions[partition]
    too_long = partitions[partition] and not 0 < limit <= partitions[partition]
    if too_long and state.config["enforce_limits"]:
        raise Refused(f"{failure}Requested time limit is invalid (missing or exceeds some limit)")
    if test:
        print(f"sbatch: Job {state.new_id()} to start at {moment(time.time())} using {cpus} processors on nodes {state.config['nodes'][0]} "
              f"in partition {partition}", file=sys.stderr)
        return ""
    if len(state.known()) + max(1, len(tasks)) >= state.config["max_job_count"]:
        raise QueueIsFull
    # Elements of an array share what is large.
    submission = state.values["next_key"]
    stand_in_state.write_json(state.folder / "jobs" / f"{submission}.json", {
        "script": script, "arguments": rest[1:], "environment": exported(options.get("export", "ALL"))})
    job_id = state.add({
        "name": options.get("job-name", name), "partition": partition, "limit": limit, "cpus": cpus, "memory": memory, "gpus": gpus,
        "comment": options.get("comment", "(null)"), "output": options.get("output", ""), "error": options.get("error", ""),
        "open_mode": options.get("open-mode", ""), "signal": warning, "signal_time": warning_time, "signal_batch": warns_batch,
        "requeue": "no-requeue" not in options, "throttle": throttle, "submission": submission, "submit_dir": os.getcwd(),
        "chdir": os.path.abspath(options.get("chdir", ".")),
        "state": "PENDING", "reason": "PartitionTimeLimit" if too_long else "None", "held": "hold" in options, "node": "",
        "submit": time.time(), "begin": 0, "start": 0, "end": 0, "code": 0, "restarts": 0, "forgotten": False}, tasks, job_id)
    state.schedule()
    return f"{job_id}\n" if "parsable" in options else "" if "quiet" in options else f"Submitted batch job {job_id}\n"


def signal_of(text):
    """[B:]TERM[@SECONDS] -> its number, SECONDS (60), whether for the script."""
    if not text:
        return 0, 0, False
    batch, rest = text.startswith("B:"), text.removeprefix("B:")
    name, _, seconds = rest.partition("@")
    number = int(name) if name.isdigit() else getattr(signal, f"SIG{name.removeprefix('SIG')}", None)
    if number is None:
        raise Refused("sbatch: error: Invalid --signal specification", 255)
    return int(number), int(seconds or 60), batch


def exported(text):
    """What --export lets through, and sets."""
    environment = dict(os.environ) if "ALL" in text.split(",") else {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    for part in text.split(","):
        name, is_set, value = part.partition("=")
        if is_set:
            environment[name] = value
        elif part in os.environ:
            environment[part] = os.environ[part]
    return environment


SQUEUE = {"noheader": ("h", False), "array": ("r", False), "me": ("", False), "format": ("o", True), "jobs": ("j", True),
          "name": ("n", True), "user": ("u", True), "states": ("t", True), "partition": ("p", True), "sort": ("S", True), "all": ("a", False)}


def fields(job):
    """Of squeue's formats."""
    short, now = stand_in_state.SHORT[job["state"]], time.time()
    used = (job["end"] or now) - job["start"] if job["start"] else 0
    return {"i": f"{job['array']}_{job['task']}" if job["task"] is not None else job["id"], "A": job["id"], "F": job["array"],
            "K": job["task"] if job["task"] is not None else "N/A", "T": job["state"], "t": short, "r": job["reason"], "N": job["node"],
            "k": job["comment"], "j": job["name"], "P": job["partition"], "u": "root", "M": duration(used, short=True), "D": 1,
            "C": job["cpus"], "l": duration(60 * job["limit"], short=True) if job["limit"] else "UNLIMITED",
            "S": moment(job["start"] or job["begin"]),
            "L": duration(60 * job["limit"] - used, short=True), "V": moment(job["submit"]),
            "e": moment(job["end"] or job["start"] and job["start"] + 60 * job["limit"]), "R": job["node"] or f"({job['reason']})"}


def is_waiting_element(job):
    """One of an array that has never started: it has no id of its own."""
    return job["task"] is not None and job["state"] == "PENDING" and job["id"] == job["array"] and not job["restarts"]


def waiting(jobs, array):
    return ranges(job["task"] for job in jobs if job["array"] == array and is_waiting_element(job))


def squeue(state, arguments):
    options, _ = options_of("squeue", arguments, SQUEUE)
    state.schedule()
    jobs = state.known()
    if "jobs" in options:
        wanted = options["jobs"].split(",")
        jobs = [job for text in wanted for job in state.chosen(text)]
        if not jobs and len(wanted) == 1:  # of several unknown ones it says nothing
            raise Refused("slurm_load_jobs error: Invalid job id specified")
    shown = {name.strip().upper() for name in options.get("states", "PENDING,RUNNING,COMPLETING").split(",")}
    jobs = [job for job in jobs if "ALL" in shown or {job["state"], stand_in_state.SHORT[job["state"]]} & shown]
    for option, key in [("name", "name"), ("partition", "partition")]:
        if option in options:
            jobs = [job for job in jobs if job[key] in options[option].split(",")]
    form = options.get("format", "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R")
    titles = dict(zip("iPjutMDRATrNkFKlSLVeC", (
        "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON) JOBID STATE REASON NODELIST COMMENT ARRAY_JOB_ID ARRAY_TASK_ID "
        "TIME_LIMIT START_TIME TIME_LEFT SUBMIT_TIME END_TIME CPUS").split()))
    lines = [] if "noheader" in options else [filled(form, titles)]
    jobs.sort(key=lambda job: (job["state"] in ("RUNNING", "COMPLETING"), job["state"] != "PENDING", job["array"]))
    together = set()
    for job in jobs:
        shown = fields(job)
        if is_waiting_element(job) and "array" not in options:
            if job["array"] in together:
                continue
            together.add(job["array"])
            tasks = waiting(jobs, job["array"]) + (f"%{job['throttle']}" if job["throttle"] else "")
            shown |= {"K": tasks, "i": f"{job['array']}_[{tasks}]"}
        lines.append(filled(form, shown))
    return "".join(f"{line}\n" for line in lines)


SINFO = {"noheader": ("h", False), "format": ("o", True), "partition": ("p", True), "Node": ("N", False)}


def sinfo(state, arguments):
    options, _ = options_of("sinfo", arguments, SINFO)
    form = options.get("format", "%9P %.5a %.10l %.6D %.6T %N")
    titles = dict(zip("PalDTNGcmE", "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST GRES CPUS MEMORY REASON".split()))
    lines = [] if "noheader" in options else [filled(form, titles)]
    nodes, gres = state.config["nodes"], ",".join(f"{kind}:{number}" for kind, number in state.config["gres"].items())
    for index, (name, limit) in enumerate(state.config["partitions"].items()):
        if name in options.get("partition", name).split(","):
            for node in nodes if "Node" in options else [",".join(nodes)]:
                lines.append(filled(form, {
                    "P": name + ("" if index else "*"), "a": "up", "l": duration(60 * limit) if limit else "infinite",
                    "D": node.count(",") + 1, "T": "idle", "N": node, "G": gres or "(null)", "c": state.config["cpus"],
                    "m": state.config["memory"], "E": "none"}))
    return "".join(f"{line}\n" for line in lines)


def scancel(state, arguments):
    options, rest = options_of("scancel", arguments, {
        "batch": ("b", False), "full": ("f", False), "quiet": ("Q", False), "me": ("", False), "signal": ("s", True), "name": ("n", True),
        "user": ("u", True), "state": ("t", True), "partition": ("p", True)})
    jobs = [job for text in rest for job in state.chosen(text)] if rest else state.known() if options else []
    jobs = [job for job in jobs if options.get("name", job["name"]) == job["name"]]
    if "state" in options:
        jobs = [job for job in jobs if options["state"].upper() in (job["state"], stand_in_state.SHORT[job["state"]])]
    for job in jobs:
        if "signal" in options:
            if job["state"] == "RUNNING" and {"batch", "full"} & set(options):  # without them only for steps, of which a script has none
                number = signal_of(options["signal"])[0]
                stand_in_step.ask(state.folder, job, "signals", f"{'b' if 'batch' in options else 'a'}{number}\n")
        elif job["state"] == "PENDING":
            # One element of an array that has not started leaves no trace.
            job |= {"state": "CANCELLED", "end": time.time(), "forgotten": is_waiting_element(job) and any("_" in text for text in rest)}
        else:
            finish(state, job, "CANCELLED")
    state.schedule()
    return ""


def finish(state, job, how):
    if job["state"] == "RUNNING":
        job["state"] = "COMPLETING"
        stand_in_step.ask(state.folder, job, "end", how)


def sacct(state, arguments):
    raise Refused("Slurm accounting storage is disabled")


def scontrol(state, arguments):
    one_line = "-o" in arguments or "--oneliner" in arguments
    words = [word for word in arguments if word not in ("-o", "--oneliner")]
    if words[:1] == ["ping"]:
        return "Slurmctld(primary) at login is UP\n"
    if words[:1] == ["requeue"] and len(words) == 2:
        return requeue(state, words[1])
    if words[:1] in (["hold"], ["release"]) and len(words) == 2:
        for job in state.chosen(words[1]):
            job |= {"held": words[0] == "hold", "reason": "JobHeldUser" if words[0] == "hold" else "None"}
        state.schedule()
        return ""
    if words[:2] == ["show", "job"]:
        jobs = state.chosen(words[2]) if len(words) > 2 else state.known()
        if not jobs:
            raise Refused("slurm_load_jobs error: Invalid job id specified")
        return "".join(f"{(' ' if one_line else chr(10) + '   ').join(details(job))}\n{'' if one_line else chr(10)}" for job in jobs)
    raise Refused(f"invalid keyword: {' '.join(words)}")


def requeue(state, text):
    jobs = state.chosen(text)  # of an array's id all its elements, even where one of these has that id, too
    if not jobs:
        raise Refused(f"Invalid job id specified for job {text}")
    for job in jobs:
        if is_waiting_element(job):
            raise Refused(f"{job['array']}_{waiting(state.known(), job['array'])}: Job is pending execution")
        if job["state"] == "PENDING":
            raise Refused(f"Job is pending execution for job {text}")
        if not job["requeue"]:
            raise Refused(f"Requested operation is presently disabled for job {text}")
        if job["state"] in stand_in_state.ENDED:
            job |= {"state": "PENDING", "reason": "BeginTime", "node": "", "restarts": job["restarts"] + 1, "end": 0,
                    "begin": time.time() + state.config["requeue_delay"]}
        finish(state, job, "REQUEUE")
    state.schedule()
    return ""


def details(job):
    element = [f"ArrayJobId={job['array']} ArrayTaskId={job['task']}"] if job["task"] is not None else []
    return [" ".join([f"JobId={job['id']}", *element, f"JobName={job['name']}"]), "UserId=root(0) GroupId=root(0) MCS_label=N/A",
            f"JobState={job['state']} Reason={job['reason']} Dependency=(null)",
            f"Requeue={int(job['requeue'])} Restarts={job['restarts']} BatchFlag=1 Reboot=0 "
            f"ExitCode={max(job['code'], 0)}:{max(-job['code'], 0)}",
            f"SubmitTime={moment(job['submit'])} EligibleTime={moment(job['begin'] or job['submit'])}",
            f"StartTime={moment(job['start'])} EndTime={moment(job['end'])} Deadline=N/A",
            f"Partition={job['partition']} AllocNode:Sid=login:0", f"NodeList={job['node'] or '(null)'}", f"WorkDir={job['chdir']}",
            f"Comment={job['comment']} "]


# --- misbehaviour -------------------------------------------------------------------------------------------------------


class QueueIsFull(Exception):
    pass


def misbehaviour(folder, command, arguments):
    """The entry of script.json that concerns this call, {} if none does; counts it."""
    file = folder / "script.json"
    if not file.exists():
        return {}
    entries = json.loads(file.read_text())
    for entry in entries:
        if entry["command"] != command or entry.get("containing", "") not in " ".join(arguments) or entry.setdefault("times", 1) <= 0:
            continue
        if entry.get("skip", 0) > 0:
            entry["skip"] -= 1
            chosen = {}
        else:
            entry["times"] -= 1
            chosen = entry
        stand_in_state.write_json(file, entries)
        return chosen
    return {}


def timed_out(command, arguments):
    """What a command says when slurmctld does not answer for MessageTimeout."""
    if command == "scontrol" and arguments[:1] == ["requeue"]:
        return Refused(f"Unexpected message received for job {arguments[-1]}")
    if command == "scancel":
        return Refused(f"scancel: error: Kill job error on job id {arguments[-1]}: {TIMED_OUT}", 140)
    words = {"sbatch": "allocation failure" if "--test-only" in arguments else "sbatch: error: Batch job submission failed",
             "sinfo": "slurm_load_partitions"}
    return Refused(f"{words.get(command, 'slurm_load_jobs error')}: {TIMED_OUT}")


def act(folder, command, arguments):
    """Does what a command of Slurm does, or what script.json wants; returns its exit code."""
    with stand_in_state.State(folder) as state:
        wrong = misbehaviour(folder, command, arguments)
        with open(folder / "calls.jsonl", "a") as calls:
            call = {"time": time.time(), "command": command, "arguments": arguments, "misbehaviour": wrong.get("do")}
            calls.write(json.dumps(call) + "\n")
    kind, seconds = wrong.get("do", ""), wrong.get("seconds")

    def wait():
        time.sleep(10**6 if seconds is None else seconds)

    if kind == "hang":
        wait()
        raise timed_out(command, arguments)
    if kind == "slow":
        wait()
    if kind == "fail":
        raise Refused(wrong.get("text") or ERRORS[wrong["error"]], wrong.get("code", 1))
    if kind == "garbage":
        text = wrong.get("text")
        sys.stdout.buffer.write(text.encode() if text is not None else b"\xff\x00\x1b[2J<html>502|||\n")
        return wrong.get("code", 0)
    deadline = None
    while True:
        try:
            with stand_in_state.State(folder) as state:
                if kind == "forget":
                    for job in state.jobs:
                        job["forgotten"] = job["forgotten"] or not wrong.get("ids") or bool({job["array"], job["id"]} & set(wrong["ids"]))
                more = (wrong.get("id", 1),) if kind == "reuse-id" else ()
                output = COMMANDS[command](state, arguments, *more)
                last = state.values["last"]
                key = " ".join([command, *arguments])
                printed, last[key] = last.get(key, output) if kind == "stale" else output, output
            break
        except QueueIsFull:
            if deadline is None:
                deadline = time.monotonic() + state.config["full_queue_seconds"]
                print(ERRORS["queue-full"].splitlines()[0], file=sys.stderr, flush=True)
            if time.monotonic() >= deadline:
                raise Refused(ERRORS["queue-full"].splitlines()[1]) from None
            time.sleep(0.2)
    if kind == "lose-answer":
        wait()
        raise timed_out(command, arguments)
    if kind == "empty":
        return wrong.get("code", 0)
    sys.stdout.write(printed[:len(printed) // 2] if kind == "cut" else printed)
    return 0


COMMANDS = {name: globals()[name] for name in NAMES}


def install(folder, **config):
    """Makes FOLDER/bin. `config`: values in place of those of CONFIG. Returns that folder."""
    folder = pathlib.Path(folder).resolve()
    (folder / "bin").mkdir(parents=True)
    for name in NAMES:
        program = folder / "bin" / name
        # Not `env python3`: a test may call it with a PATH of one folder.
        program.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -S -E {shlex.quote(str(pathlib.Path(__file__).resolve()))} "
                           f"act {shlex.quote(str(folder))} {name} \"$@\"\n")
        program.chmod(0o755)
    stand_in_state.write_json(folder / "config.json", config)
    stand_in_state.write_json(folder / "state.json", {"next": 1, "next_key": 1, "jobs": [], "last": {}})
    (folder / "jobs").mkdir()
    return folder / "bin"


def preempt(folder, job_id):
    with stand_in_state.State(pathlib.Path(folder)) as state:
        for job in state.chosen(job_id):
            if job["state"] == "RUNNING":
                stand_in_step.ask(state.folder, job, "preempt")


def stop(folder):
    """Ends all jobs, and returns when none of their processes is left."""
    folder = pathlib.Path(folder)
    with stand_in_state.State(folder):
        (folder / "stop").touch()  # no other job starts
    while any(processes.recall(file) for file in folder.glob("jobs/*/pid")):
        time.sleep(stand_in_step.TICK)


def main(what="", *arguments):
    if what == "act":
        sys.exit(act(pathlib.Path(arguments[0]), arguments[1], list(arguments[2:])))
    elif what == "install" and arguments:
        config = {}
        for word in arguments[1:]:
            name, _, value = word.partition("=")
            if name not in stand_in_state.CONFIG:
                sys.exit(f"stand_in: error: no {name} among {', '.join(stand_in_state.CONFIG)}")
            config[name] = json.loads(value)
        print(install(arguments[0], **config))
    elif what == "preempt" and len(arguments) == 2:
        preempt(*arguments)
    elif what == "stop" and len(arguments) == 1:
        stop(*arguments)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Refused as refused:
        print(refused.text, file=sys.stderr)
        sys.exit(refused.code)
