"""The program `tearless`, found from Python."""

import importlib.metadata
import os
import pathlib
import shutil
import sysconfig

try:
    __version__ = importlib.metadata.version("tearless")
except importlib.metadata.PackageNotFoundError:  # a checkout on PYTHONPATH
    __version__ = "unknown"


def program() -> str:
    """The path of the program: the one that was installed with this package, else the first on PATH."""
    for scheme in (None, f"{os.name}_user"):
        folder = sysconfig.get_path("scripts", *([scheme] if scheme else []))
        if os.access(pathlib.Path(folder) / "tearless", os.X_OK):
            return str(pathlib.Path(folder) / "tearless")
    found = shutil.which("tearless")
    if not found:
        raise FileNotFoundError("there is no program `tearless`; to install it: pip install tearless")
    return found
