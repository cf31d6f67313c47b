# SPDX-License-Identifier: Apache-2.0
"""Numbers keep one typing rule, which is Numba's, wherever a line stands."""

import itertools

import pytest

from .number_rule import BINARY, NAMES, OF_INTEGERS, UNARY, wrong

SAMPLE = ["-a", "~a", "abs(a)", "a + b", "a - 0", "a // b", "a % b", "-7 // a", "a >> 1", "1 - a", "a == b", "a + N",
          "divmod(a, b)[1]", "min(a, b)"]  # fmt: skip


def lines_for(lines, *names):
    floating = any(n.startswith("float") for n in names)
    return [line for line in lines if not (floating and OF_INTEGERS.search(line))]


@pytest.mark.parametrize("first, second", [("uint32", "int8"), ("int16", "uint64")])
def test_a_line_means_the_same_in_a_kernel_and_in_functions_of_each_kind(first, second):
    lines = [line for line in SAMPLE if (first, line) != ("int16", "divmod(a, b)[1]")]
    assert not wrong(lines, first, second, ("helper", "lambda"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_operator_of_one_number(name):
    assert not wrong(lines_for(UNARY, name), name, name)


@pytest.mark.slow
@pytest.mark.parametrize("first, second", list(itertools.product(NAMES, NAMES)))
def test_every_operator_of_two_numbers(first, second):
    assert not wrong(lines_for(BINARY, first, second), first, second)
