# SPDX-License-Identifier: Apache-2.0
"""Random kernels of arithmetic in all of Numba's types: integers that wrap around, shifts, division by zero, floats of
both widths, operands of different types, and variables whose type differs from way to way, or from copy to copy of an
unrolled loop or an inlined function.

Each has one result, on a GPU too. Sums and products of signed integers stay within 64 bits: Numba tells LLVM that they
do (nsw), so that what comes of others is up to the optimiser; unsigned ones wrap around. Signed and unsigned integers
meet only where either an integer or a float may come out; shifts are narrower than their operands, floats become
integers only within range, and what is multiplied as floats is so coarse that the product is exact: whether a GPU fuses
it with a sum does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .build import THREADS
from .choices import Choices, pick

SIGNED, UNSIGNED, FLOATS = (
    ("int8", "int16", "int32", "int64"),
    ("uint8", "uint16", "uint32", "uint64"),
    ("float32", "float64"),
)
ARRAYS = {t: f"a_{t}" for t in (*SIGNED, *UNSIGNED, *FLOATS)}
SCALARS = {t: f"n_{t}" for t in (*SIGNED, *UNSIGNED, *FLOATS)}
STORED = {t: f"o_{t}" for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")}
OUTPUTS = 2 + len(STORED)
"""How many of the arguments are written."""
LENGTH, ROWS = 16, 4
HEADER = """
import numpy as np
from numba import cuda

import numba_cute as cute

G = {g}
F = {f}
MOST, LEAST = 2147483647, -2147483648


@cuda.jit(device=True)
def bounded(x):
    return np.int64(x) if -1e9 < x < 1e9 else np.int64(7)


@cuda.jit(device=True)
def clean(x):
    return x if x == x else 1.5


@cuda.jit(device=True)
def either(x, y):
    if x > y:
        return x
    return y


@cuda.jit(device=True)
def stepped(x, y, n):
    for _ in range(n):
        if x > 1000:
            return y
        x = x + y
    return x


@cuda.jit
def kernel({parameters}):
    tid = cuda.threadIdx.x
"""


def arguments() -> tuple[Any, ...]:
    """(ints out, reals out, one out of each narrow type, arrays in, scalars)."""
    rng = np.random.default_rng(11)
    out = np.full((THREADS, ROWS), -77, np.int64), np.full((THREADS, ROWS), -77.0)
    narrow = [np.zeros(THREADS, t) for t in STORED]
    return *out, *narrow, *(_values(rng, t) for t in ARRAYS), *(np.dtype(t).type(_scalar(t)) for t in SCALARS)


def _values(rng: np.random.Generator, kind: str) -> Any:
    """Small ones, and such as lie at the type's ends. Of signed types not the least: ptxas negates 16-bit numbers in
    wider registers (neg.s16 of -32768, widened, was 32768 on an H200, 2026-11-22)."""
    if kind in FLOATS:
        return np.array(
            [0.0, 1.0, -1.0, 0.1, -2.5, 3e7, 1e-3, -1e10, 16777217.0, 0.5, 7.0, -0.0, 1e30, 2.0, -3.3, 9.0], kind
        )
    info = np.iinfo(kind if kind != "int64" else "int32")
    least = info.min + (info.min < 0)
    ends = [0, 1, 2, 3, 7, least, least + 1, info.max, info.max - 1, info.max // 3]
    return np.array([*ends, *rng.integers(least, info.max, LENGTH - len(ends), info.dtype, endpoint=True)], kind)


def _scalar(kind: str) -> Any:
    return 0.3 if kind in FLOATS else np.iinfo(kind if kind != "int64" else "int32").max - 2


def small(text: str, bits: int = 20) -> str:
    """An integer cut to so many bits."""
    return f"({text} & {(1 << bits) - 1})"


class NumberWriter:
    """Writes one such kernel."""

    def __init__(self, choices: Choices, statements: int = 7, depth: int = 2) -> None:
        self.choices, self.statements, self.depth = choices, statements, depth
        self.lines: list[str] = []
        self.indent = 1
        self.indices: list[str] = []
        self.rounds: list[str] = []
        self.serial = 0

    def below(self, n: int) -> int:
        return self.choices.below(n)

    def pick(self, options: Any) -> Any:
        return pick(self.choices, options)

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    # ---------------------------------------------------------------- expressions
    def element(self, kind: str) -> str:
        at = self.pick(["tid", "tid + 8", str(self.below(LENGTH)), *self.indices])
        return self.pick([f"{ARRAYS[kind]}[{at}]", f"{ARRAYS[kind]}[{at}]", SCALARS[kind]])

    def signed(self, depth: int) -> str:
        """Of a signed type."""
        leaves: list[Callable[[], str]] = [
            lambda: self.pick(["s0", "s1", "tid", "G", "3", "-7", "100", "MOST", "LEAST"]),
            lambda: self.element(self.pick(SIGNED)),
        ]
        if depth <= 0:
            return self.pick(leaves)()
        a = lambda: self.signed(depth - 1)  # noqa: E731
        return self.pick(
            [
                *leaves,
                lambda: f"({a()} {self.pick('+-')} {a()})",
                lambda: f"({small(a())} * {small(a())})",
                lambda: f"({a()} {self.pick(['//', '%'])} {a()})",
                lambda: f"({a()} {self.pick('&|^')} {a()})",
                lambda: f"({small(a())} {self.pick(['<<', '>>'])} {self.pick(['3', '7', small(a(), 4)])})",
                lambda: f"({self.pick('-~+')}{a()})",
                lambda: f"np.{self.pick(SIGNED)}({self.pick([self.signed, self.mixed])(depth - 1)})",
                lambda: f"({a()} if {self.condition(depth - 1)} else {a()})",
                lambda: f"{self.pick(['min', 'max'])}({a()}, {a()})",
                lambda: f"(({self.condition(depth - 1)}) + {a()})",
                lambda: f"abs(np.int64({a()}))",
                lambda: f"bounded({self.real(depth - 1)})",
                lambda: f"int({self.condition(depth - 1)})",
                lambda: f"either({a()}, {a()})",
            ]
        )()

    def unsigned(self, depth: int) -> str:
        """Of an unsigned type."""
        leaves: list[Callable[[], str]] = [
            lambda: self.pick(["u0", "u1", "np.uint32(4000000000)", "np.uint8(200)", "np.uint64(G)"]),
            lambda: self.element(self.pick(UNSIGNED)),
        ]
        if depth <= 0:
            return self.pick(leaves)()
        a = lambda: self.unsigned(depth - 1)  # noqa: E731
        wide = lambda text: f"np.uint64({text})"  # noqa: E731
        return self.pick(
            [
                *leaves,
                lambda: f"({a()} {self.pick('+-*')} {a()})",
                lambda: f"({a()} {self.pick(['//', '%'])} {a()})",
                lambda: f"({a()} {self.pick('&|^')} {a()})",
                lambda: wide(f"{a()} {self.pick(['<<', '>>'])} {self.pick(['3', '7', 'np.uint8(5)'])}"),
                lambda: wide(f"{self.pick('-~')}{a()}"),
                lambda: f"np.{self.pick(UNSIGNED)}({self.pick([self.signed, self.unsigned])(depth - 1)})",
                lambda: f"({a()} if {self.condition(depth - 1)} else {a()})",
                lambda: f"{self.pick(['min', 'max'])}({a()}, {a()})",
                lambda: f"either({a()}, {a()})",
            ]
        )()

    def mixed(self, depth: int) -> str:
        """Of an unsigned type, for what may meet signed ones."""
        return f"({self.unsigned(depth)} & np.uint32({(1 << 30) - 1}))"

    def any(self, depth: int) -> str:
        """Of any type."""
        return self.pick([self.signed, self.mixed, self.real])(depth)

    def coarse(self, depth: int) -> str:
        """A float of ten bits."""
        return f"np.{self.pick(FLOATS)}({small(self.signed(depth), 10)})"

    def real(self, depth: int) -> str:
        """A float, or perhaps an integer: for what takes both."""
        leaves: list[Callable[[], str]] = [
            lambda: self.pick(["f0", "f1", "x0", "x1", "x0", "x1", "F", "0.1", "np.float32(0.1)"]),
            lambda: self.element(self.pick(FLOATS)),
        ]
        if depth <= 0:
            return self.pick(leaves)()
        a, b = (lambda: self.real(depth - 1)), (lambda: self.any(depth - 1))  # noqa: E731
        return self.pick(
            [
                *leaves,
                lambda: f"({a()} {self.pick('+-')} {b()})",
                lambda: f"({self.signed(depth - 1)} {self.pick('+-')} {self.mixed(depth - 1)})",
                lambda: f"({b()} / {b()})",
                lambda: f"({self.coarse(depth - 1)} * {self.coarse(depth - 1)})",
                lambda: f"({a()} * {self.pick(['2', '0.5', 'np.float32(0.25)'])})",
                lambda: f"np.{self.pick(FLOATS)}({b()})",
                lambda: f"float({b()})",
                lambda: f"(-{a()})",
                lambda: f"({b()} if {self.condition(depth - 1)} else {b()})",
                lambda: f"either({b()}, {b()})",
                lambda: f"stepped({b()}, {b()}, {self.below(4)})",
            ]
        )()

    def condition(self, depth: int) -> str:
        a = lambda: self.any(depth - 1)  # noqa: E731
        options: list[Callable[[], str]] = [
            lambda: f"{a()} {self.pick(['<', '<=', '>', '>=', '==', '!='])} {a()}",
            lambda: f"tid > {self.below(8)}",
        ]
        if depth > 0:
            options += [
                lambda: f"({self.condition(depth - 1)} {self.pick(['and', 'or'])} {self.condition(depth - 1)})",
                lambda: f"not ({self.condition(depth - 1)})",
                lambda: f"{a()} < {a()} <= {a()}",
            ]
        return f"({self.pick(options)()})"

    # ---------------------------------------------------------------- statements
    def statement(self, depth: int) -> None:
        options: list[Callable[[], None]] = [
            self.assign,
            self.assign,
            self.augmented,
            self.retyped,
            self.carried,
            self.chosen,
            self.store,
            self.pair,
        ]
        if depth > 0:
            options += [lambda: self.branch(depth - 1), lambda: self.loop(depth - 1)] * 2
            options += [lambda: self.unrolled(depth - 1), lambda: self.inlined(depth - 1)]
            if self.rounds:
                options += [lambda: self.known(depth - 1)] * 3
        self.pick(options)()

    def block(self, depth: int) -> None:
        self.indent += 1
        for _ in range(1 + self.below(3)):
            self.statement(depth)
        self.indent -= 1

    def assign(self) -> None:
        """A variable that keeps its type."""
        name = self.pick(list(self.kinds))
        of = {"s": self.signed, "u": self.unsigned, "f": self.real}[name[0]]
        self.line(f"{name} = np.{self.kinds[name]}({of(2)})")

    def augmented(self) -> None:
        name = self.pick(["s0", "s1", "u0", "u1"])
        of = self.signed if name[0] == "s" else self.unsigned
        op, value = self.pick("+-*^|&"), of(1)
        if op == "*" and name[0] == "s":
            self.line(f"{name} &= {(1 << 20) - 1}")
            value = small(value)
        self.line(f"{name} {op}= {value}")
        self.line(f"{name} = np.{self.kinds[name]}({name})")

    def retyped(self) -> None:
        """A variable whose type differs from way to way."""
        self.line(f"{self.pick(['x0', 'x1'])} = {self.any(2)}")

    def carried(self) -> None:
        """A variable that a loop carries, whose type may be another the second time."""
        name, self.serial = self.pick(["x0", "x1"]), self.serial + 1
        self.line(f"for i{self.serial} in range({self.pick(['2', '3', 'np.uint8(2)'])}):")
        self.indent += 1
        if self.below(2):
            self.line(f"f1 = np.float64({name} / {self.any(1)})")
        again = f"{name} {self.pick('+-/')} {self.any(1)}"
        self.line(f"{name} = {self.pick([again, again, self.any(1)])}")
        if self.below(2):
            self.line(f"if {self.condition(1)}:")
            self.line(f"    {name} = {self.any(1)}")
        self.indent -= 1

    def chosen(self) -> None:
        """A variable that has one type or another, and what is computed with it."""
        name = self.pick(["x0", "x1"])
        self.line(f"if {self.condition(1)}:")
        self.line(f"    {name} = {self.any(1)}")
        if self.below(2):
            self.line("else:")
            self.line(f"    {name} = {self.any(1)}")
        self.line(f"f1 = np.float64({name} {self.pick('+-/')} {self.any(1)})")

    def pair(self) -> None:
        self.line(f"p = ({self.any(1)}, {self.any(1)})")
        if self.below(2):
            self.line(f"if {self.condition(1)}:")
            self.line(f"    p = ({self.any(1)}, {self.any(1)})")
        self.line(f"x{self.below(2)} = p[{self.below(2)}]")

    def store(self) -> None:
        kind = self.pick(list(STORED))
        value = f"clean({self.real(2)})" if kind in FLOATS else self.pick([self.signed, self.unsigned])(2)
        self.line(f"{STORED[kind]}[tid] = {value}")

    def branch(self, depth: int) -> None:
        self.line(f"if {self.condition(2)}:")
        self.block(depth)
        if self.below(2):
            self.line("else:")
            self.block(depth)

    def loop(self, depth: int) -> None:
        self.serial += 1
        i = f"i{self.serial}"
        self.line(f"for {i} in range({self.pick(['2', '3', 's0 & 3', 'np.uint8(3)', 'np.int32(2)'])}):")
        self.indices.append(f"{i} + {self.below(8)}")
        self.block(depth)
        if self.below(3) == 2:
            self.indent += 1
            self.line(f"if {self.condition(1)}:")
            self.line(f"    {self.pick(['break', 'continue'])}")
            self.indent -= 1
        self.indices.pop()

    def unrolled(self, depth: int) -> None:
        """A loop whose rounds are copies."""
        self.serial += 1
        u = f"k{self.serial}"
        self.line(f"for {u} in cute.range_constexpr({self.pick(['2', '3', '2, -1, -1'])}):")
        self.rounds.append(u)
        self.block(depth)
        self.indent += 1
        if self.below(2):
            self.known(depth)
        if self.below(3) == 2:
            self.line(f"if {self.condition(1)}:")
            self.line(f"    {self.pick(['break', 'continue'])}")
        self.line(f"{self.pick(['f1 = np.float64(x0', 'x1 = (x0'])} + {self.any(1)})")
        self.indent -= 1
        self.rounds.pop()

    def known(self, depth: int) -> None:
        """A branch that some copies have."""
        self.line(f"if cute.const_expr({self.pick(self.rounds)} {self.pick(['==', '>', '!='])} {self.below(3)}):")
        self.block(depth)
        if self.below(3) == 2:
            self.line("else:")
            self.block(depth)

    def inlined(self, depth: int) -> None:
        """A closure that is called in two places, for which it is another one."""
        self.serial += 1
        g, held = f"g{self.serial}", self.rounds
        self.line(f"def {g}(x0, known):")
        self.rounds, before = ["known"], self.lines
        self.indent, self.lines = self.indent + 1, []
        self.line(f"y = {self.pick(['x0', 'x1', 'f0'])}")
        self.line(f"if cute.const_expr(known {self.pick(['==', '>'])} {self.below(2)}):")
        self.line(f"    if {self.condition(1)}:")
        self.line(f"        y = {self.any(1)}")
        self.line(f"return {self.pick(['y', 'y', f'y + {self.any(1)}'])}")
        self.indent, self.lines = self.indent - 1, before + self.lines
        self.rounds = held
        for known in range(2):
            value = f"{g}({self.any(1)}, {known}) {self.pick('+-')} {self.any(1)}"
            self.line(f"{self.pick(['f1', 'f1', 'x1'])} = np.float64({value})")

    # ---------------------------------------------------------------- whole
    def source(self) -> str:
        """The module, with `kernel`."""
        self.kinds = {
            "s0": self.pick(SIGNED), "s1": "int64", "u0": self.pick(UNSIGNED), "u1": "uint64",
            "f0": self.pick(FLOATS), "f1": "float64",
        }  # fmt: skip
        for name, kind in self.kinds.items():
            self.line(f"{name} = {self.element(kind)}")
        x0 = self.pick(list(ARRAYS))
        self.line(f"x0 = {self.element(x0)}" + (f" & np.uint32({(1 << 30) - 1})" if x0 in UNSIGNED else ""))
        self.line(f"x1 = {self.pick(['0', '1.5', 'x0'])}")
        for _ in range(1 + self.below(self.statements)):
            self.statement(self.depth)
        for at, name in enumerate(("s0", "s1", "u0", "u1")):
            self.line(f"o[tid, {at}] = {name}")
        for at, name in enumerate(("f0", "f1", "x0", "x1")):
            self.line(f"r[tid, {at}] = clean({name})")
        names = ", ".join(("o", "r", *STORED.values(), *ARRAYS.values(), *SCALARS.values()))
        head = HEADER.format(g=self.pick([1, 5, 255, -3, 1 << 20]), f=self.pick([0.5, 2.5, -1.1]), parameters=names)
        return head + "\n".join(self.lines) + "\n"
