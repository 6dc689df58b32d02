"""Starting ranks from Python, and collecting what they return."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import threading
import time
import traceback
from typing import Any, Callable, Sequence, TypeVar

from lineweave import _lineweave
from lineweave._errors import BadArgument, Error, RankFailed, RankLost
from lineweave._team import Team, fresh_name

T = TypeVar("T")

# Seconds that other ranks may take to notice that one failed, before they are stopped.
_GRACE = 5.0


def spawn(
    function: Callable[..., T],
    n: int,
    *,
    args: Sequence[Any] = (),
    method: str | None = None,
    timeout: float | None = None,
) -> list[T]:
    """Runs `function(team, *args)` on each of `n` ranks, and returns what each returned, by rank.

    - `function`: takes a `Team`. With another method than "fork" and "thread" it must be importable.
    - `method`: "fork", "spawn" or "forkserver" for processes (multiprocessing's default if not given), "thread" for threads of this process.
    - `timeout`: limits the whole, in seconds; ranks that still run then are killed.

    When a rank raises or dies, the others are told, and `RankFailed` names it. Raises `BadArgument` for a number or method that cannot be.

        >>> def work(team):
        ...     return team.allreduce(np.array([team.rank])).item()
        >>> lineweave.spawn(work, 3, method="thread")
        [3, 3, 3]
    """
    if not isinstance(n, int) or not 1 <= n <= _lineweave.MAX_RANKS:
        raise BadArgument(f"n is {n!r}; a team has 1 to {_lineweave.MAX_RANKS} ranks")
    if method == "thread":
        return _threads(function, n, args, timeout)
    methods = multiprocessing.get_all_start_methods()
    if method is not None and method not in methods:
        raise BadArgument(f"method is {method!r}; expected one of {', '.join(methods)} or thread")
    return _processes(function, n, args, multiprocessing.get_context(method), timeout)


def _end_with_starter() -> None:
    """Makes this process end when the one that called `spawn` is gone: its thread stays there until all ranks have ended."""
    _lineweave.end_with_parent()
    starter = multiprocessing.parent_process()
    if starter is not None and starter.pid != os.getppid():
        # The parent is a fork server, which ends only when its children do, or the starter is gone already.
        threading.Thread(target=_end_after, args=(starter,), name="lineweave: end with the starter", daemon=True).start()


def _end_after(starter: Any) -> None:
    starter.join()
    os.kill(os.getpid(), signal.SIGKILL)


def _rank(name: str, rank: int, n: int, function: Callable[..., Any], args: Sequence[Any], pipe: Any) -> None:
    team = None
    try:
        _end_with_starter()
        team = Team(_lineweave.meet(name, n, rank, 60.0))
        with team:
            result = function(team, *args)
            # Within: what cannot be pickled is this rank's failure, too.
            message = pickle.dumps(("result", result))
    except BaseException as error:
        consequence = isinstance(error, RankLost)
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        try:
            message = pickle.dumps(("error", consequence, text, error))
            pickle.loads(message)
        except Exception:
            message = pickle.dumps(("error", consequence, text, None))
    try:
        pipe.send_bytes(message)
        pipe.close()
    except OSError:
        # The parent is gone.
        pass


def _processes(function: Any, n: int, args: Sequence[Any], context: Any, timeout: float | None) -> list[Any]:
    name = fresh_name()
    processes, pipes = [], []
    outcome: dict[int, tuple[Any, ...]] = {}
    try:
        for rank in range(n):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(
                target=_rank, args=(name, rank, n, function, args, theirs), name=f"lineweave rank {rank}"
            )
            process.start()
            theirs.close()
            processes.append(process)
            pipes.append(ours)
        _collect(processes, pipes, outcome, timeout)
    finally:
        for process in processes:
            if process.is_alive() and len(outcome) < n:
                process.kill()
        for process, pipe in zip(processes, pipes):
            process.join()
            pipe.close()
    return _judge(outcome, n)


def _collect(processes: Any, pipes: Any, outcome: dict[int, tuple[Any, ...]], timeout: float | None) -> None:
    end = None if timeout is None else time.monotonic() + timeout
    left = {pipe: rank for rank, pipe in enumerate(pipes)}
    while left:
        wait = None if end is None else max(0.0, end - time.monotonic())
        ready = multiprocessing.connection.wait(list(left), wait)
        if not ready:
            # Time is over: of the ranks' patience with a failed one, or of the whole.
            for rank in left.values():
                outcome.setdefault(rank, ("killed",))
            for process in processes:
                process.kill()
            return
        pipe: Any
        for pipe in ready:
            rank = left.pop(pipe)
            try:
                outcome[rank] = pickle.loads(pipe.recv_bytes())
            except EOFError:
                processes[rank].join()
                outcome[rank] = ("died", processes[rank].exitcode)
            if outcome[rank][0] != "result":
                patience = time.monotonic() + _GRACE
                end = patience if end is None else min(end, patience)


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with status {code}"


def _judge(outcome: dict[int, tuple[Any, ...]], n: int) -> list[Any]:
    reports: dict[int, str] = {}
    causes: list[tuple[bool, int, BaseException | None]] = []
    for rank in range(n):
        what, *details = outcome.get(rank, ("killed",))
        if what == "error":
            consequence, text, error = details
            reports[rank] = text
            causes.append((consequence, rank, error))
        elif what == "died":
            reports[rank] = _ended(details[0])
            causes.append((False, rank, None))
        elif what == "killed":
            reports[rank] = "still ran when time was over, and was killed"
            causes.append((True, rank, None))
    if not causes:
        return [outcome[rank][1] for rank in range(n)]
    # The first that failed by itself, not because of another.
    _, rank, error = min(causes, key=lambda c: (c[0], c[1]))
    said = reports[rank].rstrip()
    text = f"rank {rank} of {n} raised:\n{said}" if "\n" in said else f"rank {rank} of {n} {said}"
    raise RankFailed(text, rank, reports) from error


def _threads(function: Any, n: int, args: Sequence[Any], timeout: float | None) -> list[Any]:
    members = _lineweave.Threads(n)
    outcome: dict[int, tuple[Any, ...]] = {}

    def run(rank: int) -> None:
        try:
            with Team(members.join(rank)) as team:
                outcome[rank] = ("result", function(team, *args))
        except BaseException as error:
            text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
            outcome[rank] = ("error", isinstance(error, RankLost), text, error)

    threads = [
        threading.Thread(target=run, args=(rank,), name=f"lineweave rank {rank}", daemon=True) for rank in range(n)
    ]
    for thread in threads:
        thread.start()
    end = None if timeout is None else time.monotonic() + timeout
    for rank, thread in enumerate(threads):
        thread.join(None if end is None else max(0.0, end - time.monotonic()))
        if thread.is_alive():
            raise Error(f"rank {rank} still ran after {timeout} s; a thread cannot be killed and goes on")
    return _judge(outcome, n)
