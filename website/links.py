# SPDX-License-Identifier: Apache-2.0
"""Links between pages: where one leads in the repository, and in the site. Needs no package."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` applied to all of it that is no code."""
    out, end = [], 0
    for code in CODE.finditer(text):
        out += [change(text[end : code.start()]), code.group()]
        end = code.end()
    return "".join([*out, change(text[end:])])


def local(link: str) -> bool:
    return not link.startswith(("http://", "https://", "mailto:"))


def links(text: str) -> Iterator[str]:
    """The links of a page to files of the repository, and to its own anchors."""
    found: list[str] = []
    # A link's own words may be code, so that code is emptied and not cut out.
    plain = CODE.sub("", text)
    found += LINK.findall(plain)
    yield from (link for link in found if local(link))


def target(page: Path, link: str) -> Path:
    """The file or folder that a page's link leads to."""
    path = link.partition("#")[0]
    return (page.parent / path).resolve() if path else page


def place(file: Path) -> str:
    """Where a file of the repository is in the site's sources: docs/ at the top, all else in repo/."""
    if file.is_relative_to(DOCS):
        return file.relative_to(DOCS).as_posix()
    inside = file.relative_to(ROOT).as_posix()
    if file.is_dir():
        return f"repo/{inside}/index.md"
    return f"repo/{inside}" + (".md" if shown_as_code(file) else "")


def shown_as_code(file: Path) -> bool:
    """Whether a file gets a page of its own that shows its text."""
    return file.suffix in {".py", ".toml", ".yml", ".mlir"} or file.name in {"LICENSE", "Makefile"}


def moved(page: Path, text: str) -> str:
    """A page's text with its links as they are in the site."""
    here = os.path.dirname(place(page))

    def new(match: re.Match[str]) -> str:
        link = match.group(1)
        if not local(link) or link.startswith("#"):
            return link
        _, mark, anchor = link.partition("#")
        return os.path.relpath(place(target(page, link)), here or ".") + mark + anchor

    return outside_of_code(text, lambda part: LINK.sub(new, part))


def reached() -> list[Path]:
    """The files outside of docs/ that its pages lead to, those that these lead to included."""
    waiting = sorted(DOCS.rglob("*.md"))
    seen = set(waiting)
    while waiting:
        page = waiting.pop()
        for link in links(page.read_text()):
            found = target(page, link)
            if found.exists() and found not in seen:
                seen.add(found)
                if found.suffix == ".md":
                    waiting.append(found)
    return sorted(f for f in seen if not f.is_relative_to(DOCS))
