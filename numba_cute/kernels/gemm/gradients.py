# SPDX-License-Identifier: Apache-2.0
"""The gradients of `matmul`: two products, and before them that of its epilogue, which is an epilogue itself.

y = f(z, …) with z = a @ b, element by element. The epilogue's functions are followed by all that a gradient is asked
for (`derivative.py`), inside the kernel, where z is computed once more instead of kept: of dy, read as the matrix like
C, it makes dz and adds up the gradients of vectors. Where no derivative hangs on z (a bias, a residual, a number),
nothing is computed again; where one hangs on the epilogue's own matrix, whose place dy would have, the derivatives are
written out.
"""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.seam.ground.records import dataclass

from .. import entry
from ..carried import exact
from ..derivative import Dual, Hanging, dual
from .epilogue import Epilogue, Form, Given, matrix, sums
from .taken import broadcast

SUM = "x"  # the slot of z; those of the epilogue's tensors are their numbers
KINDS = ("bfloat16", "float16", "float32")


# ---------------------------------------------------------------- epilogues that are followed


MOST = 256  # forms of epilogues whose derivatives are remembered


@dataclass(frozen=True)
class Begin:
    """The first step: the sums are followed."""

    def __call__(self, x: Any) -> Any:
        return dual(x, SUM)


@dataclass(frozen=True)
class Follow:
    """A step that is followed. slots: of each input, None where no gradient of it is asked for. gives: whether the
    function gives results beside. halves: of a step of pairs, the slots that are each half's own."""

    function: Any
    slots: tuple[Any, ...]
    gives: bool
    halves: tuple[Any, ...] | None = None

    def __call__(self, x: Any, *inputs: Any) -> Any:
        given = [Dual(v, {} if slot is None else {slot: 1.0}) for v, slot in zip(inputs, self.slots, strict=True)]
        if self.halves is not None:
            x = tuple(self._half(v, i) for i, v in enumerate(x))
        made = self.function(x, *given)
        made = made[0] if self.gives else made
        return made if isinstance(made, Dual) else Dual(made, {})

    def _half(self, x: Any, i: int) -> Dual:
        assert self.halves is not None
        return Dual(x.value, {(s, i) if s in self.halves else s: t for s, t in x.slots.items()})


@dataclass(frozen=True)
class Take:
    """The last step: dy times the derivative by `slot` is what is stored, and by others what is added up."""

    slot: Any
    beside: tuple[Any, ...] = ()

    def __call__(self, x: Any, dy: Any) -> Any:
        made = dy * x.slots.get(self.slot, 0.0)
        return (made, *(dy * x.slots.get(s, 0.0) for s in self.beside)) if self.beside else made


@dataclass(frozen=True)
class Alone:
    """The last step where dy is not read: the derivative by `slot` itself."""

    slot: Any

    def __call__(self, x: Any) -> Any:
        made = x.slots.get(self.slot, 0.0)
        return cute.where(x.value == x.value, made, made)  # of as many elements as there are sums


def followed(form: Form, wanted: tuple[int, ...], matrix_counts: bool) -> tuple[Form, tuple[int, ...]]:
    """Give the steps of a form, followed by the sums and by the tensors that are `wanted`, and which of its tensors
    they read. matrix_counts: whether they read the matrix like C; else it is 0, on which nothing hangs."""
    if any(pairs and isinstance(function, Follow) for function, *_, pairs in form):
        raise CuteError("matmul: there is no second derivative of an epilogue that makes one column of two: take one")
    steps: list[Any] = [(Begin(), (), (), False)]
    place = 0
    read: list[int] = []
    halves: list[Any] = [SUM]
    for function, inputs, results, pairs in form:
        slots, taken = [], []
        for x in inputs:
            slot = None
            if isinstance(x, Given):
                slot = place if place in wanted else None
                if x.along == "both" and not matrix_counts:
                    slot, x = None, 0.0
                else:
                    read.append(place)
                halves += [place] if isinstance(x, Given) and x.along == "columns" else []
                place += 1
            slots.append(slot)
            taken.append(x)
        place += len(results)
        of_halves = tuple(halves) if pairs else None
        steps.append((Follow(function, tuple(slots), bool(results), of_halves), tuple(taken), (), pairs))
    return tuple(steps), tuple(read)


_derivatives: dict[Any, dict[Any, Any]] = {}


def derivatives(form: Form, wanted: tuple[int, ...]) -> dict[Any, Any]:
    """Give of each slot its derivative as far as the host knows it: a number, or a `Hanging`. CuteError where there is
    none."""
    key = exact((form, wanted))
    if key not in _derivatives:
        if len(_derivatives) >= MOST:
            _derivatives.clear()
        _derivatives[key] = _derived(form, wanted)
    return _derivatives[key]


def _derived(form: Form, wanted: tuple[int, ...]) -> dict[Any, Any]:
    values: tuple[Any, ...] = (Hanging("sums"),) * (2 if any(pairs for *_, pairs in form) else 1)
    for function, inputs, _, pairs in followed(form, wanted, True)[0]:
        given = [
            x if not isinstance(x, Given) else Hanging("matrix" if x.along == "both" else "vectors") for x in inputs
        ]
        try:
            values = (function(values, *given),) if pairs else tuple(function(v, *given) for v in values)
        except CuteError:
            raise
        except Exception as e:  # of the user's function
            raise CuteError(
                f"matmul: a gradient is asked for, and the epilogue cannot be differentiated ({type(e).__name__}: "
                f"{e}): write its function with operators, cute.math and cute.where alone, or call it under "
                "torch.no_grad()"
            ) from e
    return dict(values[0].slots)


# ---------------------------------------------------------------- of a call


def folds_of(form: Form) -> list[str]:
    """Give of each tensor of an epilogue what is folded into it, "" where it is read."""
    return [x.fold for _, inputs, results, _ in form for x in (*inputs, *results) if isinstance(x, Given)]


def check_operand(a: Any) -> None:
    """Refuse a first operand of a type that has no gradient."""
    if entry.type_name(a) not in KINDS:
        raise CuteError(
            f"matmul: a gradient is asked for, which there is of {', '.join(KINDS)} alone, and a is "
            f"{entry.described(a)}: convert it with a.to(…), or call it under torch.no_grad()"
        )


def check(what: str, form: Form, given: list[Any]) -> None:
    """Refuse an epilogue that has no gradient. what: the entry. form, given: the epilogue, or (), and its tensors."""
    folds = folds_of(form)
    if "sum" in folds:
        raise CuteError(
            f"{what}: a gradient is asked for, and the epilogue adds up sums, whose gradient would be lost: add up the "
            "result, y.sum(…), or call it under torch.no_grad()"
        )
    entry.refuse_gradients(what, [t for t, fold in zip(given, folds) if fold])
    if not entry.pytorch().compiler.is_compiling():  # it cannot follow this; what is refused it hears of later
        derivatives(form, wanted_of(form, [t.requires_grad for t in given]))


def wanted_of(form: Form, needs: list[bool]) -> tuple[int, ...]:
    """Give the numbers of an epilogue's inputs of which gradients are asked for. needs: of each of its tensors."""
    return tuple(i for i, (need, fold) in enumerate(zip(needs, folds_of(form), strict=True)) if need and not fold)


def combine(epilogue: Epilogue | None, beside: list[Any]) -> None:
    """Add what an epilogue has found beside, from nothing on, to what it is to be added to; autograd hears of none."""
    torch = entry.pytorch()
    with torch.no_grad():
        for x, found in zip([x for x in (epilogue.given if epilogue else ()) if x.fold], beside, strict=True):
            if x.fold == "sum":
                x.tensor.add_(found)
            else:
                x.tensor.copy_(torch.maximum(x.tensor, found))


def of_epilogue(
    run: Any, dy: Any, form: Form, given: list[Any], of_sums: bool, wanted: tuple[int, ...], alone: bool = False,
    reduce: Any = None,
) -> Any:  # fmt: skip
    """Give dz and, by number, the gradients of the tensors that are `wanted`.

    run: `run(epilogue)` multiplies the operands with another epilogue, and gives a result like y, half as wide as z
    where it makes one column of two, and what the epilogue finds beside.
    dy: the gradient of the result, dense and of its type. form, given: the epilogue and its tensors. of_sums: whether
    dz is asked for. alone: whether `run` takes no matrix and gives nothing beside. reduce: what
    adds up gradients in the place of `reduced`.
    """
    alongs = [x.along for _, inputs, results, _ in form for x in (*inputs, *results) if isinstance(x, Given)]
    known = derivatives(form, wanted)
    ends = [(SUM, 0), (SUM, 1)] if any(pairs for *_, pairs in form) else [SUM]  # of the two halves of z
    slots = {i: [s for s in known if s == i or s == (i, 0) or s == (i, 1)] for i in wanted}
    asked = [*(ends if of_sums else []), *(s for each in slots.values() for s in each)]
    hang = {s: Hanging.of(known.get(s, 0.0)) for s in asked}
    if not any(isinstance(known.get(s), Hanging) for s in asked):
        made = {s: dy * known.get(s, 0.0) for s in asked}
    elif (
        alone
        or any("matrix" in on for on in hang.values())
        or any(alongs[i] == "both" and isinstance(known[i], Hanging) for i in wanted)
    ):
        steps, read = followed(form, wanted, True)
        made = {s: dy * run(_epilogue(steps, given, read, Alone(s)))[0] for s in asked}
    else:
        return _together(run, dy, form, given, ends if of_sums else [], slots, alongs, known)
    add_up = reduce or reduced
    gradients = {i: _joined([add_up(made[s], alongs[i], given[i]) for s in slots[i]], given[i]) for i in wanted}
    return (_beside([made[s] for s in ends]) if of_sums else None), gradients


def _together(
    run: Any, dy: Any, form: Form, given: list[Any], ends: list[Any], slots: dict[int, list[Any]], alongs: list[str],
    known: dict[Any, Any],
) -> Any:  # fmt: skip
    """dz and the gradients where dy is the matrix like C, in one launch, or of pairs in two."""
    torch, wanted = entry.pytorch(), tuple(slots)
    steps, read = followed(form, wanted, False)
    added = [(i, s) for i in wanted if alongs[i] != "both" for s in slots[i]]
    results = []
    for i, s in added:  # the operator gives such as these, and begins at 0
        shape = given[i].shape if s == i else (*given[i].shape[:-1], given[i].shape[-1] // 2)
        results.append(sums(torch.empty(shape, dtype=torch.float32, device=dy.device), alongs[i]))
    last = Take(ends[0] if ends else SUM, tuple(s for _, s in added))
    first, *beside = run(_epilogue(steps, given, read, last, matrix(dy), results=tuple(results)))
    made = [first, *(run(_epilogue(steps, given, read, Take(end), matrix(dy)))[0] for end in ends[1:])]
    found = dict(zip((s for _, s in added), beside, strict=True))
    gradients = {i: _joined([found[s] for s in slots[i]], given[i]) for i in wanted if alongs[i] != "both"}
    gradients |= {i: dy * known[i] for i in wanted if alongs[i] == "both"}
    return (_beside(made) if ends else None), gradients


def _epilogue(steps: Form, given: list[Any], read: tuple[int, ...], *last: Any, results: Any = ()) -> Epilogue:
    """The epilogue of some steps, and a last one with its inputs and results."""
    return Epilogue.of(steps, [given[i] for i in read]) | Epilogue(*last, results=results)


def _beside(halves: list[Any]) -> Any:
    return halves[0] if len(halves) == 1 else entry.pytorch().cat(halves, -1)


def _joined(parts: list[Any], like: Any) -> Any:
    """The gradient of a vector, of one part, of those of two halves, or of none: of its shape and type."""
    torch = entry.pytorch()
    whole = torch.zeros_like(like) if not parts else parts[0] if len(parts) == 1 else torch.cat(parts, -1)
    return whole.reshape(like.shape).to(like.dtype)


def reduced(g: Any, along: str, like: Any) -> Any:
    """Add up the gradients of all elements to those of a vector, in float32. along: as of `Given`. like: the vector,
    or half of it."""
    if along == "both":
        return g
    kept = {"columns": [g.ndim - 1], "rows": [g.ndim - 2], "all": []}[along]
    kept += list(range(g.ndim - 2)) if along != "all" and like.ndim > 1 else []
    others = [i for i in range(g.ndim) if i not in kept]
    return g.sum(others, dtype=entry.pytorch().float32) if others else g.float()


# ---------------------------------------------------------------- products


def product(multiply: Any, x: Any, y: Any, like: Any) -> Any:
    """Multiply x @ y for the gradient of `like`, of its type, shape and order; the batches in which it was repeated are
    added up.

    multiply: `multiply(x, y)`. x, y: matrices, or batches of them that broadcast."""
    batches = broadcast(x, y)
    own = (1,) * (len(batches) + 2 - like.ndim) + like.shape[:-2]
    repeated = [i for i, (n, whole) in enumerate(zip(own, batches)) if n != whole]
    if repeated:  # their batches are a part of what is summed over
        order = [i for i in range(len(batches)) if i not in repeated] + repeated
        kept, rank = [batches[i] for i in order[: len(order) - len(repeated)]], len(batches)
        x = x.expand(*batches, *x.shape[-2:]).permute(*order, rank + 1, rank)
        y = y.expand(*batches, *y.shape[-2:]).permute(*order, rank, rank + 1)
        x, y = x.reshape(*kept, -1, x.shape[-1]).mT, y.reshape(*kept, -1, y.shape[-1])
    turned = like.stride(-2) == 1 and like.stride(-1) != 1
    made = multiply(y.mT, x.mT).mT if turned else multiply(x, y)
    return made.reshape(like.shape) if repeated else made


# ---------------------------------------------------------------- rows that an index names


def picked(t: Any, rows: Any) -> Any:
    """Give the rows of a matrix that an index names, 0 for those that are none; all, if there is no index."""
    if rows is None:
        return t
    there, number = _within(t, rows)
    return entry.pytorch().where(there[:, None], t.index_select(0, number), 0.0)


def added(rows_of: Any, rows: Any, like: Any) -> Any:
    """Add rows, in float32, to those of a matrix like `like` that an index names; give them as they are, if there is
    none."""
    if rows is None:
        return rows_of
    torch = entry.pytorch()
    there, number = _within(like, rows)
    sums = torch.zeros(like.shape, dtype=torch.float32, device=like.device)
    return sums.index_add_(0, number, torch.where(there[:, None], rows_of.float(), 0.0)).to(like.dtype)


def _within(t: Any, rows: Any) -> tuple[Any, Any]:
    """Say which numbers are rows of a matrix, and give them, with others in the place of those that are none."""
    there = (rows >= 0) & (rows < t.shape[0])
    return there, entry.pytorch().where(there, rows, 0)
