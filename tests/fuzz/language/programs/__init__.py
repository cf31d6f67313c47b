# SPDX-License-Identifier: Apache-2.0
"""Directed programs, a file for each construct, as text: ``=== name``, helpers, ``---``, the body.

A body has `o` (ints out), `w` (floats out), `a` (16 ints, some negative), `n` = 5, `m` = 3 and `tid`. It stands in the
kernel, in a helper, in a helper with a run-time branch, and in a function of `cute.jit`: the meaning is the same.
"""

from __future__ import annotations

import importlib
import pkgutil
import textwrap
from collections.abc import Iterator

OTHERWISE = {("print", "jit")}
"""What docs/language.md says has another meaning there: `cute.jit` prints what is known while it compiles."""
BEGIN = "    tid = cuda.threadIdx.x\n    cute.const_expr(True)\n"
KERNEL = "@cuda.jit\ndef kernel(o, w, a, n, m):\n" + BEGIN
PLACES = {
    "kernel": None,
    "helper": "def place(o, w, a, n, m, tid):\n",
    "branch": "def place(o, w, a, n, m, tid):\n    if n > 1000:\n        o[tid, 7] = 1\n",
    "jit": "@cute.jit\ndef place(o, w, a, n, m, tid):\n",
}
"""Where a body stands: the function's head."""


def source(helpers: str, body: str, place: str = "kernel") -> str:
    """Return the program whose body stands in that place."""
    body = textwrap.indent(body.strip("\n"), "    ") + "\n"
    head = PLACES[place]
    if head is None:
        return f"{helpers}\n{KERNEL}{body}"
    return f"{helpers}\n{head}{body}\n{KERNEL}    place(o, w, a, n, m, tid)\n"


def constructs() -> list[str]:
    """Return the names of the files."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__))


def programs(construct: str) -> Iterator[tuple[str, str, str]]:
    """Yield (name, helpers, body) of the programs of a file."""
    text = importlib.import_module(f"{__name__}.{construct}").PROGRAMS
    for block in text.split("\n=== ")[1:]:
        name, _, rest = block.partition("\n")
        helpers, dashes, body = rest.partition("---\n")
        yield name.strip(), helpers if dashes else "", body if dashes else rest


def every(places: tuple[str, ...] = tuple(PLACES), only: str = "") -> Iterator[tuple[str, str]]:
    """Yield (name, source) of each program in each place."""
    for construct in constructs():
        for name, helpers, body in programs(construct):
            for place in places:
                label = f"{construct}/{name}@{place}"
                if only in label and (name, place) not in OTHERWISE:
                    yield label, source(helpers, body, place)
