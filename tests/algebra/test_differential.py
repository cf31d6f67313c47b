# SPDX-License-Identifier: Apache-2.0
"""Every operation of the algebra: host ints, what a compiled kernel computes, and the simulator, all the same.

Each variant of each case in `cases.py` becomes one statement of a generated kernel. It writes the leaves of the
result and, of a function, its value at the thread's index; its notation is noted while the kernel is traced.
"""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import layout as cl
from numba_cute.layout.int_tuple import text
from numba_cute.seam import CuteError, running, traced
from tests.layout.strategies import Comparing, Dyn, known
from tests.native import compile_here

from ..each import each
from .cases import CASES, HOLE, NAMES, expression, source, variants

THREADS, WIDTH = 32, 24
LONGEST_PROVABLE = {"max_common_layout", "max_common_vector", "right_inverse"}
"""What is asked of these is the longest result found: with run-time leaves less can be proved."""
FUNCTIONS = (cl.Layout, cl.ComposedLayout, cl.Swizzle)


@dataclass(frozen=True)
class Row:
    """One variant: which row of the output it fills, and what the host says."""

    name: str
    variant: str
    code: str
    dynamic: frozenset[int]

    @property
    def id(self) -> str:
        return f"{self.name}, {self.variant}: {self.code}"

    def evaluate(self, leaf: Any) -> Any:
        with running(Comparing()):
            return eval(self.code, dict(NAMES), {f"d{n}": leaf(n) for n in self.dynamic})


def rows_of(names: list[str]) -> list[Row]:
    return [
        Row(name, v, source(case, d), d) for name in names for case in CASES[name] for v, d in variants(case).items()
    ]


NAMES_IN_ORDER = sorted(CASES)
GROUPS = {
    f"{g[0]} to {g[-1]}": rows_of(g) for g in (NAMES_IN_ORDER[i : i + 12] for i in range(0, len(NAMES_IN_ORDER), 12))
}


# ------------------------------------------------------------------ results as numbers and as text


def notation(x: Any) -> str:
    """CuTe's notation, ? for what is known only at run time; True and 1 are told apart."""
    return text(x) if isinstance(x, tuple) else text((x,))


def leaves(x: Any) -> list[Any]:
    """All integers in a result, in order."""
    if isinstance(x, tuple):
        return [leaf for y in x for leaf in leaves(y)]
    if isinstance(x, cl.Layout):
        return leaves((x.shape, x.stride))
    if isinstance(x, cl.ComposedLayout):
        return leaves((x.inner, x.offset, x.outer))
    if isinstance(x, cl.ScaledBasis):
        return [x.value, *x.mode]
    return [] if x is None else [x.bits, x.base, x.shift] if isinstance(x, cl.Swizzle) else [x]


def functions(x: Any) -> list[Any]:
    """The layouts and swizzles in a result."""
    if isinstance(x, FUNCTIONS):
        return [x]
    return [f for y in x for f in functions(y)] if isinstance(x, tuple) else []


def values_at(x: Any, i: Any) -> list[Any]:
    return [leaf for f in functions(x) for leaf in leaves(f(i))]


def domain(x: Any) -> int:
    """For how many of the first indices all functions in a result are defined."""
    return min([THREADS, *(cl.size(f) for f in functions(x) if not isinstance(f, cl.Swizzle))])


traced_as: dict[int, set[str]] = {}
noted_now = ContextVar("noted_now", default=traced_as)
"""What a traced function may change."""


@traced
def put(out: Any, row: int, i: Any, x: Any) -> None:
    """Write a result into row `row` of thread `i`, and note how it is written."""
    noted_now.get().setdefault(row, set()).add(notation(x))
    t = cute.make_tensor(out, cl.make_layout(1 << 30))
    for slot, value in enumerate(leaves(x) + values_at(x, i)):
        t[(row * THREADS + i) * WIDTH + slot] = cute.Int32(value)


def kernel_of(rows: list[Row]) -> tuple[Any, list[int]]:
    """The kernel of these rows, and the arguments that follow the output."""
    numbers = sorted(set().union(*(r.dynamic for r in rows)))
    lines = [f"    put(out, {i}, t, {r.code})" for i, r in enumerate(rows)]
    head = f"def kernel(out{''.join(f', d{n}' for n in numbers)}):\n    t = cuda.threadIdx.x\n"
    space: dict[str, Any] = {**NAMES, "cuda": cuda, "put": put}
    exec(head + "\n".join(lines), space)
    return space["kernel"], numbers


def compare(rows: list[Row], out: np.ndarray, simulated: bool = False) -> None:
    """What the kernel wrote and noted against the host. simulated: the front end noted run-time
    values as such, and the simulator as numbers."""
    wrong = []
    for i, row in enumerate(rows):
        expected = row.evaluate(Dyn)
        noted = {notation(expected)} | ({notation(known(expected))} if simulated else set())
        if traced_as[i] != noted:
            wrong.append(f"{row.id}: noted {traced_as[i]}, the host {noted!r}")
        numbers = leaves(known(expected))
        for t in range(THREADS):
            at_t = [int(x) for x in values_at(known(expected), t)] if t < domain(known(expected)) else []
            want = [int(x) for x in numbers] + at_t
            got = out[i, t, : len(want)].tolist()
            if got != want:
                wrong.append(f"{row.id}: thread {t} wrote {got}, the host {want}")
                break
    assert not wrong, "\n".join(wrong)


# ------------------------------------------------------------------ tests


def test_every_operation_and_method_is_covered():
    classes = [cl.Layout, cl.ComposedLayout, cl.ScaledBasis, cl.Swizzle]
    assert set(CASES) == set(cl.__all__) - {"IntTuple"}, "IntTuple is an annotation"
    for c in classes:
        methods = [n for n, m in vars(c).items() if inspect.isfunction(m) and not n.startswith("_")]
        unused = [n for n in methods if not any(n in case for case in CASES[c.__name__])]
        assert not unused, f"{c.__name__}: no case calls {unused}"


def test_every_operation_meets_a_run_time_leaf():
    static_alone = {name for name, cases in CASES.items() if not any(HOLE.search(expression(c)) for c in cases)}
    assert static_alone == {"is_static", "layout_from_str", "make_layout_tv", "make_swizzle"}


@each("row", [r for rows in GROUPS.values() for r in rows if r.dynamic], ids=lambda r: r.id)
def test_symbolic_leaves_give_the_same_function_as_ints(row):
    plain, symbolic = row.evaluate(int), known(row.evaluate(Dyn))
    if not functions(plain):
        assert symbolic == plain or row.name in LONGEST_PROVABLE and symbolic < plain
    n = domain(symbolic)
    assert [values_at(symbolic, i) for i in range(n)] == [values_at(plain, i) for i in range(n)]
    sizes, plain_sizes = [
        [cl.size(f) for f in functions(x) if not isinstance(f, cl.Swizzle)] for x in (symbolic, plain)
    ]
    assert sizes == plain_sizes or row.name in LONGEST_PROVABLE and sizes <= plain_sizes


@each("row", [r for rows in GROUPS.values() for r in rows if r.variant == "run-time"], ids=lambda r: r.id)
def test_numpy_integers_are_taken_for_ints(row):
    if "cl.Layout(" in row.code:
        with pytest.raises(CuteError, match="build layouts with make_layout"):
            row.evaluate(np.int32)
        return
    plain, given = row.evaluate(int), row.evaluate(np.int32)
    assert notation(given) == notation(plain)
    of_layouts = [*leaves(tuple(functions(given))), *values_at(given, np.int64(1))]
    assert of_layouts == [*leaves(tuple(functions(plain))), *values_at(plain, 1)]
    assert {type(x) for x in of_layouts} <= {int}
    assert leaves(given) == leaves(plain)


@pytest.mark.parametrize("group", GROUPS)
def test_compiled_code_run_on_this_machine(group):
    rows = GROUPS[group]
    traced_as.clear()
    kernel, numbers = kernel_of(rows)
    out = np.full((len(rows), THREADS, WIDTH), -(2**31) + 1, np.int32)
    compile_here(kernel, len(numbers))(out, THREADS, *numbers)
    compare(rows, out)


def ways():
    """(way to run, group): the assembler takes by default one group, whose code others run on this machine."""
    for group in GROUPS:
        yield "simulator", group
        quick = group == next(iter(GROUPS))
        yield pytest.param("assembler", group, marks=() if quick else pytest.mark.slow)
        yield pytest.param("gpu", group, marks=pytest.mark.gpu)


@pytest.mark.parametrize("run, group", list(ways()), indirect=["run"])
def test_kernel(run, request, group):
    """The same in the simulator, through the assembler and on the GPU."""
    rows = GROUPS[group]
    traced_as.clear()
    kernel, numbers = kernel_of(rows)
    out = np.zeros((len(rows), THREADS, WIDTH), np.int32)
    flat = out.reshape(-1)

    def check():
        compare(rows, out, simulated=run.name == "simulator")

    run(cuda.jit(kernel), 1, THREADS, (flat, *map(np.int32, numbers)), outputs=[flat], check=check)


WRAPPED = sorted(n for n in CASES if hasattr(cute, n) and getattr(cute, n) is not getattr(cl, n))
PARTS = {"local_tile", "local_partition"}
"""Of a layout, the package's functions give the part alone; the algebra's give its offset too."""


@pytest.mark.parametrize("name", WRAPPED)
def test_the_package_gives_of_a_layout_what_the_algebra_gives(name):
    rows = [r for r in rows_of([name]) if r.variant == "static"]
    for row in rows:
        call = f"cl.{name}("
        got = eval(row.code.replace(call, f"cute.{name}(", 1), {**NAMES, "cute": cute})
        want = row.evaluate(int)
        if name in PARTS:
            assert got == want[0] or "make_composed_layout" in row.code  # its part keeps the whole offset inside
            assert cl.size(got) == cl.size(want[0])
        else:
            assert got == want


def test_every_operation_of_the_algebra_is_public_in_the_package():
    assert {n for n in CASES if not hasattr(cute, n)} == {"add_coord", "as_coord", "is_basis"}
