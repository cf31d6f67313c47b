# SPDX-License-Identifier: Apache-2.0
"""Copy instructions tiled over threads: CopyAtom, TiledCopy, ThrCopy, and how they are made.

Nothing here knows a particular instruction: `op.CopyOp` says what is asked of one.
"""

from __future__ import annotations

from dataclasses import field, fields, replace
from typing import Any

from .. import layout, seam
from ..dtypes import DType
from ..layout import ComposedLayout, Layout
from ..layout.products import check_not_empty
from ..layout.pure import pure
from ..layout.recast import upcast
from ..seam import CuteError, InIR, StaticEnum, frozen, is_static, traced
from ..seam.guards.kinds import Coordinate
from ..tensor.pointer import AddressSpace, Pointer
from ..tensor.tensor import Tensor, slice_tensor
from .conflicts import bank_conflicts
from .fragments import in_words
from .mma_atom import TiledMma, check_whole_tiles, extents_of_last
from .op import CopyOp, CopyTraits
from .whole import with_properties_of

__all__ = [
    "CopyAtom", "ThrCopy", "TiledCopy", "make_copy_atom", "make_cotiled_copy", "make_tiled_copy", "make_tiled_copy_A",
    "make_tiled_copy_B", "make_tiled_copy_C", "make_tiled_copy_C_atom", "make_tiled_copy_D", "make_tiled_copy_S",
    "make_tiled_copy_tv",
]  # fmt: skip


@frozen
class CopyAtom(InIR):
    """One copy instruction on elements of `value_type`: an operation `op` with its types, as make_copy_atom makes it.

    num_bits: of one copy (0: the operation decides). tensor_map: a TMA operation's map, else None; in a kernel its
    address. tma_modes: which (flattened) mode, or modes, of its tensor each of the map's dimensions is. form: of the
    tiles that a TMA atom was made for. source: on the host what the map describes, kept alive by the atom.

    >>> atom = cute.make_copy_atom(nvgpu.warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
    >>> atom.layout_src_tv, atom.layout_dst_tv
    ((32,8):(8,1), (32,(2,4)):(2,(1,64)))
    """

    op: CopyOp
    value_type: DType
    num_bits: int = 0
    tensor_map: Any = None
    tma_modes: tuple[int | tuple[int, ...], ...] | None = None
    form: Any = None
    source: Any = field(default=None, compare=False, repr=False, metadata={"kernel": False})

    def with_op(self, op: CopyOp) -> CopyAtom:
        """Give the atom with `op` in place of its operation."""
        return replace(self, op=op)

    def with_tensor_map(self, ptr: Pointer) -> CopyAtom:
        """Give a TMA atom that uses the tensor map at `ptr`, in global memory. Raises CuteError for other atoms."""
        if self.tensor_map is None:
            raise CuteError(f"copy: tma_desc_ptr is for TMA atoms, and the atom's operation is {self.op!r}")
        if not isinstance(ptr, Pointer) or ptr.space not in (AddressSpace.gmem, AddressSpace.generic):
            raise CuteError(f"copy: tma_desc_ptr {ptr!r} must be a Pointer to global memory")
        return replace(self, tensor_map=ptr.address)

    @property
    def traits(self) -> CopyTraits:
        """The layouts of one instruction."""
        return self.op.traits(self.value_type, self.num_bits)

    @property
    def thr_id(self) -> Layout:
        """From the instruction's logical threads to real ones."""
        return self.traits.thr_id

    @property
    def layout_src_tv(self) -> Layout:
        """From (thread, value) to the elements of the source."""
        return self.traits.src

    @property
    def layout_dst_tv(self) -> Layout:
        """From (thread, value) to the elements of the destination."""
        return self.traits.dst

    def __cute_allocations__(self) -> list[tuple[int, int, str, Any, bool]]:
        """Give the global memory behind a TMA atom (which keeps its tensor alive), on the host."""
        return [] if self.source is None else self.source.__cute_allocations__()


@pure
def thread_values(tiled: Any, layout_tv: Layout, ref: Layout, target: Layout) -> Any:
    """A tiled layout ((tile), (rests)) as (thread, (atom values, repeated values), (rests)) for the side `target`."""
    atom_shape = (layout.size(ref, (0,)), layout.size(ref, (1,)))
    atoms = layout.zipped_divide(layout_tv, atom_shape)
    to_target = layout.composition(layout.right_inverse(ref), target)
    by_target = layout.composition(atoms, (to_target, None))
    (s0, s1), (d0, d1) = by_target.shape, by_target.stride
    zipped = Layout(tuple(zip(s0, s1)), tuple(zip(d0, d1)))
    thrval = layout.coalesce(zipped, target_profile=(1, (1, 1)))
    out = layout.composition(tiled, (thrval, None))
    return _unfold(out)


def _unfold(lay: Any) -> Any:
    """((a, b), c) as (a, b, c)."""
    if isinstance(lay, ComposedLayout):
        return layout.make_composed_layout(lay.inner, lay.offset, _unfold(lay.outer))
    return Layout((*lay.shape[0], lay.shape[1]), (*lay.stride[0], lay.stride[1]))


@frozen
class TiledCopy(InIR):
    """A copy instruction, `atom`, tiled over threads and values, as make_tiled_copy and its like make it.

    layout_tv_tiled: from (thread, value) to the tile's elements, counted column-major. tiler_mn: the tile, a number or
    layout for each mode.

    >>> atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=32)
    >>> cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(2)).size
    32
    """

    atom: CopyAtom
    layout_tv_tiled: Layout
    tiler_mn: tuple[Any, ...]

    @property
    def op(self) -> CopyOp:
        """The atom's operation."""
        return self.atom.op

    @property
    def value_type(self) -> DType:
        """The type of the elements."""
        return self.atom.value_type

    @property
    def size(self) -> int:
        """The number of threads that it takes."""
        return int(layout.size(self.layout_tv_tiled, (0,)))

    @property
    def thread_count(self) -> int:
        """The number of threads that it takes: `size`."""
        return self.size

    def _side(self, side: str, tiled: Any) -> Any:
        t = self.atom.traits
        return thread_values(tiled, self.layout_tv_tiled, t.ref, t.src if side == "S" else t.dst)

    def _tiled_tv(self, side: str) -> Layout:
        shape = tuple(layout.shape(x) for x in self.tiler_mn)
        parts = self._side(side, layout.make_layout((shape, 1)))
        return layout.slice_(parts, (None, None, 0))  # type: ignore[no-any-return]

    def check_whole(self) -> None:
        """Raise CuteError unless the tile is made of whole atoms: layouts of a tile of parts exist, but no copy."""
        ref = self.atom.traits.ref
        for mode, name in ((0, "threads"), (1, "values a thread")):
            have, unit = layout.size(self.layout_tv_tiled, (mode,)), layout.size(ref, (mode,))
            if have % unit:
                raise CuteError(
                    f"copy: the tiled copy's layout_tv {self.layout_tv_tiled} has {have} {name}, which is not a "
                    f"multiple of the copy atom's {unit}; use a smaller atom or a larger tile"
                )

    @property
    def layout_src_tv_tiled(self) -> Layout:
        """From (thread, value) to the tile's elements, as the source is read."""
        return self._tiled_tv("S")

    @property
    def layout_dst_tv_tiled(self) -> Layout:
        """From (thread, value) to the tile's elements, as the destination is written."""
        return self._tiled_tv("D")

    def get_slice(self, thr_idx: Any) -> ThrCopy:
        """Give the part of thread `thr_idx` (0 to size - 1)."""
        return ThrCopy(self, thr_idx)

    def retile(self, src: Tensor) -> Tensor:
        """Give the fragment in registers `src` as (values of one copy, repetitions), as this copy takes it. Words of
        narrow elements, as fragments of 4-bit operands are, stay words."""
        bits = self.atom.value_type.width
        words = in_words(src, self.atom.value_type)
        elements = _of_words(src.layout, bits) if words else src.layout
        lay = retiled(elements, self.layout_tv_tiled, self.tiler_mn, self.atom.traits.ref)
        return Tensor(src.iterator, layout.recast_layout(32, bits, lay) if words else lay)


NOWHERE = 1 << 19
"""Elements from anywhere in shared memory to where there is none."""


@pure
def _by_threads(tv: Layout, sizes: tuple[int, ...], extents: tuple[int, ...]) -> bool:
    """Say whether each thread's part of a tile, by its thread-value layout, lies wholly within `extents`, or beyond."""
    threads, values = layout.size(tv, (0,)), layout.size(tv, (1,))

    def lies_within(thread: int, value: int) -> bool:
        at = layout.idx2crd(layout.crd2idx((thread, value), tv), sizes)
        return all(x < n for x, n in zip(at, extents))

    return all(len({lies_within(t, v) for v in range(values)}) == 1 for t in range(threads))


@with_properties_of(TiledCopy, "tiled_copy")
@frozen
class ThrCopy(InIR):
    """One thread's part of a tiled copy. tiled_copy: that copy; thr_idx: the thread, counted from 0.

    >>> atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=32)
    >>> tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(2))
    >>> tiled.get_slice(3).partition_S(cute.make_identity_tensor(64))[0]
    6
    """

    tiled_copy: TiledCopy
    thr_idx: Coordinate

    def get_slice(self, thr_idx: Coordinate) -> ThrCopy:
        """Give the part of another thread, `thr_idx`."""
        return self.tiled_copy.get_slice(thr_idx)

    def _partition(self, side: str, tensor: Tensor) -> Tensor:
        tiler = self.tiled_copy.tiler_mn
        if not isinstance(tensor, Tensor) or layout.rank(tensor.layout) < len(tiler):
            raise CuteError(f"partition_{side}: {tensor!r} must be a tensor of at least {len(tiler)} modes")
        nothing = None
        if not self.tiled_copy.op.repeats:
            nothing = self._beyond(side, tensor, f"partition_{side}")
        parts = tensor._relaid(lambda lay: self.tiled_copy._side(side, layout.zipped_divide(lay, tiler)))
        rest = layout.shape(parts.layout)[2]
        nones = (None,) * len(rest) if isinstance(rest, tuple) else None
        part = slice_tensor(parts, (self.thr_idx, None, nones))
        if nothing is not None:
            part = Tensor(part.iterator + nothing, part.layout)
        if self.tiled_copy.op._by_lanes:
            seam.loses(lambda: bank_conflicts(f"partition_{side}", self.tiled_copy.atom, parts, part))
        return part

    def _beyond(self, side: str, tensor: Tensor, what: str) -> Any:
        """Refuse a tensor in shared memory that whole tiles do not make up, unless the tile is its last one and each
        thread's part lies wholly in it or beyond it. A thread that has none of it is given memory that is not there, in
        the simulator: this many elements further on."""
        tiler = self.tiled_copy.tiler_mn
        sizes = tuple(map(layout.size, tiler))
        extents = extents_of_last(tensor, tiler)
        if extents is None or not _by_threads(self.tiled_copy._tiled_tv(side), sizes, extents):
            check_whole_tiles(tensor, sizes, what)
            return None

        def nothing() -> Any:
            first = layout.idx2crd(layout.crd2idx((self.thr_idx, 0), self.tiled_copy._tiled_tv(side)), sizes)
            beyond = 0
            for at, extent, size in zip(first, extents, sizes):
                if extent < size:
                    beyond = seam.current().select(at < extent, beyond, NOWHERE)
            return beyond

        return seam.current().either(lambda: None, nothing)

    def partition_S(self, src: Tensor) -> Tensor:  # noqa: N802 - CuTe's name
        """Give this thread's part ((values of one copy, repetitions), rest…) of the source tensor `src`, which has at
        least the modes of the tile. Raises CuteError otherwise."""
        return self._partition("S", src)

    def partition_D(self, dst: Tensor) -> Tensor:  # noqa: N802
        """Give this thread's part ((values of one copy, repetitions), rest…) of the destination tensor `dst`, which has
        at least the modes of the tile. Raises CuteError otherwise."""
        return self._partition("D", dst)

    def retile(self, src: Tensor) -> Tensor:
        """Give the fragment in registers `src` as (values of one copy, repetitions), as this copy takes it."""
        return self.tiled_copy.retile(src)


@pure
def _of_words(lay: Layout, bits: int) -> Layout:
    """The layout of elements of `bits` bits of a fragment of words, some of whose modes have one word."""
    stride = layout.transform_leaf(lambda n, d: 0 if n == 1 else d, lay.shape, lay.stride)
    made: Layout = layout.recast_layout(bits, 32, Layout(lay.shape, stride))
    return made


@pure
def retiled(lay: Layout, layout_tv: Layout, tiler: Any, ref: Layout) -> Layout:
    """A fragment's layout (V, rest…) as ((atom values, repetitions), rest…)."""
    threads = layout.size(layout_tv, (0,))
    v = layout.size(lay, (0,))
    tile_shape = tuple(layout.shape(x) for x in tiler)
    inverse = layout.composition(layout.right_inverse(layout_tv), layout.make_layout(tile_shape))
    frg_mn = upcast(inverse, threads * v)
    frg_v = layout.zipped_divide(
        layout.logical_product(layout.make_layout(v), layout.right_inverse(frg_mn)),
        layout.make_layout(layout.size(ref, (1,))),
    )
    extents = layout.product_each(layout.shape(frg_mn))
    tiled = layout.zipped_divide(lay, layout.prepend(extents, v))
    values = layout.composition(tiled, (frg_v, None))
    rest = layout.rank(values[1])
    return layout.slice_(values, (None, (0, *(None,) * (rest - 1))))  # type: ignore[no-any-return]


# Making them


@traced
def make_copy_atom(
    op: CopyOp,
    copy_internal_type: DType,
    num_bits_per_copy: int = 0,
    *,
    memory_order: StaticEnum | None = None,
    memory_scope: StaticEnum | None = None,
    l2_prefetch_size: StaticEnum | None = None,
    l1c_evict_priority: StaticEnum | None = None,
    load_cache_mode: StaticEnum | None = None,
    store_cache_mode: StaticEnum | None = None,
    shared_space: StaticEnum | None = None,
    invariant: bool | None = None,
    cache_policy: Any = None,
) -> CopyAtom:
    """Make the atom of a copy operation `op` on elements of `copy_internal_type`.

    num_bits_per_copy: of one instruction, for operations that can choose (CopyUniversalOp: 8 to 256); 0: left to the
    operation. The others set fields of the operation, such as CopyG2ROp's; None leaves them as they are: memory_order,
    memory_scope: how the access is ordered, and for whom. l2_prefetch_size: bytes fetched into L2 around it.
    l1c_evict_priority: when L1 gives it up. load_cache_mode, store_cache_mode: which caches it uses. shared_space:
    whose shared memory. invariant: nothing writes there while the kernel runs. cache_policy: an L2 policy word.

    Raises CuteError if the operation has no such field, or does not copy such elements or so many bits.

    >>> cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128).layout_src_tv
    (1,4):(0,1)
    """
    given = {
        "memory_order": memory_order, "memory_scope": memory_scope, "l2_prefetch_size": l2_prefetch_size,
        "l1c_evict_priority": l1c_evict_priority, "load_cache_mode": load_cache_mode,
        "store_cache_mode": store_cache_mode, "shared_space": shared_space, "invariant": invariant,
        "cache_policy": cache_policy,
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    if not isinstance(op, CopyOp):
        raise CuteError(f"make_copy_atom: op {op!r} is not a copy operation such as CopyUniversalOp()")
    unknown = [name for name in options if name not in {f.name for f in fields(op)}]  # type: ignore[arg-type]
    if unknown:
        raise CuteError(f"make_copy_atom: op {op!r} has no option {unknown[0]}; nvgpu.CopyG2ROp() has such options")
    op = replace(op, **options) if options else op  # type: ignore[type-var]
    if not isinstance(copy_internal_type, DType):
        raise CuteError(f"make_copy_atom: copy_internal_type {copy_internal_type!r} is not an element type")
    atom = CopyAtom(op, copy_internal_type, num_bits_per_copy)
    atom.traits  # noqa: B018 - refuses what the operation cannot do
    return atom


@traced
def make_tiled_copy(atom: CopyAtom, layout_tv: Layout, tiler_mn: int | Layout | tuple[int | Layout, ...]) -> TiledCopy:
    """Tile `atom` as `layout_tv` says: from (thread, value) to elements of the tile `tiler_mn`, a number or layout for
    each mode. A tile that is not made of whole atoms is refused by `copy`. Raises CuteError for what is not a CopyAtom,
    and for a `layout_tv` that has not two modes.

    >>> atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=32)
    >>> cute.make_tiled_copy(atom, cute.make_layout((32, 2)), (64,)).size
    32
    """
    if not isinstance(atom, CopyAtom):
        raise CuteError(f"make_tiled_copy: atom {atom!r} is not a CopyAtom: make one with make_copy_atom")
    if not isinstance(layout_tv, Layout) or layout.rank(layout_tv) != 2:
        raise CuteError(f"make_tiled_copy: layout_tv {layout_tv!r} must be a layout of two modes, (thread, value)")
    tiler = tiler_mn if isinstance(tiler_mn, tuple) else (tiler_mn,)
    tiler = tuple(layout.make_layout(t) if isinstance(t, int) else t for t in tiler)
    check_covers(layout_tv, tiler, "make_tiled_copy")
    return TiledCopy(atom, layout_tv, tiler)


def check_covers(layout_tv: Layout, tiler: tuple[Any, ...], what: str) -> None:
    """Refuse a static layout of threads and values that does not reach all of its tile, or reaches beyond."""
    elements = layout.product(tuple(map(layout.size, tiler)))
    if layout_tv.maps_to_coordinates:
        raise CuteError(f"{what}: layout_tv {layout_tv} reaches coordinates, not elements: give integer strides")
    check_not_empty(what, "layout_tv", layout_tv)
    check_not_empty(what, "tiler", tiler)
    if is_static((layout_tv.shape, layout_tv.stride, elements)) and not _covers(layout_tv, elements):
        raise CuteError(
            f"{what}: layout_tv {layout_tv} must reach each of the {elements} elements of the tile {tiler}, and none "
            "beyond: the others would not be copied; make both with make_layout_tv(thr_layout, val_layout)"
        )


@pure
def _covers(tv: Layout, elements: int) -> bool:
    """Say whether a static layout reaches all numbers below `elements`, and no other. From the smallest stride on: the
    numbers reached so far leave no hole, so a stride beyond them leaves one that no larger stride fills."""
    reached = 1
    for d, s in sorted(zip(layout.flatten_to_tuple(tv.stride), layout.flatten_to_tuple(tv.shape))):
        if s > 1 and d:
            if not 0 < d <= reached:
                return False
            reached += (s - 1) * d
    return bool(reached == elements)


@traced
def make_tiled_copy_tv(atom: CopyAtom, thr_layout: Layout, val_layout: Layout) -> TiledCopy:
    """Tile `atom` over threads laid out by `thr_layout`, each with the block of values `val_layout`: both layouts from
    the tile's coordinates, the threads' and the values' numbers.

    >>> atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
    >>> tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(4))
    >>> tiled.get_slice(1).partition_S(cute.make_identity_tensor(256))
    Tensor(4, ((4,1),2):((1,0),128))
    """
    tiler, tv = layout.make_layout_tv(thr_layout, val_layout)
    return make_tiled_copy(atom, tv, tiler)


def _by_mma(atom: CopyAtom, mma: TiledMma, tv: Layout, x: int, y: int) -> TiledCopy:
    return make_tiled_copy(atom, tv, (mma.get_tile_size(x), mma.get_tile_size(y)))


@traced
def make_tiled_copy_A(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:  # noqa: N802 - CuTe's name
    """Tile `atom` so that each thread copies what `tiled_mma` takes for A.

    >>> mma = cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    >>> atom = cute.make_copy_atom(nvgpu.warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
    >>> cute.make_tiled_copy_A(atom, mma).tiler_mn
    (16:1, 16:1)
    """
    stored = tiled_mma.get_tile_size(2) // tiled_mma.atom.traits.sparsity
    return make_tiled_copy(atom, tiled_mma.tv_layout_A_tiled, (tiled_mma.get_tile_size(0), stored))


@traced
def make_tiled_copy_B(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:  # noqa: N802
    """Tile `atom` so that each thread copies what `tiled_mma` takes for B.

    >>> mma = cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    >>> atom = cute.make_copy_atom(nvgpu.warp.LdMatrix8x8x16bOp(False, 2), cute.Float16)
    >>> cute.make_tiled_copy_B(atom, mma).tiler_mn
    (8:1, 16:1)
    """
    return _by_mma(atom, tiled_mma, tiled_mma.tv_layout_B_tiled, 1, 2)


@traced
def make_tiled_copy_C(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:  # noqa: N802
    """Tile `atom` so that each thread copies what `tiled_mma` leaves in C.

    >>> mma = cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), (2, 1, 1))
    >>> atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=64)
    >>> cute.make_tiled_copy_C(atom, mma).get_slice(0).partition_D(cute.make_identity_tensor((32, 8))).shape
    ((2, 2), 1, 1)
    """
    return _by_mma(atom, tiled_mma, tiled_mma.tv_layout_C_tiled, 0, 1)


@traced
def make_tiled_copy_S(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:  # noqa: N802
    """Tile `atom` as the source side of `tiled_copy` is tiled.

    >>> mma = cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    >>> atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=32)
    >>> tiled = cute.make_tiled_copy_C(atom, mma)
    >>> cute.make_tiled_copy_S(atom, tiled).tiler_mn
    (16:1, 8:1)
    """
    return make_tiled_copy(atom, tiled_copy.layout_src_tv_tiled, tiled_copy.tiler_mn)


@traced
def make_tiled_copy_D(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:  # noqa: N802
    """Tile `atom` as the destination side of `tiled_copy` is tiled.

    >>> mma = cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    >>> atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=32)
    >>> tiled = cute.make_tiled_copy_C(atom, mma)
    >>> cute.make_tiled_copy_D(atom, tiled).tiler_mn
    (16:1, 8:1)
    """
    return make_tiled_copy(atom, tiled_copy.layout_dst_tv_tiled, tiled_copy.tiler_mn)


@traced
def make_tiled_copy_C_atom(atom: CopyAtom, mma: TiledMma) -> TiledCopy:  # noqa: N802
    """Tile `atom` so that each thread copies the values of one atom of what `mma` leaves in C: the smallest such copy,
    for epilogues that store tile by tile. Raises CuteError if a thread of `mma` holds fewer values.

    >>> mma = cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    >>> atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=32)
    >>> cute.make_tiled_copy_C_atom(atom, mma).tiler_mn
    (8:1, (4,2):(2,1))
    """
    tv = mma.tv_layout_C_tiled
    values = layout.size(atom.layout_src_tv, (1,))
    if values > layout.size(tv, (1,)):
        raise CuteError(f"make_tiled_copy_C_atom: atom copies {values} values, but a thread of mma has fewer: {tv}")
    shape = (mma.get_tile_size(0), mma.get_tile_size(1))
    part = layout.composition(tv, layout.make_layout((layout.size(tv, (0,)), values)))
    tiler, tiled_tv = restrict(shape, part)
    return TiledCopy(atom, tiled_tv, tiler)


@pure
def restrict(shape: Any, tv: Layout) -> tuple[Any, Layout]:
    """The tiler that picks the elements of `shape` that `tv` reaches, and `tv` on that tile."""
    tiler = []
    for i in range(len(shape)):
        along = layout.make_layout(shape, stride=tuple(int(j == i) for j in range(len(shape))))
        tiler.append(layout.filter(layout.composition(along, tv)))
    whole = layout.composition(layout.make_layout(shape), tuple(tiler))
    return tuple(tiler), layout.composition(layout.left_inverse(whole), tv)


@traced
def make_cotiled_copy(atom: CopyAtom, atom_layout_tv: Layout, data_layout: Layout) -> TiledCopy:
    """Tile `atom` by `atom_layout_tv`, from (thread, value) to offsets of `data_layout`, a static layout. Raises
    CuteError if that reaches offsets which `data_layout` does not have.

    >>> atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=32)
    >>> cute.make_cotiled_copy(atom, cute.make_layout((32, 2), stride=(2, 1)), cute.make_layout(64)).size
    32
    """
    check_not_empty("make_cotiled_copy", "atom_layout_tv", atom_layout_tv)
    check_not_empty("make_cotiled_copy", "data_layout", data_layout)
    one = layout.make_layout(1, stride=0)
    inverse = layout.make_layout((layout.left_inverse(data_layout), one))
    tv = layout.composition(inverse, atom_layout_tv)
    back = layout.composition(layout.make_layout((data_layout, one)), tv[1])
    beyond = layout.cosize(atom_layout_tv) > layout.cosize(data_layout)
    if beyond or layout.coalesce(back) != layout.coalesce(atom_layout_tv[1]):
        raise CuteError(f"make_cotiled_copy: atom_layout_tv {atom_layout_tv} reaches offsets outside {data_layout}")
    shape = layout.product_each(data_layout.shape)
    tiler, tiled_tv = restrict(shape if isinstance(shape, tuple) else (shape,), tv)
    return TiledCopy(atom, tiled_tv, tiler)
