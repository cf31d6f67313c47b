# SPDX-License-Identifier: Apache-2.0
"""The types of this library's dialect, and of `numba`, that are no class's: numbers, tuples, registers, arrays."""

from __future__ import annotations

from collections.abc import Callable

from ...compiler.inspection.foreign import foreign_of
from ...dtypes import DType
from ...typed.descriptions import Array, Constant, Description, Elements, Foreign, RegisterFile, Scalar, TensorMap
from . import registry
from .fields import is_int
from .names import Lacking
from .reader import BUILTIN, Reader
from .scanner import quoted
from .tuples import TUPLES

DIMENSIONS = 64
"""The most that NumPy's arrays have."""


def _element(reader: Reader) -> DType:
    """Read the name of an element type, with a `!` before it or without."""
    reader.take("!")
    word = reader.peek_word()
    if word not in registry.ELEMENTS:
        reader.expected(f"an element type, one of {', '.join(registry.ELEMENTS)}")
    reader.word()
    return registry.ELEMENTS[word]


def _of_int(reader: Reader, start: int) -> Description:
    found = reader.item()
    if not is_int(found) and not isinstance(found, Scalar):
        reader.fail("!numba_cute.int<…> is of an int, 64, or of a number known only at run time, ?{div=4}", start)
    return found


def _of_constant(reader: Reader, start: int) -> Description:
    found = reader.item()
    if not isinstance(found, Constant):
        reader.fail("!numba_cute.constant<…> is of a value that is known whole", start)
    return found


def _of_tuple(reader: Reader, name: str, start: int) -> Description:
    found = reader.item()
    takes, what = TUPLES[name]
    if not takes(found):
        reader.fail(f"!{name}<…> is of {what}", start)
    return found


def _of_registers(reader: Reader, start: int) -> Description:
    dtype = _element(reader)
    reader.need(",")
    return RegisterFile(dtype, reader.need_integer("the number of registers"))


def _of_elements(reader: Reader, start: int) -> Description:
    dtype = _element(reader)
    reader.need(",")
    return Elements(dtype, reader.need_integer("the number of elements"))


def _of_array(reader: Reader, start: int) -> Description:
    dtype = _element(reader)
    reader.need(",")
    place = reader.position
    ndim = reader.need_integer("the number of dimensions")
    if not 0 <= ndim <= DIMENSIONS:
        reader.fail(f"an array has 0 to {DIMENSIONS} dimensions", place)
    reader.need(",")
    layout = reader.word()
    if layout not in ("C", "F", "A"):
        reader.fail(f"the layout of an array is C, F or A, not {layout}", start)
    kind = reader.word() if reader.take(",") else None
    readonly = kind == "readonly"
    if readonly:
        kind = reader.word() if reader.take(",") else None
    if kind not in (None, "shared"):
        reader.fail("after an array's layout there may stand 'readonly' and 'shared' only", start)
    extents, alignment = _of_shared(reader, ndim) if kind else (None, 0)
    return Array(dtype, ndim, layout, readonly, kind is not None, extents, alignment)


def _of_shared(reader: Reader, ndim: int) -> tuple[tuple[int, ...] | None, int]:
    """Read what is known of an array in shared memory: its extents and its alignment."""
    extents: list[int] = []
    if reader.take("("):
        while len(extents) < ndim:
            extents.append(reader.need_integer("an extent"))
            reader.need("," if len(extents) < ndim else ")")
    known = reader.peek_word() == "align" and reader.word() is not None
    return tuple(extents) or None, reader.need_integer("the alignment in bytes") if known else 0


def _of_foreign(reader: Reader, start: int) -> Description:
    name = reader.string()
    if name is None:
        reader.expected("the name of a Numba type, a string")
    return Foreign(foreign_of(name) or Lacking(name, quoted(name), "numba.type"))


def _tuple_reader(name: str) -> Callable[[Reader, int], Description]:
    return lambda reader, start: _of_tuple(reader, name, start)


BUILTIN |= {
    "numba_cute.int": _of_int,
    "numba_cute.constant": _of_constant,
    **{name: _tuple_reader(name) for name in TUPLES},
    "numba_cute.registers": _of_registers,
    "numba_cute.elements": _of_elements,
    "numba_cute.nvgpu.tensor_map": lambda reader, start: TensorMap(),
    "numba.array": _of_array,
    "numba.type": _of_foreign,
}
