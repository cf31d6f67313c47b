# SPDX-License-Identifier: Apache-2.0
"""The slow way: what a launch gives the driver where nothing is remembered of any launch before."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager

from numba_cute import runtime
from numba_cute.compiler.host.native import known
from numba_cute.seam import is_frozen_class
from numba_cute.seam.hooks import casting


@contextmanager
def casts():
    """Templates of this block's own."""
    before = [(x, dict(vars(x))) for x in (casting.CASTING, *casting.FUNCTIONS)]
    told = list(casting._told)
    made = known.templates.__wrapped__()
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


def anew(x):
    """Return an argument with other objects of this library's in it, which remember nothing."""
    if type(x) is tuple:
        return tuple(map(anew, x))
    if not is_frozen_class(type(x)):
        return x
    made = object.__new__(type(x))
    for field in dataclasses.fields(x):
        object.__setattr__(made, field.name, anew(getattr(x, field.name)))
    return made
