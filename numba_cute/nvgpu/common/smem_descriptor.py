# SPDX-License-Identifier: Apache-2.0
"""Shared memory as matrix descriptors: tensors whose elements are what wgmma and tcgen05.mma take for an operand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import isa, layout
from ...atoms.op import MmaTraits
from ...dtypes import DType, Int32, Uint32, Uint64
from ...isa.facts.bits import WgmmaDescriptor, encode_address
from ...isa.facts.canonical import K_MAJOR, MN_MAJOR, SWIZZLE_128B_BASE32B, chunk_offsets
from ...isa.facts.tensor_descriptors import Tcgen05Descriptor
from ...layout import Layout
from ...layout.pure import pure
from ...seam import CuteError, current_or, frozen, is_exact, known
from ...seam.ground.records import dataclass
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.printing import Described
from ...tensor.swizzled import by_address
from ...tensor.tensor import Tensor
from .checks import in_shared
from .choices import OperandMajorMode

UNIT_BITS = 128
"""Descriptors address shared memory in units of 16 bytes."""
LINE = 128
"""The bytes within which all swizzles permute: what the tiles of TMA and of matrix instructions are aligned to."""


@frozen
class SmemDescriptor(Described):
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

    __repr__ = Described.__repr__  # not that of a dataclass

    def described(self) -> tuple[Any, ...]:
        low = known(self.low)
        record = Tcgen05Descriptor if self.high >> 14 & 7 else WgmmaDescriptor  # which alone has a version
        fixed = record.decode(self.high << 32)
        start, leading = (low & 0x3FFF) << 4, (low >> 16 & 0x3FFF) << 4
        fields = f", stride {fixed.stride}, swizzle {fixed.swizzle}>"
        return f"descriptor<{self.dtype}, start ", start, ", leading ", leading, fields

    def word(self) -> Any:
        """Give the 64-bit descriptor."""
        low, backend = known(self.low), current_or(None)
        if is_exact(low) or backend is None:
            return (low if is_exact(low) else Uint64(low)) | (self.high << 32)
        base, step = backend.either(lambda: backend.without_constant(low), lambda: (low, 0))
        word = isa.join_words(Uint32(base), Uint32(self.high))
        return word + Uint64(step & 0xFFFFFFFFFFFFFFFF) if step else word  # from block to block one addition


@dataclass(frozen=True)
class DescriptorForm:
    """The form of an instruction's descriptors.

    instruction: its name. record: the word's fields. swizzles: those that it knows, by (bits, base, shift), as the
    hardware names them. atom: the function that makes a layout which it reads.
    """

    instruction: str
    record: Any
    swizzles: Mapping[tuple[int, int, int], int]
    atom: str


def swizzle_bytes(ptr: Pointer, form: DescriptorForm, what: str) -> int:
    """Give the row that a pointer's swizzle permutes, as the hardware names it, such as 128 bytes."""
    s = ptr.swizzle
    if s is None or s.bits == 0:
        return 0
    found = form.swizzles.get((s.bits, s.base, s.shift))
    if found is None:
        legal = ", ".join(f"S<{b},{m},{n}>" for b, m, n in form.swizzles)
        raise CuteError(f"{what}: swizzle {s} on {ptr!r} is none that {form.instruction} has: S<0,4,3>, {legal}")
    return found


@pure
def _strides(v: Layout, major: int, swizzle: int, width: int, form: DescriptorForm) -> tuple[int, int]:
    """(leading, stride) byte offsets of a canonical (MN, K) operand tile; an error if `v` is none."""
    if layout.rank(v) != 2:
        raise CuteError(f"{form.instruction} operand of layout {v}: its first mode must be ((MN, K), …): partition it")
    per_chunk = UNIT_BITS // width
    down, across = _offsets(v, 0) * width, _offsets(v, 1) * width  # in bits: a layout is the sum of its modes
    mn, k = len(down), len(across)

    def at(i: int, j: int) -> int:
        """The byte offset of (mn, k) = (i, j); 0 where the tile ends before."""
        return int(down[i] + across[j]) // 8 if i < mn and j < k else 0

    row = (128 if swizzle == SWIZZLE_128B_BASE32B else max(swizzle, 16)) * 8 // width
    if major == K_MAJOR:
        leading, stride = (at(0, row) if k > row else UNIT_BITS // 8), at(8, 0)  # one row's width: not used, 1 unit
    elif swizzle:
        leading, stride = at(row, 0), at(0, 4 if swizzle == SWIZZLE_128B_BASE32B else 8)
    else:
        leading, stride = at(0, 8), at(per_chunk, 0)
    size = max(width // 8, 1)
    wanted = 8 * chunk_offsets(major, swizzle, leading, stride, mn, k * width // (8 * size), size)
    if major != K_MAJOR:
        wanted = wanted.T  # of (mn, k) as the tile
    along_mn, along_k = (1, per_chunk) if major == K_MAJOR else (per_chunk, 1)
    for e in (0, per_chunk - 1):
        found = down[min(e, along_mn - 1) :: along_mn, None] + across[None, min(e, along_k - 1) :: along_k]
        bad = np.argwhere(found != wanted + e * width)
        if len(bad):
            r, c = bad[0].tolist()
            i, j = r * along_mn + min(e, along_mn - 1), c * along_k + min(e, along_k - 1)
            raise CuteError(
                f"{form.instruction} operand of layout {v} with a {swizzle}-byte swizzle: element ({i}, {j}) lies at "
                f"byte {at(i, j)}, but a {'K' if major == K_MAJOR else 'MN'}-major operand has it at "
                f"{(wanted[r, c] + e * width) // 8}; tile_to_shape {form.atom}"
            )
    return leading, stride


def _offsets(v: Layout, mode: int) -> Any:
    """The offsets of all coordinates of one mode, in elements."""
    out = np.zeros(1, np.int64)
    for s, d in zip(*(layout.flatten_to_tuple(x[mode]) for x in (v.shape, v.stride))):
        out = (np.arange(s, dtype=np.int64)[:, None] * d + out[None, :]).reshape(-1)
    return out


def _need_aligned(ptr: Pointer, swizzle: int, v: Layout, major: int, what: str) -> None:
    """Raise CuteError if a tile `v` at `ptr` may not lie as a descriptor says. Swizzles permute addresses, so that
    their pattern begins at multiples of its period wherever the tile begins (base_offset 0); but what is contiguous in
    it must not leave its row of `swizzle` bytes: where the tile begins at a multiple of 128 it does not."""
    need = UNIT_BITS // 8
    if swizzle:
        row = 128 if swizzle == SWIZZLE_128B_BASE32B else swizzle
        run = min(int(layout.size(v, (1 if major == K_MAJOR else 0,))) * ptr.dtype.width // 8, row)
        need = max(need, min(1 << (run - 1).bit_length(), LINE))
    if ptr.alignment % need:
        why = f" for its {swizzle}-byte swizzle" if swizzle else ""
        raise CuteError(
            f"{what}: {ptr!r} must be aligned to {need} bytes{why}; allocate it with byte_alignment={LINE} or more"
        )


def check_part(t: Tensor, traits: MmaTraits, operand: str) -> None:
    """Refuse a tensor whose first mode is not what one instruction takes of `operand`, "A" or "B"."""
    if not isinstance(t.iterator, Pointer) or t.iterator.space is not AddressSpace.smem:
        return  # which is refused next
    one = (traits.a if operand == "A" else traits.b).shape[1]
    shape = t.shape if isinstance(t.shape, tuple) else (t.shape,)
    if layout.product_each(shape[0]) != layout.product_each(one):
        raise CuteError(
            f"make_fragment_{operand}: shape {t.shape} must be ({one}, rest, rest, …), as partition_{operand} gives it"
        )


def descriptor_tensor(
    tensor: Tensor, major_mode: OperandMajorMode, form: DescriptorForm, what: str, **fields: int
) -> Tensor:
    """Give a partitioned operand (V, rest…) in shared memory as descriptors of shape (1, rest…), in the `form` of an
    instruction. fields: others of its record. Raises CuteError, with `what` before it, if that cannot read it so."""
    ptr, lay = by_address(tensor.iterator, tensor.layout)
    in_shared(Tensor(ptr, lay), f"{what}:", ", for the operation reads it there")
    swizzle = swizzle_bytes(ptr, form, what)
    major = K_MAJOR if major_mode is OperandMajorMode.K else MN_MAJOR
    leading, stride = _strides(lay[0], major, swizzle, ptr.dtype.width, form)
    _need_aligned(ptr, swizzle, lay[0], major, what)
    word = form.record(**{"leading": leading, "stride": stride, "swizzle": swizzle, **fields}).encode()
    low = Uint32(encode_address(known(ptr.address))) | (word & 0xFFFFFFFF)
    return Tensor(SmemDescriptor(low, word >> 32, ptr.dtype), _in_units(lay, ptr.dtype.width, form.instruction))


@pure
def _in_units(lay: Layout, width: int, instruction: str) -> Layout:
    def units(stride: Any) -> Any:
        if isinstance(stride, tuple):
            return tuple(map(units, stride))
        if stride * width % UNIT_BITS:
            raise CuteError(f"{instruction} operand of layout {lay}: stride {stride} is not a multiple of 16 bytes")
        return stride * width // UNIT_BITS

    return layout.make_layout((1, *lay.shape[1:]), stride=(0, *units(lay.stride[1:])))
