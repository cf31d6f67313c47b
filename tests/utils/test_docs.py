# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/cute_ir.md and docs/nvgpu.md say what is there."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import numba_cute as cute
from numba_cute import nvgpu
from numba_cute.nvgpu.common import CopyOp, MmaOp
from tests.utils import instruction_table, operation_table

DOCS = Path(__file__).resolve().parents[2] / "docs"

CUTE_IR = re.findall(
    r"\w+",
    """
make_shape make_stride make_layout make_coord make_tile get_shape get_stride rank size depth shape_at stride_at
crd2idx idx2crd composition complement left_inverse right_inverse coalesce filter logical_product blocked_product
raked_product tiled_product local_partition local_tile slice_ zipped_divide dice make_tensor load store copy clear
fill axpby gemv gemm make_tiled_mma mma_make_fragment_a mma_make_fragment_b mma_make_fragment_c make_tiled_copy
partition_s partition_d copy_atom_call make_mma_atom make_copy_atom make_tma_load make_tma_store make_exec_tma_load
make_exec_tma_store atom_get_value atom_set_value warp_mma_f16bf16 warp_mma_tf32 warp_mma_sparse warpgroup_mma
warpgroup_mma_sparse tcgen05_mma tcgen05_block_scaled_mma copy_universal ldmatrix cpasync_g2s tma_load_execute
tma_store_execute mbarrier_init mbarrier_arrive mbarrier_wait
""",
)


def rows(page):
    """The rows of a page's tables as lists of cells."""
    for line in (DOCS / page).read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            yield [cell.strip() for cell in line.strip().strip("|").split("|")]


def resolve(dotted):
    at = cute
    for part in dotted.removeprefix("cute.").split("."):
        at = inspect.getattr_static(at, part) if inspect.isclass(at) else getattr(at, part)
    return at


IR_ROWS = {r[0].strip("`"): r for r in rows("cute_ir.md") if r[0].startswith("`") and len(r) == 3}


def test_each_operation_of_cute_ir_has_its_row():
    assert list(IR_ROWS) == CUTE_IR


@pytest.mark.parametrize("operation", CUTE_IR)
def test_each_name_beside_an_operation_resolves(operation):
    _, here, remark = IR_ROWS[operation]
    if not here:
        assert operation.startswith("tcgen05") and "Blackwell" in remark
        return
    assert callable(resolve(here.strip("`")))
    module = resolve(here.strip("`").rpartition(".")[0]) if "Op" in here else None
    for also in re.findall(r"`(Mma\w+|LdMatrix\w+|CopyBulk\w+)", remark):
        assert hasattr(module or nvgpu.cpasync, also), f"{also} of {operation}"


MODULES = {r[0].strip("`"): re.findall(r"`(\w+)`", r[1]) for r in rows("cute_ir.md") if len(r) == 2}


@pytest.mark.parametrize("module", [m for m in MODULES if m != "module"])
def test_each_name_of_the_announcement_is_in_its_module(module):
    assert MODULES[module]
    for name in MODULES[module]:
        resolve(f"{module}.{name}" if module != "cute" else name)


OPS = dict([*operation_table.operations(MmaOp), *operation_table.operations(CopyOp)])


def test_no_public_operation_is_left_out_of_the_tables():
    exported = {f"{m.__name__.removeprefix('numba_cute.')}.{n}" for m in operation_table.FACADES for n in m.__all__
                if n.endswith("Op")}  # fmt: skip
    bases = {"nvgpu.CopyOp", "nvgpu.MmaOp", "nvgpu.cpasync.TmaCopyOp"}
    choices = {"nvgpu.ReductionOp", "nvgpu.cpasync.ReductionOp", "nvgpu.tcgen05.TmemLoadRedOp"}
    assert exported - set(OPS) == bases | choices


@pytest.mark.parametrize("title", operation_table.TABLES)
def test_the_tables_of_operations_are_those_of_the_code(title):
    page = (DOCS / "nvgpu.md").read_text()
    assert operation_table.between(page, title) == operation_table.TABLES[title](), (
        f"docs/nvgpu.md: the table of {title} lags behind: python -m tests.utils.operation_table"
    )


@pytest.mark.parametrize("op", OPS)
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
