"""docs/reference/json.md below its introduction, from the Rust types that are printed as JSON: their fields, and the comments on these.

A type whose comment says "Printed as `KIND` by `COMMAND`" has a section. serde's attributes count; what is formatted by rustfmt is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PAGE = Path("docs/reference/json.md")
BEGIN, END = "<!-- From here, made of the types by `scripts/docs --write`. -->\n", "\n<!-- Until here. -->\n"
CRATES = ("lineweave-cli", "lineweave-core", "lineweave", "lineweave-tune", "lineweave-lab")
# A comment, attributes, then a type, a field or a variant.
NOTES = r"(?P<notes>(?:[ \t]*(?:///.*|#\[.*\])\n)*)"
TYPE = re.compile(NOTES + r"(?:pub(?:\([^)]*\))? )?(?P<what>struct|enum) (?P<name>\w+)(?:<[^>{(]*>)? ?(?P<body>\{\n(?:.*\n)*?\}|\(.*\)|)", re.M)
FIELD = re.compile(NOTES + r"    (?:pub(?:\([^)]*\))? )?(?P<name>\w+)(?P<is>: .*|[ ({].*|),?$", re.M)
NUMBERS = {"bool": "true or false", "f64": "number", "f32": "number"} | {f"{u}{n}": "whole number" for u in "iu" for n in (8, 16, 32, 64, "size")}
TEXTS = dict.fromkeys(("String", "str", "char", "Path", "PathBuf", "Collective", "Load"), "text")


def comment(notes: str) -> str:
    return " ".join(line.strip() for line in re.findall(r"^ *///(.*)", notes, re.M)).strip()


def told(notes: str) -> dict[str, str]:
    """What serde is told of a type, a field or a variant."""
    parts = [part.partition(" = ") for told in re.findall(r"#\[serde\((.*)\)\]", notes) for part in told.split(", ")]
    return {word: value.strip('"') for word, _, value in parts}


@dataclass
class Printed:
    """A struct or an enumeration."""

    file: Path
    name: str
    notes: str
    what: str
    body: str

    @property
    def fields(self) -> list[re.Match[str]]:
        """Its fields or variants."""
        return list(FIELD.finditer(self.body.partition("\n")[2])) if self.body.startswith("{") else []

    @property
    def kinds(self) -> str:
        """The kinds as which it is printed, in words, if any."""
        found = re.search(r"Printed as (.*?) by ", comment(self.notes))
        return found[1] if found else ""

    def values(self) -> list[tuple[str, str]]:
        """The values of an enumeration without contents, each with its comment."""
        case = told(self.notes).get("rename_all")
        by = case and {"kebab-case": "-", "snake_case": "_", "lowercase": ""}[case]
        names = [v["name"] if by is None else re.sub(r"(?<!^)(?=[A-Z])", by, v["name"]).lower() for v in self.fields]
        return [(told(v["notes"]).get("rename", name), comment(v["notes"])) for v, name in zip(self.fields, names)]


@cache
def types() -> list[Printed]:
    """All types that serde writes, and those that a comment says to be printed."""
    return [
        Printed(path.relative_to("crates"), m["name"], m["notes"], m["what"], m["body"])
        for crate in CRATES
        for path in sorted(Path("crates", crate, "src").rglob("*.rs"))
        for m in TYPE.finditer(path.read_text())
        if "Serialize" in m["notes"] or "Printed as" in m["notes"]
    ]


def named(path: str, of: Printed) -> Printed:
    """The type that a path names in the file of another: the one there, else in the crate that the file uses it from, else in its own, else the only one."""
    name = path.rpartition("::")[2]
    used = re.search(rf"^use (lineweave\w*)::(?:[^;]*\W)?{name}\b", (Path("crates") / of.file).read_text(), re.M)
    those = [p for p in types() if p.name == name]
    for fits in (of.file, used[1].replace("_", "-") if used else of.file.parts[0], None):
        found = [p for p in those if fits in (p.file, p.file.parts[0], None)]
        if len(found) == 1:
            return found[0]
    raise SystemExit(f"docs: {of.file}: {len(those)} types are named {name}")


def several(words: str) -> str:
    return re.sub(r"^(whole number|number|object|list)\b", r"\1s", words)


def words(of: str, where: Printed) -> tuple[str, Printed | None]:
    """The type in words, and the one whose keys or values it has."""
    of = re.sub(r"^&(?:'\w+ )?", "", of)
    if found := re.fullmatch(r"Option<(.*)>", of):
        is_, inner = words(found[1], where)
        return f"{is_} or `null`", inner
    if found := re.fullmatch(r"Vec<(.*)>|\[(.*?)(?:; .*)?\]", of):
        is_, inner = words(found[1] or found[2], where)
        return f"list of {several(is_)}", inner
    if found := re.fullmatch(r"BTreeMap<[^,]*, (.*)>", of):
        return f"object of {several(words(found[1], where)[0])}", None
    if of.startswith("("):
        return "list", None
    name = re.sub(r"<.*>$", "", of)
    if known := (NUMBERS | TEXTS).get(name):
        return known, None
    inner = named(name, where)
    if inner.body.startswith("("):
        return words(inner.body.strip("()").removeprefix("pub "), inner)
    if inner.what == "enum":
        plain = all(not v["is"] for v in inner.fields)
        return ("text", inner) if plain else ("text or object", None)
    return "object", inner


def rows(of: Printed, before: str, seen: set[str]) -> str:
    """The rows of a type's keys, and of the keys of objects in it."""
    text = ""
    for field in of.fields:
        tells = told(field["notes"])
        kind, inner = words(field["is"].removeprefix(": ").rstrip(","), of)
        if "skip" in tells:
            continue
        if "flatten" in tells and inner:
            text += rows(inner, before, seen)
            continue
        key = before + tells.get("rename", field["name"])
        about = comment(field["notes"]) or (comment(inner.notes) if inner and not inner.kinds else "")
        if "skip_serializing_if" in tells:
            kind = kind.removesuffix(" or `null`") + ", or left out"
        if inner and inner.kinds:
            kind = kind.replace("object", f"[object]({link(inner.kinds)})")
        elif inner and inner.what == "enum" and inner.name not in seen:
            about += " " + " ".join(f"`{value}`: {says}" if says else f"`{value}`" for value, says in inner.values())
        about = re.sub(r"\[(`.*?`)\]", r"\1", about.replace("|", r"\|").replace("`None`", "`null`")).strip()
        text += f"| `{key}` | {kind} |{about and ' ' + about} |\n"
        if inner and inner.what == "struct" and not inner.kinds and inner.name not in seen:
            text += rows(inner, key + ".", seen)
        if inner:
            seen.add(inner.name)
    return text


def link(title: str) -> str:
    return "#" + re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def page() -> str:
    """The page as it should be."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for of in types():
        if of.kinds:
            text = comment(of.notes).replace(f"Printed as {of.kinds} by", "Printed by") + "\n"
            command = re.search(r"Printed by (`.*?`)", text)
            if "Serialize" in of.notes:
                text += "\n| key | type | |\n|---|---|---|\n" + rows(of, "", set())
            sections.setdefault(of.kinds, []).append((command[1] if command else "", text))
    order = sorted(sections.items(), key=lambda section: min(section[1])[0])
    made = [f"\n## {title}\n\n" + "\n".join(text for _, text in parts) for title, parts in order]
    head, _, rest = PAGE.read_text().partition(BEGIN)
    return head + BEGIN + "".join(made) + END + rest.partition(END)[2]


def wrong() -> list[str]:
    """What differs between the page, the types and the calls that print them."""
    say = [] if page() == PAGE.read_text() else [f"{PAGE} is not what the types say; `scripts/docs --write` writes it"]
    said = {kind for of in types() for kind in re.findall(r"`(.*?)`", of.kinds)}
    calls = re.compile(r"(?:object\(\s*|line\(&mut session.out, |json: )\"([a-z][a-z-]+)\"")
    called = {kind for path in Path("crates/lineweave-cli/src").rglob("*.rs") for kind in calls.findall(path.read_text())}
    return say + [f"crates: `{kind}` is printed, or said by a comment to be, but not both" for kind in sorted(said ^ called)]
