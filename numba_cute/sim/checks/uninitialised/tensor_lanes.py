# SPDX-License-Identifier: Apache-2.0
"""Lanes of tensor memory that nobody has written, in columns of which others were: a multiply with M = 64 leaves half
of the lanes as they are (PTX ISA, layouts of the accumulator), and what a load of all gives for those is undefined."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....seam import Regs
from ...ground.report import Place, SimError, UninitializedReadError, who
from ...hardware.together import NotTogether
from ...python.arithmetic.undefined import Why


class Unset(NamedTuple):
    """A thread's load from a lane that nobody has written. load: which load, and where."""

    thread: Any
    load: str
    lane: int
    patch: str

    def error(self, place: Place, how: str) -> SimError:
        return UninitializedReadError(
            f"uninitialised: {who([self.thread])} uses what {self.load} has loaded from lane {self.lane} of tensor "
            f"memory ({self.patch}), but nobody has written that lane there since the columns were allocated\n"
            f"  what comes of it {how} at {place}\n"
            f"  fix: use what was loaded from the other lanes alone: a multiply of 64 rows (M = 64) writes lanes 0 to "
            f"15 of each 32, which loads of shape 16x64b, 16x128b and 16x256b take; or multiply with M = 128"
        )


class _Marks:
    """The machine of a load as the row's body sees it, and its tensor memory: of each element 0, or one more than its
    lane in the patch if nobody has written it."""

    def __init__(self, m: Any, missing: list[Any]) -> None:
        self.tmem, self.sreg, self.uniform, self._missing = self, m.sreg, m.uniform, missing

    def read(self, lane: int, lanes: int, column: int, columns: int) -> Any:
        out = np.zeros((lanes, columns), np.uint32)
        for patch, absent in self._missing:
            if (patch.lane, patch.column, absent.shape) == (lane, column, out.shape):
                out[absent] = np.broadcast_to(np.arange(1, lanes + 1)[:, None], out.shape)[absent]
        return out


def mark(meet: Any, m: Any, values: dict[str, Any], missing: list[Any]) -> None:
    """Leave with each thread which of the registers that it has loaded are undefined."""
    if m.threads[0].convoy is not None:
        raise NotTogether("what nobody has written is followed lane by lane")
    outs = meet.row.perform(_Marks(m, missing), meet.case, values)
    loaded = np.ascontiguousarray(outs[0] if isinstance(outs, tuple) else outs)
    patch = missing[0][0]
    names = [o.name for o in meet.row.operands_in(meet.case) if o.writes]
    for i, t in enumerate(m.threads):
        given = meet.operands[i].get(names[0])
        words = loaded[i].reshape(-1)
        elements = words.view(np.uint8).reshape(given.count if isinstance(given, Regs) else words.size, -1)
        found = {
            k: marks[marks != 0]
            for k in np.flatnonzero(elements.any(1)).tolist()
            for marks in [elements[k].view(np.uint16)]
        }
        load = f"{meet.row.name} at {m.place}"
        reasons: dict[int, Why] = {k: Unset(t, load, patch.lane + int(x[0]) - 1, str(patch)) for k, x in found.items()}
        if reasons:
            t.received = {names[0]: reasons, **{name: {0: next(iter(reasons.values()))} for name in names[1:]}}
