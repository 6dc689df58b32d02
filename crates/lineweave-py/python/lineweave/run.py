"""Starts a program once for each rank: `python -m lineweave.run -n 8 script.py ...`.

In it, `lineweave.team()` is the team of all. When a rank fails, the others are told; those that do not end are killed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time

from lineweave import _lineweave
from lineweave._errors import Error

_GRACE = 5.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lineweave.run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-n", "--ranks", type=int, required=True, metavar="RANKS", help="how many ranks to start")
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module's name")
    parser.add_argument("program", help="a Python script, or another program")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="its arguments")
    given = parser.parse_args(arguments)
    if given.module:
        command = [sys.executable, "-m", given.program, *given.rest]
    elif given.program.endswith(".py"):
        command = [sys.executable, given.program, *given.rest]
    else:
        command = [given.program, *given.rest]
    try:
        launch = _lineweave.Launch(given.ranks)
    except Error as error:
        print(f"lineweave.run: {error}", file=sys.stderr)
        return 2
    ranks: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(given.ranks):
            environment = {**os.environ, "LINEWEAVE_TEAM_FD": str(launch.fd), "LINEWEAVE_RANK": str(rank)}
            ranks.append(subprocess.Popen(command, env=environment, pass_fds=[launch.fd]))
        return _watch(ranks)
    except OSError as error:
        print(f"lineweave.run: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    except KeyboardInterrupt:
        # The terminal sent it to the ranks as well.
        return _end(ranks, 128 + signal.SIGINT)
    finally:
        for process in ranks:
            if process.poll() is None:
                process.kill()
                process.wait()


def _watch(ranks: list[subprocess.Popen[bytes]]) -> int:
    while True:
        codes = [process.poll() for process in ranks]
        failed = [(rank, code) for rank, code in enumerate(codes) if code]
        if failed:
            rank, code = failed[0]
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
            print(f"lineweave.run: rank {rank} {how}", file=sys.stderr)
            return _end(ranks, 128 - code if code < 0 else code)
        if all(code == 0 for code in codes):
            return 0
        time.sleep(0.01)


def _end(ranks: list[subprocess.Popen[bytes]], status: int) -> int:
    end = time.monotonic() + _GRACE
    while any(process.poll() is None for process in ranks) and time.monotonic() < end:
        time.sleep(0.01)
    return status


if __name__ == "__main__":
    sys.exit(main())
