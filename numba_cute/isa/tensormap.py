# SPDX-License-Identifier: Apache-2.0
"""What a tensor map says, as a record: the operands of cuTensorMapEncodeTiled (CUDA driver API, "Tensor Map Object
Management"), checked by its rules."""

from __future__ import annotations

from dataclasses import dataclass

from ..dtypes import DType
from ..seam import CuteError, Leaf

SWIZZLE_SPAN = {"none": 0, "32B": 32, "64B": 64, "128B": 128}
L2_PROMOTIONS = ("none", "64B", "128B", "256B")
OOB_FILLS = ("zero", "nan")


@dataclass(frozen=True)
class TensorMapRecord(Leaf):
    """A tensor in global memory as TMA sees it, and the box that one instruction copies.

    dtype: the elements. address: bytes, a multiple of 16. dims: elements in each dimension, innermost (contiguous)
    first. strides_bytes: bytes between neighbours in dimensions 1 and on. box: elements of the box in each dimension.
    element_strides: the step in each dimension (1 for all if not given); a box of n at step s holds ceil(n / s).
    swizzle: "none", "32B", "64B" or "128B". interleave: "none" (interleaved layouts are not supported). oob_fill:
    what elements outside the tensor read as, "zero" or "nan". l2_promotion: "none", "64B", "128B" or "256B".
    """

    dtype: DType
    address: int
    dims: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...] = ()
    swizzle: str = "none"
    interleave: str = "none"
    oob_fill: str = "zero"
    l2_promotion: str = "128B"

    def __post_init__(self) -> None:
        if not self.element_strides:
            object.__setattr__(self, "element_strides", (1,) * len(self.dims))
        self._check_choices()
        rank = len(self.dims)
        if not 1 <= rank <= 5:
            raise CuteError(f"tensor map: dims {self.dims} has rank {rank}; TMA takes 1 to 5; merge or slice modes")
        for name, values, want in (
            ("strides_bytes", self.strides_bytes, rank - 1),
            ("box", self.box, rank),
            ("element_strides", self.element_strides, rank),
        ):
            if len(values) != want:
                raise CuteError(f"tensor map: {name} {values} must have {want} entries for dims {self.dims}")
        if self.address % 16:
            raise CuteError(f"tensor map: address {self.address:#x} is not a multiple of 16 bytes; align the tensor")
        for d, n in enumerate(self.dims):
            if not 1 <= n <= 1 << 32:
                raise CuteError(f"tensor map: dims[{d}] is {n}; it must be in 1 to 2^32")
        for d, stride in enumerate(self.strides_bytes, 1):
            if stride % 16 or not 0 <= stride < 1 << 40:
                raise CuteError(
                    f"tensor map: the stride of dimension {d} is {stride} bytes; it must be a multiple of 16 below "
                    f"2^40; pad the contiguous dimension to a multiple of {max(1, 128 // self.dtype.width)} elements"
                )
        self._check_box()

    def _check_choices(self) -> None:
        for name, value, legal in (
            ("swizzle", self.swizzle, tuple(SWIZZLE_SPAN)),
            ("interleave", self.interleave, ("none",)),
            ("oob_fill", self.oob_fill, OOB_FILLS),
            ("l2_promotion", self.l2_promotion, L2_PROMOTIONS),
        ):
            if value not in legal:
                raise CuteError(f"tensor map: {name} {value!r} is none of {', '.join(map(repr, legal))}")
        if self.oob_fill == "nan" and not self.dtype.is_float:
            raise CuteError(f"tensor map: oob_fill 'nan' needs a floating-point dtype, not {self.dtype}; use 'zero'")

    def _check_box(self) -> None:
        for d, n in enumerate(self.box):
            if not 1 <= n <= 256:
                raise CuteError(f"tensor map: box[{d}] is {n} elements; it must be in 1 to 256; use a smaller tile")
        for d, n in enumerate(self.element_strides):
            if not 1 <= n <= 8:
                raise CuteError(f"tensor map: element_strides[{d}] is {n}; it must be in 1 to 8")
        if self.element_strides[0] != 1:
            raise CuteError(
                f"tensor map: element_strides[0] is {self.element_strides[0]}; TMA ignores it, so it must be 1"
            )
        inner = self.box[0] * self.dtype.bytes
        if inner % 16:
            raise CuteError(
                f"tensor map: the inner box is {self.box[0]} x {self.dtype} = {inner} bytes; "
                f"it must be a multiple of 16"
            )
        span = SWIZZLE_SPAN[self.swizzle]
        if span and inner > span:
            raise CuteError(
                f"tensor map: the inner box is {inner} bytes, more than the {span} of swizzle {self.swizzle!r}; "
                f"use a narrower box or a wider swizzle"
            )

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def box_shape(self) -> tuple[int, ...]:
        """The elements of the box that reach shared memory in each dimension, innermost first."""
        return tuple(-(-n // s) for n, s in zip(self.box, self.element_strides))

    @property
    def box_bytes(self) -> int:
        """The bytes that one copy delivers, elements outside the tensor included."""
        total = self.dtype.bytes
        for n in self.box_shape:
            total *= n
        return total

    @property
    def extent_bytes(self) -> int:
        """The bytes from `address` to the end of the last element."""
        reach = (self.dims[0] - 1) * self.dtype.bytes
        reach += sum((n - 1) * s for n, s in zip(self.dims[1:], self.strides_bytes))
        return reach + self.dtype.bytes
