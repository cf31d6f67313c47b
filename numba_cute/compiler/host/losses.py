# SPDX-License-Identifier: Apache-2.0
"""Say in words what costs a compiled kernel speed, and what in it is likely a mistake."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ...isa.form.limits import taken_smem
from ...isa.form.targets import Target
from ...seam.ground.places import placed
from ..ground.memory import Loss
from . import ptxas
from .result import LIKELY_WRONG

_LOST = "lost speed: "
_FLOAT64 = re.compile(r"\b(?:add|sub|mul|fma|div|rem|min|max|setp|neg|abs|sqrt)(?:\.\w+)*\.f64\b")
_ALLOCATES = re.compile(r"\btcgen05\.alloc\.[\w.:]+ \[[^\]]*\], (%\w+|\d+);")
_MOST = 8
_FEW, _LITTLE = 4, 32
"""CTAs of an SM to which another is worth a note; of which part of the shared memory it may be too much."""


def is_loss(note: str) -> bool:
    """Say whether a note means lost speed."""
    return note.startswith(_LOST) or any(code in note for code in ptxas.SLOW_NOTES)


def of_lines(py_func: Any, found: Iterable[Loss], ptx: str) -> tuple[str, ...]:
    """Return notes of the lines of a kernel that are likely wrong, and of those that cost speed: of float64 for a
    literal's or an integer's sake if the PTX computes in it, which the optimiser may have found needless."""
    wide = _FLOAT64.search(ptx) is not None
    notes = {(n.likely_wrong, n.file, n.line, n.why): None for n in found if wide or not n.in_float64}
    lines = sorted(notes, key=lambda n: not n[0])
    return tuple(
        placed((LIKELY_WRONG if wrong else _LOST) + why, py_func.__name__, file, line)
        for wrong, file, line, why in lines[:_MOST]
    )


def of_memory(py_func: Any, used: ptxas.Resources, ptx: str, target: Target) -> Iterator[str]:
    """Yield notes of registers that are spilled, of arrays that are in local memory, but for what `print` needs, and of
    shared memory of which a little less lets an SM hold one CTA more."""
    code = py_func.__code__
    smem = taken_smem(used.dynamic_shared, used.shared)
    held = target.smem_per_sm // (smem + target.smem_reserved)
    less = target.smem_per_sm // (held + 1) - target.smem_reserved
    columns = _columns(ptx)
    one_more = not columns or (held + 1) * columns <= target.tmem_columns
    if held <= _FEW and smem - less <= smem // _LITTLE and one_more:
        yield placed(
            f"{_LOST}{smem} bytes of shared memory let an SM of {target.name} hold {held} of the kernel's CTAs: "
            f"{less} would let it hold {held + 1}",
            py_func.__name__, code.co_filename, code.co_firstlineno,
        )  # fmt: skip
    if used.spill_stores or used.spill_loads:
        yield placed(
            f"{_LOST}registers are spilled: a thread stores {used.spill_stores} bytes and loads {used.spill_loads}: "
            "keep fewer values, use smaller tiles or more threads, or ask for more registers (max_registers)",
            py_func.__name__, code.co_filename, code.co_firstlineno,
        )  # fmt: skip
    elif used.local and "vprintf" not in ptx:
        yield placed(
            f"{_LOST}{used.local} bytes of local memory a thread: an array is indexed by a number of run time; "
            "unroll the loop (cute.range_constexpr)",
            py_func.__name__, code.co_filename, code.co_firstlineno,
        )  # fmt: skip


def _columns(ptx: str) -> int:
    """Return how many columns of tensor memory a kernel takes, as far as numbers say it."""
    found = 0
    for given in _ALLOCATES.findall(ptx):
        moved = re.search(rf"\bmov\.[bu]32\s+{re.escape(given)}, (\d+);", ptx)
        found += int(given if given.isdigit() else moved[1] if moved else 0)
    return found
