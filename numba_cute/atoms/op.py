# SPDX-License-Identifier: Apache-2.0
"""The classes of operations: `CopyOp` and `MmaOp` say which methods an operation has.

An operation is one instruction with its choices made, such as `warpgroup.MmaF16BF16Op(…)`: a `frozen` class whose
fields are the choices. Atoms, tiled objects, `cute.copy`, `cute.gemm` and `cute.inspect` know no particular one: all
that they ask stands here, with what most operations answer. An operation of a new kind (another memory, one issuing
thread, operands that are descriptors) overrides what differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from .. import seam
from ..dtypes import DType
from ..layout import Layout
from ..layout.int_tuple import same as alike
from ..seam import CuteError, StaticEnum
from ..seam.ground.records import dataclass
from ..tensor.pointer import AddressSpace
from ..tensor.tensor import Tensor
from .instructions import Part, instructions

if TYPE_CHECKING:
    from ..isa import Instr
    from .copy_atom import CopyAtom


@dataclass(frozen=True)
class CopyTraits:
    """One copy instruction: thr_id: logical to real threads; src, dst: from (thread, value) to elements, counted
    alike on both sides; ref: the one of the two that tiled layouts describe (that of the registers).

    >>> cute.make_copy_atom(nvgpu.CopyG2ROp(), cute.Float32, num_bits_per_copy=128).op.traits(cute.Float32, 128)
    CopyTraits(thr_id=1:0, src=(1,4):(0,1), dst=(1,4):(0,1), ref=(1,4):(0,1))
    """

    thr_id: Layout
    src: Layout
    dst: Layout
    ref: Layout


class CopyOp:
    """Base of all copy operations. A subclass has at least `traits` and `issue`, or `issue_all` in its place.

    In its methods, dtype is the elements' type, num_bits what one instruction moves (0 if the user left that open), and
    atom the atom whose operation this is. src, dst, pred: source, destination and predicate, whole or of one
    instruction; parts: these three of each instruction. bar, mask, policy: `cute.copy`'s tma_bar_ptr, mcast_mask and
    cache_policy, None where they are not given.

    >>> isinstance(nvgpu.CopyUniversalOp(), nvgpu.CopyOp)
    True
    """

    rows: ClassVar[tuple[Instr, ...]] = ()
    """The rows of the instruction table that it issues; none where that is the compiler's choice."""
    gives: ClassVar[tuple[str, ...]] = ()
    """The optional operands of its rows that it always gives."""
    partitioned: ClassVar[str] = "tiled_copy.get_slice(thread).partition_S(src) and partition_D(dst)"
    """The calls that make the parts of tensors that `cute.copy` takes, as errors name them."""
    destinations: ClassVar[int] = 1
    """The number of tensors that one copy writes; `cute.copy` takes a tuple of several."""
    _by_lanes: ClassVar[bool] = False
    """True if in shared memory each lane's values of an instruction are bytes at an address of its own."""
    multicast: ClassVar[bool] = False
    """True if several blocks of a cluster receive what one instruction copies."""
    repeats: ClassVar[bool] = False
    """True if a tile of the destination may hold the source's several times, so that the source is not a whole tile."""

    @property
    def blocks(self) -> int:
        """The number of blocks whose bytes complete on one mbarrier: 2 for the pairs of sm_100."""
        return 1

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        """Give the layouts of one instruction. Raises CuteError for elements or bits that it does not move."""
        raise CuteError(f"{type(self).__name__} is not the operation of one instruction: use one from cute.nvgpu")

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        """Issue one instruction. PTX and least target: the operation's."""
        raise CuteError(f"{type(self).__name__} is not the operation of one instruction: use one from cute.nvgpu")

    def issue_if(self, atom: CopyAtom, src: Tensor, dst: Tensor, pred: Any) -> None:
        """Issue one instruction where `pred` is true. PTX and least target: the operation's."""
        seam.current().when(pred, lambda: self.issue(atom, src, dst))

    def issue_all(self, atom: CopyAtom, parts: Sequence[Part], bar: Any, mask: Any, policy: Any) -> None:
        """Issue the instructions of one `cute.copy`. Raises CuteError for what it was given and the operation does not
        take. PTX and least target: the operation's."""
        self.refuse(tma_bar_ptr=bar, mcast_mask=mask)
        if policy is not None:
            atom = atom.with_op(self.with_cache_policy(policy))
        for src, dst, pred in parts:
            if pred is None:
                atom.op.issue(atom, src, dst)
            else:
                atom.op.issue_if(atom, src, dst, pred)

    def copy(
        self, atom: CopyAtom, src: Tensor, dst: Tensor, pred: Tensor | None, bar: Any, mask: Any, policy: Any
    ) -> None:
        """Copy whole tensors, as `cute.copy` was called: by `issue_all` of their instructions."""
        self.issue_all(atom, instructions(atom, src, dst, pred), bar, mask, policy)

    def issue_prefetch(self, atom: CopyAtom, src: Tensor) -> None:
        """Fetch what a copy of `src` would load into L2. Raises CuteError unless it is a bulk or TMA load."""
        raise CuteError(f"prefetch: the atom's operation {self!r} is not a bulk or TMA load")

    def with_cache_policy(self, policy: Any) -> CopyOp:
        """Give the operation with an L2 cache policy, a word of `arch.createpolicy_fractional`. Raises CuteError if
        it takes none so."""
        self.refuse(cache_policy=policy)
        return self

    def refuse(self, **given: Any) -> None:
        """Raise CuteError for an argument of `cute.copy` that is `given` and that this operation does not take."""
        for name, value in given.items():
            if value is not None:
                raise CuteError(f"copy: {name} is for TMA operations, and the atom's is {self!r}")


@dataclass(frozen=True)
class MmaTraits:
    """The tile of one matrix instruction: d (M, N) += a (M, K) @ b (N, K).T; shape_mnk: its extents; thr_id: logical
    to real threads; a, b, c: thread-value layouts onto (M, K), (N, K), (M, N). sparsity: of how many elements of A
    along K one is stored: tensors and fragments of A are (M, K / sparsity). dense_a: what is told as the layout of A
    where that is (M, K).

    >>> trait = nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)).traits()
    >>> trait.shape_mnk, trait.thr_id, trait.b
    ((16, 8, 16), 32:1, ((4,8),(2,2)):((16,1),(8,64)))
    """

    shape_mnk: tuple[int, int, int]
    thr_id: Layout
    a: Layout
    b: Layout
    c: Layout
    sparsity: int = 1
    dense_a: Layout | None = None


OPERAND_MODES = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}
"""The modes of M, N, K that the operands have."""


class Field(StaticEnum):
    """A setting of a matrix instruction, which `TiledMma.set` changes.

    >>> [field.name for field in nvgpu.tcgen05.Field]
    ['ACCUMULATE', 'NEGATE_A', 'NEGATE_B', 'SFA', 'SFB', 'METADATA', 'COLLECTOR', 'DISABLED_LANES', 'SCALE_D']
    """

    ACCUMULATE = "accum_c"
    NEGATE_A = "neg_a"
    NEGATE_B = "neg_b"
    SFA = "sf_a"
    SFB = "sf_b"
    METADATA = "metadata"
    COLLECTOR = "collector"
    DISABLED_LANES = "disabled_lanes"
    SCALE_D = "scale_d"


class MmaOp:
    """Base of all matrix operations. A subclass has `traits`, `fragment`, `issue` and the operands' types.

    In its methods, operand is "A", "B" or "C", and input a partition shape or a partitioned tensor. d, a, b, c: the
    accumulator, the operands and what is added to their product. accumulate: the flag, Field.ACCUMULATE; words: the
    values of the operation's other `fields`, by the names of the atom's attributes.

    >>> isinstance(nvgpu.MmaUniversalOp(cute.Float32), nvgpu.MmaOp)
    True
    """

    rows: ClassVar[tuple[Instr, ...]] = ()
    """The rows of the instruction table that it may be; none where that is the compiler's choice."""
    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE,)
    """All that can be set on the operation's atom."""
    asynchronous: ClassVar[bool] = False
    """True if the instruction still works on its accumulator after it was issued. A new atom of such an operation has
    Field.ACCUMULATE False, of another True."""
    whole: ClassVar[bool] = False
    """True if it multiplies fragments of any extents at once, by `issue_whole`."""

    @property
    def a_type(self) -> DType:
        """The type of A's elements."""
        raise CuteError(f"{type(self).__name__} is not the operation of one instruction: use one from cute.nvgpu")

    @property
    def b_type(self) -> DType:
        """The type of B's elements."""
        raise CuteError(f"{type(self).__name__} is not the operation of one instruction: use one from cute.nvgpu")

    @property
    def accumulator(self) -> DType:
        """The type of the elements of C and D."""
        raise CuteError(f"{type(self).__name__} is not the operation of one instruction: use one from cute.nvgpu")

    def row(self) -> tuple[Instr, dict[str, Any]] | None:
        """Give the row of the instruction table that it issues, and its static parameters; None if it has none."""
        return None

    def traits(self) -> MmaTraits:
        """Give the instruction's tile and thread-value layouts."""
        raise CuteError(f"{type(self).__name__} is not the operation of one instruction: use one from cute.nvgpu")

    def fragment(self, operand: str, input: Tensor | tuple[Any, ...]) -> Tensor:
        """Give what the instruction takes for `operand`: registers for a partition shape, or for a partitioned tensor
        what it reads that as, such as matrix descriptors of shared memory."""
        raise CuteError(f"{type(self).__name__} is not the operation of one instruction: use one from cute.nvgpu")

    def issue(self, d: Tensor, a: Tensor, b: Tensor, accumulate: Any, **words: Any) -> None:
        """Issue one instruction on fragments: d = a @ b.T, + d if `accumulate`. PTX and least target: the
        operation's."""
        raise CuteError(f"{type(self).__name__} is not the operation of one instruction: use one from cute.nvgpu")

    def issue_whole(self, d: Tensor, a: Tensor, b: Tensor, extents: tuple[int, int, int], accumulate: Any) -> None:
        """Multiply fragments (V, M), (V, N) or (V, M, K), (V, N, K) of `extents` M, N and K; of an operation that is
        `whole`."""

    def word(self, part: Tensor) -> Any:
        """Give the value of a field that was set to a tensor, for the instruction whose `part` of that this is."""
        return part[0]

    def begin(self, d: Tensor, c: Tensor, accumulate: Any) -> None:
        """Put `c` where the instructions, which add in place, add to it: in `d`. Where `accumulate` is False nothing in
        `c` is used. Raises CuteError if that cannot be done."""
        if {d.memspace, c.memspace} != {AddressSpace.rmem} or d.shape != c.shape or d.element_type != c.element_type:
            raise CuteError(f"gemm: d {d!r} and c {c!r} must be accumulators of one shape and type in registers")
        if accumulate is False:
            return
        at, start = d.iterator, c.iterator
        same = seam.current().same_registers(at.address, start.address)
        placed = d.layout is c.layout or alike(d.layout, c.layout)
        if same and placed and (at.offset is start.offset or alike(at.offset, start.offset)):
            return
        if self.asynchronous:
            if same is None and placed:
                return
            raise CuteError(
                f"gemm: c {c!r} is not d: {type(self).__name__} adds in place, to registers that it still uses after "
                "the call; copy c to d before warpgroup.fence(), and pass d twice"
            )
        d.store(c.load())
