#!/usr/bin/env python3
"""packages.py: fetches Debian's packages of Slurm and munge into a per-user cache, and prints the folder that holds them.

Nothing is installed. The packages that this machine lacks are unpacked into one folder, which a cluster (cluster.py) lays over the
machine's own /usr and /etc in namespaces of its own. So programs of the machine find their libraries there too. A second call
finds the folder ready. Several at once are safe: one fetches, the others wait.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PACKAGES = ["slurmctld", "slurmd", "slurm-client", "munge"]
LAYOUT = "1"  # of the folder; increased when the code below makes another one
STATUS = pathlib.Path("/var/lib/dpkg/status")
COMMANDS = ["apt-get", "dpkg-deb"]


def why_not():
    """Why the packages cannot be fetched here; "" if they can."""
    missing = [command for command in COMMANDS if not shutil.which(command)]
    return f"needs {' and '.join(missing)}, for the packages of Slurm" if missing else ""


def fetch(say=lambda text: None):
    """The folder with the packages. Raises RuntimeError with apt's message if they cannot be had."""
    caches = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tearless"
    caches.mkdir(parents=True, exist_ok=True)
    # Which packages are missing depends on what is installed.
    key = hashlib.sha256("\n".join([LAYOUT, *PACKAGES]).encode() + STATUS.read_bytes()).hexdigest()[:16]
    cache = caches / f"slurm-{key}"
    if (cache / "complete").exists():
        return cache
    with open(caches / "slurm.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (cache / "complete").exists():
            return cache
        say(f"fetching packages of Slurm into {cache}")
        remove_unused(caches)
        part = pathlib.Path(tempfile.mkdtemp(prefix="slurm-part.", dir=caches))
        try:
            download(part / "archives")
            unpack(part / "archives", part)
            (part / "complete").touch()
            part.rename(cache)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return cache


@contextlib.contextmanager
def in_use(cache):
    """Keeps a later fetch() from removing this folder."""
    with open(cache / "complete") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def remove_unused(caches):
    """Removes what an interrupted fetch() left, and folders for another state of the machine that no cluster uses."""
    for old in caches.glob("slurm-*"):
        with contextlib.ExitStack() as held:
            try:
                fcntl.flock(held.enter_context(open(old / "complete")), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except FileNotFoundError:
                pass
            except BlockingIOError:
                continue
            shutil.rmtree(old, ignore_errors=True)


def download(archives):
    (archives / "partial").mkdir(parents=True)
    command = ["apt-get", "install", "--download-only", "--no-install-recommends", "-y", "-q", "-o", f"Dir::Cache::archives={archives}",
               "-o", "APT::Sandbox::User=root", *PACKAGES]

    def run(*command):
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    done = run(*command)
    if done.returncode != 0:  # no lists of packages yet, or old ones
        run("apt-get", "update", "-q")
        done = run(*command)
    if done.returncode != 0:
        raise RuntimeError(f"apt-get could not fetch {', '.join(PACKAGES)}:\n{done.stdout}")


def unpack(archives, folder):
    for path in ["usr/sbin", "etc"]:
        (folder / path).mkdir(parents=True)
    for archive in sorted(archives.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)
    shutil.rmtree(archives)
    if (folder / "lib").exists():  # /lib is a link to /usr/lib
        shutil.copytree(folder / "lib", folder / "usr/lib", symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(folder / "lib")
    for program in (folder / "usr/sbin").glob("*-wlm"):  # the packages' scripts would make these links
        link = program.with_name(program.name.removesuffix("-wlm"))
        if not link.exists():
            link.symlink_to(program.name)


if __name__ == "__main__":
    try:
        print(why_not() or fetch(lambda text: print(f"packages: {text}", file=sys.stderr)))
    except RuntimeError as error:
        sys.exit(f"packages: error: {error}")
    sys.exit(1 if why_not() else 0)
