# SPDX-License-Identifier: Apache-2.0
"""Operations and choices that all architectures share."""

from __future__ import annotations

from typing import Any

from .. import transfer
from ..copy_atom import CopyTraits
from ..dtypes import DType
from ..layout import make_layout
from ..seam import CuteError, StaticEnum, static
from ..tensor import Tensor
from ..vector import ReductionOp as ReductionOp


class OperandMajorMode(StaticEnum):
    """Along which dimension a matrix operand is contiguous: MN (0) or K (1)."""

    MN = "mn"
    K = "k"


class LoadCacheMode(StaticEnum):
    """Which caches a load uses: all levels, L2 alone (GLOBAL), all but to be evicted first (STREAMING), no more after
    this (LAST_USE), none (NONE: fetch again)."""

    ALWAYS = "ca"
    GLOBAL = "cg"
    STREAMING = "cs"
    LAST_USE = "lu"
    NONE = "cv"


class L2PrefetchSize(StaticEnum):
    """How many bytes around an access are fetched into L2."""

    NONE = 0
    SIZE_64B = 64
    SIZE_128B = 128
    SIZE_256B = 256


@static
class CopyUniversalOp:
    """An ordinary copy: loads and stores of `num_bits_per_copy` bits, between any memories and registers; without that
    number, as wide as layouts and alignment prove. Any thread."""

    def traits(self, dtype: DType, num_bits_per_copy: int) -> CopyTraits:
        bits = num_bits_per_copy or dtype.width
        if bits not in (8, 16, 32, 64, 128) or bits % dtype.width:
            raise CuteError(
                f"CopyUniversalOp: num_bits_per_copy {num_bits_per_copy} with {dtype} elements: "
                f"use 8, 16, 32, 64 or 128 bits, a multiple of {dtype.width}"
            )
        tv = make_layout((1, bits // dtype.width), stride=(0, 1))
        return CopyTraits(make_layout(1), tv, tv, tv)

    def issue(self, atom: Any, src: Tensor, dst: Tensor) -> None:
        transfer.move(
            src.iterator, src.layout, dst.iterator, dst.layout, max(atom.num_bits, atom.value_type.width) // 8
        )

    def issue_whole(self, src: Tensor, dst: Tensor) -> None:
        """All elements at once, as wide as can be proved: what an atom without a width does."""
        transfer.move(src.iterator, src.layout, dst.iterator, dst.layout)
