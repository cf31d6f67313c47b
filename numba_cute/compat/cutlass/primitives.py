# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass.experimental.primitives`: single instructions, as MLIR's dialect of NVVM has them. Others refuse to
be called, and say what to write."""

from __future__ import annotations

from typing import Any

from ... import arch, isa
from ...arch.access import space_of
from ...dtypes import DType, Int32, Uint32
from ...seam import CuteError, StaticEnum, traced
from ...tensor.pointer import Pointer, physical, shared_address
from ..ptx_registers import as_type
from .dialects import Operation

__all__ = [
    "AtomicOp", "CpReduceOp", "CpReduceType", "GridDepAction", "MBarrierScope", "MBarrierWait", "MemOrder", "MemScope",
    "PermuteMode", "ReductionKind", "atomicrmw", "cp_async_bulk_global_shared_cta",
    "cp_reduce_async_bulk_global_shared_cta", "griddepcontrol", "mapa", "mov_b32", "mov_b64", "prmt", "redux_sync",
]  # fmt: skip


class ReductionKind(StaticEnum):
    """Name the operation of `redux_sync`."""

    ADD, MIN, MAX, UMIN, UMAX, AND, OR, XOR, FMIN, FMAX = (
        "add", "min", "max", "umin", "umax", "and", "or", "xor", "fmin", "fmax"
    )  # fmt: skip


class PermuteMode(StaticEnum):
    """Name how `prmt` reads its selector."""

    DEFAULT, F4E, B4E, RC8, ECL, ECR, RC16 = "default", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"


class GridDepAction(StaticEnum):
    """Name the action of `griddepcontrol`."""

    WAIT, LAUNCH_DEPENDENTS = "wait", "launch_dependents"


class MemOrder(StaticEnum):
    """Name the order of memory accesses."""

    WEAK, RELAXED, ACQUIRE, RELEASE, ACQ_REL = "weak", "relaxed", "acquire", "release", "acq_rel"


class MemScope(StaticEnum):
    """Name the threads for which an order holds."""

    CTA, CLUSTER, GPU, SYS = "cta", "cluster", "gpu", "sys"


MBarrierScope = MemScope


class MBarrierWait(StaticEnum):
    """Name the instruction of a wait: TEST, mbarrier.test_wait, returns at once; TRY, mbarrier.try_wait, may wait."""

    TEST, TRY = "test", "try"


class AtomicOp(StaticEnum):
    """Name the operation of `atomicrmw`."""

    ADD, FADD, MIN, MAX, UMIN, UMAX = "add", "fadd", "min", "max", "umin", "umax"
    AND, OR, XOR, EXCH, INC, DEC = "and", "or", "xor", "exch", "inc", "dec"


class CpReduceOp(StaticEnum):
    """Name the operation of a reducing bulk copy."""

    ADD, MIN, MAX, INC, DEC, AND, OR, XOR = "add", "min", "max", "inc", "dec", "and", "or", "xor"


class CpReduceType(StaticEnum):
    """Name the element type of a reducing bulk copy."""

    F16, BF16, F32, F64, B32, B64 = "f16", "bf16", "f32", "f64", "b32", "b64"
    U32, S32, U64, S64 = "u32", "s32", "u64", "s64"


def _same(what: str, name: str, given: Any, expected: Any) -> None:
    """Refuse an argument of whose values only one is here."""
    if given is not None and given != expected:
        raise CuteError(f"{what}: {name} {given!r}: only {expected!r} is here")


@traced
def redux_sync(
    val: Any, kind: Any, mask_and_clamp: Any, *, abs: bool = False, nan: bool = False, loc: Any = None, ip: Any = None
) -> Any:  # fmt: skip
    """Reduce a number over lanes of the warp, as `cute.arch.warp_redux_sync`. kind: a ReductionKind. mask_and_clamp:
    the mask of the lanes. abs, nan: of floats."""
    return arch.warp_redux_sync(val, kind.value, mask_and_clamp, abs=abs, nan=nan)


@traced
def prmt(lo: Any, selector: Any, mode: Any = PermuteMode.DEFAULT, *, hi: Any = None, loc: Any = None, ip: Any = None):  # type: ignore[no-untyped-def]  # fmt: skip
    """Select four of eight bytes (Uint32). lo, hi: the words of bytes 0 to 3 and 4 to 7. selector: its hexadecimal
    digits. mode: PermuteMode.DEFAULT. PTX prmt, sm_70."""
    _same("prmt", "mode", mode, PermuteMode.DEFAULT)
    return arch.prmt(lo, 0 if hi is None else hi, selector)


@traced
def mov_b32(x: Any, *, target_type: Any = Int32, loc: Any = None, ip: Any = None) -> Any:
    """View the 32 bits of a number as one of another type. x: the number. target_type: that type."""
    return _bits("mov_b32", x, target_type, 32)


@traced
def mov_b64(x: Any, *, target_type: Any, loc: Any = None, ip: Any = None) -> Any:
    """View the 64 bits of a number as one of another type. x: the number. target_type: that type."""
    return _bits("mov_b64", x, target_type, 64)


def _bits(what: str, x: Any, target: Any, width: int) -> Any:
    if not isinstance(target, DType) or target.width != width:
        raise CuteError(f"{what}: target_type {target!r} must be an element type of {width} bits")
    return as_type(x, target)


@traced
def griddepcontrol(action: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Wait for the grids that this one depends on, or allow dependent ones to start. action: a GridDepAction. PTX
    griddepcontrol, sm_90."""
    if action is GridDepAction.WAIT:
        arch.griddepcontrol_wait()
    else:
        arch.griddepcontrol_launch_dependents()


_ATOMICS = {AtomicOp.FADD: "add", AtomicOp.UMIN: "min", AtomicOp.UMAX: "max"}


@traced
def atomicrmw(
    op: Any, ptr: Any, a: Any, *last: Any, res: Any = None, mem_order: Any = None, syncscope: Any = None,
    loc: Any = None, ip: Any = None,
) -> Any:  # fmt: skip
    """Read, change and write the element at a pointer, as `cute.arch.atomic_add` and others. op: an AtomicOp. ptr: a
    Pointer. a: the operand. last: the operand, where the type of the result is given first. res: that type by name.
    mem_order: a MemOrder, relaxed by default. syncscope: a MemScope, the GPU by default. Gives what was there
    before. CuteError: `res` is wider or narrower than the pointer's elements, or `op` is not an AtomicOp."""
    if last:
        res, op, ptr, a = (op, ptr, a, *last)
    if op not in tuple(AtomicOp):
        raise CuteError(f"atomicrmw: op {op!r} is not an AtomicOp: give one of {', '.join(o.name for o in AtomicOp)}")
    if res is not None and res.width != ptr.dtype.width:
        raise CuteError(f"atomicrmw: res {res!r} has other bits than the elements of {ptr!r}")
    order, scope = mem_order or MemOrder.RELAXED, syncscope or MemScope.GPU
    if op not in (AtomicOp.INC, AtomicOp.DEC):
        return getattr(arch, f"atomic_{_ATOMICS.get(op, op.value)}")(ptr, a, order.value, scope.value)
    if not isinstance(ptr, Pointer) or ptr.dtype not in (Int32, Uint32):
        raise CuteError(f"atomicrmw: {ptr!r} must point to Int32 or Uint32 to be counted up or down")
    space = space_of(ptr, None, "atomicrmw")
    order = {"sem": order.value, "scope": scope.value}
    return ptr.dtype(isa.atom(physical(ptr), Uint32(a), space=space, op=op.value, type="u32", **order))


@traced
def mapa(a: Any, b: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Give the pointer to the same place in the shared memory of another block of the cluster. a: a Pointer. b: the
    block's rank. PTX mapa, sm_90."""
    return arch.map_dsmem_ptr(a, b)


def _global(ptr: Any, what: str) -> Any:
    if not isinstance(ptr, Pointer):
        raise CuteError(f"{what}: {ptr!r} must be a Pointer to global memory")
    return physical(ptr)


@traced
def cp_async_bulk_global_shared_cta(dst_mem: Any, src_mem: Any, size: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Copy bytes from shared to global memory. dst_mem, src_mem: Pointers. size: the bytes, a multiple of 16. The
    thread then commits the group. PTX cp.async.bulk, sm_90."""
    what = "cp_async_bulk_global_shared_cta"
    isa.cp_async_bulk_s2g(_global(dst_mem, what), shared_address(src_mem, what), Uint32(size))


@traced
def cp_reduce_async_bulk_global_shared_cta(
    dst_mem: Any, src_mem: Any, size: Any, *, op: Any, type: Any, noftz: bool = False, loc: Any = None, ip: Any = None
) -> None:  # fmt: skip
    """Combine elements in global memory with those in shared memory. dst_mem, src_mem: Pointers. size: the bytes, a
    multiple of 16. op: a CpReduceOp. type: a CpReduceType. noftz: keep subnormal numbers, which sums of 16-bit floats
    need. The thread then commits the group. PTX cp.reduce.async.bulk, sm_90."""
    what = "cp_reduce_async_bulk_global_shared_cta"
    _same(what, "noftz", bool(noftz), op is CpReduceOp.ADD and type in (CpReduceType.F16, CpReduceType.BF16))
    address = _global(dst_mem, what), shared_address(src_mem, what)
    isa.cp_reduce_async_bulk_s2g(*address, Uint32(size), op=op.value, type=type.value)


def __getattr__(name: str) -> Operation:
    """Return what refuses to be called by a name."""
    if name.startswith("_"):
        raise AttributeError(name)
    return Operation(f"primitives.{name}")
