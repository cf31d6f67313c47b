# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Asynchronous copies of a few bytes by each thread (PTX ISA, "cp.async", non-bulk), in the generic proxy.

A copy belongs to the open group of its thread: `cp_async_commit_group` closes it, `cp_async_wait_group` waits; then a
barrier, before other threads read. Or `cp_async_mbarrier_arrive` lets an mbarrier tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...seam import CuteError
from ..form.instr import CP_ASYNC_GROUP, instr
from ..form.kinds import Role, byte_count, gmem, mbar, optional, policy, pred, smem
from ..form.machine import Machine

_REF = "data-movement-and-conversion-instructions-cp-async"
_COPY: dict[str, Any] = {"target": "sm_80", "done_by": CP_ASYNC_GROUP, "ref": _REF}


_CASES = [
    {"cache": cache, "nbytes": nbytes, "prefetch": prefetch}
    for prefetch in (0, 64, 128, 256)
    for cache, sizes in (("ca", (4, 8, 16)), ("cg", (16,)))
    for nbytes in sizes
]


# With a policy, ptxas 12.4 to 13.3 take registers that nobody has set for an address that is a sum with a uniform one,
# on sm_90 and later. So it is one that they cannot take apart: bit 31 of the mask of the lanes below is always 0.
_WHOLE = "{ .reg .b32 dst; mov.u32 dst, %lanemask_lt; shr.u32 dst, dst, 31; or.b32 dst, dst, $dst; "


@instr(f"<policy:{_WHOLE}>cp.async.{{cache}}.shared::cta.global<policy:.L2::cache_hint><prefetch:.L2::{{prefetch}}B> "
       "[<policy:dst|$dst>], [$src], {nbytes}<src_size:, $src_size><ignore:, $ignore><policy:, $policy>;<policy: }>",
       **_COPY, over=_CASES, defaults={"prefetch": 0})  # fmt: skip
def cp_async(
    m: Machine, dst: smem, src: gmem, src_size: optional(byte_count),
    ignore: optional(pred.means(Role.PREDICATE), unless=("src_size",)), policy: optional(policy), *, nbytes: int,
) -> None:  # fmt: skip
    """Copy `nbytes` (4, 8, 16) from global to shared memory, some time later. cache: "ca" (all levels) or, of 16
    bytes, "cg" (L2 alone); prefetch: 0 (the default), 64, 128, 256 bytes fetched into L2. Both addresses are multiples
    of `nbytes`. src_size: read the first so many bytes (0 to nbytes) alone and write zeros for the others; with 0 it
    reads nothing, so that `src` may be any address. ignore: read nothing and write zeros where it is true. policy: an
    L2 cache policy (of `createpolicy_l2`). Any thread, which then commits the group and waits."""
    filled = (0 if ignore else nbytes) if src_size is None else src_size
    for what, value in (("dst", dst), ("src", src)):
        if value % nbytes and (what == "dst" or filled):
            raise CuteError(f"cp.async: {what} is {value:#x}: it must be a multiple of the {nbytes} bytes copied")
    if filled > nbytes:
        raise CuteError(f"cp.async: src_size is {filled}: it must be at most the {nbytes} bytes copied")
    data = np.zeros(nbytes, np.uint8)

    def effect() -> None:
        if filled:
            data[:filled] = m.read_global(src, filled)
        m.write(dst, data)

    m.later(effect, writes=[(dst, nbytes)])


@instr("cp.async.commit_group;", target="sm_80", ref=f"{_REF}-commit-group")
def cp_async_commit_group(m: Machine) -> None:
    """Close the group of all cp.async that this thread issued since the last one. The thread that issued them."""
    m.commit(CP_ASYNC_GROUP)


@instr("cp.async.wait_group {n};", target="sm_80", ref=f"{_REF}-wait-group", over=[{"n": n} for n in range(64)])
def cp_async_wait_group(m: Machine, *, n: int) -> None:
    """Wait until at most the `n` latest groups of this thread are incomplete. The thread sees its own copies; others
    see them after a barrier."""
    m.wait(CP_ASYNC_GROUP, n)


@instr("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$bar];", target="sm_80", ref=f"{_REF}-mbarrier-arrive")
def cp_async_mbarrier_arrive_noinc(m: Machine, bar: mbar) -> None:
    """Arrive at `bar` once, when all cp.async that this thread issued so far are complete; the count that the barrier
    was made with includes this arrival. Any thread; it does not wait."""
    m.arrive_when_done(CP_ASYNC_GROUP, m.mbar(bar), True)


@instr("cp.async.mbarrier.arrive.shared::cta.b64 [$bar];", target="sm_80", ref=f"{_REF}-mbarrier-arrive")
def cp_async_mbarrier_arrive(m: Machine, bar: mbar) -> None:
    """Keep the current phase of `bar` open until all cp.async that this thread issued so far are complete: it adds one
    to the pending count now and arrives then, so that the thread must also arrive itself. It does not wait."""
    m.arrive_when_done(CP_ASYNC_GROUP, m.mbar(bar), False)
