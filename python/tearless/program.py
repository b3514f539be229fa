"""The program `tearless`: where it is, and what it answers."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from typing import List, NamedTuple, Optional, Sequence

from .contract import Error

FAILURE = "tearless: "


class Answer(NamedTuple):
    code: int
    text: str  # what the program printed


def program() -> str:
    """The path of the program: $TEARLESS_PROGRAM, else the one that was installed with this package, else that of PATH."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    found = os.environ.get("TEARLESS_PROGRAM") or shutil.which("tearless", path=os.pathsep.join(folders)) or shutil.which("tearless")
    if not found:
        raise Error(f"there is no program tearless in {folders[0]}, nor on PATH: pip install tearless, or set TEARLESS_PROGRAM to its path")
    return found


def call(arguments: Sequence[str], workspace: Optional[str] = None) -> Answer:
    """Runs the program, and says what it says on standard error. Its sentence of a failure is an Error; an answer with a code other than 0 is one without
    such a sentence: a claim that is contradicted, say."""
    words = [program(), *(["--workspace", workspace] if workspace else []), *arguments]
    said: List[str] = []
    with tempfile.TemporaryFile() as printed:
        try:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
        except OSError as error:
            raise Error(f"cannot start {words[0]}: {error.strerror}") from error
        with process:
            try:
                for line in process.stderr or ():
                    said.append(line)
                    if arguments[0] == "wait" and not line.startswith(FAILURE):  # for hours
                        sys.stderr.write(line)
            except BaseException:  # Ctrl-C in a notebook reaches Python alone
                process.terminate()
                raise
        printed.seek(0)
        text = printed.read().decode("utf-8", "replace")
    code = process.returncode
    failed = next((place for place, line in enumerate(said) if line.startswith(FAILURE)), len(said))
    if code != 0 and (failed < len(said) or code not in (1, 2)):
        raise Error("".join(said[failed:])[len(FAILURE):].strip() or f"tearless {' '.join(arguments)} ended with {code}")
    if arguments[0] != "wait" and code != 2:  # what cannot be done is said by who asked
        sys.stderr.write("".join(said))
    return Answer(code, text)
