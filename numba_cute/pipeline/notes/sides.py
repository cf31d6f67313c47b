# SPDX-License-Identifier: Apache-2.0
"""Notes of the two sides of a pipeline: one that is left out, arrivals that never occur or are too many, and clusters
that differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...layout import Layout, size
from ...seam import is_static
from ...seam.hooks.audits import Code, Spot
from ..clc import PipelineClcFetchAsync
from ..group import WARP_SIZE, CooperativeGroup, PipelineOp, known_arrivals
from ..umma import PipelineTmaMultiConsumersAsync
from .flow import Threads
from .uses import CONSUMES, PRODUCES, Event, Pipe, creates

Note = tuple[str, Spot]
"""A likely mistake in words, and where it is."""


def of_sides(pipe: Pipe) -> Iterator[Note]:
    """Note a pipeline that nothing uses, or one side alone. What merely tries a stage counts for neither."""
    produced, consumed = pipe.of(*PRODUCES), pipe.of(*CONSUMES)
    what = f"pipeline {pipe.name!r}"
    if not pipe.does:
        yield f"{what} is made and never used: leave it out", pipe.at
    elif produced and not consumed:
        e = produced[0]
        yield f"{what} has a producer ({_call(e)}) and no consumer: nothing waits for or releases its stages", e.at
    elif consumed and not produced:
        e = consumed[0]
        yield f"{what} has a consumer ({_call(e)}) and no producer: nothing fills its stages: a wait never ends", e.at
    elif pipe.of("wait") and not pipe.of("commit") and _commits(pipe):
        e = pipe.of("acquire")[0] if pipe.of("acquire") else produced[0]
        yield f"{what}: nothing commits a stage ({_call(e)}), and who waits for it does so for ever", e.at
    elif pipe.of("release") and not pipe.of("wait", "try"):
        e = pipe.of("release")[0]
        yield f"{what}: a stage is released ({_call(e)}) that nothing waits for: it is used before it is full", e.at


def _commits(pipe: Pipe) -> bool:
    """Say whether `producer_commit` is what fills a stage."""
    full = getattr(pipe.obj, "sync_object_full", None)
    return full is not None and full.op_type in (PipelineOp.AsyncThread, PipelineOp.AsyncLoad, PipelineOp.TCGen05Mma)


def _call(e: Event) -> str:
    return f"{e.kind} in {e.at}"


# ---------------------------------------------------------------- arrivals


class _Side(NamedTuple):
    """One side of a pipeline, which completes the phases of that side's barriers. group: the argument that counts.
    wanted: arrivals. unit: threads that arrive once together. events: that arrive. becomes: the state of a stage
    then."""

    group: str
    wanted: int
    unit: int
    events: list[Event]
    becomes: str


def of_arrivals(pipe: Pipe, code: Code, threads: Threads) -> Iterator[Note]:
    """Note barriers for which fewer threads can arrive than they count, or surely more."""
    for side in _sides(pipe, code):
        if not side.events or not threads.flat:
            continue
        units = "threads" if side.unit == 1 else f"groups of {side.unit} threads" if side.unit != WARP_SIZE else "warps"
        e = side.events[0]
        most = _count(np.any([threads.may(x.block) for x in side.events], axis=0), side.unit)
        begins = f"pipeline {pipe.name!r}: a stage is {side.becomes} after {side.wanted} arrivals ({side.group})"
        if most < side.wanted:
            yield f"{begins}, and no more than {most} {units} come to {_call(e)}: the others never arrive", e.at
        elif side.events[0].place is not None:
            yield from _surplus(side, begins, units, code, threads)


def _surplus(side: _Side, begins: str, units: str, code: Code, threads: Threads) -> Iterator[Note]:
    for e in side.events:
        surely = threads.must(e.block)
        if e.place is None or not e.place.plain or not threads.known and surely[-1]:
            continue
        moves = [code.steps[i].block for i in e.place.advances]
        if _count(surely, side.unit) > side.wanted and all((threads.may(b) == surely).all() for b in moves):
            count = _count(surely, side.unit)
            yield f"{begins}, and {count} {units} come to {_call(e)}: each arrives, and ends phases too early", e.at
            return


def _count(those: Any, unit: int) -> int:
    """Count the groups of `unit` threads of which one is among `those`."""
    return len({int(i) // unit for i in np.flatnonzero(those)})


def _sides(pipe: Pipe, code: Code) -> Iterator[_Side]:
    """Yield the sides of a pipeline of which it is known who arrives: in a CTA alone, one way for all."""
    if code.steps[pipe.made].args:  # others are in a dictionary
        return
    named = code.steps[pipe.made].named
    alone = _ctas(code.value(named.get("cta_layout_vmnk", ""))) == 1 or "cta_layout_vmnk" not in named
    if not alone or isinstance(pipe.obj, PipelineClcFetchAsync) or not hasattr(pipe.obj, "sync_object_full"):
        return
    if any(k in named for k in ("producer_mask", "consumer_mask", "enable_multicast_signaling")):
        return
    full, empty = pipe.obj.sync_object_full, pipe.obj.sync_object_empty
    announces = full.op_type is PipelineOp.TmaLoad and full.tx_count is not None
    wanted = _wanted(full.cg)
    if wanted is not None:
        unit = 1 if full.op_type in (PipelineOp.AsyncThread, PipelineOp.AsyncLoad) else WARP_SIZE
        yield _Side("producer_group", wanted, unit, pipe.of("acquire" if announces else "commit"), "full")
    wanted = _wanted(empty.cg)
    if wanted is None or isinstance(pipe.obj, PipelineTmaMultiConsumersAsync) or "threads_per_arrival" in named:
        return
    each = empty.op_type is PipelineOp.AsyncThread and getattr(pipe.obj, "is_signaling_thread", True) is True
    yield _Side("consumer_group", wanted, 1 if each else WARP_SIZE, pipe.of("release"), "empty")


def _wanted(group: Any) -> int | None:
    return known_arrivals(group) if isinstance(group, CooperativeGroup) else None


# ---------------------------------------------------------------- clusters


def of_clusters(code: Code) -> Iterator[Note]:
    """Note pipelines whose clusters differ."""
    first: tuple[Any, Spot] | None = None
    for s in code.steps:
        given = s.named.get("cta_layout_vmnk", "")
        layout = code.value(given) if given and creates(s, code) else None
        if (_ctas(layout) or 1) == 1:
            continue
        if first is None:
            first = layout, s.at
        elif layout != first[0]:
            yield (
                f"cta_layout_vmnk {layout} is another cluster than {first[0]} of the pipeline in {first[1]}: a "
                "kernel has one cluster, and their masks name different CTAs",
                s.at,
            )
            return


def _ctas(layout: Any) -> int | None:
    """Count the CTAs of a cluster's layout; None if it is not known."""
    return int(size(layout)) if isinstance(layout, Layout) and is_static(layout.shape) else None
