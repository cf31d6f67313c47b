# SPDX-License-Identifier: Apache-2.0
"""One process of the fuzzer of calls: makes each call from the seed and its number alone, and judges how it ends."""

from __future__ import annotations

import contextlib
import enum
import faulthandler
import functools
import inspect
import io
import json
import os
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import types
import warnings
from pathlib import Path
from typing import Any

import numba_cute as cute
from numba_cute import seam

from .calls_pool import READ_ONLY, WRITEABLE, Pool, starts
from .calls_targets import members, parameters, targets

SECONDS, BYTES = {1: 5, 32: 20}, 6 << 30
"""CPU time of a call by one lane and by a warp; memory."""
LIBRARY = str(Path(cute.__file__).parent)
HERE = str(Path(__file__).parent)
FUNCTIONS = [t for t in targets() if not t.name]
MEMBERS = [t for t in {id(t.function): t for t in targets() if t.name}.values()]


class Hang(BaseException):
    """A call that takes longer than any may."""


class Call:
    """One call: what of, with which arguments; found again by its seed and number."""

    def __init__(self, pool: Pool, seed: int, number: int) -> None:
        self.pool, self.rng, self.number = pool, random.Random(f"{seed}:{number}"), number
        rng = self.rng
        self.target = rng.choice(FUNCTIONS if rng.random() < 0.6 else MEMBERS)
        self.inside = rng.random() < 0.4
        self.lanes = rng.choice((1, 1, 1, 32)) if self.inside else 1
        self.wrong = rng.choice((0.0, 0.05, 0.2, 0.5, 1.0))
        self.state = rng.getstate()
        self.written = ""

    def value(self, hint: str) -> Any:
        """A value for a parameter: mostly of the kind that its annotation and name say, or any."""
        pool, rng = self.pool, self.rng
        if rng.random() >= self.wrong:
            fitting = self.fitting(hint)
            if fitting:
                return pool.make(rng.choice(fitting))
        return pool.make(rng.randrange(len(pool.makers)))

    def fitting(self, hint: str) -> tuple[int, ...]:
        return _fitting(self.pool, hint)

    def instance(self, cls: type, depth: int = 0) -> Any:
        """An object of the class: one of the pool's, or what its constructor gives."""
        found = self.pool.instances.get(cls.__name__)
        if found:
            return self.pool.make(self.rng.choice(found))
        if isinstance(cls, enum.EnumMeta):
            return self.rng.choice(list(cls))
        if depth < 2:
            args, named = self.arguments(cls, 0.0)
            with contextlib.suppress(Exception):
                return cls(*args, **named)
        return None

    def arguments(self, function: Any, astray: float = 0.04, bound: bool = False) -> tuple[list[Any], dict[str, Any]]:
        """Arguments for the parameters of a function: some by position, some by name."""
        rng, known = self.rng, parameters(function)
        if known is None:
            return [self.value("") for _ in range(rng.choice((0, 1, 1, 2)))], {}
        args: list[Any] = []
        named: dict[str, Any] = {}
        by_name = False
        for p in known[1:] if bound else known:
            hint = f"{p.annotation} {p.name}"
            if p.kind is p.VAR_POSITIONAL:
                args += [self.value(hint) for _ in range(rng.choice((0, 1, 2, 3)))] if not by_name else []
            elif p.kind is p.VAR_KEYWORD or p.default is not p.empty and rng.random() < 0.5:
                by_name = True
            elif by_name or p.kind is p.KEYWORD_ONLY or rng.random() < 0.1:
                by_name = True
                if p.kind is not p.POSITIONAL_ONLY:
                    named[p.name] = self.value(hint)
            else:
                args.append(self.value(hint))
        if rng.random() < astray:
            args.append(self.value(""))
        if rng.random() < astray / 2:
            named["nonsense"] = 1
        return args, named

    def make(self) -> None:
        """Do it."""
        self.rng.setstate(self.state)  # each lane of a warp makes the same call
        if not self.target.name:
            args, named = self.arguments(self.target.what)
            self.perform(self.target.what, args, named, self.target.path)
            return
        obj = self.instance(self.target.what)
        if obj is None:
            return
        self.member(obj, self.target.name, self.target.path)

    def member(self, obj: Any, name: str, path: str) -> None:
        """Use a member of an object: a property, method or operator."""
        held = inspect.getattr_static(type(obj), name, None)
        if isinstance(held, (property, functools.cached_property)):
            self.perform(getattr, [obj, name], {}, path)
            return
        function = held.__func__ if isinstance(held, (staticmethod, classmethod)) else held
        if not callable(function):
            return
        args, named = self.arguments(function, bound=not isinstance(held, staticmethod))
        self.perform(getattr(obj, name), args, named, path)

    def perform(self, what: Any, args: list[Any], named: dict[str, Any], path: str) -> None:
        self.written = f"{path}({', '.join([*map(_text, args), *(f'{k}={_text(v)}' for k, v in named.items())])})"
        self.called = what, args, named
        before = WRITEABLE.tobytes()
        try:
            result = what(*args, **named)
        except Exception:
            if WRITEABLE.tobytes() != before:
                raise Harm("a call that failed wrote to memory of an argument") from None
            raise
        if READ_ONLY.tobytes() != Worker.read_only:
            raise Harm("a read-only array was changed")
        if self.rng.random() < 0.3 and result is not None:
            self.go_on(result)

    def go_on(self, result: Any) -> None:
        """Use a member of what a call gave."""
        cls = type(result)
        if cls.__module__.startswith("numba_cute") and not isinstance(result, enum.Enum):
            names = members(cls)
            if names:
                name = self.rng.choice(names)
                self.member(result, name, f"<{self.written}>.{name}")


class Harm(Exception):
    """Memory was written that should not be."""


@functools.cache
def _indices(pool: Pool, hint: str) -> tuple[int, ...]:
    words = set(hint.replace("|", " ").replace("[", " ").replace("]", " ").replace(",", " ").replace(".", " ").split())
    found: list[int] = []
    for word in words:
        found += pool.instances.get(word, ())
        found += [i for kind in MEANT.get(word, ()) for i in pool.instances.get(kind, ())]
    return tuple(sorted(set(found)))


def _fitting(pool: Pool, hint: str) -> tuple[int, ...]:
    return _indices(pool, hint)


_INTS, _TUPLES = ("int",), ("int", "tuple")
MEANT: dict[str, tuple[str, ...]] = {
    "Int": ("int", "Leaf"), "Number": ("int", "float", "Leaf"), "IntTuple": _TUPLES,
    "MathOperand": ("TensorSSA", "float"),
    "tiler": ("tuple", "Layout"), "layout": ("Layout", "ComposedLayout"), "a": ("int", "tuple", "Layout", "TensorSSA"),
    "b": ("int", "tuple", "Layout"), "input": ("tuple", "Layout", "Tensor"), "mode": _TUPLES, "coord": _TUPLES,
    "shape": _TUPLES, "stride": _TUPLES, "target": ("Layout", "Tensor", "tuple"), "src": ("Tensor", "Pointer", "int"),
    "dst": ("Tensor", "Pointer"), "value": _INTS, "x": _TUPLES, "bar": ("Pointer",), "mbar_ptr": ("Pointer",),
    "mask": _INTS, "policy": ("int", "CacheEvictionPriority"), "val": ("int", "float"), "swizzle": ("Swizzle",),
    "mma_tiler_mnk": ("tuple",), "epi_tile": ("tuple", "Layout"), "tidx": _INTS, "iterator": ("Pointer", "ndarray"),
    "address": ("Pointer", "int"), "kernel": ("function",), "function": ("function",), "f": ("function",),
    "Callable": ("function",), "dtype": ("DType",), "t": ("Tensor",), "e": ("ScaledBasis",), "pipeline": ("Pipeline",),
    "tensor": ("Tensor", "ndarray"), "op": ("CopyOp", "MmaOp", "function"), "atom": ("CopyAtom", "MmaAtom"),
    "mma": ("TiledMma",), "LayoutEnum": ("LayoutEnum",), "pred": ("Tensor", "bool"), "profile": _TUPLES,
}  # fmt: skip


def _text(x: Any) -> str:
    try:
        said = repr(x)
    except Exception as e:
        said = f"<{type(x).__name__} whose repr raises {type(e).__name__}>"
    return said if len(said) <= 80 else said[:77] + "..."


def _frames(e: BaseException) -> list[types.FrameType]:
    found, at = [], e.__traceback__
    while at is not None:
        found.append(at.tb_frame)
        at = at.tb_next
    return found


def _place(e: BaseException) -> str | None:
    """The innermost line of the library that an exception passed; None if it met none."""
    found = None
    at = e.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if file.startswith(LIBRARY) and not file.endswith("seam/guards/facade.py"):
            found = f"{file[len(LIBRARY) + 1 :]}:{at.tb_lineno}"
        at = at.tb_next
    return found


USERS_ARITY = re.compile(r"(plain|<lambda>)\(\) (takes|missing|got)")
"""What Python says of the pool's functions; cute.jit may have given them longer names."""


def _is_arity(call: Call) -> bool:
    """Whether the arguments are too many, too few, or of other names than the parameters."""
    what, args, named = call.called
    if isinstance(what, enum.EnumMeta):
        return len(args) != 1 or bool(named)
    try:
        inspect.signature(what).bind(*args, **named)
    except TypeError:
        return True
    except ValueError:
        return False
    return False


def judged(call: Call, e: BaseException) -> dict[str, str] | None:
    """What is wrong with how a call ended; None if nothing."""
    if isinstance(e, cute.CuteError):
        if not isinstance(e, cute.InternalError):
            return None
        kind, cause = "internal", e.__cause__ or e
    else:
        kind, cause = "error", e
    place = _place(cause)
    if kind == "error":
        if place is not None and place.startswith("seam/hooks/casting.py") and isinstance(e, (TypeError, ValueError)):
            return None  # of a builtin that is remembered
        if isinstance(e, OSError) and e.filename is not None and place is not None and place.startswith("timelines.py"):
            return None  # the system's word of the file that a picture is written to
        if place is None and isinstance(e, (TypeError, AttributeError)):
            return None  # Python's own: no such operator, attribute or parameter
        if isinstance(e, TypeError) and _is_arity(call):
            return None
        if type(e).__module__.startswith("numba.") and call.written.startswith(("cute.compile(", "cute.inspect")):
            return None  # Numba's words for a function that it cannot compile
        innermost = _frames(e)[-1].f_code.co_filename
        if innermost.endswith("calls_pool.py"):
            return None  # of a callback
        if type(e).__name__ == "CudaSupportError":
            return None  # there is no driver
        if isinstance(e, TypeError) and USERS_ARITY.search(str(e)):
            return None  # a function of the user's that is called with other arguments than it has
    said = f"{type(cause).__name__}: {cause}"[:200]
    return {"kind": kind, "place": str(place), "error": type(cause).__name__, "said": said, "call": call.written}


class Worker:
    read_only = b""

    def __init__(self, seed: int) -> None:
        self.seed, self.pool = seed, Pool()
        Worker.read_only = READ_ONLY.tobytes()
        signal.signal(signal.SIGVTALRM, _late)
        self.memory = WRITEABLE.tobytes()

    def run(self, number: int) -> tuple[Call, dict[str, str] | None]:
        """Make a call and judge it."""
        call, found = Call(self.pool, self.seed, number), None
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS[call.lanes])
        try:
            if call.inside:
                found = self._inside(call)
            else:
                call.make()
        except (Exception, Hang, SystemExit, GeneratorExit) as e:
            found = found or judged(call, e)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if WRITEABLE.tobytes() != self.memory:
            starts()
        if found is not None:
            found |= {"number": str(number), "inside": str(call.lanes if call.inside else 0)}
        return call, found

    def _inside(self, call: Call) -> dict[str, str] | None:
        """In a kernel: the simulator passes on what a thread raises."""
        found = []

        @seam.traced
        def body() -> None:
            try:
                call.make()
            except Exception as e:
                found.append(judged(call, e))
                raise

        def kernel() -> None:
            body()

        try:
            cute.simulate(kernel, arch=call.rng.choice(("sm_90a", "sm_100a")), checks=call.lanes == 1)[1, call.lanes]()
        except Exception as e:
            if not found:
                return judged(call, e)
        return next((f for f in found if f), None)


def _late(*_: Any) -> None:
    raise Hang("it takes too long")


def main(seed: int, first: int, last: int, out: str) -> None:
    """Make the calls from `first` on, before `last`; write each that ends wrongly as a line of `out`, and there too, at
    its head, the number of the call that is being made."""
    with open(out, "a", encoding="utf-8") as log, open(f"{out}.beat", "r+b", buffering=0) as beat:
        with open(f"{out}.crash", "w") as crash:
            faulthandler.enable(crash)
            _make(seed, range(first, last), log, beat.fileno())
        os.pwrite(beat.fileno(), struct.pack("q", last), 0)


def _make(seed: int, numbers: range, log: Any, beat: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(1000)
    warnings.simplefilter("ignore")
    os.chdir(tempfile.mkdtemp())
    worker, sink = Worker(seed), io.StringIO()
    for number in numbers:
        os.pwrite(beat, struct.pack("q", number), 0)
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            _, found = worker.run(number)
        if number % 1000 == 0:
            sink.seek(0)
            sink.truncate()
        if found is not None:
            log.write(json.dumps(found) + "\n")
            log.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
