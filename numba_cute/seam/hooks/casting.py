# SPDX-License-Identifier: Apache-2.0
"""Objects of the host that are made at each launch: tensors of arrays, and what is made of these.

What a function makes of arrays depends on their addresses in few known places, if it reads nothing of them but what
kind they are of: it runs once for arrays of a kind, and for others of that kind what it made is cast again. The
compiler has machine code for that, once kernels are launched; until then the functions just run.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from numba_cute.seam.ground.backend import RUNNING
from numba_cute.seam.ground.names import refuse_arguments

from ...seam.ground.records import dataclass


def run(function: Callable[..., Any], *args: Any) -> Any:
    """Return `function(*args)`."""
    return function(*args)


@dataclass
class Casting:
    """A way to run functions of the host, or to give their results without running them.

    described: calls a function with what was found of an array (tensor.dlpack.ArrayInfo) and the alignment that is
    assumed of it. derived: calls one with a tensor and static arguments.
    """

    described: Callable[..., Any] = run
    derived: Callable[..., Any] = run


CASTING = Casting()
FUNCTIONS: weakref.WeakSet[OfArrays] = weakref.WeakSet()
"""All functions of arrays."""
_told: list[Callable[[OfArrays], None]] = []


class OfArrays:
    """A function of arrays, whose result is cast. function: the Python. cast: what is called in its place."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = self.cast = function
        functools.update_wrapper(self, function)
        FUNCTIONS.add(self)
        for tell in _told:
            tell(self)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return what the function gives of `args` and `named`."""
        try:
            return (self.function if RUNNING.backends else self.cast)(*args, **named)
        except TypeError as e:
            refuse_arguments(self.function, args, named, e)
            raise


def cast_by(tell: Callable[[OfArrays], None]) -> None:
    """Call `tell` with each function of arrays, those that there are and those to come."""
    _told.append(tell)
    for one in list(FUNCTIONS):
        tell(one)


def derived(function: Callable[..., Any], of: Any, *args: Any) -> Any:
    """Return `function(of, *args)`, which is made of a tensor `of` on the host; `args` are all else that it depends on.
    In a kernel it just runs, and says what is wrong."""
    return (run if RUNNING.backends else CASTING.derived)(function, of, *args)
