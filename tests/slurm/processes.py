"""Processes that are not children of this one."""

import os
import pathlib
import select


def start_ticks(pid):
    """Tells a process from a later one with the same pid. None: there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def remember(file, pid):
    partial = file.with_suffix(".part")
    partial.write_text(f"{pid} {start_ticks(pid)}")
    partial.rename(file)


def recall(file):
    """The pid of a process that remember() wrote down, None if it has ended."""
    try:
        pid, ticks = file.read_text().split()
    except FileNotFoundError:
        return None
    return int(pid) if start_ticks(pid) == ticks and is_alive(pid) else None


def wait_for_end(pidfd):
    select.select([pidfd], [], [])
    os.close(pidfd)
