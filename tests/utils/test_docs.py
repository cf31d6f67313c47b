# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/nvgpu.md say what is there."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from numba_cute.nvgpu.common import CopyOp, MmaOp
from tests.each import each
from tests.utils import instruction_table, operation_table

DOCS = Path(__file__).resolve().parents[2] / "docs"

OPS = dict([*operation_table.operations(MmaOp), *operation_table.operations(CopyOp)])


def test_no_public_operation_is_left_out_of_the_tables():
    exported = {f"{m.__name__.removeprefix('numba_cute.')}.{n}" for m in operation_table.FACADES for n in m.__all__
                if n.endswith("Op")}  # fmt: skip
    bases = {"nvgpu.CopyOp", "nvgpu.MmaOp", "nvgpu.cpasync.TmaCopyOp"}
    choices = {
        "nvgpu.ReductionOp", "nvgpu.cpasync.ReductionOp", "nvgpu.tcgen05.TmemLoadRedOp", "nvgpu.CollectorOp",
        "nvgpu.tcgen05.CollectorOp",
    }  # fmt: skip
    assert exported - set(OPS) == bases | choices


@pytest.mark.parametrize("title", operation_table.TABLES)
def test_the_tables_of_operations_are_those_of_the_code(title):
    page = (DOCS / "nvgpu.md").read_text()
    assert operation_table.between(page, title) == operation_table.TABLES[title](), (
        f"docs/nvgpu.md: the table of {title} lags behind: python -m tests.utils.operation_table"
    )


@each("op", OPS)
def test_an_operation_s_docstring_names_its_instruction_and_first_targets(op):
    said, first = inspect.getdoc(OPS[op]), {t.split("|")[0] for t in operation_table.first_targets(OPS[op])}
    assert first <= set(re.findall(r"sm_\d+[af]?", said)) if first else "any target" in said
    for row in OPS[op].rows:
        assert f"PTX {instruction_table.family(row).removesuffix('.sp')}" in said


def test_the_table_of_instructions_is_that_of_the_code():
    page = (DOCS / "nvgpu.md").read_text()
    assert instruction_table.between(page) == instruction_table.table(), (
        "docs/nvgpu.md lags behind the instruction table: python -m tests.utils.instruction_table"
    )
