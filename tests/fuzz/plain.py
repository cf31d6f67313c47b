# SPDX-License-Identifier: Apache-2.0
"""Random kernels of plain Python: integers and floats, control flow of all kinds, constants from globals, closures and
arguments.

Integers stay within some thousands and floats are multiples of 1/8, so that every order and width of arithmetic gives
one result; what differs was compiled wrong.
"""

from __future__ import annotations

from collections.abc import Callable

from .choices import Choices, pick

INTS = ("v0", "v1", "v2", "v3")
FLOATS = ("f0", "f1")
HEADER = """
from types import ModuleType

import numpy as np
from numba import cuda

G0, G1, G2 = {g0}, {g1}, {g2}
T = ({t0}, {t1}, {t2}, {t3})
GF = {gf}
settings = ModuleType("settings")
settings.DEPTH = {g1}


@cuda.jit(device=True)
def helper(x, y):
    if x > y:
        return x - y
    t = {g2}
    for i in range({g1}):
        if i == y % 3:
            break
        t += x % (i + 2)
    return t


def make(C0, C1):
    K = (C0, C1, G0)

    @cuda.jit
    def kernel({parameters}):
"""


class Writer:
    """Writes one kernel, statement by statement. Subclasses add what else a kernel may say."""

    def __init__(self, choices: Choices, statements: int = 8, depth: int = 3) -> None:
        self.choices, self.statements, self.depth = choices, statements, depth
        self.lines: list[str] = []
        self.indent = 2
        self.readable = list(INTS)  # besides those that are assigned: loop indices
        self.loops: list[str] = []  # the kinds of the loops around, innermost last
        self.serial = 0

    def below(self, n: int) -> int:
        return self.choices.below(n)

    def pick(self, options):
        return pick(self.choices, options)

    def name(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}{self.serial}"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    # ---------------------------------------------------------------- expressions
    def small(self) -> str:
        """An int literal."""
        return str(self.below(8))

    def constant(self) -> str:
        """An int that is constant in the source."""
        return self.pick(
            [self.small(), "G0", "G1", "G2", "C0", "C1", "T[1]", "K[0]", "settings.DEPTH", "(G0 + C1)", "G1 * 2",
             "(C0 << 1)", "G2 // 2", "(G0 - 3)", "-C1", "len(T)"]
        )  # fmt: skip

    def integer(self, depth: int = 2) -> str:
        """An int expression of some thousands at most."""
        plain: list[Callable[[], str]] = [lambda: self.pick(self.readable), self.constant, self.run_time]
        if depth <= 0:
            return self.pick(plain)()
        return self.pick([*plain, *self.compound(depth - 1)])()

    def run_time(self) -> str:
        return self.pick(["n", "m", "tid", f"a[{self.index(32)}]"])

    def compound(self, depth: int) -> list[Callable[[], str]]:
        one = lambda: self.integer(depth)  # noqa: E731
        return [
            lambda: f"({one()} + {one()})",
            lambda: f"({one()} - {one()})",
            lambda: f"({self.masked(depth)} * {self.constant()})",
            lambda: f"({one()} // {self.pick(['2', '3', '7', '(G1 + 1)'])})",
            lambda: f"({one()} % {self.pick(['2', '5', '9', '(C1 + 1)'])})",
            lambda: f"({one()} {self.pick('&|^')} {one()})",
            lambda: f"({one()} >> {self.pick(['1', '2', 'G1'])})",
            lambda: f"({one()} if {self.condition(depth)} else {one()})",
            lambda: f"min({one()}, {one()})",
            lambda: f"max({one()}, {one()})",
            lambda: f"abs({one()})",
            lambda: f"helper({self.masked(depth)}, {self.masked(depth)})",
            lambda: f"T[{self.pick(['0', '1', '-1', 'G1 % 4'])}]",
            lambda: f"int({self.condition(depth)})",
            lambda: f"int({self.pick(FLOATS)})",
            lambda: f"(-{one()})",
        ]

    def masked(self, depth: int) -> str:
        return f"({self.integer(depth)} & 63)"

    def index(self, size: int) -> str:
        """An int from 0 to size - 1."""
        return f"({self.integer(1)}) % {size}"

    def real(self) -> str:
        """A float: a multiple of 1/8 that is not large."""
        return self.pick(
            [
                "0.5", self.pick(FLOATS), f"{self.masked(1)} * 0.125", f"float({self.masked(1)})",
                f"({self.pick(FLOATS)} - 1.5)", f"-{self.pick(FLOATS)}", f"max({self.pick(FLOATS)}, 2.25)",
                f"({self.pick(FLOATS)} if {self.condition(0)} else 3.0)", "GF",
            ]
        )  # fmt: skip

    def condition(self, depth: int) -> str:
        one = lambda: self.integer(depth - 1)  # noqa: E731
        compare = lambda: f"{one()} {self.pick(['<', '<=', '>', '>=', '==', '!='])} {one()}"  # noqa: E731
        options: list[Callable[[], str]] = [compare, lambda: f"{self.pick(FLOATS)} > {self.masked(0)}"]
        if depth > 0:
            options += [
                lambda: f"({self.condition(depth - 1)} and {self.condition(depth - 1)})",
                lambda: f"({self.condition(depth - 1)} or {self.condition(depth - 1)})",
                lambda: f"not ({self.condition(depth - 1)})",
                lambda: f"{one()} < {one()} <= {one()}",
                lambda: f"{self.constant()} > {self.constant()}",
                lambda: f"bool({one()} & 1)",
            ]
        return self.pick(options)()

    # ---------------------------------------------------------------- statements
    def block(self, count: int, depth: int) -> None:
        self.indent += 1
        for _ in range(1 + self.below(count)):
            if self.statement(depth):
                break
        self.indent -= 1

    def statement(self, depth: int) -> bool:
        """Write a statement; True if nothing may follow it in its block."""
        options = [self.assign, self.augmented, self.assign_real, *self.simple()]
        if depth > 0:
            for nested in (self.branch, self.counted, self.while_, *self.nested()):
                options += [lambda nested=nested: nested(depth - 1)] * 2
        if self.loops:
            options += [self.leave]
        return bool(self.pick(options)())

    def simple(self) -> list[Callable[[], object]]:
        return [self.swap, self.unpack, self.store, self.early_return, self.inner, self.constant_branch]

    def nested(self) -> list[Callable[[int], object]]:
        return []

    def assign(self) -> None:
        self.line(f"{self.pick(INTS)} = ({self.integer()}) & 1023")

    def augmented(self) -> None:
        target, op = self.pick(INTS), self.pick(["+", "-", "^", "|", "*", "//", "%", ">>"])
        if op in "//%":
            self.line(f"{target} {op}= {self.pick(['2', '3', '5', 'G1 + 1'])}")
        elif op in ("*", ">>"):
            self.line(f"{target} {op}= {self.pick(['2', '1', 'G1'])}")
        else:
            self.line(f"{target} {op}= {self.integer(1)}")
        self.line(f"{target} &= 2047")

    def assign_real(self) -> None:
        self.line(f"{self.pick(FLOATS)} = {self.real()}")

    def swap(self) -> None:
        a, b = self.pick(INTS), self.pick(INTS)
        self.line(f"{a}, {b} = {b}, {a}")

    def unpack(self) -> None:
        pair = self.name("p")
        self.line(f"{pair} = ({self.masked(1)}, {self.masked(1)})")
        if self.below(2):
            self.line(f"if {self.condition(1)}:")
            self.line(f"    {pair} = ({self.masked(0)}, {self.masked(0)})")
        self.line(f"{self.pick(INTS)} = {pair}[{self.below(2)}]")

    def store(self) -> None:
        self.line(f"o[tid, {self.below(4)}] = {self.integer(1)}")

    def early_return(self) -> bool:
        self.line(f"if {self.condition(1)} and tid == {self.below(8)}:")
        self.line(f"    o[tid, 4] = {self.integer(1)}")
        self.line("    return")
        return False

    def inner(self) -> None:
        """A closure, called at once; with `nonlocal` half the time."""
        f = self.name("inner")
        target = self.pick(INTS)
        self.line(f"def {f}(x):")
        if self.below(2):
            self.line(f"    nonlocal {target}")
            self.line(f"    {target} = (x + {self.constant()}) & 511")
        else:
            self.line(f"    return (x * {self.constant()} + {self.constant()}) & 511")
        self.line(f"{f}({self.masked(0)})" if "nonlocal" in self.lines[-2] else f"{target} = {f}({self.masked(0)})")

    def constant_branch(self) -> None:
        self.line(f"if {self.constant()} > {self.constant()}:")
        self.line(f"    {self.pick(INTS)} = {self.masked(0)}")

    def branch(self, depth: int) -> None:
        self.line(f"if {self.condition(2)}:")
        self.block(2, depth)
        if self.below(2):
            self.line(f"elif {self.condition(1)}:")
            self.block(2, depth)
        if self.below(2):
            self.line("else:")
            self.block(2, depth)

    def counted(self, depth: int) -> None:
        i = self.name("i")
        bounds = self.pick(
            ["3", "1, 4", "G1", "C0 % 5", "(n & 3) + 1", "0, 6, 2", "4, 0, -1", "v0 & 3", "len(T)", "C1 - 1"]
        )
        self.loop(f"for {i} in range({bounds}):", i, depth)

    def while_(self, depth: int) -> None:
        """Halving, or counting to a constant that an assignment before the loop set."""
        w = self.name("w")
        start = self.pick(["G0 // 2", "C0 + 4", "8", f"{self.masked(0)}", "G0"])
        self.line(f"{w} = {start}")
        self.line(f"while {w} > {self.pick(['0', '1'])}:")
        self.indent += 1
        self.line(self.pick([f"{w} //= 2", f"{w} = {w} >> 1", f"{w} -= {w} // 2 + 1", f"{w} = {w} // 3"]))
        self.indent -= 1
        self.body(w, depth)

    def loop(self, head: str, index: str, depth: int) -> None:
        self.line(head)
        self.body(index, depth)
        if self.below(4) == 3:
            self.line("else:")
            self.block(1, 0)

    def body(self, index: str, depth: int, kind: str = "run time") -> None:
        self.loops.append(kind)
        self.readable.append(index)
        self.block(3, depth)
        self.readable.pop()
        self.loops.pop()

    def leave(self) -> bool:
        self.line(f"if {self.condition(1)}:")
        self.line(f"    {self.pick(['break', 'continue'])}")
        return False

    # ---------------------------------------------------------------- whole
    def parameters(self) -> str:
        return "o, r, a, n, m"

    def prologue(self) -> None:
        self.line("tid = cuda.threadIdx.x")
        for i, v in enumerate(INTS):
            self.line(f"{v} = {self.pick(['0', 'G0', 'C0', '5', 'n & 15', 'a[tid]'])}" if i else f"{v} = 0")
        for f in FLOATS:
            self.line(f"{f} = {self.pick(['0.0', 'GF', '1.5'])}")

    def epilogue(self) -> None:
        for i, v in enumerate(INTS):
            self.line(f"o[tid, {i}] = {v}")
        for i, f in enumerate(FLOATS):
            self.line(f"r[tid, {i}] = {f}")

    def header(self) -> str:
        """The module's globals, and the kernel's first line."""
        g = {f"g{i}": self.pick([1, 2, 3, 4, 5, 7, 8, 16]) for i in range(3)}
        t = {f"t{i}": self.below(6) for i in range(4)}
        return HEADER.format(**g, **t, gf=self.pick([0.0, 2.5, -1.0]), parameters=self.parameters())

    def source(self) -> str:
        """The module: `kernel` is what it makes."""
        head = self.header()
        self.prologue()
        for _ in range(1 + self.below(self.statements)):
            self.statement(self.depth)
        self.epilogue()
        c0, c1 = self.pick([1, 2, 3, 6]), self.pick([2, 3, 4])
        return head + "\n".join(self.lines) + f"\n\n    return kernel\n\n\nkernel = make({c0}, {c1})\n"
