#!/usr/bin/env python3
"""cluster.py start FOLDER [options] | stop FOLDER | exec FOLDER MACHINE -- COMMAND… | FAULT FOLDER …: a Slurm cluster on this machine.

Slurm 22.05 or what Debian has, with the machines login (slurmctld), n1, n2 and n3 (slurmd), each with a host name, boot id,
processes, /tmp, /local, /run and /dev/shm of its own (machines.py). All see this machine's files at the same paths, FOLDER/shared
among them; FOLDER must not be in /run, and what is in /tmp or /dev/shm is seen only if --visible names it. Partitions: low,
the default, whose jobs are requeued when one of `high` needs their cores. No accounting. Needs root; several clusters can run at once.

FOLDER, which must not exist or be empty, is left behind by stop: log/ has the logs of the daemons.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys

import configuration
import faults
import machines
import packages
import processes

HERE = pathlib.Path(__file__).resolve()


def why_not():
    """A sentence why no cluster can be started here; "" if it can."""
    reason = machines.why_not() or packages.why_not()
    return f"a Slurm cluster {reason}" if reason else ""


class Cluster:
    """A cluster in a folder, for tests: `with Cluster(folder, Options(...)) as cluster`. Ends with this process at the latest."""

    def __init__(self, folder, options=configuration.Options(), visible=()):
        self.folder, self.options, self.visible = pathlib.Path(folder).resolve(), options, visible
        self.shared = self.folder / "shared"

    def __enter__(self):
        start(self.folder, self.options, self.visible, os.getpid())
        return self

    def __exit__(self, *_):
        stop(self.folder)

    def command(self, machine, *command):
        """The command that runs another one on a machine, for subprocess."""
        return [sys.executable, str(HERE), "exec", str(self.folder), machine, "--", *map(str, command)]

    def run(self, machine, *command, check=True, **arguments):
        """Runs a command on a machine to its end: a subprocess.CompletedProcess with its text."""
        done = subprocess.run(self.command(machine, *command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **arguments)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))} on {machine} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def fault(self, name, *arguments):
        """What `cluster.py NAME FOLDER ARGUMENT…` does."""
        return faults.FAULTS[name](self.folder, *arguments)

    def processes(self, machine, containing=""):
        """{pid: command line} of the processes of a machine."""
        return {pid: line for pid, line in machines.Machines(self.folder).processes_of(machine).items() if containing in line}


def start(folder, options, visible=(), lives_with=0):
    """Returns when all nodes are idle. The cluster ends with the process `lives_with`; 0: only by stop()."""
    folder = pathlib.Path(folder).resolve()
    if folder.is_relative_to("/run"):
        raise RuntimeError("the folder of a cluster cannot be in /run")
    if folder.exists() and os.listdir(folder):
        raise RuntimeError(f"{folder} is not empty")
    unpacked = packages.fetch(lambda text: print(f"cluster: {text}", file=sys.stderr))
    for name in ("log", "state", "shared"):
        (folder / name).mkdir(parents=True)
    configuration.write(folder / "etc", options)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    up, is_up = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(up)
        keep(folder, unpacked, visible, lives_with, is_up)
    os.close(is_up)
    os.waitpid(child, 0)  # its child is the keeper
    with open(up) as pipe:
        problem = pipe.read()
    if problem != "up":
        stop(folder)
        raise RuntimeError(f"the cluster did not start; {folder}/log says more. {problem}")


def keep(folder, unpacked, visible, lives_with, is_up):
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    try:
        machines.detach(folder / "log/cluster.log", {is_up})

        def when_up():
            for machine in configuration.MACHINES:
                faults.start_daemons(folder, machine)
            faults.wait_until_idle(folder)
            os.write(is_up, b"up")
            os.close(is_up)

        with packages.in_use(unpacked):
            machines.Machines(folder).keep(unpacked, visible, lives_with, when_up)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(is_up, f"{type(error).__name__}: {error}".encode())
        print(f"{type(error).__name__}: {error}", flush=True)
    os._exit(0)  # and the machines end


def stop(folder):
    """Returns when no process of the cluster is left."""
    group = machines.Machines(folder)
    keeper = group.keeper
    waiting = [os.pidfd_open(pid) for pid in map(group.pid, configuration.MACHINES) if pid]
    if keeper:
        os.kill(keeper, signal.SIGTERM)
        waiting.append(os.pidfd_open(keeper))
    for fd in waiting:
        processes.wait_for_end(fd)


def execute(folder, machine, command):
    """Runs a command on a machine in the current folder, or in / where the machine lacks it; returns its exit code."""
    here = os.getcwd()
    machines.Machines(folder).enter(machine)
    with contextlib.suppress(OSError):
        os.chdir(here)
    child = subprocess.Popen(command)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: child.send_signal(number))
    code = child.wait()
    return code if code >= 0 else 128 - code


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    command = commands.add_parser("start", help="start a cluster; returns when its nodes are idle")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--visible", action="append", default=[], metavar="PATH",
                         help="a folder in /tmp or /dev/shm that all machines see")
    command.add_argument("--lives-with", type=int, default=0, metavar="PID", help="the cluster ends with this process")
    for field in dataclasses.fields(configuration.Options):
        name = "--" + field.name.replace("_", "-")
        if field.type in (bool, "bool"):
            command.add_argument(name, action="store_true", help=field.metadata["help"])
        else:
            command.add_argument(name, type=type(field.default), default=field.default, metavar="X",
                                 help=f"{field.metadata['help']} (default: {field.default!r})".replace("%", "%%"))
    commands.add_parser("stop", help="end a cluster and all its processes").add_argument("folder", type=pathlib.Path)
    command = commands.add_parser("exec", help="run a command on a machine")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("machine", choices=configuration.MACHINES)
    command.add_argument("words", nargs="+", metavar="COMMAND")
    command = commands.add_parser("processes", help="list the processes of a machine, with their pids outside")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("machine", choices=configuration.MACHINES)
    commands.add_parser("why-not", help="say why no cluster can be started here, and exit with 1 then")
    for name, function in faults.FAULTS.items():
        command = commands.add_parser(name, help=function.__doc__)
        command.add_argument("folder", type=pathlib.Path)
        command.add_argument("arguments", nargs="*", metavar="ARGUMENT")
    chosen = parser.parse_args()

    if chosen.command == "start":
        options = {field.name: getattr(chosen, field.name) for field in dataclasses.fields(configuration.Options)}
        start(chosen.folder, configuration.Options(**options), chosen.visible, chosen.lives_with)
    elif chosen.command == "stop":
        stop(chosen.folder)
    elif chosen.command == "exec":
        return execute(chosen.folder, chosen.machine, chosen.words)
    elif chosen.command == "processes":
        for pid, line in machines.Machines(chosen.folder).processes_of(chosen.machine).items():
            print(pid, line)
    elif chosen.command == "why-not":
        reason = why_not()
        if reason:
            print(reason)
            return 1
    else:
        text = faults.FAULTS[chosen.command](chosen.folder, *chosen.arguments)
        if text:
            print(text)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:
        sys.exit(f"cluster: error: {error}")
