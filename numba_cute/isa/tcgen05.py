# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Tensor memory and the matrix unit that writes it (PTX ISA, "TensorCore 5th Generation", tcgen05).

Tensor memory is 128 lanes of 512 32-bit columns for each CTA; an address has the lane in its upper 16 bits and the
column in the lower. One thread issues multiplies, which run in order; `tcgen05_commit` lets an mbarrier track all
those that the thread issued before. Warp w of a warpgroup reaches lanes 32 * (w % 4) to 32 * (w % 4) + 31.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..seam import CuteError
from .bits import Record, bits
from .canonical import CHUNK, MN_MAJOR, chunk_offsets, swizzle_addresses
from .instr import ASYNC, MBARRIER, TCGEN05_GROUP, WARP, cluster_smem, instr, out, pred, smem, tmem, u16, u32, u64
from .machine import Machine

_REF = "tensorcore-5th-generation-instructions-tcgen05"
_TARGET = "sm_100f"
_GROUPS = [{"cta_group": g} for g in (1, 2)]
_COLUMNS = [{"num": 1 << i} for i in range(8)]
_WORDS = u32["num"]
LANES = 128


@dataclass(frozen=True)
class Tcgen05Descriptor(Record):
    """An operand of tcgen05.mma in shared memory (PTX ISA, "tcgen05 shared memory descriptor"); all in bytes.

    start, leading, stride, swizzle: as in `bits.WgmmaDescriptor`. version: always 1.
    """

    start: int = bits(0, 14, unit=16)
    leading: int = bits(16, 14, unit=16)
    stride: int = bits(32, 14, unit=16)
    version: int = bits(46, 3, codes={1: 1}, default=1)
    base_offset: int = bits(49, 3)
    swizzle: int = bits(61, 3, codes={0: 0, 128: 2, 64: 4, 32: 6})


@dataclass(frozen=True)
class Tcgen05Instruction(Record):
    """The instruction descriptor of kinds f16 and tf32 (PTX ISA, "tcgen05 instruction descriptor").

    d: 0 for f16, 1 for f32. a, b: 0 for f16, 1 for bf16, 2 for tf32. negate_a, negate_b: 1 multiplies by -1.
    major_a, major_b: 0 if K-major, 1 if MN-major. n, m: the shape (m of both CTAs with cta_group 2).
    """

    WIDTH = 32
    d: int = bits(4, 2, default=1)
    a: int = bits(7, 3)
    b: int = bits(10, 3)
    negate_a: int = bits(13, 1)
    negate_b: int = bits(14, 1)
    major_a: int = bits(15, 1)
    major_b: int = bits(16, 1)
    n: int = bits(17, 6, unit=8, default=64)
    m: int = bits(24, 5, unit=16, default=128)


@instr("tcgen05.alloc.cta_group::{cta_group}.sync.aligned.shared::cta.b32 [$dst], $columns;", target=_TARGET,
       issuer=WARP, ref=f"{_REF}-alloc", over=_GROUPS)  # fmt: skip
def tcgen05_alloc(m: Machine, dst: smem, columns: u32, *, cta_group: int) -> None:
    """Take `columns` columns of tensor memory (a power of two, 32 to 512), waiting until they are free, and write
    their address to shared memory `dst`. One warp, of each CTA of the pair with cta_group 2; all 32 lanes."""
    address = m.tmem.alloc(int(m.uniform(columns)))
    m.write(int(m.uniform(dst)), np.array([address], np.uint32).view(np.uint8), proxy="generic")


@instr("tcgen05.dealloc.cta_group::{cta_group}.sync.aligned.b32 $taddr, $columns;", target=_TARGET, issuer=WARP,
       ref=f"{_REF}-dealloc", over=_GROUPS)  # fmt: skip
def tcgen05_dealloc(m: Machine, taddr: tmem, columns: u32, *, cta_group: int) -> None:
    """Give back what `tcgen05_alloc` gave. One warp, before the kernel ends; all 32 lanes."""
    m.tmem.dealloc(int(m.uniform(taddr)), int(m.uniform(columns)))


@instr("tcgen05.relinquish_alloc_permit.cta_group::{cta_group}.sync.aligned;", target=_TARGET, issuer=WARP,
       ref=f"{_REF}-relinquish-alloc-permit", over=_GROUPS)  # fmt: skip
def tcgen05_relinquish_alloc_permit(m: Machine, *, cta_group: int) -> None:
    """Say that this CTA allocates no more, so that the next CTA on the SM may. One warp; all 32 lanes."""
    m.tmem.relinquish()


@instr("tcgen05.fence::before_thread_sync;", target=_TARGET, ref=f"{_REF}-fence")
def tcgen05_fence_before(m: Machine) -> None:
    """Order this thread's earlier tcgen05 operations before its next synchronisation with other threads."""
    m.fence("tcgen05.before")


@instr("tcgen05.fence::after_thread_sync;", target=_TARGET, ref=f"{_REF}-fence")
def tcgen05_fence_after(m: Machine) -> None:
    """Order this thread's later tcgen05 operations after its last synchronisation with other threads."""
    m.fence("tcgen05.after")


def _lanes(m: Machine, taddr: Any) -> tuple[int, int]:
    """(first lane, first column) that a warp accesses; its address must be in the warp's own quarter."""
    address = int(m.uniform(taddr))
    lane, column = address >> 16, address & 0xFFFF
    quarter = 32 * (int(np.asarray(m.sreg("tid.x")).ravel()[0]) // 32 % 4)
    if lane != quarter:
        raise CuteError(
            f"tcgen05.ld/st: taddr {address:#x} is in lane {lane}, but this warp reaches lanes {quarter} to "
            f"{quarter + 31}: add (warp % 4 * 32) << 16 to the allocation's address"
        )
    return lane, column


@instr("tcgen05.ld.sync.aligned.32x32b.x{num}.b32 $dst, [$taddr];", target=_TARGET, issuer=WARP, ref=f"{_REF}-ld",
       over=_COLUMNS)  # fmt: skip
def tcgen05_ld_32x32b(m: Machine, dst: out(_WORDS), taddr: tmem, *, num: int) -> Any:
    """Load `num` columns (1 to 128, a power of two): register r of lane t is column r of the t-th of this warp's 32
    lanes. The registers may be read after `tcgen05_wait_ld`. All 32 lanes."""
    lane, column = _lanes(m, taddr)
    return m.tmem.read(lane, 32, column, num)


@instr("tcgen05.st.sync.aligned.32x32b.x{num}.b32 [$taddr], $src;", target=_TARGET, issuer=WARP, ref=f"{_REF}-st",
       over=_COLUMNS)  # fmt: skip
def tcgen05_st_32x32b(m: Machine, taddr: tmem, src: _WORDS, *, num: int) -> None:
    """`tcgen05_ld_32x32b` the other way; done after `tcgen05_wait_st`. All 32 lanes."""
    lane, column = _lanes(m, taddr)
    m.tmem.write(lane, column, np.asarray(src).astype(np.uint32).reshape(32, num))


@instr("tcgen05.wait::ld.sync.aligned;", target=_TARGET, issuer=WARP, ref=f"{_REF}-wait")
def tcgen05_wait_ld(m: Machine) -> None:
    """Wait until all loads of the calling threads from tensor memory are done. All 32 lanes."""
    m.fence("tcgen05.ld")


@instr("tcgen05.wait::st.sync.aligned;", target=_TARGET, issuer=WARP, ref=f"{_REF}-wait")
def tcgen05_wait_st(m: Machine) -> None:
    """Wait until all stores of the calling threads to tensor memory are done. All 32 lanes."""
    m.fence("tcgen05.st")


_COMMIT = "tcgen05.commit.cta_group::{cta_group}.mbarrier::arrive::one.shared::cluster"


@instr(_COMMIT + ".b64 [$bar];", target=_TARGET, proxy=ASYNC, done_by=MBARRIER, ref=f"{_REF}-commit", over=_GROUPS)
def tcgen05_commit(m: Machine, bar: cluster_smem, *, cta_group: int) -> None:
    """Let `bar` receive one arrival when all the multiplies that this thread issued are complete. One thread: the
    one that issued them."""
    cta, at = m.owner(bar)
    m.tmem.commit([m.mbar(at, cta)])


@instr(_COMMIT + ".multicast::cluster.b64 [$bar], $cta_mask;", target=_TARGET, proxy=ASYNC, done_by=MBARRIER,
       ref=f"{_REF}-commit", over=_GROUPS)  # fmt: skip
def tcgen05_commit_multicast(m: Machine, bar: cluster_smem, cta_mask: u16, *, cta_group: int) -> None:
    """`tcgen05_commit` to the barrier at the same offset in every CTA of the cluster whose rank's bit is set."""
    if not cta_mask:
        raise CuteError("tcgen05.commit: cta_mask is 0: it must name at least one CTA of the cluster")
    _, at = m.owner(bar)
    m.tmem.commit([m.mbar(at, c) for c in range(16) if int(cta_mask) >> c & 1])


_TYPES: dict[str, Any] = {"f16": (np.float16, dtypes.BFloat16.numpy), "tf32": (None, None, np.float32)}
_BYTES = {"f16": 2, "tf32": 4}


def _matrix(m: Machine, descriptor: int, major: int, mn: int, type: Any, cta: int) -> tuple[Any, Any]:
    """The chunk addresses of an operand of (mn, 32 bytes along K) in CTA `cta`, and what reads it as float32."""
    d, size = Tcgen05Descriptor.decode(int(descriptor)), np.dtype(type).itemsize
    offsets = chunk_offsets(major, d.swizzle, d.leading, d.stride, mn, 32 // size, size)
    addresses = swizzle_addresses(d.start + offsets.ravel(), d.swizzle)

    def fetch() -> Any:
        if cta == m.cta_rank:
            chunks = np.ascontiguousarray(m.read_rows(addresses, CHUNK))
        else:
            chunks = np.stack([m.read(int(a), CHUNK, cta=cta) for a in addresses])
        matrix = chunks.view(type).reshape(offsets.shape[0], -1).astype(np.float32)
        return matrix.T if major == MN_MAJOR else matrix

    return np.array([m.mapa(int(a), cta) for a in addresses], np.int64), fetch


@instr("tcgen05.mma.cta_group::{cta_group}.kind::{kind} [$d], $a_desc, $b_desc, $idesc, $use_acc;", target=_TARGET,
       proxy=ASYNC, done_by=TCGEN05_GROUP, ref=f"{_REF}-mma",
       over=[{"cta_group": g, "kind": k} for k in ("f16", "tf32") for g in (1, 2)])  # fmt: skip
def tcgen05_mma_ss(
    m: Machine, d: tmem, a_desc: u64, b_desc: u64, idesc: u32, use_acc: pred, *, cta_group: int, kind: str
) -> None:
    """d (m, n) = a (m, 32 bytes of K) @ b (n, 32 bytes of K).T + (d if use_acc else 0), asynchronously.

    a_desc, b_desc: `Tcgen05Descriptor` words; idesc: a `Tcgen05Instruction` word. Row i of d is lane i of tensor
    memory. cta_group 2: the even CTA of a pair issues for both; each holds its half of a's rows, of b's rows and of
    d's rows. The simulator knows m = 128 rows a CTA and f32 results. One thread; complete when a later
    `tcgen05_commit` says so."""
    form = Tcgen05Instruction.decode(int(idesc))
    if form.m != 128 * cta_group or form.d != 1:
        raise CuteError(
            f"tcgen05.mma: m {form.m}, result format {form.d}: the simulator knows m = {128 * cta_group} with "
            f"cta_group {cta_group}, and format 1 (f32)"
        )
    type_a, type_b = (_TYPES[kind][code] for code in (form.a, form.b))
    ctas = [m.cta_rank] if cta_group == 1 else [m.cta_rank & ~1, m.cta_rank | 1]
    a_parts = [_matrix(m, a_desc, form.major_a, 128, type_a, c) for c in ctas]
    b_parts = [_matrix(m, b_desc, form.major_b, form.n // cta_group, type_b, c) for c in ctas]
    sign = -1 if form.negate_a ^ form.negate_b else 1

    def effect() -> None:
        b = np.concatenate([fetch() for _, fetch in b_parts])
        for (_, fetch), cta in zip(a_parts, ctas):
            product = sign * fetch() @ b.T
            if use_acc:
                product = product + m.tmem.read(0, LANES, d & 0xFFFF, form.n, cta=cta).view(np.float32)
            m.tmem.write(0, d & 0xFFFF, product.astype(np.float32).view(np.uint32), cta=cta)

    m.tmem.multiply(effect, [(at, CHUNK) for at, _ in (*a_parts, *b_parts)], d & 0xFFFF, form.n, ctas)
