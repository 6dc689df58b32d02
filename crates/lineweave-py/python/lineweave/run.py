"""Starts a program once for each rank: `python -m lineweave.run -n 8 script.py ...`.

In it, `lineweave.team()` is the team of all. It is `lineweave run -n 8` with this interpreter: signals are passed on, what ranks print
comes in whole lines, and when a rank fails, the others end soon and the status is its own.
"""

from __future__ import annotations

import argparse
import sys

from lineweave import _lineweave
from lineweave._errors import Error


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lineweave.run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-n", "--ranks", type=int, required=True, metavar="RANKS", help="how many ranks to start")
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module's name")
    parser.add_argument("program", help="a Python script, or another program")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="its arguments")
    given = parser.parse_args(arguments)
    if given.module:
        program, rest = sys.executable, ["-m", given.program, *given.rest]
    elif given.program.endswith(".py"):
        program, rest = sys.executable, [given.program, *given.rest]
    else:
        program, rest = given.program, given.rest
    try:
        status, failure = _lineweave.launch(given.ranks, program, rest)
    except (Error, OverflowError) as error:
        print(f"lineweave.run: {error}", file=sys.stderr)
        return 2
    if failure is not None:
        print(f"lineweave.run: {failure}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
