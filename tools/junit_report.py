"""Runs the unittest tests of a program and writes their results as the JUnit XML that tools/run_tests.py counts."""

import sys
import unittest
import xml.etree.ElementTree as xml


class Result(unittest.TextTestResult):
    """Keeps the tests that passed too."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.passed = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(test)

    def write(self, file, name):
        suite = xml.Element("testsuite", name=name.lower())

        def add(test, kind="", text=""):
            case = xml.SubElement(suite, "testcase", classname=name, name=test.id().split("test_")[-1], status="run")
            if kind:
                xml.SubElement(case, kind, message=text)

        for test in self.passed:
            add(test)
        for test, text in self.failures + self.errors:
            add(test, "failure", text)
        for test, reason in self.skipped:
            add(test, "skipped", reason)
        xml.ElementTree(suite).write(file)


def run(name, report=None):
    """Runs the tests of the program that called it; `name` stands before each test's name. The exit code of the program."""
    tests = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(resultclass=Result).run(tests)
    if report:
        result.write(report, name)
    return not result.wasSuccessful()
