"""torch's `split_group` and symmetric memory on the backend for torch.distributed."""

import inspect
import os
import signal
import time

import lineweave
import pytest

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
if not dist.is_available():
    pytest.skip("torch without torch.distributed", allow_module_level=True)
from torch_ranks import ranks  # noqa: E402

symmetric = pytest.importorskip("torch.distributed._symmetric_memory")


def splits(me, n):
    halves = [[r for r in range(n) if r % 2 == side] for side in (0, 1)]
    # Ranks keep the order in which they are named; who is not named gets no group; a group of a group.
    turned = [half[::-1] for half in halves]
    group = dist.split_group(split_ranks=turned)
    assert dist.get_process_group_ranks(group) == turned[me % 2]
    x = torch.tensor([me])
    dist.all_reduce(x, group=group)
    assert x.item() == sum(halves[me % 2])
    first = dist.split_group(split_ranks=[[1, 0]], group_desc="a pair")
    assert (first == dist.GroupMember.NON_GROUP_MEMBER) == (me > 1)
    if me < 2:
        assert dist.get_rank(first) == 1 - me and first.group_desc == "a pair"
        alone = dist.split_group(first, [[0], [1]])
        assert dist.get_process_group_ranks(alone) == [me] and dist.get_world_size(alone) == 1
    again = dist.split_group(split_ranks=turned)
    assert again.group_name != group.group_name
    with pytest.raises(ValueError, match=r"expected different ones, each from 0 to 3"):
        dist.group.WORLD.split_group([0, 7])


@pytest.mark.skipif(
    not hasattr(dist, "split_group") or "_device_types" not in inspect.getsource(dist.split_group),
    reason="this torch splits only groups that are bound to an accelerator",
)
def test_groups_are_split():
    ranks(splits, 4)


def memory(me, n):
    world = dist.group.WORLD
    x = symmetric.empty(100, 3, dtype=torch.float32, device="cpu")
    assert not x.any()
    if hasattr(symmetric, "get_backend"):
        assert symmetric.get_backend("cpu") == "lineweave" and symmetric.is_symm_mem_tensor(x)
    handle = symmetric.rendezvous(x, world)
    assert symmetric.rendezvous(x, world) is handle and (handle.rank, handle.world_size) == (me, n)
    assert handle.buffer_size == 1200 and handle.buffer_ptrs[me] == x.data_ptr() and handle.offset == 0
    x.fill_(me)
    handle.barrier()
    for rank in range(n):
        assert (handle.get_buffer(rank, (100, 3), torch.float32) == rank).all()
        assert (handle.get_remote_tensor(rank, (5,), torch.float32) == rank).all()
    handle.barrier()
    # A rank writes into another's memory, and says so.
    handle.get_buffer((me + 1) % n, (2,), torch.float32, 7)[:] = 100 + me
    handle.put_signal((me + 1) % n, channel=3)
    handle.wait_signal((me - 1) % n, channel=3)
    assert x.view(-1)[6:10].tolist() == [me, 100 + (me - 1) % n, 100 + (me - 1) % n, me]
    pad = handle.get_signal_pad((me + 1) % n, (2,))
    pad[1] = me + 1
    handle.barrier(channel=1)
    assert handle.get_signal_pad(me)[:2].tolist() == [0, (me - 1) % n + 1]
    # Part of a tensor, in a group of some ranks.
    pair = dist.new_group([0, 1])
    if me < 2:
        part = symmetric.rendezvous(x[50:], pair)
        x[50] = me + 5
        part.barrier()
        assert part.offset == 600 and (part.get_remote_tensor(1 - me, (3,), torch.float32) == 6 - me).all()
        part.barrier()
    # Memory that is asked for again by its number is the same.
    kept = symmetric._SymmetricMemory.empty_strided_p2p((8,), (1,), torch.int64, torch.device("cpu"), world.group_name, 17)
    kept.fill_(me)
    with pytest.raises(ValueError, match="still used by a tensor"):
        symmetric._SymmetricMemory.empty_strided_p2p((8,), (1,), torch.int64, torch.device("cpu"), world.group_name, 17)
    at = kept.data_ptr()
    del kept
    kept = symmetric._SymmetricMemory.empty_strided_p2p((8,), (1,), torch.int64, torch.device("cpu"), world.group_name, 17)
    assert kept.data_ptr() == at and kept.tolist() == [me] * 8
    # The memory is given back with the last tensor in it.
    before = world._team.memory[0]
    big = symmetric.empty(1 << 20, device="cpu")
    assert world._team.memory[0] >= before + (4 << 20)
    del big
    dist.barrier()
    dist.barrier()
    assert world._team.memory[0] < before + (1 << 20)
    # These are refused.
    with pytest.raises(ValueError, match="memory of this process alone"):
        symmetric.rendezvous(torch.empty(3), world)
    with pytest.raises(ValueError, match="ends behind the 1200 bytes"):
        handle.get_buffer(0, (301,), torch.float32)
    with pytest.raises(ValueError, match=f"expected 0 to {n - 1}"):
        handle.get_buffer(n, (1,), torch.float32)
    uneven = symmetric.empty(3 + me % 2, device="cpu")
    with pytest.raises(ValueError, match="expected the same tensor of every rank"):
        symmetric.rendezvous(uneven, world)
    return True


@pytest.mark.parametrize("n", [2, 4])
def test_ranks_read_and_write_each_others_memory(n):
    ranks(memory, n)


def operators(me, n):
    name = dist.group.WORLD.group_name
    ops = torch.ops.symm_mem
    x = symmetric.empty(n * 4, 6, device="cpu")
    for length in (n * 4, n):
        part = x[:length]
        part.copy_(torch.arange(length * 6.0).view(length, 6) + me)
        total = sum(torch.arange(length * 6.0).view(length, 6) + r for r in range(n))
        assert torch.equal(ops.one_shot_all_reduce(part, "sum", name), total)
        assert torch.equal(ops.one_shot_all_reduce(part, "avg", name), total / n)
        out = torch.empty(length, 6)
        assert ops.one_shot_all_reduce_out(part, "sum", name, out) is out and torch.equal(out, total)
        assert torch.equal(ops.one_shot_all_reduce_copy(x, part.clone(), "max", name), torch.arange(length * 6.0).view(length, 6) + n - 1)
        rows = torch.empty(length // n, 6)
        ops.reduce_scatter_out(part, name, False, rows)
        assert torch.equal(rows, total.chunk(n)[me])
        assert torch.equal(ops._low_contention_reduce_scatter(part, "avg", name), total.chunk(n)[me] / n)
        assert torch.equal(ops._low_contention_all_gather(rows, name), total)
        dist.barrier()
        ops.two_shot_all_reduce_(part, "sum", name)
        assert torch.equal(part, total)
    columns = torch.empty(3, 2)
    ops.reduce_scatter_out(torch.arange(6.0 * n).view(3, 2 * n), name, True, columns)
    assert torch.equal(columns, torch.arange(6.0 * n).view(3, 2 * n).chunk(n, -1)[me] * n)
    x.fill_(me)
    dist.barrier()
    assert [remote[0, 0].item() for remote in ops.get_remote_tensors(x, name)] == list(range(n))
    dist.barrier()
    torch.manual_seed(1)
    shards, weight = torch.randn(n, 4, 8), torch.randn(8, 6)
    gathered, (product,) = ops.fused_all_gather_matmul(shards[me], [weight], 0, name)
    assert torch.allclose(gathered, shards.view(-1, 8)) and torch.allclose(product, shards.view(-1, 8) @ weight, atol=1e-5)
    scattered = ops.fused_matmul_reduce_scatter(shards.view(-1, 8), weight, "sum", 0, name)
    assert torch.allclose(scattered, n * shards[me] @ weight, atol=1e-4)
    with pytest.raises(ValueError, match="the operator is 'middle'; expected sum, avg"):
        ops.one_shot_all_reduce(x, "middle", name)


@pytest.mark.skipif(not hasattr(torch.ops.symm_mem, "one_shot_all_reduce_copy"), reason="this torch has fewer operators")
@pytest.mark.parametrize("n", [2, 3])
def test_operators_of_symmetric_memory(n):
    ranks(operators, n)


def lost(me, n):
    x = symmetric.empty(4, device="cpu")
    handle = symmetric.rendezvous(x, dist.group.WORLD)
    # The rank whose limit is over first names that; the other one, that it gave up.
    with pytest.raises(lineweave.Error, match="1.1|failed while rank"):
        symmetric.rendezvous(symmetric.empty(4, device="cpu"), dist.group.WORLD).wait_signal((me + 1) % n, timeout_ms=1100)
    dist.barrier()
    if me == n - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(Exception, match="rank 1"):
        handle.wait_signal(n - 1)
    assert time.monotonic() - began < 10
    os._exit(7)


def test_a_signal_of_a_lost_rank_is_an_error():
    with pytest.raises(Exception, match="exit code 7|signal SIGKILL"):
        ranks(lost, 2)


def without_a_team(me, n):
    with pytest.raises(ValueError, match="needs a group of the backend lineweave.*gloo"):
        symmetric.empty(4, device="cpu")


def test_groups_of_other_backends_are_refused():
    ranks(without_a_team, 2, backend="gloo")
