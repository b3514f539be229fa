"""A W&B script as a run of tearless, by one changed line: `import tearless.wandb as wandb` (docs/trainer.md).

init(config=…) has the settings with their defaults, a dict or what argparse returns; log() the metrics, of which the last
values are the scores, with what the script puts into summary; finish() writes the result, as the script's normal end does.
Nothing leaves this machine. A script is one run, keeps no checkpoint, and ends at once when it is stopped.
"""

from __future__ import annotations

import argparse
import atexit
import os
import signal
import sys
from typing import Any, Dict, Iterator, Mapping, MutableMapping, NoReturn, Optional, Set

from tearless import contract, trainer

NAMES = ("init", "config", "log", "summary", "finish")

contract.end_by_code()
trainer.command()  # before the script parses flags
_exit_code: Any = 0
_exit = sys.exit


def _noted_exit(code: Any = None, /) -> NoReturn:
    global _exit_code
    _exit_code = code
    _exit(code)


class Values(MutableMapping[str, Any]):
    """A dict with attributes, as W&B's config and summary are. A part of a nested one has a dotted key, too."""

    def __init__(self) -> None:
        vars(self).update(_values={}, _fixed={}, _unread=set())

    def _fix(self, values: Mapping[str, Any], unread: Set[str]) -> None:
        # The run's settings, which the script does not change.
        self._values.update(values)
        self._fixed.update(values)
        self._unread.update(unread)

    def _in(self, key: str) -> Dict[str, Any]:
        # Those that are meant by `key`, without what is common.
        return {name[len(key) + 1:]: value for name, value in self._values.items() if name.startswith(key + ".")}

    def __getitem__(self, key: str) -> Any:
        if key in self._values:
            self._unread.discard(key)
            return self._values[key]
        inner = self._in(key)
        if not inner:
            raise KeyError(key)
        part = Values()
        part._fix({name: self[f"{key}.{name}"] for name in inner}, set())
        return part

    def __setitem__(self, key: str, value: Any) -> None:
        for name, single in contract.flat({key: value}).items():
            self._values[name] = self._fixed.get(name, single)

    def __delitem__(self, key: str) -> None:
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(key.split(".")[0] for key in self._values))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getattr__(self, key: str) -> Any:
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"there is no {key} here") from None

    def __setattr__(self, key: str, value: Any) -> None:
        self[key] = value


class WandbRun:
    """What init() returns. `step`: at which the next log() without a step of its own is."""

    def __init__(self, defaults: Optional[Mapping[str, Any]]) -> None:
        self._run = trainer.Run(None if defaults is None else contract.flat(defaults))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing of a run without checkpoints can be saved
        self.config, self.summary = config, summary
        self.step = 0
        self._last: Dict[str, Any] = {}
        before = contract.flat(defaults or {})
        settings = self._run.settings
        config._fix(settings, {key for key, value in settings.items() if key not in before or before[key] != value})

    def log(self, data: Mapping[str, Any], step: Optional[int] = None, commit: bool = True) -> None:
        """Metrics of a step; of the next one if it is not given, and with commit=False of the same as the next log()."""
        values = contract.flat(data)
        self.step = self.step if step is None else step
        self._run.log(self.step, values)
        self._last.update(values)
        if step is None and commit:
            self.step += 1

    def finish(self, exit_code: int = 0) -> None:
        """The run's result: the last value of each metric, and the summary. Of a run that failed there is none."""
        if exit_code:
            sys.exit(exit_code)
        if config._unread:  # the script had a value of its own, and a table would show what was not trained
            key = min(config._unread)
            raise contract.Error(f"the run has {key} = {config._values[key]!r}, but the script did not read it from wandb.config; "
                                 "let it do so, or take the setting out of the grid")
        self._run.done({**self._last, **contract.flat(dict(summary))})

    def __enter__(self) -> WandbRun:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.finish()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a run of tearless.wandb has {', '.join(NAMES[1:])}; it has no {name}")


config, summary = Values(), Values()
_run: Optional[WandbRun] = None


def init(project: Optional[str] = None, *, config: Any = None, **about: Any) -> WandbRun:
    """Begins the run. config: settings with their defaults, to which the grid's apply: afterwards `wandb.config` has the
    run's, and what argparse returned, too. What W&B takes besides (project, name, tags, mode …) has no effect."""
    global _run
    if _run:
        raise contract.Error("wandb.init() was called twice; a script is one run")
    if config is not None and not isinstance(config, (Mapping, argparse.Namespace)):
        raise contract.Error(f"wandb.init(config=…) takes a dict or what argparse returns, not a {type(config).__name__}")
    _run = WandbRun(vars(config) if isinstance(config, argparse.Namespace) else config)
    sys.exit = _noted_exit
    atexit.register(_finish_at_exit)
    if isinstance(config, argparse.Namespace):
        _replace(config)
    return _run


def _replace(arguments: argparse.Namespace) -> None:
    # A script that reads its flags there afterwards reads the run's settings.
    class Watched(type(arguments)):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            config._unread.difference_update(list(config._unread) if name == "__dict__" else [name])
            return super().__getattribute__(name)

    vars(arguments).update({key: config._values.get(key) for key in vars(arguments)})
    arguments.__class__ = Watched


def _finish_at_exit() -> None:
    if not _run or _run._run._attempt.ended or hasattr(sys, "last_value") or _exit_code not in (None, 0):
        return
    try:
        _run.finish()
    except contract.Error as error:
        contract.say(str(error))
        os._exit(error.code)
    except SystemExit as end:
        os._exit(int(end.code or 0))


def _begun(name: str) -> WandbRun:
    if not _run:
        raise contract.Error(f"wandb.{name}() comes after wandb.init()")
    return _run


def log(data: Mapping[str, Any], step: Optional[int] = None, commit: bool = True) -> None:
    _begun("log").log(data, step, commit)


def finish(exit_code: int = 0) -> None:
    _begun("finish").finish(exit_code)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"tearless.wandb has {', '.join(NAMES)}; it has no {name}")
