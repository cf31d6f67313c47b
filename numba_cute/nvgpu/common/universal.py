# SPDX-License-Identifier: Apache-2.0
"""The matrix operation that every GPU has: one multiplication and addition of one thread."""

from __future__ import annotations

from typing import Any

from ... import seam
from ...atoms.fragments import register_fragment
from ...atoms.op import MmaOp, MmaTraits
from ...dtypes import DType
from ...layout import make_layout
from ...seam import CuteError, static
from ...tensor.ssa import elementwise
from ...tensor.tensor import Tensor

__all__ = ["MmaUniversalOp"]


@static
class MmaUniversalOp(MmaOp):
    """Multiply and add one element each, d += a * b, by one thread: `cute.gemm` of register fragments.
    PTX fma, mul and add, any target.

    abacc_dtype: an integer or float type, in which it is computed; operands of others are converted to it. Floats use
    fma. Raises CuteError for Boolean."""

    abacc_dtype: DType

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
        for t, name in ((d, "d"), (a, "a"), (b, "b")):
            if t.shape not in (1, (1,), ((1,),)):
                raise CuteError(f"gemm: {name} has shape {t.shape}; fragments of MmaUniversalOp are (1, rest…)")
        dtype = self.abacc_dtype
        x, y, z = (t.load().to(dtype) for t in (a, b, d))
        product = x * y
        total = elementwise("fma", x, y, z) if dtype.is_float else product + z
        value = seam.current().select(accumulate, total[0], product[0])
        d[0] = value
