#!/usr/bin/env python3
"""json_docs.py [REPORT.xml] [NAME…]: docs/json.md against what `tearless … --json` prints. REPORT: results as JUnit XML."""

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import json_answers  # noqa: E402
import json_docs  # noqa: E402
import junit_report  # noqa: E402

PAGE = (ROOT / "docs/json.md").read_text()
SAID = json_docs.read_page(PAGE)


@functools.lru_cache(maxsize=None)
def made():
    """The page as the tool makes it, and the answers of which it is made: [(section, command, answer), …]."""
    page, answers = json_docs.made()
    return page, [(section, command, answer) for section, asked in answers.items() for command, answer in asked]


def faults(page, answers):
    """`page`: as json_docs.read_page() has it."""
    return (f"{command}: {fault}" for section, command, answer in answers for fault in json_docs.faults(page, answer, section))


def learnt_of(members, answer):
    learnt = json_docs.Learnt(json_docs.members_in({"status": members}))
    learnt.look(answer, "status")
    return list(learnt.mistakes())


class ThePage(unittest.TestCase):
    maxDiff = None

    def test_IsWhatTheToolMakes(self):
        self.assertEqual(PAGE.splitlines(), made()[0].splitlines(), "to make it again: tools/json_docs.py")

    def test_HasASectionOfEachCommandThatPrintsJson(self):
        commands = json_answers.commands_with_json()
        self.assertGreater(len(commands), 20)
        self.assertLessEqual(set(commands), set(SAID))

    def test_SaysEachMemberOfEachAnswer(self):
        self.assertEqual(list(faults(SAID, made()[1]))[:10], [])

    def test_SaysEachMemberOfTheAnswersOnCommittedResults(self):
        answers = []
        with tempfile.TemporaryDirectory() as home:
            for archive in sorted((ROOT / "results").glob("*.tar.gz")):
                for section, words in {"status": "status", "runs": "runs all --by sweep", "explain": "explain last seed=1", "table": "table last",
                                       "check-table": "check-table last", "cost": "cost", "diff": "diff 1 2"}.items():
                    command = [json_answers.BIN / "tearless", "--workspace", archive, *words.split(), "--json"]
                    printed = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HOME": home, "TEARLESS_ENGINE": "none"}).stdout
                    if printed:  # of check-table, that there is nothing to check
                        answers.append((section, f"{archive.name} {words}", json.loads(printed)))
        self.assertGreater(len(answers), 30)
        self.assertEqual(list(faults(SAID, answers))[:10], [])


class AnAnswer(unittest.TestCase):
    """Of which the page says otherwise is refused, and the member is named."""

    def mutants(self, rows_for):
        """Pages in which the row of a member that answers have is another, each with what it is about. `rows_for(path, types, refers)`: the
        rows that may stand for it."""
        members = json_docs.read_members(json_docs.MEMBERS)
        for section, rows in SAID.items():
            for path, (types, refers) in rows.items():
                if members[section][path].declared or (types == {"object"} and not refers):
                    continue
                others = {other: row for other, row in rows.items() if other != path}
                for row in rows_for(path, types, refers):
                    yield f"{section} {path} {row}", {**SAID, section: {**others, **row}}

    def test_WithAMemberThatThePageLacks(self):
        answers = made()[1]
        for about, page in self.mutants(lambda path, types, refers: [{}]):
            with self.subTest(about):
                self.assertIsNotNone(next(faults(page, answers), None))

    def test_WithAMemberOfAnotherType(self):
        def of_other_types(path, types, refers):
            for kind in types - {"absent", "any"}:
                yield {path: (types - {kind} or {"text" if kind == "yes/no" else "yes/no"}, refers)}

        answers = made()[1]
        for about, page in self.mutants(of_other_types):
            with self.subTest(about):
                self.assertIsNotNone(next(faults(page, answers), None))

    def test_WithAMemberOfAnotherName(self):
        page = json_docs.read_page(PAGE.replace("| `sweeps[].submitted_at` |", "| `sweeps[].submitted` |"))
        found = {fault.partition(": ")[2] for fault in faults(page, made()[1])}
        self.assertEqual(found, {"status: the page has no sweeps[].submitted_at", "status: sweeps[].submitted is absent"})

    def test_WithAMemberWhoseLineIsGone(self):
        page = json_docs.read_page("".join(line for line in PAGE.splitlines(True) if not line.startswith("| `sweeps[].submitted_at` |")))
        self.assertEqual({fault.partition(": ")[2] for fault in faults(page, made()[1])}, {"status: the page has no sweeps[].submitted_at"})


class TheTool(unittest.TestCase):
    def test_NamesAMemberWithoutAMeaning(self):
        self.assertEqual(learnt_of({"a": "one"}, {"a": 1, "b": [2]}), ["status: no meaning of b[]"])

    def test_NamesAMeaningWithoutAMember(self):
        self.assertEqual(learnt_of({"a": "one", "b": "two"}, {"a": 1}), ["status: no answer has b"])

    def test_NamesAListOfWhichNoAnswerHasAnElement(self):
        self.assertEqual(learnt_of({"a": "one"}, {"a": 1, "b": []}), ["status: b has no element in any answer"])

    def test_NamesAMeaningThatSaysNothingOfNull(self):
        self.assertEqual(learnt_of({"a[].b": "one"}, {"a": [{"b": 1}, {"b": None}]}), ["status: a[].b may be null, and its meaning says otherwise"])
        self.assertEqual(learnt_of({"a[].b": "one; absent: none"}, {"a": [{"b": 1}]}), ["status: a[].b cannot be absent, and its meaning says otherwise"])

    def test_NamesAMemberThatOnlySomeAnswersHave(self):
        self.assertEqual(learnt_of({"a[].b": "one"}, {"a": [{"b": 1}, {}]}), ["status: a[].b may be absent, and its meaning says otherwise"])

    def test_NamesAnEmptyMeaning(self):
        self.assertEqual(learnt_of({"a": ""}, {"a": 1}), ["status: the meaning of a is empty"])

    def test_NamesATypeThatIsDeclaredAndLearnt(self):
        self.assertEqual(learnt_of({"a": "{text} one"}, {"a": "one"}), ["status: a is learnt: leave out the braces"])


if __name__ == "__main__":
    sys.exit(junit_report.run("Json", *sys.argv[1:]))
