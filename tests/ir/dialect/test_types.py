# SPDX-License-Identifier: Apache-2.0
"""Types and attributes of the published dialect are written and read to the letter; others are refused in words."""

import random

import pytest

pytest.importorskip("xdsl")

from numba_cute.ir.dialect import modules  # noqa: E402
from numba_cute.ir.dialect.attributes import TYPES  # noqa: E402
from numba_cute.ir.dialect.checked import checked  # noqa: E402
from numba_cute.ir.dialect.leaves import Dynamic, combined  # noqa: E402
from numba_cute.ir.dialect.notation import Malformed, read, write  # noqa: E402
from numba_cute.ir.dialect.ratios import written  # noqa: E402
from numba_cute.seam import CuteError  # noqa: E402

WRITTEN = """
int_tuple 7
int_tuple -7
int_tuple ((3,?),(?{i64},()))
int_tuple ?{i64 div=16}
shape (?{div=8},5)
stride (1,?{i64})
stride (1@0,(2@0@1,?@1@1))
stride 0
coord (_,(3,?))
coord _
tile [(4,2):(2,1);_;[8:1;_]]
tile _
tile 4:1
layout 6:1
layout (6):(1)
layout ((2,?),1):((1,?{div=4}),0)
layout ():()
swizzle S<3,4,3>
swizzle S<0,0,0>
swizzle S<2,0,-5>
composed_layout S<3,4,3> o 0 o (8,64):(64,1)
composed_layout (4,5):(1,4) o (1,?) o (2,3):(1@0,1@1)
composed_layout S<0,4,3> o 8 o 4:1
"""

REFUSED = """
int_tuple (1,2 | expected ')'
int_tuple 1,2 | follows the end
int_tuple _ | expected an integer
int_tuple ?{i7} | not a property
int_tuple ?{div=0} | not a property
int_tuple 9223372036854775808 | does not fit 64 bits
coord 1@0 | follows the end
stride 1@ | expected an integer
stride (1,1@0) | mix integers
stride (1@0,1@1@0) | a part of it
stride 1/2@0 | fraction
layout (2,3):(1,2,3) | no stride for each extent
layout (2,0):(1,2) | not positive
layout (2,x):(1,2) | not defined
tile [4:1 | expected ']'
tile [(2,3):(1,1@0)] | mix integers
swizzle S<3,4> | expected ','
swizzle S<3,4,2> | not a swizzle of 32 bits
swizzle S<8,20,8> | not a swizzle of 32 bits
composed_layout S<0,4,3> o 0 o 4:1 | is its outer layout
composed_layout S<1,4,3> o 0 o (4,2):(1@0,1@1) | a swizzle takes an index
composed_layout (4,5):(1,4) o 1 o (2,3):(1@0,1@1) | cannot be added
composed_layout (4,5):(1,4) o 0 o (2,3):(1@0@0,1@1) | not nested as the inner shape
"""


def pairs(text):
    return [tuple(line.split(" ", 1)) for line in text.strip().splitlines()]


@pytest.mark.parametrize("kind, text", pairs(WRITTEN))
def test_value_is_written_as_it_is_read(kind, text):
    assert write(kind, checked(kind, read(kind, text))) == text
    source = f'func.func @f(%a: !cute.{kind}<"{text}">) attributes {{b = #cute.{kind}<"{text}">}} {{\n  return\n}}'
    found = modules.read(source)
    assert not found.problems
    printed = modules.printed(found.op)
    assert f'%arg0: !cute.{kind}<"{text}">' in printed
    assert f'b = #cute.{kind}<"{text}">' in printed


@pytest.mark.parametrize("kind, rest", pairs(REFUSED))
def test_text_that_is_no_value_is_refused_at_its_place_in_words(kind, rest):
    text, words = rest.split(" | ")
    found = modules.read(f'func.func @g() {{\n  return\n}}\nfunc.func @f(%a: !cute.{kind}<"{text}">) {{\n  return\n}}')
    assert [d.line for d in found.problems] == [4]
    assert words in found.problems[0].message


def test_spaces_and_the_short_layout_are_read():
    assert write("int_tuple", read("int_tuple", " ( 1 , ( ?{i64} , 2 ) ) ")) == "(1,(?{i64},2))"
    assert write("layout", read("layout", "(2,(3,1))")) == "(2,(3,1)):(1,(2,0))"


def test_any_text_is_read_or_refused():
    pick = random.Random(7)
    for _ in range(3000):
        text = "".join(pick.choice("()[],;:?_@/<>oSx1234567890-{}idv= ") for _ in range(pick.randrange(12)))
        for kind in TYPES:
            try:
                value = checked(kind, read(kind, text))
            except CuteError:
                continue
            assert write(kind, checked(kind, read(kind, write(kind, value)))) == write(kind, value)


def test_deep_nesting_is_refused():
    with pytest.raises(Malformed, match="too deep"):
        read("shape", "(" * 2000)


@pytest.mark.parametrize(
    "op, a, b, value",
    [("add", 2**31 - 1, 1, -(2**31)), ("floordiv", -7, 2, -3), ("mod", -7, 2, -1), ("ceil", 7, 2, 4), ("min", 3, 5, 3)],
)
def test_run_time_integers_compute_as_machines_do(op, a, b, value):
    assert combined(op, Dynamic(32, 1, a), b) == Dynamic(32, combined(op, Dynamic(32), b).divisor, value)


def test_width_of_a_result_is_the_wider_of_the_two():
    assert str(Dynamic(32) + Dynamic(64)) == "?{i64}"
    assert str(Dynamic(32) * (1 << 40)).startswith("?{i64")
    assert Dynamic(32) * 0 == 0
    assert Dynamic(64) * 1 == Dynamic(64)
    with pytest.raises(CuteError, match="division by zero"):
        Dynamic(32) // 0


HALF = written(1, 2)


def test_fractions_are_added_and_multiplied():
    assert HALF + HALF == 1 and HALF * 4 == 2
    assert (str(3 * HALF), str(-HALF)) == ("3/2", "-1/2")


@pytest.mark.parametrize("made", [lambda: HALF // 2, lambda: 3 % HALF, lambda: abs(HALF), lambda: HALF < 1])
def test_fractions_are_neither_divided_nor_compared(made):
    with pytest.raises(CuteError, match="the stride 1/2 is not divided or compared"):
        made()
