# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Loads of global memory that nothing writes while the kernel runs (PTX ISA, "ld.global.nc"). Any thread.

Rows are named by register: b16 (elements of 8 or 16 bits), b32, b64; …_policy takes an L2 cache policy. Static
parameters: width (bits of an element), count (1, 2, 4; 16 bytes at most), hint ("" or like
".L1::evict_first.L2::128B")."""

# No `from __future__ import annotations`: the rows are made in a loop, and their annotations are its variables.
from typing import Any

from ..form.instr import gmem, instr, out, u64
from ..form.machine import Machine
from .memory import _REF, _REGISTERS, _checked, _priorities, with_policy


def _row(bits: int, policied: bool) -> None:
    kind, widths = _REGISTERS[bits]

    def load(m: Machine, addr: int, width: int, count: int) -> Any:
        nbytes = width // 8 * count
        _checked(addr, nbytes, "ld.global.nc")
        return m.read_constant(addr, nbytes).view(f"u{width // 8}").tolist()

    def row(m: Machine, addr: gmem, value: out(kind["count"]), *, width: int, count: int) -> Any:
        return load(m, addr, width, count)

    def hinted(m: Machine, addr: gmem, policy: u64, value: out(kind["count"]), *, width: int, count: int) -> Any:
        return load(m, addr, width, count)

    body = hinted if policied else row
    body.__name__ = f"ld_global_nc_b{bits}" + "_policy" * policied
    body.__doc__ = (
        "Load `count` elements of `width` bits at a multiple of all their bytes, through the read-only cache: no store "
        "may change them while the kernel runs." + " policy: an L2 cache policy." * policied
    )
    over = [
        {"hint": hint, "said": with_policy(hint) if policied else hint, "width": w, "count": n,
         "vec": f".v{n}" if n > 1 else ""}
        for hint in ("", *_priorities("ld"))
        for w in widths
        for n in (1, 2, 4)
        if n * w <= 128
    ]  # fmt: skip
    text = "ld.global.nc{said}{vec}.b{width} $value, [$addr]" + ", $policy" * policied + ";"
    instr(text, target="sm_80", ref=f"{_REF}-ld-global-nc", over=over)(body)


for _bits in _REGISTERS:
    for _policied in (False, True):
        _row(_bits, _policied)
