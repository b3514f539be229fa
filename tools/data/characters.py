"""What get_enwik8.py and get_text8.py share: they cut a text of Wikipedia into train.txt, dev.txt and test.txt, by bytes."""

import hashlib
import pathlib
import re
import sys

import raw_data

SIZES = {"train": 90_000_000, "dev": 5_000_000, "test": 5_000_000}  # of the whole text, as in the papers


def sizes_of(size):
    """The sizes of the sets: of a text that is not whole 5 % each are dev and test."""
    if size == sum(SIZES.values()):
        return SIZES
    held_out = size * 5 // 100
    return {"train": size - 2 * held_out, "dev": held_out, "test": held_out}


def raw_file(tool, folder, name):
    """The path of the whole text, or of its only beginning NAME.firstN; without what says that it is packed."""
    beginnings = sorted({re.match(rf"{name}\.first\d+", file.name).group() for file in folder.glob(f"{name}.first[0-9]*")})
    if raw_data.packed_file(folder / name) or not beginnings:
        return folder / name
    if len(beginnings) > 1:
        sys.exit(f"{tool}: {folder} has several beginnings of {name}, {' and '.join(beginnings)}: leave one there")
    return folder / beginnings[0]


def get(tool, name, sha256, allowed, source, folder, out):
    """Cuts NAME of FOLDER, or its beginning. SHA256: of the whole text. ALLOWED: a pattern of its beginnings."""
    folder, out = pathlib.Path(folder), pathlib.Path(out)
    path = raw_file(tool, folder, name)
    file, data = raw_data.unpacked(tool, path, source)
    whole = sum(SIZES.values())
    size = whole if path.name == name else int(path.name.removeprefix(f"{name}.first"))
    if len(data) != size:
        sys.exit(f"{tool}: {file} has {len(data)} bytes in place of {size}: it is incomplete; its first N bytes alone may be {name}.firstN")
    if size == whole and hashlib.sha256(data).hexdigest() != sha256:
        sys.exit(f"{tool}: {file} has the SHA-256 {hashlib.sha256(data).hexdigest()} in place of {sha256}: it is another version of the data")
    if min(sizes_of(size).values()) == 0:
        sys.exit(f"{tool}: {file} has {size} bytes, too few for three sets; put more of {name} there")
    if not re.fullmatch(allowed, data):
        sys.exit(f"{tool}: {file} is no beginning of {name}; put {source} there")
    out.mkdir(parents=True, exist_ok=True)
    begin = 0
    for part, count in sizes_of(size).items():
        raw_data.write_atomically(out / f"{part}.txt", data[begin:begin + count])
        print(f"{out / part}.txt: {count} bytes")
        begin += count
