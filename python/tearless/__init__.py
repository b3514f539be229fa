"""tearless from Python: results as pandas DataFrames, grids submitted, trainers written. docs/python.md has the reference.

What is imported here is the standard library alone; pandas where results are read, pyarrow where they are written to Parquet.
"""

import importlib.metadata
from typing import TYPE_CHECKING

from .contract import Error
from .program import program

if TYPE_CHECKING:  # what __getattr__() imports when it is asked for
    from .results import Submission, Workspace, open, plan, submit, wait
    from .trainer import Run, setting, settings

try:
    __version__ = importlib.metadata.version("tearless")
except importlib.metadata.PackageNotFoundError:  # a checkout on PYTHONPATH
    __version__ = "unknown"
__all__ = ["Error", "Run", "Submission", "Workspace", "open", "plan", "program", "setting", "settings", "submit", "wait"]

_MODULES = {name: "results" for name in ("Submission", "Workspace", "open", "plan", "submit", "wait")}
_MODULES.update({name: "trainer" for name in ("Run", "setting", "settings")})


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'tearless' has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module("." + _MODULES[name], __name__), name)
    globals()[name] = value
    return value
