"""Collectives on small Python objects, which travel pickled. Arrays go by the other calls: much faster."""

from __future__ import annotations

import collections
import functools
import pickle
from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeVar, cast

from lineweave._errors import BadArgument
from lineweave._requests import Request
from lineweave._started import Started

if TYPE_CHECKING:
    from lineweave._typing import Waited

T = TypeVar("T")

# Bytes of an object that fit into the first message beside its length; a longer object needs a second one.
_FIRST = 504
_LENGTH = 8


def _bundle(obj: object) -> tuple[bytes, bytearray]:
    data = pickle.dumps(obj, pickle.HIGHEST_PROTOCOL)
    first = bytearray(_LENGTH + _FIRST)
    first[:_LENGTH] = len(data).to_bytes(_LENGTH, "little")
    first[_LENGTH : _LENGTH + min(len(data), _FIRST)] = data[:_FIRST]
    return data, first


def _padded(length: int) -> int:
    # Powers of two: a plan is made for each length, and there are few of these.
    return 1 << max(length - 1, 63).bit_length()


def _rest(tag: int) -> int:
    # The second message has a tag of its own, so that it is not taken for the first message of the next object.
    if tag >= 1 << 31:
        raise BadArgument(f"tag {tag} is too large for an object; tags below {1 << 31} are for objects")
    return tag | 1 << 31


class _All:
    """Several messages that are sent, waited for as one."""

    def __init__(self, requests: Sequence[Request[Any]]) -> None:
        self._requests = requests

    def wait(self) -> None:
        for request in self._requests:
            request.wait()

    def test(self) -> bool:
        return all([request.test() for request in self._requests])

    def __repr__(self) -> str:
        return repr(self._requests[-1])


class _Expected:
    """An object that is being received. Second messages under one tag are requested in the order of the objects."""

    def __init__(self, team: Objects, source: int, tag: int, line: collections.deque[_Expected]) -> None:
        self._team, self._source, self._tag, self._line = team, source, tag, line
        self._first = bytearray(_LENGTH + _FIRST)
        self._rest: bytearray | None = None
        self._message: Waited = team.irecv(self._first, source, tag)
        self._found: tuple[Any] | None = None

    def _go_on(self, wait: bool) -> bool:
        """Makes one step; returns whether the message that is waited for has come."""
        if wait:
            self._message.wait()
        elif not self._message.test():
            return False
        length = int.from_bytes(self._first[:_LENGTH], "little")
        if self._rest is None and length > _FIRST:
            self._rest = bytearray(length)
            self._message = self._team.irecv(self._rest, self._source, _rest(self._tag))
            return self._go_on(wait)
        view = memoryview(self._first)[_LENGTH : _LENGTH + length] if self._rest is None else self._rest
        self._found = (pickle.loads(view),)
        return True

    def _turn(self, wait: bool) -> bool:
        while self._found is None:
            if not self._line[0]._go_on(wait):
                return False
            self._line.popleft()
        return True

    def wait(self) -> Any:
        self._turn(True)
        assert self._found is not None
        return self._found[0]

    def test(self) -> bool:
        return self._turn(False)

    def __repr__(self) -> str:
        return repr(self._message)


class Objects(Started):
    """The calls for objects. What arrives is made by pickle, as every rank of a team is the same user's."""

    _expected: dict[tuple[int, int], collections.deque[_Expected]]

    def send_object(self, obj: object, to: int, tag: int = 0) -> None:
        """Sends an object to a rank, which receives it by `recv_object` under the same tag, a number below 2^31.

        Raises `BadArgument` for a rank that does not exist, what pickle raises, and what every call raises.

            >>> if team.rank == 0:
            ...     team.send_object({"step": 1}, to=1)
            ... else:
            ...     assert team.recv_object(source=0) == {"step": 1}
        """
        data, first = _bundle(obj)
        self.send(first, to, tag)
        if len(data) > _FIRST:
            self.send(data, to, _rest(tag))

    def recv_object(self, source: int, tag: int = 0) -> Any:
        """Receives an object that a rank sent by `send_object`. Raises what every call raises.

            >>> if team.rank == 1:
            ...     team.send_object("hello", to=0, tag=3)
            ... else:
            ...     team.recv_object(source=1, tag=3)
            'hello'
        """
        if self._line(source, tag):
            return self.irecv_object(source, tag).wait()
        first = bytearray(_LENGTH + _FIRST)
        self.recv(first, source, tag)
        length = int.from_bytes(first[:_LENGTH], "little")
        if length <= _FIRST:
            return pickle.loads(memoryview(first)[_LENGTH : _LENGTH + length])
        rest = bytearray(length)
        self.recv(rest, source, _rest(tag))
        return pickle.loads(rest)

    def isend_object(self, obj: object, to: int, tag: int = 0) -> Request[None]:
        """Starts `send_object`.

            >>> sent = team.isend_object(team.rank, to=1 - team.rank)
            >>> team.recv_object(source=1 - team.rank)
            1
            >>> sent.wait()
        """
        data, first = _bundle(obj)
        begun: list[Request[None]] = [self.isend(first, to, tag)]
        if len(data) > _FIRST:
            begun.append(self.isend(data, to, _rest(tag)))
        return Request(_All(begun))

    def irecv_object(self, source: int, tag: int = 0) -> Request[Any]:
        """Starts `recv_object`: the request returns the object.

            >>> word = team.irecv_object(source=1 - team.rank)
            >>> team.send_object("hello", to=1 - team.rank)
            >>> word.wait()
            'hello'
        """
        line = self._line(source, tag)
        line.append(_Expected(self, source, tag, line))
        return Request(line[-1])

    def _line(self, source: int, tag: int) -> collections.deque[_Expected]:
        if not hasattr(self, "_expected"):
            self._expected = {}
        return self._expected.setdefault((source, tag), collections.deque())

    def bcast_object(self, obj: T | None = None, root: int = 0) -> T:
        """The root's object, at every rank; what the others give is not used. Raises what pickle does, and what every call raises.

            >>> team.bcast_object({"rate": 0.1} if team.rank == 0 else None)
            {'rate': 0.1}
        """
        if self.rank == root:
            data, first = _bundle(obj)
        else:
            data, first = b"", bytearray(_LENGTH + _FIRST)
        self.bcast(first, root)
        length = int.from_bytes(first[:_LENGTH], "little")
        came = memoryview(first)[_LENGTH : _LENGTH + length]
        if length > _FIRST:
            rest = bytearray(data) if self.rank == root else bytearray(length)
            self.bcast(rest, root)
            came = memoryview(rest)
        if self.rank == root:
            return cast(T, obj)
        found: T = pickle.loads(came)
        return found

    def allgather_object(self, obj: T) -> list[T]:
        """The objects of all ranks, by rank, at every rank. Raises what pickle does, and what every call raises.

            >>> team.allgather_object("rank %d" % team.rank)
            ['rank 0', 'rank 1']
        """
        data, first = _bundle(obj)
        block = len(first)
        firsts = bytearray(block * self.size)
        self.allgather(first, firsts)
        found: list[T] = self._collect(data, firsts, block, None)
        return found

    def gather_object(self, obj: T, root: int = 0) -> list[T] | None:
        """The objects of all ranks, by rank, at the root; `None` elsewhere. Raises what `allgather_object` does.

            >>> team.gather_object(team.rank * 10, root=0)
            [0, 10]
        """
        data, first = _bundle(obj)
        block = len(first)
        # All have to know whether a second message follows.
        firsts = bytearray(block * self.size)
        self.allgather(first, firsts)
        found: list[T] | None = self._collect(data, firsts, block, root)
        return found

    def _collect(self, data: bytes, firsts: bytearray, block: int, root: int | None) -> Any:
        lengths = [
            int.from_bytes(firsts[i * block : i * block + _LENGTH], "little") for i in range(self.size)
        ]
        longest = max(lengths)
        view, stride, start = memoryview(firsts), block, _LENGTH
        if longest > _FIRST:
            stride, start = _padded(longest), 0
            mine = bytearray(stride)
            mine[: len(data)] = data
            here = root is None or root == self.rank
            everything = bytearray(stride * self.size) if here else None
            if root is None:
                self.allgather(mine, everything)
            else:
                self.gather(mine, root, everything)
            view = memoryview(everything or b"")
        if root is not None and root != self.rank:
            return None
        return [pickle.loads(view[i * stride + start : i * stride + start + n]) for i, n in enumerate(lengths)]

    def scatter_object(self, objects: Sequence[T] | None = None, root: int = 0) -> T:
        """One object for each rank, given by the root; what the others give is not used.

        Raises `BadArgument` at the root for another number of objects, what pickle does, and what every call raises.

            >>> team.scatter_object(["first", "second"] if team.rank == 0 else None)    # 'second' at rank 1
            'first'
        """
        if self.rank == root:
            if objects is None or len(objects) != self.size:
                found = "nothing" if objects is None else f"{len(objects)} objects"
                raise BadArgument(f"scatter_object: the root gave {found}; expected {self.size}, one for each rank")
            parts = [pickle.dumps(o, pickle.HIGHEST_PROTOCOL) for o in objects]
            stride = _padded(_LENGTH + max(map(len, parts)))
            head = bytearray(stride.to_bytes(_LENGTH, "little"))
            self.bcast(head, root)
            blocks = bytearray(stride * self.size)
            for i, part in enumerate(parts):
                at = i * stride
                blocks[at : at + _LENGTH] = len(part).to_bytes(_LENGTH, "little")
                blocks[at + _LENGTH : at + _LENGTH + len(part)] = part
            mine = bytearray(stride)
            self.scatter(blocks, root, mine)
            return objects[root]
        head = bytearray(_LENGTH)
        self.bcast(head, root)
        mine = bytearray(int.from_bytes(head, "little"))
        self.scatter(None, root, mine)
        length = int.from_bytes(mine[:_LENGTH], "little")
        own: T = pickle.loads(memoryview(mine)[_LENGTH : _LENGTH + length])
        return own

    def alltoall_object(self, objects: Sequence[T]) -> list[T]:
        """One object for each rank, given by every rank; returns those for this one, by rank.

        Raises `BadArgument` for another number of objects, what pickle does, and what every call raises.

            >>> team.alltoall_object([f"{team.rank} to 0", f"{team.rank} to 1"])
            ['0 to 0', '1 to 0']
        """
        if len(objects) != self.size:
            raise BadArgument(
                f"alltoall_object: {len(objects)} objects were given; expected {self.size}, one for each rank"
            )
        parts = [pickle.dumps(o, pickle.HIGHEST_PROTOCOL) for o in objects]
        longest = memoryview(bytearray((_LENGTH + max(map(len, parts))).to_bytes(_LENGTH, "little"))).cast("Q")
        self.allreduce(longest, "max", longest)
        stride = _padded(longest[0])
        given, taken = bytearray(stride * self.size), bytearray(stride * self.size)
        for i, part in enumerate(parts):
            at = i * stride
            given[at : at + _LENGTH] = len(part).to_bytes(_LENGTH, "little")
            given[at + _LENGTH : at + _LENGTH + len(part)] = part
        self.alltoall(given, taken)
        view = memoryview(taken)
        found: list[T] = []
        for i in range(self.size):
            at = i * stride
            length = int.from_bytes(view[at : at + _LENGTH], "little")
            found.append(pickle.loads(view[at + _LENGTH : at + _LENGTH + length]))
        return found

    def allreduce_object(self, obj: T, op: Callable[[T, T], T] | None = None) -> T:
        """All ranks' objects combined in rank order by a function of two, `a + b` if none is given. Raises what the function and
        `allgather_object` do.

            >>> team.allreduce_object([team.rank])
            [0, 1]
        """
        return functools.reduce(op or _add, self.allgather_object(obj))

    def reduce_object(self, obj: T, op: Callable[[T, T], T] | None = None, root: int = 0) -> T | None:
        """As `allreduce_object`, at the root; `None` elsewhere.

            >>> team.reduce_object({team.rank}, lambda a, b: a | b, root=0)
            {0, 1}
        """
        gathered = self.gather_object(obj, root)
        return None if gathered is None else functools.reduce(op or _add, gathered)

    def scan_object(self, obj: T, op: Callable[[T, T], T] | None = None) -> T:
        """The objects of the ranks up to this one combined in rank order, as by `allreduce_object`.

            >>> team.scan_object("ab"[team.rank])        # 'ab' at rank 1
            'a'
        """
        return functools.reduce(op or _add, self.allgather_object(obj)[: self.rank + 1])

    def exscan_object(self, obj: T, op: Callable[[T, T], T] | None = None) -> T | None:
        """The objects of the ranks before this one combined in rank order; `None` at rank 0.

            >>> team.exscan_object("a") is None          # 'a' at rank 1
            True
        """
        before = self.allgather_object(obj)[: self.rank]
        return functools.reduce(op or _add, before) if before else None


def _add(a: Any, b: Any) -> Any:
    return a + b
