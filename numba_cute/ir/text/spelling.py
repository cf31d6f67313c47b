# SPDX-License-Identifier: Apache-2.0
"""`spell` and `parse_description`: descriptions as the text of types, and back."""

from __future__ import annotations

from typing import Any

from ...typed.descriptions import Description, Object, Scalar
from . import atom_forms as _atom_forms, atoms as _atoms, forms as _forms, plain_types as _plain_types, registry  # noqa: F401 - the types
from .fields import has_forms
from .names import Names
from .reader import Reader
from .writer import typed

__all__ = ["has_form", "parse_description", "spell"]


def spell(d: Description) -> str:
    """Write a description as a type: `!cute.memref<f16, smem, align<128>, "(64,128):(1,64)">`; a number that is known
    only at run time as MLIR does, `i32`, unless something is known to divide it."""
    if isinstance(d, Scalar) and d.divisor == 1:
        return registry.element_name(d.dtype)
    return typed(d)


def has_form(d: Description) -> bool:
    """Return whether a description is of an object that the IR writes in a way of its own: a layout, a swizzle, a
    pointer, a tensor, a register vector, an atom or a tiled object."""
    return isinstance(d, Object) and has_forms(d.cls)


def parse_description(text: str, names: Any = None) -> Description:
    """Read what `spell` writes, and everything that may stand within a type: CuTe's own notation of layouts and
    swizzles, with quotes or without, numbers and tuples. names: as for `parse`. Raises CuteError with the column and
    what was expected."""
    reader = Reader(text, names=Names(names))
    word = reader.peek_word()
    if word in registry.ELEMENTS and len(word) == len(text.strip()):
        return Scalar(registry.ELEMENTS[word])
    return reader.whole()
