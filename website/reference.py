# SPDX-License-Identifier: Apache-2.0
"""The reference: a page for each public module, made of signatures and docstrings, and checked by tests/site.

Of numba_cute itself there is a page for each room, for it has some 350 names.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

from tests import api
from website.docstrings import as_markdown

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {"layout": "layouts", "tensor": "tensors", "atoms": "atoms", "dtypes": "element types", "seam": "language"}


@functools.cache
def groups() -> dict[str, list[tuple[str, str, Any]]]:
    """Public names by page: (module, name, value)."""
    held: dict[str, list[tuple[str, str, Any]]] = defaultdict(list)
    for module, name, value in api.names():
        if not isinstance(value, ModuleType):
            held[page_of(module, value)].append((module, name, value))
    return dict(sorted(held.items()))


def page_of(module: str, value: Any) -> str:
    if module != "numba_cute":
        return module
    made_in = (getattr(value, "__module__", None) or type(value).__module__).split(".")
    room = made_in[1] if made_in[0] == "numba_cute" and len(made_in) > 1 else "dtypes"
    return f"numba_cute, {ROOMS.get(room, 'others')}"


def uri(page: str) -> str:
    return "reference/" + re.sub(r"\W+", "_", page) + ".md"


def pages() -> list[str]:
    return ["reference/index.md", *map(uri, groups())]


def pages_with_text() -> list[tuple[str, str]]:
    return [("reference/index.md", index()), *((uri(page), text(page)) for page in groups())]


def index() -> str:
    lines = [
        "# Reference",
        "",
        "Every public name, with its signature, what it takes and gives, the PTX instruction and the least target",
        "where it is one, examples, which a test runs, and lessons that use it. Examples take `cute` for `numba_cute`,",
        "`np` for NumPy, `cuda` for `numba.cuda`, and `arch`, `nvgpu`, `pipeline` and `utils` for the modules of those",
        "names. The page is made of the docstrings, so `help(name)` says the same. What will stay is in",
        "[versioning](../versioning.md).",
        "",
        "| page | names |",
        "| --- | --- |",
    ]
    lines += [f"| [{page}]({Path(uri(page)).name}) | {len(names)} |" for page, names in groups().items()]
    return "\n".join(lines) + "\n"


def text(page: str) -> str:
    names = groups()[page]
    head = [f"# {page}", ""]
    if "," not in page:
        head += [inspect.getdoc(importlib.import_module(page)) or "", ""]
    return "\n".join(head + [entry(*name) for name in sorted(names, key=lambda n: n[1].lower())])


def entry(module: str, name: str, value: Any) -> str:
    lines = [f"## {name} {{#{module}.{name}}}", ""]
    known = first_places()[id(value)] if callable(value) else f"{module}.{name}"
    if known != f"{module}.{name}":
        where = uri(page_of(known.rpartition(".")[0], value))
        return "\n".join([*lines, f"The same as [`{known}`]({Path(where).name}#{known}).", ""])
    head, *inner = api.described(value)
    if not (callable(value) and hasattr(value, "__name__")):
        return "\n".join([*lines, f"`{type(value).__name__}`", ""])
    lines += [f"```python\n{signature(name, head)}\n```", ""]
    lines += [as_markdown(inspect.getdoc(value) or "", parameters(value)), ""]
    members = [part for member in inner for part in member_lines(value, member)]
    lines += ["**Members**", "", *members] if members else []
    used = lessons(name)
    if used:
        lines += ["", "In " + ", ".join(f"[{title}](../tutorials/{file})" for file, title in used[:4]) + "."]
    return "\n".join([*lines, ""])


@functools.cache
def first_places() -> dict[int, str]:
    """Where each value is named first."""
    found: dict[int, str] = {}
    for module, name, value in api.names():
        found.setdefault(id(value), f"{module}.{name}")
    return found


def signature(name: str, head: str) -> str:
    """One line, or a line for each parameter."""
    kind, _, rest = head.partition(" ")
    if kind == "class":
        opening = rest.find("(")
        rest = rest[opening:] if opening >= 0 else ""
    line = f"{name}{rest}" if kind == "function" else f"class {name}{rest.replace(' -> None', '')}"
    if len(line) <= 90:
        return line
    before, _, inside = line.partition("(")
    inside, _, after = inside.rpartition(")")
    parts = split(inside)
    return f"{before}(\n" + "".join(f"    {p},\n" for p in parts) + f"){after}"


def split(inside: str) -> list[str]:
    """Parameters, apart at commas that are in no brackets."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(inside):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            parts.append(inside[begin:i].strip())
            begin = i + 1
    return [p for p in (*parts, inside[begin:].strip()) if p]


def parameters(value: Any) -> list[str]:
    try:
        names = list(inspect.signature(value).parameters)
    except (ValueError, TypeError):
        names = []
    if inspect.isclass(value):
        names += [n for c in value.__mro__ for n in getattr(c, "__annotations__", {})]
    return [n for n in dict.fromkeys(names) if n != "self"]


def member_lines(cls: type, member: str) -> list[str]:
    """A list item for a class's member."""
    name, _, kind = member.partition(": ")
    if kind in ("member", "attribute"):
        return [f"- `{name}`"] if kind == "member" else []
    found = inspect.getattr_static(cls, name)
    function = getattr(found, "__func__", None) or getattr(found, "fget", None) or getattr(found, "func", found)
    doc = inspect.getdoc(function) or ""
    shown = kind.partition(" ")[2] if kind != "property" else ""
    shown = re.sub(r"^\((self|cls)(, )?", "(", shown)
    said = as_markdown(doc, parameters(function) if callable(function) else [])
    return [f"- `{name}{shown}`", "", *("    " + line if line else "" for line in said.split("\n")), ""]


@functools.cache
def tutorials() -> list[tuple[str, str, str]]:
    """(page, title, code) of each tutorial."""
    found = []
    for file in sorted((ROOT / "docs" / "tutorials").glob("[0-9]*.md")):
        script = ROOT / "examples" / "tutorials" / f"{file.stem}.py"
        if script.exists():
            title = file.read_text().partition("\n")[0].lstrip("# ")
            found.append((file.name, title, script.read_text()))
    return found


def lessons(name: str) -> list[tuple[str, str]]:
    """The tutorials whose script names this."""
    pattern = re.compile(rf"\.{re.escape(name)}\b|import [^\n]*\b{re.escape(name)}\b")
    return [(file, title) for file, title, code in tutorials() if pattern.search(code)]
