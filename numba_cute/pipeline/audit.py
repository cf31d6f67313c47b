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
from .pipelines import PipelineAsync

_COPIES = (copy, copy_atom_call)
_ACQUIRE = ("acquire", "acquire_and_advance")
_HARMLESS = ("index", "phase", "count")
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
    handles: dict[str, Stage] = {}
    barriers: dict[str, Stage] = {}
    stages: list[Stage] = []
    current: dict[str, Stage] = {}  # of pipelines that are used through states
    names: dict[str, str] = {}  # what a variable is another name of
    value = code.value
    for s in code.steps:
        if s.kind == "alias":
            names[s.target] = names.get(s.of, s.of)
            for held in (handles, barriers):
                if s.of in held:
                    held[s.target] = held[s.of]
            continue
        if s.kind == "call" and s.name in (*_ACQUIRE, "producer_acquire"):
            owner = value(s.of) if s.of else None
            stage = _stage(owner if s.name == "producer_acquire" else getattr(owner, "pipeline", None), s)
            if stage is not None:
                stages.append(stage)
                if s.name == "producer_acquire":
                    current[names.get(s.of, s.of)] = stage
                else:
                    handles[s.target] = stage
            continue
        if s.kind == "call" and s.name == "producer_get_barrier":
            stage = current.get(names.get(s.of, s.of))
            if stage is not None and stage.region == s.region:
                barriers[s.target] = stage
            elif stage is not None:
                stage.known = False
            continue
        if s.kind == "call" and s.name in ("advance", "reverse"):
            current.clear()
        if s.kind == "get" and s.of in handles and s.name in ("barrier", *_HARMLESS):
            if s.name == "barrier":
                barriers[s.target] = handles[s.of]
            continue
        if s.kind == "call" and s.name == "commit" and s.of in handles:
            continue
        if s.kind == "call" and s.name in _COPIES and s.named.get("tma_bar_ptr") in barriers:
            _note(barriers[s.named["tma_bar_ptr"]], s, value)
            continue
        for var in s.uses:  # whatever else happens to it is not known
            for held in (handles, barriers):
                if var in held:
                    held[var].known = False
    for stage in stages:
        _judge(stage)


def _stage(pipe: Any, s: Step) -> Stage | None:
    full: Any = getattr(pipe, "sync_object_full", None) if isinstance(pipe, PipelineAsync) else None
    tx_count = getattr(full, "tx_count", None)
    if not isinstance(tx_count, int) or full.op_type is not PipelineOp.TmaLoad:
        return None
    return Stage(full.name.removesuffix(".full"), tx_count, s.region, s.at)


def _note(stage: Stage, s: Step, value: Callable[[str], Any]) -> None:
    """Add a copy to its stage."""
    given = dict(zip(("atom", "src", "dst"), s.args), **s.named)
    atom, dst = (value(given[k]) if k in given else None for k in ("atom", "dst"))
    if not isinstance(dst, Tensor) or not is_static(dst.shape) or s.region != stage.region or "pred" in given:
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
    lines = ", ".join(str(at) if i == 0 else str(at).removeprefix("line ") for i, (*_, at) in enumerate(stage.copies))
    plural = "copy in" if len(stage.copies) == 1 else "copies in"
    sums = terms if len(stage.copies) == 1 else f"{terms} = {total}"
    e = CuteError(
        f"pipeline {stage.name!r}: tx_count is {stage.tx_count} bytes, but the {plural} {lines} into the stage "
        f"acquired in {stage.at} deliver{'s' * (len(stage.copies) == 1)} {sums} bytes: "
        f"tx_count={total} (bytes of all copies of one stage that arrive in this CTA)"
    )
    raise at_spot(e, stage.at)


AUDITS_OF_KERNELS.append(check_bytes)
