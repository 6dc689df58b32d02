"""Reference pages that code knows better than a person: from the command's JSON and help, the C header, and the Python sources."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any, Callable, Iterator

from tables import table

Command = Callable[..., str]
PYTHON = Path("crates/lineweave-py/python/lineweave")


def objects(command: Command, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in command(*arguments, "--json").splitlines()]


def settings(command: Command) -> str:
    """Every environment variable."""
    info = objects(command, "info")[0]
    rows = [(f"`{s['name']}`", s["values"], s["value"] if s["origin"] == "default" else "", s["about"]) for s in info["settings"]]
    return table(("variable", "takes", "default", "what it does"), rows)


def subcommands(command: Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of all commands, each as a path."""
    said = command(*path, "--help")
    # Under `Commands:` or a task's heading: two spaces, a name, what it is.
    for block in re.findall(r"^(?!Options|Arguments|Usage|Examples)[A-Z][A-Za-z ]*:\n((?:  .*\n)+)", said, re.M):
        for name in re.findall(r"^  ([a-z][a-z-]*) {2,}\S", block, re.M):
            if name != "help":
                yield (*path, name)
                yield from subcommands(command, (*path, name))


def commands(command: Command) -> str:
    """The help of every command."""
    text = f"```text\n{command('--help').rstrip()}\n```\n\n"
    for path in subcommands(command):
        text += f"## {' '.join(path)}\n\n```text\n{command(*path, '--help').rstrip()}\n```\n\n"
    return text


def algorithms(command: Command) -> str:
    """Every algorithm, by collective."""
    found: dict[str, list[dict[str, Any]]] = {}
    for o in objects(command, "list"):
        found.setdefault(o["collective"], []).append(o)
    text = ""
    for collective, rows in found.items():
        cells = [
            (f"`{o['name']}`", o["about"], "<br>".join(f"`{p['name']}={p['default']}` {p['about']}" for p in o["parameters"]), o["source"])
            for o in rows
        ]
        text += f"## {collective}\n\n" + table(("name", "what it is", "parameters, defaults", "from"), cells) + "\n"
    return text


def machines(command: Command) -> str:
    """Every described machine."""
    rows = [
        (f"`{o['name']}`", o["title"], str(o["cpus"] or ""), o["topology"] or "", o["matrix"] or "")
        for o in objects(command, "list", "--machines")
    ]
    return table(("name", "machine", "CPUs", "topology", "who timed every pair"), rows)


def c(_command: Command) -> str:
    """Every function of the header with its comment."""
    header = Path("crates/lineweave-c/include/lineweave.h").read_text()
    text = ""
    for comment, signature in re.findall(r"/\*\n((?: \*.*\n)+?) \*/\n((?:(?!#)[a-z_][^;{}/]*?)\b(?:lw_\w+)\([^;{}]*?\);)", header):
        name = re.search(r"\b(lw_\w+)\(", signature)
        body = re.sub(r"^ \* ?", "", comment, flags=re.M).strip()
        text += f"### {name[1] if name else ''}\n\n```c\n{signature}\n```\n\n{paragraphs(body)}\n\n"
    return text


def paragraphs(body: str) -> str:
    """A comment's paragraphs; those that are indented are code."""
    parts = []
    for part in re.split(r"\n\n+", body):
        lines = part.splitlines()
        prose = [line for line in lines if not line.startswith("    ")]
        code = [line[4:] for line in lines if line.startswith("    ")]
        if prose:
            parts.append(" ".join(prose).replace("<", "&lt;").replace("*", "\\*"))
        if code:
            parts.append("```c\n" + "\n".join(code) + "\n```")
    return "\n\n".join(parts)


def extension() -> dict[str, str]:
    """Returns the first paragraph of the docs of each method of the extension."""
    said: dict[str, str] = {}
    for source in sorted(Path("crates/lineweave-py/src").glob("**/*.rs")):
        for comment, name in re.findall(r"((?:^    ///.*\n)+)(?:^    #\[.*\n)*^    fn (\w+)", source.read_text(), re.M):
            words = re.sub(r"^    /// ?", "", comment, flags=re.M)
            said.setdefault(name, " ".join(words.split("\n\n")[0].split()))
    return said


def functions(body: list[ast.stmt], own: str, elsewhere: dict[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """Public functions: the call, and the first paragraph of what is said of it."""
    seen = set()
    for node in body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or node.name in seen:
            continue
        said = ast.get_docstring(node) or (elsewhere or {}).get(node.name)
        if said is None:  # One of several signatures; the last has the words.
            continue
        seen.add(node.name)
        names = [a.arg for a in node.args.posonlyargs + node.args.args if a.arg != "self"]
        defaults = [ast.unparse(d) for d in node.args.defaults]
        shown = [*names[: len(names) - len(defaults)], *(f"{n}={d}" for n, d in zip(names[len(names) - len(defaults) :], defaults))]
        shown += [f"{a.arg}={ast.unparse(d)}" if d else a.arg for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults)]
        is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)
        yield f"`{own}{node.name}" + ("`" if is_property else f"({', '.join(shown)})`"), " ".join(re.split(r"\n\s*\n", said)[0].split())


def python(_command: Command) -> str:
    """Every public call of the package."""
    parsed = {name: ast.parse((PYTHON / f"{name}.py").read_text()) for name in ("__init__", "_spawn", "_requests", "_team", "_objects", "_started", "_mpi", "_torch_inference")}

    def class_of(module: str, name: str) -> list[ast.stmt]:
        return next(n.body for n in parsed[module].body if isinstance(n, ast.ClassDef) and n.name == name)

    stub = ast.parse((PYTHON / "_lineweave.pyi").read_text())
    collectives = next(n.body for n in stub.body if isinstance(n, ast.ClassDef) and n.name == "Communicator")

    groups = (
        ("Of the package", [*functions(parsed["__init__"].body, "lineweave."), *functions(parsed["_spawn"].body, "lineweave."), *functions(parsed["_requests"].body, "lineweave.")]),
        ("Of a team", [*functions(class_of("_team", "Team"), "team."), *functions(collectives, "team.", extension()), *functions(class_of("_started", "Started"), "team."), *functions(parsed["_started"].body, "team.")]),
        ("Of a team, for objects", list(functions(class_of("_objects", "Objects"), "team."))),
        ("Of a request", list(functions(class_of("_requests", "Request"), "request."))),
        ("Of `lineweave.torch`, for inference", list(functions(parsed["_torch_inference"].body, "lineweave.torch."))),
    )
    return "".join(f"### {title}\n\n" + table(("call", "what it does"), sorted(set(rows))) + "\n" for title, rows in groups if rows)


def rust(_command: Command) -> str:
    """Links to the documentation of the crates, where it was built."""
    crates = [p.name for p in sorted(Path("target/doc").glob("lineweave*")) if (p / "index.html").exists()]
    if not crates:
        return "The documentation of the crates was not built with this site: `make doc`.\n"
    return "Documentation of the crates: " + ", ".join(f'<a href="../rustdoc/{name}/index.html">{name}</a>' for name in crates) + ".\n"
