# SPDX-License-Identifier: Apache-2.0
"""The table's form: a mistake is a kernel with one line that is `# wrong`, and what both engines say of it."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda

import numba_cute as cute

MARK = "# wrong"


@dataclass(frozen=True)
class Mistake:
    """A kernel with one mistake.

    kernel: its Python. says: a part of the rule that the message names. args: makes its arguments. block, grid,
    cluster, smem, arch: of its launch. kind: what makes a kernel of it. only: the engine that alone can know of it,
    "simulator" or "compiler", or "" where both must say the same; other: what the other engine says instead (a part of
    it), or "" if it takes the kernel. reason: why. where: the function whose line is wrong, if not the kernel.
    """

    kernel: Callable[..., None]
    says: str
    args: Callable[[], tuple[Any, ...]]
    block: Any = 1
    grid: Any = 1
    cluster: Any = None
    smem: int = 0
    arch: str = "sm_90a"
    kind: Any = cuda.jit
    only: str = ""
    other: str = ""
    reason: str = ""
    where: Any = None

    @property
    def name(self) -> str:
        return self.kernel.__name__.replace("_", " ")

    def line(self) -> tuple[str, int, str]:
        """The file, line and source of what is wrong."""
        function = self.where or self.kernel
        lines, first = inspect.getsourcelines(getattr(function, "py_func", function))
        (at,) = (i for i, text in enumerate(lines) if text.rstrip().endswith(MARK))
        return inspect.getsourcefile(self.kernel) or "", first + at, lines[at].strip()

    def simulated(self) -> Exception | None:
        """What the simulator itself says of it, as of a plain function; None if it takes it."""
        return self._run(self.kernel if self.kind is cuda.jit else self.kind(self.kernel))

    def judged(self) -> Exception | None:
        """What the simulator says of it as a kernel; None if it takes it."""
        return self._run(self.kind(self.kernel))

    def _run(self, kernel: Any) -> Exception | None:
        simulator = cute.simulate(kernel, cluster=self.cluster, arch=self.arch)
        return _said(lambda: simulator[self.grid, self.block, 0, self.smem](*self.args()))

    def compiled(self) -> Exception | None:
        """What the compiler says of it, for its target; None if it takes it."""
        return _said(lambda: cute.compile(self.kind(self.kernel), self.args(), arch=self.arch))


def _said(run: Callable[[], Any]) -> Exception | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run()
    except Exception as e:
        return e
    return None


_UNKNOWN = re.compile(r"\\\?(\w+)?(\\\{div=\d+\\\})?")

_ORIGINS = re.compile(r"(\n  \w+ is (an argument|set at line \d+: `.*`))+\Z")


_CARETS = re.compile(r"\n    [ ]*\^+(  .*)?(?=\n|\Z)")


def agree(simulated: str, compiled: str) -> bool:
    """Whether two texts are the same: where the compiler writes `?`, `?int32` or `?{div=4}` for a number that is known
    only at run time, the simulator may have the number; where such a value came to be one, the compiler says at the
    end; and where in the line it is, with types. All else is equal, character by character; the coordinates of the
    simulator's lane are a note beside."""
    compiled, simulated = (_CARETS.sub("", _ORIGINS.sub("", text)) for text in (compiled, simulated))
    return re.fullmatch(_UNKNOWN.sub(r"[^\\s,()]+(\\([^\\s()]*\\))?", re.escape(compiled)), simulated) is not None


MISTAKES: list[Mistake] = []


def floats(*shape: int) -> Callable[[], tuple[Any, ...]]:
    """An array of Float32, as a kernel's one argument."""
    return lambda: (np.zeros(shape or (64,), np.float32),)


def mistake(says: str, *args: Any, **options: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put a kernel into the table.

    says, options: see `Mistake`. args: the kernel's arguments, each as it is or a function of Python's that makes it;
    an array of 64 Float32 zeros if there are none.
    """

    def add(kernel: Callable[..., None]) -> Callable[..., None]:
        def make() -> tuple[Any, ...]:
            given = args or ((lambda: np.zeros(64, np.float32)),)
            return tuple(a() if inspect.isfunction(a) else a for a in given)

        MISTAKES.append(Mistake(kernel, says, make, **options))
        return kernel

    return add
