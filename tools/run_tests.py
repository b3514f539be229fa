#!/usr/bin/env python3
"""run_tests.py BUILD [ctest arguments]: runs the tests of a build folder and ends with one line, `N passed, N failed, N skipped`.

Counts single tests, not programs, from the reports that the test programs write; a program that dies without a report is one failure.
"""

import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml


def selected_programs(build, arguments):
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *arguments],
                             check=True, capture_output=True, text=True).stdout
    return [test["name"] for test in json.loads(listing)["tests"]]


def main(build, *arguments):
    reports = pathlib.Path(build) / "test-results"
    reports.mkdir(exist_ok=True)
    for old in reports.glob("*.xml"):
        old.unlink()
    programs = selected_programs(build, arguments)
    status = subprocess.run(["ctest", "--test-dir", build, "--output-on-failure", "--parallel", str(os.cpu_count()),
                             *arguments]).returncode

    passed, failed, skipped = 0, [], {}
    for program in programs:
        try:
            cases = list(xml.parse(reports / f"{program}.xml").iter("testcase"))
        except (OSError, xml.ParseError):
            failed.append(f"{program} (ended before its last test)")
            continue
        for case in cases:
            name = f"{case.get('classname')}.{case.get('name')}"
            skip = case.find("skipped")
            if case.find("failure") is not None:
                failed.append(name)
            elif skip is not None:
                # GoogleTest puts file:line before the reason.
                reason = (skip.get("message") or "").strip().splitlines()[-1:] or ["no reason given"]
                skipped.setdefault(reason[0], []).append(name)
            elif case.get("status") == "run":
                passed += 1

    print()
    for reason, names in skipped.items():
        print(f"skipped: {', '.join(names)}: {reason}")
    for name in failed:
        print(f"FAILED: {name}")
    count = sum(len(names) for names in skipped.values())
    print(f"{passed} passed, {len(failed)} failed, {count} skipped", flush=True)
    return 1 if failed or status else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
