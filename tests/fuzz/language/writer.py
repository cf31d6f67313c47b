# SPDX-License-Identifier: Apache-2.0
"""Random programs of the kernel's language: objects that alias, lists, dicts, tuples, register tensors, closures,
returns, loops, walks and early exits, amid integers of all widths and signs, and floats.

A program speaks of a few things only, so that what is refused of one construct hides nothing of the others. Integers
are cut to some thousands: nothing wraps around but where its type says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..choices import Choices, pick
from . import parts, programs

INTS = ("i0", "i1", "i2")
OBJECTS = ("x0", "x1")
FEATURES = (
    "objects", "lists", "dicts", "registers", "closures", "tuples", "functions", "widths", "loops", "walks", "floats",
    "holders", "static", "prints", "dunders", "sequences",
)  # fmt: skip
NARROW = ("Int8", "Int16", "Int32", "Uint8", "Uint16", "Uint32")
RARE = 12
"""Of so many statements that are mostly refused where they stand one is written."""


class Writer:
    """Writes one program, statement by statement."""

    def __init__(self, choices: Choices, statements: int = 6) -> None:
        self.choices, self.statements = choices, statements
        self.lines: list[str] = []
        self.indent, self.serial, self.loops, self.dynamic = 0, 0, 0, 0
        kept = 2 + self.below(3)
        self.features = {pick(choices, FEATURES) for _ in range(kept)}
        self.kind = self.pick([parts.PLAIN, parts.DATA, parts.STRUCT])
        self.narrow = self.pick(NARROW)
        self.small_type = self.pick(["Int64", "Int32", "Int16", "Uint8", "Float32"])
        self.captured: set[str] = set()

    def below(self, n: int) -> int:
        return self.choices.below(n)

    def pick(self, options: Any) -> Any:
        return pick(self.choices, options)

    def has(self, *features: str) -> bool:
        return not self.features.isdisjoint(features)

    def rarely(self) -> bool:
        return self.below(RARE) == RARE - 1

    def name(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}{self.serial}"

    def line(self, *texts: str) -> None:
        self.lines += ["    " * self.indent + part for text in texts for part in text.split("\n")]

    # ---------------------------------------------------------------- expressions
    def value(self, depth: int = 2) -> str:
        """An int within some thousands."""
        leaves = [
            *INTS,
            *INTS,
            "n",
            "m",
            "tid",
            str(self.below(12) - 3),
            "a[tid]",
            f"a[{self.below(16)}]",
            "a[i0 & 15]",
        ]
        if self.has("objects", "holders", "dunders"):
            leaves += ["x0.n", "x1.k", "x0.both", "x1.total()" if self.kind is not parts.STRUCT else "x1.n"]
        if self.has("holders"):
            leaves += ["h0.left.n", "h0.right.k", "h0.n", "z0.n"]
        if self.has("dunders"):
            leaves += ["x0[0]", "x1[1]", f"x0({self.below(5)})", "V.mixed(m)", "x0.mixed(n, 2)"]
        if self.has("lists"):
            leaves += ["l0[0]", "l0[-1]", "len(l0)", "sum(l0)", "max(l0)"]
        if self.has("sequences"):
            leaves += ["u0[1]", f"u0[({self.pick(INTS)}) % 3]", "len(u0)", "u0[-1]", "u0[1:][0]", "u1[0][1]", "e0[0].n"]
        if self.has("dicts"):
            leaves += ["d0['p']", "d0['q']", f"{{0: n, 1: m, 2: i0}}[{self.below(3)}]"]
        if self.has("registers"):
            leaves += ["cute.Int64(r0[1])", "cute.Int64(r1[0])", f"cute.Int64(r0[({self.pick(INTS)}) % 3])"]
        if self.has("static"):
            leaves += ["WIDTH", "TABLE[1]", f"TABLE[{self.below(3)}]", "len(TABLE)", "max(TABLE)"]
        if self.has("widths"):
            leaves += ["cute.Int64(b0)", "cute.Int64(-b0)", "cute.Int64(~b0)", "cute.Int32(b0) % 50"]
        if self.has("floats"):
            leaves += ["int(f0)", "int(-f1)"]
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
            kind = self.pick(NARROW)
            options += [
                lambda: f"cute.Int64({self.pick(['', '-', '~'])}cute.{kind}({one()}))",
                lambda: f"cute.Int64(b0 {self.pick(['+', '-', '*', '//', '>>', '&'])} {self.small()})",
                lambda: f"(({one()}) {self.pick('+-')} cute.Int64(cute.{kind}({one()})))",
                lambda: f"int(b0 {self.pick(['<', '>=', '=='])} {one()})",
                lambda: f"cute.ceil_div({one()}, {self.pick(['4', '3'])})",
                lambda: f"cute.Int32({one()})",
            ]
        if self.has("functions"):
            options += [
                lambda: f"ends({one()})",
                lambda: f"ends({one()}, {one()}, {self.small()}, {one()})",
                lambda: f"work(x0, ({one()}) % 40)",
                lambda: f"scaled(({one()}) % 40, by={self.small()})",
                lambda: f"first({one()}, {one()}, n{self.pick(['', ', default=7']) if self.rarely() else ''})",
            ]
        if self.has("walks"):
            options += [
                lambda: f"sum(({one()}, {one()}))",
                lambda: f"sum([q * {one()} for q in range({1 + self.below(3)})])",
                lambda: f"max([v - {one()} for v in (n, {one()})])",
                lambda: f"sorted((3, {self.small()}, 2))[1]",
                lambda: f"summed(({one()}, {one()}))",
                lambda: f"reduce(lambda p, q: p * 2 - q, ({one()}, {one()}, n))",
            ]
        if self.has("floats"):
            options += [lambda: f"int({self.real(depth)})", lambda: f"int({self.real(depth)} < {self.real(depth)})"]
        return options

    def real(self, depth: int = 1) -> str:
        """A float, a small multiple of a quarter."""
        one = lambda: self.value(max(depth - 1, 0))  # noqa: E731
        return str(
            self.pick(
                [
                    lambda: self.pick(["f0", "f1"]),
                    lambda: f"(f0 {self.pick('+-')} f1)",
                    lambda: f"(({one()}) % 64 * 0.25)",
                    lambda: f"(({one()}) % 99 / 4)",
                    lambda: f"({one()} + {self.pick(['0.5', '1.25', '-2.0'])})",
                    lambda: f"(f0 if {self.condition(0)} else {self.pick(['f1', '1.5', one()])})",
                    lambda: f"{self.pick(['min', 'max'])}(f0, {one()})",
                    lambda: f"(f0 {self.pick(['//', '%'])} {self.pick(['2', '0.75', '-4.0'])})",
                    lambda: "abs(f1)",
                    lambda: f"float({one()})",
                ]
            )()
        )

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
        if self.has("objects", "holders"):
            options += [lambda: f"(x0 {self.pick(['is', 'is not'])} x1)"]
        if self.has("holders"):
            options += [lambda: f"(h0.left {self.pick(['is', 'is not'])} {self.pick(['x0', 'x1', 'h0.right'])})"]
            options += [lambda: f"isinstance({self.pick(['z0', 'h0'])}, {self.pick(['V', 'Narrow', 'H', '(V, H)'])})"]
        if self.has("dunders"):
            options += [lambda: f"({one()} in x0)", lambda: "(x0 < x1)"]
        if self.has("tuples"):
            options += [lambda: f"({one()} {self.pick(['in', 'not in'])} ({one()}, {one()}))"]
        if self.has("static"):
            options += [lambda: f"({one()} in TABLE)", lambda: f"(WIDTH > {self.below(7)})", lambda: "FLAG"]
        if self.has("floats"):
            options += [lambda: f"({self.real(0)} {self.pick(['<', '>=', '=='])} {self.pick(['0.5', one()])})"]
        return str(self.pick(options)())

    # ---------------------------------------------------------------- statements
    def simple(self) -> list[Callable[[], None]]:
        i, e = self.pick(INTS), self.value
        options: list[Callable[[], None]] = [
            lambda: self.line(f"{i} = ({e()}) % 1000"),
            lambda: self.line(f"{i} {self.pick(['+', '-', '^', '|'])}= {e(1)}", f"{i} %= 1009"),
            lambda: self.line(f"{i}, {self.pick(INTS)} = {self.pick(INTS)}, {self.pick(INTS)}"),
            lambda: self.line(f"o[tid, {self.below(4)}] {self.pick(['', '+', '-'])}= {e(1)}"),
            lambda: self.line(
                f"if {self.condition()} and tid == {self.below(4)}:", f"    o[tid, 7] = {e(1)}", "    return"
            ),
            lambda: self.line(f"if (w1 := ({e(1)}) % 100) > {self.below(50)}:", f"    {i} = w1"),
        ]  # fmt: skip
        for feature, statements in (
            ("objects", self.of_objects), ("dunders", self.of_objects), ("holders", self.of_holders),
            ("functions", self.of_functions), ("lists", self.of_lists), ("dicts", self.of_dicts),
            ("registers", self.of_registers), ("tuples", self.of_tuples), ("sequences", self.of_sequences),
            ("floats", self.of_floats), ("static", self.of_static), ("prints", self.of_prints),
        ):  # fmt: skip
            if self.has(feature):
                options += statements(i)
        if self.has("widths"):
            options += [
                lambda: self.line(f"b0 = cute.{self.narrow}({e(1)})"),
                lambda: self.line(f"b0 = cute.{self.narrow}({self.pick('-~')}b0)"),
                lambda: self.line(
                    f"b0 = cute.{self.narrow}(b0 {self.pick(['+', '-', '*', '>>', '//'])} {self.small()})"
                ),
            ]
        if self.has("closures"):
            options += [lambda: self.closure(i)] * 3
        return options

    def of_objects(self, i: str) -> list[Callable[[], None]]:
        x, y, e = self.pick(OBJECTS), self.pick(OBJECTS), self.value
        options = [
            lambda: self.line(f"{x} = {y}"),
            lambda: self.line(f"{x}.n = ({e(1)}) % 500"),
            lambda: self.line(f"{x}.k += ({e(0)}) % 5"),
            lambda: self.line(f"{x}.bump({e(1)})"),
            lambda: self.line(f"{x}.clamp({e(0)}).bump({self.small()})"),
            lambda: self.line(f"{x}.pull({y}).k += 1"),
            lambda: self.line(f"{i} = ({x}.count({e(0)})) % 1000"),
            lambda: self.line(f"{x} = {y} if {self.condition()} else {x}"),
            lambda: self.line(f"{x} = x0.either(x1, {e(0)})"),
            lambda: self.line(f"x0.either(x1, {e(0)}).n = {self.small()}"),
            lambda: self.line("x0, x1 = x1, x0"),
        ]
        if not self.dynamic or self.rarely():
            options += [lambda: self.line(f"{x} = V(({e(1)}) % 100, {self.small()})")] * 2
        return options

    def of_holders(self, i: str) -> list[Callable[[], None]]:
        e, y = self.value, self.pick(OBJECTS)
        return [
            lambda: self.line(f"h0.left = {y}"),
            lambda: self.line(f"h0.left.n = ({e(1)}) % 300"),
            lambda: self.line(f"h0.right.{self.pick(['bump', 'clamp'])}({e(0)})"),
            lambda: self.line(f"h0.turn({e(0)}).k += 1"),
            lambda: self.line(f"h0.set({y})"),
            lambda: self.line("x0 = h0.right", "x0.k += 1"),
            lambda: self.line(f"z0.clamp({e(0)})"),
            lambda: self.line(f"z0.pull({y})"),
            lambda: self.line(f"{i} = h0.left.n + h0.n", f"{i} %= 700"),
        ]

    def of_functions(self, i: str) -> list[Callable[[], None]]:
        x, e = self.pick(OBJECTS), self.value
        return [
            lambda: self.line(f"x0 = pick(x0, x1, {e(0)})"),
            lambda: self.line(f"{x}, {'x1' if x == 'x0' else 'x0'}, {i} = two(x0, x1, ({e(0)}) % 99)"),
            lambda: self.line(f"pick(x0, x1, {e(0)}).n = {self.small()}"),
            lambda: self.line(f"{i} = chosen(lambda q: q + {self.small()}, ({e(1)}) % 50)"),
            lambda: self.line(f"{i} = apply(partial(scaled, by={self.small()}), ({e(1)}) % 50)"),
        ]

    def of_lists(self, i: str) -> list[Callable[[], None]]:
        e = self.value
        options = [
            lambda: self.line(f"l0[{self.pick(['0', '-1'])}] = ({e(1)}) % 50"),
            lambda: self.line(f"l0[0] += ({e(0)}) % 7"),
            lambda: self.line(f"for q in l0:\n    {i} = (q + {i} * 2) % 900"),
        ]
        if not self.dynamic or self.rarely():
            options += [
                lambda: self.line(f"l0.append(({e(1)}) % 50)"),
                lambda: self.line(f"l0 = [({e(0)}) % 20, *l0]" if self.rarely() else f"l0 = [{e(0)}, l0[0]]"),
                lambda: self.line(f"l0.insert({self.below(2)}, {e(0)})"),
                lambda: self.line("l0.reverse()"),
                lambda: self.line(f"l0.extend(({e(0)}, 2))"),
                lambda: self.line(f"l0 += [{e(0)}]"),
                lambda: self.line(f"if len(l0) > 2:\n    {i} = l0.pop()"),
            ]
            options += [lambda: self.line("l1 = l0")] * self.rarely()
        return options

    def of_dicts(self, i: str) -> list[Callable[[], None]]:
        e = self.value
        options = [lambda: self.line(f"{i} = d0['p'] + d0['q']"), lambda: self.line(f"{i} = d0['p'] - {e(0)}")]
        options += [lambda: self.line(f"d0['p'] = ({e(1)}) % 50")] * self.rarely()
        walk = self.pick(["d0.values()", "d0.items()", "d0"])
        item = {"d0.items()": "v0 + len(k0)", "d0.values()": "k0", "d0": "d0[k0]"}[walk]
        names = "k0, v0" if walk == "d0.items()" else "k0"
        options += [lambda: self.line(f"for {names} in {walk}:", f"    {i} = ({i} + {item}) % 800")]
        return options

    def of_registers(self, i: str) -> list[Callable[[], None]]:
        e = self.value
        return [
            lambda: self.line(f"{self.pick(['r0', 'r1'])}[({e(0)}) % 3] = ({e(1)}) % 120"),
            lambda: self.line(f"r0[{self.below(3)}] += 1"),
            lambda: self.line("r0, r1 = r1, r0"),
            lambda: self.line("r1 = r0"),
            lambda: self.line(f"r1 = r0 if {self.condition()} else r1"),
            lambda: (
                self.line(f"{i} = steps(r1, ({e(0)}) % 9)") if self.small_type == "Int64" else self.line("r1[0] = 7")
            ),
        ]

    def of_tuples(self, i: str) -> list[Callable[[], None]]:
        t, e = self.name("t"), self.value
        return [
            lambda: self.line(f"{t} = ({e(1)}, x1, {e(0)})", f"{t}[1].n = {t}[0] % 77", f"{i} = {t}[-1]"),
            lambda: self.line(f"{t}, {i} = ({e(1)}, {i}), {e(0)}", f"{i} += {t}[1]", f"{i} %= 1000"),
            lambda: self.line(f"({t}, _), x1 = (x0, {e(0)}), x1", f"{t}.n = 7", f"{i} = x0.n"),
            lambda: self.line(f"{t} = (x0, x1)", f"for v in {t}:", f"    v.n = (v.n * 2 + {e(0)}) % 300"),
        ]

    def of_sequences(self, i: str) -> list[Callable[[], None]]:
        e = self.value
        return [
            lambda: self.line(f"u0 = (cute.Int64({e(0)}), cute.Int64({e(1)}), cute.Int64({e(0)}))"),
            lambda: self.line(f"u1 = (u0[:2], {e(0)})"),
            lambda: self.line(f"{i} = sum(u0 + (1, {e(0)})) % 600"),
            lambda: self.line(f"p1, p2, {i} = u0", f"{i} = (p1 * 2 - p2 + {i}) % 500"),
            lambda: self.line(f"e0[{self.below(2)}].n = ({e(0)}) % 60"),
            lambda: self.line("for v in e0:\n    v.k = (v.k + 1) % 9"),
            lambda: self.line("for q, v in zip(u0, e0):\n    v.n = (v.n + q) % 90"),
        ]

    def of_floats(self, i: str) -> list[Callable[[], None]]:
        f, e = self.pick(["f0", "f1"]), self.value
        return [
            lambda: self.line(f"{f} = ({self.real(2)}) % 64.0"),
            lambda: self.line(f"w[tid, {self.below(4)}] = {self.real(2)}"),
            lambda: self.line(f"{f} {self.pick(['+', '-'])}= {self.pick([e(0), self.real(0)])}", f"{f} %= 128"),
            lambda: self.line(f"{i} = int({self.real(2)}) % 100"),
        ]

    def of_static(self, i: str) -> list[Callable[[], None]]:
        e = self.value
        return [
            lambda: self.line(f"if cute.const_expr(WIDTH > {self.below(7)}):", f"    {i} = {e(0)}"),
            lambda: self.line(f"if FLAG:\n    {i} = ({e(0)}) % 50\nelse:\n    {i} = WIDTH"),
            lambda: self.line(f"{i} = TABLE[{self.below(3)}] * {e(0)} % 300"),
            lambda: self.line(f"for v in TABLE:\n    {i} = ({i} * v + {e(0)}) % 400"),
            lambda: self.line("assert WIDTH > 0"),
        ]

    def of_prints(self, i: str) -> list[Callable[[], None]]:
        return [
            lambda: self.line(f'print("at", {i})'),
            lambda: self.line(f"if {self.condition()}:", f"    print({self.value(0)})"),
        ]

    def closure(self, i: str) -> None:
        g = self.name("g")
        j = self.pick(INTS)
        body = self.pick(
            [
                [f"return (q + {self.value(1)}) % 300"],
                [f"nonlocal {i}", f"{i} = ({i} + q) % 300", "return q"],
                ["x0.n = (x0.n + q) % 200", "return x0.k"],
                [f"if q > {self.small()}:", f"    return {self.value(0)}", "return q"],
                ["for p in range(q & 3):", f"    if p == {j}:", "        return p", f"return {j} - q"],
                ["def inner(p):", f"    return p * {self.small()} - {j}", "return inner(q) + inner(1)"],
            ]
        )
        if self.indent == 0 or "nonlocal" not in body[0]:
            self.line(f"def {g}(q):", *(f"    {text}" for text in body))
            argument = f"({self.value(0)}) % 40"
            call = f"apply({g}, {argument})" if self.rarely() else f"{g}({argument})"
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
        at = len(self.lines)
        for _ in range(1 + self.below(3)):
            self.statement(depth)
        if len(self.lines) == at:
            self.line("pass")
        self.indent -= 1

    def branch(self, depth: int) -> None:
        self.line(f"if {self.condition()}:")
        self.dynamic += 1
        self.block(depth)
        if self.below(4) == 3:
            self.line(f"elif {self.condition()}:")
            self.block(depth)
        if self.below(2):
            self.line("else:")
            self.block(depth)
        self.dynamic -= 1

    def loop(self, depth: int) -> None:
        i, e = self.name("q"), self.value
        unrolled = [
            f"for {i} in cute.range_constexpr({self.pick(['2', '3', '3, 0, -1'])}):",
        ]
        if self.has("walks"):
            unrolled += [
                f"for {i} in ({e(0)}, {e(0)}, {self.small()}):",
                f"for {i}, p1 in enumerate(({e(0)}, {e(0)}), {self.small()}):",
                f"for {i}, p1 in zip((1, {e(0)}), ({e(0)}, n)):",
                f"for {i} in reversed((1, {e(0)})):",
                f"for {i} in [p * {e(0)} for p in (1, m)]:",
                f"for {i}, (p1, p2) in enumerate([(n, 2), ({e(0)}, 3)]):",
            ]
        bounds = ["3", "m", "a[tid] & 3", "4, 0, -1", "tid, n", "-2, m, 2", f"({e(0)}) % 5", f"0, 6, {self.small()}"]
        rolled = [f"for {i} in range({self.pick(bounds)}):", f"for {i} in cute.range({self.pick(bounds)}):", "while"]
        head = self.pick(unrolled if self.below(3) == 2 else rolled)
        if head == "while":
            self.line(f"{i} = ({self.value(1)}) % 5", f"while {i} > 0:", f"    {i} -= 1")
        else:
            self.line(head)
        dynamic = head not in unrolled
        self.loops, self.dynamic = self.loops + 1, self.dynamic + dynamic
        self.block(depth)
        self.loops, self.dynamic = self.loops - 1, self.dynamic - dynamic
        if self.below(5) == 4:
            self.line("else:")
            self.indent += 1
            self.line(f"{self.pick(INTS)} = ({self.value(1)}) % 1000")
            self.indent -= 1

    # ---------------------------------------------------------------- whole
    def begin(self) -> None:
        """Give each name that the program may speak of its first value."""
        self.line("i0 = n", "i1 = a[tid]", "i2 = 0")
        self.line("x0 = V(n, 2)", "x1 = V(a[tid] % 50, 3)")
        if self.has("holders"):
            self.line("z0 = Narrow(m, 4)", f"h0 = H(x0, {self.pick(['x1', 'x0'])}, n)")
        if self.has("lists"):
            self.line("l0 = [n, a[tid]]")
        if self.has("dicts"):
            self.line("d0 = {'p': m, 'q': tid}")
        if self.has("sequences"):
            self.line(
                "u0 = (n, cute.Int64(tid), cute.Int64(a[tid]))",
                "u1 = ((m, 2), n)",
                "e0 = [x0, x1]" if self.below(2) else "e0 = (x0, x1)",
            )
        if self.has("widths"):
            self.line(f"b0 = cute.{self.narrow}(a[tid])")
        if self.has("floats"):
            self.line("f0 = 0.5", "f1 = n * 0.25")
        if self.has("registers"):
            for r, v in (("r0", 1), ("r1", 2)):
                self.line(f"{r} = cute.make_rmem_tensor(3, cute.{self.small_type})", f"{r}.fill({v})")

    def end(self) -> None:
        """Write what the program's names have come to hold."""
        self.line(*(f"o[tid, {j}] = {i}" for j, i in enumerate(INTS)), "o[tid, 3] = x0.n + x0.k * 1000")
        rest = ["x1.n + x1.k * 1000"]
        if self.has("holders"):
            rest.append("h0.n + h0.left.n * 100 + h0.right.n * 10000 + z0.n + z0.k * 7")
        if self.has("lists"):
            rest.append("l0[0] + l0[-1] * 100 + len(l0) * 10000")
        if self.has("sequences"):
            rest.append("u0[0] + u0[1] * 10 + u0[2] * 100 + e0[0].n")
        if self.has("widths"):
            rest.append("cute.Int64(b0)")
        if self.has("registers"):
            rest.append("cute.Int64(r0[0]) + cute.Int64(r0[1]) * 100 + cute.Int64(r0[2]) * 10000 + cute.Int64(r1[0])")
        self.line(f"o[tid, 4] = {rest[0]}", *([f"o[tid, 5] = {' + '.join(rest[1:])}"] if rest[1:] else []))
        if self.has("floats"):
            self.line("w[tid, 3] = f0 + f1 * 128")

    def source(self) -> str:
        """Return the program."""
        self.begin()
        for _ in range(2 + self.below(self.statements)):
            self.statement(2)
        self.end()
        numbers = {"c0": self.below(9), "c1": 3 + self.below(9), "width": self.small(), "flag": bool(self.below(2))}
        leave = self.pick(["break", "continue", "return s"])
        head = parts.BASE.format(**numbers) + self.kind + parts.METHODS.format(leave=leave, **numbers)
        if self.has("holders"):
            derived = "@cute.struct\nclass Narrow" if self.kind is parts.STRUCT else "class Narrow"
            head += parts.HOLDER.format(**numbers).replace("class Narrow", derived)
        head += parts.FUNCTIONS.format(**numbers)
        return programs.source(head, "\n".join(self.lines), self.pick(["kernel", "kernel", "helper", "branch"]))
