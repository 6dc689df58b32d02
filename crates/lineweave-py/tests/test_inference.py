"""The operators for inference by DeepSpeed's, sglang's and vLLM's names: what they give, how exact sums are, and what they refuse."""

import os

import pytest

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
from test_torch import free_port, ranks  # noqa: E402

# The largest relative error of rounding to nearest.
ROUNDING = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-24}


def given(rank, count, dtype):
    """Numbers of both signs, of sizes so different that most sums are inexact."""
    generator = torch.Generator().manual_seed(100 * rank + count)
    x = torch.randn(count, generator=generator) * 2.0 ** torch.randint(-4, 5, (count,), generator=generator)
    return x.to(dtype)


def sums(me, n):
    from lineweave.torch import inference_all_reduce, initialize, shm_allgather, shm_allreduce

    initialize(n, me)
    inexact = 0
    for dtype, rounding in ROUNDING.items():
        # One element, an odd number, and 8 KiB to 1 MiB.
        for count in (1, 1001, 8192 // dtype.itemsize, 65536 // dtype.itemsize, (1 << 20) // dtype.itemsize):
            x = given(me, count, dtype)
            assert inference_all_reduce(x) is x
            everybody = torch.stack([given(r, count, dtype) for r in range(n)]).double()
            error = (x.double() - everybody.sum(0)).abs()
            bound = (n - 1) * rounding * everybody.abs().sum(0)
            assert (error <= bound).all(), (dtype, count, (error / bound).max())
            inexact += int((error > 0).sum())
            rows = shm_allgather(x.view(torch.uint8).view(1, -1), 0)
            assert all(torch.equal(row, rows[0]) for row in rows), (dtype, count, "not the same bits at all ranks")
            again = given(me, count, dtype)
            assert shm_allreduce(again, dist.ReduceOp.SUM) is None and torch.equal(again, x)
    assert inexact > 1000, "these numbers show no rounding"
    # A fold rounds its result to the elements' type: what one rounding loses is lost.
    x = torch.tensor([256.0 if me == 0 else 1.0], dtype=torch.bfloat16)
    assert inference_all_reduce(x).item() == (256.0 if n == 2 else x.item())
    assert abs(x.item() - (255 + n)) <= (n - 1) * 2.0**-8 * (255 + n)


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_sums_are_within_the_bound_and_the_same_at_all_ranks(n):
    ranks(sums, n)


def by_names(me, n):
    from lineweave import BadArgument, BadType, NoTeam
    from lineweave.torch import inference_all_reduce, initialize, shm_allgather, shm_allreduce

    with pytest.raises(NoTeam, match="before initialize"):
        inference_all_reduce(torch.ones(3))
    with pytest.raises(BadArgument, match=f"this is rank {me}; expected these"):
        initialize(n + 1, me)
    with pytest.raises(BadArgument, match="rank 7 of 2"):
        initialize(2, 7)
    initialize(n, me)
    initialize(n, me)
    with pytest.raises(BadArgument, match="the same numbers"):
        initialize(n + 1, me)
    # The operator by each library's name of it.
    for op in (dist.ReduceOp.SUM, int(dist.ReduceOp.SUM), type("Op", (), {"name": "SUM"})()):
        x = torch.full((2, 3), float(me))
        shm_allreduce(x, op)
        assert (x == sum(range(n))).all()
        assert (inference_all_reduce(torch.full((5,), 1.0), op) == n).all()
    with pytest.raises(BadArgument, match="expected ReduceOp.SUM"):
        shm_allreduce(x, dist.ReduceOp.MAX)
    # Nothing, a parameter, another type, and the ranks of a group.
    inference_all_reduce(torch.empty(0))
    weight = torch.nn.Parameter(torch.ones(4), requires_grad=False)
    assert (inference_all_reduce(weight) == n).all()
    assert (inference_all_reduce(torch.full((3,), me, dtype=torch.int64)) == sum(range(n))).all()
    pair = dist.new_group([0, 1])
    if me < 2:
        assert inference_all_reduce(torch.ones(2), group=pair).tolist() == [2.0, 2.0]
    assert (inference_all_reduce(torch.ones(2), group=dist.group.WORLD) == n).all()
    for dim in (0, 1, 2, -1):
        x = torch.arange(24.0).reshape(2, 3, 4) + 100 * me
        joined = shm_allgather(x, dim)
        assert torch.equal(joined, torch.cat([x + 100 * (r - me) for r in range(n)], dim)), dim
    with pytest.raises(BadArgument, match="dim 3 of a tensor with 3"):
        shm_allgather(x, 3)
    # These tensors cannot be reduced in place, or at all.
    with pytest.raises(BadArgument, match=r"strides \(1, 3\).*contiguous"):
        inference_all_reduce(torch.ones(2, 3).t())
    with pytest.raises(BadType, match="list; expected a tensor"):
        inference_all_reduce([1.0])
    with pytest.raises(BadType, match="on meta"):
        inference_all_reduce(torch.ones(3, device="meta"))
    with pytest.raises(BadType, match="dense"):
        inference_all_reduce(torch.ones(3).to_sparse())
    with pytest.raises(BadType, match="float8_e4m3fn cannot be reduced"):
        inference_all_reduce(torch.ones(3).to(torch.float8_e4m3fn))


@pytest.mark.parametrize("backend", ["lineweave", "gloo"])
def test_deepspeed_s_and_sglang_s_names(backend):
    ranks(by_names, 3, backend)


def by_handles(me, n):
    from lineweave import BadArgument, BadType
    from lineweave.torch import init_shm_manager, join_shm_manager, shm_all_gather, shm_allreduce, shm_gather

    name = f"test-{os.environ['MASTER_PORT']}-cpushm"
    everybody = init_shm_manager(name, n, me, 4)
    with pytest.raises(BadArgument, match="was not joined"):
        shm_allreduce(everybody, torch.ones(3))
    with pytest.raises(BadArgument, match=f"its name is '{name}'"):
        join_shm_manager(everybody, "another")
    assert name in join_shm_manager(everybody, name)
    with pytest.raises(BadArgument, match="it was joined"):
        join_shm_manager(everybody, name)
    # Another group, with other ranks in another order.
    few = None
    if me > 0:
        few = init_shm_manager(f"{name}/few", n - 1, n - 1 - me)
        join_shm_manager(few, f"{name}/few")
        x = torch.full((1000,), float(me), dtype=torch.bfloat16)
        shm_allreduce(few, x)
        assert (x == sum(range(n))).all()
    for dtype in (torch.bfloat16, torch.float32, torch.bool):
        x = (torch.arange(6).reshape(2, 3) % (me + 2)).to(dtype)
        all_of = [(torch.arange(6).reshape(2, 3) % (r + 2)).to(dtype) for r in range(n)]
        output = torch.empty((2 * n, 3), dtype=dtype)
        shm_all_gather(everybody, x, output)
        assert torch.equal(output, torch.cat(all_of))
        for dst in range(n):
            outputs = [torch.empty_like(x) for _ in range(n)] if me == dst else None
            shm_gather(everybody, x, outputs, dst)
            assert me != dst or all(torch.equal(a, b) for a, b in zip(outputs, all_of))
    with pytest.raises(BadArgument, match="no such handle"):
        shm_allreduce(99, x)
    with pytest.raises(BadArgument, match=f"expected {n} times 6 of torch.bool"):
        shm_all_gather(everybody, x, output[1:])
    with pytest.raises(BadArgument, match=f"expected {n} tensors of shape"):
        shm_gather(everybody, x, None, me)
    with pytest.raises(BadArgument, match=f"rank {n} of {n}"):
        shm_gather(everybody, x, None, n)
    with pytest.raises(BadType, match="str; expected a tensor"):
        shm_allreduce(everybody, "x")


@pytest.mark.parametrize("backend", ["lineweave", "gloo"])
def test_vllm_s_handles(backend):
    ranks(by_handles, 3, backend)


def alone(rank, size, port):
    from lineweave import BadArgument
    from lineweave.torch import inference_all_reduce, initialize

    with pytest.raises(BadArgument, match="MASTER_ADDR and MASTER_PORT"):
        initialize(size, rank)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    initialize(size, rank)
    assert (inference_all_reduce(torch.ones(5)) == size).all()


def test_ranks_meet_without_a_process_group(monkeypatch):
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    torch.multiprocessing.spawn(alone, (2, free_port()), nprocs=2)


def on_two_nodes(me, n):
    from lineweave import BadArgument
    from lineweave.torch import initialize

    os.environ["LINEWEAVE_NODE"] = f"node{me}"
    with pytest.raises(BadArgument, match="several nodes"):
        initialize(n, me)


def test_ranks_on_several_nodes_are_refused():
    ranks(on_two_nodes, 2, "gloo")


def measured(me, n):
    from lineweave import _bench_inference

    for library in ("lineweave", "gloo"):
        reduce = _bench_inference.reducer(library)
        assert _bench_inference.same_bits(reduce)
        for _, _, _, call, check in _bench_inference.cases(library, reduce):
            call()
            check()
            # A tensor that was not added up is no answer.
            with pytest.raises(AssertionError, match=f"a wrong answer by {library}"):
                check()

    def own_first(x):
        """Imitates vLLM's operator: each rank begins with its own part."""
        rows = [torch.empty_like(x.view(torch.uint8)) for _ in range(n)]
        dist.all_gather(rows, x.view(torch.uint8))
        for r in range(1, n):
            x.add_(rows[(me + r) % n].view(x.dtype))

    assert not _bench_inference.same_bits(own_first)


def test_what_is_measured_is_checked():
    ranks(measured, 3, "gloo")


@pytest.mark.parametrize("peer, called", [("deepspeed", "DeepSpeed"), ("vllm", "vLLM")])
def test_what_cannot_be_fetched_is_missing_with_the_reason(monkeypatch, tmp_path, peer, called):
    from lineweave import _bench_peers

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(_bench_peers.Missing, match=f"{called}'s operator cannot be fetched: .*{peer}"):
        _bench_peers.PEERS[peer]()
