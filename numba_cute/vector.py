# SPDX-License-Identifier: Apache-2.0
"""Register vectors: what `Tensor.load` gives and `Tensor.store` takes."""

from __future__ import annotations

from typing import Any

from . import layout, seam
from .dtypes import DType
from .seam import CuteError, static


@static
class TensorSSA:
    """An immutable vector in registers: `vector` holds the elements of a tensor of `shape` in colexicographic
    order, each of type `dtype`."""

    vector: Any
    shape: Any
    dtype: DType

    @property
    def element_type(self) -> DType:
        return self.dtype

    def to(self, dtype: DType) -> TensorSSA:
        """Each element converted, to nearest even where it must be rounded."""
        if not isinstance(dtype, DType):
            raise CuteError(f"to: dtype {dtype!r} is not an element type; use one like cute.BFloat16")
        if dtype == self.dtype:
            return self
        count = int(layout.size(self.shape))
        return TensorSSA(seam.current().convert(self.vector, self.dtype, dtype, count), self.shape, dtype)

    def __repr__(self) -> str:
        return f"TensorSSA({self.dtype}, {self.shape})"
