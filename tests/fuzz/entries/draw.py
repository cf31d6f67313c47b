# SPDX-License-Identifier: Apache-2.0
"""What a case of an entry is drawn of: extents, layouts, elements; and what judges its results against float64."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch

LENGTHS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 200, 256, 257, 320)
LONG = (511, 512, 513, 1000, 1024, 1025, 2047, 2048, 2056, 4096, 4104, 5000, 8192, 8200)
ROUNDING = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-23}
"""Half a unit in the last place, of what is next above a power of two."""


TOGETHER = 6
"""Cases with the same options."""


class Wrong(AssertionError):
    """A result that is not what float64 gives."""


class Draw:
    """A case's choices, which its label alone decides: options, which kernels are compiled for, are those of a few
    cases that follow each other. notes: what was chosen, for a report. drawn: of each option, and
    of each tensor's elements and layout, what was chosen, to be counted."""

    def __init__(self, label: str) -> None:
        seed, _, case = label.rpartition("-")
        self.random = random.Random(label)
        self.options = random.Random(f"{seed}-{int(case) // TOGETHER}")
        self.torch = torch.Generator().manual_seed(self.random.getrandbits(60))
        self.notes: dict[str, str] = {}
        self.drawn: list[tuple[str, str]] = []

    def note(self, name: str, value: Any) -> Any:
        """Note what was chosen; an option's value is counted too."""
        self.notes[name] = described(value)
        if isinstance(value, torch.Tensor):
            self.drawn.append((f"{name} of", str(value.dtype)[6:]))
        elif isinstance(value, dict):
            for option, chosen in value.items():
                self.note(option, chosen)
        else:
            for chosen in value if isinstance(value, list) else [value]:
                self.drawn.append((name, described(chosen)[:40]))
        return value

    def of(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def one_in(self, n: int) -> bool:
        return self.random.randrange(n) == 0

    def option(self, *choices: Any) -> Any:
        """One of some choices, the same for a few cases."""
        return self.options.choice(choices)

    def option_in(self, n: int) -> bool:
        return self.options.randrange(n) == 0

    def length(self, long: int = 8) -> int:
        """An extent of a row, of `long` in one case a great one; that of a few cases, for each has a kernel."""
        return self.option(*(LONG if self.option_in(long) else LENGTHS))

    def shape(self, least: int = 0, most: int = 3) -> tuple[int, ...]:
        """The extents beside the last, of few elements; some are 0 or 1."""
        return tuple(self.of(0, 1, 1, 2, 3, 5, 7) if self.one_in(3) else self.of(1, 2, 3, 4) for _ in
                     range(self.random.randint(least, most)))  # fmt: skip

    def elements(self, shape: Sequence[int], dtype: Any, size: float = 1.0) -> Any:
        """Elements of a normal distribution, or with ties, or with NaN and infinities."""
        x = torch.randn(tuple(shape), generator=self.torch) * size
        kind = self.note("elements", self.of("normal", "normal", "normal", "ties", "special", "zeros"))
        if kind == "ties":
            x = (x * 2).round() / 2
        if kind == "zeros":
            x = torch.zeros_like(x)
        if kind == "special" and x.numel():
            for value in (math.nan, math.inf, -math.inf):
                if self.one_in(2):
                    x.view(-1)[self.random.randrange(x.numel())] = value
        return x.to(dtype)

    def laid(self, name: str, x: Any, last: bool = True, unit: int = 1, broadcast: bool = True) -> Any:
        """`x` in a layout: dense, with room between, with modes in another order, repeated, from another offset on.

        last: whether the last mode is contiguous. unit: elements of which the other strides and the offset are
        multiples. broadcast: whether a mode may have the stride 0."""
        ways = ["dense", "dense", "room", "order", "offset"] + ["repeated"] * broadcast + ["transposed"] * (not last)
        if not x.ndim:
            return self.note(name, x)
        way = self.of(*ways) if x.ndim > 1 else self.of("dense", "offset")
        self.drawn.append((f"{name} lies", way))
        shape = x.shape
        if way == "repeated":
            m = self.random.randrange(x.ndim - 1)
            row = torch.zeros((*shape[:-1], -(-shape[-1] // unit) * unit)).to(x.dtype)[..., : shape[-1]]
            row.copy_(x)
            return self.note(name, row.narrow(m, 0, min(1, shape[m])).expand(shape))
        order = list(range(x.ndim))
        if way == "order":
            order[:-1] = self.random.sample(order[:-1], x.ndim - 1)
        if way == "transposed":
            self.random.shuffle(order)
        extents = [shape[m] for m in order]
        if way == "room":
            extents = [n + self.of(0, 1, 3) for n in extents[:-1]] + [extents[-1] + self.of(0, 1, 2) * unit]
        extents[-1] = -(-extents[-1] // unit) * unit
        offset = unit * self.of(1, 3) if way == "offset" else 0
        room = torch.zeros(math.prod(extents) + offset, dtype=torch.float32).to(x.dtype)
        held = room[offset:].view(extents).permute([order.index(m) for m in range(x.ndim)])
        held = held[tuple(slice(0, n) for n in shape)]
        held.copy_(x)
        return self.note(name, aligned(held, unit))


def aligned(x: Any, unit: int) -> Any:
    """`x`, at a multiple of 16 bytes if its unit is that: torch's own memory begins at multiples of 64."""
    assert unit * x.element_size() % 16 or x.data_ptr() % 16 == 0 or not x.numel()
    return x


def described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype)[6:]} {tuple(value.shape)} strides {value.stride()} at {value.storage_offset()}"
    return repr(value) if not callable(value) else getattr(value, "__name__", "function")


def close(what: str, got: Any, want: Any, size: Any = None, loose: float = 4.0, add: float = 0.0) -> None:
    """Raise Wrong unless `got` is `want`, of float64, as exactly as its type and sums of magnitude `size` allow.

    what: which result. loose: times the type's rounding. add: what more is allowed, in parts of the size."""
    if tuple(got.shape) != tuple(want.shape):
        raise Wrong(f"{what} has the shape {tuple(got.shape)}, and it must be {tuple(want.shape)}")
    got, want, kind = got.detach().double(), want.detach().double(), got.dtype
    for name, test in (("NaN", torch.isnan), ("inf", torch.isposinf), ("-inf", torch.isneginf)):
        if not torch.equal(test(got), test(want)):
            at = (test(got) != test(want)).nonzero()[0].tolist()
            raise Wrong(f"{what}{at} is {got[tuple(at)]:g}, and must be {want[tuple(at)]:g} ({name})")
    finite = torch.isfinite(want)
    if not finite.any():
        return
    size = want.abs() if size is None else size
    most = torch.as_tensor(size, dtype=torch.float64)[finite].max() if torch.is_tensor(size) and size.ndim else size
    most = float(most) if math.isfinite(float(most)) else float(want[finite].abs().max())
    room = loose * ROUNDING.get(kind, 0.0) * want.abs() + (2.0**-20 * loose + add) * most + 1e-30
    if kind == torch.float16:
        room = room + 2.0**-24
    off = ((got - want).abs() / room)[finite]
    if off.numel() and off.max() > 1:
        at = torch.where(finite, (got - want).abs() / room, 0.0).flatten().argmax()
        index = [int(i) for i in torch.unravel_index(at, want.shape)]
        raise Wrong(
            f"{what}{index} is {got.flatten()[at]:.6g}, and must be {want.flatten()[at]:.6g}; {off.max():.3g} times "
            "what is allowed"
        )


def equal(what: str, got: Any, want: Any) -> None:
    """Raise Wrong unless two tensors are the same, NaN where NaN is."""
    same = torch.equal(torch.nan_to_num(got.double(), 12345.0), torch.nan_to_num(want.double(), 12345.0))
    if tuple(got.shape) != tuple(want.shape) or not same:
        raise Wrong(f"{what} is not what it must be: {got.flatten()[:8].tolist()} for {want.flatten()[:8].tolist()}")


def gradients(
    d: Draw, entry: Callable[..., Any], reference: Callable[..., Any], inputs: Sequence[Any], loose: float = 8.0,
    add: float = 0.0, smooth: bool = True,
) -> None:  # fmt: skip
    """Compare an entry's gradients with those of float64, and these with differences of the reference.

    entry, reference: give a tensor or several of the inputs; the reference of such in float64. inputs: tensors. smooth:
    whether the reference rounds nothing."""
    ours = [x.detach().requires_grad_() for x in inputs]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    made, want = entry(*ours), reference(*exact)
    made, want = (r if isinstance(r, tuple) else (r,) for r in (made, want))
    for i, (m, w) in enumerate(zip(made, want)):
        close(f"result {i}", m, w, loose=loose, add=add)
    weights = [torch.randn(m.shape, generator=d.torch).to(m.dtype) for m in made]
    for i, w in enumerate(weights):
        if w.ndim and w.numel() and d.one_in(4):
            weights[i] = w[(0,) * w.ndim].expand(w.shape)  # as of a sum
    got = torch.autograd.grad(made, ours, weights)
    there = [w.double() for w in weights]
    right = torch.autograd.grad(want, exact, there)
    largest = max((float(w.abs().max()) for w in there if w.numel()), default=0.0)
    for i, (g, r) in enumerate(zip(got, right)):
        size = max(float(r.abs().max()), largest) if r.numel() else largest
        close(f"gradient {i}", g, r, size=size, loose=loose, add=add)
    if smooth:
        differences(d, reference, [x.detach() for x in exact], there, right)


def differences(d: Draw, reference: Callable[..., Any], inputs: Any, weights: Any, right: Any) -> None:
    """Compare float64's gradients with the reference's differences along a random direction."""
    if not all(bool(torch.isfinite(x).all()) for x in (*inputs, *right)):
        return
    way = [torch.randn(x.shape, generator=d.torch).double() for x in inputs]

    def at(h: float) -> Any:
        made = reference(*[x + h * w for x, w in zip(inputs, way)])
        made = made if isinstance(made, tuple) else (made,)
        return sum((m * w).sum() for m, w in zip(made, weights))

    h = 1e-5
    slope = (at(h) - at(-h)) / (2 * h)
    exact = sum((g * w).sum() for g, w in zip(right, way))
    size = sum((g * w).abs().sum() for g, w in zip(right, way)) + 1.0
    if abs(slope - exact) > 1e-4 * size:
        raise Wrong(f"the gradient along a direction is {float(exact):g}, and differences give {float(slope):g}")
