"""The packages of others that a test imports: `packages.use()` makes them importable, here and in the programs that the test starts, or is the
reason why they are missing, for unittest.skipIf. A test of plain Python does not call it."""

import functools
import os
import pathlib
import subprocess
import sys

ENV = pathlib.Path(__file__).resolve().parents[2] / "tools" / "python_env.sh"


@functools.lru_cache(maxsize=None)
def use():
    """"" once pandas, pyarrow, numpy, mypy and tensorboard can be imported; else why not."""
    made = subprocess.run([ENV], env={**os.environ, "PYTHON": sys.executable}, capture_output=True, text=True)
    if made.returncode:
        return made.stderr.strip() or f"{ENV} ended with {made.returncode}"
    folder = made.stdout.strip()
    sys.path.append(folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), folder]))
    return ""
