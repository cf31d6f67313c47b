# SPDX-License-Identifier: Apache-2.0
"""Numbers keep one typing rule, which is Numba's, wherever a line stands."""

import itertools
import re

import pytest

from .number_rule import BINARY, NAMES, OF_INTEGERS, UNARY, wrong

SAMPLE = ["-a", "~a", "abs(a)", "a + b", "a - 0", "a // b", "a % b", "-7 // a", "a >> 1", "1 - a", "a == b", "a + N",
          "divmod(a, b)[1]", "min(a, b)"]  # fmt: skip


OF_ONE_SIGN = re.compile(r"a (//|%) b|(divmod|min|max)\(a, b\)")
"""What is Python's of a uint64 beside a signed integer, or refused: Numba's is of float64, or of wrapped bits."""
BESIDE_LITERAL = re.compile(r"-?\d (//|%) a|a (//|%) -?\d|(min|max)\(a, -?3\)")
"""The same of a uint64 alone, beside a number."""
DIFFERENCE = "(a - b) % 7"
"""The same of any two unsigned integers, whose difference is a uint64."""


def lines_for(lines, *names):
    floating = any(n.startswith("float") for n in names)
    mixed = "uint64" in names and any(n.startswith("int") for n in names)
    left_out = [(floating, OF_INTEGERS), (mixed, OF_ONE_SIGN), ("uint64" in names, BESIDE_LITERAL)]
    left_out += [(all(n.startswith("uint") for n in names), re.compile(re.escape(DIFFERENCE)))]
    return [x for x in lines if not any(of and pattern.search(x) for of, pattern in left_out)]


@pytest.mark.parametrize("first, second", [("uint32", "int8"), ("int16", "uint64")])
def test_a_line_means_the_same_in_a_kernel_and_in_functions_of_each_kind(first, second):
    assert not wrong(lines_for(SAMPLE, first, second), first, second, ("helper", "lambda"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_operator_of_one_number(name):
    assert not wrong(lines_for(UNARY, name), name, name)


@pytest.mark.slow
@pytest.mark.parametrize("first, second", list(itertools.product(NAMES, NAMES)))
def test_every_operator_of_two_numbers(first, second):
    assert not wrong(lines_for(BINARY, first, second), first, second)
