# SPDX-License-Identifier: Apache-2.0
"""The options of a kernel as attributes of its function: what `cuda.jit` was given, and the cluster shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntegerAttr, StringAttr, UnitAttr, i1, i64
from xdsl.ir import Attribute

from ...compiler.host import kernels
from ...seam import CuteError

PREFIX = "numba_cute."
KERNEL = (
    "launch_bounds", "max_registers", "debug", "lineinfo", "opt", "fastmath", "fma", "prec_div", "prec_sqrt", "ftz",
    "lto", "link", "shared_memory_carveout", "cluster",
)  # fmt: skip
"""The options that a kernel may have: those of `cuda.jit` that change its code or its launch, and its cluster shape."""
DEVICE = ("inline", "forceinline", "debug", "lineinfo", "opt", "fastmath", "fma", "prec_div", "prec_sqrt", "ftz", "lto")
"""Those of a device function."""


def is_old(name: str) -> bool:
    """Return whether an attribute of a function or a module is called as it was before this library's dialect had a
    name of its own."""
    kind, dot, rest = name.partition(".")
    return kind == "cute" and rest in ("kernel", "target", *KERNEL, *DEVICE)


def attributes_of(options: Mapping[str, Any], cluster: Iterable[int] | None = None) -> dict[str, Attribute]:
    """Return options as attributes of a function: those of `KERNEL` and `DEVICE` that are not as `cuda.jit` has them by
    default. Raises CuteError for a value that no attribute holds.

    options: a dispatcher's `targetoptions`. cluster: the cluster shape, if the kernel has one.
    """
    usual = kernels.usual_options()
    names = [n for n in dict.fromkeys((*KERNEL, *DEVICE)) if n in options and options[n] != usual.get(n)]
    given = {name: options[name] for name in names}
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
    if isinstance(value, (tuple, list)):
        return ArrayAttr([_attribute(name, x) for x in value])
    raise CuteError(f"{name}={value!r}: an option of a kernel in the IR is a bool, an int, a string or a tuple of them")


def options_of(attributes: Mapping[str, Attribute], known: Iterable[str]) -> dict[str, Any]:
    """Return the options that attributes of a function say: the converse of `attributes_of`. known: `KERNEL` or
    `DEVICE`."""
    return {name: _value(name, attributes[PREFIX + name]) for name in known if PREFIX + name in attributes}


def _value(name: str, attribute: Attribute) -> Any:
    if isinstance(attribute, UnitAttr):
        return True
    if isinstance(attribute, IntegerAttr):
        value = attribute.value.data
        return bool(value) if attribute.type == i1 else value
    if isinstance(attribute, StringAttr):
        return attribute.data
    if isinstance(attribute, ArrayAttr):
        return tuple(_value(name, x) for x in attribute)
    raise CuteError(f"{PREFIX}{name} = {attribute}: an option is a bool, an int, a string or a list of them")
