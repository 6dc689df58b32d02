"""Calls that are started, handles, and messages between two ranks."""

import asyncio

import lineweave
import numpy as np
import pytest
from conftest import values


def many_at_once(team):
    n, me = team.size, team.rank
    x = values(me, "float64", 1000)
    rows = np.stack([values(r, "float64", 1000) for r in range(n)])
    counts = [30_000 * (r + 1) for r in range(n)]
    mine, everything = np.full(counts[me], me), np.concatenate([np.full(c, r) for r, c in enumerate(counts)])
    calls = [
        ("allreduce", x), ("allreduce", x, "max"), ("barrier",), ("allgather", x), ("alltoall", np.stack([x] * n)), ("scan", x), ("exscan", x),
        ("reduce", x, np.minimum, 1), ("reduce", x, lambda a, b: a * 10 + b, 1), ("gather", x, 1), ("reduce_scatter_block", rows),
        ("scatter", rows if me == 1 else None, 1, np.empty(1000)), ("bcast", np.full(3, float(me)), 1),
        ("allgatherv", mine, counts), ("gatherv", mine, counts, n - 1), ("reduce_scatter", everything, counts),
        ("scatterv", everything if me == 0 else None, counts, 0, np.empty(counts[me], int)),
        ("alltoallv", np.tile(mine, n), [counts[me]] * n, counts),
    ]  # fmt: skip
    requests = [getattr(team, "i" + name)(*given) for name, *given in calls]
    assert "request" in repr(requests[0])
    for got, (name, *given) in zip(lineweave.wait_all(requests), calls):
        expected = getattr(team, name)(*given)
        assert got is None if expected is None else np.array_equal(got, expected), name
    assert requests[0].test() and requests[0].wait() is requests[0].wait()
    # One that is dropped goes on, and its arrays stay for as long.
    out = np.zeros(70_000)
    team.iallreduce(np.full(70_000, 1.0), out=out)
    team.barrier()
    assert out[-1] == n
    return True


@pytest.mark.parametrize("n", [2, 3, 5])
def test_started_calls_give_what_blocking_ones_do(n):
    assert lineweave.spawn(many_at_once, n) == [True] * n


def test_started_calls_among_threads():
    assert lineweave.spawn(many_at_once, 2, method="thread") == [True] * 2


def awaited(team):
    async def one(value):
        return float((await team.iallreduce(np.array([value])))[0])

    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(tick())
        found = [await one(1.0), await one(2.0)]
        # The order of starting is that of creation: tasks run in it.
        found += await asyncio.gather(one(3.0), one(4.0))
        if team.rank == 0:
            await asyncio.sleep(0.05)
        found.append(await one(5.0))
        found.append(float((await team.iallreduce(np.array([6.0]), lambda a, b: a + b))[0]))
        other.cancel()
        return found, ticks > 0

    return asyncio.run(main())


def test_requests_can_be_awaited(method):
    expected = ([2.0, 4.0, 6.0, 8.0, 10.0, 12.0], True)
    assert lineweave.spawn(awaited, 2, method=method) == [expected] * 2


def handles(team):
    n = team.size
    x, out = np.zeros(4), np.zeros((n, 4))
    gather = team.handle("allgather", x, out=out)
    for step in range(20):
        x[:] = step + team.rank
        request = gather.start()
        assert request.wait() is out
        assert out[:, 0].tolist() == [step + r for r in range(n)]
    x[:] = 7
    assert gather() is out and out.sum() == 7 * 4 * n
    flags = np.array([team.rank == 0, True])
    both = team.handle("allreduce", flags, out=flags, op="land")
    both()
    assert flags.tolist() == [n == 1, True]
    with pytest.raises(lineweave.BadArgument, match="contiguous"):
        team.handle("allreduce", np.ones((3, 3))[:, 0])
    with pytest.raises(lineweave.BadArgument, match="no collective"):
        team.handle("alreduce", x)
    with pytest.raises(lineweave.BadArgument, match="made or started"):
        team.handle("allreduce", x, op=lambda a, b: a)
    return True


def test_handles_of_any_collective(method):
    assert lineweave.spawn(handles, 2, method=method) == [True] * 2


def messages(team):
    me, n = team.rank, team.size
    right, left = (me + 1) % n, (me - 1) % n
    out = np.zeros(100_000)
    assert team.sendrecv(np.full(100_000, float(me)), right, out, left) == 100_000
    assert out[0] == out[-1] == left
    if me == 0:
        team.send(np.arange(5, dtype=np.int32), 1, 7)
        team.send(np.ones((4, 4))[:, 1], 1, 3)
        team.send_object({"a": list(range(1000))}, 1)
        team.send(np.zeros(9), 1, 9)
    elif me == 1:
        # By tag, in another order than sent.
        y = np.zeros(8)
        assert team.recv(y, 0, 3) == 4 and y.tolist() == [1.0] * 4 + [0.0] * 4
        z = np.zeros(5, np.int32)
        assert team.recv(z, 0, 7) == 5 and z.tolist() == list(range(5))
        assert team.recv_object(0) == {"a": list(range(1000))}
        with pytest.raises(lineweave.Error, match="72"):
            team.recv(np.zeros(2), 0, 9)
        frozen = np.zeros(2)
        frozen.flags.writeable = False
        with pytest.raises(lineweave.BadArgument, match="read-only"):
            team.recv(frozen, 0)
    with pytest.raises(lineweave.Error, match="rank"):
        team.send(np.zeros(1), n)
    with pytest.raises(lineweave.BadArgument, match="overlap"):
        team.sendrecv(out, right, out, left)
    team.barrier()
    return True


@pytest.mark.parametrize("n", [2, 4])
def test_messages(n, method):
    assert lineweave.spawn(messages, n, method=method) == [True] * n


def started_messages(team):
    me, n = team.rank, team.size
    right, left_one = (me + 1) % n, (me - 1) % n
    sizes = {1: 3, 2: 100_000, 3: 500_000, 4: 0}
    taken = {tag: np.empty(count) for tag, count in sizes.items()}
    # In the opposite order of sends.
    receives = {tag: team.irecv(taken[tag], left_one, tag) for tag in reversed(sizes)}
    sends = [team.isend(np.full(count, 10.0 * me + tag), right, tag) for tag, count in sizes.items()]
    team.barrier()
    assert "recv" in repr(receives[1]) and "send" in repr(sends[0])
    for request in sends:
        assert request.wait() is None
    while not all(request.test() for request in receives.values()):
        pass
    for tag, count in sizes.items():
        assert receives[tag].wait() == count and (taken[tag] == 10.0 * left_one + tag).all()

    async def exchange():
        out = np.empty(70_000)
        coming = team.irecv(out, left_one)
        await team.isend(np.full(70_000, float(me)), right)
        return await coming, float(out[-1])

    assert asyncio.run(exchange()) == (70_000, float(left_one))
    # Objects, short and long, in one line, the last asked for first.
    objects = [me, {"a": list(range(1000))}, "short", list(range(5000))]
    coming = [team.irecv_object(left_one, 5) for _ in objects]
    going = [team.isend_object(o, right, 5) for o in objects]
    assert coming[3].wait() == objects[3] and coming[1].wait() == objects[1]
    assert coming[0].wait() == left_one and coming[2].test() and coming[2].wait() == "short"
    lineweave.wait_all(going)
    # Dropped, and received by a call that blocks; from whomever.
    team.isend(np.ones(200_000), right, 7)
    out = np.empty(200_000)
    source, size = team.probe(left_one, 7)
    assert (source, size) == (left_one, 1_600_000) and team.recv(out, source, 7) == 200_000 and out[-1] == 1
    assert team.probe(None, 8, wait=False) is None
    team.barrier()
    team.send(np.array([me]), right, 8)
    source, size = team.probe(tag=8)
    assert (source, size) == (left_one, 8)
    word = np.zeros(1, "f4")
    with pytest.raises(lineweave.Error, match="room|bytes"):
        team.irecv(word, left_one, 8).wait()
    with pytest.raises(lineweave.Error, match="rank"):
        team.isend(word, n)
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    with pytest.raises(lineweave.BadArgument, match="read-only"):
        team.irecv(frozen, left_one)
    team.barrier()
    return True


@pytest.mark.parametrize("n", [2, 3])
def test_started_messages(n, method):
    assert lineweave.spawn(started_messages, n, method=method) == [True] * n


def unreceived(team):
    if team.rank == 0:
        team.isend(np.ones(300_000), 1)
    team.close()
    return True


def test_a_team_is_closed_with_a_message_that_nobody_received(method):
    assert lineweave.spawn(unreceived, 2, method=method) == [True] * 2


def left_with_a_message(team):
    team.set_timeout(20.0)
    if team.rank == 1:
        raise ValueError("no more")
    team.irecv(np.ones(3), 1).wait()


def test_a_message_whose_peer_failed_says_so(method):
    with pytest.raises(lineweave.RankFailed, match="no more") as raised:
        lineweave.spawn(left_with_a_message, 2, method=method)
    assert raised.value.peer == 1 and "RankLost" in raised.value.reports[0]


def left_behind(team):
    team.set_timeout(20.0)
    if team.rank == 1:
        raise ValueError("no more")
    request = team.iallreduce(np.ones(3))
    request.wait()


def test_a_request_whose_peer_failed_says_so(method):
    with pytest.raises(lineweave.RankFailed, match="no more") as raised:
        lineweave.spawn(left_behind, 2, method=method)
    assert raised.value.peer == 1 and "RankLost" in raised.value.reports[0]


def closed_in_between(team):
    requests = [team.iallreduce(np.ones(10_000)) for _ in range(50)]
    if team.rank == 0:
        del requests
    team.close()
    return True


def test_a_team_that_is_closed_completes_what_was_started(method):
    assert lineweave.spawn(closed_in_between, 2, method=method) == [True] * 2
