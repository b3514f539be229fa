"""Writes results of tests as the JUnit XML that tools/run_tests.py counts, and runs the unittest tests of a program."""

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
        def case(test, kind="", text=""):
            return name, test.id().split("test_")[-1], kind, text

        write(file, name.lower(), [*(case(test) for test in self.passed),
                                   *(case(test, "failure", text) for test, text in self.failures + self.errors),
                                   *(case(test, "skipped", reason) for test, reason in self.skipped)])


def write(file, name, cases):
    """`cases`: class, name, kind ("" for passed, "failure", "skipped") and text of each test."""
    suite = xml.Element("testsuite", name=name)
    for classname, test, kind, text in cases:
        case = xml.SubElement(suite, "testcase", classname=classname, name=test, status="run")
        if kind:
            xml.SubElement(case, kind, message=text)
    xml.ElementTree(suite).write(file)


def run(name, *arguments):
    """Runs the tests of the program that called it, or those that are named; `name` stands before each test's name. `arguments`: where
    the report is to be written, FILE.xml, and names, CLASS or CLASS.METHOD. The exit code of the program."""
    report = next((argument for argument in arguments if argument.endswith(".xml")), None)
    names = [argument for argument in arguments if argument != report]
    main, loader = sys.modules["__main__"], unittest.defaultTestLoader
    tests = loader.loadTestsFromNames(names, main) if names else loader.loadTestsFromModule(main)
    result = unittest.TextTestRunner(resultclass=Result).run(tests)
    if report:
        result.write(report, name)
    return not result.wasSuccessful()
