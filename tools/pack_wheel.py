#!/usr/bin/env python3
"""pack_wheel.py NAME VERSION --summary TEXT --file SOURCE=PLACE… [--readme FILE] [--license FILE=NAME…] [--glibc 2.28] [--level 9] [--out dist]
pack_wheel.py --tag FILE…

Packs files into OUT/NAME-VERSION-py3-none-TAG.whl, renews OUT/SHA256SUMS, and prints the wheel's path; --tag prints the tag of these programs alone.

PLACE is scripts/… (installed into bin/, stripped by the caller), data/… (installed below the environment's folder) or a path below site-packages.
A SOURCE that is a folder is packed with all that is in it, a link as the file that it names; a later --file of the same PLACE wins. Files keep their
x bit. --license puts a file into the metadata's licenses/. The tag is that of the newest GLIBC symbol which `objdump -T` finds in any ELF file
packed; one above --glibc is refused, by name. The same files make the same bytes: times are SOURCE_DATE_EPOCH's, else those of the commit.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import stat
import subprocess
import sys
import time
import zipfile

CLASSIFIERS = [
    "Development Status :: 4 - Beta", "Environment :: Console", "Intended Audience :: Science/Research",
    "License :: OSI Approved :: Apache Software License", "Operating System :: POSIX :: Linux", "Programming Language :: C++",
    "Programming Language :: Python :: 3", "Topic :: Scientific/Engineering :: Artificial Intelligence",
]


def newest_glibc(paths, limit=None):
    """The newest version of GLIBC that a symbol of these files is of; None where none is an ELF file."""
    newest = None
    for path in paths:
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        newest = newest or (2, 17)  # the oldest that a tag can name
        symbols = subprocess.run(["objdump", "-T", "-p", path], check=True, capture_output=True, text=True).stdout
        if "GLIBC_ABI_DT_RELR" in symbols:  # a mark of the linker that loaders know since 2.36
            symbols += "\n GLIBC_2.36 (relative relocations: link with -z nopack-relative-relocs)"
        found = re.findall(r"GLIBC_(\d+)\.(\d+)[.\d]*\)?(?: +(\S.*))?$", symbols, re.MULTILINE)
        for major, minor, symbol in sorted(found, key=lambda each: not each[2]):
            version = (int(major), int(minor))
            if limit and version > limit:
                sys.exit(f"pack_wheel: {path} needs {symbol or 'something'} of GLIBC {major}.{minor}; this wheel is for {limit[0]}.{limit[1]}")
            newest = max(newest, version)
    return newest


def tag_of(glibc):
    return f"manylinux_{glibc[0]}_{glibc[1]}_{platform.machine()}" if glibc else "any"


def files_of(source):
    source = pathlib.Path(source)
    if not source.is_dir():
        return [("", source)]
    return [(f"/{path.relative_to(source)}", path) for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def commit_time():
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=pathlib.Path(__file__).parent, capture_output=True, text=True).stdout.strip()
    return max(time.gmtime(int(epoch or 0))[:6], (1980, 1, 1, 0, 0, 0))


def pack(name, version, arguments):
    module = name.replace("-", "_")
    places = {"scripts": f"{module}-{version}.data/scripts", "data": f"{module}-{version}.data/data"}
    info = f"{module}-{version}.dist-info"
    entries = {}  # where in the wheel -> file, or text
    for given in arguments.file:
        source, _, place = given.partition("=")
        first, _, rest = place.partition("/")
        place = "/".join([places.get(first, first), *([rest] if rest else [])])
        entries.update({place + below: path for below, path in files_of(source)})
    for given in arguments.license:
        source, _, called = given.partition("=")
        entries[f"{info}/licenses/{called or os.path.basename(source)}"] = pathlib.Path(source)
    limit = tuple(map(int, arguments.glibc.split("."))) if arguments.glibc else None
    tag = tag_of(newest_glibc([path for _, path in sorted(entries.items())], limit))
    entries[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tearless\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"
    entries[f"{info}/METADATA"] = "\n".join([
        "Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: {arguments.summary}", "License: Apache-2.0",
        *(f"Classifier: {classifier}" for classifier in CLASSIFIERS), "Requires-Python: >=3.8", "Description-Content-Type: text/markdown", "",
        pathlib.Path(arguments.readme).read_text(encoding="utf-8") if arguments.readme else arguments.summary + "\n"])

    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    for older in out.glob(f"{module}-*.whl"):
        older.unlink()
    wheel = out / f"{module}-{version}-py3-none-{tag}.whl"
    part = wheel.with_suffix(".part")
    record = ""
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=arguments.level) as archive:
        def add(place, data, mode=0o644):
            member = zipfile.ZipInfo(place, commit_time())
            member.create_system, member.compress_type = 3, zipfile.ZIP_DEFLATED
            member.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(member, data, compresslevel=arguments.level)

        for place, source in sorted(entries.items()):
            is_text = isinstance(source, str)
            data = source.encode() if is_text else source.read_bytes()
            add(place, data, 0o755 if not is_text and os.access(source, os.X_OK) and source.stat().st_mode & 0o100 else 0o644)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{place},sha256={digest},{len(data)}\n"
        add(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    part.rename(wheel)
    return wheel


def renew_sums(out):
    files = sorted(path for path in pathlib.Path(out).iterdir() if path.name.endswith((".whl", ".tar.gz")))
    (pathlib.Path(out) / "SHA256SUMS").write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files))


def main():
    if sys.argv[1:2] == ["--tag"]:
        print(tag_of(newest_glibc(sys.argv[2:])))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("version")
    parser.add_argument("--summary", required=True)
    parser.add_argument("--readme")
    parser.add_argument("--file", action="append", default=[], metavar="SOURCE=PLACE")
    parser.add_argument("--license", action="append", default=[], metavar="FILE=NAME")
    parser.add_argument("--glibc", help="the newest version of GLIBC that is allowed")
    parser.add_argument("--level", type=int, default=9, help="of compression")
    parser.add_argument("--out", default="dist")
    arguments = parser.parse_args()
    print(pack(arguments.name, arguments.version, arguments))
    renew_sums(arguments.out)


if __name__ == "__main__":
    main()
