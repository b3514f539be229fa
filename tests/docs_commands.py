#!/usr/bin/env python3
"""docs_commands.py [REPORT.xml] [PAGE…]: types the commands of README.md and docs/*.md as a reader does, each page in a
folder of its own that has the repository's grids/ and results/. PAGE: such as docs/how_to.md.

In a page's source,
  ```sh                    begins commands, which `bash -e` runs in order; the page fails with the first that fails
  <!-- not run: WHY -->    before such a block: it is counted as skipped, for this reason
  <!-- file: NAME -->      before any other block: the reader has written it into this file
  <!-- setup: COMMAND -->  runs what the page presumes
The programs are those of $TEARLESS_BIN (default: build/bin); what trains is fake-engine, in milliseconds.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("TEARLESS_BIN", ROOT / "build/bin")).resolve()
sys.path.append(str(ROOT / "tools"))
import junit_report  # noqa: E402

MARK = re.compile(r"<!-- (not run|file|setup): (.+?) -->$")
COMMAND = re.compile(r"(\$ )?(build/bin/)?(tearless|tearless-engine|make|pip|python3|sbatch|tools/\S+) ")
# What fake-engine says its runs have: the scores that the pages' grids and commands name.
SCORES = "test.bleu_13a,dev.bleu_13a,test.bleu,dev.bleu,test.chrf,dev.ppl,test.ppl,dev.accuracy,test.accuracy"


class Block(typing.NamedTuple):
    line: int  # of its first line in the page
    kind: str  # "not run", "file", "setup", or "" for commands that are run
    what: str  # behind the kind
    text: str


def blocks_of(page):
    """The blocks of a page that a reader types or writes, and the lines of commands that stand in no such block."""
    blocks, loose, mark, fence = [], [], ("", ""), None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if fence is None and (found := MARK.match(line.strip())):
            mark = found.groups()
            if mark[0] == "setup":
                blocks.append(Block(number, "setup", "", mark[1]))
                mark = ("", "")
        elif fence is None and line.lstrip().startswith("```"):
            fence, first, text = line.strip()[3:], number + 1, []
        elif fence is not None and line.strip() == "```":
            if fence == "sh" or mark[0] == "file":
                blocks.append(Block(first, *mark, "\n".join(text) + "\n"))
            fence, mark = None, ("", "")
        elif fence is not None:
            text.append(line)
            if fence not in ("sh", "text") and mark[0] != "file" and COMMAND.match(line):
                loose.append(number)
        elif line.startswith("    ") and COMMAND.match(line.strip()):
            loose.append(number)
        elif line.strip():
            mark = ("", "")
    return blocks, loose


def programs_in(folder):
    """A folder for PATH: `tearless`, and a `tearless-engine` that trains nothing but knows the other commands."""
    folder.mkdir()
    (folder / "tearless").symlink_to(BIN / "tearless")
    engine = folder / "tearless-engine"
    engine.write_text(f'#!/bin/sh\ncase $1 in check | probe | train) exec {BIN}/fake-engine "$@" ;; esac\n'
                      f'exec {BIN}/tearless-engine "$@"\n')
    engine.chmod(0o755)
    return folder


def typed(page):
    """What one reads of a page's commands: a case for junit_report.write, and one for each block that is not run."""
    name = str(page.relative_to(ROOT))
    blocks, loose = blocks_of(page)
    cases = [("Docs", f"{name}:{block.line}", "skipped", f"not run: {block.what}") for block in blocks if block.kind == "not run"]
    if loose:
        lines = ", ".join(map(str, loose))
        return [*cases, ("Docs", name, "failure", f"{name}:{lines}: a command outside of ```sh blocks, which nothing runs")]
    with tempfile.TemporaryDirectory(prefix="tearless-docs-", ignore_cleanup_errors=True) as scratch:
        scratch = pathlib.Path(scratch)
        folder = scratch / "reader"
        shutil.copytree(ROOT / "grids", folder / "grids")
        shutil.copytree(ROOT / "results", folder / "results", ignore=shutil.ignore_patterns("runs", "sweeps", "*.db*"))
        environment = {**os.environ, "HOME": str(scratch), "PATH": f"{programs_in(scratch / 'bin')}:{os.environ['PATH']}",
                       "TEARLESS_ENGINE": str(scratch / "bin/tearless-engine"), "FAKE_SCORES": SCORES, "XDG_RUNTIME_DIR": str(scratch),
                       "PYTHONPATH": str(ROOT / "python")}
        script = ""
        for block in blocks:
            if block.kind == "file":
                script += f"cat > '{block.what}' <<'END OF FILE'\n{block.text}END OF FILE\n"
            elif block.kind != "not run":
                script += f": '--- {name}:{block.line}'\n{block.text}\n"
        script = f"trap 'for w in results */results; do [ ! -e $w/tearless.db ] || tearless stop --now --workspace $w; done' EXIT\n{script}"
        done = subprocess.run(["bash", "-e", "-v", "-o", "pipefail", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240)
    if done.returncode:
        return [*cases, ("Docs", name, "failure", f"exit code {done.returncode}:\n{done.stdout}")]
    return [*cases, ("Docs", name, "", "")]


def main(*arguments):
    report = next((argument for argument in arguments if argument.endswith(".xml")), None)
    pages = [ROOT / argument for argument in arguments if argument != report]
    pages = pages or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        cases = [case for own in pool.map(typed, pages) for case in own]
    for _, name, kind, text in cases:
        print(f"{kind or 'ok'}: {name}" + (f": {text}" if text else ""))
    if report:
        junit_report.write(report, "docs", cases)
    return any(kind == "failure" for _, _, kind, _ in cases)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
