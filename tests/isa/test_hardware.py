# SPDX-License-Identifier: Apache-2.0
"""The simulator and the H200 give the same: every row of the table that sm_90a has is run on both with the same random
inputs, and all results are compared bit for bit, or within the error that the PTX ISA documents.

The programs (`differential`) are generated from the table, one for a family of rows. A row that none of them is for
must be in ELSEWHERE or FAMILIES, with the reason. By default the coverage is checked and some programs run in the
simulator; `-m slow` simulates and assembles all of them, `-m gpu` runs them on both.
"""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from numba_cute.isa import TABLE, supports
from numba_cute.sim import SimWarning

from ..conftest import Assembler
from .differential import cells, copies, matrices, scripts, values
from .differential.program import Program, on_gpu, simulated, written

_UPDATES = (
    "a tensor map's bits are the driver's own: tests/nvgpu/test_tma_update.py compares what copies through a changed "
    "map do, in the simulator and on the GPU"
)

ELSEWHERE = {
    "trap": "it ends the launch with an error, after which a GPU's context is lost",
    "wgmma_wait_group_after": "it is wgmma_wait_group, and says what stands before it: tests/nvgpu/test_wgmma_waits.py",
}
"""Rows of sm_90a without a program here, and why."""
FAMILIES = {
    "tensormap_update": _UPDATES,
    "multimem": "its addresses stand for the memory of several GPUs, which one of them alone has not",
    "spin": "it waits for another thread to write: tests/utils/test_distributed.py",
}
"""The same by a module's name."""


def reason(name: str) -> str | None:
    module = TABLE[name].run.__module__.rsplit(".", 1)[-1]
    return ELSEWHERE.get(name) or FAMILIES.get(module)


@cache
def programs() -> tuple[Program, ...]:
    return tuple(p for source in (values, cells, matrices, scripts, copies) for p in source.programs())


def of_sm_90a() -> list[str]:
    return [r.name for r in TABLE.values() if supports(values.ARCH, r.target)]


def test_every_row_has_a_program_or_a_reason():
    covered = frozenset().union(*(p.rows for p in programs()))
    missing = [n for n in of_sm_90a() if n not in covered and reason(n) is None]
    assert not missing, f"rows that no program compares with the hardware, and without a reason: {missing}"


def test_no_reason_is_left_over():
    covered = frozenset().union(*(p.rows for p in programs()))
    assert all(n in TABLE and n not in covered for n in ELSEWHERE)
    used = {part for n in of_sm_90a() if n not in covered for part in FAMILIES if part in TABLE[n].run.__module__}
    assert used == set(FAMILIES), "a family of rows that have programs now"
    root = Path(__file__).parents[2]
    named = [w for why in (*ELSEWHERE.values(), *FAMILIES.values()) for w in why.split() if w.startswith("tests/")]
    assert named and all((root / w).exists() for w in named)


def by_name(p: Program) -> str:
    return p.name.replace(" ", "_")


QUICK = (
    "approx", "convert", "special", "scalar", "widen", "global_cells_0", "mma_mma_f16", "mbarrier_histories",
    "cluster_barriers", "schedule", "relations", "tensor_maps_of_rank_2", "wgmma_b1_ss",
)  # fmt: skip
"""What runs in the simulator by default: some of each kind."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "program" in metafunc.fixturenames:
        marked = [
            pytest.param(p, id=by_name(p), marks=() if by_name(p) in QUICK or not slow(metafunc) else pytest.mark.slow)
            for p in programs()
        ]
        metafunc.parametrize("program", marked)


def slow(metafunc: pytest.Metafunc) -> bool:
    return metafunc.function is test_a_program_issues_its_rows


def run_simulator(program: Program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimWarning)  # some wait late on purpose: both parities are tested
        return simulated(program)


def test_a_program_issues_its_rows(program):
    result = run_simulator(program)
    assert program.rows <= result.issued
    program.compare(result.arrays, result.arrays)
    assert any(written(a) for a in result.arrays.values())


@pytest.mark.slow
def test_a_program_assembles(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program.run(Assembler())
        except AssertionError as e:  # registers may spill here: nothing is said about speed
            assert "spills" in str(e) or "local memory" in str(e)


@pytest.mark.gpu
def test_the_hardware_agrees(program):
    """The simulator's results and the GPU's."""
    theirs = on_gpu(program)  # first, for it skips where there is no GPU
    program.compare(run_simulator(program).arrays, theirs)


def test_a_wrong_result_is_seen(monkeypatch):
    """The comparison itself can fail: one bit of one word, one float by more than its bound."""
    exact = next(p for p in programs() if "scalar" in p.name)
    ours = run_simulator(exact).arrays
    theirs = {n: a.copy() for n, a in ours.items()}
    theirs["got"][5, 0] ^= 1
    with pytest.raises(AssertionError, match="simulator and GPU differ"):
        exact.compare(ours, theirs)
    close = next(p for p in programs() if p.name == "approx")
    ours = run_simulator(close).arrays
    near, far = ({n: a.copy() for n, a in ours.items()} for _ in range(2))
    normal = np.flatnonzero(
        (ours["got"][:, 0] & 0x7F800000 > 0x01000000) & (ours["got"][:, 0] & 0x7F800000 < 0x7F000000)
    )
    near["got"][normal[0], 0] += 1
    far["got"][normal[0], 0] += 5
    close.compare(ours, near)
    with pytest.raises(AssertionError, match="ex2_approx"):
        close.compare(ours, far)
