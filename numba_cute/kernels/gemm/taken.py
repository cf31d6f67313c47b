# SPDX-License-Identifier: Apache-2.0
"""Bring tensors of torch's to `matmul`: as they lie, where the copies to shared memory can read them so, and else by
way of a copy whose rows are multiples of 16 bytes, made by a kernel of this library.

Batches broadcast as torch.matmul's do. A mode that is repeated has the stride 0, and is no copy; modes that follow each
other in memory become one, so that the kernel has three of an operand at most, and one of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba_cute import CuteError
from numba_cute.seam.ground.records import dataclass

from .. import entry
from .epilogue import Epilogue
from .operands import contiguous

MODES = 3  # of batches: a tensor map has two more
RESULT = 2  # which of the tensors


def broadcast(a: Any, b: Any) -> tuple[int, ...]:
    """Give the batches of a product, as torch.matmul has them. CuteError for what does not broadcast."""
    rank = max(a.ndim, b.ndim) - 2
    whole = [(*(1,) * (rank + 2 - t.ndim), *t.shape[:-2]) for t in (a, b)]
    for n, m in zip(*whole):
        if n != m and 1 not in (n, m):
            raise CuteError(
                f"matmul: a is {entry.described(a)} and b {entry.described(b)}; their batches must broadcast: the "
                "extents of each mode must be equal, or one of them 1"
            )
    return tuple(m if n == 1 else n for n, m in zip(*whole))


def merged(t: Any, batches: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Give the shape and strides of a tensor over some batches, with as few modes for these as there can be; none, if
    it is one matrix for all of them."""
    (*shape, m, n), (*stride, by_m, by_n) = t.shape, t.stride()
    missing = len(batches) - len(shape)
    steps = [0] * missing + [0 if own != whole else s for own, whole, s in zip(shape, batches[missing:], stride)]
    found: list[list[int]] = []  # the innermost first
    for extent, step in zip(reversed(batches), reversed(steps)):
        if extent == 1:
            continue
        if found and step == found[-1][0] * found[-1][1]:
            found[-1][0] *= extent
        else:
            found.append([extent, step])
    if not any(step for _, step in found):
        found = []
    return (*(e for e, _ in found[::-1]), m, n), (*(s for _, s in found[::-1]), by_m, by_n)


def seen(t: Any, batches: tuple[int, ...]) -> Any:
    """View a tensor over some batches as the kernel has it."""
    if t.ndim == 2 or (t.shape[:-2] == batches and len(batches) == 1 and (t.stride(0) or t.shape[0] == 1)):
        return t
    return t.as_strided(*merged(t, batches))


def room(t: Any, inner: int, halves: bool = False) -> Any:
    """Make a tensor of torch's like `t`, with rows of multiples of 16 bytes. inner: which of its last two modes is
    contiguous. halves: its columns are two halves, each of which begins at a multiple of 8."""
    unit, shape = 16 // t.element_size(), list(t.shape)
    if halves:
        shape[-1] = 2 * (-(-shape[-1] // 16) * 8)
    if inner == -2:
        shape[-2:] = shape[:-3:-1]
    width = shape[-1]
    shape[-1] = -(-width // unit) * unit
    made = entry.pytorch().empty(shape, dtype=t.dtype, device=t.device)[..., :width]
    return made.mT if inner == -2 else made


def _copy_of(source: Any, made: Any) -> Any:
    from ..moves.strided import copy_of

    return copy_of(source, made)


COPY = entry.Planned(_copy_of, "matmul")


@dataclass(frozen=True)
class Way:
    """Bring a tensor to the kernel, or from there. batches: of the product. inner: which of the last two modes of
    its copy is contiguous; None, where there is none. whole: the copy has all batches, repeated ones too. halves: as of
    `room`. along: the mode that has no elements, and of whose copy one vector of zeros stands for them."""

    batches: tuple[int, ...]
    inner: int | None = None
    whole: bool = False
    halves: bool = False
    along: int | None = None

    def room(self, t: Any) -> Any:
        """Make room for the copy of a tensor; None, where it has none."""
        if self.inner is None:
            return None
        if self.along is not None:
            unit, rows = 16 // t.element_size(), t.shape[-3 - self.along]
            made = entry.pytorch().zeros((rows, unit), dtype=t.dtype, device=t.device)
            return made if self.along == -1 else made.mT
        return room(self._once(t), self.inner, self.halves)

    def of_kernel(self, t: Any, copy: Any) -> Any:
        """View a tensor, or its copy if it has one, as the kernel has it."""
        if copy is None:
            return seen(t, self.batches)
        if self.along is None and not self.whole:
            copy = copy.expand(*t.shape[:-2], *copy.shape[-2:])
        return seen(copy, self.batches)

    def put(self, t: Any, copy: Any, back: bool = False) -> None:
        """Fill the copy of a tensor, if it has one. back: fill the tensor from there."""
        if copy is None or self.along is not None:
            return
        for mine, its in zip(_parts(self._once(t), self.halves), _parts(copy, self.halves, t.shape[-1])):
            mine, its = _bits(mine), _bits(its)
            COPY((its, mine) if back else (mine, its))

    def _once(self, t: Any) -> Any:
        """View a tensor without what is repeated; or of all batches."""
        if self.whole:
            return t.expand(*self.batches, *t.shape[-2:])
        for i, (n, s) in enumerate(zip(t.shape[:-2], t.stride()[:-2])):
            t = t.narrow(i, 0, 1) if n > 1 and not s else t
        return t


def _bits(t: Any) -> Any:
    """View elements of 8 bits as numbers: Numba's arrays have no such floats."""
    return t.view(entry.pytorch().uint8) if t.element_size() == 1 else t


def _parts(t: Any, halves: bool, width: int | None = None) -> list[Any]:
    """Give what is copied at once. width: columns that count."""
    width = t.shape[-1] if width is None else width
    if not halves:
        return [t]
    return [t.narrow(-1, begin, width // 2) for begin in (0, t.shape[-1] // 2)]


def way(t: Any, batches: tuple[int, ...], *, modes: int = MODES, along: int | None = None, like: Any = None,
        pairs: bool = False, threads: bool = False, rows: bool = False) -> Way:  # fmt: skip
    """Choose how a tensor gets to the kernel, or from there.

    batches: of the product. modes: how many of these it may have there. along: of an operand, its mode -1 or -2 that is
    summed over. like: of a matrix like C, C as the kernel has it. pairs: of B, whether its columns are two halves,
    which take two modes more of a tensor map, and which the kernel reads as they lie where each is a multiple of 8.
    threads: of the result, whether threads write it, of any rows. rows: whether an index names rows, which are
    contiguous then."""
    if along is not None and not t.shape[along]:
        return Way(batches, along, along=along)
    shape, steps = merged(t, batches)
    whole = len(shape) - 2 > modes or (pairs and sum(map(bool, steps[:-2])) > 1)
    halves = pairs and t.shape[-1] % 16 != 0
    lies = seen(t, batches)
    mode = _contiguous(lies) if fits(lies, threads) else None
    of_k = along is not None and t.element_size() != 2  # wgmma and ldmatrix take such elements along K alone
    wanted = along if of_k else -1 if rows else _contiguous(like) if like is not None else mode
    if mode is not None and mode == wanted and not whole and not halves:
        return Way(batches)
    if wanted is None:
        wanted = -2 if t.stride(-2) == 1 != t.stride(-1) else -1
    return Way(batches, wanted, whole, halves)


def fits(t: Any, threads: bool = False) -> bool:
    """Say whether TMA, or copies of 16 bytes, take a tensor as it lies, or `threads`, for which the rows are of any
    number of bytes."""
    unit = 16 // t.element_size()
    steps = [s for n, s in zip(t.shape, t.stride()) if n > 1]
    return not t.data_ptr() % 16 and 1 in t.stride()[-2:] and (threads or not any(s % unit for s in steps if s != 1))


def _contiguous(t: Any) -> int:
    """Say which of a tensor's last two modes is contiguous to the kernel, -1 or -2."""
    return int(contiguous(t)) - 2


@dataclass(frozen=True)
class Vector(Way):
    """Bring a vector of an epilogue to the kernel: batches of several modes become one mode."""

    def of_kernel(self, t: Any, copy: Any) -> Any:
        """View a tensor as the kernel has it."""
        return t.reshape(-1, t.shape[-1]) if t.ndim > 2 else t


@dataclass(frozen=True)
class Taken:
    """Bring all tensors of a call to the kernel. ways: those of a, b, the result, and the epilogue's. keeps: whether
    some of the result stays as it was."""

    ways: tuple[Way, ...]
    keeps: bool = False

    @staticmethod
    def of(a: Any, b: Any, c: Any, epilogue: Epilogue | None, threads: bool, rows: tuple[Any, Any]) -> Taken:
        """Choose how. c: where the result goes. threads: whether threads can write it, of any rows. rows: the indices
        that name rows of A and of C, which are contiguous then, or None."""
        named = any(r is not None for r in rows)
        batches, given = broadcast(a, b), epilogue.given if epilogue else []
        pairs = epilogue is not None and epilogue.spread == 2
        threads = threads and (c.stride(-1) == 1 or not (pairs or named))
        of_c = way(c, batches, modes=1, threads=threads, rows=named)
        like = of_c.of_kernel(c, of_c.room(c))
        of_b = way(b, batches, along=-2, pairs=pairs)
        ways = [way(a, batches, along=-1, rows=named), of_b, of_c]
        for x in given:
            ways.append(way(x.tensor, batches, modes=1, like=like) if x.along == "both" else Vector(batches))
        return Taken(tuple(ways), rows[1] is not None)

    def views(self, tensors: Sequence[Any], rooms: Sequence[Any]) -> list[Any]:
        """View tensors, or their copies, as the kernel has them. tensors: as `ways`. rooms: of `rooms`."""
        return [w.of_kernel(t, r) for w, t, r in zip(self.ways, tensors, rooms, strict=True)]

    def rooms(self, tensors: Sequence[Any]) -> list[Any]:
        """Make room for the copies of tensors, None for those that have none."""
        return [w.room(t) for w, t in zip(self.ways, tensors, strict=True)]

    def around(self, launch: Callable[..., None]) -> Callable[..., None]:
        """Give what copies, launches, and copies the result back. It takes what `launch` does, others last."""

        def run(*tensors: Any) -> None:
            tensors, others = tensors[: len(self.ways)], tensors[len(self.ways) :]
            rooms = self.rooms(tensors)
            for i, (w, t, r) in enumerate(zip(self.ways, tensors, rooms, strict=True)):
                if i != RESULT or self.keeps:
                    w.put(t, r)
            launch(*self.views(tensors, rooms), *others)
            self.ways[RESULT].put(tensors[RESULT], rooms[RESULT], back=True)

        return run
