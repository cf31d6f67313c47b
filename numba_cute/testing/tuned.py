# SPDX-License-Identifier: Apache-2.0
"""`autotune`: a launching function that finds by measurement which of its configurations is the fastest.

What is measured once is kept on disk with all its figures, for this function, these arguments and this GPU.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..compiler.host.installed import version
from ..compiler.host.stopwatch import Saved, Stopwatch
from ..runtime import from_dlpack
from ..seam import CuteError, WrongArguments
from ..seam.ground.folding import folding
from ..seam.ground.names import other_arguments
from ..seam.ground.naming import described, shown
from ..seam.ground.records import dataclass
from ..seam.marks.constexpr import LAUNCHER
from ..tensor.tensor import extent
from . import store
from .children import Child, reachable
from .configurations import UNTOLD, Configuration, digest, key_of, key_text, listed, text, worthwhile
from .measuring import REGIMES, InProcess, Pace, bar_of, reason, turns

__all__ = ["Autotuned", "Tuning", "autotune"]

PACE = Pace(turn=0.05, least=0.3, most=2.0, within=0.01, rest=0.2)


@dataclass(frozen=True)
class Tuning:
    """A result of tuning. best: the configuration that is the fastest. key: what of the arguments it holds for. record:
    all that was measured and where, as it is kept on disk.

    >>> cute.testing.Tuning({"tile": 64}, "key", {}).best
    {'tile': 64}
    """

    best: Configuration
    key: str
    record: dict[str, Any]

    def slower(self, configuration: Mapping[str, Any]) -> float:
        """Return how much slower a `configuration` was measured to be than the best: 0.03 for 3%. CuteError: one that
        was not measured."""
        name = text(dict(configuration))
        measured = self.record["measured"]
        if name not in measured:
            raise CuteError(f"Tuning: configuration {name} was not measured; there are {'; '.join(measured)}")
        return float(measured[name]["median_us"] / measured[text(self.best)]["median_us"] - 1)

    def table(self) -> str:
        """Return all that was measured as lines of text, the fastest first."""
        measured, failed = self.record["measured"], self.record["failed"]
        width = max(map(len, [*measured, *failed]), default=0)
        lines = [f"{self.record['function']}({self.key})"]
        for name, t in sorted(measured.items(), key=lambda item: item[1]["median_us"]):
            low, high = t["interval_us"]
            lines.append(f"    {name:{width}} {t['median_us']:10.4g} us ({low:.4g} to {high:.4g})")
        return "\n".join([*lines, *(f"    {name:{width}} failed: {why}" for name, why in failed.items())])

    def __str__(self) -> str:
        return self.table()


@dataclass(frozen=True)
class Options:
    """The options of `autotune`; see there."""

    configs: Any
    key: Any
    prune: Callable[..., Any] | None
    cost: Callable[..., Any] | None
    keep: int
    makes_launch: bool
    restore: tuple[str, ...]
    regime: str
    rounds: int
    isolate: float | None
    workers: int
    store: Any
    pace: Pace
    stream: Any
    progress: bool
    device: Any


class Autotuned:
    """A launching function that `autotune` decorated: a call finds the best configuration for its arguments, once, and
    launches with it. function: the function itself. options: what `autotune` was given.

    >>> @cute.autotune({"threads": [32, 64]})
    ... def filled(x, value, threads=32): ...
    >>> isinstance(filled, cute.testing.Autotuned)
    True
    """

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        if not isinstance(options, Options):
            raise CuteError(f"Autotuned: options {described(options)}: cute.autotune(…) makes them")
        self.function, self.options = function, options
        self._signature = inspect.signature(function)
        self._known: dict[str, Tuning] = {}
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function on `args` and `named` with the best configuration. What a configuration sets may be given
        by name too: it then holds, and nothing is measured where that leaves no choice. In a `cute.simulation()`, where
        a time says nothing, it is the first configuration that works: the cheapest, if there is a `cost`."""
        if self._simulated:
            return self._first(args, named)[1]
        return self.function(*args, **{**self.tune(*args, **named).best, **named})

    def __cute_tuned__(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return what `cute.compile` compiles: the host function, and the arguments by name with the configuration."""
        return getattr(self.function, "__cute_host_function__", self.function), {
            **self.tune(*args, **named).best, **named
        }  # fmt: skip

    def tune(self, *args: Any, again: bool = False, **named: Any) -> Tuning:
        """Return what is the fastest for the arguments `args` and `named`: as it is known in this process, as it is
        kept on disk, or as it is measured now. again: measure, whatever is known. In a simulation nothing is measured:
        it is the first that works."""
        if self._simulated:
            return Tuning(
                self._first(args, named)[0], "simulated", {"function": self._name, "measured": {}, "failed": {}}
            )
        arguments = self._arguments(args, named)
        key = key_of(self.options.key, arguments)
        given = {n: v for n, v in named.items() if n not in arguments}
        known = f"{key} | {text(given)}" if given else key
        if again or known not in self._known:
            self._known[known] = self._found(args, named, arguments, known, again)
        return self._known[known]

    @property
    def _simulated(self) -> bool:
        """Say whether launches are made elsewhere than on a GPU now."""
        return LAUNCHER.get() is not None and self.options.device is None

    def _first(self, args: Any, named: Any) -> tuple[Any, Any]:
        """Give the first configuration that works, and what the function gives with it."""
        choices = self.candidates(*args, **named)
        return first_that_works(self._name, choices, lambda c: self.function(*args, **{**c, **named}))

    def candidates(self, *args: Any, **named: Any) -> list[Configuration]:
        """Return the configurations that would be measured for the arguments `args` and `named`."""
        arguments = self._arguments(args, named)
        o = self.options
        every = listed(o.configs, arguments, list(self._signature.parameters))
        fitting = [c for c in every if all(key_text(c.get(n, v)) == key_text(v) for n, v in named.items())]
        return worthwhile(fitting or [{}], arguments, o.prune, o.cost, o.keep)

    def _arguments(self, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """The call's arguments by name, but for those that configurations set."""
        try:
            call = self._signature.bind_partial(*args, **named)
        except TypeError as why:
            raise WrongArguments(other_arguments(self.function, str(why), named)) from None
        call.apply_defaults()
        bound = dict(call.arguments)
        if callable(self.options.configs):
            return bound
        every = listed(self.options.configs, {}, list(self._signature.parameters))
        tuned = {name for c in every for name in c}
        return {n: v for n, v in bound.items() if n not in tuned}

    def _found(self, args: Any, named: Any, arguments: dict[str, Any], key: str, again: bool) -> Tuning:
        o = self.options
        configurations = self.candidates(*args, **named)
        names = {text(c): c for c in configurations}
        if len(names) == 1 and not again:
            (only,) = names.values()
            return Tuning(only, key, {"function": self._name, "measured": {}, "failed": {}})
        watch = Stopwatch(o.stream) if o.device is None else o.device
        identity = self._identity(key, list(names), watch.facts())
        folder = None if o.store is False else store.directory(None if o.store is True else o.store)
        file = None if folder is None or identity is None else store.file_of(folder, self._name, identity)
        held = None if again or file is None else store.load(file, identity or {})
        if held is None or held["best"] not in names:
            held = self._measured(args, named, arguments, names, watch)
            if file is not None and identity is not None:
                store.save(file, identity, held)
        return Tuning(names[held["best"]], key, held)

    @property
    def _name(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"

    def _identity(self, key: str, names: list[str], facts: dict[str, Any]) -> dict[str, Any] | None:
        """Return the facts that a result holds for: the function with all that it reaches, kernels and closures too,
        and the version of this library. None if the function, an argument or a configuration reaches something that
        cannot be described."""
        code = digest(self.function)
        if code is None or any(UNTOLD in text for text in (key, *names)):
            return None
        return {
            "function": self._name,
            "code": code,
            "version": version(),
            "key": key,
            "configurations": names,
            "regime": self.options.regime,
            "gpu": [facts.get(n) for n in ("gpu", "compute_capability", "multiprocessors")],
        }

    def _measured(
        self, args: Any, named: Any, arguments: dict[str, Any], names: dict[str, Configuration], watch: Any
    ) -> dict[str, Any]:
        """Measure the configurations, and return the record to keep."""
        o, began = self.options, time.perf_counter()
        failed: dict[str, str] = {}
        with _restoring(o.restore, arguments), contextlib.ExitStack() as stack:
            if o.isolate is not None or o.workers > 1:
                made = self._children(args, named, names, failed, stack)
                if o.isolate is None:  # what they compiled is in the disk cache
                    failed.clear()
            if o.isolate is None:
                made = self._here(args, named, names, failed, watch)
            if not made:
                raise CuteError(f"autotune: no configuration of {self._name} works: {_told(failed)}")
            baseline = next(iter(made))
            try:
                found = turns(
                    made, baseline, o.regime, o.rounds, watch, o.pace, keep_going=True, progress=o.progress,
                    failed=failed,
                )  # fmt: skip
            except CuteError as e:
                raise CuteError(f"autotune: no configuration of {self._name} works: {_told(failed)}") from e
        report = found.as_dict()
        return {
            "function": self._name,
            "best": found.fastest,
            "measured": report["contenders"],
            "failed": found.failed,
            "regime": o.regime,
            "isolated": o.isolate is not None,
            "seconds": time.perf_counter() - began,
            "machine": found.machine,
        }

    def _here(self, args: Any, named: Any, names: Any, failed: dict[str, str], watch: Any) -> dict[str, Any]:
        """Contenders of this process."""
        made = {}
        for name, c in self._shown(names.items()):
            try:
                call = functools.partial(self.function, *args, **{**c, **named})
                made[name] = InProcess([call() if self.options.makes_launch else call], watch)
            except Exception as e:
                failed[name] = reason(e)
        return made

    def _children(
        self, args: Any, named: Any, names: Any, failed: dict[str, str], stack: contextlib.ExitStack
    ) -> dict[str, Any]:
        """Contenders in processes of their own, `workers` of which compile at once. Those that are to be timed here
        too end when they have compiled."""
        o, made, left = self.options, {}, list(names.items())
        function, limit = reachable(self.function), o.isolate or 600.0
        with tqdm(total=len(left), **bar_of(o.progress), desc="compiling", unit="configuration") as bar:
            while left:
                batch, left = left[: max(1, o.workers)], left[max(1, o.workers) :]
                begun = []
                for name, c in batch:
                    child = Child(name, function, args, {**c, **named}, limit, o.device, o.makes_launch)
                    stack.callback(child.close)
                    begun.append(child)
                for child in begun:
                    try:
                        child.ready()
                        made[child.name] = child
                    except CuteError as e:
                        failed[child.name] = str(e)
                    if o.isolate is None:
                        child.close()
                    bar.update()
        return made

    def _shown(self, items: Iterable[Any]) -> Iterator[Any]:
        return iter(tqdm(list(items), **bar_of(self.options.progress), desc="compiling", unit="configuration"))


@contextlib.contextmanager
def _restoring(names: tuple[str, ...], arguments: dict[str, Any]) -> Iterator[None]:
    """Put the arguments that are named back when done as they were before."""
    saved = []
    for name in names:
        if name not in arguments:
            raise CuteError(
                f"autotune: restore {name!r} is not an argument of the function; it has {', '.join(arguments)}"
            )
        saved.append(_saved(arguments[name]))
    try:
        yield
    finally:
        for s in saved:
            s.restore()


class _OnHost:
    """A copy of an array of NumPy's, to be put back."""

    def __init__(self, array: Any) -> None:
        self._array, self._copy = array, array.copy()

    def restore(self) -> None:
        self._array[...] = self._copy


def _saved(value: Any) -> Any:
    if type(value).__module__ == "numpy":
        return _OnHost(value)
    tensor = value if hasattr(value, "element_type") else from_dlpack(value)
    return Saved(*extent(tensor))


def first_that_works(
    name: str, choices: Iterable[Configuration], run: Callable[[Configuration], Any]
) -> tuple[Configuration, Any]:  # fmt: skip
    """Return the first of some configurations with which a function runs, and what it gives.

    name: of the function. choices: the configurations. run: runs it with one. CuteError: it runs with none. What the
    simulator reports of a launch, and internal errors, pass."""
    failed: dict[str, str] = {}
    for choice in choices:
        try:
            return choice, run(choice)
        except Exception as e:  # the user's function raises for a configuration that it cannot make
            if isinstance(e, CuteError) and type(e) is not CuteError:
                raise
            failed[text(choice)] = reason(e)
    raise CuteError(f"autotune: no configuration of {name} works: {_told(failed)}")


def _told(failed: dict[str, str]) -> str:
    return "; ".join(f"{name}: {why}" for name, why in failed.items())


def autotune(
    configs: Any, *, key: Any = None, prune: Callable[..., Any] | None = None, cost: Callable[..., Any] | None = None,
    keep: int = 8, makes_launch: bool = False, restore: Any = (), regime: str = "sustained", rounds: int = 5,
    isolate: float | None = None, workers: int = 0, store: bool | str | Path = True, pace: Pace | None = None,
    stream: Any = None, progress: bool = True, device: Any = None,
) -> Callable[[Callable[..., Any]], Autotuned]:  # fmt: skip
    """Decorate a function that launches with the search for its fastest configuration, at the first call for each key.

    configs: the configurations: dicts (or NamedTuples, dataclasses) of parameters of the function, a dict of lists to
    combine, or a function of the call's arguments, by name, that gives such. key: what of the arguments a result holds
    for: names of parameters, or a function of all arguments by name; all of them by default. An array counts by its
    element type, shape and strides.
    prune: `prune(configuration, arguments)` tells of one that need not be measured. cost: a model's time of
    `cost(configuration, arguments)`; the `keep` cheapest are measured.
    makes_launch: the function gives a launch, to be called without arguments, in place of launching.
    restore: names of arguments that launches change and that are to be as before: what is measured runs many times.
    regime, rounds, pace, stream, device: as of `testing.compare`, whose turns time the configurations fairly.
    isolate: measure each configuration in a process of its own, which is ended when it does not answer for so many
    seconds; for configurations that may hang or leave the GPU with an error. workers: how many processes compile at
    once; without isolate, what they compile reaches this one through the disk (docs/environment.md). Both need a
    function at the top of its module, in scripts `if __name__ == "__main__":`, and arguments that are arrays, numbers,
    texts, element types or tuples of such.
    store: keep results on disk, in a folder or in the usual one (the setting `tuned`). progress: show a bar,
    where it takes more than three seconds and somebody looks at a terminal or a notebook.

    A configuration that fails (CuteError, the assembler, the launch) is left out; CuteError where all do.

    >>> @cute.kernel
    ... def fill(x, value):
    ...     x[arch.thread_idx()[0]] = value
    >>> @cute.autotune({"threads": [32, 64]}, key=("x",))
    ... def filled(x, value, threads=32):
    ...     fill[1, threads](x, value)
    >>> x = np.zeros(64, np.int32)
    >>> with cute.simulation():
    ...     filled(x, 7)
    >>> x[[0, 63]]
    array([7, 0], dtype=int32)
    """
    restored = (restore,) if isinstance(restore, str) else restore
    if not isinstance(restored, (tuple, list)) or not all(isinstance(name, str) for name in restored):
        raise CuteError(f"autotune: restore {shown(restore)} must be names of the function's arguments")
    for name, value, least in (("keep", keep, 1), ("rounds", rounds, 1), ("workers", workers, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise CuteError(f"autotune: {name} {value!r} must be an int from {least} on")
    if regime not in REGIMES:
        raise CuteError(f"autotune: regime {regime!r} must be one of {', '.join(REGIMES)}")
    if isolate is not None and (isinstance(isolate, bool) or not isinstance(isolate, (int, float)) or isolate <= 0):
        raise CuteError(f"autotune: isolate {isolate!r} must be a positive number of seconds, or None")
    options = Options(
        configs, key, prune, cost, keep, makes_launch, tuple(restored), regime, rounds, isolate, workers, store,
        pace or PACE, stream, progress, device,
    )  # fmt: skip

    @folding
    def decorate(function: Callable[..., Any]) -> Autotuned:
        if not callable(function) or isinstance(function, type):
            raise CuteError(f"autotune: {function!r} is not a function that launches")
        return Autotuned(function, options)

    return decorate
