#!/usr/bin/env python3
"""get_rt.py [FOLDER [OUT]]: prepares the movie review sentences RT (Pang and Lee 2005, sentence polarity v1.0) for grids of the task classify.

FOLDER (default: shared/data/rt-polarity beside the checkout) holds rt-polarity.neg and rt-polarity.pos, each plain, .xz or .gz: one sentence
a line, in Windows-1252. OUT (default: data/rt, which git ignores) receives both, unpacked. RT has no official split: the engine draws one
([data] form = "class_files"). The paper's 8,608 + 964 + 1,089 sentences are 10,661 of the 10,662.
Cite Pang and Lee 2005; the sentences are for research, do not redistribute them.
"""

import raw_data

SOURCE = "the sentence polarity dataset v1.0 (rt-polaritydata) of https://www.cs.cornell.edu/people/pabo/movie-review-data"
FILES = (
    raw_data.RawFile("rt-polarity.neg", "4ace77d558c3714723843f1d65b60c01e3417b208180f0728808d76ad0eeeaca", 612256, 5331),
    raw_data.RawFile("rt-polarity.pos", "2da124ec187a9d5a29c9f04e91c540e02baed5af8868f550a26bd6fd4dbf8bf0", 626139, 5331),
)
SETS = {"train": 8608, "dev": 964, "test": 1089}  # Xu et al. 2019


def main(folder=raw_data.SHARED / "rt-polarity", out=raw_data.ROOT / "data" / "rt"):
    raw_data.get("get_rt", FILES, SOURCE, folder, out)
    sentences = sum(raw.lines for raw in FILES)
    drawn = " + ".join(f"{count} {name}" for name, count in SETS.items())
    print(f"{sentences} sentences: {drawn}, {sentences - sum(SETS.values())} left over")


if __name__ == "__main__":
    raw_data.run(main, __doc__)
