#!/usr/bin/env python3
"""mutate_test.py [REPORT]: tests of what tools/mutate.py changes and what it leaves alone. REPORT: results as JUnit XML."""

import collections
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import junit_report
import mutate
from mutants import mutants_of


def changes(code, kind=""):
    """What is changed within a function's body, as "before -> after"."""
    found = mutants_of("a.cc", f"int f() {{\n{code}\n}}\n")
    return [f"{mutant.before} -> {mutant.after.strip()}" for mutant in found if kind in ("", mutant.kind)]


class Mutants(unittest.TestCase):
    def test_EachKindOfChange(self):
        for kind, code, expected in [
                ("operator", "return a < b;", ["< -> <=", "< -> >="]),
                ("operator", "if (a && !b) return c;", ["&& -> ||"]),
                ("operator", "sum += x * y;", ["+= -> -=", "* -> /"]),
                ("operator", "for (; i != n; ++i) g(i);", ["!= -> ==", "++ -> --"]),
                ("constant", "return 0;", ["0 -> 1"]),
                ("constant", "return 1'000u;", ["1'000u -> 1001u"]),
                ("constant", "return 0xff;", ["0xff -> 0x100"]),
                ("constant", "return 1.5e3f;", ["1.5e3f -> 1501.0f"]),
                ("constant", "g(true);", ["true -> false"]),
                ("statement", "a.b->c(x)[1].d(y);", ["a.b->c(x)[1].d(y); -> ;"]),
                ("statement", "of<int>(x);", ["of<int>(x); -> ;"]),
                ("statement", "if (x) y = z;", ["y = z; -> ;"]),
                ("statement", "if (x) fail(\"no {}\", x);", ["fail(\"no {}\", x); -> ;"]),
                ("condition", "if (x || y) g();", ["x || y -> !(x || y)"]),
                ("condition", "if (int n = g(); n > 2) g();", ["n > 2 -> !(n > 2)"]),
                ("condition", "return a ? b : c ? d : e;", ["? -> && false ?", "? -> && false ?"]),
                ("jump", "for (;;) { if (x) continue; break; }", ["continue; -> ;", "break; -> ;"]),
                ("jump", "if (x) return y;\nreturn z;", ["return y; -> ;"]),
                ("swap", "g(a + b, h(c, d));", ["a + b, h(c, d) -> h(c, d), a + b", "c, d -> d, c"]),
                ("swap", "return R{.a = x, .b = y};", ["x, .b = y -> y, .b = x"]),
                ("sync", "if (sys::fsync(fd) != 0) g();", ["sys::fsync(fd) -> 0"]),
                ("sync", "sync_folder(path);", ["sync_folder(path); -> ;"]),
                ("setting", "return options.jobs;", ["options -> std::remove_cvref_t<decltype(options)>{}"])]:
            with self.subTest(code):
                self.assertEqual(changes(code, kind), expected)

    def test_ASettingThatIsNoLongerDescribed(self):
        found = mutants_of("a.cc", "void describe(V& v, O& o) {\n  v.flag({.key = \"x\"}, o.x);\n}\n")
        self.assertIn(("setting", ";"), [(mutant.kind, mutant.after) for mutant in found])
        self.assertNotIn("o", [mutant.before for mutant in found])

    def test_WhatIsNoBehaviourIsLeftAlone(self):
        for code in ["// a < b", "/* x = 1; */", "#define N 1", "static_assert(N < 2);", "assert(n == 1);",
                     "const auto text = \"a < 1 && b\";", "const auto text = R\"(a < 1; b = 2;)\";", "spdlog::info(\"{}\", n + 1);",
                     "const auto sentence = fmt::format(\"cannot read line {}\", n + 1);",
                     "#ifdef __CUDA_ARCH__\nx = 1;\n#endif", "[[maybe_unused]] Foo foo;"]:
            with self.subTest(code):
                self.assertEqual(changes(code), [])
        # The sentence stays, the refusal may go.
        self.assertEqual(changes("fail(\"line {} of {}\", n + 1, 2);"), ["fail(\"line {} of {}\", n + 1, 2); -> ;"])

    def test_WhatAnotherBuildLeavesOutIsStillCodeInItsElse(self):
        self.assertEqual(changes("#ifdef __CUDA_ARCH__\nx = 1;\n#else\nx = y;\n#endif", "statement"), ["x = y; -> ;"])

    def test_DeclarationsAreNoStatements(self):
        for code in ["Foo foo(x);", "std::vector<int> v = g(x);", "const auto& x = y;", "T* p = q;", "using std::swap;", "Foo<A, B> foo;"]:
            with self.subTest(code):
                self.assertEqual(changes(code, "statement"), [])
        self.assertEqual(mutants_of("a.h", "class A {\n  explicit A(int a, int b);\n  A(A);\n  virtual void f() = 0;\n};\n"), [])

    def test_TemplatesPointersAndReferencesAreNoOperators(self):
        self.assertEqual(changes("std::map<A, B*> m; const T& x = *y; auto&& z = [&] { return -w; }(); g(&z);", "operator"), [])

    def test_AnIdStaysWhileItsLineStays(self):
        one = {mutant.id for mutant in mutants_of("a.cc", "int f() {\n  return g(1);\n}\n")}
        moved = {mutant.id for mutant in mutants_of("a.cc", "// new\nint f() {\n    return g(1);\n}\n")}
        twice = [mutant.id for mutant in mutants_of("a.cc", "int f() {\n  return g(1);\n}\nint h() {\n  return g(1);\n}\n")]
        self.assertEqual(one, moved)
        self.assertEqual(len(twice), len(set(twice)))

    def test_AMutantChangesNothingElse(self):
        text = "int f() {\n  g(a,\n    b);\n  return 1;\n}\n"
        for mutant in mutants_of("a.cc", text):
            changed = mutant.applied_to(text)
            self.assertNotEqual(changed, text)
            self.assertEqual(changed.count("\n"), text.count("\n"))
            self.assertEqual(changed[:mutant.offset], text[:mutant.offset])


class Drawing(unittest.TestCase):
    def test_EveryLineIsAsLikelyAndASeedIsADraw(self):
        mutants = mutants_of("a.cc", "int f() {\n  if (a < b && c < d) return g(1, 2, 3);\n  return 0;\n}\n")
        self.assertEqual(mutate.draws(mutants, 3), mutate.draws(mutants, 3))
        first = collections.Counter(mutate.draws(mutants, seed)[0].line for seed in range(400))
        self.assertEqual(set(first), {2, 3})
        self.assertGreater(first[3], 150)

    def test_ChangedLinesAreThoseThatTheRevisionHasNot(self):
        def git(*words):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)

        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(mutate, "ROOT", pathlib.Path(folder)):
            git("init", "--quiet")
            for name in ("a.cc", "gone.cc"):
                (mutate.ROOT / name).write_text("1\n2\n3\n4\n5\n")
            git("add", ".")
            git("commit", "--quiet", "--message", "one")
            (mutate.ROOT / "a.cc").write_text("1\nnew\nnew\n3\n4\n5 new\n")
            (mutate.ROOT / "gone.cc").unlink()
            git("commit", "--quiet", "--all", "--message", "two")
            (mutate.ROOT / "a.cc").write_text("1\nnew\nnew\n3\n5 new\n6\n")
            self.assertEqual(mutate.changed_since("HEAD~1"), {("a.cc", 2), ("a.cc", 3), ("a.cc", 5), ("a.cc", 6)})
            self.assertEqual(mutate.changed_since("HEAD"), {("a.cc", 6)})


class Lists(unittest.TestCase):
    def test_TheSummaryCountsWhatHasAResult(self):
        place = {"id": "0", "file": "base/a.cc", "line": 1, "kind": "jump", "before": "break;", "after": ";"}
        results = [mutate.KILLED, mutate.KILLED, mutate.KILLED, mutate.SURVIVED, mutate.NO_COMPILE, mutate.NO_CHANGE]
        table = mutate.summary_of([{**place, "result": result} for result in results]).splitlines()
        self.assertEqual(table[2].split(), ["base", "4", "3", "75", "1", "0", "2"])


if __name__ == "__main__":
    sys.exit(junit_report.run("Mutate", *sys.argv[1:]))
