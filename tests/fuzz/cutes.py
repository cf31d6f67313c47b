# SPDX-License-Identifier: Apache-2.0
"""Random kernels with what this library adds: layouts, coordinates, tensors, register tensors and their vectors,
structs, pipelines' states, unrolled loops, static conditions and device functions, amid plain Python of all kinds."""

from __future__ import annotations

from collections.abc import Callable

from .plain import INTS, Writer

HEADER = """
import numba_cute as cute
from numba_cute import Int32, pipeline

SHAPE = (4, 2)
LS = cute.make_layout(SHAPE)
LR = cute.make_layout((4, 2), stride=(2, 1))
LN = cute.make_layout(((2, 2), 4), stride=((1, 8), 2))


@cute.struct
class Counter:
    n: Int32
    steps: Int32 = 0

    def bump(self, by):
        while by > 4:
            by -= 4
            self.steps += 1
        self.n += by
        return self.n

    @property
    def total(self):
        return self.n + self.steps


@cuda.jit(device=True)
def device(x, lay):
    if x > {g0}:
        return lay(x % cute.size(lay))
    t = 0
    for i in cute.range_constexpr({g1}):
        if x == i:
            break
        t += lay(i % cute.size(lay))
    return t


@cuda.jit(device=True)
def drive(state, counter, times):
    for i in range(times):
        if i == 2:
            counter.bump(i)
            continue
        state.advance()
        if counter.n > 40:
            return counter.n - i
    return state.index


@cuda.jit(device=True)
def pair(x, lay, mode=0):
    if cute.const_expr(mode == 0):
        return x % 4, lay(x % 8)
    return x % 2, lay(x % 4)
"""


class CuteWriter(Writer):
    """Kernels whose lines are this library's as often as Python's."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.static: list[str] = []  # indices of the unrolled loops around
        self.layouts = ["LS", "LR", "LN", "LD", "LV"]

    # ---------------------------------------------------------------- expressions
    def static_int(self) -> str:
        """An int that is static in a kernel."""
        options = [
            self.constant(), "cute.size(LS)", "LS.shape[0]", "cute.size(LN, mode=[0])", "cute.cosize(LR)",
            "cute.rank(LN)", "cute.const_expr(G0 + 1)", "cute.depth(LN)", "LR(3)", "cute.size(t, mode=[1])", "SHAPE[1]",
            "cute.ceil_div(G0 + 4, 3)", "LN.stride[1]", "len(SHAPE)",
        ]  # fmt: skip
        return self.pick([*options, *self.static * 4])

    def compound(self, depth: int) -> list[Callable[[], str]]:
        own: list[Callable[[], str]] = [
            self.static_int,
            self.of_vector,
            lambda: self.of_layout(depth),
            lambda: self.of_tensor(depth),
            lambda: self.of_object(depth),
        ]
        return [*super().compound(depth), *own * 4]

    def of_layout(self, depth: int) -> str:
        lay, flat = self.pick(self.layouts), self.pick(["LS", "LR", "LD", "LV"])
        i = f"({self.integer(depth)})"
        return self.pick(
            [
                f"{lay}({i} % cute.size({lay}))",
                f"{flat}(({i} % 4, {self.masked(0)} % 2))",
                f"LN((({i} % 2, {self.static_int()} % 2), {self.masked(0)} % 4))",
                f"cute.crd2idx(({i} % 4, {self.static_int()} % 2), {flat})",
                f"cute.idx2crd({i} % 8, SHAPE)[{self.below(2)}]",
                f"cute.ceil_div({i} & 63, {self.pick(['3', 'G1', '4'])})",
                f"cute.size({lay})",
                f"cute.logical_divide({self.pick(['LS', 'LR'])}, (2, 2))(({i} % 4, {self.static_int()} % 2))",
                f"cute.make_layout(({i} % 3 + 1, 2))({self.masked(0)} % 2)",
                f"cute.make_coord({i}, {self.static_int()})[{self.below(2)}]",
                f"cute.composition(LS, cute.make_layout(4, stride=2))({i} % 4)",
                f"cute.right_inverse(LR)({i} % 8)",
                f"cute.slice_(LS, (None, {i} % 2))({self.static_int()} % 4)",
            ]
        )

    def of_tensor(self, depth: int) -> str:
        i = f"({self.integer(depth)})"
        return self.pick(
            [
                f"t[{i} % 8, {self.static_int()} % 4]",
                f"t[{i} % 32]",
                f"t[None, {i} % 4][{self.static_int()} % 8]",
                f"cute.local_tile(t, (4, 2), ({i} % 2, {self.masked(0)} % 2))[{i} % 4, {self.static_int()} % 2]",
                f"regs[{self.static_int()} % 4]",
                f"regs[{i} % 4]",
                f"cute.zipped_divide(t, (2, 2))[({i} % 4, {self.static_int()} % 8)]",
                f"t.layout({i} % 32)",
                f"view[{i} % 2, {self.static_int()} % 2]",
            ]
        )

    def of_object(self, depth: int) -> str:
        return self.pick(
            [
                "state.index", "state.phase", "state.count", "counter.n", "counter.total", "counter.steps",
                f"counter.bump({self.masked(0)})", f"device({self.integer(depth)} & 15, {self.pick(self.layouts)})",
                "state.stages", f"drive(state, counter, {self.masked(0)} % 4)",
                f"pair({self.masked(0)}, {self.pick(['LS', 'LR', 'LD'])})[{self.below(2)}]",
                f"pair({self.masked(0)}, LS, {self.below(2)})[1]",
                "kind", "LS.shape[kind % 2]",
            ]
        )  # fmt: skip

    def of_vector(self) -> str:
        v = self.vector()
        return self.pick(
            [
                f"{v}[{self.static_int()} % 4]",
                f"{v}.reduce(cute.ReductionOp.ADD, 0, 0)",
                f"{v}.reduce(cute.ReductionOp.MAX, {self.small()}, 0)",
                f"cute.where({v} > {self.small()}, {v}, {v} + 1)[{self.below(4)}]",
            ]
        )

    def vector(self) -> str:
        """A vector of four Int32."""
        return self.pick(
            ["regs.load()", f"(regs.load() + {self.masked(0)})", f"(regs.load() * {self.static_int()})",
             "(regs.load() & 15)", f"cute.full(4, {self.masked(0)}, Int32)", "(regs.load() // 3)"]
        )  # fmt: skip

    # ---------------------------------------------------------------- statements
    def simple(self) -> list[Callable[[], object]]:
        own = [self.set_register, self.set_view, self.set_vector, self.advance, self.set_field, self.relayout,
               self.static_branch, self.coordinate, self.subtensor, self.fill, self.restatic, self.rebuilt,
               self.carried, self.take_vector, self.closed, self.list_mode]  # fmt: skip
        return [*super().simple(), *own]

    def nested(self) -> list[Callable[[int], object]]:
        return [self.unrolled, self.unrolled, self.static_if]

    def set_register(self) -> None:
        at = self.pick([f"{self.static_int()} % 4", f"({self.integer(1)}) % 4"])
        self.line(f"regs[{at}] = {self.masked(1)}")

    def set_view(self) -> None:
        """A store through a view of the registers, which only others read."""
        v = self.name("view")
        self.line(f"{v} = cute.make_tensor(regs.iterator, cute.make_layout((2, 2)))")
        self.line(f"{self.pick(['view', v])}[{self.index(2)}, {self.static_int()} % 2] = {self.masked(1)}")

    def set_vector(self) -> None:
        self.line(f"regs.store({self.vector()} & 63)")

    def fill(self) -> None:
        self.line(f"regs.fill({self.masked(0)})")

    def advance(self) -> None:
        self.line(self.pick(["state.advance()", "state.advance()", "state = state.clone()"]))

    def set_field(self) -> None:
        self.line(self.pick([f"counter.n = {self.masked(1)}", f"counter.bump({self.masked(1)})", "counter.steps += 1"]))

    def relayout(self) -> None:
        """A layout that differs from path to path."""
        self.line(f"if {self.condition(1)}:")
        self.line(f"    LV = cute.make_layout((4, 2), stride=({self.pick(['2', '1', 'G1', 'n'])}, 1))")

    def coordinate(self) -> None:
        c = self.name("c")
        self.line(f"{c} = ({self.integer(1)} % 4, {self.static_int()} % 2)")
        if self.below(2):
            self.line(f"if {self.condition(1)}:")
            self.line(f"    {c} = ({self.static_int()} % 4, {self.masked(0)} % 2)")
        self.line(f"{self.pick(INTS)} = {self.pick(['LS', 'LR', 'LV'])}({c}) + {c}[{self.below(2)}]")

    def subtensor(self) -> None:
        s = self.name("s")
        self.line(f"{s} = t[None, {self.integer(1)} % 4]")
        self.line(f"{self.pick(INTS)} = {s}[{self.index(8)}] + {s}[{self.static_int()} % 8]")

    def restatic(self) -> None:
        """A static int that is another on another path, or the same on all."""
        k = self.name("k")
        self.line(f"{k} = {self.static_int()}")
        self.line(f"if {self.pick([self.condition(1), f'cute.const_expr({self.static_int()} > 2)'])}:")
        self.line(f"    {k} = {self.pick([k, k + ' + 1', self.static_int(), k + ' + 0'])}")
        self.line(f"{self.pick(INTS)} = LS({k} % 8) + t[{k} % 8, {k} % 4] + regs[{k} % 4]")

    def rebuilt(self) -> None:
        """An offset and a coordinate that a loop carries."""
        at, i = self.name("at"), self.name("i")
        self.line(f"{at} = {self.static_int()} % 4")
        self.line(f"for {i} in {self.pick(['range(3)', 'range(m)', 'cute.range_constexpr(3)'])}:")
        self.line(f"    {self.pick(INTS)} = t[{at}, {i} % 4]")
        self.line(f"    {at} = {self.pick([f'({at} + 1) % 4', f'({at} + {i}) % 4', f'LR({at}) % 4'])}")
        self.line(f"{self.pick(INTS)} = {at}")

    def carried(self) -> None:
        """A tensor or layout that a loop changes."""
        x, i = self.name("x"), self.name("i")
        self.line(f"{x} = t[None, {self.index(4)}]")
        self.line(f"for {i} in {self.pick(['range(2)', 'range(n & 3)', 'cute.range_constexpr(2)'])}:")
        self.line(f"    {self.pick(INTS)} = {x}[{i}] + {x}[7]")
        self.line(f"    {x} = t[None, {self.pick([i, f'({i} + 1) % 4', '3 - ' + i])}]")
        self.line(f"{self.pick(INTS)} = {x}[{self.static_int()} % 8]")

    def take_vector(self) -> None:
        """A vector in a variable, which a branch or a loop changes."""
        x = self.name("x")
        self.line(f"{x} = {self.vector()}")
        head = self.pick([f"if {self.condition(1)}:", "for _ in range(2):", "for _ in cute.range_constexpr(2):"])
        self.line(head)
        self.line(f"    {x} = {self.pick([self.vector(), f'({x} + {self.small()}) & 63'])}")
        self.line(f"{self.pick(INTS)} = {x}[{self.static_int()} % 4] & 255")

    def closed(self) -> None:
        """A closure over a layout, which calls it."""
        f = self.name("inner")
        self.line(f"def {f}(x):")
        self.line(f"    return {self.pick(self.layouts)}(x % 8) + {self.static_int()}")
        self.line(f"{self.pick(INTS)} = {f}({self.masked(0)})")

    def list_mode(self) -> None:
        self.line(f"{self.pick(INTS)} = cute.size(LN, mode=[{self.below(2)}]) + cute.size(t, mode=[{self.below(2)}])")

    def static_branch(self) -> None:
        self.line(f"if cute.const_expr({self.static_int()} > {self.small()}):")
        self.line(f"    {self.pick(INTS)} = {self.masked(0)}")

    def static_if(self, depth: int) -> None:
        self.line(f"if cute.const_expr({self.static_int()} % 2 == {self.below(2)}):")
        self.block(2, depth)
        if self.below(2):
            self.line("else:")
            self.block(2, depth)

    def unrolled(self, depth: int) -> None:
        i = self.name("u")
        bounds = self.pick(
            ["3", "1, 3", "cute.size(LS, mode=[1])", "0, 4, 2", "C1", "cute.rank(LS)", "2, 0, -1", "0", "G1 % 4",
             "cute.size(t, mode=[1])", "len(SHAPE)"]
        )  # fmt: skip
        self.line(f"for {i} in cute.range_constexpr({bounds}):")
        self.static.append(i)
        self.body(i, depth, "unrolled")
        self.static.pop()
        if self.below(4) == 3:
            self.line("else:")
            self.block(1, 0)

    # ---------------------------------------------------------------- whole
    def parameters(self) -> str:
        return "o, r, a, n, m, t"

    def prologue(self) -> None:
        super().prologue()
        self.line("kind = 1")
        self.line("LD = cute.make_layout((4, 2), stride=(n, 1))")
        self.line(f"LV = {self.pick(['LS', 'cute.make_layout((4, 2), stride=(1, m))', 'LR'])}")
        self.line("regs = cute.make_rmem_tensor(4, Int32)")
        self.line("regs.fill(1)")
        self.line("view = cute.make_tensor(regs.iterator, cute.make_layout((2, 2)))")
        self.line(f"counter = Counter({self.pick(['0', 'n', 'G0'])})")
        kind = self.pick(["Producer", "Consumer"])
        self.line(
            f"state = pipeline.make_pipeline_state(pipeline.PipelineUserType.{kind}, {self.pick(['3', '1', 'C1'])})"
        )

    def header(self) -> str:
        head, make = super().header().split("\n\ndef make(")
        g = {f"g{i}": self.pick([1, 2, 3, 4]) for i in range(2)}
        return head + HEADER.format(**g) + "\n\ndef make(" + make

    def epilogue(self) -> None:
        self.line("for i in cute.range_constexpr(4):")
        self.line("    v3 = v3 * 3 + regs[i]")
        self.line("o[tid, 4] = state.count * 100 + state.index * 10 + state.phase + counter.total * 1000")
        super().epilogue()
