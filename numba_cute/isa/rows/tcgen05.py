# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Tensor memory (PTX ISA, "TensorCore 5th Generation", tcgen05); `tcgen05_mma` has the multiplies that write it.

Tensor memory is 128 lanes of 512 32-bit columns for each CTA; an address has the lane in its upper 16 bits and the
column in the lower. One thread issues multiplies, which run in order; `tcgen05_commit` lets an mbarrier track all
those that the thread issued before. Warp w of a warpgroup reaches lanes 32 * (w % 4) to 32 * (w % 4) + 31.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...seam import CuteError
from ..form.checks import receivers
from ..form.instr import ASYNC, MBARRIER, TCGEN05_LOADS, TCGEN05_STORES, WARP, instr
from ..form.kinds import cluster_mask, cluster_mbar, number, optional, out, same, smem, tmem, u32
from ..form.machine import Machine

_REF = "tensorcore-5th-generation-instructions-tcgen05"
_TARGET = "sm_100f"
_GROUPS = [{"cta_group": g} for g in (1, 2)]
_COLUMNS = [{"num": 1 << i} for i in range(8)]
_WORDS = u32["num"]


@instr("tcgen05.alloc.cta_group::{cta_group}.sync.aligned.shared::cta.b32 [$dst], $columns;", target=_TARGET,
       issuer=WARP, ref=f"{_REF}-alloc", over=_GROUPS)  # fmt: skip
def tcgen05_alloc(m: Machine, dst: same(smem), columns: same(number), *, cta_group: int) -> None:
    """Take `columns` columns of tensor memory (a power of two, 32 to 512), waiting until they are free, and write
    their address to shared memory `dst`. One warp, of each CTA of the pair with cta_group 2; all 32 lanes."""
    address = m.tmem.alloc(int(columns))
    m.write(int(dst), np.array([address], np.uint32).view(np.uint8), proxy="generic")


@instr("tcgen05.dealloc.cta_group::{cta_group}.sync.aligned.b32 $taddr, $columns;", target=_TARGET, issuer=WARP,
       ref=f"{_REF}-dealloc", over=_GROUPS)  # fmt: skip
def tcgen05_dealloc(m: Machine, taddr: same(tmem), columns: same(number), *, cta_group: int) -> None:
    """Give back what `tcgen05_alloc` gave. One warp, before the kernel ends; all 32 lanes."""
    m.tmem.dealloc(int(taddr), int(columns))


@instr("tcgen05.relinquish_alloc_permit.cta_group::{cta_group}.sync.aligned;", target=_TARGET, issuer=WARP,
       ref=f"{_REF}-relinquish-alloc-permit", over=_GROUPS)  # fmt: skip
def tcgen05_relinquish_alloc_permit(m: Machine, *, cta_group: int) -> None:
    """Say that this CTA allocates no more, so that the next CTA on the SM may. One warp; all 32 lanes."""
    m.tmem.relinquish()


@instr("tcgen05.fence::before_thread_sync;", target=_TARGET, ref=f"{_REF}-fence")
def tcgen05_fence_before(m: Machine) -> None:
    """Order this thread's earlier tcgen05 operations before its next synchronisation with other threads."""
    m.tmem.fence_before()


@instr("tcgen05.fence::after_thread_sync;", target=_TARGET, ref=f"{_REF}-fence")
def tcgen05_fence_after(m: Machine) -> None:
    """Order this thread's later tcgen05 operations after its last synchronisation with other threads."""
    m.tmem.fence_after()


def _lanes(m: Machine, address: int) -> tuple[int, int]:
    """(first lane, first column) that a warp accesses; its address must be in the warp's own quarter."""
    lane, column = address >> 16, address & 0xFFFF
    quarter = 32 * (int(np.asarray(m.sreg("tid.x")).ravel()[0]) // 32 % 4)
    if lane != quarter:
        raise CuteError(
            f"tcgen05.ld/st: taddr {address:#x} is in lane {lane}, but this warp reaches lanes {quarter} to "
            f"{quarter + 31}: add (warp % 4 * 32) << 16 to the allocation's address"
        )
    return lane, column


@instr("tcgen05.ld.sync.aligned.32x32b.x{num}.b32 $dst, [$taddr];", target=_TARGET, issuer=WARP,
       done_by=TCGEN05_LOADS, ref=f"{_REF}-ld", over=_COLUMNS)  # fmt: skip
def tcgen05_ld_32x32b(m: Machine, dst: out(_WORDS), taddr: same(tmem), *, num: int) -> Any:
    """Load `num` columns (1 to 128, a power of two): register r of lane t is column r of the t-th of this warp's 32
    lanes. The registers may be read after `tcgen05_wait_ld`. All 32 lanes."""
    lane, column = _lanes(m, int(taddr))
    return m.tmem.read(lane, 32, column, num)


@instr("tcgen05.st.sync.aligned.32x32b.x{num}.b32 [$taddr], $src;", target=_TARGET, issuer=WARP,
       done_by=TCGEN05_STORES, ref=f"{_REF}-st", over=_COLUMNS)  # fmt: skip
def tcgen05_st_32x32b(m: Machine, taddr: same(tmem), src: _WORDS, *, num: int) -> None:
    """`tcgen05_ld_32x32b` the other way; done after `tcgen05_wait_st`. All 32 lanes."""
    lane, column = _lanes(m, int(taddr))
    m.tmem.write(lane, column, np.asarray(src).astype(np.uint32).reshape(32, num))


@instr("tcgen05.wait::ld.sync.aligned;", target=_TARGET, issuer=WARP, ref=f"{_REF}-wait")
def tcgen05_wait_ld(m: Machine) -> None:
    """Wait until all loads of the calling threads from tensor memory are done. All 32 lanes."""
    m.tmem.wait_loads()


@instr("tcgen05.wait::st.sync.aligned;", target=_TARGET, issuer=WARP, ref=f"{_REF}-wait")
def tcgen05_wait_st(m: Machine) -> None:
    """Wait until all stores of the calling threads to tensor memory are done. All 32 lanes."""
    m.tmem.wait_stores()


@instr("tcgen05.commit.cta_group::{cta_group}.mbarrier::arrive::one.shared::cluster<cta_mask:.multicast::cluster>.b64 "
       "[$bar]<cta_mask:, $cta_mask>;", target=_TARGET, proxy=ASYNC, done_by=MBARRIER, ref=f"{_REF}-commit",
       over=_GROUPS)  # fmt: skip
def tcgen05_commit(m: Machine, bar: cluster_mbar, cta_mask: optional(cluster_mask), *, cta_group: int) -> None:
    """Let `bar` receive one arrival when all the multiplies that this thread issued are complete; with `cta_mask` the
    barrier at the same offset in every CTA of the cluster whose rank's bit is set. One thread: the one that issued
    them."""
    cta, at = m.owner(bar)
    ctas = receivers("tcgen05.commit", None if cta_mask is None else int(cta_mask), cta)
    m.tmem.commit([m.mbar(at, c) for c in ctas])
