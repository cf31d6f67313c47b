# SPDX-License-Identifier: Apache-2.0
"""Every kernel of the examples and of the pipelines is proved, and so has one order."""

import pytest

from numba_cute.sim.orders import PROOFS

from ...mutation.kernels import KERNELS
from .everything import proved
from .repeated import PROBLEMS

QUICK = ("threads to threads", "named barriers", "PipelineTmaAsync", "PipelineOrder", "tensor memory", "multicast")


def proofs_of(kernel):
    proofs = []
    token = PROOFS.set(proofs)
    try:
        kernel.run(vars(kernel.module), {})
    finally:
        PROOFS.reset(token)
    return proofs


@pytest.mark.parametrize(
    "kernel", [pytest.param(k, id=k.name, marks=() if k.name in QUICK else pytest.mark.slow) for k in KERNELS]
)
def test_every_example_and_pipeline_is_proved(kernel):
    proofs = proofs_of(kernel)
    assert proofs and all(proofs), "\n".join(map(str, proofs))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=() if n in ("threads to threads", "PipelineTmaStore") else pytest.mark.slow)
        for n in PROBLEMS
    ],
)
def test_examples_may_do_any_number_of_rounds(name):
    for proof in proved(PROBLEMS[name]):
        assert proof.rounds, proof
