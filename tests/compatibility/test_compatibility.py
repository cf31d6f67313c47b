# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md is true."""

from __future__ import annotations

import re

import pytest

import numba_cute as cute
from numba_cute.seam.ground import absent

pytest.importorskip("xdsl", reason="the page tells of the IR, which needs it")

from . import page, remarks  # noqa: E402

LEAST = 701
"""Names of the CuTe DSL's 740 that must be here: never fewer than there were."""


def test_the_page_is_that_of_the_names():
    assert page.PAGE.read_text() == page.text(), "docs/compatibility.md lags behind: python -m tests.compatibility.page"


def test_every_listed_name_has_its_row():
    assert sum(map(len, page.DSL.values())) == 740
    rows = re.findall(r"^\| `([\w.]+)` \|", page.PAGE.read_text(), re.MULTILINE)
    listed = [n for names in page.DSL.values() for n in names]
    for seed in page.SEEDS.values():
        for names in (seed.get("names", ()), seed.get("nvgpu", ()), *seed.get("methods", {}).values(),
                      *seed.get("names_by_module", {}).values()):  # fmt: skip
            listed += names
    assert {*listed, *absent.EXAMPLES, *(n.removeprefix("*") for n in absent.FOREIGN)} == set(rows)


def test_the_cute_dsl_loses_no_name():
    here, total = page.dsl_count()
    assert here >= LEAST and total == 740


@pytest.mark.parametrize("system", page.SYSTEMS)
def test_absent_names_have_a_reason(system):
    rows = [r for _, part in page.SYSTEMS[system]() for r in part]
    assert [r.name for r in rows if r.here is None and not r.remark] == []


def test_remarks_are_of_names_that_are_listed():
    listed = {".".join(filter(None, (m, n))) for m, names in page.DSL.items() for n in names}
    listed |= {f"tilelang.cpasync.{n}" for n in page.SEEDS["S1 tilelang cpasync"]["names"]}
    assert set(remarks.DIFFERENCES) | set(absent.ABSENT) <= listed
    assert [n for n in remarks.DIFFERENCES if not page.found(n)] == []
    operations = {*page.SEEDS["S3 CuTe IR cute_ir"]["names"], *page.SEEDS["S3 CuTe IR cute_nvgpu_ir"]["nvgpu"]}
    assert set(remarks.IR) <= operations


def test_names_in_remarks_resolve():
    for name, (choices, remark) in remarks.IR.items():
        module = choices[0].rpartition(".")[0]
        for also in re.findall(r"`(Mma\w+Op|LdMatrix\w+Op)`", remark):
            assert page.found(f"{module}.{also}"), f"{also} of {name}"
        for also in re.findall(r"`(CopyBulk\w+Op)", remark):
            assert page.found(f"nvgpu.cpasync.{also}")
        for also in re.findall(r"`cute\.([\w.]+)`", remark):
            assert page.found(also)


def test_what_is_not_there_is_not_found():
    assert page.found("arch.load") and page.found("pipeline.PipelineState.advance")
    assert page.found("pipeline.PipelineState.index") and page.found("MmaAtom.set")
    assert not page.found("arch.nothing") and not page.found("pipeline.PipelineState.nothing")
    assert not page.found("nothing.at.all") and not page.found("pipeline.PipelineState.advance.nothing")
    assert callable(cute.arch.load)
