# SPDX-License-Identifier: Apache-2.0
"""While a kernel is compiled: do the TMA copies of a stage deliver the bytes that its pipeline waits for?

Known where a stage is acquired and all copies that signal its barrier stand in one straight piece of code, and their
shapes are static. The simulator counts the bytes themselves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import field
from typing import Any

from .. import layout
from ..atoms.copy import copy, copy_atom_call
from ..atoms.copy_atom import CopyAtom, TiledCopy
from ..seam import CuteError, is_static
from ..seam.ground.records import dataclass
from ..seam.hooks.audits import AUDITS_OF_KERNELS, Code, Spot, Step, at_spot
from ..tensor.tensor import Tensor
from .group import PipelineOp
from .notes.flow import regions_of
from .notes.uses import Handle, Pipe, Place, uses_of
from .pipelines import PipelineAsync

_COPIES = (copy, copy_atom_call)
_ACQUIRE = ("acquire", "acquire_and_advance")
_MOST = 4
"""Multicast copies of one stage that are still looked at."""


@dataclass
class Stage:
    """A stage from its acquisition on. copies: (bytes, whether peers' copies may add as many, where)."""

    name: str
    tx_count: int
    region: int
    at: Spot
    copies: list[tuple[int, bool, Spot]] = field(default_factory=list)
    known: bool = True


def check_bytes(code: Code) -> None:
    """Refuse copies of a stage that cannot deliver what it waits for."""
    uses, regions = uses_of(code), regions_of(code)
    given: dict[int, Stage] = {}  # by the handle that a participant gave
    current: dict[int, Stage] = {}  # of pipelines that are used through states
    barriers: dict[str, Stage] = {}
    stages: list[tuple[Stage, Handle | None]] = []
    for s in code.steps:
        held = uses.held(s.of) if isinstance(s.of, str) else None
        if s.kind == "alias":
            if s.of in barriers:
                barriers[s.target] = barriers[s.of]
        elif s.kind == "call" and s.name in (*_ACQUIRE, "producer_acquire"):
            pipe = held.pipe if isinstance(held, Place) else held
            stage = _stage(pipe.obj, regions[s.block], s.at) if isinstance(pipe, Pipe) else None
            handle = uses.held(s.target) if isinstance(held, Place) else None
            if stage is not None:
                stages.append((stage, handle))
                given[id(handle)] = current[id(pipe)] = stage
        elif s.kind == "call" and s.name == "producer_get_barrier":
            handle = uses.held(s.args[0] if s.args else s.named.get("state", ""))
            stage = given.get(id(handle)) if isinstance(handle, Handle) else current.get(id(held))
            if stage is not None and stage.region == regions[s.block]:
                barriers[s.target] = stage
            elif stage is not None:
                stage.known = False
        elif s.kind == "get" and s.name == "barrier" and id(held) in given:
            barriers[s.target] = given[id(held)]
        elif s.kind == "call" and s.name in _COPIES and s.named.get("tma_bar_ptr") in barriers:
            _note(barriers[s.named["tma_bar_ptr"]], s, regions[s.block], code.value)
        else:
            if s.kind == "call" and s.name in ("advance", "reverse"):
                current.clear()
            for var in barriers.keys() & s.uses:  # whatever else happens to it is not known
                barriers[var].known = False
    for stage, handle in stages:
        if handle is None or handle.plain:
            _judge(stage)


def _stage(pipe: Any, region: int, at: Spot) -> Stage | None:
    full: Any = getattr(pipe, "sync_object_full", None) if isinstance(pipe, PipelineAsync) else None
    tx_count = getattr(full, "tx_count", None)
    if not isinstance(tx_count, int) or full.op_type is not PipelineOp.TmaLoad:
        return None
    return Stage(full.name.removesuffix(".full"), tx_count, region, at)


def _note(stage: Stage, s: Step, region: int, value: Callable[[str], Any]) -> None:
    """Add a copy to its stage."""
    given = dict(zip(("atom", "src", "dst"), s.args), **s.named)
    atom, dst = (value(given[k]) if k in given else None for k in ("atom", "dst"))
    if not isinstance(dst, Tensor) or not is_static(dst.shape) or region != stage.region or "pred" in given:
        stage.known = False
        return
    blocks = atom.op.blocks if isinstance(atom, (CopyAtom, TiledCopy)) else 1
    delivered = int(layout.size(dst.shape)) * dst.element_type.width // 8 * blocks
    stage.copies.append((delivered, "mcast_mask" in given, s.at))


def _judge(stage: Stage) -> None:
    if not stage.known or not stage.copies or len(stage.copies) > _MOST:
        return
    fixed = sum(n for n, many, _ in stage.copies if not many)
    shared = [n for n, many, _ in stage.copies if many]
    factors = itertools.product(range(1, 17), repeat=len(shared))
    if any(fixed + sum(f * n for f, n in zip(fs, shared)) == stage.tx_count for fs in factors):
        return
    total = sum(n for n, *_ in stage.copies)
    terms = " + ".join(str(n) for n, *_ in stage.copies)
    lines = ", ".join(str(at).removeprefix("line ") for *_, at in stage.copies)
    plural = "copy in line" if len(stage.copies) == 1 else "copies in lines"
    sums = terms if len(stage.copies) == 1 else f"{terms} = {total}"
    e = CuteError(
        f"pipeline {stage.name!r}: tx_count is {stage.tx_count} bytes, but the {plural} {lines} into the stage "
        f"acquired in {stage.at} deliver{'s' * (len(stage.copies) == 1)} {sums} bytes: "
        f"tx_count={total} (bytes of all copies of one stage that arrive in this CTA)"
    )
    raise at_spot(e, stage.at)


AUDITS_OF_KERNELS.append(check_bytes)
