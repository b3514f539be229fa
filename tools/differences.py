#!/usr/bin/env python3
"""Differences of means between the labels of an axis, with their 95 % intervals.

    tearless runs SWEEP --csv | tools/differences.py --label model.norm.kind --by task --value test.accuracy [--paired seed] [PAIR …]

Reads CSV, one line a run. PAIR: A-B, two labels (default: each with the first). The interval is Welch's: the runs of two
labels are independent samples whose variances may differ. With --paired COLUMN it is that of the mean of the differences
between runs with the same value in COLUMN, and their correlation r is printed: pairing pays where r > 0. "decided" is a
difference whose interval does not contain 0; of twenty pairs that do not differ one is expected to be.
"""

import argparse
import csv
import math
import statistics
import sys


def t_quantile(probability, df):
    """Student's t with df degrees of freedom, by bisection on its distribution function (Simpson's rule)."""
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)

    def distribution(t, steps=2000):
        h = t / steps
        total = sum((1 if i in (0, steps) else 4 if i % 2 else 2) * (1 + (i * h) ** 2 / df) ** (-(df + 1) / 2)
                    for i in range(steps + 1))
        return 0.5 + scale * total * h / 3

    low, high = 0.0, 1.0
    while distribution(high) < probability:
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if distribution(middle) < probability else (low, middle)
    return (low + high) / 2


def difference(a, b):
    """(mean of a - mean of b, half the width of the 95 % interval)"""
    va, vb = statistics.variance(a) / len(a), statistics.variance(b) / len(b)
    if va + vb == 0:
        return statistics.mean(a) - statistics.mean(b), 0.0
    df = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    return statistics.mean(a) - statistics.mean(b), t_quantile(0.975, df) * math.sqrt(va + vb)


def paired_difference(a, b):
    """Of values in pairs: (mean of a - b, half the width of its 95 % interval, correlation)"""
    differences = [x - y for x, y in zip(a, b)]
    half = t_quantile(0.975, len(a) - 1) * statistics.stdev(differences) / math.sqrt(len(a))
    spread = statistics.stdev(a) * statistics.stdev(b)
    mean_a, mean_b = statistics.mean(a), statistics.mean(b)
    covariance = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b)) / (len(a) - 1)
    return statistics.mean(differences), half, covariance / spread if spread > 0 else 0.0


def labels_of(pair, names):
    """The two labels that PAIR names; labels may have hyphens themselves."""
    halves = [(pair[:at], pair[at + 1 :]) for at, letter in enumerate(pair) if letter == "-"]
    return next((half for half in halves if set(half) <= set(names)), pair.split("-"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--label", required=True, help="column whose values are compared")
    parser.add_argument("--by", help="column: a comparison for each of its values")
    parser.add_argument("--value", required=True, help="column with the number")
    parser.add_argument("--paired", metavar="COLUMN", help="column, such as seed: runs with the same value are a pair")
    parser.add_argument("pairs", nargs="*", metavar="PAIR")
    options = parser.parse_args()
    values = {}
    for row in csv.DictReader(sys.stdin):
        missing = [name for name in (options.label, options.by, options.value, options.paired) if name and name not in row]
        if missing:
            sys.exit(f"differences: the input has no column {missing[0]!r}; it has {', '.join(row)}")
        if row[options.value]:
            group = values.setdefault(row[options.by] if options.by else "", {})
            runs = group.setdefault(row[options.label], {})
            pair = row[options.paired] if options.paired else len(runs)
            if pair in runs:
                sys.exit(f"differences: {row[options.label]} has two runs with {options.paired} = {pair}")
            runs[pair] = float(row[options.value])
    more = (" r |", "---:|") if options.paired else ("", "")
    print(f"| {options.by or ''} | pair | difference | 95 % interval |{more[0]} n | decided |\n|---|---|---:|---:|{more[1]}---:|---|")
    for by, labels in values.items():
        names = list(labels)
        for pair in [labels_of(p, names) for p in options.pairs] or [[name, names[0]] for name in names[1:]]:
            of_first, of_second = (labels.get(pair[i], {}) if len(pair) == 2 else {} for i in (0, 1))
            if options.paired:
                shared = [at for at in of_first if at in of_second]
                a, b = [of_first[at] for at in shared], [of_second[at] for at in shared]
            else:
                a, b = list(of_first.values()), list(of_second.values())
            if min(len(a), len(b)) < 2:
                sys.exit(f"differences: {'-'.join(pair)}: {by or 'the input'} has not two values of both; labels: {', '.join(names)}")
            d, half, *r = paired_difference(a, b) if options.paired else difference(a, b)
            decided = "yes" if abs(d) > half else "no"
            digits = max(2, 1 - math.floor(math.log10(half))) if half > 0 else 2
            interval = f"{d - half:+.{digits}f} … {d + half:+.{digits}f}"
            correlation = f" {r[0]:+.2f} |" if r else ""
            count = str(len(a)) if r else f"{len(a)}, {len(b)}"
            print(f"| {by} | {pair[0]} − {pair[1]} | {d:+.{digits}f} | {interval} |{correlation} {count} | {decided} |")


if __name__ == "__main__":
    main()
