"""What the scripts tools/data/get_*.py share: they unpack the files of a data set that somebody downloaded, and refuse others."""

import dataclasses
import gzip
import hashlib
import io
import lzma
import os
import pathlib
import sys
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHARED = ROOT.parent / "shared" / "data"


def only_member(data):
    """The only file in an archive of zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if len(archive.namelist()) != 1:
            raise zipfile.BadZipFile(f"it has {len(archive.namelist())} files in place of one")
        return archive.read(archive.namelist()[0])


UNPACK = {"": lambda data: data, ".xz": lzma.decompress, ".gz": gzip.decompress, ".zip": only_member}


@dataclasses.dataclass(frozen=True)
class RawFile:
    name: str    # without the suffix of a packed file
    sha256: str  # of the unpacked bytes, and their
    bytes: int
    lines: int = 0  # 0: it is no text


def packed_file(path):
    """The first of PATH, PATH.xz, PATH.gz and PATH.zip that exists, and what unpacks it; None if there is none."""
    for suffix, unpack in UNPACK.items():
        file = path.with_name(path.name + suffix)
        if file.exists():
            return file, unpack
    return None


def unpacked(tool, path, source):
    """The file and the bytes of PATH, PATH.xz, PATH.gz or PATH.zip. Exits with a sentence if there is none, or it is damaged."""
    found = packed_file(path)
    if not found:
        sys.exit(f"{tool}: {path} (or .xz, .gz, .zip) is missing: put {source} there, or name its folder")
    file, unpack = found
    try:
        return file, unpack(file.read_bytes())
    except (lzma.LZMAError, EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
        sys.exit(f"{tool}: {file} cannot be unpacked ({error}); download it again")


def read(tool, folder, raw, source):
    """The bytes of FOLDER/NAME, packed or not. Exits with a sentence for another file than `raw`."""
    file, data = unpacked(tool, folder / raw.name, source)
    if len(data) != raw.bytes:
        sys.exit(f"{tool}: {file} has {len(data)} bytes in place of {raw.bytes}: it is another version of the data, or incomplete")
    lines = data.count(b"\n")
    if raw.lines and lines != raw.lines:
        sys.exit(f"{tool}: {file} has {lines} lines in place of {raw.lines}: it is another version of the data")
    found = hashlib.sha256(data).hexdigest()
    if found != raw.sha256:
        sys.exit(f"{tool}: {file} has the SHA-256 {found} in place of {raw.sha256}: it is another version of the data")
    return data


def write_atomically(file, data):
    part = file.with_name(file.name + ".part")
    part.write_bytes(data)
    os.replace(part, file)


def get(tool, files, source, folder, out):
    """Writes `files` of FOLDER, unpacked, to OUT. All are checked before the first is written."""
    folder, out = pathlib.Path(folder), pathlib.Path(out)
    contents = [read(tool, folder, raw, source) for raw in files]
    out.mkdir(parents=True, exist_ok=True)
    for raw, data in zip(files, contents):
        write_atomically(out / raw.name, data)
        print(f"{out / raw.name}: {f'{raw.lines} sentences' if raw.lines else f'{raw.bytes} bytes'}")


def run(main, doc):
    """Calls main() with the arguments of the command line."""
    arguments = sys.argv[1:]
    if len(arguments) > 2 or any(argument.startswith("-") for argument in arguments):
        sys.exit(doc)
    main(*arguments)
