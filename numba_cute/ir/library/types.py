# SPDX-License-Identifier: Apache-2.0
"""Descriptions as types in xDSL: the published ones where they say the same, and this library's own, which hold a
description and are written as spelling.py says."""

from __future__ import annotations

import functools
from typing import Any

from xdsl.dialects import builtin
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute, Data, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from ... import seam
from ...dtypes import DType
from ...seam import CuteError
from ...typed.descriptions import Constant, Description, Group, Scalar
from ..dialect import attributes, notation, printed_types
from ..dialect.checked import checked
from ..text import registry, spelling as _spelling  # noqa: F401 - the forms of types
from ..text.constants import names_of
from ..text.fields import FORMS, is_published
from ..text.reader import BUILTIN, Noted, Reader
from ..text.scanner import SpellingError
from ..text.writer import name_of, parts, published

__all__ = ["TYPES", "DescribedType", "description_of", "description_of_value", "is_described", "reading", "type_of"]


class DescribedType(TypeAttribute, Data[Any]):
    """A type of values that a description tells of. data: the description; a `Noted` one where the text says more than
    it holds."""

    def __new__(cls, data: Any = None) -> Any:
        return data if isinstance(data, Attribute) else super().__new__(cls)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        """Read what stands after the type's name: what it holds, or a published type where that says the same."""
        found = _read(cls.name, parser)
        return found.data if isinstance(found, cls) else found

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands after the type's name."""
        d = self.data
        inner = parts(d.description, d.things)[1] if isinstance(d, Noted) else parts(d)[1]
        if inner:
            printer.print_string(f"<{inner}>")


def _make(name: str) -> type[DescribedType]:
    title = "".join(part.capitalize() for part in name.replace(".", "_").split("_")) + "Type"
    return irdl_attr_definition(type(title, (DescribedType,), {"name": name, "__module__": __name__}))


TYPES: dict[str, type[DescribedType]] = {
    name: _make(name) for name in (*BUILTIN, *FORMS, registry.OBJECT, registry.STRUCT) if not is_published(name)
}
"""The types of this library's dialect, and of `numba`, by name."""


def _add(cls: type) -> None:
    """Make the type of a class of the library, unless it has one."""
    name = registry.mnemonic_of(cls)
    if name not in TYPES:
        TYPES[name] = _make(name)


seam.tell_marked(_add)


def _builtin(dtype: DType) -> Any:
    name = registry.element_name(dtype)
    if dtype.is_float:
        return getattr(builtin, name)
    sign = Signedness.UNSIGNED if dtype.kind == "uint" else Signedness.SIGNLESS
    return IntegerType(1 if dtype.kind == "bool" else dtype.width, sign)


_BUILTIN: dict[DType, Any] = {dtype: _builtin(dtype) for dtype in registry.ELEMENTS.values()}
_DTYPES: dict[Attribute, DType] = {ty: dtype for dtype, ty in _BUILTIN.items()}


def type_of(d: Description, kind: str | None = None) -> Attribute:
    """Return the type of the values that a description tells of: MLIR's own of a number that is known only at run time
    (`i32`, `ui32`, `i1`, `f32`), unless something is known to divide it; else a published one that says the same; else
    one of this library's. kind: the published type, as "shape", or the library's that it is to be if it can."""
    text = None if kind is None else published(d, kind)
    if text is None and isinstance(d, Scalar) and d.divisor == 1:
        return _BUILTIN[d.dtype]  # type: ignore[no-any-return]
    text = text or published(d)
    if text is not None:
        return _value_type(*text)
    name = name_of(d)
    if is_published(name):
        return _printed_type(name, parts(d)[1])
    return TYPES[name](d)  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=8192)
def _value_type(kind: str, text: str) -> Attribute:
    return attributes.type_of(kind, checked(kind, notation.read(kind, text)))


@functools.lru_cache(maxsize=8192)
def _printed_type(name: str, text: str) -> Attribute:
    return printed_types.TYPES[name](printed_types.parsed(name, text))


def is_described(t: Attribute) -> bool:
    """Return whether a type is of the dialect `cute`, or of one of this library's."""
    return isinstance(t, (DescribedType, attributes.CuteType, printed_types.PrintedType))


def description_of(t: Attribute) -> Description:
    """Return the description of a type's values. Raises CuteError for a type that no kernel has."""
    if isinstance(t, DescribedType):
        return t.data.description if isinstance(t.data, Noted) else t.data
    if t in _DTYPES:
        return Scalar(_DTYPES[t])
    if isinstance(t, (attributes.CuteType, printed_types.PrintedType)):
        return _described(t)
    raise CuteError(
        f"{t} is not a type of a kernel's values: they are the types of the dialects cute, numba_cute and numba, and "
        f"the numbers {', '.join(map(str, _DTYPES))}"
    )


def description_of_value(value: Any) -> Description:
    """Describe a value of an argument: an SSA value, a constant or a tuple of such."""
    if isinstance(value, tuple):
        return Group(tuple(map(description_of_value, value)))
    return description_of(value.type) if isinstance(value, SSAValue) else Constant(value)


@functools.lru_cache(maxsize=8192)
def _described(t: Any) -> Description:
    if isinstance(t, attributes.CuteType):
        return Reader(notation.write(t.kind, t.data)).value(t.kind)
    return Reader(f"<{printed_types.written(t.name, t.data)}>").body(t.name, 0)


# ------------------------------------------------------------------ reading

_PUBLISHED: dict[str, Any] = {f"cute.{kind}": cls for kind, cls in attributes.TYPES.items()} | printed_types.TYPES


class _Reading(TypeAttribute, Data[Any]):
    """Reads a type of a name that is of a published dialect: as it is published, or an old one of this library's. What
    it makes is the type itself."""

    def __new__(cls, data: Any = None) -> Any:
        return data

    def print_parameter(self, printer: Printer) -> None:
        raise NotImplementedError

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        """Read what stands after the type's name."""
        found, start = _PUBLISHED.get(cls.name), parser.pos
        refused: ParseError | None = None
        if found is not None:
            try:
                return found(found.parse_parameter(parser))
            except ParseError as e:
                refused = e
                parser._resume_from(start)
        try:
            return _read(cls.name, parser)
        except ParseError as e:
            raise (refused if refused is not None and _is_quoted(parser, start) else e) from None


def _is_quoted(parser: AttrParser, start: int) -> bool:
    text = parser.lexer.input.content
    return '"' in text[start : notation.body_end(text, start)]


def _read(name: str, parser: AttrParser) -> Attribute:
    def alias(name: str) -> Description | None:
        found = parser.attribute_aliases.get(f"!{name}")
        return None if found is None else description_of(found)

    reader = Reader(parser.lexer.input.content, parser.pos, alias, names_of(parser))
    try:
        found = reader.body_noted(name, parser.pos)
    except SpellingError as e:
        parser.raise_error(e.problem, e.position)
    parser._resume_from(reader.position)
    if reader.old is not None:
        parser.ctx.old = True  # type: ignore[attr-defined]
    own = registry.own_name(name)
    if not isinstance(found, Noted) and (isinstance(found, Scalar) or is_published(name_of(found))):
        return type_of(found, own.rpartition(".")[2] if own in BUILTIN else None)
    return TYPES[own](found)  # type: ignore[no-any-return]


@functools.cache
def reading(name: str) -> type[Any] | None:
    """Return what reads a type of this name of a published dialect; None if there is none."""
    if name in _PUBLISHED or is_published(name) and registry.own_name(name) in TYPES:
        return irdl_attr_definition(type("Reading", (_Reading,), {"name": name, "__module__": __name__}))
    return None
