"""Links: those of the sources are led to where the site has them, and those of the built site are followed."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

REPOSITORY = "https://github.com/lineweave/lineweave/blob/main"
LINK = re.compile(r"(!?\[[^\]\n]*\])\(([^)\s]+)\)")
# The anchor that the repository's own viewer makes of a heading.
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.M)


def anchors(markdown: str) -> set[str]:
    """The names of a page's headings."""
    text = re.sub(r"^```.*?^```", "", markdown, flags=re.S | re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", h)).strip().lower().replace(" ", "-") for h in HEADING.findall(text)}


def led(text: str, page: Path, docs: Path, root: Path, moved: dict[Path, Path], wrong: list[str]) -> str:
    """The page's text with links as the site needs them: to a file of the repository that the site has (`moved` says where), to a page of its own, or to
    the repository. What leads nowhere is said in `wrong`."""
    here = moved.get(page, page)

    def lead(match: re.Match[str]) -> str:
        label, target = match.groups()
        if target.startswith(("http:", "https:", "mailto:")):
            return match[0]
        path, _, anchor = target.partition("#")
        # Made pages name files of the repository from its root.
        file = root / path.lstrip("/") if path.startswith("/") else page.parent / path if path else page
        file = file.resolve()
        if not file.exists():
            wrong.append(f"{page.relative_to(root)}: {target}: there is no such file")
            return match[0]
        if anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            wrong.append(f"{page.relative_to(root)}: {target}: there is no such heading")
        there = moved.get(file, file)
        if there.is_relative_to(docs):
            place = os.path.relpath(there, here.parent) if path else ""
            return f"{label}({place}{'#' + anchor if anchor else ''})"
        return f"{label}({REPOSITORY}/{file.relative_to(root)}{'#' + anchor if anchor else ''})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.S | re.M)
    return "".join(part if part.startswith("```") else LINK.sub(lead, part) for part in parts)


class Page(HTMLParser):
    """A page's links, and the places in it that links may name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if not value:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.names.add(value)
            elif name in ("href", "src"):
                self.links.add(value)


def follow(site: Path) -> list[str]:
    """Returns the faults of the links of a built site: files and anchors that do not exist."""
    wrong, pages = [], {}

    def page(file: Path) -> Page:
        if file not in pages:
            pages[file] = Page(file.read_text())
        return pages[file]

    # A server shows 404.html at any address, so its links begin at the root.
    ours = [f for f in sorted(site.rglob("*.html")) if "rustdoc" not in f.relative_to(site).parts and f.name != "404.html"]
    for file in ours:
        for link in sorted(page(file).links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:  # Elsewhere: not looked at.
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                wrong.append(f"{file.relative_to(site)}: {link}: there is no such file")
            elif parts.fragment and target.suffix == ".html" and "rustdoc" not in target.parts and unquote(parts.fragment) not in page(target).names:
                wrong.append(f"{file.relative_to(site)}: {link}: there is no such place")
    return wrong
