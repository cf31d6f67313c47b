# SPDX-License-Identifier: Apache-2.0
"""Facts of a compiled kernel that a launch must know, read from its PTX."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any

from ...seam.ground.records import dataclass
from ..emit.tracer import SMEM_MARK


@dataclass(frozen=True)
class Facts:
    """Facts of a compiled kernel that a launch must know: the dynamic shared memory that its allocators take, and the
    cluster shape that it was compiled for. Both stand in the PTX, so that kernels from the disk cache have them."""

    smem: int
    cluster: tuple[int, int, int] | None
    raised: dict[int, int]  # the shared memory limit already set, for each device
    large: set[int] = field(default_factory=set)  # devices on which clusters of more than 8 CTAs are allowed


def facts(kernel: Any) -> Facts:
    """Read the facts of a compiled kernel, which remembers them."""
    found = getattr(kernel, "_cute_facts", None)
    if found is None:
        ptx = kernel._codelibrary.get_asm_str()
        shape = re.search(r"\.reqnctapercluster (\d+), (\d+), (\d+)", ptx)
        cluster = None if shape is None else (int(shape[1]), int(shape[2]), int(shape[3]))
        found = kernel._cute_facts = Facts(required_smem(ptx), cluster, {})
    return found


def required_smem(ptx: str) -> int:
    """Return the dynamic shared memory that a kernel's allocators use, from the marks in its PTX (see Tracer)."""
    return max((int(n) for n in re.findall(re.escape(SMEM_MARK) + r" (\d+)", ptx)), default=0)


_STATIC = re.compile(r"^\s*(?:\.visible )?\.shared \.align (\d+) \.b(\d+) [\w$]+(?:\[(\d+)\])?;", re.MULTILINE)


def static_smem(ptx: str) -> int:
    """Return the bytes of the static shared memory that a kernel declares."""
    sizes = ((int(align), int(bits) // 8 * int(count or 1)) for align, bits, count in _STATIC.findall(ptx))
    return sum(-(-nbytes // align) * align for align, nbytes in sizes)
