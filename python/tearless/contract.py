"""The run directory in Python: what a training program answers and writes (docs/run_directory.md).

`answer_check` and `answer_probe` are the commands `check` and `probe`, `Attempt` is one attempt of `train`. Steps are
numbers of updates; a text of settings is TOML of dotted keys, one a line, as run.toml and local.toml are.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import math
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, Iterable, List, Mapping, NoReturn, Optional, Sequence, Set, Tuple, Union

DONE, REFUSED, DIVERGED, OUT_OF_MEMORY, DATA, MACHINE, STOPPED = 0, 2, 3, 4, 66, 74, 75

MAX_STEP = 2**53  # no double tells more of them apart
KEPT_CHECKPOINTS = 2  # the second in case that the newest is damaged
ARITHMETIC = ("torch", "jax", "tensorflow", "numpy")
FAULTS_OF_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EROFS, errno.ESTALE}

Settings = Dict[str, Any]
Saved = Union[bytes, str, "os.PathLike[str]", Callable[[BinaryIO], Any]]


class Error(Exception):
    """One sentence for the user. A program that it ends has the exit code `code`."""

    def __init__(self, sentence: str, code: int = REFUSED) -> None:
        super().__init__(sentence)
        self.code = code


def say(sentence: str) -> None:
    print("tearless: " + sentence, file=sys.stderr, flush=True)


# --- settings as text ---------------------------------------------------------------------------------------------------


def toml_value(value: Any) -> str:
    """TypeError for what has no place in a line of TOML, ValueError for NaN and infinity."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if not isinstance(value, (bool, int, float, str)):
        raise TypeError(f"{value!r} is no number, text, true, false, or list of them")
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")


def toml_text(settings: Mapping[str, Any]) -> str:
    """Sorted lines `key = value`; what is None is left out."""
    def key(name: str) -> str:
        return name if re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", name) else toml_value(name)

    return "".join(f"{key(name)} = {toml_value(settings[name])}\n" for name in sorted(settings)
                   if settings[name] is not None)


def flat(values: Mapping[str, Any], prefix: str = "") -> Dict[str, Any]:
    """{"test": {"acc": 1}} is {"test.acc": 1}."""
    found: Dict[str, Any] = {}
    for key, value in values.items():
        found.update(flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value})
    return found


def settings_in(file: Path) -> Settings:
    """The settings of a run.toml or local.toml. Error naming the line that no toml_text() has."""
    settings: Settings = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        match = re.fullmatch(r'("(?:[^"\\]|\\.)*"|[A-Za-z0-9_.-]+) = (.+)', line)
        try:
            if not match:
                raise ValueError
            key, value = match.groups()
            settings[json.loads(key) if key[0] == '"' else key] = json.loads(value)
        except ValueError:
            raise Error(f"{file}:{number}: this line is not as `check` answered it; submit the grid again") from None
    return settings


# --- check and probe ----------------------------------------------------------------------------------------------------


class Question:
    """A line of `check`: `settings` are flat; `smoke`: the run is to be cut down to a few updates."""

    def __init__(self, line: str) -> None:
        asked = json.loads(line)
        self.settings: Settings = asked["settings"]
        self.smoke: bool = asked.get("smoke", False)
        self.derived: List[Settings] = asked.get("derived", [])
        self._folder, self._folders = asked.get("folder", ""), asked.get("folders", {})

    def path(self, key: str, value: str) -> Path:
        """The file that the setting `key` names."""
        return Path(os.path.abspath(os.path.join(self._folders.get(key, self._folder), value)))


class Refusal(Exception):
    """Why settings are refused, in one sentence, and the key at fault ("" if there is none)."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


def accepted(canonical: Mapping[str, Any], local: Optional[Mapping[str, Any]] = None,
             data: Optional[Mapping[str, str]] = None, waiting_for: str = "", **more: Any) -> Dict[str, Any]:
    """An answer to a question. `data`: files with their SHA-256; `waiting_for`: which one is missing, as a sentence.
    `more`: the other keys of the answer, such as updates, threads, scores, metrics, unused."""
    text = toml_text(canonical)
    answer = {"id": sha256(text.encode())[:16], "canonical": text, "local": toml_text(local or {}),
              "state": "waiting_data" if waiting_for else "ready", "waiting_for": waiting_for, "parameters": None,
              "memory_bytes": None, "updates": None, "device": "cpu", "threads": 1}
    return {**answer, "data": dict(data or {}), **{key: value for key, value in more.items() if value is not None}}


def answer_check(answer: Callable[[Question], Dict[str, Any]]) -> NoReturn:
    """Answers the questions of standard input, and exits. `answer` returns accepted(…) or raises Refusal."""
    for line in sys.stdin:
        question = Question(line)
        try:
            if question.derived:
                raise Refusal("", "this program makes no derived runs; take [derived.…] out of the grid")
            reply = answer(question)
        except Refusal as refusal:
            reply = {"error": str(refusal), "key": refusal.key}
        print(json.dumps(reply), flush=True)
    sys.exit(0)


def answer_probe(program: str, identity: str, files: Optional[Sequence[str]] = None, runtime: str = "") -> NoReturn:
    """Says what the program is, and exits. `files`: those beside the program that a copy of it needs."""
    probe: Dict[str, Any] = {"program": program, "version": identity, "numerics": 1, "identity": identity,
                             "runtime": runtime or "Python " + sys.version.split()[0]}
    if files is not None:
        probe["files"] = list(files)
    print(json.dumps(probe), flush=True)
    sys.exit(0)


def identity_of(script: Path, others: Iterable[Path] = ()) -> str:
    """Name and checksum of a script and of other files that make its results. Error if one cannot be read."""
    checksums = []
    for file in [script, *sorted(others)]:
        try:
            checksums.append(sha256_of(file))
        except OSError as error:
            raise Error(f"{file} cannot be read: {error.strerror}") from None
    digest = checksums[0] if len(checksums) == 1 else sha256("".join(checksums).encode())
    return f"{script.name} {digest[:16]}"


# --- files --------------------------------------------------------------------------------------------------------------


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sha256_of(file: Path) -> str:
    digest = hashlib.sha256()
    with open(file, "rb") as opened:
        for block in iter(lambda: opened.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def sealed(record: Mapping[str, Any]) -> str:
    """JSON that has its own checksum. No number in it may have a fraction: programs write those differently."""
    def compact(content: Mapping[str, Any]) -> str:
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    record = {**record, "sealed": True}
    return compact({**record, "sha256": sha256(compact(record).encode())})


def unsealed(text: str) -> Optional[Dict[str, Any]]:
    """None for what is no JSON object, or does not match its checksum."""
    try:
        record = json.loads(text)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    content = {key: value for key, value in record.items() if key not in ("sealed", "sha256")}
    return content if "sha256" not in record or json.loads(sealed(content)) == record else None


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(file: Path, data: bytes) -> None:
    temporary = file.with_name(f"{file.name}.tmp{os.getpid()}")  # the supervisor removes what a kill leaves
    temporary.write_bytes(data)
    sync(temporary)
    os.replace(temporary, file)
    sync(file.parent)


# --- numbers ------------------------------------------------------------------------------------------------------------


def number_in(value: Any, what: str) -> float:
    """A Python number, or one of numpy or of a tensor of one element. Error if it is none."""
    is_number = hasattr(value, "__float__") and not isinstance(value, bool)
    try:
        if is_number:
            return int(value) if isinstance(value, int) else float(value)
    except (TypeError, ValueError, RuntimeError):  # of an array with several
        pass
    shown = repr(value) if len(repr(value)) <= 60 else f"a {type(value).__name__}"
    raise Error(f"{what} is {shown}, not a number")


def step_in(step: Any) -> int:
    whole = step if isinstance(step, int) else int(step) if hasattr(step, "__index__") else None
    if whole is None or isinstance(step, bool) or not 0 <= whole <= MAX_STEP:
        raise Error(f"the step {step!r} is not a whole number from 0 to 2^53")
    return whole


# --- one attempt --------------------------------------------------------------------------------------------------------


class Attempt:
    """One attempt at the run in `folder`, which this process holds until its end. Error if another has it; SystemExit
    if the run is done. `prepare` is called with the folder before anything in it is read. begin() comes before log(),
    checkpoint() and the end."""

    def __init__(self, folder: Path, prepare: Optional[Callable[[Path], None]] = None) -> None:
        self.folder = folder.absolute()
        self.step = 0  # of the checkpoint that is resumed, then of the last line
        self._process = os.getpid()
        self._started = self._looked = time.monotonic()
        self._metrics = -1
        self._size, self._digest = 0, hashlib.sha256()  # of metrics.jsonl
        self._names: Set[str] = set()  # of the metrics at self.step
        self._first = self._kept = 0  # the step at which the attempt began; that of the newest checkpoint
        self.ended = False
        if not folder.is_dir():
            raise Error(f"there is no folder {folder}")
        self.lock, number = self._inherited()
        is_by_hand = self.lock < 0
        if is_by_hand:
            self.lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Error(f"{folder} is in use by another process; wait until that ends, or stop it first",
                            STOPPED) from None
        if prepare:
            prepare(self.folder)
        if not (self.folder / "run.toml").is_file():
            raise Error(f"{folder} is no run's folder: it has no run.toml")
        done = unsealed(read_text(self.folder / "DONE") or "{}")
        if done is None:
            raise Error(f"{folder}/DONE is damaged; delete the run's folder to train it again")
        if done:
            say(f"{folder} is already done")
            sys.exit(DIVERGED if done.get("outcome") == "diverged" else DONE)
        self.canonical = settings_in(self.folder / "run.toml")
        self.identity: str = self.canonical.pop("program.identity", "")
        self.local = settings_in(self.folder / "local.toml")
        self.number = self._make_attempt() if is_by_hand else number
        write_atomically(self.own / "arithmetic", (arithmetic() + "\n").encode())

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def own(self) -> Path:
        """Where the attempt's own files lie."""
        return self.folder / "attempts" / str(self.number)

    def _attempts(self) -> List[int]:
        return sorted(numbers_of(self.folder / "attempts", ""))

    def _inherited(self) -> Tuple[int, int]:
        # The supervisor's descriptor and attempt, if they are of this run, and of now.
        try:
            lock, number = int(os.environ["TEARLESS_LOCK_FD"]), int(os.environ["TEARLESS_ATTEMPT"])
            if self._attempts()[-1:] != [number] or not os.path.samestat(os.fstat(lock), os.stat(self.folder / "lock")):
                return -1, 0
        except (KeyError, ValueError, OSError):
            return -1, 0
        os.set_inheritable(lock, False)
        return lock, number

    def _make_attempt(self) -> int:
        number = (self._attempts() or [0])[-1] + 1
        folder = self.folder / "attempts" / str(number)
        folder.mkdir(parents=True)
        start = {"attempt": number, "program": Path(sys.argv[0]).name, "version": self.identity, "numerics": 1,
                 "device": "", "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        write_atomically(folder / "start.json", sealed(start).encode())
        return number

    def _require_own(self, is_rare: bool = False) -> None:
        # Only the newest attempt writes. That another began is rare, and a look takes longer than a line.
        if os.getpid() != self._process:
            raise Error("a process that this one started writes to its run; let the first process alone do so")
        if self.ended:
            raise Error("the run has its result already; nothing can follow done() or diverged()")
        if self._metrics < 0:
            self.begin(resuming=False)
        now = time.monotonic()
        if is_rare or now > self._looked + 1:
            self._looked = now
            if self._attempts()[-1:] != [self.number]:
                self.ended = True
                say("a newer attempt has replaced this one")
                sys.exit(STOPPED)

    # --- metrics ---

    def begin(self, resuming: bool) -> Optional[Path]:
        """Cuts the run to its newest sound checkpoint, whose content it returns, or with None to its start."""
        if self._metrics >= 0:
            raise Error("resume() comes after log() or checkpoint(); call it before the first step")
        checkpoints = self.folder / "checkpoints"
        for left in checkpoints.glob("tmp-*"):  # of a writer that was killed
            shutil.rmtree(left)
        self._metrics = os.open(self.folder / "metrics.jsonl", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        found = None
        for step in sorted(numbers_of(checkpoints, "step-"), reverse=True):
            damage = self._damage_of(checkpoints / f"step-{step}") if resuming else "the program does not resume()"
            if not damage:
                found, self.step = checkpoints / f"step-{step}", step
                break
            shutil.rmtree(checkpoints / f"step-{step}")
            say(f"checkpoint {step} is removed: {damage}")
        if not found:
            self._size, self._digest = 0, hashlib.sha256()
        os.ftruncate(self._metrics, self._size)
        os.lseek(self._metrics, self._size, os.SEEK_SET)
        self._first = self._kept = self.step
        return content_of(found) if found else None

    def _damage_of(self, checkpoint: Path) -> str:
        manifest = unsealed(read_text(checkpoint / "manifest.json") or "")
        if not manifest:
            return "its manifest is missing or damaged"
        if manifest.get("run") != self.id:
            raise Error(f"{checkpoint} is of the run {manifest.get('run')}; move it out of the way")
        for name, checksum in manifest.get("files", {}).items():
            if not (checkpoint / name).is_file() or sha256_of(checkpoint / name) != checksum:
                return f"{name} is not what was written"
        state, digest = manifest["state"], hashlib.sha256()
        left: int = state["metrics_bytes"]
        while left > 0:
            block = os.pread(self._metrics, min(left, 1 << 20), state["metrics_bytes"] - left)
            if not block:
                return "metrics.jsonl is shorter than it was"
            digest.update(block)
            left -= len(block)
        if digest.hexdigest() != state["metrics_sha256"]:
            return "the beginning of metrics.jsonl is not what was written"
        self._size, self._digest = state["metrics_bytes"], digest
        return ""

    def log(self, step: Any, values: Mapping[str, Any]) -> None:
        """Appends a line for each value. Error for a step that goes back, and for a name that has a value there."""
        self._require_own()
        at = step_in(step)
        if at < self.step:
            raise Error(f"step {at} is logged after step {self.step}; steps may not go back")
        if at > self.step:
            self._names = set()
        elif 0 < at == self._kept:
            raise Error(f"step {at} is logged after its checkpoint; a run that is resumed from that would lack the line")
        lines = ""
        for name, value in values.items():
            if name in self._names:
                raise Error(f"{name} is logged twice at step {at}")
            lines += json.dumps({"step": at, "name": name, "value": number_in(value, f"{name} at step {at}")}) + "\n"
        self._names.update(values)
        self.step = at
        data = lines.encode()
        while data:
            written = os.write(self._metrics, data)
            self._digest.update(data[:written])
            self._size += written
            data = data[written:]

    # --- checkpoints ---

    def checkpoint(self, saved: Saved, step: Any = None) -> None:
        """Keeps bytes, a copy of a file or folder (relative to the run's folder), or what a function writes to the
        file that it is given. A step has one checkpoint, the first."""
        self._require_own(is_rare=True)
        at = self.step if step is None else step_in(step)
        if at < self.step or at == 0:
            raise Error(f"a checkpoint is of the step that was logged last or of a later one, not of step {at}")
        if at == self._kept:
            return
        checkpoints = self.folder / "checkpoints"
        new = checkpoints / f"tmp-{os.getpid()}"
        state = {"metrics_bytes": self._size, "metrics_sha256": self._digest.hexdigest()}
        if new.exists():
            shutil.rmtree(new)
        new.mkdir(parents=True)
        self._save(saved, new)
        os.fsync(self._metrics)
        files = {}
        for file in sorted(path for path in new.rglob("*") if path.is_file()):
            sync(file)
            files[file.relative_to(new).as_posix()] = sha256_of(file)
        for folder in [path for path in new.rglob("*") if path.is_dir()]:
            sync(folder)
        manifest = {"run": self.id, "step": at, "state": state, "files": files}
        write_atomically(new / "manifest.json", sealed(manifest).encode())
        os.replace(new, checkpoints / f"step-{at}")
        sync(checkpoints)
        self.step = self._kept = at
        pruned = sorted(numbers_of(checkpoints, "step-"))[:-KEPT_CHECKPOINTS]
        for left in [*(checkpoints / f"step-{number}" for number in pruned), *checkpoints.glob("tmp-*")]:
            shutil.rmtree(left)

    def _save(self, saved: Saved, new: Path) -> None:
        if isinstance(saved, (bytes, bytearray, memoryview)):
            (new / "state.bin").write_bytes(saved)
        elif callable(saved):
            with open(new / "state.bin", "wb") as file:
                saved(file)
        elif not isinstance(saved, (str, os.PathLike)):
            raise Error(f"checkpoint() takes bytes, a path, or a function that writes to a file, not a "
                        f"{type(saved).__name__}")
        elif (self.folder / saved).is_dir():
            shutil.copytree(self.folder / saved, new / "state")
        elif (self.folder / saved).is_file():
            shutil.copyfile(self.folder / saved, new / "state.bin")
        else:
            raise Error(f"there is no file {self.folder / saved} to keep as a checkpoint; what is no path is kept as bytes: text.encode()")

    # --- the end ---

    def measured(self) -> None:
        """Writes what the attempt took so far, with its children."""
        import resource  # not on every system that reads results

        peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) * 1024
        record = {"seconds": time.monotonic() - self._started, "updates": self.step - self._first,
                  "peak_memory_bytes": peak}
        write_atomically(self.own / "measured.json", json.dumps(record).encode())

    def done(self, scores: Mapping[str, Any], files: Iterable[str] = (), reason: str = "finished") -> None:
        """The run's result: named numbers, and `files` of its folder with their checksums. Of NaN and infinity scores.json
        has null, and the log a sentence."""
        self._require_own(is_rare=True)
        numbers: Dict[str, Optional[float]] = {}
        for name, value in scores.items():
            number = number_in(value, f"the score {name}")
            numbers[name] = number if math.isfinite(number) else None
            if numbers[name] is None:
                say(f"the score {name} is {number}; it counts as no number")
        if not numbers:
            raise Error("a result has at least one score")
        self._end("done", reason, numbers, files)

    def diverged(self, reason: str, files: Iterable[str] = ()) -> None:
        self._require_own(is_rare=True)
        self._end("diverged", reason, None, files)

    def _end(self, outcome: str, reason: str, scores: Optional[Mapping[str, Any]], files: Iterable[str]) -> None:
        os.fsync(self._metrics)
        names = sorted({"metrics.jsonl", *files})
        for name in names:
            if not (self.folder / name).is_file():
                raise Error(f"there is no file {name} in the run's folder, {self.folder}")
            sync(self.folder / name)
        checksums = {name: sha256_of(self.folder / name) for name in names}
        self.measured()
        if scores is not None:
            text = json.dumps(scores, indent=2, sort_keys=True, allow_nan=False) + "\n"
            write_atomically(self.folder / "scores.json", text.encode())
            checksums["scores.json"] = sha256(text.encode())
        done = {"id": self.id, "outcome": outcome, "step": self.step, "reason": reason, "files": checksums}
        write_atomically(self.folder / "DONE", sealed(done).encode())
        self.ended = True

    def give_up(self) -> NoReturn:
        """Ends the program as one that was stopped: another attempt resumes the newest checkpoint."""
        if not self.ended:
            self.measured()
            say(f"stopped at step {self.step}")
        self.ended = True
        sys.exit(STOPPED)


def arithmetic() -> str:
    """What the last bits of results depend on: Python, and the libraries for numbers that it has loaded."""
    loaded = [f"{name} {getattr(sys.modules[name], '__version__', '')}" for name in ARITHMETIC if name in sys.modules]
    return ", ".join(["Python " + sys.version.split()[0], *loaded])


def content_of(checkpoint: Path) -> Path:
    """What checkpoint() kept: a file, or a folder."""
    return checkpoint / ("state" if (checkpoint / "state").is_dir() else "state.bin")


def numbers_of(folder: Path, prefix: str) -> List[int]:
    """N of each name `<prefix>N` in the folder."""
    names = os.listdir(folder) if folder.is_dir() else []
    return [int(name[len(prefix):]) for name in names if re.fullmatch(re.escape(prefix) + r"(0|[1-9]\d*)", name)]


def read_text(file: Path) -> Optional[str]:
    """None if there is no such file."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


# --- how the process ends -----------------------------------------------------------------------------------------------


class StopRequest:
    """Whether SIGTERM has come. Processes that are forked from this one end by it as ever."""

    def __init__(self) -> None:
        self.has_come = False

        def note(number: int, frame: Any) -> None:
            self.has_come = True

        signal.signal(signal.SIGTERM, note)
        os.register_at_fork(after_in_child=lambda: signal.getsignal(signal.SIGTERM) is note and
                            signal.signal(signal.SIGTERM, signal.SIG_DFL))


def exit_code_of(error: BaseException) -> int:
    if isinstance(error, Error):
        return error.code
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return OUT_OF_MEMORY
    return MACHINE if isinstance(error, OSError) and error.errno in FAULTS_OF_MACHINE else 1


def end_by_code() -> None:
    """An exception that nobody handles ends this process with the exit code that tells the harness what it was."""
    before = sys.excepthook
    if getattr(before, "is_of_tearless", False):
        return

    def hook(kind: Any, error: BaseException, trace: Any) -> None:
        if isinstance(error, Error):
            say(str(error))
        else:
            before(kind, error, trace)
        code = exit_code_of(error)
        if code != 1:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    setattr(hook, "is_of_tearless", True)
    sys.excepthook = hook
