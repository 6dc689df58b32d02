"""Checks a timeline: timeline.py FILE RANKS CALLS LATE [MOST]. Each rank has so many blocking calls of the program at least, and a third as many
that it started, events are as Chrome's
format has them, spans of a rank do not overlap, and in most barriers others waited for rank LATE; with MOST, no rank has more calls."""

import collections
import json
import sys

path, ranks, calls, late = sys.argv[1], *map(int, sys.argv[2:5])
most = int(sys.argv[5]) if len(sys.argv) > 5 else None
with open(path, encoding="utf-8") as file:
    timeline = json.load(file)
assert timeline["otherData"]["ranks"] == ranks, timeline["otherData"]
spans, started = collections.defaultdict(list), collections.Counter()
barriers, kept = 0, 0
for event in timeline["traceEvents"]:
    assert event["ph"] in ("M", "X", "b", "e"), event
    assert isinstance(event["pid"], int) and isinstance(event["tid"], int), event
    if event["ph"] == "M":
        continue
    assert event["ts"] >= 0 and event["cat"] in ("lineweave", "host", "wait"), event
    if event["ph"] == "b":
        started[event["tid"]] += 1
    if event["ph"] != "X":
        continue
    assert event["dur"] >= 0, event
    spans[event["tid"]].append(event)
    if event["cat"] == "wait":
        continue
    args = event["args"]
    assert args["waited_us"] <= event["dur"] + 0.001, event
    assert args["carried_out_by"] == ("lineweave" if event["cat"] == "lineweave" else timeline["otherData"]["mpi"]), event
    if event["name"] == "barrier" and event["tid"] != late:
        barriers += 1
        kept += args.get("waited_for_rank") == late
for rank in range(ranks):
    own = [event for event in spans[rank] if event["cat"] != "wait"]
    assert len(own) >= calls, (rank, len(own), calls)
    assert most is not None or started[rank] >= calls // 3, (rank, started[rank], calls)
    assert most is None or len(own) + started[rank] <= most, (rank, len(own), started[rank], most)
    end = 0
    for event in own:
        assert event["ts"] >= end, (event, end)
        end = event["ts"] + event["dur"] - 0.001
assert barriers > 0 and kept > barriers / 2, (kept, barriers)
