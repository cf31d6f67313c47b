# SPDX-License-Identifier: Apache-2.0
"""The slow way: what a launch gives the driver where nothing is remembered of any launch before."""

from __future__ import annotations

from contextlib import contextmanager

from numba_cute import runtime
from numba_cute.compiler.host.native import known
from numba_cute.seam.hooks import casting


@contextmanager
def casts():
    """Moulds of this block's own."""
    before = [(x, dict(vars(x))) for x in (casting.CASTING, *casting.FUNCTIONS)]
    told = list(casting._told)
    made = known.moulds.__wrapped__()
    try:
        yield made
    finally:
        for x, held in before:
            vars(x).clear()
            vars(x).update(held)
        casting._told[:] = told


@contextmanager
def nothing_cast():
    """What functions of arrays give is made by these functions."""
    before = [(x, dict(vars(x))) for x in (casting.CASTING, *casting.FUNCTIONS)]
    vars(casting.CASTING).update(described=casting.run, derived=casting.run)
    for one in list(casting.FUNCTIONS):
        one.cast = one.function
    assert runtime._over.cast is runtime._over.function
    try:
        yield
    finally:
        for x, held in before:
            vars(x).update(held)


def without_memory(x, seen=None):
    """Take from an object, and what it holds, all that this library remembers there."""
    seen = set() if seen is None else seen
    if id(x) in seen or isinstance(x, type):
        return
    seen.add(id(x))
    held = getattr(x, "__dict__", None)
    if isinstance(held, dict):
        for name in [n for n in held if isinstance(n, str) and n.startswith(("_cute_", "__cute_all"))]:
            del held[name]
        for value in list(held.values()):
            without_memory(value, seen)
    if isinstance(x, (tuple, list)):
        for y in x:
            without_memory(y, seen)
