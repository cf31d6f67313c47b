# SPDX-License-Identifier: Apache-2.0
"""The options of a kernel as attributes of its function: what `cuda.jit` was given, and the cluster shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute

from ..seam import CuteError

PREFIX = "cute."
KERNEL = (
    "launch_bounds", "max_registers", "debug", "lineinfo", "opt", "fastmath", "fma", "prec_div", "prec_sqrt", "ftz",
    "lto", "cluster",
)  # fmt: skip
"""The options that a kernel may have: those of `cuda.jit` that change its code, and its cluster shape."""
DEVICE = ("inline", "forceinline", "fastmath", "debug", "lineinfo", "opt")
"""Those of a device function."""


def attributes_of(options: Mapping[str, Any], cluster: Iterable[int] | None = None) -> dict[str, Attribute]:
    """Return options as attributes: those of `KERNEL` and `DEVICE` that are given and not None.

    options: a dispatcher's `targetoptions`. cluster: the cluster shape, if the kernel has one.
    """
    given = {name: options[name] for name in dict.fromkeys((*KERNEL, *DEVICE)) if options.get(name) is not None}
    if cluster is not None:
        given["cluster"] = tuple(cluster)
    return {PREFIX + name: _attribute(name, value) for name, value in given.items()}


def _attribute(name: str, value: Any) -> Attribute:
    if isinstance(value, bool):
        return BoolAttr.from_bool(value)
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    if isinstance(value, str):
        return StringAttr(value)
    if isinstance(value, (tuple, list)) and all(type(x) is int for x in value):
        return ArrayAttr([IntegerAttr(x, i64) for x in value])
    raise CuteError(f"{name}={value!r}: an option of a kernel in the IR is a bool, an int, a string or a tuple of ints")


def options_of(attributes: Mapping[str, Attribute], known: Iterable[str]) -> dict[str, Any]:
    """Return the options that attributes of a function say: the converse of `attributes_of`. known: `KERNEL` or
    `DEVICE`."""
    return {name: _value(name, attributes[PREFIX + name]) for name in known if PREFIX + name in attributes}


def _value(name: str, attribute: Attribute) -> Any:
    if isinstance(attribute, UnitAttr):
        return True
    if isinstance(attribute, IntegerAttr):
        value = attribute.value.data
        return bool(value) if attribute.type == BoolAttr.from_bool(True).type else value
    if isinstance(attribute, StringAttr):
        return attribute.data
    if isinstance(attribute, ArrayAttr):
        return tuple(_value(name, x) for x in attribute)
    raise CuteError(f"{PREFIX}{name} = {attribute}: an option is a bool, an int, a string or a list of ints")
