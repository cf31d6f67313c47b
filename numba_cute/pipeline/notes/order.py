# SPDX-License-Identifier: Apache-2.0
"""Notes of the order in which one side of a pipeline does things: a stage used twice without `advance`, released before
it is waited for or read, committed before it is written, and more filled at first than there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...atoms.copy import autovec_copy, basic_copy, copy
from ...atoms.gemm import gemm
from ...seam.hooks.audits import Code, Step
from ...tensor.pointer import AddressSpace
from ...tensor.tensor import Tensor
from ..group import PipelineOp, PipelineUserType
from ..umma import PipelineTmaMultiConsumersAsync
from .flow import Flow, Threads, regions_of
from .sides import Note
from .uses import Event, Pipe, Uses

_SHARED = (AddressSpace.smem, AddressSpace.tmem)


def of_beginnings(pipe: Pipe, code: Code, flow: Flow, threads: Threads) -> Iterator[Note]:
    """Note a pipeline that does not begin as it must, of which all is seen from there on."""
    yield from _begun(pipe)
    yield from _begun_anew(pipe, code, flow, threads)
    yield from _too_many(pipe, code, flow, threads)


def of_order(pipe: Pipe, uses: Uses, code: Code, flow: Flow) -> Iterator[Note]:
    """Note what one side of a pipeline does in an order that cannot be meant."""
    yield from _again(pipe, code, flow)
    yield from _early(pipe, flow)
    if not isinstance(pipe.obj, PipelineTmaMultiConsumersAsync):  # a stage of it is released twice
        yield from _given_twice(pipe, code, flow)
        yield from _read_late(pipe, uses, code, flow)


# ---------------------------------------------------------------- without `advance`


def _again(pipe: Pipe, code: Code, flow: Flow) -> Iterator[Note]:
    """Note a stage that is acquired, or waited for, once more though its side has not gone on to the next."""
    full = getattr(pipe.obj, "sync_object_full", None)
    announces = full is not None and full.op_type is PipelineOp.TmaLoad and full.tx_count is not None
    for kind, ends in (("acquire", "acquire" if announces else "commit"), ("wait", "release")):
        for then in pipe.of(kind):
            done = (e for e in pipe.of(ends) if e.place is then.place and _twice(e, then, code, flow))
            first = next(done, None)
            if first is not None:
                yield (
                    f"pipeline {pipe.name!r}: {kind} in {then.at} is of the stage of which {first.kind} in "
                    f"{first.at} was: nothing advances the state between them",
                    then.at,
                )
                return


def _given_twice(pipe: Pipe, code: Code, flow: Flow) -> Iterator[Note]:
    """Note a stage that one way through the function releases, or commits, twice."""
    for kind in ("release", "commit"):
        for first in pipe.of(kind):
            for then in pipe.of(kind):
                if first is then or first.handle is not then.handle or first.place is not then.place:
                    continue
                if first.handle is None:
                    again = _twice(first, then, code, flow)
                else:
                    again = first.handle.plain and _straight(first, then, code)
                if again:
                    yield (
                        f"pipeline {pipe.name!r}: the stage that {kind} in {first.at} gave back is given back "
                        f"once more in {then.at}: an arrival too many",
                        then.at,
                    )
                    return


def _twice(first: Event, then: Event, code: Code, flow: Flow) -> bool:
    """Say whether a state stands at one stage at two events: no `advance` is between them, in straight code or in each
    round of a loop."""
    place = then.place
    if place is None or not place.plain or first.step in place.advances:
        return False
    if first.handle is not None and (first.handle.step in place.advances or not first.handle.plain):
        return False
    if first is not then and _straight(first, then, code):
        return not any(first.step < a < then.step for a in place.advances)
    if not flow.each_round(first.block, then.block):
        return False
    return not any(flow.leads(first.step, a) and (a == then.step or flow.leads(a, then.step)) for a in place.advances)


def _straight(first: Event, then: Event, code: Code) -> bool:
    """Say whether an event follows another one in straight code."""
    regions = regions_of(code)
    return first.step < then.step and regions[first.block] == regions[then.block]


def _begun(pipe: Pipe) -> Iterator[Note]:
    """Note a side whose state begins as the other's."""
    for kind, wrong, right in (
        ("acquire", PipelineUserType.Consumer, "Producer: the first acquire waits for a release that never comes"),
        ("wait", PipelineUserType.Producer, "Consumer: the first waits pass before a stage is full"),
    ):
        for e in pipe.of(kind):
            if e.place is not None and e.place.plain and e.place.begins is wrong:
                yield (
                    f"pipeline {pipe.name!r}: {kind} by a state that begins as {wrong} "
                    f"(make_pipeline_state in {e.place.at}) is to begin as PipelineUserType.{right}",
                    e.at,
                )
                return


def _begun_anew(pipe: Pipe, code: Code, flow: Flow, threads: Threads) -> Iterator[Note]:
    """Note a side that goes on by another state, which begins at the first stage while the other stands further on."""
    stages = getattr(pipe.obj, "num_stages", None)
    for kind in ("acquire", "wait"):
        for first in pipe.of(kind):
            for then in pipe.of(kind):
                if not isinstance(stages, int) or not _both_begin(first, then, flow):
                    continue
                moves = first.place.advances if first.place is not None else []
                times = [_times(m, [then.step], code, flow, threads) for m in moves]
                moved = sum(times)
                if all(times) and moved % (2 * stages) and not any(e.step in moves for e in pipe.of("tail")):
                    yield (
                        f"pipeline {pipe.name!r}: {kind} in {then.at} begins at stage 0 by another state than {kind} "
                        f"in {first.at}, which advanced {moved} time{'s' * (moved > 1)} before it: let one do both",
                        then.at,
                    )
                    return


def _both_begin(first: Event, then: Event, flow: Flow) -> bool:
    """Say whether two events are of two states that begin alike, and every way to the second comes by the first."""
    a, b = first.place, then.place
    if a is None or b is None or a is b or a.begins is None or a.begins is not b.begins or not (a.plain and b.plain):
        return False
    once = not any(flow.leads(p.made, p.made) for p in (a, b))
    return once and flow.always_before(first.step, then.step)


# ---------------------------------------------------------------- too early


def _early(pipe: Pipe, flow: Flow) -> Iterator[Note]:
    """Note a stage that is given back before the same state waits for it."""
    for kind, begins in (("release", "wait"), ("commit", "acquire")):
        for e in pipe.of(kind):
            place = e.place
            if place is None or not place.plain or e.handle is not None:
                continue
            same = [w for w in pipe.of(begins) if w.place is place]
            before = any(flow.leads(w.step, e.step, place.advances) or w.step in place.advances for w in same)
            after = next((w for w in same if flow.leads(e.step, w.step, place.advances)), None)
            if after is not None and not before:
                side = "consumer_" if kind == "release" else "producer_"
                yield (
                    f"pipeline {pipe.name!r}: {side}{kind} of a stage stands before its {side}{begins} in "
                    f"{after.at}: the stage is given back before it is there",
                    e.at,
                )
                return


def _read_late(pipe: Pipe, uses: Uses, code: Code, flow: Flow) -> Iterator[Note]:
    """Note a stage that is read after its release, or written after its commit."""
    full = getattr(pipe.obj, "sync_object_full", None)
    commits = full is not None and full.op_type is PipelineOp.AsyncThread
    for e in pipe.of("release", *(["commit"] if commits else [])):
        if e.place is None or not (e.place.plain if e.handle is None else e.handle.plain):
            continue
        until = [*e.place.advances] if e.handle is None else [e.handle.step]
        for i in _accesses(e, uses, code, flow, until):
            s = code.steps[i]
            if flow.always_before(e.step, i) and flow.leads(e.step, i, until):
                did, so = ("read", "it may be filled again by then")
                if e.kind == "commit":
                    did, so = ("written", "consumers may read it before")
                yield f"pipeline {pipe.name!r}: the stage is {did} in {s.at}, after its {e.kind}: {so}", e.at
                return


def _accesses(e: Event, uses: Uses, code: Code, flow: Flow, until: list[int]) -> Iterator[int]:
    """Yield the steps that read the stage of a release, or write that of a commit: what the index of it leads to."""
    of: set[str] = set()
    for i, place, handle in uses.stages:
        same = handle is e.handle if e.handle is not None else handle is None and place is e.place
        if same and (e.handle is not None or flow.leads(i, e.step, until) or flow.leads(e.step, i, until)):
            of.add(code.steps[i].target)
    for i, s in enumerate(code.steps):
        if of.isdisjoint(s.uses) or i == e.step:
            continue
        reads, writes = _touches(s, of, code)
        if reads if e.kind == "release" else writes:
            yield i
        elif s.target and s.kind in ("alias", "operator", "tuple", "item", "call", "other"):
            of.add(s.target)


def _touches(s: Step, of: set[str], code: Code) -> tuple[bool, bool]:
    """Say whether a step reads, and writes, shared or tensor memory that hangs on these variables."""
    if s.kind == "item":
        return _is_shared(code.value(s.of)) and code.value(s.target) is None, False
    if s.kind == "call" and s.of is None and s.name in (copy, basic_copy, autovec_copy):
        given = [v for v in s.args if isinstance(code.value(v), Tensor)]
        shared = [v in of and _is_shared(code.value(v)) for v in given]
        return len(shared) == 2 and shared[0], len(shared) == 2 and shared[1]
    if s.kind == "call" and s.of is None and s.name is gemm:
        return any(v in of for v in s.args[2:4]), False
    if s.kind == "call" and s.name in ("load", "store") and s.of in of and _is_shared(code.value(s.of)):
        return s.name == "load", s.name == "store"
    return False, s.kind == "other" and not s.target and any(_is_shared(code.value(v)) for v in s.uses)


def _is_shared(obj: Any) -> bool:
    return isinstance(obj, Tensor) and getattr(obj.iterator, "space", None) in _SHARED


# ---------------------------------------------------------------- more than there are


def _too_many(pipe: Pipe, code: Code, flow: Flow, threads: Threads) -> Iterator[Note]:
    """Note more stages that are acquired before any is released, in every thread, than there are."""
    stages = getattr(pipe.obj, "num_stages", None)
    acquired, released = pipe.of("acquire"), pipe.of("release")
    places = {e.place for e in acquired}
    if not isinstance(stages, int) or len(places) != 1 or not all(p is not None and p.plain for p in places):
        return
    count = 0
    for e in acquired:
        count += _times(e.step, [r.step for r in released], code, flow, threads)
        if count > stages:
            yield (
                f"pipeline {pipe.name!r} has {stages} stage{'s' * (stages > 1)}, and {count} are acquired "
                + ("before any is released" if released else "and none is ever released")
                + f": acquire in {e.at} waits for ever",
                e.at,
            )
            return


def _times(step: int, until: list[int], code: Code, flow: Flow, threads: Threads) -> int:
    """Count how often a step surely comes before any of these; 0 where that is not known."""
    times, first, block = 1, step, code.steps[step].block
    for head, body in sorted(flow.loops, key=lambda loop: len(loop[1])):
        if block in body and all(code.steps[r].block not in body for r in until):
            rounds = threads.rounds(head)
            last = [b for b in flow.before[head] if b in body]
            if not rounds or not all(flow.block_always_before(block, b) for b in last):
                return 0
            times, first = times * rounds, flow.start_of(head)
    return times if all(flow.always_before(first, r) for r in until) else 0
