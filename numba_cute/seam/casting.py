# SPDX-License-Identifier: Apache-2.0
"""Objects of the host that are made at each launch: tensors of arrays, and what is made of these tensors.

What such a function gives depends on the array's address in one known place alone, so that it is made once for each
kind of array, and then cast again from that for other addresses. The compiler, which has machine code for it, does so
once kernels are launched; until then the functions just run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from numba_cute.seam.backend import current_or


def run(function: Callable[..., Any], *args: Any) -> Any:
    """Return `function(*args)`."""
    return function(*args)


@dataclasses.dataclass
class Casting:
    """What runs functions of the host, or gives what they would give.

    array: calls a function with an array and the alignment that is assumed of it. described: calls one with what was
    found of an array (tensor.dlpack.ArrayInfo) and that alignment. derived: calls one with a tensor and static
    arguments.
    """

    array: Callable[..., Any] = run
    described: Callable[..., Any] = run
    derived: Callable[..., Any] = run


CASTING = Casting()


def derived(function: Callable[..., Any], of: Any, *args: Any) -> Any:
    """Return `function(of, *args)`, which is made of a tensor `of` on the host; `args` are all else that it depends on.
    In a kernel it just runs, and says what is wrong."""
    return (CASTING.derived if current_or(None) is None else run)(function, of, *args)
