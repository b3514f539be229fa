#!/usr/bin/env python3
"""The column gl→en of Table 3 of "Transformers without Tears", at the paper's size, on GPUs that are there for minutes at a time.

    tools/gpu_gl_en.py                                  # at most nine minutes; the same again resumes, until all runs are done
    tools/gpu_gl_en.py --workspace /dev/shm/gl-en       # likewise, with checkpoints in memory

Trains grids/twt_gl_en.toml, first Table 3, then ScaleNorm without warm-up, and stops with checkpoints, from which a call with the same
workspace resumes. Whenever a run has ended, twt_gl_en.tar.gz is made again, with all that have, and in the end twt_gl_en.md from it.
A call on another machine takes the ended runs from the archive; the others begin again. So few runs at the same time are better than
many where the workspace is lost: some end. A checkpoint has 370 MB; writing takes up to a tenth of the time (run.checkpoint_share).

Exit code 0, also if runs are left; 1 if some failed; 2 for a mistake in the command. --fake needs no GPU, no engine and no corpus.
"""

import argparse
import json
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib

import gpu_sweep

GRID = gpu_sweep.ROOT / "grids/twt_gl_en.toml"
TEMPLATE = gpu_sweep.ROOT / "tools/gpu_gl_en.md"
ARCHIVE, PAGE = "twt_gl_en.tar.gz", "twt_gl_en.md"
FAKE_SET = """[set]
"fake.device" = "cuda"
"fake.updates" = 20
"fake.sleep_ms" = 40
"fake.score.test.bleu" = 20.0
"fake.score.dev.bleu" = 20.0
"fake.score.updates" = 20
"""


def grid_of(options):
    """The grid file. In fp32 it is a changed one, because tables of runs with --set leave out the published values."""
    text = GRID.read_text()
    if options.fake:
        text = re.sub(r'(?m)^(base |"run\.).*\n', "", text).replace("[set]\n", FAKE_SET)
    elif options.precision == "fp32":
        text = text.replace('"base/', f'"{gpu_sweep.ROOT}/grids/base/').replace('"bf16"', '"fp32"')
    else:
        return GRID
    (options.workspace / GRID.name).write_text(text)
    return options.workspace / GRID.name


def settings_of(options):
    """Words for `tearless submit`."""
    files = {f"data.{part}": options.data / part for part in ("train", "dev", "test")}
    for file in (f"{file}.{language}" for file in files.values() for language in ("gl", "en")):
        if not options.fake and not pathlib.Path(file).exists():
            gpu_sweep.fail(f"{file} is missing: tools/data/get_ted.py gl-en FOLDER makes data/ted-gl-en and says where the corpus is to be "
                           "had; or name its folder with --data")
    is_where_the_grid_has_it = options.fake or options.data == gpu_sweep.ROOT / "data/ted-gl-en"
    settings = [] if is_where_the_grid_has_it else [f"{key}={json.dumps(str(file))}" for key, file in files.items()]
    return [word for setting in settings + options.set for word in ("--set", setting)]


def take_over(sweep, archive):
    """Those ended runs of an archive that the workspace lacks, and the sweep, which knows when its claims were first there."""
    taken = 0
    with tempfile.TemporaryDirectory(prefix="tearless-gl-en-") as folder:
        earlier = pathlib.Path(folder) / "earlier"
        gpu_sweep.Sweep(sweep.machine, archive, None, 0, 0, []).tearless("copy", earlier)
        for run in gpu_sweep.Sweep(sweep.machine, earlier, None, 0, 0, []).runs():
            kept = sweep.workspace / "runs" / run.id
            if run.is_done() and not (kept / "DONE").exists():
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(run.path, kept, ignore=shutil.ignore_patterns("DONE"))
                shutil.copy(run.path / "DONE", kept)  # last: a call that is killed here takes it over again
                taken += 1
        if taken:
            shutil.copytree(earlier / "sweeps", sweep.workspace / "sweeps", dirs_exist_ok=True)
            sweep.tearless("rebuild")


def pack(sweep, id, archive):
    fresh = archive.with_name(f"new_{ARCHIVE}")
    fresh.unlink(missing_ok=True)
    sweep.tearless("copy", fresh, id, "--small")
    fresh.rename(archive)


def main():
    parser = argparse.ArgumentParser(prog="gpu_gl_en.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    results = gpu_sweep.ROOT / "results"
    parser.add_argument("--minutes", type=float, default=9, help="after which it stops; that takes up to half a minute more (default: 9)")
    parser.add_argument("--runs-per-gpu", type=int, default=4, help="at the same time (default: 4, the systems of a seed)")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16", help="default: bf16, of which the page speaks")
    parser.add_argument("--data", type=pathlib.Path, default=gpu_sweep.ROOT / "data/ted-gl-en", help="the corpus (default: data/ted-gl-en)")
    parser.add_argument("--out", type=pathlib.Path, default=results, help="folder of archive and page (default: results, whose archive is "
                        "taken over with any other folder, too)")
    parser.add_argument("--workspace", type=pathlib.Path, help="default: gl_en_runs in results, with --fake in --out")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as of `tearless run`, for a trial (repeat for more)")
    parser.add_argument("--bin", type=pathlib.Path, default=gpu_sweep.ROOT / "build/bin", help="the folder of the programs (default: build/bin)")
    parser.add_argument("--portable", type=pathlib.Path, help="instead of --bin: what tools/portable.sh gathered")
    parser.add_argument("--fake", action="store_true", help="with fake GPUs and a fake engine, in seconds; needs --out")
    options = parser.parse_args()
    deadline = time.monotonic() + 60 * options.minutes
    if options.fake and options.out == results:
        gpu_sweep.fail("--fake measures nothing: name another folder with --out")
    if not options.minutes > 0 or options.runs_per_gpu < 1:
        gpu_sweep.fail("--minutes is above 0, and --runs-per-gpu at least 1")
    options.out, options.data = options.out.absolute(), options.data.absolute()
    options.workspace = (options.workspace or (options.out if options.fake else results) / "gl_en_runs").absolute()
    settings = settings_of(options)
    options.out.mkdir(parents=True, exist_ok=True)
    machine = gpu_sweep.FakeMachine(options, options.out) if options.fake else gpu_sweep.Machine(options)
    (options.workspace / "runs").mkdir(parents=True, exist_ok=True)
    sweep = gpu_sweep.Sweep(machine, options.workspace, grid_of(options), 0, 0.2 if options.fake else 2, [])
    packed = 0  # runs that have ended, in the archive

    def submit(*words):
        return json.loads(sweep.tearless("submit", sweep.grid, *settings, *words, "--json"))["sweeps"][0]["id"]

    def look():
        """The states of the runs. Makes the archive again if others have ended."""
        nonlocal packed
        states = [run["state"] for run in json.loads(sweep.tearless("runs", id, "--json"))]
        ended = states.count("done") + states.count("diverged")
        if ended != packed:
            pack(sweep, id, options.out / ARCHIVE)
            packed = ended
            print(f"gpu_gl_en: {ended} of {len(states)} runs have ended: {options.out / ARCHIVE}", flush=True)
        return states

    sweep.tearless("stop", "--now", "--wait")  # what a call that was killed has left
    for folder in {options.out} if options.fake else {options.out, results}:
        if (folder / ARCHIVE).exists():
            take_over(sweep, folder / ARCHIVE)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        systems = [value["label"] for value in tomllib.loads(GRID.read_text())["axis"]["system"]]
        table3 = [word for label in systems[:-1] for word in ("--only", f"system={label}")]
        submit(*table3, "--priority", "1", "--runs-per-gpu", str(options.runs_per_gpu))
        id = submit("--priority", "0")
        while {"queued", "running"} & set(look()) and time.monotonic() < deadline:
            machine.note_memory(sweep.runs())
            time.sleep(sweep.look_every)
    finally:
        sweep.tearless("stop", "--now", "--wait")
    states = look()
    if packed:
        if not (options.out / PAGE).exists():
            shutil.copyfile(TEMPLATE, options.out / PAGE)
        sweep.tearless("report", "--text", options.out / PAGE)
    failed = states.count("failed")
    print(f"gpu_gl_en: {packed} of {len(states)} runs are done" + (f", {failed} failed: tearless explain {id} failed --workspace "
          f"{options.workspace}" if failed else "" if packed == len(states) else "; the same command resumes"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
