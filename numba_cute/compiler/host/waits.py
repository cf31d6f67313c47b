# SPDX-License-Identifier: Apache-2.0
"""Find the work of a kernel that runs beside its wgmmas, in its machine code."""

from __future__ import annotations

import re
from collections import Counter

from ...seam.ground.records import dataclass

_LINE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P[0-9T]+\s+)?(\S+)([^;]*);")
_WAIT = "WARPGROUP.DEPBAR"


@dataclass(frozen=True)
class Wait:
    """A wait for wgmma in a kernel's machine code.

    pending: how many groups of multiplies may still run after it. beside: the instructions between the last multiply,
    or wait, and this one, by name, as {"MUFU.EX2": 64, "FFMA": 64}: they run while the multiplies do.
    """

    pending: int
    beside: dict[str, int]


def waits(sass: str) -> tuple[Wait, ...]:
    """List the waits for wgmma in machine code, as nvdisasm prints it, in its order."""
    found, beside = [], Counter[str]()
    for name, operands in _LINE.findall(sass):
        if name.startswith(_WAIT):
            found.append(Wait(int(operands.rpartition(",")[2], 0), dict(beside)))
            beside.clear()
        elif name.partition(".")[0].endswith("GMMA"):
            beside.clear()
        else:
            beside[_kind(name)] += 1
    return tuple(found)


def _kind(name: str) -> str:
    """Name an instruction: of the special functions, which one."""
    first, _, rest = name.partition(".")
    return f"{first}.{rest.partition('.')[0]}" if first == "MUFU" else first
