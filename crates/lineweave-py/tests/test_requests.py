"""Calls that are started, handles, and messages between two ranks."""

import asyncio

import lineweave
import numpy as np
import pytest
from conftest import values


def started(team):
    n, me = team.size, team.rank
    everybody = list(range(n))
    x = values(me, "float64", 1000)
    all_of_them = np.stack([values(r, "float64", 1000) for r in everybody])
    total = all_of_them.sum(0)
    requests = [
        team.iallreduce(x),
        team.iallreduce(x, "max"),
        team.ibarrier(),
        team.iallgather(x),
        team.ialltoall(np.stack([x] * n)),
        team.iscan(x),
        team.iexscan(x),
        team.ireduce(x, np.minimum, 1),
        team.igather(x, 1),
        team.iscatter(all_of_them if me == 1 else None, 1, np.empty(1000)),
        team.ireduce_scatter_block(all_of_them),
    ]
    word = np.full(3, float(me))
    requests.append(team.ibcast(word, 1))
    assert "request" in repr(requests[0])
    got = lineweave.wait_all(requests)
    assert np.array_equal(got[0], total)
    assert np.array_equal(got[1], all_of_them.max(0))
    assert got[2] is None
    assert np.array_equal(got[3], all_of_them) and np.array_equal(got[4], all_of_them)
    assert np.array_equal(got[5], all_of_them[: me + 1].sum(0))
    if me > 0:
        assert np.array_equal(got[6], all_of_them[:me].sum(0))
    assert np.array_equal(got[7], all_of_them.min(0)) if me == 1 else got[7] is None
    assert np.array_equal(got[8], all_of_them) if me == 1 else got[8] is None
    assert np.array_equal(got[9], x)
    assert np.array_equal(got[10], values(me, "float64", 1000) * n)
    assert word.tolist() == [1.0] * 3
    assert requests[0].test() and requests[0].wait() is got[0]
    # One that is dropped goes on, and its arrays stay for as long.
    out = np.zeros(70_000)
    team.iallreduce(np.full(70_000, 1.0), out=out)
    team.barrier()
    assert out[-1] == n
    # Not contiguous: packed, and unpacked at the end.
    wide = np.zeros((4, 4))
    request = team.iallreduce(np.ones((4, 4)).T[:, :2], out=wide[:, :2])
    request.wait()
    assert wide[:, :2].tolist() == [[n, n]] * 4 and wide[:, 2:].sum() == 0
    return True


@pytest.mark.parametrize("n", [2, 3, 5])
def test_started_calls_give_what_blocking_ones_do(n):
    assert lineweave.spawn(started, n) == [True] * n


def test_started_calls_among_threads():
    assert lineweave.spawn(started, 2, method="thread") == [True] * 2


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
        other.cancel()
        return found, ticks > 0

    return asyncio.run(main())


def test_requests_can_be_awaited(method):
    expected = ([2.0, 4.0, 6.0, 8.0, 10.0], True)
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


def left(a, b):
    return a * 10 + b


def functions(team):
    me = team.rank
    x = np.array([me + 1.0, me])
    y = x.copy()
    rows = np.arange(3.0)[:, None] * 100 + np.full((3, 2), me + 1.0)
    got = lineweave.wait_all(
        [
            team.iallreduce(x, left),
            team.iallreduce(y, left, y),
            team.ireduce(x, left, root=1),
            team.iscan(x, left),
            team.iexscan(x, left),
            team.ireduce_scatter_block(rows, left),
        ]
    )
    assert got[0].tolist() == [123.0, 12.0] and got[1] is y and y.tolist() == [123.0, 12.0]
    assert got[2].tolist() == [123.0, 12.0] if me == 1 else got[2] is None
    assert got[3].tolist() == [[1, 0], [12, 1], [123, 12]][me]
    assert got[4] is None if me == 0 else got[4].tolist() == [[1, 0], [12, 1]][me - 1]
    assert got[5].tolist() == [me * 11100 + 123.0] * 2

    async def main():
        return float((await team.iallreduce(x, left))[0])

    assert asyncio.run(main()) == 123.0
    return True


def test_functions_as_operators_of_started_calls(method):
    assert lineweave.spawn(functions, 3, method=method) == [True] * 3


def uneven(team):
    n, me = team.size, team.rank
    for scale in (1, 30_000):
        counts = [(r + 1) * scale for r in range(n)]
        mine = np.full(counts[me], me, "int32")
        everything = np.concatenate([np.full(c, r, "int32") for r, c in enumerate(counts)])
        given = np.full(counts[me] * n, me, "int64")
        requests = [
            team.iallgatherv(mine, counts),
            team.igatherv(mine, counts, n - 1),
            team.iscatterv(everything if me == 0 else None, counts, 0, np.empty(counts[me], "int32")),
            team.ireduce_scatter(everything, counts),
            team.ialltoallv(given, [counts[me]] * n, counts),
            team.ialltoallv(given, [counts[me]] * n, counts, np.empty(sum(counts), "int64")),
        ]
        got = lineweave.wait_all(requests)
        assert np.array_equal(got[0], everything)
        assert np.array_equal(got[1], everything) if me == n - 1 else got[1] is None
        assert np.array_equal(got[2], mine)
        assert np.array_equal(got[3], mine * n)
        assert np.array_equal(got[4], everything) and np.array_equal(got[5], everything)
    with pytest.raises(ValueError, match="expected by the counts"):
        team.iallgatherv(mine, [1] * n)
    with pytest.raises(ValueError, match="counts"):
        team.iallgatherv(mine, [1])
    with pytest.raises(ValueError, match="by name"):
        team.ireduce_scatter(everything, counts, left)
    return True


@pytest.mark.parametrize("n", [1, 3])
def test_started_calls_with_blocks_of_different_lengths(n, method):
    assert lineweave.spawn(uneven, n, method=method) == [True] * n


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
