"""The output of `help()`: every public name has a docstring, and the examples in it are what rank 0 of two ranks sees."""

import doctest
import inspect
import io

import numpy as np
import pytest

import lineweave


def public(holder):
    """The public methods and properties of a class, but those that every object has."""
    return [name for name in dir(holder) if not name.startswith("_") and not hasattr(object, name)]


def documented():
    """Every public name with its docstring."""
    for name in lineweave.__all__:
        if name != "__version__":
            yield name, inspect.getdoc(getattr(lineweave, name))
    for holder in (lineweave.Team, lineweave.Request, lineweave.Handle):
        for name in public(holder):
            yield f"{holder.__name__}.{name}", inspect.getdoc(getattr(holder, name))


DOCS = dict(documented())


def examples(team, folder):
    """Runs the examples of all names at this rank; what differs from what they show, at rank 0."""
    import os

    os.chdir(folder)
    said = io.StringIO()
    # Only what rank 0 sees is written down; that nothing is raised holds for the other as well.
    checker = doctest.OutputChecker()
    if team.rank != 0:
        checker.check_output = lambda want, got, flags: True
    for name, text in DOCS.items():
        names = {"team": team, "lineweave": lineweave, "np": np}
        test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
        doctest.DocTestRunner(checker, verbose=False).run(test, out=said.write)
        team.barrier()
    return said.getvalue()


@pytest.mark.parametrize("name", DOCS)
def test_every_public_name_has_a_docstring_with_an_example(name):
    text = DOCS[name]
    assert text and len(text.split(">>>")[0]) > 15, f"{name} does not say what it is for"
    assert ">>> " in text, f"{name} has no example"


def test_examples_show_what_rank_0_of_two_sees(fork, tmp_path):
    for said in lineweave.spawn(examples, 2, args=(str(tmp_path),), method=fork, timeout=120):
        assert said == ""


def test_calls_that_start_one_have_the_arguments_of_those_that_block():
    started = [name for name in public(lineweave.Team) if name[0] == "i" and hasattr(lineweave.Team, name[1:])]
    assert len(started) == 20
    for name in started:
        blocking = inspect.signature(getattr(lineweave.Team, name[1:])).parameters
        assert list(inspect.signature(getattr(lineweave.Team, name)).parameters) == list(blocking), name


def test_names_of_mpi_say_what_they_do():
    from lineweave import MPI

    for holder in (MPI.Comm, MPI.Request, MPI.Status, MPI.Op, MPI.Datatype):
        assert inspect.getdoc(holder), holder
        for name in public(holder):
            assert inspect.getdoc(getattr(holder, name)), f"{holder.__name__}.{name}"
    names = {"MPI": MPI, "np": np}
    test = doctest.DocTestParser().get_doctest(MPI.Comm.__doc__, names, "MPI.Comm", None, None)
    assert doctest.DocTestRunner().run(test) == (0, 5)
