# SPDX-License-Identifier: Apache-2.0
"""Configurations in processes of their own: one that hangs, or leaves the GPU with an error, takes no other along.

A child is sent the function's name and recipes of its arguments. Children compile beside each other; they are timed one
at a time, in turns, as contenders of one process are.
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from collections.abc import Callable
from typing import Any

from ..compiler.host import shipping
from ..compiler.host.stopwatch import Stopwatch
from ..seam import CuteError
from .measuring import InProcess, reason

_START = 300.0  # seconds: a child imports what the function's module does, while others do
_MAY_BE_SENT = "numbers, texts, element types, tuples of these, and arrays of NumPy, torch, CuPy and Numba"


class Child:
    """A contender in a process of its own. name: of the configuration. function: (module, qualified name) of what
    `autotune` decorated. args, named: the call's arguments. limit: seconds that the child may take to answer."""

    def __init__(
        self, name: str, function: tuple[str, str], args: tuple[Any, ...], named: dict[str, Any], limit: float,
        device: Any, makes_launch: bool, stream: Any = None,
    ) -> None:  # fmt: skip
        self.name, self._limit = name, limit
        self.host: float | None = None
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        sent = (function, [recipe(a) for a in args], {k: recipe(v) for k, v in named.items()}, device, makes_launch)
        self._process = context.Process(target=_serve, args=(theirs, sent), daemon=True)
        self._process.start()
        theirs.close()

    def ready(self) -> None:
        """Wait until the configuration is compiled and was launched once; CuteError where that fails."""
        self._answer("to start", _START)
        self._answer("to compile and launch")

    def per_call(self, count: int) -> float:
        """Return the seconds of a call, of `count` back to back."""
        self._pipe.send(("per_call", count))
        seconds, self.host = self._answer(f"for {count} calls")
        return float(seconds)

    def cold(self, count: int) -> list[float]:
        """Return the seconds of each of `count` calls, each with an empty cache."""
        self._pipe.send(("cold", count))
        return list(self._answer(f"for {count} calls"))

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(0.5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _answer(self, what: str, limit: float | None = None) -> Any:
        limit = self._limit if limit is None else limit
        try:
            if not self._pipe.poll(limit):
                self.close()
                raise CuteError(f"it took longer than {limit:g} s {what}, and its process was ended")
            ok, value = self._pipe.recv()
        except (EOFError, OSError) as e:
            self._process.join()
            raise CuteError(f"its process ended with exit code {self._process.exitcode}") from e
        if not ok:
            self.close()
            raise CuteError(value)
        return value


def recipe(value: Any) -> Any:
    """Return what another process makes an argument like this from; CuteError where it is of no kind that can be."""
    made = shipping.recipe(value)
    if made is None:
        raise CuteError(
            f"autotune: argument {value!r} cannot be sent to another process, which isolate= and workers= need; "
            f"these can: {_MAY_BE_SENT}"
        )
    return made


def reachable(function: Any) -> tuple[str, str]:
    """Return module and qualified name of a function that another process finds by them; CuteError of any other."""
    where = (function.__module__, function.__qualname__)
    if "<locals>" in where[1] or "<lambda>" in where[1]:
        raise CuteError(
            f"autotune: {where[1]} is defined inside of a function, where no other process finds it, which "
            "isolate= and workers= need: define it at the top of its module"
        )
    return where


def _serve(pipe: Any, sent: Any) -> None:
    """Be a child: say when the configuration was launched, then time it as often as asked."""
    try:
        (module, name), args, named, device, makes_launch = sent
        found: Any = sys.modules.get(module) or importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        function: Callable[..., Any] = getattr(found, "function", found)
        args = tuple(shipping.made(a) for a in args)
        named = {k: shipping.made(v) for k, v in named.items()}
        watch = Stopwatch() if device is None else device
        pipe.send((True, None))
        launch = function(*args, **named) if makes_launch else lambda: function(*args, **named)
        contender = InProcess([launch], watch)
        pipe.send((True, None))
        while True:
            what, count = pipe.recv()
            value = getattr(contender, what)(count)
            pipe.send((True, (value, contender.host) if what == "per_call" else value))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except Exception as e:
        pipe.send((False, reason(e)))
