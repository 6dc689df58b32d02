"""Fixtures that the tests share. They run against the installed package, in a folder outside the sources (scripts/test-python)."""

import multiprocessing
import os
import tempfile

import numpy as np
import pytest


def pytest_configure(config):
    """Gives the tests an empty cache of their own, so that nothing of the user's is read or written."""
    config.cache_of_tests = tempfile.TemporaryDirectory(prefix="lineweave-tests-")
    os.environ["XDG_CACHE_HOME"] = config.cache_of_tests.name


def pytest_unconfigure(config):
    config.cache_of_tests.cleanup()


@pytest.fixture(params=["fork", "spawn", "thread"])
def method(request):
    return request.param


@pytest.fixture(scope="session")
def fork():
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("no fork here")
    return "fork"


DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


def values(rank, dtype, count):
    """Small whole numbers, exact in every type, different at every rank and place."""
    return ((np.arange(count) * 3 + rank * 5) % 7 + 1).astype(dtype)


class Started:
    """A team whose calls are started and waited for, where they can be, in place of those that block."""

    def __init__(self, team):
        self._team = team

    def __getattr__(self, name):
        begin = getattr(self._team, "i" + name, None)
        return getattr(self._team, name) if begin is None else lambda *given, **named: begin(*given, **named).wait()


@pytest.fixture(params=["blocking", "started"])
def way(request):
    """How calls are made: what makes a team of such calls of a team."""
    return Started if request.param == "started" else unchanged


def unchanged(team):
    return team
