# SPDX-License-Identifier: Apache-2.0
"""The numbers of a GPU's table that are chosen among some, each by the time that calls take with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from numba_cute.kernels import tuning

KB, MB = 1 << 10, 1 << 20
MARGIN = 0.01
"""By what part of the time a number must be better than the one that is there."""

Cases = Mapping[str, Callable[[], Any]]


class Choice(NamedTuple):
    """A number of a table. entry, place: where it is: the names that lead to it. candidates: what it may be. cases: the
    beginnings of the names of the calls that hang on it."""

    entry: str
    place: tuple[str, ...]
    candidates: Sequence[Any]
    cases: tuple[str, ...]


ROWS = ("norm", "softmax", "cross_entropy")
CHOICES = (
    Choice("rows", ("direct",), (8 * KB, 16 * KB, 32 * KB, 64 * KB), ("norm",)),
    Choice("rows", ("resident",), (1, 2, 3), ROWS),
    Choice("rows", ("again",), (4, 8, 16), ROWS),
    Choice("rows", ("again_block",), (256, 512), ("norm",)),
    Choice("rows", ("block",), (128, 256, 512), ROWS),
    Choice("rows", ("habits", "softmax", "direct"), (0, 4 * KB, 8 * KB, 16 * KB, 32 * KB), ("softmax",)),
    Choice("rows", ("habits", "softmax", "again_block"), (256, 512), ("softmax",)),
    Choice("rows", ("habits", "cross_entropy", "direct"), (0, 4 * KB, 8 * KB, 16 * KB, 32 * KB), ("cross_entropy",)),
    Choice("rows", ("habits", "topk", "direct"), (0, 1 * KB, 2 * KB, 4 * KB), ("topk",)),
    Choice("rows", ("habits", "topk", "resident"), (1, 2, 3), ("topk",)),
    Choice("rows", ("habits", "topk", "again_block"), (256, 512), ("topk",)),
    Choice("rotary", ("heads",), (1, 2, 4, 8), ("rotary",)),
    Choice("permute", ("box",), (8 * KB, 16 * KB, 32 * KB), ("permute",)),
    Choice("permute", ("flight",), (2, 4, 8), ("permute",)),
    Choice("permute", ("flight_ragged",), (4, 10, 16), ("permute",)),
    Choice("permute", ("longer",), (1, 4, 8), ("permute",)),
    Choice("permute", ("used",), (0.5, 0.75, 0.9), ("permute",)),
    Choice("flash_attention", ("l2",), (8 * MB, 16 * MB, 32 * MB, 48 * MB, 64 * MB), ("attention",)),
    Choice("attention_backward", ("l2",), (10 * MB, 20 * MB, 40 * MB, 60 * MB), ("gradients",)),
)


def held(table: tuning.Table, choice: Choice) -> Any:
    """Give the number of a table."""
    value: Any = vars(table.numbers[choice.entry])
    for name in choice.place:
        value = value[name]
    return value


def replaced(table: tuning.Table, choice: Choice, value: Any) -> tuning.Table:
    """Give the table with another number."""

    def within(values: Any, place: tuple[str, ...]) -> Any:
        return {**values, place[0]: within(values[place[0]], place[1:])} if place else value

    first, *others = choice.place
    inner = getattr(table.numbers[choice.entry], first)
    return tuning.with_numbers(table, choice.entry, **{first: within(inner, tuple(others))})


def chosen(table: tuning.Table, cases: Cases, time: Callable[[Callable[[], Any]], float],
           choices: Sequence[Choice] = CHOICES, said: Callable[[str], None] = print) -> tuning.Table:  # fmt: skip
    """Give a table with each number as the one of its candidates with which the calls that hang on it take the least
    time, by the mean of their ratios; one that is not better by MARGIN stays, and so does one of which no call is here.

    cases: calls, by name. time: gives the seconds of one, which is planned anew. said: is told what was found."""
    for choice in choices:
        own = [call for name, call in cases.items() if name.startswith(choice.cases)]
        before = held(table, choice)
        if not own:
            continue

        def mean(value: Any, choice: Choice = choice, own: Any = own, table: tuning.Table = table) -> float:
            with tuning.using(replaced(table, choice, value)):
                return sum(math.log(time(call)) for call in own) / len(own)

        found = {value: mean(value) for value in dict.fromkeys((before, *choice.candidates))}
        best = min(found, key=lambda value: found[value])
        if found[best] < found[before] - MARGIN:
            table = replaced(table, choice, best)
        of = {value: round(math.exp(t - found[before]), 3) for value, t in found.items()}
        said(f"{choice.entry} {'.'.join(choice.place)}: {held(table, choice)}, of {of}")
    return table


# ---------------------------------------------------------------- on a GPU


def cases_here() -> dict[str, Callable[[], Any]]:
    """Calls of entries on this GPU."""
    import torch

    from numba_cute import kernels

    def random(*shape: int) -> Any:
        return torch.randn(shape, device="cuda").to(torch.bfloat16)

    found: dict[str, Callable[[], Any]] = {}
    for n in (1024, 4096, 16384, 65536):
        x, w = random((1 << 26) // n, n), random(n)
        y, target = torch.empty_like(x), torch.randint(0, n, (len(x),), device="cuda")
        found[f"norm {n}"] = lambda x=x, w=w, y=y: kernels.rmsnorm(x, w, out=y)
        found[f"softmax {n}"] = lambda x=x, y=y: kernels.softmax(x, out=y)
        found[f"cross_entropy {n}"] = lambda x=x, t=target: kernels.cross_entropy(x, t)
        found[f"topk {n}"] = lambda x=x: kernels.topk(x, 8)
    x, c = random(16384, 32, 128), random(16384, 64)
    found["rotary"] = lambda x=x, c=c: kernels.rotary(x, c, c)
    for shape, order in (((8192, 8192), (1, 0)), ((8191, 8189), (1, 0)), ((16, 2048, 32, 128), (0, 2, 1, 3)),
                         ((64, 512, 512, 3), (0, 3, 1, 2)), ((32, 64, 32, 16, 64), (4, 1, 3, 0, 2))):  # fmt: skip
        x = random(*shape)
        found[f"permute {shape}"] = lambda x=x, order=order: kernels.permute(x, order)
    for d, tokens in ((64, 8192), (128, 8192)):
        q, k = random(2, tokens, 32, d), random(2, tokens, 8, d)
        found[f"attention {d}"] = lambda q=q, k=k: kernels.flash_attention(q, k, k, causal=True)
        o, lse = kernels.flash_attention(q, k, k, causal=True, return_lse=True)
        found[f"gradients {d}"] = lambda q=q, k=k, o=o, lse=lse: kernels.attention_backward(
            o, q, k, k, o, lse, causal=True
        )
    return found


def seconds(call: Callable[[], Any]) -> float:
    """Give the seconds of a call on this GPU, which is planned anew."""
    from numba_cute.kernels import entry
    from numba_cute.testing import Pace, compare

    forget(entry)
    return float(compare({"call": call}, rounds=3, pace=Pace(turn=0.02, least=0.05, most=0.2))["call"].median)


def forget(entry: Any) -> None:
    """Forget what was planned by other numbers."""
    from numba_cute.kernels.attention import gradients

    for operator in entry._operators.values():
        operator.planned.known.clear()
    gradients.PASSES.known.clear()
