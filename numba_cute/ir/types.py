# SPDX-License-Identifier: Apache-2.0
"""The types of the dialects `cute`, `cute_nvgpu` and `numba` in xDSL: each holds a description, and is written as
spelling.py says."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import builtin
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .. import seam
from ..dtypes import DType
from ..seam import CuteError
from ..typed.descriptions import Description, Scalar
from . import registry, spelling as _spelling  # noqa: F401 - the forms of types
from .constants import names_of
from .fields import FORMS
from .reader import BUILTIN, Noted, Reader
from .scanner import SpellingError
from .writer import name_of, parts

__all__ = ["TYPES", "DescribedType", "description_of", "type_of", "types_of"]


class DescribedType(TypeAttribute, Data[Any]):
    """A type of values that a description tells of. data: the description; a `Noted` one where the text says more than
    it holds."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        """Read what stands after the type's name in the text of a module."""

        def alias(name: str) -> Description | None:
            found = parser.attribute_aliases.get(f"!{name}")
            return None if found is None else description_of(found)

        reader = Reader(parser.lexer.input.content, parser.pos, alias, names_of(parser))
        try:
            found = reader.body_noted(cls.name, parser.pos)
        except SpellingError as e:
            parser.raise_error(e.problem, e.position)
        parser._resume_from(reader.position)
        return found

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands after the type's name."""
        d = self.data
        inner = parts(d.description, d.things)[1] if isinstance(d, Noted) else parts(d)[1]
        if inner:
            printer.print_string(f"<{inner}>")


class _NumberType(DescribedType):
    """`!cute.int`: of a number of which nothing more is known than its type, the builtin type is made in its place."""

    def __new__(cls, data: Any = None) -> Any:
        if isinstance(data, Scalar) and data.divisor == 1:
            return _BUILTIN[data.dtype]
        return super().__new__(cls)


def _make(name: str) -> type[DescribedType]:
    base = _NumberType if name == "cute.int" else DescribedType
    title = "".join(part.capitalize() for part in name.replace(".", "_").split("_")) + "Type"
    return irdl_attr_definition(type(title, (base,), {"name": name, "__module__": __name__}))


TYPES: dict[str, type[DescribedType]] = {
    name: _make(name) for name in (*BUILTIN, *FORMS, registry.OBJECT, registry.STRUCT)
}
"""The types by name, with their dialects."""


def _add(cls: type) -> None:
    """Make the type of a class of the library, unless it has one."""
    name = registry.mnemonic_of(cls)
    if name not in TYPES:
        TYPES[name] = _make(name)


seam.tell_marked(_add)


def types_of(dialect: str) -> list[type[Attribute]]:
    """Return the types of a dialect: "cute", "cute_nvgpu" or "numba"."""
    return [cls for name, cls in sorted(TYPES.items()) if name.partition(".")[0] == dialect]


def _builtin(dtype: DType) -> Any:
    name = registry.element_name(dtype)
    if dtype.is_float:
        return getattr(builtin, name)
    sign = Signedness.UNSIGNED if dtype.kind == "uint" else Signedness.SIGNLESS
    return IntegerType(1 if dtype.kind == "bool" else dtype.width, sign)


_BUILTIN: dict[DType, Any] = {dtype: _builtin(dtype) for dtype in registry.ELEMENTS.values()}
_DTYPES: dict[Attribute, DType] = {ty: dtype for dtype, ty in _BUILTIN.items()}


def type_of(d: Description) -> Attribute:
    """Return the type of the values that a description tells of: MLIR's own of a number that is known only at run time
    (`i32`, `ui32`, `i1`, `f32`), unless something is known to divide it."""
    if isinstance(d, Scalar) and d.divisor == 1:
        return _BUILTIN[d.dtype]  # type: ignore[no-any-return]
    return TYPES[name_of(d)](d)


def description_of(t: Attribute) -> Description:
    """Return the description of a type's values. Raises CuteError for a type that no kernel has."""
    if isinstance(t, DescribedType):
        return t.data.description if isinstance(t.data, Noted) else t.data
    if t in _DTYPES:
        return Scalar(_DTYPES[t])
    raise CuteError(
        f"{t} is no type of a kernel's values: they are the types of the dialects cute, cute_nvgpu and numba, and the "
        f"numbers {', '.join(map(str, _DTYPES))}"
    )
