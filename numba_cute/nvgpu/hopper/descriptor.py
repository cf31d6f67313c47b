# SPDX-License-Identifier: Apache-2.0
"""Shared memory as wgmma reads it: its layouts, and views of it as matrix descriptors, tensors whose elements are what
the instruction takes for an operand."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import layout
from ...dtypes import DType, Int32, Uint32, Uint64
from ...isa.facts.bits import WgmmaDescriptor, encode_address
from ...isa.facts.canonical import K_MAJOR, MN_MAJOR, chunk_offsets
from ...layout import ComposedLayout, Layout, Swizzle, make_composed_layout, make_layout
from ...layout.pure import pure
from ...seam import CuteError, StaticEnum, is_exact, known, known_as, static, traced
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.tensor import Tensor
from ..common.choices import OperandMajorMode

__all__ = ["SmemLayoutAtomKind", "make_smem_layout_atom"]


class SmemLayoutAtomKind(StaticEnum):
    """A shared memory layout that wgmma reads: the contiguous dimension (MN or K), and the bytes of a swizzled row."""

    MN_INTER = ("mn", 0)
    MN_SW32 = ("mn", 1)
    MN_SW64 = ("mn", 2)
    MN_SW128 = ("mn", 3)
    K_INTER = ("k", 0)
    K_SW32 = ("k", 1)
    K_SW64 = ("k", 2)
    K_SW128 = ("k", 3)


@traced
@known_as("cute_nvgpu.warpgroup")
def make_smem_layout_atom(kind: SmemLayoutAtomKind, element_type: DType) -> ComposedLayout:
    """Make the smallest tile of a shared memory layout: 8 rows of 16, 32, 64 or 128 bytes, S o 0 o (rows, row).

    kind: the contiguous dimension and the bytes of a row, a member of SmemLayoutAtomKind; CuteError for others.
    element_type: the elements' type. The swizzle counts bytes: allocate with `layout.outer` and `swizzle=layout.inner`,
    1024-byte aligned. On the host or in a kernel; it issues nothing."""
    if not isinstance(kind, SmemLayoutAtomKind):
        raise CuteError(f"make_smem_layout_atom: kind {kind!r} is not a member of SmemLayoutAtomKind")
    major, bits = kind.value
    row = (128 << bits) // element_type.width
    outer = make_layout((row, 8), stride=(1, row)) if major == "mn" else make_layout((8, row), stride=(row, 1))
    return make_composed_layout(Swizzle(bits, 4, 3), 0, outer)


UNIT_BITS = 128
"""Descriptors address shared memory in units of 16 bytes."""


@static
class SmemDescriptor:
    """A matrix descriptor (PTX ISA, "Matrix Descriptor Format") in two words: what varies lies in the low one.

    low: start address and leading offset, in 16-byte units. high: stride offset and swizzle; static. Adding to it
    moves the start, in units of 16 bytes.
    """

    low: Any
    high: int
    dtype: DType

    def __add__(self, offset: Any) -> SmemDescriptor:
        offset = known(offset)
        low = known(self.low) + offset if is_exact(offset) else Uint32(self.low + Int32(offset))
        return SmemDescriptor(low, self.high, self.dtype)

    def word(self) -> Any:
        """Give the 64-bit descriptor."""
        low = known(self.low)
        return (low if is_exact(low) else Uint64(low)) | (self.high << 32)


def swizzle_bytes(ptr: Pointer, what: str) -> int:
    """Give the row that a pointer's swizzle permutes, as the hardware names it: 0, 32, 64 or 128 bytes."""
    s = ptr.swizzle
    if s is None or s.bits == 0:
        return 0
    if (s.base, s.shift) != (4, 3) or s.bits > 3:
        raise CuteError(
            f"{what}: swizzle {s} on {ptr!r} is none that the hardware has: S<0,4,3>, S<1,4,3>, S<2,4,3> or S<3,4,3>"
        )
    return 16 << s.bits  # type: ignore[no-any-return]


@pure
def _strides(v: Layout, major: int, swizzle: int, width: int) -> tuple[int, int]:
    """(leading, stride) byte offsets of a canonical (MN, K) operand tile; an error if `v` is none."""
    size, per_chunk = width // 8, UNIT_BITS // width
    down, across = _offsets(v, 0) * size, _offsets(v, 1) * size  # a layout is the sum of its modes
    mn, k = len(down), len(across)

    def at(i: int, j: int) -> int:
        """The byte offset of (mn, k) = (i, j); 0 where the tile ends before."""
        return int(down[i] + across[j]) if i < mn and j < k else 0

    row = max(swizzle, 16) // size
    if major == K_MAJOR:
        leading, stride = (at(0, row) if k > row else UNIT_BITS // 8), at(8, 0)  # one row's width: not used, 1 unit
    elif swizzle:
        leading, stride = at(row, 0), at(0, 8)
    else:
        leading, stride = at(0, 8), at(per_chunk, 0)
    wanted = chunk_offsets(major, swizzle, leading, stride, mn, k, size)
    if major != K_MAJOR:
        wanted = wanted.T  # of (mn, k) as the tile
    along_mn, along_k = (1, per_chunk) if major == K_MAJOR else (per_chunk, 1)
    for e in (0, per_chunk - 1):
        found = down[min(e, along_mn - 1) :: along_mn, None] + across[None, min(e, along_k - 1) :: along_k]
        bad = np.argwhere(found != wanted + e * size)
        if len(bad):
            r, c = bad[0].tolist()
            i, j = r * along_mn + min(e, along_mn - 1), c * along_k + min(e, along_k - 1)
            raise CuteError(
                f"wgmma operand of layout {v} with a {swizzle}-byte swizzle: element ({i}, {j}) lies at byte "
                f"{at(i, j)}, but a {'K' if major == K_MAJOR else 'MN'}-major operand has it at "
                f"{wanted[r, c] + e * size}; tile_to_shape warpgroup.make_smem_layout_atom"
            )
    return leading, stride


def _offsets(v: Layout, mode: int) -> Any:
    """The offsets of all coordinates of one mode, in elements."""
    out = np.zeros(1, np.int64)
    for s, d in zip(*(layout.flatten_to_tuple(x[mode]) for x in (v.shape, v.stride))):
        out = (np.arange(s, dtype=np.int64)[:, None] * d + out[None, :]).reshape(-1)
    return out


def descriptor_tensor(tensor: Tensor, major_mode: OperandMajorMode, what: str) -> Tensor:
    """Give a partitioned operand (V, rest…) in shared memory as descriptors of shape (1, rest…). Raises CuteError, with
    `what` before it, if wgmma cannot read it so."""
    ptr, lay = tensor.iterator, tensor.layout
    if not isinstance(ptr, Pointer) or ptr.space is not AddressSpace.smem:
        raise CuteError(f"{what}: {tensor!r} must lie in shared memory, for the operation reads it there")
    if isinstance(lay, ComposedLayout):
        raise CuteError(f"{what}: layout {lay} is swizzled; allocate_tensor(…, layout.outer, …, swizzle=layout.inner)")
    swizzle = swizzle_bytes(ptr, what)
    if ptr.alignment % max(16, 8 * swizzle):
        raise CuteError(
            f"{what}: {ptr!r} must be aligned to {max(16, 8 * swizzle)} bytes for its {swizzle}-byte swizzle; "
            "allocate it with byte_alignment=1024"
        )
    major = K_MAJOR if major_mode is OperandMajorMode.K else MN_MAJOR
    leading, stride = _strides(lay[0], major, swizzle, ptr.dtype.width)
    word = WgmmaDescriptor(0, leading, stride, 0, swizzle).encode()
    low = Uint32(encode_address(known(ptr.address))) | (word & 0xFFFFFFFF)
    return Tensor(SmemDescriptor(low, word >> 32, ptr.dtype), _in_units(lay, ptr.dtype.width))


@pure
def _in_units(lay: Layout, width: int) -> Layout:
    def units(stride: Any) -> Any:
        if isinstance(stride, tuple):
            return tuple(map(units, stride))
        if stride * width % UNIT_BITS:
            raise CuteError(f"wgmma operand of layout {lay}: stride {stride} is not a multiple of 16 bytes")
        return stride * width // UNIT_BITS

    return layout.make_layout((1, *lay.shape[1:]), stride=(0, *units(lay.stride[1:])))
