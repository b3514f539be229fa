"""What goes wrong with the machines of a cluster, and how it is repaired: each a command of cluster.py.

FAULTS[name](folder, argument…) does it and returns what the command prints, or None.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import configuration
import kernel
import machines
import processes

DAEMONS = {machine: "slurmctld" if machine == configuration.LOGIN else "slurmd" for machine in configuration.MACHINES}
# Job processes inherit what the daemon has: nothing of the test's environment but this.
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": os.environ.get("HOME", "/"),
               "LC_ALL": "C.UTF-8"}
SECONDS = 30  # until what should take a moment has failed


def in_child(action):
    """Calls `action`, which enters namespaces, in a process of its own; RuntimeError with what it raised."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            action()
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        problem = pipe.read()
    os.waitpid(child, 0)
    if problem:
        raise RuntimeError(problem)


def on_machine(folder, machine, action):
    def enter_first():
        machines.Machines(folder).enter(machine)
        action()

    in_child(enter_first)


def slurm(folder, *command, machine=configuration.LOGIN):
    """Runs a command of Slurm on a machine and returns what it prints."""
    done = subprocess.run([sys.executable, str(pathlib.Path(__file__).with_name("cluster.py")), "exec", folder, machine, "--", *command],
                          cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}")
    return done.stdout.strip()


def run_daemon(folder, machine, *command):
    def action():
        done = subprocess.run(command, env=ENVIRONMENT, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, start_new_session=True)
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} on {machine}: {done.stderr}")

    on_machine(folder, machine, action)


def start_daemons(folder, machine):
    run = configuration.RUN
    run_daemon(folder, machine, "sh", "-c", "mkdir -p /run/munge && "
               f"munged --force --key-file={run}/munge.key --socket=/run/munge/munge.socket.2 --seed-file=/run/munge/seed "
               f"--pid-file=/run/munge/pid --log-file={run}/log/munged-{machine}.log 2>/dev/null")
    run_daemon(folder, machine, DAEMONS[machine])


def wait_until(condition, what):
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} for {SECONDS} s")
        time.sleep(0.1)


def states(folder):
    """{node: state} as slurmctld sees them; {} while it does not answer."""
    with contextlib.suppress(RuntimeError):
        return dict(line.split() for line in slurm(folder, "sinfo", "-h", "-N", "-p", "low", "-o", "%N %T").splitlines())
    return {}


def wait_until_idle(folder):
    wait_until(lambda: list(states(folder).values()) == ["idle"] * len(configuration.NODES), "nodes are not idle")


def signal_all(folder, machine, number, name=""):
    """Sends a signal to the machine's processes of that name."""
    sent = 0
    for pid in machines.Machines(folder).processes_of(machine):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            if not name or pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == name:
                os.kill(pid, number)
                sent += 1
    return sent


def kill_daemon(folder, machine):
    """MACHINE: kill -9 of its slurmd or slurmctld; job processes of a node live on"""
    if not signal_all(folder, machine, signal.SIGKILL, DAEMONS[machine]):
        raise RuntimeError(f"no {DAEMONS[machine]} runs on {machine}")


def start_daemon(folder, machine):
    """MACHINE: start its slurmd or slurmctld again after kill-daemon"""
    run_daemon(folder, machine, DAEMONS[machine])


def freeze_daemon(folder, machine):
    """MACHINE: stop its slurmd or slurmctld with SIGSTOP; what sbatch asks for meanwhile times out, but is done after thaw"""
    signal_all(folder, machine, signal.SIGSTOP, DAEMONS[machine])


def crash(folder, machine):
    """MACHINE: kill all its processes at once, as a power cut does"""
    pid = machines.Machines(folder).pid(machine)
    if pid is None:
        raise RuntimeError(f"{machine} does not run")
    end = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    processes.wait_for_end(end)


def boot(folder, machine):
    """MACHINE: start it again after crash, with empty /tmp, /local and /run"""
    group = machines.Machines(folder)

    def action():
        group.enter()
        group.boot(machine)

    in_child(action)
    start_daemons(folder, machine)


def drain(folder, node):
    """NODE: it gets no more jobs; those that run there do so to their end"""
    slurm(folder, "scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")


def resume(folder, node):
    """NODE: it gets jobs again after drain"""
    slurm(folder, "scontrol", "update", f"NodeName={node}", "State=RESUME")


def preempt(folder, node, seconds="5"):
    """NODE [SECONDS]: submit a job of the partition high that needs the whole node for so long; prints its id"""
    return slurm(folder, "sbatch", "--parsable", "-p", "high", "-w", node, "--exclusive", "--mem=1", "-J", "preempting", "-o", "/dev/null",
                 "--wrap", f"exec sleep {seconds}")


def freeze(folder, machine):
    """MACHINE: stop all its processes with SIGSTOP; none is told, and its connections stay open"""
    before = None
    while before != (before := set(machines.Machines(folder).processes_of(machine))):  # what was forked meanwhile
        signal_all(folder, machine, signal.SIGSTOP)


def thaw(folder, machine):
    """MACHINE: its processes continue after freeze or freeze-daemon"""
    signal_all(folder, machine, signal.SIGCONT)


def hide(folder, machine):
    """MACHINE: it sees an empty folder in place of the shared one; what is open there stays so"""
    shared = pathlib.Path(folder).resolve() / "shared"
    on_machine(folder, machine, lambda: kernel.mount("tmpfs", shared, "tmpfs", kernel.MS_RDONLY, "mode=755"))


def show(folder, machine):
    """MACHINE: it sees the shared folder again after hide"""
    shared = pathlib.Path(folder).resolve() / "shared"
    on_machine(folder, machine, lambda: kernel.unmount(shared))


FAULTS = {function.__name__.replace("_", "-"): function
          for function in (kill_daemon, start_daemon, freeze_daemon, crash, boot, drain, resume, preempt, freeze, thaw, hide, show)}
