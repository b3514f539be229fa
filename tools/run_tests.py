#!/usr/bin/env python3
"""run_tests.py BUILD [--label LABEL] [ctest arguments]: runs the tests of a build folder. Ends with what was skipped, what failed and why,
and one line, `N passed, N failed, N skipped`. Without a label these are the test programs that have none: the labelled ones take minutes,
and have a target of make each.

Counts single tests, not programs, from the reports that the test programs write; a program that dies without a report is one failure.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml


def shortened(text, first=20, last=40, width=500):
    """The first and last lines of what a test said, and the beginning of each line: GoogleTest prints a whole file on one."""
    lines = [line if len(line) <= width else line[:width] + "…" for line in text.strip().splitlines()]
    if len(lines) <= first + last:
        return lines
    return [*lines[:first], f"[{len(lines) - first - last} lines: see above]", *lines[-last:]]


def main(build, *arguments):
    reports = pathlib.Path(build).resolve() / "test-results"
    reports.mkdir(exist_ok=True)
    for old in reports.glob("*.xml"):
        old.unlink()
    if arguments[:1] == ("--label",):
        chosen, arguments = ["--label-regex", f"^{arguments[1]}$"], arguments[2:]
    else:
        chosen = ["--label-exclude", "."]
    # Most of what the harness' tests wait for is fsync: in memory that takes no time.
    memory = pathlib.Path("/dev/shm")
    if "TMPDIR" not in os.environ and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2 << 30:
        os.environ["TMPDIR"] = str(memory)
    thirds = 3 * os.cpu_count()  # of a core; tests/CMakeLists.txt says how many a program takes
    subprocess.run(["ctest", "--test-dir", build, "--output-on-failure", "--parallel", str(thirds),
                    "--output-junit", reports / "ctest.xml", *chosen, *arguments])

    passed, failed, skipped = 0, [], {}
    for program in xml.parse(reports / "ctest.xml").iter("testcase"):
        name, failures_before = program.get("name"), len(failed)
        try:
            cases = list(xml.parse(reports / f"{name}.xml").iter("testcase"))
        except (OSError, xml.ParseError):
            begun = re.findall(r"\[ RUN +\] (\S+)", program.findtext("system-out") or "")
            failed.append(f"{name} (ended{f' in {begun[-1]}' if begun else ''}, before its last test)")
            continue
        for case in cases:
            test = f"{case.get('classname')}.{case.get('name')}"
            skip = case.find("skipped")
            if failures := case.findall("failure"):
                failed.append("\n    ".join([test, *shortened("\n".join(failure.get("message") for failure in failures))]))
            elif skip is not None:
                # GoogleTest puts file:line before the reason.
                reason = (skip.get("message") or "").strip().splitlines()[-1:] or ["no reason given"]
                skipped.setdefault(reason[0], []).append(test)
            elif case.get("status") == "run":
                passed += 1
        if program.get("status") != "run" and len(failed) == failures_before:
            failed.append(f"{name} (failed after its last test)")  # a sanitizer's complaint at exit, say

    print()
    for reason, names in skipped.items():
        print(f"skipped: {', '.join(names)}: {reason}")
    for name in failed:
        print(f"FAILED: {name}")
    count = sum(len(names) for names in skipped.values())
    print(f"{passed} passed, {len(failed)} failed, {count} skipped", flush=True)
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
