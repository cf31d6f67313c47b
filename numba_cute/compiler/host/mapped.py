# SPDX-License-Identifier: Apache-2.0
"""Kernels that take plain tensors and copy them by TMA: their tensor maps are found, made and passed beside them.

What a map must say follows from shared memory, which only the kernel knows. So such a kernel is typed once with
arguments that say of each map who asks for it (`ground.building.want_map`), and then compiled for arguments that bring
these maps, as grid constants: each form of a map stands in the argument's type, and so in the key of Numba's caches.
Tensors remember what was made of them, so that a launch encodes nothing anew.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from numba.cuda import types
from numba.cuda.cudadrv import devices
from numba.cuda.typing.typeof import Purpose, typeof

from ...seam import CuteError
from ..ground.building import building, looking_for_maps
from ..ground.target import arch_name, compiling_for
from .lowering import lowered

_serial = itertools.count()
_found: Any = weakref.WeakKeyDictionary()
"""By a kernel's function, and then by the arguments' types and the target: the maps that its arguments bring."""


def mapped(kernel: Any, args: Any, arch: str | None = None) -> Any:
    """Return a kernel's arguments with the tensor maps that it asks for; as they are, for a kernel that asks for none
    of its own. arch: the target; None for the current device's."""
    py_func = getattr(kernel, "py_func", kernel)
    takes = getattr(py_func, "__cute_arguments__", None)
    if takes is None:
        return args
    if not isinstance(args, (tuple, list)) or any(isinstance(a, types.Type) for a in args):
        raise CuteError(
            f"args={args!r}: kernel {py_func.__name__} makes tensor maps of its tensors; give example arguments, not a "
            "signature"
        )
    arch = arch or arch_name(devices.get_context().device.compute_capability)
    known = _found.setdefault(py_func, {})
    key = tuple((type(a), typeof(takes.plain(a), Purpose.argument)) for a in args), arch
    if key not in known:
        known[key] = _forms(
            py_func, takes.seeking(args, next(_serial)), dict(getattr(kernel, "targetoptions", {})), arch
        )
    return takes.bringing(args, known[key])


def _forms(py_func: Any, args: Any, options: dict[str, Any], arch: str) -> dict[Any, tuple[Any, ...]]:
    """Find the maps that a kernel asks for: by the argument, their forms."""
    with compiling_for(arch) as cc, building(py_func, options.get("launch_bounds")), looking_for_maps() as wanted:
        lowered(py_func, tuple(typeof(a, Purpose.argument) for a in args), options, cc)
    forms: dict[Any, tuple[Any, ...]] = {}
    for argument, form in wanted:
        forms[argument] = (*forms.get(argument, ()), form)
    return forms
