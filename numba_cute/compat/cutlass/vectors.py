# SPDX-License-Identifier: Apache-2.0
"""`cutlass.base_dsl.typing.Vector`: a few numbers of a thread as one value, whose bits are viewed as other numbers."""

from __future__ import annotations

from typing import Any

from ...dtypes import DType, Uint8, Uint16, Uint32, Uint64
from ...seam import CuteError, current, frozen, traced
from ...tensor.ssa import TensorSSA
from ..ptx_registers import as_type

__all__ = ["Vector", "VectorType", "bits_as", "from_elements"]

_WORDS = {8: Uint8, 16: Uint16, 32: Uint32, 64: Uint64}


@frozen
class Vector:
    """Numbers of one type. elements: they, in a tuple. dtype: their element type."""

    elements: Any
    dtype: DType

    @staticmethod
    @traced
    def from_elements(elements: Any, dtype: DType, *, loc: Any = None, ip: Any = None) -> Vector:
        """Make a vector. elements: its numbers. dtype: the element type that they get."""
        return Vector(tuple(dtype(x) for x in elements), dtype)

    def to_elements(self, *, loc: Any = None, ip: Any = None) -> Any:
        """Return its numbers, in a tuple."""
        return self.elements

    def ir_value(self, *, loc: Any = None, ip: Any = None) -> Vector:
        """Return the vector itself. loc, ip: taken."""
        return self

    def bitcast(self, dtype: DType, *, loc: Any = None, ip: Any = None) -> Vector:
        """View all its bits as numbers of another element type, `dtype`. CuteError: their widths are not powers of two
        from 8 to 64 bits, or the bits are no whole number of them."""
        bits = self.dtype.width * len(self.elements)
        if not {self.dtype.width, dtype.width} <= set(_WORDS) or bits % dtype.width:
            raise CuteError(f"Vector.bitcast: {len(self.elements)} elements of {self.dtype} are not some of {dtype}")
        words = [as_type(x, _WORDS[self.dtype.width]) for x in self.elements]
        return Vector(tuple(as_type(w, dtype) for w in _rewidened(words, self.dtype.width, dtype.width)), dtype)

    def __getitem__(self, index: Any) -> Any:
        return self.elements[index]


@frozen
class VectorType:
    """A type of vectors, by which functions of MLIR make them. shape: the extents. element_type: the element type."""

    shape: tuple[int, ...]
    element_type: DType

    @staticmethod
    @traced
    def get(shape: Any, element_type: DType, *, loc: Any = None) -> VectorType:
        """Make one. shape: one extent, in a list. element_type: the element type."""
        return VectorType(tuple(shape), element_type)


@traced
def from_elements(result: Any, elements: Any, *, loc: Any = None, ip: Any = None) -> TensorSSA:
    """Make a vector of registers. result: its VectorType. elements: its numbers. CuteError: they are not as many."""
    values = tuple(elements)
    if not isinstance(result, VectorType) or result.shape != (len(values),):
        raise CuteError(f"vector.from_elements: result {result!r} is not a type of a vector of {len(values)} elements")
    dtype = result.element_type
    return TensorSSA(current().pack(dtype, tuple(dtype(x) for x in values)), result.shape, dtype)


@traced
def bits_as(result: VectorType, source: TensorSSA) -> TensorSSA:
    """View the bits of a vector of registers, `source`, as another's. result: its VectorType. CuteError: there are
    other bits, or widths that are none of 8, 16, 32 and 64."""
    numbers = Vector(tuple(source[i] for i in range(source.shape[0])), source.dtype)
    return from_elements(result, numbers.bitcast(result.element_type).elements)


def _rewidened(words: list[Any], width: int, other: int) -> list[Any]:
    """Words of a width as words of another, the first lowest."""
    if other <= width:
        return [_WORDS[other](w >> i) for w in words for i in range(0, width, other)]
    wide, parts = _WORDS[other], other // width
    made = []
    for first in range(0, len(words), parts):
        word = wide(words[first])
        for i in range(1, parts):
            word = word | (wide(words[first + i]) << (i * width))
        made.append(word)
    return made
