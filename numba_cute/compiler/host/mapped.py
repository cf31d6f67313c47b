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
from collections.abc import Callable
from typing import Any

from ...dtypes import Uint64
from ...seam import CuteError
from ..bridge.typeofs import type_of_argument
from ..ground.building import ROOM, building, looking_for_maps
from ..ground.numba import devices
from ..ground.numba_cuda import types
from ..ground.target import arch_name, compiling_for
from .lowering import lowered
from .native.plans import name_of_changed
from .native.sites import FORGETS

_serial = itertools.count()
_found: Any = weakref.WeakKeyDictionary()
"""By a kernel's function, and then by the arguments' types and the target: the maps that its arguments bring."""
_names: dict[int, Any] = {}
"""By the identity of such maps: they, and for each argument the attribute by which a tensor remembers its own."""


def _forget(kernel: Any) -> None:
    for forms in _found.pop(getattr(kernel, "py_func", None), {}).values():
        _names.pop(id(forms), None)


FORGETS.append(_forget)


def mapped(kernel: Any, args: Any, arch: str | None = None, memory: Callable[[int], Any] | None = None) -> Any:
    """Return a kernel's arguments with the tensor maps that it asks for; as they are, for a kernel that asks for none
    of its own. arch: the target; None for the current device's. memory: gives the address of memory for the maps that
    the kernel makes itself, so many bytes for each block; None where the arguments' types alone are asked for."""
    takes = _takes(kernel)
    if takes is None:
        return args
    forms = _forms_of(kernel, takes, args, arch)
    if ROOM not in forms:
        return takes.bringing(args, forms)
    size = forms[ROOM][-1]
    return takes.bringing(args, forms, (Uint64(0 if memory is None else memory(size)), size))


def map_bytes(kernel: Any, args: Any, arch: str | None = None) -> int:
    """Return how many bytes of tensor maps each block of a kernel makes."""
    takes = _takes(kernel)
    forms = {} if takes is None else _forms_of(kernel, takes, args, arch)
    return int(forms[ROOM][-1]) if ROOM in forms else 0


def changes(kernel: Any, args: Any, brought: Any) -> dict[int, tuple[str, Callable[[Any], Any]]]:
    """Say how a launch makes of `args` what it `brought`, tensors with their maps: by the place of each that it
    changed, the name of the attribute by which a tensor remembers it, and what makes it of a tensor like that one."""
    takes = _takes(kernel)
    if takes is None:
        return {}
    forms = _forms_of(kernel, takes, args, None)
    names = _names.setdefault(id(forms), (forms, {}))[1]

    def making(i: int) -> Callable[[Any], Any]:
        return lambda one: takes.bringing((*(None,) * i, one), forms)[i]

    return {
        i: (names.setdefault(i, name_of_changed()), making(i))
        for i, (a, b) in enumerate(zip(args, brought))
        if a is not b and not isinstance(a, tuple)
    }


def _takes(kernel: Any) -> Any:
    return getattr(getattr(kernel, "py_func", kernel), "__cute_arguments__", None)


def _forms_of(kernel: Any, takes: Any, args: Any, arch: str | None) -> dict[Any, tuple[Any, ...]]:
    """The maps that a kernel asks for with such arguments, by the argument."""
    py_func = getattr(kernel, "py_func", kernel)
    if not isinstance(args, (tuple, list)) or any(isinstance(a, types.Type) for a in args):
        raise CuteError(
            f"args={args!r}: kernel {py_func.__name__} makes tensor maps of its tensors; give example arguments, not a "
            "signature"
        )
    at_hand = arch is None
    arch = arch or arch_name(devices.get_context().device.compute_capability)
    known = _found.setdefault(py_func, {})
    key = tuple((type(a), type_of_argument(takes.plain(a))) for a in args), arch, at_hand
    if key not in known:
        options = dict(getattr(kernel, "targetoptions", {}))
        known[key] = _forms(py_func, takes.seeking(args, next(_serial)), options, arch, at_hand)
    found: dict[Any, tuple[Any, ...]] = known[key]
    return found


def _forms(py_func: Any, args: Any, options: dict[str, Any], arch: str, at_hand: bool) -> dict[Any, tuple[Any, ...]]:
    """Find the maps that a kernel asks for: by the argument, their forms."""
    bounds = options.get("launch_bounds")
    with compiling_for(arch, at_hand) as cc, building(py_func, bounds), looking_for_maps() as wanted:
        lowered(py_func, tuple(type_of_argument(a) for a in args), options, cc)
    forms: dict[Any, tuple[Any, ...]] = {}
    for argument, form in wanted:
        forms[argument] = (*forms.get(argument, ()), form)
    return forms
