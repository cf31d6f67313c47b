# SPDX-License-Identifier: Apache-2.0
"""wgmma: matrix multiply-accumulate by a warpgroup (128 threads), reading shared memory asynchronously. sm_90a.

The order: `fence()`, `cute.gemm(…)` for each step, `commit_group()`, `wait_group(n)` before the accumulator is read
or the operands' memory is overwritten. All threads of the warpgroup call each of these, converged.
"""

from __future__ import annotations

from typing import Any

from .. import isa, seam
from ..dtypes import BFloat16, DType, Float16, Float32
from ..isa import atoms
from ..layout import ComposedLayout, Swizzle, cosize, make_composed_layout, make_layout
from ..layout.pure import pure
from ..mma import Field, MmaTraits, register_fragment
from ..pointer import AddressSpace, Pointer
from ..seam import CuteError, StaticEnum, static, traced
from ..tensor import Tensor, dense
from .common import OperandMajorMode
from .descriptor import SmemDescriptor, descriptor_tensor

__all__ = [
    "Field", "MmaF16BF16Op", "OperandMajorMode", "OperandSource", "SmemLayoutAtomKind", "commit_group", "fence",
    "make_smem_layout_atom", "wait_group",
]  # fmt: skip


class OperandSource(StaticEnum):
    """Where an operand lies: registers or shared memory."""

    RMEM = "rmem"
    SMEM = "smem"


class SmemLayoutAtomKind(StaticEnum):
    """Shared memory layouts that wgmma reads: the contiguous dimension (MN or K), and the bytes of a swizzled row."""

    MN_INTER = ("mn", 0)
    MN_SW32 = ("mn", 1)
    MN_SW64 = ("mn", 2)
    MN_SW128 = ("mn", 3)
    K_INTER = ("k", 0)
    K_SW32 = ("k", 1)
    K_SW64 = ("k", 2)
    K_SW128 = ("k", 3)


@traced
def make_smem_layout_atom(kind: SmemLayoutAtomKind, element_type: DType) -> ComposedLayout:
    """The smallest tile of a shared memory layout: 8 rows of 16, 32, 64 or 128 bytes, S o 0 o (rows, row).

    The swizzle counts bytes: allocate with `layout.outer` and `swizzle=layout.inner`, 1024-byte aligned."""
    if not isinstance(kind, SmemLayoutAtomKind):
        raise CuteError(f"make_smem_layout_atom: kind {kind!r} is not a member of SmemLayoutAtomKind")
    major, bits = kind.value
    row = (128 << bits) // element_type.width
    outer = make_layout((row, 8), stride=(1, row)) if major == "mn" else make_layout((8, row), stride=(row, 1))
    return make_composed_layout(Swizzle(bits, 4, 3), 0, outer)


@pure
def _traits(n: int, a_in_registers: bool) -> MmaTraits:
    atom = atoms.wgmma_m64k16(n, a_in_registers)
    return MmaTraits(atom.shape_mnk, make_layout(atom.threads), atom.a, atom.b, atom.c)


@static
class MmaF16BF16Op:
    """wgmma of f16 or bf16 operands: (64, n, 16), n a multiple of 8 up to 256.

    ab_dtype: Float16 or BFloat16. acc_dtype: Float32, or Float16 for f16 operands. instruction_shape: (64, n, 16) or
    (64, n). a_src: where A lies; from registers it is K-major. PTX wgmma.mma_async, sm_90a.
    """

    ab_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    def __post_init__(self) -> None:
        def need(ok: bool, name: str, rule: str) -> None:
            if not ok:
                raise CuteError(f"warpgroup.MmaF16BF16Op: {name} {getattr(self, name)!r} {rule}")

        need(self.ab_dtype in (Float16, BFloat16), "ab_dtype", "must be Float16 or BFloat16")
        accs = (Float32, Float16) if self.ab_dtype == Float16 else (Float32,)
        need(self.acc_dtype in accs, "acc_dtype", f"must be {' or '.join(map(repr, accs))} for {self.ab_dtype}")
        s = self.instruction_shape
        ok = isinstance(s, tuple) and len(s) in (2, 3) and all(type(x) is int for x in s)
        need(ok and s[0] == 64 and s[2:] in ((), (16,)), "instruction_shape", "must be (64, n, 16)")
        need(s[1] in range(8, 257, 8), "instruction_shape", "must have n a multiple of 8 in [8, 256]")
        need(isinstance(self.a_src, OperandSource), "a_src", "must be OperandSource.SMEM or OperandSource.RMEM")
        for name in ("a_major_mode", "b_major_mode"):
            need(isinstance(getattr(self, name), OperandMajorMode), name, "must be OperandMajorMode.K or .MN")
        rmem = self.a_src is OperandSource.RMEM
        need(not rmem or self.a_major_mode is OperandMajorMode.K, "a_major_mode", "must be K: A is in registers")
        if len(s) == 2:
            object.__setattr__(self, "instruction_shape", (*s, 16))

    @property
    def shape_mnk(self) -> tuple[int, ...]:
        return self.instruction_shape

    def traits(self) -> MmaTraits:
        return _traits(self.instruction_shape[1], self.a_src is OperandSource.RMEM)

    def fragment(self, operand: str, input: Any) -> Tensor:
        what = f"make_fragment_{operand}"
        if operand == "C":
            return register_fragment("C", input, self.acc_dtype)
        if operand == "A" and self.a_src is OperandSource.RMEM:
            return register_fragment("A", input, self.ab_dtype)
        if not isinstance(input, Tensor):
            raise CuteError(f"{what}: {input!r} must be a partitioned tensor in shared memory")
        if input.element_type != self.ab_dtype:
            raise CuteError(f"{what}: elements are {input.element_type}, but the operation takes {self.ab_dtype}")
        return descriptor_tensor(input, self.a_major_mode if operand == "A" else self.b_major_mode, what)

    def issue(self, d: Tensor, a: Tensor, b: Tensor, accumulate: Any) -> None:
        n = self.instruction_shape[1]
        acc = _registers(d, self.acc_dtype, n // 2, "d")
        b_word = _descriptor(b, "b")
        statics: dict[str, Any] = {"n": n, "scale_a": 1, "scale_b": 1}
        statics["trans_b"] = int(self.b_major_mode is OperandMajorMode.MN)
        half = self.acc_dtype == Float16
        if not half:
            statics["ab"] = self.ab_dtype.ptx
        if self.a_src is OperandSource.RMEM:
            row = isa.wgmma_f16_rs if half else isa.wgmma_rs
            row(acc, _registers(a, self.ab_dtype, 8, "a"), b_word, accumulate, **statics)
        else:
            statics["trans_a"] = int(self.a_major_mode is OperandMajorMode.MN)
            row = isa.wgmma_f16_ss if half else isa.wgmma_ss
            row(acc, _descriptor(a, "a"), b_word, accumulate, **statics)


def _descriptor(t: Tensor, name: str) -> Any:
    if not isinstance(t.iterator, SmemDescriptor):
        raise CuteError(f"gemm: {name} {t!r} is not a fragment; take make_fragment_{name.upper()}(partitioned tensor)")
    return t.iterator.word()


def _registers(t: Tensor, dtype: DType, count: int, name: str) -> seam.Regs:
    p = t.iterator
    if not isinstance(p, Pointer) or p.space is not AddressSpace.rmem or p.dtype != dtype:
        raise CuteError(f"gemm: {name} {t!r} must be {dtype} in registers, as make_fragment_{name.upper()} makes it")
    if not dense(t) or cosize(t.layout) != count:
        raise CuteError(f"gemm: {name} of layout {t.layout} must be {count} consecutive registers of one instruction")
    return seam.Regs(p.address, dtype, p.offset, count)


@traced
def fence() -> None:
    """Order accesses to accumulators and A registers before the next wgmma. It does not order shared memory.
    PTX wgmma.fence, sm_90a."""
    isa.wgmma_fence()


@traced
def commit_group() -> None:
    """Close the group of wgmmas issued since the last one. PTX wgmma.commit_group, sm_90a."""
    isa.wgmma_commit_group()


@traced
def wait_group(group: int) -> None:
    """Wait until at most the `group` (0 to 7) latest groups are incomplete. PTX wgmma.wait_group, sm_90a."""
    if type(group) is not int or not 0 <= group <= 7:
        raise CuteError(f"warpgroup.wait_group: group {group!r} must be a static number in [0, 7]")
    isa.wgmma_wait_group(n=group)
