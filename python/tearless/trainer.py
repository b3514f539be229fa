"""A training program in five lines (docs/trainer.md): `Run`, and the decorator `settings` for a dataclass of settings.

A script that makes a Run is a grid's `program`: it answers `check` and `probe`, and `train` is its own code. Started
without these commands it trains in runs/local.
"""

from __future__ import annotations

import atexit
import dataclasses
import difflib
import math
import os
import shutil
import sys
from pathlib import Path
from typing import (TYPE_CHECKING, Any, BinaryIO, Callable, Dict, Generic, Iterable, List, Literal, Mapping, NamedTuple, NoReturn,
                    Optional, Tuple, Type, TypeVar, Union, cast, get_args, get_origin, get_type_hints, overload)

from tearless import contract
from tearless.contract import Error, Refusal

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    def dataclass_transform(**_: Any) -> Any:
        return lambda function: function

S = TypeVar("S")

ANSWERS = {"device", "threads", "memory_bytes", "parameters", "evaluations", "resource_class", "scores", "metrics", "windows",
           "warnings"}
COUNTS = ("updates", "steps", "epochs", "train.updates", "train.steps", "train.epochs")  # which settings say how long a run is
SMOKE_UPDATES = 2
KINDS = (bool, int, float, str, Path, list, tuple)  # bool before int, of which it is one
RESULTS = ("DONE", "scores.json", "metrics.jsonl", "checkpoints", "attempts", "outputs", "model.safetensors")

_MISSING: Any = dataclasses.MISSING
_command: Optional[List[str]] = None


def command() -> List[str]:
    """What the script was started for: ["check"], ["probe"], ["train", DIR], or []. Removes it from sys.argv, so that a
    script may parse flags of its own."""
    global _command
    if _command is None:
        words = sys.argv[1:]
        if words in (["check", "--json"], ["probe", "--json"]) or (len(words) == 2 and words[0] == "train"):
            _command, sys.argv[1:] = [word for word in words if word != "--json"], []
        else:
            _command = []
    return _command


# --- settings -----------------------------------------------------------------------------------------------------------


class Field(NamedTuple):
    key: str
    kind: Any  # a type, or None for any
    default: Any  # _MISSING if it must be given
    rules: Mapping[str, Any]  # as setting() has them

    def read(self, value: Any) -> Any:
        """The setting's value as its type has it. Refusal if that cannot be."""
        try:
            read = _converted(self.kind, value)
        except ValueError as error:
            raise Refusal(self.key, f"{self.key} = {contract.toml_value(value)}; it must be {error}") from None
        for rule, words, holds in (("min", "at least", read >= self.rules["min"] if "min" in self.rules else True),
                                   ("max", "at most", read <= self.rules["max"] if "max" in self.rules else True),
                                   ("above", "above", read > self.rules["above"] if "above" in self.rules else True)):
            if not holds:
                raise Refusal(self.key, f"{self.key} = {contract.toml_value(value)}; it must be {words} {self.rules[rule]}")
        return read


def setting(default: Any = _MISSING, *, min: Any = None, max: Any = None, above: Any = None, neutral: Any = _MISSING,
            when: Optional[Mapping[str, Any]] = None, local: bool = False) -> Any:
    """A field of a dataclass of settings.

    min, max, above: its range, with both ends; above: without its lower end.
    neutral: the value with which a run is as one made before the setting was there, and has the same id.
    when: {"schedule": "cosine"}: the setting counts only if that other one (by its dotted key) has this value, or one of a
        list; else it is no part of the run's id, and `plan` names it as one without effect.
    local: it changes no result (threads, intervals of logging), and is no part of the id."""
    rules = {"min": min, "max": max, "above": above, "when": when, "local": local or None}
    rules = {name: rule for name, rule in rules.items() if rule is not None}
    if neutral is not _MISSING:
        rules["neutral"] = neutral
    if isinstance(default, list):
        return dataclasses.field(default_factory=lambda: list(default), metadata=rules)
    return dataclasses.field(default=default, metadata=rules)


def _converted(kind: Any, value: Any) -> Any:
    # ValueError saying what `value` should be.
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is None or kind is Any:
        return value
    if origin is Literal:
        if value not in arguments or type(value) not in map(type, arguments):
            raise ValueError("one of " + ", ".join(map(contract.toml_value, arguments)))
        return value
    if kind in (list, tuple) or origin in (list, tuple):
        if not isinstance(value, (list, tuple)):
            raise ValueError("a list")
        return (origin or kind)(_converted(arguments[0] if arguments else None, item) for item in value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    needed: Any
    needed, words = {bool: (bool, "true or false"), int: (int, "a whole number"), float: (float, "a number"), str: (str, "a text"),
                     Path: ((str, Path), "a path")}[kind]
    if not isinstance(value, needed) or (kind is int and isinstance(value, bool)) or (kind is float and not math.isfinite(value)):
        raise ValueError(words)
    return Path(value) if kind is Path else value


def _kind_of(hint: Any, key: str) -> Any:
    # The type in an Optional. Error for one that no setting has.
    origin, arguments = get_origin(hint), [argument for argument in get_args(hint) if argument not in (type(None), Ellipsis)]
    if (origin is Union or getattr(origin, "__name__", "") == "UnionType") and len(arguments) == 1:
        return _kind_of(arguments[0], key)
    is_list = origin in (list, tuple) and all(argument in (bool, int, float, str) for argument in arguments)
    if hint in KINDS or origin is Literal or is_list:
        return hint
    raise Error(f"the setting {key} has the type {hint}; a setting is a bool, int, float, str, Path, Literal, or list of these")


def fields_of(shape: Any, prefix: str = "") -> List[Field]:
    """The settings of a dataclass, of those in it with a dotted key, or of a dict. Of an instance the values are the
    defaults."""
    if isinstance(shape, Mapping):
        for key, value in shape.items():
            try:
                contract.toml_value("" if value is None else str(value) if isinstance(value, Path) else value)
            except (TypeError, ValueError) as error:
                raise Error(f"the setting {key}: {error}; a part of a dict has a dotted key") from None
        return [Field(key, next((kind for kind in KINDS if isinstance(value, kind)), None), value, {}) for key, value in shape.items()]
    fields, hints = [], get_type_hints(shape if isinstance(shape, type) else type(shape))
    for field in dataclasses.fields(shape):
        key, kind = prefix + field.name, hints[field.name]
        factory: Any = field.default_factory
        default = getattr(shape, field.name) if not isinstance(shape, type) else field.default if factory is _MISSING else factory()
        if dataclasses.is_dataclass(kind):
            fields += fields_of(kind if default is _MISSING else default, key + ".")
        else:
            fields.append(Field(key, _kind_of(kind, key), default, field.metadata))
    return fields


class Program:
    """What a script is to tearless: its settings and its answers."""

    def __init__(self, shape: Any = None, *, identity: Optional[str] = None, files: Optional[Iterable[str]] = None,
                 updates: Union[str, Callable[[Any], int], None] = None, **answers: Any) -> None:
        unknown = sorted(set(answers) - ANSWERS)
        if unknown:
            raise Error(f"a training program says nothing of {unknown[0]}; it may say {', '.join(sorted(ANSWERS))}")
        self.shape = shape
        self.takes_any = shape is None
        self.fields = {} if shape is None else {field.key: field for field in fields_of(shape)}
        self.script = Path(getattr(sys.modules["__main__"], "__file__", None) or "notebook").absolute()
        self._identity, self._files, self._answers = identity, files if files is None else list(files), answers
        self._updates = updates or next((key for key in COUNTS if key in self.fields), None)
        if isinstance(self._updates, str) and self._updates not in self.fields:
            raise Error(f"updates = \"{self._updates}\" is none of the settings")
        for field in self.fields.values():
            for other in field.rules.get("when", {}):
                if other not in self.fields:
                    raise Error(f"the setting {field.key} counts when {other} has some value, and that is no setting")
        self._checksums: Dict[Path, str] = {}

    def answer(self, words: List[str]) -> None:
        """Answers `check` or `probe`, and exits; returns from anything else."""
        if words == ["probe"]:
            contract.answer_probe(self.script.name, self.identity(), self._files)
        if words == ["check"]:
            contract.answer_check(self._answer_to)

    def identity(self) -> str:
        if self._identity or not self.script.is_file():
            return self._identity or self.script.name
        return contract.identity_of(self.script, [self.script.parent / name for name in self._files or []])

    def _answer_to(self, question: contract.Question) -> Dict[str, Any]:
        canonical, local, data, waiting_for, unused = self.resolve(question.settings, question.path, question.smoke)
        try:
            shaped = self.shaped({**canonical, **local})
        except ValueError as error:  # of a dataclass that looks at several of its settings
            raise Refusal("", str(error)) from None
        answers = {name: answer(shaped) if callable(answer) else answer for name, answer in self._answers.items()}
        updates: Any = self._updates(shaped) if callable(self._updates) else {**canonical, **local}.get(self._updates or "")
        return contract.accepted(canonical, local, data, waiting_for, updates=updates,
                                 unused={key: off for key, off in unused.items() if key in question.settings}, **answers)

    def resolve(self, asked: Mapping[str, Any], path_of: Callable[[str, str], Path], smoke: bool = False
                ) -> Tuple[Dict[str, Any], Dict[str, Any], Dict[str, str], str, Dict[str, str]]:
        """Settings of the id; the others; input files with their checksums; which is missing; and which settings have no
        effect, with why. Refusal."""
        for key in asked:
            if not self.takes_any and key not in self.fields:
                raise Refusal(key, self._unknown(key))
        values: Dict[str, Any] = dict(asked) if self.takes_any else {}
        for field in self.fields.values():
            if field.key not in asked and field.default is _MISSING:
                raise Refusal(field.key, f"{field.key} is missing; it has no default")
            given = asked.get(field.key, field.default)
            values[field.key] = given if given is None else field.read(given)
        if smoke and isinstance(self._updates, str):
            values[self._updates] = min(values[self._updates], SMOKE_UPDATES)
        canonical: Dict[str, Any] = {}
        local: Dict[str, Any] = {}
        data: Dict[str, str] = {}
        waiting_for, unused = "", {}
        for key, value in values.items():
            field = self.fields.get(key, Field(key, None, None, {}))
            off = next((f"{other} = {contract.toml_value(values[other])}" for other, needed in field.rules.get("when", {}).items()
                        if values[other] not in (needed if isinstance(needed, list) else [needed])), None)
            if off is not None and not field.rules.get("local"):
                unused[key] = off
            elif "neutral" in field.rules and value == field.rules["neutral"]:
                pass
            elif field.kind is Path and value is not None:
                path = path_of(key, str(value)) if key in asked else self.script.parent / value
                local[key] = str(path)
                if not path.exists():
                    waiting_for = waiting_for or f"{path} is missing"
                    continue
                canonical[key] = self.checksum(path, data)
            else:
                (local if field.rules.get("local") else canonical)[key] = value
        return canonical, local, data, waiting_for, unused

    def _unknown(self, key: str) -> str:
        if key == "train.seed":
            has_own = "seed" in self.fields
            return "the settings have no train.seed, which every run has; " + (
                'write seed_key = "seed" at the top of the grid' if has_own else 'add "train.seed", or a setting that seed_key names')
        close = difflib.get_close_matches(key, self.fields, 1)
        return f'unknown setting "{key}"' + (f'; did you mean {close[0]}?' if close else "")

    def checksum(self, path: Path, data: Dict[str, str]) -> str:
        """That of a file, or of all files of a folder; adds them to `data`."""
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in files:
            if file not in self._checksums:
                self._checksums[file] = contract.sha256_of(file)
            data[str(file)] = self._checksums[file]
        if not path.is_dir():
            return data[str(path)]
        return contract.sha256("".join(f"{file.relative_to(path)} {data[str(file)]}\n" for file in files).encode())

    def shaped(self, values: Mapping[str, Any]) -> Any:
        """The settings as the script has them: a dict, or an instance of its dataclass."""
        if self.takes_any:
            return dict(values)
        whole = {}
        for field in self.fields.values():
            absent = field.rules.get("neutral", field.default)
            value = values.get(field.key, absent)
            whole[field.key] = None if value is None or value is _MISSING else _converted(field.kind, value)
        if isinstance(self.shape, Mapping):
            return whole
        return _instance(self.shape if isinstance(self.shape, type) else type(self.shape), whole, "")

    def require_data(self, canonical: Mapping[str, Any], local: Mapping[str, Any], folder: Path) -> None:
        for field in self.fields.values():
            if not field.kind is Path or field.key not in local:
                continue
            path = folder / local[field.key]
            if not path.exists() or self.checksum(path, {}) != canonical.get(field.key):
                raise Error(f"{path} is {'not the file that this run was planned with' if path.exists() else 'missing'}", contract.DATA)


def _instance(shape: Any, values: Mapping[str, Any], prefix: str) -> Any:
    hints = get_type_hints(shape)
    return shape(**{field.name: _instance(hints[field.name], values, f"{prefix}{field.name}.")
                    if dataclasses.is_dataclass(hints[field.name]) else values[prefix + field.name]
                    for field in dataclasses.fields(shape)})


@overload
def settings(shape: Type[S], /) -> Type[S]: ...
@overload
def settings(*, identity: Optional[str] = ..., files: Optional[Iterable[str]] = ...,
             updates: Union[str, Callable[[Any], int], None] = ..., **answers: Any) -> Callable[[Type[S]], Type[S]]: ...
@dataclass_transform(field_specifiers=(dataclasses.field,))  # mypy reads a call of setting() as the default
def settings(shape: Any = None, /, **options: Any) -> Any:
    """Makes a class a dataclass of settings, and in the script itself answers `check` and `probe`.

    identity: what the program is, if not name and checksum of the script and `files`: runs of two identities differ.
    files: files beside the script that it needs, maybe none. A script that says so is copied when a grid is submitted.
    updates: the setting that says how many steps a run has, or a function of the settings; if not given, the setting
        updates, steps or epochs.
    And what an answer to `check` may have, as values or functions of the settings: device ("cpu", "cuda"), threads,
    memory_bytes (bytes), scores, metrics (lists of names), and others."""
    contract.end_by_code()

    def made(shape: Type[S]) -> Type[S]:
        whole: Any = shape if dataclasses.is_dataclass(shape) else dataclasses.dataclass(shape)
        whole.__tearless__ = options
        program = Program(whole, **options)
        if shape.__module__ == "__main__":
            program.answer(command())
        return cast(Type[S], whole)

    return made if shape is None else made(shape)


# --- the run ------------------------------------------------------------------------------------------------------------


class Run(Generic[S]):
    """The run that this process trains. Error, which ends the program with its sentence, if the folder is in use or the
    settings are refused.

    settings: a dataclass or an instance of one, a dict of defaults with dotted keys, or nothing: any settings.
    folder: where a script trains that tearless has not started. A run of other settings or of another script that is
        there is replaced; one that was interrupted is resumed.
    Other keywords are those of the decorator `settings`."""

    settings: S
    folder: Path

    @overload
    def __init__(self: "Run[Dict[str, Any]]", settings: Optional[Mapping[str, Any]] = ..., *, folder: str = ...,
                 **options: Any) -> None: ...
    @overload
    def __init__(self, settings: Type[S], *, folder: str = ..., **options: Any) -> None: ...
    @overload
    def __init__(self, settings: S, *, folder: str = ..., **options: Any) -> None: ...
    def __init__(self, settings: Any = None, *, folder: str = "runs/local", **options: Any) -> None:
        contract.end_by_code()
        words = command()
        self._program = program = Program(settings, **{**getattr(settings, "__tearless__", {}), **options})
        program.answer(words)
        is_bare = not words
        if is_bare:
            Path(folder).mkdir(parents=True, exist_ok=True)
        self._attempt = attempt = contract.Attempt(Path(folder if is_bare else words[1]), self._prepare if is_bare else None)
        identity = program.identity()
        if attempt.identity not in ("", identity):
            raise Error(f"this run is of {attempt.identity}, and {program.script} is now {identity}; submit its grid again")
        program.require_data(attempt.canonical, attempt.local, attempt.folder)
        self.settings = program.shaped({**attempt.canonical, **attempt.local})
        self.folder = attempt.folder
        self._is_bare, self._saw_stop, self._process = is_bare, False, os.getpid()
        self._stop = contract.StopRequest()
        atexit.register(self._at_exit)

    def _prepare(self, folder: Path) -> None:
        # Of a script that tearless has not started.
        try:
            canonical, local, _, waiting_for, _ = self._program.resolve({}, lambda key, value: Path(value))
        except Refusal as refusal:
            raise Error(str(refusal)) from None
        if waiting_for:
            raise Error(waiting_for, contract.DATA)
        text = contract.toml_text({**canonical, "program.identity": self._program.identity()})
        if contract.read_text(folder / "run.toml") != text or (folder / "DONE").exists():
            for name in ("DONE", "run.toml", *RESULTS):
                if (folder / name).is_dir():
                    shutil.rmtree(folder / name)
                elif (folder / name).exists():
                    os.remove(folder / name)
            contract.write_atomically(folder / "run.toml", text.encode())
        contract.write_atomically(folder / "local.toml", contract.toml_text(local).encode())

    @property
    def step(self) -> int:
        """That of the checkpoint which resume() found, then that of the last log(); 0 before the first."""
        return self._attempt.step

    @property
    def should_stop(self) -> bool:
        """Whether the program is to make a checkpoint and end. Once this was true, done() records nothing, and the program
        ends as one that was stopped."""
        self._saw_stop |= self._stop.has_come
        return self._saw_stop

    def resume(self) -> Optional[Path]:
        """What the newest sound checkpoint kept, a file or folder; None if the run begins. Lines of metrics after it are
        cut off. Comes before the first log(); without it, a run begins again after each stop."""
        return self._attempt.begin(resuming=True)

    def log(self, step: int, values: Optional[Mapping[str, Any]] = None, /, **named: Any) -> None:
        """Metrics of a step, by name: numbers, also of numpy, and tensors of one element. Error for a step before the last
        one, a name that has a value there, and what is no number."""
        self._attempt.log(step, {**(values or {}), **named})

    def checkpoint(self, saved: Union[bytes, str, "os.PathLike[str]", Callable[[BinaryIO], Any]], step: Optional[int] = None
                   ) -> None:
        """Keeps bytes, a copy of a file or folder (a relative path starts from `folder`), or what a function writes to the
        file that it is given, as the state after the step that was logged last, or after `step`. It is complete or absent;
        the newest two stay. What is logged of a step comes before its checkpoint."""
        self._attempt.checkpoint(saved, step)

    def done(self, scores: Optional[Mapping[str, Any]] = None, /, files: Iterable[str] = (), **named: Any) -> None:
        """The run's result: scores by name, and files in `folder` that belong to it. Nothing can follow it."""
        if self._saw_stop:
            self._attempt.give_up()
        self._attempt.done({**(scores or {}), **named}, files)
        if self._is_bare:
            contract.say(f"the scores are in {self.folder / 'scores.json'}")

    def diverged(self, reason: str) -> NoReturn:
        """Records that the run diverged at this step ("the loss is not finite"), which is a result, and ends the program."""
        self._attempt.diverged(reason)
        sys.exit(contract.DIVERGED)

    def _at_exit(self) -> None:
        if self._attempt.ended or self._process != os.getpid():
            return
        if self._saw_stop:
            try:
                self._attempt.give_up()
            except SystemExit as stopped:
                sys.stdout.flush()
                os._exit(cast(int, stopped.code))
        elif not hasattr(sys, "last_value"):  # an exception has said why
            contract.say("the program has ended without done() or diverged(), so the run has no result")
