"""Collectives on objects, and sub-teams."""

import lineweave
import pytest


def objects(team):
    n, me = team.size, team.rank
    # Short ones go in one message, long ones in two.
    for size in (1, 503, 504, 505, 5000):
        mine = {"rank": me, "text": "x" * size}
        everybody = [{"rank": r, "text": "x" * size} for r in range(n)]
        assert team.bcast_object(mine if me == 1 else None, 1) == everybody[1]
        assert team.allgather_object(mine) == everybody
        gathered = team.gather_object(mine, 2)
        assert gathered == everybody if me == 2 else gathered is None
        given = everybody if me == 0 else None
        assert team.scatter_object(given, 0) == mine
        assert team.alltoall_object([(me, r, "y" * size) for r in range(n)]) == [
            (r, me, "y" * size) for r in range(n)
        ]
    assert team.allgather_object("z" * (1 if me else 3000)) == ["z" * 3000] + ["z"] * (n - 1)
    assert team.allreduce_object([me]) == list(range(n))
    assert team.allreduce_object(str(me), lambda a, b: b + a) == "210"
    reduced = team.reduce_object(me, max, 1)
    assert reduced == n - 1 if me == 1 else reduced is None
    assert team.scan_object(str(me)) == "012"[: me + 1]
    assert team.exscan_object(str(me)) == ("012"[:me] or None)
    with pytest.raises(lineweave.BadArgument, match="expected 3"):
        team.alltoall_object([1])
    return True


def test_objects(method):
    assert lineweave.spawn(objects, 3, method=method) == [True] * 3


def splits(team):
    half = team.split(team.rank % 2, -team.rank)
    found = half.allgather_object(team.rank)
    assert found == sorted((r for r in range(team.size) if r % 2 == team.rank % 2), reverse=True)
    rest = team.split(None if team.rank == 0 else 7)
    assert rest is None if team.rank == 0 else rest.size == team.size - 1
    twin = team.dup()
    assert (twin.rank, twin.size) == (team.rank, team.size)
    twin.barrier()
    team.barrier()
    return True


def test_splitting(method):
    assert lineweave.spawn(splits, 4, method=method) == [True] * 4
