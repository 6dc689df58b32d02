"""The operators for inference beside DeepSpeed's (`lineweave.bench`), which is built from its source archive on PyPI at the first run."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

LIBRARIES = ("lineweave", "deepspeed", "gloo")
# The hidden state of a token or a few, and of a prompt.
_SIZES = (8 << 10, 64 << 10, 1 << 20)
_VERSION = "0.19.8"
_NAME = "deepspeed_shm_comm"
# As its own builder calls it (op_builder/cpu/comm.py, op_builder/builder.py): with its sources where they lie, and its flags.
_BUILD = f"""
import sys
from torch.utils.cpp_extension import load
comm, includes, directory = sys.argv[1:]
load(name="{_NAME}", sources=[comm + "/shm_interface.cpp", comm + "/shm.cpp"], extra_include_paths=[includes],
     extra_cflags=["-O2", "-fopenmp", "-UC10_USE_GLOG"], build_directory=directory)
"""


# A collective, its elements, its bytes, the call, and what checks its first answer.
Case = tuple[str, str, int, Callable[[], object], Callable[[], None]]


class Missing(Exception):
    """Why DeepSpeed's operator cannot be measured."""


def cache() -> Path:
    """Where what this package is compared with is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lineweave" / "python-peers"


def deepspeed() -> Path:
    """DeepSpeed's operator as a module for this Python and torch."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    home = cache() / f"deepspeed-{_VERSION}-{python}-torch{importlib.metadata.version('torch')}"
    module = home / "built" / f"{_NAME}.so"
    if not module.exists():
        shutil.rmtree(home, ignore_errors=True)
        (home / "built").mkdir(parents=True)
        # Its package is not installed, only unpacked: it would want more than a compiler.
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        fetch += ["--no-build-isolation", "--no-binary", "deepspeed", "--dest", str(home), f"deepspeed=={_VERSION}"]
        _run("fetched", fetch)
        archive = home / f"deepspeed-{_VERSION}.tar.gz"
        shutil.unpack_archive(archive, home)
        csrc = home / f"deepspeed-{_VERSION}" / "csrc" / "cpu"
        _run("built", [sys.executable, "-c", _BUILD, str(csrc / "comm"), str(csrc / "includes"), str(home / "built")])
    return module


def _run(what: str, command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = [line for line in (getattr(error, "stderr", None) or str(error)).split("\n") if line.strip()]
        why = next((line for line in said if "error: " in line), said[-1])
        raise Missing(f"DeepSpeed's operator cannot be {what}: {why.strip()}") from error


def _bind(rank: int, size: int) -> None:
    """An equal share of the CPUs, as DeepSpeed's launcher gives a rank by `--bind_cores_to_rank`; none where ranks outnumber them."""
    cpus = sorted(os.sched_getaffinity(0))
    each = len(cpus) // size
    if each > 0:
        os.sched_setaffinity(0, cpus[rank * each : (rank + 1) * each])


def reducer(library: str) -> Callable[[Any], object]:
    """What adds a tensor up in place by a library; the process group is gloo's, as it is where these libraries decode on CPUs."""
    import torch
    import torch.distributed as dist

    rank, size = dist.get_rank(), dist.get_world_size()
    if library == "lineweave":
        # It binds ranks by itself.
        from lineweave.torch import inference_all_reduce, initialize

        initialize(size, rank)
        return inference_all_reduce
    _bind(rank, size)
    if library == "gloo":
        return dist.all_reduce
    # Where all ranks are on one node, which its launcher says so.
    os.environ["LOCAL_SIZE"] = str(size)
    spec = importlib.util.spec_from_file_location(_NAME, deepspeed())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module.vector_kernel_level() < 2:
        raise Missing("this CPU does not have AVX-512BW, for which DeepSpeed's operator is compiled")
    module.initialize(size, rank)
    # It would leave 66 MiB of shared memory behind; when all have it, nobody needs its name.
    dist.barrier()
    place = (os.getuid(), os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"], rank)
    Path("/dev/shm", "_".join(map(str, ("deepspeed_allreduce_buffer", *place)))).unlink(missing_ok=True)
    return torch.ops.deepspeed.inference_all_reduce_.default


def cases(library: str) -> list[Case]:
    """Sums of the lengths that are measured."""
    import torch
    import torch.distributed as dist

    reduce = reducer(library)
    rank, size = dist.get_rank(), dist.get_world_size()
    found: list[Case] = []
    for element, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32)):
        for count in _SIZES:
            # Small whole numbers, whose sums are exact.
            x = torch.arange(count // dtype.itemsize).remainder_(7).add_(rank).to(dtype)

            def check(x: Any = x) -> None:
                expected = torch.arange(len(x)).remainder_(7).mul_(size).add_(size * (size - 1) // 2)
                if not torch.equal(x.to(torch.int64), expected):
                    raise AssertionError(f"a wrong answer by {library}: {x[:8].tolist()}, expected {expected[:8].tolist()}")
                # It is added up over and over from here on.
                x.zero_()

            found.append(("allreduce", element, count, lambda x=x: reduce(x), check))
    return found


if __name__ == "__main__":
    try:
        print(deepspeed())
    except Missing as missing:
        sys.exit(str(missing))
