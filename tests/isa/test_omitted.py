# SPDX-License-Identifier: Apache-2.0
"""A static parameter that a caller leaves out: the default that the row states, the one value that there is, or an
error that names it. Of all rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from numba_cute import isa
from numba_cute.isa.form.assembly import conditions_in, statics_in
from numba_cute.isa.form.choosing import By, by
from numba_cute.isa.form.instr import TABLE, Instr, instr
from numba_cute.isa.form.kinds import out, u32
from numba_cute.seam import CuteError

from ..each import each

SAMPLES = 5
ROWS = [row for row in TABLE.values() if any(len(case) for case in row.cases.given)]


def asked(row: Instr) -> set[str]:
    """What the text, the body, the operands and the order of a row ask of a case."""
    of_operands = {n for o in row.operands for n in (o.count, o.by, *(o.where or ())[:1]) if isinstance(n, str)}
    return statics_in(row.ptx) | conditions_in(row.ptx) | set(row.statics) | of_operands | {"sem", "scope"}


def derived(row: Instr) -> set[str]:
    """What follows from the other parameters, and no body asks for."""
    found: set[str] = {"target"}
    if not row.cases.plain:
        return found
    for name in reversed(dict.fromkeys(n for case in row.cases for n in case)):
        seen: dict[Any, set[Any]] = {}
        for case in row.cases:
            others = tuple((k, v) for k, v in case.items() if k != name and k not in found)
            seen.setdefault(others, set()).add(case.get(name))
        if name not in row.statics and all(len(values) == 1 for values in seen.values()):
            found.add(name)
    return found


def possible(row: Instr, name: str, others: dict[str, Any]) -> set[Any]:
    """The values of a parameter in the cases that have these others, where ranges are any number."""
    fixed = {k: v for k, v in others.items() if k not in row.ranges or v is None}
    blocks = [left for b in row.cases.blocks if (left := b.narrowed(fixed)) is not None]
    free = [k for k in others if k not in fixed]
    blocks = [b for b in blocks if all(b.choices.get(k, (None,))[0] is not None for k in free)]
    return {v for b in blocks for v in b.choices.get(name, (None,))}


def omissions(row: Instr) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Parameters left out: the name, the others, and what it was."""
    follows, cases = derived(row), row.spelled
    for case in list(cases)[:: max(1, len(cases) // SAMPLES)]:
        given = {k: v for k, v in case.items() if k not in follows}
        for name in given:
            yield name, {k: v for k, v in given.items() if k != name}, given[name]


def stated(row: Instr, name: str, others: dict[str, Any]) -> Any:
    """The default that a row states; Ellipsis without one."""
    default = row.defaults.get(name, ...)
    if isinstance(default, By):
        key = tuple(others.get(n, row.cases.given[0].get(n)) for n in default.names)
        default = default.values.get(key if len(key) > 1 else key[0], default.other)
        return default if isinstance(default, (str, int, bool, type(None))) else ...
    return default


@each("row", ROWS, ids=lambda r: r.name)
def test_what_is_left_out_is_the_stated_default_or_the_one_value_or_refused(row):
    for name, others, was in omissions(row):
        values = possible(row, name, others)
        default = stated(row, name, others)
        in_range = default is not ... and name in row.ranges and default in row.ranges[name]
        if default is not ... and ((default in values and len(values) > 1) or (in_range and values - {None})):
            assert row.case(others)[name] == default, (name, others)
        elif len(values) == 1 and not (name in row.ranges and was is not None):
            assert row.case(others).get(name) == was, (name, others)
        elif name in asked(row):
            with pytest.raises(
                CuteError, match=rf"{row.name}( with .*)?: {name} is left out, and .*; name it, of "
            ) as e:
                row.case(others)
            if len(values) < 17 and name not in row.ranges:
                assert all(repr(v) in str(e.value).rpartition("name it, of ")[2] for v in values)
        else:
            assert name not in row.case(others), "what a descriptor says is not made up"


@each("row", ROWS, ids=lambda r: r.name)
def test_the_defaults_of_a_row_are_read_with_it_and_no_case_comes_twice(row):
    row.read = row.operands  # which checks the defaults
    if row.cases.plain:
        assert len({tuple(sorted(case.items(), key=str)) for case in row.cases}) == len(row.cases)


@pytest.mark.parametrize("row, what", [(isa.tcgen05_ld, "pack"), (isa.tcgen05_st, "unpack")], ids=["ld", "st"])
def test_halves_that_lie_as_packed_ones_would_are_not_taken_for_packed(row, what):
    for num in (1, 4, 128):
        plain = row.case({"shape": "16x32bx2", "num": num, "split": 2 * num})
        assert plain[what] is False and plain["split"] == 2 * num
        assert "16b" not in row.assembly(plain).text
        assert row.case({"shape": "16x32bx2", "num": num})["split"] == num
        assert row.case({"shape": "16x32bx2", "num": num, what: True})["split"] == 2 * num


def body(m, a: u32, b: out(u32)) -> None:
    """Documented."""


@pytest.mark.parametrize(
    "defaults, why",
    [
        ({"k": 3}, r"the default \[3\] of k is not among"),
        ({"z": 1}, "a default is stated for 'z', which no case has"),
        ({"k": by("mode", {"x": 1, "y": 9})}, r"the default \[9\] of k"),
        ({"at": 8}, r"the default \[8\] of at"),
    ],
)
def test_a_default_that_no_case_has_is_refused_when_the_row_is_read(defaults, why, monkeypatch):
    monkeypatch.setattr("numba_cute.isa.form.instr.TABLE", {})
    over = [{"mode": m, "k": k, "at": 1} for m in "xy" for k in (1, 2)]
    row = instr("op.{mode}.{k} $b, $a;", target="sm_80", ref="x", over=over, ranges={"at": range(8)}, defaults=defaults)
    with pytest.raises(TypeError, match=why):
        row(body).case({})


def test_a_default_that_does_not_go_with_the_others_is_not_taken():
    with pytest.raises(CuteError) as e:
        isa.tcgen05_cp.case({"shape": "64x128b", "cta_group": 1})
    said = str(e.value)
    assert "multicast is left out, and its default None does not go with the others" in said
    assert re.search(r"of \['warpx2::01_23', 'warpx2::02_13'\]$", said)
