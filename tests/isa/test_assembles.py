# SPDX-License-Identifier: Apache-2.0
"""Every form of every row, with and without its optional operands, is what the assembler takes for its target."""

from __future__ import annotations

import pytest

from numba_cute.isa import TABLE

from .ptxas import assemble, by_arch, find_ptxas, pairwise

pytestmark = pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas: the nvidia-cuda-nvcc wheel, or on the PATH")
ROWS = list(TABLE.values())


def families(row):
    """How many alternatives a form's target has at most."""
    return max(len(target.split("|")) for case, given in row.forms() for target in row.needs(case, given))


def first_for(row, arch):
    return by_arch(row, row.forms()).get(arch, [])[:1]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_each_pair_of_parameters_assembles_for_the_least_target(row, tmp_path):
    for arch, forms in by_arch(row, pairwise(row.forms())).items():
        assert assemble(arch, row, forms, tmp_path) == ""


@pytest.mark.slow
@pytest.mark.parametrize("row", [r for r in ROWS if len(list(r.forms())) > 16], ids=lambda r: r.name)
def test_every_form_assembles_for_the_least_target(row, tmp_path):
    for arch, forms in by_arch(row, row.forms()).items():
        assert assemble(arch, row, forms, tmp_path) == ""


@pytest.mark.parametrize("row", [r for r in ROWS if families(r) > 1], ids=lambda r: r.name)
def test_every_form_assembles_for_each_of_several_targets(row, tmp_path):
    several = [(c, g) for c, g in row.forms() if any("|" in t for t in row.needs(c, g))]
    for which in range(1, families(row)):
        for arch, forms in by_arch(row, pairwise(several), which).items():
            assert assemble(arch, row, forms, tmp_path) == ""


@pytest.mark.parametrize("arch, older", [("sm_90a", "sm_90"), ("sm_90", "sm_80")])
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_a_form_is_refused_for_an_older_target_or_without_the_suffix(row, arch, older, tmp_path):
    forms = first_for(row, arch)
    assert not forms or assemble(older, row, forms, tmp_path) != ""


def test_pairs_of_parameters_are_all_kept():
    forms = [
        ({"a": a, "b": b, "c": c}, given)
        for a in range(4)
        for b in range(3)
        for c in range(2)
        for given in ((), ("x",))
    ]
    kept = pairwise(forms)
    assert len(kept) < len(forms)
    for x, y in (("a", "b"), ("a", "c"), ("b", "c")):
        assert {(c[x], c[y]) for c, _ in kept} == {(c[x], c[y]) for c, _ in forms}
    assert {(c["a"], given) for c, given in kept} == {(c["a"], given) for c, given in forms}


def test_a_wrong_instruction_does_not_assemble(tmp_path):
    """The harness itself can fail."""
    row = TABLE["mbarrier_arrive"]
    assert row.cases  # which reads the row
    wrong = object.__new__(type(row))  # a copy of a row is the row
    wrong.__dict__.update(vars(row), ptx=row.ptx.replace("arrive", "arive"))
    assert "arive" in assemble("sm_90", wrong, wrong.forms(), tmp_path)
