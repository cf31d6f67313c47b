# SPDX-License-Identifier: Apache-2.0
"""Matrix instructions tiled over threads: MmaAtom, TiledMma, ThrMma.

Nothing here knows a particular instruction: `op.MmaOp` says what is asked of one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from .. import layout
from ..layout import ComposedLayout, Layout
from ..layout.products import check_not_empty
from ..layout.pure import pure
from ..seam import CuteError, InIR, Int, frozen, is_static, traced
from ..seam.guards.messages import how_static
from ..tensor.pointer import AddressSpace, Pointer
from ..tensor.tensor import Tensor, slice_tensor
from .op import OPERAND_MODES, Field, MmaOp, MmaTraits
from .whole import with_properties_of

__all__ = ["MmaAtom", "ThrMma", "TiledMma", "make_mma_atom", "make_tiled_mma"]


_FIELDS = {
    Field.ACCUMULATE: "accumulate",
    Field.NEGATE_A: "negate_a",
    Field.NEGATE_B: "negate_b",
    Field.SFA: "sfa",
    Field.SFB: "sfb",
    Field.METADATA: "metadata",
    Field.COLLECTOR: "collector",
    Field.DISABLED_LANES: "disabled_lanes",
    Field.SCALE_D: "scale_d",
}
"""The attribute of `MmaAtom` that each field is."""


@frozen
class MmaAtom(InIR):
    """One matrix instruction: an operation `op`, with what can be set at each use, as make_mma_atom makes it.

    accumulate: whether it adds to what the accumulator holds; may be a run-time bool; False in a new atom of wgmma or
    tcgen05.mma, True in others. negate_a, negate_b: whether it takes the operand's negative (wgmma of floats). sfa,
    sfb: the thread's word of scale factors of A and B (block-scaled operations). metadata: its word of A's metadata
    (sparse operations). These words are one for all instructions, or a tensor of one for each: (1, MMA_M, MMA_K), of
    sfb (1, MMA_N, MMA_K). Of tcgen05.mma sfa, sfb and metadata are pointers to tensor memory; collector: a
    tcgen05.CollectorOp, the use of A's buffer; disabled_lanes: a tuple of 4 words, of a pair 8, with a bit for each
    lane that keeps what it holds; scale_d: n of 0 to 15, to multiply what is added to by 2 ** -n first (f16, bf16 and
    tf32).

    >>> cute.make_mma_atom(nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))).tv_layout_C
    ((4,8),(2,2)):((32,1),(16,8))
    """

    op: MmaOp
    accumulate: Any
    negate_a: bool = False
    negate_b: bool = False
    sfa: Any = None
    sfb: Any = None
    metadata: Any = None
    collector: Any = None
    disabled_lanes: Any = None
    scale_d: int | None = None
    __cute_unset__: ClassVar[tuple[str, ...]] = ("sfa", "sfb", "metadata")
    """Fields that may be set on one way to a place and not on another."""

    @property
    def traits(self) -> MmaTraits:
        """The instruction's tile and thread-value layouts."""
        return self.op.traits()

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """The instruction's tile (M, N, K)."""
        return self.traits.shape_mnk

    @property
    def thr_id(self) -> Layout:
        """From the instruction's logical threads to real ones."""
        return self.traits.thr_id

    @property
    def tv_layout_A(self) -> Layout:  # noqa: N802 - CuTe's name
        """From (thread, value) to the elements of A, (M, K)."""
        return self.traits.a if self.traits.dense_a is None else self.traits.dense_a

    @property
    def tv_layout_B(self) -> Layout:  # noqa: N802
        """From (thread, value) to the elements of B, (N, K)."""
        return self.traits.b

    @property
    def tv_layout_C(self) -> Layout:  # noqa: N802
        """From (thread, value) to the elements of C, (M, N)."""
        return self.traits.c

    def set(self, field: Field, value: Any) -> MmaAtom:
        """Give the atom with `field` set to `value`. (It is returned: atoms are immutable.) Raises CuteError for a
        field that the operation does not have."""
        return replace(self, **{self._attribute(field, "set"): value})

    def get(self, field: Field) -> Any:
        """Give the value of `field`. Raises CuteError for a field that the operation does not have."""
        return getattr(self, self._attribute(field, "get"))

    def _attribute(self, field: Field, what: str) -> str:
        if not isinstance(field, Field) or field not in self.op.fields:
            legal = ", ".join(f.name for f in self.op.fields)
            raise CuteError(f"{what}: field {field!r} is none that {self.op!r} has: {legal}")
        return _FIELDS[field]

    def issue(self, d: Tensor, a: Tensor, b: Tensor, first: bool, at_a: Any = None, at_b: Any = None) -> None:
        """Issue it once: d = a @ b.T + d. The `first` of a product adds to d only if the atom's `accumulate`, the
        others always. at_a, at_b: the coordinates of a and b in the whole fragments, at which its words lie.
        PTX and least target: the operation's."""
        accumulate = self.accumulate if first else True
        fields = [f for f in self.op.fields if f is not Field.ACCUMULATE]
        options = {_FIELDS[f]: self._word(f, at_b if f is Field.SFB else at_a) for f in fields}
        self.op.issue(d, a, b, accumulate, **options)

    def _word(self, field: Field, at: Any) -> Any:
        """The field's value for the fragment at this coordinate."""
        value = getattr(self, _FIELDS[field])
        if not isinstance(value, Tensor):
            return value
        if layout.rank(value.layout) != (1 if at is None else len(at)):
            raise CuteError(f"gemm: Field.{field.name} of shape {value.shape} must have a word for each fragment")
        return self.op.word(value if at is None else value[at])


@pure
def thread_fragments(lay: Any, perm: Any, atom_tile: Any, tv: Layout, threads: Any) -> Any:
    """An operand's layout (X, Y, …) as ((ThrV, (ThrX, ThrY)), (FrgV, (RestX, RestY, …)))."""
    if layout.rank(lay) < 2:
        raise CuteError(f"partition: {lay} has one mode; a matrix operand has at least 2")
    permuted = layout.logical_divide(lay, perm)
    tiled = layout.zipped_divide(permuted, tuple(layout.make_layout(n) for n in atom_tile))
    in_threads = layout.composition(tiled, (tv, None))
    return _zipped(in_threads, (None, tuple(layout.make_layout(n) for n in threads)))


def _zipped(lay: Any, tiler: Any) -> Any:
    """((V, FrgV), ((ThrX, RestX), (ThrY, RestY), …)) of `lay` divided by `tiler`, as ((V, (Thr…)), (FrgV, (Rest…)))."""
    if isinstance(lay, ComposedLayout):
        return layout.make_composed_layout(lay.inner, lay.offset, _zipped(lay.outer, tiler))
    divided = layout.logical_divide(lay, tiler)

    def gather(t: Any) -> Any:
        (v, frg), modes = t
        return (v, (modes[0][0], modes[1][0])), (frg, (modes[0][1], modes[1][1], *modes[2:]))

    return Layout(gather(divided.shape), gather(divided.stride))


@pure
def vmnk(thr_id: Layout, atom_layout: Layout) -> Layout:
    threads: Layout = layout.tiled_product(thr_id, atom_layout)
    return threads


@pure
def tiled_tv(tiled: Any, thr: Layout, other: int | None) -> Layout:
    """(thread, value) of a whole tile: `tiled` with its logical threads numbered as the real ones."""
    if other is not None:
        x, y = layout.size(thr, (1,)), layout.size(thr, (2,))
        pick = layout.make_layout((x, y), stride=(1, 0) if other == 2 else (0, 1))
        tiled = layout.composition(tiled, ((None, (pick, None)), None))
    n = layout.size(thr)
    to_logical = layout.composition(
        layout.make_layout((n, 1), stride=(1, 0)),
        layout.right_inverse(layout.make_layout((thr, layout.complement(thr)))),
    )
    whole: Layout = layout.composition(tiled, (to_logical, None))
    return whole


@frozen
class TiledMma(InIR):
    """A matrix instruction, `atom`, tiled over warps or warpgroups, and over the values of each, as make_tiled_mma
    makes it.

    atom_layout_mnk: how many of its thread groups lie along M, N, K. permutation_mnk: for each of M, N, K the tile
    (a number, a layout, or None for atom times threads) that is dealt out at once.

    >>> mma = cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    >>> mma.size, mma.shape_mnk
    (32, (16, 8, 16))
    """

    atom: MmaAtom
    atom_layout_mnk: Layout
    permutation_mnk: tuple[Any, Any, Any] = (None, None, None)

    @property
    def op(self) -> MmaOp:
        """The atom's operation."""
        return self.atom.op

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """The tile (M, N, K) of one instruction."""
        return self.atom.shape_mnk

    @property
    def thr_id(self) -> Layout:
        """From an instruction's logical threads to real ones."""
        return self.atom.thr_id

    @property
    def thr_layout_vmnk(self) -> Layout:
        """From (thread of an instruction, M, N, K) to the thread."""
        return vmnk(self.thr_id, self.atom_layout_mnk)

    @property
    def size(self) -> int:
        """The number of threads that it takes."""
        return int(layout.size(self.thr_layout_vmnk))

    @property
    def thread_count(self) -> int:
        """The number of threads that it takes: `size`."""
        return self.size

    @property
    def tv_layout_A(self) -> Layout:  # noqa: N802
        """Return the atom's `tv_layout_A`."""
        return self.atom.tv_layout_A

    @property
    def tv_layout_B(self) -> Layout:  # noqa: N802
        """Return the atom's `tv_layout_B`."""
        return self.atom.tv_layout_B

    @property
    def tv_layout_C(self) -> Layout:  # noqa: N802
        """Return the atom's `tv_layout_C`."""
        return self.atom.tv_layout_C

    def _tile(self, mode: int, stored: int = 1) -> Any:
        """The tile by which `mode` (0, 1, 2 of M, N, K) is divided first, where one of `stored` elements is stored."""
        if mode not in (0, 1, 2):
            raise CuteError(f"TiledMma: mode {mode!r} is none of 0, 1 and 2, for M, N and K")
        perm = self.permutation_mnk[mode]
        if perm is None:
            return self.shape_mnk[mode] * layout.size(self.thr_layout_vmnk, (mode + 1,)) // stored
        if stored != 1:
            n = layout.size(perm)  # a plain number is held as the layout n:1, which moves nothing
            if layout.coalesce(perm) == layout.make_layout(n) and n % stored == 0:
                return layout.make_layout(n // stored)
            raise CuteError(f"permutation_mnk {self.permutation_mnk}: K of a sparse operand cannot be permuted")
        return perm

    def get_tile_size(self, mode_idx: int) -> int:
        """Give the elements along mode `mode_idx`, 0, 1 or 2 for M, N, K, of the whole tile."""
        return int(layout.size(self._tile(mode_idx)))

    def thrfrg(self, operand: str, lay: Any, tv: Layout | None = None) -> Any:
        """Give `lay`, the layout of `operand` "A", "B" or "C", as ((ThrV, (ThrX, ThrY)), (FrgV, (RestX, RestY, …))).
        tv: from (thread, value) to the elements of one instruction, in place of the operand's own."""
        x, y = OPERAND_MODES[operand]
        thr = self.thr_layout_vmnk
        if tv is None:
            tv = {"A": self.atom.traits.a, "B": self.atom.traits.b, "C": self.atom.traits.c}[operand]
        stored = self.atom.traits.sparsity if operand == "A" else 1
        atom_tile = (self.shape_mnk[x], self.shape_mnk[y] // stored)
        threads = (layout.size(thr, (x + 1,)), layout.size(thr, (y + 1,)))
        return thread_fragments(lay, (self._tile(x), self._tile(y, stored)), atom_tile, tv, threads)

    def _thrfrg_A(self, lay: Any) -> Any:  # noqa: N802 - by this name files of the CuTe DSL reach it
        return self.thrfrg("A", lay)

    def layout_tv(self, operand: str, tv: Layout | None = None) -> Layout:
        """Give the layout from (thread, value) to the elements of the tile of `operand`. tv: as of `thrfrg`."""
        x, y = OPERAND_MODES[operand]
        stored = self.atom.traits.sparsity if operand == "A" else 1
        ref = layout.make_layout((self.get_tile_size(x), self.get_tile_size(y) // stored))
        other = {"A": 2, "B": 1, "C": None}[operand]
        return tiled_tv(self.thrfrg(operand, ref, tv), self.thr_layout_vmnk, other)

    @property
    def tv_layout_A_tiled(self) -> Layout:  # noqa: N802
        """From (thread, value) to the elements of the tile of A, (M, K)."""
        return self.layout_tv("A")

    @property
    def tv_layout_B_tiled(self) -> Layout:  # noqa: N802
        """From (thread, value) to the elements of the tile of B, (N, K)."""
        return self.layout_tv("B")

    @property
    def tv_layout_C_tiled(self) -> Layout:  # noqa: N802
        """From (thread, value) to the elements of the tile of C, (M, N)."""
        return self.layout_tv("C")

    def get_slice(self, thr_idx: Any) -> ThrMma:
        """Give the part of thread `thr_idx` (0 to size - 1)."""
        return ThrMma(self, thr_idx)

    def _partition_shape(self, operand: str, shape: Any) -> Any:
        """(V, rest…): V as the atom has it, and how often along each mode, however a permutation deals them out."""
        parts = self.thrfrg(operand, layout.make_layout(shape))
        values = {"A": self.atom.traits.a, "B": self.atom.traits.b, "C": self.atom.traits.c}[operand]
        return (layout.shape(values)[1], *map(layout.size, layout.shape(parts)[1][1]))

    def partition_shape_A(self, shape_mk: Any) -> Any:  # noqa: N802
        """Give the shape (V, MMA_M, MMA_K) of a thread's part of A, whose shape is `shape_mk`."""
        return self._partition_shape("A", shape_mk)

    def partition_shape_B(self, shape_nk: Any) -> Any:  # noqa: N802
        """Give the shape (V, MMA_N, MMA_K) of a thread's part of B, whose shape is `shape_nk`."""
        return self._partition_shape("B", shape_nk)

    def partition_shape_C(self, shape_mn: Any) -> Any:  # noqa: N802
        """Give the shape (V, MMA_M, MMA_N) of a thread's part of C, whose shape is `shape_mn`."""
        return self._partition_shape("C", shape_mn)

    def make_fragment_A(self, input: Tensor | tuple[Any, ...]) -> Tensor:  # noqa: N802
        """Give what the instruction takes for A, of `input`: registers for a partition shape, or for a partitioned
        tensor what the operation reads that as (matrix descriptors for shared memory). Raises CuteError for what it
        cannot read."""
        return self.op.fragment("A", input)

    def make_fragment_B(self, input: Tensor | tuple[Any, ...]) -> Tensor:  # noqa: N802
        """Give what the instruction takes for B, of `input`: as make_fragment_A does for A."""
        return self.op.fragment("B", input)

    def make_fragment_C(self, input: Tensor | tuple[Any, ...]) -> Tensor:  # noqa: N802
        """Make the accumulator, for the partition shape or partitioned tensor `input`; its contents are undefined."""
        return self.op.fragment("C", input)

    def set(self, field: Field, value: Any) -> TiledMma:
        """Give the tiled MMA with `field` set to `value`. It is returned, not changed in place: tiled objects are
        immutable. Raises CuteError for a field that the operation does not have."""
        return replace(self, atom=self.atom.set(field, value))

    def get(self, field: Field) -> Any:
        """Give the value of `field`. Raises CuteError for a field that the operation does not have."""
        return self.atom.get(field)


def check_whole_tiles(tensor: Tensor, tile: tuple[Any, ...], what: str) -> None:
    """Refuse a tensor in shared memory that the tile (a size for each mode) does not divide: the last part would reach
    beyond it. Others may, and be left out by a predicate."""
    p = tensor.iterator
    if not isinstance(p, Pointer) or p.space is not AddressSpace.smem or layout.rank(tensor.layout) < len(tile):
        return
    for i, n in enumerate(tile):
        extent = layout.size(tensor.layout, (i,))
        if isinstance(extent, int) and isinstance(n, int) and extent % n:
            raise CuteError(
                f"{what}: {tensor!r} has {extent} elements along mode {i}, no multiple of the tile's {n}: the last "
                "part would lie beyond it in shared memory; allocate whole tiles, or take a smaller tile"
            )


def extents_of_last(tensor: Tensor, tiler: tuple[Any, ...]) -> tuple[int, ...] | None:
    """Return of a tensor in shared memory how much of a tile it has along each mode, where it is smaller than one along
    some and made of whole ones along the others; None of others, and of tiles of layouts."""
    p, lay = tensor.iterator, tensor.layout
    if not isinstance(p, Pointer) or p.space is not AddressSpace.smem or layout.rank(lay) < len(tiler):
        return None
    extents: list[int] = []
    for i, n in enumerate(tiler):
        extent = layout.size(lay, (i,))
        whole = isinstance(n, int) or layout.coalesce(n).stride in (1, (1,))
        if not isinstance(extent, int) or not whole:
            return None
        extents.append(min(extent, layout.size(n)))
        if extent > extents[i] and extent % extents[i]:
            return None
    return tuple(extents) if extents != list(map(layout.size, tiler)) else None


@with_properties_of(TiledMma, "tiled_mma")
@frozen
class ThrMma(InIR):
    """One thread's part of a tiled MMA. tiled_mma: that one; thr_idx: the thread, counted from 0.

    >>> mma = cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    >>> mma.get_slice(5).partition_C(cute.make_identity_tensor((16, 8)))[0]
    (1, 2)
    """

    tiled_mma: TiledMma
    thr_idx: Int

    def get_slice(self, thr_idx: Int) -> ThrMma:
        """Give the part of another thread, `thr_idx`."""
        return self.tiled_mma.get_slice(thr_idx)

    def _partition(self, operand: str, tensor: Tensor) -> Tensor:
        if not isinstance(tensor, Tensor):
            raise CuteError(
                f"partition_{operand}: {tensor!r} is not a tensor; use partition_shape_{operand} for shapes"
            )
        x, y = OPERAND_MODES[operand]
        stored = self.tiled_mma.atom.traits.sparsity if operand == "A" else 1
        tile = (self.tiled_mma.get_tile_size(x), self.tiled_mma.get_tile_size(y) // stored)
        parts = tensor._relaid(lambda lay: self.tiled_mma.thrfrg(operand, lay))
        coord = self.tiled_mma.thr_layout_vmnk.get_flat_coord(self.thr_idx)
        rest = (None,) * layout.rank(layout.shape(parts.layout)[1][1])
        part = slice_tensor(parts, ((coord[0], (coord[x + 1], coord[y + 1])), (None, rest)))
        if not self._is_first_and_within(part, tensor):
            check_whole_tiles(tensor, tile, f"partition_{operand}")
        return part

    def _is_first_and_within(self, part: Tensor, tensor: Tensor) -> bool:
        """Say whether a part is the first thread's, and none of it lies beyond its tensor: a CTA of a pair may hold its
        own half of a tile alone."""
        if type(self.thr_idx) is not int or self.thr_idx:
            return False
        ends = layout.cosize(part.layout), layout.cosize(tensor.layout)
        return all(type(n) is int for n in ends) and ends[0] <= ends[1]

    def partition_A(self, input_mk: Tensor) -> Tensor:  # noqa: N802
        """Give this thread's part (V, MMA_M, MMA_K, …) of A, a tensor `input_mk` (M, K, …). Raises CuteError
        for a shape (partition_shape_A takes those) and for a tensor of one mode."""
        return self._partition("A", input_mk)

    def partition_B(self, input_nk: Tensor) -> Tensor:  # noqa: N802
        """Give this thread's part (V, MMA_N, MMA_K, …) of B, a tensor `input_nk` (N, K, …). Raises CuteError
        for a shape (partition_shape_B takes those) and for a tensor of one mode."""
        return self._partition("B", input_nk)

    def partition_C(self, input_mn: Tensor) -> Tensor:  # noqa: N802
        """Give this thread's part (V, MMA_M, MMA_N, …) of C, a tensor `input_mn` (M, N, …). Raises CuteError
        for a shape (partition_shape_C takes those) and for a tensor of one mode."""
        return self._partition("C", input_mn)

    def partition_E(self, words: Tensor) -> Tensor:  # noqa: N802
        """Give this thread's words (1, MMA_M, MMA_K) of the metadata of a sparse A: `words` is a tensor (M / m, K / k,
        threads of an atom) as `nvgpu.compress` gives it, the result what Field.METADATA takes. Raises CuteError if M or
        K is permuted."""
        mma = self.tiled_mma
        if mma.permutation_mnk[0] is not None or mma.permutation_mnk[2] is not None:
            raise CuteError(f"partition_E: permutation_mnk {mma.permutation_mnk}: M and K must not be permuted")
        thr = mma.thr_layout_vmnk
        v, m, _, k = thr.get_flat_coord(self.thr_idx)
        groups = (layout.size(thr, (1,)), layout.size(thr, (3,)))
        mine = slice_tensor(
            Tensor(words.iterator, layout.logical_divide(words.layout, groups)), ((m, None), (k, None), v)
        )  # fmt: skip
        return Tensor(mine.iterator, layout.prepend(mine.layout, layout.make_layout(1, stride=0)))

    def partition_shape_A(self, shape_mk: Any) -> Any:  # noqa: N802
        """Give the shape (V, MMA_M, MMA_K) of a thread's part of A, whose shape is `shape_mk`."""
        return self.tiled_mma.partition_shape_A(shape_mk)

    def partition_shape_B(self, shape_nk: Any) -> Any:  # noqa: N802
        """Give the shape (V, MMA_N, MMA_K) of a thread's part of B, whose shape is `shape_nk`."""
        return self.tiled_mma.partition_shape_B(shape_nk)

    def partition_shape_C(self, shape_mn: Any) -> Any:  # noqa: N802
        """Give the shape (V, MMA_M, MMA_N) of a thread's part of C, whose shape is `shape_mn`."""
        return self.tiled_mma.partition_shape_C(shape_mn)

    def make_fragment_A(self, input: Tensor | tuple[Any, ...]) -> Tensor:  # noqa: N802
        """Give `tiled_mma.make_fragment_A(input)`: of a partition shape or a partitioned tensor."""
        return self.tiled_mma.make_fragment_A(input)

    def make_fragment_B(self, input: Tensor | tuple[Any, ...]) -> Tensor:  # noqa: N802
        """Give `tiled_mma.make_fragment_B(input)`: of a partition shape or a partitioned tensor."""
        return self.tiled_mma.make_fragment_B(input)

    def make_fragment_C(self, input: Tensor | tuple[Any, ...]) -> Tensor:  # noqa: N802
        """Give `tiled_mma.make_fragment_C(input)`: of a partition shape or a partitioned tensor."""
        return self.tiled_mma.make_fragment_C(input)


@traced
def make_mma_atom(op: MmaOp) -> MmaAtom:
    """Make the atom of a matrix operation `op` such as `warpgroup.MmaF16BF16Op`. Until Field.ACCUMULATE is set, one of
    wgmma or tcgen05.mma overwrites the accumulator, any other adds to it. Raises CuteError for anything else.

    >>> cute.make_mma_atom(nvgpu.warp.MmaF16BF16Op(cute.BFloat16, cute.Float32, (16, 8, 16))).shape_mnk
    (16, 8, 16)
    """
    if not isinstance(op, MmaOp):
        raise CuteError(f"make_mma_atom: op {op!r} is not a matrix operation such as warpgroup.MmaF16BF16Op(…)")
    return MmaAtom(op, accumulate=not op.asynchronous)


@traced
def make_tiled_mma(
    op_or_atom: MmaOp | MmaAtom,
    atom_layout_mnk: Layout | tuple[int, int, int] = (1, 1, 1),
    permutation_mnk: tuple[Any, Any, Any] | None = None,
) -> TiledMma:
    """Tile a matrix operation or its atom, `op_or_atom`, over groups of its threads.

    atom_layout_mnk: how many groups lie along M, N, K: a shape or a static layout. permutation_mnk: None, or for each
    of M, N, K the tile that is dealt out at once: a number, a layout, or None. Raises CuteError for other forms.

    >>> cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cute.BFloat16, cute.Float32, (16, 8, 16)), (2, 2, 1)).size
    128
    """
    atom = op_or_atom if isinstance(op_or_atom, MmaAtom) else make_mma_atom(op_or_atom)
    groups = atom_layout_mnk if isinstance(atom_layout_mnk, Layout) else layout.make_layout(atom_layout_mnk)
    if layout.rank(groups) != 3 or not is_static((groups.shape, groups.stride)):
        raise CuteError(
            f"make_tiled_mma: atom_layout_mnk {groups} must have 3 static modes (M, N, K){how_static(groups)}"
        )
    perm = (None, None, None) if permutation_mnk is None else permutation_mnk
    if not isinstance(perm, tuple) or len(perm) != 3:
        raise CuteError(f"make_tiled_mma: permutation_mnk {perm!r} must have 3 entries (M, N, K), each may be None")
    tiles = tuple(layout.make_layout(p) if isinstance(p, int) else p for p in perm)
    check_not_empty("make_tiled_mma", "atom_layout_mnk", groups)
    check_not_empty("make_tiled_mma", "permutation_mnk", tuple(t for t in tiles if t is not None))
    return TiledMma(atom, groups, tiles)  # type: ignore[arg-type]
