"""Runs modules of mpi4py's own tests and writes each test's outcome, as it is known, to a file for each rank: a launcher's
output of several ranks is interleaved, and a run that hangs or dies shall leave what it knew.

    recorded.py DIRECTORY TESTS MODULE...    (TESTS is mpi4py's folder `test`)

Lines: `begin ID`, then `ok`, `skipped`, `failed`, `error`, `xfailed` or `xpassed` with the ID; `end` when all ran.
"""

import os
import sys
import unittest

directory, tests, *modules = sys.argv[1:]
sys.dont_write_bytecode = True
sys.path.insert(0, tests)
sys.argv = [os.path.join(tests, "main.py"), "-q", *modules]

import main  # noqa: E402

record = None


def write(what, test=None):
    """A line, at once: by one call, so that it is there whatever happens next."""
    global record
    if record is None:
        from mpi4py import MPI

        name = os.path.join(directory, f"rank-{MPI.COMM_WORLD.Get_rank()}")
        record = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    line = what if test is None else f"{what} {test.id()}"
    os.write(record, (line.replace("\n", " ") + "\n").encode())


class Recorder(unittest.TextTestResult):
    def startTest(self, test):
        write("begin", test)
        super().startTest(test)

    def addSuccess(self, test):
        write("ok", test)
        super().addSuccess(test)

    def addError(self, test, err):
        write("error", test)
        super().addError(test, err)

    def addFailure(self, test, err):
        write("failed", test)
        super().addFailure(test, err)

    def addSkip(self, test, reason):
        write("skipped", test)
        super().addSkip(test, reason)

    def addExpectedFailure(self, test, err):
        write("xfailed", test)
        super().addExpectedFailure(test, err)

    def addUnexpectedSuccess(self, test):
        write("xpassed", test)
        super().addUnexpectedSuccess(test)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            write("failed", test)
        super().addSubTest(test, subtest, err)


unittest.TextTestRunner.resultclass = Recorder
try:
    main.main(module=None)
finally:
    write("end")
