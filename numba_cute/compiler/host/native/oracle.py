# SPDX-License-Identifier: Apache-2.0
"""Launches that are checked, with `NUMBA_CUTE_CHECK_LAUNCHES=1`: what machine code gives the driver is compared with
what the same arguments are when Python packs them again, with nothing that was remembered."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from types import MethodType
from typing import Any, NamedTuple

from .... import dtypes, seam
from ....seam import CuteError
from ....seam.ground.error import PLEASE_REPORT, InternalError
from ....seam.marks.constexpr import Constexpr
from ....seam.marks.host_objects import as_argument
from ...bridge import tree
from ...bridge.exact import mark
from ...bridge.object_types import Value, key_of
from ...ground.numba_cuda import types
from . import packing
from .driver import Driver


class Wanted(NamedTuple):
    """A launch as it is to be. kernel: the driver's handle. setting: grid, block and all else. parameters: bytes."""

    kernel: int
    setting: Any
    parameters: list[bytes]


Again = Callable[..., "Wanted | None"]
"""A function of a launch's arguments that says what it is to be; None where that cannot be told."""


class _Now(threading.local):
    wanted: Wanted | None = None
    wrong: str | None = None


_now = _Now()


def wanted(setting: Any, stream: int, args: Any) -> Wanted | None:
    """Say what a launch is to be. setting: as of plans.py. args: all of the kernel's."""
    out: list[Any] = []
    copied: list[Any] = []
    for t, a in zip(setting.kernel.argument_types, args, strict=True):
        _pack(setting.kernel, t, a, copied, out)
    if copied:
        return None
    return Wanted(setting.handle, _setting(setting.config(stream)), list(map(packing.as_bytes, out)))


def _pack(kernel: Any, t: Any, a: Any, copied: list[Any], out: list[Any]) -> None:
    value = a.value if isinstance(a, Constexpr) else a
    value = as_argument(value) if isinstance(value, MethodType) else value
    if isinstance(t, Value):
        spec = tree.flatten(value, [])
        known = getattr(value, "__dict__", {}).get("_cute_numba_type")
        if known is not None and not isinstance(value, type) and known.key != key_of(spec, tree.changes(spec)):
            raise _fault(f"{value!r} has the type that it had before")
        leaves: list[Any] = []
        tree.align(value, t.spec, leaves)
        out += kernel._prepare_leaves(t, leaves, value)
    elif isinstance(t, types.BaseTuple) and not isinstance(value, dtypes.Scalar):
        for u, x in zip(t, value):
            _pack(kernel, u, x, copied, out)
    else:
        kernel._prepare_args(t, a, 0, copied, out)


def _setting(config: Any) -> Any:
    of = packing.Attribute * config.count
    attributes = [(x.id, tuple(x.value.words)) for x in of.from_address(config.attributes)] if config.count else []
    return tuple(config.grid), tuple(config.block), config.smem, config.stream or 0, attributes


@functools.cache
def checking(at: int) -> Driver:
    """The driver whose functions lie at an address, with a launch that compares what it is given."""
    held = (ctypes.c_int64 * 4).from_address(at)
    launch = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)

    def compared(config: int, kernel: int, parameters: int, extra: int) -> int:
        told = _difference(config, kernel, parameters)
        if told is None:
            return int(launch(held[0])(config, kernel, parameters, extra))
        _now.wrong = told
        return 1

    callback = launch(compared)
    made = Driver(ctypes.cast(callback, ctypes.c_void_p).value or 0, *held[1:])
    made.kept = callback  # type: ignore[attr-defined]
    return made


def _difference(config: int, kernel: int, parameters: int) -> str | None:
    """Say in what a launch is another than it is to be; None: in nothing."""
    want = _now.wanted
    if want is None:
        return None
    if kernel != want.kernel:
        return "another kernel"
    setting = _setting(packing.Config.from_address(config))
    if setting != want.setting:
        return f"setting {setting}, not {want.setting}"
    pointers = (ctypes.c_void_p * len(want.parameters)).from_address(parameters) if want.parameters else ()
    for i, (at, data) in enumerate(zip(pointers, want.parameters)):
        given = ctypes.string_at(at, len(data))
        if given != data:
            return f"parameter {i} is {given.hex()}, not {data.hex()}"
    return None


def checked(call: Callable[..., Any], again: Again) -> Callable[..., Any]:
    """Make of a site's call one that is checked. InternalError: machine code would have launched something else; what
    is right was launched in its place."""

    def launch(*args: Any, **named: Any) -> None:
        _now.wanted, _now.wrong = None if named else again(*args), None
        try:
            call(*args, **named)
        finally:
            wrong, _now.wrong, _now.wanted = _now.wrong, None, None
        if wrong is not None:
            raise _fault(f"a launch in machine code would have been of {wrong}")

    return launch


def comparing(function: Any) -> Callable[..., Any]:
    """Make of the call of a function of arrays (known.Function) one that runs the function too, and compares what it
    gives with what was cast. InternalError: they differ."""

    def call(*args: Any, **named: Any) -> Any:
        before = function.ran
        made = function.call(*args, **named)
        if function.ran == before:
            different = _other(made, function.python(*args, **named), "what it gives")
            if different is not None:
                raise _fault(f"{getattr(function.python, '__name__', 'a function')} is remembered: {different}")
        return made

    return call


def _other(a: Any, b: Any, where: str) -> str | None:
    """Say where two results differ; None: nowhere."""
    if type(a) is not type(b):
        return f"{where} is a {type(a).__name__}, not a {type(b).__name__}"
    if isinstance(a, tuple):
        parts = list(zip(map(str, range(len(a))), a, b)) if len(a) == len(b) else [("length", len(a), len(b))]
    elif isinstance(a, dtypes.Scalar):
        names = [n for n in ("dtype", "value", "divisor", "owner", "memory") if hasattr(a, n)]
        parts = [(n, getattr(a, n), getattr(b, n)) for n in names]
    elif seam.is_frozen_class(type(a)):
        parts = [(n, getattr(a, n), getattr(b, n)) for n in type(a).__dataclass_fields__]
    else:
        return None if a is b or mark(a) == mark(b) else f"{where} is {a!r}, not {b!r}"
    return next((found for n, x, y in parts if (found := _other(x, y, f"{where}.{n}")) is not None), None)


def _fault(what: str) -> CuteError:
    return InternalError(f"NUMBA_CUTE_CHECK_LAUNCHES: {what}: {PLEASE_REPORT}")
