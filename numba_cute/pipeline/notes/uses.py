# SPDX-License-Identifier: Apache-2.0
"""Read how a compiled function uses its pipelines: which step acquires, commits, waits, releases or advances, by which
state, participant or handle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any
from weakref import WeakKeyDictionary

from ...seam.ground.records import dataclass
from ...seam.guards import facade
from ...seam.hooks.audits import Code, Step
from ...seam.source.named_arguments import call_with
from ..clc import PipelineClcFetchAsync
from ..participants import PipelineConsumer, PipelineProducer
from ..pipelines import PipelineAsync, PipelineCpAsync, PipelineTmaAsync
from ..state import PipelineState, make_pipeline_state
from ..umma import PipelineAsyncUmma, PipelineTmaMultiConsumersAsync, PipelineTmaUmma, PipelineUmmaAsync

_PIPELINES = (
    PipelineAsync, PipelineCpAsync, PipelineTmaAsync, PipelineTmaUmma, PipelineAsyncUmma, PipelineUmmaAsync,
    PipelineTmaMultiConsumersAsync, PipelineClcFetchAsync,
)  # fmt: skip
CREATE = [cls.create for cls in _PIPELINES]

_OF_PIPELINE = {
    "producer_acquire": "acquire", "producer_try_acquire": "try", "producer_commit": "commit",
    "producer_get_barrier": "barrier", "producer_tail": "tail", "consumer_wait": "wait", "consumer_try_wait": "try",
    "consumer_release": "release",
}  # fmt: skip
"""What its methods do, for the state that they are given."""
_OF_SIDE = {
    "acquire": "acquire", "acquire_and_advance": "acquire", "try_acquire": "try", "commit": "commit", "tail": "tail",
    "wait": "wait", "wait_and_advance": "wait", "try_wait": "try", "release": "release", "advance": "advance",
}  # fmt: skip
"""What methods of participants and of states do."""
PRODUCES, CONSUMES = ("acquire", "commit", "barrier", "tail"), ("wait", "release")


@dataclass(eq=False)
class Pipe:
    """A pipeline that the function makes, or is given. made: the step. seen: the function alone uses it, as far as
    steps tell, and device functions that it calls. does: what is done with it."""

    made: int
    line: int
    obj: Any
    name: str
    seen: bool = True
    does: list[Event] = field(default_factory=list)

    def of(self, *kinds: str) -> list[Event]:
        """List what of these kinds is done with it."""
        return [e for e in self.does if e.kind in kinds]


@dataclass(eq=False)
class Place:
    """Where a side stands: a state or a participant. made, line: the step. begins: as what a state was made. plain: all
    that is done with it is seen, and it goes from stage to stage by `advance` alone. pipe: of a participant."""

    made: int
    line: int
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


@dataclass(frozen=True)
class Event:
    """Says how a step uses a pipeline. place, handle: whose stage it is. by: the device function that does it."""

    kind: str
    pipe: Pipe
    step: int
    line: int
    block: int
    place: Place | None
    handle: Handle | None = None
    by: str = ""


_DONE: WeakKeyDictionary[Any, dict[Any, dict[str, list[str] | None]]] = WeakKeyDictionary()
"""Of each function that was compiled, by the types of its arguments and by parameters: what it does with the pipeline
that it is given there, None where steps do not tell."""


class Uses:
    """All that a function does with the pipelines that it makes or is given. pipes: that it makes. given: by its
    parameter, each pipeline or participant that it is given. stages: the variables that hold the index of a stage, by
    step."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self.pipes: list[Pipe] = []
        self.given: dict[str, Pipe] = {}
        self.stages: list[tuple[int, Place, Handle | None]] = []
        self._of: dict[str, Any] = {}
        for i, s in enumerate(code.steps):
            if not self._read(i, s):
                self._lose(s)
        if self.given:
            function, types = code.function
            done = {name: [e.kind for e in pipe.does] if pipe.seen else None for name, pipe in self.given.items()}
            _DONE.setdefault(function, {})[types] = done

    def _read(self, i: int, s: Step) -> bool:
        """Note what a step does; False of one that is not understood."""
        if s.kind == "call":
            return self._call(i, s)
        if s.kind == "argument":
            return self._argument(i, s)
        if s.calls is not None:
            return self._device_function(i, s)
        held = self._of.get(s.of) if isinstance(s.of, str) else None
        if held is None:
            return s.kind == "known"
        if s.kind == "alias":
            return self._name(s.target, held)
        if s.kind == "item" and isinstance(held, tuple) and s.name in range(len(held)):
            return self._name(s.target, held[s.name])
        if s.kind == "get" and isinstance(held, (Place, Handle)):
            if s.name == "index":
                place, handle = (held.place, held) if isinstance(held, Handle) else (held, None)
                self.stages.append((i, place, handle))
            elif s.name == "barrier" and isinstance(held, Handle):
                self._add("barrier", held.place.pipe, i, s, held.place, held)
            return s.name in ("index", "phase", "count", "barrier")
        return s.kind == "get" and isinstance(held, Pipe) and s.name == "num_stages"

    def _name(self, var: str, held: Any) -> bool:
        """Note what a variable holds; False where it has held something else."""
        if self._of.setdefault(var, held) is held:
            return True
        _lost(self._of[var])
        _lost(held)
        return False

    def _lose(self, s: Step) -> None:
        """Note that something happens to what a step uses that is not known."""
        for var in s.uses:
            _lost(self._of.get(var))

    def _argument(self, i: int, s: Step) -> bool:
        obj = self._code.value(s.target)
        if isinstance(obj, PipelineState):
            return self._name(s.target, Place(i, s.line))
        of = obj.pipeline if isinstance(obj, (PipelineProducer, PipelineConsumer)) else obj
        if isinstance(of, _PIPELINES):
            pipe = self.given[s.name] = Pipe(i, s.line, of, _name_of(of))
            return self._name(s.target, pipe if of is obj else Place(i, s.line, pipe))
        return True

    def _device_function(self, i: int, s: Step) -> bool:
        """Note what a device function of the user's does with what it is given; False of one that is not understood."""
        function, types = s.calls
        done = _DONE.get(function, {}).get(types, {})
        for name, var in _arguments(function, s):
            held = self._of.get(var)
            pipe = held.pipe if isinstance(held, Place) else held
            does = done.get(name, [] if pipe is None else None)
            if does is None:
                _lost(held)
                continue
            if isinstance(held, Place):
                held.plain = False
            for kind in does:
                self._add(kind, pipe, i, s, None, None, function.__name__)
        return True

    def _call(self, i: int, s: Step) -> bool:
        if s.of is None:
            if creates(s, self._code):
                obj = self._code.value(s.target)
                pipe = Pipe(i, s.line, obj, _name_of(obj))
                self.pipes.append(pipe)
                return self._name(s.target, pipe)
            if s.name is not make_pipeline_state:
                return False
            given = s.args[0] if s.args else s.named.get("type", "")
            return self._name(s.target, Place(i, s.line, begins=self._code.value(given)))
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
            return self._name(s.target, (Place(i, s.line, pipe), Place(i, s.line, pipe)))
        if s.name in ("make_producer", "make_consumer"):
            return self._name(s.target, Place(i, s.line, pipe))
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
        self, kind: str, pipe: Pipe | None, i: int, s: Step, place: Place | None, handle: Handle | None, by: str = ""
    ) -> None:  # fmt: skip
        if pipe is None:
            return
        if kind == "tail" and place is not None:
            place.advances.append(i)
        pipe.does.append(Event(kind, pipe, i, s.line, s.block, place, handle, by))


def creates(s: Step, code: Code) -> bool:
    """Say whether a step makes a pipeline."""
    if s.kind != "call" or s.of is not None:
        return False
    return s.name in CREATE or s.name is call_with and facade.plain(code.value(s.args[0])) in CREATE


def is_given(s: Step, code: Code) -> bool:
    """Say whether a step takes a pipeline, or a participant, as an argument."""
    return s.kind == "argument" and isinstance(code.value(s.target), (*_PIPELINES, PipelineProducer, PipelineConsumer))


def _arguments(function: Any, s: Step) -> Iterator[tuple[str, str]]:
    """Yield each parameter that a call of a function gives, with the variable."""
    yield from zip(function.__code__.co_varnames, s.args)
    yield from s.named.items()


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


def _name_of(obj: Any) -> str:
    full = getattr(obj, "sync_object_full", None)
    return str(getattr(full, "name", "pipeline.full")).removesuffix(".full")
