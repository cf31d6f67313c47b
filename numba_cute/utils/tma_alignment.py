# SPDX-License-Identifier: Apache-2.0
"""Check that TMA can copy the matrices of a product."""

from __future__ import annotations

from ..dtypes import DType
from ..seam import CuteError

__all__ = ["check_gemm_tma_alignment"]


def check_gemm_tma_alignment(
    m: int, n: int, k: int, a_dtype: DType, b_dtype: DType, c_dtype: DType, a_major: str, b_major: str, c_major: str,
    output_tensor_name: str = "C",
) -> None:  # fmt: skip
    """Check that the contiguous extent of each matrix of a product is a multiple of 16 bytes, as TMA takes it.

    m, n, k: the product's extents. a_dtype, b_dtype, c_dtype: the elements of A (m, k), B (n, k) and C (m, n). a_major:
    "m" or "k", the contiguous mode; b_major: "n" or "k"; c_major: "m" or "n". output_tensor_name: C's name in errors.
    On the host. Raises CuteError for another extent or mode.

    >>> utils.blackwell_helpers.check_gemm_tma_alignment(128, 64, 60, *[cute.Float16] * 3, "k", "k", "n")
    Traceback (most recent call last):
        ...
    numba_cute.CuteError: check_gemm_tma_alignment: A has 60 elements of Float16 along k, its contiguous ...
    """
    extents = {"m": m, "n": n, "k": k}
    for name, dtype, major, modes in (
        ("A", a_dtype, a_major, "mk"), ("B", b_dtype, b_major, "nk"), (output_tensor_name, c_dtype, c_major, "mn"),
    ):  # fmt: skip
        if major not in tuple(modes):
            raise CuteError(f"check_gemm_tma_alignment: {name} is {major!r}-major; it must be {' or '.join(modes)}")
        if extents[major] * dtype.width % 128:
            raise CuteError(
                f"check_gemm_tma_alignment: {name} has {extents[major]} elements of {dtype} along {major}, its "
                f"contiguous mode: TMA takes multiples of 16 bytes, {128 // dtype.width} elements; pad it"
            )
