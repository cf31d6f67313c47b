# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Loads of global memory that nothing writes while the kernel runs (PTX ISA, "ld.global.nc"). Any thread.

Rows are named by register: b16 (elements of 8 or 16 bits), b32, b64. Static parameters: width (bits of an element),
count (1, 2, 4; 16 bytes at most), hint ("" or like ".L1::evict_first.L2::128B")."""

# No `from __future__ import annotations`: the rows are made in a loop, and their annotations are its variables.
from typing import Any

from .instr import gmem, instr, out
from .machine import Machine
from .memory import _REF, _REGISTERS, _checked, _priorities


def _row(bits: int) -> None:
    kind, widths = _REGISTERS[bits]

    def row(m: Machine, addr: gmem, value: out(kind["count"]), *, width: int, count: int) -> Any:
        """Load `count` elements of `width` bits at a multiple of all their bytes, through the read-only cache: no
        store may change them while the kernel runs."""
        nbytes = width // 8 * count
        _checked(addr, nbytes, "ld.global.nc")
        return m.read_global(addr, nbytes).view(f"u{width // 8}").tolist()

    row.__name__ = f"ld_global_nc_b{bits}"
    over = [
        {"hint": hint, "width": w, "count": n, "vec": f".v{n}" if n > 1 else ""}
        for hint in ("", *_priorities("ld"))
        for w in widths
        for n in (1, 2, 4)
        if n * w <= 128
    ]
    instr("ld.global.nc{hint}{vec}.b{width} $value, [$addr];", target="sm_80", ref=f"{_REF}-ld-global-nc", over=over)(
        row
    )


for _bits in _REGISTERS:
    _row(_bits)
