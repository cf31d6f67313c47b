# SPDX-License-Identifier: Apache-2.0
"""The matrix operation that every GPU has: one multiplication and addition of one thread."""

from __future__ import annotations

from typing import Any

from ...atoms.fragments import register_fragment
from ...atoms.op import MmaOp, MmaTraits
from ...dtypes import DType
from ...layout import make_layout
from ...seam import CuteError, frozen
from ...tensor.algebra import rank, size
from ...tensor.ssa import TensorSSA, elementwise, where
from ...tensor.tensor import Tensor

__all__ = ["MmaUniversalOp"]


@frozen
class MmaUniversalOp(MmaOp):
    """Multiply and add one element each, d += a * b, by one thread: `cute.gemm` of register fragments.
    PTX fma, mul and add, any target.

    abacc_dtype: an integer or float type, in which it is computed; operands of others are converted to it. Floats use
    fma. Raises CuteError for Boolean.

    >>> cute.make_mma_atom(nvgpu.MmaUniversalOp(cute.Float32)).shape_mnk
    (1, 1, 1)
    """

    abacc_dtype: DType
    whole = True

    def __post_init__(self) -> None:
        if not isinstance(self.abacc_dtype, DType) or self.abacc_dtype.kind == "bool":
            raise CuteError(f"MmaUniversalOp: abacc_dtype {self.abacc_dtype!r} is not an integer or float type")

    @property
    def a_type(self) -> DType:
        return self.abacc_dtype

    b_type = accumulator = a_type

    def traits(self) -> MmaTraits:
        one = make_layout((1, 1))
        return MmaTraits((1, 1, 1), make_layout(1), one, one, one)

    def fragment(self, operand: str, input: Tensor | tuple[Any, ...]) -> Tensor:
        return register_fragment(operand, input, self.abacc_dtype)

    def issue(self, d: Tensor, a: Tensor, b: Tensor, accumulate: Any, **words: Any) -> None:
        self.issue_whole(d, a, b, (1, 1, 1), accumulate)

    def issue_whole(self, d: Tensor, a: Tensor, b: Tensor, extents: tuple[int, int, int], accumulate: Any) -> None:
        """Add a column of `a` times a row of `b` for each step of K, each loaded once."""
        for t, name in ((d, "d"), (a, "a"), (b, "b")):
            if size(t, (0,)) != 1:
                raise CuteError(f"gemm: {name} has shape {t.shape}; fragments of MmaUniversalOp are (1, rest…)")
        (m, n, k), dtype = extents, self.abacc_dtype
        total = d.load().reshape((m, n))
        for step in range(k):
            x, y = (t[None, None, step] if rank(t) == 3 else t for t in (a, b))
            column, row = x.load().to(dtype).reshape((m, 1)), y.load().to(dtype).reshape((1, n))
            sum_ = _multiply_add(column, row, total.to(dtype))
            if step == 0 and accumulate is not True:
                sum_ = where(accumulate, sum_, column * row)
            total = sum_.to(d.element_type)
        d.store(total.reshape(d.shape))


def _multiply_add(x: TensorSSA, y: TensorSSA, z: TensorSSA) -> TensorSSA:
    total: TensorSSA = elementwise("fma", x, y, z) if z.dtype.is_float else x * y + z
    return total
