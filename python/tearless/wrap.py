"""`tearless wrap`: a script that knows nothing of tearless as the training program of a grid (docs/wrap.md).

`--write FILE` makes a small executable file with the options; a grid names it, and the harness calls it with `check`, `probe` and `train DIR`.
The script runs in the folder in which `--write` was typed, once for each attempt.
"""

from __future__ import annotations

import argparse
import ctypes
import glob
import json
import math
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NoReturn, Optional, Sequence, Set, Tuple

from . import contract
from .contract import Error, Refusal, say

MARK = "# A training program of tearless, made by `tearless wrap`:"
PLACE = re.compile(r"\{([^{}?]+)(?:\?([^{}]*))?\}")  # {setting}, {setting?what is there if it is true}
OWN = {"folder", "key", "value"}  # places that are no settings
LONGEST_LINE = 1 << 20  # bytes; the rest of a longer one is not looked at
WHOLE = 1.0  # seconds: a file that did not change for so long is whole
COPY_SHARE = 10  # copies of checkpoints take a tenth of the time at most

INSPECT = """
import importlib.metadata, json, platform
def line(one):
    commit = json.loads(one.read_text("direct_url.json") or "{}").get("vcs_info", {}).get("commit_id")
    return "%s==%s" % (one.metadata["Name"], one.version) + (" @ %s" % commit if commit else "")
name = platform.python_implementation().replace("CPython", "Python")
print(json.dumps([name + " " + platform.python_version(), sorted(set(map(line, importlib.metadata.distributions())))]))
"""


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """The command line behind check, probe or train."""
    parser = argparse.ArgumentParser(
        prog="tearless wrap", allow_abbrev=False, epilog="Examples: docs/wrap.md", description="a script as the training program of a grid",
        usage="tearless wrap --write FILE --flags WORDS [OPTION…] -- COMMAND…")
    add = parser.add_argument
    add("--write", metavar="FILE", help='the program to make, for program = "FILE" in a grid')
    add("--flags", default="", metavar="WORDS",
        help='what follows the command, with settings in it: "--lr={lr}", "lr={lr}"; {amp?--amp} is there if amp is true; with a capital name '
        '("LR={lr}") a variable of the environment; "{key}={value}": one for each setting that no other word names; {folder}: where the '
        "script may write")
    add("--scores", default="last-json-line", metavar="HOW", help="last-json-line (default), file:PATH (JSON in {folder}) or regex:PATTERN")
    add("--score-names", metavar="NAME,…", help="only these of them")
    add("--metrics", metavar="PATTERN", help=r'lines with numbers of a step: "step (?P<step>\d+) loss (?P<train__loss>\S+)"; __ is a dot')
    add("--resume-flag", default="", metavar="WORDS",
        help='what follows where the script resumes: "--resume={folder}/last.pt"; without it a killed run starts again')
    add("--files", action="append", default=[], metavar="GLOB",
        help="the files that make the results, in place of each *.py of the git repository; may be repeated")
    add("--device", choices=("cpu", "cuda"), default="cpu", help="what a run trains on (default: cpu)")
    add("--threads", type=int, default=1, metavar="N", help="of a run, also OMP_NUM_THREADS (default: 1)")
    add("--updates", metavar="SETTING", help="the setting that is the number of steps, for the time left")
    add("--folder", default=".", help=argparse.SUPPRESS)
    add("--json", action="store_true", help=argparse.SUPPRESS)
    end = list(words).index("--") if "--" in words else len(words)
    takes_value = {option for action in parser._actions if action.nargs is None for option in action.option_strings}
    joined: List[str] = []  # argparse takes a value that begins with a dash for an option
    for word in words[:end]:
        if joined and joined[-1] in takes_value:
            joined[-1] += "=" + word
        else:
            joined.append(word)
    options = parser.parse_args(joined)
    options.command = list(words[end + 1:])
    return options


class Wrap:
    """A command and its options. Error for those that cannot work."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.folder = options, Path(options.folder).absolute()
        self.command: List[str] = options.command
        if not self.command:
            raise Error("name the command behind --, as in: tearless wrap --write train-program … -- python train.py")
        self.words, self.resume_words = words_in(options.flags, "--flags"), words_in(options.resume_flag, "--resume-flag")
        self.named: Set[str] = {key for word in self.words for key, _ in PLACE.findall(word)}
        self.metrics = pattern_in(options.metrics, "--metrics", {"step"}) if options.metrics else None
        self.how, self.what = str(options.scores).partition(":")[::2]
        if (self.how, bool(self.what)) not in (("last-json-line", False), ("file", True), ("regex", True)):
            raise Error(f"--scores \"{options.scores}\" is none of last-json-line, file:PATH and regex:PATTERN")
        self.scores = pattern_in(self.what, "--scores regex:", set()) if self.how == "regex" else None
        self.score_names: List[str] = options.score_names.split(",") if options.score_names else []
        if self.how == "file" and "folder" not in self.named:
            raise Error("two runs would write one file of scores: tell the script by {folder} in --flags where to write it, as in "
                        "--flags \"--out={folder}\" --scores file:scores.json")
        paths = re.findall(r"\{folder\}/(\S+)", " ".join(self.resume_words))
        self.checkpoint: str = paths[0] if paths else ""  # below {folder}
        if self.resume_words and not (self.metrics and "folder" in self.named and len(paths) == 1):
            raise Error("--resume-flag names the file that the script resumes from, which it writes to {folder}, and --metrics say how far it "
                        "is, as in --flags \"--out={folder}\" --resume-flag \"--resume={folder}/last.pt\" --metrics …")
        self.script = next((self.folder / word for word in self.command if (self.folder / word).is_file() and not is_python(word)), None)
        missing = [word for word in self.command[1:] if word.endswith((".py", ".sh")) and not (self.folder / word).is_file()]
        if missing or not (self.program() and os.access(self.program(), os.X_OK)):
            raise Error(f"there is no {(missing or self.command)[0]} to run in {self.folder}; type tearless wrap where the command works")

    @property
    def name(self) -> str:
        return self.script.name if self.script else Path(self.command[0]).name

    def program(self) -> str:
        own = self.folder / self.command[0]
        return str(own) if own.is_file() else shutil.which(self.command[0]) or ""

    def sources(self) -> List[Path]:
        """The files that make the results: the script, and those of --files, or each *.py of its git repository that git does not ignore."""
        found = {self.script} if self.script else set()
        for pattern in self.options.files:
            matches = {Path(path) for path in glob.glob(str(self.folder / pattern), recursive=True) if os.path.isfile(path)}
            if not matches:
                raise Error(f"--files {pattern} matches no file in {self.folder}")
            found |= matches
        top = next((folder for folder in [self.folder, *self.folder.parents] if (folder / ".git").exists()), None)
        if top and not self.options.files:
            try:
                listed = subprocess.run(["git", "-C", str(top), "ls-files", "-coz", "--exclude-standard", "*.py"], check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError) as error:
                why = getattr(error, "stderr", b"").decode(errors="replace").strip() or str(error)
                raise Error(f"git cannot list the files of {top} ({why}); name those that make the results with --files") from None
            found |= {top / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name and (top / os.fsdecode(name)).is_file()}
        if not found:
            raise Error(f"which files does \"{shlex.join(self.command)}\" run? Name them, as in --files \"src/**/*.py\"")
        return sorted(found)

    def identity(self) -> str:
        # The same script in another folder, or by another interpreter, is the same.
        sources, options = self.sources(), self.options
        said = [[Path(word).name if is_python(word) else word for word in self.command], options.flags, options.scores, options.score_names,
                options.metrics, [[os.path.relpath(file, self.folder), contract.sha256_of(file)] for file in sources]]
        return f"{self.name} wrapped, {len(sources)} file{'s'[len(sources) == 1:]} {contract.sha256(json.dumps(said).encode())[:16]}"

    def python(self) -> List[str]:
        """The words that start the script's interpreter, maybe none."""
        at = next((at for at, word in enumerate(self.command) if is_python(word)), None)
        if at is not None:
            return self.command[:at + 1]
        with open(self.program(), "rb") as file:  # torchrun, accelerate: scripts of an environment's Python
            first = file.readline(256).decode(errors="replace")
        return first[2:].split() if first.startswith("#!") and "python" in first else []

    def passes_on(self, settings: Mapping[str, Any]) -> List[str]:
        return [key for key in settings if key in self.named or "key" in self.named]

    def filled(self, words: Sequence[str], settings: Mapping[str, Any], folder: str) -> Tuple[Dict[str, str], List[str]]:
        """Variables and words for a run with these settings. Refusal if the flags do not fit them."""
        variables: Dict[str, str] = {}
        filled: List[str] = []
        for word in words:
            variable = re.match(r"([A-Z_][A-Z0-9_]*)=", word)
            for key in sorted(set(settings) - self.named) if "{key}" in word else [""]:
                texts = self._filled(word, {**settings, "folder": folder, "key": key, "value": settings.get(key)})
                if variable:
                    variables[variable.group(1)] = texts[0][variable.end():]
                else:
                    filled += texts
        return variables, filled

    def _filled(self, word: str, values: Mapping[str, Any]) -> List[str]:
        for key, condition in PLACE.findall(word):
            if key not in values:
                raise Refusal("", f"the flags of {self.name} have {{{key}}}, and the grid sets no {key}")
            if condition and not isinstance(values[key], bool):
                raise Refusal(key, f"{word} is for a setting that is true or false, and {key} is {json.dumps(values[key])}")
        whole = PLACE.fullmatch(word)
        if whole and isinstance(values[whole.group(1)], list):
            return [text_of(item) for item in values[whole.group(1)]]
        if whole and values[whole.group(1)] is False and whole.group(2):
            return []
        return [PLACE.sub(lambda place: (place.group(2) if values[place.group(1)] else "") if place.group(2) else text_of(values[place.group(1)]),
                          word)]


def words_in(text: str, option: str) -> List[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise Error(f"{option} \"{text}\": {error}") from None


def pattern_in(text: str, option: str, required: Set[str]) -> "re.Pattern[str]":
    """Its groups name what they find: (?P<dev__acc>…) is dev.acc, (?P<name>…) and (?P<value>…) take any name."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise Error(f"{option} \"{text}\" is no regular expression: {error}") from None
    groups = set(pattern.groupindex)
    if not required < groups or len({"name", "value"} & groups) == 1:
        example = r"step (?P<step>\d+) loss (?P<train__loss>\S+)" if required else r"accuracy (?P<test__accuracy>\S+)"
        raise Error(f"{option} \"{text}\" must name its numbers, as in \"{example}\" (docs/wrap.md)")
    return pattern


def found_by(pattern: "Optional[re.Pattern[str]]", line: str) -> Iterator[Tuple[str, Dict[str, str]]]:
    """The step, or "", and the texts by name of each match."""
    for match in pattern.finditer(line) if pattern else ():
        texts = {key.replace("__", "."): text for key, text in match.groupdict("").items() if text}
        step, name, value = (texts.pop(key, "") for key in ("step", "name", "value"))
        yield step, {**texts, name: value} if name and value else texts


def names_in(pattern: "Optional[re.Pattern[str]]") -> Optional[List[str]]:
    """None if they are not known."""
    if not pattern or "name" in pattern.groupindex:
        return None
    return sorted(key.replace("__", ".") for key in pattern.groupindex if key != "step")


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def is_python(word: str) -> bool:
    return re.fullmatch(r"(python|pypy)[\d.]*", Path(word).name) is not None


# --- check ------------------------------------------------------------------------------------------------------------------------------


def check(wrap: Wrap) -> NoReturn:
    seeds: Dict[str, Any] = {}  # of each canonical text

    def answer(question: contract.Question) -> Dict[str, Any]:
        settings, steps = question.settings, wrap.options.updates
        if question.smoke:
            raise Refusal("", f"nobody can cut {wrap.name} short, as it is a wrapped script; leave out --calibrate")
        wrap.filled([*wrap.words, *wrap.resume_words], settings, "")
        canonical = {key: settings[key] for key in wrap.passes_on(settings)}
        for key in sorted(set(settings) - set(canonical) - {"train.seed"}):  # each run has a seed, also of a script that takes none
            raise Refusal(key, f"no flag of {wrap.name} passes on {key}: put {{{key}}} into --flags, or take {key} out of the grid")
        if seeds.setdefault(contract.toml_text(canonical), settings.get("train.seed")) != settings.get("train.seed"):
            raise Refusal("train.seed", f"no flag of {wrap.name} passes on train.seed, so all seeds would be one run: put {{train.seed}} into "
                          "--flags, or take `seeds` out of the grid")
        if steps and (not isinstance(settings.get(steps), int) or settings[steps] < 1):
            raise Refusal(steps, f"--updates {steps} must be a setting that is a whole number")
        return contract.accepted(
            canonical, updates=settings[steps] if steps else None, device=wrap.options.device, threads=wrap.options.threads,
            scores=wrap.score_names or names_in(wrap.scores), metrics=names_in(wrap.metrics) if wrap.metrics else [],
            unused={key: "" for key in set(settings) - set(canonical)})

    contract.answer_check(answer)


# --- train ------------------------------------------------------------------------------------------------------------------------------


class Script:
    """The script as a child of this process. SIGTERM is passed on to it, and it ends with this process."""

    def __init__(self) -> None:
        self.stopping = False
        self._process: Optional["subprocess.Popen[bytes]"] = None
        signal.signal(signal.SIGTERM, self._pass_on)

    def _pass_on(self, number: int, frame: Any) -> None:
        self.stopping = True
        if self._process:
            self._process.send_signal(signal.SIGTERM)

    def run(self, words: List[str], folder: Path, environment: Dict[str, str], lock: int, on_line: Callable[[str], None],
            look: Callable[[], None]) -> int:
        """Its exit code, or minus the signal that ended it. Its output is this process's, and line by line that of `on_line`; `look` is
        called now and then."""
        prctl = ctypes.CDLL(None).prctl
        process = subprocess.Popen(
            words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            pass_fds=[lock],  # what the script leaves running holds the run: no attempt begins beside it
            preexec_fn=lambda: prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG
        self._process = process
        try:
            if self.stopping:
                process.send_signal(signal.SIGTERM)
            self._read(process, on_line, look)
            return process.wait()
        finally:
            process.kill()
            process.wait()

    def _read(self, process: "subprocess.Popen[bytes]", on_line: Callable[[str], None], look: Callable[[], None]) -> None:
        assert process.stdout
        output, rest, data = process.stdout.fileno(), b"", b"?"
        while data:
            look()
            has_ended = process.poll() is not None  # asked first: what it has written is then in the pipe
            if not select.select([output], [], [], 0 if has_ended else WHOLE / 4)[0]:
                if has_ended:
                    break  # a process that it has left holds the pipe
                continue
            data = os.read(output, 1 << 16)
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            *lines, rest = re.split(rb"[\r\n]+", rest + data)
            rest = rest[:LONGEST_LINE]
            for line in lines:
                on_line(line.decode(errors="replace"))
        on_line(rest.decode(errors="replace"))


class Numbers:
    """What the lines of a script say: its metrics, which go to the run at once, and its scores. `earlier`: a file of lines that metrics.jsonl
    had when this attempt began. The script says by its first step which of those behind the checkpoint stand."""

    def __init__(self, wrap: Wrap, attempt: contract.Attempt, earlier: Path) -> None:
        self._wrap, self._attempt, self._earlier = wrap, attempt, earlier
        self.first = attempt.step  # of the checkpoint: numbers up to there are known
        self.has_step = self._has_complained = False
        self.last_line = ""
        self._json: Dict[str, Any] = {}  # of the last such line
        self._texts: Dict[str, str] = {}  # of scores
        self._newest: Dict[str, int] = {}  # step of each metric

    def take(self, line: str) -> None:
        line = line.strip()
        self.last_line = line or self.last_line
        if line.startswith("{") and line.endswith("}"):
            self._json = object_in(line) or self._json
        for _, texts in found_by(self._wrap.scores, line):
            self._texts.update(texts)
        for step, texts in found_by(self._wrap.metrics, line):
            try:
                if step:
                    self._log(contract.step_in(int(number_in(step, "the step"))), texts)
            except (Error, ValueError, OverflowError) as error:  # lines of several processes may be mixed up: that ends no training
                if not self._has_complained:
                    say(f"{error}; such metrics are left out")
                self._has_complained = True

    def _log(self, step: int, texts: Mapping[str, str]) -> None:
        if not self.has_step:
            self.take_earlier(step)
        self.has_step = True
        for name, text in texts.items() if step > self.first or step == 0 else ():
            if step <= self._newest.get(name, -1) or step < self._attempt.step:
                raise Error(f"{name} of step {step} is printed after step {self._attempt.step}, or twice")
            self._attempt.log(step, {name: number_in(text, f"{name} at step {step}")})
            self._newest[name] = step

    def take_earlier(self, end: float) -> None:
        """Those of steps before `end`."""
        for line in map(object_in, (contract.read_text(self._earlier) or "").split("\n")):
            if line and self.first < line["step"] < end:
                self._attempt.log(line["step"], {line["name"]: line["value"]})
        if self._earlier.exists():
            self._earlier.unlink()

    def scores(self, folder: Path) -> Dict[str, float]:
        """Error, in one sentence, if there are none."""
        wrap, values = self._wrap, contract.flat(self._texts if self._wrap.how == "regex" else self._json)
        missing = f"printed no line {'that --scores regex: matches' if wrap.how == 'regex' else 'of JSON'}"
        if wrap.how == "file":
            file = folder / wrap.what.replace("{folder}", str(folder))
            text = contract.read_text(file) or ""
            values, missing = contract.flat(object_in(text) or object_in(text.strip().split("\n")[-1]) or {}), f"left no JSON in {file}"
        said = f"its last line is \"{self.last_line[:200]}\"" if self.last_line else "it printed nothing"
        if not values:
            raise Error(f"{wrap.name} {missing}, so it has no score; {said}")
        for name in wrap.score_names:
            if name not in values:
                raise Error(f"{wrap.name} left no score {name} but {', '.join(values)}; {said}")
        return {name: number_in(values[name], f"the score {name}") for name in wrap.score_names or values}


def number_in(value: Any, what: str) -> float:
    try:
        return float(value) if isinstance(value, str) else contract.number_in(value, what)
    except ValueError:
        raise Error(f"{what} is \"{value}\", not a number") from None


def object_in(text: str) -> Optional[Dict[str, Any]]:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


class Checkpoints:
    """Copies of what the script resumes from. `pattern`: below `folder`; of several files or folders that match, the newest counts."""

    def __init__(self, folder: Path, pattern: str, attempt: contract.Attempt, kept: Optional[Path]) -> None:
        self._folder, self._pattern, self._attempt = folder, pattern, attempt
        self.path = ""
        if kept:
            copy = next(kept.iterdir())
            place = (folder / pattern).with_name(copy.name)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(copy, place) if copy.is_dir() else shutil.copyfile(copy, place)
            self.path = str(place)
        self._kept = self._seen = self._now()
        self._since = self._next = time.monotonic()

    def _now(self) -> Tuple[Any, ...]:
        # Changes when the file, or a file of the folder, does.
        try:
            newest = max(((path.stat().st_mtime_ns, str(path)) for path in self._folder.glob(self._pattern)), default=())
            files = [Path(newest[1]), *sorted(Path(newest[1]).rglob("*"))] if newest else []
            return (*newest, *((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files))
        except OSError:  # it is being replaced
            return ()

    def look(self, is_last: bool = False) -> None:
        time_now = time.monotonic()
        if time_now < self._next and not is_last:
            return
        self._next, now = time_now + WHOLE / 4, self._now()
        if now != self._seen:
            self._seen, self._since = now, time_now
        if now and now != self._kept and self._attempt.step and (is_last or time_now >= self._since + WHOLE):
            self._keep(now)
            self._next += COPY_SHARE * (time.monotonic() - time_now)

    def _keep(self, now: Tuple[Any, ...]) -> None:
        links = self._attempt.folder / "keeping"  # a folder, so that the copy has the name
        shutil.rmtree(links, ignore_errors=True)
        links.mkdir()
        (links / Path(now[1]).name).symlink_to(now[1])
        self._attempt.checkpoint(links)
        shutil.rmtree(links)
        self._kept = now
        if self._now() != now:  # the copy may be of two
            self.remove_newest()

    def remove_newest(self) -> None:
        shutil.rmtree(self._attempt.folder / "checkpoints" / f"step-{self._attempt.step}")


def record_packages(wrap: Wrap, attempt: contract.Attempt, environment: Mapping[str, str]) -> None:
    """Interpreter and packages: attempts/<n>/packages.txt, and what tells them apart as `arithmetic`."""
    python, why = wrap.python(), "the command names none"
    own = attempt.own
    (own / "arithmetic").unlink()  # that of this process says nothing of the script
    if python:
        asked = subprocess.run([*python, "-c", INSPECT], cwd=wrap.folder, env=dict(environment), capture_output=True)
        if asked.returncode == 0:
            version, packages = json.loads(asked.stdout)
            text = "\n".join([version, *packages, ""]).encode()
            contract.write_atomically(own / "packages.txt", text)
            contract.write_atomically(own / "arithmetic", f"{version} with {len(packages)} packages {contract.sha256(text)[:8]}\n".encode())
            return
        why = asked.stderr.decode(errors="replace").strip().split("\n")[-1]
    say(f"the interpreter of {wrap.name} and its packages are not recorded: {why}")


def train(wrap: Wrap, directory: Path) -> NoReturn:
    script = Script()
    attempt = contract.Attempt(directory)
    if attempt.identity not in ("", wrap.identity()):
        newest = max(wrap.sources(), key=lambda file: file.stat().st_mtime)
        raise Error(f"{wrap.name}, a file of it or its options are not what this run was submitted with ({os.path.relpath(newest, wrap.folder)} "
                    "changed last); restore them, or submit the grid again, to train with the new ones")
    metrics, earlier = attempt.folder / "metrics.jsonl", attempt.folder / "earlier.jsonl"
    if wrap.resume_words and metrics.exists() and not earlier.exists():  # it is there if the attempt before came to no step
        contract.write_atomically(earlier, metrics.read_bytes())
    kept = attempt.begin(resuming=bool(wrap.resume_words))
    if not kept and earlier.exists():
        earlier.unlink()
    folder = attempt.folder / "script"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    checkpoints = Checkpoints(folder, wrap.checkpoint, attempt, kept) if wrap.resume_words else None
    numbers = Numbers(wrap, attempt, earlier)
    variables, words = wrap.filled(wrap.words, attempt.canonical, str(folder))
    again = "" if checkpoints else f"{wrap.name} keeps no checkpoint, as it has no --resume-flag, and starts again from the beginning"
    if checkpoints and checkpoints.path:
        resume_words = [word.replace("{folder}/" + wrap.checkpoint, checkpoints.path) for word in wrap.resume_words]
        words += wrap.filled(resume_words, attempt.canonical, str(folder))[1]
        say(f"{wrap.name} resumes from its checkpoint of step {attempt.step}")
    elif attempt.number > 1:
        say(again or f"{wrap.name} had no checkpoint yet, and starts again from the beginning")
    # Lines come when they are printed, and runs side by side do not each take all cores.
    environment = {"OMP_NUM_THREADS": str(wrap.options.threads), **os.environ, "PYTHONUNBUFFERED": "1", **variables}
    for own in ("TEARLESS_LOCK_FD", "TEARLESS_ATTEMPT"):
        environment.pop(own, None)
    record_packages(wrap, attempt, environment)
    code = script.run([*wrap.command, *words], wrap.folder, environment, attempt.lock, numbers.take,
                      checkpoints.look if checkpoints else lambda: None)
    if checkpoints and script.stopping and code >= 0:  # it has written what it wanted to
        checkpoints.look(is_last=True)
    if script.stopping:  # what it printed last may be of a training that was cut short
        say(f"stopped at step {attempt.step}; {again}" if again else f"stopped at step {attempt.step}")
        code = contract.STOPPED
    elif code == contract.DONE:
        numbers.take_earlier(math.inf)
        attempt.done(numbers.scores(folder), reason="the script ended")
    elif code == contract.DIVERGED:
        attempt.diverged(numbers.last_line[:200] or "the script said so by its exit code")
    elif code > 0 and kept and checkpoints and not numbers.has_step:
        checkpoints.remove_newest()
        say(f"{wrap.name} could not resume from its checkpoint of step {numbers.first}, which is removed")
    if not attempt.ended:
        attempt.measured()
    if code < 0:
        say(f"{wrap.name} was killed by {signal.Signals(-code).name}")
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


# --- the command ------------------------------------------------------------------------------------------------------------------------


def write(wrap: Wrap, file: Path) -> None:
    """The program that a grid names."""
    if MARK not in (contract.read_text(file) or MARK):
        raise Error(f"{file} is there already, and tearless wrap did not make it; choose another name")
    wrap.identity()
    up = os.path.relpath(wrap.folder, file.absolute().parent)
    words = [f"--folder \"$(dirname \"$0\")\"{'' if up == '.' else '/' + shlex.quote(up)}"]
    for option in ("flags", "scores", "score_names", "metrics", "resume_flag", "files", "device", "threads", "updates"):
        value = getattr(wrap.options, option)
        if value and value not in ("cpu", 1):
            words += [f"--{option.replace('_', '-')} {shlex.quote(str(one))}" for one in (value if isinstance(value, list) else [value])]
    text = " \\\n  ".join(["exec tearless wrap \"$@\"", *words, f"-- {shlex.join(wrap.command)}\n"])
    contract.write_atomically(file, f"#!/bin/sh\n{MARK}\n# a grid names it by program = \"{file.name}\", relative to the grid.\n{text}".encode())
    file.chmod(0o755)
    print(f"{file} is a training program; a grid beside it names it by program = \"{file.name}\"")


def main(arguments: Optional[Sequence[str]] = None) -> NoReturn:
    contract.end_by_code()
    words = list(sys.argv[1:] if arguments is None else arguments)
    verb = words.pop(0) if words[:1] and words[0] in ("check", "probe", "train") else ""
    directory = words.pop(0) if verb == "train" and words else ""
    wrap = Wrap(options_of(words))
    if verb == "check":
        check(wrap)
    if verb == "probe":
        contract.answer_probe(wrap.name, wrap.identity(), runtime=wrap.command[0])
    if verb == "train":
        train(wrap, Path(directory))
    if not wrap.options.write:
        raise Error("say by --write FILE which program to make; a grid names it by program = \"FILE\"")
    write(wrap, Path(wrap.options.write))
    sys.exit(0)


if __name__ == "__main__":
    main()
