# SPDX-License-Identifier: Apache-2.0
"""Descriptions as text."""

from __future__ import annotations

import enum
import functools
from typing import Any

from ...compiler.inspection.foreign import foreign_name
from ...dtypes import DType, Int32
from ...layout import ComposedLayout, Layout, ScaledBasis, Swizzle
from ...seam import CuteError
from ...typed.descriptions import (
    Array,
    Constant,
    Description,
    Elements,
    Foreign,
    Group,
    Object,
    RegisterFile,
    Scalar,
    Struct,
    TensorMap,
)
from ..dialect.checked import checked
from ..dialect.notation import read, write
from . import registry
from .fields import (
    Fields,
    Listed,
    Quoted,
    Thing,
    Word,
    default_fields,
    fields_by_name,
    form_of,
    is_int,
    is_number,
    record_fields,
)
from .names import Lacking, collected, note, symbol_of
from .scanner import quoted


def item(d: Description) -> str:
    """Write a description as it stands within a type."""
    if isinstance(d, Constant):
        return _constant(d.value)
    if isinstance(d, Scalar):
        return _number(d)
    if isinstance(d, Group):
        return f"({','.join(map(item, d.items))})"
    bare = _bare(d) if isinstance(d, Object) else None
    return typed(d) if bare is None else bare


def thing_text(thing: Thing) -> str:
    """Write what a type says without a name."""
    if isinstance(thing, Listed):
        return f"[{','.join(map(thing_text, thing.things))}]"
    if isinstance(thing, Quoted):
        return f'"{item(thing.description)}"'
    if isinstance(thing, Word):
        return thing.name if thing.given is None else f"{thing.name}<{','.join(map(thing_text, thing.given))}>"
    return item(thing)


def typed(d: Description) -> str:
    """Write a description as a type of its own, after a `!`; not of numbers known only at run time whose types are
    MLIR's own."""
    name, inner = parts(d)
    return f"!{name}<{inner}>" if inner else f"!{name}"


def parts(d: Description, things: tuple[Thing, ...] | None = None) -> tuple[str, str]:
    """Return the name of a description's type, with its dialect, and what stands between its < and >. things: what it
    says without names, in place of the usual."""
    text = published(d) if things is None else None
    if text is not None:
        return f"cute.{text[0]}", f'"{text[1]}"'
    inner, met = _written(d, things)
    for symbol, obj in met:
        note(symbol, obj)
    return name_of(d), inner


@functools.lru_cache(maxsize=8192)
def _written(d: Description, things: tuple[Thing, ...] | None) -> tuple[str, list[tuple[str, Any]]]:
    """Return the text between < and >, and the user's objects that it names."""
    with collected() as met:
        inner = _said(d, things) if isinstance(d, (Object, Struct)) else _inner(d)
    return inner, list(met.items())


# ------------------------------------------------------------------ the published types of values


@functools.lru_cache(maxsize=8192)
def published(d: Description, kind: str | None = None) -> tuple[str, str] | None:
    """Return the published type that says the same as a description, by its name, and what it has in quotes; None if
    there is none. kind: the name that it is to have."""
    for name in _kinds(d):
        if kind in (None, name):
            text = tile(d) if name == "tile" else item(d) if _is_value(d) else None
            try:
                if text is not None and write(name, checked(name, read(name, text))) == text:
                    return name, text
            except CuteError:
                continue
    return None


def _kinds(d: Description) -> tuple[str, ...]:
    """The published types that may say what a description does, the usual one first."""
    if isinstance(d, Object):
        return _KINDS.get(d.cls, ())
    if isinstance(d, Group):
        return ("int_tuple", "coord", "stride", "tile", "shape")
    return ("int_tuple", "shape", "coord", "stride") if is_number(d) else ()


_KINDS: dict[type, tuple[str, ...]] = {
    Layout: ("layout",), ComposedLayout: ("composed_layout",), Swizzle: ("swizzle",),
    ScaledBasis: ("stride",),
}  # fmt: skip


def _is_value(d: Description) -> bool:
    """Say whether the published notation can write a description."""
    if isinstance(d, Group):
        return all(map(_is_value, d.items))
    return is_bare(d) or is_number(d) or d == Constant(None)


def tile(d: Description) -> str | None:
    """Write a tile, [16:1;_], whose modes are layouts or stay whole; None for anything else."""
    if isinstance(d, Group):
        modes = [tile(x) for x in d.items]
        return None if not modes or None in modes else f"[{';'.join(map(str, modes))}]"
    return item(d) if d == Constant(None) or isinstance(d, Object) and d.cls is Layout and is_bare(d) else None


# ------------------------------------------------------------------ types


def name_of(d: Description) -> str:
    """Return the name of a description's type, with its dialect."""
    known = published(d)
    if known is not None:
        return f"cute.{known[0]}"
    if isinstance(d, (Object, Struct)):
        form = form_of(d)
        return registry.mnemonic_of(d.cls) if form is None else form.name
    if isinstance(d, Constant) and not is_int(d):
        return "numba_cute.constant"
    if isinstance(d, Foreign) and isinstance(d.type, Lacking):
        return str(d.type.type)
    return _NAMES[type(d)]


_NAMES: dict[type, str] = {
    Constant: "numba_cute.int", Scalar: "numba_cute.int", Group: "numba_cute.tuple",
    RegisterFile: "numba_cute.registers",
    Elements: "numba_cute.elements", TensorMap: "numba_cute.nvgpu.tensor_map", Array: "numba.array",
    Foreign: "numba.type",
}  # fmt: skip


def _inner(d: Description) -> str:
    """Return the text between < and > in the type of a value that is not an object."""
    if isinstance(d, (RegisterFile, Elements)):
        return f"{registry.element_name(d.dtype)}, {d.count}"
    if isinstance(d, TensorMap):
        return ""
    if isinstance(d, Array):
        kind = (", readonly" if d.readonly else "") + (", shared" if d.shared else "")
        known = "" if d.extents is None else f" ({','.join(map(str, d.extents))})"
        align = f" align {d.alignment}" if d.alignment else ""
        return f"{registry.element_name(d.dtype)}, {d.ndim}, {d.layout}{kind}{known}{align}"
    if isinstance(d, Foreign):
        return d.type.said if isinstance(d.type, Lacking) else quoted(foreign_name(d.type))
    return item(d)


def _constant(value: Any) -> str:
    if value is None:
        return "_"
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    if type(value) is float:
        return repr(value)
    if type(value) is str:
        return quoted(value)
    if isinstance(value, DType):
        return f"!{registry.element_name(value)}"
    if isinstance(value, enum.Enum):
        known = registry.enumeration_name(type(value))
        return f"#{known}.{value.name}" if known else f"@{quoted(f'{symbol_of(type(value))}.{value.name}')}"
    if isinstance(value, Lacking):
        return value.said
    fields = record_fields(value)
    if fields is not None:
        said = ", ".join(f"{name} = {item(d)}" for name, d in fields.items())
        return f"@{quoted(symbol_of(type(value)))}({said})"
    return f"@{quoted(symbol_of(value))}"


def _number(d: Scalar) -> str:
    known = [] if d.dtype is Int32 else [registry.element_name(d.dtype)]
    known += [f"div={d.divisor}"] if d.divisor != 1 else []
    return f"?{{{' '.join(known)}}}" if known else "?"


def _bare(d: Object) -> str | None:
    """Write a swizzle, basis stride or layout in CuTe's notation; None of anything else, and of unusual ones."""
    fields = fields_by_name(d)
    if d.cls is Swizzle:
        bits, base, shift = d.fields
        return f"S<{item(bits)},{item(base)},{item(shift)}>" if all(map(is_int, d.fields)) else None
    if d.cls is ScaledBasis:
        return _basis(fields)
    if d.cls is Layout:
        shape, stride = fields["shape"], fields["stride"]
        return f"{item(shape)}:{item(stride)}" if is_profile(shape) and is_profile(stride) else None
    if d.cls is ComposedLayout:
        inner, offset, outer = d.fields
        simple = not _is_not_plain(inner) and not _is_not_plain(outer) and is_profile(offset)
        return " o ".join(map(item, d.fields)) if simple else None
    return None


def is_bare(d: Description) -> bool:
    """Return whether a description is written in CuTe's notation, without the name of its type."""
    return isinstance(d, Object) and _bare(d) is not None


def _basis(fields: Fields) -> str | None:
    value, mode = fields["value"], fields["mode"]
    if not is_number(value) or not isinstance(mode, Group) or not mode.items or not all(map(is_int, mode.items)):
        return None
    return "@".join([item(value), *map(item, reversed(mode.items))])


def _is_not_plain(d: Description) -> bool:
    return not isinstance(d, Object) or d.cls is ComposedLayout or _bare(d) is None


def is_profile(d: Description) -> bool:
    """Return whether a description is what shapes, strides and coordinates are made of."""
    if isinstance(d, Group):
        return all(map(is_profile, d.items))
    if isinstance(d, Object):
        return d.cls is ScaledBasis and _bare(d) is not None
    return is_number(d) or d == Constant(None)


def _said(d: Object | Struct, things: tuple[Thing, ...] | None) -> str:
    """Return the text between < and > in the type of an object."""
    form, fields = form_of(d), fields_by_name(d)
    said: list[str] = []
    if registry.mnemonic_of(d.cls) in (registry.OBJECT, registry.STRUCT):
        said.append(f"@{quoted(symbol_of(d.cls))}")
    implied = default_fields(d.cls)
    within = None
    if form is not None:
        within = form.within
        head = form.head(fields) if things is None else list(things)
        if head is not None:
            texts = list(map(thing_text, head))
            said += [",".join(texts)] if form.tight else texts
            implied = implied | form.implied(head)
    for field, value in fields.items():
        if field == within:
            said += _inner_fields(field, value, implied.get(field))
        elif implied.get(field) != value:
            said.append(f"{field} = {item(value)}")
    return ", ".join(said)


def _inner_fields(name: str, value: Description, implied: Description | None) -> list[str]:
    """The fields in which an object in a field differs from the one implied; or all of it."""
    if value == implied:
        return []
    if not isinstance(value, Object) or not isinstance(implied, Object) or value.cls is not implied.cls:
        return [f"{name} = {item(value)}"]
    usual = fields_by_name(implied)
    return [f"{n} = {item(v)}" for n, v in fields_by_name(value).items() if usual[n] != v]
