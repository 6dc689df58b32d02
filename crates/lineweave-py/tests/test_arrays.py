"""Collectives on arrays, against numpy: those that block, and those that are started and waited for at once."""

import array

import lineweave
import numpy as np
import pytest
from conftest import DTYPES, values

OPERATORS = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}
COUNTS = [1, 7, 1000, 70_001]


def fold(op, n, dtype, count):
    total = values(0, dtype, count)
    for rank in range(1, n):
        total = op(total, values(rank, dtype, count))
    return total


def every_collective(team, way):
    team = way(team)
    n, me = team.size, team.rank
    for dtype in DTYPES:
        for count in COUNTS:
            x = values(me, dtype, count)
            expected = fold(np.add, n, dtype, count)
            assert np.array_equal(team.allreduce(x), expected)
            out = np.empty_like(x)
            assert team.allreduce(x, "sum", out) is out
            assert np.array_equal(out, expected)
            y = x.copy()
            assert team.allreduce(y, out=y) is y
            assert np.array_equal(y, expected)
            root = count % n
            got = team.reduce(x, np.maximum, root)
            if me == root:
                assert np.array_equal(got, fold(np.maximum, n, dtype, count))
            else:
                assert got is None
            y = x.copy()
            assert team.bcast(y, root) is y
            assert np.array_equal(y, values(root, dtype, count))
            everybody = np.stack([values(r, dtype, count) for r in range(n)])
            assert np.array_equal(team.allgather(x), everybody)
            block = np.empty_like(everybody)
            block[me] = x
            assert np.array_equal(team.allgather(None, block), everybody)
            got = team.gather(x, root)
            assert np.array_equal(got, everybody) if me == root else got is None
            mine = team.scatter(everybody if me == root else None, root, np.empty(count, dtype))
            assert np.array_equal(mine, x)
            assert np.array_equal(team.alltoall(np.stack([x] * n)), everybody)
            rows = np.stack([x + r for r in range(n)]).astype(dtype)
            expected_row = fold(np.add, n, dtype, count) + np.dtype(dtype).type((n * me) % 256)
            if dtype not in ("float16", "int8", "uint8"):
                assert np.array_equal(team.reduce_scatter_block(rows), expected_row)
            assert np.array_equal(team.scan(x), fold(np.add, me + 1, dtype, count))
            before = team.exscan(x)
            assert before is None if me == 0 else np.array_equal(before, fold(np.add, me, dtype, count))
    return True


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_every_collective_on_every_type(n, way):
    assert lineweave.spawn(every_collective, n, args=(way,), method="fork") == [True] * n


def test_every_collective_among_threads(way):
    assert lineweave.spawn(every_collective, 3, args=(way,), method="thread") == [True] * 3


def operators(team):
    for name, function in OPERATORS.items():
        for given in (name, function):
            x = values(team.rank, "int32", 100)
            assert np.array_equal(team.allreduce(x, given), fold(function, team.size, "int32", 100))
    x = values(team.rank, "float64", 5)
    assert np.allclose(team.allreduce(x, "avg"), fold(np.add, team.size, "float64", 5) / team.size)
    import operator

    assert np.array_equal(team.allreduce(x, operator.mul), fold(np.multiply, team.size, "float64", 5))
    assert np.array_equal(team.allreduce(x, max), fold(np.maximum, team.size, "float64", 5))
    flags = np.array([team.rank == 0, True, False])
    assert team.allreduce(flags, "land").tolist() == [team.size == 1, True, False]
    assert team.allreduce(flags, np.logical_or).tolist() == [True, True, False]
    return True


def test_operators_by_name_and_function(method):
    assert lineweave.spawn(operators, 3, method=method) == [True] * 3


def left(a, b):
    return a * 10 + b


def functions(team, way):
    team = way(team)
    x = np.array([team.rank + 1.0, team.rank])
    n, me = team.size, team.rank
    assert team.allreduce(x, left).tolist() == [123.0, 12.0]
    y = x.copy()
    assert team.allreduce(y, left, y) is y and y.tolist() == [123.0, 12.0]
    got = team.reduce(x, left, root=1)
    assert got.tolist() == [123.0, 12.0] if me == 1 else got is None
    assert team.scan(x, left).tolist() == [[1, 0], [12, 1], [123, 12]][me]
    before = team.exscan(x, left)
    assert before is None if me == 0 else before.tolist() == [[1, 0], [12, 1]][me - 1]
    rows = np.arange(3.0)[:, None] * 100 + np.full((3, 2), me + 1.0)
    assert team.reduce_scatter_block(rows, left).tolist() == [me * 11100 + 123.0] * 2
    return True


def test_functions_as_operators_are_applied_in_rank_order(method, way):
    assert lineweave.spawn(functions, 3, args=(way,), method=method) == [True] * 3


def other_kinds(team):
    n, me = team.size, team.rank
    data = bytearray([me + 1, 2])
    assert team.allreduce(data) == bytearray([sum(range(1, n + 1)), 2 * n])
    assert team.allgather(bytes([me])) == bytearray(range(n))
    numbers = array.array("d", [me, 1.5])
    team.allreduce(numbers, out=numbers)
    assert numbers.tolist() == [sum(range(n)), 1.5 * n]
    assert team.allreduce(np.float32(me)).tolist() == sum(range(n))
    nought = np.array(float(me))
    assert team.allreduce(nought, out=nought) is nought and float(nought) == sum(range(n))
    empty = np.empty((0, 3))
    assert team.allreduce(empty).shape == (0, 3)
    view = memoryview(bytearray(8)).cast("q")
    view[0] = me
    team.allreduce(view, "max", view)
    assert view[0] == n - 1
    ml_dtypes = pytest.importorskip("ml_dtypes")
    half = np.array([me + 1, 0.5], ml_dtypes.bfloat16)
    assert team.allreduce(half).astype(float).tolist() == [sum(range(1, n + 1)), 0.5 * n]
    return True


def test_other_kinds_of_arrays(method):
    assert lineweave.spawn(other_kinds, 2, method=method) == [True] * 2


def shapes(team, way):
    team = way(team)
    n, me = team.size, team.rank
    grid = np.arange(12.0).reshape(3, 4) * (me + 1)
    total = np.arange(12.0).reshape(3, 4) * sum(range(1, n + 1))
    # Not contiguous: packed, as these are small.
    assert np.array_equal(team.allreduce(grid.T), total.T)
    assert np.array_equal(team.allreduce(grid[:, ::2]), total[:, ::2])
    wide = np.zeros((3, 8))
    part = wide[:, ::2]
    assert team.allreduce(grid, out=part) is part
    assert np.array_equal(wide[:, ::2], total) and not wide[:, 1::2].any()
    target = np.full((4, 4), float(me))[1:3, 1:3]
    team.bcast(target, 1)
    assert (target == 1.0).all()
    counts = [r + 1 for r in range(n)]
    mine = np.full(me + 1, me, "int32")
    expected = np.concatenate([np.full(r + 1, r, "int32") for r in range(n)])
    assert np.array_equal(team.allgatherv(mine, counts), expected)
    got = team.gatherv(mine, counts, 1)
    assert np.array_equal(got, expected) if me == 1 else got is None
    assert np.array_equal(
        team.scatterv(expected if me == 0 else None, counts, 0, np.empty(me + 1, "int32")), mine
    )
    summed = team.reduce_scatter(np.arange(sum(counts), dtype="int32"), counts)
    start = sum(counts[:me])
    assert np.array_equal(summed, np.arange(start, start + counts[me], dtype="int32") * n)
    given = [me + 1] * n
    taken = [r + 1 for r in range(n)]
    assert np.array_equal(team.alltoallv(np.full((me + 1) * n, me, "int64"), given, taken), expected)
    return True


def test_shapes_and_uneven_blocks(method, way):
    assert lineweave.spawn(shapes, 3, args=(way,), method=method) == [True] * 3


def handles(team):
    x = np.zeros(1)
    out = np.zeros(1)
    sum_up = team.allreduce_init(x, "sum", out)
    spread = team.bcast_init(x, 1)
    for i in range(50):
        x[0] = i + team.rank
        assert sum_up() is out
        assert out[0] == i * team.size + sum(range(team.size))
        spread()
        assert x[0] == i + 1
    flags = np.array([team.rank == 0, True])
    assert team.allreduce_init(flags, "land")().tolist() == [False, True]
    with pytest.raises(lineweave.BadType):
        team.allreduce_init(x, "sum", np.zeros(1, np.float32))
    held = bytearray(8)
    handle = team.allreduce_init(held)
    with pytest.raises(BufferError):
        held.extend(b"more")
    del handle
    held.extend(b"more")
    return True


def test_handles_repeat_a_call(method):
    assert lineweave.spawn(handles, 2, method=method) == [True] * 2


class Opaque:
    pass


def refusals(team, way):
    team = way(team)
    x = np.zeros(4)
    # A message, and what was given: refused before anything is exchanged, so that the team stays usable.
    cases = [
        (lambda: team.allreduce([1.0, 2.0]), TypeError, "is of type list"),
        (lambda: team.allreduce(Opaque()), TypeError, "is of type Opaque"),
        (lambda: team.allreduce(np.array([1, "a"], object)), TypeError, "Python objects"),
        (lambda: team.allreduce(np.array(["a"])), TypeError, "dtype str"),
        (lambda: team.allreduce(np.zeros(2, "datetime64[s]")), TypeError, "datetime64"),
        (lambda: team.allreduce(np.zeros(2, ">f8")), TypeError, "byte order"),
        (lambda: team.allreduce(np.zeros(2, bool)), TypeError, "not defined on bool"),
        (lambda: team.allreduce(x, "bor"), TypeError, "bor"),
        (lambda: team.allreduce(x, "summ"), ValueError, "'summ' is unknown"),
        (lambda: team.allreduce(x, 3), TypeError, "of type int"),
        (lambda: team.allreduce(x, out=np.zeros(3)), ValueError, "lengths do not fit"),
        (lambda: team.allreduce(x, out=np.zeros(4, "f4")), TypeError, "type f64 and `out` of type f32"),
        (lambda: team.allreduce(x, out=read_only(x)), ValueError, "read-only"),
        (lambda: team.allreduce(x, out=bytes(32)), ValueError, "read-only"),
        (lambda: team.allreduce(x[:3], out=x[1:]), ValueError, "overlap"),
        (lambda: team.allreduce(np.zeros((1000, 1000))[:, ::2]), ValueError, "ascontiguousarray"),
        (lambda: team.bcast(x, 2), ValueError, "root 2 is out of range"),
        (lambda: team.bcast(x, -1), OverflowError, "negative"),
        (lambda: team.reduce_scatter_block(np.zeros(3)), ValueError, "divisible by the 2 ranks"),
        (lambda: team.alltoall(np.zeros(3)), ValueError, "lengths do not fit"),
        (lambda: team.allgather(x, np.zeros(7)), ValueError, "lengths do not fit"),
        (lambda: team.allgatherv(x, [4]), ValueError, "1 counts"),
        (lambda: team.allgatherv(x, [3, 3]), ValueError, "expected by the counts"),
        (lambda: team.reduce_scatter(x, [2, 2], lambda a, b: a + b), ValueError, "by name"),
        (lambda: team.handle("reduce_scatter", x), ValueError, "reduce_scatter_block"),
        (lambda: team.send(x, to=2), ValueError, "no rank 2"),
        (lambda: team.allreduce_init(x[::2]), ValueError, "contiguous"),
    ]
    for call, kind, text in cases:
        with pytest.raises(kind, match=text):
            call()
    assert team.allreduce(np.ones(1))[0] == team.size
    return True


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def test_what_cannot_be_done_is_refused_with_advice(method, way):
    assert lineweave.spawn(refusals, 2, args=(way,), method=method) == [True] * 2


def mismatch(team):
    try:
        team.allreduce(np.zeros(3 + team.rank))
    except lineweave.Mismatch as error:
        return str(error)


def test_mismatched_calls_are_named_with_checks(monkeypatch):
    monkeypatch.setenv("LINEWEAVE_CHECK", "1")
    for text in lineweave.spawn(mismatch, 2, method="fork"):
        assert "3 x f64" in text and "4 x f64" in text


def complex_numbers(team):
    n, me = team.size, team.rank
    for dtype in ("complex64", "complex128"):
        x = np.array([me + 1j, 2.0], dtype)
        assert team.allreduce(x).tolist() == [sum(range(n)) + n * 1j, 2.0 * n]
        assert team.allreduce(x, "prod")[1] == 2.0**n
        assert team.allgather(x)[:, 0].tolist() == [r + 1j for r in range(n)]
        with pytest.raises(TypeError, match="max"):
            team.allreduce(x, "max")
    return True


def test_complex_numbers(method):
    assert lineweave.spawn(complex_numbers, 2, method=method) == [True] * 2


def torch_tensors(team):
    import torch

    n, me = team.size, team.rank
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.uint8):
        x = torch.full((2, 3), me + 1, dtype=dtype)
        assert torch.equal(team.allreduce(x), torch.full((2, 3), sum(range(1, n + 1)), dtype=dtype))
        team.bcast(x, 1)
        assert (x == 2).all()
    assert team.allgather(torch.tensor([me])).tolist() == [[r] for r in range(n)]
    with pytest.raises(BufferError, match="detach"):
        team.allreduce(torch.zeros(2, requires_grad=True))
    return True


def test_tensors_of_torch():
    pytest.importorskip("torch")
    assert lineweave.spawn(torch_tensors, 2, method="spawn") == [True] * 2
