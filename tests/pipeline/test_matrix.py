# SPDX-License-Identifier: Apache-2.0
"""The matrix (see `cases`) in the simulator, through the assembler and on the GPU, and in many orders.

One cell of each subject runs by default, and a third of the subjects in another order; all with `-m slow`;
`python -m tests.pipeline.seeds` runs 50 orders.
"""

import pytest

from .cases import all_cells
from .seeds import fill, show_wrong, simulate

SLOW = pytest.mark.slow


def quick(each):
    """The first `each` cells of a subject that differ in their stages as they are, all others slow."""
    taken, out = {}, []
    for cell in all_cells():
        seen = taken.setdefault((cell.subject, cell.arch), set())
        stages = cell.facts.get("stages", len(seen))
        early = len(seen) < each and stages not in seen
        if early:
            seen.add(stages)
        out.append(pytest.param(cell, id=str(cell), marks=() if early else SLOW))
    return out


@pytest.mark.parametrize("cell", quick(1))
def test_a_kernel_of_the_matrix_gives_the_right_numbers(run, rng, cell):
    case = cell.make(rng)
    fill(case)
    fresh = [o.array for o in case.outputs if o.start is None]
    started = [o.array for o in case.outputs if o.start is not None]
    run(
        case.kernel, case.grid, case.block, case.arguments, outputs=fresh, inouts=started, arch=case.arch,
        check=lambda: show_wrong(case),
    )  # fmt: skip


SUBJECTS = sorted({c.subject for c in all_cells()})
ORDERS = [
    pytest.param(subject, seed, marks=() if seed == 0 and i % 3 == 0 else SLOW)
    for seed in range(50)
    for i, subject in enumerate(SUBJECTS)
]


@pytest.mark.parametrize("subject, seed", ORDERS)
def test_any_order_of_threads_and_copies_gives_the_same_result(subject, seed):
    """All checks of the simulator are on, and what the run shows is proved."""
    cells = [c for c in all_cells() if c.subject == subject]
    proof = simulate(cells[seed * 7 % len(cells)], seed)
    assert proof.proved, proof
