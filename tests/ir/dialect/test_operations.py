# SPDX-License-Identifier: Apache-2.0
"""Each operation of the published dialect is read, verified and printed to the letter, in both forms; wrong ones are
refused at their line."""

import re

import pytest

pytest.importorskip("xdsl")

from numba_cute.ir.dialect import modules  # noqa: E402
from numba_cute.ir.dialect.definitions import DEFINITIONS  # noqa: E402
from numba_cute.ir.dialect.operations import OPERATIONS  # noqa: E402
from tests.ir.dialect.written import OPERATIONS as WRITTEN, WRONG, function, rows  # noqa: E402

CASES = rows(WRITTEN)
NAMES = [re.search(r"cute\.(\w+)", row[1])[1] for row in CASES]


def good(source: str):
    found = modules.read(source)
    assert not found.problems, (found.problems, source)
    return found.op


def test_every_operation_is_written_here():
    assert set(NAMES) == set(DEFINITIONS) == set(OPERATIONS)
    assert len(DEFINITIONS) == 63


@pytest.mark.parametrize("row", CASES, ids=NAMES)
def test_operation_prints_as_it_is_written_and_reads_again(row):
    op = good(function(*row))
    printed = modules.printed(op)
    wanted = re.sub(r"^(%\w+)(, %\w+)* = ", "", row[1])
    line = next(text for text in printed.splitlines() if "cute." in text and "func.func" not in text)
    shown = re.sub(r"^%[\w:]+ = ", "", line.strip())
    assert re.sub(r"%arg(\d)", r"%\1", shown) == wanted
    assert modules.printed(good(printed)) == printed
    assert modules.printed(good(modules.printed(op, generic=True))) == printed


@pytest.mark.parametrize("row", [r for r in CASES if "->" in r[1] and "make_" not in r[1]], ids=lambda r: r[1][:40])
def test_another_result_type_is_refused_with_the_one_that_is_inferred(row):
    head, arrow, _ = row[1].rpartition("-> ")
    if row[1].endswith("i1"):
        return
    found = modules.read(function(row[0], f'{head}{arrow}!cute.shape<"(77,77)">', '!cute.shape<"(77,77)">'))
    assert [d.line for d in found.problems] == [2] * len(found.problems) != []
    assert "failed to infer returned types" in found.problems[-1].message or "must be" in found.problems[0].message


@pytest.mark.parametrize("row", rows(WRONG), ids=lambda r: r[2])
def test_wrong_operation_is_refused_at_its_line_in_words(row):
    types, line, words = row
    found = modules.read(function(types, line))
    assert found.problems[0].line == 2
    assert words in found.problems[0].message


def test_result_may_promise_less_than_is_inferred_and_not_more():
    line = '%r = cute.get<[0]> (%0) : !cute.shape<"(?{div=8},3)"> -> !cute.shape<"?{div=N}">'
    for divisor, right in ((8, True), (4, True), (16, False)):
        found = modules.read(function('!cute.shape<"(?{div=8},3)">', line.replace("N", str(divisor))))
        assert (not found.problems) == right


def test_dividing_a_promise_is_inferred_where_one_is_made():
    line = '%r = cute.tuple_product(%0) : (!cute.shape<"(?{div=8},4)">) -> !cute.shape<"?{div=32}">'
    good(function('!cute.shape<"(?{div=8},4)">', line))
    for divisor, right in ((4, True), (2, True), (8, False)):
        made = f'%r = cute.tuple_product(%0) : (!cute.shape<"(?,4)">) -> !cute.shape<"?{{div={divisor}}}">'
        assert (not modules.read(function('!cute.shape<"(?,4)">', made)).problems) == right


def test_attributes_of_an_operation_print_where_mlir_prints_them():
    source = 'func.func @f(%0: !cute.shape<"4">) {\n  cute.print(%0) : !cute.shape<"4"> {here}\n  return\n}'
    assert 'cute.print(%arg0) : !cute.shape<"4"> {here}' in modules.printed(good(source))
    line = 'func.func @f() {\n  %s = cute.static {a = 1 : i32} : !cute.shape<"4">\n  return\n}'
    assert 'cute.static {a = 1 : i32} : !cute.shape<"4">' in modules.printed(good(line))


def test_aliases_of_types_are_read():
    source = '!L = !cute.layout<"(4,8):(1,4)">\nfunc.func @f(%l: !L) -> !L {\n  return %l : !L\n}'
    assert '%arg0: !cute.layout<"(4,8):(1,4)">' in modules.printed(good(source))


def test_several_results_print_as_one_name():
    source = function('!cute.shape<"(2,3)">', '%a, %b = cute.get_leaves(%0) : !cute.shape<"(2,3)">',
                      '!cute.shape<"2">, !cute.shape<"3">')  # fmt: skip
    printed = modules.printed(good(source))
    assert "%0:2 = cute.get_leaves(%arg0)" in printed
    assert "return %0#0, %0#1" in printed
