"""Arrays in memory that all ranks share."""

import gc
import multiprocessing
import os

import lineweave
import numpy as np
import pytest
from conftest import values


def shared(team):
    n, me = team.size, team.rank
    # Long enough to run direct, and short.
    for dtype in ("float64", "int32", "uint8"):
        for shape in ((300_000,), (3, 5), ()):
            count = int(np.prod(shape))
            x, out = team.empty(shape, dtype), team.empty(shape, np.dtype(dtype))
            assert x.dtype == dtype and x.shape == shape and not x.any() and x.ctypes.data % 4096 == 0
            x[...] = values(me, dtype, count).reshape(shape)
            expected = values(0, dtype, count)
            for rank in range(1, n):
                expected = expected + values(rank, dtype, count)
            expected = expected.reshape(shape)
            assert team.allreduce(x, out=out) is out and np.array_equal(out, expected)
            team.allreduce(x, out=x)
            assert np.array_equal(x, expected)
            x[...] = me
            team.bcast(x, n - 1)
            assert (x == n - 1).all()
    blocks, mine = team.empty((n, 50_000), "i4"), team.empty(50_000, "i4")
    mine[:] = me
    team.allgather(mine, blocks)
    assert (blocks == np.arange(n)[:, None]).all()
    # A part of one, one that is not, and started calls.
    part = blocks[0]
    part[:] = me + 1
    assert (team.allreduce(part, "max") == n).all()
    if me == 0:
        mine = np.full(50_000, 7, "i4")
    else:
        mine[:] = 7
    assert (team.iallreduce(mine, out=part).wait() == 7 * n).all()
    # Each what it wants, also nothing.
    own = team.empty(me * 1000, "u1")
    assert own.size == me * 1000
    assert team.empty((0, 3)).shape == (0, 3)
    return True


@pytest.mark.parametrize("n", [1, 3])
def test_collectives_on_shared_arrays(n, method):
    assert lineweave.spawn(shared, n, method=method) == [True] * n


def lifetime(team):
    before = team.memory[0]
    x = team.empty(1 << 18)
    part = x[100:200]
    assert team.memory[0] >= before + team.size * 2**21 or team.threads
    del x
    gc.collect()
    part[:] = team.rank
    team.allreduce(part, out=part)
    assert part[0] == sum(range(team.size))
    team.barrier()
    del part
    gc.collect()
    team.barrier()
    assert team.memory[0] < before + 2**21
    # It outlives the team, and other ranks their part of it.
    kept = team.empty(70_000, "f4")
    kept[:] = 3
    team.close()
    kept += 1
    return float(kept.sum())


def test_memory_lives_as_long_as_what_uses_it(method):
    assert lineweave.spawn(lifetime, 2, method=method) == [4.0 * 70_000] * 2


def forked(team):
    x = team.empty(300_000)
    x[:] = 5
    pid = os.fork()
    if pid == 0:
        # Memory that the child releases stays the parent's.
        del x
        gc.collect()
        os._exit(0)
    os.waitpid(pid, 0)
    assert (x == 5).all()
    return float(team.allreduce(x)[0])


def test_a_forked_child_takes_nothing_away(fork):
    assert lineweave.spawn(forked, 2, method=fork) == [10.0] * 2


def refused(team):
    with pytest.raises(MemoryError, match="shared buffers need"):
        team.empty(1 << 50)
    with pytest.raises(lineweave.OutOfMemory):
        # More than there is on one rank alone: all hear of it.
        team.empty(1 << 50 if team.rank == 1 else 1)
    for shape in (-1, (2, -3)):
        with pytest.raises(ValueError, match="negative"):
            team.empty(shape)
    with pytest.raises(TypeError, match="shape"):
        team.empty("wide")
    with pytest.raises(TypeError, match="Python objects"):
        team.empty(3, object)
    assert team.set_shared_buffers(False) in (True, False)
    assert team.allreduce(np.ones(1))[0] == team.size
    return True


def test_what_cannot_be_had_is_refused_on_all_ranks(method):
    assert lineweave.spawn(refused, 2, method=method) == [True] * 2


def others(team):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = team.empty(100_000, ml_dtypes.bfloat16)
    x[:] = team.rank + 1
    team.allreduce(x, out=x)
    assert float(x[-1]) == sum(range(1, team.size + 1))
    return True


def test_a_type_that_numpy_does_not_have():
    assert lineweave.spawn(others, 2) == [True] * 2


def tensors(team):
    import torch

    x = team.empty((3, 100_000), torch.float32)
    assert isinstance(x, torch.Tensor) and x.shape == (3, 100_000) and not x.any()
    x.fill_(team.rank + 1)
    view = x[1]
    team.allreduce(view, out=view)
    assert view[0] == sum(range(1, team.size + 1)) and x[0, 0] == team.rank + 1
    y = torch.from_numpy(team.empty(10))
    assert y.sum() == 0
    return True


def test_tensors():
    pytest.importorskip("torch")
    assert lineweave.spawn(tensors, 2, method="spawn") == [True] * 2


def test_nothing_is_left_behind():
    names = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=lineweave.spawn, args=(shared, 2))
    process.start()
    process.join()
    assert process.exitcode == 0
    left = set(os.listdir("/dev/shm")) - names if os.path.isdir("/dev/shm") else set()
    assert not {name for name in left if "lineweave" in name}
