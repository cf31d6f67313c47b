# SPDX-License-Identifier: Apache-2.0
"""wgmma: matrix multiply-accumulate by a warpgroup (128 threads), B and perhaps A in shared memory, read
asynchronously.

The order: `fence()`, `cute.gemm(…)` for each step, `commit_group()`, `wait_group(n)` before the accumulator is read
or the operands' memory is overwritten. All threads of the warpgroup call each of these, converged.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import isa
from ...atoms.fragments import fragment_registers, register_fragment
from ...atoms.op import Field, MmaTraits
from ...dtypes import DType, Float32, TFloat32, Uint8, Uint32
from ...isa.facts import fragment_layouts
from ...seam import CuteError, frozen, known_as, traced
from ...seam.guards.messages import how_static
from ...tensor.pointer import AddressSpace
from ...tensor.ssa import ReductionOp, TensorSSA, bitcast
from ...tensor.tensor import Tensor
from ..common.by_row import Choice
from ..common.choices import OperandMajorMode, OperandSource
from ..common.matrix import A_MAJOR, A_SRC, AB, ACC, B_MAJOR, SATURATE, SELECTOR, TILE, A, B, RowMma, mma_traits
from ..common.smem_descriptor import SmemDescriptor, check_part, descriptor_tensor
from .descriptor import WGMMA

__all__ = ["MmaB1Op", "MmaF16BF16Op", "MmaF8Op", "MmaI8Op", "MmaTF32Op", "commit_group", "fence", "wait_group"]


@known_as("cute_nvgpu.warpgroup")
class WarpgroupMma(RowMma):
    """Base of the operations of a warpgroup. negate_a, negate_b: the words of Field.NEGATE_A and NEGATE_B. A in
    registers has no major mode: what `a_major_mode` says then is not used."""

    choices = (AB, A, B, ACC, TILE, A_MAJOR, B_MAJOR, A_SRC, SATURATE, SELECTOR)
    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE, Field.NEGATE_A, Field.NEGATE_B)
    asynchronous = True
    elements_in: ClassVar[int] = 1
    """The number of the instruction's elements in an element of a tensor."""
    instruction_shape: Any
    a_src: Any
    a_major_mode: Any
    b_major_mode: Any

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        m, n, k = self.instruction_shape
        return m, n, k // self.elements_in

    def _sets(self, choice: Choice) -> dict[str, Any]:
        return {} if choice is A_MAJOR and self.a_src is OperandSource.RMEM else super()._sets(choice)

    def traits(self) -> MmaTraits:
        _, n, k = self.shape_mnk
        return mma_traits(fragment_layouts.wgmma, n, k, 256 // k, self.a_src is OperandSource.RMEM)

    def fragment(self, operand: str, input: Tensor | tuple[Any, ...]) -> Tensor:
        what = f"make_fragment_{operand}"
        if operand == "C":
            return register_fragment("C", input, self.accumulator)
        dtype = self.a_type if operand == "A" else self.b_type
        if operand == "A" and self.a_src is OperandSource.RMEM:
            return register_fragment("A", input, dtype)
        if not isinstance(input, Tensor):
            raise CuteError(f"{what}: {input!r} must be a partitioned tensor in shared memory")
        if not _reads(input.element_type, dtype):
            raise CuteError(f"{what}: elements are {input.element_type}, but the operation takes {dtype}")
        check_part(input, self.traits(), operand)
        return descriptor_tensor(input, self.a_major_mode if operand == "A" else self.b_major_mode, WGMMA, what)

    def issue(
        self, d: Tensor, a: Tensor, b: Tensor, accumulate: Any, negate_a: Any = False, negate_b: Any = False,
        **words: Any,
    ) -> None:  # fmt: skip
        acc = fragment_registers(d, self.accumulator, self.instruction_shape[1] // 2, "d")
        b_word = _descriptor(b, "b")
        rmem = self.a_src is OperandSource.RMEM
        first = fragment_registers(a, self.a_type, 128 // self.a_type.width, "a") if rmem else _descriptor(a, "a")
        row, statics = self.row()
        signs = {Field.NEGATE_A: ("scale_a", negate_a), Field.NEGATE_B: ("scale_b", negate_b)}
        statics |= {name: _sign(value, f) for f, (name, value) in signs.items() if f in self.fields}
        row(acc, first, b_word, *self.more_operands(words), accumulate, **statics)

    def more_operands(self, words: dict[str, Any]) -> tuple[Any, ...]:
        """Give the instruction's operands between B and the flag, from `words`, the values of the atom's fields."""
        return ()


def _reads(element: DType, dtype: DType) -> bool:
    """Return whether shared memory of `element`s is what an operand of `dtype` is read from: tf32 are floats."""
    return element == dtype or (dtype == TFloat32 and element == Float32)


def _sign(negate: Any, field: Field) -> int:
    if type(negate) is not bool:
        raise CuteError(f"gemm: Field.{field.name} {negate!r} must be True or False, known when the kernel is compiled")
    return -1 if negate else 1


def _descriptor(t: Tensor, name: str) -> Any:
    if not isinstance(t.iterator, SmemDescriptor):
        raise CuteError(f"gemm: {name} {t!r} is not a fragment; take make_fragment_{name.upper()}(partitioned tensor)")
    return t.iterator.word()


@frozen
class MmaF16BF16Op(WarpgroupMma):
    """Multiply f16 or bf16 matrices by a warpgroup. PTX wgmma.mma_async, sm_90a.

    ab_dtype: Float16 or BFloat16. acc_dtype: Float32, or Float16 for f16 operands. instruction_shape: (64, n, 16) or
    (64, n), n a multiple of 8 up to 256. a_src: where A lies. a_major_mode, b_major_mode: K or MN; A from registers
    has none. Raises CuteError for others.

    >>> K, SMEM = nvgpu.warpgroup.OperandMajorMode.K, nvgpu.warpgroup.OperandSource.SMEM
    >>> op = nvgpu.warpgroup.MmaF16BF16Op(cute.BFloat16, cute.Float32, (64, 128, 16), SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (64, 128, 16)
    """

    ab_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    rows = (isa.wgmma_ss, isa.wgmma_f16_ss, isa.wgmma_rs, isa.wgmma_f16_rs)


@frozen
class MmaTF32Op(WarpgroupMma):
    """Multiply tf32 matrices (floats, whose 13 low bits are ignored), accumulated in Float32, by a warpgroup.
    PTX wgmma.mma_async, sm_90a.

    instruction_shape: (64, n, 8) or (64, n), n a multiple of 8 up to 256. a_src: where A lies. a_major_mode,
    b_major_mode: K. Raises CuteError for others.

    >>> K, SMEM = nvgpu.warpgroup.OperandMajorMode.K, nvgpu.warpgroup.OperandSource.SMEM
    >>> op = nvgpu.warpgroup.MmaTF32Op((64, 128, 8), SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (64, 128, 8)
    """

    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K

    rows = (isa.wgmma_k_ss, isa.wgmma_k_rs)
    bits = 32


@frozen
class MmaF8Op(WarpgroupMma):
    """Multiply fp8 matrices by a warpgroup. PTX wgmma.mma_async, sm_90a. The hardware keeps fewer bits of its sums than
    Float32 has.

    a_dtype, b_dtype: Float8E4M3FN or Float8E5M2, each its own. acc_dtype: Float32 or Float16. instruction_shape:
    (64, n, 32) or (64, n), n a multiple of 8 up to 256. a_src: where A lies. a_major_mode, b_major_mode: K. Raises
    CuteError for others.

    >>> K, SMEM = nvgpu.warpgroup.OperandMajorMode.K, nvgpu.warpgroup.OperandSource.SMEM
    >>> op = nvgpu.warpgroup.MmaF8Op(cute.Float8E4M3FN, cute.Float8E5M2, cute.Float32, (64, 128, 32), SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (64, 128, 32)
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K

    rows = (isa.wgmma_k_ss, isa.wgmma_k_f16_ss, isa.wgmma_k_rs, isa.wgmma_k_f16_rs)
    bits = 8


@frozen
class MmaI8Op(WarpgroupMma):
    """Multiply matrices of 8-bit integers by a warpgroup. PTX wgmma.mma_async, sm_90a.

    a_dtype, b_dtype: Int8 or Uint8, each its own. acc_dtype: Int32. instruction_shape: (64, n, 32) or (64, n), n 8, 16,
    24 or a multiple of 16 up to 256. a_src: where A lies. a_major_mode, b_major_mode: K. saturate: clamp (as the CuTe
    DSL does) or wrap. Raises CuteError for others.

    >>> K, SMEM = nvgpu.warpgroup.OperandMajorMode.K, nvgpu.warpgroup.OperandSource.SMEM
    >>> op = nvgpu.warpgroup.MmaI8Op(cute.Int8, cute.Int8, cute.Int32, (64, 128, 32), SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (64, 128, 32)
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    saturate: bool = True

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE,)
    rows = (isa.wgmma_s32_ss, isa.wgmma_s32_rs)


@frozen
class MmaB1Op(WarpgroupMma):
    """Count bits in Int32 by a warpgroup: d[m, n] is the number of bits set in both row m of A and row n of B, of 256
    along K. PTX wgmma.mma_async.and.popc, sm_90a.

    instruction_shape: (64, n, 256) or (64, n), n 8, 16, 24 or a multiple of 16 up to 256. a_src: where A lies.
    a_major_mode, b_major_mode: K. Operands are Uint8 tensors of 8 bits an element, (M, K / 8) and (N, K / 8), the first
    bit lowest; `shape_mnk` counts bytes along K. Raises CuteError for others.

    >>> op = nvgpu.warpgroup.MmaB1Op((64, 8), nvgpu.OperandSource.SMEM)
    >>> cute.make_mma_atom(op).shape_mnk
    (64, 8, 32)
    """

    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE,)
    rows = (isa.wgmma_b1_ss, isa.wgmma_b1_rs)
    elements_in = 8
    a_type = Uint8
    b_type = Uint8


@traced
@known_as("cute_nvgpu.warpgroup")
def fence() -> None:
    """Order accesses to accumulators and A registers before the next wgmma. It does not order shared memory. All
    threads of the warpgroup. PTX wgmma.fence, sm_90a.

    See the example of `wait_group`.
    """
    isa.wgmma_fence()


@traced
@known_as("cute_nvgpu.warpgroup")
def commit_group() -> None:
    """Close the group of wgmmas issued since the last one. All threads of the warpgroup. PTX wgmma.commit_group,
    sm_90a.

    See the example of `wait_group`.
    """
    isa.wgmma_commit_group()


@traced
@known_as("cute_nvgpu.warpgroup")
def wait_group(group: int, after: Tensor | TensorSSA | None = None) -> None:
    """Wait until at most the `group` (0 to 7) latest groups are incomplete. All threads of the warpgroup. PTX
    wgmma.wait_group, sm_90a.

    after: a vector or a tensor in registers, of 32-bit elements: the wait does not begin before these are known, so
    that what they are made of runs beside the multiplies. Without it the assembler may begin the wait earlier: it
    moves it up over arithmetic. A few numbers that depend on all the rest do, as the sums of a softmax. It costs a
    comparison and an instruction that is skipped. Raises CuteError unless `group` is a static number in the range, and
    for an `after` that is neither.

    >>> from numba_cute.nvgpu import OperandMajorMode, OperandSource, warpgroup
    >>> K = OperandMajorMode.K
    >>> op = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 8, 16), OperandSource.SMEM, K, K)
    >>> tiled = cute.make_tiled_mma(op)
    >>> def kernel():
    ...     smem = utils.SmemAllocator()
    ...     lay_a, lay_b = [cute.make_layout((m, (8, 2)), stride=(8, (1, 8 * m))) for m in (64, 8)]
    ...     a, b = [smem.allocate_tensor(cute.Float16, layout, 128) for layout in (lay_a, lay_b)]
    ...     if arch.thread_idx()[0] == 0:
    ...         a.fill(1)
    ...         b.fill(2)
    ...     arch.fence_view_async_shared()
    ...     arch.sync_threads()
    ...     thr = tiled.get_slice(arch.thread_idx()[0])
    ...     acc = tiled.make_fragment_C(tiled.partition_shape_C((64, 8)))
    ...     warpgroup.fence()
    ...     f_a, f_b = tiled.make_fragment_A(thr.partition_A(a)), tiled.make_fragment_B(thr.partition_B(b))
    ...     cute.gemm(tiled, acc, f_a, f_b, acc)
    ...     warpgroup.commit_group()
    ...     warpgroup.wait_group(0)
    ...     if arch.thread_idx()[0] == 0:
    ...         print(acc[0])
    >>> cute.simulate(kernel)[1, 128]()
    32.0
    """
    most = isa.wgmma_wait_group.cases[-1]["n"]
    if type(group) is not int or not 0 <= group <= most:
        raise CuteError(
            f"warpgroup.wait_group: group {group!r} must be a static number in [0, {most}]{how_static(group)}"
        )
    if after is None:
        isa.wgmma_wait_group(n=group)
        return
    if isinstance(after, Tensor) and after.memspace is AddressSpace.rmem:
        after = after.load()
    if not isinstance(after, TensorSSA) or after.dtype.width != 32:
        raise CuteError(
            f"warpgroup.wait_group: after {after!r} must be a vector, or a tensor in registers, of 32-bit elements"
        )
    if after.dtype is Float32:  # a sum, and not their bits, which would take registers beside them
        word = bitcast(after.reduce(ReductionOp.ADD, Float32(-0.0)), Float32, Uint32)
    else:
        word = after.bitcast(Uint32).reduce(ReductionOp.XOR, Uint32(0))
    isa.wgmma_wait_group_after(word, n=group)
