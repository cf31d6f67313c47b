# SPDX-License-Identifier: Apache-2.0
"""The contiguous mode of a matrix."""

from __future__ import annotations

from typing import Any

from ..nvgpu.warpgroup import OperandMajorMode
from ..seam import CuteError, StaticEnum
from ..tensor.tensor import Tensor

__all__ = ["LayoutEnum"]


class LayoutEnum(StaticEnum):
    """The order of a matrix: row major (its second mode is contiguous) or column major (its first one is).

    >>> utils.LayoutEnum.ROW_MAJOR.is_k_major_a()
    True
    """

    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"

    @staticmethod
    def from_tensor(tensor: Tensor) -> LayoutEnum:
        """Return the order of the first two modes of `tensor`, one of which must have a static stride of 1."""
        strides = tensor.layout.stride[:2] if isinstance(tensor.layout.stride, tuple) else ()
        if len(strides) < 2:
            raise CuteError(f"LayoutEnum.from_tensor: {tensor} has one mode; give a tensor of two or more")
        if isinstance(strides[1], int) and strides[1] == 1:
            return LayoutEnum.ROW_MAJOR
        if isinstance(strides[0], int) and strides[0] == 1:
            return LayoutEnum.COL_MAJOR
        raise CuteError(f"LayoutEnum.from_tensor: strides {strides} of {tensor}: neither mode is contiguous (stride 1)")

    def is_k_major_a(self) -> bool:
        """Return whether an (M, K) operand A of this order is contiguous along K."""
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_a(self) -> bool:
        """Return whether an (M, K) operand A of this order is contiguous along M."""
        return self is LayoutEnum.COL_MAJOR

    def is_k_major_b(self) -> bool:
        """Return whether an (N, K) operand B of this order is contiguous along K."""
        return self is LayoutEnum.ROW_MAJOR

    def is_n_major_b(self) -> bool:
        """Return whether an (N, K) operand B of this order is contiguous along N."""
        return self is LayoutEnum.COL_MAJOR

    def is_n_major_c(self) -> bool:
        """Return whether an (M, N) matrix C of this order is contiguous along N."""
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_c(self) -> bool:
        """Return whether an (M, N) matrix C of this order is contiguous along M."""
        return self is LayoutEnum.COL_MAJOR

    def mma_major_mode(self) -> Any:
        """Return the `nvgpu.OperandMajorMode` of an (M, K) or (N, K) operand of this order."""
        return self.sm90_mma_major_mode()

    def sm90_mma_major_mode(self) -> Any:
        """Return the `nvgpu.warpgroup.OperandMajorMode` of an (M, K) or (N, K) operand of this order."""
        return OperandMajorMode.K if self is LayoutEnum.ROW_MAJOR else OperandMajorMode.MN
