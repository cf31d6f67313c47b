# SPDX-License-Identifier: Apache-2.0
"""Random programs of the kernel's language: objects that alias, lists, dicts, register tensors, closures, returns,
loops and early exits, amid integers of all widths and signs.

A program speaks of a few things only, so that what is refused of one construct hides nothing of the others. Integers
are cut to some thousands: nothing wraps around but where its type says so.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

from ..choices import Choices, pick
from . import programs

INTS = ("i0", "i1", "i2")
OBJECTS = ("x0", "x1")
FEATURES = ("objects", "lists", "dicts", "registers", "closures", "tuples", "functions", "widths", "loops", "iterators")
PLAIN = """
class V(Base):
    def __init__(self, n, k):
        self.n = n
        self.k = k
{methods}
"""
DATA = """
@dataclass
class V(Base):
    n: int
    k: int = 2
{methods}
"""
STRUCT = """
@cute.struct
class V:
    n: cute.Int64
    k: cute.Int64
{methods}
"""
BASE = """
class Base:
    WIDTH = {width}
    def total(self):
        return self.n * 2 + self.k
"""
METHODS = """
def bump(self, by):
    self.n = (self.n + by) % 997
    return self

def clamp(self, most):
    if self.n > most:
        self.n = most
        return self
    self.k += 1
    return self

def pull(self, other):
    self.n, other.n = other.n, self.n
    return other

def count(self, upto):
    s = 0
    for q in range(upto & 7):
        if q == self.k:
            {leave}
        s += q + self.n
    return s

@property
def both(self):
    return self.n + self.k
"""
FUNCTIONS = """
def pick(x, y, v):
    if v > {c0}:
        return x
    return y

def work(x, v):
    while v > {c1}:
        v -= {c1} + 3
        x.n = (x.n + v) % 61
        if x.n == {c0}:
            return x.n - v
    return v

def two(x, y, v):
    return y, x, v + 1

def apply(g, v):
    return g(v) + g({c0})

def chosen(g, v):
    if v > {c0}:
        return g(v)
    return v

def ends(v, lo={c0}, *more, hi={c1}):
    if v < lo:
        return lo - len(more)
    if v < hi:
        return v
    return hi
"""


class Writer:
    """Writes one program, statement by statement."""

    def __init__(self, choices: Choices, statements: int = 9) -> None:
        self.choices, self.statements = choices, statements
        self.lines: list[str] = []
        self.indent, self.serial, self.loops, self.dynamic = 0, 0, 0, 0
        kept = 2 + self.below(4)
        self.features = {pick(choices, FEATURES) for _ in range(kept)}
        self.kind = self.pick([PLAIN, DATA, STRUCT])

    def below(self, n: int) -> int:
        return self.choices.below(n)

    def pick(self, options: Any) -> Any:
        return pick(self.choices, options)

    def has(self, feature: str) -> bool:
        return feature in self.features

    def name(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}{self.serial}"

    def line(self, *texts: str) -> None:
        self.lines += ["    " * self.indent + text for text in texts]

    # ---------------------------------------------------------------- expressions
    def value(self, depth: int = 2) -> str:
        """An int within some thousands."""
        leaves = [*INTS, *INTS, "n", "m", "tid", str(self.below(12) - 3), "a[tid]", f"a[{self.below(16)}]"]
        if self.has("objects"):
            leaves += ["x0.n", "x1.k", "x0.both"]
        if self.has("lists"):
            leaves += ["l0[0]", "l0[-1]", "len(l0)"]
        if self.has("registers"):
            leaves += ["r0[1]", "r1[0]", f"r0[({self.pick(INTS)}) % 3]"]
        if depth <= 0:
            return str(self.pick(leaves))
        return str(self.pick([lambda: self.pick(leaves), *self.compound(depth - 1)])())

    def compound(self, depth: int) -> list[Callable[[], str]]:
        one = lambda: self.value(depth)  # noqa: E731
        options = [
            lambda: f"({one()} {self.pick('+-')} {one()})",
            lambda: f"(({one()}) % 31 * {self.small()})",
            lambda: f"({one()} // {self.pick(['2', '7', '-3', '(m + 1)'])})",
            lambda: f"({one()} % {self.pick(['5', '9', '-4', '(n + 2)'])})",
            lambda: f"({one()} {self.pick('&|^')} {one()})",
            lambda: f"({one()} >> {self.below(3)})",
            lambda: f"({one()} if {self.condition(depth)} else {one()})",
            lambda: f"{self.pick(['min', 'max'])}({one()}, {one()})",
            lambda: f"abs({one()})",
            lambda: f"{self.pick('-~')}({one()})",
            lambda: f"({one()} {self.pick(['and', 'or'])} {one()})",
            lambda: f"int({self.condition(depth)})",
        ]
        if self.has("widths"):
            kind = self.pick(["Int8", "Int16", "Int32", "Uint8", "Uint16"])
            options += [
                lambda: f"cute.Int64({self.pick(['', '-', '~'])}cute.{kind}({one()}))",
                lambda: f"cute.Int32({one()})",
                lambda: f"cute.ceil_div({one()}, {self.pick(['4', '3'])})",
            ] * 2
        if self.has("functions"):
            options += [
                lambda: f"ends({one()})",
                lambda: f"ends({one()}, {one()}, {one()}, hi={self.small()})",
                lambda: f"work(x0, ({one()}) % 40)",
            ]
        if self.has("iterators"):
            options += [
                lambda: f"sum(({one()}, {one()}))",
                lambda: f"sum([q * {one()} for q in range({1 + self.below(3)})])",
                lambda: f"sorted((3, {self.small()}, 2))[1]",
            ]
        return options

    def small(self) -> str:
        return str(self.below(6) + 1)

    def condition(self, depth: int = 1) -> str:
        one = lambda: self.value(depth - 1)  # noqa: E731
        options = [
            lambda: f"({one()} {self.pick(['<', '<=', '>', '==', '!='])} {one()})",
            lambda: f"({one()} < {one()} <= {one()})",
            lambda: f"(not {one()})",
        ]
        if depth > 0:
            options += [lambda: f"({self.condition(depth - 1)} {self.pick(['and', 'or'])} {self.condition(depth - 1)})"]
        if self.has("objects"):
            options += [lambda: f"(x0 {self.pick(['is', 'is not'])} x1)", lambda: "isinstance(x0, V)"]
        if self.has("tuples"):
            options += [lambda: f"({one()} in ({one()}, {one()}))"]
        return str(self.pick(options)())

    # ---------------------------------------------------------------- statements
    def simple(self) -> list[Callable[[], None]]:
        i, x, y = self.pick(INTS), self.pick(OBJECTS), self.pick(OBJECTS)
        e = self.value
        options: list[Callable[[], None]] = [
            lambda: self.line(f"{i} = ({e()}) % 1000"),
            lambda: self.line(f"{i} {self.pick(['+', '-', '^', '|'])}= {e(1)}", f"{i} %= 1009"),
            lambda: self.line(f"{i}, {self.pick(INTS)} = {self.pick(INTS)}, {self.pick(INTS)}"),
            lambda: self.line(f"o[tid, {self.below(4)}] = {e(1)}"),
            lambda: self.line(
                f"if {self.condition()} and tid == {self.below(4)}:", f"    o[tid, 7] = {e(1)}", "    return"
            ),
            lambda: self.line(f"if (w1 := ({e(1)}) % 100) > {self.below(50)}:", f"    {i} = w1"),
        ]  # fmt: skip
        if self.has("objects"):
            options += [
                lambda: self.line(f"{x} = {y}"),
                lambda: self.line(f"{x}.n = ({e(1)}) % 500"),
                lambda: self.line(f"{x}.bump({e(1)})"),
                lambda: self.line(f"{x}.clamp({e(0)}).bump({self.small()})"),
                lambda: self.line(f"{x}.pull({y}).k += 1"),
                lambda: self.line(f"{i} = ({x}.count({e(0)})) % 1000"),
                lambda: self.line(f"{x} = {y} if {self.condition()} else {x}"),
                lambda: self.line("x0, x1 = x1, x0"),
            ]
            if not self.dynamic or self.below(8) == 7:
                options += [lambda: self.line(f"{x} = V(({e(1)}) % 100, {self.small()})")] * 2
        if self.has("functions"):
            options += [
                lambda: self.line(f"x0 = pick(x0, x1, {e(0)})"),
                lambda: self.line(f"{x}, {'x1' if x == 'x0' else 'x0'}, {i} = two(x0, x1, ({e(0)}) % 99)"),
                lambda: self.line(f"pick(x0, x1, {e(0)}).n = {self.small()}"),
                lambda: self.line(f"{i} = chosen(lambda q: q + {self.small()}, ({e(1)}) % 50)"),
            ]
        if self.has("lists"):
            if not self.dynamic or self.below(8) == 7:
                options += [lambda: self.line(f"l0.append(({e(1)}) % 50)"), lambda: self.line("l1 = l0")]
            options += [lambda: self.line(f"l0[{self.pick(['0', '-1'])}] = ({e(1)}) % 50")]
        if self.has("dicts"):
            options += [lambda: self.line(f"d0['p'] = ({e(1)}) % 50"), lambda: self.line(f"{i} = d0['p'] + d0['q']")]
        if self.has("registers"):
            options += [
                lambda: self.line(f"{self.pick(['r0', 'r1'])}[({e(0)}) % 3] = {e(1)}"),
                lambda: self.line("r0, r1 = r1, r0"),
                lambda: self.line("r1 = r0"),
                lambda: self.line(f"r1 = r0 if {self.condition()} else r1"),
            ]
        if self.has("tuples"):
            t = self.name("t")
            options += [lambda: self.line(f"{t} = ({e(1)}, x1, {e(0)})", f"{t}[1].n = {t}[0] % 77", f"{i} = {t}[-1]")]
            options += [lambda: self.line(f"{t}, {i} = ({e(1)}, {i}), {e(0)}", f"{i} += {t}[1]", f"{i} %= 1000")]
        if self.has("closures"):
            options += [lambda: self.closure(i)] * 3
        return options

    def closure(self, i: str) -> None:
        g = self.name("g")
        body = self.pick(
            [
                [f"return (q + {self.value(1)}) % 300"],
                [f"nonlocal {i}" if i else "", f"{i} = ({i} + q) % 300", "return q"],
                ["x0.n = (x0.n + q) % 200", "return x0.k"],
                [f"if q > {self.small()}:", f"    return {self.value(0)}", "return q"],
            ]
        )
        if self.indent == 0 or "nonlocal" not in body[0]:
            self.line(f"def {g}(q):", *(f"    {text}" for text in body))
            call = self.pick([f"{g}(({self.value(0)}) % 40)", f"apply({g}, ({self.value(0)}) % 40)"])
            self.line(f"i1 = ({call}) % 1000")

    def statement(self, depth: int) -> None:
        options: list[Callable[[], Any]] = list(self.simple())
        if depth > 0:
            options += [lambda: self.branch(depth - 1)] * 3
            options += [lambda: self.loop(depth - 1)] * (4 if self.has("loops") else 2)
        if self.loops:
            options += [lambda: self.line(f"if {self.condition()}:", f"    {self.pick(['break', 'continue'])}")] * 2
        self.pick(options)()

    def block(self, depth: int) -> None:
        self.indent += 1
        for _ in range(1 + self.below(3)):
            self.statement(depth)
        self.indent -= 1

    def branch(self, depth: int) -> None:
        self.line(f"if {self.condition()}:")
        self.dynamic += 1
        self.block(depth)
        if self.below(2):
            self.line("else:")
            self.block(depth)
        self.dynamic -= 1

    def loop(self, depth: int) -> None:
        i = self.name("q")
        heads = [
            f"for {i} in range({self.pick(['3', 'm', 'a[tid] & 3', '4, 0, -1', 'tid, n', '-2, m, 2'])}):",
            f"for {i} in cute.range_constexpr({self.pick(['2', '3', '3, 0, -1'])}):",
            "while",
        ]
        if self.has("iterators"):
            e = self.value
            heads += [
                f"for {i} in ({e(0)}, {e(0)}):",
                f"for {i}, p1 in enumerate(({e(0)}, {e(0)})):",
                f"for {i}, p1 in zip((1, {e(0)}), ({e(0)}, n)):",
                f"for {i} in reversed((1, {e(0)})):",
            ]
        head = self.pick(heads)
        unrolled = "constexpr" in head or "(" in head.split(" in ")[-1][:10] and "range" not in head
        if head == "while":
            self.line(f"{i} = ({self.value(1)}) % 5", f"while {i} > 0:", f"    {i} -= 1")
        else:
            self.line(head)
        self.loops, self.dynamic = self.loops + 1, self.dynamic + (not unrolled)
        self.block(depth)
        self.loops, self.dynamic = self.loops - 1, self.dynamic - (not unrolled)
        if self.below(5) == 4:
            self.line("else:")
            self.indent += 1
            self.line(f"{self.pick(INTS)} = ({self.value(1)}) % 1000")
            self.indent -= 1

    # ---------------------------------------------------------------- whole
    def source(self) -> str:
        """Return the program."""
        self.line("i0 = n", "i1 = a[tid]", "i2 = 0")
        self.line("x0 = V(n, 2)", "x1 = V(a[tid] % 50, 3)")
        if self.has("lists"):
            self.line("l0 = [n, a[tid]]", "l1 = l0")
        if self.has("dicts"):
            self.line("d0 = {'p': m, 'q': tid}")
        if self.has("registers"):
            for r, v in (("r0", 1), ("r1", 2)):
                self.line(f"{r} = cute.make_rmem_tensor(3, cute.Int64)", f"{r}.fill({v})")
        for _ in range(2 + self.below(self.statements)):
            self.statement(2)
        self.line(*(f"o[tid, {j}] = {i}" for j, i in enumerate(INTS)), "o[tid, 3] = x0.n + x0.k * 1000")
        self.line("o[tid, 4] = x1.n + x1.k * 1000", *(["o[tid, 5] = l1[-1]"] if self.has("lists") else []))
        if self.has("registers"):
            self.line("o[tid, 6] = r0[0] + r0[1] * 100 + r0[2] * 10000 + r1[0]")
        leave = self.pick(["break", "continue", "return s"])
        base = BASE.format(width=self.small())
        methods = textwrap.indent(METHODS.format(leave=leave), "    ")
        head = base + self.kind.format(methods=methods) + FUNCTIONS.format(c0=self.below(9), c1=3 + self.below(9))
        body = "\n".join(self.lines)
        return programs.source(head, body, self.pick(["kernel", "kernel", "helper", "branch"]))
