# SPDX-License-Identifier: Apache-2.0
"""All qualifiers of the loads, stores and copies of tensor memory with each other (PTX ISA, "tcgen05.ld", ".st", ".cp",
…): what the rows have assembles (test_assembles.py); what they lack is refused, and by the assembler too."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import product

import pytest

import numba_cute as cute
from numba_cute import isa
from numba_cute.isa.facts.tensor_copies import PACKED
from numba_cute.isa.facts.tensor_memory import REPETITIONS
from numba_cute.isa.form.assembly import assemble as write
from numba_cute.isa.rows.tcgen05 import SHAPES

from .ptxas import assemble, entry, find_ptxas

REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
GROUPS = (1, 2)
MULTICASTS = (None, "warpx2::02_13", "warpx2::01_23", "warpx4")
BLOCKS = ("128x256b", "4x256b", "128x128b", "64x128b", "32x128b")


def named(**values):
    """All combinations of the values of each qualifier."""
    return [dict(zip(values, some)) for some in product(*values.values())]


def moves(packed):
    for form in named(shape=list(REGISTERS), num=REPETITIONS, **{packed: (False, True)}, split=(None, 0, 511)):
        halves = form["shape"] == "16x32bx2"
        if halves == (form["split"] is not None):
            yield {**form, "regs": REGISTERS[form["shape"]] * form["num"], "halves": halves}


def reductions():
    kinds = named(type=("f32", "s32", "u32"), abs=(False, True), nan=(False, True))
    for form in named(shape=list(REGISTERS), num=(1, 2, 32, 128), op=("min", "max")):
        halves = form["shape"] == "16x32bx2"
        for kind in kinds:
            yield {**form, **kind, "regs": REGISTERS[form["shape"]] * form["num"], "halves": halves,
                   "split": form["num"] if halves else None}  # fmt: skip


def copies():
    return named(shape=BLOCKS, multicast=MULTICASTS, source=(None, *PACKED), cta_group=GROUPS)


FORMS = {
    "tcgen05_ld": (list(moves("pack")), "sm_100a"),
    "tcgen05_st": (list(moves("unpack")), "sm_100a"),
    "tcgen05_ld_red": (list(reductions()), "sm_103a"),
    "tcgen05_cp": (copies(), "sm_100a"),
}
DERIVED = ("regs", "halves")


def has(row, form):
    try:
        row.case({k: v for k, v in form.items() if k not in DERIVED})
    except cute.CuteError as e:
        assert "no form with" in str(e)
        return False
    return True


def assembles(row, form, arch, folder, monkeypatch):
    """Whether the assembler takes a form, which the row need not have."""
    asm = write(row.ptx, list(row.operands), form)
    monkeypatch.setattr("tests.isa.ptxas.entries", lambda row, forms: entry([asm], "k"))
    return assemble(arch, row, [], folder) == ""


def not_refused(row, forms, arch, folder, monkeypatch):
    """The forms of which the assembler says nothing where it is given all of them together: it names lines."""
    text, last = "", []
    for i, form in enumerate(forms):
        text += entry([write(row.ptx, list(row.operands), form)], f"k{i}")
        last.append(text.count("\n"))
    monkeypatch.setattr("tests.isa.ptxas.entries", lambda row, forms: text)
    said = assemble(arch, row, [], folder)
    head = (folder / f"{arch}.ptx").read_text().count("\n") - last[-1]
    refused = {bisect_left(last, int(line) - head) for line in re.findall(r", line (\d+); error", said)}
    return [form for i, form in enumerate(forms) if i not in refused]


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
@pytest.mark.parametrize("name", FORMS)
def test_a_row_has_what_the_assembler_takes(name, tmp_path, monkeypatch):
    row, (forms, arch) = isa.TABLE[name], FORMS[name]
    lacking = [form for form in forms if not has(row, form)]
    left = not_refused(row, lacking, arch, tmp_path, monkeypatch)
    assert len(left) < len(lacking)
    wrong = [form for form in left if assembles(row, form, arch, tmp_path, monkeypatch)]
    assert not wrong, f"the assembler takes what {name} has not: {wrong[:3]}"


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
def test_a_form_that_is_taken_is_found_among_others(tmp_path, monkeypatch):
    """The harness of all together finds what is taken, and what is refused, at both ends."""
    taken = {"shape": "128x256b", "multicast": None, "source": None, "cta_group": 1}
    wrong = {**taken, "multicast": "warpx4"}
    row = isa.TABLE["tcgen05_cp"]
    for forms in ([taken, wrong, wrong], [wrong, taken, wrong], [wrong, wrong, taken]):
        assert not_refused(row, forms, "sm_100a", tmp_path, monkeypatch) == [taken]


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
def test_a_form_that_a_row_has_is_taken_so(tmp_path, monkeypatch):
    """The harness itself can succeed."""
    form = {"shape": "128x256b", "multicast": None, "source": None, "cta_group": 1}
    assert has(isa.tcgen05_cp, form) and assembles(isa.tcgen05_cp, form, "sm_100a", tmp_path, monkeypatch)


def test_rows_have_each_form_of_the_isa():
    """Counted from the syntax: shapes and repetitions of "tcgen05.ld", both packings; shapes and multicasts of
    "tcgen05.cp" with its source formats."""
    plain = {(c["shape"], c["num"], c["pack"]) for c in isa.tcgen05_ld.cases}
    assert len(plain) == 2 * (3 * 8 + 7 + 6) and {s for s, _, _ in plain} == set(SHAPES)
    assert len(isa.tcgen05_cp.cases) == 6 * (1 + len(PACKED)) * len(GROUPS)
    for row in (isa.tcgen05_alloc, isa.tcgen05_dealloc, isa.tcgen05_relinquish_alloc_permit, isa.tcgen05_shift):
        assert [c["cta_group"] for c in row.cases] == [1, 2]
    assert sorted((c["cta_group"], given) for c, given in isa.tcgen05_commit.forms()) == [
        (1, ()), (1, ("cta_mask",)), (2, ()), (2, ("cta_mask",)),
    ]  # fmt: skip
