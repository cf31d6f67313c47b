# SPDX-License-Identifier: Apache-2.0
"""Calls that are made for their result alone: a kernel that drops it means something else.

Objects here are immutable: `tiled_mma.set(…)` and `v.to(…)` as statements change nothing, where those who know the CuTe
DSL or NumPy may expect it. The compiler sees a dropped result in the kernel's steps, the simulator in its bytecode.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import layout, math, nvgpu, seam
from .atoms import atom, copy_atom, mma_atom as mma
from .seam import CuteError
from .seam.guards.messages import dropped, matters
from .seam.hooks.audits import AUDITS, Code, at_spot
from .tensor import algebra, pointer, ssa, tensor

MODULES: tuple[ModuleType, ...] = (algebra, atom, copy_atom, layout, math, mma, pointer, ssa, tensor)
"""Whose traced functions all do nothing but give a result."""

METHODS: dict[type, tuple[str, ...]] = {
    ssa.TensorSSA: ("to", "bitcast", "reshape", "broadcast_to", "reduce"),
    pointer.Pointer: ("align",),
    mma.MmaAtom: ("set",),
    mma.TiledMma: ("set", "get_slice", "make_fragment_A", "make_fragment_B", "make_fragment_C"),
    mma.ThrMma: ("partition_A", "partition_B", "partition_C", "make_fragment_A", "make_fragment_B", "make_fragment_C"),
    copy_atom.TiledCopy: ("get_slice", "retile"),
    copy_atom.ThrCopy: ("partition_S", "partition_D", "retile"),
    nvgpu.CopyG2ROp: ("with_cache_policy",),
    nvgpu.CopyR2GOp: ("with_cache_policy",),
    nvgpu.cpasync.CopyG2SOp: ("with_cache_policy",),
}


def _watched(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that tells what runs the kernel when it has given its result."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        running = seam.current_or(None)
        if running is not None:
            running.gave(method, result)
        return result

    return call


for _module in MODULES:
    for _fn in list(vars(_module).values()):
        if inspect.isfunction(_fn) and seam.is_traced(_fn):
            seam.for_result(_fn)
for _cls, _names in METHODS.items():
    for _name in _names:
        setattr(_cls, _name, _watched(seam.for_result(getattr(_cls, _name))))


def check_results(code: Code) -> None:
    """An error if the object that a call is for is not used."""
    value = code.value
    used = {name for s in code.steps for name in s.uses}
    for s in code.steps:
        if s.kind != "call" or s.target in used or not s.target.startswith("$"):
            continue
        fn = s.name if s.of is None else inspect.getattr_static(type(value(s.of)), s.name, None)
        if seam.is_for_result(fn) and matters(value(s.target)):
            raise at_spot(CuteError(dropped(fn)), s.at)


AUDITS.append(check_results)
