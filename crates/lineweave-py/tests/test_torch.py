"""The backend for torch.distributed, against what its calls promise, and against gloo."""

import os
import subprocess
import sys
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
if not dist.is_available():
    pytest.skip("torch without torch.distributed", allow_module_level=True)
import torch.multiprocessing  # noqa: E402
from torch_ranks import enter, free_port, ranks  # noqa: E402

TYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
]


def of(rank, dtype, shape=(3, 5)):
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 3 + rank * 5) % 7 + 1).reshape(shape).to(dtype)


def every_collective(me, n):
    assert dist.get_backend() == "lineweave"
    everybody = list(range(n))
    for dtype in TYPES:
        x = of(me, dtype)
        total = sum(of(r, dtype) for r in everybody)
        y = x.clone()
        assert dist.all_reduce(y) is None and torch.equal(y, total)
        y = x.clone()
        work = dist.all_reduce(y, op=dist.ReduceOp.MAX, async_op=True)
        assert work.wait() and work.is_completed()
        assert torch.equal(y, torch.stack([of(r, dtype) for r in everybody]).max(0).values)
        y = x.clone()
        dist.broadcast(y, src=1)
        assert torch.equal(y, of(1, dtype))
        y = x.clone()
        dist.reduce(y, dst=1)
        assert torch.equal(y, total if me == 1 else y)
        parts = [torch.empty_like(x) for _ in everybody]
        dist.all_gather(parts, x)
        assert all(torch.equal(part, of(r, dtype)) for r, part in enumerate(parts))
        flat = torch.empty((3 * n, 5), dtype=dtype)
        dist.all_gather_into_tensor(flat, x)
        assert torch.equal(flat, torch.cat([of(r, dtype) for r in everybody]))
        parts = [torch.empty_like(x) for _ in everybody] if me == 0 else None
        dist.gather(x, parts, dst=0)
        assert me != 0 or all(torch.equal(part, of(r, dtype)) for r, part in enumerate(parts))
        y = torch.empty_like(x)
        dist.scatter(y, [of(r, dtype) for r in everybody] if me == 1 else None, src=1)
        assert torch.equal(y, x)
        y = torch.empty_like(x)
        dist.reduce_scatter(y, [of(me + r, dtype) for r in everybody])
        expected = sum(of(r + me, dtype) for r in everybody)
        assert torch.equal(y, expected)
        y = torch.empty_like(x)
        dist.reduce_scatter_tensor(y, torch.cat([of(me + r, dtype) for r in everybody]))
        assert torch.equal(y, expected)
        parts = [torch.empty_like(x) for _ in everybody]
        dist.all_to_all(parts, [of(10 * me + r, dtype) for r in everybody])
        assert all(torch.equal(part, of(10 * r + me, dtype)) for r, part in enumerate(parts))
        given = torch.cat([of(10 * me + r, dtype) for r in everybody])
        taken = torch.empty_like(given)
        dist.all_to_all_single(taken, given)
        assert torch.equal(taken, torch.cat([of(10 * r + me, dtype) for r in everybody]))
    # Blocks of different lengths: rank r gives each rank r + 1 rows.
    given = torch.full(((me + 1) * n, 2), float(me))
    taken = torch.empty((sum(r + 1 for r in everybody), 2))
    dist.all_to_all_single(taken, given, [r + 1 for r in everybody], [me + 1] * n)
    assert torch.equal(taken, torch.cat([torch.full((r + 1, 2), float(r)) for r in everybody]))


@pytest.mark.parametrize("n", [2, 4])
def test_every_collective_on_every_type(n):
    ranks(every_collective, n)


def the_rest(me, n):
    # Not contiguous, truth values, averages, objects, nothing at all.
    x = torch.arange(12.0).reshape(3, 4).t()
    dist.all_reduce(x)
    assert torch.equal(x, torch.arange(12.0).reshape(3, 4).t() * n)
    flags = torch.tensor([me == 0, True, False])
    dist.all_reduce(flags, op=dist.ReduceOp.MIN)
    assert flags.tolist() == [False, True, False]
    x = torch.tensor([float(me)])
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    assert x.item() == (n - 1) / 2
    dist.all_reduce(torch.empty(0))
    z = torch.tensor([1 + 1j * me])
    dist.all_reduce(z)
    assert z.item() == n + 1j * sum(range(n))
    found = [None] * n
    dist.all_gather_object(found, {"rank": me})
    assert found == [{"rank": r} for r in range(n)]
    # Point to point.
    x = torch.full((4,), float(me))
    y = torch.empty(4)
    sent = dist.isend(x, (me + 1) % n)
    dist.recv(y, (me - 1) % n)
    sent.wait()
    assert (y == (me - 1) % n).all()
    # Several groups.
    pairs = [dist.new_group([r, r + 1]) for r in range(0, n - 1, 2)]
    for first, group in zip(range(0, n - 1, 2), pairs):
        if me in (first, first + 1):
            x = torch.tensor([me])
            dist.all_reduce(x, group=group)
            assert x.item() == 2 * first + 1
    # These calls are refused.
    with pytest.raises(TypeError, match="this call is for dense tensors.*to_dense"):
        dist.broadcast(torch.zeros(3).to_sparse(), src=0)
    with pytest.raises(ValueError, match="MAX is not offered on sparse tensors; expected SUM or AVG"):
        dist.all_reduce(torch.zeros(3).to_sparse(), op=dist.ReduceOp.MAX)
    with pytest.raises(ValueError, match="sparse tensors of one shape are expected"):
        dist.all_reduce(torch.zeros(3 + me % 2).to_sparse())
    with pytest.raises(ValueError, match="each as long as that rank's output"):
        dist.reduce_scatter(torch.empty(3), [torch.zeros(2)] * n)
    with pytest.raises(ValueError, match="PREMUL_SUM|is not offered"):
        dist.all_reduce(torch.tensor([True]), op=dist.ReduceOp.AVG)
    dist.barrier()


def test_groups_objects_and_what_is_refused():
    ranks(the_rest, 4)


def parts_of_any_length(me, n):
    # Rank r takes r rows, rank 0 none.
    for dtype in TYPES:
        given = [of(me + r, dtype, (r, 2)) for r in range(n)]
        for op, combine in ((dist.ReduceOp.SUM, lambda t: t.sum(0)), (dist.ReduceOp.MAX, lambda t: t.max(0).values)):
            y = torch.full((me, 2), 100).to(dtype)
            dist.reduce_scatter(y, given, op=op)
            assert torch.equal(y, combine(torch.stack([of(me + r, dtype, (me, 2)) for r in range(n)])).to(dtype))
    y = torch.empty(me + 1, dtype=torch.bool)
    dist.reduce_scatter(y, [torch.arange(r + 1) == me for r in range(n)])
    assert torch.equal(y, torch.arange(me + 1) < n)


def sparse(me, n):
    # Elements that several ranks have, that one rank has twice, whole rows, and none at all.
    for shape, indices, values in (
        ((7,), [[me, 3, 3]], [1.0, 2.0, me]),
        ((5, 4), [[me % 5, 0], [1, 2]], [1.5, me]),
        ((5, 3), [[0, me % 5]], [[1.0, 2.0, me]] * 2),
        ((4,), [[] if me else [2]], [] if me else [4.0]),
    ):
        mine = torch.sparse_coo_tensor(torch.tensor(indices, dtype=torch.int64), torch.tensor(values, dtype=torch.float64), shape)
        dense = mine.to_dense()
        everybody = [torch.empty_like(dense) for _ in range(n)]
        dist.all_gather(everybody, dense)
        for op, expected in ((dist.ReduceOp.SUM, sum(everybody)), (dist.ReduceOp.AVG, sum(everybody) / n)):
            x = mine.clone()
            work = dist.all_reduce(x, op=op, async_op=True)
            work.wait()
            assert x.is_sparse and torch.allclose(x.to_dense(), expected)
    # Integers are averaged as in dense tensors.
    dense = torch.tensor([-3 - me, 0, 5 * me])
    few = dense.to_sparse()
    dist.all_reduce(dense, op=dist.ReduceOp.AVG)
    dist.all_reduce(few, op=dist.ReduceOp.AVG)
    assert few.dtype is torch.int64 and torch.equal(few.to_dense(), dense)


@pytest.mark.parametrize("n", [2, 4])
def test_parts_of_any_length_are_reduced_and_scattered(n):
    ranks(parts_of_any_length, n)


@pytest.mark.parametrize("n", [2, 3])
def test_sparse_tensors_are_added_up(n):
    ranks(sparse, n)


def embed(me, n):
    """Embeddings whose gradients are sparse, under data parallelism."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Embedding(50, 8, sparse=True), torch.nn.Flatten(), torch.nn.Linear(32, 2))
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(100 + me)
    for _ in range(6):
        words = torch.randint(0, 50, (16, 4), generator=generator)
        loss = torch.nn.functional.cross_entropy(parallel(words), words[:, 0] % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def test_sparse_gradients_are_those_of_gloo(tmp_path):
    for backend in ("lineweave", "gloo"):
        ranks(embed, 2, backend, str(tmp_path))
    for rank in range(2):
        ours, theirs = (torch.load(tmp_path / f"{backend}-{rank}") for backend in ("lineweave", "gloo"))
        assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(ours, theirs))


def train(me, n):
    """A small network on a task with an answer: the losses of every step, and what it learned."""
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(100 + me)
    truth = torch.randn(16, 4, generator=torch.Generator().manual_seed(1))
    losses = []
    for _ in range(12):
        x = torch.randn(32, 16, generator=generator)
        loss = torch.nn.functional.cross_entropy(parallel(x), (x @ truth).argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses), [p.detach() for p in model.parameters()]


def test_data_parallel_training_is_that_of_gloo_to_the_last_bit(tmp_path):
    # Of two numbers there is one sum: with two ranks the order of summation cannot differ.
    for backend in ("gloo", "lineweave"):
        ranks(train, 2, backend, str(tmp_path))
    for rank in range(2):
        losses, learned = torch.load(tmp_path / f"lineweave-{rank}")
        expected, other = torch.load(tmp_path / f"gloo-{rank}")
        assert torch.equal(losses, expected)
        assert all(torch.equal(a, b) for a, b in zip(learned, other))
        assert losses[-1] < losses[0]


def test_data_parallel_training_among_four(tmp_path):
    for backend in ("gloo", "lineweave"):
        ranks(train, 4, backend, str(tmp_path))
    losses, _ = torch.load(tmp_path / "lineweave-0")
    expected, _ = torch.load(tmp_path / "gloo-0")
    # Three additions in another order in each step, of numbers near 1, 12 steps.
    assert torch.allclose(losses, expected, rtol=12 * 3 * 2**-23, atol=0)


def enter_nodes(rank, function, size, port, folder):
    # Two nodes of this machine: what a rank says of itself is all that is asked.
    os.environ["LINEWEAVE_NODE"] = f"node{rank * 2 // size}"
    enter(rank, function, size, "lineweave", port, folder)


def over_nodes(me, n):
    from lineweave._torch_nodes import ProcessGroupNodes

    assert isinstance(dist.distributed_c10d._get_default_group(), ProcessGroupNodes)
    # Some of these are gloo's, which has no int16.
    TYPES.remove(torch.int16)
    every_collective(me, n)
    x = torch.full((3,), 2**14 + me, dtype=torch.int16)
    dist.all_reduce(x)
    assert x[0].item() == (n * 2**14 + sum(range(n)) + 2**15) % 2**16 - 2**15
    for op, expected in (("SUM", n * (n - 1) // 2), ("MAX", n - 1), ("AVG", (n - 1) / 2)):
        x = torch.full((5, 2), float(me)).t()
        dist.all_reduce(x, op=getattr(dist.ReduceOp, op))
        assert (x == expected).all()
    # Towards zero, as on one node.
    x = torch.tensor([-1 - me])
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    assert x.item() == int(-(n + 1) / 2)
    flags = torch.tensor([me == 0, True])
    dist.all_reduce(flags, op=dist.ReduceOp.MIN)
    assert flags.tolist() == [False, True]
    found = [None] * n
    dist.all_gather_object(found, me)
    assert found == list(range(n))
    # Groups within a node, and across both.
    within = [dist.new_group(list(range(n // 2))), dist.new_group(list(range(n // 2, n)))]
    across = dist.new_group([0, n - 1])
    x = torch.tensor([me])
    dist.all_reduce(x, group=within[0 if me < n // 2 else 1])
    half = range(n // 2) if me < n // 2 else range(n // 2, n)
    assert x.item() == sum(half)
    if me in (0, n - 1):
        x = torch.tensor([me])
        dist.all_reduce(x, group=across)
        assert x.item() == n - 1
    return train(me, n)


@pytest.mark.parametrize("n", [4, 5])
def test_several_nodes_are_composed_with_gloo(tmp_path, n):
    torch.multiprocessing.spawn(enter_nodes, (over_nodes, n, free_port(), str(tmp_path)), nprocs=n)
    ranks(train, n, "gloo", str(tmp_path))
    losses, _ = torch.load(tmp_path / "lineweave-0")
    expected, _ = torch.load(tmp_path / "gloo-0")
    # n - 1 additions in another order in each of 12 steps, of numbers near 1.
    assert torch.allclose(losses, expected, rtol=12 * (n - 1) * 2**-23, atol=0)


def infer(me, n):
    """Tensor-parallel inference: torch's own plan for it, on a mesh of this backend."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).eval()
    x = torch.randn(5, 16, generator=torch.Generator().manual_seed(4))
    with torch.no_grad():
        alone = model(x)
        mesh = init_device_mesh("cpu", (n,))
        assert dist.get_backend(mesh.get_group()) == "lineweave"
        parallel = parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        together = parallel(x)
    # The sum over 64 hidden units is split among ranks.
    assert torch.allclose(alone, together, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [2, 4])
def test_tensor_parallel_inference(n):
    ranks(infer, n)


def overlapping(me, n):
    # Many at a time, waited for in another order, and a future of one.
    xs = [torch.full((1000,), float(i + me)) for i in range(8)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    for work in reversed(works):
        work.wait()
    assert all((x == n * i + n * (n - 1) / 2).all() for i, x in enumerate(xs))
    assert works[0].get_future().wait()[0] is xs[0]
    # Messages both ways at once, as pipelines send them.
    out, back = torch.full((100_000,), float(me)), torch.empty(100_000)
    right, left = (me + 1) % n, (me - 1) % n
    both = [dist.P2POp(dist.isend, out, right), dist.P2POp(dist.irecv, back, left)]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    assert (back == left).all()


def test_calls_that_overlap():
    ranks(overlapping, 3)


def messages(me, n):
    right, left = (me + 1) % n, (me - 1) % n
    for dtype in (*TYPES, torch.bool, torch.complex64):
        x, y = torch.full((3, 4), me + 1).to(dtype), torch.empty((3, 4), dtype=dtype)
        sent = dist.isend(x, right, tag=3)
        dist.recv(y, left, tag=3)
        sent.wait()
        assert torch.equal(y, torch.full((3, 4), left + 1).to(dtype))
    # Not contiguous, nothing at all, a number, and far longer than a ring, in another order than sent.
    long = torch.arange(1_000_000.0) + me
    sends = [dist.isend(x, right, tag=i) for i, x in enumerate([long, torch.ones(3, 4).t() * me, torch.empty(0), torch.tensor(me)])]
    number, nothing, turned, back = torch.tensor(-1), torch.empty(0), torch.zeros(4, 6)[:, ::2], torch.empty(1_000_000)
    receives = [dist.irecv(x, left, tag=3 - i) for i, x in enumerate([number, nothing, turned, back])]
    dist.barrier()
    while not receives[-1].is_completed():
        pass
    for work in receives + sends:
        work.wait()
    assert number.item() == left and (turned == left).all() and torch.equal(back, torch.arange(1_000_000.0) + left)
    # From whomever.
    if me == 0:
        found = set()
        for _ in range(n - 1):
            x = torch.empty(2)
            source = dist.recv(x, tag=9)
            assert x.tolist() == [source, 5.0]
            found.add(source)
        assert found == set(range(1, n))
    else:
        dist.send(torch.tensor([float(me), 5.0]), 0, tag=9)
    # Of a group, whose ranks have other numbers there.
    group = dist.new_group([n - 2, n - 1])
    if me == n - 2:
        dist.send(torch.tensor([7]), n - 1, group=group)
    elif me == n - 1:
        x = torch.zeros(1, dtype=torch.int64)
        dist.recv(x, n - 2, group=group)
        assert x.item() == 7
    objects = [{"a": me}] if me == 0 else [None]
    if me == 0:
        dist.send_object_list(objects, dst=1)
    elif me == 1:
        dist.recv_object_list(objects, src=0)
        assert objects == [{"a": 0}]


@pytest.mark.parametrize("n", [2, 3])
def test_messages_between_two_ranks(n):
    ranks(messages, n)


SCRIPT = """
import lineweave.torch, torch, torch.distributed as dist
dist.init_process_group("lineweave")
x = torch.ones(3)
dist.all_reduce(x)
assert x.tolist() == [dist.get_world_size()] * 3
if dist.get_rank() == 0:
    print("sum", x.tolist())
dist.destroy_process_group()
"""


def test_torchrun_starts_ranks(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={free_port()}", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "sum [2.0, 2.0, 2.0]" in done.stdout


def enter_with_threads(rank, size, port, folder):
    import lineweave.torch  # noqa: F401

    torch.set_num_threads(3)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("lineweave", rank=rank, world_size=size, timeout=timedelta(seconds=60))
    torch.save((torch.get_num_threads(), len(os.sched_getaffinity(0))), os.path.join(folder, str(rank)))
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("bind", [None, "none"])
def test_a_rank_that_is_bound_to_one_cpu_computes_with_one_thread(tmp_path, monkeypatch, bind):
    n = lineweave_cpus()
    if not 2 <= n <= 8:
        pytest.skip(f"as many ranks as CPUs are bound, and this machine has {n}")
    if bind is not None:
        monkeypatch.setenv("LINEWEAVE_BIND", bind)
    torch.multiprocessing.spawn(enter_with_threads, (n, free_port(), str(tmp_path)), nprocs=n)
    expected = (1, 1) if bind is None else (3, n)
    assert [torch.load(tmp_path / str(rank)) for rank in range(n)] == [expected] * n


def lineweave_cpus():
    from lineweave import _lineweave

    return _lineweave.usable_cpus()


def described(rank, size):
    from lineweave import _lineweave, _torch_reductions

    asked = []
    operators = list(_torch_reductions._BY_HASH.items())
    team = dist.group.WORLD._team
    reduction = _lineweave.TensorReduction(team, operators, lambda tensors, opts: asked.append(tensors), _torch_reductions.Done)
    options = dist.AllreduceOptions()
    options.asyncOp = False
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8):
        for name in ("SUM", "PRODUCT", "MIN", "MAX"):
            x = torch.arange(1, 7).reshape(2, 3).to(dtype) + rank
            options.reduceOp = getattr(dist.ReduceOp, name)
            assert reduction([x], options) is None
            each = torch.stack([torch.arange(1, 7).reshape(2, 3).to(dtype) + r for r in range(size)])
            folds = {"SUM": each.sum, "PRODUCT": each.prod, "MIN": each.amin, "MAX": each.amax}
            assert torch.equal(x, folds[name](0).to(dtype)), (dtype, name, x)
    assert not asked
    # Tensors about which Python has to be asked are left alone.
    wide = torch.ones(4, 4)
    left = [[wide[:, 1]], [wide.t()[1:3]], [torch.ones(3, dtype=torch.bool)], [torch.ones(0)], [wide, wide], (wide,)]
    for tensors in left:
        reduction(tensors, options)
    reduction([wide])
    assert len(asked) == len(left) + 1 and wide.sum().item() == 16.0
    # A caller that asks for work gets it.
    for asynchronous in (False, True):
        work = dist.all_reduce(wide, async_op=asynchronous)
        assert (work is not None) == asynchronous and (work is None or work.wait())
    assert torch.equal(wide, torch.full((4, 4), float(size * size)))
    with pytest.raises(ValueError, match="operator"):
        _lineweave.TensorReduction(team, [(0, 1000)], print, print)


@pytest.mark.skipif(not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="torch does not describe tensors by functions")
def test_allreduce_without_questions_is_the_same():
    ranks(described, 2)
