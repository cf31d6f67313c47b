# SPDX-License-Identifier: Apache-2.0
"""tcgen05.ld and tcgen05.st: blocks of lanes and columns between tensor memory and the registers of a warp.

Warp w of a warpgroup reaches lanes 32 * (w % 4) to 32 * (w % 4) + 31, and `make_tmem_copy` deals a tensor's lanes out
so: its slices are of the thread's number in the warpgroup. Loads and stores are asynchronous:
`arch.fence_view_async_tmem_load` comes before the registers are read, `fence_view_async_tmem_store` before the tensor
memory is handed on.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import isa, layout
from ...atoms.copy_atom import CopyAtom, ThrCopy, TiledCopy, make_cotiled_copy
from ...atoms.op import CopyOp, CopyTraits
from ...dtypes import DType
from ...isa.facts import tensor_memory as tmem
from ...layout import Layout, make_layout
from ...seam import CuteError, StaticEnum, frozen, is_static, known_as, traced
from ...seam.guards.messages import how_static
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.tensor import Tensor
from ..common.by_row import ByRow, Choice, known_name, remembered
from ..common.register_words import gathered, words

__all__ = [
    "Ld16x128bOp", "Ld16x256bOp", "Ld16x32bx2Op", "Ld16x64bOp", "Ld32x32bOp", "Pack", "Repetition", "St16x128bOp",
    "St16x256bOp", "St16x32bx2Op", "St16x64bOp", "St32x32bOp", "Unpack", "find_tmem_tensor_col_offset",
    "get_tmem_copy_properties", "is_tmem_load", "is_tmem_store", "make_tmem_copy",
]  # fmt: skip


class Repetition(StaticEnum):
    """The number of times that one load or store repeats its block along the columns. Repetition(32) is x32.

    >>> nvgpu.tcgen05.Repetition(32).name
    'x32'
    """

    x1 = 1
    x2 = 2
    x4 = 4
    x8 = 8
    x16 = 16
    x32 = 32
    x64 = 64
    x128 = 128


class Pack(StaticEnum):
    """The way in which a load fills registers: one column each (NONE), or with the lower 16 bits of two.

    >>> [member.name for member in nvgpu.tcgen05.Pack]
    ['NONE', 'PACK_16b_IN_32b']
    """

    NONE = 1
    PACK_16b_IN_32b = 2


class Unpack(StaticEnum):
    """The way in which a store takes registers: for one column each (NONE), or with 16 bits for each of two.

    >>> [member.name for member in nvgpu.tcgen05.Unpack]
    ['NONE', 'UNPACK_32b_IN_16b']
    """

    NONE = 1
    UNPACK_32b_IN_16b = 2


REPEAT = Choice("repeat", ("num",), {r.value: r for r in Repetition})
PACK = Choice("pack", ("pack",), {False: Pack.NONE, True: Pack.PACK_16b_IN_32b})
UNPACK = Choice("unpack", ("unpack",), {False: Unpack.NONE, True: Unpack.UNPACK_32b_IN_16b})


@remembered
def _layouts(shape: tmem.Shape, num: int, width: int, load: bool) -> CopyTraits:
    """Return the layouts of one instruction: all its threads hold the whole block of tensor memory, and each its
    registers."""
    there = make_layout((32, shape.elements(num, width)), stride=(0, 1))
    here = tmem.thread_values(shape, num, width)
    return CopyTraits(make_layout(32), *((there, here) if load else (here, there)), there)


@known_as("cute_nvgpu.tcgen05")
class TmemCopy(ByRow, CopyOp):
    """Base of the loads and stores.

    shape: the block of one repetition. loads: whether it loads."""

    shape: ClassVar[tmem.Shape]
    loads: ClassVar[bool]
    repeat: Any

    @property
    def packing(self) -> Any:
        """The way in which registers are filled: its Pack or Unpack."""
        raise NotImplementedError

    @property
    def apart(self) -> bool:
        """True if each element of 16 bits has a column of its own."""
        return bool(self.packing.value != 1)

    @property
    def registers(self) -> int:
        """The 32-bit registers of one thread."""
        return int(self.shape.registers * self.repeat.value)

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        width, name = dtype.width, known_name(self)
        if width > 32 or 32 % width:
            raise CuteError(f"{name}: elements of {dtype} have {width} bits: they must make up words of 32")
        if self.apart and width != 16:
            raise CuteError(f"{name}: {self.packing} is for elements of 16 bits, and {dtype} has {width}")
        return _layouts(self.shape, self.repeat.value, width, self.loads)

    def place(self, atom: CopyAtom, t: Tensor, name: str) -> Any:
        """Give the address of one block in tensor memory, the tensor `t` of a copy by `atom`. name: "src" or "dst".
        Raises CuteError if it is none."""
        p, width = t.iterator, atom.value_type.width
        if not isinstance(p, Pointer) or p.space is not AddressSpace.tmem:
            raise CuteError(f"copy: {name} {t!r} must lie in tensor memory for {known_name(self)}")
        same_width(atom, t, name)
        if not (isinstance(p.offset, int) and p.offset == 0):
            raise CuteError(f"copy: {name} {t!r} begins inside of a 32-bit column")
        want = tmem.block(self.shape, self.repeat.value, width, self.apart)
        if not is_static((t.layout.shape, t.layout.stride)) or layout.coalesce(t.layout) != layout.coalesce(want):
            raise CuteError(
                f"copy: {name} has layout {t.layout}, but {self!r} moves {want}, (elements of a lane, lanes): take "
                f"the partition_{'S' if self.loads else 'D'} of tcgen05.make_tmem_copy"
            )
        return p.address


def same_width(atom: CopyAtom | TiledCopy, t: Tensor, name: str) -> None:
    """Refuse a tensor `t`, called `name`, whose elements are not as wide as those of the copy `atom`."""
    if t.element_type.width != atom.value_type.width:
        raise CuteError(
            f"copy: {name} {t!r} has elements of {t.element_type.width} bits, and the atom's, {atom.value_type}, have "
            f"{atom.value_type.width}; recast one of them"
        )


class _Load(TmemCopy):
    """Base of the loads."""

    loads = True
    pack: Any
    rows = (isa.tcgen05_ld,)
    choices = (REPEAT, PACK)

    @property
    def packing(self) -> Any:
        return self.pack

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        row, statics = self.row()
        row(dst=loaded(self, atom, dst), taddr=self.place(atom, src, "src"), **statics)


def loaded(op: TmemCopy, atom: CopyAtom, dst: Tensor) -> Any:
    """Give the registers of a load's destination. Raises CuteError unless they are consecutive: the load arrives there
    later, so that nothing can be moved."""
    what = f"{known_name(op)}: dst"
    same_width(atom, dst, "dst")
    spans = words(dst, op.registers, what)
    if len(spans) > 1:
        raise CuteError(
            f"{what} {dst!r} must be {op.registers} consecutive registers for each instruction: make it of the "
            "partition's shape, by make_rmem_tensor"
        )
    return spans[0]


class _Store(TmemCopy):
    """Base of the stores."""

    loads = False
    unpack: Any
    rows = (isa.tcgen05_st,)
    choices = (REPEAT, UNPACK)

    @property
    def packing(self) -> Any:
        return self.unpack

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        row, statics = self.row()
        same_width(atom, src, "src")
        regs = gathered(src, self.registers, f"{known_name(self)}: src")
        row(taddr=self.place(atom, dst, "dst"), src=regs, **statics)


@frozen
class Ld16x64bOp(_Load):
    """Load 16 lanes of 64 bits from tensor memory. A whole converged warp; then `arch.fence_view_async_tmem_load`.
    PTX tcgen05.ld, sm_100f.

    repeat: a member of Repetition: how often along the columns. pack: of 16-bit elements in a column each, two in a
    register (Pack.PACK_16b_IN_32b). Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.Ld16x64bOp(nvgpu.tcgen05.Repetition.x4), cute.Float32)
    >>> atom.layout_dst_tv
    ((2,2,8),(1,4)):((64,1,8),(1,2))
    """

    repeat: Repetition = Repetition.x1
    pack: Pack = Pack.NONE

    shape = tmem.S16X64B
    fixed = {"shape": shape.name}


@frozen
class Ld16x128bOp(_Load):
    """Load 16 lanes of 128 bits from tensor memory. A whole converged warp; then `arch.fence_view_async_tmem_load`.
    PTX tcgen05.ld, sm_100f.

    repeat: up to x64, pack: as of Ld16x64bOp. Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.Ld16x128bOp(nvgpu.tcgen05.Repetition.x4), cute.Float32)
    >>> atom.layout_dst_tv
    ((4,8),(1,2,4)):((1,16),(1,128,4))
    """

    repeat: Repetition = Repetition.x1
    pack: Pack = Pack.NONE

    shape = tmem.S16X128B
    fixed = {"shape": shape.name}


@frozen
class Ld16x256bOp(_Load):
    """Load 16 lanes of 256 bits from tensor memory. A whole converged warp; then `arch.fence_view_async_tmem_load`.
    PTX tcgen05.ld, sm_100f.

    repeat: up to x32, pack: as of Ld16x64bOp. Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.Ld16x256bOp(nvgpu.tcgen05.Repetition.x4), cute.Float32)
    >>> atom.layout_dst_tv
    ((4,8),(2,2,4)):((2,32),(1,256,8))
    """

    repeat: Repetition = Repetition.x1
    pack: Pack = Pack.NONE

    shape = tmem.S16X256B
    fixed = {"shape": shape.name}


@frozen
class Ld16x32bx2Op(_Load):
    """Load 16 lanes of twice 32 bits from tensor memory, the second half to the upper 16 threads. A whole converged
    warp; then `arch.fence_view_async_tmem_load`. PTX tcgen05.ld, sm_100f.

    repeat, pack: as of Ld16x64bOp; the repetitions of the first half come before those of the second. Raises CuteError
    for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.Ld16x32bx2Op(nvgpu.tcgen05.Repetition.x4), cute.Float32)
    >>> atom.layout_dst_tv
    ((16,2),4):((8,4),1)
    """

    repeat: Repetition = Repetition.x1
    pack: Pack = Pack.NONE

    shape = tmem.S16X32BX2
    fixed = {"shape": shape.name}


@frozen
class Ld32x32bOp(_Load):
    """Load 32 lanes of 32 bits from tensor memory, each to a thread. A whole converged warp; then
    `arch.fence_view_async_tmem_load`. PTX tcgen05.ld, sm_100f.

    repeat, pack: as of Ld16x64bOp. Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.Ld32x32bOp(nvgpu.tcgen05.Repetition.x4), cute.Float32)
    >>> atom.layout_dst_tv
    (32,4):(4,1)
    """

    repeat: Repetition = Repetition.x1
    pack: Pack = Pack.NONE

    shape = tmem.S32X32B
    fixed = {"shape": shape.name}


@frozen
class St16x64bOp(_Store):
    """Store 16 lanes of 64 bits to tensor memory. A whole converged warp; then `arch.fence_view_async_tmem_store`.
    PTX tcgen05.st, sm_100f.

    repeat: a member of Repetition: how often along the columns. unpack: the 16-bit elements of a register to a column
    each (Unpack.UNPACK_32b_IN_16b). Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.St16x64bOp(nvgpu.tcgen05.Repetition.x4), cute.Float32)
    >>> atom.layout_src_tv
    ((2,2,8),(1,4)):((64,1,8),(1,2))
    """

    repeat: Repetition = Repetition.x1
    unpack: Unpack = Unpack.NONE

    shape = tmem.S16X64B
    fixed = {"shape": shape.name}


@frozen
class St16x128bOp(_Store):
    """Store 16 lanes of 128 bits to tensor memory. A whole converged warp; then `arch.fence_view_async_tmem_store`.
    PTX tcgen05.st, sm_100f.

    repeat: up to x64, unpack: as of St16x64bOp. Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.St16x128bOp(nvgpu.tcgen05.Repetition.x4), cute.Float32)
    >>> atom.layout_src_tv
    ((4,8),(1,2,4)):((1,16),(1,128,4))
    """

    repeat: Repetition = Repetition.x1
    unpack: Unpack = Unpack.NONE

    shape = tmem.S16X128B
    fixed = {"shape": shape.name}


@frozen
class St16x256bOp(_Store):
    """Store 16 lanes of 256 bits to tensor memory. A whole converged warp; then `arch.fence_view_async_tmem_store`.
    PTX tcgen05.st, sm_100f.

    repeat: up to x32, unpack: as of St16x64bOp. Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.St16x256bOp(nvgpu.tcgen05.Repetition.x4), cute.Float32)
    >>> atom.layout_src_tv
    ((4,8),(2,2,4)):((2,32),(1,256,8))
    """

    repeat: Repetition = Repetition.x1
    unpack: Unpack = Unpack.NONE

    shape = tmem.S16X256B
    fixed = {"shape": shape.name}


@frozen
class St16x32bx2Op(_Store):
    """Store 16 lanes of twice 32 bits to tensor memory, the second half from the upper 16 threads. A whole converged
    warp; then `arch.fence_view_async_tmem_store`. PTX tcgen05.st, sm_100f.

    repeat, unpack: as of St16x64bOp; the repetitions of the first half come before those of the second. Raises
    CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.St16x32bx2Op(nvgpu.tcgen05.Repetition.x4), cute.Float32)
    >>> atom.layout_src_tv
    ((16,2),4):((8,4),1)
    """

    repeat: Repetition = Repetition.x1
    unpack: Unpack = Unpack.NONE

    shape = tmem.S16X32BX2
    fixed = {"shape": shape.name}


@frozen
class St32x32bOp(_Store):
    """Store 32 lanes of 32 bits to tensor memory, each from a thread. A whole converged warp; then
    `arch.fence_view_async_tmem_store`. PTX tcgen05.st, sm_100f.

    repeat, unpack: as of St16x64bOp. Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.St32x32bOp(nvgpu.tcgen05.Repetition.x4), cute.Float32)
    >>> atom.layout_src_tv
    (32,4):(4,1)
    """

    repeat: Repetition = Repetition.x1
    unpack: Unpack = Unpack.NONE

    shape = tmem.S32X32B
    fixed = {"shape": shape.name}


def _operation(atom: Any, what: str) -> Any:
    if not isinstance(atom, (CopyAtom, TiledCopy, ThrCopy)):
        raise CuteError(f"tcgen05.{what}: atom {atom!r} is neither a CopyAtom nor a TiledCopy")
    return (atom.tiled_copy if isinstance(atom, ThrCopy) else atom).op


def _moving(atom: Any, what: str) -> TmemCopy:
    op = _operation(atom, what)
    if not isinstance(op, TmemCopy):
        raise CuteError(f"tcgen05.{what}: the atom's operation {op!r} is not a load or store of tensor memory")
    return op


@traced
@known_as("cute_nvgpu.tcgen05")
def is_tmem_load(atom: CopyAtom | TiledCopy | ThrCopy) -> bool:
    """Return whether the operation of `atom`, of a copy or a part of one, loads from tensor memory to registers.

    >>> nvgpu.tcgen05.is_tmem_load(cute.make_copy_atom(nvgpu.tcgen05.Ld32x32bOp(), cute.Float32))
    True
    """
    op = _operation(atom, "is_tmem_load")
    return isinstance(op, TmemCopy) and op.loads


@traced
@known_as("cute_nvgpu.tcgen05")
def is_tmem_store(atom: CopyAtom | TiledCopy | ThrCopy) -> bool:
    """Return whether the operation of `atom`, of a copy or a part of one, stores registers to tensor memory.

    >>> nvgpu.tcgen05.is_tmem_store(cute.make_copy_atom(nvgpu.tcgen05.Ld32x32bOp(), cute.Float32))
    False
    """
    op = _operation(atom, "is_tmem_store")
    return isinstance(op, TmemCopy) and not op.loads


@traced
@known_as("cute_nvgpu.tcgen05")
def get_tmem_copy_properties(atom: CopyAtom | TiledCopy | ThrCopy) -> tuple[int, int, int, Any]:
    """Return of the load or store `atom` of tensor memory: lanes, bits of a lane, repetitions, and its Pack or Unpack.
    Of 16x32bx2 the bits are the 32 of one half. Raises CuteError for other operations.

    >>> op = nvgpu.tcgen05.Ld32x32bOp(nvgpu.tcgen05.Repetition.x32)
    >>> nvgpu.tcgen05.get_tmem_copy_properties(cute.make_copy_atom(op, cute.Float32))
    (32, 32, 32, <Pack.NONE: 1>)
    """
    op = _moving(atom, "get_tmem_copy_properties")
    return op.shape.lanes, op.shape.columns * 32, op.repeat.value, op.packing


def in_tensor_memory(t: Any, what: str) -> Tensor:
    """Return `t`, which must be a tensor of a static layout in tensor memory. what: the function that says so."""
    if not isinstance(t, Tensor) or t.memspace is not AddressSpace.tmem:
        raise CuteError(f"tcgen05.{what}: tmem_tensor {t!r} must be a tensor in tensor memory")
    if not isinstance(t.layout, Layout) or not is_static((t.layout.shape, t.layout.stride)):
        raise CuteError(
            f"tcgen05.{what}: tmem_tensor has layout {t.layout}, which must be static: index its stages"
            f"{how_static(t.layout)}"
        )
    return t


@traced
@known_as("cute_nvgpu.tcgen05")
def find_tmem_tensor_col_offset(tmem_tensor: Tensor) -> int:
    """Return how many 32-bit columns the tensor `tmem_tensor` reaches from where it begins: the offset at which another
    may follow. Raises CuteError for other memory, and for a layout that is not static.

    >>> K, one = nvgpu.OperandMajorMode.K, nvgpu.tcgen05.CtaGroup.ONE
    >>> tiled = utils.sm100.make_trivial_tiled_mma(cute.Float16, K, K, cute.Float32, one, (128, 64))
    >>> acc = tiled.make_fragment_C(tiled.partition_shape_C((128, 64)))
    >>> nvgpu.tcgen05.find_tmem_tensor_col_offset(acc)
    64
    """
    t = in_tensor_memory(tmem_tensor, "find_tmem_tensor_col_offset")
    return tmem.column_count(t.layout, t.element_type.width)


@traced
@known_as("cute_nvgpu.tcgen05")
def make_tmem_copy(atom: CopyAtom, tmem_tensor: Tensor) -> TiledCopy:
    """Tile a load or store over the four warps of a warpgroup, each with its 32 lanes of `tmem_tensor`.

    atom: of a tcgen05 load or store, on elements as wide as the tensor's. tmem_tensor: a tensor in tensor memory of a
    static layout, with as many lanes of each 32 as the atom moves. `get_slice` takes the thread's number in its
    warpgroup, whose first warp's number is a multiple of 4. Raises CuteError for a layout that is not made of the
    atom's blocks.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.Ld32x32bOp(nvgpu.tcgen05.Repetition.x32), cute.Float32)
    >>> place = cute.make_ptr(cute.Float32, 0, cute.AddressSpace.tmem, assumed_align=16)
    >>> acc = cute.make_tensor(place, cute.make_layout((128, 32), stride=(65536, 1)))
    >>> tiled = nvgpu.tcgen05.make_tmem_copy(atom, acc)
    >>> tiled.size, tiled.get_slice(0).partition_D(cute.make_identity_tensor((128, 32))).shape
    (128, ((32, 1), 1, 1))
    """
    what = "make_tmem_copy"
    op = _moving(atom, what)
    if not isinstance(atom, CopyAtom):
        raise CuteError(f"tcgen05.{what}: atom {atom!r} is tiled already; give the CopyAtom")
    t = in_tensor_memory(tmem_tensor, what)
    same_width(atom, t, "tmem_tensor")
    return _tiled(atom, op, t.layout)


def _tiled(atom: CopyAtom, op: TmemCopy, lay: Layout) -> TiledCopy:
    width = atom.value_type.width
    block = layout.coalesce(tmem.block(op.shape, op.repeat.value, width, op.apart))
    threads = make_layout((tmem.WARP_LANES, 4), stride=(0, tmem.WARP_LANES * tmem.lane_stride(width)))
    try:
        return make_cotiled_copy(atom, make_layout((threads, block)), lay)
    except CuteError as e:
        raise CuteError(
            f"tcgen05.make_tmem_copy: tmem_tensor of layout {lay} is not made of blocks {block} of {op!r} for four "
            f"warps, (thread: lanes) {threads}: {e}"
        ) from None
