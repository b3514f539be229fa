"""What the benchmarks share: asking a program, the machine's name, tables in Markdown, and files of results."""

import os
import pathlib
import subprocess
import sys


def output_of(command, **options):
    """What a command prints; a RuntimeError with its last words where it fails or does not start."""
    try:
        ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(str(error)) from error
    if ended.returncode:
        said = (ended.stderr.strip() or ended.stdout.strip() or "it said nothing").splitlines()[-1]
        raise RuntimeError(f"exit code {ended.returncode}: {said}")
    return ended.stdout.strip()


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "an unknown processor"


def cores():
    return len(os.sched_getaffinity(0))


def table(head, rows):
    """Lines of Markdown, columns aligned so that it reads as text too."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = ["| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths)) + " |" for row in [head, *rows]]
    return [lines[0], "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|", *lines[1:]]


def numbers(parser, option, text, least):
    """Of an option's text with commas."""
    try:
        found = [int(number) for number in text.split(",")]
        assert min(found) >= least and len(set(found)) == len(found)
    except (ValueError, AssertionError):
        parser.error(f"{option}: wanted are different numbers of at least {least}, with commas between them")
    return found


def write(file, text):
    """Whole or not at all; does nothing without a file."""
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(file.name + ".part")
        part.write_text(text.rstrip("\n") + "\n")
        os.replace(part, file)


def run(name, main):
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(f"{name}: interrupted")
