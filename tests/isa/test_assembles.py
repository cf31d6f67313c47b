# SPDX-License-Identifier: Apache-2.0
"""Every case of every row is what the assembler takes for the row's target."""

from __future__ import annotations

import re

import pytest

from numba_cute.isa import TABLE

from .ptxas import assemble, find_ptxas, pairwise

OLDEST = 75
"""The least target that the assembler of CUDA 13 has; rows for older ones assemble for it."""

pytestmark = pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas: the nvidia-cuda-nvcc wheel, or on the PATH")


def arch_of(target: str) -> str:
    target = target.split("|")[0]
    return target if int(re.sub(r"\D", "", target)) >= OLDEST else f"sm_{OLDEST}"


def one(cases):
    return list(cases)[:1]


@pytest.mark.parametrize("row", TABLE.values(), ids=lambda r: r.name)
def test_each_pair_of_parameters_assembles_for_the_least_target(row, tmp_path):
    assert assemble(arch_of(row.target), [row], tmp_path, pairwise) == ""


@pytest.mark.slow
@pytest.mark.parametrize("row", [r for r in TABLE.values() if len(r.cases) > 16], ids=lambda r: r.name)
def test_every_case_assembles_for_the_least_target(row, tmp_path):
    assert assemble(arch_of(row.target), [row], tmp_path) == ""


def test_pairs_of_parameters_are_all_kept():
    cases = [{"a": a, "b": b, "c": c} for a in range(4) for b in range(3) for c in range(2)]
    kept = pairwise(cases)
    assert len(kept) < len(cases)
    for x, y in (("a", "b"), ("a", "c"), ("b", "c")):
        assert {(c[x], c[y]) for c in kept} == {(c[x], c[y]) for c in cases}


@pytest.mark.parametrize("row", [r for r in TABLE.values() if "|" in r.target], ids=lambda r: r.name)
def test_every_case_assembles_for_each_of_several_targets(row, tmp_path):
    for target in row.target.split("|")[1:]:
        assert assemble(target, [row], tmp_path) == ""


@pytest.mark.parametrize("row", [r for r in TABLE.values() if r.target == "sm_90a"], ids=lambda r: r.name)
def test_an_a_target_row_is_refused_without_the_suffix(row, tmp_path):
    assert assemble("sm_90", [row], tmp_path, one) != ""


@pytest.mark.parametrize("row", [r for r in TABLE.values() if r.target == "sm_90"], ids=lambda r: r.name)
def test_an_sm_90_row_is_refused_for_sm_80(row, tmp_path):
    assert assemble("sm_80", [row], tmp_path, one) != ""


def test_a_wrong_instruction_does_not_assemble(tmp_path):
    """The harness itself can fail."""
    from dataclasses import replace

    row = TABLE["mbarrier_arrive"]
    assert "arive" in assemble("sm_90", [replace(row, ptx=row.ptx.replace("arrive", "arive"))], tmp_path)
