#!/usr/bin/env python3
"""differences_test.py [REPORT]: tools/differences.py against values worked out elsewhere. REPORT: results as JUnit XML."""

import pathlib
import subprocess
import sys
import unittest

import differences
import junit_report


class Quantiles(unittest.TestCase):
    def test_QuantilesAreThoseOfThePrintedTables(self):
        for df, expected in ((1, 12.7062), (2, 4.3027), (4, 2.7764), (8, 2.3060), (30, 2.0423)):
            self.assertAlmostEqual(differences.t_quantile(0.975, df), expected, places=4)
        self.assertAlmostEqual(differences.t_quantile(0.95, 10), 1.8125, places=4)


class Differences(unittest.TestCase):
    def test_HaveWelchsInterval(self):
        # Means 3 and 5; variances 2.5 / 5 = 0.5 and 10 / 5 = 2; df = 2.5² / (0.5² / 4 + 2² / 4) = 5.882; t = 2.4592.
        d, half = differences.difference([1, 2, 3, 4, 5], [1, 3, 5, 7, 9])
        self.assertAlmostEqual(d, -2)
        self.assertAlmostEqual(half, differences.t_quantile(0.975, 6.25 / 1.0625) * 2.5**0.5)
        self.assertAlmostEqual(half, 3.888, places=3)

    def test_OfPairsHaveTheIntervalOfTheMeanDifference(self):
        # Differences 0, -1, -2, -3, -4: mean -2, deviation √2.5; t = 2.7764 at 4 degrees of freedom.
        d, half, r = differences.paired_difference([1, 2, 3, 4, 5], [1, 3, 5, 7, 9])
        self.assertAlmostEqual(d, -2)
        self.assertAlmostEqual(half, 2.7764 * (2.5 / 5) ** 0.5, places=4)
        self.assertAlmostEqual(r, 1)
        self.assertAlmostEqual(differences.paired_difference([1, 2, 4], [5, 2, 1])[2], -0.89104211, places=7)  # -19/3 / √(7/3 · 13/3) / 2

    def test_OfValuesWithoutSpreadAreExact(self):
        self.assertEqual(differences.difference([2, 2], [1, 1]), (1, 0))


def printed(text, *arguments):
    return subprocess.run([sys.executable, pathlib.Path(differences.__file__), *arguments], input=text, capture_output=True, text=True)


class Command(unittest.TestCase):
    runs = "norm,task,score\na,RT,1\na,RT,2\nb,RT,11\nb,RT,12\nb,RT,\na,MNIST,5\na,MNIST,6\nb,MNIST,5\nb,MNIST,6.5\n"

    def test_AreALineForEachPairAndGroup(self):
        done = printed(self.runs, "--label", "norm", "--by", "task", "--value", "score")
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.splitlines()[2:], [
            "| RT | b − a | +10.00 | +6.96 … +13.04 | 2, 2 | yes |",
            "| MNIST | b − a | +0.25 | -4.23 … +4.73 | 2, 2 | no |"])
        small = printed("norm,score\na,0.001\na,0.002\nb,0.0035\nb,0.0031\n", "--label", "norm", "--value", "score")
        self.assertIn("| b − a | +0.0018 | -0.0022 … +0.0058 |", small.stdout)
        reverse = printed(self.runs, "--label", "norm", "--by", "task", "--value", "score", "a-b")
        self.assertIn("| RT | a − b | -10.00 | -13.04 … -6.96 | 2, 2 | yes |", reverse.stdout)

    def test_LabelsMayHaveHyphens(self):
        runs = "system,score\nfull,1\nfull,2\n- warm-up,11\n- warm-up,12\npre-norm,4\npre-norm,5\n"
        done = printed(runs, "--label", "system", "--value", "score", "full-- warm-up", "pre-norm-full")
        self.assertEqual(done.stderr, "")
        self.assertIn("| full − - warm-up | -10.00 |", done.stdout)
        self.assertIn("| pre-norm − full | +3.00 |", done.stdout)

    def test_PairRunsOfTheSameSeed(self):
        runs = "norm,seed,score\na,1,10\na,2,20\nb,2,23\nb,1,12\nb,3,99\n"
        done = printed(runs, "--label", "norm", "--value", "score", "--paired", "seed")
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.splitlines()[2:], ["|  | b − a | +2.50 | -3.85 … +8.85 | +1.00 | 2 | no |"])
        self.assertIn("a has two runs with seed = 1", printed(runs + "a,1,11\n", "--label", "norm", "--value", "score", "--paired", "seed").stderr)

    def test_NameWhatIsMissing(self):
        self.assertIn("no column 'kind'; it has norm, task, score", printed(self.runs, "--label", "kind", "--value", "score").stderr)
        self.assertIn("a-c: RT has not two values of both; labels: a, b",
                      printed(self.runs, "--label", "norm", "--by", "task", "--value", "score", "a-c").stderr)


if __name__ == "__main__":
    sys.exit(junit_report.run("Differences", *sys.argv[1:]))
