# SPDX-License-Identifier: Apache-2.0
"""Modules made at random: each prints, parses back to the same, verifies, and is the same kernel afterwards."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import numba_cute as cute
from numba_cute.runtime import from_dlpack

pytest.importorskip("xdsl")

from numba_cute import ir  # noqa: E402
from numba_cute.compiler.inspection.inference import description_of_argument  # noqa: E402
from numba_cute.ir.library.types import type_of  # noqa: E402

SIZE = 64
LAYOUTS = ["(8,4), (1,8)", "(4,8), (8,1)", "((2,4),4), ((1,8),2)", "16, 2", "(2,2,2), (4,2,1)"]
UNARY = [
    "numba_cute.coalesce",
    "numba_cute.filter",
    "numba_cute.right_inverse",
    "numba_cute.flatten",
    "numba_cute.left_inverse",
]
BINARY = [
    "numba_cute.composition", "numba_cute.logical_divide", "numba_cute.zipped_divide", "numba_cute.logical_product",
    "numba_cute.blocked_product",
    "numba_cute.raked_product", "numba_cute.complement",
]  # fmt: skip
ASKED = ["numba_cute.size", "numba_cute.cosize", "numba_cute.rank", "numba_cute.depth"]
ARITH = ["arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.xori", "arith.minsi"]


class Text:
    """A kernel's body that grows: its lines, and what it has of each kind."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.layouts: list[str] = []
        self.numbers = ["%n", "%i"]
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def module(self) -> str:
        out = type_of(description_of_argument(from_dlpack(np.zeros(SIZE, np.int32))))
        body = "\n".join(f"    {line}" for line in self.lines)
        return f"""builtin.module attributes {{numba_cute.target = "sm_90a"}} {{
  func.func @k(%out: {out}, %n: i32, %i: i32) attributes {{numba_cute.kernel}} {{
{body}
    func.return
  }}
}}
"""

    def takes(self, line: str) -> bool:
        """Add a line, unless the module does not take it."""
        self.lines.append(line)
        try:
            ir.parse(self.module())
        except cute.CuteError:
            self.lines.pop()
            return False
        return True


@st.composite
def texts(draw):
    text = Text()
    for lay in draw(st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=2)):
        name = text.fresh()
        text.lines.append(f"{name} = numba_cute.static : !numba_cute.layout<{lay}>")
        text.layouts.append(name)
    dynamic = text.fresh()
    text.lines.append(f"{dynamic} = numba_cute.make_layout (%n, 4), stride = (4, 1)")
    text.layouts.append(dynamic)
    for kind in draw(
        st.lists(st.sampled_from(["unary", "binary", "asked", "index", "arith", "loop", "if"]), max_size=8)
    ):
        step(draw, text, kind)
    for slot, number in enumerate(text.numbers[-3:]):
        text.lines.append(f"numba_cute.store_element %out, {slot}, {number}")
    return text.module()


def step(draw, text: Text, kind: str) -> None:
    pick = lambda options: draw(st.sampled_from(options))  # noqa: E731
    new = text.fresh()
    if (
        kind == "unary"
        and text.takes(f"{new} = {pick(UNARY)} {pick(text.layouts)}")
        or kind == "binary"
        and text.takes(f"{new} = {pick(BINARY)} {pick(text.layouts)}, {pick(text.layouts)}")
    ):
        text.layouts.append(new)
    elif kind == "asked":
        text.takes(f"{new} = {pick(ASKED)} {pick(text.layouts)}")
    elif kind == "index":
        if text.takes(f"{new} = numba_cute.crd2idx {pick(text.numbers)}, {pick(text.layouts)} : i32"):
            text.numbers.append(new)
    elif kind == "arith":
        text.lines.append(f"{new} = {pick(ARITH)} {pick(text.numbers)}, {pick(text.numbers)} : i32")
        text.numbers.append(new)
    elif kind == "loop":
        a, b = pick(text.numbers), pick(text.numbers)
        low, high, one = text.fresh(), text.fresh(), text.fresh()
        text.lines += [
            f"{low} = arith.constant 0 : i32", f"{high} = arith.constant 3 : i32", f"{one} = arith.constant 1 : i32",
            f"{new} = scf.for %k{new[1:]} = {low} to {high} step {one} iter_args(%a{new[1:]} = {a}) -> (i32) : i32 {{",
            f"  %s{new[1:]} = {pick(ARITH)} %a{new[1:]}, {b} : i32",
            f"  %t{new[1:]} = arith.addi %s{new[1:]}, %k{new[1:]} : i32",
            f"  scf.yield %t{new[1:]} : i32",
            "}",
        ]  # fmt: skip
        text.numbers.append(new)
    elif kind == "if":
        condition = text.fresh()
        a, b = pick(text.numbers), pick(text.numbers)
        text.lines += [
            f"{condition} = arith.cmpi slt, {a}, {b} : i32",
            f"{new} = scf.if {condition} -> (i32) {{",
            f"  scf.yield {a} : i32", "} else {", f"  scf.yield {b} : i32", "}",
        ]  # fmt: skip
        text.numbers.append(new)


def kept(module) -> list[int]:
    array = np.zeros(SIZE, np.int32)
    cute.simulate(ir.to_kernel(module))[1, 1](from_dlpack(array), np.int32(8), np.int32(5))
    return array.tolist()


def check(source: str) -> None:
    module = ir.parse(source)
    printed = str(module)
    again = ir.parse(printed)
    again.verify()
    assert str(again) == printed
    assert kept(again) == kept(module)


SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True, "database": None}


@settings(max_examples=12, **SETTINGS)
@given(texts())
def test_a_random_module_prints_parses_and_is_the_same_kernel(source):
    check(source)


@pytest.mark.slow
@settings(max_examples=300, **SETTINGS)
@given(texts())
def test_many_random_modules_print_parse_and_are_the_same_kernels(source):
    check(source)
