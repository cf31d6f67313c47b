# SPDX-License-Identifier: Apache-2.0
"""Read how a kernel uses its pipelines: which step acquires, commits, waits, releases or advances, by which state,
participant or handle, whatever object holds them."""

from __future__ import annotations

import operator
from dataclasses import field
from typing import Any

from ...seam.ground.records import dataclass
from ...seam.guards import facade
from ...seam.hooks.audits import FOLLOWED, Code, Spot, Step
from ...seam.source.named_arguments import call_with
from ..clc import PipelineClcFetchAsync
from ..group import PipelineUserType
from ..participants import ConsumerHandle, PipelineConsumer, PipelineProducer, ProducerHandle
from ..pipelines import PipelineAsync, PipelineCpAsync, PipelineTmaAsync
from ..state import PipelineState, make_pipeline_state
from ..umma import PipelineAsyncUmma, PipelineTmaMultiConsumersAsync, PipelineTmaUmma, PipelineUmmaAsync

PIPELINES = (
    PipelineAsync, PipelineCpAsync, PipelineTmaAsync, PipelineTmaUmma, PipelineAsyncUmma, PipelineUmmaAsync,
    PipelineTmaMultiConsumersAsync, PipelineClcFetchAsync,
)  # fmt: skip
CREATE = [cls.create for cls in PIPELINES]
FOLLOWED.update(PIPELINES, (PipelineProducer, PipelineConsumer, PipelineState, ProducerHandle, ConsumerHandle))

_OF_PIPELINE = {
    "producer_acquire": "acquire", "producer_try_acquire": "try", "producer_commit": "commit",
    "producer_get_barrier": "barrier", "producer_tail": "tail", "consumer_wait": "wait", "consumer_try_wait": "try",
    "consumer_release": "release",
}  # fmt: skip
"""The effects of a pipeline's methods on the state that they are given."""
_OF_SIDE = {
    "acquire": "acquire", "acquire_and_advance": "acquire", "try_acquire": "try", "commit": "commit", "tail": "tail",
    "wait": "wait", "wait_and_advance": "wait", "try_wait": "try", "release": "release", "advance": "advance",
}  # fmt: skip
"""The effects of methods of participants and of states."""
_BEGIN = {"make_producer": PipelineUserType.Producer, "make_consumer": PipelineUserType.Consumer}
"""Methods that make a participant, in the order of `make_participants`."""
PRODUCES, CONSUMES = ("acquire", "commit", "barrier", "tail"), ("wait", "release")


@dataclass(eq=False)
class Pipe:
    """A pipeline. made: the step that makes it, or the one where it comes from nobody knows where. begun: whether it is
    seen how. seen: all that uses it is, as far as steps tell. does: what is done with it."""

    made: int
    at: Spot
    obj: Any
    name: str
    begun: bool = True
    seen: bool = True
    does: list[Event] = field(default_factory=list)

    def of(self, *kinds: str) -> list[Event]:
        """List what of these kinds is done with it."""
        return [e for e in self.does if e.kind in kinds]


@dataclass(eq=False)
class Place:
    """The stage at which a side stands: a state or a participant. made, at: the step. begins: as what it was made.
    plain: True if all its uses are seen, and it goes from stage to stage by `advance` alone. pipe: of a participant."""

    made: int
    at: Spot
    pipe: Pipe | None = None
    begins: Any = None
    plain: bool = True
    advances: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Handle:
    """A stage that a participant gave. step: that gave it. plain: all that is done with it is seen."""

    place: Place
    step: int
    plain: bool = True


@dataclass(eq=False)
class Object:
    """An object of the user's that is made where it is seen. fields: what each holds. asked: fields that were asked for
    before they were seen to hold anything. known: nobody else sets them."""

    fields: dict[str, Any] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    known: bool = True


@dataclass(frozen=True)
class Event:
    """Says how a step uses a pipeline. place, handle: whose stage it is."""

    kind: str
    pipe: Pipe
    step: int
    at: Spot
    block: int
    place: Place | None
    handle: Handle | None = None


class Uses:
    """All that a kernel and what it calls do with pipelines. pipes: those. stages: the variables that hold the index of
    a stage, by step."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self.pipes: list[Pipe] = []
        self.stages: list[tuple[int, Place, Handle | None]] = []
        self._of: dict[str, Any] = {}
        self._joins: list[tuple[Step, Any]] = []
        for i, s in enumerate(code.steps):
            if not self._read(i, s):
                self._lose(s)
                self._find(i, s)
        for s, held in self._joins:
            if any(not _alike(self._of.get(v), held) for v in s.args):
                self._lose(s)
                _lost(held)

    def held(self, var: str) -> Any:
        """Return the `Pipe`, `Place` or `Handle` that a variable holds; None if it is not known to hold one."""
        return self._of.get(var)

    def _read(self, i: int, s: Step) -> bool:
        """Note what a step does; False of one that is not understood."""
        if s.kind in ("known", "return"):
            return True
        if s.kind == "call":
            return self._call(i, s)
        if s.kind == "make":
            return self._name(s.target, Object())
        if s.kind == "tuple":
            return self._name(s.target, tuple(map(self._of.get, s.args)))
        if s.kind == "operator" and s.name is operator.add:
            left, right = self._of.get(s.args[0]), self._of.get(s.args[1])
            return isinstance(left, tuple) and isinstance(right, tuple) and self._name(s.target, left + right)
        if s.kind == "phi":
            return self._join(i, s)
        held = self._of.get(s.of) if isinstance(s.of, str) else None
        if s.kind == "set":
            return isinstance(held, Object) and self._set(held, s)
        if held is None:
            return False
        if s.kind == "alias":
            return self._name(s.target, held)
        if s.kind == "item" and isinstance(held, tuple) and s.name in range(len(held)):
            return self._name(s.target, held[s.name])
        return self._get(i, s, held) if s.kind == "get" else False

    def _join(self, i: int, s: Step) -> bool:
        """Note what a variable holds where ways meet: the same on each, or on each some stage of the same side. What
        comes from a later step, as of a loop, is looked at in the end."""
        found = [x for x in map(self._of.get, s.args) if x is not None]
        if not found:
            self._joins.append((s, None))
            return True
        same = all(x is found[0] for x in found)
        held = found[0] if same and not isinstance(found[0], Handle) else None
        if held is None and isinstance(found[0], Handle):
            held = Handle(found[0].place, i, plain=False)
        if held is None or not all(_alike(x, held) for x in found):
            return False
        self._joins.append((s, held))
        return self._name(s.target, held)

    def _get(self, i: int, s: Step, held: Any) -> bool:
        if isinstance(held, Object):
            if s.name not in held.fields:
                held.asked.add(s.name)
            return self._name(s.target, held.fields.get(s.name))
        if isinstance(held, Pipe):
            return bool(s.name == "num_stages")
        if s.name == "state" and isinstance(held, Place) and held.pipe is not None:
            return self._name(s.target, held)
        if s.name == "pipeline" and isinstance(held, (Place, Handle)):
            return self._name(s.target, held.pipe if isinstance(held, Place) else held.place.pipe)
        if s.name == "index" and isinstance(held, (Place, Handle)):
            place, handle = (held.place, held) if isinstance(held, Handle) else (held, None)
            self.stages.append((i, place, handle))
        elif s.name == "barrier" and isinstance(held, Handle):
            self._add("barrier", held.place.pipe, i, s, held.place, held)
        return s.name in ("index", "phase", "count", "barrier")

    def _set(self, obj: Object, s: Step) -> bool:
        """Note what a field holds; False where it held, or may have held, something else."""
        new = self._of.get(s.args[0])
        old = obj.fields.get(s.name)
        if new is None and old is None:
            return True
        if not obj.known or s.name in obj.asked or (s.name in obj.fields and old is not new):
            _lost(old)
            _lost(new)
        obj.fields[s.name] = new if s.name not in obj.fields else old
        return True

    def _name(self, var: str, held: Any) -> bool:
        """Note what a variable holds; False where it has held something else."""
        if held is None:
            return True
        if self._of.setdefault(var, held) is held:
            return True
        _lost(self._of[var])
        _lost(held)
        return False

    def _lose(self, s: Step) -> None:
        """Note that something happens to what a step uses that is not known."""
        for var in s.uses:
            _lost(self._of.get(var))

    def _find(self, i: int, s: Step) -> None:
        """Note a pipeline, or a participant of one, that comes from a step which is not understood."""
        obj = self._code.value(s.target) if s.target and s.target not in self._of else None
        of = obj.pipeline if isinstance(obj, (PipelineProducer, PipelineConsumer)) else obj
        if isinstance(of, PIPELINES):
            pipe = Pipe(i, s.at, of, _name_of(of), begun=False)
            self.pipes.append(pipe)
            self._name(s.target, pipe if of is obj else Place(i, s.at, pipe))

    def _call(self, i: int, s: Step) -> bool:
        if s.of is None:
            if creates(s, self._code):
                obj = self._code.value(s.target)
                pipe = Pipe(i, s.at, obj, _name_of(obj))
                self.pipes.append(pipe)
                return self._name(s.target, pipe)
            if s.name is not make_pipeline_state:
                return False
            given = s.args[0] if s.args else s.named.get("type", "")
            return self._name(s.target, Place(i, s.at, begins=self._code.value(given)))
        held = self._of.get(s.of)
        if isinstance(held, Pipe):
            return self._of_pipe(i, s, held)
        if isinstance(held, Place):
            return self._of_place(i, s, held)
        if isinstance(held, Handle) and s.name in ("commit", "release") and not s.args and not s.named:
            self._add(s.name, held.place.pipe, i, s, held.place, held)
            return True
        return False

    def _of_pipe(self, i: int, s: Step, pipe: Pipe) -> bool:
        if s.name == "make_participants":
            return self._name(s.target, tuple(Place(i, s.at, pipe, begins) for begins in _BEGIN.values()))
        if s.name in _BEGIN:
            return self._name(s.target, Place(i, s.at, pipe, _BEGIN[s.name]))
        kind = _OF_PIPELINE.get(s.name)
        if kind is None:
            return False
        place = self._of.get(s.args[0] if s.args else s.named.get("state", ""))
        handle = place if isinstance(place, Handle) else None
        at = handle.place if handle is not None else place if isinstance(place, Place) else None
        self._add(kind, pipe, i, s, at, handle)
        return True

    def _of_place(self, i: int, s: Step, place: Place) -> bool:
        kind = _OF_SIDE.get(s.name)
        if kind == "advance":
            place.advances.append(i)
            return True
        if kind is None or place.pipe is None:
            place.plain = False
            return s.name in ("reverse", "reset_count", "reset")
        given = self._of.get(s.args[0] if s.args else s.named.get("handle", ""))
        handle = given if isinstance(given, Handle) and kind in ("commit", "release") else None
        if kind in ("acquire", "wait"):
            handle = Handle(place, i)
            self._name(s.target, handle)
        self._add(kind, place.pipe, i, s, place, handle)
        if s.name in ("acquire_and_advance", "wait_and_advance"):
            place.advances.append(i)
        return True

    def _add(
        self, kind: str, pipe: Pipe | None, i: int, s: Step, place: Place | None, handle: Handle | None
    ) -> None:  # fmt: skip
        if pipe is None:
            return
        if kind == "tail" and place is not None:
            place.advances.append(i)
        pipe.does.append(Event(kind, pipe, i, s.at, s.block, place, handle))


def uses_of(code: Code) -> Uses:
    """Return what is done with the pipelines of a kernel; each check of it asks."""
    if "uses" not in code.found:
        code.found["uses"] = Uses(code)
    found: Uses = code.found["uses"]
    return found


def creates(s: Step, code: Code) -> bool:
    """Say whether a step makes a pipeline."""
    if s.kind != "call" or s.of is not None:
        return False
    return s.name in CREATE or s.name is call_with and facade.plain(code.value(s.args[0])) in CREATE


def _alike(x: Any, held: Any) -> bool:
    """Say whether one is what a join of ways holds; of a handle it also is another one of that side."""
    if isinstance(x, Handle) and isinstance(held, Handle) and x.place is held.place:
        x.plain = False
        return True
    return x is held


def _lost(held: Any) -> None:
    for x in held if isinstance(held, tuple) else (held,):
        if isinstance(x, Pipe):
            x.seen = False
        elif isinstance(x, Handle):
            x.plain = False
            _lost(x.place)
        elif isinstance(x, Place):
            x.plain = False
            _lost(x.pipe)
        elif isinstance(x, tuple):
            _lost(x)
        elif isinstance(x, Object) and x.known:
            x.known = False
            for inner in x.fields.values():
                _lost(inner)


def _name_of(obj: Any) -> str:
    full = getattr(obj, "sync_object_full", None)
    return str(getattr(full, "name", "pipeline.full")).removesuffix(".full")
