# SPDX-License-Identifier: Apache-2.0
"""tcgen05.cp: rows of shared memory to lanes of tensor memory, by one thread, in order with its multiplies.

The source is a matrix descriptor, K-major rows of 16 or 32 bytes: `get_s2t_smem_desc_tensor` makes it of a partition. A
warp calls `cute.copy`, converged, and one elected lane issues; the multiplies that it issues later see what was copied,
and `tcgen05.commit` says when it is complete.
"""

from __future__ import annotations

from typing import Any

from ... import isa, layout, seam
from ...atoms.copy_atom import CopyAtom, TiledCopy, make_cotiled_copy
from ...atoms.op import CopyOp, CopyTraits
from ...dtypes import DType
from ...isa.facts.bits import encode_address
from ...isa.facts.tensor_copies import SHAPES, CopyShape, landed, source_rows
from ...isa.facts.tensor_descriptors import ABSOLUTE
from ...layout import Layout, make_layout, rank
from ...layout.pure import pure
from ...seam import CuteError, frozen, known, known_as, traced
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.swizzled import by_address
from ...tensor.tensor import Tensor
from ..common.by_row import ByRow, Choice, known_name, remembered
from ..common.checks import in_shared
from ..common.choices import CtaGroup, OperandMajorMode
from ..common.smem_descriptor import LINE, UNIT_BITS, SmemDescriptor, descriptor_tensor, swizzle_bytes
from .copies import in_tensor_memory, same_width
from .mma import TCGEN05

__all__ = [
    "Cp128x128bOp", "Cp128x256bOp", "Cp2x64x128b0123Op", "Cp2x64x128b0213Op", "Cp4x256bOp", "Cp4x32x128bOp",
    "get_s2t_smem_desc_tensor", "make_s2t_copy", "make_umma_smem_desc",
]  # fmt: skip

_SHAPES = {(s.name, s.multicast): s for s in SHAPES}
_GROUP = Choice("cta_group", ("cta_group",), {group.value: group for group in CtaGroup})


@remembered
def _layouts(shape: CopyShape, width: int, ctas: int) -> CopyTraits:
    """Return the layouts of one instruction: each CTA's elements in the order of `landed`, the places of a row from the
    same source."""
    together, count, places = shape.groups
    each = shape.row_bytes * 8 // width
    whole = make_layout((ctas, shape.rows * each * places), stride=(0, 1))
    source = whole
    if places > 1:
        part = together * each // 128, 128, *((count,) if count > 1 else ()), places
        steps = 1, part[0], *((together * each,) if count > 1 else ()), 0
        source = make_layout((ctas, part), stride=(0, steps))
    return CopyTraits(make_layout(ctas), source, whole, whole)


@known_as("cute_nvgpu.tcgen05")
class SharedToTensor(ByRow, CopyOp):
    """Base of the copies."""

    rows = (isa.tcgen05_cp,)
    repeats = True
    choices = (_GROUP,)
    cta_group: Any

    @property
    def shape(self) -> CopyShape:
        """The rows that one instruction copies, and where they land."""
        return _SHAPES[self.fixed["shape"], self.fixed["multicast"]]

    def _width(self, dtype: DType) -> int:
        if dtype.width > 32 or 32 % dtype.width:
            raise CuteError(f"{known_name(self)}: elements of {dtype} have {dtype.width} bits: they must make up words")
        return dtype.width

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        return _layouts(self.shape, self._width(dtype), self.cta_group.value)

    def tiling(self) -> CopyOp:
        """Give the operation whose traits tile tensors."""
        return self

    def copy(
        self, atom: CopyAtom, src: Tensor, dst: Tensor, pred: Tensor | None, bar: Any, mask: Any, policy: Any
    ) -> None:
        self.refuse(tma_bar_ptr=bar, mcast_mask=mask, cache_policy=policy)
        if pred is not None:
            raise CuteError(f"copy: pred is not for {known_name(self)}: put the copy of the whole warp under `if`")
        row, statics = self.row()
        counts = [int(layout.size(layout.shape(t.layout)[1:])) for t in (src, dst)]
        if counts[0] != counts[1]:
            raise CuteError(
                f"copy: src of shape {src.shape} makes {counts[0]} instructions, but dst of shape {dst.shape} "
                f"{counts[1]}"
            )
        steps = [(self._word(_part(src, i)), self._place(atom, _part(dst, i))) for i in range(counts[0])]

        def issue() -> None:
            for word, address in steps:
                row(address, word, **statics)

        seam.current().when(isa.elect_sync(), issue)

    def _word(self, src: Tensor) -> Any:
        if not isinstance(src.iterator, SmemDescriptor):
            raise CuteError(
                f"copy: src {src!r} must be descriptors of shared memory for {known_name(self)}: take "
                "tcgen05.get_s2t_smem_desc_tensor(tiled_copy, partition_S of it)"
            )
        return src.iterator.word()

    def _place(self, atom: CopyAtom, dst: Tensor) -> Any:
        p, width = dst.iterator, atom.value_type.width
        if not isinstance(p, Pointer) or p.space is not AddressSpace.tmem:
            raise CuteError(f"copy: dst {dst!r} must lie in tensor memory for {known_name(self)}")
        same_width(atom, dst, "dst")
        want = landed(self.shape, width)
        if not (isinstance(p.offset, int) and p.offset == 0) or layout.coalesce(dst.layout) != layout.coalesce(want):
            raise CuteError(
                f"copy: dst has layout {dst.layout}, but {self!r} writes {want}, (row, element, group, place): take "
                "the partition_D of tcgen05.make_s2t_copy"
            )
        return p.address


def _part(t: Tensor, i: int) -> Tensor:
    """The `i`-th instruction's part of a tensor (V, rest…)."""
    rest = layout.shape(t.layout)[1:]
    return t[(None, *layout.idx2crd(i, rest))] if rest else t


@frozen
class Cp128x256bOp(SharedToTensor):
    """Copy 128 rows of 32 bytes from shared memory to 128 lanes of tensor memory. A whole converged warp, of which one
    lane issues. PTX tcgen05.cp, sm_100f.

    cta_group: CtaGroup.ONE, or TWO: the same in both CTAs of the pair, each from its own shared memory. Raises
    CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.Cp128x256bOp(nvgpu.tcgen05.CtaGroup.ONE), cute.Float32)
    >>> atom.layout_src_tv
    (1,1024):(0,1)
    """

    cta_group: CtaGroup

    fixed = {"shape": "128x256b", "multicast": None, "source": None}


@frozen
class Cp128x128bOp(SharedToTensor):
    """Copy 128 rows of 16 bytes from shared memory to 128 lanes of tensor memory. A whole converged warp, of which one
    lane issues. PTX tcgen05.cp, sm_100f.

    cta_group: as of Cp128x256bOp. Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.Cp128x128bOp(nvgpu.tcgen05.CtaGroup.ONE), cute.Float32)
    >>> atom.layout_src_tv
    (1,512):(0,1)
    """

    cta_group: CtaGroup

    fixed = {"shape": "128x128b", "multicast": None, "source": None}


@frozen
class Cp4x32x128bOp(SharedToTensor):
    """Copy 32 rows of 16 bytes from shared memory to each 32 of 128 lanes of tensor memory, as scale factors lie. A
    whole converged warp, of which one lane issues. PTX tcgen05.cp, sm_100f.

    cta_group: as of Cp128x256bOp. Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.Cp4x32x128bOp(nvgpu.tcgen05.CtaGroup.ONE), cute.Float32)
    >>> atom.layout_src_tv
    (1,(1,128,4)):(0,(1,1,0))
    """

    cta_group: CtaGroup

    fixed = {"shape": "32x128b", "multicast": "warpx4", "source": None}


@frozen
class Cp2x64x128b0213Op(SharedToTensor):
    """Copy 64 rows of 16 bytes from shared memory to lanes 0 to 63 and 64 to 127 of tensor memory (warps 0 and 2, 1 and
    3 get the same). A whole converged warp, of which one lane issues. PTX tcgen05.cp, sm_100f.

    cta_group: as of Cp128x256bOp. Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.Cp2x64x128b0213Op(nvgpu.tcgen05.CtaGroup.ONE), cute.Float32)
    >>> atom.layout_src_tv
    (1,(2,128,2)):(0,(1,2,0))
    """

    cta_group: CtaGroup

    fixed = {"shape": "64x128b", "multicast": "warpx2::02_13", "source": None}


@frozen
class Cp2x64x128b0123Op(SharedToTensor):
    """Copy 64 rows of 16 bytes from shared memory to tensor memory, the first 32 to lanes 0 to 31 and 32 to 63, the
    others to lanes 64 to 95 and 96 to 127 (warps 0 and 1, 2 and 3 get the same). A whole converged warp, of which one
    lane issues. PTX tcgen05.cp, sm_100f.

    cta_group: as of Cp128x256bOp. Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.Cp2x64x128b0123Op(nvgpu.tcgen05.CtaGroup.ONE), cute.Float32)
    >>> atom.layout_src_tv
    (1,(1,128,2,2)):(0,(1,1,128,0))
    """

    cta_group: CtaGroup

    fixed = {"shape": "64x128b", "multicast": "warpx2::01_23", "source": None}


class _FourRows(SharedToTensor):
    fixed = {"shape": "4x256b", "multicast": None, "source": None}


@frozen
class _TiledFourRows(_FourRows):
    """Four rows as tiles have them."""

    cta_group: CtaGroup


@frozen
class Cp4x256bOp(_FourRows):
    """Copy 4 rows of 32 bytes from shared memory to every 32nd lane of tensor memory, such as those that tcgen05.shift
    left. A whole converged warp, of which one lane issues. PTX tcgen05.cp, sm_100f.

    cta_group: as of Cp128x256bOp. The atom's layouts number the values in units of a tile of 128 rows, as the CuTe DSL
    does; `make_s2t_copy` tiles (4 lanes, 32 apart) by their rows. Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.Cp4x256bOp(nvgpu.tcgen05.CtaGroup.ONE), cute.Float32)
    >>> atom.layout_src_tv
    (1,(4,256)):(0,(1,4))
    """

    cta_group: CtaGroup

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        return _of_a_whole_tile(self._width(dtype), self.cta_group.value)

    def tiling(self) -> CopyOp:
        return _TiledFourRows(self.cta_group)


@remembered
def _of_a_whole_tile(width: int, ctas: int) -> CopyTraits:
    rows = make_layout((ctas, (4, 256)), stride=(0, (32 // width, 128 // width)))
    return CopyTraits(make_layout(ctas), rows, rows, rows)


def _copying(atom: Any, what: str) -> SharedToTensor:
    op = atom.op if isinstance(atom, (CopyAtom, TiledCopy)) else None
    if not isinstance(op, SharedToTensor):
        raise CuteError(f"tcgen05.{what}: {atom!r} is no copy from shared to tensor memory, such as Cp4x32x128bOp's")
    return op


@traced
@known_as("cute_nvgpu.tcgen05")
def make_s2t_copy(atom: CopyAtom, tmem_tensor: Tensor) -> TiledCopy:
    """Tile a copy from shared to tensor memory.

    atom: of a Cp operation, on elements as wide as the tensor's. tmem_tensor: a tensor in tensor memory of a static
    layout, in which no element stands twice (`cute.filter_zeros`). `get_slice` takes the CTA's place in its pair, or 0.
    Raises CuteError for a layout that is not made of what the atom writes.

    >>> op, lane = nvgpu.tcgen05.Cp4x32x128bOp(nvgpu.tcgen05.CtaGroup.ONE), 65536 * 4
    >>> lay = cute.make_layout(((((32, 4), 4), (16, 4)), 1, 4), stride=((((lane, 4), 32 * lane), (0, 1)), 0, 16))
    >>> place = cute.make_ptr(cute.Uint8, 0, cute.AddressSpace.tmem, assumed_align=16)
    >>> there = cute.filter_zeros(cute.make_tensor(place, lay))
    >>> tiled = nvgpu.tcgen05.make_s2t_copy(cute.make_copy_atom(op, cute.Uint8), there)
    >>> cute.size(tiled.get_slice(0).partition_D(there).shape[0])
    2048
    """
    what = "make_s2t_copy"
    op, t = _copying(atom, what), in_tensor_memory(tmem_tensor, what)
    if not isinstance(atom, CopyAtom):
        raise CuteError(f"tcgen05.{what}: atom {atom!r} is tiled already; give the CopyAtom")
    same_width(atom, t, "tmem_tensor")
    values = layout.coalesce(landed(op.shape, atom.value_type.width))
    try:
        return make_cotiled_copy(
            atom.with_op(op.tiling()), make_layout((make_layout(op.cta_group.value, stride=0), values)), t.layout
        )
    except CuteError as e:
        raise CuteError(
            f"tcgen05.{what}: tmem_tensor of layout {t.layout} is not made of what {op!r} writes, {values}: {e}"
        ) from None


@traced
@known_as("cute_nvgpu.tcgen05")
def get_s2t_smem_desc_tensor(atom: CopyAtom | TiledCopy, smem_tensor: Tensor) -> Tensor:
    """Give the source of a copy to tensor memory as matrix descriptors, (1, rest…).

    atom: the copy. smem_tensor: its partition_S ((values of one copy, repetitions), rest…) of a tensor in shared
    memory, whose rows hold each 16 bytes side by side. Raises CuteError for rows that a descriptor cannot say.

    >>> op, lane = nvgpu.tcgen05.Cp4x32x128bOp(nvgpu.tcgen05.CtaGroup.ONE), 65536 * 4
    >>> lay = cute.make_layout(((((32, 4), 4), (16, 4)), 1, 4), stride=((((lane, 4), 32 * lane), (0, 1)), 0, 16))
    >>> src = cute.make_layout(((((32, 4), 1), (16, 4)), 1, 4), stride=((((16, 4), 0), (0, 1)), 0, 512))
    >>> place = cute.make_ptr(cute.Uint8, 0, cute.AddressSpace.tmem, assumed_align=16)
    >>> there = cute.filter_zeros(cute.make_tensor(place, lay))
    >>> tiled = nvgpu.tcgen05.make_s2t_copy(cute.make_copy_atom(op, cute.Uint8), there)
    >>> def kernel():
    ...     s = cute.filter_zeros(cute.make_tensor(arch.alloc_smem(cute.Uint8, 2048, alignment=128), src))
    ...     print(nvgpu.tcgen05.get_s2t_smem_desc_tensor(tiled, tiled.get_slice(0).partition_S(s)).shape)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 1]()
    (1, 1, 1, 4)
    """
    what = "tcgen05.get_s2t_smem_desc_tensor"
    op = _copying(atom, "get_s2t_smem_desc_tensor")
    if not isinstance(smem_tensor, Tensor):
        raise CuteError(f"{what}: smem_tensor {smem_tensor!r} must be a partition of a tensor in shared memory")
    smem_tensor = Tensor(*by_address(smem_tensor.iterator, smem_tensor.layout))
    in_shared(smem_tensor, f"{what}: smem_tensor")
    same_width(atom, smem_tensor, "smem_tensor")
    t, width = smem_tensor, smem_tensor.element_type.width
    need = layout.size(landed(op.shape, width))
    if layout.size(t.layout, (0,)) != need:
        raise CuteError(
            f"{what}: mode 0 of {t.layout} has {layout.size(t.layout, (0,))} values, but {op!r} copies {need}: take "
            "the partition_S of tcgen05.make_s2t_copy"
        )
    modes = [_source(t.layout[0], op.shape, width), *(t.layout[i] for i in range(1, layout.rank(t.layout)))]
    return descriptor_tensor(Tensor(t.iterator, make_layout(tuple(modes))), OperandMajorMode.K, TCGEN05, what)


@pure
def _source(values: Layout, shape: CopyShape, width: int) -> Layout:
    """The rows (row, element) that the values of one copy come from. Of each 16 bytes only the beginning is asked for:
    scale factors in shared memory lack the mode of the places, so that what follows in a row is not told by them."""
    rows = layout.composition(layout.coalesce(values), source_rows(shape, width))
    chunk = UNIT_BITS // width
    chunks = shape.row_bytes * 8 // UNIT_BITS
    apart = int(layout.crd2idx((0, chunk), rows)) if chunks > 1 else 0
    row = make_layout((chunk, chunks), stride=(1, apart)) if chunks > 1 else make_layout(chunk)
    return make_layout((rows[0], row))


_MAJORS = {"k": OperandMajorMode.K, "mn": OperandMajorMode.MN}


@traced
@known_as("cute_nvgpu.tcgen05")
def make_umma_smem_desc(src: Pointer, layout: Layout, major: str, next_src: Pointer | None = None) -> SmemDescriptor:
    """Make the matrix descriptor of an operand's tile in shared memory, which tcgen05.mma reads.

    src: a Pointer to it, with its swizzle. layout: the tile (MN, K) of one multiply, or ((MN, K)) as a slice of an
    operand has it, static. major: "k" or "mn", the contiguous mode. next_src: where the 48 bytes of K of a multiply go
    on (sm_103a) that begin less than 48 bytes before the end of their row of 128: a Pointer to the row of 128 bytes
    that follows. `cute.make_tensor(descriptor, cute.make_layout(1, stride=0))` is a fragment. Raises CuteError for a
    tile that no descriptor says, and for a `next_src` of one that is not K-major with a swizzle of 128 bytes.

    >>> def kernel():
    ...     place = arch.alloc_smem(cute.Float16, 128 * 16, alignment=1024)
    ...     tile = cute.make_layout((128, (8, 2)), stride=(8, (1, 1024)))
    ...     print(type(nvgpu.tcgen05.make_umma_smem_desc(place, tile, "k")).__name__)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 1]()
    SmemDescriptor
    """
    what = "tcgen05.make_umma_smem_desc"
    if major not in _MAJORS:
        raise CuteError(f'{what}: major {major!r} must be "k" or "mn"')
    if not isinstance(layout, Layout) or rank(layout) > 2:
        raise CuteError(f"{what}: layout {layout!r} must be a Layout of the tile (MN, K), or ((MN, K))")
    tile = Tensor(src, layout if rank(layout) == 1 else make_layout((layout,)))
    if next_src is None:
        return descriptor_tensor(tile, _MAJORS[major], TCGEN05, what).iterator  # type: ignore[no-any-return]
    if not isinstance(next_src, Pointer) or next_src.space is not AddressSpace.smem or next_src.alignment % LINE:
        raise CuteError(f"{what}: next_src {next_src!r} must be a pointer to shared memory, aligned to {LINE} bytes")
    if major != "k" or swizzle_bytes(src, TCGEN05, what) != LINE or next_src.swizzle != src.swizzle:
        raise CuteError(
            f"{what}: next_src is for K-major tiles whose swizzle is of 128 bytes, at src and at next_src, and here "
            f'major is "{major}", src {src!r} and next_src {next_src!r}'
        )
    made = descriptor_tensor(tile, _MAJORS[major], TCGEN05, what, leading=0, mode=ABSOLUTE).iterator
    at: Any = encode_address(known(next_src.address))
    return SmemDescriptor(made.low | (at << 16), made.high, made.dtype)
