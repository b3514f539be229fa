#!/usr/bin/env python3
"""Writes tests/golden/significance.json: synthetic translations of one test set, and the p that sacreBLEU's paired bootstrap
gives each pair of systems.

Needs sacreBLEU 2.6 from PyPI. Run by hand, look at the difference, commit it:

    python3 tools/make_golden_significance.py > tests/golden/significance.json

The references are random words; a system gets each word right with a probability of its own. The baseline is the same in all
pairs. sacreBLEU draws its samples with its own default seed.
"""
import json
import random

import sacrebleu
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

SEED = 2026
SENTENCES = 120
BASELINE = 0.80  # the probability that a word is right
SYSTEMS = [0.80, 0.80, 0.80, 0.79, 0.78, 0.77, 0.75, 0.82, 0.84, 0.86]


def main():
    rng = random.Random(SEED)
    words = [f"{a}{b}" for a in "abdeg" for b in "aeiou"]
    references = [" ".join(rng.choices(words, k=rng.randint(4, 14))) for _ in range(SENTENCES)]

    def translate(quality):
        return [" ".join(word if rng.random() < quality else rng.choice(words) for word in reference.split() if rng.random() < 0.98)
                for reference in references]

    systems = [("baseline", translate(BASELINE))] + [(f"system {i}", translate(quality)) for i, quality in enumerate(SYSTEMS, 1)]
    test = PairedTest(systems, {"BLEU": BLEU(tokenize="none", references=[references])}, None, test_type="bs", n_samples=1000)
    results = test()[1]["BLEU"]
    print(json.dumps({"program": f"sacrebleu {sacrebleu.__version__}", "seed": SEED, "samples": 1000, "references": references,
                      "baseline": systems[0][1], "baseline_score": results[0].score,
                      "systems": [{"hypotheses": hypotheses, "score": result.score, "p": result.p_value}
                                  for (_, hypotheses), result in zip(systems[1:], results[1:])]}, indent=1))


if __name__ == "__main__":
    main()
