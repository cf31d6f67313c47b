# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Loads and stores that say more than an assignment does: order and scope, cache operators and priorities (PTX ISA,
"ld", "st"). Any thread.

space: "global", "shared" (of the CTA) or "dsmem" (of any CTA of the cluster). width: bits of an element; count: 1 (the
default), 2 or 4 of them, 16 bytes at most, the address a multiple of all their bytes. sem, scope: None (the default),
or the order (see `Order`). Of global memory also: cop, a cache operator, of a weak access without other hints; evict, a
priority in L1; prefetch, bytes fetched into L2; none of them unless it is named; and `policy`, an L2 cache policy
(isa/rows/cache.py). Hints change no result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...seam import CuteError
from ..form.instr import ACQUIRE, RELAXED, RELEASE, instr
from ..form.kinds import choice, cluster_smem, gmem, only, optional, out, policy, smem, u16, u32, u64
from ..form.machine import Machine

_REF = "data-movement-and-conversion-instructions"
SPACES = {"global": "global", "shared": "shared::cta", "dsmem": "shared::cluster"}
ADDRESS = choice("space", {"global": gmem, "shared": smem, "dsmem": cluster_smem})
WORDS = choice("width", {8: u16, 16: u16, 32: u32, 64: u64})["count"]
_EVICTIONS = ("evict_normal", "evict_first", "evict_last", "no_allocate", "evict_unchanged")
_PREFETCHES = (64, 128, 256)
_PLAIN: dict[str, Any] = {"cop": None, "evict": None, "prefetch": None}
_WEAK = {"sem": None, **_PLAIN, "count": 1}


def sizes() -> Iterator[dict[str, Any]]:
    """Each number of elements of each width that one access can have."""
    for w in (8, 16, 32, 64):
        yield from ({"width": w, "count": n, "several": n > 1} for n in (1, 2, 4) if n * w <= 128)


def hints(prefetches: tuple[int, ...] = ()) -> Iterator[dict[str, Any]]:
    """List the cache hints of an access to global memory in any order; first none."""
    for e in (None, *_EVICTIONS):
        yield from ({"cop": None, "evict": e, "prefetch": p} for p in (None, *prefetches))


def _cases(sided: str, cops: tuple[str, ...], prefetches: tuple[int, ...] = ()) -> Iterator[dict[str, Any]]:
    for space, ptx in SPACES.items():
        weak = {"space": space, "ss": ptx, "sem": None, "scope": None}
        orders = [weak]
        orders += [{**weak, "sem": s, "scope": c} for s in (RELAXED, sided) for c in ("cta", "gpu", "sys", "cluster")]
        said = [_PLAIN] if space != "global" else [*hints(prefetches), *({**_PLAIN, "cop": c} for c in cops)]
        for order in orders:
            for hint in said:
                if hint["cop"] and order is not weak:
                    continue
                least = "sm_90" if space == "dsmem" or order["scope"] == "cluster" else "sm_80"
                target = least if least == "sm_90" or hint != _PLAIN else "sm_70"
                yield from ({**order, **hint, **size, "target": target} for size in sizes())


def check_aligned(addr: int, nbytes: int, what: str) -> None:
    """Raise CuteError if an access to `nbytes` at `addr` is not aligned to all of them."""
    if addr % nbytes:
        raise CuteError(f"{what}: address {addr:#x} must be a multiple of the {nbytes} bytes that it accesses")


def place(m: Machine, space: str, addr: int) -> tuple[int, int | None]:
    """An address within its memory, and the CTA whose memory that is (None: the issuing one's, or global memory)."""
    if space != "dsmem":
        return addr, None
    cta, at = m.owner(addr)
    return at, cta


HINTED = (
    "<cop:.{cop}><evict:.L1::{evict}><policy:.L2::cache_hint><prefetch:.L2::{prefetch}B><several:.v{count}>.b{width}"
)
POLICY = optional(only(policy, "space", "global"), target="sm_80")


@instr("ld<sem:.{sem}.{scope}>.{ss}" + HINTED + " $value, [$addr]<policy:, $policy>;", target="sm_70",
       ref=f"{_REF}-ld", over=_cases(ACQUIRE, ("ca", "cg", "cs", "lu", "cv"), _PREFETCHES), defaults=_WEAK)  # fmt: skip
def ld(
    m: Machine, addr: ADDRESS, policy: POLICY, value: out(WORDS), *, space: str, width: int, count: int, sem: str | None
) -> Any:
    """Load `count` elements of `width` bits. Any thread."""
    nbytes = width // 8 * count
    check_aligned(addr, nbytes, f"ld.{SPACES[space]}")
    at, cta = place(m, space, addr)
    if sem is not None:
        data = m.atomic(at, nbytes, None, shared=space != "global", cta=cta)
    else:
        data = m.read_global(at, nbytes) if space == "global" else m.read(at, nbytes, cta=cta)
    return data.view(f"u{width // 8}").tolist()


@instr("st<sem:.{sem}.{scope}>.{ss}" + HINTED + " [$addr], $value<policy:, $policy>;", target="sm_70",
       ref=f"{_REF}-st", over=_cases(RELEASE, ("wb", "cg", "cs", "wt")), defaults=_WEAK)  # fmt: skip
def st(
    m: Machine, addr: ADDRESS, value: WORDS, policy: POLICY, *, space: str, width: int, count: int, sem: str | None
) -> None:
    """Store `count` elements of `width` bits. Any thread."""
    nbytes = width // 8 * count
    check_aligned(addr, nbytes, f"st.{SPACES[space]}")
    at, cta = place(m, space, addr)
    low = (1 << width) - 1
    words: list[int] = list(value)
    data: Any = np.array([int(v) & low for v in words], f"u{width // 8}").view(np.uint8)
    if sem is not None:
        m.atomic(at, nbytes, lambda _: data, shared=space != "global", cta=cta, reads=False)
    elif space == "global":
        m.write_global(at, data)
    else:
        m.write(at, data, cta=cta)
