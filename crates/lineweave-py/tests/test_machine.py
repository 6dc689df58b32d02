"""A wheel where it does not belong: what `import lineweave` says there. The extension is altered into what it would be."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lineweave

PACKAGE = Path(lineweave.__file__).parent
EXTENSION = Path(lineweave._lineweave.__file__)


def imported(tmp_path, alter):
    """Returns the output of an import of a copy whose extension `alter` has changed."""
    copy = tmp_path / "lineweave"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    alter(copy / EXTENSION.name)
    program = [sys.executable, "-c", "import lineweave; print(lineweave.__file__)"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    found = subprocess.run(program, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    return found.returncode, found.stdout, found.stderr.strip().split("\n")[-1]


def of_another_cpu(extension):
    data = bytearray(extension.read_bytes())
    # e_machine of the ELF header: AArch64, or x86-64 where that is what it was.
    other = 183 if data[18:20] != (183).to_bytes(2, sys.byteorder) else 62
    data[18:20] = other.to_bytes(2, sys.byteorder)
    extension.write_bytes(data)


def of_another_library(extension):
    data = extension.read_bytes()
    assert b"libc.so.6\0" in data
    # The name under musl has another length; any name that does not exist serves.
    extension.write_bytes(data.replace(b"libc.so.6\0", b"libc.so.M\0"))


def not_there(extension):
    extension.unlink()


def test_the_copy_itself_is_imported(tmp_path):
    status, out, _ = imported(tmp_path, lambda extension: None)
    assert status == 0 and str(tmp_path) in out


@pytest.mark.parametrize(
    ("alter", "why"),
    [(of_another_cpu, EXTENSION.name), (of_another_library, "libc.so.M"), (not_there, "_lineweave")],
)
def test_a_wheel_of_another_machine_says_what_it_is_for_and_what_to_do(tmp_path, alter, why):
    status, _, said = imported(tmp_path, alter)
    assert status == 1
    assert said.startswith("ImportError: lineweave's extension cannot be loaded: ") and why in said
    assert "built for cp3" in said and f"this is {sys.implementation.cache_tag}" in said
    assert platform.machine() in said and "pip install" in said
