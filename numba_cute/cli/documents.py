# SPDX-License-Identifier: Apache-2.0
"""`docs`: the reference of a public name, or a page of the documentation."""

from __future__ import annotations

import argparse
import inspect
import re
import webbrowser
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from ..seam import CuteError
from ..seam.ground.packages import site

HELP = "print the reference of a name, or a page of the documentation"
EXAMPLE = """\
examples:
  python -m numba_cute docs make_tiled_copy_tv      a public name, of any module
  python -m numba_cute docs pipeline.PipelineTmaAsync
  python -m numba_cute docs layouts                 a page
  python -m numba_cute docs                         the pages that there are
"""
PAGES = Path(__file__).resolve().parents[2] / "docs"
"""The folder of a checkout's pages; an installed package has their addresses alone."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="a public name, or a page")
    parser.add_argument("--open", action="store_true", help="open it in a browser")


def run(given: argparse.Namespace) -> int:
    """Run it; gives the exit code."""
    if given.name is None:
        print("\n".join(_listing()))
        return 0
    page = _page(given.name)
    found = [] if page is not None else list(named(given.name))
    if page is None and not found:
        raise CuteError(f"docs {given.name}: there is no such name or page{_near(given.name)}")
    if given.open:
        webbrowser.open(address(given.name if page is not None else found[0][0]))
        return 0
    print(page if page is not None else "\n\n".join(_reference(name, value) for name, value in found))
    return 0


def address(name: str) -> str:
    """Return the address of a page, or of what a search for a name finds. CuteError: nobody knows it."""
    base, file = site(), PAGES / f"{name}.md"
    if base is not None:
        return f"{base}/{name}/" if "." not in name else f"{base}/?q={name.rpartition('.')[2]}"
    if file.is_file():
        return file.as_uri()
    raise CuteError(f"docs {name}: the package that is installed names no address; without --open it is printed")


def _listing() -> Iterator[str]:
    for file in sorted(PAGES.glob("*.md")):
        yield f"{file.stem:<16} {_title(file)}"
    base = site()
    yield f"on the web: {base}" if base else "python -m numba_cute docs NAME prints a page, or the reference of a name"


def _title(file: Path) -> str:
    found = re.search(r"^# (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


def _page(name: str) -> str | None:
    file = PAGES / f"{name.removesuffix('.md')}.md"
    if not re.fullmatch(r"[\w.-]+", name) or not file.is_file():
        return None
    return file.read_text(encoding="utf-8").rstrip()


def named(name: str) -> Iterator[tuple[str, Any]]:
    """Find what a dotted name means in this library: "make_layout", "pipeline.PipelineTmaAsync.create"."""
    name = name.removeprefix("numba_cute.").removeprefix("cute.")
    seen: set[int] = set()
    for home, module in _modules():
        value: Any = module
        try:
            for part in name.split("."):
                value = inspect.getattr_static(value, part) if isinstance(value, type) else getattr(value, part)
        except AttributeError:
            continue
        value = getattr(value, "__func__", value)
        if id(value) not in seen and not (isinstance(value, ModuleType) and home != "numba_cute"):
            seen.add(id(value))
            yield f"{home}.{name}", value


def _modules() -> Iterator[tuple[str, ModuleType]]:
    """The modules whose names are public, the package first."""
    import numba_cute

    yield "numba_cute", numba_cute
    for room in ("arch", "pipeline", "utils", "nvgpu", "runtime", "testing", "experimental", "sim", "kernels", "math"):
        module = getattr(numba_cute, room)
        yield module.__name__, module
        for name, value in sorted(vars(module).items()):
            if isinstance(value, ModuleType) and value.__name__ == f"{module.__name__}.{name}":
                yield value.__name__, value


def _near(name: str) -> str:
    known = {n for _, module in _modules() for n in getattr(module, "__all__", ())} | {
        p.stem for p in PAGES.glob("*.md")
    }
    near = get_close_matches(name.rpartition(".")[2], sorted(known), 3)
    return f"; did you mean {', '.join(near)}?" if near else ""


def _reference(name: str, value: Any) -> str:
    """Write a name with its parameters and its docstring."""
    try:
        head = f"{name}{inspect.signature(value)}"
    except (TypeError, ValueError):
        head = name if callable(value) or isinstance(value, (ModuleType, property)) else f"{name} = {value!r}"
    text = inspect.getdoc(value) or "(it has no docstring)"
    lines = [head, "", *(f"    {line}".rstrip() for line in text.splitlines())]
    if isinstance(value, type):
        methods = [
            n for n, m in vars(value).items() if not n.startswith("_") and (callable(m) or hasattr(m, "__func__"))
        ]
        lines += ["", f"    methods: {', '.join(methods)}"] if methods else []
    return "\n".join(lines)
