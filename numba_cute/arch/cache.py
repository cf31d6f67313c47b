# SPDX-License-Identifier: Apache-2.0
"""L2 cache policies: words for `cute.copy(…, cache_policy=…)`, of TMA, cp.async and copies of global memory. sm_80.

A policy affects speed alone, and the hardware may ignore it. priority: "evict_first" (read once), "evict_normal",
"evict_last" (read again) or "evict_unchanged"; secondary, for the other accesses: "evict_unchanged" or "evict_first".
"""

from __future__ import annotations

from typing import Any

from .. import isa
from ..dtypes import Float32, Uint32, Uint64
from ..isa.rows.cache import PRIORITIES, SECONDARY
from ..seam import CuteError, traced
from ..tensor.pointer import AddressSpace, Pointer

__all__ = ["createpolicy_cvt", "createpolicy_fractional", "createpolicy_range"]


def _checked(priority: Any, secondary: Any, what: str) -> dict[str, Any]:
    for name, value, legal in (("priority", priority, PRIORITIES), ("secondary", secondary, SECONDARY)):
        if value not in legal:
            raise CuteError(f"{what}: {name} {value!r} is none of {', '.join(map(repr, legal))}")
    return {"priority": priority, "secondary": secondary}


@traced
def createpolicy_fractional(priority: str, fraction: Any = 1.0, secondary: str = "evict_unchanged") -> Uint64:
    """Make a policy (Uint64) that gives `priority` to a `fraction` (above 0, at most 1) of all accesses and `secondary`
    to the others. Any thread. PTX createpolicy.fractional, sm_80.

    >>> x = cute.runtime.from_dlpack(np.ones(4, np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     atom = cute.make_copy_atom(nvgpu.CopyG2ROp(), cute.Float32, num_bits_per_copy=128)
    ...     r = cute.make_rmem_tensor(4, cute.Float32)
    ...     cute.copy(atom, x, r, cache_policy=arch.createpolicy_fractional("evict_last", 0.5))
    ...     print(r[0])
    >>> cute.simulate(kernel)[1, 1](x)
    1.0
    """
    what = "createpolicy_fractional"
    choice = _checked(priority, secondary, what)
    if isinstance(fraction, (int, float)) and not 0 < fraction <= 1:
        raise CuteError(f"{what}: fraction {fraction} must be above 0 and at most 1")
    if isinstance(fraction, (int, float)) and fraction == 1:
        return Uint64(isa.createpolicy_l2(priority=priority))
    return Uint64(isa.createpolicy_fractional(Float32(fraction), **choice))


@traced
def createpolicy_range(
    ptr: Pointer, primary_size: Any, total_size: Any, priority: str, secondary: str = "evict_unchanged"
) -> Uint64:
    """Make a policy (Uint64) that gives `priority` to accesses to the `primary_size` bytes from `ptr` on, and
    `secondary` to those to the rest of the `total_size` bytes. Any thread.

    ptr: a Pointer to global memory. primary_size, total_size: bytes, below 2^32, the first at most the second. PTX
    createpolicy.range, sm_80.

    >>> x = cute.runtime.from_dlpack(np.ones(4, np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     atom = cute.make_copy_atom(nvgpu.CopyG2ROp(), cute.Float32, num_bits_per_copy=128)
    ...     r = cute.make_rmem_tensor(4, cute.Float32)
    ...     cute.copy(atom, x, r, cache_policy=arch.createpolicy_range(x.iterator, 8, 16, "evict_last"))
    ...     print(r[0])
    >>> cute.simulate(kernel)[1, 1](x)
    1.0
    """
    what = "createpolicy_range"
    choice = _checked(priority, secondary, what)
    if not isinstance(ptr, Pointer) or ptr.space not in (AddressSpace.gmem, AddressSpace.generic):
        raise CuteError(f"{what}: ptr {ptr!r} must be a Pointer to global memory; use tensor.iterator")
    for size, name in ((primary_size, "primary_size"), (total_size, "total_size")):
        if isinstance(size, int) and not 0 <= size < 1 << 32:
            raise CuteError(f"{what}: {name} {size} must be a number of bytes below 2^32")
    if isinstance(primary_size, int) and isinstance(total_size, int) and primary_size > total_size:
        raise CuteError(f"{what}: primary_size {primary_size} must be at most total_size, {total_size}")
    sizes = Uint32(primary_size), Uint32(total_size)
    return Uint64(isa.createpolicy_range(Uint64(ptr.address), *sizes, **choice))


@traced
def createpolicy_cvt(access_property: Any) -> Uint64:
    """Make a policy (Uint64) of `access_property`, the 64 bits of an access property that came from CUDA's APIs. Any
    thread. PTX createpolicy.cvt, sm_80.

    >>> x = cute.runtime.from_dlpack(np.ones(4, np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     atom = cute.make_copy_atom(nvgpu.CopyG2ROp(), cute.Float32, num_bits_per_copy=128)
    ...     r = cute.make_rmem_tensor(4, cute.Float32)
    ...     cute.copy(atom, x, r, cache_policy=arch.createpolicy_cvt(0))
    ...     print(r[0])
    >>> cute.simulate(kernel)[1, 1](x)
    1.0
    """
    return Uint64(isa.createpolicy_cvt(Uint64(access_property)))
