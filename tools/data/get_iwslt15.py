#!/usr/bin/env python3
"""get_iwslt15.py [FOLDER [OUT]] [--any-version]: prepares IWSLT'15 English-Vietnamese for grids/twt_table3.toml.

FOLDER (default: shared/data/iwslt15-en-vi beside the checkout) holds train.{en,vi}, tst2012.{en,vi} and tst2013.{en,vi} as Stanford NLP
released them (https://nlp.stanford.edu/projects/nmt), each plain, .xz or .gz: tokenised and cased, entities such as &quot; kept. tst2012
becomes dev, tst2013 test; training pairs with an empty side are left out. OUT (default: data/iwslt15-en-vi, which git ignores) receives
{train,dev,test}.{en,vi}. Training pairs and words are checked against Table 1 of the paper; --any-version takes another version.
The corpus states no licence: use it for research, do not redistribute it.
"""

import argparse
import pathlib

import parallel
import raw_data

TOOL = "get_iwslt15"
WHERE = "IWSLT'15 English-Vietnamese of https://nlp.stanford.edu/projects/nmt"
FILES = {"train": "train", "dev": "tst2012", "test": "tst2013"}


def main(folder=raw_data.SHARED / "iwslt15-en-vi", out=None, any_version=False):
    folder = pathlib.Path(folder)
    parts = {part: {language: parallel.lines_of(TOOL, folder / f"{name}.{language}", WHERE) for language in ("en", "vi")}
             for part, name in FILES.items()}
    if len({len(lines) for lines in parts["train"].values()}) == 1:
        parts["train"] = parallel.complete_pairs(parts["train"])
    parallel.write(TOOL, "en-vi", parts, out or raw_data.ROOT / "data/iwslt15-en-vi", any_version)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=raw_data.SHARED / "iwslt15-en-vi")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--any-version", action="store_true")
    main(**vars(parser.parse_args()))
