# SPDX-License-Identifier: Apache-2.0
"""The project's right kernels, with one synchronising call at a time left out or changed: the simulator must say so.

A mutant is found if one of 8 orders raises an error, a warning, or gives wrong numbers. EQUIVALENT lists the mutants
that are as right as the kernel, each with the reason; whatever else survives counts against the simulator.
"""

import warnings

import pytest

from .kernels import KERNELS
from .mutants import Mutant, mutants

SEEDS = (None, *range(7))

# (kernel, what the mutant's description holds): why the mutant is no bug.
EQUIVALENT = {
    ("Hopper GEMM", "without stage.commit()"): "the copies complete the stage: with TMA commit does nothing",
    ("TMA to warps", "without stage.commit()"): "the copies complete the stage: with TMA commit does nothing",
    (
        "threads to threads",
        "without producer.tail()",
    ): "only its own CTA uses its barriers, and that has not exited",
    ("TMA to warps", "without producer.tail()"): "only its own CTA uses its barriers, and that has not exited",
    (
        "raw GEMM",
        "without sync.bar_sync(1, 256) #2",
    ): "the second of two: nothing uses the tile after it",
    ("TMA store", "without fence.fence_proxy_async_shared_cta() #2"): "this branch is not taken",
    ("TMA store", "cp_async_bulk_wait_group_read(n=0)"): "this branch is not taken",
    ("Hopper GEMM", "pipeline.CooperativeGroup(pipeline.Agent.Thread, 128)"): "PipelineTmaStore only checks its type",
    ("Hopper GEMM", "warpgroup.wait_group(1): argument 0 -1"): "waiting for all groups is slower, and right",
    ("bulk copies", "mbarrier_wait_parity(BAR + 8 * s, 0)"): "at the end, where all copies have been waited for",
}
LEAST = 0.95


def orders(seed):
    return {} if seed is None else {"seed": seed}


def found(kernel, mutant: Mutant, at: int) -> bool:
    scope = vars(kernel.module)
    space = mutant.load(f"mutant_{at}_of_{kernel.name.replace(' ', '_')}.py", scope)
    for seed in SEEDS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                kernel.run(space, orders(seed))
        except (Exception, SystemExit):  # whatever it is: the unmutated kernel gives none (below)
            return True
    return False


def is_equivalent(kernel, mutant: Mutant) -> bool:
    return any(kernel.name == name and words in str(mutant) for name, words in EQUIVALENT)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_wrong_mutants_are_found(kernel):
    made = list(mutants(kernel.source, set(kernel.functions)))
    wrong = [(at, m) for at, m in enumerate(made) if not is_equivalent(kernel, m)]
    survivors = [str(m) for at, m in wrong if not found(kernel, m, at)]
    assert len(survivors) <= (1 - LEAST) * len(wrong), f"{len(survivors)} of {len(wrong)} survive: {survivors}"


def test_every_equivalent_mutant_still_exists():
    texts = {k.name: [str(m) for m in mutants(k.source, set(k.functions))] for k in KERNELS}
    stale = [e for e in EQUIVALENT if not any(e[1] in text for text in texts[e[0]])]
    assert not stale


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [k for k in KERNELS if "GEMM" not in k.name], ids=lambda k: k.name)
def test_right_kernels_are_silent_over_100_seeds(kernel):
    for seed in range(100):
        kernel.run(vars(kernel.module), orders(seed))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [k for k in KERNELS if "GEMM" in k.name], ids=lambda k: k.name)
@pytest.mark.parametrize("tens", range(10))
def test_right_gemms_are_silent_over_100_seeds(kernel, tens):
    for seed in range(10 * tens, 10 * tens + 10):
        kernel.run(vars(kernel.module), orders(seed))
