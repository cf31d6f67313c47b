# SPDX-License-Identifier: Apache-2.0
"""The classes behind the types of this library's dialect, `numba_cute`; and the names of element types and of members.

A class of the library is known by the part of it that it belongs to, as its operations are: `numba_cute.layout`,
`numba_cute.pipeline.PipelineTmaAsync`, `numba_cute.nvgpu.warpgroup.MmaF16BF16Op`. The user's own classes are
all `numba_cute.object` or `numba_cute.struct`, with their symbol.
"""

from __future__ import annotations

import functools
from typing import Any

from ... import dtypes, nvgpu, seam
from ...dtypes import DType
from ...seam import StaticEnum
from ...seam.ground.packages import is_library

OWN, NVGPU = "numba_cute", "numba_cute.nvgpu"
"""This library's dialect, which has what the published ones, `cute` and `cute_nvgpu`, lack; and its part of GPUs."""
_OLD = {"cute": OWN, "cute_nvgpu": NVGPU}


def own_name(name: str) -> str:
    """Return the name in this library's dialect of what it called `cute.…` and `cute_nvgpu.…` before."""
    dialect, dot, rest = name.partition(".")
    return f"{_OLD.get(dialect, dialect)}{dot}{rest}"


def short(name: str) -> str:
    """Return a name without the dialect's: "warp.MmaF16BF16Op"."""
    return name.removeprefix(f"{NVGPU}.").removeprefix(f"{OWN}.")


RENAMED = {
    "ScaledBasis": "numba_cute.basis",
    "Swizzle": "numba_cute.swizzle",
    "Layout": "numba_cute.layout",
    "ComposedLayout": "numba_cute.composed_layout",
    "Pointer": "numba_cute.ptr",
    "Tensor": "numba_cute.tensor",
    "TensorSSA": "numba_cute.vector",
    "ArrayView": "numba_cute.array_view",
    "MmaAtom": "numba_cute.nvgpu.mma_atom",
    "TiledMma": "numba_cute.nvgpu.tiled_mma",
    "ThrMma": "numba_cute.nvgpu.thr_mma",
    "CopyAtom": "numba_cute.nvgpu.copy_atom",
    "TiledCopy": "numba_cute.nvgpu.tiled_copy",
    "ThrCopy": "numba_cute.nvgpu.thr_copy",
    "MbarrierArray": "numba_cute.nvgpu.mbarrier",
    "SmemDescriptor": "numba_cute.nvgpu.smem_descriptor",
    "ExecTma": "numba_cute.nvgpu.exec_tma",
}
"""The classes whose types have the field's names; the others keep their own."""

OBJECT, STRUCT = "numba_cute.object", "numba_cute.struct"
"""The types of the user's own classes."""

_PARTS = {
    "nvgpu": NVGPU, "atoms": NVGPU, "ir": NVGPU, "pipeline": "numba_cute.pipeline",
    "utils": "numba_cute.utils", "experimental": "numba_cute.experimental",
}  # fmt: skip
"""The parts of the dialects that rooms' classes are of; those of the others are of `cute`."""


def _dialect(obj: Any) -> str:
    """The part of the dialect that a class of the library belongs to, as "numba_cute.nvgpu.warp"."""
    marked = seam.part_of(obj)
    if marked is not None and marked.startswith("cute_nvgpu"):
        return own_name(marked)
    return _PARTS.get(obj.__module__.split(".")[1], OWN)


def is_own(cls: type) -> bool:
    """Return whether a class is of this library, and found by its name."""
    return is_library(cls.__module__) and "<locals>" not in cls.__qualname__


_classes: dict[str, type] = {}
_mnemonics: dict[type, str] = {}


def _register(cls: type) -> None:
    if not is_own(cls):
        return
    name = RENAMED.get(cls.__name__) or f"{_dialect(cls)}.{cls.__name__}"
    if _classes.get(name, cls) is not cls:
        raise AssertionError(f"{cls} and {_classes[name]} are both {name}")
    _classes[name], _mnemonics[cls] = cls, name


seam.tell_marked(_register)


def mnemonic_of(cls: type) -> str:
    """Return the name of the type of this `frozen` or `struct` class, with its dialect."""
    return _mnemonics.get(cls) or (STRUCT if seam.is_struct_class(cls) else OBJECT)


def class_of(mnemonic: str) -> type | None:
    """Return the library's class whose type is of this name, with its dialect; None if there is none."""
    return _classes.get(mnemonic)


def mnemonics() -> tuple[str, ...]:
    """Return the names of the types of all the library's classes."""
    return tuple(sorted(_classes))


def short_names(base: type) -> dict[str, type]:
    """Return the library's subclasses of `base` by their mnemonics without the dialect: "warp.MmaF16BF16Op"."""
    found = {short(name): cls for name, cls in _classes.items() if issubclass(cls, base)}
    return dict(sorted(found.items()))


# ------------------------------------------------------------------ element types

_FLOATS = {
    "Float8E4M3FN": "f8E4M3FN", "Float8E5M2": "f8E5M2", "Float8E8M0FNU": "f8E8M0FNU", "Float4E2M1FN": "f4E2M1FN",
    "Float6E2M3FN": "f6E2M3FN", "Float6E3M2FN": "f6E3M2FN", "BFloat16": "bf16", "TFloat32": "tf32",
}  # fmt: skip


def _element_name(dtype: DType) -> str:
    if dtype.kind == "bool":
        return "i1"
    if dtype.is_float:
        return _FLOATS.get(dtype.name, f"f{dtype.width}")
    return f"{'i' if dtype.signed else 'ui'}{dtype.width}"


ELEMENTS: dict[str, DType] = {_element_name(d): d for d in vars(dtypes).values() if isinstance(d, DType)}
"""The element types by their names in MLIR: "f16", "bf16", "f8E4M3FN", "i32", "ui8", and "i1" for Boolean."""
_ELEMENT_NAMES = {d: name for name, d in ELEMENTS.items()}


def element_name(dtype: DType) -> str:
    """Return the name of an element type in MLIR."""
    return _ELEMENT_NAMES[dtype]


# ------------------------------------------------------------------ members of enumerations


_FOR_OTHERS = f"{OWN}.compat."
"""The package of names that files of the CuTe DSL ask for: no part of the IR, whether they are loaded or not."""


@functools.cache
def enumerations() -> dict[str, type[StaticEnum]]:
    """Return the library's enumerations by name, with their dialect; those of one name with the facade of `nvgpu` that
    shows them, and without one they are left out."""
    found: dict[str, list[type[StaticEnum]]] = {}
    for cls in StaticEnum.__subclasses__():
        if is_own(cls) and not cls.__module__.startswith(_FOR_OTHERS):
            dialect = NVGPU if _dialect(cls).startswith(NVGPU) else OWN
            found.setdefault(f"{dialect}.{cls.__name__}", []).append(cls)
    named = {name: classes[0] for name, classes in found.items() if len(classes) == 1}
    for name, classes in found.items():
        for facade in (nvgpu.cpasync, nvgpu.tcgen05, nvgpu.warp, nvgpu.warpgroup) if len(classes) > 1 else ():
            dialect, _, plain = name.rpartition(".")
            if getattr(facade, plain, None) in classes:
                named[f"{dialect}.{facade.__name__.rpartition('.')[2]}.{plain}"] = getattr(facade, plain)
    return dict(sorted(named.items()))


@functools.cache
def _enumeration_names() -> dict[type, str]:
    return {cls: name for name, cls in enumerations().items()}


def enumeration_name(cls: type) -> str | None:
    """Return the name of an enumeration of the library, with its dialect; None if it has none of its own."""
    return _enumeration_names().get(cls)
