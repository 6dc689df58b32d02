"""The types for type checkers: the extension's stub is what the module has, and calls have the types that they return."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy")

# Calls without keywords, which Python's inspection of a class of an extension cannot tell.
ALLOWED = "lineweave._lineweave.Persistent.__call__\n"
CONFIGURATION = "[mypy]\nstrict = True\n[mypy-torch.*]\nignore_missing_imports = True\n[mypy-mpi4py.*]\nignore_missing_imports = True\n"

PROGRAM = '''
from typing import Any, Protocol
from typing_extensions import assert_type
import numpy as np
import lineweave

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]

class Tensor(Protocol):
    """What torch's have."""
    def data_ptr(self) -> int: ...
    def new_empty(self, size: list[int], *, dtype: Any = None) -> "Tensor": ...
    def __dlpack__(self, *, stream: int | None = -1) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

def tensors(team: lineweave.Team, x: Tensor) -> None:
    assert_type(team.allreduce(x), Tensor)
    assert_type(team.allgather(x), Tensor)
    assert_type(team.allgather(x, out=x), Tensor)

def work(team: lineweave.Team, x: Floats) -> int:
    assert_type(team.allreduce(x), Floats)
    assert_type(team.allreduce(x, "max", out=x), Floats)
    assert_type(team.reduce(x, np.minimum), Floats | None)
    assert_type(team.allreduce(b"ab"), bytearray)
    assert_type(team.allgather(x), np.ndarray[Any, np.dtype[Any]])
    assert_type(team.reduce_scatter(x, [1, 2], out=x), Floats)
    assert_type(team.iallreduce(x), lineweave.Request[Floats])
    assert_type(team.iallgather(b"ab"), lineweave.Request[bytearray])
    assert_type(team.iexscan(x), lineweave.Request[Floats | None])
    assert_type(team.igatherv(None, [1, 2], out=x), lineweave.Request[Floats | None])
    assert_type(team.irecv(x, 0).wait(), int)
    assert_type(team.handle("scan", x, out=x)(), Floats)
    assert_type(team.allgather_object("text"), list[str])
    return team.bcast_object(7 if team.rank == 0 else None)

assert_type(lineweave.spawn(work, 2), list[int])
'''
WRONG = ['team.allreduce(x, "sun")', 'team.iallreduce(x, "sun")', 'team.reduce_scatter(x, "sum")', 'team.allreduce([1, 2])', 'team.handle("allreduces", x)']


def mypy(tmp_path, *arguments):
    (tmp_path / "mypy.ini").write_text(CONFIGURATION)
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)


def test_the_stub_is_what_the_extension_has(tmp_path):
    (tmp_path / "allowed").write_text(ALLOWED)
    module = ["mypy.stubtest", "lineweave._lineweave", "--mypy-config-file", "mypy.ini", "--allowlist", "allowed"]
    done = mypy(tmp_path, *module, "--ignore-disjoint-bases")
    assert done.returncode == 0, done.stdout + done.stderr


def test_calls_have_the_types_that_they_return(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = mypy(tmp_path, "mypy", "--config-file", "mypy.ini", "program.py")
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """Returns the calls that the checker refuses, each in a line of its own of one program."""
    folder = tmp_path_factory.mktemp("wrong")
    calls = "".join(f"    {call}\n" for call in WRONG)
    (folder / "program.py").write_text(f"import lineweave, numpy as np\ndef work(team: lineweave.Team, x: np.ndarray) -> None:\n{calls}")
    done = mypy(folder, "mypy", "--config-file", "mypy.ini", "program.py")
    return [call for line, call in enumerate(WRONG, 3) if f"program.py:{line}: error" in done.stdout]


@pytest.mark.parametrize("call", WRONG)
def test_what_cannot_be_is_an_error_before_it_runs(refused, call):
    assert call in refused
