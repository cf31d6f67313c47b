# SPDX-License-Identifier: Apache-2.0
"""A tensor map as a record: the operands of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col (CUDA driver API,
"Tensor Map Object Management"), checked by their rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from ... import dtypes
from ...dtypes import DType
from ...seam import CuteError, Leaf, tries
from ...seam.ground.records import dataclass
from . import packed_maps

SWIZZLE_SPAN = {
    "none": 0, "32B": 32, "64B": 64, "128B": 128,
    "128B_ATOM_32B": 128, "128B_ATOM_32B_FLIP_8B": 128, "128B_ATOM_64B": 128,
}  # fmt: skip
"""Bytes over which each swizzle permutes 16-byte chunks (with an ATOM, larger pieces: sm_100)."""
_WIDE_SWIZZLES = ("64B", "128B", "128B_ATOM_32B", "128B_ATOM_64B")
"""The swizzles of im2col along W (PTX ISA, "im2col::w and im2col::w::128 modes")."""
INTERLEAVES = {"none": 0, "16B": 16, "32B": 32}
L2_PROMOTIONS = ("none", "64B", "128B", "256B")
OOB_FILLS = ("zero", "nan")
ELEMENT_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "tf32")
"""PTX ISA, "tensormap.replace", .elemtype (the .ftz ones aside; `packed_maps` has those below a byte)."""
_FLOATS = ("f16", "bf16", "f32", "tf32", "f64")
_STORED_AS = {"s8": "u8", "e4m3": "u8", "e5m2": "u8", "ue8m0": "u8", "pred": "u8", "s16": "u16"}
COORDINATE_BITS = 128
"""The unit of a tile's innermost coordinate, in bits (1: no unit). Anything else is an illegal instruction on an H200,
in loads, prefetches, stores and reductions of every type, rank and swizzle (2026-11-21, 216 cases); Triton says the
same (github.com/triton-lang/triton/pull/9112)."""
_CORNERS = {3: (-(1 << 15), (1 << 15) - 1), 4: (-(1 << 7), (1 << 7) - 1), 5: (-(1 << 4), (1 << 4) - 1)}
# PTX ISA, table under "cp.reduce.async.bulk.tensor"
TENSOR_REDUCTIONS: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64", "f32", "f16", "bf16", "f64"),  # of f64 as an H200 does it
    "min": ("u32", "s32", "u64", "s64", "f16", "bf16"), "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "inc": ("u32",), "dec": ("u32",),
    **{op: ("u32", "u64") for op in ("and", "or", "xor")},  # of s64 an illegal instruction on an H200, 2026-11-21
}  # fmt: skip
_SAME_BITS = ("add", "and", "or", "xor")
"""Reductions that give signed and unsigned integers of one width the same bits."""
_UNSIGNED = {"s32": dtypes.Uint32, "s64": dtypes.Uint64}


def element_type(dtype: DType, unpacked: bool = False) -> str:
    """The element type that a tensor map has for elements of `dtype`. unpacked: as of TensorMapRecord."""
    if dtype.width < 8:
        return packed_maps.form(dtype, unpacked).name
    found = _STORED_AS.get(dtype.ptx, dtype.ptx)
    if found not in ELEMENT_TYPES:
        raise CuteError(
            f"tensor map: dtype {dtype} is not an element type of TMA ({', '.join(ELEMENT_TYPES)}); view the tensor as "
            f"one of those, or give internal_type"
        )
    return found


def reduced_as(op: str, dtype: DType) -> DType:
    """The element type of a tensor map that reduces elements of `dtype` by `op`: an unsigned one for signed integers
    where TMA lacks theirs and the bits are the same; else `dtype`."""
    kind = element_type(dtype)
    if kind in TENSOR_REDUCTIONS[op] or op not in _SAME_BITS:
        return dtype
    return _UNSIGNED.get(kind, dtype)


def check_reduction(op: str, dtype: DType) -> None:
    """An error unless a tensor of `dtype` can be reduced by `op` (PTX ISA, "cp.reduce.async.bulk.tensor")."""
    if element_type(dtype) not in TENSOR_REDUCTIONS[op]:
        which = [o for o, types in TENSOR_REDUCTIONS.items() if element_type(dtype) in types]
        instead = "give the tensor one of those types, or use atomics"
        if op in _SAME_BITS[1:] and dtype.width in (32, 64):
            instead = f"combine its bits as recast_tensor(tensor, Uint{dtype.width})"
        raise CuteError(
            f"TMA reduction {op!r} of {dtype}: TMA has it for {', '.join(TENSOR_REDUCTIONS[op])}, and for {dtype} "
            f"it has {', '.join(which) or 'no reduction'}; {instead}"
        )


@dataclass(frozen=True)
class Im2col:
    """The walk of an im2col map over images. lower, upper: the corners of the box of pixels at which the filter may
    stand, innermost (W) first, as offsets from the first and from the last pixel. channels: elements of each pixel that
    a copy takes. pixels: the number of pixels it takes, row after row and image after image."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int


@dataclass(frozen=True)
class Im2colWide:
    """The walk of a map along W alone, with H and D fixed (sm_100). lower, upper: the first and the last place, as
    offsets from the first and from the last pixel of a row. channels: elements of each pixel that a copy takes. mode:
    "w", which takes `pixels` of them, row after row of consecutive images, or "w128", which takes 128."""

    lower: int
    upper: int
    channels: int
    pixels: int = 128
    mode: str = "w"

    @property
    def parts(self) -> tuple[int, int]:
        """Return the number of a copy's parts, each followed by the halo that the instruction asks for, and the pixels
        of each."""
        return (1, self.pixels) if self.mode == "w" else (4, 32)

    @property
    def most_halo(self) -> int:
        return 511 if self.mode == "w" else 31

    def pixels_with(self, halo: int) -> int:
        """The pixels that an instruction copies."""
        parts, each = self.parts
        return parts * (each + halo)


@dataclass(frozen=True)
class TensorMapRecord(Leaf):
    """A tensor in global memory as TMA sees it, and the box that one instruction copies.

    dtype: the elements. address: bytes, a multiple of 16. dims: elements in each dimension, innermost (contiguous)
    first. strides_bytes: bytes between neighbours in dimensions 1 and on. box: elements of the box in each dimension
    (for im2col: not given, it is (channels, pixels)). element_strides: the step in each dimension (1 for all if not
    given); a box of n at step s holds ceil(n / s). swizzle: a name of `SWIZZLE_SPAN`. interleave: "none", or the bytes
    of the slices that channels are cut into, "16B" or "32B" (NC/8HWC8 and NC/16HWC16 of 2-byte elements). oob_fill:
    what elements outside the tensor read as, "zero" or "nan". l2_promotion: "none", "64B", "128B" or "256B". im2col:
    None (tiled mode), or how pixels are walked: Im2col, or Im2colWide (cuTensorMapEncodeIm2colWide). unpacked: whether
    elements below a byte lie in shared memory 16 to each 16 bytes, in the first ones, as those of 6 bits always do;
    else they are packed there as in global memory. They are counted one by one in `dims` and `box`. place: the
    class of the array that owns the memory, and the number of its GPU, by which a launch finds the stream of the
    array's library; None if no array says that it lies on a GPU. `address` itself may be before it.

    The dimensions of an interleaved map are (W, H, D, slice, image), H and D from 4 and 5 dimensions on, all counted in
    slices: those along W lie next to each other, and `strides_bytes` are those of the others. A copy takes whole
    slices, and one along the dimension before the last, whatever its box and step there (and channels, of im2col). So
    an H200 has it (2026-11-21, 240 cases of loads, stores and reductions; the PTX ISA does not say).
    """

    dtype: DType
    address: int
    dims: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[int, ...] = ()
    element_strides: tuple[int, ...] = ()
    swizzle: str = "none"
    interleave: str = "none"
    oob_fill: str = "zero"
    l2_promotion: str = "128B"
    im2col: Im2col | Im2colWide | None = None
    unpacked: bool = False
    place: tuple[type, int | None] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        rank = len(self.dims)
        if self.dtype.width == 6:
            object.__setattr__(self, "unpacked", True)
        if not self.element_strides:
            object.__setattr__(self, "element_strides", (1,) * rank)
        if self.im2col is not None:
            object.__setattr__(self, "box", (self.im2col.channels, self.im2col.pixels))
        self._check_choices()
        least = 3 if self.im2col is not None or self.interleave != "none" else 1
        if not least <= rank <= 5:
            why = {1: "TMA takes 1 to 5", 3: "im2col and interleaved maps take 3 to 5"}[least]
            raise CuteError(f"tensor map: dims {self.dims} has rank {rank}; {why}; merge or slice modes")
        for name, values, want in (
            ("strides_bytes", self.strides_bytes, rank - 1),
            ("box", self.box, rank if self.im2col is None else 2),
            ("element_strides", self.element_strides, rank),
        ):
            if len(values) != want:
                raise CuteError(f"tensor map: {name} {values} must have {want} entries for dims {self.dims}")
        self._check_memory()
        if self.dtype.width < 8:
            packed_maps.check(self)
        if self.im2col is None:
            self._check_box()
        else:
            self._check_im2col(self.im2col)
        self._check_inner()

    def _check_choices(self) -> None:
        element_type(self.dtype, self.unpacked)
        for name, value, legal in (
            ("swizzle", self.swizzle, tuple(SWIZZLE_SPAN)),
            ("interleave", self.interleave, tuple(INTERLEAVES)),
            ("oob_fill", self.oob_fill, OOB_FILLS),
            ("l2_promotion", self.l2_promotion, L2_PROMOTIONS),
        ):
            if value not in legal:
                raise CuteError(f"tensor map: {name} {value!r} is none of {', '.join(map(repr, legal))}")
        if self.oob_fill == "nan" and element_type(self.dtype, self.unpacked) not in _FLOATS:
            raise CuteError(
                f"tensor map: oob_fill 'nan' needs a floating-point dtype of 16 bits or more, not {self.dtype}; "
                "use 'zero'"
            )
        if self.interleave == "32B" and self.swizzle != "32B":
            raise CuteError(f"tensor map: interleave '32B' needs swizzle '32B', not {self.swizzle!r}")

    @property
    def address_unit(self) -> int:
        """The bytes that the address and the strides are multiples of."""
        return 32 if self.interleave == "32B" or self.unpacked else 16

    def _check_memory(self) -> None:
        unit = self.address_unit
        why = "" if unit == 16 else " (unpacked elements)" if self.unpacked else " (interleave '32B')"
        if self.address % unit:
            raise CuteError(
                f"tensor map: address {self.address:#x} is not a multiple of {unit} bytes{why}; align the tensor"
            )
        for d, n in enumerate(self.dims):
            if not (n == 0 and tries()) and not 1 <= n <= 1 << 32:
                raise CuteError(f"tensor map: dims[{d}] is {n}; it must be in 1 to 2^32")
        for d, stride in enumerate(self.strides_bytes, 1):
            if stride % unit or not 0 <= stride < 1 << 40:
                raise CuteError(
                    f"tensor map: the stride of dimension {d} is {stride} bytes; it must be a multiple of {unit} below "
                    f"2^40{why}; pad the contiguous dimension to a multiple of "
                    f"{max(1, 8 * unit // self.dtype.width)} elements"
                )

    def _check_steps(self) -> None:
        for d, n in enumerate(self.element_strides):
            if not 1 <= n <= 8:
                raise CuteError(f"tensor map: element_strides[{d}] is {n}; it must be in 1 to 8")
        if self.element_strides[0] != 1 and self.interleave == "none":
            raise CuteError(
                f"tensor map: element_strides[0] is {self.element_strides[0]}; TMA ignores it, so it must be 1"
            )

    def _check_box(self) -> None:
        for d, n in enumerate(self.box):
            if not 1 <= n <= 256:
                raise CuteError(f"tensor map: box[{d}] is {n} elements; it must be in 1 to 256; use a smaller tile")
        self._check_steps()

    def _check_im2col(self, walk: Im2col | Im2colWide) -> None:
        if isinstance(walk, Im2colWide):
            self._check_wide(walk)
        else:
            self._check_corners(walk)
        if not 1 <= walk.channels <= 256:
            raise CuteError(f"tensor map: im2col channels is {walk.channels}; it must be in 1 to 256; use a smaller K")
        if not 1 <= walk.pixels <= 1024:
            raise CuteError(f"tensor map: im2col pixels is {walk.pixels}; it must be in 1 to 1024; use a smaller M")
        self._check_steps()

    def _check_wide(self, walk: Im2colWide) -> None:
        for name, value, legal in (("mode", walk.mode, ("w", "w128")), ("swizzle", self.swizzle, _WIDE_SWIZZLES)):
            if value not in legal:
                raise CuteError(
                    f"tensor map: {name} {value!r} is none of {', '.join(map(repr, legal))}, which im2col along W has"
                )
        if self.interleave != "none":
            raise CuteError(f"tensor map: interleave {self.interleave!r} is not for im2col along W; use 'none'")
        if walk.mode == "w128" and walk.pixels != 128:
            raise CuteError(f"tensor map: im2col pixels is {walk.pixels}; mode 'w128' has 128")
        for name, n in (("lower", walk.lower), ("upper", walk.upper)):
            if not -(1 << 15) <= n < 1 << 15:
                raise CuteError(f"tensor map: im2col {name} is {n}; along W it must be in -32768 to 32767")
        if self.dims[1] + walk.upper - walk.lower <= 0:
            raise CuteError(
                f"tensor map: im2col lower {walk.lower} and upper {walk.upper} leave no pixel of dims[1] = "
                f"{self.dims[1]}; the box must hold at least one"
            )

    def _check_corners(self, walk: Im2col) -> None:
        rank = len(self.dims)
        low, high = _CORNERS[rank]
        for name, corner in (("lower", walk.lower), ("upper", walk.upper)):
            if len(corner) != rank - 2:
                raise CuteError(f"tensor map: im2col {name} {corner} must have {rank - 2} entries for dims {self.dims}")
            for d, n in enumerate(corner):
                if not low <= n <= high:
                    raise CuteError(
                        f"tensor map: im2col {name}[{d}] is {n}; with {rank} dimensions it must be in {low} to {high}"
                    )
        for d, (lo, up, at) in enumerate(zip(walk.lower, walk.upper, self.spatial)):
            if self.dims[at] + up - lo <= 0:
                raise CuteError(
                    f"tensor map: im2col lower[{d}] {lo} and upper[{d}] {up} leave no pixel of dims[{at}] = "
                    f"{self.dims[at]}; "
                    "the box must hold at least one: the filter with its dilation is larger than the padded image"
                )

    def _check_inner(self) -> None:
        inner = self.box[0] * self.shared_bits // 8
        if inner % 16 and self.interleave != "none":
            raise CuteError(
                f"tensor map: box[0] is {self.box[0]} slices; the driver wants a multiple of "
                f"{max(1, 16 // self.dtype.bytes)} for {self.dtype}; use a wider tile"
            )
        if inner % 16:
            raise CuteError(
                f"tensor map: the inner box is {self.box[0]} x {self.dtype} = {inner} bytes; "
                f"it must be a multiple of 16; use a multiple of {max(1, 128 // self.shared_bits)} elements"
            )
        span = SWIZZLE_SPAN[self.swizzle] if self.interleave == "none" else 0
        if span and inner > span:
            raise CuteError(
                f"tensor map: the inner box is {inner} bytes, more than the {span} of swizzle {self.swizzle!r}; "
                f"use a narrower box or a wider swizzle"
            )

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def shared_bits(self) -> int:
        """The bits of shared memory that an element takes, with what lies between it and the next."""
        return 8 if self.unpacked else self.dtype.width

    @property
    def in_bytes(self) -> TensorMapRecord:
        """The same tensor and box as bytes of global memory, in the place of elements below a byte."""
        return self if self.dtype.width >= 8 else packed_maps.in_bytes(self)

    @property
    def slice_elements(self) -> int:
        """The elements of a slice of an interleaved map."""
        return INTERLEAVES[self.interleave] // self.dtype.bytes

    @property
    def axes(self) -> tuple[tuple[int, int, int], ...]:
        """(extent, bytes between neighbours, step) in each direction, innermost first: those of the dimensions, after
        that within a slice if the map is interleaved."""
        size = self.dtype.bytes
        if self.interleave == "none":
            return tuple(zip(self.dims, (size, *self.strides_bytes), self.element_strides))
        strides = (INTERLEAVES[self.interleave], *self.strides_bytes)
        steps = (1 if d == self.channel else step for d, step in enumerate(self.element_strides))
        return (self.slice_elements, size, 1), *zip(self.dims, strides, steps)

    @property
    def channel(self) -> int:
        """The dimension of channels in an im2col or interleaved map; the last is of images, the others of pixels."""
        return 0 if self.interleave == "none" else self.rank - 2

    @property
    def spatial(self) -> tuple[int, ...]:
        return tuple(d for d in range(self.rank - 1) if d != self.channel)

    @property
    def box_shape(self) -> tuple[int, ...]:
        """The elements of the box that reach shared memory in each direction of `axes`; of an im2col map (channels,
        pixels)."""
        if self.interleave == "none":
            if self.im2col is not None:
                return self.box
            return tuple(-(-n // s) for n, s in zip(self.box, self.element_strides))
        if self.im2col is not None:
            return self.slice_elements, self.im2col.pixels
        held = [-(-n // s) for n, s in zip(self.box, self.element_strides)]
        held[self.channel] = 1
        return self.slice_elements, *held

    @property
    def box_bytes(self) -> int:
        """The bytes that one copy delivers, elements outside the tensor included, gaps between elements not (so CUTLASS
        counts them)."""
        total = self.dtype.width
        for n in self.box_shape:
            total *= n
        return total // 8

    @property
    def row_bytes(self) -> int:
        """Bytes from one inner row of the box to the next in shared memory: a swizzled row takes the whole span (CUDA
        programming guide, "Using TMA to transfer multi-dimensional arrays", on swizzling), but slices lie next to each
        other."""
        inner = self.box_shape[0] * self.shared_bits // 8
        return max(inner, SWIZZLE_SPAN[self.swizzle]) if self.interleave == "none" else inner

    @property
    def shared_bytes(self) -> int:
        """The bytes of shared memory that the box takes (of swizzled slices, whole lines)."""
        rows = 1
        for n in self.box_shape[1:]:
            rows *= n
        size = rows * self.row_bytes
        return size if self.interleave == "none" or self.swizzle == "none" else -(-size // 128) * 128

    def captured(self, simulated: bool = False) -> Any:
        raise CuteError(
            "a TMA atom holds a tensor map, which cannot be a global or closure variable of a kernel: pass the atom as "
            "an argument"
        )

    @property
    def extent_bytes(self) -> int:
        """The bytes from `address` to the end of the last element."""
        if self.dtype.width < 8:
            return self.in_bytes.extent_bytes
        return sum((n - 1) * stride for n, stride, _ in self.axes) + self.dtype.bytes


@dataclass(frozen=True)
class RefusedTensorMap(Leaf):
    """A placeholder for the record of a tensor map that cannot be made, with the reason. Layouts around it can be
    looked at; a kernel cannot have it."""

    why: str

    def __cute_allocations__(self) -> Sequence[Any]:
        raise CuteError(self.why)

    def __repr__(self) -> str:
        return f"no tensor map ({self.why})"
