# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Changing a tensor map in a kernel (PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy", "membar / fence").

A map in global or shared memory is changed in the generic proxy and used in the tensor-map proxy. So the writer
releases it (`tensormap_cp_fenceproxy`, or `fence_proxy_tensormap_release`), and who uses it acquires it first
(`fence_proxy_tensormap_acquire`). `tensormap_bits` has the simulator's own 128 bytes: the hardware's are opaque.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..facts.tensormap_bits import BYTES, replace_field
from ..form.checks import need_aligned
from ..form.instr import ACQUIRE, RELEASE, WARP, instr
from ..form.kinds import Kind, choice, gmem, same, smem, u32, u64
from ..form.machine import Machine

_REPLACE = "data-movement-and-conversion-instructions-tensormap-replace"
_TARGETS = "sm_90a|sm_100f|sm_110f|sm_120f"
_SCOPES = [{"scope": s} for s in ("gpu", "cta", "cluster", "sys")]
_SPACES = {"gmem": "global", "smem": "shared::cta"}
_ADDRESS = choice("space", {"gmem": gmem, "smem": smem})

FIELDS: dict[str, tuple[Kind, int]] = {
    "global_address": (u64, 0), "rank": (u32, 0), "global_dim": (u32, 5), "global_stride": (u64, 4),
    "box_dim": (u32, 5), "element_stride": (u32, 5),
}  # fmt: skip
"""Fields set from a register: the operand's kind, and how many there are (0: one, without ord)."""
CHOICES = {"elemtype": 13, "interleave_layout": 3, "swizzle_mode": 4, "swizzle_atomicity": 4, "fill_mode": 2}
"""Fields set from an immediate, by how many values they have (PTX ISA, "Tensormap new_val validity")."""


def _replace(m: Machine, space: str, address: int, field: str, ord: int, value: int) -> None:
    need_aligned("tensormap.replace: address", address, BYTES)
    m.replace(address, BYTES, lambda old: replace_field(old, field, ord, value), shared=space == "smem")
    if space != "smem":
        m.map_proxy("changed", address)


def _fields() -> Iterator[dict[str, Any]]:
    for space, ss in _SPACES.items():
        for field, (kind, count) in FIELDS.items():
            case = {"space": space, "ss": ss, "field": field, "bits": kind.ptx[1:], "indexed": count > 0}
            yield from ({**case, "ord": i} for i in range(max(count, 1)))


def _choices() -> Iterator[dict[str, Any]]:
    for space, ss in _SPACES.items():
        for field, count in CHOICES.items():
            targets = {"target": "sm_100f|sm_110f|sm_120f"} if field == "swizzle_atomicity" else {}
            yield from ({"space": space, "ss": ss, "field": field, "value": i, **targets} for i in range(count))


@instr("tensormap.replace.tile.{field}.{ss}.b1024.{bits} [$address]<indexed:, {ord}>, $value;", target=_TARGETS,
       ref=_REPLACE, over=_fields())  # fmt: skip
def tensormap_replace(
    m: Machine, address: _ADDRESS, value: choice("field", {f: k for f, (k, _) in FIELDS.items()}),
    *, space: str, field: str, ord: int,
) -> None:  # fmt: skip
    """Set a field of the tensor map at `address`, a multiple of 128 bytes of global ("gmem") or shared memory ("smem"):
    global_address (a multiple of 16 bytes), rank (less one), or of dimension `ord` global_dim (elements), global_stride
    (bytes between neighbours in dimension ord + 1, a multiple of 16), box_dim (elements of the box), element_stride.
    One thread."""
    _replace(m, space, address, field, ord, int(value))


@instr("tensormap.replace.tile.{field}.{ss}.b1024.b32 [$address], {value};", target=_TARGETS, ref=_REPLACE,
       over=_choices())  # fmt: skip
def tensormap_replace_code(m: Machine, address: _ADDRESS, *, space: str, field: str, value: int) -> None:
    """Set a field of the tensor map at `address` to `value`, its code in the PTX ISA's table: elemtype,
    interleave_layout, swizzle_mode, swizzle_atomicity (sm_100f), fill_mode. The rest as in `tensormap_replace`. One
    thread."""
    _replace(m, space, address, field, 0, value)


@instr("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned "
       "[$dst], [$src], 128;", target="sm_90", issuer=WARP, sem=RELEASE, over=_SCOPES,
       ref="parallel-synchronization-and-communication-instructions-tensormap-cp-fenceproxy")  # fmt: skip
def tensormap_cp_fenceproxy(m: Machine, dst: same(gmem), src: same(smem)) -> None:
    """Copy a tensor map from shared memory `src` to global memory `dst`, and release it to the tensor-map proxy of the
    threads of `scope`. All lanes of a warp together; both addresses are multiples of 128 bytes."""
    need_aligned("tensormap.cp_fenceproxy: dst", dst, BYTES)
    need_aligned("tensormap.cp_fenceproxy: src", src, BYTES)
    m.write_global(dst, m.read(src, BYTES))
    m.map_proxy("released", dst)


@instr("fence.proxy.tensormap::generic.release.{scope};", target="sm_90", sem=RELEASE, over=_SCOPES,
       ref="parallel-synchronization-and-communication-instructions-membar")  # fmt: skip
def fence_proxy_tensormap_release(m: Machine) -> None:
    """Order this thread's changes of tensor maps before later uses of them, by threads of `scope` that acquire them.
    The thread that changed them."""
    m.map_proxy("released", None)


@instr("fence.proxy.tensormap::generic.acquire.{scope} [$address], 128;", target="sm_90", sem=ACQUIRE, over=_SCOPES,
       ref="parallel-synchronization-and-communication-instructions-membar")  # fmt: skip
def fence_proxy_tensormap_acquire(m: Machine, address: gmem) -> None:
    """Let this thread's later copies see the tensor map at `address` (generic, a multiple of 128 bytes) as it is now.
    Needed before the first use of a map in global memory, and after each change. The thread that uses it."""
    need_aligned("fence.proxy.tensormap acquire: address", address, BYTES)
    m.map_proxy("acquired", address)
