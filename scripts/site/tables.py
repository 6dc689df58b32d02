"""Tables of figures, made of the records in bench/record. Each function takes the words behind `generated:` and returns Markdown."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Callable, Iterable, Sequence

Row = Sequence[str]
MPIS = {"openmpi": "Open MPI", "mpich": "MPICH", "impi-rt": "Intel MPI", "intel": "Intel MPI"}
COLLECTIVES = ("barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall")


def table(head: Row, rows: Iterable[Row]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def three(number: float) -> str:
    """A number with three digits that count."""
    text = f"{number:.3g}"
    return f"{float(text):,.0f}" if "e" in text else text


def time(ns: float | None) -> str:
    """A time in the unit that suits it; empty for one that is not known."""
    if ns is None:
        return ""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{three(ns / size)} {unit}"
    return f"{three(ns)} ns"


def size(length: int) -> str:
    """A length as commands print it."""
    for unit, by in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if length >= by and length % by == 0:
            return f"{length // by} {unit}"
    return f"{length} B"


def read(words: Sequence[str]) -> list[tuple[Path, dict[str, Any], list[dict[str, Any]]]]:
    """The records that files and folders of them hold, oldest first: path, head, and all other objects."""
    files = [f for word in words for f in (sorted(Path(word).glob("*.jsonl")) if Path(word).is_dir() else [Path(word)])]
    records = []
    for file in files:
        objects = [json.loads(line) for line in file.read_text().splitlines()]
        head = next(o for o in objects if o["kind"] == "record")
        records.append((file, head, [o for o in objects if o is not head]))
    return records


def sources(records: Iterable[tuple[Path, dict[str, Any], Any]]) -> str:
    """Returns the source of the figures of a table."""
    links = [f"[{head['measured_at'][:10]}, commit {head['commit'].rstrip('+')[:8]}](/{file})" for file, head, _ in records]
    return "Records: " + ", ".join(links) + ".\n\n"


def apps(words: Sequence[str]) -> str:
    """Returns the rows of whole programs; of rows that were measured more than once, the latest."""
    records, latest = read(words), {}
    for _, _, objects in records:
        for o in objects:
            if o["kind"] == "app":
                latest[o["part"], o["program"], o["of"], o["workers"]] = o
    rows = []
    for (_, program, of, workers), o in sorted(latest.items(), key=lambda item: (item[0][0] == "mpi", item[0])):
        for name, title in MPIS.items():
            program = program.replace(name, title)
        low, high = o["ratio_interval"]
        rows.append((f"{program}: {o['runs']}", str(workers), of, time(o["without_median_ns"]), time(o["with_median_ns"]), f"{o['ratio']:.2f} ({low:.2f} to {high:.2f})"))
    return sources(records) + table(("program", "ranks or threads", "what is timed", "without", "with lineweave", "with over without"), rows)


def mpi(words: Sequence[str]) -> str:
    """Collectives under MPIs: a table for each number of ranks and kind of buffers."""
    records, cells = read(words), {}
    for _, _, objects in records:
        for o in objects:
            if o["kind"] == "mpi-ratio":
                cells.setdefault((o["ranks"], o["buffers"]), {}).setdefault((o["collective"], o["bytes"]), []).append(o["to_best"])
    titles = {"reuse": "the same buffers", "fresh": "fresh buffers", "worked": "between other work"}
    text = sources(records)
    for (ranks, buffers), of in sorted(cells.items(), key=lambda item: (item[0][0], list(titles).index(item[0][1]))):
        sizes = sorted({length for _, length in of})
        rows = []
        for collective in [c for c in COLLECTIVES if any(c == name for name, _ in of)]:
            found = [of.get((collective, length)) for length in sizes]
            rows.append([collective] + [f"{min(f):.2f}-{max(f):.2f}" if f else "" for f in found])
        text += f"{ranks} ranks, {titles[buffers]}:\n\n" + table(["", *map(size, sizes)], rows) + "\n"
    return text


def medians(records: Iterable[tuple[Path, Any, list[dict[str, Any]]]]) -> dict[Any, float]:
    """Medians of a Python bench by ranks, collective, length, element and subject."""
    return {
        (o["ranks"], o["collective"], o["bytes"], o.get("element", ""), o["subject"]): o["median_ns"]
        for _, _, objects in records
        for o in objects
        if o["kind"] == "python"
    }


def python(words: Sequence[str]) -> str:
    """Calls from Python beside mpi4py and gloo."""
    records = read(words)
    found = medians(records)
    rows = []
    for ranks, collective, length in sorted({key[:3] for key in found}, key=lambda k: (k[0], k[1] != "barrier", k[1], k[2])):
        of = {subject: found.get((ranks, collective, length, "", subject)) for *_, subject in found}
        hosts = [ns for subject, ns in of.items() if subject.startswith("numpy/mpi4py") and ns is not None]
        name = "DistributedDataParallel, a step" if collective == "ddp-step" else collective
        columns = ("numpy/lineweave", "numpy/lineweave-shared"), ("torch/lineweave", "torch/alone", "torch/gloo")
        cells = [time(of.get(c)) for c in columns[0]] + [time(min(hosts, default=None))] + [time(of.get(c)) for c in columns[1]]
        rows.append([name, size(length) if length else "", str(ranks), *cells])
    head = ("call", "bytes", "ranks", "numpy on lineweave", "in `team.empty`", "mpi4py, best MPI", "torch on lineweave", "torch alone", "gloo")
    return sources(records) + table(head, rows)


def inference(words: Sequence[str]) -> str:
    """Drop-in operators for inference beside those whose names they have."""
    records = read(words)
    found = medians(records)
    others = [s for s in ("deepspeed", "vllm") if any(key[4] == f"inference/{s}" for key in found)]
    rows = []
    for ranks, _, length, element in sorted({key[:4] for key in found}, key=lambda k: (k[0], k[3], k[2])):
        ours, *theirs, gloo = (found.get((ranks, "allreduce", length, element, f"inference/{s}")) for s in ("lineweave", *others, "gloo"))
        best = min((t for t in theirs if t is not None), default=None)
        ratio = f"{ours / best:.2f}" if ours and best and ours / best >= 0.05 else ""
        rows.append([f"{size(length)} {element}", str(ranks), time(ours), *map(time, theirs), ratio, time(gloo)])
    names = {"deepspeed": "DeepSpeed", "vllm": "vLLM"}
    return sources(records) + table(["sum of", "ranks", "lineweave", *(names[s] for s in others), "lineweave over the fastest", "gloo"], rows)


def bench(words: Sequence[str]) -> str:
    """Collectives beside other barriers and hand-written loops: of so many ranks, or of all (0)."""
    ranks, records = int(words[0]), read(words[1:])
    found: dict[Any, dict[str, dict[str, Any]]] = {}
    for _, _, objects in records:
        for o in objects:
            if o["kind"] == "bench" and ranks in (0, o["ranks"]) and o["bytes"] in (0, 8, 1 << 20):
                found.setdefault((o["collective"], o["bytes"], o["ranks"], o["team"], o["buffers"]), {})[o["subject"]] = o
    order = ("barrier", "allreduce", "bcast")
    rows = []
    for key in sorted((k for k in found if k[0] in order), key=lambda k: (order.index(k[0]), *k[1:])):
        ours = found[key].get("lineweave")
        if ours is None:
            continue
        beside = [f"{name} {time(o['median_ns'])}" for name, o in sorted(found[key].items()) if not name.startswith("lineweave")]
        ratio = ours.get("ratio_to_floor")
        shown = time(ours["median_ns"]) + (f" ({ratio:.2f})" if ratio is not None else "")
        collective, length, n, team, buffers = key
        rows.append([collective, size(length) if length else "", str(n), team, buffers, shown, ", ".join(beside)])
    return sources(records) + table(("", "bytes", "ranks", "team", "buffers", "lineweave", "beside it in the same run"), rows)


def trees(words: Sequence[str], command: Callable[..., str]) -> str:
    """Generated trees beside the usual ones."""
    text = ""
    for collective in words:
        said = command("lab", "optimise", collective, "--compare")
        text += f"### {collective.capitalize()}\n\n```text\n{said.rstrip()}\n```\n\n"
    return text


def runs(path: Path) -> Callable[..., str]:
    """A function that runs the command and returns what it prints."""

    def command(*arguments: str) -> str:
        done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"scripts/docs: lineweave {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    return command
