# SPDX-License-Identifier: Apache-2.0
"""The simulator's exceptions, and words for threads and source lines."""

from __future__ import annotations

import ast
import linecache
import os
import re
from collections.abc import Iterable, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ...seam import CuteError
from ...seam.ground.packages import is_library_file
from .wait_graph import WaitGraph


class SimError(CuteError):
    """The kernel did something that the simulator forbids.

    >>> issubclass(cute.sim.RaceError, cute.sim.SimError), issubclass(cute.sim.SimError, Exception)
    (True, True)
    """


class SimWarning(SimError, UserWarning):
    """The kernel did something that is probably not meant: a warning, and where warnings are errors a SimError.

    >>> issubclass(cute.sim.SimWarning, UserWarning)
    True
    """


class Cause(str):
    """A suspicion of what later goes wrong: if an error comes, it leads the report."""


class DeadlockError(SimError):
    """No thread can go on, and nothing is in flight that could wake one. graph: who waits for whom, to print or to draw
    (`.svg()`, `.html()`); None where a thread goes round a loop.

    >>> def kernel():
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_wait(bar, 0)
    >>> cute.simulate(kernel)[1, 1]()
    Traceback (most recent call last):
        ...
    numba_cute.sim.DeadlockError: deadlock ...
    """

    graph: WaitGraph | None = None


class RaceError(SimError):
    """Two accesses to the same memory lack an order, or a proxy fence, between them.

    >>> def kernel():
    ...     arch.store(arch.alloc_smem(cute.Int32, 1), arch.thread_idx()[0])
    >>> cute.simulate(kernel)[1, 64]()
    Traceback (most recent call last):
        ...
    numba_cute.sim.RaceError: race: shared memory cuda.shared.array ...
    """


class BarrierError(SimError):
    """An mbarrier, named barrier or cluster barrier was used against its rules.

    >>> def kernel():
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_arrive_and_expect_tx(bar, 16)
    >>> cute.simulate(kernel)[1, 1]()
    Traceback (most recent call last):
        ...
    numba_cute.sim.BarrierError: mbarrier cuda.shared.array ...
    """


class OutOfBoundsError(SimError):
    """An access outside the memory that the kernel was given, or misaligned.

    >>> def kernel(x):
    ...     x[4] = 1
    >>> cute.simulate(kernel)[1, 1](np.zeros(4))
    Traceback (most recent call last):
        ...
    numba_cute.sim.OutOfBoundsError: array: thread 0 (warp 0) of block (0, 0, 0) uses index 4 ...
    """


class ReadOnlyError(SimError):
    """Memory that may only be read is written.

    >>> x = np.zeros(4, np.float32)
    >>> x.flags.writeable = False
    >>> def kernel(x):
    ...     cute.make_ptr(cute.Float32, x.iterator.toint(), cute.AddressSpace.gmem).store(1.0)
    >>> cute.simulate(kernel)[1, 1](cute.runtime.from_dlpack(x))
    Traceback (most recent call last):
        ...
    numba_cute.sim.ReadOnlyError: global memory: thread 0 (warp 0) writes 4 bytes at x + 0 ...
    """


class UninitializedReadError(SimError):
    """A read and use of what nobody has written: shared or tensor memory, registers, a local array.

    >>> def kernel(x):
    ...     x[0] = arch.load(arch.alloc_smem(cute.Int32, 1), cute.Int32)
    >>> cute.simulate(kernel)[1, 1](np.zeros(1, np.int32))
    Traceback (most recent call last):
        ...
    numba_cute.sim.UninitializedReadError: uninitialised: shared memory cuda.shared.array ...
    """


class SwizzleError(SimError):
    """Shared memory is read by another swizzle than it was written by.

    >>> def kernel():
    ...     rows, row = cute.make_layout((64, 64), stride=(64, 1)), arch.thread_idx()[0]
    ...     s = utils.SmemAllocator().allocate_tensor(cute.Float16, rows, 1024, cute.make_swizzle(3, 4, 3))
    ...     for i in range(64):
    ...         s[row, i] = 1.0
    ...     plain = cute.make_ptr(cute.Float16, s.iterator.toint(), cute.AddressSpace.smem, assumed_align=128)
    ...     r = cute.make_rmem_tensor(64, cute.Float16)
    ...     cute.autovec_copy(cute.make_tensor(plain, rows)[row, None], r)
    >>> cute.simulate(kernel)[1, 64]()
    Traceback (most recent call last):
        ...
    numba_cute.sim.SwizzleError: wrong swizzle: shared memory s + 128 bytes ...
    """


class DivergenceError(SimError):
    """An instruction that threads must execute together was not.

    >>> def kernel():
    ...     arch.barrier(barrier_id=1, number_of_threads=32 + 32 * (arch.thread_idx()[0] % 2))
    >>> cute.simulate(kernel)[1, 64]()
    Traceback (most recent call last):
        ...
    numba_cute.sim.DivergenceError: bar_sync: its threads must agree on an operand, but ...
    """


for _cls in (
    SimError, SimWarning, DeadlockError, RaceError, BarrierError, OutOfBoundsError, ReadOnlyError,
    UninitializedReadError, SwizzleError, DivergenceError,
):  # fmt: skip
    _cls.__module__ = "numba_cute.sim"  # tracebacks name them as users import them

_LONGEST = 200  # characters of a statement that spans lines
_is_library: dict[int, tuple[bool, CodeType]] = {}


class Place(NamedTuple):
    """A line of the user's source, and the library function that it called (or "")."""

    file: str
    line: int
    function: str
    inside: str = ""
    caller: str = ""
    """The place where the user's code called the function that holds the line (or "")."""

    @property
    def short(self) -> str:
        return f"{_near(self.file)}:{self.line}"

    def __str__(self) -> str:
        source = _statement(self.file, self.line)
        within = f", in {self.inside}" if self.inside else ""
        via = f", called at {_near(self.caller)}" if self.caller else ""
        return f"{self.short} ({self.function}{within}{via})" + (f": `{source}`" if source else "")


def _statement(file: str, line: int) -> str:
    """The source of a line, and of those that follow while its brackets are open; not too much of it."""
    text = linecache.getline(file, line).strip()
    for at in range(line + 1, line + 8):
        if sum(map(text.count, "([{")) <= sum(map(text.count, ")]}")):
            break
        more = linecache.getline(file, at).strip()
        text += ("" if text[-1:] in "([{" or more[:1] in ")]}" else " ") + more
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _near(file: str) -> str:
    return os.path.relpath(file) if file.startswith(os.getcwd() + os.sep) else file


NOWHERE = Place("<unknown>", 0, "?")


def place_of(frame: FrameType | None) -> Place:
    """The innermost line from `frame` outwards that is not this library's own."""
    inside = ""
    while frame is not None:
        code = frame.f_code
        known = _is_library.get(id(code))  # asked here: a walk goes through a dozen frames for each access to memory
        if not (known[0] if known is not None else in_library(code)):
            return Place(code.co_filename, frame.f_lineno, code.co_name, inside, _caller(frame.f_back))
        inside = "" if code.co_name == "__call__" else code.co_name
        frame = frame.f_back
    return NOWHERE


_ASSIGNED = re.compile(r"\s*(\w+)\s*(?::[^=]*)?=[^=]")


def assigned_name(frame: FrameType) -> str:
    """The variable that the line of a frame assigns the call under way to, or ""."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    found = _ASSIGNED.match(line)
    return found[1] if found else _one_of_several(frame, line)


def _one_of_several(frame: FrameType, line: str) -> str:
    """The same where a line assigns several: `a, b = f(), g()`."""
    if "," not in line or not hasattr(frame.f_code, "co_positions"):  # which Python 3.10 lacks
        return ""
    try:
        (statement,) = ast.parse(line.strip()).body
    except (SyntaxError, ValueError):
        return ""
    if not isinstance(statement, ast.Assign):
        return ""
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return ""
    column = list(frame.f_code.co_positions())[frame.f_lasti // 2][2]
    at = -1 if column is None else column - (len(line) - len(line.lstrip()))
    for name, part in zip(target.elts, value.elts):
        if isinstance(name, ast.Name) and part.col_offset <= at < (part.end_col_offset or 0):
            return name.id
    return ""


def in_library(code: CodeType) -> bool:
    found = _is_library.get(id(code))  # code itself is hashed anew each time, as a whole, and without its file
    if found is None:
        made = code.co_filename == "<string>" and code.co_name == "__init__"  # a dataclass's
        found = _is_library.setdefault(id(code), (made or is_library_file(code.co_filename), code))
    return found[0]


def _caller(frame: FrameType | None) -> str:
    """The nearest line of the user's, from `frame` outwards, inside the kernel."""
    while frame is not None:
        if not in_library(frame.f_code):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def ranges(numbers: Iterable[int]) -> str:
    """`[0, 1, 2, 5]` as "0-2, 5"."""
    out: list[list[int]] = []
    for n in sorted(numbers):
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def who(threads: Sequence[Any]) -> str:
    """Threads in words: "warps 4-7 (128 threads) of CTA 1"."""
    by_cta: dict[int, list[Any]] = {}
    for t in threads:
        by_cta.setdefault(t.cta.rank, []).append(t)
    words = []
    for rank, some in sorted(by_cta.items()):
        words.append(_of_one_cta(some) + (f" of CTA {rank}" if some[0].cta.cluster.size > 1 else ""))
    return " and ".join(words) + (_of_rank(threads[0].cta) if words else "")


def block(cta: Any) -> str:
    """A block in words: "block (0, 0, 0)", and whose it is if there are several ranks."""
    return f"block {cta.index}{_of_rank(cta)}"


def of_block(cta: Any) -> str:
    """Words that follow those for threads (`who`), and say of which block they are."""
    return f", block {cta.index}" if _of_rank(cta) else f" of block {cta.index}"


def _of_rank(cta: Any) -> str:
    """Say whose a block is, if there are several ranks."""
    return getattr(cta.cluster, "of_rank", "")  # of a block on a GPU nothing is known (see `debugging`)


def _of_one_cta(threads: Sequence[Any]) -> str:
    if len(threads) == 1:
        return f"thread {threads[0].index} (warp {threads[0].index // 32})"
    lanes: dict[int, set[int]] = {}
    for t in threads:
        lanes.setdefault(t.index // 32, set()).add(t.lane)
    size = len(threads[0].cta.threads)
    whole = [w for w, some in lanes.items() if len(some) == min(32, size - 32 * w)]
    words = []
    if whole:
        words.append(_noun("warp", whole))
    parts: dict[tuple[int, ...], list[int]] = {}
    for w, some in sorted(lanes.items()):
        if w not in whole:
            parts.setdefault(tuple(sorted(some)), []).append(w)
    for some_lanes, warps in parts.items():
        words.append(f"{_noun('lane', some_lanes)} of {_noun('warp', warps)}")
    return f"{', '.join(words)} ({len(threads)} threads)"


def _noun(noun: str, numbers: Sequence[int]) -> str:
    return f"{noun}{'s' if len(numbers) > 1 else ''} {ranges(numbers)}"


def count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def no_warpgroup(thread: Any, what: str) -> SimError:
    """Return the error of an instruction of whole warpgroups in an incomplete one."""
    return SimError(
        f"{what} is issued by a warpgroup of 128 threads, but thread {thread.index} is in an incomplete one: "
        f"the block has {count(len(thread.cta.threads), 'thread')}; use a multiple of 128"
    )
