# SPDX-License-Identifier: Apache-2.0
"""tcgen05.mma, dense: matrix multiply-accumulate by one thread for its CTA or a pair of CTAs, D in tensor memory, B and
perhaps A in shared memory, or A in tensor memory too.

A warp calls `cute.gemm(…)`, converged, and one elected lane issues the multiplies, which run in order; `commit` by the
same warp lets an mbarrier track them. The instruction's "threads" are the CTAs: `get_slice` takes the CTA's place in
the pair, 0 with CtaGroup.ONE.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import isa, layout, seam
from ...atoms.op import Field, MmaTraits
from ...dtypes import DType, Float32, TFloat32, Uint8
from ...isa.facts import tensor_memory as tmem
from ...isa.facts.canonical import SWIZZLE_128B_BASE32B
from ...isa.facts.tensor_descriptors import Tcgen05Descriptor
from ...isa.rows.tcgen05_cases import instruction
from ...layout import Layout
from ...seam import CuteError, frozen, known, known_as, traced
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.tensor import Tensor
from ..common.by_row import Choice, remembered
from ..common.choices import CollectorOp, CtaGroup, OperandMajorMode, OperandSource
from ..common.matrix import A_MAJOR, A_SRC, AB, ACC, B_MAJOR, TILE, A, B, RowMma
from ..common.smem_descriptor import DescriptorForm, SmemDescriptor, check_part, descriptor_tensor

__all__ = ["MmaF16BF16Op", "MmaF8F6F4Op", "MmaFP8Op", "MmaI8Op", "MmaTF32Op", "commit"]

GROUP = Choice("cta_group", ("cta_group",), {group.value: group for group in CtaGroup})

TCGEN05 = DescriptorForm(
    "tcgen05.mma", Tcgen05Descriptor,
    {(1, 4, 3): 32, (2, 4, 3): 64, (3, 4, 3): 128, (2, 5, 2): SWIZZLE_128B_BASE32B}, "tcgen05.make_smem_layout_atom",
)  # fmt: skip
"""Descriptors as tcgen05.mma has them."""


@remembered
def _traits(m: int, n: int, k: int, ctas: int, sparsity: int) -> MmaTraits:
    """The tile of a multiply, whose rows of A, B and D are dealt out to its CTAs, one part after the other."""

    def part(rows: int, columns: int, whole: int) -> Layout:
        return Layout((ctas, (rows, columns)), (rows, (1, whole)))

    mine = m // ctas
    a, b, c = part(mine, k // sparsity, m), part(n // ctas, k, n), part(mine, n, m)
    return MmaTraits((m, n, k), layout.make_layout(ctas), a, b, c, sparsity, part(mine, k, m))


@known_as("cute_nvgpu.tcgen05")
class UnitMma(RowMma):
    """Base of the operations of the matrix unit. negate_a, negate_b: the words of Field.NEGATE_A and NEGATE_B."""

    fields: ClassVar[tuple[Field, ...]] = (
        Field.ACCUMULATE, Field.NEGATE_A, Field.NEGATE_B, Field.COLLECTOR, Field.DISABLED_LANES
    )  # fmt: skip
    rows = (isa.tcgen05_mma_ss, isa.tcgen05_mma_ts)
    choices: ClassVar[tuple[Choice, ...]] = (AB, A, B, ACC, GROUP, TILE, A_SRC, A_MAJOR, B_MAJOR)
    asynchronous = True
    saturates: ClassVar[bool] = False
    """True if results are clamped to their range."""
    packed: ClassVar[bool] = False
    """True if elements narrower than a byte lie without gaps."""
    instruction_shape: Any
    cta_group: Any
    a_src: Any
    a_major_mode: Any
    b_major_mode: Any

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        m, n, k = self.instruction_shape
        return m, n, k

    def traits(self) -> MmaTraits:
        return _traits(*self.shape_mnk, self.cta_group.value, self.sparsity)

    def fragment(self, operand: str, input: Tensor | tuple[Any, ...]) -> Tensor:
        what = f"make_fragment_{operand}"
        if operand == "C" or (operand == "A" and self.a_src is OperandSource.TMEM):
            return self._in_tensor_memory(operand, input, what)
        dtype = self.a_type if operand == "A" else self.b_type
        if not isinstance(input, Tensor):
            raise CuteError(f"{what}: {input!r} must be a partitioned tensor in shared memory")
        if not self._reads(input.element_type, dtype):
            narrow = dtype.width < 8 and not self.packed
            held = "Uint8, 16 elements in the first bytes of each 16," if narrow else dtype
            raise CuteError(f"{what}: elements are {input.element_type}, but the operation takes {held}")
        major = self.a_major_mode if operand == "A" else self.b_major_mode
        check_part(input, self.traits(), operand)
        return descriptor_tensor(input, major, TCGEN05, what)

    def _in_tensor_memory(self, operand: str, input: Tensor | tuple[Any, ...], what: str) -> Tensor:
        """Give an operand in tensor memory: where `input` begins if it is a tensor there, else from address 0, which
        users replace by what they allocated."""
        shape = input.shape if isinstance(input, Tensor) else input
        traits, ctas = self.traits(), self.cta_group.value
        part: Any = (traits.a if operand == "A" else traits.c).shape[1]
        if not isinstance(shape, tuple) or len(shape) < 3 or layout.product_each(shape[0]) != part:
            raise CuteError(f"{what}: shape {shape} must be ({part}, rest, rest, …), as partition_{operand} gives it")
        rest = tuple(map(layout.size, shape[1:]))
        rows, columns = part
        ctas = 1 if self.sparsity > 1 else ctas  # 64 rows of a CTA lie as those of one alone
        if operand == "A":
            dtype = self.a_type
            width = dtype.width if self.packed else max(dtype.width, 8)
            lay = tmem.repeated(tmem.operand(rows, columns, ctas, width), rest, width)
        else:
            dtype = self.accumulator
            one = tmem.accumulator(rows, columns, ctas, dtype.width)
            lay = tmem.repeated(one, rest, dtype.width, self.a_src is OperandSource.SMEM)
        held = Float32 if dtype == TFloat32 else Uint8 if dtype.width < 8 and not self.packed else dtype
        address: Any = 0
        if isinstance(input, Tensor) and isinstance(input.iterator, Pointer):
            if input.iterator.space is AddressSpace.tmem:
                address = input.iterator.address
        return Tensor(Pointer(held, AddressSpace.tmem, address, 0, 16), lay)

    def begin(self, d: Tensor, c: Tensor, accumulate: Any) -> None:
        if {d.memspace, c.memspace} != {AddressSpace.tmem} or d.layout != c.layout:
            raise CuteError(f"gemm: d {d!r} and c {c!r} must be one accumulator in tensor memory")
        at, start = known(d.iterator.address), known(c.iterator.address)
        if accumulate is not False and isinstance(at, int) and isinstance(start, int) and at != start:
            raise CuteError(
                f"gemm: c, at {start:#x}, is not d, at {at:#x}: {type(self).__name__} adds in place; pass d twice"
            )

    def issue(
        self, d: Tensor, a: Tensor, b: Tensor, accumulate: Any, negate_a: Any = False, negate_b: Any = False,
        **words: Any,
    ) -> None:  # fmt: skip
        row, statics = self.row()
        operands = self._operands(d, a, b)
        form, more = self._told(statics, signs(negate_a, negate_b), words)
        statics |= _qualifiers(words)
        seam.current().when(isa.elect_sync(), lambda: row(*operands, form, use_acc=accumulate, **more, **statics))

    def _told(self, statics: dict[str, Any], negated: tuple[bool, bool], words: dict[str, Any]) -> tuple[Any, Any]:
        """The instruction descriptor, and the operands after it by name, as the `words` of the atom's fields say."""
        return instruction(statics, *negated, self.saturates), {"disable": words.get("disabled_lanes")}

    def _operands(self, d: Tensor, a: Tensor, b: Tensor) -> tuple[Any, Any, Any]:
        """The words of d, a and b."""
        first = _descriptor(a, "a") if self.a_src is OperandSource.SMEM else self._place(a, self.a_type, "a")
        return self._place(d, self.accumulator, "d"), first, _descriptor(b, "b")

    def _place(self, t: Tensor, dtype: DType, name: str) -> Any:
        """The address of an operand in tensor memory."""
        p, operand = t.iterator, "C" if name == "d" else "A"
        right = isinstance(p, Pointer) and p.space is AddressSpace.tmem and self._reads(p.dtype, dtype)
        if not right or not (isinstance(p.offset, int) and p.offset == 0):
            raise CuteError(f"gemm: {name} {t!r} must be {dtype} in tensor memory, as make_fragment_{operand} makes it")
        return p.address

    def _reads(self, element: DType, dtype: DType) -> bool:
        """Return whether memory of `element`s is what an operand of `dtype` is read from: tf32 are floats, what is
        narrower than a byte lies in bytes, 16 packed into the first of each 16, unless all lie `packed`."""
        if dtype.width < 8 and not self.packed:
            return element == Uint8
        return element == dtype or (dtype == TFloat32 and element == Float32)


def _qualifiers(words: dict[str, Any]) -> dict[str, Any]:
    """The row's static parameters that fields of the atom say."""
    collector, scale_d, found = words.get("collector"), words.get("scale_d"), {}
    if collector is not None:
        if not isinstance(collector, CollectorOp):
            raise CuteError(f"gemm: Field.COLLECTOR {collector!r} must be a member of tcgen05.CollectorOp")
        found["collector"] = collector.value
    if scale_d is not None:
        found["scale_d"] = scale_d
    return found


def signs(negate_a: Any, negate_b: Any) -> tuple[bool, bool]:
    """Give the values of Field.NEGATE_A and NEGATE_B. Raises CuteError for what is not known when it is compiled."""
    return _static(negate_a, Field.NEGATE_A), _static(negate_b, Field.NEGATE_B)


def _static(negate: Any, field: Field) -> bool:
    if type(negate) is not bool:
        raise CuteError(f"gemm: Field.{field.name} {negate!r} must be True or False, known when the kernel is compiled")
    return negate


def _descriptor(t: Tensor, name: str) -> Any:
    if not isinstance(t.iterator, SmemDescriptor):
        raise CuteError(f"gemm: {name} {t!r} is not a fragment; take make_fragment_{name.upper()}(partitioned tensor)")
    return t.iterator.word()


@frozen
class MmaF16BF16Op(UnitMma):
    """Multiply f16 or bf16 matrices by the matrix unit. One lane of a warp issues it. PTX tcgen05.mma, sm_100f.

    ab_dtype: Float16 or BFloat16. acc_dtype: Float32, or Float16 for f16 operands. instruction_shape: (m, n, 16) or
    (m, n), m of all CTAs: 64 or 128 (n a multiple of 8 up to 256, with A in tensor memory of 16 for m 128), of a pair
    128 or 256 (of 16). cta_group: CtaGroup.ONE or TWO. a_src: SMEM or TMEM. a_major_mode, b_major_mode: K or MN; A in
    tensor memory is K. Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaF16BF16Op(cute.BFloat16, cute.Float32, (128, 128, 16), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 128, 16)
    """

    ab_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fields: ClassVar[tuple[Field, ...]] = (*UnitMma.fields, Field.SCALE_D)
    fixed = {"kind": "f16", "sparse": False}

    @property
    def a_dtype(self) -> DType:
        """The element type of A, as other operations name it."""
        return self.ab_dtype

    @property
    def b_dtype(self) -> DType:
        """The element type of B."""
        return self.ab_dtype


@frozen
class MmaTF32Op(UnitMma):
    """Multiply tf32 matrices (floats, whose 13 low bits are ignored), accumulated in Float32, by the matrix unit. One
    lane of a warp issues it. PTX tcgen05.mma, sm_100f.

    instruction_shape: (m, n, 8) or (m, n), and cta_group, a_src, a_major_mode, b_major_mode: as for MmaF16BF16Op.
    Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaTF32Op((128, 128, 8), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 128, 8)
    """

    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fields: ClassVar[tuple[Field, ...]] = (*UnitMma.fields, Field.SCALE_D)
    fixed = {"kind": "tf32", "sparse": False}


@frozen
class MmaI8Op(UnitMma):
    """Multiply matrices of 8-bit integers by the matrix unit; sums are clamped to Int32. One lane of a warp issues it.
    PTX tcgen05.mma, sm_100a.

    ab_dtype: Int8 or Uint8. instruction_shape: (m, n, 32) or (m, n), n above 32 a multiple of 16; and cta_group, a_src,
    a_major_mode, b_major_mode: as for MmaF16BF16Op; each CTA's part of an MN-major B has a multiple of 16 of n. Raises
    CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaI8Op(cute.Int8, (128, 128, 32), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 128, 32)
    """

    ab_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE, Field.COLLECTOR, Field.DISABLED_LANES)
    saturates = True
    fixed = {"kind": "i8", "sparse": False}


@frozen
class MmaFP8Op(UnitMma):
    """Multiply fp8 matrices of one type by the matrix unit. One lane of a warp issues it. PTX tcgen05.mma, sm_100f.

    ab_dtype: Float8E4M3FN or Float8E5M2. acc_dtype: Float32 or Float16. instruction_shape: (m, n, 32) or (m, n), and
    cta_group, a_src, a_major_mode, b_major_mode: as for MmaF16BF16Op; each CTA's part of an MN-major B has a multiple
    of 16 of n. Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaFP8Op(cute.Float8E4M3FN, cute.Float32, (128, 128, 32), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 128, 32)
    """

    ab_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fixed = {"kind": "f8f6f4", "sparse": False}
    bits = 8


@frozen
class MmaF8F6F4Op(UnitMma):
    """Multiply matrices of floats of 8, 6 or 4 bits, each of its own type, by the matrix unit. One lane of a warp
    issues it. PTX tcgen05.mma, sm_100f.

    a_dtype, b_dtype: Float8E4M3FN, Float8E5M2, Float6E2M3FN, Float6E3M2FN or Float4E2M1FN. acc_dtype: Float32 or
    Float16. instruction_shape, cta_group, a_src, a_major_mode, b_major_mode: as for MmaFP8Op. Elements narrower
    than a byte lie in shared memory as Uint8 tensors, 16 of them packed into the first bytes of each 16. Raises
    CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaF8F6F4Op(cute.Float8E4M3FN, cute.Float8E5M2, cute.Float32, (128, 64, 32), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 64, 32)
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fixed = {"kind": "f8f6f4", "sparse": False}


@traced
@known_as("cute_nvgpu.tcgen05")
def commit(mbar_ptr: Any, mask: Any = None, cta_group: CtaGroup = CtaGroup.ONE) -> None:
    """Let an mbarrier receive one arrival when all multiplies that this warp's elected lane issued are complete.

    mbar_ptr: a Pointer to it in shared memory. mask: the CTAs of the cluster, as bits by rank, whose barrier at that
    place receives one too; None: this CTA's alone. cta_group: that of the multiplies. The warp that called
    `cute.gemm`, converged. Raises CuteError for another pointer. PTX tcgen05.commit, sm_100f.

    >>> def kernel():
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     with arch.elect_one():
    ...         arch.mbarrier_init(bar, 1)
    ...         arch.mbarrier_init_fence()
    ...     arch.sync_warp()
    ...     nvgpu.tcgen05.commit(bar)
    ...     arch.mbarrier_wait(bar, 0)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 32]()
    """
    if not isinstance(mbar_ptr, Pointer) or mbar_ptr.space is not AddressSpace.smem:
        raise CuteError(f"tcgen05.commit: mbar_ptr {mbar_ptr!r} must be a Pointer to an mbarrier in shared memory")
    if not isinstance(cta_group, CtaGroup):
        raise CuteError(f"tcgen05.commit: cta_group {cta_group!r} is not a member of tcgen05.CtaGroup")
    bar, group = mbar_ptr.address, cta_group.value
    seam.current().when(isa.elect_sync(), lambda: isa.tcgen05_commit(bar, mask, cta_group=group))
