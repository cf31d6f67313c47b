# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Changing a tensor map in a kernel (PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy", "membar / fence").

A map in global or shared memory is changed in the generic proxy and used in the tensor-map proxy. So the writer
releases it (`tensormap_cp_fenceproxy`, or `fence_proxy_tensormap_release`), and who uses it acquires it first
(`fence_proxy_tensormap_acquire`). `tensormap_bits` has the simulator's own 128 bytes: the hardware's are opaque.
"""

from __future__ import annotations

from typing import Any

from ..facts.tensormap_bits import BYTES, replace_field
from ..form.declare import declare, need_aligned
from ..form.instr import WARP, gmem, instr, smem, u32, u64
from ..form.machine import Machine

_REPLACE = "data-movement-and-conversion-instructions-tensormap-replace"
_TARGETS = "sm_90a|sm_100f|sm_110f|sm_120f"
_SCOPES = [{"scope": s} for s in ("gpu", "cta", "cluster", "sys")]
_SPACES = (("gmem", "global", gmem), ("smem", "shared::cta", smem))

FIELDS: dict[str, tuple[Any, int, str]] = {
    "global_address": (u64, 0, "the tensor's address, a multiple of 16 bytes"),
    "rank": (u32, 0, "the number of dimensions less one"),
    "global_dim": (u32, 5, "the elements in dimension `ord`"),
    "global_stride": (u64, 4, "the bytes between neighbours in dimension `ord` + 1, a multiple of 16"),
    "box_dim": (u32, 5, "the elements of the box in dimension `ord`"),
    "element_stride": (u32, 5, "the step in dimension `ord`"),
}
"""Fields set from a register: the operand's kind, how many there are (0: one, without ord), what it says."""
CHOICES = {"elemtype": 13, "interleave_layout": 3, "swizzle_mode": 4, "swizzle_atomicity": 4, "fill_mode": 2}
"""Fields set from an immediate, by how many values they have (PTX ISA, "Tensormap new_val validity")."""


def _replace(m: Machine, space: str, address: int, field: str, ord: int, value: int) -> None:
    need_aligned("tensormap.replace: address", address, BYTES)
    if space == "smem":
        m.write(address, replace_field(m.read(address, BYTES), field, ord, value))
    else:
        m.write_global(address, replace_field(m.read_global(address, BYTES), field, ord, value))
        m.map_proxy("changed", address)


def _declare_replacements(space: str, ss: str, kind: Any) -> None:
    for field, (value, count, says) in FIELDS.items():
        ord = ", {ord}" if count else ""
        text = f"tensormap.replace.tile.{field}.{ss}.b1024.{value.ptx[1:]} [$address]{ord}, $value;"

        def body(m: Machine, address: int, value: int, ord: int = 0, _field: str = field) -> None:
            _replace(m, space, address, _field, ord, int(value))

        declare(
            f"tensormap_replace_{field}_{space}", text, {"address": kind, "value": value},
            f"Set {says}, of the tensor map at `address`, a multiple of 128 bytes. One thread.",
            body, target=_TARGETS, ref=_REPLACE, over=[{"ord": i} for i in range(count)] if count else [{}],
            statics=("ord",) if count else (),
        )  # fmt: skip
    for field, count in CHOICES.items():
        text = f"tensormap.replace.tile.{field}.{ss}.b1024.b32 [$address], {{value}};"

        def choose(m: Machine, address: int, value: int, _field: str = field) -> None:
            _replace(m, space, address, _field, 0, value)

        declare(
            f"tensormap_replace_{field}_{space}", text, {"address": kind},
            f"Set the {field} of the tensor map at `address`, a multiple of 128 bytes; value: its code in the PTX "
            "ISA's table. One thread.",
            choose, over=[{"value": i} for i in range(count)], statics=("value",), ref=_REPLACE,
            target="sm_100f|sm_110f|sm_120f" if field == "swizzle_atomicity" else _TARGETS,
        )  # fmt: skip


for _space in _SPACES:
    _declare_replacements(*_space)


@instr("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned "
       "[$dst], [$src], 128;", target="sm_90", issuer=WARP, over=_SCOPES,
       ref="parallel-synchronization-and-communication-instructions-tensormap-cp-fenceproxy")  # fmt: skip
def tensormap_cp_fenceproxy(m: Machine, dst: gmem, src: smem) -> None:
    """Copy a tensor map from shared memory `src` to global memory `dst`, and release it to the tensor-map proxy of the
    threads of `scope`. All lanes of a warp together; both addresses are multiples of 128 bytes."""
    dst, src = m.uniform(dst), m.uniform(src)
    need_aligned("tensormap.cp_fenceproxy: dst", dst, BYTES)
    need_aligned("tensormap.cp_fenceproxy: src", src, BYTES)
    m.write_global(dst, m.read(src, BYTES))
    m.map_proxy("released", dst)


@instr("fence.proxy.tensormap::generic.release.{scope};", target="sm_90", over=_SCOPES,
       ref="parallel-synchronization-and-communication-instructions-membar")  # fmt: skip
def fence_proxy_tensormap_release(m: Machine) -> None:
    """Order this thread's changes of tensor maps before later uses of them, by threads of `scope` that acquire them.
    The thread that changed them."""
    m.map_proxy("released", None)


@instr("fence.proxy.tensormap::generic.acquire.{scope} [$address], 128;", target="sm_90", over=_SCOPES,
       ref="parallel-synchronization-and-communication-instructions-membar")  # fmt: skip
def fence_proxy_tensormap_acquire(m: Machine, address: gmem) -> None:
    """Let this thread's later copies see the tensor map at `address` (generic, a multiple of 128 bytes) as it is now.
    Needed before the first use of a map in global memory, and after each change. The thread that uses it."""
    need_aligned("fence.proxy.tensormap acquire: address", address, BYTES)
    m.map_proxy("acquired", address)
